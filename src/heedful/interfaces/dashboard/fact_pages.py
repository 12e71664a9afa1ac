"""Facts and learning: how useful facts were, correcting it, and the ranks of a question with and without feedback."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, cast

from starlette.responses import Response

from heedful.clock import to_stored
from heedful.engine import Heedful, project_of
from heedful.errors import Invalid
from heedful.interfaces.charts import Marker, Point, Series, histogram, line_chart
from heedful.interfaces.dashboard import views
from heedful.interfaces.dashboard.site import EMPTY, Action, ActionResult, PageContext, PageRoute, Undo
from heedful.ledger.usefulness import decayed
from heedful.model import DEFAULT_DATASET, Fact, FactHistory, Hit, Page, Recall, Signal, SignalType
from heedful.model.base import NEUTRAL
from heedful.text import counted

RECENT = 20
"""Signals of a fact that are shown at once."""

SHAPES: dict[SignalType, Literal["up", "down", "neutral"]] = {
    "helpful": "up",
    "used": "up",
    "not_helpful": "down",
    "ignored": "neutral",
}
STEPS = 8
"""Points between two signals, where the score fades."""


def facts_page(here: PageContext) -> Response:
    """The facts of a dataset, or those that a query finds."""
    datasets, dataset = here.dataset()
    typed, unrated = here.query.get("q", "").strip(), here.query.get("unrated") == "1"
    recall: Recall | None = None
    page: Page[Fact] = EMPTY
    if typed:
        recall = here.attempt(lambda: views.search(here.heedful, typed, dataset, boost=not unrated), None)
    else:
        page = here.attempt(lambda: here.heedful.facts(dataset=dataset, newest_first=True, **here.paging), EMPTY)
    return here.html(
        "facts.html", datasets=datasets, dataset=dataset, typed=typed, unrated=unrated, recall=recall, page=page
    )


def usefulness_page(here: PageContext) -> Response:
    """The distribution of the scores of a dataset, and the facts at both ends."""
    dataset = here.choice("dataset", here.heedful.datasets()) or DEFAULT_DATASET
    stats = here.heedful.usefulness_stats(dataset)
    drawn = histogram(
        stats.distribution,
        title=f"Facts by usefulness in {dataset}",
        desc=f"{stats.facts_with_signals:,} of {counted(stats.total_facts, 'fact')} with signals",
        height=200,
    )
    part = "x-fragment" in here.request.headers
    return here.html("usefulness_part.html" if part else "usefulness.html", stats=stats, drawn=drawn, dataset=dataset)


def fact_page(here: PageContext) -> Response:
    fact_id = here.path["fact_id"]
    history = here.heedful.fact_history(fact_id)
    related = [history.supersedes.fact_id] if history.supersedes else []
    related += [history.superseded_by.superseded_by] if history.superseded_by else []
    newest = history.points[::-1]
    return here.html(
        "fact.html",
        fact=here.heedful.fact(fact_id),
        stats=here.heedful.fact_stats(fact_id),
        history=history,
        recent=newest[:RECENT],
        earlier=newest[RECENT:],
        drawn=_score_chart(history, here.site.store.clock()),
        texts=views.texts(here.heedful, related),
    )


def _score_chart(history: FactHistory, now: datetime) -> str:
    """The score over time: a step at each signal that the history lists, and fading between them."""
    is_whole = history.event_count == len(history.points)
    points = [Point(history.created_at, NEUTRAL)] if is_whole else []
    times = [point.at for point in history.points]
    ends = [*times[1:], max([now, *times])]
    if is_whole and times and times[0] > history.created_at:
        points.append(Point(times[0], NEUTRAL))
    for point, end in zip(history.points, ends, strict=False):
        for step in range(STEPS + 1):
            at = point.at + (end - point.at) * step / STEPS
            points.append(Point(at, decayed(point.overall_usefulness, to_stored(at) - to_stored(point.at))))
    if not history.points:
        points.append(Point(max(now, history.created_at + timedelta(hours=1)), NEUTRAL))
    markers = [
        Marker(
            point.at,
            f"{point.signal_type.replace('_', ' ')} for “{point.query[:60]}”, {point.author or 'no name'}: "
            f"{point.overall_usefulness:.2f}",
            y=point.overall_usefulness,
            kind=SHAPES[point.signal_type],
        )
        for point in history.points
    ]
    return line_chart(
        [Series("usefulness", points, dots=False)],
        title="Usefulness over time",
        desc=f"{counted(history.event_count, 'signal')}; now {history.overall_usefulness:.2f}",
        markers=markers,
        least=0.0,
        most=1.0,
    )


def supersede(here: PageContext) -> ActionResult:
    fact_id, text = here.field("fact_id"), here.field("text")
    result = here.heedful.supersede(fact_id, text, author=here.author)
    undo = Undo("retract", {"event_id": result.event_id}, here.at("facts", fact_id))
    return ActionResult(
        "The fact was corrected. This is what is recalled from now on.", here.at("facts", result.superseded_by), undo
    )


def retract(here: PageContext) -> ActionResult:
    event_id = here.field("event_id")
    here.visitor.caller.check(project_of(here.heedful).scope_to_retract(event_id))
    here.heedful.retract(event_id, author=here.author)
    again = {name: here.form[name] for name in SIGNAL if name in here.form}
    undo = Undo("signal", again) if len(again) == len(SIGNAL) else None
    return ActionResult("It was retracted, as if it had never been said.", undo=undo)


def signal(here: PageContext) -> ActionResult:
    """Repeats a signal that was retracted, as it was given then."""
    try:
        confidence, at = float(here.field("confidence")), datetime.fromisoformat(here.field("at"))
    except ValueError:
        raise Invalid("confidence or at can't be read", field="confidence") from None
    here.heedful.signal(
        Signal(
            fact_id=here.field("fact_id"),
            signal_type=cast(SignalType, here.field("signal_type")),
            query=here.field("query"),
            confidence=confidence,
            at=at,
            author=here.form.get("author") or None,
        )
    )
    return ActionResult("It counts again.")


SIGNAL = ("fact_id", "signal_type", "query", "confidence", "at", "author")
"""The fields of a signal, to give it again."""


SUGGESTED = 8
"""Questions that are offered to those who have none."""


@dataclass(frozen=True, slots=True)
class RankedFact:
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


def learning_page(here: PageContext) -> Response:
    """The question, its ranks, and the opinions behind them."""
    datasets, dataset = here.dataset()
    typed = here.query.get("q", "").strip()

    def search(*, boost: bool) -> Recall:
        return views.search(here.heedful, typed, dataset, boost=boost, explain=boost)

    # Without feedback, the same questions are refused as with it.
    before = here.attempt(lambda: search(boost=False), None) if typed else None
    recall = None if before is None else search(boost=True)
    ranks = {} if before is None else {hit.fact_id: hit.rank for hit in before.hits}
    hits = [] if recall is None else recall.hits
    opinions = [(event, hit) for hit in hits if hit.explanation for event in hit.explanation.events]
    return here.html(
        "learning.html",
        datasets=datasets,
        dataset=dataset,
        typed=typed,
        recall=recall,
        rows=[RankedFact(hit, ranks.get(hit.fact_id)) for hit in hits],
        opinions=sorted(opinions, key=lambda opinion: opinion[0].at, reverse=True),
        suggestions=[] if typed else _rated_questions(here.heedful, dataset),
    )


def _rated_questions(heedful: Heedful, dataset: str) -> list[str]:
    """Rated questions, those with the most opinions first."""
    counts: dict[str, int] = {}
    for fact in heedful.usefulness_stats(dataset).most_useful:
        for context in heedful.fact_stats(fact.fact_id).contexts:
            counts[context.query] = counts.get(context.query, 0) + context.signal_count
    return sorted(counts, key=lambda query: -counts[query])[:SUGGESTED]


PAGES = (
    PageRoute("/facts", facts_page),
    PageRoute("/facts/usefulness", usefulness_page),
    PageRoute("/facts/{fact_id}", fact_page),
    PageRoute("/learning", learning_page),
)
ACTIONS = (
    Action("supersede", "supersede", "correct a fact", supersede, ("text",)),
    Action("retract", "retract", "retract an opinion", retract),
    Action("signal", "signal", "give an opinion back", signal),
)
