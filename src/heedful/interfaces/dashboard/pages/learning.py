"""How it learns: for one question, the opinions that count, and the ranks without and with them."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response

from heedful.engine import Heedful
from heedful.errors import Invalid
from heedful.interfaces.dashboard import rendering, views
from heedful.interfaces.dashboard.context import PageContext
from heedful.interfaces.dashboard.registry import Action, Page
from heedful.model import DEFAULT_DATASET, EventRef, Hit, Recall

SUGGESTED = 8
"""Questions that are offered to those who have none."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A fact, where it ranks now, and where it would without feedback."""

    hit: Hit
    before: int | None
    """None if it would not be among those that are shown."""

    @property
    def change(self) -> str:
        """By how many ranks feedback moved it, in words."""
        if self.before is None:
            return "joined"
        moved = self.before - self.hit.rank
        return f"up {moved}" if moved > 0 else f"down {-moved}" if moved < 0 else "stays"


def page(here: PageContext) -> Response:
    """The question, its ranks, and the opinions behind them."""
    datasets = here.heedful.datasets()
    dataset = here.choice("dataset", datasets) or (datasets[0] if datasets else DEFAULT_DATASET)
    typed = here.query.get("q", "").strip()
    problem: str | None = None
    recall: Recall | None = None
    rows: list[Ranked] = []
    try:
        if typed:
            before = views.search(here.heedful, typed, dataset, boost=False)
            recall = views.search(here.heedful, typed, dataset, boost=True, explain=True)
            ranks = {hit.fact_id: hit.rank for hit in before.hits}
            rows = [Ranked(hit, ranks.get(hit.fact_id)) for hit in recall.hits]
    except Invalid as error:
        problem = rendering.full_text(error)
    return here.html(
        "learning.html",
        status=422 if problem else 200,
        datasets=datasets,
        dataset=dataset,
        typed=typed,
        problem=problem,
        recall=recall,
        rows=rows,
        opinions=_opinions(rows),
        suggestions=[] if typed else _rated_questions(here.heedful, dataset),
    )


def _opinions(rows: list[Ranked]) -> list[tuple[EventRef, Hit]]:
    """The opinions behind the ranks, the newest first."""
    found = [(event, row.hit) for row in rows if row.hit.explanation for event in row.hit.explanation.events]
    return sorted(found, key=lambda each: each[0].at, reverse=True)


def _rated_questions(heedful: Heedful, dataset: str) -> list[str]:
    """Questions that much was said of, those with the most opinions first."""
    counts: dict[str, int] = {}
    for fact in heedful.usefulness_stats(dataset).most_useful:
        for context in heedful.fact_stats(fact.fact_id).contexts:
            counts[context.query] = counts.get(context.query, 0) + context.signal_count
    return sorted(counts, key=lambda query: -counts[query])[:SUGGESTED]


PAGES = (Page("/learning", page),)
ACTIONS: tuple[Action, ...] = ()
