"""Checks the store of the sessions, where that is not the store of the facts."""

from __future__ import annotations

from heedful.errors import HeedfulError
from heedful.model import Check
from heedful.sessions.space import SessionSpace

OK = "ok"


def doctor(space: SessionSpace, repair: bool) -> list[Check]:
    """One check, or none if sessions are in the store of the facts, which is checked anyway."""
    store = space.store
    if not store.remote:
        return []
    try:
        status = store.check()
        fixed = store.repair() if repair and status != OK else ""
    except HeedfulError as error:
        return [Check(name="sessions", ok=False, detail=error.message)]
    return [
        Check(
            name="sessions",
            ok=status == OK or bool(fixed),
            detail=f"{store.name}: {fixed or status}",
            repaired=bool(fixed),
        )
    ]
