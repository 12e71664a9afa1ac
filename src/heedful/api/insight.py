"""`.insight`: what people said, added up."""

from __future__ import annotations

from typing import Annotated, Any

from heedful import model as m
from heedful.api import parameters as t
from heedful.api.calls import Namespace, call


class Insight(Namespace, name="insight"):
    """Reports over the active opinions of one project. The database adds them up; days are days in UTC."""

    @call("GET", "/insight/satisfaction")
    def satisfaction(
        self,
        by: Annotated[
            t.ReportKey,
            t.Means(
                "A key of the sessions' metadata, dotted or not; or `dataset`, `model`, `source`, "
                "`author_kind`, `target_type`."
            ),
        ],
        *,
        since: t.SaidSince | None = None,
        until: t.SaidUntil | None = None,
        dataset: t.AnsweredFrom | None = None,
        target_type: t.ReportTarget | None = None,
    ) -> m.Satisfaction:
        """Satisfaction by a key of the sessions' metadata, such as `variant`, or by `dataset`, `model`, `source`,
        `author_kind` or `target_type`; `metadata.model` is the key of that name.

        Counts up, down and neutral opinions about sessions, answers, messages and executions (of answers, 4 and 5 are
        up, 1 and 2 are down), each share with its 95% interval, the probability that one value is better than another,
        and whether that is known well enough to stop. With `target_type`, only opinions about such things; of a `fact`,
        `helpful` is up and `not_helpful` is down.
        """

    @call("GET", "/insight/trend")
    def trend(
        self,
        *,
        over: t.TimeStep = "day",
        by: Annotated[
            t.ReportKey | None, t.Means("Draw a line for each value of this key, as in `satisfaction`.")
        ] = None,
        since: t.SaidSince | None = None,
        until: t.SaidUntil | None = None,
        dataset: t.AnsweredFrom | None = None,
        target_type: t.ReportTarget | None = None,
    ) -> m.Trend:
        """Satisfaction over time, by day or week, with intervals and counts; `by` and `target_type` as in
        `satisfaction`."""

    @call("GET", "/insight/coverage")
    def coverage(
        self,
        *,
        since: Annotated[t.Moment | None, t.Means("Only facts shown from this day on.")] = None,
        until: Annotated[t.Moment | None, t.Means("Only facts shown before the end of this day.")] = None,
        dataset: Annotated[t.DatasetName | None, t.Means("Only facts of this dataset.")] = None,
    ) -> m.Coverage:
        """How much of what was shown in this time was rated until now: answers, executions and recalls."""

    @call("GET", "/insight/cache")
    def cache(
        self,
        *,
        since: Annotated[t.Moment | None, t.Means("Only decisions from this time on.")] = None,
        until: Annotated[t.Moment | None, t.Means("Only decisions before this time.")] = None,
        limit: Annotated[t.Limit, t.Means("How many of the newest decisions to list.")] = 20,
    ) -> m.CacheReport:
        """Counts the decisions of the execution cache by reason, and lists the newest."""

    @call("GET", "/insight/themes", slow=True)
    def themes(
        self,
        *,
        since: t.SaidSince | None = None,
        until: t.SaidUntil | None = None,
        dataset: t.AnsweredFrom | None = None,
    ) -> m.Themes:
        """Groups negative comments that mean the same, under their own words. No language model is
        needed. The newest 500 are read."""

    @call("GET", "/insight/notes", slow=True)
    def notes(
        self,
        *,
        since: Annotated[t.Moment | None, t.Means("The start; four weeks ago if left out.")] = None,
        until: t.SaidUntil | None = None,
        dataset: t.AnsweredFrom | None = None,
        by: Annotated[
            t.ReportKey | None, t.Means("Also compare by this key of the sessions' metadata, with up to 50 values.")
        ] = None,
    ) -> list[m.Note]:
        """Lists changes in the last four weeks, or since a time, that chance does not explain, with the arithmetic.

        Down-votes are looked at in all, by dataset, by model, by what they are about, by the themes of comments, and by
        keys of the sessions' metadata: those that have up to 20 values (the five with the fewest, because whatever is
        looked at makes a change harder to distinguish from chance), and the one that `by` names. A change of policy
        after which ratings got worse comes first, with its event.
        """

    @call("GET", "/insight/digest", slow=True)
    def digest(
        self,
        *,
        since: Annotated[t.Moment | None, t.Means("The start; seven days before the end if left out.")] = None,
        until: Annotated[
            t.Moment | None, t.Means("The end; now if left out, or the end of today without a start.")
        ] = None,
    ) -> m.Digest:
        """Summarizes the feedback of the last seven days, or of a period, compared with the period before."""

    @call("GET", "/insight/dictionary")
    def dictionary(self) -> list[m.ExportTable]:
        """Lists the tables that can be exported, with the types and meanings of their columns."""

    @call("GET", "/insight/rows", slow=True)
    def rows(
        self,
        table: t.ReportTable,
        *,
        since: t.RowsSince | None = None,
        until: t.RowsUntil | None = None,
        dataset: t.RowsDataset | None = None,
        cursor: Annotated[
            t.Cursor | None,
            t.Means("The `next_cursor` of the previous page.", {"pattern": r"^[ab]\.[0-9a-f.-]{0,100}$"}),
        ] = None,
        limit: t.Limit = 1000,
    ) -> m.Page[dict[str, Any]]:
        """Rows of a table of the `dictionary`, in the order in which they came. Times are texts in ISO 8601, in UTC.

        With a dataset, a page may have fewer rows than `limit`, and there are more as long as it has a cursor.
        """

    @call("LOCAL")
    def export(
        self,
        table: t.ReportTable,
        path: Annotated[t.Output, t.Means("The file to write, or an object with a `write` method for bytes.")],
        *,
        format: Annotated[
            m.ExportFormat | None, t.Means("`csv`, `jsonl` or `parquet`; decided by the file's name if left out.")
        ] = None,
        since: t.RowsSince | None = None,
        until: t.RowsUntil | None = None,
        dataset: t.RowsDataset | None = None,
        overwrite: Annotated[bool, t.Means("Replace an existing file.")] = False,
    ) -> m.ExportResult:
        """Writes a table to a file where the caller is, as `csv`, `jsonl` or `parquet`, by its name if left out.

        It is there when it is whole. Instead of a name, it may be something that bytes can be written to. In CSV, texts
        that a spreadsheet would take for a formula get a leading apostrophe.
        """

    @call("GET", "/insight/training", slow=True)
    def training(
        self,
        format: t.TrainingLines,
        *,
        dataset: t.RatedDataset | None = None,
        where: t.TrainingWhere | None = None,
        since: t.RatedSince | None = None,
        until: t.RatedUntil | None = None,
        visitors: t.WithVisitors = False,
        test_share: t.TestShare = 0.1,
        split: t.OnlySplit | None = None,
        cursor: Annotated[
            t.Cursor | None,
            t.Means("The `next_cursor` of the previous page.", {"pattern": r"^[0-9a-f]{16}\.[0-9]{1,18}$"}),
        ] = None,
        limit: t.Limit = 1000,
    ) -> m.TrainingPage:
        """Lines of training data, made from what people rated: for `kto`, `dpo`, `sft`, `triplets` (embedding models
        and rerankers), `text2sql` or `evals`.

        Each author has one vote about the same words; the larger side decides, and `agreement` is its share. Opinions
        that were retracted don't count, nor do those of erased people. What rests on superseded or forgotten facts is
        not taught as right. All phrasings of one need are on one side of the split. The same ledger gives the same
        lines; if ratings change between two pages, the second is refused.
        """

    @call("LOCAL")
    def export_training(
        self,
        path: Annotated[t.Output, t.Means("The file to write, or an object with a `write` method for bytes.")],
        format: t.TrainingLines,
        *,
        dataset: t.RatedDataset | None = None,
        where: t.TrainingWhere | None = None,
        since: t.RatedSince | None = None,
        until: t.RatedUntil | None = None,
        visitors: t.WithVisitors = False,
        test_share: t.TestShare = 0.1,
        split: t.OnlySplit | None = None,
        overwrite: Annotated[bool, t.Means("Replace existing files.")] = False,
        progress: Annotated[t.Progress | None, t.Means("Called with (done, total) during long work.")] = None,
    ) -> m.TrainingExport:
        """Writes training data to a file where the caller is, as lines of JSON, with a card beside it (`FILE.md`) that
        says how they were made; see `training`.

        Both are there when they are whole. Instead of a name, it may be something that bytes can be written to.
        """
