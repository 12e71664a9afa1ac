"""Queries on real databases: what the second and third safeguard do by themselves, and what comes back."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import orjson
import psycopg
import pytest
from guarded import run
from postgresql import new_database

from heedful.errors import Forbidden, HeedfulError, Invalid, NotFound, Unavailable
from heedful.results import decode, encode
from heedful.sql.databases.any_database import Database, Limits, text_values
from heedful.sql.databases.opening import open_database
from heedful.sql.databases.schema import ForeignKey, fingerprint
from heedful.sql.guard import CheckedStatement, check_statement

TABLES = """
CREATE TABLE city (id integer PRIMARY KEY, name varchar(50) NOT NULL, people integer);
CREATE TABLE street (id integer PRIMARY KEY, city_id integer REFERENCES city (id), name varchar(50));
CREATE INDEX by_name ON street (name);
INSERT INTO city VALUES (1, 'Rome', 2800000), (2, 'Oslo', 700000), (3, 'Nice', NULL);
INSERT INTO street VALUES (1, 1, 'Via Appia');
CREATE VIEW large AS SELECT name FROM city WHERE people > 1000000;
"""

ENDLESS = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
    "postgresql": "SELECT count(*) FROM generate_series(1, 10000000) a, generate_series(1, 10000000) b",
    "duckdb": "SELECT count(*) FROM range(10000000000) a, range(10000000000) b",
}


@dataclass
class Place:
    """A database with some tables, and a way to write to it that isn't ours."""

    kind: str
    url: str
    write: Callable[[str], object]
    database: Database


def sqlite_in(folder: Path) -> Place:
    file = folder / "geo.db"

    def write(sql: str) -> None:
        with sqlite3.connect(file) as connection:
            connection.executescript(sql)
        connection.close()

    write(TABLES)
    url = f"sqlite:///{file}"
    return Place("sqlite", url, write, open_database(url))


def postgresql_at(url: str) -> Place:
    def write(sql: str) -> None:
        with psycopg.connect(url) as connection:
            connection.execute(sql.encode())

    write(TABLES)
    return Place("postgresql", url, write, open_database(url, role="reader"))


def duckdb_in(folder: Path) -> Place:
    file = folder / "geo.duckdb"

    def write(sql: str) -> None:
        with duckdb.connect(str(file)) as connection:
            connection.execute(sql)

    write(TABLES)
    url = f"duckdb:///{file}"
    return Place("duckdb", url, write, open_database(url))


@pytest.fixture
def sqlite_place(tmp_path: Path) -> Place:
    return sqlite_in(tmp_path)


@pytest.fixture
def postgresql_place(postgresql_url: str) -> Place:
    return postgresql_at(postgresql_url)


@pytest.fixture
def duckdb_place(tmp_path: Path) -> Place:
    return duckdb_in(tmp_path)


@pytest.fixture(params=["sqlite", "postgresql", "duckdb"])
def place(request: pytest.FixtureRequest) -> Place:
    found: Place = request.getfixturevalue(f"{request.param}_place")
    return found


def unguarded(database: Database, sql: str) -> CheckedStatement:
    """What the guard would refuse, as if it had let it through."""
    return CheckedStatement(sql, database.dialect)


def state(place: Place) -> tuple[str, list[tuple[Any, ...]]]:
    rows = run(place.database, "SELECT id, name, people FROM city ORDER BY id").rows
    return fingerprint(place.database.read_schema()), list(rows)


def test_a_query_returns_rows_names_and_types(place: Place) -> None:
    result = run(place.database, "SELECT name, people FROM city WHERE people IS NOT NULL ORDER BY id")
    assert [column.name for column in result.columns] == ["name", "people"]
    assert result.rows == (("Rome", 2800000), ("Oslo", 700000))
    assert (result.truncated, result.truncated_by) == (False, None)
    assert result.seconds >= 0
    assert [column.type for column in result.columns] == {
        "sqlite": ["text", "integer"],
        "postgresql": ["varchar(50)", "int4"],
        "duckdb": ["varchar", "integer"],
    }[place.kind]


