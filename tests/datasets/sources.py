"""Archives of generated trees and manifests that point to them."""

from __future__ import annotations

import hashlib
import tarfile
import zipfile
from pathlib import Path

import yaml

from common.errors import run_cli
from datasets import catalogue
from datasets.cli import main


def runner(capsys):
    """A function that runs a command and gives exit code, output and errors."""

    def call(*arguments):
        capsys.readouterr()
        code = run_cli(main, [str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return code, captured.out, captured.err

    return call


def archive(path: Path, folder: Path, *names: str) -> bytes:
    """An archive of parts of a folder, removed there."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as made:
            for name in names:
                for file in sorted(p for p in (folder / name).rglob("*") if p.is_file()):
                    made.write(file, file.relative_to(folder))
    else:
        # dereference would keep hard links within the archive apart; the originals have none.
        with tarfile.open(path, "w:gz") as made:
            for name in names:
                for file in sorted(p for p in (folder / name).rglob("*") if p.is_file()):
                    info = made.gettarinfo(file, file.relative_to(folder).as_posix())
                    info.type, info.linkname = tarfile.REGTYPE, ""
                    info.size = file.stat().st_size
                    with file.open("rb") as content:
                        made.addfile(info, content)
    return path.read_bytes()


def use_manifest(monkeypatch, tmp_path, **changes):
    """The real manifest with changes, e.g. small counts and a local server."""
    tree = yaml.safe_load(catalogue.MANIFEST.read_text(encoding="utf-8"))
    for name, fields in changes.items():
        tree[name] |= fields
    path = tmp_path / "manifest.yaml"
    path.write_text(yaml.safe_dump(tree), encoding="utf-8")
    original = catalogue.entries
    monkeypatch.setattr(catalogue, "entries", lambda: original(path))


def md5(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()
