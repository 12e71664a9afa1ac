"""`.insight`: whether answers get better, and for whom; what is wrong, and what changed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from heedful.clock import DAY
from heedful.errors import Invalid, quoted
from heedful.insight import cache as _cache
from heedful.insight import counting, writing
from heedful.insight import counting as _coverage
from heedful.insight import digest as _digest
from heedful.insight import notes as _notes
from heedful.insight import satisfaction as _satisfaction
from heedful.insight import satisfaction as _trend
from heedful.insight import satisfaction as _usefulness
from heedful.insight.comments import Comments
from heedful.insight.counting import OUTCOMES, PREFIX, Counting
from heedful.insight.exports import Reading
from heedful.insight.tables import TABLES, table_named
from heedful.insight.writing import export
from heedful.memory import checks
from heedful.memory.workspace import Workspace
from heedful.model import (
    DEFAULT_DATASET,
    OPINION_TARGETS,
    OVERS,
    CacheReport,
    Coverage,
    Digest,
    ExportFormat,
    ExportResult,
    ExportTable,
    Note,
    OpinionTarget,
    Over,
    Page,
    Satisfaction,
    TableName,
    Themes,
    Trend,
    UsefulnessReport,
)
from heedful.protocols.insight import DEFAULT_LIMIT, InsightProtocol, Target
from heedful.sessions import checks as session_checks
from heedful.storage.exports import ExportQuery
from heedful.storage.sessions import SessionStore


class Insight(InsightProtocol):
    """Reports over the active opinions of one project. The database adds them up; days are days in UTC."""

    def __init__(
        self, workspace: Workspace, store: SessionStore, comments: Comments, follow_review: Callable[[], None]
    ) -> None:
        """`follow_review` adds recent opinions to the review queue."""
        self._workspace = workspace
        self._counting = Counting(workspace, store)
        self._comments = comments
        self._reading = Reading(workspace, store)
        self._follow_review = follow_review

    def satisfaction(
        self,
        by: str,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        dataset: str | None = None,
        target_type: OpinionTarget | None = None,
    ) -> Satisfaction:
        start, stop = counting.check_range(since, until)
        self._dataset(dataset)
        targets = () if by == "target_type" and target_type is None else _targets(target_type)
        return _satisfaction.satisfaction(self._counting, by, start, stop, dataset, targets)

    def trend(
        self,
        *,
        over: Over = "day",
        by: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        dataset: str | None = None,
        target_type: OpinionTarget | None = None,
    ) -> Trend:
        start, stop = counting.check_range(since, until)
        self._dataset(dataset)
        if over not in OVERS:
            raise Invalid(f"invalid over {quoted(over)}", field="over", value=over, remedy=f"Use {' or '.join(OVERS)}")
        now = self._workspace.now()
        return _trend.trend(self._counting, over, by, start, stop, now, dataset, _targets(target_type))

    def coverage(
        self, *, since: datetime | None = None, until: datetime | None = None, dataset: str | None = None
    ) -> Coverage:
        start, stop = counting.check_range(since, until)
        self._dataset(dataset)
        return _coverage.coverage(self._counting, self._workspace, start, stop, dataset)

    def usefulness(self, dataset: str = DEFAULT_DATASET) -> UsefulnessReport:
        return _usefulness.usefulness(self._workspace, dataset)

    def cache(
        self, *, since: datetime | None = None, until: datetime | None = None, limit: int = DEFAULT_LIMIT
    ) -> CacheReport:
        start, stop = counting.check_range(since, until)
        return _cache.cache_report(self._workspace, start, stop, checks.limit(limit))

    def themes(
        self, *, since: datetime | None = None, until: datetime | None = None, dataset: str | None = None
    ) -> Themes:
        start, stop = counting.check_range(since, until)
        self._dataset(dataset)
        return self._comments.themes(start, stop, dataset)

    def notes(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        dataset: str | None = None,
        by: str | None = None,
    ) -> list[Note]:
        start, stop = counting.check_range(since, until)
        self._dataset(dataset)
        last = self._workspace.now() + 1 if stop is None else stop
        first = last - _notes.SPAN * DAY if start is None else start
        return _notes.notes(self._workspace, self._counting, self._comments, _key(by), first, last, dataset)

    def digest(self, *, since: datetime | None = None, until: datetime | None = None) -> Digest:
        start, stop = counting.check_range(since, until)
        last = self._workspace.now() + 1 if stop is None else stop
        first = last - _digest.DEFAULT_PERIOD if start is None else start
        if first >= last:
            raise Invalid(f"since is {since}, and that period is not over yet", field="since", value=since)
        # Items are created when somebody reads the queue; a digest counts them.
        self._follow_review()
        return _digest.digest(self._workspace, self._counting, self._comments, first, last)

    def dictionary(self) -> list[ExportTable]:
        return list(TABLES.values())

    def rows(
        self,
        table: TableName,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        dataset: str | None = None,
        cursor: str | None = None,
        limit: int = 1000,
    ) -> Page[dict[str, Any]]:
        query = self._query(since, until, dataset)
        chosen = table_named(table, dataset)
        rows, following = self._reading.page(chosen, query, cursor, checks.limit(limit))
        return Page(items=writing.to_json_rows(chosen, rows), next_cursor=following)

    def export(
        self,
        table: TableName,
        path: Target,
        *,
        format: ExportFormat | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        dataset: str | None = None,
        overwrite: bool = False,
    ) -> ExportResult:
        query = self._query(since, until, dataset)
        with export(table, path, format, dataset, overwrite) as output:
            for rows in self._reading.all(output.table, query):
                output.add(rows)
        return output.result()

    def _query(self, since: Any, until: Any, dataset: Any) -> ExportQuery:
        start, stop = counting.check_range(since, until)
        self._dataset(dataset)
        return ExportQuery(self._workspace.now(), start, stop, dataset)

    def _dataset(self, name: Any) -> None:
        if name is not None:
            with self._workspace.read() as connection:
                self._workspace.dataset(connection, checks.name("dataset", name))


def _targets(target_type: Any) -> tuple[OpinionTarget, ...]:
    if target_type is None:
        return OUTCOMES
    if target_type not in OPINION_TARGETS:
        raise Invalid(
            f"unknown target_type {quoted(target_type)}",
            field="target_type",
            value=target_type,
            remedy=f"Use one of {', '.join(OPINION_TARGETS)}",
        )
    return (target_type,)


def _key(value: Any) -> str | None:
    if value is None:
        return None
    key = value.removeprefix(PREFIX) if isinstance(value, str) else value
    session_checks.key("by", key)
    return str(key)
