"""MySQL and MariaDB: names that do more than read, modes that change how SQL is read, and rights that roles bring."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pymysql
import pytest
from guarded import run
from mysql import own_server
from sqlalchemy import make_url

from heedful import Heedful
from heedful.errors import Forbidden, HeedfulError, Invalid
from heedful.sql.databases.opening import open_database
from heedful.sql.guard import check_statement, is_denied

Execute = Callable[..., list[tuple[str, ...]]]

# Everything that MariaDB 10.11 lists and a query may not call.
REFUSED = """
benchmark binlog_gtid_pos decode_histogram des_decrypt des_encrypt encrypt get_lock is_free_lock is_used_lock
last_insert_id load_file master_gtid_wait master_pos_wait name_const old_password password release_all_locks
release_lock sleep uuid_short wsrep_last_seen_gtid wsrep_last_written_gtid wsrep_sync_wait_upto_gtid
concat_operator_oracle decode_oracle lpad_oracle ltrim_oracle replace_oracle rpad_oracle rtrim_oracle
substr_oracle trim_oracle
"""


@pytest.fixture(scope="module")
def mysql_server() -> Iterator[int]:
    """Not the server that others share: modes and grants to everybody concern all who use it."""
    with own_server() as port:
        yield port


@pytest.fixture
def execute(mysql_url: str) -> Iterator[Execute]:
    """Runs SQL as root; {user} and {database} are those of the connector."""
    address = make_url(mysql_url)
    with (
        pymysql.connect(
            user="root", host=address.host or "", port=address.port or 0, database=address.database, autocommit=True
        ) as own,
        own.cursor() as cursor,
    ):

        def run_all(*statements: str) -> list[tuple[str, ...]]:
            for each in statements:
                cursor.execute(each.format(user=f"'{address.username}'@'127.0.0.1'", database=address.database))
            return list(cursor.fetchall())

        run_all("CREATE TABLE city (id integer PRIMARY KEY, name varchar(50))", "INSERT INTO city VALUES (1, 'Rome')")
        yield run_all


@pytest.fixture
def role(mysql_url: str, execute: Execute) -> Iterator[str]:
    """A role; a second one is called the same with `_2`."""
    name = f"100% of:x {make_url(mysql_url).database}"[:50]
    execute(f"CREATE ROLE `{name}`", f"CREATE ROLE `{name}_2`")
    yield name
    execute(f"DROP ROLE `{name}`", f"DROP ROLE `{name}_2`")


@pytest.mark.parametrize(
    "sql",
    """
    SELECT master_pos_wait('log', 4)
    SELECT master_gtid_wait('0-1-9')
    SELECT source_pos_wait('log', 4)
    SELECT wait_for_executed_gtid_set('a:1')
    SELECT wait_until_sql_thread_after_gtids('a:1')
    SELECT wsrep_sync_wait_upto_gtid('0-1-9')
    SELECT release_all_locks()
    SELECT is_used_lock('a')
    SELECT sys_exec('true')
    SELECT sys_eval('true')
    SELECT `SLEEP` (9)
    SELECT sleep /* */ (9)
    SELECT mariadb_schema.sleep(9)
    SELECT oracle_schema . sleep(9)
    SELECT 'a'.sleep(9)
    SELECT (1).sleep(9)
    SELECT {fn sleep(9)}
    SELECT 1 /* /*! */, sleep(9) /* */
    SELECT name FROM city ORDER BY sleep (9)
    SELECT lastval(s)
    SELECT nextval(s)
    SELECT setval(s, 9)
    SELECT last_insert_id(9)
    SELECT uuid_short()
    SELECT name FROM city WHERE get_lock(name, 1)
    SELECT anything_unheard_of(1)
    """.strip().split("\n    "),
)
def test_functions_that_are_not_known_to_be_harmless_are_refused(sql: str) -> None:
    with pytest.raises(Forbidden) as raised:
        check_statement(sql, "mysql")
    assert raised.value.code == "sql_function"


@pytest.mark.parametrize(
    "sql",
    """
    SELECT NEXT VALUE FOR s
    SELECT PREVIOUS VALUE FOR s
    SELECT name FROM city PROCEDURE ANALYSE()
    SELECT name FROM city INTO OUTFILE '/tmp/x'
    SELECT name INTO DUMPFILE '/tmp/x' FROM city
    SELECT name FROM city INTO @x
    SELECT @x := name FROM city
    SELECT @@global.sql_mode
    SELECT name FROM city FOR UPDATE
    SELECT name FROM city LOCK IN SHARE MODE
    SELECT /*+ SET_VAR(sql_mode = 'ANSI_QUOTES') */ 1
    SET STATEMENT max_statement_time = 0 FOR SELECT 1
    SET ROLE writer
    HANDLER city READ FIRST
    DO sleep(9)
    CALL p()
    """.strip().split("\n    "),
)
def test_statements_that_do_more_than_read_are_refused(sql: str) -> None:
    with pytest.raises(HeedfulError) as raised:
        check_statement(sql, "mysql")
    assert raised.value.code.startswith("sql_")


@pytest.mark.parametrize(
    "sql",
    """
    SELECT COUNT(*), GROUP_CONCAT(DISTINCT name ORDER BY name SEPARATOR ', ') FROM city GROUP BY (id)
    SELECT CAST(id AS DECIMAL(10, 2)), CONVERT(name, CHAR(3)), CONVERT(name USING utf8mb4), CHAR(65) FROM city
    SELECT IF(id, 1, 2), LEFT(name, 2), RIGHT(name, 2), INSERT(name, 1, 1, 'x'), REPLACE(name, 'R', 'r') FROM city
    SELECT DATE_ADD(NOW(6), INTERVAL (1 + 1) DAY), DATE('2026-01-02'), TIMESTAMPDIFF(DAY, '2026-01-01', NOW())
    SELECT EXTRACT(YEAR FROM NOW()), TRIM(BOTH 'x' FROM 'xax'), POSITION('a' IN 'ba'), SUBSTRING('abc' FROM 2 FOR 1)
    SELECT RANK() OVER (PARTITION BY (name) ORDER BY id), SUM(id) OVER w FROM city WINDOW w AS (ORDER BY id)
    WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < (3)) SELECT n FROM c
    WITH sleep (a) AS (SELECT 1) SELECT sleep.a FROM sleep
    SELECT id FROM city WHERE NOT (id IN (1, 2)) AND (name LIKE ('R%') OR EXISTS (SELECT 1)) OR (id BETWEEN (1) AND 2)
    SELECT x.name FROM city AS x JOIN city AS y USING (id) LEFT JOIN (SELECT 1 AS a) AS z ON (z.a = x.id)
    SELECT CASE WHEN (id = 1) THEN (2) ELSE (3) END, id DIV (2), id MOD (2), MOD(id, 2), - (id), ! (id) FROM city
    SELECT JSON_EXTRACT('[1]', '$[0]'), JSON_VALUE('[1]', '$[0]'), ST_AsText(POINT(1, 2)), REGEXP_REPLACE('a', 'a', 'b')
    SELECT * FROM JSON_TABLE('[1]', '$[*]' COLUMNS (a VARCHAR(5) PATH '$')) AS j
    SELECT name FROM city USE INDEX (PRIMARY) WHERE id > ALL (SELECT 0) AND id = ANY (SELECT 1)
    SELECT DISTINCT (name) FROM city HAVING (name <> '') LIMIT 3
    (SELECT 1) UNION (SELECT 2) EXCEPT (SELECT 3)
    SELECT USER(), DATABASE(), VERSION(), MD5('a'), SHA2('a', 256), UUID(), COALESCE(NULL, 1), INTERVAL(2, 1)
    """.strip().split("\n    "),
)
@pytest.mark.slow
def test_ordinary_queries_run(mysql_url: str, execute: Execute, sql: str) -> None:
    run(open_database(mysql_url), sql.strip())


@pytest.mark.slow
def test_a_stored_function_is_called_with_its_database(mysql_url: str, execute: Execute) -> None:
    execute(
        "CREATE FUNCTION tax(a int) RETURNS int DETERMINISTIC RETURN a * 2", "GRANT EXECUTE ON {database}.* TO {user}"
    )
    database = open_database(mysql_url)
    with pytest.raises(Forbidden) as raised:
        run(database, "SELECT tax(4)")
    assert "tax" in str(raised.value)
    assert "database" in str(raised.value.remedy)
    assert run(database, f"SELECT {make_url(mysql_url).database}.tax(4)").rows == ((8,),)


def test_every_function_of_the_server_is_allowed_or_refused_on_purpose(execute: Execute) -> None:
    known = {name.lower() for (name,) in execute("SELECT `FUNCTION` FROM information_schema.sql_functions")}
    assert {name for name in known if is_denied(name, "mysql")} == known & set(REFUSED.split())
    assert len(known) > 250


@pytest.mark.parametrize("mode", ["ORACLE", "ANSI", "DB2", "MSSQL", "POSTGRESQL", "MAXDB", "NO_BACKSLASH_ESCAPES"])
def test_no_mode_of_the_server_changes_how_a_statement_is_read(mysql_url: str, execute: Execute, mode: str) -> None:
    execute(f"SET GLOBAL sql_mode = '{mode},ONLY_FULL_GROUP_BY'")
    try:
        database = open_database(mysql_url)
        assert run(database, """SELECT "x", 'it\\'s', 'a' || 'b', 1 FROM city""").rows == (("x", "it's", 0, 1),)
        # What only makes the server stricter stays.
        with pytest.raises(HeedfulError):
            run(database, "SELECT name, count(*) FROM city GROUP BY id + 1")
    finally:
        execute("SET GLOBAL sql_mode = DEFAULT")


