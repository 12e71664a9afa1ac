"""The sign on a store that a copy has not filled yet. It is what a stopped copy goes on from: what it is a copy of."""

from __future__ import annotations

import uuid

from sqlalchemy import Column, Connection, MetaData, String, Table, Text, insert, inspect, select, update

from heedful.errors import Conflict
from heedful.storage import Database
from heedful.storage.database import UNFINISHED
from heedful.storage.dialects import dialect_of
from heedful.transfer import table_rows

_MARKER = Table(
    UNFINISHED,
    MetaData(),
    Column("source", Text, nullable=False),
    Column("run", String(36), nullable=False),
)


class Marker:
    """One run of a copy, and whether the target is still its own."""

    def __init__(self, target: Database, source: str) -> None:
        """Takes the target, if it is empty or an unfinished copy of the same source."""
        self._run = str(uuid.uuid4())
        self._name = target.name
        with target.write() as connection:
            self.resumed = inspect(connection).has_table(UNFINISHED, dialect_of(connection).schema)
            if self.resumed:
                self._take_over(connection, source)
            else:
                self._take(connection, source)

    def check(self, connection: Connection) -> None:
        """Fails if another copy to the same target has begun; else keeps it out until the transaction ends."""
        statement = update(_MARKER).where(_MARKER.c.run == self._run).values(run=self._run)
        if not connection.execute(statement).rowcount:
            raise Conflict(
                f"another heedful copy to {self._name} has begun",
                code="copy_taken_over",
                remedy="Wait for it to finish; this copy has stopped",
            )

    def remove(self, connection: Connection) -> None:
        """The copy is whole."""
        _MARKER.drop(connection)

    def _take(self, connection: Connection, source: str) -> None:
        for table in table_rows.TABLES:
            if not table_rows.is_empty(connection, table):
                raise Conflict(
                    f"the target {self._name} is not empty (it has rows in {table.name})",
                    code="target_not_empty",
                    field="target",
                    value=self._name,
                    remedy="Name a new file or an empty database; nothing was changed",
                )
        _MARKER.create(connection)
        connection.execute(insert(_MARKER).values(source=source, run=self._run))

    def _take_over(self, connection: Connection, source: str) -> None:
        previous_source = connection.execute(select(_MARKER.c.source)).scalar_one()
        if previous_source != source:
            raise Conflict(
                f"the target {self._name} is an unfinished copy of {previous_source}, not of {source}",
                code="target_not_empty",
                field="target",
                value=self._name,
                remedy="Finish that copy, or name a new file or an empty database; nothing was changed",
            )
        connection.execute(update(_MARKER).values(run=self._run))
