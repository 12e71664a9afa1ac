"""Erasing a person: their name and their words go, and every score stays what its events say.

In the ledger a random pseudonym takes the place of the name, the same one everywhere in the project, so that an author
still has one vote. What was erased is an event of the ledger itself, and an entry of the audit trail.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from sqlalchemy import ColumnElement, Connection, delete, exists, func, insert, select, tuple_, update

from heedful.api import checks
from heedful.ledger import proven_sql
from heedful.ledger.events import ERASURE, REVIEW, SUPERSESSION, TAUGHT, Event, append
from heedful.ledger.opinions import FeedbackRow
from heedful.ledger.proven_sql import RETAINED_SQL, TARGETS, rated
from heedful.ledger.rating_signals import EntryRow
from heedful.model import VISITOR, Erasure, ForgetResult, Metadata
from heedful.storage import external_ids, facts, scopes
from heedful.storage.audit import note_action
from heedful.storage.rows import Direct, batches
from heedful.storage.schema import (
    audit,
    datasets,
    decisions,
    event_keys,
    events,
    executions,
    feedbacks,
    golden_examples,
    keys,
    notes,
    queries,
    receipts,
    requests,
    review_items,
    review_notes,
)
from heedful.storage.schema import external_ids as external_id_rows
from heedful.workspace import Workspace

Result = TypeVar("Result")

Places = dict[str, tuple[int, int]]  # The numbers of facts and of their datasets, by id.
RatedEntries = list[tuple[EntryRow, list[FeedbackRow]]]  # Entries with their active opinions.


@dataclass(frozen=True, slots=True)
class ErasureHandlers:
    """The parts of an erasure that other wings do."""

    sessions: SessionRecords
    """The store of sessions."""
    open_sessions: Callable[[Direct, int], Any]
    """The sessions in the store of facts, in an open transaction of a project."""
    learnt: Callable[[Connection, RatedEntries, Set[str], Sequence[str]], set[str]]
    """The facts learnt from these answers, from these opinions and in these sessions."""
    remove_facts: Callable[[Connection, Places], tuple[list[int], list[str]]]
    """Removes facts; returns the datasets that lost some, and the facts that they had superseded."""
    restored: Callable[[Connection, Sequence[str]], list[str]]
    """Those of these facts that are recalled again."""


class SessionRecords(Protocol):
    """A store of sessions, as far as a person can be erased from it."""

    remote: bool

    def read(self, body: Callable[[Any], Result]) -> Result: ...

    def write(self, body: Callable[[Any], Result]) -> Result: ...


def erase(workspace: Workspace, author: str, handlers: ErasureHandlers) -> ForgetResult:
    """Erases the person with exactly this name. A second call finds nothing.

    With facts and sessions in one database that is one transaction. Otherwise sessions come first; should the process
    die between the two, doing it again finishes it, under the same pseudonym.
    """
    name = str(checks.author("author", author))
    # A random name of the same kind of author.
    new = Erased(name, f"{VISITOR if name.startswith(VISITOR) else ''}erased-{secrets.token_hex(8)}")
    erased, remote_records, rated_entries = _erase_remote(workspace, handlers.sessions, new)
    with workspace.read() as connection:
        if scopes.project_id(connection, workspace.project) is None:
            return ForgetResult(facts=0, dataset="", erased=_erasure())
    with workspace.direct(write=True) as direct:
        connection = direct.connection
        project = scopes.project_id(connection, workspace.project)
        assert project is not None
        tx = handlers.open_sessions(direct, project)
        local_records = tx.erasure.erase(erased, workspace.now())
        rated_entries += _rated_entries(tx, local_records)
        result, dataset_ids = _erase_local(
            workspace, connection, project, erased, local_records + remote_records, rated_entries, handlers
        )
    for dataset in dataset_ids:
        workspace.save_index(dataset)
    return result


def _erase_remote(
    workspace: Workspace, store: SessionRecords, new: Erased
) -> tuple[Erased, PersonRecords, RatedEntries]:
    """Erases the person from sessions in another database."""
    if not store.remote:
        return new, PersonRecords(), []
    is_known = store.read(lambda tx: tx.erasure.is_known(new.name))
    with workspace.write() as connection:
        project = scopes.project_id(connection, workspace.project)
        pending = None if project is None else pending_pseudonym(connection, project, new.name)
        if pending is None and not is_known:
            return new, PersonRecords(), []
        erased = new if pending is None else Erased(new.name, pending)
        if pending is None:
            project = scopes.ensure_project(connection, workspace.project, workspace.now())
            begin(connection, project, erased, workspace.now())
    records: PersonRecords = store.write(lambda tx: tx.erasure.erase(erased, workspace.now()))
    return erased, records, store.read(lambda tx: _rated_entries(tx, records))


def _rated_entries(tx: Any, records: PersonRecords) -> RatedEntries:
    entries = [tx.conversations.entry(session_id, qa_id) for session_id, qa_id in sorted(set(records.rated))]
    return [(entry, tx.feedbacks.active("entry", [entry.id])) for entry in entries if entry is not None]


def _erase_local(
    workspace: Workspace,
    connection: Connection,
    project: int,
    erased: Erased,
    records: PersonRecords,
    rated_entries: RatedEntries,
    handlers: ErasureHandlers,
) -> tuple[ForgetResult, list[int]]:
    """Erases the person from the store; also returns the datasets that lost facts."""
    renamed = rename_author(connection, project, erased)
    opinions = set(records.opinions)
    notes = clear_notes(connection, project, erased)
    review = clear_review(connection, project, erased)
    words = facts_of(connection, project, erased, opinions)
    words |= handlers.learnt(connection, rated_entries, opinions, records.sessions)
    places = facts.locate(connection, sorted(words))
    names = scopes.dataset_names(connection)
    dataset_ids, superseded = handlers.remove_facts(connection, places)
    executions = clear_executions(connection, project, erased, records.messages)
    questions = clear_questions(connection, records.recalls)
    release_external_ids(connection, project, erased)
    ids = {*opinions, *places, *records.sessions, *records.messages, *records.entries}
    report = _erasure(
        events=sum(renamed.values()) + records.events,
        feedback=len(opinions),
        notes=notes,
        review=review,
        sessions=len(records.sessions),
        executions=executions,
        questions=questions,
        alerts=records.alerts,
        results=clear_results(connection, project, erased, ids),
        keys=rename_keys(connection, project, erased),
    )
    finish(connection, project, erased.name)
    counts = {**report.model_dump(exclude={"author", "event_id"}), "facts": len(places)}
    if any(counts.values()):
        report = _record_erasure(workspace, connection, project, erased, report, counts, renamed)
    datasets = ", ".join(names[item] for item in dataset_ids)
    shown = handlers.restored(connection, superseded)
    return ForgetResult(facts=len(places), dataset=datasets, restored=shown, erased=report), dataset_ids


def _record_erasure(
    workspace: Workspace,
    connection: Connection,
    project: int,
    erased: Erased,
    report: Erasure,
    counts: dict[str, int],
    renamed: Iterable[int | None],
) -> Erasure:
    """Records the erasure in the ledger, once per dataset, so that indexes with authors in memory notice."""
    now = workspace.now()

    def event(dataset: int | None) -> Event:
        return Event(
            project_id=project,
            kind=ERASURE,
            target_type="author",
            target_id=erased.pseudonym,
            source="forget",
            at=now,
            dataset_id=dataset,
            body={**counts} if dataset is None else None,
        )

    summary = event(None)
    append(connection, [summary, *(event(dataset) for dataset in renamed if dataset is not None)])
    note_action(connection, "forget", now, project, erased.pseudonym)
    return report.model_copy(update={"author": erased.pseudonym, "event_id": summary.id})


def _erasure(**counts: int) -> Erasure:
    """A report of what was erased; counts default to 0."""
    zeros = {name: 0 for name in Erasure.model_fields if name not in ("author", "event_id")}
    return Erasure(author=None, event_id=None, **{**zeros, **counts})


def rename_author(connection: Connection, project: int, erased: Erased) -> dict[int | None, int]:
    """Replaces the author of the person's events by the pseudonym, and nothing else; returns how many, by dataset."""
    by_author = (events.c.project_id == project, events.c.author == erased.name)
    rows = connection.execute(select(events.c.dataset_id, func.count()).where(*by_author).group_by(events.c.dataset_id))
    counts: dict[int | None, int] = {row[0]: row[1] for row in rows}
    if counts:
        _release_keys(connection, project, erased)
        connection.execute(update(events).where(*by_author).values(author=erased.pseudonym))
    return counts


