"""Erasing a person: their name and their words go, and every score stays what its events say.

In the ledger a random pseudonym takes the place of the name, the same one everywhere in the project, so that an author
still has one vote. What was erased is an event of the ledger itself, and an entry of the audit trail.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from sqlalchemy import Connection

from heedful.memory import checks, forget
from heedful.memory.workspace import Workspace
from heedful.model import Erasure, ForgetResult
from heedful.sessions import lessons
from heedful.sessions.space import SessionSpace
from heedful.sessions.undo import unjustified
from heedful.storage import audit, erasure, facts, ledger, scopes
from heedful.storage import erasure as erasing
from heedful.storage.erasure import Erased, pseudonym_for
from heedful.storage.ledger import ERASURE, Event
from heedful.storage.sessions import Transaction
from heedful.storage.sessions.base import EntryRow, FeedbackRow, PersonRecords
from heedful.storage.sessions.sql import SqlTransaction

RatedEntries = list[tuple[EntryRow, list[FeedbackRow]]]
"""Entries with their active opinions."""


def erase(space: SessionSpace, workspace: Workspace, author: str) -> ForgetResult:
    """Erases the person with exactly this name. A second call finds nothing.

    With facts and sessions in one database that is one transaction. Otherwise sessions come first; should the process
    die between the two, doing it again finishes it, under the same pseudonym.
    """
    name = str(checks.author(author))
    erased, remote_records, rated_entries = _erase_remote(space, workspace, Erased(name, pseudonym_for(name)))
    with workspace.read() as connection:
        if scopes.project_id(connection, workspace.project) is None:
            return ForgetResult(facts=0, dataset="", erased=_erasure())
    with workspace.direct(write=True) as direct:
        connection = direct.connection
        project = scopes.project_id(connection, workspace.project)
        assert project is not None
        tx = SqlTransaction(direct, project)
        local_records = tx.erasure.erase(erased, space.now())
        rated_entries += _rated_entries(tx, local_records)
        result, dataset_ids = _erase_local(
            workspace, connection, project, erased, [local_records, remote_records], rated_entries
        )
    for dataset in dataset_ids:
        workspace.save_index(dataset)
    return result


def _erase_remote(space: SessionSpace, workspace: Workspace, new: Erased) -> tuple[Erased, PersonRecords, RatedEntries]:
    """Erases the person from sessions in another database."""
    store = space.store
    if not store.remote:
        return new, PersonRecords(), []
    is_known = store.read(lambda tx: tx.erasure.is_known(new.name))
    with workspace.write() as connection:
        project = scopes.project_id(connection, workspace.project)
        pending = None if project is None else erasure.pending_pseudonym(connection, project, new.name)
        if pending is None and not is_known:
            return new, PersonRecords(), []
        erased = new if pending is None else Erased(new.name, pending)
        if pending is None:
            project = scopes.ensure_project(connection, workspace.project, space.now())
            erasure.begin(connection, project, erased, space.now())
    records: PersonRecords = store.write(lambda tx: tx.erasure.erase(erased, space.now()))
    return erased, records, store.read(lambda tx: _rated_entries(tx, records))


def _rated_entries(tx: Transaction, records: PersonRecords) -> RatedEntries:
    entries = [tx.conversations.entry(session_id, qa_id) for session_id, qa_id in sorted(set(records.rated))]
    return [(entry, tx.feedbacks.active("entry", [entry.id])) for entry in entries if entry is not None]


def _erase_local(
    workspace: Workspace,
    connection: Connection,
    project: int,
    erased: Erased,
    records: Sequence[PersonRecords],
    rated_entries: RatedEntries,
) -> tuple[ForgetResult, list[int]]:
    """Erases the person from the store; also returns the datasets that lost facts."""
    renamed = erasing.rename_author(connection, project, erased)
    opinions = {item for record in records for item in record.opinions}
    sessions = [item for record in records for item in record.sessions]
    notes = erasing.clear_notes(connection, project, erased)
    review = erasing.clear_review(connection, project, erased)
    words = erasure.facts_of(connection, project, workspace.project, erased, opinions)
    words |= _learnt_facts(workspace, connection, rated_entries, opinions, sessions)
    places = facts.locate(connection, workspace.project, sorted(words))
    names = scopes.dataset_names(connection, workspace.project)
    dataset_ids, superseded = forget.remove(connection, places)
    messages = [item for record in records for item in record.messages]
    entries = [item for record in records for item in record.entries]
    executions = erasure.clear_executions(connection, project, erased, messages)
    questions = erasure.clear_questions(connection, [item for record in records for item in record.recalls])
    erasure.release_external_ids(connection, project, erased)
    ids = {*opinions, *places, *sessions, *messages, *entries}
    report = _erasure(
        events=sum(renamed.values()) + sum(record.events for record in records),
        feedback=len(opinions),
        notes=notes,
        review=review,
        sessions=len(sessions),
        executions=executions,
        questions=questions,
        alerts=sum(record.alerts for record in records),
        results=erasure.clear_results(connection, project, erased, ids),
        keys=erasure.rename_keys(connection, project, erased),
    )
    erasure.finish(connection, project, erased.name)
    counts = {**report.model_dump(exclude={"author", "event_id"}), "facts": len(places)}
    if any(counts.values()):
        report = _record_erasure(workspace, connection, project, erased, report, counts, renamed)
    datasets = ", ".join(names[item] for item in dataset_ids)
    shown = forget.restored(workspace, connection, superseded)
    return ForgetResult(facts=len(places), dataset=datasets, restored=shown, erased=report), dataset_ids


def _learnt_facts(
    workspace: Workspace,
    connection: Connection,
    rated_entries: RatedEntries,
    opinions: Set[str],
    sessions: Sequence[str],
) -> set[str]:
    """The facts learnt from the person's comments, alone or with others', and in their sessions."""
    learnt = [fact for fact in unjustified(workspace, connection, rated_entries, opinions) if fact.kind == "feedback"]
    learnt += [
        fact for fact in lessons.taught_by(connection, workspace.project, sorted(opinions)) if fact.kind == "feedback"
    ]
    learnt += lessons.learnt(connection, workspace.project, sessions)
    return {fact.fact_id for fact in learnt}


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
            recorded_at=now,
            dataset_id=dataset,
            body={**counts} if dataset is None else None,
        )

    summary = event(None)
    ledger.append(connection, [summary, *(event(dataset) for dataset in renamed if dataset is not None)])
    audit.note_action(connection, "forget", now, project, erased.pseudonym)
    return report.model_copy(update={"author": erased.pseudonym, "event_id": summary.id})


def _erasure(**counts: int) -> Erasure:
    """A report of what was erased; counts default to 0."""
    zeros = {name: 0 for name in Erasure.model_fields if name not in ("author", "event_id")}
    return Erasure(author=None, event_id=None, **{**zeros, **counts})
