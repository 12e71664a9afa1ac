"""The fixes of an item, and how they and the other actions of reviewers are undone. A fix is prepared first, then
applied in one transaction with its event."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

from sqlalchemy import Connection

from heedful.api import checks
from heedful.clock import new_id
from heedful.errors import Conflict, Invalid
from heedful.ledger import events, scores, supersessions
from heedful.ledger.events import REVIEW, TAUGHT, Event
from heedful.ledger.opinions import FeedbackRow, Feedbacks, SqlFeedbacks, counted_opinions
from heedful.ledger.proven_sql import TARGETS
from heedful.ledger.rating_signals import DERIVED_PREFIX, EntryRow
from heedful.ledger.retract import UndoHandler, Undoing, retract_event, undo_event
from heedful.memory import supersede
from heedful.memory.answer import LEARNT
from heedful.model import FIXES, Fix, Metadata, Retraction
from heedful.review import tables
from heedful.review.items import LoadedItem, already_retracted, find_opinion, find_subjects, read_opinions, refold
from heedful.review.tables import SESSION_TARGETS
from heedful.sessions import lessons
from heedful.sessions.feedback import RetractedFeedback, change, change_in
from heedful.sessions.improve import improve
from heedful.sessions.session_store import Transaction
from heedful.sessions.sql_store import SqlTransaction
from heedful.sql import golden, records
from heedful.sql.feedback import new_opinion, put
from heedful.sql.space import ExecutionSpace
from heedful.storage import facts, scopes
from heedful.storage.facts import NewFact
from heedful.storage.rows import AnyRow
from heedful.storage.vectors import ensure_model
from heedful.text.complaints import statement
from heedful.text.corrections import corrected

ARGUMENTS: dict[Fix, tuple[str, ...]] = {
    "supersede": ("fact_id", "text", "by"),
    "retract": ("event_id",),
    "teach": ("event_id", "text"),
    "block": ("execution_id",),
    "promote": ("execution_id", "question"),
    "add_example": ("question", "sql_query", "connector_id"),
}
REQUIRED = ("fact_id", "event_id", "execution_id", "sql_query")
"""Arguments without which a fix that takes them is refused."""

Arguments = Mapping[str, str | None]  # The arguments of a fix; those of other fixes are None.
ApplyFix = Callable[[Connection], Metadata]  # Applies a fix; returns the ids of what it changed and created.


def check_arguments(action: Any, arguments: Arguments) -> Fix:
    """The action, after checking that it exists and has the right arguments."""
    fix: Fix = checks.one_of("action", action, FIXES)
    taken = ARGUMENTS[fix]
    for name, value in arguments.items():
        if value is not None and name not in taken:
            remedy = f"It takes {', '.join(taken)}"
            raise Invalid(f"{fix} does not take {name}", field=name, value=value, remedy=remedy)
        if value is None and name in taken and name in REQUIRED:
            raise Invalid(f"{fix} needs {name}", field=name, value=value, remedy=f"Pass {name}=…")
        if value is not None and name.endswith("_id"):
            checks.identifier(name, value)
    return fix


def prepare(
    space: ExecutionSpace, loaded: LoadedItem, fix: Fix, arguments: Arguments, author: str | None, note: str | None
) -> ApplyFix:
    """Prepares a fix other than `retract`."""
    if fix == "teach":
        return _prepare_lesson(space, loaded, arguments)
    if fix == "supersede":
        return _prepare_supersession(space, arguments, author)
    if fix == "block":
        return lambda connection: _block(space, connection, str(arguments["execution_id"]), author, note)
    if fix == "promote":
        return _prepare_promotion(space, arguments, author)
    question = arguments["question"] or loaded.item.question
    if question is None:
        raise Invalid("the question is unknown", field="question", remedy="Pass the question")
    connector = arguments["connector_id"]
    if connector is None and loaded.subject is not None:
        run, turn = loaded.subject.run, loaded.subject.turn
        connector = run.connector_id if run is not None else None if turn is None else turn.connector_id
    add = golden.prepare(space, question, arguments["sql_query"] or "", connector, "given", None)
    return lambda connection: {"example_id": add(connection).id}


def _prepare_supersession(space: ExecutionSpace, arguments: Arguments, author: str | None) -> ApplyFix:
    correct = supersede.prepare(space.workspace, str(arguments["fact_id"]), arguments["text"], arguments["by"], author)

    def apply(connection: Connection) -> Metadata:
        result = correct(connection)
        return {"fact_id": result.fact_id, "superseded_by": result.superseded_by, "event_id": result.event_id}

    return apply


def _block(
    space: ExecutionSpace, connection: Connection, execution_id: str, author: str | None, note: str | None
) -> Metadata:
    row = space.execution(connection, execution_id)
    opinions = SqlFeedbacks.on(connection, row.project_id)
    own_opinions = [] if author is None else opinions.active_by(author, "execution", execution_id)
    if any(opinion.rating == "down" for opinion in own_opinions):
        message = f"{author} already marked execution {execution_id} as wrong"
        remedy = "It is blocked; there is nothing left to do"
        raise Conflict(message, field="execution_id", value=execution_id, remedy=remedy)
    new = new_opinion(execution_id, row.message_id, False, note, author, space.now())
    return {"execution_id": execution_id, **_store_opinion(opinions, new, own_opinions)}


def _prepare_promotion(space: ExecutionSpace, arguments: Arguments, author: str | None) -> ApplyFix:
    execution_id = str(arguments["execution_id"])
    with space.workspace.read() as connection:
        row = space.execution(connection, execution_id)
    question = arguments["question"] or row.question
    if question is None:
        raise Invalid(
            f"execution {execution_id} has no question", field="question", remedy="Pass the question it answers"
        )
    add = golden.prepare(space, question, row.sql_query, row.connector_id, "promoted", execution_id, row.audience)

    def apply(connection: Connection) -> Metadata:
        row = space.execution(connection, execution_id)
        opinions = SqlFeedbacks.on(connection, row.project_id)
        active = opinions.active("execution", [execution_id])
        own_opinions = [opinion for opinion in active if author is not None and opinion.author == author]
        right, _ = counted_opinions(active, space.trust.authors_to_veto)
        _, wrong = counted_opinions(
            [opinion for opinion in active if opinion not in own_opinions], space.trust.authors_to_veto
        )
        if wrong:
            names = ", ".join(sorted({opinion.author or "somebody" for opinion in wrong}))
            message = f"execution {execution_id} was marked as wrong by {names}"
            remedy = "Retract that feedback first, or add an example with other SQL"
            raise Conflict(message, code="not_proven", field="execution_id", value=execution_id, remedy=remedy)
        body: Metadata = {"execution_id": execution_id, "example_id": add(connection).id}
        if not right or any(opinion.rating == "down" for opinion in own_opinions):
            new = new_opinion(execution_id, row.message_id, True, None, author, space.now())
            body |= _store_opinion(opinions, new, own_opinions)
        return body

    return apply


def _store_opinion(opinions: SqlFeedbacks, new: FeedbackRow, own_opinions: Sequence[FeedbackRow]) -> Metadata:
    """Stores the reviewer's opinion, replacing an earlier one."""
    stored = put(opinions, new, next(iter(own_opinions), None), None)
    return {"feedback_id": stored.id, "event_id": stored.event_id}