def clear_notes(connection: Connection, project: int, erased: Erased) -> int:
    """Removes the texts that the person wrote with signals; returns how many."""
    event_ids = select(events.c.id).where(events.c.project_id == project, events.c.author == erased.pseudonym)
    return connection.execute(delete(notes).where(notes.c.event_id.in_(event_ids))).rowcount


def clear_review(connection: Connection, project: int, erased: Erased) -> int:
    """Removes the person's name and words from the review queue; returns how many rows were changed."""
    assigned = connection.execute(
        select(events.c.id, events.c.recorded_at, events.c.body).where(
            events.c.project_id == project, events.c.kind == REVIEW, events.c.value == "assign"
        )
    )
    to_them = [row for row in assigned if row.body.get("assignee") == erased.name]
    for row in to_them:
        same_event = (events.c.id == row.id, events.c.recorded_at == row.recorded_at)
        connection.execute(update(events).where(*same_event).values(body={**row.body, "assignee": erased.pseudonym}))
    theirs = (review_items.c.project_id == project, review_items.c.assignee == erased.name)
    items = connection.execute(update(review_items).where(*theirs).values(assignee=erased.pseudonym)).rowcount
    event_ids = select(events.c.id).where(events.c.project_id == project, events.c.author == erased.pseudonym)
    written = (review_notes.c.project_id == project, review_notes.c.event_id.in_(event_ids))
    return len(to_them) + items + connection.execute(delete(review_notes).where(*written)).rowcount