def test_names_may_repeat_and_results_may_be_empty(place: Place) -> None:
    result = run(place.database, "SELECT id, id, name AS id FROM city WHERE id > 99")
    assert [column.name for column in result.columns][:3] == ["id", "id", "id"]
    assert result.rows == ()


def test_parameters_are_bound_and_not_pasted(place: Place) -> None:
    sql = "SELECT name, '100%', ':p1' FROM city WHERE name = :p1 AND id <= :most"
    assert run(place.database, sql, {"p1": "Rome", "most": 5}).rows == (("Rome", "100%", ":p1"),)
    assert run(place.database, sql, {"p1": "' OR 1 = 1 --", "most": 5}).rows == ()
    assert run(place.database, "SELECT name FROM city WHERE name LIKE '%o%' ORDER BY 1").rows == (("Oslo",), ("Rome",))


@pytest.mark.parametrize(
    ("values", "named"), [({}, "p1"), ({"p2": 1}, "p1"), ({"p1": 1, "p2": 1}, "p2")], ids=["none", "other", "more"]
)
def test_each_parameter_has_one_value(place: Place, values: dict[str, Any], named: str) -> None:
    with pytest.raises(Invalid) as raised:
        run(place.database, "SELECT name FROM city WHERE id = :p1", values)
    assert (raised.value.code, raised.value.value) == ("sql_parameter", [named])


