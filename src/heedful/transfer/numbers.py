"""The way back from names, ids and hashes to the numbers of the store that a project is imported into."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, Table, select

from heedful.storage import graph
from heedful.storage.rows import batches
from heedful.storage.schema import facts, queries, sessions
from heedful.storage.schema_insight import review_items
from heedful.transfer.names import DELETED_PREFIX

Pair = tuple[int, str]
"""The number of a dataset, and a name in it."""


class Numbers:
    """The numbers that the parts of a project got."""

    def __init__(self, connection: Connection, project: int) -> None:
        self._connection = connection
        self.project = project
        self.datasets: dict[str, int] = {}

    def queries(self, pairs: Iterable[Pair]) -> dict[Pair, int]:
        """The numbers of queries, by dataset and hash."""
        ids: dict[Pair, int] = {}
        for dataset, checksums in _by_dataset(pairs).items():
            for run in batches([bytes.fromhex(checksum) for checksum in checksums]):
                rows = self._connection.execute(
                    select(queries.c.id, queries.c.digest).where(
                        queries.c.dataset_id == dataset, queries.c.digest.in_(run)
                    )
                )
                ids.update({(dataset, row.digest.hex()): row.id for row in rows})
        return ids

    def links(self, pairs: Iterable[Pair]) -> dict[Pair, str]:
        """The names that links in words have here, by the dataset that they are in."""
        split = {(dataset, link): link.partition("/") for dataset, link in pairs}
        keys = _by_dataset((dataset, key) for (dataset, _), (_, _, key) in split.items())
        entity_ids = {
            dataset: graph.entity_numbers(self._connection, dataset, list(names)) for dataset, names in keys.items()
        }
        renamed: dict[Pair, str] = {}
        for (dataset, link), (fact, _, key) in split.items():
            number = entity_ids[dataset].get(key)
            # What is gone must not read as the number of anything.
            renamed[dataset, link] = (
                f"{fact}/{DELETED_PREFIX}{key.removeprefix(DELETED_PREFIX)}" if number is None else f"{fact}/{number}"
            )
        return renamed

    def facts(self, ids: Iterable[str]) -> dict[str, int]:
        return self._seqs(facts, ids)

    def sessions(self, ids: Iterable[str]) -> dict[str, int]:
        return self._seqs(sessions, ids)

    def items(self, ids: Iterable[str]) -> dict[str, int]:
        return self._seqs(review_items, ids)

    def _seqs(self, table: Table, ids: Iterable[str]) -> dict[str, int]:
        statement = select(table.c.id, table.c.seq)
        if table is sessions:
            statement = statement.where(sessions.c.project_id == self.project)
        return {
            row.id: row.seq
            for run in batches(sorted(set(ids)))
            for row in self._connection.execute(statement.where(table.c.id.in_(run)))
        }


def _by_dataset(pairs: Iterable[Pair]) -> dict[int, set[str]]:
    grouped: dict[int, set[str]] = {}
    for dataset, name in pairs:
        grouped.setdefault(dataset, set()).add(name)
    return grouped
