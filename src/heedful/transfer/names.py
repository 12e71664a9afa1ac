"""Numbers differ from store to store. Here they become words that mean the same in any: names, ids and hashes.

A link is "fact/number of entity" in a store, and "fact/key of entity" in words. If the entity is gone, its number
stands behind a minus: that is no key, and no number of a store either.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, select

from heedful.storage import link_scores
from heedful.storage.ledger import LINK_SIGNAL
from heedful.storage.rows import batches
from heedful.storage.schema import datasets, entities, queries

DELETED_PREFIX = "-"
"""Stands before the number of an entity that is gone."""


class Names:
    """The names behind the numbers of a project."""

    def __init__(self, connection: Connection, project: int) -> None:
        self._connection = connection
        rows = connection.execute(select(datasets.c.id, datasets.c.name).where(datasets.c.project_id == project))
        self.datasets: dict[int, str] = {row.id: row.name for row in rows}

    def queries(self, numbers: Iterable[int | None]) -> dict[int | None, str]:
        """The hashes of queries, by number; those that are gone are left out."""
        distinct = sorted({number for number in numbers if number is not None})
        return {
            row.id: row.digest.hex()
            for run in batches(distinct)
            for row in self._connection.execute(select(queries.c.id, queries.c.digest).where(queries.c.id.in_(run)))
        }

    def links(self, names: Iterable[str]) -> dict[str, str]:
        """Links in words, by their names in the store."""
        split = {name: pair for name in names if (pair := link_scores.parse_target(name)) is not None}
        keys: dict[int, str] = {}
        for run in batches(sorted({number for _, number in split.values()})):
            rows = self._connection.execute(select(entities.c.id, entities.c.key).where(entities.c.id.in_(run)))
            keys.update({row.id: row.key for row in rows})
        return {
            name: f"{fact}/{keys.get(number, f'{DELETED_PREFIX}{number}')}" for name, (fact, number) in split.items()
        }


def event_links(row: dict[str, Any]) -> list[str]:
    return [row["target_id"]] if row["kind"] == LINK_SIGNAL else []


def receipt_links(row: dict[str, Any]) -> list[str]:
    return [link for line in row["shown"] if len(line) > 6 for link in line[6]]


def entry_links(row: dict[str, Any]) -> list[str]:
    return [link for _, _, links in row["used"] or () for link in links]


def renamed_event(row: dict[str, Any], links: dict[str, str]) -> dict[str, Any]:
    """An event with its link under another name; keys of derived signals end with it."""
    old = row["target_id"]
    if row["kind"] != LINK_SIGNAL or old not in links:
        return row
    key = row["idempotency_key"]
    if key.endswith(f"/{old}"):
        key = key.removesuffix(old) + links[old]
    return row | {"target_id": links[old], "idempotency_key": key}


def renamed_receipt(row: dict[str, Any], links: dict[str, str]) -> dict[str, Any]:
    lines = [
        [*line[:6], [links.get(link, link) for link in line[6]], *line[7:]] if len(line) > 6 else line
        for line in row["shown"]
    ]
    return row | {"shown": lines}


def renamed_entry(row: dict[str, Any], links: dict[str, str]) -> dict[str, Any]:
    if not row["used"]:
        return row
    return row | {"used": [[fact, share, [links.get(each, each) for each in led]] for fact, share, led in row["used"]]}