HOSTILE = {
    "sqlite": [
        "INSERT INTO city VALUES (9, 'x', 1)",
        "WITH a AS (SELECT 1) UPDATE city SET name = 'x'",
        "DELETE FROM city",
        "DROP TABLE city",
        "CREATE TABLE x (a)",
        "CREATE TEMP TABLE x (a)",
        "SELECT load_extension('x')",
        "SELECT fts3_tokenizer('simple')",
        "PRAGMA writable_schema = 1",
        "PRAGMA query_only = 0",
        "PRAGMA table_info(city)",
        "SELECT * FROM pragma_table_info('city')",
        "ATTACH '{folder}/other.db' AS other",
        "VACUUM",
        "VACUUM INTO '{folder}/copy.db'",
        "BEGIN IMMEDIATE",
        "SAVEPOINT a",
        "REINDEX",
        "ANALYZE",
        "SELECT 1; DELETE FROM city",
    ],
    "postgresql": [
        "INSERT INTO city VALUES (9, 'x', 1)",
        "WITH gone AS (DELETE FROM street RETURNING *) SELECT * FROM gone",
        "DELETE FROM city",
        "DROP TABLE city",
        "CREATE TEMP TABLE x (a int)",
        "SELECT * INTO x FROM city",
        "SELECT * FROM city FOR UPDATE",
        "SELECT * FROM city FOR KEY SHARE",
        "COMMIT; DROP TABLE city",
        "SELECT 1; COMMIT; DROP TABLE city",
        "SELECT 1; SET TRANSACTION READ WRITE; DROP TABLE city",
        "COPY city TO '{folder}/x'",
        "COPY (SELECT 1) TO PROGRAM 'sh'",
        "SET ROLE postgres",
        "CALL x()",
        "DO $$ BEGIN DELETE FROM city; END $$",
        "EXPLAIN ANALYZE DELETE FROM city",
        "VACUUM",
        "SELECT set_config('transaction_read_only', 'off', true)",
        "SELECT nextval('counter')",
        "SELECT setval('counter', 9)",
        "SELECT lo_create(0)",
        "SELECT lo_import('/etc/passwd')",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT pg_ls_dir('/')",
        "SELECT pg_reload_conf()",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'postgres' AND pid <> pg_backend_pid()",
        "SELECT query_to_xml('DELETE FROM city', true, true, '')",
        "SELECT writes()",
    ],
    "duckdb": [
        "INSERT INTO city VALUES (9, 'x', 1)",
        "DELETE FROM city",
        "DROP TABLE city",
        "CREATE TEMP TABLE x (a int)",
        "COPY city TO '{folder}/x.csv'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd.csv'",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM duckdb_secrets()",
        "SELECT * FROM query('DELETE FROM city')",
        "SET enable_external_access = true",
        "ATTACH '{folder}/other.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "PRAGMA database_list",
        "CALL pragma_version()",
        "EXPORT DATABASE '{folder}/x'",
        "CHECKPOINT",
        "EXPLAIN ANALYZE SELECT 1",
        "PREPARE p AS SELECT 1",
        "SELECT 1; DELETE FROM city",
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def attacked_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("attacked")


@pytest.fixture(scope="module")
def attacked_sqlite(attacked_folder: Path) -> Place:
    return sqlite_in(attacked_folder)


@pytest.fixture(scope="module")
def attacked_duckdb(attacked_folder: Path) -> Place:
    return duckdb_in(attacked_folder)


@pytest.fixture(scope="module")
def attacked_postgresql(postgresql_server: str) -> Iterator[Place]:
    with new_database(postgresql_server) as url:
        place = postgresql_at(url)
        place.write(
            "CREATE SEQUENCE counter; CREATE FUNCTION writes() RETURNS int LANGUAGE sql AS"
            " 'DELETE FROM street RETURNING id'"
        )
        yield place


@pytest.mark.parametrize(("kind", "sql"), [(kind, sql) for kind, found in HOSTILE.items() for sql in found])
@pytest.mark.nightly
def test_the_second_wall_holds_without_the_first(
    kind: str, sql: str, request: pytest.FixtureRequest, attacked_folder: Path
) -> None:
    place: Place = request.getfixturevalue(f"attacked_{kind}")
    sql = sql.replace("{folder}", str(attacked_folder))
    before, files = state(place), sorted(attacked_folder.iterdir())
    with pytest.raises(HeedfulError):
        check_statement(sql, place.kind) if "writes()" not in sql else refuse()
    with pytest.raises(HeedfulError) as raised:
        run(place.database, unguarded(place.database, sql))
    assert raised.value.code in ("read_only", "query_failed", "database_forbidden", "unknown_table")
    assert state(place) == before
    assert sorted(attacked_folder.iterdir()) == files


def refuse() -> None:
    """The guard can't know what a function of the user's own does; the second safeguard does."""
    raise Forbidden("not known")


def test_what_a_query_sets_ends_with_it(postgresql_place: Place) -> None:
    for setting in ("SELECT set_config('statement_timeout', '1', false)", "SELECT set_config('role', 'none', false)"):
        run(postgresql_place.database, unguarded(postgresql_place.database, setting))
    result = run(postgresql_place.database, "SELECT current_user::text, current_setting('transaction_read_only')")
    assert result.rows == (("reader", "on"),)


def test_a_role_can_not_be_left_to_write(postgresql_place: Place) -> None:
    sql = "SELECT set_config('role', 'none', true), writes()"
    postgresql_place.write("CREATE FUNCTION writes() RETURNS int LANGUAGE sql AS 'DELETE FROM street RETURNING id'")
    with pytest.raises(Forbidden) as raised:
        run(postgresql_place.database, unguarded(postgresql_place.database, sql))
    assert raised.value.code == "read_only"


@pytest.mark.slow
def test_a_query_that_never_ends_is_stopped(place: Place) -> None:
    with pytest.raises(Unavailable) as raised:
        run(place.database, ENDLESS[place.kind], limits=Limits(seconds=0.3))
    assert (raised.value.code, raised.value.value) == ("query_timeout", 0.3)
    assert state(place)[1][0][1] == "Rome"


def test_a_result_that_never_ends_is_stopped_at_the_limit(place: Place) -> None:
    endless = {
        "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
        "postgresql": "SELECT generate_series(1, 9000000000000000000)",
        "duckdb": "SELECT range AS i FROM range(9000000000000000000)",
    }[place.kind]
    result = run(place.database, endless, limits=Limits(rows=2500))
    assert (len(result.rows), result.truncated, result.truncated_by) == (2500, True, "rows")


@pytest.mark.parametrize("sql", ["SELECT pg_sleep(100)", ENDLESS["postgresql"]])
def test_the_server_is_idle_after_a_query_was_stopped(postgresql_place: Place, sql: str) -> None:
    with pytest.raises(Unavailable) as raised:
        run(postgresql_place.database, unguarded(postgresql_place.database, sql), limits=Limits(seconds=0.3))
    assert raised.value.code == "query_timeout"
    with psycopg.connect(postgresql_place.url, autocommit=True) as connection:
        for _ in range(200):
            row = connection.execute(
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE application_name = 'heedful' AND datname = current_database()"
            ).fetchone()
            if row == (0,):
                break
            connection.execute("SELECT pg_sleep(0.05)")
        assert row == (0,)


def test_one_session_goes_on_after_a_query_was_stopped(place: Place) -> None:
    with place.database.session() as session:
        with pytest.raises(Unavailable):
            session.run(check_statement(ENDLESS[place.kind], place.kind), {}, Limits(seconds=0.2))
        with pytest.raises(Invalid):
            session.run(check_statement("SELECT * FROM missing", place.kind), {}, Limits())
        assert session.run(check_statement("SELECT 7", place.kind), {}, Limits()).rows == ((7,),)


@pytest.mark.parametrize(("rows", "truncated"), [(2, "rows"), (3, None), (4, None)])
def test_rows_beyond_the_limit_are_cut_and_said_to_be(place: Place, rows: int, truncated: str | None) -> None:
    result = run(place.database, "SELECT id FROM city ORDER BY id", limits=Limits(rows=rows))
    assert result.rows == ((1,), (2,), (3,))[:rows]
    assert (result.truncated, result.truncated_by) == (truncated is not None, truncated)
    assert decode(encode(result)) == result


def test_bytes_beyond_the_limit_are_cut_and_said_to_be(place: Place) -> None:
    wide = {
        "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)"
        " SELECT i, printf('%.*c', 1000, 'x') FROM n",
        "postgresql": "SELECT i, repeat('x', 1000) FROM generate_series(1, 500) AS n(i)",
        "duckdb": "SELECT range, repeat('x', 1000) FROM range(500)",
    }[place.kind]
    result = run(place.database, wide, limits=Limits(bytes=100_000))
    assert (result.truncated, result.truncated_by) == (True, "bytes")
    assert 90 < len(result.rows) < 100
    assert len(orjson.dumps(encode(result)["rows"])) <= 100_000
    assert not run(place.database, wide, limits=Limits(bytes=1_000_000)).truncated


@pytest.mark.parametrize("name", ["seconds", "rows", "bytes"])
@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan")])
def test_limits_limit(name: str, value: float) -> None:
    with pytest.raises(Invalid) as raised:
        Limits(**{name: value})  # type: ignore[arg-type]
    assert raised.value.field == name


def test_values_of_postgresql_go_through_json(postgresql_place: Place) -> None:
    sql = """
    SELECT 9223372036854775807 AS big, 12345678901234567890.123456789::numeric AS exact, 'NaN'::float8 AS nan,
      '-infinity'::float8 AS less, true AS yes, NULL AS nothing, date '2024-02-29' AS day,
      timestamp '2024-02-29 01:02:03.000004' AS moment, timestamptz '2024-02-29 01:02:03+05:30' AS zoned,
      time '01:02:03' AS clock, timetz '01:02:03+02' AS zoned_clock, interval '-1 day 2 hours' AS span,
      '\\x00ff'::bytea AS raw, '00000000-0000-0000-0000-000000000007'::uuid AS id, ARRAY[1.5, NULL]::numeric[] AS list,
      '{"a": [1, null, "x"], "$b": 2}'::jsonb AS document, 'infinity'::timestamptz AS never,
      '0044-03-15 BC'::date AS ides, int4range(1, 5) AS span_of, '10.0.0.0/8'::inet AS net, '24:00'::time AS midnight,
      ARRAY[date '2024-01-01'] AS days
    """
    result = run(postgresql_place.database, sql)
    row = dict(zip([column.name for column in result.columns], result.rows[0], strict=True))
    assert row.pop("nan") != 0
    assert row == {
        "big": 9223372036854775807,
        "exact": Decimal("12345678901234567890.123456789"),
        "less": float("-inf"),
        "yes": True,
        "nothing": None,
        "day": date(2024, 2, 29),
        "moment": datetime(2024, 2, 29, 1, 2, 3, 4),
        "zoned": datetime(2024, 2, 28, 19, 32, 3, tzinfo=UTC),
        "clock": time(1, 2, 3),
        "zoned_clock": time(1, 2, 3, tzinfo=timezone(timedelta(hours=2))),
        "span": timedelta(days=-1, hours=2),
        "raw": b"\0\xff",
        "id": UUID(int=7),
        "list": [Decimal("1.5"), None],
        "document": {"a": [1, None, "x"], "$b": 2},
        "never": "infinity",
        "ides": "0044-03-15 BC",
        "span_of": "[1, 5)",
        "net": "10.0.0.0/8",
        "midnight": "24:00:00",
        "days": [date(2024, 1, 1)],
    }
    again = decode(orjson.loads(orjson.dumps(encode(result))))
    assert repr(again) == repr(result)


def test_values_of_sqlite_go_through_json(sqlite_place: Place) -> None:
    sql = "SELECT 9223372036854775807, 0.1, 9e999, 'ü', x'00ff', NULL, CAST(x'ff' AS text), 'a' || char(0) || 'b'"
    result = run(sqlite_place.database, sql)
    assert result.rows == ((9223372036854775807, 0.1, float("inf"), "ü", b"\0\xff", None, b"\xff", "a\0b"),)
    assert [column.type for column in result.columns][:6] == ["integer", "real", "real", "text", "blob", "null"]
    assert decode(orjson.loads(orjson.dumps(encode(result)))) == result
    mixed = run(sqlite_place.database, "SELECT 1 AS a UNION ALL SELECT 'x' UNION ALL SELECT x'00'")
    assert mixed.columns[0].type == "any"
    assert decode(orjson.loads(orjson.dumps(encode(mixed)))) == mixed


def test_values_of_duckdb_go_through_json(duckdb_place: Place) -> None:
    sql = """
    SELECT 170141183460469231731687303715884105727::hugeint, 1.50::decimal(9, 2), 'nan'::double,
      {'x': 1, 'y': ['a', NULL]}, map {1: 2.5::decimal(3, 1)}, [1, 2], interval 1 day,
      uuid '00000000-0000-0000-0000-000000000007', 'x'::blob,
      date '2024-02-29', timestamp '2024-02-29 01:02:03', time '01:02:03', NULL, '0044-03-15 (BC)'::date
    """
    result = run(duckdb_place.database, sql)
    (row,) = result.rows
    assert row[2] != row[2]
    assert row[:2] + row[3:] == (
        2**127 - 1,
        Decimal("1.50"),
        {"x": 1, "y": ["a", None]},
        {1: Decimal("2.5")},
        [1, 2],
        timedelta(days=1),
        UUID(int=7),
        b"x",
        date(2024, 2, 29),
        datetime(2024, 2, 29, 1, 2, 3),
        time(1, 2, 3),
        None,
        "0044-03-15 (BC)",
    )
    assert [column.type for column in result.columns][:3] == ["hugeint", "decimal(9,2)", "double"]
    assert repr(decode(orjson.loads(orjson.dumps(encode(result))))) == repr(result)


def test_a_moment_with_a_zone_comes_from_duckdb(duckdb_place: Place) -> None:
    result = run(duckdb_place.database, "SELECT timestamptz '2024-02-29 01:02:03+05:30'")
    assert result.rows == ((datetime(2024, 2, 28, 19, 32, 3, tzinfo=UTC),),)
    assert decode(orjson.loads(orjson.dumps(encode(result)))) == result


def test_the_schema_is_what_the_database_says(place: Place) -> None:
    schema = place.database.read_schema()
    assert [(table.full_name, table.is_view) for table in schema.tables] == [
        ("city", False),
        ("large", True),
        ("street", False),
    ]
    city, street = schema.table("CITY"), schema.table("street")
    assert city is not None
    assert street is not None
    assert [column.name for column in city.columns] == ["id", "name", "people"]
    assert [column.is_text for column in city.columns] == [False, True, False]
    assert [column.nullable for column in city.columns][1:] == [False, True]
    assert (city.primary_key, street.foreign_keys) == (("id",), (ForeignKey(("city_id",), "city", ("id",)),))


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TABLE other (a integer)",
        "ALTER TABLE street ADD COLUMN length integer",
        "ALTER TABLE street RENAME COLUMN name TO title",
        "DROP VIEW large",
    ],
)
@pytest.mark.nightly
def test_the_fingerprint_changes_with_the_schema_and_not_with_the_data(place: Place, change: str) -> None:
    if place.kind == "duckdb" and change.startswith("ALTER"):
        # DuckDB doesn't alter a table that others refer to, or that refers to others.
        place.write("CREATE TABLE plain (name varchar)")
        change = change.replace("street", "plain")
    before = fingerprint(place.database.read_schema())
    place.write("DELETE FROM street")
    assert fingerprint(place.database.read_schema()) == before
    place.write(change)
    assert fingerprint(place.database.read_schema()) != before


