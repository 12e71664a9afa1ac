"""How long a lookup takes among many stored executions, beside embedding the question alone."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import heedful
from bench.cache_data import DIALECT, Question
from bench.measure import Spent, Timing, in_turns, say, timed, timing
from heedful.clock import new_id
from heedful.ledger.opinions import SqlFeedbacks
from heedful.providers.configured import embedder_from
from heedful.sql import records
from heedful.sql.feedback import new_opinion, put
from heedful.sql.guard import check_statement
from heedful.sql.records import NewRun
from heedful.sql.statements import template
from heedful.storage.vectors import Vectors, ensure_model, pack

STORED = 10_000
LOOKED_UP = 100
PROVEN = 4
"""One in so many stored executions was rated as right."""


def lookups(asked: Sequence[Question], vectors: Vectors, database: Path) -> dict[str, Timing]:
    """The time of a lookup when a question is asked first, again, and after somebody rated something, and of embedding
    it, among 10,000 executions.

    The first time, the SQL of candidates that nobody rated is parsed.
    """
    embedder = embedder_from("bundled")
    with (
        tempfile.TemporaryDirectory() as folder,
        heedful.open(Path(folder) / "store.db", embedding=embedder) as memory,
    ):
        connector = memory.connectors.create("bench", f"sqlite:///{database}")
        say(f"storing {STORED} executions")
        stored = _fill(memory, connector.connector_id, connector.fingerprint, asked, vectors)
        memory.chat.execution_cache_lookup(asked[0].text)
        places = range(min(len(asked), LOOKED_UP))

        def look_up(place: int) -> Spent:
            return timed(lambda: memory.chat.execution_cache_lookup(asked[place].text))[0]

        def embed(place: int) -> Spent:
            return timed(lambda: embedder.embed([asked[place].text]))[0]

        def look_up_after_rating(place: int) -> Spent:
            memory.feedback.create_positive(execution_id=stored[place], author="ann")
            return look_up(place)

        first = in_turns({"first": look_up, "embedding": embed}, places)
        again = in_turns({"again": look_up, "embedding": embed}, places)
        rated = in_turns({"after a rating": look_up_after_rating, "embedding": embed}, places)
    return {
        "first": timing(first["first"]),
        "again": timing(again["again"]),
        "after a rating": timing(rated["after a rating"]),
        "embedding": timing([*first["embedding"], *again["embedding"], *rated["embedding"]]),
    }


def _fill(
    memory: heedful.Heedful, connector: str, fingerprint: str | None, asked: Sequence[Question], vectors: Vectors
) -> list[str]:
    """Stores executions; returns the ids of those that nobody rated."""
    workspace = memory._workspace
    now = workspace.now()
    unrated: list[str] = []
    empty = {"columns": [], "rows": [], "truncated": False, "truncated_by": None, "seconds": 0.0}
    with workspace.database.write() as connection:
        project = memory._project.executions.own_project(connection)
        model = ensure_model(connection, workspace.embedder.name, workspace.embedder.dimensions)
        for place in range(STORED):
            each = asked[place % len(asked)]
            sql = check_statement(each.sql, DIALECT).sql  # As it is stored when it runs.
            run = NewRun(
                id=new_id(),
                project_id=project,
                connector_id=connector,
                question=each.text,
                model_id=model,
                vector=pack(vectors[place % len(asked)]),
                sql_query=sql,
                parameters={},
                template=template(sql, DIALECT),
                result=empty,
                row_count=0,
                truncated=0,
                seconds=0.0,
                origin="query",
                derived_from=None,
                message_id=None,
                fingerprint=fingerprint,
                data_version=None,
                at=now,
                result_digest=b"",
            )
            records.add_run(connection, run)
            if place % PROVEN:
                unrated.append(run.id)
            else:
                put(SqlFeedbacks.on(connection, project), new_opinion(run.id, None, True, None, None, now), None, None)
    return unrated
