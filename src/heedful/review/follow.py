"""Brings the review queue up to date in batches, so that no other writer waits long, and asks questions again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic

from sqlalchemy import Connection

from heedful.errors import Invalid
from heedful.memory.recall import RecallRequest
from heedful.model import DEFAULT_DATASET, ReviewCase, ReviewComparison
from heedful.review import membership
from heedful.review.cases import LoadedItem
from heedful.review.items import place_opinions, refold
from heedful.review.session_sync import compare_when_due, follow_sessions
from heedful.sessions.entries import answer
from heedful.sql.chat import MAX_CANDIDATES, MIN_SIMILARITY
from heedful.sql.reuse import reasons
from heedful.sql.reuse.cache import Limits, judge
from heedful.sql.reuse.ownership import NOBODY, Asker
from heedful.sql.space import NO_PROJECT, ExecutionSpace
from heedful.storage import receipts
from heedful.storage.ledger import RETRACTION
from heedful.storage.review import members, watermarks
from heedful.storage.review.members import NewMember
from heedful.storage.rows import AnyRow, batches

MAX_SKIPPED = 10_000
"""How many irrelevant events are read again each time before the watermark skips them."""


CATCH_UP_SECONDS = 3.0
"""How long a reader of the queue waits for updates; a worker does the rest."""


def follow(space: ExecutionSpace) -> None:
    """Brings the queue up to date, however long that takes; does nothing on a read-only store."""
    _follow(space, lambda: True)
    if not space.workspace.database.read_only and space.sessions.store.remote:
        compare_when_due(space)


def catch_up(space: ExecutionSpace) -> None:
    """The same within a time limit, for a caller who waits."""
    until = monotonic() + CATCH_UP_SECONDS
    _follow(space, lambda: monotonic() < until)


def _follow(space: ExecutionSpace, go_on: Callable[[], bool]) -> None:
    if space.workspace.database.read_only:
        return
    changed = False
    while _follow_ledger(space):
        changed = True
        if not go_on():
            break
    if space.sessions.store.remote:
        changed = follow_sessions(space, go_on) or changed
    _prune(space, changed)


def _follow_ledger(space: ExecutionSpace) -> bool:
    """Handles the next batch of events; False if there are none."""
    with space.workspace.read() as connection:
        project = space.project(connection)
        start = watermarks.get_watermark(connection, project, watermarks.EVENTS)
        rows = watermarks.events_after(connection, project, start, membership.BATCH_SIZE)
        newest = watermarks.newest(connection)
        existing = members.by_event(connection, project, [row.target_id for row in rows if row.kind == RETRACTION])
    if not rows:
        if newest - start > MAX_SKIPPED and project != NO_PROJECT:
            _skip(space, project, start)
        return False
    retracted = list(existing.values())
    deleted = membership.deleted_opinions(space, retracted)
    new_members = [NewMember(row.id, row.target_type, row.target_id, row.at) for row in rows if row.kind != RETRACTION]
    places = place_opinions(space, membership.active_negatives(space, new_members))
    with space.workspace.write() as connection:
        if watermarks.get_watermark(connection, project, watermarks.EVENTS) != start or not membership.all_exist(
            connection, places
        ):
            # Another process was faster: start again.
            return True
        changed_items = membership.add_members(space, connection, project, places)
        changed_items |= membership.retract_members(connection, retracted, deleted)
        refold(connection, project, changed_items)
        watermarks.set_watermark(connection, project, watermarks.EVENTS, rows[-1].seq)
    return True


def _skip(space: ExecutionSpace, project: int, start: int) -> None:
    """Moves the watermark past irrelevant events, while no other writer is active."""
    with space.workspace.write() as connection:
        if watermarks.get_watermark(connection, project, watermarks.EVENTS) == start and not watermarks.events_after(
            connection, project, start, 1
        ):
            watermarks.set_watermark(connection, project, watermarks.EVENTS, watermarks.newest(connection))


def _prune(space: ExecutionSpace, followed: bool) -> None:
    """Removes opinions about deleted facts and sessions, and closes conflicts with facts that are recalled no more."""
    with space.workspace.read() as connection:
        project = space.project(connection)
        changed = watermarks.newest_change(connection) != watermarks.get_watermark(
            connection, project, watermarks.FACTS
        )
        changed = changed and members.has_facts(connection, project)
        retracted = members.of_sessions(connection, project, active=False) if followed else []
        orphaned = members.orphaned(connection, project) if changed else []
    deleted = sorted(set(retracted) - membership.active_by_id(space, retracted).keys())
    for run in batches([*deleted, *orphaned], membership.BATCH_SIZE):
        with space.workspace.write() as connection:
            refold(connection, project, _removed(connection, project, run))
    if changed:
        with space.workspace.write() as connection:
            # Under the lock, nobody can forget a fact meanwhile.
            touched = _removed(connection, project, members.orphaned(connection, project))
            touched |= membership.update_conflicts(connection, project, space.now())
            refold(connection, project, touched)
            watermarks.set_watermark(connection, project, watermarks.FACTS, watermarks.newest_change(connection))


def _removed(connection: Connection, project: int, event_ids: Sequence[str]) -> set[int]:
    """Removes opinions; returns the numbers of their items."""
    removed = members.by_event(connection, project, event_ids)
    members.remove(connection, event_ids)
    return {row.item_seq for row in removed.values()}


TOP_K = 10
"""How many facts are recalled if the original number is unknown."""


def compare_now(space: ExecutionSpace, loaded: LoadedItem, case: ReviewCase) -> ReviewComparison:
    """Compares today's answer with the one that was disliked."""
    question = loaded.item.question
    if question is None:
        raise Invalid(
            f"item {loaded.row.id} has no question",
            field="item_id",
            value=loaded.row.id,
            remedy="It is about a whole session, or about something that was deleted",
        )
    if loaded.row.target_type in ("execution", "message"):
        return _compare_cached(space, loaded, case, question)
    with space.workspace.read() as connection:
        receipt = None
        if case.recall_id is not None:
            receipt = receipts.get(connection, space.workspace.project, case.recall_id)
    answered = answer(
        space.sessions,
        space.workspace,
        space.language_model,
        _request(loaded, receipt, question),
        None,
        None,
        quiet=True,
    )
    # Opinions about a single fact have no order to compare.
    ranked = [fact.fact_id for fact in case.evidence if fact.rank is not None and loaded.row.target_type == "entry"]
    return ReviewComparison(
        question=question,
        before=case.answer,
        after=answered.answer,
        reason=None,
        evidence_before=case.evidence,
        evidence_after=answered.hits,
        changed=(case.answer is not None and answered.answer != case.answer)
        or (bool(ranked) and ranked != [hit.fact_id for hit in answered.hits]),
    )


