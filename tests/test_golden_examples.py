"""Golden examples: added by somebody's word, imported all or none, promoted only when people say it was right."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cities import IN_ITALY, IN_ITALY_SQL, make_cities

from heedful import Heedful
from heedful.errors import Conflict, Forbidden, HeedfulError, Invalid, NotFound
from heedful.testing import ManualClock

STREETS = "How many streets are there?"
STREETS_SQL = "SELECT count(*) AS streets FROM street"


@pytest.fixture
def geo(store: Heedful, tmp_path: Path) -> Heedful:
    store.connectors.create("geo", make_cities(tmp_path).url)
    return store


def jsonl(folder: Path, *records: Any) -> Path:
    file = folder / "examples.jsonl"
    file.write_text("\n".join(json.dumps(record) for record in records), encoding="utf-8")
    return file


def test_an_example_is_kept_changed_and_removed(geo: Heedful, clock: ManualClock) -> None:
    made = geo.golden_examples.create(IN_ITALY, IN_ITALY_SQL)
    assert (made.question, made.sql_query, made.origin, made.execution_id) == (IN_ITALY, IN_ITALY_SQL, "given", None)
    assert geo.golden_examples.get(made.id) == made
    clock.advance(hours=1)
    changed = geo.golden_examples.update(made.id, sql_query=STREETS_SQL)
    assert (changed.question, changed.sql_query) == (IN_ITALY, STREETS_SQL)
    assert (changed.created_at, changed.updated_at) == (made.created_at, clock.now)
    assert geo.golden_examples.update(made.id, question=STREETS).sql_query == STREETS_SQL
    assert geo.golden_examples.delete(made.id) is True
    for call in (geo.golden_examples.get, geo.golden_examples.update, geo.golden_examples.delete):
        with pytest.raises(NotFound):
            call(made.id)


def test_examples_are_listed_the_newest_first(geo: Heedful, tmp_path: Path) -> None:
    geo.connectors.create("second", make_cities(tmp_path, "second.db").url)
    made = [
        geo.golden_examples.create(f"Question {n}", f"SELECT {n}", connector_id=name).id
        for n, name in enumerate(("geo", "geo", "second"))
    ]
    assert [each.id for each in geo.golden_examples.list()] == made[::-1]
    assert [each.id for each in geo.golden_examples.list(connector_id="geo")] == made[1::-1]
    assert [each.id for each in geo.golden_examples.list(skip=1, limit=1)] == [made[1]]
    for field, value in (("skip", -1), ("limit", 0), ("limit", "3")):
        with pytest.raises(Invalid) as refused:
            geo.golden_examples.list(**{field: value})  # type: ignore[arg-type]
        assert refused.value.field == field


def test_a_question_has_one_example_on_a_connector(geo: Heedful, tmp_path: Path) -> None:
    made = geo.golden_examples.create(IN_ITALY, IN_ITALY_SQL)
    with pytest.raises(Conflict, match=made.id):
        geo.golden_examples.create("how many  cities are in italy", STREETS_SQL)
    other = geo.golden_examples.create(STREETS, STREETS_SQL)
    with pytest.raises(Conflict):
        geo.golden_examples.update(other.id, question=IN_ITALY.upper())
    assert geo.golden_examples.update(made.id, question=IN_ITALY.upper()).question == IN_ITALY.upper()
    geo.connectors.create("second", make_cities(tmp_path, "second.db").url)
    geo.golden_examples.create(IN_ITALY, IN_ITALY_SQL, connector_id="second")


@pytest.mark.parametrize(
    ("question", "sql", "kind"),
    [
        ("", "SELECT 1", Invalid),
        (None, "SELECT 1", Invalid),
        ("x" * 100_000, "SELECT 1", Invalid),
        ("q", "", Invalid),
        ("q", None, Invalid),
        ("q", "DELETE FROM city", Forbidden),
        ("q", "SELECT 1; SELECT 2", Forbidden),
        ("q", "SELECT load_extension('x')", Forbidden),
    ],
)
def test_what_could_never_run_is_no_example(geo: Heedful, question: Any, sql: Any, kind: type[HeedfulError]) -> None:
    with pytest.raises(kind):
        geo.golden_examples.create(question, sql)
    made = geo.golden_examples.create(IN_ITALY, IN_ITALY_SQL)
    with pytest.raises(kind):
        geo.golden_examples.update(made.id, question=question, sql_query=sql)
    assert geo.golden_examples.list() == [made]


def test_updates_at_the_same_time_do_not_overwrite_each_other(geo: Heedful, open_store: Callable[..., Heedful]) -> None:
    second = open_store()
    made = geo.golden_examples.create("Question", "SELECT 0")
    for number in range(1, 8):
        with ThreadPoolExecutor(2) as threads:
            done = [
                threads.submit(geo.golden_examples.update, made.id, question=f"Question {number}"),
                threads.submit(second.golden_examples.update, made.id, sql_query=f"SELECT {number}"),
            ]
            for each in done:
                each.result()
        stored = geo.golden_examples.get(made.id)
        assert (stored.question, stored.sql_query) == (f"Question {number}", f"SELECT {number}")


def test_csv_and_jsonl_are_imported(geo: Heedful, tmp_path: Path) -> None:
    table = tmp_path / "examples.CSV"
    table.write_text(
        '\ufeffquestion,sql_query,note\n"How many, in Italy?","SELECT count(*)\nFROM city",x\n', encoding="utf-8"
    )
    imported = geo.golden_examples.import_file(table)
    assert [(each.question, each.sql_query, each.origin) for each in imported] == [
        ("How many, in Italy?", "SELECT count(*)\nFROM city", "imported")
    ]
    lines = jsonl(tmp_path, {"question": STREETS, "sql_query": STREETS_SQL, "more": 1})
    lines.write_text(lines.read_text() + "\n\n", encoding="utf-8")
    assert [each.question for each in geo.golden_examples.import_file(str(lines), connector_id="geo")] == [STREETS]
    assert len(geo.golden_examples.list()) == 2


def test_importing_again_brings_the_new_sql(geo: Heedful, tmp_path: Path) -> None:
    made = geo.golden_examples.create(IN_ITALY, IN_ITALY_SQL)
    [again] = geo.golden_examples.import_file(jsonl(tmp_path, {"question": IN_ITALY, "sql_query": STREETS_SQL}))
    assert (again.id, again.sql_query) == (made.id, STREETS_SQL)
    assert len(geo.golden_examples.list()) == 1


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        ({"question": "q", "sql_query": "DELETE FROM city"}, Forbidden),
        ({"question": "", "sql_query": "SELECT 1"}, Invalid),
        ({"question": "q"}, Invalid),
        ({"sql_query": "SELECT 1"}, Invalid),
        ({"question": 7, "sql_query": "SELECT 1"}, Invalid),
    ],
)
def test_one_bad_record_and_nothing_is_imported(
    geo: Heedful, tmp_path: Path, record: Any, kind: type[HeedfulError]
) -> None:
    with pytest.raises(kind, match="record 2"):
        geo.golden_examples.import_file(jsonl(tmp_path, {"question": STREETS, "sql_query": STREETS_SQL}, record))
    assert geo.golden_examples.list() == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", b'{"question": "q"'),
        ("a.jsonl", b"[1]"),
        ("a.jsonl", b"\xff\xfe"),
        ("a.csv", b"question,sql_query\n\xff,SELECT 1"),
        ("a.csv", b"question,sql_query\n" + b"x" * 200_000 + b",SELECT 1"),
        ("a.csv", b"q,s\na,b"),
        ("a.txt", b"question"),
    ],
)
def test_a_file_that_can_not_be_read_is_refused(geo: Heedful, tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(Invalid):
        geo.golden_examples.import_file(tmp_path / name)
    assert geo.golden_examples.list() == []


def test_a_file_that_is_not_there_is_not_found(geo: Heedful, tmp_path: Path) -> None:
    for path in (tmp_path / "nope.csv", tmp_path):
        with pytest.raises(NotFound):
            geo.golden_examples.import_file(path)


def test_what_people_say_was_right_can_be_promoted(geo: Heedful) -> None:
    done = geo.executions.execute_query(IN_ITALY_SQL, question=IN_ITALY).execution_id
    with pytest.raises(Conflict) as refused:
        geo.golden_examples.promote(done)
    assert refused.value.code == "not_proven"
    geo.feedback.create_positive(execution_id=done)
    wrong = geo.feedback.create_negative(execution_id=done)
    with pytest.raises(Conflict):
        geo.golden_examples.promote(done)
    geo.retract(wrong.id)
    made = geo.golden_examples.promote(done)
    assert (made.question, made.sql_query, made.origin, made.execution_id) == (
        IN_ITALY,
        IN_ITALY_SQL,
        "promoted",
        done,
    )
    with pytest.raises(Conflict):
        geo.golden_examples.promote(done)
    assert geo.golden_examples.promote(done, question="Count Italy's cities").question == "Count Italy's cities"


def test_nothing_is_promoted_by_itself(geo: Heedful) -> None:
    done = geo.executions.execute_query(IN_ITALY_SQL, question=IN_ITALY).execution_id
    geo.feedback.create_positive(execution_id=done)
    geo.chat.execution_cache_lookup(IN_ITALY)
    assert geo.golden_examples.list() == []


def test_an_execution_without_a_question_needs_one(geo: Heedful) -> None:
    done = geo.executions.execute_query(IN_ITALY_SQL).execution_id
    geo.feedback.create_positive(execution_id=done)
    with pytest.raises(Invalid) as refused:
        geo.golden_examples.promote(done)
    assert refused.value.field == "question"
    assert geo.golden_examples.promote(done, question=IN_ITALY).question == IN_ITALY


def test_sql_with_open_places_is_no_example(geo: Heedful) -> None:
    sql = "SELECT count(*) FROM city WHERE country = :country"
    done = geo.executions.execute_query(sql, question=IN_ITALY, parameters={"country": "Italy"}).execution_id
    geo.feedback.create_positive(execution_id=done)
    with pytest.raises(Invalid, match="country"):
        geo.golden_examples.promote(done)
    with pytest.raises(Invalid, match="country"):
        geo.golden_examples.create(IN_ITALY, sql)
    assert geo.golden_examples.list() == []


def test_what_is_not_there_can_not_be_promoted(geo: Heedful) -> None:
    with pytest.raises(NotFound):
        geo.golden_examples.promote("nope")
