"""The first safeguard: which SQL passes as one statement that only reads, and what is said about the rest."""

from __future__ import annotations

import subprocess
import sys
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import Forbidden, HeedfulError, Invalid
from heedful.sql.guard import CheckedStatement, check_statement, is_denied

ANY = ("sqlite", "postgresql", "duckdb")

WRITES = [
    "INSERT INTO t VALUES (1)",
    "insert into t select * from t",
    "UPDATE t SET a = 1",
    "DELETE FROM t",
    "DROP TABLE t",
    "CREATE TABLE u AS SELECT 1",
    "CREATE VIEW v AS SELECT 1",
    "ALTER TABLE t ADD COLUMN b int",
    "WITH gone AS (DELETE FROM t RETURNING *) SELECT * FROM gone",
    "WITH a AS (SELECT 1), b AS (UPDATE t SET a = 1 RETURNING a) SELECT * FROM a, b",
    "WITH a AS (INSERT INTO t VALUES (1) RETURNING a) SELECT * FROM a",
    "SELECT * FROM (WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x) y",
    "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a",
    "WITH a AS (SELECT 1) DELETE FROM t",
]

SEVERAL = [
    "SELECT 1; SELECT 2",
    "COMMIT; DROP TABLE t",
    "SELECT 1; COMMIT; DROP TABLE t",
    "SELECT 1;DROP TABLE t;--",
    "SELECT 1 /* harmless */; /* hidden */ DROP TABLE t",
    "SELECT 1 -- harmless\n; DROP TABLE t",
    ";SELECT 1",
]

COMMANDS = [
    ("sqlite", "PRAGMA table_info(t)"),
    ("sqlite", "pragma writable_schema = 1"),
    ("sqlite", "ATTACH 'other.db' AS other"),
    ("sqlite", "DETACH other"),
    ("sqlite", "VACUUM"),
    ("sqlite", "VACUUM INTO '/tmp/copy.db'"),
    ("sqlite", "BEGIN"),
    ("sqlite", "ROLLBACK"),
    ("sqlite", "REINDEX"),
    ("sqlite", "ANALYZE"),
    ("sqlite", "REPLACE INTO t VALUES (1)"),
    ("sqlite", "EXPLAIN SELECT 1"),
    ("sqlite", "EXPLAIN QUERY PLAN SELECT 1"),
    ("sqlite", "WITH a AS (PRAGMA user_version) SELECT * FROM a"),
    ("postgresql", "COPY t TO '/tmp/t'"),
    ("postgresql", "COPY (SELECT 1) TO PROGRAM 'sh'"),
    ("postgresql", "SET ROLE postgres"),
    ("postgresql", "SET default_transaction_read_only = off"),
    ("postgresql", "RESET ALL"),
    ("postgresql", "CALL f()"),
    ("postgresql", "DO $$ BEGIN DELETE FROM t; END $$"),
    ("postgresql", "EXPLAIN ANALYZE DELETE FROM t"),
    ("postgresql", "EXPLAIN (ANALYZE) SELECT 1"),
    ("postgresql", "VACUUM FULL"),
    ("postgresql", "LISTEN x"),
    ("postgresql", "NOTIFY x"),
    ("postgresql", "LOCK TABLE t"),
    ("postgresql", "PREPARE p AS DELETE FROM t"),
    ("postgresql", "EXECUTE p"),
    ("postgresql", "DECLARE c CURSOR FOR SELECT 1"),
    ("postgresql", "LOAD 'library'"),
    ("postgresql", "GRANT ALL ON t TO public"),
    ("postgresql", "CHECKPOINT"),
    ("postgresql", "REFRESH MATERIALIZED VIEW v"),
    ("postgresql", "SHOW ALL"),
    ("postgresql", "START TRANSACTION READ WRITE"),
    ("duckdb", "COPY t TO 'x.csv'"),
    ("duckdb", "PRAGMA database_list"),
    ("duckdb", "CALL pragma_version()"),
    ("duckdb", "INSTALL httpfs"),
    ("duckdb", "LOAD httpfs"),
    ("duckdb", "ATTACH 'x.db'"),
    ("duckdb", "USE x"),
    ("duckdb", "SET enable_external_access = true"),
    ("duckdb", "CHECKPOINT"),
    ("duckdb", "SUMMARIZE t"),
    ("duckdb", "SELECT * FROM (DESCRIBE t)"),
    ("duckdb", "SELECT 1 UNION SUMMARIZE t"),
    ("duckdb", "SELECT EXISTS (SUMMARIZE t)"),
    ("sqlite", "SELECT (DESCRIBE t)"),
    ("duckdb", "PIVOT t ON a USING sum(b)"),
]