def test_no_other_encoding_can_be_chosen(mysql_url: str, execute: Execute) -> None:
    # In Shift JIS a yen sign is a backslash, and would end no text where the guard sees its end.
    with pytest.raises(Invalid) as raised:
        open_database(f"{mysql_url}?charset=sjis")
    assert raised.value.code == "connector_option"
    execute("SET GLOBAL init_connect = 'SET NAMES sjis'")
    try:
        assert run(open_database(mysql_url), "SELECT '¥', ' OR 1 = 1 -- '").rows == (("¥", " OR 1 = 1 -- "),)
    finally:
        execute("SET GLOBAL init_connect = ''")


@pytest.mark.parametrize(
    ("grants", "may"),
    [
        (["GRANT INSERT ON {database}.* TO ROLE", "GRANT ROLE TO {user}"], "INSERT on"),
        (
            ["GRANT INSERT ON {database}.* TO ROLE", "GRANT ROLE TO {user}", "SET DEFAULT ROLE ROLE FOR {user}"],
            "INSERT on",
        ),
        (["GRANT DELETE ON {database}.city TO ROLE_2", "GRANT ROLE_2 TO ROLE", "GRANT ROLE TO {user}"], "DELETE on"),
        (["GRANT FILE ON *.* TO ROLE_2", "GRANT ROLE TO {user}", "GRANT ROLE_2 TO {user}"], "FILE on *.*"),
        (["GRANT SELECT ON {database}.* TO ROLE", "GRANT ROLE TO {user} WITH ADMIN OPTION"], "pass on the role"),
        (["GRANT UPDATE ON {database}.* TO PUBLIC"], "UPDATE on"),
        (["GRANT SELECT ON {database}.* TO ROLE", "GRANT ROLE TO {user}", "SET DEFAULT ROLE ROLE FOR {user}"], None),
    ],
)
def test_rights_that_a_role_brings_count(
    mysql_url: str, execute: Execute, role: str, grants: list[str], may: str | None
) -> None:
    statements = [re.sub(r"(GRANT|DEFAULT ROLE|TO) ROLE(_2)?", rf"\1 `{role}\2`", each) for each in grants]
    try:
        execute(*statements)
        if may is None:
            open_database(mysql_url).check_rights()
            return
        with pytest.raises(Forbidden) as raised:
            open_database(mysql_url).check_rights()
        assert raised.value.code == "role_privileged"
        assert may in str(raised.value)
    finally:
        if "PUBLIC" in grants[0]:
            execute("REVOKE UPDATE ON {database}.* FROM PUBLIC")


@pytest.mark.slow
def test_a_connector_of_such_a_user_is_refused_and_runs_no_such_function(
    store: Heedful, mysql_url: str, execute: Execute, role: str
) -> None:
    execute(f"GRANT DELETE ON {{database}}.* TO `{role}`", f"GRANT `{role}` TO {{user}}")
    with pytest.raises(Forbidden) as raised:
        store.connectors.create("shop", mysql_url)
    assert raised.value.code == "role_privileged"
    execute(f"REVOKE DELETE ON {{database}}.* FROM `{role}`")
    store.connectors.create("shop", mysql_url)
    assert store.executions.execute_query("SELECT upper(name) AS name FROM city").result.records() == [{"name": "ROME"}]
    with pytest.raises(Forbidden) as raised:
        store.executions.execute_query("SELECT master_pos_wait('log', 4, 1)")
    assert raised.value.code == "sql_function"
