"""A support agent as a web application: answers that stream, thumbs below them, and the dashboard beside it.

`python examples/support_agent/support.py` starts all of it; it needs `heedful[server]`. Answers are sentences of what
the desk knows. With HEEDFUL_LANGUAGE_MODEL (and HEEDFUL_LANGUAGE_MODEL_API_KEY) for an OpenAI-compatible endpoint, as
in docs/howto/answer-questions.md, a language model writes them.
"""

from __future__ import annotations

import json
import os
import queue
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from string import Template
from typing import Annotated, Any

import httpx
import uvicorn
from fastapi import Body, Cookie, FastAPI
from fastapi.responses import HTMLResponse, StreamingResponse

import heedful
from heedful import RemoteHeedful

sys.path.insert(0, str(Path(__file__).parent))

from desk import FACTS, RIGHT

PORT = int(os.environ.get("PORT", "8080"))
SERVER_PORT = int(os.environ.get("SERVER_PORT", "8000"))
DASHBOARD_PORT = int(os.environ.get("DASHBOARD_PORT", "8001"))
PAGE = Template(Path(__file__).with_name("index.html").read_text(encoding="utf-8"))


def create(memory: RemoteHeedful, server: str, dashboard: str) -> FastAPI:
    """The application, on a memory at a server whose address browsers know."""
    app = FastAPI()

    @app.get("/")
    def page(visitor: Annotated[str | None, Cookie()] = None) -> HTMLResponse:
        options = "".join(f"<option>{question}</option>" for question in RIGHT)
        response = HTMLResponse(PAGE.substitute(server=server, dashboard=dashboard, questions=options))
        response.set_cookie("visitor", visitor or secrets.token_urlsafe(12), httponly=True, samesite="lax")
        return response

    @app.post("/ask")
    def ask(question: Annotated[str, Body(embed=True)], visitor: Annotated[str, Cookie()]) -> StreamingResponse:
        """The answer as server-sent events: its parts, then what is needed to rate it."""
        # What was rated until now teaches, in the background.
        memory.jobs.improve()
        return StreamingResponse(_answer(memory, question, visitor), media_type="text/event-stream")

    @app.get("/token")
    def token(qa_id: str, visitor: Annotated[str, Cookie()]) -> dict[str, str]:
        """A new token for a page that has been open for long."""
        return {"token": _token(memory, visitor, qa_id)}

    return app


def _answer(memory: RemoteHeedful, question: str, visitor: str) -> Iterator[str]:
    parts: queue.Queue[dict[str, Any]] = queue.Queue()

    def work() -> None:
        try:
            found = memory.recall(
                question, top_k=1, session_id=_session(visitor), on_token=lambda part: parts.put({"part": part})
            )
            rated = {"session_id": _session(visitor), "qa_id": str(found.qa_id)}
            parts.put({"done": rated | {"token": _token(memory, visitor, rated["qa_id"])}})
        except heedful.HeedfulError as error:
            parts.put({"failed": str(error)})

    threading.Thread(target=work, daemon=True).start()
    while True:
        each = parts.get()
        yield f"data: {json.dumps(each)}\n\n"
        if "part" not in each:
            return


def _session(visitor: str) -> str:
    return f"visitor-{visitor}"


def _token(memory: RemoteHeedful, visitor: str, qa_id: str) -> str:
    """What lets this visitor rate this answer, always under the same name, so that opinions can change."""
    return memory.keys.create_token({"session_id": _session(visitor), "qa_id": qa_id}, author=visitor).token


@contextmanager
def started(store: Path, key: str, origin: str) -> Iterator[None]:
    """A server and a dashboard of the store, as processes of their own."""
    environment = os.environ | {"HEEDFUL_ADMIN_KEY": key}
    program = [sys.executable, "-m", "heedful", "--store", str(store)]
    commands = (
        ["serve", "--port", str(SERVER_PORT), "--cors-origin", origin],
        ["dashboard", "--port", str(DASHBOARD_PORT)],
    )
    children = [subprocess.Popen([*program, *command], env=environment) for command in commands]
    try:
        _wait(f"http://127.0.0.1:{SERVER_PORT}/healthz", children[0])
        yield
    finally:
        for child in children:
            child.terminate()
        for child in children:
            child.wait(timeout=20)


def _wait(url: str, child: subprocess.Popen[bytes]) -> None:
    transport = httpx.HTTPTransport(retries=0)
    with httpx.Client(transport=transport, timeout=2) as client:
        for _ in range(300):
            if child.poll() is not None:
                raise SystemExit("the server did not start")
            try:
                client.get(url)
            except httpx.TransportError:
                threading.Event().wait(0.1)
            else:
                return
    raise SystemExit("the server does not answer")


def main() -> None:
    """Starts everything, and serves until it is interrupted."""
    key = os.environ.get("HEEDFUL_ADMIN_KEY") or secrets.token_urlsafe(24)
    origin, server = f"http://127.0.0.1:{PORT}", f"http://127.0.0.1:{SERVER_PORT}"
    dashboard = f"http://127.0.0.1:{DASHBOARD_PORT}"
    with started(Path("support.db"), key, origin), heedful.connect(server, api_key=key) as memory:
        memory.remember(FACTS)
        # After its shutdown, Uvicorn raises the signal again. Python's default handler would end this process at once,
        # and leave the server and the dashboard running.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        print(f"Ask at {origin}. The dashboard is at {dashboard}; log in with the key {key}", flush=True)
        uvicorn.run(create(memory, server, dashboard), host="127.0.0.1", port=PORT, log_level="warning")


if __name__ == "__main__":
    main()