def test_the_fingerprint_does_not_depend_on_order(tmp_path: Path) -> None:
    result = []
    for name, tables in (("a", ["x (a int, b text)", "y (c int)"]), ("b", ["y (c int)", "x (b text, a int)"])):
        with sqlite3.connect(tmp_path / name) as connection:
            for table in tables:
                connection.execute(f"CREATE TABLE {table}")
        connection.close()
        result.append(fingerprint(open_database(f"sqlite:///{tmp_path / name}").read_schema()))
    assert result[0] == result[1]


def test_tables_of_other_schemas_are_named_by_them(postgresql_place: Place) -> None:
    postgresql_place.write('CREATE SCHEMA sales; CREATE TABLE sales."Order" (id int, note text)')
    postgresql_place.write("INSERT INTO sales.\"Order\" VALUES (1, 'late')")
    schema = postgresql_place.database.read_schema()
    assert schema.table("sales.Order") is not None
    assert text_values(postgresql_place.database, schema).values["sales.Order", "note"] == ("late",)


def settled(place: Place) -> str | None:
    """The version once the files have been left alone for a while."""
    if place.kind != "postgresql":
        for file in Path(place.url.split("///")[1]).parent.glob("geo.*"):
            then = file.stat().st_mtime_ns - 10_000_000_000
            os.utime(file, ns=(then, then))
    return place.database.data_version()


