"""Attacks by way of connectors: at the store, at the server's environment, and at what is around it."""

from __future__ import annotations

import os
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import duckdb
import httpx
import orjson
import psycopg
import pytest
from command import Done, run_main
from server import Running, running

import heedful
from heedful import Forbidden, Heedful, HeedfulError, Invalid
from heedful.sql.databases.postgresql_connector import parameters
from heedful.sql.secrets import new_key
from heedful.testing import WordEmbedder
from heedful.transfer import copy, export_file, import_file

Create = Callable[[str], Any]
SECRET = "hunter2"


def shop(file: Path) -> Path:
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER)")
    connection.close()
    return file


def refused(call: Callable[..., Any], *arguments: Any, **named: Any) -> HeedfulError:
    with pytest.raises(HeedfulError) as caught:
        call(*arguments, **named)
    assert isinstance(caught.value, Forbidden | Invalid), caught.value
    assert SECRET not in f"{caught.value} {caught.value.value} {caught.value.remedy}"
    return caught.value


def foreign(server: Running, key: str | None = None, project: str = "default") -> httpx.Client:
    """The routes of text2everything."""
    return httpx.Client(
        base_url=f"{server.url}/api/projects/{project}", headers={"Authorization": f"Bearer {key or server.key}"}
    )


@pytest.fixture
def server(path: Path, empty_store: bytes) -> Iterator[Running]:
    path.write_bytes(empty_store)
    with running(path) as found:
        yield found


@contextmanager
def listening() -> Iterator[tuple[int, list[bytes]]]:
    """A port, and what those who connect to it say."""
    received: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def listen() -> None:
            while True:
                try:
                    line, _ = listener.accept()
                except OSError:
                    return
                received.append(b"")
                with line:
                    line.settimeout(0.2)
                    try:
                        received[-1] = line.recv(1000)
                    except TimeoutError:
                        continue

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        yield listener.getsockname()[1], received
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(5)


OWN = "store_as_connector"
SPELLINGS = {
    "sqlite:///{store}": OWN,
    "sqlite+pysqlite:///{store}": OWN,
    "sqlite+base:///{store}": "connector_kind",
    "sqlite+aiosqlite:///{store}": "connector_kind",
    "sqlite+pysqlcipher:///{store}": "connector_kind",
    "sqlite+pysqlite_numeric:///{store}": "connector_kind",
    "SQLite:///{store}": "connector_kind",
    "sqlite:///store.db": OWN,
    "sqlite:///{folder}/nested/../store.db": OWN,
    "sqlite:///{folder}/symlink.sqlite": OWN,
    "sqlite:///{folder}/hardlink.sqlite": OWN,
    "sqlite:////proc/self/cwd/store.db": OWN,
    "sqlite:///{folder}/copy.sqlite": OWN,
    "sqlite:///file:{store}": "not_a_database",
    "sqlite:///file:{store}?mode=ro&uri=true": "connector_option",
    "sqlite:///file:{store}?vfs=unix-none&uri=true": "connector_option",
    "sqlite://host/{store}": "url_unreadable",
    "duckdb:///{store}": OWN,
    "duckdb:///{folder}/hardlink.sqlite": OWN,
    "duckdb:///{folder}/copy.sqlite": "not_a_database",
    "duckdb:///sqlite:{store}": "database_missing",
    "duckdb:///{store}?config=x": "connector_option",
    "duckdb+sqlite:///{store}": "connector_kind",
}


@pytest.mark.slow
def test_a_sqlite_store_is_no_connector_by_any_spelling(server: Running, path: Path, tmp_path: Path) -> None:
    (tmp_path / "nested").mkdir()
    (tmp_path / "symlink.sqlite").symlink_to(path)
    (tmp_path / "hardlink.sqlite").hardlink_to(path)
    with sqlite3.connect(path) as source, sqlite3.connect(tmp_path / "copy.sqlite") as target:
        source.backup(target)
    source.close()
    target.close()
    files = files_in(tmp_path)
    remote = server.connect()
    with heedful.open(path, embedding=WordEmbedder(), worker=False) as store, foreign(server) as http:
        for spelling, code in SPELLINGS.items():
            url = spelling.format(store=path, folder=tmp_path)
            for owner in (store, remote):
                with pytest.raises(HeedfulError) as caught:
                    owner.connectors.create("own", url)
                assert caught.value.code == code, spelling
            if url.startswith(("sqlite:///", "duckdb:///")) and "?" not in url:
                kind, _, file = url.partition(":///")
                answer = http.post("/connectors", json={"name": "own", "db_type": kind, "database": file})
                assert 400 <= answer.status_code < 500, spelling
        assert store.connectors.list() == []
    remote.close()
    assert files_in(tmp_path) == files


