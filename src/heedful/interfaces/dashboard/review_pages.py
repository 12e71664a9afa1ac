"""Review and sessions: complaints as work to do, with what fixes them, and the conversations they are about."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

import orjson
from starlette.responses import Response

from heedful.errors import HeedfulError, Invalid, NotFound, no_dataset, quoted
from heedful.interfaces.dashboard import views
from heedful.interfaces.dashboard.site import EMPTY, Action, ActionResult, PageContext, PageRoute, Undo
from heedful.interfaces.problems import status_of_kind
from heedful.model import FIXES, OPINION_TARGETS, Entry, Fix, Message, Metadata, OpinionTarget, etag

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

FIX_MESSAGES: dict[Fix, str] = {
    "supersede": "The fact was corrected: the new text is recalled from now on.",
    "retract": "The opinion was retracted, as if it had never been given.",
    "teach": "It is a fact now, and is recalled from now on.",
    "block": "The execution is blocked, and all SQL like it.",
    "promote": "The execution is a golden example now.",
    "add_example": "The golden example was added.",
}

REDO_PREFIX = "again_"


def queue_page(here: PageContext) -> Response:
    """The queue, with its filters in the address."""
    status, datasets = here.query.get("status") or "open", here.heedful.datasets()
    filters = {"assignee": here.query.get("assignee", "").strip() or None, "dataset": here.choice("dataset", datasets)}
    kind = cast(OpinionTarget | None, here.query.get("kind") or here.query.get("target_type") or None)
    counts = here.attempt(lambda: _count(here, kind, filters, datasets), None, (Invalid, NotFound))
    options = {"status": None if status == ALL else status, "target_type": kind, **filters, **here.paging}
    page = EMPTY
    if counts is not None:
        page = here.attempt(lambda: here.heedful.review.list(**options), EMPTY, (Invalid, NotFound))
    return here.html(
        "review.html",
        page=page,
        facts=views.judged_facts(here.heedful, [item.item_id for item in page.items if item.target_type == "fact"]),
        counts=None if counts is None else {**counts, ALL: sum(counts.values())},
        chosen=status,
        filters={**filters, "kind": kind},
        filtered=any(filters.values()) or kind is not None,
        kinds=OPINION_TARGETS,
        datasets=datasets,
    )


def _count(
    here: PageContext, kind: OpinionTarget | None, filters: dict[str, str | None], datasets: list[str]
) -> dict[str, int]:
    """Items by status; filters that can find nothing are refused, so that no zero is false."""
    if kind is not None and kind not in OPINION_TARGETS:
        raise Invalid(f"unknown kind {quoted(kind)}", field="kind", remedy=f"Use one of {', '.join(OPINION_TARGETS)}")
    counts, dataset = views.count_by_status(here.heedful, target_type=kind, **filters), filters["dataset"]
    # An item stays when its dataset is deleted.
    if dataset is not None and dataset not in datasets and not any(counts.values()):
        raise no_dataset(here.project, dataset, datasets)
    return counts


def item_page(here: PageContext, refused: HeedfulError | None = None) -> Response:
    """One item, with all that is needed to fix it. After an action that was `refused`: the item as it is now, with
    what happened meanwhile, and with what was typed."""
    item_id = here.path["item_id"] if refused is None else here.field("item_id")
    case = here.heedful.review.get(item_id)
    fact_ids = [str(event.details[name]) for event in case.history for name in FACTS if event.details.get(name)]
    return here.html(
        "review_item.html",
        status=None if refused is None else status_of_kind(refused),
        case=case,
        item=case.item,
        hidden={"item_id": item_id, "if_match": etag(case.item), "seen": str(len(case.history))},
        item_url=here.at("review", item_id),
        problem=refused,
        news=[] if refused is None else case.history[_known_events(here) :],
        typed={} if refused is None else here.form,
        did=ACTION_MESSAGES,
        asking=here.query.get("again") == "1",
        texts=views.texts(here.heedful, fact_ids),
    )


FACTS = ("fact_id", "superseded_by", "taught")
"""The details of the history that are ids of facts."""


def _known_events(here: PageContext) -> int:
    """The number of events that somebody had seen when they decided."""
    count = here.form.get("seen", "")
    return int(count) if count.isascii() and count.isdecimal() and len(count) < 10 else 0


def ask_again(here: PageContext) -> Response:
    item_id = here.path["item_id"]
    comparison = here.heedful.review.ask_again(item_id)
    return here.part(
        "review_again.html",
        "Asked again",
        here.at("review", item_id),
        comparison=comparison,
        ranks={hit.fact_id: hit.rank for hit in comparison.evidence_before},
    )


def assign(here: PageContext) -> ActionResult:
    item_id, assignee = here.field("item_id"), here.optional("assignee")
    here.heedful.review.assign(item_id, assignee, author=here.author, if_match=here.optional("if_match"))
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
        raise Invalid.unknown("fix", action, FIXES)
    names = ("fact_id", "text", "event_id", "execution_id", "question", "sql_query", "note")
    fields = {name: here.form[name] for name in names if here.form.get(name, "").strip()}
    if_match = here.optional("if_match")
    event = here.heedful.review.fix(item_id, action, **cast(Any, fields), author=here.author, if_match=if_match)
    # An opinion that was given back has another event: retracting it again begins on its page.
    once_more = {} if action == "retract" else {"item_id": item_id, "fix": action, **fields}
    undo = _undo(here, item_id, event.event_id, "review_fix", once_more)
    return ActionResult(FIX_MESSAGES[action], here.at("review", item_id), undo)


def undo(here: PageContext) -> ActionResult:
    """Undoes an action; redoing it is offered where possible."""
    event = here.heedful.review.undo(here.field("event_id"), author=here.author)
    redo = {name: value for name, value in here.form.items() if name.startswith(REDO_PREFIX)}
    fields = {name.removeprefix(REDO_PREFIX): value for name, value in redo.items()}
    action = fields.pop("action", None)
    message = f"Undone: {event.author or 'somebody'} {ACTION_MESSAGES[event.action]}."
    return ActionResult(message, undo=Undo(action, fields) if action in REDOABLE else None)


def _status(here: PageContext, action: str, message: str, to: str) -> ActionResult:
    item_id, change = here.field("item_id"), getattr(here.heedful.review, action)
    change(item_id, note=here.optional("note"), author=here.author, if_match=here.optional("if_match"))
    return ActionResult(message, to, _undo_last(here, item_id, action))


def _undo_last(here: PageContext, item_id: str, action: str) -> Undo | None:
    """The undo of the last action of this kind; None if nothing was done."""
    history = here.heedful.review.get(item_id).history
    acts = [event for event in history if event.action == action and "opinion" not in event.details]
    undoable = [event for event in acts if not event.undone and event.author == here.author]
    if not undoable:
        return None
    event = undoable[-1]
    redo = {"note": event.note or ""}
    if action == "assign":
        redo = {"assignee": str(event.details.get("assignee") or "")}
    return _undo(here, item_id, event.event_id, f"review_{action}", {"item_id": item_id, **redo})


def _undo(here: PageContext, item_id: str, event_id: str, action: str, fields: Mapping[str, str]) -> Undo:
    more = {f"{REDO_PREFIX}{name}": value for name, value in ({"action": action, **fields} if fields else {}).items()}
    return Undo("review_undo", {"event_id": event_id, **more}, here.at("review", item_id))


MAX_TURNS = 500
"""Messages and answers of a conversation that are shown at once."""


@dataclass(frozen=True, slots=True)
class ShownTurn:
    at: datetime
    message: Message | None = None
    entry: Entry | None = None


def sessions_page(here: PageContext) -> Response:
    typed, sessions = here.query.get("q", "").strip(), here.heedful.sessions
    page = here.attempt(lambda: sessions.list(where=_where(typed), **here.paging), EMPTY)
    summaries = views.summaries(here.heedful, [session.session_id for session in page.items])
    return here.html("sessions.html", typed=typed, page=page, summaries=summaries)


def session_page(here: PageContext) -> Response:
    sessions, session_id = here.heedful.sessions, here.path["session_id"]
    session = sessions.get(session_id)
    messages = sessions.messages(session_id, limit=MAX_TURNS)
    entries = sessions.entries(session_id, limit=MAX_TURNS)
    opinions = views.opinions(here.heedful, [entry.qa_id for entry in entries.items])
    used = [fact.fact_id for entry in entries.items for fact in entry.used or []]
    return here.html(
        "session.html",
        session=session,
        turns=_turns(messages.items, entries.items),
        opinions=opinions,
        feedback=sessions.feedbacks(session_id, limit=MAX_TURNS).items,
        texts=views.texts(here.heedful, used),
        cut=messages.next_cursor is not None or entries.next_cursor is not None,
        longest=MAX_TURNS,
    )


def _turns(messages: list[Message], entries: list[Entry]) -> list[ShownTurn]:
    """Messages and answers in time order; a message that says what an answer has is not shown twice."""
    texts = {text.strip() for entry in entries for text in (entry.question, entry.answer)}
    turns = [ShownTurn(entry.time, entry=entry) for entry in entries]
    turns += [ShownTurn(message.at, message=message) for message in messages if message.content.strip() not in texts]
    return sorted(turns, key=lambda turn: turn.at)


def _where(typed: str) -> Metadata | None:
    """The conditions of "tier=gold channel=web"; a value that reads as JSON is that, any other is text."""
    conditions: Metadata = {}
    try:
        terms = shlex.split(typed)
    except ValueError:
        raise Invalid(
            "a quotation mark is not closed", field="q", value=typed, remedy='Write city="New York"'
        ) from None
    for term in terms:
        key, equals, value = term.partition("=")
        if not key or not equals:
            raise Invalid(f"“{term}” is not key=value", field="q", value=term, remedy="Write it as channel=web")
        try:
            conditions[key] = orjson.loads(value)
        except orjson.JSONDecodeError:
            conditions[key] = value
    return conditions or None


PAGES = (
    PageRoute("/review", queue_page),
    PageRoute("/review/{item_id}", item_page),
    PageRoute("/review/{item_id}/again", ask_again),
    PageRoute("/sessions", sessions_page),
    PageRoute("/sessions/{session_id}", session_page),
)
ACTIONS = (
    Action("review_assign", "review.assign", "assign an item", assign, ("assignee",), item_page),
    Action("review_resolve", "review.resolve", "resolve an item", resolve, ("note",), item_page),
    Action("review_dismiss", "review.dismiss", "dismiss an item", dismiss, ("note",), item_page),
    Action("review_reopen", "review.reopen", "open an item again", reopen, ("note",), item_page),
    Action("review_fix", "review.fix", "fix an item", fix, ("text", "question", "sql_query", "note"), item_page),
    Action("review_undo", "review.undo", "undo what was done", undo),
)
REDOABLE = frozenset(action.name for action in ACTIONS if action.refused is not None)
