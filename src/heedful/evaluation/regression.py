"""`regress`: what people rated well, asked again of a store with a change. Nothing is stored."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from sqlalchemy import Connection, func, select

from heedful import settings
from heedful.api import checks
from heedful.api.parameters import Progress
from heedful.clock import from_stored
from heedful.errors import HeedfulError, Invalid, NotFound
from heedful.evaluation import candidates
from heedful.evaluation.comparison import SHOWN, Compared, Ranks, grouped, missing_words, plain, ranks, totals, why
from heedful.evaluation.needs import needs_of_vectors
from heedful.evaluation.rated import Period, RatedExecution, rated_answers, rated_executions, rated_questions
from heedful.ledger import events as ledger
from heedful.ledger.fold_cache import folds_of
from heedful.ledger.rating_signals import EntryRow
from heedful.memory.recall import RecallRequest, check_request, recall
from heedful.model import (
    HelpfulFact,
    Hit,
    Mode,
    NotCompared,
    PolicyName,
    Regression,
    RegressReport,
    Retired,
)
from heedful.providers.configured import configured_embedder
from heedful.providers.embedding import Embedder, Vectors
from heedful.results import Result, decode
from heedful.sessions.entries import answer
from heedful.sql import records
from heedful.sql.sandbox.pool import Statement
from heedful.sql.space import ExecutionSpace
from heedful.storage import scopes
from heedful.storage.facts import SUPERSEDED
from heedful.storage.rows import select_in
from heedful.storage.schema import events, facts
from heedful.text import counted, shortened
from heedful.text.corrections import replacement_terms
from heedful.text.themes import themes
from heedful.text.words import words
from heedful.workspace import Workspace

CHUNK = 128  # Questions that are embedded and asked between two looks at the clock.
MAX_LISTED = 100  # Of what a report lists, what there is at most.
MAX_THEMED = 2_000  # Questions among which themes are found: their time grows with the square.


@dataclass(slots=True)
class Asked:
    """A question whose facts people rated, or an execution."""

    question: str
    dataset: str | None = None
    facts: dict[str, None] = field(default_factory=dict)
    entry: EntryRow | None = None
    """The newest answer that was rated well."""
    correction: tuple[str, str] | None = None
    """The text of an answer, and the newest correction of it."""
    by_answer: bool = True
    """Whether its facts are known from answers alone."""
    execution: RatedExecution | None = None
    need: str = ""
    place: int = 0


def regress(
    space: ExecutionSpace,
    dataset: str | None,
    since: datetime | None,
    policy: PolicyName | None,
    usefulness_weight: float | None,
    mode: Mode | None,
    embedding: str | Embedder | None,
    as_of: datetime | None,
    against: str | Path | None,
    answers: bool,
    executions: bool,
    own_votes: bool,
    sample: int,
    top_k: int,
    deadline: float | None,
    seed: int,
    progress: Progress | None,
) -> RegressReport:
    """Asks what was rated well of the store as it is and of the store with a change, and compares."""
    checks.flag("answers", answers)
    checks.flag("executions", executions)
    checks.flag("own_votes", own_votes)
    change = Change(policy, usefulness_weight, mode, embedding, checks.bound("as_of", as_of), against)
    change.check()
    begun = time.monotonic()
    base = space.workspace.looking()
    try:
        asked = _asked(space, base, Period.checked(dataset, since), with_executions=executions, answers=answers)
        run = _Run(space, base, change, top_k, begun, deadline, progress, answers, own_votes, seed)
        return run.report(asked, sample)
    finally:
        base.close()


@dataclass(frozen=True, slots=True)
class Change:
    """A change to try."""

    policy: PolicyName | None
    weight: float | None
    mode: Mode | None
    embedding: str | Embedder | None
    as_of: int | None
    against: str | Path | None

    def check(self) -> None:
        self.request("?", "d", 1)
        if self.against is not None and self.as_of is not None:
            remedy = "Leave one of them out: against asks another store as it is"
            raise Invalid("against can't be combined with as_of", field="as_of", value=self.as_of, remedy=remedy)

    def request(self, query: str, dataset: str, top_k: int) -> RecallRequest:
        return check_request(
            query, dataset, top_k, self.mode or "hybrid", None, self.weight, 0.3, 0.0, self.policy, 0.0, None, False
        )

    @property
    def asks_otherwise(self) -> bool:
        """Whether recalls differ, if only in what they ask for."""
        return any(value is not None for value in (self.policy, self.weight, self.mode))

    @property
    def elsewhere(self) -> bool:
        """Whether another store is asked."""
        return any(value is not None for value in (self.embedding, self.as_of, self.against))

    def __str__(self) -> str:
        model = self.embedding if isinstance(self.embedding, str | None) else self.embedding.name
        time = None if self.as_of is None else f"{from_stored(self.as_of):%Y-%m-%d %H:%M:%S}"
        store = None if self.against is None else candidates.display_name(self.against)
        named: dict[str, Any] = {"policy": self.policy, "usefulness_weight": self.weight, "mode": self.mode}
        named |= {"embedding": model, "as_of": time, "against": store}
        return (
            ", ".join(f"{name}={value}" for name, value in named.items() if value is not None) or "the store as it is"
        )

    @contextmanager
    def opened(self, base: Workspace, report: Progress | None) -> Iterator[Workspace]:
        """The store with the change, which is asked as well."""
        embedder = None
        if self.embedding is not None:
            embedder = configured_embedder(settings.load(), self.embedding)
        if self.against is not None:
            with candidates.other_store(base, self.against, embedder) as other:
                yield other
        elif self.elsewhere:
            with candidates.copied(base, embedder or base.embedder, self.as_of, report) as other:
                yield other
        else:
            yield base


def _asked(
    space: ExecutionSpace, base: Workspace, period: Period, *, with_executions: bool, answers: bool
) -> list[Asked]:
    """The questions that were rated well, each once for a dataset."""
    by_question: dict[tuple[str, str], Asked] = {}
    refused: dict[tuple[str, str], set[str]] = defaultdict(set)

    def of(dataset: str, question: str) -> Asked:
        return by_question.setdefault((dataset, plain(question)), Asked(question, dataset))

    for rated in rated_questions(base, period):
        refused[rated.dataset, plain(rated.question)].update(rated.not_helpful)
        if rated.helpful:
            one = of(rated.dataset, rated.question)
            one.facts |= dict.fromkeys(rated.helpful)
            one.by_answer = False
    for rated_answer in rated_answers(space.sessions, period):
        if rated_answer.dataset is None:
            continue
        key = rated_answer.dataset, plain(rated_answer.question)
        if rated_answer.votes.is_good:
            one = of(rated_answer.dataset, rated_answer.question)
            one.facts |= {fact: None for fact in rated_answer.facts if fact not in refused[key]}
            one.entry = rated_answer.entry
        elif answers and rated_answer.corrections:
            one = of(rated_answer.dataset, rated_answer.question)
            one.correction = rated_answer.entry.answer, rated_answer.corrections[-1].text
    ran = rated_executions(base, period) if with_executions else []
    asked = [one for one in by_question.values() if one.facts or (answers and (one.entry or one.correction))]
    return asked + [Asked(one.question, execution=one) for one in ran if one.votes.is_good]


class _OutOfTime(Exception):
    """The deadline came; what was compared is reported."""


@dataclass(slots=True, eq=False)
class _Run:
    """One comparison."""

    _space: ExecutionSpace
    _base: Workspace
    _change: Change
    _top_k: int
    _begun: float
    _deadline: float | None
    _progress: Progress | None
    _answers: bool
    _own_votes: bool
    _seed: int
    _phrasings: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    _compared: list[Compared] = field(default_factory=list)
    _sources: list[Asked] = field(default_factory=list)
    _retired: list[NotCompared] = field(default_factory=list)
    _done: int = 0
    _as_is: Change = Change(None, None, None, None, None, None)

    def report(self, asked: list[Asked], sample: int) -> RegressReport:
        rated = len(asked)
        # In random order, so that what a deadline leaves is a sample, too.
        chosen = Random(self._seed).sample(asked, min(sample, rated))
        vectors = np.empty((len(chosen), self._base.embedder.dimensions), np.float32)
        reached = 0
        worst: list[Regression] = []
        try:
            for run in self._chunks(chosen):
                self._check_time()
                vectors[run] = self._base.embed([one.question for one in chosen[run]])
                reached = run.stop
            needs = needs_of_vectors([one.question for one in chosen], vectors, self._base.embedder.calibration)
            for place, (one, need) in enumerate(zip(chosen, needs, strict=True)):
                one.need, one.place = need, place
                self._phrasings[need].append(one.question)
            with self._change.opened(self._base, self._copying) as other:
                self._prepare(self._base)
                if other is not self._base:
                    self._prepare(other)
                with suppress(_OutOfTime):
                    for run in self._chunks(chosen):
                        self._check_time()
                        self._compare(chosen[run], vectors[run], other)
                        self._done = run.stop
                        if self._progress is not None:
                            self._progress(run.stop, len(chosen))
                worst = self._worst(vectors, other)
        except _OutOfTime:
            pass
        return self._summed(rated, chosen, vectors[:reached], worst)

    @staticmethod
    def _chunks(chosen: Sequence[Asked]) -> list[slice]:
        return [slice(start, min(start + CHUNK, len(chosen))) for start in range(0, len(chosen), CHUNK)]

    def _check_time(self) -> None:
        if self._deadline is not None and time.monotonic() - self._begun >= self._deadline:
            raise _OutOfTime

    def _copying(self, done: int, total: int) -> None:
        self._check_time()

    def _prepare(self, workspace: Workspace) -> None:
        """Has all rated queries embedded first: those that wait would be found by some recalls and not by others."""
        with workspace.read() as connection:
            model = workspace.model(connection)
            for number in scopes.dataset_names(connection) if model is not None else ():
                assert model is not None
                newest = ledger.last_event(connection, number)
                wanted = ledger.queries_after(connection, number, 0)
                folds_of(workspace).contexts(connection, number, model, newest, needed=wanted)
                self._check_time()

    def _compare(self, run: Sequence[Asked], vectors: Vectors, other: Workspace) -> None:
        asked = [one for one in run if one.execution is None]
        texts = self._existing(asked, other)
        own = vectors
        if asked and not self._same_vectors(other):
            own = np.zeros((len(run), other.embedder.dimensions), np.float32)
            places = [place for place, one in enumerate(run) if one.execution is None]
            own[places] = other.embed([one.question for one in asked])
        for one, vector, changed in zip(run, vectors, own, strict=True):
            if one.execution is not None:
                self._run_again(one, one.execution, other)
                continue
            helpful = {fact: texts[fact] for fact in one.facts if fact in texts}
            if helpful:
                before = self._hits(self._base, self._as_is, one, vector)
                same = other is self._base and not self._change.asks_otherwise
                after = before if same else self._hits(other, self._change, one, changed)
                self._add(one, _compared(one, helpful, ranks(before, helpful), ranks(after, helpful)))
            if self._answers:
                self._answer_again(one, other)

    def _same_vectors(self, other: Workspace) -> bool:
        """Whether questions have the same vectors there."""
        own, theirs = self._base.embedder, other.embedder
        return (own.name, own.dimensions) == (theirs.name, theirs.dimensions)

    def _add(self, one: Asked, compared: Compared) -> None:
        self._compared.append(compared)
        self._sources.append(one)

    def _hits(
        self, workspace: Workspace, change: Change, one: Asked, vector: Vectors, *, explain: bool = False
    ) -> list[Hit]:
        request = replace(self._request(change, one), explain=explain)
        try:
            return recall(workspace, request, quiet=True, vector=vector).hits
        except NotFound:
            # The other store has no such dataset.
            return []

    def _request(self, change: Change, one: Asked) -> RecallRequest:
        request = change.request(one.question, one.dataset or "", self._top_k)
        return request if self._own_votes else replace(request, held_out=tuple(self._phrasings[one.need]))

    def _existing(self, asked: Sequence[Asked], other: Workspace) -> dict[str, str]:
        """The texts of the facts that can be compared; the others are listed with the reason why they can't."""
        wanted = list(dict.fromkeys(fact for one in asked for fact in one.facts))
        with self._base.read() as connection:
            texts, gone = _facts(connection, wanted, self._base.now())
        if other is not self._base:
            with self._base.read() as own, other.read() as theirs:
                gone |= _gone_there(own, theirs, list(texts), other.now(), self._change.as_of)
        for one in asked:
            for fact in one.facts.keys() & gone.keys():
                reason, detail = gone[fact]
                kind = "answer" if one.by_answer else "question"
                self._retire(one, kind, reason, detail, fact)
        return {fact: text for fact, text in texts.items() if fact not in gone}

    def _retire(self, one: Asked, kind: Any, reason: Retired, detail: str, fact: str | None = None) -> None:
        self._retired.append(
            NotCompared(
                kind=kind, question=one.question, dataset=one.dataset, fact_id=fact, reason=reason, detail=detail
            )
        )

    def _answer_again(self, one: Asked, other: Workspace) -> None:
        """Whether the answer still says what the rated one said, or what its correction says."""
        if one.entry is None and one.correction is None:
            return
        model = self._space.language_model
        try:
            after = self._answer(one, other, self._change)
            if model is not None:
                # What the model before it would have said is known from what was rated.
                before = one.entry.answer if one.entry is not None else (one.correction or ("", ""))[0]
            else:
                before = self._answer(one, self._base, self._as_is)
        except HeedfulError as error:
            self._retire(one, "answer", "not_written", f"the answer could not be written: {error.message}")
            return
        was, now = _lacking(one, before), _lacking(one, after)
        reason = "" if now is None else f"it no longer says: {', '.join(now[:10])}"
        target = None if one.entry is None else one.entry.id
        scores = float(was is None), float(now is None)
        says = shortened(before, SHOWN), shortened(after, SHOWN)
        self._add(one, Compared("answer", one.question, one.dataset, *scores, target, says=says, reason=reason))

    def _answer(self, one: Asked, workspace: Workspace, change: Change) -> str:
        request = self._request(change, one)
        written = answer(
            self._space.sessions, workspace, self._space.language_model, request, None, None, quiet=True
        ).answer
        return written or ""

    def _run_again(self, one: Asked, rated: RatedExecution, other: Workspace) -> None:
        """Whether proven SQL still runs, and returns the same."""
        with self._base.read() as connection:
            stored = records.get_run(connection, self._space.project(connection), rated.execution_id)
            connector = records.get_connector(connection, self._space.project(connection), rated.connector_id)
        if stored is None or connector is None:
            self._retire(one, "execution", "forgotten", "its connector was deleted")
            return
        before = decode(stored.result)
        now, reason = "", ""
        try:
            there = replace(self._space, workspace=other)
            if other is not self._base and self._change.against is not None:
                connector = there.read_connector(connector.name)
            ran = there.queries.run(there.target(connector), Statement(rated.sql_query, rated.parameters)).result
            now, reason = _table(ran), _changed_columns(before, ran)
            if not reason and (difference := _changed_rows(before, ran)):
                self._retire(one, "execution", "rows_changed", difference)
                return
        except HeedfulError as error:
            reason = f"it is refused: {error.message}"
        score = 0.0 if reason else 1.0
        says = _table(before), now or None
        self._add(
            one, Compared("execution", one.question, None, 1.0, score, rated.execution_id, says=says, reason=reason)
        )

    def _worst(self, vectors: Vectors, other: Workspace) -> list[Regression]:
        """The questions that get worse, worst first, with the reasons."""
        worse = [place for place, one in enumerate(self._compared) if one.is_worse]
        worse.sort(key=lambda place: (self._compared[place].change, self._compared[place].question))
        return [
            self._explained(self._compared[place], self._sources[place], vectors, other) for place in worse[:MAX_LISTED]
        ]

    def _explained(self, compared: Compared, one: Asked, vectors: Vectors, other: Workspace) -> Regression:
        reason, (before, after) = compared.reason, compared.says
        if compared.places:
            vector = vectors[one.place]
            old = self._hits(self._base, self._as_is, one, vector, explain=True)
            if not self._same_vectors(other):
                vector = other.embed([one.question])[0]
            new = self._hits(other, self._change, one, vector, explain=True)
            lost = max(compared.places, key=lambda fact: _places_lost(*compared.places[fact], self._top_k))
            hit, there = (_hit_of(compared.texts[lost], lost, hits) for hits in (old, new))
            reason = why(compared.texts[lost], hit, there, old, new)
            before, after = (shortened(hits[0].text, SHOWN) if hits else None for hits in (old, new))
        return Regression(
            kind=compared.kind,
            question=compared.question,
            dataset=compared.dataset,
            theme=None,
            target_id=compared.target_id,
            change=round(compared.change, 6),
            facts=[
                HelpfulFact(
                    fact_id=fact, text=shortened(compared.texts[fact], SHOWN), old_rank=old_rank, new_rank=new_rank
                )
                for fact, (old_rank, new_rank) in compared.places.items()
            ],
            before=before,
            after=after,
            reason=reason,
        )

    def _summed(
        self, rated: int, chosen: Sequence[Asked], vectors: Vectors, worst: Sequence[Regression]
    ) -> RegressReport:
        compared, sources = self._compared, self._sources
        named = _themes(chosen[: len(vectors)], vectors)
        theme_of = {chosen[place].question: name for place, name in named.items()}
        summed = totals(compared, [one.need for one in sources], self._seed)
        return RegressReport(
            candidate=str(self._change),
            rated=rated,
            compared=len(compared),
            needs=summed.needs,
            complete=self._done == len(chosen),
            better=sum(one.is_better for one in compared),
            same=sum(not one.is_better and not one.is_worse for one in compared),
            worse=sum(one.is_worse for one in compared),
            kept=summed.kept,
            score_before=summed.before,
            score_after=summed.after,
            change=summed.change,
            certainty=summed.certainty,
            is_worse=summed.is_worse,
            worst=[one.model_copy(update={"theme": theme_of.get(one.question)}) for one in worst],
            not_compared=self._retired[:MAX_LISTED],
            retired=len(self._retired),
            kinds=grouped(compared, [one.kind for one in compared]),
            datasets=grouped(compared, [one.dataset for one in compared]),
            themes=grouped(compared, [named.get(one.place) for one in sources]),
            seed=self._seed,
        )


