"""The process of a pgbouncer in front of a PostgreSQL server: a transaction borrows a connection, and gives it back."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg
from mongodb import free_port
from postgresql_process import owner

_ROLES = ("guest", "keeper", "locked", "postgres", "reader")
_CONFIGURATION = """
[databases]
* = host=127.0.0.1 port={server}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
max_client_conn = 1000
"""


class Pooler:
    """A pgbouncer in transaction mode, started."""

    def __init__(self, server: int) -> None:
        """`server` is the port of the PostgreSQL server."""
        self.folder = Path(tempfile.mkdtemp(prefix="heedful-pgbouncer-"))
        self.folder.chmod(0o755)
        self._log = self.folder / "log"
        (self.folder / "users").write_text("".join(f'"{role}" ""\n' for role in _ROLES))
        self.port = 0
        self.process: subprocess.Popen[bytes] | None = None
        try:
            self._start(server)
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """Its address, with DATABASE in the place of a name."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/DATABASE"

    def close(self) -> None:
        """Stops it, and removes its folder."""
        if self.process is not None:
            # Connections that are open are closed.
            self.process.terminate()
            self.process.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self) -> str:
        """The end of what it wrote."""
        return self._log.read_text(errors="replace")[-2000:]

    def _start(self, server: int) -> None:
        for _ in range(3):
            # Another program may take the port between the moment it is found free and the start.
            self.port = free_port()
            configuration = self.folder / "pgbouncer.ini"
            configuration.write_text(
                _CONFIGURATION.format(server=server, port=self.port, folder=self.folder), encoding="utf8"
            )
            with self._log.open("ab") as output:
                self.process = subprocess.Popen(
                    [program(), str(configuration)],
                    cwd="/", stdout=output, stderr=output, start_new_session=True, **owner(),
                )  # fmt: skip
            if self._answers(self.process):
                return
            self.process.kill()
            self.process.wait(30)
        raise AssertionError(f"pgbouncer did not start:\n{self.log()}")

    def _answers(self, process: subprocess.Popen[bytes]) -> bool:
        for _ in range(600):
            if process.poll() is not None:
                return False
            with (
                contextlib.suppress(psycopg.OperationalError),
                psycopg.connect(self.url.replace("DATABASE", "postgres")),
            ):
                return True
            time.sleep(0.05)
        return False


def program() -> str:
    """Where Debian's package has it, or elsewhere on the path."""
    found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    assert found is not None, "these tests need a pgbouncer: apt-get install pgbouncer"
    return found
