"""One project as reports see it: counts of opinions, how much was rated, and decisions of the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import orjson
from sqlalchemy import Connection

from heedful.api import checks
from heedful.clock import DAY
from heedful.errors import Invalid, quoted
from heedful.insight.comments import Comments
from heedful.ledger import opinion_reports, tallies
from heedful.ledger.tallies import TallyCounts, TallyQuery
from heedful.model import FACETS, CacheDecision, CacheReport, Coverage, Covered, DecisionCount, Facet, OpinionTarget
from heedful.sessions.metadata import check_key
from heedful.sessions.session_store import SessionStore, Transaction
from heedful.statistics.rates import wilson
from heedful.storage import scopes
from heedful.storage.rows import to_model
from heedful.workspace import Workspace

MAX_VALUES = 50
"""The most values to compare by; a key with more is refused."""

MAX_AUTO_VALUES = 20
"""Values of a metadata key that nobody named, at most, to look at each of them."""

KEYS = 5
"""Metadata keys that are looked at, at most, if nobody named them."""

PREFIX = "metadata."
OUTCOMES: tuple[OpinionTarget, ...] = ("session", "entry", "message", "execution")
"""The targets of opinions about outcomes. Facts are apart: a recall shows many facts, and gives one answer."""

DERIVED = ("improve",)
"""Signals that `improve` made of ratings: they are opinions that were counted already."""


@dataclass(frozen=True, slots=True)
class InsightSpace:
    """The opinions of one project, which the databases add up; days are days in UTC."""

    workspace: Workspace
    store: SessionStore
    comments: Comments
    follow_review: Callable[[], None]
    """Adds recent opinions to the review queue."""

    def project(self, connection: Connection) -> int | None:
        """The number of the project; None if it is empty."""
        return scopes.project_id(connection, self.workspace.project)

    def period(self, since: Any, until: Any, dataset: Any = None) -> tuple[int | None, int | None]:
        """Both ends of a period as stored times, the first before the second; also checks the dataset."""
        start, stop = checks.period(since, until)
        if dataset is not None:
            with self.workspace.read() as connection:
                self.workspace.dataset(connection, checks.name("dataset", dataset))
        return start, stop

    def counts(self, query: TallyQuery) -> list[TallyCounts]:
        """One line for each value and bucket."""
        self.fold(query.key or "")
        lines: list[TallyCounts] = []
        if self.store.remote:
            lines += self.store.read(lambda tx: tx.feedbacks.tallies(query))
        if query.key is None or not self.store.remote:
            with self.workspace.read() as connection:
                project = self.project(connection)
                lines += [] if project is None else tallies.counts(connection, project, query)
        return _totals(lines)

    def values(self, key: str) -> dict[str, int]:
        """How many sessions have each value of a metadata key."""
        sessions_by_value: dict[str, int] = self.store.read(lambda tx: tx.feedbacks.values(key))
        if len(sessions_by_value) > MAX_VALUES:
            raise too_many(key, len(sessions_by_value))
        known = [] if sessions_by_value else self.store.read(lambda tx: tx.feedbacks.keys(MAX_VALUES))
        if known:
            message = f"no session has the metadata key {quoted(key)}"
            remedy = f"Sessions have: {', '.join(known)}. Opinions have: {', '.join(FACETS)}"
            raise Invalid(message, code="unknown_key", field="by", value=key, remedy=remedy)
        return sessions_by_value

    def telling_keys(self) -> list[str]:
        """The metadata keys that have a few values, those with the fewest first: they have most opinions for each.

        A key of ids has a value for each session, and distinguishes nothing.
        """

        def read(tx: Transaction) -> list[str]:
            values = {
                key: len(tx.feedbacks.variants(key, MAX_AUTO_VALUES + 1)) for key in tx.feedbacks.keys(MAX_VALUES)
            }
            few = [key for key, count in values.items() if 1 < count <= MAX_AUTO_VALUES]
            return sorted(few, key=lambda key: (values[key], key))[:KEYS]

        return self.store.read(read)

    def grouping(self, by: Any) -> tuple[Facet | None, str | None]:
        """The facet of opinions that `by` names, or the key of the sessions' metadata."""
        if by in FACETS:
            return by, None
        key = by.removeprefix(PREFIX) if isinstance(by, str) else by
        if not isinstance(key, str) or not key.strip():
            remedy = f"Name a key of the sessions' metadata, metadata.variant say, or one of {', '.join(FACETS)}"
            raise Invalid(f"unknown value {quoted(by)} of by", field="by", value=by, remedy=remedy)
        check_key("by", key)
        return None, key

    def fold(self, key: str) -> None:
        """Brings the counts up to date, if there are many new opinions."""
        if key and self.store.remote:
            return
        with self.workspace.read() as connection:
            project = self.project(connection)
            outdated = project is not None and tallies.needs_fold(connection, project, key)
        if outdated and not self.workspace.database.read_only:
            assert project is not None
            tallies.fold_in_runs(partial(self.workspace.write, durable=False), project, key)