def _compared(one: Asked, helpful: Mapping[str, str], before: Ranks, after: Ranks) -> Compared:
    return Compared(
        "answer" if one.by_answer else "question",
        one.question,
        one.dataset,
        before.score,
        after.score,
        None if one.entry is None else one.entry.id,
        {fact: (before.places[fact], after.places[fact]) for fact in helpful},
        dict(helpful),
    )


def _places_lost(old: int | None, new: int | None, top_k: int) -> int:
    return (top_k + 1 if new is None else new) - (top_k + 1 if old is None else old)


def _hit_of(text: str, fact: str, hits: Sequence[Hit]) -> Hit | None:
    place = ranks(hits, {fact: text}).places[fact]
    return None if place is None else hits[place - 1]


def _lacking(one: Asked, said: str) -> list[str] | None:
    """The words that an answer should have and lacks; None if it says all."""
    if one.entry is not None:
        return missing_words(one.entry.answer, one.question, said)
    wrong, correction = one.correction or ("", "")
    terms = {word.term for word in words(said)}
    return sorted(replacement_terms(correction, wrong, one.question) - terms) or None


Gone = dict[str, tuple[Retired, str]]


def _facts(connection: Connection, ids: Sequence[str], now: int) -> tuple[dict[str, str], Gone]:
    """The texts of facts that recall can find, and why it can't find the others."""
    columns = select(facts.c.id, facts.c.text, facts.c.hidden, facts.c.expires_at)
    rows = {row.id: row for row in select_in(connection, columns, facts.c.id, ids)}
    gone: Gone = {}
    for fact in ids:
        row = rows.get(fact)
        if row is None:
            gone[fact] = "forgotten", "the fact was forgotten"
        elif row.hidden & SUPERSEDED:
            gone[fact] = "superseded", "another fact corrects it"
        elif row.hidden:
            gone[fact] = "superseded", "its document no longer says it, or what it was learnt from is gone"
        elif row.expires_at is not None and row.expires_at <= now:
            gone[fact] = "expired", f"it expired at {from_stored(row.expires_at):%Y-%m-%d %H:%M:%S}"
    return {fact: row.text for fact, row in rows.items() if fact not in gone}, gone


