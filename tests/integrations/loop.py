"""The closed loop that every adapter has to show: a rating changes the memories of the next prompt, and its retraction
changes them back. On an embedded store and on a server."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from closed_loop import AT_SEVEN, AT_SIX, AUTHORS, QUESTION, Memory, recalled
from patience import until

import heedful
from heedful import Heedful
from heedful.integrations.turns import finish
from heedful.testing import WordEmbedder

ANSWER = "The gym opens at six. [1]"
SESSION = "thread-1"


@dataclass(frozen=True)
class Asked:
    """One question to an agent."""

    prompt: str
    """What the model was instructed with."""
    run_id: str
    """By which the answer is rated."""
    answer: str


@contextmanager
def opened(kind: str, folder: Path) -> Iterator[Memory]:
    """A memory with two facts, embedded or on a server."""
    if kind == "open":
        with heedful.open(folder / "store.db", embedding=WordEmbedder()) as memory:
            memory.remember([AT_SIX, AT_SEVEN])
            yield memory
        return
    # It needs the extra `server`, which those who follow a page don't have.
    from server import running

    with running(folder / "store.db") as server, server.connect() as remote:
        remote.remember([AT_SIX, AT_SEVEN])
        yield remote


def shown(prompt: str) -> list[str]:
    """The memories of a prompt, in their order."""
    return sorted((fact for fact in (AT_SIX, AT_SEVEN) if fact in prompt), key=prompt.index)


def check_loop(memory: Memory, ask: Callable[[], Asked], session: str = SESSION) -> None:
    """Asks, rates, asks again, retracts, and asks once more; nobody calls `improve`."""
    first = ask()
    finish(memory)
    assert shown(first.prompt) == [AT_SIX, AT_SEVEN]
    entry = memory.sessions.entry(session, first.run_id)
    assert (entry.question, entry.answer, entry.external_id) == (QUESTION, first.answer, first.run_id)
    for author in AUTHORS:
        assert memory.sessions.rate(first.run_id, "down", author=author)
    until(lambda: recalled(memory) == [AT_SEVEN, AT_SIX])
    assert shown(ask().prompt) == [AT_SEVEN, AT_SIX]
    for author in AUTHORS:
        assert memory.sessions.delete_feedback(session, first.run_id, author=author)
    until(lambda: recalled(memory) == [AT_SIX, AT_SEVEN])
    assert shown(ask().prompt) == [AT_SIX, AT_SEVEN]
    finish(memory)


class Broken:
    """A memory whose calls all fail."""

    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise heedful.Unavailable("the server is down")


def check_warned(caplog: pytest.LogCaptureFixture) -> None:
    """The log says why, once for each cause."""
    said = warnings(caplog)
    assert said
    assert len(set(said)) == len(said)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was said of agents that go on without Heedful."""
    return [each.getMessage() for each in caplog.records if "the agent goes on without it" in each.getMessage()]


def run_examples(name: str, given: dict[str, Any], section: str | None = None) -> None:
    """Runs the examples of a page of docs/integrations, or of its last section, from top to bottom, in the current
    folder."""
    page = Path(__file__).parents[2] / "docs/integrations" / f"{name}.md"
    text = page.read_text(encoding="utf-8")
    if section is not None:
        text = text.partition(f"\n## {section}\n")[2]
    examples = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert examples
    for example in examples:
        exec(compile(example, str(page), "exec"), given)


def run_page(name: str, *, session: str = "chat-1", **given: Any) -> None:
    """The same of a page after which an answer was rated."""
    run_examples(name, given)
    memory: Heedful = given["memory"]
    finish(memory)
    assert [each.feedback_score for each in memory.sessions.entries(session).items] == [5]
    memory.close()
