"""Rows of files that other systems wrote, each with the line it begins on: JSON, lines of JSON, or archives of them."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.errors import Invalid, NotFound, Unavailable
from heedful.transfer.results import LineError

LISTS = ("results", "memories", "items", "data", "nodes")
"""Names under which pages of other systems have their rows."""

_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Row:
    """One object of a file."""

    value: dict[str, Any]
    line: int
    file: str | None = None
    """The file in the archive, if it is one."""

    def error(self, field: str | None, message: str) -> LineError:
        # A whole export may be one line: then only the id says which row it is.
        row_id = self.value.get("id")
        named = f" (id {row_id})" if isinstance(row_id, str) and field != "id" else ""
        return LineError(file=self.file, line=self.line, field=field, message=message + named)


def read_rows(path: Path) -> Iterator[Row | LineError]:
    """The rows of a file, in order; what can't be read is an error in its place."""
    if not path.is_file():
        raise NotFound(f"there is no file {path}", field="file", value=str(path), remedy="Check its name")
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for name in sorted(archive.namelist()):
                    if name.endswith((".json", ".jsonl")):
                        yield from _rows(archive.read(name), name)
        elif tarfile.is_tarfile(path):
            with tarfile.open(path) as packed:
                for member in sorted(packed.getmembers(), key=lambda member: member.name):
                    file = packed.extractfile(member) if member.name.endswith((".json", ".jsonl")) else None
                    if file is not None:
                        yield from _rows(file.read(), member.name)
        else:
            yield from _rows(path.read_bytes(), None)
    except (OSError, zipfile.BadZipFile, tarfile.TarError) as error:
        raise Unavailable(f"{path} can't be read ({error})", code="file_unreadable") from error


def _rows(data: bytes, file: str | None) -> Iterator[Row | LineError]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Invalid(f"{file or 'the file'} is not UTF-8 ({error.reason})", code="undecodable", field="file") from None
    found = _in_lines(text) if _has_lines(text) else _in_document(text)
    for line, value in found:
        if isinstance(value, dict):
            yield Row(value, line, file)
        else:
            message = str(value) if isinstance(value, ValueError) else "is not a JSON object"
            yield LineError(file=file, line=line, field=None, message=message)


def _has_lines(text: str) -> bool:
    """Whether each line is a document of its own, and not a part of one."""
    lines = [line.lstrip() for line in io.StringIO(text[:100_000]) if line.strip()]
    return len(lines) > 1 and lines[0].startswith("{") and lines[1].startswith("{") and lines[0].rstrip() != "{"


def _in_lines(text: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(io.StringIO(text), start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except json.JSONDecodeError as error:
                yield number, ValueError(f"is not JSON ({error.msg})")


def _in_document(text: str) -> Iterator[tuple[int, Any]]:
    """The rows of one document: of its list, of the list that it has by a known name, or itself."""
    try:
        start = _skip(text, 0)
        if text[start : start + 1] == "{":
            yield from _in_object(text, start)
        elif text[start : start + 1] == "[":
            yield from _in_list(text, start)
        else:
            json.loads(text)
            yield 1, None
    except json.JSONDecodeError as error:
        yield error.lineno, ValueError(f"is not JSON ({error.msg})")


def _in_object(text: str, start: int) -> Iterator[tuple[int, Any]]:
    whole, _ = _DECODER.raw_decode(text, start)
    name = next((name for name in LISTS if isinstance(whole.get(name), list)), None)
    if name is None:
        yield _line(text, start), whole
        return
    position = _skip(text, start + 1)
    while text[position] != "}":
        key, position = _DECODER.raw_decode(text, position)
        position = _skip(text, _skip(text, position) + 1)
        if key == name:
            yield from _in_list(text, position)
            return
        _, position = _DECODER.raw_decode(text, position)
        position = _skip(text, position)
        position = _skip(text, position + 1) if text[position] == "," else position


def _in_list(text: str, start: int) -> Iterator[tuple[int, Any]]:
    line, counted = _line(text, start), start
    position = _skip(text, start + 1)
    while text[position : position + 1] != "]":
        line, counted = line + text.count("\n", counted, position), position
        value, position = _DECODER.raw_decode(text, position)
        yield line, value
        position = _skip(text, position)
        if text[position : position + 1] not in (",", "]"):
            raise json.JSONDecodeError("Expecting ',' delimiter", text, position)
        position = _skip(text, position + 1) if text[position] == "," else position


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
