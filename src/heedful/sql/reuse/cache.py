"""The safe cache: similarity finds candidates, gates decide, and what is reused is run now."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection

from heedful.clock import DAY, from_stored
from heedful.errors import HeedfulError
from heedful.model import DECISIONS, CacheLookup, CacheMatch, CacheSuggestion, Decision, Execution, Origin, Reuse
from heedful.sql import connector_access
from heedful.sql import runs as running
from heedful.sql.reuse import (
    ProvenQuery,
    Question,
    Verdict,
    candidates,
    choose,
    is_deterministic,
    reasons,
    same_frame_ids,
)
from heedful.sql.reuse.asker import Person, person
from heedful.sql.reuse.candidates import Candidate, Wanted
from heedful.sql.reuse.moments import resolution
from heedful.sql.reuse.ownership import NOBODY, Asker
from heedful.sql.reuse.proofs import Circle, Reading
from heedful.sql.runs import QuestionSource, Statement
from heedful.sql.space import ExecutionSpace
from heedful.storage.executions import runs
from heedful.storage.executions.runs import NewDecision
from heedful.storage.rows import AnyRow
from heedful.storage.vectors import Vectors, pack

GATES_OF_WORDS = frozenset(
    ("literals", "words", "scope", "aggregate", "operators", "negation", "form", "argument_order")
)
WRONG = Verdict("refuse", "sql", reasons.WRONG)
ANOTHER_ASKER = Verdict("refuse", "asker", reasons.ANOTHER_ASKER)
ANOTHER_OWNER = Verdict("refuse", "asker", reasons.ANOTHER_OWNER)


class JudgedCandidate(NamedTuple):
    """A candidate, and what the gates say of it."""

    candidate: Candidate
    decision: Decision
    gate: str
    reason: str
    differences: list[str]
    sql: str | None
    parameters: dict[str, Any]
    display: str | None
    """The SQL with its values written out."""
    stale: bool
    suggestion: CacheSuggestion | None = None

    @property
    def written(self) -> str | None:
        """The SQL that would run, with its values."""
        return self.display or self.sql

    def refused(self, gate: str, reason: str, *, stale: bool = False) -> JudgedCandidate:
        return self._replace(decision="refuse", gate=gate, reason=reason, sql=None, stale=self.stale or stale)


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be a candidate at all."""

    max_age_days: float | None
    similarity_threshold: float
    limit: int
    only_positive_feedback: bool
    examples: bool
    explained: int
    """How many refusals are worked out to the end."""


def judge(
    space: ExecutionSpace,
    connector: AnyRow,
    question: str,
    vector: Vectors,
    limits: Limits,
    reuse: Reuse,
    asker: Asker = NOBODY,
) -> tuple[list[JudgedCandidate], int]:
    """The candidates for a question with what the gates say, best first, and how many were looked at.

    What is proven for the asker's audience decides first; if all of it is refused, what is proven for everybody.
    """
    if limits.examples:
        candidates.follow_examples(space, connector)
    # Before anything is held: it may be slow to answer.
    current = space.queries.data_version(space.target(connector)) if reuse == "result" else None
    wanted = Wanted(
        limits.similarity_threshold, limits.limit, limits.max_age_days, limits.examples, results=reuse == "result"
    )
    judged: list[JudgedCandidate] = []
    checked = 0
    with space.proofs.reading(connector, space.target, space.workspace.read, asker.audience) as known:
        oldest = 0 if limits.max_age_days is None else space.now() - int(limits.max_age_days * DAY)
        for circle in known.circles:
            found, count = _judge_circle(space, known, circle, connector, question, vector, limits, wanted, asker)
            judged += [_apply_gates(each, connector, known, reuse, current, oldest) for each in found]
            checked += count
            if any(each.decision != "refuse" for each in judged):
                break
        order = {decision: place for place, decision in enumerate(DECISIONS)}
        judged.sort(key=lambda each: (order[each.decision], -each.candidate.similarity))
        shown = candidates.with_last_use(known.connection, [each.candidate for each in judged[: limits.explained]])
    space.workspace.write_questions()
    first = [each._replace(candidate=candidate) for each, candidate in zip(judged, shown, strict=False)]
    return first + judged[len(first) :], checked