def left_alone(place: Place, reading: Callable[[], object]) -> str:
    """The version that is the same before and after reading; tests beside this one write to the same server."""
    for _ in range(200):
        before = settled(place)
        reading()
        if before is not None and place.database.data_version() == before:
            return before
    raise AssertionError("reading changes the version")


def test_the_version_of_data_changes_with_every_commit_and_not_with_reading(place: Place) -> None:
    before = left_alone(place, lambda: run(place.database, "SELECT * FROM city"))
    place.write("UPDATE city SET people = people + 1")
    assert left_alone(place, place.database.read_schema) != before


def test_a_file_that_changed_just_now_has_no_version(sqlite_place: Place) -> None:
    settled(sqlite_place)
    sqlite_place.write("UPDATE city SET people = 1")
    assert sqlite_place.database.data_version() is None


def test_a_write_that_is_still_in_the_log_changes_the_version(sqlite_place: Place) -> None:
    with sqlite3.connect(sqlite_place.url.split("///")[1]) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("UPDATE city SET people = 1")
        writer.commit()
        before = settled(sqlite_place)
        writer.execute("UPDATE city SET people = 2")
        writer.commit()
        assert settled(sqlite_place) != before
        assert run(sqlite_place.database, "SELECT DISTINCT people FROM city").rows == ((2,),)
    writer.close()


