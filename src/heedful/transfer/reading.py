"""An exported file, read line by line and checked before anything is written."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import IO, Any

import orjson
from sqlalchemy import JSON, Column, Float, Integer, LargeBinary, String

from heedful.errors import Invalid, quoted
from heedful.memory import checks
from heedful.model import REVIEW_STATUSES, author_name
from heedful.model.limits import MAX_LINE, MAX_TIME
from heedful.ranking.signals import kind_of
from heedful.storage.schema import facts
from heedful.storage.schema_insight import review_items
from heedful.transfer.checksum import Checksum
from heedful.transfer.exporting import END, FORMAT, HEADER, closing
from heedful.transfer.lines import KINDS, Kind, Line

BATCH_SIZE = 1000
"""Lines that are taken at once."""

MAX_FAULT = 500
"""Characters of a line that are shown."""

SHAPES: dict[str, type] = {"metadata": dict, "extra": dict, "shown": list, "used": list, "body": dict, "options": dict}
"""What JSON columns must be."""


@dataclass(frozen=True, slots=True)
class Header:
    """What a file says of itself."""

    project: str
    model: str | None
    dimensions: int
    counts: dict[str, int]
    facts_checksum: str = ""
    ledger_checksum: str = ""


@dataclass(frozen=True, slots=True)
class Numbered:
    """One line and its state."""

    number: int
    line: Line


def damaged(number: int, fault: str) -> Invalid:
    """The error about a line."""
    # What is wrong may be as long as the line.
    return Invalid(
        f"line {number} {fault[:MAX_FAULT]}",
        code="file_damaged",
        field="file",
        value=number,
        remedy="Export the project again; nothing was imported",
    )


def check(file: IO[bytes]) -> Header:
    """Reads a whole file. What is damaged, unknown or missing in it is an error that names the line."""
    header = _header(file)
    counts = dict.fromkeys(KINDS, 0)
    checksums = {"fact": Checksum(), "event": Checksum()}
    end: Numbered | None = None
    last = 1
    for each in _lines(file):
        if end is not None:
            raise damaged(each.number, "comes after the end")
        name = each.line["type"]
        if name == END:
            end = each
            continue
        _check_line(KINDS[name], each, header)
        counts[name] += 1
        if name in checksums:
            checksums[name].add(each.line)
        last = each.number
    if end is None:
        raise damaged(last, f"is the last of {sum(header.counts.values())}: the file is cut off")
    if counts["project"] != 1:
        raise damaged(end.number, f"ends a file with {counts['project']} projects instead of one")
    declared = end.line | {"counts": _counts(end.line.get("counts"))}
    if declared != closing(counts, checksums) or header.counts != counts:
        raise damaged(end.number, "has counts or checksums that don't match the lines of the file")
    return Header(
        header.project, header.model, header.dimensions, counts, checksums["fact"].value, checksums["event"].value
    )


def groups(file: IO[bytes]) -> Iterator[tuple[Kind, list[Numbered]]]:
    """The lines of a file that was checked, in runs of one type."""
    file.seek(0)
    _line(file)
    for name, run in groupby(_lines(file), key=lambda each: each.line["type"]):
        if name == END:
            return
        batch: list[Numbered] = []
        for each in run:
            batch.append(each)
            if len(batch) == BATCH_SIZE:
                yield KINDS[name], batch
                batch = []
        if batch:
            yield KINDS[name], batch


OLDER = {"caller": ""}
"""What a column is taken to be that files of older versions don't have."""


def to_columns(kind: Kind, line: Line) -> dict[str, Any]:
    """A line's plain columns, as the table takes them."""
    found = {name: line[name] if name in line else OLDER.get(name) for name in kind.plain}
    return found | {name: bytes.fromhex(line[name]) for name in kind.binary if name in line}


def _header(file: IO[bytes]) -> Header:
    file.seek(0)
    header = _parsed(1, _line(file))
    if header.get("type") != HEADER:
        raise damaged(1, "is not the beginning of an exported project")
    if header.get("format") not in range(1, FORMAT + 1):
        raise Invalid(
            f"the file has the format {quoted(header.get('format'))}, and this version reads 1 to {FORMAT}",
            code="file_newer",
            field="file",
            remedy="Upgrade heedful; nothing was imported",
        )
    project, model, counts = header.get("project"), header.get("model"), _counts(header.get("counts"))
    if not isinstance(project, str) or counts is None:
        raise damaged(1, "names neither the project nor the number of its lines")
    if model is None:
        return Header(project, None, 0, counts)
    if not isinstance(model, dict) or [type(model.get(name)) for name in ("name", "dimensions")] != [str, int]:
        raise damaged(1, f"names the model {quoted(model)}")
    return Header(project, model["name"], model["dimensions"], counts)


def _counts(declared: Any) -> dict[str, Any] | None:
    """How many lines of each type a file says it has; one that an older version wrote does not know all types."""
    return dict.fromkeys(KINDS, 0) | declared if isinstance(declared, dict) else None


def _lines(file: IO[bytes]) -> Iterator[Numbered]:
    for number, text in enumerate(iter(lambda: _line(file), b""), start=2):
        line = _parsed(number, text)
        if line.get("type") not in (*KINDS, END):
            raise damaged(number, f"has the unknown type {quoted(line.get('type'))}")
        yield Numbered(number, line)


