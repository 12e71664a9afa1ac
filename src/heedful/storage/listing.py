"""Facts one after the other, for those who look through a dataset."""

from __future__ import annotations

from sqlalchemy import Connection, select

from heedful.storage.ends import unexpired
from heedful.storage.rows import AnyRow
from heedful.storage.schema import facts

_COLUMNS = select(
    facts.c.seq.label("number"),
    facts.c.id,
    facts.c.dataset_id,
    facts.c.text,
    facts.c.source,
    facts.c.metadata,
    facts.c.created_at,
    facts.c.expires_at,
)


def listed(
    connection: Connection,
    dataset: int,
    source: str | None,
    after: int | None,
    count: int,
    newest_first: bool,
    now: int,
) -> list[AnyRow]:
    """Up to `count` facts of a dataset, or of one source, behind the number `after`; superseded and expired ones are
    left out."""
    order = facts.c.seq.desc() if newest_first else facts.c.seq
    current = (facts.c.dataset_id == dataset, facts.c.superseded == 0, unexpired(now))
    statement = _COLUMNS.where(*current).order_by(order).limit(count)
    if source is not None:
        statement = statement.where(facts.c.source == source)
    if after is not None:
        statement = statement.where(facts.c.seq < after if newest_first else facts.c.seq > after)
    return list(connection.execute(statement))


def one(connection: Connection, seq: int) -> AnyRow:
    """One fact, superseded or not."""
    return connection.execute(_COLUMNS.where(facts.c.seq == seq)).one()