def _prepare_lesson(space: ExecutionSpace, loaded: LoadedItem, arguments: Arguments) -> ApplyFix:
    """Embeds the lesson of an opinion now; returns the function that stores it in an open transaction."""
    event_id = str(arguments["event_id"])
    opinion = read_opinions(space, [find_opinion(space, loaded, event_id)]).get(event_id)
    subject = None if opinion is None else find_subjects(space, [opinion]).get(event_id)
    entry = None if subject is None else subject.entry
    if opinion is None or entry is None or entry.dataset is None:
        message = f"opinion {event_id} is not about an answer made from facts"
        remedy = "Teach from an opinion about an answer; for SQL, use add_example"
        raise Invalid(message, field="event_id", value=event_id, remedy=remedy)
    comment = opinion.comment or ""
    lesson = arguments["text"] or statement(comment) or comment
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
            message = f"fact {existing} already says so"
            remedy = "There is nothing left to teach; pass another text to say something else"
            raise Conflict(message, code="taught_already", field="text", value=lesson, remedy=remedy)
        facts.add(connection, number, model, [fact], space.now())
        return {TAUGHT: fact.id, "opinion_id": event_id}

    return teach


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


Record = Callable[[Connection, Metadata], str]
"""Appends the event of an action in an open transaction, and returns its id."""


