"""Builds the indexes of large datasets inside PostgreSQL, beside readers and writers."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection

from heedful.storage import Database, scopes, searching, vectors, words
from heedful.storage.vectors import ModelRow

IN_MEMORY = 100_000
"""Facts that every process can be asked to keep an index of in memory: it takes some hundred megabytes and seconds."""

GROWTH = 1.2
"""Words are counted anew when a dataset has grown by this factor."""

LINKS, CARE = 16, 128
"""The links of a vector in the graph, and the candidates for them: pgvector's `m` and `ef_construction`. With half the
candidates, a search found 96 of 100 nearest facts in place of 98."""

GRAPH_MEMORY = 2**31
"""Bytes that building a graph may take; it is built faster if all of it fits."""

Report = Callable[[str], None]


def build_due(database: Database, report: Report, *, limit: int = IN_MEMORY) -> int:
    """Builds what is missing for datasets of more than `limit` facts; returns how many datasets were worked on.

    It may be stopped at any time and called again, and by several processes at once: each dataset is worked on by one
    of them. An exception from `report`, which is told each step before it is done, stops it. Call it outside of any
    transaction: an index waits for all that were open before it.
    """
    if not database.searches:
        return 0
    with database.read() as connection:
        model = vectors.active_model(connection)
        sizes = scopes.sizes(connection)
        known = words.every(connection)
    worked = 0
    if model is None:
        return worked
    for dataset, size in sizes.items():
        if size > limit:
            worked += build(database, dataset, model, report)
    for dataset in known:
        if sizes.get(dataset, 0) <= limit // 2:
            worked += drop(database, dataset, report)
    return worked


def build(database: Database, dataset: int, model: ModelRow, report: Report) -> bool:
    """Has the database search a dataset by the vectors of a model; returns whether anything was to do."""
    with database.outside(f"build {dataset}") as connection:
        if connection is None:
            return False
        with database.read() as looking:
            project = scopes.project_of(looking, dataset)
            size = scopes.sizes(looking, dataset).get(dataset, 0)
            before = words.known(looking, dataset, model.id)
        if project is None or (
            before is not None and size <= GROWTH * before.facts and _is_whole(connection, dataset, model)
        ):
            return False
        with database.write(project) as writing:
            words.begin(writing, dataset)
        last: int | None = 0
        while last is not None:
            report(f"words of dataset {dataset}")
            # A few at a time, because other writers of the project wait for it.
            with database.write(project) as writing:
                last = words.fill(writing, dataset, last, words.TOGETHER)
        for name, statement in _indexes(dataset, model).items():
            if not _is_valid(connection, name):
                report(f"index {name}")
                _create(connection, name, statement, size, model)
        report(f"counts of dataset {dataset}")
        with database.write(project, alone=False) as writing:
            words.count(writing, dataset)
            words.finish(writing, dataset, model.id)
        connection.exec_driver_sql("ANALYZE words")
        connection.exec_driver_sql("ANALYZE vectors")
        _drop_others(connection, dataset, _indexes(dataset, model))
    return True


def drop(database: Database, dataset: int, report: Report) -> bool:
    """Lets go of the indexes of a dataset that is small again, or gone; returns whether anything was to do."""
    with database.outside(f"build {dataset}") as connection:
        if connection is None:
            return False
        report(f"indexes of dataset {dataset} are dropped")
        with database.read() as looking:
            project = scopes.project_of(looking, dataset)
        with database.write(project) as writing:
            words.forget(writing, dataset)
        _drop_others(connection, dataset, {})
    return True


def _indexes(dataset: int, model: ModelRow) -> dict[str, str]:
    """The indexes of a dataset by name, and what they are."""
    vectors_of, words_of = f"ix_vectors_of_{dataset}_{model.id}", f"ix_words_of_{dataset}"
    return {
        # Kept up with every write: a list of what is still to be done would be read by every search.
        words_of: f"ON words USING gin (terms) WITH (fastupdate = off) WHERE dataset_id = {dataset}",
        vectors_of: f"ON vectors USING hnsw ({searching.direction(model.dimensions)} halfvec_ip_ops) "
        f"WITH (m = {LINKS}, ef_construction = {CARE}) WHERE {searching.only_in(dataset, model.id)}",
    }


def _is_whole(connection: Connection, dataset: int, model: ModelRow) -> bool:
    return all(_is_valid(connection, name) for name in _indexes(dataset, model))


def _is_valid(connection: Connection, name: str) -> bool:
    found = connection.exec_driver_sql("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", (name,))
    return bool(found.scalar())


def _create(connection: Connection, name: str, statement: str, size: int, model: ModelRow) -> None:
    # One that was begun by a process that died is there, but is not used.
    connection.exec_driver_sql(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
    room = min(GRAPH_MEMORY, size * (2 * model.dimensions + 32 * LINKS)) // 2**20
    connection.exec_driver_sql(f"SET maintenance_work_mem = '{64 + room}MB'")
    connection.exec_driver_sql(f"CREATE INDEX CONCURRENTLY {name} {statement}")


def _drop_others(connection: Connection, dataset: int, kept: dict[str, str]) -> None:
    """Drops indexes of a dataset that belong to no model in use."""
    named = connection.exec_driver_sql(
        "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid IN ('words'::regclass, 'vectors'::regclass)"
    ).scalars()
    for name in list(named):
        ours = name == f"ix_words_of_{dataset}" or name.startswith(f"ix_vectors_of_{dataset}_")
        if ours and name not in kept:
            connection.exec_driver_sql(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