def _judge_circle(
    space: ExecutionSpace,
    known: Reading,
    circle: Circle,
    connector: AnyRow,
    question: str,
    vector: Vectors,
    limits: Limits,
    wanted: Wanted,
    asker: Asker,
) -> tuple[list[JudgedCandidate], int]:
    """What the words of the candidates for one audience say, and how many there are."""
    # What is made of a question depends on the day, since "last month" does, and on what is proven. SQL that names a
    # time of the day depends on the minute.
    evidence, now = circle.evidence, from_stored(space.now())
    day = question, now.date()
    asked = known.evidence.recalled(("read", day), lambda: Question(question, evidence.values, now)).asked_at(now)
    alike = evidence.recalled(("alike", day), lambda: frozenset(map(str, same_frame_ids(asked, evidence))))
    found = candidates.find(space, known, connector, vector, wanted, alike, circle.audience)
    checked = len(found)
    if limits.only_positive_feedback:
        found = [each for each in found if _is_positive(each)]
    # What people say is wrong has no voice, nor has what is somebody else's; it is refused below.
    refused = dict.fromkeys((each.id for each in found if known.complaint(each.template) is not None), WRONG)
    refused |= of_others(circle, question, found, asker)
    allowed = [each for each in found if each.id not in refused]
    times = frozenset(resolution(each.sql, evidence.dialect, now) for each in allowed)
    made = evidence.recalled(
        ("chosen", day, times, limits.explained, tuple(each.proof for each in allowed)),
        lambda: choose(asked, _proven(allowed), evidence=evidence, explained=limits.explained),
    )
    verdicts = refused | dict(zip([each.id for each in allowed], made, strict=True))
    return [_judge_candidate(each, verdicts[each.id]) for each in found], checked


def of_others(circle: Circle, asked: str | None, found: Sequence[Candidate], asker: Asker) -> dict[str, Verdict]:
    """The refusals of candidates that are right for somebody else alone, as far as that is known, or that only one of
    two questions, if one is asked, is about the asker.

    What names an audience is right for all of it, and golden examples for everybody.
    """
    values, refused = circle.evidence.values, {}
    asking = Person.NOBODY if asked is None else person(asked, values)
    for each in found:
        proven = person(each.question, values)
        if asked is not None and Person.ASKER in (asking, proven) and asking is not proven:
            reason = reasons.first_person(asked=asking is Person.ASKER)
            refused[each.id] = Verdict("refuse", "asker", reason)
            continue
        if each.golden or circle.audience is not None:
            continue
        about = max(asking, proven)
        if _is_owner(asker, each, circle.authors(each.proof), program=not about):
            continue
        if about is Person.ASKER:
            refused[each.id] = ANOTHER_ASKER
            continue
        (query,) = _proven([each])
        known = circle.evidence.study(query)
        if known is not None and circle.conditions.is_owned(known):
            refused[each.id] = ANOTHER_ASKER if about else ANOTHER_OWNER
    return refused


def _is_owner(asker: Asker, each: Candidate, authors: frozenset[str | None], *, program: bool) -> bool:
    """Whether an execution is the asker's: by the chat session that it ran for, else by an author who proved it. The
    program, which is the author of what nobody rated, counts where `program` says so: it asks for many people."""
    if each.message_id is not None:
        return each.chat_session_id is not None and each.chat_session_id == asker.chat_session_id
    if asker.author is None:
        return program and (None in authors or not (authors or each.opinions.negatives))
    return asker.author in authors


