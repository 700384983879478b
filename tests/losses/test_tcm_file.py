"""TCM's file stands alone, as its docstring promises."""

import ast
import sys
from pathlib import Path

from losses import tcm


def test_the_file_can_be_copied_elsewhere():
    """Torch and the standard library are all it imports, at the top or inside a function."""
    names = set()
    for node in ast.walk(ast.parse(Path(tcm.__file__).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names.add(node.module.split(".")[0])
    assert "torch" in names
    assert names - {"torch"} <= sys.stdlib_module_names
