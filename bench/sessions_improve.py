"""What `improve` takes over many rated answers, the first time and when nothing is new."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from shutil import copyfile

import numpy as np

import heedful
from bench import data, locomo
from bench.measure import Spent, say, timed
from bench.vectors import Served, Vectors, embedded
from heedful.engine import Heedful
from heedful.model import Improvement
from heedful.providers.embedding import Embedder, bundled
from heedful.text.same_question import Calibration

ANSWERS = 10
"""Answers in one session."""

MADE_FACTS = 2_000

_OPENINGS = (
    *("", "Please tell me: ", "Do you know? ", "I forgot: ", "Quick question: ", "Remind me: ", "One more thing: "),
    *("Just to be sure: ", "For my notes: ", "Sorry to ask again: ", "By the way: ", "Could you look it up? "),
    *("We talked about this: ", "Help me here: ", "I need to know: "),
)
"""People ask the same in other words, so every question is one that the store has not seen."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is remembered, and what is asked of it."""

    facts: list[str]
    questions: list[str]
    origin: str


@dataclass(frozen=True, slots=True)
class Improved:
    """What the two runs took, what the first one did, and what it spent on the model."""

    first: Spent
    second: Spent
    embedding: Spent
    signals: int
    learnt: int


class Kept:
    """The bundled model, with every vector it made kept, and those of known texts there from the start."""

    def __init__(self, model: Embedder, texts: Sequence[str], vectors: Vectors) -> None:
        self._model = model
        self._vectors = dict(zip(texts, vectors, strict=True))

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def dimensions(self) -> int:
        return self._model.dimensions

    @property
    def calibration(self) -> Calibration:
        return self._model.calibration

    def embed(self, texts: Sequence[str]) -> Vectors:
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            self._vectors |= zip(new, self._model.embed(new), strict=True)
        return np.stack([self._vectors[text] for text in texts]) if texts else self._model.embed([])


def asked(folder: Path | None, count: int) -> Asked:
    """LoCoMo's turns and its questions in several wordings, or made sentences where there is no such file."""
    if folder is None or not (folder / locomo.FILE).is_file():
        made = list(data.generated(MADE_FACTS + count, seed=0))
        return Asked(made[:MADE_FACTS], made[MADE_FACTS:], "sentences made by the benchmark")
    conversations = locomo.read(folder / locomo.FILE)
    facts = [turn.text for each in conversations for turn in each.turns]
    worded = (f"{start}{question.text}" for start in _OPENINGS for each in conversations for question in each.questions)
    questions = list(islice(dict.fromkeys(worded), count))
    return Asked(list(dict.fromkeys(facts)), questions, "LoCoMo: its turns, and its questions in several wordings")


def fill(file: Path, texts: Asked, out: Path) -> list[tuple[str, str]]:
    """A store with an answer to every question, made by `recall`; (session, entry) of each.

    The vectors are the bundled model's, each made once.
    """
    known = [*texts.facts, *texts.questions]
    model = Kept(bundled(), known, embedded(known, out, say))
    with heedful.open(file, embedding=model) as store:
        store.remember(texts.facts)
        return list(_answered(store, texts.questions))


def rate(store: Heedful, entries: Sequence[tuple[str, str]]) -> None:
    """Scores from 1 to 5 in turn, as many of each."""
    for place, (session, entry) in enumerate(entries):
        assert store.sessions.add_feedback(session, entry, feedback_score=place % 5 + 1, author="reader")


def moved(file: Path, beside: Path, url: str, entries: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Copies a store, with its sessions on a MongoDB; (session, entry) of the same answers there."""
    copyfile(file, beside)
    there: list[tuple[str, str]] = []
    with heedful.open(file) as store, heedful.open(beside, sessions=url) as copy:
        for session, entry in entries:
            kept = store.sessions.entry(session, entry)
            used = {each.fact_id: each.share for each in kept.used or ()}
            new = copy.sessions.add_entry(session, kept.question, kept.answer, recall_id=kept.recall_id, used=used)
            there.append((session, new.qa_id))
    return there


def measure(file: Path, url: str | None, entries: int) -> Improved:
    """Two runs of `improve` with the bundled model; the second one changes nothing."""
    model = Served(bundled())
    with heedful.open(file, sessions=url, embedding=model, auto_improve=False) as store:
        first, changed = timed(store.improve)
        embedding = model.spent
        second, unchanged = timed(store.improve)
    assert changed.entries == entries
    assert changed.signals_added
    assert not _changes(unchanged)
    return Improved(first, second, embedding, changed.signals_added, len(changed.learnt))


def _answered(store: Heedful, questions: Sequence[str]) -> Iterator[tuple[str, str]]:
    for place, question in enumerate(questions):
        if place % 1000 == 0:
            say(f"answering question {place:,} of {len(questions):,}")
        result = store.recall(question, session_id=f"session {place // ANSWERS}")
        assert result.session_id is not None
        assert result.qa_id is not None
        yield result.session_id, result.qa_id


def _changes(result: Improvement) -> bool:
    return bool(result.signals_added or result.signals_retracted or result.learnt or result.forgotten)