def files_in(folder: Path) -> list[str]:
    """But for those that SQLite puts beside a file while it is open."""
    return sorted(each.name for each in folder.iterdir() if not each.name.endswith(("-shm", "-wal", "-index")))


def test_a_connector_is_not_swapped_for_the_store(server: Running, path: Path, tmp_path: Path) -> None:
    file = shop(tmp_path / "shop.sqlite")
    with server.connect() as remote:
        remote.connectors.create("shop", f"sqlite:///{file}")
        file.unlink()
        file.symlink_to(path)
        error = refused(remote.executions.execute_query, "SELECT hex(secret) FROM signing")
        assert error.code == OWN
        assert refused(remote.connectors.refresh, "shop").code == OWN


@pytest.mark.parametrize("scheme", ["sqlite", "duckdb"])
def test_nothing_is_created_and_pipes_are_not_waited_for(store: Heedful, scheme: str, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    for file in ("missing.db", "no/such/folder.db", "missing.db/below", "x" * 5000):
        with pytest.raises(heedful.NotFound) as missing:
            store.connectors.create("new", f"{scheme}:///{tmp_path}/{file}")
        assert missing.value.code == "database_missing"
    assert refused(store.connectors.create, "new", f"{scheme}:///~nobody-here/x.db").code == "not_a_database"
    os.mkfifo(tmp_path / "pipe")
    for special in (tmp_path / "pipe", "/dev/zero"):
        assert refused(store.connectors.create, "new", f"{scheme}:///{special}").code == ("not_a_database")
    (tmp_path / "pipe").unlink()
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.slow
def test_a_postgresql_store_is_no_connector(empty_database: str, postgresql_url: str, tmp_path: Path) -> None:
    """Neither its own, nor another one, nor a database in which one is made later."""
    admin = empty_database.replace("keeper@", "postgres@")
    with running(empty_database) as server, server.connect() as remote, foreign(server) as http:
        for url in (empty_database, admin, admin.replace("127.0.0.1", "localhost")):
            assert refused(remote.connectors.create, "own", url).code == OWN
        place = urlsplit(admin)
        answer = http.post(
            "/connectors",
            json={
                "name": "own",
                "db_type": "postgres",
                "host": place.hostname,
                "port": place.port,
                "username": "keeper",
                "database": place.path.strip("/"),
            },
        )
        assert answer.status_code == 403
    with heedful.open(tmp_path / "elsewhere.db", embedding=WordEmbedder(), worker=False) as store:
        assert refused(store.connectors.create, "other", empty_database).code == OWN
        store.connectors.create("later", postgresql_url, privileged=True)
        assert store.executions.execute_query("SELECT 1").result.rows == [[1]]
        with psycopg.connect(postgresql_url, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")
        heedful.open(postgresql_url, embedding=WordEmbedder(), worker=False).close()
        assert refused(store.executions.execute_query, "SELECT secret FROM heedful.signing").code == OWN
        assert refused(store.connectors.refresh, "later").code == OWN


def test_the_signing_secret_is_not_seen_by_a_transaction_of_a_project(empty_database: str) -> None:
    with heedful.open(empty_database, embedding=WordEmbedder(), worker=False) as store:
        store.remember("A fact.")
        assert store.keys.create_token({"session_id": "s"}).token
        database = store._workspace.database
        for project, seen in (("default", 0), (None, 1)):
            with database.read(project) as connection:
                assert connection.exec_driver_sql("SELECT count(*) FROM signing").scalar() == seen
    with psycopg.connect(empty_database) as connection:
        found = connection.execute("SELECT count(*) FROM heedful.signing").fetchone()
    assert found == (0,)


DANGEROUS = {
    "postgresql": [
        "options=-c%20heedful.everything%3Don",
        "service=x",
        "servicefile=/etc/passwd",
        "passfile=/root/.pgpass",
        "host=elsewhere",
        "hostaddr=10.0.0.1",
        "port=1",
        "user=postgres",
        "password=hunter2",
        "dbname=x",
        "sslkey=/etc/ssl/private/key.pem",
        "sslcert=/x",
        "sslpassword=hunter2",
        "sslkeylogfile=/tmp/keys",
        "sslrootcert=/a&sslrootcert=/b",
        "gsslib=x",
        "krbsrvname=x",
        "replication=database",
        "requirepeer=x",
        "client_encoding=SQL_ASCII",
        "connect_timeout=0",
        "connect_timeout=100000",
        "sslmode=hunter2",
        "prepare_threshold=0",
        "OPTIONS=x",
        "sslmode=require%00x",
    ],
    "sqlite": ["mode=rwc", "vfs=unix-none", "uri=true", "timeout=100000", "nolock=1", "immutable=1"],
    "duckdb": [
        "access_mode=read_write",
        "init=x",
        "motherduck_token=hunter2",
        "custom_user_agent=x",
        "read_only=false",
    ],
    "mysql+pymysql": [
        "read_default_file=/etc/passwd",
        "init_command=x",
        "local_infile=1",
        "unix_socket=/x",
        "ssl_key=/x",
    ],
}


def test_options_of_a_url_are_a_list_of_those_that_do_no_harm(store: Heedful, tmp_path: Path) -> None:
    file = shop(tmp_path / "shop.sqlite")
    with listening() as (port, received):
        for kind, options in DANGEROUS.items():
            place = f"/{file}" if kind in ("sqlite", "duckdb") else f"me@127.0.0.1:{port}/x"
            for option in options:
                error = refused(store.connectors.create, "x", f"{kind}://{place}?{option}")
                assert error.code in ("connector_option", "url_unreadable"), option
                assert error.remedy
        for place in ("me@127.0.0.1,127.0.0.1", "me@%2Ftmp", "me@127.0.0.1:70000", "me%00@127.0.0.1"):
            assert refused(store.connectors.create, "x", f"postgresql://{place}/x").code == ("url_unreadable")
        assert received == []


def open_everything(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """Makes the environment that of an operator who may do anything."""
    home.mkdir()
    (home / ".pgpass").write_text("*:*:*:*:open-sesame\n")
    (home / ".pgpass").chmod(0o600)
    (home / ".pg_service.conf").write_text("[store]\nuser=postgres\npassword=open-sesame\noptions=-c a.b=on\n")
    for name, value in {
        "HOME": str(home),
        "PGPASSWORD": "open-sesame",
        "PGPASSFILE": str(home / ".pgpass"),
        "PGSERVICE": "store",
        "PGSERVICEFILE": str(home / ".pg_service.conf"),
        "PGHOST": "elsewhere.invalid",
        "PGHOSTADDR": "10.255.255.1",
        "PGPORT": "1",
        "PGUSER": "postgres",
        "PGDATABASE": "postgres",
        "PGOPTIONS": "-c heedful.everything=on",
        "PGSSLMODE": "verify-full",
        "PGCONNECT_TIMEOUT": "1",
        "PGAPPNAME": "operator",
        "PGTARGETSESSIONATTRS": "standby",
        "PGCLIENTENCODING": "LATIN1",
        "PGREQUIREAUTH": "none",
    }.items():
        monkeypatch.setenv(name, value)


def test_postgresql_gets_nothing_from_around_the_process(store: Heedful, postgresql_url: str, tmp_path: Path) -> None:
    locked = postgresql_url.replace("postgres@", "locked@")
    with pytest.MonkeyPatch.context() as monkeypatch:
        open_everything(monkeypatch, tmp_path / "home")
        for url in (locked, locked.replace("locked@", "locked:@")):
            with pytest.raises(HeedfulError) as caught:
                store.connectors.create("none", url)
            assert caught.value.code == "database_login"
            assert "open-sesame" not in str(caught.value)
        # What ends all that is told would end it before the empty password.
        for part in ("%00", "locked%00"):
            assert refused(store.connectors.create, "cut", locked.replace("locked@", f"{part}@"))
        # A database's name is a name, and not another way to tell all that.
        named = locked.rpartition("/")[0] + "/" + quote("dbname=postgres password=open-sesame", safe="")
        with pytest.raises(HeedfulError) as caught:
            store.connectors.create("none", named)
        assert caught.value.code == "database_login"
        store.connectors.create("open", postgresql_url, privileged=True)
        sql = "SELECT current_user, current_setting('heedful.everything', true), current_setting('application_name')"
        assert store.executions.execute_query(sql).result.rows == [["postgres", None, "heedful"]]


def test_every_variable_that_libpq_reads_is_overridden() -> None:
    from psycopg import pq
    from sqlalchemy.engine import make_url

    told = parameters(make_url("postgresql://h/x"), pq.version(), "")
    read = {each.keyword.decode() for each in pq.Conninfo.get_defaults() if each.envvar}
    # An empty service is looked for; one that the environment names finds nothing left to fill.
    assert read - set(told) == {"service"}


def key_of(server: Running, project: str = "default", scope: str = "admin") -> str:
    with server.connect(project) as remote:
        return remote.keys.create(f"a key of {project}", scopes=[scope]).api_key  # type: ignore[list-item]


@pytest.mark.slow
def test_a_project_admin_creates_connectors_where_the_operator_allows_it(
    path: Path, empty_store: bytes, tmp_path: Path, postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_bytes(empty_store)
    (tmp_path / "data").mkdir()
    (tmp_path / "data-too").mkdir()
    inside, outside = shop(tmp_path / "data" / "shop.sqlite"), shop(tmp_path / "data-too" / "shop.sqlite")
    with duckdb.connect(str(tmp_path / "data" / "shop.duckdb")) as made:
        made.execute("CREATE TABLE orders (id INTEGER)")
    (tmp_path / "data" / "way-out.sqlite").symlink_to(outside)
    place = urlsplit(postgresql_url)
    monkeypatch.setenv("HEEDFUL_CONNECTOR_FOLDERS", str(tmp_path / "data"))
    monkeypatch.setenv("HEEDFUL_CONNECTOR_HOSTS", f"db.example.com,{place.hostname}:{place.port}")
    with running(path) as server, server.connect(key=key_of(server)) as remote, listening() as (port, received):
        for file in (outside, tmp_path / "data" / "way-out.sqlite", f"{inside.parent}/../data-too/shop.sqlite", path):
            for scheme in ("sqlite", "duckdb"):
                url = f"{scheme}:///{file}"
                assert refused(remote.connectors.create, "x", url).code == "connector_folder"
        # Whether something is there is not told either.
        assert refused(remote.connectors.create, "x", "sqlite:////nowhere/x.db").code == "connector_folder"
        certificates = f"{postgresql_url}?sslrootcert={quote(str(outside))}"
        assert refused(remote.connectors.create, "x", certificates).code == "connector_folder"
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", "127.0.0.1", "", "db.example.com:6000"):
            error = refused(remote.connectors.create, "x", f"postgresql://me@{host}/x")
            assert (error.code, type(error)) == ("connector_host", Forbidden)
            assert "HEEDFUL_CONNECTOR_HOSTS" in (error.remedy or "")
        _over_foreign_routes(server, outside, inside, port)
        remote.connectors.create("shop", f"sqlite:///{inside}")
        remote.connectors.create("duck", f"duckdb:///{inside.with_suffix('.duckdb')}")
        remote.connectors.create("sales", postgresql_url.replace("postgres@", "reader@"))
        for name in ("shop", "duck", "sales"):
            assert remote.executions.execute_query("SELECT 1", connector_id=name).result.rows == [[1]]
        # What is swapped later is found when it is used.
        inside.unlink()
        inside.symlink_to(outside)
        run = remote.executions.execute_query
        assert refused(run, "SELECT 1", connector_id="shop").code == "connector_folder"
        assert received == []
        # The key of the whole server may do more, and what it made can be used by others.
        with server.connect() as whole:
            whole.connectors.create("anywhere", f"sqlite:///{outside}")
        assert run("SELECT count(*) FROM orders", connector_id="anywhere").result.rows == [[0]]


def _over_foreign_routes(server: Running, outside: Path, inside: Path, port: int) -> None:
    with foreign(server, key_of(server)) as http:
        for body, status in (
            ({"db_type": "sqlite", "database": str(outside)}, 403),
            ({"db_type": "postgres", "host": "127.0.0.1", "port": port, "username": "me", "database": "x"}, 403),
            ({"db_type": "sqlite", "database": f"{outside}?mode=rwc"}, 400),
            ({"db_type": "sqlite", "database": str(inside)}, 200),
        ):
            answer = http.post("/connectors", json={"name": "foreign", **body})
            assert answer.status_code == status, answer.text


@pytest.mark.slow
def test_the_servers_environment_is_not_read_out(
    path: Path, empty_store: bytes, tmp_path: Path, postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_bytes(empty_store)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("CRM_PASSWORD", "open-sesame")
    monkeypatch.setenv("HEEDFUL_CONNECTOR_SECRETS", "CRM_PASSWORD")
    with running(path) as server, server.connect() as whole, listening() as (port, received):
        for url in (
            "sqlite:////x/${AWS_SECRET_ACCESS_KEY}",
            "duckdb:////x/${AWS_SECRET_ACCESS_KEY}",
            "${AWS_SECRET_ACCESS_KEY}",
            f"postgresql://me@${{AWS_SECRET_ACCESS_KEY}}:{port}/x",
            f"postgresql://me@127.0.0.1:{port}/${{AWS_SECRET_ACCESS_KEY}}",
            f"postgresql://me@127.0.0.1:{port}/x?application_name=${{AWS_SECRET_ACCESS_KEY}}",
            f"postgresql://me:${{HEEDFUL_SECRET_KEY}}@127.0.0.1:{port}/x",
        ):
            assert refused(whole.connectors.create, "x", url).code == "secret_reference"
        # Listed by nobody, set or not: the answer is the same.
        for name in ("AWS_SECRET_ACCESS_KEY", "NEVER_SET"):
            for url in (
                f"postgresql://me:${{{name}}}@127.0.0.1:{port}/x",
                f"postgresql://${{{name}}}@127.0.0.1:{port}/x",
            ):
                error = refused(whole.connectors.create, "x", url)
                assert (error.code, error.value) == ("secret_unlisted", name)
        with foreign(server) as http:
            place = {"db_type": "postgres", "host": "127.0.0.1", "port": port, "username": "me", "database": "x"}
            answer = http.post(
                "/connectors", json={"name": "x", **place, "password_secret_id": "AWS_SECRET_ACCESS_KEY"}
            )
            assert (answer.status_code, SECRET in answer.text) == (403, False)
        assert received == []
        listed = postgresql_url.replace("postgres@", "locked:${CRM_PASSWORD}@")
        assert whole.connectors.create("crm", listed).url == listed
        monkeypatch.setenv("CRM_PASSWORD", SECRET)
        with pytest.raises(HeedfulError) as caught:
            whole.executions.execute_query("SELECT 1")
        assert caught.value.code == "database_login"
        assert SECRET not in str(caught.value)
    # In a process of one's own, one need not list what is one's own; what a server runs is listed again.
    monkeypatch.setenv("CRM_PASSWORD", "open-sesame")
    monkeypatch.delenv("HEEDFUL_CONNECTOR_SECRETS")
    with heedful.open(path, embedding=WordEmbedder(), worker=False) as store:
        assert store.executions.execute_query("SELECT 1").result.rows == [[1]]
    with running(path) as server, server.connect() as whole:
        assert refused(whole.executions.execute_query, "SELECT 1").code == "secret_unlisted"


def exported(path: Path, change: Callable[[dict[str, Any]], None]) -> BytesIO:
    lines = BytesIO()
    file = path.with_suffix(".lines")
    export_file(path, file, project="default", force=True)
    for text in file.read_bytes().splitlines():
        line = orjson.loads(text)
        if line["type"] == "connector":
            change(line)
        lines.write(orjson.dumps(line) + b"\n")
    lines.seek(0)
    return lines


@pytest.mark.slow
def test_an_imported_connector_waits_for_somebody_to_confirm_it(
    open_store: Callable[..., Heedful], path: Path, tmp_path: Path, postgresql_url: str
) -> None:
    file = shop(tmp_path / "shop.sqlite")
    with open_store() as store:
        store.connectors.create("shop", f"sqlite:///{file}")
        store.executions.execute_query("SELECT count(*) FROM orders", question="How many orders are there?")

    target = tmp_path / "target.db"
    with listening() as (port, received):

        def change(line: dict[str, Any]) -> None:
            line["url"] = f"postgresql://me:${{PATH}}@127.0.0.1:{port}/x"
            line["options"] |= {"listed": False, "privileged": True, "anything": 1}

        import_file(target, exported(path, change), embedding=WordEmbedder())
        with running(target) as server, server.connect() as whole, server.connect(key=key_of(server)) as admin:
            (found,) = whole.connectors.list()
            assert (found.enabled, found.url) == (False, f"postgresql://me:${{PATH}}@127.0.0.1:{port}/x")
            for call in (
                lambda: whole.executions.execute_query("SELECT 1"),
                lambda: whole.connectors.refresh("shop"),
                lambda: whole.chat.execution_cache_lookup("How many orders are there?"),
            ):
                error = refused(call)
                assert error.code == "connector_unconfirmed"
                assert "heedful connectors confirm shop" in (error.remedy or "")
            assert refused(admin.connectors.confirm, "shop").code == "connector_host"
            assert refused(whole.connectors.confirm, "shop").code == "secret_unlisted"
            writer = server.connect(key=key_of(server, scope="write"))
            assert refused(writer.connectors.confirm, "shop").code == "scope_missing"
            writer.close()
            assert whole.connectors.get("shop").enabled is False
        assert received == []

    kept = tmp_path / "kept.db"
    import_file(kept, exported(path, lambda line: None), embedding="fast")
    output = run_main("--store", str(kept), "--embedding", "fast", "connectors", "confirm", "shop")
    assert output.stdout.startswith("shop is on: 1 table in sqlite:///"), output.stderr
    with open_store(kept, embedding="fast") as store:
        assert store.connectors.confirm("shop").enabled is True
        assert store.executions.execute_query("SELECT count(*) FROM orders").result.rows == [[0]]
    # A copy of the whole store is the operator's own, and stays as it is.
    copy(kept, tmp_path / "copy.db")
    with open_store(tmp_path / "copy.db", embedding="fast") as store:
        assert store.connectors.get("shop").enabled is True


@pytest.mark.slow
def test_a_leaked_key_is_replaced(
    open_store: Callable[..., Heedful], path: Path, postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = new_key(), new_key()
    monkeypatch.setenv("HEEDFUL_SECRET_KEY", old)
    for project in ("default", "other"):
        with open_store(project=project) as store:
            store.connectors.create("crm", postgresql_url.replace("postgres@", "locked:open-sesame@"))

    def resealed(keys: str) -> Done:
        monkeypatch.setenv("HEEDFUL_SECRET_KEY", keys)
        return run_main("--store", str(path), "keys", "reseal-connectors")

    for keys, code in (("", "there is no key"), (new, "'crm'")):
        failed = resealed(keys)
        assert failed.returncode != 0
        assert code in failed.stderr
    done = resealed(f"{new},{old}")
    assert (done.returncode, "the first key: 2;" in done.stdout) == (0, True), done.stderr
    for project in ("default", "other"):
        monkeypatch.setenv("HEEDFUL_SECRET_KEY", new)
        with open_store(project=project) as store:
            assert store.executions.execute_query("SELECT 1").result.rows == [[1]]
            monkeypatch.setenv("HEEDFUL_SECRET_KEY", old)
            with pytest.raises(HeedfulError, match="can't be decrypted"):
                store.executions.execute_query("SELECT 1")
