"""Makes `docs/reference/python.md` from the package's sources and the stub of its native module, which need no build.

    python3 python/book/reference.py > docs/reference/python.md

A test compares the page with its sources (`python/tests/test_pages.py`).
"""

import ast
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from inspect import cleandoc
from pathlib import Path
from textwrap import dedent

PACKAGE = Path(__file__).parents[1] / "tickpath"

MODULES = {"tickpath": "__init__.py", "tickpath.errors": "errors.py", "tickpath.aio": "aio.py", "tickpath.lab": "lab.py"}
"""The public modules, in the order of the page, and their files."""

HEAD = """\
<!-- Made by python/book/reference.py from python/tickpath; edit the docstrings there. -->

# Python

Every public name of the package `tickpath`, with its types and its description. Names of `tickpath.errors` are also in
`tickpath`, and their descriptions are [below](#tickpatherrors). [Tickpath from Python](../python.md) has the package by task.
"""

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Assign | ast.AnnAssign


@dataclass
class Entry:
    """A public name: its signature or type, its description, and, of a class, its members."""

    name: str
    code: str
    text: str
    is_class: bool = False
    is_attribute: bool = False
    members: list["Entry"] = field(default_factory=list)

    def all(self) -> Iterator["Entry"]:
        yield self
        yield from self.members


