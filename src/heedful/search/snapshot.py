"""The index that a process saves for the next one: arrays in one file, or in a table of the store.

A file is written whole or not at all, and mapped instead of read. Where the store is on a server, all its processes
share the index that the first of them saved.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from heedful.files import FOLDER_MODE
from heedful.storage.postgresql import word_index
from heedful.storage.vectors import ModelRow

MAGIC = b"heedful-index-3\n"
_ALIGN = 64
_HEAD = len(MAGIC) + 8  # Where the header begins, behind its length.
Arrays = Mapping[str, NDArray[Any]]
Loaded = tuple[dict[str, Any], dict[str, NDArray[Any]]]
Transaction = Callable[[], AbstractContextManager[Connection]]


@dataclass(frozen=True, slots=True)
class FileSnapshot:
    """A file beside the store."""

    path: Path
    has_vectors: ClassVar[bool] = True

    def load(self, connection: Connection) -> Loaded | None:
        return load(self.path)

    def save(self, about: Mapping[str, Any], arrays: Arrays, *, replace: bool) -> None:
        """Saves an index up to the change that `about` names; a newer one stays, unless `replace` is set."""
        before = None if replace else load(self.path)
        if before is None or before[0].get("change", 0) <= about["change"]:
            save(self.path, about, arrays)

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)

    def is_damaged(self) -> bool:
        """Whether there is a saved index, but not as it was saved. Reads all of it."""
        return self.path.exists() and not is_whole(self.path)


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """Rows of the store itself. The vectors are in the store already: a search reads there those that it needs."""

    has_vectors: ClassVar[bool] = False

    dataset: int
    model: ModelRow
    read: Transaction
    write: Transaction

    def load(self, connection: Connection) -> Loaded | None:
        content = word_index.read_index(connection, self.dataset, self.model.id)
        return None if content is None else unpack(np.frombuffer(content, np.uint8))

    def save(self, about: Mapping[str, Any], arrays: Arrays, *, replace: bool) -> None:
        # A quarter less to read: hardly a text repeats a word so often.
        small = np.uint8 if arrays["counts"].max(initial=0) < 256 else np.float32
        content = b"".join(pack(about, {**arrays, "counts": arrays["counts"].astype(small)}))
        with self.write() as connection:
            word_index.save_index(connection, self.dataset, self.model.id, about["change"], content, replace=replace)

    def remove(self) -> None:
        with self.write() as connection:
            word_index.remove_index(connection, self.dataset)

    def is_damaged(self) -> bool:
        with self.read() as connection:
            content = word_index.read_index(connection, self.dataset, self.model.id)
        return content is not None and not _has_checksum(np.frombuffer(content, np.uint8))


Snapshot = FileSnapshot | TableSnapshot  # The saved index of a dataset, for the next process.


def pack(about: Mapping[str, Any], arrays: Arrays) -> Iterator[bytes | memoryview]:
    """The content of a file, in parts."""
    places: dict[str, tuple[str, list[int], int]] = {}
    offset = 0
    for name, array in arrays.items():
        places[name] = (array.dtype.str, list(array.shape), offset)
        offset += array.nbytes + (-array.nbytes % _ALIGN)
    header = json.dumps({"about": dict(about), "arrays": places, "sum": _checksum(arrays.values())}).encode()
    header += b" " * (-(_HEAD + len(header)) % _ALIGN)
    yield MAGIC + struct.pack("<Q", len(header)) + header
    for array in arrays.values():
        yield np.ascontiguousarray(array).data
        yield b"\0" * (-array.nbytes % _ALIGN)


def unpack(content: NDArray[np.uint8]) -> Loaded | None:
    """The arrays that were packed, without copying them; None if the content is not whole."""
    try:
        header, start = _header(content)
        arrays = content[start:]
        return header["about"], {name: _array(arrays, *place) for name, place in header["arrays"].items()}
    except (struct.error, ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return None


def save(path: Path, about: Mapping[str, Any], arrays: Arrays) -> None:
    """Writes a file beside `path`, then puts it in its place."""
    path.parent.mkdir(FOLDER_MODE, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with unfinished.open("wb") as file:
            file.writelines(pack(about, arrays))
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def load(path: Path) -> Loaded | None:
    """The saved index, mapped from the file; None if there is no such file or it is not whole."""
    try:
        # A plain array over the map: the map's own class makes every small step slow.
        return unpack(np.asarray(np.memmap(path, np.uint8, "r")))
    except (OSError, ValueError):
        return None


def is_whole(path: Path) -> bool:
    """Whether a file is as it was saved, to the last byte. Reads all of it."""
    try:
        return _has_checksum(np.asarray(np.memmap(path, np.uint8, "r")))
    except (OSError, ValueError):
        return False


def _has_checksum(content: NDArray[np.uint8]) -> bool:
    loaded = unpack(content)
    return loaded is not None and bool(_header(content)[0].get("sum") == _checksum(loaded[1].values()))


def _header(content: NDArray[np.uint8]) -> tuple[dict[str, Any], int]:
    """The header, and where the arrays begin."""
    if content[: len(MAGIC)].tobytes() != MAGIC:
        raise ValueError("it is no index")
    (length,) = struct.unpack("<Q", content[len(MAGIC) : _HEAD].tobytes())
    if length > len(content):
        raise ValueError("it is not whole")
    return json.loads(content[_HEAD : _HEAD + length].tobytes()), _HEAD + length


def _checksum(arrays: Iterable[NDArray[Any]]) -> int:
    return reduce(lambda total, array: zlib.crc32(np.ascontiguousarray(array).data, total), arrays, 0)


def _array(content: NDArray[np.uint8], dtype: str, shape: list[int], offset: int) -> NDArray[Any]:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if offset < 0 or offset + size > len(content):
        raise ValueError("an array reaches beyond the file")
    return content[offset : offset + size].view(dtype).reshape(shape)
