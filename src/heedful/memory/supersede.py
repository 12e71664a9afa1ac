"""Corrections: a fact takes the place of another, which stays in history."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection

from heedful.api import checks
from heedful.clock import new_id
from heedful.errors import Conflict, Invalid
from heedful.ledger import events, supersessions
from heedful.ledger.events import SUPERSESSION, Event
from heedful.ledger.supersessions import retire
from heedful.model import Supersession
from heedful.storage import facts, scopes
from heedful.storage.facts import NewFact, digest
from heedful.storage.vectors import ensure_model, pack
from heedful.workspace import Workspace


def supersede(workspace: Workspace, fact_id: str, text: str | None, by: str | None, author: str | None) -> Supersession:
    """Takes a fact out of recall in favour of a new text, or of a fact that already exists."""
    correct = prepare(workspace, fact_id, text, by, author)
    with workspace.write() as connection:
        return correct(connection)


def prepare(
    workspace: Workspace, fact_id: str, text: str | None, by: str | None, author: str | None
) -> Callable[[Connection], Supersession]:
    """The function that does it in an open transaction; the model has read the text by then."""
    checks.identifier("fact_id", fact_id)
    author = checks.author("author", author)
    if (text is None) == (by is None):
        raise Invalid(
            "the replacement is missing", field="text", value=text, remedy="Pass text, or by=FACT_ID, and not both"
        )
    if by == fact_id:
        raise Invalid(f"fact {fact_id} can't supersede itself", field="by", value=by)
    vector = None if text is None else pack(workspace.embed([checks.text("text", text)])[0])

    def correct(connection: Connection) -> Supersession:
        seq, dataset = locate(workspace, connection, fact_id)
        _check_unexpired(workspace, connection, "fact_id", fact_id)
        if supersessions.superseded(connection, [fact_id]):
            remedy = "Supersede its successor, or retract the first supersession"
            raise Conflict(f"fact {fact_id} is already superseded", field="fact_id", value=fact_id, remedy=remedy)
        created = False
        if by is None:
            assert text is not None
            assert vector is not None
            other, created = _correction(workspace, connection, seq, dataset, fact_id, text, vector)
        else:
            other = by
            if locate(workspace, connection, by, "by")[1] != dataset:
                raise Invalid(f"fact {by} is in another dataset than {fact_id}", field="by", value=by)
            _check_unexpired(workspace, connection, "by", by)
        if supersessions.superseded(connection, [other]):
            # It would stay hidden, and two facts could supersede each other.
            message = f"fact {other}, which should supersede {fact_id}, is superseded itself"
            remedy = "Use its successor, or retract the supersession of it"
            raise Conflict(message, field="text" if by is None else "by", value=other, remedy=remedy)
        now = workspace.now()
        event = Event(
            project_id=scopes.owner(connection, dataset),
            kind=SUPERSESSION,
            target_type="fact",
            target_id=fact_id,
            source="supersede",
            at=now,
            dataset_id=dataset,
            author=author,
            value=other,
            body={"created": created},
        )
        events.append(connection, [event])
        supersessions.judge_superseded(connection, [fact_id, other])
        return Supersession(event_id=event.id, fact_id=fact_id, superseded_by=other)

    return correct


def _correction(
    workspace: Workspace, connection: Connection, seq: int, dataset: int, fact_id: str, text: str, vector: bytes
) -> tuple[str, bool]:
    """The fact that says `text`, with the old one's metadata, and whether it is new."""
    model = ensure_model(connection, workspace.embedder.name, workspace.embedder.dimensions)
    workspace.model(connection)
    old = facts.by_seq(connection, [seq])[seq]
    about = {**old.metadata, events.PROVENANCE: fact_id}
    # It has no source: a file that is remembered again must not sweep its corrections away.
    key = digest(text, None, about)
    retire(connection, dataset, workspace.now(), 1, [key])
    known = facts.ids_by_digest(connection, dataset, [key])
    if known:
        return known[key], False
    new = NewFact(new_id(), text, about, None, 0, 0, len(text), vector, old.expires_at)
    facts.add(connection, dataset, model, [new], workspace.now())
    return new.id, True


def _check_unexpired(workspace: Workspace, connection: Connection, field: str, fact_id: str) -> None:
    if not facts.texts(connection, [fact_id], at=workspace.now()):
        remedy = "Remember what holds now as a new fact"
        raise Conflict(f"fact {fact_id} has expired", code="fact_expired", field=field, value=fact_id, remedy=remedy)


def locate(workspace: Workspace, connection: Connection, fact_id: str, field: str = "fact_id") -> tuple[int, int]:
    """The numbers of a fact of this project and of its dataset."""
    place = facts.locate(connection, [fact_id]).get(fact_id)
    if place is None:
        raise checks.no_fact(workspace.project, fact_id, field)
    return place
