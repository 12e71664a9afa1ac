"""Writes what editors and type checkers can't see in the code: aio.pyi, the signatures of the awaited calls, from the
declared ones; __init__.pyi, the public names, from where they are declared."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import cast

import heedful
from heedful.api import NAMESPACES

SOURCE = Path(__file__).parents[1] / "src/heedful"
MODULES = ("memory", "sessions", "insight", "sql", "review", "keys")
ALIASES = {"t": "heedful.api.parameters", "m": "heedful.model"}
"""The modules whose names the calls reach over a short one."""

NOTICE = "# Written by docs/stubs.py from heedful.api: `make docs`.\n"
NAMES_NOTICE = "# Written by docs/stubs.py from heedful.__all__: `make docs`.\n"

AIO = """
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self
from heedful.api.calls import Arguments, Call

AsyncRunner = Callable[[Call, Arguments], Awaitable[Any]]

class _Awaiting:
    def __init__(self, run: AsyncRunner) -> None: ...
"""

HEEDFUL = """
def __init__(self, run: AsyncRunner, closing: Callable[[], Awaitable[None]], display_name: str) -> None: ...
async def __aenter__(self) -> Self: ...
async def __aexit__(
    self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
) -> None: ...
async def close(self) -> None: ...
"""


def stubs() -> dict[Path, str]:
    """Each stub, as it should be."""
    return {SOURCE / "__init__.pyi": _names_stub(), SOURCE / "aio.pyi": _async_stub()}


def _names_stub() -> str:
    names = [name for name in heedful.__all__ if name != "__version__"]
    imports = [f"from {getattr(heedful, name).__module__} import {name}" for name in names]
    return NAMES_NOTICE + _formatted("\n".join([*imports, "__version__: str", f"__all__ = {heedful.__all__}"]))


def _async_stub() -> str:
    imports: list[ast.stmt] = []
    others: list[ast.stmt] = []
    classes: list[ast.stmt] = []
    for module in MODULES:
        source = (SOURCE / "api" / f"{module}.py").read_text(encoding="utf-8")
        for alias, origin in ALIASES.items():
            named = [ast.alias(name) for name in dict.fromkeys(re.findall(rf"\b{alias}\.(\w+)", source))]
            imports += [ast.ImportFrom(origin, named, level=0)] if named else []
        for statement in map(_Plain().visit, ast.parse(source).body):
            if isinstance(statement, ast.ImportFrom) and statement.module not in ("heedful", "heedful.api"):
                imports.append(statement)
            elif isinstance(statement, ast.ClassDef):
                classes.append(_awaited(statement))
            elif isinstance(statement, ast.Assign | ast.AnnAssign):
                others.append(statement)
    memory = next(each for each in classes if isinstance(each, ast.ClassDef) and each.name == "AsyncMemory")
    memory.name = "AsyncHeedful"
    attributes = "\n".join(f"{name}: Async{owner.__name__}" for name, owner in NAMESPACES.items() if name)
    memory.body = [*ast.parse(attributes + HEEDFUL).body, *memory.body]
    body = [*imports, *ast.parse(AIO).body, *others, *classes]
    text = ast.unparse(ast.Module(body, type_ignores=[]))
    return NOTICE + _formatted(text)


def _awaited(owner: ast.ClassDef) -> ast.ClassDef:
    """The class with its methods awaited, without what calls say at run time."""
    methods: list[ast.stmt] = []
    for method in owner.body:
        if isinstance(method, ast.FunctionDef):
            documented: list[ast.stmt] = [method.body[0]]
            methods.append(ast.AsyncFunctionDef(method.name, method.args, documented, [], method.returns, lineno=0))
    return ast.ClassDef(f"Async{owner.name}", [ast.Name("_Awaiting")], [], methods, [])


class _Plain(ast.NodeTransformer):
    """Leaves out what is said of a parameter in this call alone, and names types as the stub imports them."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        is_annotated = isinstance(node.value, ast.Name) and node.value.id == "Annotated"
        if is_annotated and isinstance(node.slice, ast.Tuple):
            return cast(ast.AST, self.visit(node.slice.elts[0]))
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return ast.Name(node.attr) if isinstance(node.value, ast.Name) and node.value.id in ALIASES else node


def _formatted(text: str) -> str:
    for arguments in (["check", "-q", "--fix", "--select", "F401,I"], ["format", "-q"]):
        command = [sys.executable, "-m", "ruff", *arguments, "--stdin-filename", str(SOURCE / "stub.pyi"), "-"]
        text = subprocess.run(command, input=text, capture_output=True, text=True, check=False).stdout
    return text