def test_a_database_with_foreign_tables_has_no_version(postgresql_place: Place) -> None:
    postgresql_place.write(
        "CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w; CREATE FOREIGN TABLE f (a int) SERVER s"
    )
    assert postgresql_place.database.data_version() is None


def test_texts_are_known_by_column_and_bounded(place: Place) -> None:
    schema = place.database.read_schema()
    found = text_values(place.database, schema)
    assert found.values == {("city", "name"): ("Nice", "Oslo", "Rome"), ("street", "name"): ("Via Appia",)}
    assert found.partial == frozenset()
    few = text_values(place.database, schema, per_column=2)
    assert len(few.values["city", "name"]) == 2
    assert few.partial == {("city", "name")}


def test_a_table_that_may_not_be_read_has_no_known_texts(postgresql_place: Place) -> None:
    database = open_database(postgresql_place.url.replace("postgres@", "locked:open-sesame@"))
    found = text_values(database, database.read_schema())
    assert found.values["city", "name"] == ()
    assert ("city", "name") in found.partial


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT * FROM missing", "unknown_table"),
        ("SELECT missing FROM city", "unknown_column"),
        ("SELECT missing_function(1)", "query_failed"),
        ("SELECT name FROM city GROUP BY max(id)", "query_failed"),
    ],
)
def test_what_the_database_can_not_run_is_said_in_its_words(place: Place, sql: str, code: str) -> None:
    with pytest.raises(Invalid) as raised:
        run(place.database, sql)
    assert raised.value.code == code
    assert "missing" in str(raised.value) or "GROUP" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_full_text_and_spatial_tables_can_be_read(sqlite_place: Place) -> None:
    sqlite_place.write(
        "CREATE VIRTUAL TABLE note USING fts5(body); INSERT INTO note VALUES ('the quick fox');"
        "CREATE VIRTUAL TABLE box USING rtree(id, x1, x2); INSERT INTO box VALUES (1, 0, 5);"
    )
    assert run(sqlite_place.database, "SELECT body FROM note WHERE note MATCH 'quick'").rows == (("the quick fox",),)
    assert run(sqlite_place.database, "SELECT id FROM box WHERE x2 > 4").rows == ((1,),)


