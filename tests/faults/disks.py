"""A disk that is small: a file system in memory, that only the processes see which are started within it."""

from __future__ import annotations

import errno
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from postgresql_process import owner

MEGABYTE = 1 << 20


class Disk:
    """A small disk. It goes with the process that holds it."""

    def __init__(self, folder: Path, holder: int) -> None:
        self.folder = folder
        self._holder = holder
        # The same files, seen from outside.
        self._seen = Path(f"/proc/{holder}/root{folder}")

    def within(self, **who: int) -> list[str]:
        """A command that runs another where the disk can be seen; as somebody else, if so told."""
        identity = [f"--set{kind}={number}" for kind, number in who.items()]
        return ["nsenter", f"--mount=/proc/{self._holder}/ns/mnt", *identity]

    def bring(self, file: Path) -> Path:
        """Copies a file to it; returns where it is."""
        shutil.copy(file, self._seen / file.name)
        return self.folder / file.name

    def fetch(self, target: Path) -> None:
        """Copies all that is on it to a folder."""
        shutil.copytree(self._seen, target, dirs_exist_ok=True)

    def fill(self, room: int) -> None:
        """Takes all but so many bytes."""
        with (self._seen / "ballast").open("wb", buffering=0) as file:
            try:
                while (free := shutil.disk_usage(self._seen).free) > room:
                    file.write(bytes(min(free - room, MEGABYTE)))
            except OSError as error:
                # Others may have been faster.
                if error.errno != errno.ENOSPC:
                    raise

    def empty(self) -> None:
        """Makes room."""
        (self._seen / "ballast").unlink()


@contextmanager
def small_disk(megabytes: int) -> Iterator[Disk]:
    """A new disk of this size."""
    # Not in the folder of the test, which belongs to its user alone.
    folder = Path(tempfile.mkdtemp(prefix="heedful-disk-"))
    folder.chmod(0o755)
    who = owner()
    options = f"size={megabytes}m" + (f",uid={who['user']},gid={who['group']}" if who else "")
    script = 'mount -t tmpfs -o "$1" heedful "$0" && echo ready && exec cat'
    holder = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", script, str(folder), options],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert holder.stdout is not None
    assert holder.stderr is not None
    try:
        # Not skipped where it can't be: nobody would notice.
        if holder.stdout.readline() != "ready\n":
            raise AssertionError(f"a small disk needs root and the right to mount: {holder.stderr.read()}")
        yield Disk(folder, holder.pid)
    finally:
        holder.communicate()
        folder.rmdir()


def as_postgresql(disk: Disk) -> list[str]:
    """The command for a PostgreSQL server within a disk, which must not be root."""
    nobody = owner()
    return disk.within(uid=nobody["user"], gid=nobody["group"])
