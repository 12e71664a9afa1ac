"""Scores of observability systems, in and out: Langfuse scores, LangSmith feedback, Phoenix annotations.

Both places come to agree on what people said of answers. What was done before is read from both, not kept elsewhere: so
a second run changes nothing, and one that was stopped can be run again. The clients of `score_systems` need no extra.
OpenTelemetry's events are in `heedful.integrations.opentelemetry`.
"""

from __future__ import annotations

import asyncio
import inspect
import io
import json
from asyncio import AbstractEventLoop
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid4, uuid5

from pydantic import Field

from heedful.api import checks
from heedful.errors import Invalid, NotFound
from heedful.integrations.calls import blocking
from heedful.integrations.score_systems import MARK, Langfuse, LangSmith, Phoenix, Score, ScoreSystem, WrittenScore
from heedful.integrations.turns import AnyMemory, BlockingMemory
from heedful.ledger.votes import normalise_rating
from heedful.model import VISITOR, Model, NormalisedRating, TableName

__all__ = [
    "LangSmith",
    "Langfuse",
    "Phoenix",
    "ScoresExported",
    "ScoresImported",
    "aexport_scores",
    "aimport_scores",
    "export_scores",
    "import_scores",
]

MARKS = "heedful-scores"
"""The dataset whose metadata have the mark of this store; it has no facts."""

Key = tuple[str, str | None]
"""The id of an answer there, and the author of an opinion about it."""


class ScoresImported(Model):
    """The counts of an import."""

    system: str
    stored: int = 0
    """New or changed."""
    unchanged: int = 0
    unknown: int = 0
    """About answers that are not here. They are not stored; once the answer is here, a later run imports them."""
    retracted: int = 0
    """Deleted there since."""
    errors: list[str] = Field(default_factory=list)
    """Scores that say nothing that can be read as a rating."""


class ScoresExported(Model):
    """The counts of an export."""

    system: str
    written: int = 0
    """New or changed."""
    unchanged: int = 0
    deleted: int = 0
    """Retracted here since."""
    errors: list[str] = Field(default_factory=list)
    """Opinions that the system can't place."""


@dataclass(frozen=True, slots=True)
class _Opinion:
    answer_id: str
    session_id: str
    qa_id: str
    author: str | None
    score: int | None
    comment: str | None
    at: datetime


def import_scores(
    memory: BlockingMemory, system: ScoreSystem, *, since: datetime | None = None, author: str | None = None
) -> ScoresImported:
    """Imports what people said in another system of answers, which are found by their external ids.

    Run it as often as you like: what is here stays, what was changed there is changed, and what was deleted there is
    retracted. What another import chose, by other names or with evaluators, stays. With `since`, only what was changed
    from then on is read, so nothing is retracted. Authors are the users of the system, as `langfuse/<user>`, and each
    has one opinion of an answer: the latest. Scores that name no user are one visitor's; `author` names who gave them,
    if you know it.
    """
    author = checks.author("author", author)
    here = _Here(memory, system)
    counts = {"stored": 0, "unchanged": 0, "retracted": 0}
    errors: list[str] = []
    wanted: dict[Key, tuple[Score, NormalisedRating]] = {}
    unknown: set[Key] = set()
    others = _Others(system)
    for score in sorted(system.scores(list(here.answers), since), key=lambda score: score.at):
        key: Key = score.answer_id, _author(system, score.author or author)
        try:
            rating = normalise_rating(score.rating, scale=score.scale)
        except Invalid as error:
            if system.chooses(score):
                errors.append(f"{score.answer_id}: {error}")
            continue
        if not system.chooses(score):
            others.add(score, rating.score)
        elif score.answer_id not in here.answers:
            unknown.add(key)
        elif rating.score is not None or score.comment:
            wanted[key] = score, rating
    for key, (score, rating) in wanted.items():
        known = here.opinions.get(key)
        if known is not None and (known.score, known.comment) == (rating.score, score.comment):
            counts["unchanged"] += 1
            continue
        memory.sessions.rate(
            system.prefix + score.answer_id, score.rating, comment=score.comment, scale=score.scale, author=key[1]
        )
        counts["stored"] += 1
    if since is None:
        for key, gone in here.opinions.items():
            if key not in wanted and _is_of(system, gone.author) and not others.have(gone):
                memory.sessions.delete_feedback(gone.session_id, gone.qa_id, author=gone.author)
                counts["retracted"] += 1
    return ScoresImported(system=system.name, unknown=len(unknown), errors=errors, **counts)


