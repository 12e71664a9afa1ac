"""Arrays in one file, written whole or not at all, and mapped instead of read."""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.files import FOLDER_MODE

MAGIC = b"heedful-index-2\n"
_ALIGN = 64

Arrays = Mapping[str, NDArray[Any]]


def save(path: Path, about: Mapping[str, Any], arrays: Arrays) -> None:
    """Writes a file beside `path`, then puts it in its place."""
    path.parent.mkdir(FOLDER_MODE, exist_ok=True)
    places: dict[str, tuple[str, list[int], int]] = {}
    offset = 0
    for name, array in arrays.items():
        places[name] = (array.dtype.str, list(array.shape), offset)
        offset += array.nbytes + (-array.nbytes % _ALIGN)
    header = json.dumps({"about": dict(about), "arrays": places, "sum": _checksum(arrays.values())}).encode()
    start = len(MAGIC) + 8 + len(header)
    header += b" " * (-start % _ALIGN)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with unfinished.open("wb") as file:
            file.write(MAGIC + struct.pack("<Q", len(header)) + header)
            for array in arrays.values():
                file.write(np.ascontiguousarray(array).data)
                file.write(b"\0" * (-array.nbytes % _ALIGN))
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def load(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]] | None:
    """What was saved, mapped from the file; None if there is no such file or it is not whole."""
    try:
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                return None
            (length,) = struct.unpack("<Q", file.read(8))
            if length > path.stat().st_size:
                return None
            header = json.loads(file.read(length))
        # A plain array over the map: the map's own class makes every small step slow.
        content = np.asarray(np.memmap(path, np.uint8, "r", offset=len(MAGIC) + 8 + length))
        return header["about"], {name: _array(content, *place) for name, place in header["arrays"].items()}
    except (OSError, struct.error, ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return None


def is_whole(path: Path) -> bool:
    """Whether a file holds what was saved, to the last byte. Reads all of it."""
    loaded = load(path)
    if loaded is None:
        return False
    with path.open("rb") as file:
        file.seek(len(MAGIC))
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
    return bool(header.get("sum") == _checksum(loaded[1].values()))


def _checksum(arrays: Iterable[NDArray[Any]]) -> int:
    total = 0
    for array in arrays:
        total = zlib.crc32(np.ascontiguousarray(array).data, total)
    return total


def _array(content: NDArray[np.uint8], dtype: str, shape: list[int], offset: int) -> NDArray[Any]:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if offset < 0 or offset + size > len(content):
        raise ValueError("an array reaches beyond the file")
    return content[offset : offset + size].view(dtype).reshape(shape)
