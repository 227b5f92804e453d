"""What `make book` adds to MkDocs: pages from beside `docs`, links to files of the repository, and a check that no page asks
another host.

MkDocs calls the functions by their names: https://www.mkdocs.org/user-guide/configuration/#hooks.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

REPOSITORY = Path(__file__).parents[2]
DOCS = REPOSITORY / "docs"
EXAMPLES = REPOSITORY / "examples/python"

ROOT_PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
"""Pages at the root of the repository, which the book has under `repository/`."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replaces each folder of the navigation by its pages."""
    config.nav = expand(config.nav or [])
    return config


def expand(entry: Any) -> Any:
    if isinstance(entry, list):
        return [part for part in map(expand, entry) if part != []]
    if isinstance(entry, dict):
        entry = {title: expand(part) for title, part in entry.items()}
        return [] if [] in entry.values() else entry
    return pages_of(entry) if entry.endswith("/") else entry


def pages_of(folder: str) -> list[str]:
    """The pages of a folder of `docs`, its README first."""
    pages = sorted((DOCS / folder).glob("*.md"), key=lambda page: (page.name != "README.md", page.name))
    return [page.relative_to(DOCS).as_posix() for page in pages]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are not in `docs`."""
    for name in ROOT_PAGES:
        text = (REPOSITORY / name).read_text(encoding="utf-8")
        files.append(File.generated(config, f"repository/{name}", content=text))
    files.append(File.generated(config, "examples.md", content=examples()))
    return files


def examples() -> str:
    """The programs in `examples/python`, whole."""
    parts = [f"## {file.name}\n\n```python\n{file.read_text(encoding='utf-8')}```\n" for file in sorted(EXAMPLES.glob("*.py"))]
    return "\n".join(["# Examples in Python\n", f"The files of `{EXAMPLES.relative_to(REPOSITORY)}`.\n", *parts])


LINK = re.compile(r"(!?)\[((?:[^][]|\[[^][]*\])*)\]\((?!https?:|#|mailto:)([^()#\s]+)(#[^()\s]+)?\)")
"""A link or a picture of Markdown: its mark, text, file, and place in the file."""

BLOCK = re.compile(r"^```.*?^```|^(?: {4}|\t)[^\n]*$", re.MULTILINE | re.DOTALL)
"""A block of code, in which nothing is a link."""


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Points links at pages of the book. A file of the repository that is no page is named, and is no link."""
    blocks = [block.span() for block in BLOCK.finditer(markdown)]

    def replace(found: re.Match[str]) -> str:
        if any(begin <= found.start() < end for begin, end in blocks):
            return found[0]
        return link(found, page.file.src_uri)

    return LINK.sub(replace, markdown)


def link(found: re.Match[str], source: str) -> str:
    mark, text, file, place = found[1], found[2], found[3], found[4] or ""
    target = (source_of(source).parent / file).resolve()
    if not target.exists():
        raise PluginError(f"{source} leads to {file}, which is not there")
    if target.is_relative_to(DOCS) and target.is_file():
        uri = target.relative_to(DOCS).as_posix()
    elif target.parent == REPOSITORY and target.name in ROOT_PAGES:
        uri = f"repository/{target.name}"
    elif EXAMPLES in (target, target.parent) and target.suffix in ("", ".py"):
        uri, place = "examples.md", f"#{target.name.replace('.', '')}" if target.suffix else ""
    else:
        path = f"`{target.relative_to(REPOSITORY).as_posix()}`"
        return path if text.startswith("`") or text == path.strip("`") else f"{text} ({path})"
    return f"{mark}[{text}]({posixpath.relpath(uri, posixpath.dirname(source))}{place})"


def source_of(uri: str) -> Path:
    """The file that a page of the book is made from."""
    folder, _, name = uri.rpartition("/")
    return REPOSITORY / name if folder == "repository" else DOCS / uri


ASKED = re.compile(
    r"""<(?:script|img|iframe|source|embed|object)\b[^>]*?\b(?:src|srcset|data)=["']?(?:https?:)?//[^"'> ]+"""
    r"""|<link\b(?![^>]*rel=["']?(?:canonical|next|prev))[^>]*?href=["']?(?:https?:)?//[^"'> ]+"""
    r"""|url\(\s*["']?(?:https?:)?//[^)]+|@import\s+["'](?:https?:)?//[^"']+"""
)
"""What a browser fetches from another host, in HTML and in a style."""


def on_post_build(config: MkDocsConfig) -> None:
    """Ends the build if a page asks another host for a script, a style, a font or a picture."""
    site = Path(config.site_dir)
    files = (file for end in ("html", "css") for file in site.rglob(f"*.{end}"))
    asked = [f"{file.relative_to(site)}: {asks}" for file in files for asks in ASKED.findall(file.read_text(encoding="utf-8"))]
    if asked:
        raise PluginError("pages ask other hosts:\n" + "\n".join(asked))