def retract_opinion(
    space: ExecutionSpace, loaded: LoadedItem, event_id: str, author: str | None, record: Record
) -> str:
    """Retracts an opinion of an item, or a contrary one; returns the id of the action."""
    opinion = find_opinion(space, loaded, event_id)
    body: Metadata = {"event_id": event_id, "target_type": opinion.target_type, "target_id": opinion.target_id}

    def withdraw(tx: Transaction, retracted: RetractedFeedback) -> None:
        retracted.withdraw(tx, [_active(tx, event_id)], author, space.now())

    if space.sessions.store.remote and opinion.target_type in SESSION_TARGETS:
        space.sessions.store.read(lambda tx: _active(tx, event_id))
        # The action is recorded first, so that it can be undone in any case.
        with space.workspace.write() as connection:
            action_id = record(connection, body)
        change(space.sessions, withdraw)
        return action_id
    with space.workspace.direct(write=True) as direct:
        connection = direct.connection
        if opinion.target_type == "fact":
            event = events.get(connection, event_id)
            if event is None or events.retraction_of(connection, event_id) is not None:
                raise already_retracted(event_id)
            retract_event(space.workspace, connection, event, author)
        else:
            change_in(space.workspace, SqlTransaction(direct, space.project(connection)), withdraw)
        action_id = record(connection, body)
    space.sessions.feedback_changed()
    return action_id


def _active(tx: Transaction, event_id: str) -> FeedbackRow:
    for row in tx.feedbacks.by_event_ids([event_id]):
        if row.active:
            return row
    raise already_retracted(event_id)


def undo_handler(space: ExecutionSpace) -> UndoHandler:
    """How the actions of reviewers are undone."""
    prepare = partial(_restore_remote, space) if space.sessions.store.remote else None
    return UndoHandler(partial(_undo_review, space), prepare)


def undo_action(space: ExecutionSpace, event_id: str, author: str | None) -> bool:
    """Undoes an action of a reviewer; False if there is none with this id. Idempotent."""
    undone = undo_event(space.workspace, event_id, author, {REVIEW: undo_handler(space)}, [REVIEW]) is not None
    space.sessions.feedback_changed()
    return undone


def _undo_review(space: ExecutionSpace, undoing: Undoing) -> Retraction:
    event, author = undoing.event, undoing.author
    tx = SqlTransaction(undoing.direct, event.project_id)
    earlier = events.retraction_of(tx.connection, event.id)
    if earlier is not None:
        return Retraction(event_id=earlier, retracted=event.id, updated_facts=[])
    restored: FeedbackRow | None = undoing.prepared
    if _retracted_session_feedback(event) and not space.sessions.store.remote:
        restored = _restore_feedback(tx.feedbacks, event.body["event_id"], event.id, space.now())
    changed = _undo_fix(space, tx, event, author)
    retraction = events.retraction(event.project_id, event.id, author, space.now())
    events.append(tx.connection, [retraction])
    item = tables.get_item(tx.connection, event.project_id, event.target_id)
    if item is not None:
        refold(tx.connection, [item.seq])
        tables.touch_item(tx.connection, item.seq, space.now())
    if restored is not None:
        sessions = [restored.session_id]
        for dataset in _improved(space, tx.connection, restored):
            undoing.afterwards.append(partial(improve, space.sessions, space.workspace, None, dataset, sessions))
    return Retraction(event_id=retraction.id, retracted=event.id, updated_facts=changed)


def _restore_remote(space: ExecutionSpace, event: AnyRow) -> FeedbackRow | None:
    """Restores an opinion that an action retracted in another database."""
    if not _retracted_session_feedback(event):
        return None
    opinion, now = event.body["event_id"], space.now()
    return space.sessions.store.write(lambda tx: _restore_feedback(tx.feedbacks, opinion, event.id, now))


