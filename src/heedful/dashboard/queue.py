"""How many items the review queue has."""

from __future__ import annotations

from sqlalchemy import func, select

from heedful.engine import Heedful
from heedful.model import REVIEW_STATUSES, OpinionTarget
from heedful.storage import scopes
from heedful.storage.schema_insight import review_items


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