def lookup(
    space: ExecutionSpace,
    connector: AnyRow,
    question: str,
    limits: Limits,
    top_n: int,
    reuse: Reuse,
    asker: Asker,
) -> CacheLookup:
    """What the cache has for a question; the first match is filled with a result if it may be used."""
    vector = space.workspace.embed([question])[0]
    asked = QuestionSource(question, None, pack(vector), audience=asker.audience)
    judged, checked = judge(space, connector, question, vector, limits, reuse, asker)
    matches: list[tuple[JudgedCandidate, Execution | None]] = []
    decisive: JudgedCandidate | None = None
    used: Execution | None = None
    failed: dict[str | None, str] = {}
    for each in judged:
        done: Execution | None = None
        if each.decision != "refuse" and each.written in failed:
            each = each.refused("run", failed[each.written])
        elif each.decision != "refuse" and used is None:
            statement = each.written
            used, each = _use(space, connector, asked, each, reuse)
            done = used
            decisive = each if used is not None else decisive
            if used is None and reuse == "sql":
                # What fails once would fail for each copy of it, after as long a wait.
                failed[statement] = each.reason
        decisive = decisive or each
        matches.append((each, done))
    if used is None or reuse == "result":
        record(space, connector, question, decisive, used)
    order = {decision: place for place, decision in enumerate(DECISIONS)}
    # What failed to run was refused only now.
    matches.sort(key=lambda match: order[match[0].decision])
    return CacheLookup(
        cache_hit=used is not None,
        matches=[_match(space, each, done, reuse) for each, done in matches[:top_n]],
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
    """Keeps what was decided about a question, and by which candidate; None if nothing was like it."""
    if space.workspace.database.read_only:
        return
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
    runs.add_decision(
        connection,
        NewDecision(
            project_id=connector.project_id,
            connector_id=connector.id,
            question=question,
            decision="nothing" if decisive is None else decisive.decision,
            gate="candidates" if decisive is None else decisive.gate,
            reason=reasons.NOTHING_SIMILAR if decisive is None else decisive.reason,
            similarity=None if decisive is None else decisive.candidate.similarity,
            candidate_id=None if decisive is None else decisive.candidate.id,
            execution_id=execution_id,
            at=space.now(),
        ),
    )


def _use(
    space: ExecutionSpace, connector: AnyRow, asked: QuestionSource, each: JudgedCandidate, reuse: Reuse
) -> tuple[Execution | None, JudgedCandidate]:
    """Runs what may be reused, or takes its stored result; if that fails, it is refused, with the reason."""
    if reuse == "result" and each.decision == "serve":
        assert each.candidate.stored is not None
        with space.workspace.read() as connection:
            row = runs.get(connection, space.project(connection), each.candidate.stored.execution_id)
        if row is None:
            return None, each.refused("run", reasons.DELETED)
        return running.to_execution(row), each
    assert each.sql is not None
    origin: Origin = "served" if each.decision == "serve" else "rebound"
    try:
        done = running.execute(
            space,
            connector,
            Statement(each.sql, each.parameters, each.display),
            asked,
            origin,
            each.candidate.id,
            beside=lambda connection, made: _add_decision(
                space, connection, connector, str(asked.question), each, made
            ),
        )
    except HeedfulError as error:
        return None, each.refused("run", reasons.sentence(error.message))
    return done, each


def _proven(found: Sequence[Candidate]) -> list[ProvenQuery]:
    return [ProvenQuery(each.proof, each.question, each.sql, from_stored(each.at)) for each in found]


def _judge_candidate(candidate: Candidate, verdict: Verdict) -> JudgedCandidate:
    return JudgedCandidate(
        candidate,
        verdict.decision,
        verdict.gate,
        verdict.reason,
        [said for each in verdict.differences if (said := reasons.difference(each))],
        verdict.sql,
        {**candidate.parameters, **verdict.parameters} if verdict.decision != "refuse" else {},
        verdict.display if verdict.decision == "rebind" else None,
        False,
        None if verdict.suggested is None else suggestion(candidate.question, candidate.id, verdict.suggested),
    )


def suggestion(proven_question: str, execution_id: str, likely: Verdict) -> CacheSuggestion | None:
    """What a question probably means: a proven one with the values of the one that was asked."""
    if likely.display is None:
        return None
    new = {each.proven.casefold(): each.asked for each in likely.differences if each.kind == "value"}
    question = proven_question
    if new:
        # All at once: two values may have changed places.
        said = "|".join(sorted(map(re.escape, new), key=len, reverse=True))
        place = re.compile(rf"(?<!\w)(?:{said})(?!\w)", re.IGNORECASE)
        question = place.sub(lambda found: new.get(found.group().casefold(), found.group()), question)
    return CacheSuggestion(
        question=question,
        sql_query=likely.display,
        proven_question=proven_question,
        execution_id=execution_id,
    )


def suggested(judged: Sequence[JudgedCandidate]) -> CacheSuggestion | None:
    """What a question probably means, if nothing may be used for it."""
    if any(each.decision != "refuse" for each in judged):
        return None
    # What people, the schema or the data speak against is not suggested.
    return next((each.suggestion for each in judged if each.suggestion and each.gate in GATES_OF_WORDS), None)


def _apply_gates(
    each: JudgedCandidate,
    connector: AnyRow,
    known: Reading,
    reuse: Reuse,
    current: str | None,
    oldest: int,
) -> JudgedCandidate:
    """The gates that look beyond the words: what people say, the schema, the data, and the SQL itself."""
    candidate = each.candidate
    if (said := known.complaint(candidate.template)) is not None:
        return each.refused("feedback", reasons.marked_wrong(said))
    if candidate.fingerprint is not None and candidate.fingerprint != connector.fingerprint:
        return each.refused("schema", reasons.OTHER_SCHEMA, stale=True)
    if each.decision == "refuse":
        return each
    volatile = is_deterministic(candidate.sql, connector_access.dialect_of(connector))
    if volatile is not None:
        return each.refused("determinism", reasons.sentence(volatile))
    if reuse == "result":
        stored = candidate.stored
        if stored is None or stored.truncated:
            return each.refused("truncation", reasons.INCOMPLETE)
        if stored.at < oldest:
            return each.refused("data", reasons.TOO_OLD, stale=True)
        if stored.data_version != current:
            compared = None not in (stored.data_version, current)
            return each.refused("data", reasons.OTHER_DATA if compared else reasons.UNKNOWN_DATA, stale=compared)
        if current is None and connector_access.dialect_of(connector) in connector_access.NOTICE_CHANGES:
            return each.refused("data", reasons.CHANGING_DATA)
        if each.decision == "rebind":
            return each.refused("rebind", reasons.NO_RESULT)
    return each


def _match(space: ExecutionSpace, each: JudgedCandidate, used: Execution | None, reuse: Reuse) -> CacheMatch:
    candidate = each.candidate
    ran_at = candidate.stored.at if reuse == "result" and candidate.stored is not None else candidate.used_at
    if used is not None:
        execution = {name: getattr(used, name) for name in Execution.model_fields}
    else:
        execution = {"execution_id": candidate.id, "sql_query": candidate.sql, "result": None}
    return CacheMatch(
        execution=execution,
        similarity_score=round(candidate.similarity, 6),
        has_feedback=_is_positive(candidate) is not None,
        feedback_is_positive=_is_positive(candidate),
        feedback_comment=candidate.opinions.comment,
        decision=each.decision,
        gate=each.gate,
        reason=each.reason,
        question=candidate.question,
        differences=each.differences,
        age_days=round((space.now() - ran_at) / DAY, 6),
        stale=each.stale,
    )


def _is_positive(candidate: Candidate) -> bool | None:
    if candidate.golden:
        return True
    said = candidate.opinions
    return not said.negatives if said.positives or said.negatives else None
