"""Every write notes its time on the session it is in."""

from __future__ import annotations

from sqlalchemy import bindparam, update

from heedful.storage.prepared import Direct, Prepared
from heedful.storage.schema import sessions

_TOUCH = Prepared(
    update(sessions)
    .where(sessions.c.project_id == bindparam("project"), sessions.c.id == bindparam("session"))
    .values(updated_at=bindparam("now"))
    .returning(sessions.c.seq)
)


def touched(direct: Direct, project: int, session_id: str, at: int) -> int | None:
    """The number of a session in which something is written now; None if there is no such session."""
    rows = direct.run(_TOUCH, project=project, session=session_id, now=at)
    return rows[0][0] if rows else None