FUNCTIONS = {
    "sqlite": "load_extension readfile writefile edit fsdir zipfile fts3_tokenizer fts5 pragma_table_info eval",
    "postgresql": (
        "pg_terminate_backend pg_cancel_backend pg_sleep pg_sleep_for pg_read_file pg_read_binary_file pg_ls_dir"
        " pg_stat_file pg_reload_conf pg_rotate_logfile pg_switch_wal pg_promote pg_notify pg_advisory_lock"
        " pg_advisory_xact_lock pg_try_advisory_lock pg_logical_emit_message pg_create_restore_point"
        " pg_drop_replication_slot pg_stat_reset pg_export_snapshot pg_file_write pg_current_xact_id pg_prewarm"
        " nextval setval set_config txid_current lo_import lo_export lo_create lo_unlink lo_put lowrite dblink"
        " dblink_exec dblink_connect query_to_xml query_to_xml_and_xmlschema cursor_to_xml ts_stat ts_rewrite crosstab"
        " connectby"
    ),
    "duckdb": (
        "read_csv read_csv_auto read_parquet parquet_scan read_json read_json_auto read_ndjson read_text read_blob"
        " parquet_metadata parquet_schema sniff_csv glob query query_table json_execute_serialized_sql getenv st_read"
        " sqlite_scan postgres_scan postgres_query mysql_query sqlite_query duckdb_secrets which_secret nextval"
        " write_log pragma_table_info duckdb_settings duckdb_databases duckdb_extensions current_setting"
    ),
    "mysql": "sleep benchmark load_file get_lock",
    "mssql": "xp_cmdshell openrowset openquery",
}

READS = [
    *[
        (dialect, sql)
        for dialect in ANY
        for sql in [
            "SELECT 1",
            "select a, b from t where a > 1 order by b limit 5 offset 2",
            "SELECT 1;",
            "SELECT 1; -- the end",
            "/* what for */ SELECT 1 -- why",
            "(SELECT 1)",
            "VALUES (1, 'a'), (2, 'b')",
            "WITH a AS (SELECT 1 AS x), b AS (SELECT x FROM a) SELECT * FROM b",
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT i FROM n",
            "SELECT a, row_number() OVER (PARTITION BY b ORDER BY c DESC) FROM t",
            "SELECT sum(a) FILTER (WHERE b > 1) FROM t GROUP BY c HAVING count(*) > 2",
            "SELECT a FROM t UNION SELECT a FROM u EXCEPT SELECT a FROM v",
            "SELECT * FROM t WHERE a IN (SELECT a FROM u) AND EXISTS (SELECT 1 FROM v WHERE v.a = t.a)",
            "SELECT * FROM a JOIN b ON a.x = b.x LEFT JOIN c USING (y) CROSS JOIN d",
            "SELECT CASE WHEN a THEN 1 ELSE 2 END, CAST(b AS integer), coalesce(c, 'none') FROM t",
            "SELECT 'DROP TABLE t; --', 'it''s', \"update\" FROM \"delete\"",
            "SELECT replace(a, 'x', 'y'), my_own_function(a) FROM t",
            "SELECT * FROM s.t AS \"insert\" WHERE a BETWEEN 1 AND 2 AND b LIKE '%x\\_%'",
            "SELECT a FROM t WHERE b = :p1 AND c < :p2",
        ]
    ],
    ("sqlite", "SELECT json_extract(a, '$.b'), a ->> '$.c' FROM t, json_each(t.d)"),
    ("sqlite", "SELECT [a], `b`, x'00', date('now') FROM t WHERE c GLOB 'x*' AND rowid = 1"),
    ("sqlite", "SELECT * FROM t INDEXED BY i WHERE t MATCH 'word'"),
    ("postgresql", "SELECT * FROM t, LATERAL (SELECT * FROM u WHERE u.a = t.a LIMIT 1) x"),
    ("postgresql", "SELECT a::int, b ->> 'x', c #>> '{y}', d @> '{}', e ? 'k', f[1:2] FROM t"),
    ("postgresql", "SELECT DISTINCT ON (a) a, b FROM t ORDER BY a, b DESC NULLS LAST"),
    ("postgresql", "SELECT E'a\\'; DROP TABLE t; --', $q$ ; DROP TABLE t $q$, U&'\\0041'"),
    ("postgresql", "SELECT * FROM generate_series(1, 10) AS g(i), unnest(ARRAY[1, 2]) WITH ORDINALITY"),
    ("postgresql", "SELECT a FROM t GROUP BY GROUPING SETS ((a), ())"),
    ("postgresql", "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a), pg_typeof(1) FROM t"),
    ("postgresql", "SELECT now() - interval '1 day', a AT TIME ZONE 'UTC' FROM t WHERE b ~* 'x' AND c = ANY (d)"),
    ("postgresql", "TABLE t"),
    ("postgresql", "SELECT * FROM t TABLESAMPLE SYSTEM (1)"),
    ("duckdb", "FROM t SELECT a"),
    ("duckdb", "SELECT * EXCLUDE (a), list_transform([1], x -> x + 1), {'a': 1} FROM t QUALIFY rank() OVER () = 1"),
    ("duckdb", "SELECT * FROM t PIVOT (sum(a) FOR b IN ('x', 'y'))"),
    ("duckdb", "SELECT a FROM t ASOF JOIN u ON t.a >= u.a GROUP BY ALL"),
    ("mysql", "SELECT `a` FROM `t` LIMIT 1, 2"),
    ("unheard_of", "SELECT a FROM t"),
]  # fmt: skip


