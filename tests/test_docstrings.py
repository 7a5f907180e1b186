"""Every public name says what it is: its own docstring, or that of the method that it overrides."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "mbr_esd_metric"
#: Modules whose imports are not requirement of the package; none may lack a docstring that `ast` sees.
OPTIONAL = ("adapters/comet/", "generation/engines/ray.py", "generation/engines/vllm.py")


def public(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, bool]]:
    """Dotted name of each public class, function and method, and whether its docstring stands there."""
    for one in body:
        if isinstance(one, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and not one.name.startswith("_"):
            yield prefix + one.name, ast.get_docstring(one) is not None
            if isinstance(one, ast.ClassDef):
                yield from public(one.body, f"{prefix}{one.name}.")


def inherited(module: str, name: str) -> bool:
    """Whether a base class documents the method, or it documents the property."""
    kind, _, method = name.rpartition(".")
    cls = importlib.import_module(module)
    for part in kind.split(".") if kind else ():
        cls = getattr(cls, part)
    return isinstance(cls, type) and any(
        inspect.getdoc(base.__dict__[method]) for base in cls.__mro__ if method in base.__dict__
    )


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_public_name_has_a_docstring(path: Path) -> None:
    place = path.relative_to(ROOT.parent).with_suffix("")
    module = ".".join(part for part in place.parts if part != "__init__")
    names = public(ast.parse(path.read_text(encoding="utf-8")).body)
    lacking = [name for name, own in names if not own]
    if lacking and any(part in path.as_posix() for part in OPTIONAL):
        lacking = [name for name in lacking if "." not in name]  # methods may override those of another package
    assert [name for name in lacking if "." not in name or not inherited(module, name)] == []