def _request(loaded: LoadedItem, receipt: AnyRow | None, question: str) -> RecallRequest:
    """The original recall, as far as it is known."""
    return RecallRequest(
        query=question,
        dataset=loaded.item.dataset or DEFAULT_DATASET,
        top_k=TOP_K if receipt is None or not receipt.shown else len(receipt.shown),
        mode="hybrid" if receipt is None else receipt.mode,
        where=None,
        weight=0.0 if receipt is None else receipt.weight,
        min_usefulness=0.0,
        policy=None if receipt is None else receipt.policy,
        exploration=0.0,
        seed=None,
        explain=False,
    )


def _compare_cached(space: ExecutionSpace, loaded: LoadedItem, case: ReviewCase, question: str) -> ReviewComparison:
    """What the cache would do; nothing is run, and no language model is asked."""
    subject = loaded.subject
    assert subject is not None
    about = subject.turn or subject.run
    connector_id = None if about is None else about.connector_id
    asker = NOBODY if about is None else Asker(about.audience, None, about.chat_session_id)
    with space.workspace.read() as connection:
        connector = space.connector(connection, connector_id)
    vector = space.workspace.embed([question])[0]
    limits = Limits(None, MIN_SIMILARITY, MAX_CANDIDATES, only_positive_feedback=False, examples=True, explained=1)
    verdicts, _ = judge(space, connector, question, vector, limits, "sql", asker)
    best = verdicts[0] if verdicts else None
    sql = None if best is None or best.decision == "refuse" else best.written
    return ReviewComparison(
        question=question,
        before=case.sql_query,
        after=sql,
        reason=reasons.NOTHING_SIMILAR if best is None else best.reason,
        evidence_before=[],
        evidence_after=[],
        changed=sql != case.sql_query,
    )
