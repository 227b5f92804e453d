"""The pages of `make docs`: every public name with its sentence, no dead link, and nothing that another host has to give. And
the stub they are made from, whose sentences are the module's own."""

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import import_module, util
from pathlib import Path

import pytest

from tickpath import _native

REPOSITORY = Path(__file__).parents[2]
STUB = REPOSITORY / "python/tickpath/_native.pyi"
MODULES = ["tickpath", "tickpath.aio", "tickpath.errors", "tickpath.lab"]


class Page(HTMLParser):
    """What a page has: places, those of them that say something, and what it refers to."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.places: list[str] = []
        self.told: set[str] = set()
        self.links: list[str] = []
        self.assets: list[str] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        if "id" in given:
            self.places.append(given["id"])
        if given.get("class") == "docstring" and self.places:
            self.told.add(self.places[-1])
        links = self.links if tag == "a" else self.assets
        links += [given[name] for name in ("href", "src", "srcset", "data", "action") if name in given]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if util.find_spec("pdoc") is None:
        pytest.skip("pdoc is not installed: pip install -r python/requirements.txt")
    folder = tmp_path_factory.mktemp("pages")
    # What pdoc cannot make out it warns of.
    words = [sys.executable, "-W", "error::UserWarning", str(REPOSITORY / "python/pages/build.py"), str(folder)]
    ended = subprocess.run(words, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return folder


def public(module: str) -> Iterator[str]:
    """The names of a module that users have, and those in its classes."""
    for name in import_module(module).__all__:
        yield name
        thing = getattr(import_module(module), name)
        if inspect.isclass(thing):
            members = {**vars(thing), **inspect.get_annotations(thing)}
            yield from (f"{name}.{member}" for member in members if not member.startswith("_"))


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_its_place_and_its_sentence(folder: Path, module: str) -> None:
    page = Page(folder / f"{module.replace('.', '/')}.html")
    names = list(public(module))
    assert names, f"{module} has no __all__"
    assert [name for name in names if name not in page.places] == [], "they are not on the page"
    assert [name for name in names if name not in page.told] == [], "they have no docstring"


def test_no_link_is_dead_and_no_other_host_is_asked(folder: Path) -> None:
    pages = {file: Page(file) for file in folder.rglob("*.html")}
    assert {folder / f"{name}.html" for name in ("index", "python", "redis-py", "tickpath")} <= pages.keys()
    wrong = []
    for file, page in pages.items():
        elsewhere = re.compile("(https?:)?//")
        wrong += [f"{file.name} asks {asset}" for asset in page.assets if elsewhere.match(asset)]
        styles = "".join(re.findall("<style>.*?</style>", file.read_text(encoding="utf-8"), re.DOTALL))
        wrong += [f"{file.name} asks {asked}" for asked in re.findall(r"url\(\W*(?:https?:)?//[^)]*|@import[^;]*", styles)]
        for link in [*page.links, *page.assets]:
            path, _, place = link.partition("#")
            target = (file.parent / path).resolve() if path else file
            if re.match("[a-z]+:", link) or elsewhere.match(link):
                continue
            if not target.is_file() or place and place not in pages[target].places:
                wrong.append(f"{file.name} leads to {link}, which is not there")
    assert wrong == []


def test_the_stub_says_what_the_module_says() -> None:
    of_the_stub, of_the_module = {}, {}
    for node in ast.parse(STUB.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef):
            continue
        thing = getattr(_native, node.name)
        of_the_stub[node.name], of_the_module[node.name] = words(ast.get_docstring(node)), words(thing.__doc__)
        for member in node.body if isinstance(node, ast.ClassDef) else []:
            if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
                name = f"{node.name}.{member.name}"
                of_the_stub[name] = words(ast.get_docstring(member))
                of_the_module[name] = words(getattr(thing, member.name).__doc__)
    assert of_the_stub == of_the_module
    assert all(of_the_stub.values())


def words(docstring: str | None) -> str:
    """Wherever its lines end."""
    return " ".join((docstring or "").split())
