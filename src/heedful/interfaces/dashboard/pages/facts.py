"""Facts: what is known, how useful it was, and correcting it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Literal, cast

from starlette.responses import HTMLResponse, Response

from heedful.clock import to_stored
from heedful.engine import project_of
from heedful.errors import Invalid
from heedful.interfaces.charts import Marker, Point, Series, histogram, line_chart
from heedful.interfaces.dashboard import rendering, views
from heedful.interfaces.dashboard.context import PageContext
from heedful.interfaces.dashboard.registry import Action, ActionResult, Page, Undo
from heedful.model import DEFAULT_DATASET, Fact, FactHistory, Recall, Signal, SignalType
from heedful.model import Page as Part
from heedful.ranking.signals import NEUTRAL, decayed

PAGE_SIZE = 50
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


def list_page(here: PageContext) -> Response:
    """The facts of a dataset, or those that a query finds."""
    datasets = here.heedful.datasets()
    dataset = here.choice("dataset", datasets) or (datasets[0] if datasets else DEFAULT_DATASET)
    typed, boost = here.query.get("q", "").strip(), here.query.get("boost") == "1"
    problem: str | None = None
    recall: Recall | None = None
    page: Part[Fact] = Part(items=[], next_cursor=None)
    try:
        if typed:
            recall = views.search(here.heedful, typed, dataset, boost=boost)
        else:
            cursor = here.query.get("cursor")
            page = here.heedful.facts(dataset=dataset, cursor=cursor, limit=PAGE_SIZE, newest_first=True)
    except Invalid as error:
        problem = rendering.full_text(error)
    return here.html(
        "facts.html",
        status=422 if problem else 200,
        datasets=datasets,
        dataset=dataset,
        typed=typed,
        boost=boost,
        problem=problem,
        recall=recall,
        page=page,
    )


def usefulness_page(here: PageContext) -> Response:
    """How the scores of a dataset are spread, and the facts at both ends."""
    dataset = here.choice("dataset", here.heedful.datasets()) or DEFAULT_DATASET
    stats = here.heedful.insight.usefulness(dataset)
    drawn = histogram(
        stats.distribution,
        title=f"Facts by usefulness in {dataset}",
        desc=f"{stats.facts_with_signals} of {stats.total_facts} facts have signals",
        height=200,
    )
    values: dict[str, Any] = {"stats": stats, "drawn": drawn, "dataset": dataset}
    if "x-fragment" in here.request.headers:
        return HTMLResponse(here.fragment("usefulness_part.html", **values))
    return here.html("usefulness.html", **values)


def detail_page(here: PageContext) -> Response:
    """One fact."""
    fact_id = here.path["fact_id"]
    history = here.heedful.fact_history(fact_id)
    related = [each.fact_id for each in (history.supersedes,) if each is not None]
    related += [each.superseded_by for each in (history.superseded_by,) if each is not None]
    return here.html(
        "fact.html",
        fact=here.heedful.fact(fact_id),
        stats=here.heedful.fact_stats(fact_id),
        history=history,
        recent=history.points[: -RECENT - 1 : -1],
        earlier=history.points[-RECENT - 1 :: -1] if len(history.points) > RECENT else [],
        drawn=_score_chart(history, here.site.store.clock()),
        texts=views.texts(here.heedful, related),
    )


def _score_chart(history: FactHistory, now: datetime) -> str:
    """The score over time: a step at each signal that the history lists, and fading between them."""
    is_whole = history.event_count == len(history.points)
    points = [Point(history.created_at, NEUTRAL)] if is_whole else []
    ends = [point.at for point in history.points[1:]] + [max([now, *(point.at for point in history.points)])]
    if is_whole and history.points and history.points[0].at > history.created_at:
        points.append(Point(history.points[0].at, NEUTRAL))
    for point, end in zip(history.points, ends, strict=False):
        for step in range(STEPS + 1):
            at = point.at + (end - point.at) * step / STEPS
            points.append(Point(at, decayed(point.overall_usefulness, to_stored(at) - to_stored(point.at))))
    if not history.points:
        points.append(Point(max(now, history.created_at + timedelta(hours=1)), NEUTRAL))
    markers = [
        Marker(
            point.at,
            f"{_words(point.signal_type)} for “{point.query[:60]}”, {point.author or 'no name'}: "
            f"{point.overall_usefulness:.2f}",
            y=point.overall_usefulness,
            kind=SHAPES[point.signal_type],
        )
        for point in history.points
    ]
    return line_chart(
        [Series("usefulness", points, dots=False)],
        title="Usefulness over time",
        desc=f"{history.event_count} signals; now {history.overall_usefulness:.2f}",
        markers=markers,
        least=0.0,
        most=1.0,
    )


def supersede(here: PageContext) -> ActionResult:
    """Replaces a fact with a new text."""
    fact_id, text = here.field("fact_id"), here.field("text")
    result = here.heedful.supersede(fact_id, text, author=here.author)
    undo = Undo("retract", {"event_id": result.event_id}, here.at("facts", fact_id))
    return ActionResult(
        "The fact was corrected. This is what is recalled from now on.", here.at("facts", result.superseded_by), undo
    )


def retract(here: PageContext) -> ActionResult:
    """Retracts an opinion or a supersession."""
    event_id = here.field("event_id")
    here.visitor.caller.check(project_of(here.heedful).scope_to_retract(event_id))
    here.heedful.retract(event_id, author=here.author)
    again = {name: here.form[name] for name in SIGNAL if name in here.form}
    undo = Undo("signal", again) if len(again) == len(SIGNAL) else None
    return ActionResult("It was retracted, as if it had never been said.", undo=undo)


def signal(here: PageContext) -> ActionResult:
    """Repeats what was retracted, as it was said then."""
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
"""What a signal says, to say it again."""


def _words(signal_type: str) -> str:
    return signal_type.replace("_", " ")


PAGES = (
    Page("/facts", list_page),
    Page("/facts/usefulness", usefulness_page),
    Page("/facts/{fact_id}", detail_page),
)
ACTIONS = (
    Action("supersede", "supersede", "correct a fact", supersede, ("text",)),
    Action("retract", "retract", "retract an opinion", retract),
    Action("signal", "signal", "give an opinion back", signal),
)
