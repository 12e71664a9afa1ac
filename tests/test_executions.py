"""Connectors and executions: what may run, what comes back, and what is refused without a trace."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from cities import IN_ITALY, IN_ITALY_SQL, Cities, make_cities

from heedful import Heedful
from heedful.errors import Conflict, Forbidden, HeedfulError, Invalid, NotFound, Unavailable
from heedful.model import Execution, QueryResult
from heedful.model.executions import ResultColumn
from heedful.testing import ManualClock

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture
def cities(tmp_path: Path) -> Cities:
    return make_cities(tmp_path)


@pytest.fixture
def geo(store: Heedful, cities: Cities) -> Heedful:
    store.connectors.create("geo", cities.url)
    return store


def stored(store: Heedful) -> int:
    return len(store.executions.list(limit=1000).items)


def test_a_connector_is_found_by_id_and_by_name(store: Heedful, cities: Cities, clock: ManualClock) -> None:
    made = store.connectors.create("geo", cities.url)
    assert (made.name, made.dialect, made.tables, made.url) == ("geo", "sqlite", 2, cities.url)
    assert made.schema_at == made.created_at == clock.now
    assert store.connectors.get("geo") == store.connectors.get(made.connector_id) == made
    tables = store.connectors.schema("geo")["tables"]
    assert [table["name"] for table in tables] == ["city", "street"]


def test_connectors_are_listed_in_the_order_they_were_added(store: Heedful, cities: Cities) -> None:
    assert store.connectors.list() == []
    made = [store.connectors.create(name, cities.url) for name in ("b", "a")]
    assert store.connectors.list() == made


def test_refreshing_sees_another_schema_and_nothing_else(geo: Heedful, cities: Cities, clock: ManualClock) -> None:
    before = geo.connectors.get("geo")
    clock.advance(days=1)
    cities.write("INSERT INTO city VALUES (6, 'Bari', 'Italy', 320000)")
    same = geo.connectors.refresh("geo")
    assert same.fingerprint == before.fingerprint
    assert same.schema_at == clock.now
    cities.write("ALTER TABLE city ADD COLUMN mayor text")
    assert geo.connectors.get("geo").fingerprint == before.fingerprint
    assert geo.connectors.refresh("geo").fingerprint != before.fingerprint


def test_deleting_a_connector_takes_its_executions_and_examples(geo: Heedful) -> None:
    done = geo.executions.execute_query(IN_ITALY_SQL, question=IN_ITALY)
    example = geo.golden_examples.create(IN_ITALY, IN_ITALY_SQL)
    assert geo.connectors.delete("geo") is True
    assert geo.connectors.list() == []
    for gone in (
        lambda: geo.connectors.delete("geo"),
        lambda: geo.executions.get(done.execution_id),
        lambda: geo.golden_examples.get(example.id),
    ):
        with pytest.raises(NotFound):
            gone()


def test_a_name_is_taken_once_in_a_project(geo: Heedful, cities: Cities, open_store: Callable[..., Heedful]) -> None:
    with pytest.raises(Conflict) as refused:
        geo.connectors.create("geo", cities.url)
    assert refused.value.field == "name"
    assert open_store(project="other").connectors.create("geo", cities.url).name == "geo"


@pytest.mark.parametrize("name", ["", "   ", None, 7, "a\x00b", "x" * 1000])
def test_a_connector_has_a_name_that_can_be_kept(store: Heedful, cities: Cities, name: object) -> None:
    with pytest.raises(Invalid) as refused:
        store.connectors.create(name, cities.url)  # type: ignore[arg-type]
    assert refused.value.field == "name"
    assert store.connectors.list() == []


@pytest.mark.parametrize("url", ["", "  ", None, 7, "not a url", "nosuchdb://host/x"])
def test_a_url_that_is_none_is_refused(store: Heedful, url: object) -> None:
    with pytest.raises(HeedfulError):
        store.connectors.create("geo", url)  # type: ignore[arg-type]
    assert store.connectors.list() == []


def test_a_database_that_is_missing_is_not_made(store: Heedful, tmp_path: Path) -> None:
    with pytest.raises(HeedfulError) as refused:
        store.connectors.create("geo", f"sqlite:///{tmp_path / 'nope.db'}")
    assert "nope.db" in refused.value.message
    assert not (tmp_path / "nope.db").exists()
    assert store.connectors.list() == []


def test_a_database_that_can_not_be_reached_is_not_kept(store: Heedful) -> None:
    with pytest.raises(Unavailable):
        store.connectors.create("pg", "postgresql://user@127.0.0.1:1/x")
    assert store.connectors.list() == []


def test_a_plain_password_is_refused_and_not_repeated(store: Heedful) -> None:
    with pytest.raises(Invalid) as refused:
        store.connectors.create("pg", "postgresql://user:hunter2@127.0.0.1:1/x")
    assert refused.value.code == "secret_plain"
    assert "hunter2" not in str(refused.value) + repr(refused.value.value)


def test_a_variable_in_a_url_is_looked_up_when_it_is_used(
    store: Heedful, postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRM_PASSWORD", "open-sesame")
    url = postgresql_url.replace("postgres@", "locked:${CRM_PASSWORD}@")
    assert store.connectors.create("crm", url).url == url
    assert store.executions.execute_query("SELECT 1").result.rows == [[1]]
    monkeypatch.delenv("CRM_PASSWORD")
    with pytest.raises(HeedfulError, match="CRM_PASSWORD"):
        store.executions.execute_query("SELECT 1")


def test_the_only_connector_needs_no_name_and_several_do(geo: Heedful, cities: Cities) -> None:
    assert geo.executions.execute_query("SELECT 1").result.rows == [[1]]
    geo.connectors.create("second", cities.url)
    with pytest.raises(Invalid, match="2 connectors") as refused:
        geo.executions.execute_query("SELECT 1")
    assert "geo" in str(refused.value.remedy)
    assert "second" in str(refused.value.remedy)
    with pytest.raises(NotFound):
        geo.executions.execute_query("SELECT 1", connector_id="third")


def test_without_a_connector_it_is_said_how_to_add_one(store: Heedful) -> None:
    with pytest.raises(Invalid) as refused:
        store.executions.execute_query("SELECT 1")
    assert "connectors.create" in str(refused.value.remedy)


def test_another_project_sees_nothing(geo: Heedful, open_store: Callable[..., Heedful]) -> None:
    done = geo.executions.execute_query(IN_ITALY_SQL, question=IN_ITALY)
    feedback = geo.feedback.create_positive(execution_id=done.execution_id)
    example = geo.golden_examples.create(IN_ITALY, IN_ITALY_SQL)
    chat = geo.chat_sessions.create()
    other = open_store(project="other")
    assert other.connectors.list() == []
    assert other.executions.list().items == []
    assert other.feedback.list().total == 0
    assert other.golden_examples.list() == []
    assert other.chat_sessions.list().items == []
    for call in (
        lambda: other.connectors.get(done.connector_id),
        lambda: other.connectors.get("geo"),
        lambda: other.connectors.refresh(done.connector_id),
        lambda: other.connectors.delete(done.connector_id),
        lambda: other.executions.execute_query("SELECT 1", connector_id=done.connector_id),
        lambda: other.executions.get(done.execution_id),
        lambda: other.executions.delete(done.execution_id),
        lambda: other.feedback.create_negative(execution_id=done.execution_id),
        lambda: other.feedback.get(feedback.id),
        lambda: other.feedback.update(feedback.id, is_positive=False),
        lambda: other.feedback.delete(feedback.id),
        lambda: other.golden_examples.get(example.id),
        lambda: other.golden_examples.promote(done.execution_id),
        lambda: other.chat.execution_cache_lookup(IN_ITALY, connector_id=done.connector_id),
        lambda: other.chat_sessions.get(chat.id),
    ):
        with pytest.raises(NotFound):
            call()
    assert other.feedback.bulk_delete([feedback.id]).failed_ids == [feedback.id]
    assert geo.feedback.get(feedback.id) == feedback


def test_an_execution_is_kept_as_it_was_returned(geo: Heedful, clock: ManualClock) -> None:
    done = geo.executions.execute_query(IN_ITALY_SQL, question=IN_ITALY)
    assert (done.question, done.origin, done.derived_from, done.parameters) == (IN_ITALY, "query", None, {})
    assert [column.name for column in done.result.columns] == ["cities"]
    assert done.result.records() == [{"cities": 2}]
    assert done.created_at == clock.now
    assert geo.executions.get(done.execution_id) == done
    assert geo.executions.list().items == [done]


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("SELECT 1; SELECT 2", Forbidden),
        ("COMMIT; DROP TABLE city", Forbidden),
        ("DROP TABLE city", Forbidden),
        ("DELETE FROM city", Forbidden),
        ("WITH gone AS (DELETE FROM city RETURNING *) SELECT * FROM gone", HeedfulError),
        ("SELECT * INTO copy FROM city", Forbidden),
        ("SELECT * FROM city FOR UPDATE", Forbidden),
        ("PRAGMA table_info(city)", Forbidden),
        ("ATTACH DATABASE 'other.db' AS other", Forbidden),
        ("SELECT load_extension('x')", Forbidden),
        ("SELECT pg_terminate_backend(1)", Invalid),
        ("SELECT 1 /* ; */ ; -- \n DROP TABLE city", Forbidden),
        ("SELECT '" + "x" * 1_000_000 + "'", Invalid),
        ("SELECT * FROM nowhere", Invalid),
        ("SELECT nothing FROM city", Invalid),
        ("SELEC 1", Forbidden),
        ("", Invalid),
        ("   ", Invalid),
        ("-- nothing", Invalid),
        (None, Invalid),
        (7, Invalid),
    ],
)
def test_what_may_not_run_is_refused_and_leaves_nothing(
    geo: Heedful, cities: Cities, sql: object, kind: type[HeedfulError]
) -> None:
    before = cities.file.read_bytes()
    with pytest.raises(HeedfulError) as refused:
        geo.executions.execute_query(sql)  # type: ignore[arg-type]
    assert isinstance(refused.value, kind)
    assert len(str(refused.value)) < 1_000
    assert stored(geo) == 0
    assert cities.file.read_bytes() == before


def test_a_table_that_is_not_there_is_named(geo: Heedful) -> None:
    with pytest.raises(HeedfulError, match="nowhere"):
        geo.executions.execute_query("SELECT * FROM nowhere")


def test_a_query_that_never_ends_is_stopped(
    geo: Heedful, open_store: Callable[..., Heedful], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEEDFUL_QUERY_SECONDS", "0.2")
    with pytest.raises(HeedfulError) as refused:
        open_store().executions.execute_query(ENDLESS)
    assert "0.2" in str(refused.value)
    assert stored(geo) == 0


def test_a_database_that_went_away_is_unavailable(geo: Heedful, cities: Cities) -> None:
    cities.file.unlink()
    with pytest.raises(HeedfulError, match=r"cities\.db"):
        geo.executions.execute_query("SELECT 1")
    assert not cities.file.exists()
    assert stored(geo) == 0


def test_parameters_are_values_and_never_sql(geo: Heedful) -> None:
    sql = "SELECT count(*) FROM city WHERE country = :country"
    done = geo.executions.execute_query(sql, parameters={"country": "Italy"})
    assert done.result.rows == [[2]]
    assert geo.executions.get(done.execution_id).parameters == {"country": "Italy"}
    assert geo.executions.execute_query(sql, parameters={"country": "' OR 1=1 --"}).result.rows == [[0]]


@pytest.mark.parametrize(
    "parameters",
    [None, {}, {"town": "Rome"}, {"country": "Italy", "more": 1}, ["Italy"], {"country": object()}, {7: "Italy"}],
)
def test_parameters_that_do_not_fit_are_refused(geo: Heedful, parameters: object) -> None:
    with pytest.raises(Invalid):
        geo.executions.execute_query(
            "SELECT count(*) FROM city WHERE country = :country",
            parameters=parameters,  # type: ignore[arg-type]
        )
    assert stored(geo) == 0


def test_a_result_that_was_cut_off_says_so(
    geo: Heedful, open_store: Callable[..., Heedful], monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = geo.executions.execute_query("SELECT name FROM city ORDER BY id")
    assert (execution.result.truncated, execution.result.truncated_by) == (False, None)
    monkeypatch.setenv("HEEDFUL_QUERY_ROWS", "2")
    done = open_store().executions.execute_query("SELECT name FROM city ORDER BY id")
    assert done.result.rows == [["Rome"], ["Oslo"]]
    result = geo.executions.get(done.execution_id).result
    assert (result.truncated, result.truncated_by) == (True, "rows")


def test_executions_are_paged_the_newest_first(geo: Heedful, cities: Cities) -> None:
    geo.connectors.create("second", cities.url)
    made = [geo.executions.execute_query(f"SELECT {n}", connector_id="geo").execution_id for n in range(5)]
    other = geo.executions.execute_query("SELECT 9", connector_id="second").execution_id
    seen, cursor = [], None
    while True:
        page = geo.executions.list(connector_id="geo", limit=2, cursor=cursor)
        seen.append([each.execution_id for each in page.items])
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == [made[:2:-1], made[2:0:-1], made[:1]]
    assert geo.executions.list(limit=1).items[0].execution_id == other


@pytest.mark.parametrize("cursor", ["x", "", "-1", 3, "9" * 40, "²"])
def test_a_cursor_that_is_none_is_refused(geo: Heedful, cursor: object) -> None:
    with pytest.raises(Invalid) as refused:
        geo.executions.list(cursor=cursor)  # type: ignore[arg-type]
    assert refused.value.field == "cursor"


@pytest.mark.parametrize("limit", [0, -1, 1001, 2.5, True, "3"])
def test_a_limit_is_a_whole_number(geo: Heedful, limit: object) -> None:
    with pytest.raises(Invalid) as refused:
        geo.executions.list(limit=limit)  # type: ignore[arg-type]
    assert refused.value.field == "limit"


def test_deleting_removes_the_execution_and_keeps_what_was_said(geo: Heedful) -> None:
    done = geo.executions.execute_query(IN_ITALY_SQL, question=IN_ITALY)
    feedback = geo.feedback.create_positive(execution_id=done.execution_id)
    assert geo.executions.delete(done.execution_id) is True
    with pytest.raises(NotFound):
        geo.executions.get(done.execution_id)
    with pytest.raises(NotFound):
        geo.executions.delete(done.execution_id)
    assert geo.feedback.get(feedback.id).execution_id == done.execution_id
    assert geo.chat.execution_cache_lookup(IN_ITALY).matches == []


def test_a_message_that_is_not_there_is_not_written_down(geo: Heedful) -> None:
    with pytest.raises(NotFound):
        geo.executions.execute_query("SELECT 1", chat_message_id="nope")
    with pytest.raises(NotFound, match="nope"):
        geo.executions.execute_from_chat("nope")
    assert stored(geo) == 0


@pytest.mark.parametrize("question", ["", "  ", 7, "x" * 100_000, "\ud800"])
def test_a_question_that_is_none_is_refused(geo: Heedful, question: object) -> None:
    with pytest.raises(Invalid) as refused:
        geo.executions.execute_query("SELECT 1", question=question)  # type: ignore[arg-type]
    assert refused.value.field == "question"
    assert stored(geo) == 0


def test_values_survive_json_and_back(geo: Heedful, cities: Cities) -> None:
    cities.write(
        "CREATE TABLE kinds (day date, at datetime, price decimal(10, 2), photo blob, words text, n integer, x real);"
        "INSERT INTO kinds VALUES"
        " ('2026-01-31', '2026-01-31 12:00:00', '12.50', x'00ff', 'ä😀', 9007199254740993, 0.1),"
        " (NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
    )
    done = geo.executions.execute_query("SELECT * FROM kinds ORDER BY n DESC")
    back = Execution.model_validate_json(done.model_dump_json())
    assert back == done
    assert geo.executions.get(done.execution_id) == done
    first, nothing = back.result.rows
    assert first[3] == b"\x00\xff"
    assert first[4:] == ["ä😀", 9007199254740993, 0.1]
    assert nothing == [None] * 7
    assert [column.name for column in back.result.columns] == ["day", "at", "price", "photo", "words", "n", "x"]


def test_dates_and_decimals_survive_json_and_back() -> None:
    made = QueryResult(
        columns=[ResultColumn(name=name, type="any") for name in "abc"],
        rows=[[date(2026, 1, 31), datetime(2026, 1, 31, 12, 30), Decimal("12.50")]],
    )
    back = QueryResult.model_validate_json(made.model_dump_json())
    assert back == made
    assert [type(value) for value in back.rows[0]] == [date, datetime, Decimal]


def test_a_result_without_rows_keeps_its_columns(geo: Heedful) -> None:
    done = geo.executions.execute_query("SELECT name, people FROM city WHERE 0")
    back = Execution.model_validate_json(done.model_dump_json())
    assert [column.name for column in back.result.columns] == ["name", "people"]
    assert len(back.result) == 0
    assert list(back.result) == []


def test_the_database_stays_as_it_is(geo: Heedful, cities: Cities) -> None:
    before = cities.file.read_bytes()
    geo.executions.execute_query(IN_ITALY_SQL, question=IN_ITALY)
    geo.chat.execution_cache_lookup(IN_ITALY)
    assert cities.file.read_bytes() == before
    connection = sqlite3.connect(cities.file)
    assert connection.execute("SELECT count(*) FROM city").fetchone() == (5,)
    connection.close()


def test_a_file_is_found_from_every_folder(store: Heedful, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cities = make_cities(tmp_path)
    monkeypatch.chdir(tmp_path)
    store.connectors.create("geo", f"sqlite:///{Path(cities.url.removeprefix('sqlite:///')).name}")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert store.executions.execute_query(IN_ITALY_SQL).result.rows == [[2]]
    assert str(tmp_path) in store.connectors.get("geo").url
