"""The ledger is replayed, and whatever is not as it says is found."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import JSON, create_engine, text

from heedful import NotFound
from heedful.storage import schema
from heedful.transfer import Verified, verify

pytestmark = pytest.mark.slow

Harm = Callable[[str], None]


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest) -> str:
    """The store in which all has happened, of either kind."""
    return str(request.getfixturevalue("lived" if request.param == "sqlite" else "lived_database"))


@pytest.fixture
def harm(store: str) -> Iterator[Harm]:
    """Does to the store what Heedful never does."""
    sqlite = "://" not in store
    url = f"sqlite:///{store}" if sqlite else store.replace("postgresql://", "postgresql+psycopg://")
    engine = create_engine(url)

    def run(statement: str) -> None:
        with engine.begin() as connection:
            if not sqlite:
                connection.execute(text("SET LOCAL search_path = heedful"))
                connection.execute(text("SET LOCAL heedful.everything = 'on'"))
            assert connection.execute(text(statement)).rowcount > 0, statement

    yield run
    engine.dispose()


def named(found: Verified) -> set[str]:
    return {each.what for each in found.differences}


def test_a_sound_store_has_no_differences(store: str) -> None:
    found = verify(store)
    assert found.ok
    assert found.differences == []
    assert [each.project for each in found.projects] == ["default", "other"]
    assert found.compared > 10
    assert all(each.facts and each.events for each in found.projects)


@pytest.mark.nightly
def test_one_project_can_be_verified_alone(store: str) -> None:
    found = verify(store, project="other")
    assert found.projects == [each for each in verify(store).projects if each.project == "other"]
    with pytest.raises(NotFound, match="has no project 'nobody'"):
        verify(store, project="nobody")


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        ("UPDATE scores SET score = 0.99", "scores of facts unlike the fold of the ledger"),
        ("UPDATE scores SET used = used + 1", "scores of facts unlike the fold of the ledger"),
        ("DELETE FROM scores WHERE query_id = 0", "scores of facts unlike the fold of the ledger"),
        ("UPDATE links SET score = 0.9, helpful = 3", "scores of links unlike the fold of the ledger"),
        ("UPDATE facts SET hidden = 1 - hidden", "superseded facts unlike the ledger"),
        ("UPDATE feedbacks SET score = 2 WHERE score = 5", "feedback unlike its event"),
        ("UPDATE feedbacks SET active = 1 - active", "feedback unlike its event"),
        (
            "UPDATE feedbacks SET event_id = 'nothing' WHERE seq = (SELECT min(seq) FROM feedbacks)",
            "feedback without its event",
        ),
        ("UPDATE notes SET event_id = 'x' || substr(event_id, 2)", "notes without their event"),
        ("UPDATE events SET dataset_id = 99 WHERE kind = 'signal'", "signals about a fact of another dataset"),
        ("DELETE FROM event_keys", "idempotency keys unlike their event"),
        ("UPDATE event_keys SET event_id = 'nothing'", "idempotency keys unlike their event"),
        ("UPDATE receipts SET query_id = 9999", "receipts of facts or queries of another dataset"),
        ("UPDATE events SET value = 'ignored' WHERE kind = 'signal'", "scores of facts unlike the fold of the ledger"),
    ],
)
@pytest.mark.nightly
def test_what_differs_is_named(store: str, harm: Harm, damage: str, what: str) -> None:
    harm(damage)
    found = verify(store)
    assert not found.ok
    assert what in named(found)
    for each in found.differences:
        assert each.count >= len(each.examples) > 0
        assert each.project in ("default", "other")
    assert verify(store) == found, "it only reads"


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE entries SET session_seq = (SELECT max(seq) FROM sessions WHERE project_id <> entries.project_id)",
        "UPDATE facts SET dataset_id = (SELECT max(id) FROM datasets WHERE project_id <> facts.project_id)",
    ],
)
@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_a_row_that_refers_to_another_project_is_named(store: str, harm: Harm, damage: str) -> None:
    harm(damage)
    assert "rows of something that another project has" in named(verify(store))


def test_an_unknown_signal_is_named(store: str, harm: Harm) -> None:
    harm("UPDATE events SET value = 'adored' WHERE kind = 'signal' AND value = 'used'")
    found = verify(store)
    assert "rows of events with an unknown signal (so no scores were compared)" in named(found)
    assert [each.project for each in found.projects] == ["default", "other"]


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("table", "column"), [("receipts", "shown"), ("facts", "metadata"), ("sessions", "metadata")])
def test_broken_json_is_named(store: str, harm: Harm, table: str, column: str) -> None:
    sound = verify(store)
    harm(f"UPDATE {table} SET {column} = '{{broken' WHERE id = (SELECT min(id) FROM {table})")
    found = verify(store)
    (difference,) = found.differences
    assert difference.what == f"rows of {table} with broken JSON in {column}"
    assert (difference.count, len(difference.examples)) == (1, 1)
    assert found.compared == sound.compared
    unread = {difference.project} if table == "facts" else set()
    assert found.projects == [each for each in sound.projects if each.project not in unread]


WRONG = ["5", '"x"', "null", "[]", "[5]", '[["x"]]', '{"a": 1}', '"\\ud800"']
ALONE = [("facts", "metadata"), ("events", "body"), ("receipts", "shown")]
LISTS = {"receipts.shown", "entries.used", "keys.scopes"}
JSON_COLUMNS = [
    (table.name, column.name, bool(column.nullable))
    for table in schema.metadata.sorted_tables
    for column in table.columns
    if isinstance(column.type, JSON)
]
A_JOB = """
    INSERT INTO jobs (id, kind, arguments, digest, status, attempts, created_at, due_at, cancelling)
    VALUES ('0-job', 'improve', '{}', 'sixteen bytes ok', 'done', 0, 0, 0, 0)
