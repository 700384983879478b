"""Every public name has a docstring, and what its ``Args`` lists is there."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("common", "datasets", "models", "losses", "eval", "reproduce")
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
    if path.name != "__main__.py"
]
ARGS = re.compile(r"^Args:\n((?:    .*\n?|\n)+)", re.MULTILINE)
LISTED = re.compile(r"^    ([*\w]+(?:, [*\w]+)*):", re.MULTILINE)


def public(module) -> list[tuple[str, object]]:
    """Classes and functions that are written in the module, by name."""
    return [
        (name, thing)
        for name, thing in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(thing) or inspect.isroutine(thing))
        and getattr(thing, "__module__", None) == module.__name__
    ]


def methods(kind: type) -> list[tuple[str, object]]:
    found = [(name, value) for name, value in vars(kind).items() if not name.startswith("_")]
    kinds = (staticmethod, classmethod, property)
    return [(n, v) for n, v in found if inspect.isfunction(v) or isinstance(v, kinds)]


def is_documented(kind: type, name: str, module) -> bool:
    """By itself, by what it overrides, or by a protocol of its module that has it."""
    if name == "forward" and not vars(kind)[name].__doc__:
        # torch's own docstring of it says nothing; the shapes may stand with the class.
        return "(B, " in kind.__doc__ + module.__doc__
    kinds = [*kind.__mro__, *(thing for _, thing in public(module) if inspect.isclass(thing))]
    attributes = "".join(other.__doc__ or "" for other in kinds).partition("Attributes:")[2]
    return any(getattr(vars(other).get(name), "__doc__", None) for other in kinds) or bool(
        re.search(rf"\b{name}\b", attributes)
    )


def listed(text: str) -> list[str]:
    found = ARGS.search(inspect.cleandoc(text))
    groups = LISTED.findall(found[1]) if found else []
    return [name.lstrip("*") for group in groups for name in group.split(", ")]


@pytest.mark.parametrize("name", MODULES)
def test_public_names_are_documented(name):
    module = importlib.import_module(name)
    lacking = [] if module.__doc__ or "__init__" in module.__file__ else [name]
    for owner, thing in public(module):
        if not thing.__doc__:
            lacking.append(owner)
        if inspect.isclass(thing):
            lacking += [
                f"{owner}.{method}"
                for method, _ in methods(thing)
                if not is_documented(thing, method, module)
            ]
    assert lacking == []


@pytest.mark.parametrize("name", MODULES)
def test_listed_arguments_exist(name):
    module = importlib.import_module(name)
    wrong = []
    for owner, thing in public(module):
        inside = methods(thing) if inspect.isclass(thing) else []
        for what, value in [("", thing), *inside]:
            if not callable(value) or (inspect.isclass(value) and issubclass(value, Exception)):
                continue
            parameters = inspect.signature(value).parameters
            unknown = [a for a in listed(value.__doc__ or "") if a not in parameters]
            wrong += [f"{owner} {what}: {argument}" for argument in unknown]
    assert wrong == []


def test_the_check_reads_sections_as_they_are_written():
    text = (
        "One line.\n\n    Args:\n        a, b: two\n            words: more.\n        c: one.\n\n"
    )
    assert listed(text + "    Raises:\n        ValueError: no.\n") == ["a", "b", "c"]
