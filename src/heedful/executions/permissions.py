"""What connectors may reach: for the operator everything, for others what the operator has listed in the settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.engine import URL

from heedful.errors import Forbidden
from heedful.executions.databases.kinds import Kind

SYSTEM = "system"
"""The certificates that the machine trusts, where an option could name a file with others."""


@dataclass(frozen=True, slots=True)
class Permissions:
    """What the connectors of one caller may reach."""

    everywhere: bool = True
    """Whether they may lead to any host and any file."""
    hosts: Sequence[str] = ()
    """Each `host`, for the usual port, or `host:port`."""
    folders: Sequence[str] = ()
    secrets: frozenset[str] | None = None
    """The variables that may be referred to; None: all but those of Heedful."""

    def check(self, address: URL, kind: Kind) -> None:
        """Fails if an address leads to where this caller may not go; it says nothing of what is there."""
        if self.everywhere:
            return
        certificates = address.query.get(kind.certificates or "", SYSTEM)
        if certificates != SYSTEM:
            self._check_file(str(certificates))
        if kind.is_file:
            self._check_file(address.database or "")
        elif _place(address.host, address.port or kind.port, kind) not in {_listed(each, kind) for each in self.hosts}:
            raise Forbidden(
                "only the key of the whole server may connect a host that is not listed",
                code="connector_host",
                field="url",
                remedy="Have the operator add host:port to connector_hosts (HEEDFUL_CONNECTOR_HOSTS), or create it "
                "with the key of the whole server",
            )

    def _check_file(self, file: str) -> None:
        try:
            place = Path(file).expanduser().resolve()
            allowed = any(place.is_relative_to(Path(each).expanduser().resolve()) for each in self.folders)
        except (OSError, RuntimeError, ValueError):
            # A loop of links, or a home that nobody has.
            allowed = False
        if not allowed:
            raise Forbidden(
                "only the key of the whole server may name a file outside of the folders that are listed",
                code="connector_folder",
                field="url",
                remedy="Have the operator add its folder to connector_folders (HEEDFUL_CONNECTOR_FOLDERS), or create "
                "it with the key of the whole server",
            )


OPERATOR = Permissions()
"""Whoever opens a store in a process of their own."""


def _place(host: str | None, port: int | None, kind: Kind) -> tuple[str, int | None]:
    return (host or "").strip("[]").lower(), port or kind.port


def _listed(entry: str, kind: Kind) -> tuple[str, int | None]:
    host, colon, port = entry.rpartition(":")
    # An IPv6 address has colons of its own, and stands in brackets if there is a port.
    if colon and port.isdecimal() and (":" not in host or host.endswith("]")):
        return _place(host, int(port), kind)
    return _place(entry, None, kind)
