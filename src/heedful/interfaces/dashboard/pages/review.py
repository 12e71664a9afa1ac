"""Review: what people were unhappy with, as work to do, and what fixes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from starlette.responses import Response

from heedful.errors import HeedfulError, Invalid, NotFound, no_dataset, quoted
from heedful.interfaces.dashboard import fragments, queue, rendering, views
from heedful.interfaces.dashboard.context import PageContext
from heedful.interfaces.dashboard.registry import Action, ActionResult, Page, Undo
from heedful.interfaces.dashboard.responses import status_of
from heedful.model import FIXES, OPINION_TARGETS, Fix, OpinionTarget, ReviewEvent, ReviewItem, ReviewStatus, etag
from heedful.model import Page as Part

PAGE_SIZE = 50
ALL = "all"

ACTION_MESSAGES = {
    "assign": "assigned it",
    "resolve": "resolved it",
    "dismiss": "dismissed it",
    "reopen": "opened it again",
    "note": "noted something",
    "supersede": "corrected a fact",
    "retract": "took an opinion back",
    "teach": "taught what somebody said",
    "block": "said that the execution is wrong",
    "promote": "made a golden example of the execution",
    "add_example": "added a golden example",
}
"""What somebody did, in words."""

FIX_MESSAGES: dict[Fix, str] = {
    "supersede": "The fact was corrected: the new text is recalled from now on.",
    "retract": "The opinion was retracted, as if it had never been given.",
    "teach": "It is a fact now, and is recalled from now on.",
    "block": "The execution is blocked, and all SQL like it.",
    "promote": "The execution is a golden example now.",
    "add_example": "The golden example was added.",
}

REDO_PREFIX = "again_"
"""The prefix of fields that redo what is undone."""


def list_page(here: PageContext) -> Response:
    """The queue, with its filters in the address."""
    status = here.query.get("status") or "open"
    datasets = here.heedful.datasets()
    filters = {"assignee": here.query.get("assignee", "").strip() or None, "dataset": here.choice("dataset", datasets)}
    kind = cast(OpinionTarget | None, here.query.get("kind") or here.query.get("target_type") or None)
    page: Part[ReviewItem] = Part(items=[], next_cursor=None)
    counts: dict[str, int] | None = None
    problem: str | None = None
    try:
        counts = _count(here, kind, filters, datasets)
        page = here.heedful.review.list(
            status=None if status == ALL else cast(ReviewStatus, status),
            target_type=kind,
            cursor=here.query.get("cursor"),
            limit=PAGE_SIZE,
            **filters,
        )
    except (Invalid, NotFound) as error:
        problem = rendering.full_text(error)
    return here.html(
        "review.html",
        status=422 if problem else 200,
        page=page,
        facts=queue.judged_facts(here.heedful, [item.item_id for item in page.items if item.target_type == "fact"]),
        counts=None if counts is None else {**counts, ALL: sum(counts.values())},
        chosen=status,
        filters={**filters, "kind": kind},
        filtered=any(filters.values()) or kind is not None,
        kinds=OPINION_TARGETS,
        datasets=datasets,
        problem=problem,
    )


def _count(
    here: PageContext, kind: OpinionTarget | None, filters: dict[str, str | None], datasets: list[str]
) -> dict[str, int]:
    """Items by status; filters that can find nothing are refused, so that no zero is false."""
    if kind is not None and kind not in OPINION_TARGETS:
        raise Invalid(f"unknown kind {quoted(kind)}", field="kind", remedy=f"Use one of {', '.join(OPINION_TARGETS)}")
    counts, dataset = queue.count_by_status(here.heedful, target_type=kind, **filters), filters["dataset"]
    # An item stays when its dataset is deleted.
    if dataset is not None and dataset not in datasets and not any(counts.values()):
        raise no_dataset(here.project, dataset, datasets)
    return counts


def detail_page(here: PageContext) -> Response:
    """One item, with all that is needed to fix it."""
    return _render_item(here, here.path["item_id"])


def ask_again(here: PageContext) -> Response:
    """The same question asked now, beside what was disliked."""
    item_id = here.path["item_id"]
    comparison = here.heedful.review.ask_again(item_id)
    return fragments.respond(
        here,
        "review_again.html",
        "Asked again",
        here.at("review", item_id),
        comparison=comparison,
        ranks={hit.fact_id: hit.rank for hit in comparison.evidence_before},
    )


def assign(here: PageContext) -> ActionResult:
    item_id, assignee = here.field("item_id"), here.form.get("assignee", "").strip() or None
    here.heedful.review.assign(item_id, assignee, author=here.author, if_match=_etag_of(here))
    message = f"{assignee} is assigned now." if assignee else "Nobody is assigned now."
    return ActionResult(message, here.at("review", item_id), _undo_last(here, item_id, "assign"))


def resolve(here: PageContext) -> ActionResult:
    return _status(here, "resolve", "It is resolved. A new complaint opens it again.", here.at("review"))


def dismiss(here: PageContext) -> ActionResult:
    return _status(here, "dismiss", "It is dismissed, even if others complain again.", here.at("review"))


def reopen(here: PageContext) -> ActionResult:
    return _status(here, "reopen", "It is open again.", here.at("review", here.field("item_id")))


def fix(here: PageContext) -> ActionResult:
    """Corrects a fact, retracts an opinion, teaches one, blocks or promotes an execution, or adds an example."""
    item_id, action = here.field("item_id"), here.field("fix")
    if action not in FIXES:
        raise Invalid(
            f"unknown fix {quoted(action)}", field="fix", value=action, remedy=f"Use one of {', '.join(FIXES)}"
        )
    names = ("fact_id", "text", "event_id", "execution_id", "question", "sql_query", "note")
    fields = {name: here.form[name] for name in names if here.form.get(name, "").strip()}
    event = here.heedful.review.fix(
        item_id, action, **cast(dict[str, Any], fields), author=here.author, if_match=_etag_of(here)
    )
    # An opinion that was given back has another event: retracting it again begins on its page.
    once_more = {} if action == "retract" else {"item_id": item_id, "fix": action, **fields}
    undo = _undo(here, item_id, event.event_id, "review_fix", once_more)
    return ActionResult(FIX_MESSAGES[action], here.at("review", item_id), undo)


def undo(here: PageContext) -> ActionResult:
    """Undoes an action; redoing it is offered where possible."""
    event = here.heedful.review.undo(here.field("event_id"), author=here.author)
    fields = {
        name.removeprefix(REDO_PREFIX): value for name, value in here.form.items() if name.startswith(REDO_PREFIX)
    }
    action = fields.pop("action", None)
    message = f"Undone: {event.author or 'somebody'} {ACTION_MESSAGES[event.action]}."
    return ActionResult(message, undo=Undo(action, fields) if action in REDOABLE else None)


def refused(here: PageContext, error: HeedfulError) -> Response:
    """The item as it is now, with what happened meanwhile, and with what was typed."""
    return _render_item(here, here.field("item_id"), status=status_of(error), problem=error)


def _render_item(
    here: PageContext, item_id: str, *, status: int = 200, problem: HeedfulError | None = None
) -> Response:
    case = here.heedful.review.get(item_id)
    fact_ids = [str(event.details[name]) for event in case.history for name in FACTS if event.details.get(name)]
    return here.html(
        "review_item.html",
        status=status,
        case=case,
        item=case.item,
        hidden={"item_id": item_id, "if_match": etag(case.item), "seen": str(len(case.history))},
        item_url=here.at("review", item_id),
        problem=problem,
        news=case.history[_known_events(here) :] if problem is not None else [],
        typed=here.form if problem is not None else {},
        did=ACTION_MESSAGES,
        asking=here.query.get("again") == "1",
        texts=views.texts(here.heedful, fact_ids),
    )


FACTS = ("fact_id", "superseded_by", "taught")
"""The details of the history that are ids of facts."""


def _known_events(here: PageContext) -> int:
    """How much of the history somebody had seen when they decided."""
    count = here.form.get("seen", "")
    return int(count) if count.isascii() and count.isdecimal() and len(count) < 10 else 0


def _etag_of(here: PageContext) -> str | None:
    return here.form.get("if_match") or None


def _status(here: PageContext, action: str, message: str, to: str) -> ActionResult:
    item_id, note = here.field("item_id"), here.form.get("note", "").strip() or None
    getattr(here.heedful.review, action)(item_id, note=note, author=here.author, if_match=_etag_of(here))
    return ActionResult(message, to, _undo_last(here, item_id, action))


def _undo_last(here: PageContext, item_id: str, action: str) -> Undo | None:
    """What undoes the last action of this kind; None if nothing was done."""
    history = here.heedful.review.get(item_id).history
    acts = [event for event in history if event.action == action and "opinion" not in event.details]
    undoable = [event for event in acts if not event.undone and event.author == here.author]
    return (
        _undo(here, item_id, undoable[-1].event_id, f"review_{action}", redo_fields(item_id, undoable[-1]))
        if undoable
        else None
    )


def redo_fields(item_id: str, event: ReviewEvent) -> dict[str, str]:
    """The fields that redo what an event did to the status of an item."""
    if event.action == "assign":
        return {"item_id": item_id, "assignee": str(event.details.get("assignee") or "")}
    return {"item_id": item_id, "note": event.note or ""}


def _undo(here: PageContext, item_id: str, event_id: str, action: str, fields: Mapping[str, str]) -> Undo:
    more = {f"{REDO_PREFIX}{name}": value for name, value in ({"action": action, **fields} if fields else {}).items()}
    return Undo("review_undo", {"event_id": event_id, **more}, here.at("review", item_id))


PAGES = (
    Page("/review", list_page),
    Page("/review/{item_id}", detail_page),
    Page("/review/{item_id}/again", ask_again),
)
ACTIONS = (
    Action("review_assign", "review.assign", "assign an item", assign, ("assignee",), refused),
    Action("review_resolve", "review.resolve", "resolve an item", resolve, ("note",), refused),
    Action("review_dismiss", "review.dismiss", "dismiss an item", dismiss, ("note",), refused),
    Action("review_reopen", "review.reopen", "open an item again", reopen, ("note",), refused),
    Action("review_fix", "review.fix", "fix an item", fix, ("text", "question", "sql_query", "note"), refused),
    Action("review_undo", "review.undo", "undo what was done", undo),
)
REDOABLE = frozenset(action.name for action in ACTIONS if action.refused is not None)
"""The actions that can be redone."""