@pytest.mark.parametrize("scheme", ["sqlite", "duckdb"])
def test_a_file_is_not_made_by_opening_it(scheme: str, tmp_path: Path) -> None:
    database = open_database(f"{scheme}:///{tmp_path / 'missing.db'}")
    for call in (lambda: run(database, "SELECT 1"), database.read_schema, database.data_version):
        with pytest.raises(NotFound) as raised:
            call()
        assert raised.value.code == "database_missing"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("scheme", ["sqlite", "duckdb"])
def test_a_folder_or_another_file_is_not_a_database(scheme: str, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello, this is just some text\n" * 1000)
    for path in (tmp_path, tmp_path / "text"):
        with pytest.raises(Invalid) as raised:
            run(open_database(f"{scheme}:///{path}"), "SELECT 1")
        assert raised.value.code == "not_a_database"


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "duckdb:///:memory:", "duckdb:///md:sales"])
def test_a_database_in_memory_can_not_be_a_connector(url: str) -> None:
    with pytest.raises(Invalid) as raised:
        open_database(url)
    assert raised.value.code == "not_a_database"


def test_a_duckdb_file_that_is_being_written_is_in_use(duckdb_place: Place) -> None:
    with duckdb.connect(duckdb_place.url.split("///")[1]), pytest.raises(Unavailable) as raised:
        run(duckdb_place.database, "SELECT 1")
    assert raised.value.code == "database_in_use"


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


SECRET = "tell-nobody"


def connecting(url: str) -> HeedfulError:
    database = open_database(url)
    assert SECRET not in repr(database) + database.address
    with pytest.raises(HeedfulError) as raised:
        run(database, "SELECT 1")
    error: BaseException | None = raised.value
    while error is not None:
        assert SECRET not in f"{error!r} {error}"
        error = error.__cause__
    return raised.value


