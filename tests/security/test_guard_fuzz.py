"""Random SQL: what the guard accepts writes nothing and touches no file on a real database that would let it."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import duckdb
import psycopg
import pytest
from hypothesis import given, settings
from sql_grammar import DENIED, statements
from witnesses import DuckDBWitness, PostgreSQLWitness

from heedful.errors import Forbidden, Invalid
from heedful.sql.guard import check_statement, is_denied

pytestmark = pytest.mark.slow

EXAMPLES = 3 * settings().max_examples
CANARY = "canary-4711"
TABLES = "CREATE TABLE t (a int, b text); INSERT INTO t VALUES (1, 'x'), (2, 'y'); CREATE TABLE u AS SELECT * FROM t;"


@pytest.fixture
def file(tmp_path: Path) -> str:
    """The only file of its folder."""
    (tmp_path / "file.csv").write_text(f"a\n{CANARY}\n")
    return str(tmp_path / "file.csv")


def untouched(file: str) -> bool:
    return [each.read_text() for each in Path(file).parent.iterdir()] == [f"a\n{CANARY}\n"]


def accepted(sql: str, dialect: str) -> str | None:
    """What would run; whatever is refused is refused in our words."""
    try:
        return check_statement(sql, dialect).sql
    except (Invalid, Forbidden):
        return None


class Count:
    accepted = 0


def test_what_is_accepted_changes_nothing_on_sqlite(file: str) -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(TABLES)
    touched: list[str] = []
    for name in ("readfile", "writefile", "edit"):
        connection.create_function(name, -1, lambda *_, name=name: touched.append(name))
    before, passed = list(connection.iterdump()), Count()

    @settings(max_examples=EXAMPLES)
    @given(statements("sqlite", file))
    def check(sql: str) -> None:
        text = accepted(sql, "sqlite")
        if text is None:
            return
        passed.accepted += 1
        connection.set_progress_handler(lambda: True, 500_000)
        with contextlib.suppress(sqlite3.Error, sqlite3.Warning):
            connection.execute(text).fetchmany(50)
        assert not touched
        assert not connection.in_transaction

    check()
    assert list(connection.iterdump()) == before
    assert untouched(file)
    assert passed.accepted > EXAMPLES // 20


def test_what_is_accepted_changes_nothing_on_duckdb(file: str) -> None:
    connection, witness = duckdb.connect(), DuckDBWitness()
    connection.execute(TABLES)
    passed = Count()

    @settings(max_examples=EXAMPLES)
    @given(statements("duckdb", file))
    def check(sql: str) -> None:
        text = accepted(sql, "duckdb")
        if text is None:
            return
        passed.accepted += 1
        assert not [name for name in witness.calls(text) or () if is_denied(name, "duckdb")]
        rows: list[object] = []
        with contextlib.suppress(duckdb.Error):
            rows = list(connection.execute(text).fetchmany(50))
        assert CANARY not in repr(rows)

    check()
    assert connection.execute("SELECT * FROM t ORDER BY a").fetchall() == [(1, "x"), (2, "y")]
    assert connection.execute("SELECT count(*) FROM duckdb_tables()").fetchall() == [(2,)]
    assert untouched(file)
    assert passed.accepted > EXAMPLES // 20


def test_what_is_accepted_changes_nothing_on_postgresql(postgresql_url: str, file: str) -> None:
    """As a superuser, in a transaction that may write."""
    witness = PostgreSQLWitness(postgresql_url)
    connection = witness.connection
    connection.execute(f"{TABLES} CREATE SEQUENCE s; SET statement_timeout = '2s'".encode())
    connection.commit()
    passed = Count()

    @settings(max_examples=EXAMPLES)
    @given(statements("postgresql", file))
    def check(sql: str) -> None:
        text = accepted(sql, "postgresql")
        if text is None:
            return
        passed.accepted += 1
        try:
            assert not [name for name in witness.calls(text) or () if is_denied(name, "postgres")]
            with contextlib.suppress(psycopg.Error):
                connection.execute(text.encode()).fetchmany(50)
                found = connection.execute(
                    "SELECT pg_current_xact_id_if_assigned(),"
                    " (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())"
                ).fetchone()
                assert found == (None, 0)
        finally:
            connection.rollback()

    check()
    connection.close()
    assert untouched(file)
    assert passed.accepted > EXAMPLES // 20


def test_the_grammar_has_names_that_are_denied() -> None:
    for dialect, names in DENIED.items():
        plain = [name.strip('"`[]').rpartition(".")[2] for name in names if not name.startswith("U&")]
        assert all(is_denied(name, "postgres" if dialect == "postgresql" else dialect) for name in plain)
