"""The pages of `make docs`: the guides in `docs` and the reference of the package, as HTML that asks no other host.

    python build.py FOLDER

Nothing has to be built before: of `tickpath._native` they show what its stub says, and a test holds that against the module.
"""

import __future__

import inspect
import re
import shutil
import sys
from pathlib import Path
from types import FunctionType, ModuleType, NoneType
from typing import Any, get_type_hints

import pdoc
from pdoc.doc import Module

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
GUIDES = REPOSITORY / "docs"
EXAMPLES = REPOSITORY / "examples/python"

FIRST = ("python", "redis-py", "bus", "lab", "results")
"""The guides that the list of pages begins with; the others end it, by name."""

REFERENCE = ("tickpath", "tickpath.errors", "tickpath.aio", "tickpath.lab")


def build(folder: Path) -> None:
    """Writes all pages into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    load_stub()
    pages = {name: guide(name) for name in FIRST} | {"examples": examples()}
    pages |= {name: Module.from_name(name) for name in REFERENCE} | {name: guide(name) for name in others()}
    pdoc.render.configure(docformat="markdown", show_source=False, template_directory=HERE)
    pdoc.render.env.globals["titles"] = {name: title(page) for name, page in pages.items()}
    for name, page in pages.items():
        file = folder / f"{name.replace('.', '/')}.html"
        file.parent.mkdir(exist_ok=True)
        file.write_text(pdoc.render.html_module(page, pages), encoding="utf-8")
    (folder / "index.html").write_text(pdoc.render.html_index(pages), encoding="utf-8")
    (folder / "search.js").write_text(pdoc.render.search_index(pages), encoding="utf-8")
    for picture in GUIDES.glob("*.svg"):
        shutil.copy(picture, folder)


def load_stub() -> None:
    """Puts the package where imports find it, with its stub in place of the module that cargo builds."""
    sys.path.insert(0, str(REPOSITORY / "python"))
    stub = REPOSITORY / "python/tickpath/_native.pyi"
    native = ModuleType("tickpath._native")
    # As the classes of the real one do, these say that they are of the package.
    native.__dict__["__name__"] = "tickpath"
    code = compile(stub.read_text(encoding="utf-8"), stub, "exec", flags=__future__.annotations.compiler_flag)
    exec(code, native.__dict__)
    for thing in list(native.__dict__.values()):
        if getattr(thing, "__module__", None) == "tickpath":
            resolve(thing, native.__dict__)
    sys.modules["tickpath._native"] = native


def resolve(thing: Any, names: dict[str, Any]) -> None:
    """Has the types in a stub's class or function say what they stand for: its own names are nowhere else."""
    thing = thing.fget if isinstance(thing, property) else inspect.unwrap(thing)
    if isinstance(thing, FunctionType | type):
        types = get_type_hints(thing, names)
        # What is None in the stub is the class of None in there.
        thing.__annotations__ = {name: None if kind is NoneType else kind for name, kind in types.items()}
    if isinstance(thing, type):
        for member in vars(thing).values():
            resolve(member, names)


def others() -> list[str]:
    return sorted(page.stem for page in GUIDES.glob("*.md") if page.stem not in FIRST)


def guide(name: str) -> Module:
    return page(name, LINK.sub(link, (GUIDES / f"{name}.md").read_text(encoding="utf-8")))


def examples() -> Module:
    files = sorted(EXAMPLES.glob("*.py"))
    parts = [f"## {file.name}\n\n```python\n{file.read_text(encoding='utf-8')}```\n" for file in files]
    return page("examples", "\n".join(["# Examples", f"They lie in `{EXAMPLES.relative_to(REPOSITORY)}`.", *parts]))


def page(name: str, text: str) -> Module:
    """A text as pdoc has pages: the docstring of a module without members."""
    module = ModuleType(name, text)
    module.__dict__["__all__"] = []
    return Module(module)


def title(page: Module) -> str:
    """A guide's heading, or the module's name."""
    heading = re.search("^# (.+)$", page.docstring, re.MULTILINE)
    return heading[1] if heading else page.fullname


LINK = re.compile(r"\[([^][]+)\]\((?!https?:|#)([^()#\s]+)(#[^()\s]+)?\)")
"""A link of Markdown to a file, its text, the file and the place in it."""


def link(found: re.Match[str]) -> str:
    """To another page, or a picture; what lies elsewhere in the repository is named, and no link."""
    text, file, place = found[1], (GUIDES / found[2]).resolve(), found[3] or ""
    if file.parent == GUIDES and file.suffix == ".md":
        return f"[{text}]({file.stem}.html{place})"
    if file.parent == GUIDES and file.suffix == ".svg":
        return found[0]
    if EXAMPLES in (file, file.parent) and file.suffix in ("", ".py"):
        return f"[{text}](examples.html)"
    path = f"`{file.relative_to(REPOSITORY)}`"
    return path if text.startswith("`") else f"{text} ({path})"


if __name__ == "__main__":
    build(Path(sys.argv[1]))