def test_a_server_that_does_not_answer(silent_port: int) -> None:
    error = connecting(f"postgresql://me:{SECRET}@127.0.0.1:{silent_port}/x")
    assert (type(error), error.code) == (Unavailable, "database_unreachable")
    assert f"127.0.0.1:{silent_port}/x" in str(error)
    assert connecting(f"postgresql://me:{SECRET}@no-such-host.invalid/x").code == "database_unreachable"


def test_a_wrong_password_is_not_shown(postgresql_server: str) -> None:
    url = postgresql_server.replace("DATABASE", "postgres").replace("postgres@", f"locked:{SECRET}@")
    error = connecting(url)
    assert (type(error), error.code) == (Unavailable, "database_login")


def test_a_missing_database_and_a_missing_user(postgresql_server: str) -> None:
    assert connecting(postgresql_server.replace("DATABASE", "nothing_here")).code == "database_missing"
    unknown = postgresql_server.replace("DATABASE", "postgres").replace("postgres@", f"nobody_here:{SECRET}@")
    assert connecting(unknown).code == "database_login"


def test_tls_that_the_server_does_not_speak(postgresql_server: str) -> None:
    url = postgresql_server.replace("DATABASE", "postgres")
    assert connecting(f"{url}?sslmode=require").code == "database_tls"


def test_a_table_that_the_user_may_not_read(postgresql_place: Place) -> None:
    database = open_database(postgresql_place.url.replace("postgres@", "locked:open-sesame@"))
    with pytest.raises(Forbidden) as raised:
        run(database, "SELECT * FROM city")
    assert raised.value.code == "database_forbidden"


def test_a_role_that_is_not_there(postgresql_place: Place) -> None:
    with pytest.raises(HeedfulError) as raised:
        run(open_database(postgresql_place.url, role='no"body'), "SELECT 1")
    assert 'no"body' in str(raised.value)
    with pytest.raises(Invalid) as raised_too:
        open_database("sqlite:///x.db", role="reader")
    assert raised_too.value.field == "role"


@pytest.mark.parametrize(
    ("url", "kind", "code"),
    [
        ("nonsense", Invalid, "url_unreadable"),
        ("frob://host/x", Invalid, "connector_kind"),
        ("oracle+oracledb://host/x", Invalid, "connector_kind"),
        ("mysql+mysqldb://host/x", Invalid, "connector_kind"),
    ],
)
def test_a_url_without_a_driver(url: str, kind: type[HeedfulError], code: str) -> None:
    with pytest.raises(kind) as raised:
        open_database(url)
    assert raised.value.code == code


@pytest.mark.parametrize(
    ("module", "url"), [("psycopg", "postgresql://h/x"), ("duckdb", "duckdb:///{file}"), ("pymysql", "mysql://h/x")]
)
@pytest.mark.slow
def test_a_missing_driver_says_what_to_install(module: str, url: str, tmp_path: Path) -> None:
    (tmp_path / "x.db").touch()
    script = (
        f"import sys; sys.modules[{module!r}] = None\n"
        "from heedful.sql.databases.opening import open_database\n"
        f"try: open_database({url.format(file=tmp_path / 'x.db')!r}).session().__enter__()\n"
        "except Exception as error: print(error.code, error.remedy)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    extra = {"psycopg": "postgresql", "pymysql": "mysql"}.get(module, module)
    clone = f'pip install ".[{extra}]"'
    assert (
        done.stdout == f'extra_missing Run: pip install "heedful[{extra}]", or in a clone of the repository: {clone}\n'
    )


def test_a_damaged_file_says_so(sqlite_place: Place) -> None:
    file = Path(sqlite_place.url.split("///")[1])
    data = bytearray(file.read_bytes())
    data[100:4096] = b"\xa5" * 3996
    file.write_bytes(data)
    for call in (lambda: run(sqlite_place.database, "SELECT * FROM city"), sqlite_place.database.read_schema):
        with pytest.raises(Unavailable) as raised:
            call()
        assert raised.value.code == "database_unreachable"
