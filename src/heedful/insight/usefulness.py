"""How useful the facts of a dataset are: the distribution, both ends, and those that divide opinion."""

from __future__ import annotations

from heedful.errors import no_dataset
from heedful.memory import checks
from heedful.memory.stats import LISTED, fact_stats
from heedful.memory.workspace import Workspace
from heedful.model import ContextScore, MixedFact, RankedFact, UsefulnessReport
from heedful.storage import facts, insight, scopes
from heedful.storage.insight import BINS
from heedful.storage.rows import AnyRow

HELPS, HURTS = 0.6, 0.4
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
        best = insight.ranked(connection, number, now, LISTED, best=True)
        worst = insight.ranked(connection, number, now, LISTED, best=False)
        divided = insight.mixed(connection, number, now, HURTS, HELPS, LISTED * 2)
        total = facts.count(connection, number, now)
    return UsefulnessReport(
        dataset=dataset,
        total_facts=total,
        facts_with_signals=rated,
        total_signals=signals,
        average_score=mean if rated else None,
        distribution=_distribution(bins),
        most_useful=[_ranked(row) for row in best],
        least_useful=[_ranked(row) for row in worst],
        mixed=[found for each in divided if (found := _mixed(workspace, each)) is not None][:LISTED],
    )


def _mixed(workspace: Workspace, fact_id: str) -> MixedFact | None:
    """A fact that was divided by its queries, if it is by its contexts, too."""
    stats = fact_stats(workspace, fact_id)
    ordered: list[ContextScore] = sorted(stats.contexts, key=lambda context: context.score)
    if len(ordered) < 2 or ordered[0].score > HURTS or ordered[-1].score < HELPS:
        return None
    return MixedFact(fact_id=fact_id, text=stats.text, score=stats.score, helps=ordered[-1], hurts=ordered[0])


def _ranked(row: AnyRow) -> RankedFact:
    return RankedFact(fact_id=row.id, text=row.text, score=row.score, signal_count=row.signals)


def _distribution(bins: dict[int, int]) -> dict[str, int]:
    return {f"{place / BINS:.1f}-{(place + 1) / BINS:.1f}": bins.get(place, 0) for place in range(BINS)}


def _empty(dataset: str) -> UsefulnessReport:
    return UsefulnessReport(
        dataset=dataset,
        total_facts=0,
        facts_with_signals=0,
        total_signals=0,
        average_score=None,
        distribution=_distribution({}),
        most_useful=[],
        least_useful=[],
        mixed=[],
    )
