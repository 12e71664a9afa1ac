"""Counts of opinions, by the databases that have them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Literal

import orjson

from heedful.clock import DAY, from_stored
from heedful.errors import Invalid, quoted
from heedful.memory import checks as values
from heedful.memory.workspace import Workspace
from heedful.model import FACETS, Coverage, Covered, Facet, OpinionTarget
from heedful.sessions import checks
from heedful.statistics.rates import wilson
from heedful.storage import insight, scopes, tallies
from heedful.storage.sessions import SessionStore, Transaction
from heedful.storage.tallies import TallyCounts, TallyQuery

MAX_VALUES = 50
"""The most values to compare by; a key with more is refused."""

MAX_AUTO_VALUES = 20
"""Values of a metadata key that nobody named, at most, to look at each of them."""

KEYS = 5
"""Metadata keys that are looked at, at most, if nobody named them."""

PREFIX = "metadata."
OUTCOMES: tuple[OpinionTarget, ...] = ("session", "entry", "message", "execution")
"""What opinions of outcomes are about. Those about facts are apart: a recall shows many facts, and gives one answer."""

DERIVED = ("improve",)
"""Signals that `improve` made of ratings: they are opinions that were counted already."""


class Counting:
    """The opinions of one project, counted."""

    def __init__(self, workspace: Workspace, store: SessionStore) -> None:
        self._workspace = workspace
        self._store = store

    def counts(self, query: TallyQuery) -> list[TallyCounts]:
        """One line for each value and bucket."""
        self.fold(query.key or "")
        lines: list[TallyCounts] = []
        if self._store.remote:
            lines += self._store.read(lambda tx: tx.feedbacks.tallies(query))
        if query.key is None or not self._store.remote:
            with self._workspace.read() as connection:
                project = scopes.project_id(connection, self._workspace.project)
                lines += [] if project is None else tallies.counts(connection, project, query)
        return _totals(lines)

    def values(self, key: str) -> dict[str, int]:
        """How many sessions have each value of a metadata key."""
        sessions_by_value: dict[str, int] = self._store.read(lambda tx: tx.feedbacks.values(key))
        if len(sessions_by_value) > MAX_VALUES:
            raise too_many(key, len(sessions_by_value))
        if not sessions_by_value:
            self._check_known(key)
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

        return self._store.read(read)

    def grouping(self, by: Any) -> tuple[Facet | None, str | None]:
        """What `by` names: something that opinions have, or a key of the sessions' metadata."""
        if by in FACETS:
            return by, None
        key = by.removeprefix(PREFIX) if isinstance(by, str) else by
        if not isinstance(key, str) or not key.strip():
            raise Invalid(
                f"unknown value {quoted(by)} of by",
                field="by",
                value=by,
                remedy=f"Name a key of the sessions' metadata, metadata.variant say, or one of {', '.join(FACETS)}",
            )
        checks.key("by", key)
        return None, key

    def fold(self, key: str) -> None:
        """Brings the counts up to date, if much was said since."""
        if key and self._store.remote:
            return
        with self._workspace.read() as connection:
            project = scopes.project_id(connection, self._workspace.project)
            outdated = project is not None and tallies.needs_fold(connection, project, key)
        if outdated and not self._workspace.database.read_only:
            assert project is not None
            tallies.fold_in_runs(partial(self._workspace.write, durable=False), project, key)

    def _check_known(self, key: str) -> None:
        keys: list[str] = self._store.read(lambda tx: tx.feedbacks.keys(MAX_VALUES))
        if keys:
            raise Invalid(
                f"no session has the metadata key {quoted(key)}",
                code="unknown_key",
                field="by",
                value=key,
                remedy=f"Sessions have: {', '.join(keys)}. Opinions have: {', '.join(FACETS)}",
            )


def decode_tag(value: str) -> Any:
    """What a tag stands for: JSON, but for texts, which stand behind one quote."""
    return value[1:] if value.startswith('"') else orjson.loads(value)


def too_many(by: str, values: int) -> Invalid:
    """The error for a key with too many values to compare by."""
    return Invalid(
        f"by is {quoted(by)}, which has {values} values; up to {MAX_VALUES} can be compared",
        field="by",
        value=by,
        remedy="Name a key that distinguishes variants",
    )


def _totals(lines: Iterable[TallyCounts]) -> list[TallyCounts]:
    totals: dict[tuple[Any, Any], TallyCounts] = {}
    for line in lines:
        key = line.value, line.start
        earlier = totals.get(key)
        sums = line[2:] if earlier is None else [one + other for one, other in zip(earlier[2:], line[2:], strict=True)]
        totals[key] = TallyCounts(*key, *sums)
    return list(totals.values())


def coverage(
    counting: Counting, workspace: Workspace, since: int | None, until: int | None, dataset: str | None
) -> Coverage:
    """Of answers, executions and recalls; what is counted is counted by whole days."""
    start = None if since is None else since // DAY * DAY
    stop = None if until is None else -(-until // DAY) * DAY
    lines = counting.counts(TallyQuery(by="target_type", since=start, until=stop, dataset=dataset))
    counts = {line.value: (line.shown, line.rated) for line in lines}
    with workspace.read() as connection:
        project = scopes.project_id(connection, workspace.project)
        number = None if dataset is None else scopes.dataset_id(connection, workspace.project, dataset)
        if project is None or (dataset is not None and number is None):
            recalls = 0
        else:
            recalls = insight.recalls(connection, project, number, start, stop)
    return Coverage(
        answers=_to_covered("answers", *counts.get("entry", (0, 0))),
        executions=_to_covered("executions", *counts.get("execution", (0, 0))),
        recalls=_to_covered("recalls", recalls, min(recalls, counts.get("recall", (0, 0))[1])),
    )


def _to_covered(kind: Literal["answers", "executions", "recalls"], shown: int, rated: int) -> Covered:
    low, high = wilson(min(rated, shown), shown) if shown else (None, None)
    return Covered(kind=kind, shown=shown, rated=rated, share=rated / shown if shown else None, low=low, high=high)


def check_range(since: Any, until: Any) -> tuple[int | None, int | None]:
    """Both ends as stored times; the first must lie before the second."""
    start, stop = values.bound("since", since), values.bound("until", until)
    if start is not None and stop is not None and start >= stop:
        raise Invalid(
            f"since ({from_stored(start):%Y-%m-%d %H:%M}) must be before until ({from_stored(stop):%Y-%m-%d %H:%M})",
            field="since",
            value=since,
            remedy="Swap the two, or leave one out",
        )
    return start, stop