def _retracted_session_feedback(event: AnyRow) -> bool:
    return event.kind == REVIEW and event.value == "retract" and event.body["target_type"] in SESSION_TARGETS


def _improved(space: ExecutionSpace, connection: Connection, opinion: FeedbackRow) -> list[str]:
    """The datasets with signals that were derived from an opinion."""
    prefix = f"{DERIVED_PREFIX}{opinion.id}/"
    derived = events.with_prefix(connection, prefix, active=False)
    names = scopes.dataset_names(connection)
    return sorted({names[event.dataset_id] for event in derived if event.dataset_id in names})


def _undo_fix(space: ExecutionSpace, tx: SqlTransaction, event: AnyRow, author: str | None) -> list[str]:
    """Undoes what a fix did in the store; returns the facts that changed."""
    body: Metadata = event.body
    if event.value == "supersede":
        supersession = events.get(tx.connection, body["event_id"])
        if supersession is None:
            return []
        return retract_event(space.workspace, tx.connection, supersession, author).updated_facts
    if event.value == "teach":
        places = facts.locate(tx.connection, [body[TAUGHT]])
        for seq, dataset in places.values():
            supersessions.remove_facts(tx.connection, dataset, [seq])
        return list(places)
    if event.value == "retract" and body["target_type"] == "fact":
        return _restore_signal(space, tx.connection, body["event_id"])
    if event.value == "retract" and body["target_type"] in TARGETS:
        _restore_feedback(tx.feedbacks, body["event_id"], event.id, space.now())
    if "example_id" in body:
        records.remove_example(tx.connection, event.project_id, body["example_id"])
    if "feedback_id" in body:
        _retract_own_opinion(space, tx.feedbacks, event, author)
    return []


def _retract_own_opinion(space: ExecutionSpace, opinions: SqlFeedbacks, event: AnyRow, author: str | None) -> None:
    """Retracts the reviewer's own opinion, and restores the one that it replaced. Later opinions stay."""
    for row in opinions.by_event_ids([event.body["event_id"]]):
        if row.active:
            before = opinions.before(row)
            opinions.withdraw([row], author, space.now())
            if before is not None:
                _restore_feedback(opinions, before.event_id, event.id, space.now())


def _restore_feedback(feedbacks: Feedbacks, event_id: str, action: str, now: int) -> FeedbackRow:
    """Restores an opinion that an action retracted or replaced. Idempotent.

    A newer opinion of the same author takes precedence.
    """
    row = next(iter(feedbacks.by_event_ids([event_id])), None)
    if row is None:
        raise _text_deleted(action)
    key = f"undo/{action}"
    has_one_opinion = row.target_type == "entry" or row.author is not None
    if feedbacks.with_key(key) is not None or (has_one_opinion and feedbacks.active_by(row.author, *row.target)):
        return row
    new_event_id = new_id()
    new = replace(row, id=new_event_id if row.session_id else row.id, event_id=new_event_id, active=True)
    if not feedbacks.add(new, key, now):
        raise _text_deleted(action)
    return row


def _restore_signal(space: ExecutionSpace, connection: Connection, event_id: str) -> list[str]:
    """Restores a signal as it was; returns the facts whose scores changed."""
    event = events.get(connection, event_id)
    places = {} if event is None else facts.locate(connection, [event.target_id])
    if event is None or not places:
        # The fact was forgotten, with its opinions.
        return []
    fact = places[event.target_id][0]
    names = [field.name for field in fields(Event) if field.name not in ("id", "idempotency_key", "recorded_at")]
    again = Event(recorded_at=space.now(), **{name: getattr(event, name) for name in names})
    events.append(connection, [again])
    events.annotate(connection, [(again.id, fact, text) for text in events.notes_of(connection, event_id)])
    dataset_of = dict(places.values())
    scores.refold(space.workspace.database, connection, dataset_of, dataset_of, [event.query_id])
    return list(places)


def _text_deleted(event_id: str) -> Conflict:
    message = f"the opinion that event {event_id} retracted was deleted with its session and can't be restored"
    return Conflict(message, field="event_id", value=event_id)
