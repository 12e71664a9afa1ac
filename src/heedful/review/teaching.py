"""Makes a fact of an opinion about an answer, as a reviewer decides."""

from __future__ import annotations

from sqlalchemy import Connection

from heedful.errors import Conflict, Invalid
from heedful.ids import new_id
from heedful.memory import checks
from heedful.memory.answer import LEARNT
from heedful.model import Metadata
from heedful.review import items
from heedful.review.cases import LoadedItem
from heedful.review.fixes import ApplyFix, FixArguments
from heedful.review.items import find_subjects
from heedful.review.retraction import find_opinion
from heedful.sessions import lessons
from heedful.sql.space import ExecutionSpace
from heedful.storage import facts, scopes
from heedful.storage.facts import NewFact
from heedful.storage.review.actions import TAUGHT
from heedful.storage.sessions.base import EntryRow
from heedful.storage.vectors import ensure_model
from heedful.text.corrections import corrected
from heedful.text.statements import statement


def prepare(space: ExecutionSpace, loaded: LoadedItem, arguments: FixArguments) -> ApplyFix:
    """Embeds the lesson of an opinion now; returns the function that stores it in an open transaction."""
    event_id = str(arguments.event_id)
    opinion = items.read_opinions(space, [find_opinion(space, loaded, event_id)]).get(event_id)
    subject = None if opinion is None else find_subjects(space, [opinion]).get(event_id)
    entry = None if subject is None else subject.entry
    if opinion is None or entry is None or entry.dataset is None:
        raise Invalid(
            f"opinion {event_id} is not about an answer made from facts",
            field="event_id",
            value=event_id,
            remedy="Teach from an opinion about an answer; for SQL, use add_example",
        )
    comment = opinion.comment or ""
    lesson = arguments.text or statement(comment) or comment
    if not lesson.strip():
        raise Invalid("the opinion has no comment", field="text", remedy="Pass text: what is true")
    text = checks.text("text", lessons.lesson_text(entry.question, lesson))
    vector = space.vector(text)
    dataset, metadata = entry.dataset, _metadata(space, entry, comment)

    def teach(connection: Connection) -> Metadata:
        number = scopes.ensure_dataset(connection, space.workspace.project, dataset, space.now())
        model = ensure_model(connection, space.workspace.embedder.name, space.workspace.embedder.dimensions)
        space.workspace.model(connection)
        fact = NewFact(new_id(), text, metadata, f"review/{loaded.row.id}", 0, 0, len(text), vector)
        existing = facts.ids_by_digest(connection, number, [fact.digest]).get(fact.digest)
        if existing is not None:
            raise Conflict(
                f"fact {existing} already says so",
                code="taught_already",
                field="text",
                value=lesson,
                remedy="There is nothing left to teach; pass another text to say something else",
            )
        facts.add(connection, number, model, [fact], space.now())
        return {TAUGHT: fact.id, "opinion_id": event_id}

    return teach


def forget(space: ExecutionSpace, connection: Connection, body: Metadata) -> list[str]:
    """Removes the fact that a teaching created; returns its id, if it existed."""
    places = facts.locate(connection, space.workspace.project, [body[TAUGHT]])
    for seq, dataset in places.values():
        facts.remove(connection, dataset, [seq])
    return list(places)


def _metadata(space: ExecutionSpace, entry: EntryRow, comment: str) -> Metadata:
    used = [fact for fact, _, _ in entry.used or ()]
    with space.workspace.read() as connection:
        stored = facts.evidence(connection, used, space.workspace.now())
    evidence = [stored[fact] for fact in used if fact in stored and stored[fact].active]
    index = corrected(comment, [fact.text for fact in evidence], entry.question)
    metadata: Metadata = {LEARNT: "review", "session_id": entry.session_id, "qa_id": entry.id}
    if index is None:
        return {**lessons.shared_scope([fact.metadata for fact in evidence]), **metadata}
    fact = evidence[index]
    return {**lessons.shared_scope([fact.metadata]), **metadata, facts.CORRECTS: fact.id}