def _gone_there(base: Connection, connection: Connection, ids: Sequence[str], now: int, as_of: int | None) -> Gone:
    """The facts that another store lacks on purpose: its ledger knows them, or they are younger than the time that is
    asked about. What it never knew is lost, and so is what a document said that was imported again."""
    _, gone = _facts(connection, ids, now)
    absent = [fact for fact, (reason, _) in gone.items() if reason == "forgotten"]
    if as_of is not None:
        then = f"{from_stored(as_of):%Y-%m-%d %H:%M:%S}"
        return gone | dict.fromkeys(absent, ("not_stored_then", f"it was not stored at {then}"))
    targets = select(events.c.target_id).distinct()
    known = {row.target_id for row in select_in(connection, targets, events.c.target_id, absent)}
    rows = select_in(base, select(facts.c.id, facts.c.source, facts.c.dataset_id), facts.c.id, sorted(known))
    source_of = {row.id: (row.dataset_id, row.source) for row in rows if row.source is not None}
    named, theirs = (scopes.dataset_names(one) for one in (base, connection))
    numbers = {name: number for number, name in theirs.items()}
    anew = {
        (dataset, source)
        for dataset, source in set(source_of.values())
        if _newest(connection, numbers.get(named[dataset]), source) > _newest(base, dataset, source)
    }
    lost = {fact for fact in absent if fact not in known or source_of.get(fact) in anew}
    return {fact: why for fact, why in gone.items() if fact not in lost}


