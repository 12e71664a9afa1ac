"""The safe cache: similarity finds candidates, gates decide, and what is reused is run now.

Its coverage says what it knows, what it is asked and refuses, and what to prove next.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection

from heedful.clock import DAY, from_stored
from heedful.errors import HeedfulError
from heedful.model import (
    DECISIONS,
    CacheCoverage,
    CacheLookup,
    CacheMatch,
    CacheSuggestion,
    Decision,
    Execution,
    MissingExample,
    Origin,
    ProvenKind,
    RefusedKind,
    Reuse,
)
from heedful.sql import executions, records
from heedful.sql.executions import QuestionSource
from heedful.sql.records import dialect_of
from heedful.sql.reuse import candidates, reasons
from heedful.sql.reuse.candidates import Candidate, Limits, Questions
from heedful.sql.reuse.decision import Question, choose, same_frame_ids
from heedful.sql.reuse.evidence import Evidence
from heedful.sql.reuse.ownership import NOBODY, Asker, Person, person
from heedful.sql.reuse.proofs import Circle, ProofsSnapshot
from heedful.sql.reuse.query_parts import nondeterminism, with_gaps
from heedful.sql.reuse.question_words import Words
from heedful.sql.reuse.reasons import Verdict
from heedful.sql.reuse.study import ProvenQuery
from heedful.sql.sandbox.pool import Statement
from heedful.sql.space import FILES, ExecutionSpace
from heedful.storage.rows import AnyRow
from heedful.storage.vectors import Vectors, pack
from heedful.text.regex import regex

GATES_OF_WORDS = frozenset(
    ("literals", "words", "scope", "aggregate", "operators", "negation", "form", "argument_order")
)
WRONG = Verdict("refuse", "sql", reasons.WRONG)
ANOTHER_ASKER = Verdict("refuse", "asker", reasons.ANOTHER_ASKER)
ANOTHER_OWNER = Verdict("refuse", "asker", reasons.ANOTHER_OWNER)
_PLACES = {decision: place for place, decision in enumerate(DECISIONS)}


class JudgedCandidate(NamedTuple):
    """A candidate with the decision of the gates."""

    candidate: Candidate
    decision: Decision
    gate: str
    reason: str
    differences: list[str]
    sql: str | None
    parameters: dict[str, Any]
    display: str | None
    """The SQL with its values written out."""
    suggestion: CacheSuggestion | None = None
    stale: bool = False

    @property
    def written(self) -> str | None:
        """The SQL that would run, with its values."""
        return self.display or self.sql

    def refused(self, gate: str, reason: str, *, stale: bool = False) -> JudgedCandidate:
        return self._replace(decision="refuse", gate=gate, reason=reason, sql=None, stale=self.stale or stale)


def judge(
    space: ExecutionSpace,
    connector: AnyRow,
    question: str,
    vector: Vectors,
    limits: Limits,
    reuse: Reuse,
    asker: Asker = NOBODY,
) -> tuple[list[JudgedCandidate], int]:
    """The candidates for a question with the decisions of the gates, best first, and how many were looked at.

    What is proven for the asker's audience decides first; if all of it is refused, what is proven for everybody.
    """
    if limits.examples:
        candidates.follow_examples(space, connector)
    # Before anything is held: it may be slow to answer.
    current = space.queries.data_version(space.target(connector)) if reuse == "result" else None
    limits = replace(limits, results=reuse == "result")
    judged: list[JudgedCandidate] = []
    checked = 0
    with space.proofs.reading(connector, space.target, space.workspace.read, asker.audience) as known:
        oldest = 0 if limits.max_age_days is None else space.now() - int(limits.max_age_days * DAY)
        for circle in known.circles:
            found, count = _judge_circle(space, known, circle, connector, question, vector, limits, asker)
            judged += [_apply_gates(match, connector, known, reuse, current, oldest) for match in found]
            checked += count
            if any(match.decision != "refuse" for match in judged):
                break
        judged.sort(key=lambda match: (_PLACES[match.decision], -match.candidate.similarity))
        shown = candidates.with_last_use(known.connection, [match.candidate for match in judged[: limits.explained]])
    space.workspace.part(Questions).write_vectors()
    first = [match._replace(candidate=candidate) for match, candidate in zip(judged, shown, strict=False)]
    return first + judged[len(first) :], checked


def _judge_circle(
    space: ExecutionSpace,
    known: ProofsSnapshot,
    circle: Circle,
    connector: AnyRow,
    question: str,
    vector: Vectors,
    limits: Limits,
    asker: Asker,
) -> tuple[list[JudgedCandidate], int]:
    """The candidates for one audience, judged by their words, and how many there are."""
    # What is made of a question depends on the day, since "last month" does, and on what is proven. SQL that names a
    # time of the day depends on the minute.
    evidence, now = circle.evidence, from_stored(space.now())
    day = question, now.date()
    asked = known.evidence.recalled(("read", day), lambda: Question(question, evidence.values, now))
    alike = evidence.recalled(
        ("alike", day), lambda: frozenset(map(str, same_frame_ids(asked.asked_at(now), evidence)))
    )
    found = candidates.find(space, known, connector, vector, limits, alike, circle.audience)
    checked = len(found)
    if limits.only_positive_feedback:
        found = [candidate for candidate in found if candidate.is_positive]
    # What people say is wrong has no voice, nor has what is somebody else's; it is refused below.
    wrong = (candidate.row.id for candidate in found if known.complaint(candidate.row.template) is not None)
    refused = dict.fromkeys(wrong, WRONG) | of_others(circle, question, found, asker)
    allowed = [candidate for candidate in found if candidate.row.id not in refused]
    times = frozenset(evidence.resolution(candidate.row.sql_query, now) for candidate in allowed)
    made = evidence.recalled(
        ("chosen", day, times, limits.explained, tuple(candidate.proof for candidate in allowed)),
        lambda: choose(asked.asked_at(now), _proven(allowed), evidence=evidence, explained=limits.explained),
    )
    verdicts = refused | dict(zip([candidate.row.id for candidate in allowed], made, strict=True))
    return [_judge_candidate(candidate, verdicts[candidate.row.id]) for candidate in found], checked


def of_others(circle: Circle, asked: str | None, found: Sequence[Candidate], asker: Asker) -> dict[str, Verdict]:
    """The refusals of candidates that are right for somebody else alone, as far as that is known, or that only one of
    two questions, if one is asked, is about the asker.

    What names an audience is right for all of it, and golden examples for everybody.
    """
    values, refused = circle.evidence.values, {}
    asking = Person.NOBODY if asked is None else person(asked, values)
    for candidate in found:
        name, proven = candidate.row.id, person(candidate.row.question, values)
        if asked is not None and Person.ASKER in (asking, proven) and asking is not proven:
            refused[name] = Verdict("refuse", "asker", reasons.FIRST_PERSON[asking is Person.ASKER])
            continue
        about = max(asking, proven)
        if candidate.golden or circle.audience is not None:
            continue
        if _is_owner(asker, candidate, circle.authors(candidate.proof), program=not about):
            continue
        if about is Person.ASKER:
            refused[name] = ANOTHER_ASKER
            continue
        known = circle.evidence.study(_proven([candidate])[0])
        if known is not None and circle.conditions.is_owned(known):
            refused[name] = ANOTHER_ASKER if about else ANOTHER_OWNER
    return refused


def _is_owner(asker: Asker, candidate: Candidate, authors: frozenset[str | None], *, program: bool) -> bool:
    """Whether an execution is the asker's: by the chat session that it ran for, else by an author who proved it. The
    program, which is the author of what nobody rated, counts where `program` says so: it asks for many people."""
    if candidate.row.message_id is not None:
        return asker.chat_session_id is not None and asker.chat_session_id == candidate.row.chat_session_id
    if asker.author is None:
        return program and (None in authors or not (authors or candidate.opinions.negatives))
    return asker.author in authors


def lookup(
    space: ExecutionSpace, connector: AnyRow, question: str, limits: Limits, top_n: int, reuse: Reuse, asker: Asker
) -> CacheLookup:
    """The matches of the cache for a question; the first is filled with a result if it may be used."""
    vector = space.workspace.embed([question])[0]
    asked = QuestionSource(question, None, pack(vector), audience=asker.audience)
    judged, checked = judge(space, connector, question, vector, limits, reuse, asker)
    matches: list[tuple[JudgedCandidate, Execution | None]] = []
    decisive: JudgedCandidate | None = None
    used: Execution | None = None
    failed: dict[str | None, str] = {}
    for match in judged:
        done: Execution | None = None
        if match.decision != "refuse" and match.written in failed:
            match = match.refused("run", failed[match.written])
        elif match.decision != "refuse" and used is None:
            statement = match.written
            used, match = _use(space, connector, asked, match, reuse)
            done = used
            decisive = match if used is not None else decisive
            if used is None and reuse == "sql":
                # What fails once would fail for each copy of it, after as long a wait.
                failed[statement] = match.reason
        decisive = decisive or match
        matches.append((match, done))
    if used is None or reuse == "result":
        record(space, connector, question, decisive, used)
    # What failed to run was refused only now.
    matches.sort(key=lambda match: _PLACES[match[0].decision])
    return CacheLookup(
        cache_hit=used is not None,
        matches=[_match(space, match, done, reuse) for match, done in matches[:top_n]],
        candidates_checked=checked,
        suggestion=suggested(judged),
    )


def record(
    space: ExecutionSpace,
    connector: AnyRow,
    question: str,
    decisive: JudgedCandidate | None,
    used: Execution | None = None,
) -> None:
    """Stores the decision about a question and the candidate that it is about; None if nothing was like it."""
    if not space.workspace.database.read_only:
        with space.workspace.direct(write=True, durable=False) as direct:
            made = None if used is None else used.execution_id
            _add_decision(space, direct.connection, connector, question, decisive, made)


def _add_decision(
    space: ExecutionSpace,
    connection: Connection,
    connector: AnyRow,
    question: str,
    decisive: JudgedCandidate | None,
    execution_id: str | None,
) -> None:
    records.add_decision(
        connection,
        project_id=connector.project_id,
        connector_id=connector.id,
        question=question,
        decision="nothing" if decisive is None else decisive.decision,
        gate="candidates" if decisive is None else decisive.gate,
        reason=reasons.NOTHING_SIMILAR if decisive is None else decisive.reason,
        similarity=None if decisive is None else decisive.candidate.similarity,
        candidate_id=None if decisive is None else decisive.candidate.row.id,
        execution_id=execution_id,
        at=space.now(),
    )


def _use(
    space: ExecutionSpace, connector: AnyRow, asked: QuestionSource, match: JudgedCandidate, reuse: Reuse
) -> tuple[Execution | None, JudgedCandidate]:
    """Runs what may be reused, or takes its stored result; if that fails, it is refused, with the reason."""
    if reuse == "result" and match.decision == "serve":
        assert match.candidate.stored is not None
        with space.workspace.read() as connection:
            row = records.get_run(connection, space.project(connection), match.candidate.stored.execution_id)
        return (None, match.refused("run", reasons.DELETED)) if row is None else (executions.to_execution(row), match)
    assert match.sql is not None
    statement = Statement(match.sql, match.parameters, match.display)
    origin: Origin = "served" if match.decision == "serve" else "rebound"

    def decided(connection: Connection, made: str) -> None:
        _add_decision(space, connection, connector, str(asked.question), match, made)

    try:
        done = executions.execute(space, connector, statement, asked, origin, match.candidate.row.id, beside=decided)
        return done, match
    except HeedfulError as error:
        return None, match.refused("run", reasons.sentence(error.message))


def _proven(found: Sequence[Candidate]) -> list[ProvenQuery]:
    return [
        ProvenQuery(candidate.proof, candidate.row.question, candidate.row.sql_query, from_stored(candidate.row.at))
        for candidate in found
    ]


def _judge_candidate(candidate: Candidate, verdict: Verdict) -> JudgedCandidate:
    return JudgedCandidate(
        candidate,
        verdict.decision,
        verdict.gate,
        verdict.reason,
        list(filter(None, map(reasons.difference, verdict.differences))),
        verdict.sql,
        {**candidate.row.parameters, **verdict.parameters} if verdict.decision != "refuse" else {},
        verdict.display if verdict.decision == "rebind" else None,
        None if verdict.suggested is None else suggestion(candidate.row.question, candidate.row.id, verdict.suggested),
    )


def suggestion(proven_question: str, execution_id: str, likely: Verdict) -> CacheSuggestion | None:
    """The probable meaning of a question: a proven one with the values of the one that was asked."""
    if likely.display is None:
        return None
    new = {value.proven.casefold(): value.asked for value in likely.differences if value.kind == "value"}
    question = proven_question
    if new:
        # All at once: two values may have changed places.
        values = "|".join(sorted(map(re.escape, new), key=len, reverse=True))
        place = regex(rf"(?<!\w)(?:{values})(?!\w)", re.IGNORECASE)
        question = place.sub(lambda found: new.get(found.group().casefold(), found.group()), question)
    return CacheSuggestion(
        question=question, sql_query=likely.display, proven_question=proven_question, execution_id=execution_id
    )


def suggested(judged: Sequence[JudgedCandidate]) -> CacheSuggestion | None:
    """The probable meaning of a question, if nothing may be used for it."""
    if any(match.decision != "refuse" for match in judged):
        return None
    # What people, the schema or the data speak against is not suggested.
    return next((match.suggestion for match in judged if match.suggestion and match.gate in GATES_OF_WORDS), None)


def _apply_gates(
    match: JudgedCandidate, connector: AnyRow, known: ProofsSnapshot, reuse: Reuse, current: str | None, oldest: int
) -> JudgedCandidate:
    """The gates that look beyond the words: opinions, the schema, the data, and the SQL itself."""
    row, dialect = match.candidate.row, dialect_of(connector)
    if (comment := known.complaint(row.template)) is not None:
        return match.refused("feedback", reasons.marked_wrong(comment))
    if row.fingerprint is not None and row.fingerprint != connector.fingerprint:
        return match.refused("schema", reasons.OTHER_SCHEMA, stale=True)
    if match.decision == "refuse":
        return match
    if (volatile := nondeterminism(row.sql_query, dialect)) is not None:
        return match.refused("determinism", reasons.sentence(volatile))
    if reuse == "result":
        stored = match.candidate.stored
        if stored is None or stored.truncated:
            return match.refused("truncation", reasons.INCOMPLETE)
        if stored.at < oldest:
            return match.refused("data", reasons.TOO_OLD, stale=True)
        if stored.data_version != current:
            compared = None not in (stored.data_version, current)
            return match.refused("data", reasons.OTHER_DATA if compared else reasons.UNKNOWN_DATA, stale=compared)
        if current is None and dialect in FILES:
            return match.refused("data", reasons.CHANGING_DATA)
        if match.decision == "rebind":
            return match.refused("rebind", reasons.NO_RESULT)
    return match


def _match(space: ExecutionSpace, match: JudgedCandidate, used: Execution | None, reuse: Reuse) -> CacheMatch:
    candidate = match.candidate
    ran_at = candidate.stored.at if reuse == "result" and candidate.stored is not None else candidate.used_at
    if used is not None:
        execution = dict(used)
    else:
        execution = {"execution_id": candidate.row.id, "sql_query": candidate.row.sql_query, "result": None}
    return CacheMatch(
        execution=execution,
        similarity_score=round(candidate.similarity, 6),
        has_feedback=candidate.is_positive is not None,
        feedback_is_positive=candidate.is_positive,
        feedback_comment=candidate.opinions.comment,
        decision=match.decision,
        gate=match.gate,
        reason=match.reason,
        question=candidate.row.question,
        differences=match.differences,
        age_days=round((space.now() - ran_at) / DAY, 6),
        stale=match.stale,
    )


MAX_REFUSED = 500
"""Different questions that are looked at, the most frequent first."""

EXAMPLES = 3


@dataclass(slots=True)
class _Refused:
    """Refused questions that belong together, with how often each was asked."""

    times: dict[str, int] = field(default_factory=dict)
    suggestion: CacheSuggestion | None = None

    @property
    def asked(self) -> int:
        return sum(self.times.values())

    @property
    def questions(self) -> list[str]:
        """The most frequent first."""
        return sorted(self.times, key=lambda question: -self.times[question])


def coverage(space: ExecutionSpace, connector: AnyRow, since: int, limit: int) -> CacheCoverage:
    """The questions proven on a connector, and those that were refused since a moment and would be refused again."""
    with space.proofs.reading(connector, space.target, space.workspace.read) as known:
        project, evidence = connector.project_id, known.evidence
        rows = records.refused_questions(known.connection, project, connector.id, since, MAX_REFUSED)
        kinds = evidence.by_template()
        gates, missing = _refused(rows, evidence, from_stored(space.now()))
    largest = sorted(kinds.items(), key=lambda item: (-len(item[1]), item[0]))
    next_ones = sorted(missing.values(), key=lambda group: (-group.asked, -len(group.times)))
    return CacheCoverage(
        connector_id=connector.id,
        proven=[
            ProvenKind(
                sql_template=with_gaps(template),
                questions=len(proven),
                example=min(proven, key=lambda query: str(query.id)).question,
            )
            for template, proven in largest[:limit]
        ],
        proven_questions=sum(map(len, kinds.values())),
        proven_kinds=len(kinds),
        refused=[
            RefusedKind(gate=gate, asked=group.asked, questions=len(group.times), examples=group.questions[:EXAMPLES])
            for gate, group in sorted(gates.items(), key=lambda item: -item[1].asked)
        ],
        missing=[
            MissingExample(
                question=group.questions[0], asked=group.asked, questions=len(group.times), suggestion=group.suggestion
            )
            for group in next_ones[:limit]
        ],
    )


def _refused(
    rows: Sequence[AnyRow], evidence: Evidence, now: datetime
) -> tuple[dict[str, _Refused], dict[Words, _Refused]]:
    """The questions that are still refused, by gate, and those that differ in values alone by what they share."""
    gates: dict[str, _Refused] = defaultdict(_Refused)
    alike: dict[Words, _Refused] = defaultdict(_Refused)
    for row in rows:
        reading = Question(row.question, evidence.values, now)
        proven = evidence.proven(same_frame_ids(reading, evidence))
        verdicts = choose(reading, proven, evidence=evidence, explained=0)
        if any(verdict.decision != "refuse" for verdict in verdicts):
            continue  # It was proven since.
        gates[row.gate].times[row.question] = row.times
        if person(row.question, evidence.values) is Person.ASKER:
            continue  # To prove it would answer nobody else.
        group = alike[reading.frames[0].key]
        group.times[row.question] = row.times
        if group.suggestion is None and group.questions[0] == row.question:
            for query, verdict in zip(proven, verdicts, strict=True):
                if verdict.suggested is not None:
                    # The name of an example among what is proven ends with its time.
                    source = str(query.id).partition("/")[0]
                    group.suggestion = suggestion(query.question, source, verdict.suggested)
    return gates, alike
