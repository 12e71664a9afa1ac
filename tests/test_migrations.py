from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from postgresql import new_store
from sqlalchemy import Connection

from heedful import Conflict, Heedful, Unavailable
from heedful.bootstrap import migrate_store
from heedful.storage.migrations import HEAD, REVISIONS
from heedful.storage.migrations import run as migrations
from heedful.storage.migrations.run import config
from heedful.storage.opening import open_store
from heedful.storage.schema import metadata

pytestmark = pytest.mark.usefixtures("warm_processes")


@pytest.fixture(autouse=True)
def really(migrate: Callable[[Connection], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Here, new stores are migrated."""
    monkeypatch.setattr(migrations, "upgrade", migrate)


def test_the_revisions_are_those_of_the_scripts() -> None:
    scripts = ScriptDirectory.from_config(config())
    assert tuple(script.revision for script in scripts.walk_revisions())[::-1] == REVISIONS
    assert scripts.get_heads() == [HEAD]


def test_a_migrated_store_is_what_the_tables_say(path: Path) -> None:
    database = open_store(path)
    try:
        with database.read() as connection:
            context = MigrationContext.configure(
                connection, opts={"compare_type": True, "compare_server_default": True}
            )
            assert compare_metadata(context, metadata) == []
    finally:
        database.close()


def test_every_option_of_a_table_is_migrated(path: Path, tmp_path: Path) -> None:
    open_store(path).close()
    made = open_store(tmp_path / "empty.db")
    with made.write() as connection:
        metadata.drop_all(connection)
        metadata.create_all(connection)
    made.close()
    assert tables(path) == tables(tmp_path / "empty.db")


def tables(path: Path) -> dict[str, str]:
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    connection.close()
    return {name: " ".join(sorted(statement.replace(",", " ").replace('"', "").split())) for name, statement in rows}


@pytest.mark.parametrize("revision", ["9999", "0010"])
def test_a_store_of_an_unknown_version_is_refused_and_left_alone(
    open_store: Callable[..., Heedful], path: Path, revision: str
) -> None:
    store = open_store()
    store.remember("x")
    store.close()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(Conflict, match=f"revision {revision}, .* newest is {HEAD}") as caught:
        open_store()
    assert caught.value.code == "store_newer"
    assert "Upgrade heedful, or open it with the version that made it" in str(caught.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
def test_a_database_of_another_program_is_refused_and_left_alone(
    open_store: Callable[..., Heedful], path: Path, journal: str
) -> None:
    foreign(path, f"PRAGMA journal_mode = {journal}", "CREATE TABLE customers (id INTEGER)")
    before = path.read_bytes()
    with pytest.raises(Conflict, match="another program") as caught:
        open_store()
    assert caught.value.code == "store_foreign"
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("revision", [HEAD, "ae1027a6acf"])
def test_another_program_that_migrates_like_us_is_told_apart(
    open_store: Callable[..., Heedful], path: Path, revision: str
) -> None:
    foreign(
        path,
        "CREATE TABLE customers (id INTEGER)",
        "CREATE TABLE alembic_version (version_num TEXT)",
        f"INSERT INTO alembic_version VALUES ('{revision}')",
    )
    with pytest.raises(Conflict) as caught:
        open_store()
    assert caught.value.code == "store_foreign"


def foreign(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def test_an_empty_file_becomes_a_store(open_store: Callable[..., Heedful], path: Path) -> None:
    path.touch()
    assert open_store().remember("x").added == 1


@pytest.mark.slow
def test_processes_may_open_a_new_store_at_once(path: Path, open_store: Callable[..., Heedful]) -> None:
    script = f"""
import sys, heedful
from heedful.testing import WordEmbedder
sys.stdin.readline()
with heedful.open({str(path)!r}, embedding=WordEmbedder()) as store:
    print(store.remember(f"from process {{sys.argv[1]}}").added)
"""
    children = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    outputs = [child.communicate("go\n", timeout=120) for child in children]
    assert [(out.strip(), err) for out, err in outputs] == [("1", "")] * 4
    assert open_store().usefulness_stats().total_facts == 4


@pytest.mark.parametrize(
    ("kind", "told", "code"),
    [("sqlite", "is a file", "not_a_cluster"), ("postgresql", "has no extension citus", "citus_missing")],
)
def test_a_store_without_a_cluster_is_not_distributed(
    kind: str, told: str, code: str, path: Path, request: pytest.FixtureRequest
) -> None:
    with ExitStack() as made:
        url = str(path)
        if kind == "postgresql":
            url = made.enter_context(new_store(request.getfixturevalue("postgresql_server")))
        with pytest.raises(Unavailable, match=told) as caught:
            migrate_store(url, distribute=True)
    assert caught.value.code == code
    assert "Citus" in str(caught.value)
