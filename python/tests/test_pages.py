"""The page of the package's public names, `docs/reference/python.md`: as its sources give it, every name with its sentence. And
the stub that the page is made from, whose sentences are the module's own."""

import ast
import inspect
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tickpath import _native

REPOSITORY = Path(__file__).parents[2]
STUB = REPOSITORY / "python/tickpath/_native.pyi"
PAGE = REPOSITORY / "docs/reference/python.md"

sys.path.insert(0, str(REPOSITORY / "python/book"))

import reference  # noqa: E402


def public(module: str) -> Iterator[str]:
    """Yields the public names of a module, and those of its classes."""
    for name in import_module(module).__all__:
        yield name
        thing = getattr(import_module(module), name)
        if inspect.isclass(thing):
            members = {**vars(thing), **inspect.get_annotations(thing)}
            yield from (f"{name}.{member}" for member in members if not member.startswith("_"))


@pytest.mark.parametrize("module", reference.MODULES)
def test_every_public_name_is_on_the_page_with_its_sentence(module: str) -> None:
    names = list(public(module))
    assert names, f"{module} has no __all__"
    found = {one.name: one.text for entry in reference.entries(module) for one in entry.all()}
    if module != "tickpath.errors":
        found |= {one.name: one.text for entry in reference.entries("tickpath.errors") for one in entry.all()}
    assert [name for name in names if name not in found] == [], "they are not on the page"
    assert [name for name in names if not found[name]] == [], "they have no docstring"


def test_the_page_equals_its_sources() -> None:
    made = reference.page()
    if "TICKPATH_BLESS" in os.environ:
        PAGE.write_text(made, encoding="utf-8")
    remedy = "python3 python/book/reference.py > docs/reference/python.md"
    assert PAGE.read_text(encoding="utf-8") == made, f"the page differs from its sources; make it anew: {remedy}"


def test_docstrings_of_stub_and_module_are_equal() -> None:
    stub, module = {}, {}
    for node in ast.parse(STUB.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef):
            continue
        thing = getattr(_native, node.name)
        stub[node.name], module[node.name] = words(ast.get_docstring(node)), words(thing.__doc__)
        for member in node.body if isinstance(node, ast.ClassDef) else []:
            if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
                name = f"{node.name}.{member.name}"
                stub[name] = words(ast.get_docstring(member))
                module[name] = words(getattr(thing, member.name).__doc__)
    assert stub == module
    assert all(stub.values())


def words(docstring: str | None) -> str:
    """Returns a docstring without its line breaks."""
    return " ".join((docstring or "").split())