class Module:
    """The names that a file of the package defines or imports."""

    def __init__(self, file: str) -> None:
        self.source = (PACKAGE / file).read_text(encoding="utf-8")
        self.tree = ast.parse(self.source)
        self.definitions: dict[str, list[tuple[Definition, str]]] = {}
        self.imports: dict[str, str] = {}
        for node, text in with_texts(self.tree.body):
            if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
                self.imports |= {alias.asname or alias.name: file_of(node.module) for alias in node.names}
            elif isinstance(node, Definition):
                for name in names_of(node):
                    self.definitions.setdefault(name, []).append((node, text))

    def public(self) -> list[str]:
        """The names in `__all__`."""
        ((node, _),) = self.definitions["__all__"]
        assert isinstance(node, ast.Assign)
        names: list[str] = ast.literal_eval(node.value)
        return names

    def entry(self, name: str) -> Entry:
        """A name with its description, from the file that defines it."""
        if name not in self.definitions:
            return Module(self.imports[name]).entry(name)
        nodes = self.definitions[name]
        node, text = nodes[-1]
        if isinstance(node, ast.ClassDef):
            members = list(self.members(node))
            return Entry(name, self.class_code(node), docstring(node), is_class=True, members=members)
        return self.member(name, nodes, text)

    def members(self, node: ast.ClassDef) -> Iterator[Entry]:
        found: dict[str, list[tuple[Definition, str]]] = {}
        for part, text in with_texts(node.body):
            if isinstance(part, Definition) and not isinstance(part, ast.ClassDef):
                for name in names_of(part):
                    found.setdefault(name, []).append((part, text))
        for name, nodes in found.items():
            if not name.startswith("_"):
                yield self.member(f"{node.name}.{name}", nodes, nodes[-1][1])

    def member(self, name: str, nodes: list[tuple[Definition, str]], text: str) -> Entry:
        """A function, with a signature for each overload, or an attribute."""
        functions = [node for node, _ in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        if not functions:
            node = nodes[-1][0]
            assert isinstance(node, ast.Assign | ast.AnnAssign)
            kind = ast.unparse(node.annotation) if isinstance(node, ast.AnnAssign) else ""
            is_constant = node.value is not None and kind in ("", "Final")
            return Entry(name, ast.unparse(node.value) if is_constant and node.value else kind, text, is_attribute=True)
        described = next((docstring(node) for node in functions if docstring(node)), "")
        if any(is_property(node) for node in functions):
            returns = functions[0].returns
            return Entry(name, ast.unparse(returns) if returns else "Any", described, is_attribute=True)
        return Entry(name, "\n".join(self.header(node) for node in functions), described)

    def header(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
        """The signature as its source has it, from `def` to the colon."""
        lines = self.source.splitlines()[node.lineno - 1 : node.body[0].lineno]
        lines[-1] = lines[-1][: node.body[0].col_offset] if node.body[0].lineno > node.lineno else lines[-1]
        text = dedent("\n".join(lines)).rstrip()
        # A body on the line of the signature.
        text = text.removesuffix("...").rstrip() if node.body[0].lineno == node.end_lineno else text
        return text.removesuffix(":")

    def class_code(self, node: ast.ClassDef) -> str:
        """The line of a class, and the signature of its constructor."""
        bases = ", ".join(ast.unparse(base) for base in node.bases)
        line = f"class {node.name}({bases})" if bases else f"class {node.name}"
        made = [part for part in node.body if isinstance(part, ast.FunctionDef) and part.name in ("__new__", "__init__")]
        is_for_users = not any("_Source" in ast.unparse(part.args) for part in made)
        return "\n\n".join([line, *(self.header(part) for part in made if is_for_users)])


def with_texts(body: list[ast.stmt]) -> Iterator[tuple[ast.stmt, str]]:
    """Statements, each with the text that stands behind it, which describes an attribute."""
    for place, node in enumerate(body):
        behind = body[place + 1] if place + 1 < len(body) else None
        is_text = isinstance(behind, ast.Expr) and isinstance(behind.value, ast.Constant) and isinstance(behind.value.value, str)
        yield node, cleandoc(behind.value.value) if is_text else ""  # type: ignore[union-attr]


def names_of(node: Definition) -> list[str]:
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign):
        return [node.target.id] if isinstance(node.target, ast.Name) else []
    return [node.name]


def docstring(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    return (ast.get_docstring(node) or "").strip()


def is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(by, ast.Name) and by.id in ("property", "cached_property") for by in node.decorator_list)


def file_of(module: str) -> str:
    """The file of a module of the package: of the native one its stub."""
    return f"{module}.pyi" if (PACKAGE / f"{module}.pyi").exists() else f"{module}.py"


def entries(module: str) -> list[Entry]:
    """The public names of a module. Those of the errors are under their own module alone."""
    read = Module(MODULES[module])
    errors = set() if module == "tickpath.errors" else set(Module(MODULES["tickpath.errors"]).public())
    return [read.entry(name) for name in read.public() if name not in errors]


def aliases() -> Iterable[str]:
    """The private types of the stub, which its signatures name."""
    for found, nodes in Module("_native.pyi").definitions.items():
        node = nodes[0][0]
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias" and node.value:
            yield f"| `{found}` | {code(ast.unparse(node.value))} |"


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for module, file in MODULES.items():
        parts += [f"## {module}\n", f"{ast.get_docstring(Module(file).tree)}\n"]
        found = entries(module)
        order = [[entry for entry in found if entry.is_class], [entry for entry in found if not entry.is_class]]
        parts += [part for entry in [*order[1], *order[0]] for part in rendered(entry)]
    parts += ["## Types in signatures\n", "| type | stands for |\n|---|---|", *aliases()]
    return "\n".join(parts) + "\n"


def rendered(entry: Entry) -> Iterable[str]:
    yield f"### `{entry.name}`\n"
    yield from body(entry)
    attributes = [member for member in entry.members if member.is_attribute]
    if attributes:
        yield "| attribute | type | |\n|---|---|---|"
        yield from (f"| `{name(one)}` | {code(one.code)} | {cell(one.text)} |" for one in attributes)
        yield ""
    for member in entry.members:
        if not member.is_attribute:
            yield f"#### `{member.name}`\n"
            yield from body(member)


def body(entry: Entry) -> Iterable[str]:
    if entry.is_attribute:
        yield f"`{entry.code}`\n"
    else:
        yield f"```python\n{entry.code}\n```\n"
    if entry.text:
        yield f"{entry.text}\n"


def name(entry: Entry) -> str:
    """The name of a member in its class."""
    return entry.name.rpartition(".")[2]


def code(text: str) -> str:
    """Code in a cell of a table."""
    return "`" + text.replace("|", "\\|") + "`"


def cell(text: str) -> str:
    """A description in a cell of a table, which has one line."""
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
