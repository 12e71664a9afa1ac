"""`.review`: negative and contradictory opinions as work to do; items in detail, and what reviewers do with them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection

from heedful.api import checks
from heedful.clock import from_stored
from heedful.errors import Conflict, Invalid, NotFound, quoted
from heedful.ledger import receipts
from heedful.memory.recall import RecallRequest
from heedful.model import (
    DEFAULT_DATASET,
    DEFAULT_WEIGHT,
    OPINION_TARGETS,
    REVIEW_STATUSES,
    Fix,
    Metadata,
    OpinionTarget,
    Page,
    ReviewCase,
    ReviewComparison,
    ReviewEvent,
    ReviewEvidence,
    ReviewItem,
    ReviewOpinion,
    ReviewStatus,
)
from heedful.review import fixes, tables
from heedful.review.follow import catch_up
from heedful.review.items import (
    CLOSES,
    LATEST_OPINIONS,
    ItemState,
    LoadedItem,
    item_state,
    load_items,
    read_opinions,
    refold,
)
from heedful.review.tables import Place
from heedful.sessions.entries import answer
from heedful.sql import records
from heedful.sql.chat import MAX_CANDIDATES, MIN_SIMILARITY
from heedful.sql.reuse import reasons
from heedful.sql.reuse.candidates import Limits
from heedful.sql.reuse.lookup import judge
from heedful.sql.reuse.ownership import NOBODY, Asker
from heedful.sql.space import ExecutionSpace
from heedful.storage import facts
from heedful.storage.rows import AnyRow, to_model

MAX_OPINIONS = 100  # How many opinions of each kind are shown.


def list_items(
    space: ExecutionSpace,
    status: ReviewStatus | None,
    assignee: str | None,
    dataset: str | None,
    target_type: OpinionTarget | None,
    cursor: str | None,
    limit: int,
) -> Page[ReviewItem]:
    _check_choice("status", status, REVIEW_STATUSES)
    _check_choice("target_type", target_type, OPINION_TARGETS)
    if assignee is not None:
        checks.any_text("assignee", assignee)
    if dataset is not None:
        checks.name("dataset", dataset)
    filters = {"status": status, "assignee": assignee, "dataset": dataset, "target_type": target_type}
    after = _parse_cursor(cursor)
    catch_up(space)
    with space.workspace.read() as connection:
        if dataset is not None:
            space.workspace.dataset(connection, dataset)
        # One more, to know whether there is a next page.
        rows = tables.list_items(connection, space.project(connection), filters, after, limit + 1)
    loaded = load_items(space, rows[:limit])
    last = rows[limit - 1] if len(rows) > limit else None
    next_cursor = None if last is None else f"{last.opinions}.{last.last_at}.{last.seq}"
    return Page(items=[item.item for item in loaded], next_cursor=next_cursor)


def get_case(space: ExecutionSpace, item_id: str) -> ReviewCase:
    return _case(space, _load(space, item_id, MAX_OPINIONS))


def assign(
    space: ExecutionSpace, item_id: str, assignee: str | None, author: str | None, if_match: str | None
) -> ReviewItem:
    if assignee is not None:
        checks.name("assignee", assignee)
    before = _load_matching(space, item_id, if_match)
    with space.workspace.write() as connection:
        row = _current(space, connection, before, if_match)
        if row.assignee != assignee:
            _record(space, connection, row, "assign", author, {"assignee": assignee}, None)
    return _load(space, item_id).item


def reopen(
    space: ExecutionSpace, item_id: str, note: str | None, author: str | None, if_match: str | None
) -> ReviewItem:
    before = _load_matching(space, item_id, if_match)
    with space.workspace.write() as connection:
        row = _current(space, connection, before, if_match)
        if row.status != "open":
            _record(space, connection, row, "reopen", author, {}, note)
    return _load(space, item_id).item


def fix(
    space: ExecutionSpace,
    item_id: str,
    action: Fix,
    note: str | None,
    author: str | None,
    if_match: str | None,
    **arguments: str | None,
) -> ReviewEvent:
    fix = fixes.check_arguments(action, arguments)
    before = _load_matching(space, item_id, if_match)

    def record(connection: Connection, body: Metadata) -> str:
        row = _current(space, connection, before, if_match)
        return _record(space, connection, row, fix, author, body, note)

    if fix == "retract":
        action_id = fixes.retract_opinion(space, before, str(arguments["event_id"]), author, record)
    else:
        apply = fixes.prepare(space, before, fix, arguments, author, note)
        with space.workspace.write() as connection:
            action_id = record(connection, apply(connection))
    return _event(space, action_id)


def ask_again(space: ExecutionSpace, item_id: str) -> ReviewComparison:
    before = _load(space, item_id, MAX_OPINIONS)
    return _compare(space, before, _case(space, before))


def undo(space: ExecutionSpace, event_id: str, author: str | None) -> ReviewEvent:
    if not fixes.undo_action(space, event_id, author):
        with space.workspace.read() as connection:
            is_opinion = bool(tables.members_by_event(connection, space.project(connection), [event_id]))
        if is_opinion:
            # Its item shows a reopening that it caused, not a reviewer.
            message = f"event {event_id} is an opinion, not a review action"
            remedy = "Retract it: retract(event_id)"
            raise Invalid(message, field="event_id", value=event_id, remedy=remedy)
        remedy = "Use the event_id of an item's history"
        raise NotFound.in_project(space.workspace.project, "action", event_id, "event_id", remedy)
    return _event(space, event_id)


def _close(
    space: ExecutionSpace, item_id: str, action: str, note: str | None, author: str | None, if_match: str | None
) -> ReviewItem:
    before = _load_matching(space, item_id, if_match)
    with space.workspace.write() as connection:
        row = _current(space, connection, before, if_match)
        state = item_state(connection, row)
        if if_match is None:
            _check_unclaimed(item_id, state, author)
        is_closed = state.status == CLOSES[action] and if_match is None
        if not is_closed or (note is not None and note != _last_note(connection, row, action)):
            _record(space, connection, row, action, author, {}, note)
    return _load(space, item_id).item


resolve = partial(_close, action="resolve")
dismiss = partial(_close, action="dismiss")


def _last_note(connection: Connection, row: AnyRow, action: str) -> str | None:
    """The note of the last of these actions that was not undone."""
    rows = tables.actions_of_items(connection, [row.id])[row.id]
    last = next(event.id for event in reversed(rows) if event.value == action and not event.retracted)
    return tables.notes_of(connection, row.project_id, [last]).get(last)


def _record(
    space: ExecutionSpace,
    connection: Connection,
    row: AnyRow,
    action: str,
    author: str | None,
    body: Metadata,
    note: str | None,
) -> str:
    """Appends the event of an action, and recomputes the item."""
    now = space.now()
    event_id = tables.add_action(connection, row, action, author, now, body, note)
    refold(connection, [row.seq])
    tables.touch_item(connection, row.seq, now)
    return event_id


def _load_matching(space: ExecutionSpace, item_id: str, if_match: str | None) -> LoadedItem:
    """The item before a change, if it matches `if_match`."""
    before = _load(space, item_id)
    checks.if_match(if_match, before.item)
    return before


def _current(space: ExecutionSpace, connection: Connection, before: LoadedItem, if_match: str | None) -> AnyRow:
    """The item in the transaction that changes it."""
    row = _row(space, connection, before.row.project_id, before.row.id)
    if if_match is not None and tuple(row) != tuple(before.row):
        raise checks.changed_meanwhile(if_match)
    return row


def _load(space: ExecutionSpace, item_id: str, latest: int = LATEST_OPINIONS) -> LoadedItem:
    catch_up(space)
    with space.workspace.read() as connection:
        row = _row(space, connection, space.project(connection), item_id)
    return load_items(space, [row], latest)[0]


def _event(space: ExecutionSpace, event_id: str) -> ReviewEvent:
    with space.workspace.read() as connection:
        project = space.project(connection)
        row = tables.get_action(connection, project, event_id)
        note = tables.notes_of(connection, project, [event_id]).get(event_id)
    return _to_event(row, note)


def _row(space: ExecutionSpace, connection: Connection, project: int, item_id: str) -> AnyRow:
    row = tables.get_item(connection, project, item_id)
    if row is None:
        remedy = "review.list() shows them"
        raise NotFound.in_project(space.workspace.project, "review item", item_id, "item_id", remedy)
    return row


def _check_unclaimed(item_id: str, state: ItemState, author: str | None) -> None:
    """Refuses to close an item that somebody else closed."""
    if state.closed is None or (author is not None and state.closed.author == author):
        return
    reviewer = state.closed.author or "somebody"
    message = f"{reviewer} {state.status} item {item_id} at {from_stored(state.closed.at):%Y-%m-%d %H:%M:%S}"
    remedy = "Look at what was done; pass if_match to decide otherwise, or reopen it"
    raise Conflict(message, code="closed_already", field="item_id", value=item_id, remedy=remedy)


def _check_choice(field: str, value: Any, choices: tuple[str, ...]) -> None:
    if value is not None and value not in choices:
        remedy = f"Use one of {', '.join(choices)}, or None for all"
        raise Invalid(f"unknown {field} {quoted(value)}", field=field, value=value, remedy=remedy)


def _parse_cursor(cursor: Any) -> Place | None:
    if cursor is None:
        return None
    parts = cursor.split(".") if isinstance(cursor, str) else []
    if len(parts) != 3 or not all(part.isdecimal() and part.isascii() and len(part) <= 18 for part in parts):
        raise checks.invalid_cursor(cursor)
    opinions, last_at, seq = map(int, parts)
    return opinions, last_at, seq


def _case(space: ExecutionSpace, loaded: LoadedItem) -> ReviewCase:
    subject = loaded.subject
    entry, run, turn = (None, None, None) if subject is None else (subject.entry, subject.run, subject.turn)
    receipt = _receipt(space, loaded)
    shown = _evidence(space, loaded, receipt)
    execution_id = None if run is None else run.id
    if turn is not None:
        with space.workspace.read() as connection:
            runs = records.runs_of_message(connection, space.project(connection), turn.message_id)
        execution_id = next((row.id for row in runs), None)
    active = [opinion for opinion in loaded.newest if opinion.active] if loaded.row.opinions else []
    against = sorted(loaded.against, key=lambda opinion: opinion.at, reverse=True)[:MAX_OPINIONS]
    return ReviewCase(
        item=loaded.item,
        answer=None if entry is None else entry.answer,
        sql_query=run.sql_query if run is not None else turn.sql if turn is not None else None,
        execution_id=execution_id,
        recall_id=_recall_of(loaded),
        usefulness_weight=receipt and receipt.weight,
        evidence=shown,
        opinions=[
            to_model(ReviewOpinion, opinion)
            for opinion in sorted([*active, *against], key=lambda opinion: opinion.at, reverse=True)
        ],
        history=_history(space, loaded.row),
        fixes=_available_fixes(loaded, shown, execution_id),
    )


def _receipt(space: ExecutionSpace, loaded: LoadedItem) -> receipts.ReceiptRow | None:
    recall_id = _recall_of(loaded)
    with space.workspace.read() as connection:
        return None if recall_id is None else receipts.get(connection, space.workspace.project, recall_id)


def _evidence(space: ExecutionSpace, loaded: LoadedItem, receipt: receipts.ReceiptRow | None) -> list[ReviewEvidence]:
    """The facts behind the newest answer: those that were shown, best first, and then others that it used; or the fact
    itself that an opinion is about, and those that conflict with it."""
    entry = None if loaded.subject is None else loaded.subject.entry
    shown = {} if receipt is None else {fact.fact_id: (rank, fact) for rank, fact in enumerate(receipt.shown, 1)}
    shares = {} if entry is None else {fact_id: share for fact_id, share, _ in entry.used or ()}
    fact_ids = list(dict.fromkeys([*shown, *shares]))
    if loaded.row.target_type == "fact":
        others = [opinion.conflicts_with for opinion in loaded.newest if opinion.conflicts_with is not None]
        fact_ids = [*(opinion.target_id for opinion in loaded.newest[:1]), *dict.fromkeys(others)]
    with space.workspace.read() as connection:
        texts = facts.texts(connection, fact_ids)
        current = facts.texts(connection, fact_ids, current=True)
    result = []
    for fact_id in fact_ids:
        rank, fact = shown.get(fact_id, (None, None))
        result.append(
            ReviewEvidence(
                fact_id=fact_id,
                text=texts.get(fact_id),
                rank=rank,
                score=fact and fact.score,
                relevance=fact and fact.relevance,
                usefulness=fact and fact.usefulness,
                share=shares.get(fact_id),
                superseded=fact_id in texts and fact_id not in current,
            )
        )
    return result


def _recall_of(loaded: LoadedItem) -> str | None:
    if loaded.subject is not None and loaded.subject.entry is not None:
        return loaded.subject.entry.recall_id
    return loaded.newest[0].receipt_id if loaded.newest else None


def _available_fixes(loaded: LoadedItem, evidence: list[ReviewEvidence], execution_id: str | None) -> list[Fix]:
    fixes: list[Fix] = []
    if any(item.text is not None and not item.superseded for item in evidence):
        fixes.append("supersede")
    if loaded.row.opinions or loaded.against:
        fixes.append("retract")
    if loaded.row.target_type == "entry" and any(item.comment and not item.positive for item in loaded.newest):
        fixes.append("teach")
    if execution_id is not None:
        fixes += ["block", "promote"]
    if loaded.row.target_type in ("execution", "message"):
        fixes.append("add_example")
    return fixes


def _history(space: ExecutionSpace, item: AnyRow) -> list[ReviewEvent]:
    """The oldest first."""
    with space.workspace.read() as connection:
        rows = tables.actions_of_items(connection, [item.id])[item.id]
        notes = tables.notes_of(connection, item.project_id, [row.id for row in rows])
        opened = {
            index: member
            for index, after, before in _resolved(rows)
            if (member := tables.first_between(connection, item.seq, after, before)) is not None
        }
    opinions = read_opinions(space, opened.values())
    history_events = [_to_event(row, notes.get(row.id)) for row in rows]
    # From the last one on, so that earlier indexes stay valid.
    for index, member in sorted(opened.items(), reverse=True):
        opinion = opinions.get(member.event_id)
        author, details = None if opinion is None else opinion.author, {"opinion": member.event_id}
        line = to_model(ReviewEvent, member, action="reopen", author=author, note=None, details=details, undone=False)
        later = (number for number in range(index + 1, len(history_events)) if history_events[number].at >= line.at)
        history_events.insert(next(later, len(history_events)), line)
    return history_events


def _to_event(row: AnyRow, note: str | None) -> ReviewEvent:
    undone = bool(row.retracted)
    return to_model(ReviewEvent, row, event_id=row.id, action=row.value, note=note, details=row.body, undone=undone)


def _resolved(rows: Sequence[AnyRow]) -> list[tuple[int, int, int | None]]:
    """The times at which an item was resolved: the index of the event, its time, and that of the next decision."""
    decisions = [
        (index, row)
        for index, row in enumerate(rows)
        if not row.retracted and (row.value in CLOSES or row.value == "reopen")
    ]
    until = [*(row.at for _, row in decisions[1:]), None]
    return [
        (index, row.at, before)
        for (index, row), before in zip(decisions, until, strict=False)
        if row.value == "resolve"
    ]


TOP_K = 10  # How many facts are recalled if the original number is unknown.


def _compare(space: ExecutionSpace, loaded: LoadedItem, case: ReviewCase) -> ReviewComparison:
    question = loaded.item.question
    if question is None:
        message = f"item {loaded.row.id} has no question"
        remedy = "It is about a whole session, or about something that was deleted"
        raise Invalid(message, field="item_id", value=loaded.row.id, remedy=remedy)
    if loaded.row.target_type in ("execution", "message"):
        return _compare_cached(space, loaded, case, question)
    request = _request(loaded, _receipt(space, loaded), question)
    answered = answer(space.sessions, space.workspace, space.language_model, request, None, None, quiet=True)
    # Opinions about a single fact have no order to compare.
    ranked = [fact.fact_id for fact in case.evidence if fact.rank is not None and loaded.row.target_type == "entry"]
    return ReviewComparison(
        question=question,
        before=case.answer,
        after=answered.answer,
        reason=None,
        usefulness_weight=case.usefulness_weight,
        evidence_before=case.evidence,
        evidence_after=answered.hits,
        changed=(case.answer is not None and answered.answer != case.answer)
        or (bool(ranked) and ranked != [hit.fact_id for hit in answered.hits]),
    )


def _request(loaded: LoadedItem, receipt: receipts.ReceiptRow | None, question: str) -> RecallRequest:
    """The original recall, as far as it is known, with feedback."""
    return RecallRequest(
        query=question,
        dataset=loaded.item.dataset or DEFAULT_DATASET,
        top_k=TOP_K if receipt is None or not receipt.shown else len(receipt.shown),
        mode="hybrid" if receipt is None else receipt.mode,
        where=None,
        weight=DEFAULT_WEIGHT if receipt is None or not receipt.weight else receipt.weight,
        min_usefulness=0.0,
        policy=None if receipt is None else receipt.policy,
        exploration=0.0,
        seed=None,
        explain=False,
    )


def _compare_cached(space: ExecutionSpace, loaded: LoadedItem, case: ReviewCase, question: str) -> ReviewComparison:
    """The answer of the cache; nothing is run, and no language model is asked."""
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
        usefulness_weight=None,
        evidence_before=[],
        evidence_after=[],
        changed=sql != case.sql_query,
    )
