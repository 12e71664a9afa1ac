"""What holds on a MySQL or MariaDB server even when the guard lets something through."""

from __future__ import annotations

from collections.abc import Iterator

import pymysql
import pytest
from guarded import run
from sqlalchemy import make_url

from heedful.errors import Forbidden, HeedfulError, Invalid, Unavailable
from heedful.sql.databases.any_database import Database, Limits
from heedful.sql.databases.opening import open_database
from heedful.sql.guard import CheckedStatement


@pytest.fixture
def as_root(mysql_url: str) -> Iterator[Database]:
    """A database that its connector's user may write to."""
    address = make_url(mysql_url).set(username="root", drivername="mysql")
    with pymysql.connect(
        user="root", host=address.host or "", port=address.port or 0, database=address.database
    ) as own:
        with own.cursor() as cursor:
            cursor.execute("CREATE TABLE city (id integer PRIMARY KEY, name varchar(50))")
            cursor.execute("INSERT INTO city VALUES (1, 'Rome'), (2, 'Oslo')")
            cursor.execute("SET GLOBAL sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'")
        own.commit()
        yield open_database(address.render_as_string())
        with own.cursor() as cursor:
            cursor.execute("SET GLOBAL sql_mode = DEFAULT")


@pytest.mark.parametrize("sql", ["DELETE FROM city", "UPDATE city SET name = 'x'", "CREATE TABLE x (a int)"])
@pytest.mark.slow
def test_the_server_refuses_to_write(as_root: Database, sql: str) -> None:
    with as_root.session() as session, pytest.raises(Forbidden) as caught:
        session.run(CheckedStatement(sql, "mysql"), {}, Limits())
    assert caught.value.code == "read_only"
    assert run(as_root, "SELECT count(*) FROM city WHERE name <> 'x'").rows == ((2,),)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT load_file('/etc/passwd')",
        "SELECT name FROM city INTO OUTFILE '/tmp/x'",
        "SELECT sleep(9)",
        "SELECT benchmark(9, 1)",
        "SELECT get_lock('a', 1)",
        "SELECT 1 /*! INTO OUTFILE '/tmp/x' */; DROP TABLE city",
        "HANDLER city OPEN",
    ],
)
def test_the_guard_refuses_what_mysql_has_beside_reading(as_root: Database, sql: str) -> None:
    with pytest.raises(HeedfulError) as caught:
        run(as_root, sql)
    assert caught.value.code.startswith("sql_"), caught.value.code


def test_the_server_reads_texts_as_the_guard_does(as_root: Database) -> None:
    assert run(as_root, """SELECT 'it\\'s', "x" FROM city WHERE name = :name""", {"name": "Rome"}).rows == (
        ("it's", "x"),
    )
    assert run(as_root, "SELECT name FROM city WHERE name = :name", {"name": "\\' OR 1 = 1 -- "}).rows == ()


@pytest.mark.slow
def test_what_the_guard_lets_through_runs_as_it_was_written(as_root: Database) -> None:
    sql = "SELECT name, ':p1', '12:30' FROM city WHERE id = :p1"
    assert run(as_root, sql, {"p1": 2}).rows == (("Oslo", ":p1", "12:30"),)
    assert run(as_root, "SELECT id FROM city ORDER BY id", limits=Limits(rows=1)).truncated_by == "rows"
    assert as_root.read_schema().table("city") is not None
    assert as_root.data_version() is None
    with pytest.raises(Invalid) as raised:
        run(as_root, "SELECT * FROM missing")
    assert raised.value.code == "unknown_table"


@pytest.mark.slow
def test_a_query_that_never_ends_is_stopped(as_root: Database) -> None:
    columns = "information_schema.columns"
    endless = f"SELECT count(*) FROM {columns} a, {columns} b, {columns} c WHERE a.column_name > b.column_comment"
    with pytest.raises(Unavailable) as caught:
        run(as_root, endless, limits=Limits(seconds=0.5))
    assert caught.value.code == "query_timeout"


@pytest.mark.parametrize(
    ("grants", "may"),
    [
        (["INSERT, SELECT ON {database}.*"], "INSERT on"),
        (["UPDATE (name) ON {database}.city"], "UPDATE on"),
        (["ALL ON {database}.*"], "ALL PRIVILEGES on"),
        (["FILE ON *.*"], "FILE on *.*"),
        (["SELECT ON {database}.* TO {user} WITH GRANT OPTION"], "grant that to others on"),
        (["EXECUTE, SHOW VIEW ON {database}.*"], None),
    ],
)
def test_a_user_who_may_do_more_than_read_is_found(
    as_root: Database, mysql_url: str, grants: list[str], may: str | None
) -> None:
    address = make_url(mysql_url)
    user = f"'{address.username}'@'127.0.0.1'"
    with (
        pymysql.connect(user="root", host=address.host or "", port=address.port or 0) as own,
        own.cursor() as cursor,
    ):
        for each in grants:
            text = each.format(database=address.database, user=user)
            cursor.execute(f"GRANT {text}" + ("" if " TO " in text else f" TO {user}"))
    database = open_database(mysql_url)
    if may is None:
        database.check_rights()
        return
    with pytest.raises(Forbidden) as caught:
        database.check_rights()
    assert caught.value.code == "role_privileged"
    assert may in str(caught.value)
    assert "GRANT SELECT ON" in str(caught.value.remedy)
