"""Rows of files that other systems wrote, each with the line it begins on: JSON, lines of JSON, or archives of them."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from heedful import files
from heedful.errors import HeedfulError, Invalid, NotFound, Unavailable
from heedful.model.limits import MAX_FILE
from heedful.transfer.results import LineError

LISTS = ("results", "memories", "items", "data", "nodes")
"""Names under which pages of other systems have their rows."""

MAX_RATIO = 50
"""How many times its size an archive may unpack to; JSON is packed to a tenth or so."""

MIN_UNPACKED = 10_000_000
"""Bytes that any archive may unpack to."""

MAX_MEMBERS = 10_000
"""Files in an archive."""

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*+")
_OPENERS: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}


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
            yield from _in_archive(_unzipped(path))
        elif _is_tar(path):
            yield from _in_archive(_untarred(path))
        else:
            yield from _rows(files.read(path, MAX_FILE), None)
    except HeedfulError:
        raise
    except (
        *(OSError, EOFError, RuntimeError, ValueError, zlib.error, lzma.LZMAError),
        *(zipfile.BadZipFile, tarfile.TarError),
    ) as error:
        raise Unavailable(f"{path} can't be read ({error})", code="file_unreadable") from error


def _in_archive(members: Iterator[tuple[str, bytes]]) -> Iterator[Row | LineError]:
    for name, data in sorted(members):
        yield from _rows(data, name)


class _Unpacking:
    """Reads what an archive has inside, to its limit."""

    def __init__(self, path: Path, file: IO[bytes] | None = None) -> None:
        self._path, self._file = path, file
        self._most = min(MAX_FILE, max(MIN_UNPACKED, MAX_RATIO * path.stat().st_size))
        self._size = 0

    def read(self, size: int) -> bytes:
        """The next bytes of the file."""
        assert self._file is not None
        return self._counted(self._file.read(size))

    def whole(self, file: IO[bytes]) -> bytes:
        """All of a file in the archive."""
        return b"".join(iter(lambda: self._counted(file.read(1 << 20)), b""))

    def check_members(self, count: int) -> None:
        if count > MAX_MEMBERS:
            raise self._refused(f"has {count} files or more", MAX_MEMBERS)

    def _counted(self, data: bytes) -> bytes:
        self._size += len(data)
        if self._size > self._most:
            raise self._refused(f"of {self._path.stat().st_size} bytes unpacks to {self._size} or more", self._most)
        return data

    def _refused(self, what: str, most: int) -> Invalid:
        return files.too_large(self._path, what, most, "If you trust it, unpack it, and import its files one by one")


def _is_rows(name: str) -> bool:
    return name.endswith((".json", ".jsonl"))


def _unzipped(path: Path) -> Iterator[tuple[str, bytes]]:
    unpacking = _Unpacking(path)
    with zipfile.ZipFile(path) as archive:
        unpacking.check_members(len(archive.infolist()))
        for name in filter(_is_rows, archive.namelist()):
            with archive.open(name) as file:
                yield name, unpacking.whole(file)


def _is_tar(path: Path) -> bool:
    with path.open("rb") as file:
        start = file.read(265)
    return start.startswith(tuple(_OPENERS)) or start[257:262] == b"ustar"


def _untarred(path: Path) -> Iterator[tuple[str, bytes]]:
    with path.open("rb") as packed:
        start = packed.read(6)
        packed.seek(0)
        opener = next((opener for magic, opener in _OPENERS.items() if start.startswith(magic)), None)
        # Counted twice: what is unpacked, headers included, and files, which may have holes.
        source, unpacking = _Unpacking(path, packed if opener is None else opener(packed)), _Unpacking(path)
        with tarfile.open(fileobj=source, mode="r|") as archive:  # type: ignore[call-overload]
            for count, member in enumerate(archive, start=1):
                unpacking.check_members(count)
                if member.isfile() and _is_rows(member.name):
                    file = archive.extractfile(member)
                    assert file is not None
                    yield member.name, unpacking.whole(file)


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
            except (ValueError, RecursionError) as error:
                yield number, _not_json(error)


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
    except (ValueError, RecursionError) as error:
        yield getattr(error, "lineno", 1), _not_json(error)


def _not_json(error: Exception) -> ValueError:
    """What is wrong with a text, without advice about Python."""
    if isinstance(error, json.JSONDecodeError):
        return ValueError(f"is not JSON ({error.msg})")
    return ValueError(
        "is nested too deep" if isinstance(error, RecursionError) else "has a number with too many digits"
    )


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
    found = _SPACE.match(text, position)
    return position if found is None else found.end()


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