"""


def harmful(table: str, column: str, nullable: bool, value: str) -> bool:
    sound = {"[]"} if f"{table}.{column}" in LISTS else {'{"a": 1}'}
    return value not in (sound | {"null"} if nullable else sound)


def spoil(harm: Harm, table: str, column: str, value: str) -> None:
    key, value = "id" if table != "requests" else "idempotency_key", value.replace(":", "\\:")
    harm(f"UPDATE {table} SET \"{column}\" = '{value}' WHERE {key} = (SELECT min({key}) FROM {table})")


@pytest.mark.nightly
def test_json_of_the_wrong_shape_is_named(store: str, harm: Harm) -> None:
    harm(A_JOB)
    sound = verify(store)
    for value in WRONG:
        for table, column, _ in JSON_COLUMNS:
            spoil(harm, table, column, value)
        found = verify(store)
        damaged = {
            (table, column)
            for table, column, _ in JSON_COLUMNS
            for each in found.differences
            if each.what.startswith(f"rows of {table} with ") and column in each.what
        }
        assert damaged == {
            (table, column) for table, column, nullable in JSON_COLUMNS if harmful(table, column, nullable, value)
        }, value
        for each in found.differences:
            assert (each.count, len(each.examples)) == (1, 1)
            assert (each.project is None) == each.what.startswith("rows of jobs "), "it belongs to no project"
        assert found.compared == sound.compared, "the scores are compared all the same"


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("table", "column"), ALONE)
def test_damage_to_one_column_alone_is_named(store: str, harm: Harm, table: str, column: str) -> None:
    spoil(harm, table, column, "5")
    (difference,) = verify(store).differences
    expected = "a list" if f"{table}.{column}" in LISTS else "an object"
    assert difference.what == f"rows of {table} with wrong JSON: {column} is a number instead of {expected}"


@pytest.mark.parametrize(
    ("change", "checksum"),
    [
        ("UPDATE events SET author = 'Eve' WHERE author = 'Ida'", "ledger_checksum"),
        ("UPDATE events SET at = at + 1 WHERE kind = 'feedback'", "ledger_checksum"),
        ("DELETE FROM events WHERE kind = 'feedback'", "ledger_checksum"),
        ("UPDATE facts SET text = text || '!'", "facts_checksum"),
    ],
)
@pytest.mark.nightly
def test_a_changed_line_changes_the_checksum(store: str, harm: Harm, change: str, checksum: str) -> None:
    before = verify(store).projects
    harm(change)
    after = verify(store).projects
    assert [getattr(each, checksum) for each in after] != [getattr(each, checksum) for each in before]


def test_scores_and_indexes_are_not_in_the_checksum(store: str, harm: Harm) -> None:
    before = verify(store).projects
    harm("UPDATE scores SET score = 0.1")
    assert verify(store).projects == before


def test_a_missing_store_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no store"):
        verify(tmp_path / "missing.db")
    assert not (tmp_path / "missing.db").exists()


def test_nothing_is_written(lived: Path) -> None:
    before = lived.read_bytes()
    os.chmod(lived, 0o444)
    verify(lived)
    assert lived.read_bytes() == before
