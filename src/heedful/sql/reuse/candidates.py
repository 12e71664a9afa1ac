"""What was asked before and is like what is asked now: executions and golden examples of one connector."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from heedful.clock import DAY
from heedful.ranking.signals import Trust
from heedful.sql.space import ExecutionSpace
from heedful.storage.executions import golden, runs
from heedful.storage.feedback import SqlFeedbacks, counted_opinions
from heedful.storage.rows import AnyRow
from heedful.storage.sessions.base import FeedbackRow
from heedful.storage.vectors import Vectors, pack, unpack


@dataclass(frozen=True, slots=True)
class Stored:
    """A result that is stored, and the execution that it belongs to."""

    execution_id: str
    at: int
    data_version: str | None
    truncated: bool


@dataclass(frozen=True, slots=True)
class Candidate:
    """A question with its SQL, as it was proven or merely run."""

    id: str
    proof: str
    """Its name among what is proven."""
    question: str
    sql: str
    parameters: dict[str, Any]
    template: bytes
    similarity: float
    at: int
    used_at: int
    """When it last ran, with its own values or with others."""
    fingerprint: str | None
    stored: Stored | None
    """The newest result of it that is stored."""
    golden: bool
    positives: int
    negatives: int
    comment: str | None
    """What was said of it last by somebody who counts; as long as they say it is wrong, what they said."""

    @property
    def reliability(self) -> float:
        """The share of positive opinions, with one of each kind added, so that a single one is no certainty."""
        return 1.0 if self.golden else (self.positives + 1) / (self.positives + self.negatives + 2)


def find(
    space: ExecutionSpace,
    connection: Connection,
    connector: AnyRow,
    vector: Vectors,
    *,
    least: float,
    limit: int,
    max_age_days: float | None,
    examples: bool,
    alike: Collection[str] = (),
) -> list[Candidate]:
    """The candidates whose questions are similar enough, the most similar first; golden examples too, if wanted.

    Those with the same frame, by their proofs, are candidates whatever their similarity.
    """
    model = space.workspace.model(connection)
    if model is None:
        return []
    project = space.project(connection)
    index = space.workspace.questions(connector.id, model)
    space.workspace.keep_questions(model, index.follow(connection, space.workspace.embed))
    near, rows = index.nearest(connection, vector, least, limit)
    others = index.similarities(vector, [seq for seq in runs.seqs(connection, alike) if seq not in rows])
    near, rows = near + others, rows | runs.by_seq(connection, [seq for seq, _ in others])
    oldest = 0 if max_age_days is None else space.now() - int(max_age_days * DAY)
    similar = [(rows[seq], cosine) for seq, cosine in near if seq in rows and _used_at(rows[seq]) >= oldest]
    said = SqlFeedbacks.on(connection, project).counting_for([row.id for row, _ in similar])
    newest = runs.by_id(connection, {row.last_hit_id for row, _ in similar if row.last_hit_id is not None})
    found = [
        _of_run(row, cosine, said.get(row.id, []), newest.get(row.last_hit_id), space.trust) for row, cosine in similar
    ]
    if examples:
        found += _examples(connection, connector, vector, least, alike)
    # Among equals, what was proven comes before what was only run again.
    return sorted(found, key=lambda each: (-each.similarity, not each.golden, -each.reliability, -each.used_at))


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
    connection: Connection, connector: AnyRow, vector: Vectors, least: float, alike: Collection[str]
) -> list[Candidate]:
    rows = [row for row in golden.of_connector(connection, connector.id) if row.vector is not None]
    if not rows:
        return []
    cosines = unpack([row.vector for row in rows], len(vector)) @ vector
    found = [_of_example(row, float(cosine)) for row, cosine in zip(rows, cosines, strict=True)]
    return [each for each in found if each.similarity >= least or each.proof in alike]


def _used_at(row: AnyRow) -> int:
    return max(int(row.at), int(row.used_at or 0))


def _of_run(row: AnyRow, cosine: float, said: list[FeedbackRow], last_hit: AnyRow | None, trust: Trust) -> Candidate:
    positive, negative = counted_opinions(said, trust.authors_to_veto)
    last = (negative or positive)[-1:]
    newest = last_hit or row
    return Candidate(
        id=row.id,
        proof=row.id,
        question=row.question,
        sql=row.sql_query,
        parameters=row.parameters,
        template=row.template,
        similarity=_similarity(cosine),
        at=row.at,
        used_at=_used_at(row),
        fingerprint=row.fingerprint,
        stored=Stored(newest.id, newest.at, newest.data_version, bool(newest.truncated)),
        golden=False,
        positives=_author_count(positive),
        negatives=_author_count(negative),
        comment=last[0].comment if last else None,
    )


def _author_count(rows: list[FeedbackRow]) -> int:
    """How many say so: an author who rates hits of the same execution again and again is one."""
    return len({row.author for row in rows if row.author is not None}) + sum(row.author is None for row in rows)


def _similarity(cosine: float) -> float:
    # Vectors are stored with fewer digits, so that the cosine of a text with itself may be a little above 1.
    return round(min(1.0, cosine), 6)


def _of_example(row: AnyRow, cosine: float) -> Candidate:
    return Candidate(
        id=row.id,
        proof=f"{row.id}/{row.updated_at}",
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
        positives=0,
        negatives=0,
        comment=None,
    )
