"""A site of one's own that shows answers with the feedback widget: see docs/howto/widget.md for how to run it."""

from __future__ import annotations

import os
import secrets
from html import escape
from pathlib import Path
from string import Template
from typing import Annotated

import uvicorn
from fastapi import Cookie, FastAPI
from fastapi.responses import HTMLResponse

import heedful

SERVER = os.environ.get("HEEDFUL_URL", "http://127.0.0.1:8000")
PAGE = Template(Path(__file__).with_name("index.html").read_text(encoding="utf-8"))
FACTS = [
    "An opinion can be changed, and it can be taken back.",
    "Opinions are kept in a ledger, and the usefulness of a fact is computed from it.",
    "A token lets a browser rate the answers that it names, for ten minutes.",
]

# The key stays here: the browser gets tokens only. It is read from HEEDFUL_API_KEY.
memory = heedful.connect(SERVER)
app = FastAPI()


@app.get("/")
def page(question: str = "Where are opinions kept?", visitor: Annotated[str | None, Cookie()] = None) -> HTMLResponse:
    """Answers a question, and asks what the visitor thinks of the answer."""
    visitor = visitor or secrets.token_urlsafe(12)
    memory.remember(FACTS)
    found = memory.recall(question, top_k=1, session_id=session_of(visitor))
    assert found.qa_id is not None
    shown = {
        "server": SERVER,
        "question": question,
        "answer": found.answer or "I don't know.",
        "session_id": session_of(visitor),
        "qa_id": found.qa_id,
        "token": signed(visitor, found.qa_id),
    }
    response = HTMLResponse(PAGE.substitute({name: escape(value) for name, value in shown.items()}))
    response.set_cookie("visitor", visitor, httponly=True, samesite="lax")
    return response


@app.get("/token")
def token(qa_id: str, visitor: Annotated[str, Cookie()]) -> dict[str, str]:
    """A new token for a page that has been open for long. Visitors get tokens for their own session only."""
    return {"token": signed(visitor, qa_id)}


def session_of(visitor: str) -> str:
    return f"visitor-{visitor}"


def signed(visitor: str, qa_id: str) -> str:
    """A token with which this visitor may rate this answer. The author is the same in each, so opinions can change."""
    return memory.keys.create_token({"session_id": session_of(visitor), "qa_id": qa_id}, author=visitor).token


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=8080)