def _release_keys(connection: Connection, project: int, erased: Erased) -> None:
    """Replaces idempotency keys that contain the name; a retry with one counts as a new call."""
    keyed = connection.execute(
        select(events.c.id, events.c.recorded_at, events.c.idempotency_key).where(
            events.c.project_id == project, events.c.author == erased.name, events.c.idempotency_key != events.c.id
        )
    )
    for row in [row for row in keyed if erased.is_in_key(row.idempotency_key)]:
        same_event = (events.c.id == row.id, events.c.recorded_at == row.recorded_at)
        connection.execute(update(events).where(*same_event).values(idempotency_key=row.id))
        same_key = (event_keys.c.project_id == project, event_keys.c.idempotency_key == row.idempotency_key)
        connection.execute(delete(event_keys).where(*same_key))


def facts_of(connection: Connection, project: int, erased: Erased, opinions: Set[str]) -> set[str]:
    """The facts in the person's words, or with their name: corrections that they wrote, facts that a reviewer taught
    from their comments, and facts whose metadata name them."""
    own = select(events.c.value, events.c.body, events.c.author).where(events.c.project_id == project)
    corrections = own.where(events.c.author == erased.pseudonym, events.c.kind == SUPERSESSION)
    fact_ids = {row.value for row in connection.execute(corrections) if row.body["created"]}
    for row in connection.execute(own.where(events.c.kind == REVIEW, events.c.value == "teach")):
        if row.author == erased.pseudonym or row.body["opinion_id"] in opinions:
            fact_ids.add(row.body[TAUGHT])
    for key in PERSON_KEYS:
        fact_ids |= {row.id for row in facts.with_tag(connection, key, [erased.name])}
    return fact_ids


def release_external_ids(connection: Connection, project: int, erased: Erased) -> int:
    """Removes external ids that contain the name; returns how many. Their targets are found by their own ids."""
    key = (external_id_rows.c.kind, external_id_rows.c.external_id)
    rows = connection.execute(select(*key).where(external_id_rows.c.project_id == project))
    named = [(row.kind, row.external_id) for row in rows if erased.is_named_in(row.external_id)]
    for run in batches(named, 1_000):
        of_project = external_id_rows.c.project_id == project
        connection.execute(delete(external_id_rows).where(of_project, tuple_(*key).in_(run)))
    return len(named)


def clear_results(connection: Connection, project: int, erased: Erased, ids: Set[str]) -> int:
    """Removes stored results of calls that contain the person's name or ids."""
    names = ids | {erased.name}
    rows = connection.execute(
        select(requests.c.caller, requests.c.idempotency_key, requests.c.result).where(requests.c.project_id == project)
    )
    matching = [
        (row.caller, row.idempotency_key)
        for row in rows
        if erased.is_named_in(row.idempotency_key) or mentions(row.result, names)
    ]
    for run in batches(matching, 1_000):
        batch_keys = tuple_(requests.c.caller, requests.c.idempotency_key).in_(run)
        connection.execute(delete(requests).where(requests.c.project_id == project, batch_keys))
    return len(matching)


