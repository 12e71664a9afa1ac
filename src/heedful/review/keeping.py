"""Keeps what the list shows of items up to date with the ledger."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection

from heedful.review.fold import Act, Standing, folded
from heedful.storage.review import actions, items, members
from heedful.storage.review.items import Fold
from heedful.storage.rows import AnyRow


def acts(rows: Iterable[AnyRow]) -> list[Act]:
    """The actions among the events of an item that were not undone."""
    return [Act(row.value, row.at, row.author, row.body.get("assignee")) for row in rows if not row.retracted]


def standing(connection: Connection, item: AnyRow) -> Standing:
    """Where one item stands."""
    rows = actions.of_items(connection, item.project_id, [item.id])[item.id]
    return folded(acts(rows), members.stands(connection, [item.seq])[item.seq].last_at)


def refold(connection: Connection, project: int, seqs: Iterable[int]) -> None:
    """Folds items anew; those that have no opinion left are removed."""
    known = items.by_seq(connection, seqs)
    stands = members.stands(connection, list(known))
    done = actions.of_items(connection, project, [row.id for row in known.values()])
    folds = []
    for seq, row in known.items():
        _, opinions, last_at = stands[seq]
        state = folded(acts(done[row.id]), last_at)
        folds.append(Fold(seq, state.status, state.assignee, opinions, row.last_at if last_at is None else last_at))
    items.set_folds(connection, folds)
    items.remove(connection, [seq for seq in known if not stands[seq].members])
