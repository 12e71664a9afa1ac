"""What the list of the review queue says beside the items themselves."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import func, select

from heedful.engine import Heedful
from heedful.model import REVIEW_STATUSES, OpinionTarget
from heedful.storage import facts, scopes
from heedful.storage.schema_insight import review_items, review_members


def counted(
    heedful: Heedful,
    *,
    dataset: str | None = None,
    assignee: str | None = None,
    target_type: OpinionTarget | None = None,
) -> dict[str, int]:
    """Items by status, after the queue has taken in what was said since."""
    heedful.review.list(limit=1)
    workspace = heedful._workspace
    wanted = {"dataset": dataset, "assignee": assignee, "target_type": target_type}
    with workspace.read() as connection:
        project = scopes.project_id(connection, workspace.project)
        statement = select(review_items.c.status, func.count()).where(
            review_items.c.project_id == project,
            # Without an opinion that stands, an item is not open.
            (review_items.c.status != "open") | (review_items.c.opinions > 0),
            *(review_items.c[name] == value for name, value in wanted.items() if value is not None),
        )
        found = {row[0]: int(row[1]) for row in connection.execute(statement.group_by(review_items.c.status))}
    return {status: found.get(status, 0) for status in REVIEW_STATUSES}


def judged_facts(heedful: Heedful, item_ids: Sequence[str]) -> dict[str, str]:
    """The texts of the facts that items are about, by item: many are asked the same question."""
    workspace = heedful._workspace
    with workspace.read() as connection:
        rows = connection.execute(
            select(review_items.c.id, func.max(review_members.c.target_id))
            .join(review_members, review_members.c.item_seq == review_items.c.seq)
            .where(
                review_items.c.project_id == scopes.project_id(connection, workspace.project),
                review_items.c.id.in_(item_ids),
                review_members.c.target_type == "fact",
            )
            .group_by(review_items.c.id)
        ).all()
        texts = facts.texts(connection, [row[1] for row in rows])
    return {row[0]: texts[row[1]] for row in rows if row[1] in texts}
