"""Checks the sessions: their store, where that is not the store of the facts, and ratings whose answer never came."""

from __future__ import annotations

import logging

from heedful.clock import MINUTE
from heedful.errors import HeedfulError
from heedful.model import Check
from heedful.sessions.session_store import SessionStore
from heedful.sessions.space import SessionSpace

logger = logging.getLogger("heedful")

LATE = 60 * MINUTE  # After how long an answer should have come for which a rating waits.

SHOWN = 3


def doctor(space: SessionSpace, repair: bool, operator: bool) -> list[Check]:
    """One check of ratings; another of the store of the sessions, if it is not that of the facts. Only the `operator`
    learns where that is."""
    try:
        # A store with the facts is checked with them.
        return [*([_store(space.store, repair, operator)] if space.store.remote else ()), _ratings(space)]
    except HeedfulError as error:
        logger.warning("the sessions can't be checked: %s", error)
        hidden = "they can't be read; the log of the server says why"
        return [Check(name="sessions", ok=False, detail=error.message if operator else hidden)]


def _store(store: SessionStore, repair: bool, operator: bool) -> Check:
    status = store.check()
    fixed = store.repair() if repair and status != "ok" else ""
    detail = f"{store.name}: {fixed or status}" if operator else fixed or status
    return Check(name="sessions", ok=status == "ok" or bool(fixed), detail=detail, repaired=bool(fixed))


def _ratings(space: SessionSpace) -> Check:
    """`rate` returns False for an unknown answer, which is easy to miss."""
    waiting = space.store.read(lambda tx: tx.feedbacks.waiting_since(space.now() - LATE, SHOWN + 1))
    if not waiting:
        return Check(name="ratings", ok=True, detail="all have their answers")
    names = ", ".join(repr(external_id) for external_id in waiting[:SHOWN]) + (", …" if len(waiting) > SHOWN else "")
    detail = f"some have waited more than an hour for answers with the external_id {names}; pass it to add_entry"
    return Check(name="ratings", ok=False, detail=detail)
