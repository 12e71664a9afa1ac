"""For tests of programs that use Heedful: models that need no files, a clock that you move, and the assertion that
nothing gets worse."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from heedful.api import AnyHeedful
from heedful.model import RegressReport
from heedful.providers.embedding import Vectors, normalize
from heedful.providers.llm import ChatMessage, Completion, OnToken, Usage
from heedful.text.same_question import PLAIN, Calibration

__all__ = ["ManualClock", "ScriptedModel", "WordEmbedder", "assert_no_regressions"]


class WordEmbedder:
    """Each word is a fixed random direction: texts with the same words are alike, in microseconds."""

    name = "words-for-tests"
    calibration: Calibration = PLAIN

    def __init__(self, dimensions: int = 64) -> None:
        self.dimensions = dimensions

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in enumerate(texts):
            for word in re.findall(r"\w+", text.lower()):
                seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")
                vectors[row] += np.random.default_rng(seed).standard_normal(self.dimensions, np.float32)
        return normalize(vectors)


class ManualClock:
    """A clock that only moves when you move it."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self.now = start

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **duration: float) -> None:
        """Moves on by a duration, as `timedelta` takes it: `advance(days=7)`."""
        self.now += timedelta(**duration)


class ScriptedModel:
    """A language model with scripted answers: texts in order, or what a function makes of the messages.

    `prompts` keeps the messages of each call. A word counts as a token.
    """

    name = "scripted-for-tests"

    def __init__(self, answers: Sequence[str] | Callable[[Sequence[ChatMessage]], str]) -> None:
        self.prompts: list[list[ChatMessage]] = []
        self._answers = answers

    def complete(self, messages: Sequence[ChatMessage], *, on_token: OnToken | None = None) -> Completion:
        self.prompts.append(list(messages))
        text = self._answer(messages)
        if on_token is not None:
            for token in re.findall(r"\s*\S+\s*\Z|\s*\S+", text):
                on_token(token)
        prompted = sum(len(message.content.split()) for message in messages)
        return Completion(text, Usage(prompted, len(text.split())))

    def _answer(self, messages: Sequence[ChatMessage]) -> str:
        if callable(self._answers):
            return self._answers(messages)
        place = len(self.prompts) - 1
        if place >= len(self._answers):
            raise AssertionError(f"the model was asked {place + 1} times and has {len(self._answers)} answers")
        return self._answers[place]


def assert_no_regressions(
    store: AnyHeedful, candidate: str | Path | Mapping[str, Any] | None = None, *, least: float = 1.0, **options: Any
) -> RegressReport:
    """Fails, naming the questions, if a change makes rated questions of a store worse; returns the report.

    `candidate` is another store, such as a copy that was changed, or the changes to try, as `regress` takes them:
    `{"embedding": "fast"}`. `least` is the share of the questions that must not get worse. `options` are further
    arguments of `regress`. It also fails if there is no rated question, or not all were compared.
    """
    changes = candidate if isinstance(candidate, Mapping) else {} if candidate is None else {"against": candidate}
    report = store.regress(**changes, **options)
    if not report.compared or not report.complete:
        asked = f"{report.compared} of {report.rated} rated questions were compared"
        raise AssertionError(f"{asked}, which proves nothing{'' if report.complete else ': the deadline came first'}")
    if report.kept.value < least:
        lines = [f"  {item.question!r} ({item.change:+.3f}): {item.reason}" for item in report.worst[:10]]
        more = [f"  and {report.worse - len(lines)} more"] if report.worse > len(lines) else []
        head = f"{report.worse} of {report.compared} rated questions get worse with {report.candidate}"
        raise AssertionError("\n".join([head, *lines, *more]))
    return report