def refusal(sql: str, dialect: str) -> HeedfulError:
    with pytest.raises(HeedfulError) as raised:
        check_statement(sql, dialect)
    assert raised.value.remedy
    return raised.value


@pytest.mark.parametrize(("dialect", "sql"), READS)
def test_reading_passes(dialect: str, sql: str) -> None:
    assert isinstance(check_statement(sql, dialect), CheckedStatement)


@pytest.mark.parametrize("dialect", ANY)
@pytest.mark.parametrize("sql", WRITES)
def test_what_writes_is_named(dialect: str, sql: str) -> None:
    error = refusal(sql, dialect)
    assert (type(error), error.code) == (Forbidden, "sql_writes")
    assert error.value in sql.upper()


@pytest.mark.parametrize("dialect", ANY)
@pytest.mark.parametrize("sql", SEVERAL)
def test_two_statements_are_one_too_many(dialect: str, sql: str) -> None:
    error = refusal(sql, dialect)
    assert (type(error), error.code) == (Forbidden, "sql_several")


@pytest.mark.parametrize(("dialect", "sql"), COMMANDS)
def test_other_statements_are_named(dialect: str, sql: str) -> None:
    error = refusal(sql, dialect)
    assert (type(error), error.code) == (Forbidden, "sql_command")
    assert error.value in sql.upper()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * INTO u FROM t",
        "SELECT 1 INTO TEMP u",
        "SELECT * INTO UNLOGGED u FROM t",
        "WITH a AS (SELECT 1) SELECT * INTO u FROM a",
    ],
)
def test_select_into_makes_a_table(sql: str) -> None:
    assert refusal(sql, "postgresql").code == "sql_into"


@pytest.mark.parametrize("strength", ["UPDATE", "NO KEY UPDATE", "SHARE", "KEY SHARE", "UPDATE NOWAIT", "UPDATE OF t"])
@pytest.mark.parametrize("form", ["SELECT * FROM t FOR {}", "SELECT * FROM (SELECT * FROM t FOR {}) x"])
def test_locks_are_refused(strength: str, form: str) -> None:
    assert refusal(form.format(strength), "postgresql").code == "sql_locks"


def spellings(dialect: str, name: str) -> list[str]:
    calls = [
        f"SELECT {name}('x')",
        f"SELECT {name.upper()}(1)",
        f"SELECT a FROM t WHERE b = {name}(1, 2)",
        f"SELECT a FROM t ORDER BY {name}('x')",
        f"SELECT * FROM {name}('x')",
        f"WITH a AS (SELECT {name}('x') AS b) SELECT * FROM a",
        f"SELECT coalesce(1, (SELECT {name}(a) FROM t))",
        f"SELECT CASE WHEN 1 = 1 THEN {name}('x') END",
        f"SELECT /* */ {name} /* */ ('x')",
        f"SELECT {name}\n--\n('x')",
    ]
    if dialect != "mysql":
        calls += [f"SELECT \"{name}\"('x')", f"SELECT some.{name}('x')"]
    if dialect == "sqlite":
        calls += [f"SELECT [{name}]('x')", f"SELECT `{name}`('x')", f"SELECT 1 /* /* */, {name}('x') /* */"]
    if dialect == "postgresql":
        calls += [f"SELECT pg_catalog.{name}('x')", f'SELECT "pg_catalog"."{name}"(\'x\')']
        calls += [f"SELECT * FROM t, LATERAL {name}(t.a)", f"SELECT * FROM ROWS FROM ({name}('x')) AS f"]
    if dialect == "duckdb":
        calls += [f"SELECT 'x'.{name}()", f"FROM {name}('x')"]
    return calls


