"""Which values the columns of each connector hold: few are kept in memory, many are indexed on disk meanwhile."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Hashable
from dataclasses import dataclass
from time import monotonic

from heedful.errors import HeedfulError
from heedful.sql.databases.values import TextValues
from heedful.sql.reuse.value_index import ValueIndex
from heedful.sql.reuse.values import Column, Known, Values
from heedful.sql.sandbox.pool import Queries, Target

logger = logging.getLogger("heedful.sql")

MAX_COLUMN_VALUES = 5_000_000
"""Values of one column that are indexed."""

BATCH_VALUES = 250_000
"""Values that are read by one query, which must not take longer than any other may."""

READING_SHARE = 0.02
"""The share of its time that a database may be read for an index, on average."""

MIN_SECONDS_BETWEEN = 600.0


class _Closed(Exception):
    """Nobody needs the values any more."""


@dataclass(slots=True)
class _State:
    """What is known of one connector's values."""

    identity: Hashable
    """Of the connector: other values are those of another one."""
    version: str | None
    """The version of the data, where the database can tell."""
    text: TextValues
    values: Values
    index_due: float = 0.0
    indexing: bool = False


class ColumnValues:
    """The values of a project's connectors. They are read again when they may have changed.

    A column with more values than are kept in memory is read as a whole in the background. Until that is done, its
    first values are known.
    """

    def __init__(self, queries: Queries) -> None:
        self._queries = queries
        self._lock = threading.Lock()
        self._states: dict[str, _State] = {}
        self._closed = False

    def newest(self, connector_id: str) -> Values | None:
        """What was read last, without reading; None before that."""
        with self._lock:
            state = self._states.get(connector_id)
        return None if state is None else state.values

    def read(self, connector_id: str, identity: Hashable, target: Target) -> Values:
        """The values as they are now; the same object if they have not changed."""
        version = self._queries.data_version(target)
        with self._lock:
            state = self._states.get(connector_id)
        if state is not None and (state.identity != identity or not _is_usable(state.values)):
            state = None
        if state is not None and version is not None and version == state.version:
            return state.values
        text = self._queries.text_values(target)
        if state is None:
            state = _State(identity, version, text, Known(text.values, text.columns))
        elif text != state.text and not (text.partial and isinstance(state.values, ValueIndex)):
            state.values = Known(text.values, text.columns)
        state.version, state.text = version, text
        with self._lock:
            self._states[connector_id] = state
            start = bool(text.partial) and not state.indexing and monotonic() >= state.index_due
            state.indexing = state.indexing or start
        if start:
            threading.Thread(target=self._index, args=(state, target), name="heedful-values", daemon=True).start()
        return state.values

    def forget(self, connector_id: str) -> None:
        """Has the values of a connector read again."""
        with self._lock:
            self._states.pop(connector_id, None)

    def close(self) -> None:
        """Stops reading."""
        self._closed = True

    def _index(self, state: _State, target: Target) -> None:
        began = monotonic()
        try:
            made = self._indexed(state.text, target)
        except _Closed:
            return
        except (HeedfulError, sqlite3.Error):
            # The first values of each column stay known; it is tried again.
            logger.warning("the values of a connector could not be indexed", exc_info=True)
            made = None
        with self._lock:
            state.values = made or state.values
            state.index_due = monotonic() + max(MIN_SECONDS_BETWEEN, (monotonic() - began) / READING_SHARE)
            state.indexing = False

    def _indexed(self, text: TextValues, target: Target) -> ValueIndex:
        made = ValueIndex(text.columns)
        for column, values in text.values.items():
            if column not in text.partial:
                made.add(column, values)
                continue
            try:
                self._read_column(made, column, target)
            except HeedfulError as error:
                _check_expected(error)
                # What came in time is known.
                logger.warning("only some values of %s could be indexed: %s", ".".join(column), error.message)
        made.finish()
        return made

    def _read_column(self, made: ValueIndex, column: Column, target: Target) -> None:
        """Reads the values of a column in their order, so many at a time; where sorting takes too long, in any order,
        as many as come in time."""

        def take(part: list[str]) -> None:
            if self._closed:
                raise _Closed
            made.add(column, part)

        last: str | None = None
        for read in range(0, MAX_COLUMN_VALUES, BATCH_VALUES):
            rows = min(BATCH_VALUES, MAX_COLUMN_VALUES - read)
            try:
                last = self._queries.stream_values(target, column, rows, take, after=last)
            except HeedfulError as error:
                _check_expected(error)
                if read:
                    raise
                self._queries.stream_values(target, column, MAX_COLUMN_VALUES, take, ordered=False)
                return
            if last is None:
                return


def _check_expected(error: HeedfulError) -> None:
    """Raises an error that is no limit of the database or its user."""
    if error.code not in ("query_timeout", "database_forbidden", "read_only"):
        raise error


def _is_usable(values: Values) -> bool:
    return not isinstance(values, ValueIndex) or values.is_usable
