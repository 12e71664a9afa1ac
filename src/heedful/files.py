"""Files that are read within limits; and written so that they are there when they are whole, for their owner alone."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from heedful.errors import Conflict, Invalid, Unavailable

FILE_MODE = 0o600
FOLDER_MODE = 0o700
"""Files of ours may hold what people said, and secrets: they are for the owner alone from their first byte."""


def create(path: Path) -> IO[bytes]:
    """A new file to write to; `FileExistsError` if there is something by that name, even a link."""
    return open(path, "xb", opener=lambda name, flags: os.open(name, flags, FILE_MODE))


def read(path: Path, most: int) -> bytes:
    """The content of a file; `Invalid` if it is larger, or a device, which may never end."""
    if not path.is_file():
        raise _not_a_file(path)
    with path.open("rb") as file:
        if (size := os.fstat(file.fileno()).st_size) > most:
            raise too_large(path, f"has {size} bytes", most, "Split it into several files")
        return file.read()


def _not_a_file(path: Path) -> Invalid:
    message = f"{path} is a folder or a device, not a file"
    return Invalid(message, field="path", value=str(path), remedy="Name a file")


def too_large(path: Path, what: str, most: int, remedy: str) -> Invalid:
    """The error about a file that is not read further."""
    message = f"{path} {what}, the limit is {most}"
    return Invalid(message, code="file_too_large", field="file", value=str(path), remedy=remedy)


def readable_by_others(path: Path) -> bool:
    """Whether anybody but its owner may read a file or look into a folder; never so where there are no such modes."""
    return os.name == "posix" and path.exists() and bool(path.stat().st_mode & 0o077)


@contextmanager
def write_atomically(path: Path, *, overwrite: bool) -> Iterator[IO[bytes]]:
    """A file to write to. It is written beside its place and put there at the end: a failure leaves nothing."""
    check(path, overwrite=overwrite)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with create(partial) as output:
            yield output
            output.flush()
            os.fsync(output.fileno())
        check(path, overwrite=overwrite)
        partial.replace(path)
    except OSError as error:
        raise write_error(path, error) from error
    finally:
        partial.unlink(missing_ok=True)


def check(path: Path, *, overwrite: bool) -> None:
    """Fails if there is something that may not be replaced."""
    if path.exists() and not path.is_file():
        raise _not_a_file(path)
    if path.exists() and not overwrite:
        remedy = "Use another file name, or pass overwrite=True"
        raise Conflict(f"{path} already exists", field="path", value=str(path), remedy=remedy)


def write_error(file: Path, error: OSError) -> Unavailable:
    """The error for a file that can't be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Unavailable(
            f"{file} can't be written: the disk is full", code="disk_full", remedy="Free some space and try again"
        )
    reason, remedy = error.strerror or error, "Name another file"
    if not file.parent.exists():
        reason, remedy = f"there is no folder {file.parent}", "Make the folder first, or name a file in another one"
    return Unavailable(f"{file} can't be written ({reason})", code="file_unwritable", remedy=remedy)
