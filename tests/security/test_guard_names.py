"""Every denied name in every syntax: nothing that the guard accepts may call a denied function on a real database."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from witnesses import DuckDBWitness, PostgreSQLWitness, SQLiteWitness

from heedful.errors import Forbidden, HeedfulError
from heedful.sql.guard import check_statement, is_denied, is_denied_table

# {f} the function, {F} in capitals, {U} with escapes, {args} its arguments, {s} rows with these as columns, {x} the
# first argument and {t} its type, {p} a table of one column of that type.
CALLS = """
SELECT {f}({args}) FROM {s}
SELECT {F}({args}) FROM {s}
SELECT "{f}"({args}) FROM {s}
SELECT {U}({args}) FROM {s}
SELECT pg_catalog.{f}({args}) FROM {s}
SELECT "pg_catalog"."{f}"({args}) FROM {s}
SELECT pg_catalog . {f} /* */ ({args}) FROM {s}
SELECT {f} --
 ({args}) FROM {s}
SELECT {f}({args})::text FROM {s}
SELECT CAST({f}({args}) AS text) AS a FROM {s}
SELECT 1 FROM {s} WHERE {f}({args}) IS NOT NULL
SELECT 1 FROM {s} WHERE ({f}({args}) IS NULL) = ALL (ARRAY[true])
SELECT 1 FROM {s} ORDER BY {f}({args})::text
SELECT count(*) FROM {s} GROUP BY {f}({args})::text
SELECT count(*) FILTER (WHERE {f}({args}) IS NULL) FROM {s}
SELECT row_number() OVER (PARTITION BY {f}({args})::text) FROM {s}
SELECT DISTINCT ON ({f}({args})::text) 1 FROM {s}
SELECT CASE WHEN true THEN {f}({args})::text ELSE 'x' END FROM {s}
SELECT coalesce({f}({args})::text, 'x') FROM {s}
SELECT ARRAY[{f}({args})::text] FROM {s}
SELECT ROW({f}({args})) FROM {s}
SELECT ({f}({args}))::text || 'x' FROM {s}
SELECT {f}({args})::text OPERATOR(pg_catalog.||) 'x' FROM {s}
SELECT (SELECT {f}({args})::text LIMIT 1) FROM {s}
SELECT 1 FROM {s} WHERE EXISTS (SELECT {f}({args}) OFFSET 1)
SELECT 1 FROM {s} WHERE 'x' IN (SELECT {f}({args})::text)
SELECT ARRAY(SELECT {f}({args})::text) FROM {s}
WITH a AS (SELECT {f}({args})::text AS b FROM {s}) SELECT * FROM a
WITH RECURSIVE a(b) AS (SELECT {f}({args})::text FROM {s} UNION SELECT b FROM a) SELECT * FROM a
SELECT * FROM {s} CROSS JOIN LATERAL {f}({args}) AS y
SELECT * FROM {s}, {f}({args}) AS y
SELECT * FROM {s}, LATERAL {f}({args}) WITH ORDINALITY AS y
SELECT * FROM {s}, ROWS FROM ({f}({args})) AS y
SELECT * FROM {s} LEFT JOIN LATERAL {f}({args}) AS y ON true
SELECT * FROM {s}, LATERAL (VALUES ({f}({args})::text)) AS y
SELECT * FROM {s} JOIN {s}2 ON ({f}({args}) IS NULL)
SELECT 1 UNION ALL SELECT 1 FROM {s} WHERE {f}({args}) IS NULL
SELECT json_build_object('a', {f}({args})::text) FROM {s}
SELECT xmlelement(name a, {f}({args})::text) FROM {s}
SELECT ts.a FROM pg_catalog.pg_class AS ts(a) TABLESAMPLE SYSTEM ((SELECT 1 FROM {s} WHERE {f}({args}) IS NULL))
SELECT 1 LIMIT (SELECT count({f}({args})::text) FROM {s})
SELECT lower({f}({args})::text) COLLATE "C" FROM {s}
"""

ATTRIBUTES = """
SELECT (s.a1).{f} FROM {s}
SELECT (a1).{f} FROM {s}
SELECT (a1).{F} FROM {s}
SELECT (a1)."{f}" FROM {s}
SELECT (a1).{U} FROM {s}
SELECT (a1) . /* */ {f} FROM {s}
SELECT (a1).
{f} FROM {s}
SELECT p.{f} FROM {p}
SELECT "p"."{f}" FROM {p}
SELECT p . {f} FROM {p}
SELECT (p).{f} FROM {p}
SELECT ((p)).{f} FROM {p}
SELECT p.{f} AS x FROM {p}
SELECT p.{f} x FROM {p}
SELECT p.{f}::text FROM {p}
SELECT CAST(p.{f} AS text) FROM {p}
SELECT lower(p.{f}::text) FROM {p}
SELECT count(p.{f}::text) FROM {p}
SELECT (p.{f}::text).length FROM {p}
SELECT (p.{f}).pg_typeof FROM {p}
SELECT (p).{f}.pg_typeof FROM {p}
SELECT (s).a1.{f} FROM {s}
SELECT ((s).a1).{f} FROM {s}
SELECT (a1::{t}).{f} FROM {s}
SELECT (CAST(a1 AS {t})).{f} FROM {s}
SELECT (ARRAY[a1])[1].{f} FROM {s}
SELECT ((ARRAY[a1])[1]).{f} FROM {s}
SELECT (SELECT a1).{f} FROM {s}
SELECT (CASE WHEN true THEN a1 END).{f} FROM {s}
SELECT (coalesce(a1, a1)).{f} FROM {s}
SELECT 1 FROM {p} WHERE p.{f} IS NOT NULL
SELECT 1 FROM {p} ORDER BY p.{f}::text
SELECT 1 FROM {p} GROUP BY p.{f}::text
SELECT 1 FROM {p} JOIN {s} ON p.{f} IS NULL
SELECT 1 FROM {p}, LATERAL (SELECT p.{f}) AS y
SELECT 1 FROM {p}, LATERAL (VALUES ((p).{f})) AS y
SELECT count(*) OVER (PARTITION BY p.{f}::text) FROM {p}
SELECT ARRAY[p.{f}::text] FROM {p}
SELECT ROW(p.{f}) FROM {p}
SELECT p.{f}::text OPERATOR(pg_catalog.||) 'x' FROM {p}
SELECT - p.{f}::text::int FROM {p}
SELECT (q.b).{f} FROM (SELECT a1 AS b FROM {s} OFFSET 0) AS q
WITH q AS MATERIALIZED (SELECT p FROM {p}) SELECT (q.p).{f} FROM q
SELECT a.b.{f} FROM {p}
SELECT p.{f}.* FROM {p}
SELECT (p).{f}.* FROM {p}
"""

HARMLESS = """
SELECT '{f}' AS a
SELECT 1 AS {f}
SELECT 1 AS "{f}"
SELECT {f} FROM (SELECT 1) AS q({f})
SELECT {f} FROM (SELECT 1 AS {f}) AS q
SELECT 1 FROM (SELECT 1 AS {f}) AS q WHERE {f} = 1 ORDER BY {f}
SELECT {f}.a FROM (SELECT 1 AS a) AS {f}
SELECT * FROM (SELECT 1 AS {f}) AS q JOIN (SELECT 1 AS {f}) AS r USING ({f})
"""


def forms(text: str) -> list[str]:
    """One for each line; a line that goes on begins with a blank or a brace."""
    result: list[str] = []
    for line in text.strip("\n").split("\n"):
        if line.startswith((" ", "{f}")):
            result[-1] += "\n" + line
        else:
            result.append(line)
    return result


def accepted(sql: str, dialect: str) -> bool:
    try:
        check_statement(sql, dialect)
    except HeedfulError:
        return False
    return True


def written(form: str, name: str, types: list[str]) -> str:
    columns = ", ".join(f"NULL::{each} AS a{place}" for place, each in enumerate(types or ["text"], 1))
    return form.format(
        f=name,
        F=name.upper(),
        U=f'U&"{name[:2]}\\{ord(name[2]):04x}{name[3:]}"',
        args=", ".join(f"s.a{place}" for place in range(1, len(types) + 1)),
        s=f"(SELECT {columns} OFFSET 0) AS s",
        t=(types or ["text"])[0],
        p=f"unnest(ARRAY[NULL::{(types or ['text'])[0]}]) AS p",
    )


@pytest.fixture(scope="module")
def witness(postgresql_server: str) -> Iterator[PostgreSQLWitness]:
    url = postgresql_server.replace("DATABASE", "postgres")
    found = PostgreSQLWitness(url)
    # dblink is an extension that this server lacks; what matters to the guard is the name. Rolled back at the end.
    found.connection.execute("CREATE FUNCTION dblink(text) RETURNS text LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'")
    found.connection.execute("CREATE FUNCTION http(text) RETURNS text LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'")
    yield found
    found.connection.rollback()
    found.connection.close()


def denied_functions(connection: psycopg.Connection[Any]) -> dict[str, list[str]]:
    """All functions of the server that are denied, with the types of their arguments; the shortest form of each."""
    rows = connection.execute(
        "SELECT proname, ARRAY(SELECT format_type(unnest, NULL) FROM unnest(proargtypes)) FROM pg_proc"
        " WHERE prokind = 'f' AND NOT ('internal'::regtype = ANY (proargtypes)) ORDER BY pronargs DESC"
    ).fetchall()
    # One argument is what attribute notation gives; else the fewest.
    ranked = sorted(rows, key=lambda row: (len(row[1]) != 1, len(row[1])), reverse=True)
    return {name: types for name, types in ranked if is_denied(name, "postgres")}


ATTACKED = [
    "pg_read_file", "pg_sleep", "pg_terminate_backend", "pg_advisory_lock", "pg_try_advisory_xact_lock", "pg_ls_dir",
    "lo_unlink", "nextval", "dblink", "http", "query_to_xml", "set_config", "pg_notify", "pg_stat_file",
]  # fmt: skip


@pytest.mark.parametrize("name", ATTACKED)
def test_every_syntax_that_calls_a_denied_function_is_refused(name: str, witness: PostgreSQLWitness) -> None:
    types = denied_functions(witness.connection)[name]
    called = 0
    for form in forms(CALLS) + (forms(ATTRIBUTES) if len(types) == 1 else []):
        sql = written(form, name, types)
        calls = witness.calls(sql) or set()
        called += name in calls
        assert not (calls and accepted(sql, "postgresql")) or name not in calls, sql
    # The forms are no straw men: PostgreSQL takes most of them for calls.
    assert called > (60 if len(types) == 1 else 25)


@pytest.mark.nightly
def test_no_denied_function_of_the_server_is_called_by_what_is_accepted(witness: PostgreSQLWitness) -> None:
    functions = denied_functions(witness.connection)
    assert len(functions) > 350
    calls_only = [*forms(CALLS)[::20], *forms(HARMLESS)[3::3]]
    some = [*calls_only, *forms(ATTRIBUTES)[::16]]
    passed = 0
    for name, types in functions.items():
        for form in some if len(types) == 1 else calls_only:
            sql = written(form, name, types)
            if accepted(sql, "postgresql"):
                passed += 1
                calls = witness.calls(sql)
                assert not [each for each in calls or () if is_denied(each, "postgres")], sql
    assert passed >= 2 * len(functions)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ('/etc/passwd'::text).pg_read_file",
        "SELECT p.pg_sleep FROM unnest(ARRAY[1::float8]) AS p",
        "SELECT (pid).pg_terminate_backend FROM pg_stat_activity",
        "SELECT (1::bigint).pg_advisory_lock",
        "SELECT (1::bigint).pg_try_advisory_xact_lock FROM t",
        "SELECT ('host=other'::text).dblink_connect",
        "SELECT ('SELECT 1'::text).dblink_exec.length",
        "SELECT (1::float8)::pg_sleep",
        "SELECT 'pg_sleep'::regproc",
        "SELECT 'pg_catalog.pg_sleep(float8)'::regprocedure",
        "SELECT regproc 'pg_sleep'",
        "SELECT 1 OPERATOR(aws_s3.!!) 2",
        "SELECT http('x')",
        "SELECT * FROM http(('GET', 'x', NULL, NULL, NULL)::http_request)",
        "SELECT (r).http FROM requests AS r",
        "SELECT aws_lambda.invoke('f', '{}'::json)",
        "SELECT * FROM aws_s3.query_export_to_s3('SELECT 1', 'b', 'f', 'r')",
        "SELECT aws_commons.create_s3_uri('a', 'b', 'c')",
        'SELECT "aws_lambda"."anything"(1)',
        "SELECT * FROM cron.schedule('* * * * *', 'DELETE FROM t')",
        "SELECT net.http_get('http://x')",
        "SELECT vault.create_secret('x')",
        "SELECT graphql.resolve('mutation { x }')",
    ],
)
def test_names_that_passed_once_are_refused(sql: str) -> None:
    with pytest.raises(Forbidden) as raised:
        check_statement(sql, "postgresql")
    assert raised.value.code == "sql_function"


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("postgresql", "SELECT c.relname, pg_class.oid FROM pg_catalog.pg_class c, pg_class"),
        ("postgresql", "SELECT pg_catalog.pg_class.relname FROM pg_catalog.pg_class"),
        ("postgresql", "SELECT * FROM pg_catalog.pg_stat_activity AS a JOIN pg_locks ON a.pid = pg_locks.pid"),
        ("postgresql", "SELECT pg_get_viewdef(c.oid), c.oid::regclass FROM pg_class AS c"),
        ("postgresql", "SELECT 'now'::regproc, t.url, t.query, t.file, t.lo_price, t.system, net.total FROM t, net"),
        ("postgresql", "SELECT pg_rating FROM film WHERE pg_rating > 3 ORDER BY film.title"),
        ("postgresql", "SELECT a OPERATOR(pg_catalog.+) 1 FROM t"),
        ("postgresql", "WITH schedule(a) AS (SELECT 1) SELECT schedule.a FROM schedule"),
        ("postgresql", "SELECT cron.jobname FROM cron.job AS cron"),
        ("sqlite", "SELECT t.system, t.exec, edit, \"eval\", t.pg_sleep FROM t WHERE shell = 'x'"),
        ("sqlite", "SELECT system.id FROM system, exec"),
        ("duckdb", "WITH query(a, b) AS (SELECT 1, 2) SELECT query.a FROM query"),
        ("duckdb", 'SELECT t.query, "glob", t.checkpoint, t.read_count, http_status, t.last_scan FROM t'),
        ("duckdb", "SELECT a FROM t WHERE name GLOB ('x*') AND b GLOB 'y'"),
        ("mysql", "SELECT t.url, t.file, sleep, t.remote FROM t"),
    ],
)
def test_ordinary_names_stay_usable(dialect: str, sql: str) -> None:
    assert accepted(sql, dialect)


DUCKDB_FORMS = """
SELECT {f}('x')
SELECT {F}('x')
SELECT "{f}"('x')
SELECT main.{f}('x')
SELECT system.main.{f}('x')
SELECT 'x'.{f}()
SELECT 'x' . {f} ( )
SELECT ('x').{f}()
SELECT t.a.{f}() FROM t
SELECT a.upper().{f}() FROM t
SELECT {f}/* */('x')
SELECT * FROM {f}('x')
SELECT * FROM {f}('x') AS y(z)
FROM {f}('x')
FROM {f}('x') SELECT 1
SELECT * FROM t, LATERAL {f}(t.a)
SELECT * FROM t JOIN {f}('x') ON true
SELECT * FROM t POSITIONAL JOIN {f}('x')
SELECT list_transform([1], y -> {f}('x'))
SELECT list_transform([1], lambda y: {f}('x'))
SELECT [{f}(y) FOR y IN ['x']]
SELECT COLUMNS('a').{f}() FROM t
SELECT * REPLACE ({f}('x') AS a) FROM t
SELECT {{'a': {f}('x')}}
SELECT MAP {{'a': {f}('x')}}
SELECT * FROM t PIVOT (max({f}(a)) FOR b IN ('x'))
SELECT * FROM t QUALIFY row_number() OVER (ORDER BY {f}('x')) = 1
SELECT * FROM (VALUES ({f}('x')))
SELECT a FROM t ORDER BY ALL LIMIT (SELECT {f}('x'))
SELECT * FROM (FROM {f}('x'))
SELECT {f} FROM (SELECT 1 AS {f})
SELECT t.{f} FROM (SELECT 1 AS {f}) AS t
SELECT 1 AS {f}
SELECT '{f}'
WITH {f} AS (SELECT 1 AS a) SELECT {f}.a FROM {f}
"""

SQLITE_FORMS = """
SELECT {f}('x')
SELECT {F}('x')
SELECT "{f}"('x')
SELECT [{f}]('x')
SELECT `{f}`('x')
SELECT {f} ('x')
SELECT {f}/* */('x')
SELECT a FROM t WHERE {f}(a)
SELECT a FROM t ORDER BY {f}(a)
SELECT a FROM t GROUP BY {f}(a) HAVING {f}(a)
SELECT {f}(a) OVER () FROM t
SELECT count(*) FILTER (WHERE {f}(a)) FROM t
SELECT * FROM {f}('x')
SELECT * FROM {f}
SELECT * FROM "{f}" WHERE a = 1
SELECT * FROM main.{f}
SELECT * FROM t JOIN {f}
SELECT * FROM t, {f}(t.a)
SELECT 1 WHERE 'x' IN {f}
SELECT 1 WHERE 'x' IN {f}('x')
SELECT CASE {f}('x') WHEN 1 THEN 2 END
SELECT EXISTS (SELECT * FROM {f})
WITH a AS (SELECT {f}('x')) SELECT * FROM a
VALUES ({f}('x'))
SELECT t.{f} FROM (SELECT 1 AS {f}) AS t
SELECT {f} FROM (SELECT 1 AS {f})
SELECT 1 AS {f}
SELECT '{f}'
"""


@pytest.mark.slow
def test_every_denied_name_in_every_syntax_of_duckdb() -> None:
    witness = DuckDBWitness()
    known = witness.connection.execute("SELECT DISTINCT function_name FROM duckdb_functions()").fetchall()
    names = [name for (name,) in known if is_denied(name, "duckdb")]
    assert len(names) > 60
    called = passed = 0
    every = DUCKDB_FORMS.strip().split("\n")
    for place, name in enumerate(names):
        for form in every if place % 8 == 0 else every[5::10]:
            sql = form.format(f=name, F=name.upper())
            calls = witness.calls(sql) or set()
            called += name in calls
            if accepted(sql, "duckdb"):
                passed += 1
                assert not [each for each in calls if is_denied(each, "duckdb")], sql
    assert called > 4 * len(names)
    assert passed >= 30


def test_every_denied_name_in_every_syntax_of_sqlite() -> None:
    witness = SQLiteWitness("CREATE TABLE t (a, b)")
    # What is an extension elsewhere is there under its name.
    built_in = ["load_extension", "fts5", "fts3_tokenizer"]
    names = [*built_in, "readfile", "writefile", "edit", "eval", "shell", "system", "exec"]
    for name in names:
        if name not in built_in:
            witness.connection.create_function(name, -1, lambda *_: None)
    called = passed = 0
    for name in [*names, "pragma_table_info", "pragma_database_list", "sqlite_stmt"]:
        for form in SQLITE_FORMS.strip().split("\n"):
            sql = form.format(f=name, F=name.upper())
            calls = witness.calls(sql) or set()
            called += name in calls
            if accepted(sql, "sqlite"):
                passed += 1
                assert not [each for each in calls if is_denied(each, "sqlite") and each in names], sql
                assert not [each for each in calls if is_denied_table(each, "sqlite")], sql
    assert called > 10 * len(names)
    assert passed >= 3 * len(names)


# Looked at one by one: each only computes, looks at the server, or works in triggers and handlers alone.
VOLATILE_POSTGRESQL = """
RI_FKey_cascade_del RI_FKey_cascade_upd RI_FKey_check_ins RI_FKey_check_upd RI_FKey_noaction_del RI_FKey_noaction_upd
RI_FKey_restrict_del RI_FKey_restrict_upd RI_FKey_setdefault_del RI_FKey_setdefault_upd RI_FKey_setnull_del
RI_FKey_setnull_upd amvalidate array_sample array_shuffle bernoulli brinhandler bthandler clock_timestamp current_query
currtid2 currval dsnowball_init dsnowball_lexize gen_random_uuid ginhandler gisthandler hashhandler heap_tableam_handler
lastval pg_database_size pg_get_aios pg_get_backend_memory_contexts pg_get_loaded_modules pg_get_multixact_members
pg_get_sequence_data pg_get_shmem_allocations pg_get_shmem_allocations_numa pg_get_wait_events
pg_get_wal_replay_pause_state pg_get_wal_resource_managers pg_get_wal_summarizer_state pg_indexes_size
pg_is_in_recovery pg_relation_size pg_table_size pg_tablespace_size pg_total_relation_size random random_normal setseed
spghandler suppress_redundant_updates_trigger system timeofday tsvector_update_trigger tsvector_update_trigger_column
txid_status unique_key_recheck uuidv4 uuidv7
"""

VOLATILE_DUCKDB = """
current_connection_id current_database current_date current_query current_query_id current_schema current_schemas
current_transaction_id currval error gen_random_uuid get_current_time get_current_timestamp getvariable
in_search_path now random setseed stats today transaction_timestamp txid_current uuid uuidv4 uuidv7 vector_type
"""

TABLES_DUCKDB = """
duckdb_columns duckdb_constraints duckdb_functions duckdb_indexes duckdb_keywords duckdb_schemas duckdb_sequences
duckdb_tables duckdb_types duckdb_views generate_series icu_calendar_names json_each json_tree pg_timezone_names range
repeat repeat_row summary test_all_types test_vector_types unnest
"""


def test_a_new_function_of_postgresql_that_may_have_effects_is_looked_at(witness: PostgreSQLWitness) -> None:
    rows = witness.connection.execute(
        "SELECT proname FROM pg_proc WHERE provolatile = 'v' AND prokind = 'f' AND oid < 16384"
    ).fetchall()
    allowed = {name for (name,) in rows if not is_denied(name, "postgres")}
    assert allowed <= set(VOLATILE_POSTGRESQL.split())


def test_a_new_function_of_duckdb_that_may_have_effects_is_looked_at() -> None:
    rows = (
        DuckDBWitness()
        .connection.execute(
            "SELECT function_name, function_type, coalesce(stability, 'CONSISTENT') FROM duckdb_functions()"
        )
        .fetchall()
    )
    allowed = [row for row in rows if not is_denied(row[0], "duckdb")]
    assert {name for name, kind, _ in allowed if kind == "table"} <= set(TABLES_DUCKDB.split())
    assert {name for name, _, stability in allowed if stability != "CONSISTENT"} <= set(VOLATILE_DUCKDB.split())