def _line(file: IO[bytes]) -> bytes:
    """The next line, or as much of it as is read."""
    return file.readline(MAX_LINE + 1)


def _parsed(number: int, text: bytes) -> Line:
    if len(text) > MAX_LINE:
        raise damaged(number, f"has more than {MAX_LINE} bytes")
    try:
        line = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise damaged(number, f"is not JSON ({error})") from error
    if not isinstance(line, dict):
        raise damaged(number, "is not a JSON object")
    return line


def _check_line(kind: Kind, each: Numbered, header: Header) -> None:
    columns, references = kind.plain, kind.references.values()
    for name, value in each.line.items():
        if name in columns:
            _check_value(each, columns[name], value)
        elif name in references:
            if not isinstance(value, str):
                raise damaged(each.number, f"has {name} {quoted(value)}, which is not a text")
            if name == "query":
                _check_hexadecimal(each, name, value)
        elif name == "vector" and kind.has_vector:
            _check_vector(each, value, header)
        elif not (name == "type" or (name == "entities" and kind.name == "fact")):
            raise damaged(each.number, f"has a field {quoted(name)}, which a {kind.name} does not have")
    for name in kind.required:
        if name not in each.line and name not in OLDER:
            raise damaged(each.number, f"has no {name}")
    entities = each.line.get("entities", [])
    if not isinstance(entities, list) or not all(isinstance(name, str) for name in entities):
        raise damaged(each.number, "has entities that are not texts")
    if kind.links is not None:
        _check_links(kind, each)
    _check_author(each)


def _check_author(each: Numbered) -> None:
    """No file makes a named author of a visitor, nor two authors of one name."""
    author, kind = each.line.get("author"), each.line.get("author_kind")
    try:
        is_name = author is None or author_name(author) == author
    except Invalid:
        is_name = False
    if not is_name or kind not in (None, kind_of(author)):
        raise damaged(each.number, f"has the author {quoted(author)} of the kind {quoted(kind)}")


def _check_links(kind: Kind, each: Numbered) -> None:
    assert kind.links is not None
    try:
        sound = all(isinstance(link, str) and "/" in link for link in kind.links(to_columns(kind, each.line)))
    except (TypeError, ValueError) as error:
        raise damaged(each.number, f"has malformed links ({error})") from error
    if not sound:
        raise damaged(each.number, "has links that are not texts with a slash")


def _check_value(each: Numbered, column: Column[Any], value: Any) -> None:
    if isinstance(column.type, JSON):
        if not isinstance(value, SHAPES.get(column.name, object)):
            raise damaged(each.number, f"has a malformed {column.name}")
        _check_storable(each, lambda: checks.storable_values(column.name, value))
        return
    if isinstance(column.type, LargeBinary):
        _check_hexadecimal(each, column.name, value)
        return
    allowed: type | tuple[type, ...] = str
    if isinstance(column.type, Float):
        allowed = (int, float)
    elif isinstance(column.type, Integer):
        allowed = int
    if not isinstance(value, allowed) or isinstance(value, bool):
        raise damaged(each.number, f"has {column.name} {quoted(value)}, which has the wrong type")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise damaged(each.number, f"has {column.name} {quoted(value)}, which is too large")
    is_time = column.name == "at" or column.name.endswith("_at")
    if is_time and isinstance(value, int) and not 0 <= value <= MAX_TIME:
        raise damaged(each.number, f"has {column.name} {quoted(value)}, which is not in the years 1970 to 9999")
    if isinstance(value, str):
        _check_text(each, column, value)
        _check_review(each, column, value)


def _check_text(each: Numbered, column: Column[Any], value: str) -> None:
    _check_storable(each, lambda: checks.any_text(column.name, value))
    if column is facts.c.source:
        _check_storable(each, lambda: checks.source(value))
    longest = column.type.length if isinstance(column.type, String) else None
    if longest is not None and len(value) > longest:
        raise damaged(each.number, f"has a {column.name} of {len(value)} characters, the limit is {longest}")


def _check_storable(each: Numbered, check: Callable[[], object]) -> None:
    try:
        check()
    except Invalid as error:
        raise damaged(each.number, f"can't be stored: {error.message}") from None


def _check_review(each: Numbered, column: Column[Any], value: str) -> None:
    """What no table would refuse, and no reviewer could read."""
    if column is review_items.c.status and value not in REVIEW_STATUSES:
        raise damaged(each.number, f"has the unknown status {quoted(value)}")


def _check_hexadecimal(each: Numbered, name: str, value: Any) -> None:
    if not isinstance(value, str) or re.fullmatch(r"(?:[0-9a-f]{2})+", value) is None:
        raise damaged(each.number, f"has {name} {quoted(value)}, which is not a hexadecimal number")


def _check_vector(each: Numbered, value: Any, header: Header) -> None:
    try:
        size = len(b64decode(value, validate=True))
    except (TypeError, ValueError):
        size = 0
    if header.model is None or size != 2 * header.dimensions:
        raise damaged(each.number, f"has a vector that does not have {header.dimensions} dimensions")
