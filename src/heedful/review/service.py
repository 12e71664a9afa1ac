"""`.review`: negative and contradictory opinions as work to do."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection

from heedful.clock import from_stored
from heedful.errors import Conflict, Invalid, NotFound, quoted
from heedful.memory import checks as values
from heedful.model import (
    OPINION_TARGETS,
    REVIEW_STATUSES,
    Fix,
    Metadata,
    OpinionTarget,
    Page,
    ReviewCase,
    ReviewComparison,
    ReviewEvent,
    ReviewItem,
    ReviewStatus,
)
from heedful.protocols.review import PAGE_LIMIT, ReviewProtocol
from heedful.review import cases, fixes, retraction, teaching
from heedful.review import undo as undoing
from heedful.review.cases import LATEST_OPINIONS, LoadedItem, event, load_items
from heedful.review.fixes import FixArguments
from heedful.review.follow import catch_up, compare_now
from heedful.review.items import CLOSES, ItemState, item_state, refold
from heedful.sql import checks as executions
from heedful.sql.space import ExecutionSpace
from heedful.storage.review import actions, items, members
from heedful.storage.review.items import ItemFilter, Place
from heedful.storage.rows import AnyRow


class Review(ReviewProtocol):
    """The review queue of one project. Items are created when somebody reads the queue, or by a worker."""

    def __init__(self, space: ExecutionSpace) -> None:
        self._space = space

    def list(
        self,
        *,
        status: ReviewStatus | None = "open",
        assignee: str | None = None,
        dataset: str | None = None,
        target_type: OpinionTarget | None = None,
        cursor: str | None = None,
        limit: int = PAGE_LIMIT,
    ) -> Page[ReviewItem]:
        _choice("status", status, REVIEW_STATUSES)
        _choice("target_type", target_type, OPINION_TARGETS)
        if assignee is not None:
            values.any_text("assignee", assignee)
        if dataset is not None:
            values.name("dataset", dataset)
        filters = ItemFilter(status, assignee, dataset, target_type)
        after, count = _parse_cursor(cursor), values.limit(limit)
        catch_up(self._space)
        with self._space.workspace.read() as connection:
            if dataset is not None:
                self._space.workspace.dataset(connection, dataset)
            # One more, to know whether there is a next page.
            rows = items.list_items(connection, self._space.project(connection), filters, after, count + 1)
        loaded = load_items(self._space, rows[:count])
        last = rows[count - 1] if len(rows) > count else None
        next_cursor = None if last is None else f"{last.opinions}.{last.last_at}.{last.seq}"
        return Page(items=[item.item for item in loaded], next_cursor=next_cursor)

    def get(self, item_id: str) -> ReviewCase:
        return cases.case(self._space, self._load(item_id, cases.MAX_OPINIONS))

    def assign(
        self, item_id: str, assignee: str | None, *, author: str | None = None, if_match: str | None = None
    ) -> ReviewItem:
        if assignee is not None:
            values.name("assignee", assignee)
        before, author = self._checked(item_id, author, if_match)
        with self._space.workspace.write() as connection:
            row = self._current(connection, before, if_match)
            if row.assignee != assignee:
                self._record(connection, row, "assign", author, {"assignee": assignee}, None)
        return self._item(item_id)

    def resolve(
        self, item_id: str, *, note: str | None = None, author: str | None = None, if_match: str | None = None
    ) -> ReviewItem:
        return self._close(item_id, "resolve", note, author, if_match)

    def dismiss(
        self, item_id: str, *, note: str | None = None, author: str | None = None, if_match: str | None = None
    ) -> ReviewItem:
        return self._close(item_id, "dismiss", note, author, if_match)

    def reopen(
        self, item_id: str, *, note: str | None = None, author: str | None = None, if_match: str | None = None
    ) -> ReviewItem:
        executions.feedback_text("note", note)
        before, author = self._checked(item_id, author, if_match)
        with self._space.workspace.write() as connection:
            row = self._current(connection, before, if_match)
            if row.status != "open":
                self._record(connection, row, "reopen", author, {}, note)
        return self._item(item_id)

    def fix(
        self,
        item_id: str,
        action: Fix,
        *,
        fact_id: str | None = None,
        text: str | None = None,
        by: str | None = None,
        event_id: str | None = None,
        execution_id: str | None = None,
        question: str | None = None,
        sql_query: str | None = None,
        connector_id: str | None = None,
        note: str | None = None,
        author: str | None = None,
        if_match: str | None = None,
    ) -> ReviewEvent:
        arguments = FixArguments(fact_id, text, by, event_id, execution_id, question, sql_query, connector_id)
        fix = fixes.check_arguments(action, arguments)
        executions.feedback_text("note", note)
        before, author = self._checked(item_id, author, if_match)

        def record(connection: Connection, body: Metadata) -> str:
            row = self._current(connection, before, if_match)
            return self._record(connection, row, fix, author, body, note)

        if fix == "retract":
            action_id = retraction.retract(self._space, before, str(event_id), author, record)
        else:
            if fix == "teach":
                apply = teaching.prepare(self._space, before, arguments)
            else:
                apply = fixes.prepare(self._space, before, fix, arguments, author, note)
            with self._space.workspace.write() as connection:
                action_id = record(connection, apply(connection))
        return self._event(action_id)

    def ask_again(self, item_id: str) -> ReviewComparison:
        before = self._load(item_id, cases.MAX_OPINIONS)
        return compare_now(self._space, before, cases.case(self._space, before))

    def undo(self, event_id: str, *, author: str | None = None) -> ReviewEvent:
        values.identifier("event_id", event_id)
        if not undoing.undo(self._space, event_id, values.author(author)):
            self._check_no_opinion(event_id)
            raise NotFound(
                f"no action {event_id!r} in project {self._space.workspace.project!r}",
                field="event_id",
                value=event_id,
                remedy="Use the event_id of an item's history",
            )
        return self._event(event_id)

    def _close(
        self, item_id: str, action: str, note: str | None, author: str | None, if_match: str | None
    ) -> ReviewItem:
        executions.feedback_text("note", note)
        before, author = self._checked(item_id, author, if_match)
        with self._space.workspace.write() as connection:
            row = self._current(connection, before, if_match)
            state = item_state(connection, row)
            if if_match is None:
                _check_unclaimed(item_id, state, author)
            is_closed = state.status == CLOSES[action] and if_match is None
            if not is_closed or (note is not None and note != self._last_note(connection, row, action)):
                self._record(connection, row, action, author, {}, note)
        return self._item(item_id)

    def _last_note(self, connection: Connection, row: AnyRow, action: str) -> str | None:
        """The note of the last of these actions that was not undone."""
        rows = actions.of_items(connection, row.project_id, [row.id])[row.id]
        last = next(event.id for event in reversed(rows) if event.value == action and not event.retracted)
        return actions.read(connection, row.project_id, [last]).get(last)

    def _record(
        self, connection: Connection, row: AnyRow, action: str, author: str | None, body: Metadata, note: str | None
    ) -> str:
        """Appends the event of an action, and recomputes the item."""
        now = self._space.now()
        event = actions.append(connection, row.project_id, row.id, action, author, now, body)
        actions.write(connection, row.project_id, row.seq, event, note)
        refold(connection, row.project_id, [row.seq])
        items.touch(connection, row.seq, now)
        return event

    def _checked(self, item_id: str, author: str | None, if_match: str | None) -> tuple[LoadedItem, str | None]:
        """The item before a change, if it matches `if_match`, and who changes it."""
        author = values.author(author)
        before = self._load(item_id)
        values.if_match(if_match, before.item)
        return before, author

    def _current(self, connection: Connection, before: LoadedItem, if_match: str | None) -> AnyRow:
        """The item in the transaction that changes it."""
        row = items.get(connection, before.row.project_id, before.row.id)
        if row is None:
            raise self._missing(before.row.id)
        if if_match is not None and tuple(row) != tuple(before.row):
            raise Conflict(
                "it was changed after you read it",
                code="changed_meanwhile",
                field="if_match",
                value=if_match,
                remedy="Read it again, then retry",
            )
        return row

    def _load(self, item_id: str, latest: int = LATEST_OPINIONS) -> LoadedItem:
        values.identifier("item_id", item_id)
        catch_up(self._space)
        with self._space.workspace.read() as connection:
            row = items.get(connection, self._space.project(connection), item_id)
        if row is None:
            raise self._missing(item_id)
        return load_items(self._space, [row], latest)[0]

    def _item(self, item_id: str) -> ReviewItem:
        return self._load(item_id).item

    def _event(self, event_id: str) -> ReviewEvent:
        with self._space.workspace.read() as connection:
            project = self._space.project(connection)
            row = actions.get(connection, project, event_id)
            note = actions.read(connection, project, [event_id]).get(event_id)
        return event(row, note)

    def _check_no_opinion(self, event_id: str) -> None:
        """Refuses to undo a reopening that an opinion caused, not a reviewer."""
        with self._space.workspace.read() as connection:
            if members.by_event(connection, self._space.project(connection), [event_id]):
                raise Invalid(
                    f"event {event_id} is an opinion, not a review action",
                    field="event_id",
                    value=event_id,
                    remedy="Retract it: retract(event_id), or heedful retract",
                )

    def _missing(self, item_id: str) -> NotFound:
        return NotFound(
            f"no review item {item_id!r} in project {self._space.workspace.project!r}",
            field="item_id",
            value=item_id,
            remedy="review.list(), or heedful review list, shows them",
        )


def _check_unclaimed(item_id: str, state: ItemState, author: str | None) -> None:
    """Refuses to close an item that somebody else closed."""
    if state.closed is None or (author is not None and state.closed.author == author):
        return
    reviewer = state.closed.author or "somebody"
    raise Conflict(
        f"{reviewer} {state.status} item {item_id} at {from_stored(state.closed.at):%Y-%m-%d %H:%M:%S}",
        code="closed_already",
        field="item_id",
        value=item_id,
        remedy="Look at what was done; pass if_match to decide otherwise, or reopen it",
    )


def _choice(field: str, value: Any, choices: tuple[str, ...]) -> None:
    if value is not None and value not in choices:
        remedy = f"Use one of {', '.join(choices)}, or None for all"
        raise Invalid(f"unknown {field} {quoted(value)}", field=field, value=value, remedy=remedy)


def _parse_cursor(cursor: Any) -> Place | None:
    """Parses a cursor: where the previous page ended."""
    if cursor is None:
        return None
    parts = cursor.split(".") if isinstance(cursor, str) else []
    if len(parts) != 3 or not all(part.isdecimal() and part.isascii() and len(part) <= 18 for part in parts):
        raise Invalid(
            f"invalid cursor {quoted(cursor)}",
            field="cursor",
            value=cursor,
            remedy="Use the next_cursor of the page before",
        )
    opinions, last_at, seq = map(int, parts)
    return opinions, last_at, seq