@pytest.mark.parametrize(("dialect", "name"), [(d, name) for d, names in FUNCTIONS.items() for name in names.split()])
def test_functions_that_do_more_than_read_are_refused_in_any_place_and_spelling(dialect: str, name: str) -> None:
    for sql in spellings(dialect, name):
        error = refusal(sql, dialect)
        assert (error.code, error.value) == ("sql_function", name), sql


@pytest.mark.parametrize("name", ["pg_typeof", "pg_get_viewdef", "pg_total_relation_size", "pg_table_is_visible"])
def test_functions_that_only_look_at_the_server_are_allowed(name: str) -> None:
    assert check_statement(f"SELECT {name}(1)", "postgresql").sql == f"SELECT {name}(1)"


def test_a_dialect_without_a_list_of_its_own_has_them_all() -> None:
    assert all(is_denied(name, "") for names in FUNCTIONS.values() for name in names.split())


def test_a_name_with_escapes_can_not_stand_for_a_function() -> None:
    assert refusal('SELECT U&"pg\\005fsleep"(10)', "postgresql").code == "sql_unreadable"
    assert refusal("SELECT u&\"pg!005fsleep\" UESCAPE '!' (10)", "postgresql").code == "sql_unreadable"
    assert check_statement('SELECT a&"b" FROM t', "postgresql").sql == 'SELECT a&"b" FROM t'


@pytest.mark.parametrize("blank", ["\u200b", "\u2060", "\ufeff", "\u200d"])
def test_an_invisible_character_does_not_make_another_name(blank: str) -> None:
    for sql in (f"SELECT getenv{blank}('x')", f"SELECT {blank}getenv('x')", f"SELECT * FROM{blank} glob('x')"):
        assert refusal(sql, "duckdb").code in ("sql_unreadable", "sql_function")
    quoted = f"SELECT 'a{blank}b', \"c{blank}d\" FROM t"
    assert check_statement(quoted, "duckdb").sql == quoted


@pytest.mark.parametrize(
    "name",
    [
        "'/etc/passwd'",
        "'data.csv'",
        '"data.parquet"',
        "'https://host/x.json'",
        "'s3://b/*.csv.gz'",
        "'x*'",
        "'x.csv?'",
        "data.csv",
        '"data" . "json"',
        "a.b.csv",
    ],
)
def test_a_file_is_not_a_table(name: str) -> None:
    for sql in (f"SELECT * FROM {name}", f"FROM {name}", f"SELECT 1 WHERE 1 IN (SELECT a FROM {name})"):
        assert refusal(sql, "duckdb").code == "sql_file"


@pytest.mark.parametrize("sql", ["", "  \n", "-- nothing", "/* SELECT 1 */", ";", ";;"])
def test_nothing_is_not_a_statement(sql: str) -> None:
    error = refusal(sql, "sqlite")
    assert (type(error), error.code) == (Invalid, "sql_empty")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'no end",
        "SELECT 1 /* no end",
        'SELECT "no end',
        "SELEC 1",
        "SELECT FROM WHERE",
        "SELECT 1 FROM",
        "SELECT (1",
        "SELECT 1 +",
        "SELECT 1\0; DROP TABLE t",
        "SELECT '\ud800'",
        "hello there, how are you?",
    ],
)
def test_what_is_not_sql_is_said_to_be_so(sql: str) -> None:
    for dialect in ANY:
        assert refusal(sql, dialect).code in ("sql_unreadable", "sql_command")


def test_a_long_text_is_refused_before_it_is_read() -> None:
    began = process_time()
    error = refusal("SELECT " + "1," * 500_000 + "1", "sqlite")
    assert error.code == "sql_too_long"
    assert process_time() - began < 0.1


