"""Satisfaction by a value, over time, and of recalls: is one variant better, and is that known by now?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import date, timedelta
from itertools import combinations
from typing import Any

from heedful.clock import DAY
from heedful.errors import no_dataset
from heedful.insight.counting import DERIVED, MAX_VALUES, Counting, decode_tag, too_many
from heedful.memory import checks
from heedful.memory.stats import MAX_RANKED, fact_stats
from heedful.memory.workspace import Workspace
from heedful.model import (
    Comparison,
    ContextScore,
    Facet,
    MixedFact,
    OpinionTarget,
    Over,
    RankedFact,
    Satisfaction,
    Stopping,
    Trend,
    TrendLine,
    TrendPoint,
    UsefulnessReport,
    Variant,
)
from heedful.statistics.rates import probability_best, probability_better, wilson
from heedful.statistics.stopping import stopping
from heedful.storage import facts, insight, scopes
from heedful.storage.insight import BINS
from heedful.storage.rows import AnyRow
from heedful.storage.tallies import TallyCounts, TallyQuery

DEFAULT_FACETS: tuple[Facet, ...] = ("dataset", "model")
"""What opinions have that somebody has chosen."""

NO_COUNTS = TallyCounts(None, None, 0, 0, 0, 0, 0, 0, 0)


def satisfaction(
    counting: Counting,
    by: str,
    since: int | None,
    until: int | None,
    dataset: str | None,
    target_types: tuple[OpinionTarget, ...],
) -> Satisfaction:
    """The opinions under each value, with intervals, and how sure it is which is best."""
    facet, key = counting.grouping(by)
    query = TallyQuery(facet, key, None, since, until, dataset, target_types, DERIVED)
    if key is not None:
        values = counting.values(key)
        counts_by_value = {line.value: line for line in counting.counts(query)} if values else {}
        variants = [
            variant(decode_tag(value), counts_by_value.get(value, NO_COUNTS), sessions)
            for value, sessions in values.items()
        ]
    else:
        lines = [line for line in counting.counts(query) if line.up or line.down or line.neutral]
        if len(lines) > MAX_VALUES:
            raise too_many(by, len(lines))
        variants = [variant(line.value or None, line) for line in lines]
    variants.sort(key=lambda each: (-_size(each), str(each.value)))
    rated = [each for each in variants if each.up + each.down and _is_comparable(each, facet)]
    ups_and_downs = [(each.up, each.down) for each in rated]
    best = dict(zip(map(id, rated), probability_best(ups_and_downs), strict=True))
    return Satisfaction(
        by=by if facet else str(key),
        variants=[each.model_copy(update={"probability_best": best.get(id(each))}) for each in variants],
        comparisons=[_comparison(one, other) for one, other in combinations(rated, 2)],
        stopping=_stopping(rated, ups_and_downs),
    )


def variant(value: Any, line: TallyCounts, sessions: int | None = None) -> Variant:
    """Counts with their share and its interval."""
    trials = line.up + line.down
    low, high = wilson(line.up, trials) if trials else (None, None)
    return Variant(
        value=value,
        sessions=sessions,
        up=line.up,
        down=line.down,
        neutral=line.neutral,
        satisfaction=line.up / trials if trials else None,
        low=low,
        high=high,
        mean_score=line.score_sum / line.scores if line.scores else None,
        probability_best=None,
    )


def _is_comparable(each: Variant, facet: Facet | None) -> bool:
    """Whether it is one of several that could be chosen. What has no model or dataset is something else, and nobody
    chooses who speaks, or of what."""
    return facet is None or (facet in DEFAULT_FACETS and each.value is not None)


def _size(each: Variant) -> int:
    return each.up + each.down + each.neutral if each.sessions is None else each.sessions


def _comparison(one: Variant, other: Variant) -> Comparison:
    chance = probability_better((one.up, one.down), (other.up, other.down))
    if chance >= 0.5:
        return Comparison(better=one.value, than=other.value, probability=chance)
    return Comparison(better=other.value, than=one.value, probability=1.0 - chance)


def _stopping(rated: Sequence[Variant], counts: Sequence[tuple[int, int]]) -> Stopping | None:
    if len(rated) < 2:
        return None
    decision = stopping(counts, names=[str(each.value) for each in rated])
    return Stopping(
        decided=decision.decided,
        best=rated[decision.best].value,
        expected_loss=decision.expected_loss,
        needed=decision.needed,
        reason=decision.reason,
    )


EPOCH = date(1970, 1, 1)
STEPS: dict[Over, int] = {"day": 1, "week": 7}
LEADING_DAYS = 364
"""Days without opinions that are shown before the first one, in whole weeks."""


def trend(
    counting: Counting,
    over: Over,
    by: str | None,
    since: int | None,
    until: int | None,
    now: int,
    dataset: str | None,
    target_types: tuple[OpinionTarget, ...],
) -> Trend:
    """A line for each value, with a point for each bucket, also where nothing was said."""
    facet, key = (None, None) if by is None else counting.grouping(by)
    if key is not None:
        counting.values(key)
    query = TallyQuery(facet, key, over, since, until, dataset, target_types, DERIVED)
    lines: dict[str | None, dict[int, TallyCounts]] = defaultdict(dict)
    for each in counting.counts(query):
        if each.up or each.down or each.neutral:
            assert each.start is not None
            lines[each.value][each.start] = each
    if by is not None and len(lines) > MAX_VALUES:
        raise too_many(by, len(lines))
    starts = _period_starts(lines, over, since, (until - 1 if until is not None else now) // DAY)
    ordered = sorted(lines.items(), key=lambda line: (-sum(map(_opinions, line[1].values())), str(line[0])))
    if by is None and not ordered:
        ordered = [(None, {})]
    return Trend(
        over=over,
        by=by if facet or by is None else key,
        lines=[
            TrendLine(value=_value(value, key), points=[_point(start, line.get(start, NO_COUNTS)) for start in starts])
            for value, line in ordered
        ],
        total=_total(lines),
    )


def day(number: int) -> date:
    """The date of a day by its number."""
    return EPOCH + timedelta(days=number)


def _period_starts(
    lines: dict[str | None, dict[int, TallyCounts]], over: Over, since: int | None, last: int
) -> list[int]:
    """The first days of all buckets, from what was asked, or from the first with an opinion, to the last."""
    starts = [start for line in lines.values() for start in line]
    if not starts:
        return []
    first = min(starts)
    if since is not None:
        first_day = since // DAY
        first_day = first_day if over == "day" else (first_day + 3) // 7 * 7 - 3
        # Nobody wants to see the years before the first opinion.
        first = min(first, max(first_day, first - LEADING_DAYS))
    return list(range(first, max(last, *starts) + 1, STEPS[over]))


def _total(lines: dict[str | None, dict[int, TallyCounts]]) -> Variant:
    every = [each for line in lines.values() for each in line.values()]
    sums = [sum(values) for values in zip(*(each[2:] for each in every), strict=True)] or NO_COUNTS[2:]
    return variant(None, TallyCounts(None, None, *sums))


def _opinions(line: TallyCounts) -> int:
    return line.up + line.down + line.neutral


def _value(value: str | None, key: str | None) -> Any:
    return decode_tag(value) if key is not None and value is not None else value or None


def _point(start: int, line: TallyCounts) -> TrendPoint:
    summary = variant(None, line)
    return TrendPoint(
        start=day(start),
        up=summary.up,
        down=summary.down,
        neutral=summary.neutral,
        satisfaction=summary.satisfaction,
        low=summary.low,
        high=summary.high,
        mean_score=summary.mean_score,
    )


HELPFUL_FROM, HARMFUL_TO = 0.6, 0.4
"""From where a fact helps in a context, and up to where it hurts."""


def usefulness(workspace: Workspace, dataset: str) -> UsefulnessReport:
    """All of it, added up by the database."""
    checks.name("dataset", dataset)
    now = workspace.now()
    with workspace.read() as connection:
        number = workspace.dataset(connection, dataset)
        names = list(scopes.dataset_names(connection, workspace.project).values())
        if number is None and names:
            raise no_dataset(workspace.project, dataset, names)
        if number is None:
            return _empty(dataset)
        bins, rated, mean, signals = insight.usefulness(connection, number, now)
        best = insight.ranked(connection, number, now, MAX_RANKED, best=True)
        worst = insight.ranked(connection, number, now, MAX_RANKED, best=False)
        divided = insight.mixed(connection, number, now, HARMFUL_TO, HELPFUL_FROM, MAX_RANKED * 2)
        total = facts.count(connection, number, now)
    return UsefulnessReport(
        dataset=dataset,
        total_facts=total,
        facts_with_signals=rated,
        total_signals=signals,
        average_overall_usefulness=mean if rated else None,
        distribution=_distribution(bins),
        most_useful=[_ranked(row) for row in best],
        least_useful=[_ranked(row) for row in worst],
        mixed=[mixed_fact for candidate in divided if (mixed_fact := _mixed(workspace, candidate)) is not None][
            :MAX_RANKED
        ],
    )


def _mixed(workspace: Workspace, fact_id: str) -> MixedFact | None:
    """A fact that was divided by its queries, if it is by its contexts, too."""
    stats = fact_stats(workspace, fact_id)
    ordered: list[ContextScore] = sorted(stats.contexts, key=lambda context: context.score)
    if len(ordered) < 2 or ordered[0].score > HARMFUL_TO or ordered[-1].score < HELPFUL_FROM:
        return None
    return MixedFact(
        fact_id=fact_id,
        text=stats.text,
        overall_usefulness=stats.overall_usefulness,
        helps=ordered[-1],
        hurts=ordered[0],
    )


def _ranked(row: AnyRow) -> RankedFact:
    return RankedFact(fact_id=row.id, text=row.text, overall_usefulness=row.score, signal_count=row.signals)


def _distribution(bins: dict[int, int]) -> dict[str, int]:
    return {f"{index / BINS:.1f}-{(index + 1) / BINS:.1f}": bins.get(index, 0) for index in range(BINS)}


def _empty(dataset: str) -> UsefulnessReport:
    return UsefulnessReport(
        dataset=dataset,
        total_facts=0,
        facts_with_signals=0,
        total_signals=0,
        average_overall_usefulness=None,
        distribution=_distribution({}),
        most_useful=[],
        least_useful=[],
        mixed=[],
    )