def export_scores(memory: BlockingMemory, system: ScoreSystem) -> ScoresExported:
    """Writes what people said here of answers to another system, as scores with the name `heedful` from 0 to 1.

    Run it as often as you like: what is there stays, what was changed here is changed, and what was retracted here is
    deleted there. What was imported from the system is not written to it. Scores of other stores and of people are left
    alone: those of this one have its mark, which the first export puts into the metadata of the dataset
    `heedful-scores`.
    """
    mark = _mark(memory)
    here = _Here(memory, system)
    wanted = {
        score.key: score
        for score in (_to_score(opinion, mark) for opinion in here.opinions.values())
        if not _is_of(system, score.author)
    }
    there = {score.key: score for score in system.written(list(here.answers))}
    new = [score for key, score in wanted.items() if key not in there or there[key].content != score.content]
    old = [score for key, score in there.items() if key not in wanted and score.mark == mark]
    errors = system.write(new, frozenset(there))
    system.delete(old)
    counts = {"written": len(new) - len(errors), "unchanged": len(wanted) - len(new), "deleted": len(old)}
    return ScoresExported(system=system.name, errors=errors, **counts)


def _author(system: ScoreSystem, name: object) -> str:
    """The author here of what somebody said there; who has no name is a visitor."""
    return f"{VISITOR}{system.name}" if name is None else f"{system.name}/{name}"


def _is_of(system: ScoreSystem, author: str | None) -> bool:
    """Whether an opinion of this author was imported from the system."""
    return author == _author(system, None) or (author or "").startswith(_author(system, ""))


class _Others:
    """The scores that an import didn't choose: an opinion that says the same as one of them is from another import."""

    def __init__(self, system: ScoreSystem) -> None:
        self._system = system
        self._said: dict[tuple[str, int | None, str | None], set[str | None]] = {}

    def add(self, score: Score, rating: int | None) -> None:
        author = None if score.author is None else _author(self._system, score.author)
        self._said.setdefault((score.answer_id, rating, score.comment), set()).add(author)

    def have(self, opinion: _Opinion) -> bool:
        # Whoever imports a score without a user may name its author.
        authors = self._said.get((opinion.answer_id, opinion.score, opinion.comment), set())
        return None in authors or opinion.author in authors


class _Here:
    """The answers and the active opinions of a project that a system may know."""

    def __init__(self, memory: BlockingMemory, system: ScoreSystem) -> None:
        self.answers: dict[str, tuple[str, str]] = {}
        """Session and `qa_id`, by the id that an answer has there."""
        ids: dict[str, str] = {}
        for row in _rows(memory, "entries"):
            external_id = row["external_id"]
            if external_id is not None and external_id.startswith(system.prefix):
                ids[row["qa_id"]] = external_id.removeprefix(system.prefix)
                self.answers[ids[row["qa_id"]]] = row["session_id"], row["qa_id"]
        self.opinions: dict[Key, _Opinion] = {}
        for row in _rows(memory, "feedback"):
            qa_id, author = row["target_id"], row["author"]
            if row["target_type"] == "entry" and qa_id in ids and row["active"]:
                at = datetime.fromisoformat(row["created_at"])
                opinion = _Opinion(ids[qa_id], row["session_id"], qa_id, author, row["score"], row["comment"], at)
                self.opinions[opinion.answer_id, author] = opinion


def _rows(memory: BlockingMemory, table: TableName) -> Iterator[Mapping[str, Any]]:
    packed = io.BytesIO()
    memory.insight.export(table, packed, format="jsonl")
    return (json.loads(line) for line in packed.getvalue().splitlines())


def _mark(memory: BlockingMemory) -> str:
    """The mark of the scores of this store. It has to outlive the answers: the scores of a session
    that was deleted are to be deleted, too."""
    try:
        metadata = memory.get_dataset(MARKS).metadata
    except NotFound:
        metadata = {}
    if MARK not in metadata:
        metadata = memory.create_dataset(MARKS, metadata={MARK: str(uuid4())}).metadata
    return str(metadata[MARK])


def _to_score(opinion: _Opinion, mark: str) -> WrittenScore:
    key = str(uuid5(NAMESPACE_URL, f"heedful:{opinion.qa_id}/{opinion.author}"))
    value = None if opinion.score is None else (opinion.score - 1) / 4
    return WrittenScore(key, opinion.answer_id, value, opinion.comment, mark, opinion.author, opinion.at)


async def aimport_scores(
    memory: AnyMemory, system: ScoreSystem, *, since: datetime | None = None, author: str | None = None
) -> ScoresImported:
    """`import_scores`, awaited, with a memory of any kind."""
    return await asyncio.to_thread(import_scores, _for_threads(memory), system, since=since, author=author)


async def aexport_scores(memory: AnyMemory, system: ScoreSystem) -> ScoresExported:
    """`export_scores`, awaited, with a memory of any kind."""
    return await asyncio.to_thread(export_scores, _for_threads(memory), system)


def _for_threads(memory: Any) -> Any:
    return _Blocking(memory, asyncio.get_running_loop()) if inspect.iscoroutinefunction(memory.recall) else memory


class _Blocking:
    """A memory, or a part of one, whose calls are awaited in a loop while a thread waits for them."""

    def __init__(self, awaited: Any, loop: AbstractEventLoop) -> None:
        self._awaited = awaited
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._awaited, name)
        return blocking(found, self._loop) if inspect.iscoroutinefunction(found) else _Blocking(found, self._loop)
