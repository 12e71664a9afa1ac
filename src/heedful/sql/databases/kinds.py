"""Which databases can be connectors: a list of backends with their drivers, and of the options their URLs may have.

What isn't listed is refused: an option of a driver can name files, run programs or switch off what keeps data apart.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import time_ns

from sqlalchemy.engine import URL

from heedful.errors import Invalid, quoted

_HOST = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SECONDS = r"[1-9]|[1-5][0-9]|60"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of database."""

    name: str
    drivers: tuple[str, ...]
    """The driver names that its URL may begin with."""
    port: int | None = None
    """The default port; None for a file."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The query options that its URL may have, each with a pattern for the value."""
    certificates: str | None = None
    """The option that names a file on this machine."""

    @property
    def is_file(self) -> bool:
        return self.port is None


KINDS = (
    Kind("sqlite", ("sqlite", "sqlite+pysqlite")),
    Kind("duckdb", ("duckdb",)),
    Kind(
        "postgresql",
        ("postgresql", "postgresql+psycopg"),
        5432,
        {
            "application_name": r".{1,63}",
            "channel_binding": "disable|prefer|require",
            "connect_timeout": _SECONDS,
            "sslmode": "disable|allow|prefer|require|verify-ca|verify-full",
            "sslrootcert": ".{1,1000}",
            "target_session_attrs": "any|read-write|read-only|primary|standby|prefer-standby",
        },
        "sslrootcert",
    ),
    Kind(
        "mysql",
        ("mysql", "mysql+pymysql", "mariadb", "mariadb+pymysql"),
        3306,
        {
            "connect_timeout": _SECONDS,
            "ssl_ca": ".{1,1000}",
            "ssl_check_hostname": "true|false",
        },
        "ssl_ca",
    ),
)


def check_url(address: URL) -> Kind:
    """The kind of a connector's URL, after checking it; an error names the rule and the option, never a value."""
    kind = next((kind for kind in KINDS if address.drivername in kind.drivers), None)
    if kind is None:
        supported = ", ".join(kind.drivers[0] for kind in KINDS)
        raise Invalid(
            f"no connector supports {quoted(address.drivername[:50])}",
            code="connector_kind",
            field="url",
            value=address.drivername[:50],
            remedy=f"Begin the URL with one of: {supported}",
        )
    _check_parts(address, kind)
    for name, value in address.query.items():
        pattern = kind.options.get(name)
        if pattern is None:
            allowed = ", ".join(kind.options) or "none at all"
            raise _option(f"a connector to {kind.name} may not have the option {name[:50]!r}", f"Allowed are {allowed}")
        if not isinstance(value, str) or re.fullmatch(pattern, value) is None:
            raise _option(f"the option {name} has a value that a connector may not have", f"It must match {pattern}")
    return kind


def _check_parts(address: URL, kind: Kind) -> None:
    parts = [address.username, address.password, address.host, address.database, *address.query]
    # A driver may read a NUL as the end of the string.
    if any(_CONTROL.search(part) for part in (*parts, *map(str, address.query.values())) if part):
        raise _unusable("it holds control characters", "Leave them out")
    if kind.is_file:
        if address.host or address.username or address.password or address.port:
            raise _unusable(f"{kind.name} is a file, without host and user", f"Use {kind.name}:///path/to/file")
        return
    if address.host and _HOST.fullmatch(address.host) is None:
        raise _unusable("its host is not a name or an address", "Name one host")
    if address.port is not None and not 0 < address.port < 65_536:
        raise _unusable("its port is not valid", "Use a port from 1 to 65535")


def _option(message: str, remedy: str) -> Invalid:
    return Invalid(message, code="connector_option", field="url", remedy=remedy)


def _unusable(reason: str, remedy: str) -> Invalid:
    return Invalid(f"the connector's URL can't be used: {reason}", code="url_unreadable", field="url", remedy=remedy)


_SETTLED = 2_000_000_000
"""Two changes closer than this (in nanoseconds) may have the same timestamp."""


def version(path: Path, *logs: Path) -> str | None:
    """Changes with every commit to the file or its logs; None just after one, when the next could look the same."""
    parts = []
    for file in (path, *logs):
        try:
            state = file.stat()
        except FileNotFoundError:
            continue
        # A reader may leave an empty log, which is no change.
        if file is not path and state.st_size == 0:
            continue
        if time_ns() - state.st_mtime_ns < _SETTLED:
            return None
        parts.append(f"{file.name} {state.st_ino} {state.st_size} {state.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
