"""Training data from the ledger of one project: what is read, grouped by need in a file on disk, and handed out."""

from __future__ import annotations

import hashlib
import sqlite3
import tempfile
import threading
import weakref
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, get_args

import orjson
from sqlalchemy import Connection, func, select

from heedful.api import checks
from heedful.api.parameters import Output, Progress
from heedful.clock import from_stored
from heedful.errors import Invalid
from heedful.evaluation.needs import needs_of
from heedful.evaluation.rated import (
    RUN,
    Author,
    Period,
    RatedAnswer,
    RatedQuestion,
    Votes,
    answers_in_runs,
    questions_in_runs,
    rated_executions,
)
from heedful.evaluation.training import KINDS, Kind, Need, Schema, Thing, lines, split_of
from heedful.evaluation.training_files import card, changed, training_file
from heedful.ledger import receipts, supersessions
from heedful.ledger.erasure import PLACEHOLDER
from heedful.ledger.events import ERASURE
from heedful.memory.answer import said
from heedful.memory.recall import check_where
from heedful.model import Metadata, TrainingData, TrainingExport, TrainingFormat, TrainingPage, TrainingSplit
from heedful.sql import records
from heedful.sql.generation import describe_schema
from heedful.sql.reuse.ownership import may_be_personal
from heedful.sql.space import ExecutionSpace
from heedful.storage import facts, scopes
from heedful.storage.filters import selections
from heedful.storage.rows import AnyRow, select_in
from heedful.storage.schema import changes, connectors, events, golden_examples
from heedful.storage.schema import facts as fact_rows
from heedful.text.complaints import personal_data
from heedful.text.corrections import confirmed, corrected, replacement_terms
from heedful.text.same_question import normal
from heedful.text.words import words
from heedful.workspace import Workspace

_ADD_NEED = """
    INSERT INTO needs VALUES (?, ?, NULL) ON CONFLICT (words) DO UPDATE SET text = min(text, excluded.text)
"""

DIGEST = 16  # Characters of the hash of all lines that a cursor has.

GOLDEN = "\0golden"  # The author of the vote that a golden example is.


@dataclass(frozen=True, slots=True)
class Request:
    """Which training data are asked for."""

    format: TrainingFormat
    period: Period
    where: Metadata | None
    test_share: float
    split: TrainingSplit | None


def _request(
    format: TrainingFormat,
    dataset: str | None,
    where: Metadata | None,
    since: datetime | None,
    until: datetime | None,
    visitors: bool,
    test_share: float,
    split: TrainingSplit | None,
) -> Request:
    for name, value, choices in (("format", format, TrainingFormat), ("split", split, TrainingSplit)):
        if value is not None or name == "format":
            known: Sequence[str] = get_args(choices)
            if value not in known:
                raise Invalid.unknown(name, value, known)
    for name, given in (("dataset", dataset), ("where", where)):
        if format == "text2sql" and given is not None:
            remedy = "Leave it out; the lines name their connector"
            message = f"{name} does not apply to text2sql: SQL belongs to no dataset"
            raise Invalid(message, field=name, value=given, remedy=remedy)
    period = Period.checked(dataset, since, until, visitors=visitors)
    if period.since is not None and period.until is not None and period.since >= period.until:
        raise Invalid("since must be before until", field="since", value=since, remedy="Swap the two, or leave one out")
    return Request(format, period, check_where(where), test_share, split)


