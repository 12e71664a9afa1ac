"""What was asked before and is like what is asked now: executions and golden examples of one connector."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection

from heedful.clock import DAY
from heedful.search.questions import Near
from heedful.sql.reuse.proofs import NOTHING_SAID, Opinions, Reading
from heedful.sql.space import ExecutionSpace
from heedful.storage.executions import golden, runs
from heedful.storage.executions.runs import CandidateRow, Usage
from heedful.storage.rows import AnyRow
from heedful.storage.vectors import Vectors, pack, unpack


@dataclass(frozen=True, slots=True)
class Stored:
    """A result that is stored, and the execution that it belongs to."""

    execution_id: str
    at: int
    data_version: str | None
    truncated: bool


class Candidate(NamedTuple):
    """A question with its SQL, as it was proven or merely run."""

    id: str
    proof: str
    """Its name among what is proven."""
    seq: int | None
    """Its number, if it is an execution."""
    question: str
    sql: str
    parameters: dict[str, Any]
    template: bytes
    similarity: float
    at: int
    used_at: int
    """When it last ran, with its own values or with others, as far as that was looked up."""
    fingerprint: str | None
    stored: Stored | None
    """The newest result of it that is stored, if it was asked for."""
    golden: bool
    opinions: Opinions
    message_id: str | None = None
    chat_session_id: str | None = None
    """The message that it ran for, and its chat session."""

    @property
    def reliability(self) -> float:
        """The share of positive opinions, with one of each kind added, so that a single one is no certainty."""
        said = self.opinions
        return 1.0 if self.golden else (said.positives + 1) / (said.positives + said.negatives + 2)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What may be a candidate."""

    least: float
    """How similar its question is, at least."""
    limit: int
    max_age_days: float | None
    examples: bool
    """Whether golden examples may be."""
    results: bool = False
    """Whether stored results are needed."""


def find(
    space: ExecutionSpace,
    known: Reading,
    connector: AnyRow,
    vector: Vectors,
    wanted: Wanted,
    alike: Collection[str] = (),
    audience: str | None = None,
) -> list[Candidate]:
    """The candidates for exactly this audience whose questions are similar enough, the most similar first.

    Those with the same frame, by their proofs, are candidates whatever their similarity.
    """
    connection, model = known.connection, space.workspace.fitting(known.state.model)
    if model is None:
        return []
    index = space.workspace.questions(connector.id, model)
    space.workspace.keep_questions(model, index.follow(connection, known.state, space.workspace.embed))
    near = index.nearest(connection, known.state, vector, wanted.least, wanted.limit, alike, audience)
    oldest = 0 if wanted.max_age_days is None else space.now() - int(wanted.max_age_days * DAY)
    # When it was last used is only looked up where it matters: it changes with each use.
    used = runs.usage(connection, [each.row.seq for each in near if wanted.results or each.row.at < oldest])
    fresh = [each for each in near if _used_at(each.row, used) >= oldest]
    said = known.opinions.of(connection, connector.project_id, [each.row.id for each in fresh])
    found = [_of_run(each, _used_at(each.row, used), said[each.row.id]) for each in fresh]
    if wanted.results:
        found = _with_results(connection, found, near, used)
    if wanted.examples:
        found += _examples(connection, connector, audience, vector, wanted.least, alike)
    # Among equals, what was proven comes before what was only run again, and what was used last before the others.
    return sorted(found, key=lambda each: (-each.similarity, not each.golden, -each.reliability, -each.used_at))


def with_last_use(connection: Connection, found: Sequence[Candidate]) -> list[Candidate]:
    """The same candidates with the time when each was last used."""
    used = runs.usage(connection, [each.seq for each in found if each.seq is not None])
    return [
        each if each.seq not in used else each._replace(used_at=max(each.used_at, used[each.seq].used_at or 0))
        for each in found
    ]


def _with_results(
    connection: Connection, found: Sequence[Candidate], near: Sequence[Near], used: Mapping[int, Usage]
) -> list[Candidate]:
    """The same candidates with the newest result of each: its own, or that of its last hit."""
    rows = {each.row.id: each.row for each in near}
    last = {each.row.id: used[each.row.seq].last_hit_id for each in near if each.row.seq in used}
    results = runs.results(connection, sorted({hit for hit in last.values() if hit is not None}))
    made = []
    for each in found:
        row, hit = rows[each.id], last.get(each.id)
        own = Stored(row.id, row.at, row.data_version, bool(row.truncated))
        made.append(each._replace(stored=Stored(hit, *results[hit]) if hit is not None and hit in results else own))
    return made


def follow_examples(space: ExecutionSpace, connector: AnyRow) -> None:
    """Has the model in use make the vectors of golden examples that another one made."""
    with space.workspace.read() as connection:
        model = space.workspace.model(connection)
        rows = [] if model is None else golden.of_another_model(connection, connector.id, model.id)
    if model is None or not rows:
        return
    made = space.workspace.embed([row.question for row in rows])
    with space.workspace.write() as connection:
        for row, vector in zip(rows, made, strict=True):
            golden.set_vector(connection, row.id, model.id, pack(vector))


def _examples(
    connection: Connection,
    connector: AnyRow,
    audience: str | None,
    vector: Vectors,
    least: float,
    alike: Collection[str],
) -> list[Candidate]:
    rows = [row for row in golden.of_connector(connection, connector.id, audience) if row.vector is not None]
    if not rows:
        return []
    cosines = unpack([row.vector for row in rows], len(vector)) @ vector
    found = [_of_example(row, float(cosine)) for row, cosine in zip(rows, cosines, strict=True)]
    return [each for each in found if each.similarity >= least or each.proof in alike]


def _used_at(row: CandidateRow, used: Mapping[int, Usage]) -> int:
    last = used.get(row.seq) if used else None
    return row.at if last is None else max(row.at, last.used_at or 0)


def _of_run(near: Near, used_at: int, said: Opinions) -> Candidate:
    row = near.row
    # By place, since there are dozens for each question.
    return Candidate(
        row.id,
        row.id,
        row.seq,
        row.question,
        row.sql_query,
        row.parameters,
        row.template,
        _similarity(near.cosine),
        row.at,
        used_at,
        row.fingerprint,
        None,
        False,
        said,
        row.message_id,
        row.chat_session_id,
    )


def _similarity(cosine: float) -> float:
    # Vectors are stored with fewer digits, so that the cosine of a text with itself may be a little above 1.
    return round(min(1.0, cosine), 6)


def _of_example(row: AnyRow, cosine: float) -> Candidate:
    return Candidate(
        id=row.id,
        proof=f"{row.id}/{row.updated_at}",
        seq=None,
        question=row.question,
        sql=row.sql_query,
        parameters={},
        template=row.template,
        similarity=_similarity(cosine),
        at=row.updated_at,
        used_at=row.updated_at,
        fingerprint=None,
        stored=None,
        golden=True,
        opinions=NOTHING_SAID,
    )
