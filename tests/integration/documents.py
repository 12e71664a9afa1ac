"""The documents that Heedful is built from, where a developer has them beside the clone; they are not part of it."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SEEDS = next((each / "shared/seeds" for each in ROOT.parents if (each / "shared/seeds").is_dir()), None)
_BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A block of code, by its place in its document."""

    document: str
    number: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"document {self.document}, block {self.number} ({self.language or 'no language'})"


def blocks(document: str, language: str) -> list[Block]:
    """The blocks of a document in one language; a test that needs them is skipped where there are none."""
    if SEEDS is None:
        pytest.skip(f"the code of document {document} is NOT run: there is no ../shared/seeds beside this clone")
    (file,) = SEEDS.glob(f"{document}_*.txt")
    result = [
        Block(document, number, each[1], each[2])
        for number, each in enumerate(_BLOCK.finditer(file.read_text(encoding="utf-8")), 1)
    ]
    return [each for each in result if each.language == language]


def filled(block: Block, values: Mapping[str, str]) -> str:
    """The block with the placeholders of ids and addresses filled in, which are whole strings."""
    text = block.text
    for name, value in values.items():
        text = text.replace(f'"{name}"', repr(value))
    return text


async def run(block: Block, text: str, names: dict[str, Any]) -> None:
    """Runs a block among the names that earlier ones left; what it raises tells the block."""
    code = compile(text, str(block), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    with told(block):
        done = eval(code, names)
        if inspect.isawaitable(done):
            await done


@contextmanager
def told(block: Block) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        error.add_note(str(block))
        raise
