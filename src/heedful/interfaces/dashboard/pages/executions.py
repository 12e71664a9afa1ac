"""Executions: the SQL that ran, whether it was right, and what the cache made of it."""

from __future__ import annotations

from starlette.responses import Response

from heedful.errors import HeedfulError, Invalid, NotFound
from heedful.interfaces import gates
from heedful.interfaces.dashboard import queue, rendering
from heedful.interfaces.dashboard.context import PageContext
from heedful.interfaces.dashboard.registry import Action, ActionResult, Page, Undo
from heedful.model import Execution, ExecutionFeedback
from heedful.model import Page as Part

PAGE_SIZE = 50
MAX_ROWS = 50
"""Rows of a result that are shown."""


def list_page(here: PageContext) -> Response:
    """What ran, the newest first."""
    problem: str | None = None
    page: Part[Execution] = Part(items=[], next_cursor=None)
    connector = here.query.get("connector") or None
    try:
        page = here.heedful.executions.list(connector_id=connector, cursor=here.query.get("cursor"), limit=PAGE_SIZE)
    except (Invalid, NotFound) as error:
        problem = rendering.full_text(error)
    return here.html(
        "executions.html",
        status=422 if problem else 200,
        page=page,
        opinions=queue.feedback(here.heedful, [each.execution_id for each in page.items]),
        problem=problem,
        connector=connector,
        connected=bool(page.items) or bool(here.heedful.connectors.list()),
    )


def cache_page(here: PageContext) -> Response:
    """What the cache decided, by reason."""
    days = here.range(30)
    report = here.heedful.insight.cache(since=days.start, until=days.end, limit=PAGE_SIZE)
    rows = [
        (
            f"{_decision_label(outcome.decision)}: {gates.label(outcome.gate)}",
            outcome.share,
            f"{outcome.count:,} ({outcome.share:.0%})",
        )
        for outcome in report.counts
    ]
    return here.html("cache.html", status=days.status, range=days, report=report, rows=rows, decided=_decision_label)


def coverage_page(here: PageContext) -> Response:
    """What is proven on a connector, what is refused, and what to prove next."""
    connectors = here.heedful.connectors.list()
    connector_id = here.query.get("connector") or (connectors[0].connector_id if connectors else None)
    problem, coverage = None, None
    if connector_id is not None:
        try:
            coverage = here.heedful.chat.execution_cache_coverage(connector_id=connector_id, limit=PAGE_SIZE)
        except HeedfulError as error:
            problem = rendering.full_text(error)
    return here.html(
        "coverage.html",
        status=422 if problem else 200,
        coverage=coverage,
        problem=problem,
        connectors=connectors,
        connector_id=connector_id,
        reason=gates.label,
    )


def detail_page(here: PageContext) -> Response:
    """One execution, with its result and what people say of it."""
    execution = here.heedful.executions.get(here.path["execution_id"])
    opinions = queue.feedback(here.heedful, [execution.execution_id])[execution.execution_id]
    return here.html(
        "execution.html",
        execution=execution,
        opinions=opinions,
        own_opinion=_own_opinion(here, opinions),
        proven=bool(opinions) and all(opinion.is_positive for opinion in opinions),
        example=queue.example(here.heedful, execution.connector_id, execution.execution_id),
        rows=execution.result.rows[:MAX_ROWS],
    )


def rate(here: PageContext) -> ActionResult:
    """Says whether an execution was right; undoing brings back what the same person said before."""
    execution_id, right = here.field("execution_id"), _right(here)
    before = _own_opinion(here, queue.feedback(here.heedful, [execution_id])[execution_id])
    comment = here.form.get("comment", "").strip() or None
    feedback = here.heedful.feedback.create(
        execution_id=execution_id, is_positive=right, feedback=comment, author=here.author
    )
    message = (
        "You said that it is right: it may be used again." if right else "You said that it is wrong: it is blocked."
    )
    if before is not None:
        return ActionResult(message, undo=Undo("rate_execution", _again(before)))
    return ActionResult(message, undo=Undo("unrate_execution", {"feedback_id": feedback.id}))


def unrate(here: PageContext) -> ActionResult:
    """Retracts an opinion about an execution."""
    feedback = here.heedful.feedback.get(here.field("feedback_id"))
    here.heedful.retract(feedback.id, author=here.author)
    undo = (
        Undo("rate_execution", _again(feedback)) if feedback.execution_id and feedback.author == here.author else None
    )
    return ActionResult("It was retracted, as if it had never been said.", undo=undo)


def confirm(here: PageContext) -> ActionResult:
    """Says that a suggestion is what a question means."""
    result = here.heedful.chat.confirm_suggestion(
        here.field("question"),
        here.field("execution_id"),
        connector_id=here.field("connector_id"),
        author=here.author,
    )
    opinions = queue.feedback(here.heedful, [result.execution_id])[result.execution_id]
    return ActionResult(
        "It is proven for this question now.", undo=Undo("unrate_execution", {"feedback_id": opinions[-1].id})
    )


def promote(here: PageContext) -> ActionResult:
    """Makes a golden example of an execution."""
    example = here.heedful.golden_examples.promote(
        here.field("execution_id"), question=here.form.get("question", "").strip() or None
    )
    return ActionResult("It is a golden example now.", undo=Undo("remove_example", {"example_id": example.id}))


def remove_example(here: PageContext) -> ActionResult:
    """Removes a golden example."""
    example = here.heedful.golden_examples.get(here.field("example_id"))
    here.heedful.golden_examples.delete(example.id)
    undo = None
    if example.execution_id is not None:
        undo = Undo("promote_execution", {"execution_id": example.execution_id, "question": example.question})
    return ActionResult("It is no longer a golden example.", undo=undo)


def _right(here: PageContext) -> bool:
    rating = here.field("rating")
    if rating not in ("right", "wrong"):
        raise Invalid("the rating is missing", field="rating", value=rating, remedy="Choose right or wrong")
    return rating == "right"


def _again(feedback: ExecutionFeedback) -> dict[str, str]:
    """The fields that give the same feedback again."""
    return {
        "execution_id": feedback.execution_id or "",
        "rating": "right" if feedback.is_positive else "wrong",
        "comment": feedback.feedback or "",
    }


def _own_opinion(here: PageContext, opinions: list[ExecutionFeedback]) -> ExecutionFeedback | None:
    """What this person says already."""
    return next((opinion for opinion in opinions if opinion.author == here.author), None)


def _decision_label(decision: str) -> str:
    words = {"serve": "Served", "rebind": "Rebound", "refuse": "Refused", "nothing": "Nothing found"}
    return words.get(decision, decision)


PAGES = (
    Page("/executions", list_page),
    Page("/executions/cache", cache_page),
    Page("/executions/coverage", coverage_page),
    Page("/executions/{execution_id}", detail_page),
)
ACTIONS = (
    Action("rate_execution", "feedback.create", "say whether an execution is right", rate, ("comment",)),
    Action("unrate_execution", "feedback.delete", "retract your opinion", unrate),
    Action("confirm_suggestion", "chat.confirm_suggestion", "confirm what a question means", confirm),
    Action("promote_execution", "golden_examples.promote", "make a golden example", promote, ("question",)),
    Action("remove_example", "golden_examples.delete", "remove a golden example", remove_example),
)
