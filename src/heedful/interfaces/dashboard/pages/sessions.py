"""Sessions: the conversations, and what people said of them."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import datetime

import orjson
from starlette.responses import Response

from heedful.errors import Invalid
from heedful.interfaces.dashboard import rendering, views
from heedful.interfaces.dashboard.context import PageContext
from heedful.interfaces.dashboard.registry import Action, Page
from heedful.model import Entry, Feedback, Message, Metadata, Session
from heedful.model import Page as Part

PAGE_SIZE = 50
MAX_TURNS = 500
"""Messages and answers of a conversation that are shown at once."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A message, or a question with its answer."""

    at: datetime
    message: Message | None = None
    entry: Entry | None = None


def list_page(here: PageContext) -> Response:
    """All sessions, the newest first."""
    typed = here.query.get("q", "").strip()
    problem = None
    page: Part[Session] = Part(items=[], next_cursor=None)
    try:
        page = here.heedful.sessions.list(where=_where(typed), cursor=here.query.get("cursor"), limit=PAGE_SIZE)
    except Invalid as error:
        problem = rendering.full_text(error)
    return here.html(
        "sessions.html",
        status=422 if problem else 200,
        typed=typed,
        problem=problem,
        page=page,
        summaries=views.summaries(here.heedful, [session.session_id for session in page.items]),
    )


def detail_page(here: PageContext) -> Response:
    """One conversation, in time order."""
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
        feedback=_all_feedback(here, session_id),
        texts=views.texts(here.heedful, used),
        cut=messages.next_cursor is not None or entries.next_cursor is not None,
        longest=MAX_TURNS,
    )


def _all_feedback(here: PageContext, session_id: str) -> list[Feedback]:
    return here.heedful.sessions.feedbacks(session_id, limit=MAX_TURNS).items


def _turns(messages: list[Message], entries: list[Entry]) -> list[Turn]:
    """Messages and answers in time order; a message that says what an answer has is not shown twice."""
    texts = {text.strip() for entry in entries for text in (entry.question, entry.answer)}
    turns = [Turn(entry.time, entry=entry) for entry in entries]
    turns += [Turn(message.at, message=message) for message in messages if message.content.strip() not in texts]
    return sorted(turns, key=lambda turn: turn.at)


def _where(typed: str) -> Metadata | None:
    """What "tier=gold channel=web" asks for; a value that reads as JSON is that, any other is text."""
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


PAGES = (Page("/sessions", list_page), Page("/sessions/{session_id}", detail_page))
ACTIONS: tuple[Action, ...] = ()