def rename_keys(connection: Connection, project: int, erased: Erased) -> int:
    """Renames API keys with the person's name; they stay valid."""
    noted = (audit.c.project_id == project, audit.c.target == erased.name)
    connection.execute(update(audit).where(*noted).values(target=erased.pseudonym))
    conditions = (keys.c.project_id == project, keys.c.name == erased.name)
    return connection.execute(update(keys).where(*conditions).values(name=erased.pseudonym)).rowcount


def clear_executions(connection: Connection, project: int, erased: Erased, messages: Sequence[str]) -> int:
    """Removes the questions of executions that ran for the person, or for messages of their sessions."""
    conditions = [executions.c.message_id.in_(run) for run in batches(messages)]
    cleared = 0
    for condition in (executions.c.audience == erased.name, *conditions):
        asked = (executions.c.project_id == project, condition, executions.c.question.is_not(None))
        rows = connection.execute(select(executions.c.id, executions.c.connector_id).where(*asked)).all()
        ids = [row.id for row in rows]
        blank = {"question": None, "model_id": None, "vector": None}
        connection.execute(update(executions).where(executions.c.id.in_(ids)).values(**blank))
        about = (decisions.c.project_id == project, decisions.c.execution_id.in_(ids))
        connection.execute(update(decisions).where(*about).values(question=PLACEHOLDER))
        proven_sql.bump_revisions(connection, {row.connector_id for row in rows})
        cleared += len(ids)
    _clear_audience(connection, project, erased)
    return cleared


def _clear_audience(connection: Connection, project: int, erased: Erased) -> None:
    """Renames the audience with the person's name; golden examples that were for them alone go."""
    own = (executions.c.project_id == project, executions.c.audience == erased.name)
    connection.execute(update(executions).where(*own).values(audience=erased.pseudonym))
    examples = (golden_examples.c.project_id == project, golden_examples.c.audience == erased.name)
    connection.execute(delete(golden_examples).where(*examples))
    for kind in TARGETS:
        statement = select(feedbacks.c.seq, feedbacks.c.extra).where(*rated(project, kind, "down"))
        for row in connection.execute(statement.where(feedbacks.c.extra.is_not(None))).all():
            retained = (row.extra or {}).get(RETAINED_SQL, ())
            renamed = [
                {**item, "audience": erased.pseudonym} if item.get("audience") == erased.name else item
                for item in retained
            ]
            if renamed != list(retained):
                changed = update(feedbacks).where(feedbacks.c.seq == row.seq)
                connection.execute(changed.values(extra={**row.extra, RETAINED_SQL: renamed}))


def clear_questions(connection: Connection, recalls: Sequence[str]) -> int:
    """Removes questions of the person's sessions that nobody gave an opinion about and nobody else asked. The others
    stay: usefulness depends on them."""
    query_ids: set[int] = set()
    for run in batches(recalls):
        conditions = (receipts.c.id.in_(run), ~exists().where(events.c.receipt_id == receipts.c.id))
        query_ids |= set(connection.execute(select(receipts.c.query_id).where(*conditions)).scalars())
        external_ids.remove(connection, select(receipts.c.id).where(*conditions))
        connection.execute(delete(receipts).where(*conditions))
    cleared = 0
    for batch in batches(sorted(query_ids)):
        owners = select(queries.c.dataset_id).where(queries.c.id.in_(batch))
        # Waits for recalls that are writing a receipt.
        connection.execute(select(datasets.c.id).where(datasets.c.id.in_(owners)).with_for_update())
        unused = (
            queries.c.id.in_(batch),
            queries.c.id.not_in(select(receipts.c.query_id).where(receipts.c.query_id.in_(batch))),
            ~exists().where(events.c.query_id == queries.c.id),
        )
        cleared += connection.execute(delete(queries).where(*unused)).rowcount
    return cleared


def pending_pseudonym(connection: Connection, project: int, name: str) -> str | None:
    """The pseudonym of an unfinished erasure."""
    row = connection.execute(select(requests.c.result).where(*_pending_row(project, name))).first()
    return None if row is None else str(row.result["pseudonym"])