def decode_tag(value: str) -> Any:
    """The value behind a tag: JSON, but for texts, which stand behind one quote."""
    return value[1:] if value.startswith('"') else orjson.loads(value)


def too_many(by: str, values: int) -> Invalid:
    message = f"by is {quoted(by)}, which has {values} values; up to {MAX_VALUES} can be compared"
    return Invalid(message, field="by", value=by, remedy="Name a key that distinguishes variants")


def _totals(lines: Iterable[TallyCounts]) -> list[TallyCounts]:
    totals: dict[tuple[Any, Any], TallyCounts] = {}
    for line in lines:
        key = line.value, line.start
        earlier = totals.get(key)
        sums = line[2:] if earlier is None else [one + other for one, other in zip(earlier[2:], line[2:], strict=True)]
        totals[key] = TallyCounts(*key, *sums)
    return list(totals.values())


def coverage(space: InsightSpace, since: Any, until: Any, dataset: str | None) -> Coverage:
    """Of answers, executions and recalls; they are counted by whole days."""
    start, stop = space.period(since, until, dataset)
    start = None if start is None else start // DAY * DAY
    stop = None if stop is None else -(-stop // DAY) * DAY
    lines = space.counts(TallyQuery(by="target_type", since=start, until=stop, dataset=dataset))
    counts = {line.value: (line.shown, line.rated) for line in lines}
    with space.workspace.read() as connection:
        project = space.project(connection)
        number = None if dataset is None else scopes.dataset_id(connection, dataset)
        if project is None or (dataset is not None and number is None):
            recalls = 0
        else:
            recalls = opinion_reports.recalls(connection, project, number, start, stop)
    return Coverage(
        answers=_to_covered("answers", *counts.get("entry", (0, 0))),
        executions=_to_covered("executions", *counts.get("execution", (0, 0))),
        recalls=_to_covered("recalls", recalls, min(recalls, counts.get("recall", (0, 0))[1])),
    )


def _to_covered(kind: Literal["answers", "executions", "recalls"], shown: int, rated: int) -> Covered:
    low, high = wilson(min(rated, shown), shown) if shown else (None, None)
    return Covered(kind=kind, shown=shown, rated=rated, share=rated / shown if shown else None, low=low, high=high)


REUSE_DECISIONS = ("serve", "rebind")


def cache_report(space: InsightSpace, since: Any, until: Any, limit: int) -> CacheReport:
    """Decisions by their reasons, and the newest ones."""
    start, stop = space.period(since, until)
    with space.workspace.read() as connection:
        project = space.project(connection)
        counts = [] if project is None else opinion_reports.decided(connection, project, start, stop)
        newest = [] if project is None else opinion_reports.newest_decisions(connection, project, start, stop, limit)
    total = sum(row.times for row in counts)
    return CacheReport(
        total=total,
        reused=sum(row.times for row in counts if row.decision in REUSE_DECISIONS),
        counts=[
            DecisionCount(decision=row.decision, gate=row.gate, count=row.times, share=row.times / total)
            for row in counts
        ],
        newest=[to_model(CacheDecision, row) for row in newest],
    )
