"""A chat with thumbs: one FastAPI app and one page. The next answer learns from what people click.

Run it with `python examples/chat.py`, and open http://127.0.0.1:8080. It needs the extra `server`, and no key.
"""

from __future__ import annotations

import secrets
from typing import Annotated, Literal

import uvicorn  # Of the extra `server`; in a clone: pip install ".[server]"
from fastapi import Body, Cookie, FastAPI
from fastapi.responses import HTMLResponse

import heedful

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Help desk</title>
<body style="font: 1rem/1.6 system-ui; max-width: 40rem; margin: 3rem auto; color-scheme: light dark">
<h1>Help desk</h1>
<form><input name="question" size="50" aria-label="Question" value="How long do I have to return a parcel?"> <button>Ask</button></form>
<script>
  const send = (path, body) => fetch(path, {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(body)});
  document.querySelector("form").onsubmit = async (event) => {
    event.preventDefault();
    const {answer, answer_id} = await (await send("/ask", {question: event.target.question.value})).json();
    const line = document.body.appendChild(document.createElement("p"));
    line.textContent = answer + " ";
    for (const [thumb, face] of [["up", "👍"], ["down", "👎"], ["undo", "↩"]]) {
      const button = line.appendChild(document.createElement("button"));
      button.textContent = face;
      button.title = thumb;
      button.onclick = () => send("/rate", {answer_id, thumb});
    }
  };
</script>"""  # noqa: E501
FACTS = ["Parcels can be returned within 14 days.", "Since May, parcels can be returned within 30 days."]


def model(prompt: str) -> str:
    """Stands in for a language model by repeating the first fact of the prompt. Call yours here."""
    number, _, fact = next((line for line in prompt.splitlines() if line.startswith("[")), "").partition(" ")
    return f"{fact} {number}"


def create(memory: heedful.Heedful) -> FastAPI:
    """The app. Authors are who is logged in; here a cookie stands in for the login."""
    app = FastAPI()

    @app.get("/")
    def page(user: Annotated[str | None, Cookie()] = None) -> HTMLResponse:
        response = HTMLResponse(PAGE)
        response.set_cookie("user", user or secrets.token_urlsafe(12), httponly=True, samesite="lax")
        return response

    @app.post("/ask")
    def ask(question: Annotated[str, Body(embed=True)], user: Annotated[str, Cookie()]) -> dict[str, str]:
        facts = memory.recall(question)
        answer = model(f"{heedful.as_prompt(facts)}\n\nQuestion: {question}")
        stored = memory.sessions.add_entry(f"chat-{user}", question, answer, recall_id=facts.recall_id)
        return {"answer": answer, "answer_id": stored.qa_id}

    @app.post("/rate")
    def rate(
        answer_id: Annotated[str, Body()],
        thumb: Annotated[Literal["up", "down", "undo"], Body()],
        user: Annotated[str, Cookie()],
    ) -> bool:
        if thumb == "undo":
            return memory.sessions.delete_feedback(f"chat-{user}", answer_id, author=user)
        score = 5 if thumb == "up" else 1
        return memory.sessions.add_feedback(f"chat-{user}", answer_id, feedback_score=score, author=user)

    return app


if __name__ == "__main__":
    with heedful.open("chat.db") as helpdesk:
        helpdesk.remember(FACTS)
        uvicorn.run(create(helpdesk), host="127.0.0.1", port=8080)
