"""A login that may do more than read is no connector, unless the operator says so."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import httpx
import psycopg
import pytest
from server import running

from heedful import Forbidden, Heedful
from heedful.sql.databases.postgresql_connector import reader

Execute = Callable[..., None]


@pytest.fixture
def execute(postgresql_url: str) -> Iterator[Execute]:
    """Runs SQL as the superuser."""
    with psycopg.connect(postgresql_url, autocommit=True) as connection:

        def run(*statements: str) -> None:
            for each in statements:
                connection.execute(each.encode())

        run("CREATE TABLE orders (id int, total int)", "INSERT INTO orders VALUES (1, 20)")
        yield run


@pytest.fixture
def login(postgresql_url: str, execute: Execute) -> Iterator[str]:
    """A new login that may only read, made by the SQL that the error gives."""
    name = f"reader_{uuid4().hex}"
    database = postgresql_url.rpartition("/")[2]
    execute(*(each.replace("heedful_reader", name) for each in reader(database)))
    yield name
    execute(f"DROP OWNED BY {name}", f"DROP ROLE {name}")


@pytest.fixture
def url(postgresql_url: str, login: str) -> str:
    return postgresql_url.replace("postgres@", f"{login}@")


def refusal(store: Heedful, url: str, **options: object) -> Forbidden:
    with pytest.raises(Forbidden) as raised:
        store.connectors.create("shop", url, **options)  # type: ignore[arg-type]
    assert raised.value.code == "role_privileged"
    assert store.connectors.list() == []
    return raised.value


@pytest.mark.slow
def test_a_superuser_is_refused_and_the_error_says_what_to_do(
    store: Heedful, postgresql_url: str, execute: Execute
) -> None:
    error = refusal(store, postgresql_url)
    assert "superuser" in str(error)
    assert "privileged=True" in str(error.remedy)
    name = f"reader_{uuid4().hex}"
    advised = re.search(r"CREATE ROLE .* IN SCHEMA public TO heedful_reader", str(error.remedy))
    assert advised is not None
    execute(*advised[0].replace("heedful_reader", name).split("; "))
    try:
        store.connectors.create("shop", postgresql_url.replace("postgres@", f"{name}@"))
        assert store.executions.execute_query("SELECT total FROM orders").result.records() == [{"total": 20}]
    finally:
        execute(f"DROP OWNED BY {name}", f"DROP ROLE {name}")


@pytest.mark.parametrize(
    ("grants", "named"),
    [
        (["GRANT INSERT ON orders TO {login}"], "write to tables (orders)"),
        (["GRANT UPDATE (total) ON orders TO {login}"], "write to tables (orders)"),
        (["GRANT TRUNCATE ON orders TO {login}"], "write to tables (orders)"),
        (["GRANT CREATE ON SCHEMA public TO {login}"], "create tables in the schema public"),
        (["GRANT CREATE ON DATABASE {database} TO {login}"], "create schemas in the database"),
        (["GRANT pg_execute_server_program TO {login}"], "run programs on the server"),
        (["GRANT pg_read_server_files TO {login}"], "read files of the server"),
        (["GRANT pg_write_server_files TO {login}"], "write files of the server"),
        (["GRANT pg_write_all_data TO {login}"], "write to all tables"),
        (["GRANT pg_signal_backend TO {login}"], "end other sessions"),
        (["ALTER ROLE {login} BYPASSRLS"], "bypass row-level security"),
        (["ALTER ROLE {login} REPLICATION"], "replicate"),
        (["ALTER ROLE {login} CREATEROLE"], "create roles"),
        (["ALTER ROLE {login} SUPERUSER"], "superuser"),
        (["ALTER ROLE {login} NOINHERIT", "GRANT pg_write_all_data TO {login}"], "write to all tables"),
        (
            ["CREATE FOREIGN DATA WRAPPER w", "CREATE SERVER far FOREIGN DATA WRAPPER w",
             "GRANT USAGE ON FOREIGN SERVER far TO {login}"],
            "use the foreign server far",
        ),
        (["CREATE FUNCTION dblink(text) RETURNS int LANGUAGE sql AS 'SELECT 1'"], "reach other systems (dblink)"),
        (
            ["CREATE SCHEMA net", "GRANT USAGE ON SCHEMA net TO {login}",
             "CREATE FUNCTION net.get(text) RETURNS int LANGUAGE sql AS 'SELECT 1'"],
            "reach other systems (get)",
        ),
        (["CREATE OPERATOR !! (FUNCTION = pg_sleep, RIGHTARG = float8)"], "call pg_sleep through the operator !!"),
    ],
)  # fmt: skip
def test_a_login_that_may_do_more_is_refused_with_what_it_may(
    store: Heedful, url: str, login: str, execute: Execute, grants: list[str], named: str
) -> None:
    execute(*(each.format(login=login, database=url.rpartition("/")[2]) for each in grants))
    assert named in str(refusal(store, url))


def test_what_everybody_may_is_taken_from_everybody(store: Heedful, url: str, execute: Execute) -> None:
    execute("GRANT CREATE ON SCHEMA public TO PUBLIC")
    execute("CREATE FUNCTION dblink_exec(text) RETURNS int LANGUAGE sql AS 'SELECT 1'")
    error = refusal(store, url)
    revoked = re.findall(r"REVOKE [^;]*? FROM PUBLIC", str(error.remedy))
    assert len(revoked) == 2
    execute(*revoked)
    assert store.connectors.create("shop", url).tables == 1


def test_a_weak_role_does_not_hide_a_strong_login(
    store: Heedful, postgresql_url: str, url: str, login: str, execute: Execute
) -> None:
    refusal(store, postgresql_url, role=login)
    strong = f"strong_{uuid4().hex}"
    execute(f"CREATE ROLE {strong} BYPASSRLS", f"GRANT {strong} TO {login}")
    assert "bypass row-level security" in str(refusal(store, url, role=strong))
    execute(f"DROP ROLE {strong}")


def test_the_operator_may_accept_it(store: Heedful, postgresql_url: str, url: str) -> None:
    made = store.connectors.create("shop", postgresql_url, privileged=True)
    assert made.privileged
    assert store.connectors.refresh("shop").privileged
    assert not store.connectors.create("other", url).privileged


@pytest.mark.slow
def test_a_refresh_looks_again(store: Heedful, url: str, login: str, execute: Execute) -> None:
    made = store.connectors.create("shop", url)
    execute(f"GRANT DELETE ON orders TO {login}", "CREATE TABLE more (id int)")
    with pytest.raises(Forbidden) as raised:
        store.connectors.refresh("shop")
    assert raised.value.code == "role_privileged"
    assert store.connectors.get("shop") == made
    execute(f"REVOKE DELETE ON orders FROM {login}")
    assert store.connectors.refresh("shop").tables == 2


def test_over_http_only_the_key_of_the_whole_server_accepts_it(
    path: Path, empty_store: bytes, postgresql_url: str
) -> None:
    path.write_bytes(empty_store)
    with running(path) as server, server.connect() as client:
        admin = client.keys.create("admin", scopes=["admin"]).api_key
        for key, expected in ((admin, 403), (server.key, 200)):
            body = {"name": "shop", "url": postgresql_url, "privileged": True}
            address = f"{server.url}/v1/projects/default/connectors"
            answer = httpx.post(address, json=body, headers={"Authorization": f"Bearer {key}"})
            assert answer.status_code == expected, answer.text
            if expected == 403:
                assert postgresql_url not in answer.text
