"""Executions: the SQL that ran, whether it was right, and what the cache made of it."""

from __future__ import annotations

from starlette.responses import Response

from heedful.errors import HeedfulError, Invalid, NotFound
from heedful.interfaces import reason_labels
from heedful.interfaces.dashboard import views
from heedful.interfaces.dashboard.site import EMPTY, PAGE_SIZE, Action, ActionResult, PageContext, PageRoute, Undo
from heedful.model import Execution, ExecutionFeedback, Page

MAX_ROWS = 50


def list_page(here: PageContext) -> Response:
    connector, executions = here.query.get("connector") or None, here.heedful.executions
    page: Page[Execution] = here.attempt(
        lambda: executions.list(connector_id=connector, **here.paging), EMPTY, (Invalid, NotFound)
    )
    return here.html(
        "executions.html",
        page=page,
        opinions=views.feedback(here.heedful, [execution.execution_id for execution in page.items]),
        connector=connector,
        connected=bool(page.items) or bool(here.heedful.connectors.list()),
    )


def cache_page(here: PageContext) -> Response:
    days = here.range(30)
    report = here.heedful.insight.cache(since=days.start, until=days.end, limit=PAGE_SIZE)
    rows = [
        (
            f"{_decision_label(row.decision)}: {reason_labels.label(row.gate)}",
            row.share,
            f"{row.count:,} ({row.share:.0%})",
        )
        for row in report.counts
    ]
    return here.html("cache.html", range=days, report=report, rows=rows, decided=_decision_label)


def coverage_page(here: PageContext) -> Response:
    """The coverage of a connector: questions that are proven, refused, and worth proving next."""
    connectors = here.heedful.connectors.list()
    connector_id = here.query.get("connector") or (connectors[0].connector_id if connectors else None)
    find, coverage = here.heedful.chat.execution_cache_coverage, None
    if connector_id is not None:
        coverage = here.attempt(lambda: find(connector_id=connector_id, limit=PAGE_SIZE), None, HeedfulError)
    return here.html(
        "coverage.html", coverage=coverage, connectors=connectors, connector_id=connector_id, reason=reason_labels.label
    )


def detail_page(here: PageContext) -> Response:
    execution = here.heedful.executions.get(here.path["execution_id"])
    opinions = views.feedback(here.heedful, [execution.execution_id])[execution.execution_id]
    return here.html(
        "execution.html",
        execution=execution,
        opinions=opinions,
        own_opinion=_own_opinion(here, opinions),
        proven=bool(opinions) and all(opinion.is_positive for opinion in opinions),
        example=views.example(here.heedful, execution.connector_id, execution.execution_id),
        rows=execution.result.rows[:MAX_ROWS],
    )


def rate(here: PageContext) -> ActionResult:
    """Says whether an execution was right; undoing brings back what the same person said before."""
    execution_id, rating = here.field("execution_id"), here.field("rating")
    if rating not in ("right", "wrong"):
        raise Invalid("the rating is missing", field="rating", value=rating, remedy="Choose right or wrong")
    before = _own_opinion(here, views.feedback(here.heedful, [execution_id])[execution_id])
    right, comment = rating == "right", here.optional("comment")
    feedback = here.heedful.feedback.create(
        execution_id=execution_id, is_positive=right, feedback=comment, author=here.author
    )
    effect = {"right": "it may be used again", "wrong": "it is blocked"}[rating]
    undo = Undo("unrate_execution", {"feedback_id": feedback.id}) if before is None else _undo(before)
    return ActionResult(f"You said that it is {rating}: {effect}.", undo=undo)


def unrate(here: PageContext) -> ActionResult:
    feedback = here.heedful.feedback.get(here.field("feedback_id"))
    here.heedful.retract(feedback.id, author=here.author)
    own = feedback.execution_id and feedback.author == here.author
    return ActionResult("It was retracted, as if it had never been said.", undo=_undo(feedback) if own else None)


def confirm(here: PageContext) -> ActionResult:
    """Says that a suggestion is what a question means."""
    result = here.heedful.chat.confirm_suggestion(
        here.field("question"), here.field("execution_id"), connector_id=here.field("connector_id"), author=here.author
    )
    opinions = views.feedback(here.heedful, [result.execution_id])[result.execution_id]
    undo = Undo("unrate_execution", {"feedback_id": opinions[-1].id})
    return ActionResult("It is proven for this question now.", undo=undo)


def promote(here: PageContext) -> ActionResult:
    example = here.heedful.golden_examples.promote(here.field("execution_id"), question=here.optional("question"))
    return ActionResult("It is a golden example now.", undo=Undo("remove_example", {"example_id": example.id}))


def remove_example(here: PageContext) -> ActionResult:
    example = here.heedful.golden_examples.get(here.field("example_id"))
    here.heedful.golden_examples.delete(example.id)
    undo = None
    if example.execution_id is not None:
        undo = Undo("promote_execution", {"execution_id": example.execution_id, "question": example.question})
    return ActionResult("It is no longer a golden example.", undo=undo)


def _undo(feedback: ExecutionFeedback) -> Undo:
    """Gives the same feedback again."""
    rating = "right" if feedback.is_positive else "wrong"
    fields = {"execution_id": feedback.execution_id or "", "rating": rating, "comment": feedback.feedback or ""}
    return Undo("rate_execution", fields)


def _own_opinion(here: PageContext, opinions: list[ExecutionFeedback]) -> ExecutionFeedback | None:
    return next((opinion for opinion in opinions if opinion.author == here.author), None)


def _decision_label(decision: str) -> str:
    words = {"serve": "Served", "rebind": "Rebound", "refuse": "Refused", "nothing": "Nothing found"}
    return words.get(decision, decision)


PAGES = (
    PageRoute("/executions", list_page),
    PageRoute("/executions/cache", cache_page),
    PageRoute("/executions/coverage", coverage_page),
    PageRoute("/executions/{execution_id}", detail_page),
)
ACTIONS = (
    Action("rate_execution", "feedback.create", "say whether an execution is right", rate, ("comment",)),
    Action("unrate_execution", "feedback.delete", "retract your opinion", unrate),
    Action("confirm_suggestion", "chat.confirm_suggestion", "confirm what a question means", confirm),
    Action("promote_execution", "golden_examples.promote", "make a golden example", promote, ("question",)),
    Action("remove_example", "golden_examples.delete", "remove a golden example", remove_example),
)
