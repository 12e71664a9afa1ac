"""What was proven on each connector, kept ready: the words of questions, and the values of columns."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from time import monotonic

from sqlalchemy import Connection

from heedful.clock import from_stored
from heedful.executions import reach
from heedful.learning.reuse import Evidence, Known, Proven
from heedful.storage.executions import golden, opinions
from heedful.storage.rows import AnyRow

FRESH_SECONDS = 600.0
"""How long the values of columns are taken as read; a name that is newer than that is not known, and refused."""


@dataclass(slots=True)
class _Kept:
    evidence: Evidence
    ids: set[str]
    version: tuple[object, ...]
    read_at: float


class Proofs:
    """The evidence of each connector of a project. It follows the store; values of columns are read now and then."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, _Kept] = {}

    def evidence(self, connection: Connection, connector: AnyRow, project: int) -> Evidence:
        """All that is proven on a connector, as the connection sees it."""
        said, given = opinions.version(connection, project), golden.version(connection, connector.id)
        version = (connector.fingerprint, *said, *given)
        with self._lock:
            kept = self._kept.get(connector.id)
            if kept is None or kept.version[0] != version[0] or monotonic() - kept.read_at > FRESH_SECONDS:
                kept = self._read(connector, version)
            elif kept.version == version:
                return kept.evidence
            self._follow(connection, connector, project, kept)
            kept.version = version
            self._kept[connector.id] = kept
            return kept.evidence

    def forget(self, connector_id: str) -> None:
        """Has everything about a connector read anew."""
        with self._lock:
            self._kept.pop(connector_id, None)

    def _read(self, connector: AnyRow, version: tuple[object, ...]) -> _Kept:
        values = Known(reach.values_of(connector))
        return _Kept(Evidence(reach.dialect_of(connector), values), set(), version, monotonic())

    def _follow(self, connection: Connection, connector: AnyRow, project: int, kept: _Kept) -> None:
        proven = {str(each.id): each for each in _proven(connection, connector, project)}
        for gone in kept.ids - proven.keys():
            kept.evidence.remove(gone)
        for added in proven.keys() - kept.ids:
            kept.evidence.add(proven[added])
        kept.ids = set(proven)


def _proven(connection: Connection, connector: AnyRow, project: int) -> list[Proven]:
    blocked = opinions.blocked(connection, project, connector.id)
    found = [
        Proven(row.id, row.question, row.sql_query, from_stored(row.at))
        for row in opinions.proven(connection, project, connector.id)
        if row.template not in blocked
    ]
    # An example that was changed is another one: its time is part of its name.
    found += [
        Proven(f"{row.id}/{row.updated_at}", row.question, row.sql_query, from_stored(row.updated_at))
        for row in golden.of_connector(connection, connector.id)
    ]
    return found
