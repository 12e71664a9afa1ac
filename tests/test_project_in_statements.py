"""Each statement of a project's transaction names the project for every table, whoever wrote it and how."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Table, event, func, insert, literal, select, update
from sqlalchemy.engine import Connection
from sqlglot import exp
from things import things

from heedful import Heedful
from heedful.sql.statements import parse
from heedful.storage.isolation import OWN
from heedful.storage.schema import datasets, facts, metadata, queries, sessions, vectors

OWNED = {name for name, table in metadata.tables.items() if "project_id" in table.columns}


def lacking(statement: str) -> set[str]:
    """The tables of a statement for which it names no project."""
    (parsed,) = parse(re.sub(r"%\((\w+)\)s", r":\1", statement), "postgresql" if "::" in statement else "sqlite")
    inserted: set[str] = set()
    if isinstance(parsed, exp.Insert) and isinstance(parsed.this, exp.Schema):
        columns = {column.name for column in parsed.this.expressions}
        inserted = {parsed.this.this.name} & OWNED if "project_id" not in columns else inserted
    found: set[str] = set()
    for table in parsed.find_all(exp.Table):
        within = table.find_ancestor(exp.Select, exp.Update, exp.Delete)
        if table.name in OWNED and within is not None:
            named = {
                column.table or table.alias_or_name
                for equal in within.find_all(exp.EQ)
                for column in equal.find_all(exp.Column)
                if column.name == "project_id"
            }
            if table.alias_or_name not in named:
                found.add(table.name)
    return inserted | found


def shape(statement: str) -> str:
    """A statement without its values, which may be long."""
    return re.sub(r"\s+", " ", re.sub(r"[xX]?'(?:[^']|'')*'", "'v'", statement))


@pytest.mark.slow
def test_every_statement_of_a_project_names_it(open_store: Callable[..., Heedful], tmp_path: Path) -> None:
    traced: set[str] = set()
    # On a file, where statements are easily traced. On a cluster, all tests show it.
    store = open_store(tmp_path / "ours.db", project="ours")
    database: Any = store._workspace.database

    def trace(connection: Any, record: Any) -> None:
        def note(statement: str) -> None:
            if record.info.get(OWN):
                traced.add(shape(statement))

        connection.set_trace_callback(note)

    database._close()
    event.listen(database.engine, "connect", trace)
    made = things(store, tmp_path)  # type: ignore[arg-type]
    store.recall("Who is the CEO?", explain=True, boost_by_usefulness=True, where={"team": "green"})
    store.fact_stats(made["fact_id"])
    store.retract(made["event_id"])
    store.doctor()
    store.forget(fact_ids=[made["fact_id"]])
    store.sessions.delete(made["session_id"])
    statements = [one for one in traced if one.startswith(("SELECT", "INSERT", "UPDATE", "DELETE", "WITH"))]
    assert len(statements) > 200
    wrong = {one: names for one in statements if (names := lacking(one))}
    assert wrong == {}


@pytest.mark.parametrize(
    "statement",
    [
        select(facts.c.id),
        select(facts.alias("one").c.id),
        select(datasets.c.name, facts.c.id).join(facts, facts.c.dataset_id == datasets.c.id),
        select(datasets.c.name).outerjoin(facts, facts.c.dataset_id == datasets.c.id),
        select(facts.c.id).where(facts.c.seq.in_(select(vectors.c.fact_seq))),
        select(select(func.count()).select_from(facts).scalar_subquery()),
        select(select(facts.c.id).cte().c.id),
        select(facts.c.id).union_all(select(queries.c.text)),
        update(facts).values(hidden=1).where(facts.c.dataset_id == datasets.c.id),
        insert(queries).from_select(["text"], select(facts.c.text)),
        insert(queries).values(text=literal("a")),
    ],
    ids=str,
)
def test_the_compiler_names_it_in(statement: Any, open_store: Callable[..., Heedful]) -> None:
    store = open_store()
    store.remember("x")
    database = store._workspace.database
    if isinstance(statement, type(insert(queries))):
        compiled = str(statement.compile(dialect=database.of_project.dialect))
        assert "project_id" in compiled.partition("(")[2].partition(")")[0]
        return
    assert lacking(str(statement.compile(dialect=database.of_project.dialect))) == set()
    assert lacking(str(statement.compile(dialect=database.engine.dialect))) != set()


def ids(connection: Connection, table: Table) -> list[Any]:
    return list(connection.execute(select(table.c.id)).scalars())


def test_a_query_that_forgets_its_project_finds_its_own_rows_only(any_store: str, open_store: Any) -> None:
    ours, theirs = (open_store(any_store, project=name) for name in ("ours", "theirs"))
    for store in (ours, theirs):
        store.remember("x")
        store.sessions.create("s")
    with ours._workspace.read() as connection:
        assert len(ids(connection, facts)) == 1
        joined = select(sessions.c.id, facts.c.id).outerjoin(facts, facts.c.id != sessions.c.id)
        assert len(connection.execute(joined).all()) == 1
    with ours._workspace.write() as connection:
        assert connection.execute(update(facts).values(text="changed")).rowcount == 1
    assert [fact.text for fact in theirs.facts().items] == ["x"]
