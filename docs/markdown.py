"""Pieces of pages."""

from __future__ import annotations

from collections.abc import Iterator

NOTICE = "<!-- Written by `make docs` from the code. Edits here are overwritten. -->"


def listed(items: Iterator[str] | list[str]) -> str:
    """A, b and c."""
    found = list(items)
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} and {found[-1]}"


def bullets(items: Iterator[str] | list[str]) -> str:
    """A list with a line for each."""
    return "\n".join(f"- {item}" for item in items)


def table(header: list[str], rows: list[list[str]]) -> str:
    """A table; cells are put on one line."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in line) + " |" for line in lines
    )
