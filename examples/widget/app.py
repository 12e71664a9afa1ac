"""The feedback widget on a static page: index.html, and the two routes it needs from your backend.

It needs the extra `server`, and no key of a language model. In two terminals:

    HEEDFUL_ADMIN_KEY=a-long-secret-of-yours heedful serve --cors-origin http://127.0.0.1:8080
    HEEDFUL_API_KEY=a-long-secret-of-yours python examples/widget/app.py    # then open http://127.0.0.1:8080
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Annotated

import uvicorn  # Of the extra `server`; in a clone: pip install ".[server]"
from fastapi import Cookie, FastAPI
from fastapi.responses import FileResponse

import heedful

SERVER = os.environ.get("HEEDFUL_URL", "http://127.0.0.1:8000")
FACTS = [
    "Feedback can be changed, and it can be taken back.",
    "Feedback is stored in a ledger, and the usefulness of a fact is computed from it.",
    "A token lets a browser rate the answers that it names, for ten minutes.",
]


def model(prompt: str) -> str:
    """Stands in for a language model by repeating the first fact of the prompt. Call yours here."""
    number, _, fact = next((line for line in prompt.splitlines() if line.startswith("[")), "").partition(" ")
    return f"{fact} {number}"


def create(memory: heedful.RemoteHeedful, server: str) -> FastAPI:
    """The backend. The key stays here; browsers get tokens, which can rate one answer and nothing else."""
    app = FastAPI()

    def token(visitor: str, qa_id: str) -> str:
        # Visitors whom you know get their name: author="ada". Anonymous votes are counted, and change no ranking.
        target = {"session_id": f"visitor-{visitor}", "qa_id": qa_id}
        return memory.keys.create_token(target, subject=visitor).token

    @app.get("/")
    def page(visitor: Annotated[str | None, Cookie()] = None) -> FileResponse:
        response = FileResponse(Path(__file__).with_name("index.html"))
        response.set_cookie("visitor", visitor or secrets.token_urlsafe(12), httponly=True, samesite="lax")
        return response

    @app.get("/answer")
    def answer(question: str, visitor: Annotated[str, Cookie()]) -> dict[str, str]:
        session_id = f"visitor-{visitor}"
        facts = memory.recall(question)
        said = model(f"{heedful.as_prompt(facts)}\n\nQuestion: {question}")
        qa_id = memory.sessions.add_entry(session_id, question, said, recall_id=facts.recall_id).qa_id
        widget = {"server": server, "session-id": session_id, "qa-id": qa_id, "token": token(visitor, qa_id)}
        return {"answer": said} | widget

    @app.get("/token")
    def renew(qa_id: str, visitor: Annotated[str, Cookie()]) -> dict[str, str]:
        """A new token for a page that has been open for more than ten minutes."""
        return {"token": token(visitor, qa_id)}

    return app


if __name__ == "__main__":
    with heedful.connect(SERVER) as connected:
        connected.remember(FACTS)
        uvicorn.run(create(connected, SERVER), host="127.0.0.1", port=8080)
