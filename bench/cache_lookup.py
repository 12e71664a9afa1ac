"""How long a lookup takes among many stored executions, beside embedding the question alone."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import heedful
from bench.cache_data import DIALECT, Question
from bench.measure import Timing, in_turns, say, timed, timing
from heedful.ids import new_id
from heedful.providers.embedding import embedder_from
from heedful.sql.feedback import new_opinion, put
from heedful.sql.statements import template
from heedful.storage.executions import runs
from heedful.storage.executions.runs import NewRun
from heedful.storage.feedback import SqlFeedbacks
from heedful.storage.vectors import Vectors, ensure_model, pack

STORED = 10_000
LOOKED_UP = 100
PROVEN = 4
"""One in so many stored executions was rated as right."""


def lookups(asked: Sequence[Question], vectors: Vectors, database: Path) -> tuple[Timing, Timing]:
    """The time of a lookup, and of embedding its question, with 10,000 executions stored."""
    embedder = embedder_from("bundled")
    with (
        tempfile.TemporaryDirectory() as folder,
        heedful.open(Path(folder) / "store.db", embedding=embedder) as memory,
    ):
        connector = memory.connectors.create("bench", f"sqlite:///{database}")
        say(f"storing {STORED} executions")
        _fill(memory, connector.connector_id, connector.fingerprint, asked, vectors)
        memory.chat.execution_cache_lookup(asked[0].text)
        tasks = {
            "lookup": lambda place: timed(lambda: memory.chat.execution_cache_lookup(asked[place].text))[0],
            "embedding": lambda place: timed(lambda: embedder.embed([asked[place].text]))[0],
        }
        times = in_turns(tasks, range(min(len(asked), LOOKED_UP)))
    return timing(times["lookup"]), timing(times["embedding"])


def _fill(
    memory: heedful.Heedful, connector: str, fingerprint: str | None, asked: Sequence[Question], vectors: Vectors
) -> None:
    workspace = memory._workspace
    now = workspace.now()
    empty = {"columns": [], "rows": [], "truncated": False, "truncated_by": None, "seconds": 0.0}
    with workspace.database.write() as connection:
        project = memory._project.executions.own_project(connection)
        model = ensure_model(connection, workspace.embedder.name, workspace.embedder.dimensions)
        for place in range(STORED):
            each = asked[place % len(asked)]
            run = NewRun(
                id=new_id(),
                project_id=project,
                connector_id=connector,
                question=each.text,
                model_id=model,
                vector=pack(vectors[place % len(asked)]),
                sql_query=each.sql,
                parameters={},
                template=template(each.sql, DIALECT),
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
            runs.add(connection, run)
            if place % PROVEN == 0:
                put(SqlFeedbacks.on(connection, project), new_opinion(run.id, None, True, None, None, now), None, None)
