"""`.insight`: what people said, added up."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import IO, Any, Protocol

from heedful.model import (
    DEFAULT_DATASET,
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

DEFAULT_LIMIT = 20

Target = str | Path | IO[bytes]
"""Where an export is written."""


class InsightProtocol(Protocol):
    """Reports over the active opinions of one project. The database adds them up; days are days in UTC."""

    def satisfaction(
        self,
        by: str,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        dataset: str | None = None,
        target_type: OpinionTarget | None = None,
    ) -> Satisfaction:
        """Satisfaction by a key of the sessions' metadata, such as `variant`, or by `dataset`, `model`, `source`,
        `author_kind` or `target_type`; `metadata.model` is the key of that name.

        Counts up, down and neutral opinions about sessions, answers, messages and executions (of answers, 4 and 5 are
        up, 1 and 2 are down), each share with its 95% interval, the probability that one value is better than another,
        and whether that is known well enough to stop. With `target_type`, only opinions about such things; of a `fact`,
        `helpful` is up and `not_helpful` is down.
        """

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
        """Satisfaction over time, by day or week, with intervals and counts; `by` and `target_type` as in
        `satisfaction`."""

    def coverage(
        self, *, since: datetime | None = None, until: datetime | None = None, dataset: str | None = None
    ) -> Coverage:
        """How much of what was shown in this time was rated until now: answers, executions and recalls."""

    def usefulness(self, dataset: str = DEFAULT_DATASET) -> UsefulnessReport:
        """How useful the facts of a dataset are: the distribution, the most and the least useful ones, and those that
        help in one context and hurt in another."""

    def cache(
        self, *, since: datetime | None = None, until: datetime | None = None, limit: int = DEFAULT_LIMIT
    ) -> CacheReport:
        """What the cache of executions decided, by reason, and the newest decisions."""

    def themes(
        self, *, since: datetime | None = None, until: datetime | None = None, dataset: str | None = None
    ) -> Themes:
        """What negative comments are about: those that mean the same, under their own words. No language model is
        needed. The newest 500 are read."""

    def notes(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        dataset: str | None = None,
        by: str | None = None,
    ) -> list[Note]:
        """What changed in the last four weeks, or since then, and is not luck, with the arithmetic.

        Down-votes are looked at in all, by dataset, by model, by what they are about, by the themes of comments, and by
        keys of the sessions' metadata: those that have up to 20 values (the five with the fewest, because whatever is
        looked at makes a change harder to distinguish from chance), and the one that `by` names. A change of policy
        after which ratings got worse comes first, with its event.
        """

    def digest(self, *, since: datetime | None = None, until: datetime | None = None) -> Digest:
        """What people said in the last seven days, or in this time, beside the time before it, in short."""

    def dictionary(self) -> list[ExportTable]:
        """What can be exported: each table with its columns, their types and what they mean."""

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
        """Rows of a table of the `dictionary`, in the order in which they came. Times are texts in ISO 8601, in UTC.

        With a dataset, a page may have fewer rows than `limit`, and there are more as long as it has a cursor.
        """

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
        """Writes a table to a file where the caller is, as `csv`, `jsonl` or `parquet`, by its name if left out.

        It is there when it is whole. Instead of a name, it may be something that bytes can be written to. In CSV, texts
        that a spreadsheet would take for a formula get a leading apostrophe.
        """
