"""Removes facts that have expired."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select

from heedful.storage.facts import MADE_FROM, remove, tagged
from heedful.storage.rows import batches
from heedful.storage.schema import facts


def retire(connection: Connection, dataset: int, at: int, limit: int, digests: Sequence[bytes] = ()) -> int:
    """Removes facts that have expired, with what was learnt from them: those with these digests, and at most `limit`
    others. Returns how many expired facts that were. The ledger stays, as when they are forgotten."""
    due = select(facts.c.seq, facts.c.id).where(facts.c.dataset_id == dataset, facts.c.expires_at <= at)
    found = {row.seq: row.id for row in connection.execute(due.order_by(facts.c.expires_at).limit(limit))}
    if not found:
        return 0
    for run in batches(digests):
        found |= {row.seq: row.id for row in connection.execute(due.where(facts.c.digest.in_(run)))}
    remove(connection, dataset, sorted({*found, *tagged(connection, dataset, MADE_FROM, list(found.values()))}))
    return len(found)