BOMBS = {
    "parentheses": "SELECT " + "(" * 40_000 + "1" + ")" * 40_000,
    "subqueries": "SELECT * FROM (" * 6_000 + "SELECT 1" + ")" * 6_000,
    "functions": "SELECT " + "f(" * 30_000 + ")" * 30_000,
    "arrays": "SELECT " + "[" * 45_000,
    "objects": "SELECT " + "{'a':" * 19_000,
    "negations": "SELECT " + "NOT " * 24_000 + "1",
    "signs": "SELECT " + "- " * 49_000 + "1",
    "cases": "SELECT " + "CASE WHEN 1 THEN " * 5_000,
    "withs": "WITH a AS (" * 9_000,
    "joins": "SELECT * FROM t" + " JOIN t" * 10_000,
    "few joins": "SELECT * FROM t" + " JOIN t" * 30,
    "joins with an ON now and then": "SELECT * FROM t" + (" JOIN t" * 8 + " ON 1 = 1") * 5,
    "joins in brackets": "SELECT * FROM t" + " JOIN (SELECT 1 FROM t JOIN t JOIN t)" * 30,
    "joins with names like conditions": "SELECT * FROM t" + " JOIN t AS on" * 30,
    "joins with names like other joins": "SELECT * FROM t" + " CROSS JOIN t AS cross" * 30,
    "joins of distinct rows": "SELECT * FROM t" + " JOIN (SELECT DISTINCT ON (a) a FROM t)" * 30,
}


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.nightly
def test_a_bomb_is_refused_at_once(bomb: str) -> None:
    """In a process of its own: the parser by itself overflows the stack on some of these, which ends the process."""
    script = (
        "import sys; from heedful.sql.guard import check_statement; from heedful.errors import HeedfulError\n"
        "sql = sys.stdin.read()\n"
        "for dialect in ('sqlite', 'postgresql', 'duckdb'):\n"
        "    try: check_statement(sql, dialect)\n"
        "    except HeedfulError as error: print(error.code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], input=BOMBS[bomb], capture_output=True, text=True, timeout=60, check=True
    )
    assert set(done.stdout.split()) <= {"sql_too_deep", "sql_too_long", "sql_unreadable"}
    assert len(done.stdout.split()) == 3


@pytest.mark.parametrize(
    "sql",
    ["SELECT 1" + " + 1" * 2_000, "SELECT 1" + " UNION SELECT 1" * 1_000, "SELECT a IN (1" + ", 1" * 2_000 + ")"],
)
def test_a_long_flat_statement_is_read(sql: str) -> None:
    assert check_statement(sql, "postgresql").sql == sql


def test_what_runs_has_no_comments() -> None:
    sql = "/* a */ SELECT a, -- b\n  'c /* kept */ -- too' /* d ; */ FROM t -- e"
    assert check_statement(sql, "sqlite").sql == "SELECT a,\n'c /* kept */ -- too' FROM t"


def test_a_comment_that_ends_sooner_for_the_database_hides_nothing() -> None:
    nested = "SELECT 1 /* /* */ AS a, 2 AS b -- */"
    assert check_statement(nested, "sqlite").sql == "SELECT 1 AS a, 2 AS b"
    assert refusal("SELECT 1 /* /* */, load_extension('x') --*/", "sqlite").code == "sql_function"
    assert check_statement("SELECT 1 /*! , sleep(9) */", "mysql").sql == "SELECT 1"


def test_parameters_are_found_where_they_are_parameters() -> None:
    query = check_statement("SELECT ':p1', \":p1\", a::text FROM t WHERE b = :p1 AND c = :p2 AND d < :p1", "postgresql")
    assert query.parameters == ("p1", "p2")
    assert query.written(lambda name: f"%({name})s") == (
        "SELECT ':p1', \":p1\", a::text FROM t WHERE b = %(p1)s AND c = %(p2)s AND d < %(p1)s"
    )


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("sqlite", "SELECT ?"),
        ("sqlite", "SELECT @a"),
        ("postgresql", "SELECT $1"),
        ("postgresql", "SELECT %(a)s"),
        ("postgresql", "SELECT a[1:p1], :p1 FROM t"),
        ("duckdb", "SELECT $p1"),
        ("duckdb", "SELECT {'a':p1}, :p1 FROM t"),
    ],
)
def test_other_parameters_are_refused(dialect: str, sql: str) -> None:
    assert refusal(sql, dialect).code == "sql_parameter"


@given(st.text(max_size=60), st.sampled_from(ANY))
def test_any_text_is_read_or_refused_in_our_words(text: str, dialect: str) -> None:
    try:
        code = f"sql_{check_statement(text, dialect).dialect}"
    except HeedfulError as error:
        code = error.code
    assert code.startswith("sql_")


TEXT = """SELECT FROM t a 1 'x' ( ) , ; WITH AS INSERT INTO DELETE UPDATE SET DROP TABLE WHERE -- /* */ UNION FOR
VALUES RETURNING pg_sleep load_extension COPY = * . " ' JOIN ON"""
WORDS = st.sampled_from(TEXT.split())


@given(st.lists(WORDS, max_size=25), st.sampled_from(ANY))
def test_what_passes_passes_again_and_unchanged(words: list[str], dialect: str) -> None:
    try:
        once = check_statement(" ".join(words), dialect)
    except HeedfulError:
        return
    assert check_statement(once.sql, dialect) == once
    assert once.sql.lstrip("( ").startswith(("SELECT", "VALUES", "WITH", "FROM", "TABLE"))