def _newest(connection: Connection, dataset: int | None, source: str | None) -> int:
    """When the newest fact of a document was stored."""
    newest = select(func.max(facts.c.created_at)).where(facts.c.dataset_id == dataset, facts.c.source == source)
    return int(connection.execute(newest).scalar() or 0)


def _table(result: Result) -> str:
    """A result in a line."""
    names = ", ".join(column.name for column in result.columns)
    first = "; ".join(", ".join(map(str, row)) for row in result.rows[:3])
    return shortened(f"{counted(len(result.rows), 'row')} ({names}): {first}", SHOWN)


def _changed_columns(before: Result, after: Result) -> str:
    old, new = ([column.name for column in result.columns] for result in (before, after))
    return "" if old == new else f"its columns were {', '.join(old)}, and are {', '.join(new)}"


def _changed_rows(before: Result, after: Result) -> str:
    """How the rows differ, whatever their order; what was cut off says nothing."""
    if before.truncated or after.truncated:
        return ""
    old, new = (Counter(map(repr, result.rows)) for result in (before, after))
    if old == new:
        return ""
    gone, more = sum((old - new).values()), sum((new - old).values())
    return f"the database has changed: of {counted(len(before.rows), 'row')}, {gone} gone, {more} new"


def _themes(chosen: Sequence[Asked], vectors: Vectors) -> dict[int, str]:
    """The theme of each question that has one, by its place."""
    first = list(range(min(len(chosen), MAX_THEMED)))
    found = themes([chosen[place].question for place in first], vectors[first])
    return {member: theme.name for theme in found for member in theme.members}