class Lines:
    """Lines of training data in order, in a temporary file that goes when nobody needs it any more."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed with this object.
        self._close = weakref.finalize(self, self._file.close)
        self._starts = array("Q", [0])
        self._lock = threading.Lock()
        self.data: TrainingData | None = None

    def __len__(self) -> int:
        return len(self._starts) - 1

    def add(self, line: bytes) -> None:
        self._file.write(line)
        self._starts.append(self._starts[-1] + len(line))

    def some(self, start: int, limit: int) -> list[bytes]:
        stop = min(start + limit, len(self))
        with self._lock:
            self._file.seek(self._starts[start])
            content = self._file.read(self._starts[stop] - self._starts[start])
        return content.splitlines(keepends=True)


class TrainingCache:
    """The lines that were asked for last, as long as nothing was written that could change them."""

    def __init__(self, workspace: Workspace) -> None:
        self._last: tuple[Any, Lines] | None = None

    def get(self, key: Any) -> Lines | None:
        last = self._last
        return last[1] if last is not None and last[0] == key else None

    def put(self, key: Any, made: Lines) -> None:
        self._last = key, made

    def drop(self, dataset: int) -> None:
        self._last = None


def training(
    space: ExecutionSpace,
    cursor: str | None,
    limit: int,
    **asked: Any,
) -> TrainingPage:
    """A page of lines; a cursor names the data that it belongs to."""
    made = _lines(space, _request(**asked))
    assert made.data is not None
    digest, start = (made.data.sha256[:DIGEST], 0) if cursor is None else _parse_cursor(cursor)
    if digest != made.data.sha256[:DIGEST] or start > len(made):
        raise changed(cursor)
    stop = min(start + limit, len(made))
    return TrainingPage(
        items=[orjson.loads(line) for line in made.some(start, limit)],
        next_cursor=f"{digest}.{stop}" if stop < len(made) else None,
        data=made.data,
    )


def _parse_cursor(cursor: Any) -> tuple[str, int]:
    digest, dot, place = cursor.partition(".") if isinstance(cursor, str) else ("", "", "")
    if not dot or len(digest) != DIGEST:
        raise checks.invalid_cursor(cursor)
    return digest, checks.cursor(place) or 0


def export_training(
    space: ExecutionSpace,
    path: Output,
    format: TrainingFormat,
    overwrite: bool,
    progress: Progress | None,
    **filters: Any,
) -> TrainingExport:
    """All lines in a file."""
    request = _request(format, **filters)
    with training_file(path, overwrite) as output:
        made = _made(space, request, progress)
        assert made.data is not None
        for start in range(0, len(made), RUN):
            output.add(made.some(start, RUN))
        return output.end(made.data)


def _lines(space: ExecutionSpace, request: Request) -> Lines:
    """The lines, kept while nothing changes. Of sessions in another database nobody knows whether they changed."""
    if space.sessions.store.remote:
        return _made(space, request)
    cache = space.workspace.part(TrainingCache)
    with space.workspace.read() as connection:
        key = orjson.dumps([request, _state(connection, space)])
    made = cache.get(key)
    if made is None:
        made = _made(space, request)
        cache.put(key, made)
    return made


def _state(connection: Connection, space: ExecutionSpace) -> list[Any]:
    """A value that changes with everything that lines are made from."""
    project = scopes.project_id(connection, space.workspace.project)
    known = select(connectors.c.id, connectors.c.name, connectors.c.fingerprint).order_by(connectors.c.seq)
    statements = [
        *(select(func.max(table.c.seq)).where(table.c.project_id == project) for table in (events, changes)),
        select(func.count(), func.max(golden_examples.c.updated_at)).where(golden_examples.c.project_id == project),
        known.where(connectors.c.project_id == project),
        select(func.count()).where(
            fact_rows.c.dataset_id.in_(list(scopes.dataset_names(connection))),
            fact_rows.c.expires_at <= space.workspace.now(),
        ),
    ]
    return [[tuple(row) for row in connection.execute(statement)] for statement in statements]


def _made(space: ExecutionSpace, request: Request, progress: Progress | None = None) -> Lines:
    reader = _Reader(space, request)
    with closing(sqlite3.connect("")) as spool:
        # On disk, and gone when it is closed: what was rated may be more than fits into memory.
        spool.execute("CREATE TABLE things (words TEXT, scope TEXT, thing BLOB)")
        spool.execute("CREATE TABLE needs (words TEXT PRIMARY KEY, text TEXT, need TEXT) WITHOUT ROWID")
        # The needs of all formats, so that no need of one file is on the other side of another.
        for run in reader.things():
            spool.executemany(_ADD_NEED, [(thing.words, thing.question) for thing in run])
            wanted = [thing for thing in run if thing.kind in KINDS[request.format]]
            spool.executemany(
                "INSERT INTO things VALUES (?, ?, ?)", [(each.words, each.scope, each.packed()) for each in wanted]
            )
        asked = [text for (text,) in spool.execute("SELECT text FROM needs ORDER BY words")]
        names = needs_of(space.workspace.embedder, asked, progress)
        spool.executemany("UPDATE needs SET need = ? WHERE words = ?", zip(names, map(normal, asked), strict=True))
        rows = spool.execute("SELECT need, scope, thing FROM things JOIN needs USING (words) ORDER BY need, scope")
        return _finished(space, request, reader, groupby(rows, key=itemgetter(0, 1)))


def _finished(
    space: ExecutionSpace, request: Request, reader: _Reader, groups: Iterable[tuple[Any, Iterator[Any]]]
) -> Lines:
    made, whole = Lines(), hashlib.sha256()
    splits: dict[TrainingSplit, int] = {"train": 0, "test": 0}
    needs: set[str] = set()
    left_out = reader.left_out
    for (name, scope), rows in groups:
        side = split_of(name, request.test_share)
        if request.split not in (None, side):
            continue
        need = Need(scope, (Thing.unpacked(packed) for *_, packed in rows))
        for _, line in lines(request.format, name, need, side, reader.schemas):
            made.add(line)
            whole.update(line)
            splits[side] += 1
            needs.add(name)
        left_out += need.left_out
    counts = {reason: count for reason, count in sorted(left_out.items()) if count}
    about = {"splits": splits, "needs": len(needs), "left_out": counts, "sha256": whole.hexdigest()}
    data = TrainingData(format=request.format, lines=len(made), card="", **about)  # type: ignore[arg-type]
    made.data = data.model_copy(update={"card": card(data, reader.made_from())})
    return made


class _Reader:
    """Reads the ratings of a project, as things that were shown for a question."""

    def __init__(self, space: ExecutionSpace, request: Request) -> None:
        self._space = space
        self._workspace = space.workspace
        self._request = request
        self.left_out: Counter[str] = Counter()
        self._erased: set[Author] = set()
        self._erased_recalls: set[str] = set()
        self.schemas: dict[str, Schema] = {}
        self._fingerprints: dict[str, str | None] = {}
        with self._workspace.read() as connection:
            self._project = scopes.project_id(connection, self._workspace.project)
            if self._project is None:
                return
            erasures = select(events.c.target_id).where(events.c.project_id == self._project, events.c.kind == ERASURE)
            self._erased = set(connection.execute(erasures).scalars())
            for row in records.list_connectors(connection, self._project):
                self.schemas[row.id] = Schema(row.name, records.dialect_of(row), describe_schema(row))
                self._fingerprints[row.id] = row.fingerprint
        if self._erased:
            # The words of a recall stay if somebody rated what it showed.
            self._erased_recalls = space.sessions.store.read(
                lambda tx: {
                    entry.recall_id
                    for entry in tx.conversations.entries_of(None)
                    if entry.question == PLACEHOLDER and entry.recall_id is not None
                }
            )

    def made_from(self) -> dict[str, str]:
        """The choice and the state of the ledger, for the card."""
        request, period = self._request, self._request.period
        times = [None if at is None else f"{from_stored(at):%Y-%m-%d %H:%M:%S}" for at in (period.since, period.until)]
        last = "none"
        with self._workspace.read() as connection:
            own = select(events.c.id).where(events.c.project_id == self._project).order_by(events.c.seq.desc()).limit(1)
            last = connection.execute(own).scalar() or last
        where = "" if request.where is None else orjson.dumps(request.where, option=orjson.OPT_SORT_KEYS).decode()
        return {
            "project": self._workspace.project,
            "newest event of the ledger": last,
            "datasets": period.dataset or "all",
            **({"facts with": f"`{where}`"} if where else {}),
            "ratings": f"from {times[0] or 'the first'} until {times[1] or 'the last'}",
            "visitors": "count" if period.visitors else "left out",
            "embedding model, for needs": self._workspace.embedder.name,
            "share of needs in test": f"{request.test_share:g}",
            "sides": request.split or "both",
        }

    def things(self) -> Iterator[list[Thing]]:
        for answers in answers_in_runs(self._space.sessions, self._request.period):
            yield list(self._answers(answers))
        for questions in questions_in_runs(self._workspace, self._request.period):
            yield list(self._questions(questions))
        if self._request.where is None and self._request.period.dataset is None and self._project is not None:
            yield list(self._executions())
            yield from self._examples(self._project)

    def _leave_out(self, kind: Kind, reason: str) -> None:
        """Counts something that the format would be made from."""
        self.left_out[reason] += kind in KINDS[self._request.format]

    def _votes(self, votes: Votes) -> Votes:
        """Those of people who were not erased."""
        return Votes({author: vote for author, vote in votes.by.items() if author not in self._erased})

    def _allowed(self, connection: Connection, ids: Collection[str]) -> set[str]:
        """Those of these facts whose metadata fit."""
        if self._request.where is None:
            return set(ids)
        found: set[str] = set()
        for dataset in scopes.dataset_names(connection):
            chosen = select(fact_rows.c.id).where(
                fact_rows.c.dataset_id == dataset,
                *(fact_rows.c.seq.in_(each) for each in selections(dataset, self._request.where)),
            )
            found.update(row.id for row in select_in(connection, chosen, fact_rows.c.id, sorted(ids)))
        return found

    def _answers(self, answers: Sequence[RatedAnswer]) -> Iterator[Thing]:
        with self._workspace.read() as connection:
            # Nobody has found out yet which facts these used: any that was shown.
            recalls = [
                each.entry.recall_id
                for each in answers
                if each.entry.recall_id is not None and (each.entry.used is None or self._request.format == "triplets")
            ]
            shown = receipts.shown_facts(connection, recalls)
            used = {
                answer.entry.id: shown.get(answer.entry.recall_id or "", [])
                if answer.entry.used is None
                else [fact for fact, _, _ in answer.entry.used]
                for answer in answers
            }
            ids = {fact for of_one in (*used.values(), *shown.values()) for fact in of_one}
            stored = facts.evidence(connection, sorted(ids), self._workspace.now())
            allowed = self._allowed(connection, ids)
            outdated = [fact for answer in answers if answer.corrections for fact in used[answer.entry.id]]
            successors = self._successors(
                connection, [each for each in outdated if each in stored and not stored[each].active]
            )
        for answer in answers:
            fact_ids = used[answer.entry.id]
            if self._request.where is None or (fact_ids and allowed.issuperset(fact_ids)):
                made = list(self._answer(answer, fact_ids, stored, successors))
                yield from made
                rest = shown.get(answer.entry.recall_id or "", []) if made else []
                for fact in rest:
                    if fact in allowed and fact in stored and stored[fact].active and fact not in fact_ids:
                        yield Thing("shown", made[0].scope, made[0].question, stored[fact].text)

    def _successors(self, connection: Connection, fact_ids: Sequence[str]) -> dict[str, str]:
        """By superseded fact, the text of the current one that took its place."""
        latest = {fact: fact for fact in fact_ids}
        for _ in range(100):
            steps = {
                row.target_id: row.value for row in supersessions.supersessions(connection, sorted({*latest.values()}))
            }
            if not steps:
                break
            latest = {fact: steps.get(newest, newest) for fact, newest in latest.items()}
        current = facts.evidence(connection, sorted({*latest.values()}), self._workspace.now())
        return {fact: current[new].text for fact, new in latest.items() if new in current and current[new].active}

    def _answer(
        self, answer: RatedAnswer, fact_ids: Sequence[str], stored: Mapping[str, AnyRow], successors: Mapping[str, str]
    ) -> Iterator[Thing]:
        entry = answer.entry
        text, votes = said(entry.answer), self._votes(answer.votes)
        corrections = [each for each in answer.corrections if each.author not in self._erased]
        if entry.question == PLACEHOLDER or not (votes.by or corrections):
            self._leave_out("answer", "erased")
            return
        if not text:
            return
        if any(fact not in stored for fact in fact_ids):
            self._leave_out("answer", "forgotten")
            return
        evidence = [stored[fact] for fact in fact_ids]
        current = [fact.text for fact in evidence if fact.active]
        if self._is_private("answer", [entry.question, text], current):
            return
        whole = Thing(
            *("answer", entry.dataset or "", entry.question, text, votes, len(current) == len(evidence)),
            tuple((fact, stored[fact].text) for fact in answer.facts if stored[fact].active),
        )
        if votes.by:
            yield whole
        for author, comment, at in corrections:
            if self._is_private("correction", [comment], current):
                continue
            said_by_facts = [fact.text for fact in evidence]
            place = corrected(comment, said_by_facts, entry.question)
            terms: frozenset[str] = frozenset()
            if place is not None:
                terms = replacement_terms(comment, evidence[place].text, entry.question)
            else:
                place = confirmed(comment, said_by_facts)
            if place is None:
                self._leave_out("correction", "no_fact_corrected")
                continue
            fact = evidence[place]
            newer = {word.term for word in words(successors.get(fact.id, ""))}
            yield replace(
                whole,
                kind="correction",
                text=comment,
                votes=Votes({author: (at, True)}),
                is_current=fact.active or bool(terms and terms <= newer),
                facts=((fact.id, fact.text),),
                corrects=text,
                terms=tuple(sorted(terms)),
            )

    def _is_private(self, kind: Kind, texts: Iterable[str], current: Iterable[str]) -> bool:
        """Whether texts have personal data that no current fact behind them has: perhaps they were taken out of it."""
        private = {data for text in texts for data in personal_data(text)}
        if private and not private <= {data for text in current for data in personal_data(text)}:
            self._leave_out(kind, "personal_data")
            return True
        return False

    def _questions(self, questions: Sequence[RatedQuestion]) -> Iterator[Thing]:
        with self._workspace.read() as connection:
            named = sorted({receipt for question in questions for receipt in question.receipts})
            shown = receipts.shown_facts(connection, named) if self._request.format == "triplets" else {}
            ids = {fact for question in questions for fact in question.facts}.union(*shown.values())
            stored = facts.evidence(connection, sorted(ids), self._workspace.now())
            allowed = self._allowed(connection, ids)
        for question in questions:
            if question.receipts and self._erased_recalls.issuperset(question.receipts):
                self._leave_out("fact", "erased")
                continue
            rated = {fact: self._votes(votes) for fact, votes in question.facts.items() if fact in allowed}
            rest = [fact for receipt in question.receipts for fact in shown.get(receipt, ())]
            unrated = {fact: Votes() for fact in rest if fact in allowed and fact not in question.facts}
            for fact, votes in (rated | unrated).items():
                kind: Kind = "fact" if fact in question.facts else "shown"
                if kind == "fact" and not votes.by:
                    self._leave_out(kind, "erased")
                elif fact not in stored:
                    self._leave_out("fact", "forgotten")
                elif kind == "fact" or stored[fact].active:
                    text, is_current = stored[fact].text, stored[fact].active
                    if not self._is_private(kind, [question.question], [text] if is_current else []):
                        about = (question.dataset, question.question, text, votes, is_current)
                        yield Thing(kind, *about, facts=((fact, text),))

    def _executions(self) -> Iterator[Thing]:
        for run in rated_executions(self._workspace, self._request.period):
            votes = self._votes(run.votes)
            if not votes.by:
                self._leave_out("sql", "erased")
            elif run.fingerprint != self._fingerprints.get(run.connector_id):
                self._leave_out("sql", "schema_changed")
            elif self._is_for_all(run.audience, run.question, run.sql_query):
                parameters = orjson.dumps(run.parameters, option=orjson.OPT_SORT_KEYS).decode()
                yield Thing("sql", run.connector_id, run.question, run.sql_query, votes, parameters=parameters)

    def _examples(self, project: int) -> Iterator[list[Thing]]:
        period, skip = self._request.period, 0
        while True:
            with self._workspace.read() as connection:
                rows = records.list_examples(connection, project, None, skip, RUN)
            if not rows:
                return
            yield [
                replace(example, votes=Votes({GOLDEN: (row.updated_at, True)}), parameters="{}")
                for row in rows
                if period.contains(row.updated_at) and self._is_for_all(row.audience, row.question, row.sql_query)
                for example in [Thing("sql", row.connector_id, row.question, row.sql_query)]
            ]
            skip += len(rows)

    def _is_for_all(self, audience: str | None, question: str, sql: str) -> bool:
        if audience is not None or may_be_personal(question):
            self._leave_out("sql", "for_somebody")
            return False
        return not self._is_private("sql", [question, sql], ())