def begin(connection: Connection, project: int, erased: Erased, at: int) -> None:
    """Stores the pseudonym, so that another run can finish the erasure."""
    connection.execute(
        insert(requests).values(
            project_id=project,
            caller="",
            idempotency_key=_key(erased.name),
            fingerprint=_digest(erased.name),
            result={"pseudonym": erased.pseudonym},
            at=at,
        )
    )


def finish(connection: Connection, project: int, name: str) -> None:
    """Marks the erasure as finished."""
    connection.execute(delete(requests).where(*_pending_row(project, name)))


def _pending_row(project: int, name: str) -> tuple[ColumnElement[bool], ...]:
    return (requests.c.project_id == project, requests.c.caller == "", requests.c.idempotency_key == _key(name))


def _digest(name: str) -> bytes:
    return hashlib.blake2b(name.encode(), digest_size=16).digest()


def _key(name: str) -> str:
    return f"forget-author/{_digest(name).hex()}"


PERSON_KEYS = ("author", "user", "user_id", "audience")
"""Metadata keys that name the person whom a fact or a session belongs to."""

PLACEHOLDER = "[erased]"  # Replaces text that must not be empty, such as the question of an entry.
_OWN_KEYS = ("retract/", "improve/", "undo/")  # Prefixes of idempotency keys that the engine generates.

_OF_AN_ALERT = ("id", "target_type", "target_id", "rating", "score", "author_kind", "created_at")


@dataclass(frozen=True, slots=True)
class Erased:
    """A person to erase, and the pseudonym that replaces the name."""

    name: str
    pseudonym: str

    def rename_in(self, metadata: Mapping[str, Any]) -> Metadata:
        """The metadata of one of their sessions, with the name replaced in all texts."""
        return {key: self._replaced(value) for key, value in metadata.items()}

    def is_named_in(self, text: str) -> bool:
        """Whether a text contains their name as a word."""
        return re.search(rf"(?<!\w){re.escape(self.name)}(?!\w)", text, re.IGNORECASE) is not None

    def is_in_key(self, key: str) -> bool:
        """Whether a caller's idempotency key contains their name."""
        return not key.startswith(_OWN_KEYS) and self.is_named_in(key)

    def without_opinions(self, payload: Mapping[str, Any], opinions: Set[str]) -> Metadata | None:
        """The payload of an alert without the content of their opinions; None if it has none."""
        feedback = payload.get("feedback")
        if isinstance(feedback, dict) and (feedback.get("author") == self.name or feedback.get("id") in opinions):
            retained = {key: feedback.get(key) for key in _OF_AN_ALERT}
            return {**payload, "feedback": {**retained, "author": self.pseudonym, "comment": ""}}
        if payload.get("type") != "digest" or not mentions(payload, opinions):
            return None
        themes = [item for item in payload["themes"] if opinions.isdisjoint(item["feedback_ids"])]
        notes = [item for item in payload["notes"] if item["about"] != "theme"]
        # Its sentences mix the comments of several people.
        return {**payload, "themes": themes, "notes": notes, "headline": PLACEHOLDER, "text": PLACEHOLDER}

    def _replaced(self, value: Any) -> Any:
        if isinstance(value, dict):
            return self.rename_in(value)
        if isinstance(value, list):
            return [self._replaced(item) for item in value]
        return self.pseudonym if isinstance(value, str) and self.is_named_in(value) else value


def retained_sql(extra: Mapping[str, Any] | None) -> Metadata:
    """The SQL that is stored with an opinion, so that the opinion still blocks it."""
    return {key: value for key, value in (extra or {}).items() if key == RETAINED_SQL}


def mentions(value: Any, names: Set[str]) -> bool:
    """Whether a JSON value contains one of these texts as a whole string."""
    if isinstance(value, str):
        return value in names
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(mentions(item, names) for item in items)


@dataclass(frozen=True, slots=True)
class PersonRecords:
    """The records of an erased person in sessions."""

    opinions: list[str] = field(default_factory=list)
    """The ids of their feedback, inactive ones too."""
    rated: list[tuple[str, str]] = field(default_factory=list)
    """(session, entry) of the answers that it is about."""
    sessions: list[str] = field(default_factory=list)
    """Sessions whose metadata name them."""
    entries: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    recalls: list[str] = field(default_factory=list)
    """The recalls behind the entries of these sessions."""
    alerts: int = 0
    events: int = 0
    """Their events in a ledger that is not the store's."""

    def __add__(self, other: PersonRecords) -> PersonRecords:
        """The records of two stores."""
        return PersonRecords(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))
