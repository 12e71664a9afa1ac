"""Erasing a person from the ledger, from what is written beside it, and from the review queue."""

from __future__ import annotations

from collections.abc import Set

from sqlalchemy import Connection, delete, func, select, update

from heedful.storage.erasure.words import Erased
from heedful.storage.ledger import REVIEW
from heedful.storage.review import actions
from heedful.storage.review.actions import Note
from heedful.storage.schema import event_keys, events, notes
from heedful.storage.schema_insight import review_items, review_notes


def rename(connection: Connection, project: int, erased: Erased) -> dict[int | None, int]:
    """Gives the person's events their pseudonym, which is all that changes in them; returns how many there are, by
    dataset."""
    by = (events.c.project_id == project, events.c.author == erased.name)
    counted = connection.execute(select(events.c.dataset_id, func.count()).where(*by).group_by(events.c.dataset_id))
    found: dict[int | None, int] = {row[0]: row[1] for row in counted}
    if found:
        _release_keys(connection, project, erased)
        connection.execute(update(events).where(*by).values(author=erased.pseudonym))
    return found


def clear_notes(connection: Connection, project: int, erased: Erased) -> int:
    """Removes what the person wrote with signals; returns how many texts that were."""
    by = select(events.c.id).where(events.c.project_id == project, events.c.author == erased.pseudonym)
    return connection.execute(delete(notes).where(notes.c.event_id.in_(by))).rowcount


def clear_review(connection: Connection, project: int, erased: Erased, opinions: Set[str]) -> int:
    """Removes the person's name and words from the review queue; returns how many rows were changed."""
    return sum(
        (
            _assignments(connection, project, erased),
            connection.execute(
                update(review_items)
                .where(review_items.c.project_id == project, review_items.c.assignee == erased.name)
                .values(assignee=erased.pseudonym)
            ).rowcount,
            _review_notes(connection, project, erased, opinions),
        )
    )


def _release_keys(connection: Connection, project: int, erased: Erased) -> None:
    """Idempotency keys that have the name in them; whoever sends one again is a new caller."""
    keyed = connection.execute(
        select(events.c.id, events.c.recorded_at, events.c.idempotency_key).where(
            events.c.project_id == project,
            events.c.author == erased.name,
            events.c.idempotency_key != events.c.id,
        )
    )
    for row in [row for row in keyed if erased.is_in_key(row.idempotency_key)]:
        own = (events.c.id == row.id, events.c.recorded_at == row.recorded_at)
        connection.execute(update(events).where(*own).values(idempotency_key=row.id))
        connection.execute(
            delete(event_keys).where(
                event_keys.c.project_id == project, event_keys.c.idempotency_key == row.idempotency_key
            )
        )


def _assignments(connection: Connection, project: int, erased: Erased) -> int:
    rows = connection.execute(
        select(events.c.id, events.c.recorded_at, events.c.body).where(
            events.c.project_id == project, events.c.kind == REVIEW, events.c.value == "assign"
        )
    )
    named = [row for row in rows if row.body.get("assignee") == erased.name]
    for row in named:
        own = (events.c.id == row.id, events.c.recorded_at == row.recorded_at)
        connection.execute(update(events).where(*own).values(body={**row.body, "assignee": erased.pseudonym}))
    return len(named)


def _review_notes(connection: Connection, project: int, erased: Erased, opinions: Set[str]) -> int:
    """What they wrote as a reviewer, and opinions of theirs that are kept to be given again."""
    written = connection.execute(
        select(review_notes.c.event_id)
        .join(events, events.c.id == review_notes.c.event_id)
        .where(events.c.project_id == project, events.c.author == erased.pseudonym)
    )
    own = set(written.scalars())
    changed: dict[str, Note] = {}
    for event_id, said in {
        **actions.read(connection, project, sorted(own)),
        **actions.with_words(connection, project),
    }.items():
        kept = said.kept
        if kept is not None and (kept.get("author") in (erased.name, erased.pseudonym) or kept.get("id") in opinions):
            kept = erased.in_opinion(kept)
        left = Note(None if event_id in own else said.note, kept)
        if left != said:
            changed[event_id] = left
    actions.rewrite(connection, changed)
    return len(changed)
