"""Exports: every table in every format, filtered, in pages, and whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyarrow import parquet
from server import running

import heedful
from heedful import Conflict, Heedful, Invalid, NotFound, Signal, Unavailable
from heedful.insight import exported_rows
from heedful.insight.export_files import TABLES
from heedful.interfaces.cli.main import cli
from heedful.model import TABLE_NAMES, ColumnType, TableName
from heedful.testing import ManualClock, WordEmbedder

KETTLE = "A kettle can be sent back within thirty days."
FORMULA = '=HYPERLINK("http://evil.example","click")'


def lived(store: Heedful, clock: ManualClock) -> Heedful:
    """A project that has a row in most tables."""
    store.remember([KETTLE, "A lamp can be sent back within ten days."], metadata={"page": 1})
    result = store.recall("May I send a kettle back?")
    store.signal_recall(result.recall_id, helpful=[result.hits[0]], author="Ida")
    store.sessions.create("monday", metadata={"variant": "a", "weight": 1.5})
    store.sessions.add_message("monday", "user", "Hello, world")
    for score, comment in ((5, "Just what I asked for."), (1, FORMULA), (2, "-1 for this")):
        clock.advance(days=1)
        qa_id = store.recall("May I send a kettle back?", session_id="monday").qa_id
        assert qa_id is not None
        store.sessions.add_feedback("monday", qa_id, comment, score)
    store.sessions.add_session_feedback("monday", {"rating": "up", "comment": 'He said "yes",\nand so\tdid I.', "n": 1})
    return store


@pytest.fixture
def either_lived(either: Heedful, clock: ManualClock) -> Heedful:
    return lived(either, clock)


@pytest.fixture
def here(store: Heedful, clock: ManualClock) -> Heedful:
    return lived(store, clock)


def every(store: Heedful, table: TableName, **options: Any) -> list[dict[str, Any]]:
    """All rows, by pages."""
    found, cursor = [], None
    while True:
        page = store.insight.rows(table, cursor=cursor, **options)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found


@pytest.mark.parametrize("table", TABLE_NAMES)
def test_the_dictionary_has_the_columns_that_are_read(store: Heedful, table: TableName) -> None:
    if table != "recalls":
        assert [column.name for column in TABLES[table].columns] == list(exported_rows.columns(TABLES[table], now=0))
    assert [each.name for each in store.insight.dictionary()] == list(TABLE_NAMES)
    assert all(column.meaning.endswith(".") for each in store.insight.dictionary() for column in each.columns)


@pytest.mark.parametrize("table", TABLE_NAMES)
@pytest.mark.nightly
def test_every_format_has_the_same_rows(either_lived: Heedful, tmp_path: Path, table: TableName) -> None:
    rows = every(either_lived, table)
    for suffix in ("csv", "jsonl", "parquet"):
        made = either_lived.insight.export(table, tmp_path / f"table.{suffix}")
        assert (made.table, made.rows, made.path) == (table, len(rows), str(tmp_path / f"table.{suffix}"))
    lines = (tmp_path / "table.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == rows
    kinds: dict[str, ColumnType] = {column.name: column.type for column in TABLES[table].columns}
    with (tmp_path / "table.csv").open(encoding="utf-8", newline="") as file:
        cells = list(csv.DictReader(file))
    assert cells == [{name: cell(value, kinds[name]) for name, value in row.items()} for row in rows]
    read = parquet.read_table(tmp_path / "table.parquet").to_pylist()
    assert read == [{name: in_parquet(value, kinds[name]) for name, value in row.items()} for row in rows]


def cell(value: Any, kind: ColumnType) -> str:
    """A value as CSV has it, by the words of the documentation."""
    if value is None:
        return ""
    if kind == "boolean":
        return "true" if value else "false"
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False) if kind == "json" else str(value)
    return f"'{text}" if kind == "text" and text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def in_parquet(value: Any, kind: ColumnType) -> Any:
    if value is None:
        return None
    if kind == "time":
        return datetime.fromisoformat(value)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False) if kind == "json" else value


def test_what_was_said_is_in_the_rows(either_lived: Heedful) -> None:
    rows = every(either_lived, "feedback")
    result = {row["comment"]: row for row in rows}
    assert len(result) == 4
    formula = result[FORMULA]
    assert (formula["rating"], formula["score"], formula["target_type"], formula["session_id"]) == (
        *("down", 1, "entry", "monday"),
    )
    assert (formula["active"], formula["dataset"]) == (True, "main_dataset")
    assert result['He said "yes",\nand so\tdid I.']["extra"] == {"n": 1}
    [session] = every(either_lived, "sessions")
    assert session["metadata"] == {"variant": "a", "weight": 1.5}
    assert [row["role"] for row in every(either_lived, "messages")] == ["user"]
    assert {row["question"] for row in every(either_lived, "entries")} == {"May I send a kettle back?"}
    assert {row["kind"] for row in every(either_lived, "events")} >= {"signal", "feedback"}


def test_a_comment_that_is_a_formula_is_a_text_in_csv_and_verbatim_elsewhere(here: Heedful, tmp_path: Path) -> None:
    here.insight.export("feedback", tmp_path / "said.csv")
    here.insight.export("feedback", tmp_path / "said.jsonl")
    with (tmp_path / "said.csv").open(encoding="utf-8", newline="") as file:
        cells = [row["comment"] for row in csv.DictReader(file)]
    assert f"'{FORMULA}" in cells
    assert "'-1 for this" in cells
    assert not any(each.startswith(("=", "+", "-", "@", "\t", "\r")) for each in cells)
    lines = [json.loads(line) for line in (tmp_path / "said.jsonl").read_text(encoding="utf-8").splitlines()]
    assert FORMULA in [line["comment"] for line in lines]


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r"])
def test_every_way_to_begin_a_formula_is_taken_away(store: Heedful, first: str) -> None:
    store.sessions.create(f"{first}1+1".strip() or "s")
    store.sessions.add_message(f"{first}1+1".strip() or "s", "user", f"{first}1+1")
    output = io.BytesIO()
    store.insight.export("messages", output, format="csv")
    [row] = csv.DictReader(io.StringIO(output.getvalue().decode(), newline=""))
    assert row["content"] == f"'{first}1+1"


def test_what_was_taken_back_no_longer_stands(either_lived: Heedful) -> None:
    gone = every(either_lived, "feedback")[0]
    either_lived.retract(gone["feedback_id"])
    after = {row["feedback_id"]: row["active"] for row in every(either_lived, "feedback")}
    assert after.pop(gone["feedback_id"]) is False
    assert set(after.values()) == {True}


def test_signals_tell_whether_they_stand(here: Heedful) -> None:
    fact = here.recall("May I send a kettle back?").hits[0].fact_id
    result = here.signal(Signal(fact_id=fact, query="kettles", signal_type="not_helpful"))
    here.retract(result.event_ids[0])
    rows = {row["event_id"]: row for row in every(here, "signals")}
    assert rows[result.event_ids[0]]["active"] is False
    assert [row["signal"] for row in rows.values() if row["author"] == "Ida"] == ["helpful", "ignored"]


def test_facts_have_their_usefulness_now(here: Heedful, clock: ManualClock) -> None:
    rows = {row["text"]: row for row in every(here, "facts")}
    fact = rows[KETTLE]
    assert fact["overall_usefulness"] == pytest.approx(here.fact_stats(fact["fact_id"]).overall_usefulness)
    assert fact["helpful"] == 1
    clock.advance(days=70)
    later = {row["text"]: row for row in every(here, "facts")}[KETTLE]
    assert 0.5 < later["overall_usefulness"] < fact["overall_usefulness"]


def test_recalls_have_a_row_for_each_fact_that_was_shown(here: Heedful) -> None:
    rows = every(here, "recalls", limit=3)
    by_recall: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_recall.setdefault(row["recall_id"], []).append(row)
    assert len(by_recall) == 4
    for recall_id, shown in by_recall.items():
        receipt = here.receipt(recall_id)
        assert [(row["rank"], row["fact_id"], row["score"]) for row in shown] == [
            (each.rank, each.fact_id, each.score) for each in receipt.shown
        ]


@pytest.mark.parametrize("limit", [1, 2, 3, 1000])
@pytest.mark.parametrize("table", ["feedback", "entries", "sessions", "messages", "events", "recalls", "facts"])
@pytest.mark.nightly
def test_pages_together_are_all_rows_in_order(either_lived: Heedful, table: TableName, limit: int) -> None:
    assert every(either_lived, table, limit=limit) == every(either_lived, table)


@pytest.mark.parametrize("table", ["events", "recalls"])
def test_an_export_reads_page_by_page(
    here: Heedful, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: TableName
) -> None:
    here.insight.export(table, tmp_path / "at-once.csv")
    monkeypatch.setattr(exported_rows, "BATCH_SIZE", 2)
    monkeypatch.setattr(exported_rows, "RECEIPTS_BATCH_SIZE", 2)
    here.insight.export(table, tmp_path / "by-two.csv")
    assert (tmp_path / "by-two.csv").read_bytes() == (tmp_path / "at-once.csv").read_bytes()


def test_rows_are_chosen_by_time(either_lived: Heedful, clock: ManualClock) -> None:
    day = clock()
    comments = {row["comment"] for row in every(either_lived, "feedback", since=day)}
    assert comments == {"-1 for this", 'He said "yes",\nand so\tdid I.'}
    before = {row["comment"] for row in every(either_lived, "feedback", until=day)}
    assert before == {"Just what I asked for.", FORMULA}
    assert every(either_lived, "feedback", since=day + timedelta(days=1)) == []


@pytest.mark.slow
def test_rows_are_chosen_by_dataset(open_either: Callable[..., Heedful], clock: ManualClock) -> None:
    store = lived(open_either(), clock)
    store.remember("A toaster has two slots.", dataset="toasters")
    qa_id = store.recall("How many slots?", dataset="toasters", session_id="tuesday").qa_id
    assert qa_id is not None
    store.sessions.add_feedback("tuesday", qa_id, "Wrong.", 1)
    assert [row["comment"] for row in every(store, "feedback", dataset="toasters", limit=1)] == ["Wrong."]
    assert [row["qa_id"] for row in every(store, "entries", dataset="toasters", limit=1)] == [qa_id]
    assert [row["text"] for row in every(store, "facts", dataset="toasters")] == ["A toaster has two slots."]
    assert {row["dataset"] for row in every(store, "recalls", dataset="toasters")} == {"toasters"}
    with pytest.raises(Invalid, match="belong to no dataset"):
        store.insight.rows("sessions", dataset="toasters")
    with pytest.raises(NotFound, match="no dataset 'lamps'"):
        store.insight.rows("feedback", dataset="lamps")


def test_another_project_is_not_seen(open_store: Callable[..., Heedful], clock: ManualClock) -> None:
    lived(open_store(), clock)
    other = open_store(project="other")
    other.remember("A toaster has two slots.")
    for table in TABLE_NAMES:
        assert len(every(other, table)) == (1 if table == "facts" else 0), table


def test_an_empty_project_has_headings_and_no_rows(either: Heedful, tmp_path: Path) -> None:
    for suffix in ("csv", "jsonl", "parquet"):
        assert either.insight.export("feedback", tmp_path / f"empty.{suffix}").rows == 0
    assert (tmp_path / "empty.csv").read_text().startswith("feedback_id,session_id,target_type")
    assert (tmp_path / "empty.jsonl").read_bytes() == b""
    assert parquet.read_table(tmp_path / "empty.parquet").num_rows == 0


def test_parquet_has_the_meaning_of_each_column(here: Heedful, tmp_path: Path) -> None:
    here.insight.export("feedback", tmp_path / "said.parquet")
    schema = parquet.read_schema(tmp_path / "said.parquet")
    for column in TABLES["feedback"].columns:
        assert schema.field(column.name).metadata[b"meaning"].decode() == column.meaning


def test_a_file_is_not_replaced_unless_that_is_asked_for(here: Heedful, tmp_path: Path) -> None:
    file = tmp_path / "said.csv"
    file.write_text("precious")
    with pytest.raises(Conflict, match="already exists"):
        here.insight.export("feedback", file)
    assert file.read_text() == "precious"
    here.insight.export("feedback", file, overwrite=True)
    assert file.read_text().startswith("feedback_id")
    with pytest.raises(Invalid, match="not a file"):
        here.insight.export("feedback", tmp_path, format="csv", overwrite=True)


def test_an_export_that_fails_leaves_nothing(here: Heedful, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "said.csv").write_text("precious")
    real = exported_rows.every

    def failing(*args: Any) -> Any:
        with closing(real(*args)) as pages:
            for number, rows in enumerate(pages):
                if number == 2:
                    raise Unavailable("the store went away")
                yield rows

    monkeypatch.setattr(exported_rows, "BATCH_SIZE", 1)
    monkeypatch.setattr(exported_rows, "every", failing)
    with pytest.raises(Unavailable):
        here.insight.export("feedback", folder / "said.csv", overwrite=True)
    assert [each.name for each in folder.iterdir()] == ["said.csv"]
    assert (folder / "said.csv").read_text() == "precious"


def test_a_folder_that_is_not_there_is_told(here: Heedful, tmp_path: Path) -> None:
    with pytest.raises(Unavailable) as refused:
        here.insight.export("feedback", tmp_path / "nowhere" / "said.csv")
    assert refused.value.code == "file_unwritable"
    assert f"there is no folder {tmp_path / 'nowhere'}" in refused.value.message
    assert str(refused.value.remedy).startswith("Make the folder")


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"table": "opinions", "path": "a.csv"}, "table"),
        ({"table": "feedback", "path": "a.xlsx"}, "format"),
        ({"table": "feedback", "path": "a.csv", "format": "xml"}, "format"),
        ({"table": "feedback", "path": 5}, "format"),
        ({"table": "feedback", "path": 5, "format": "csv"}, "path"),
        ({"table": "feedback", "path": "a.csv", "since": "yesterday"}, "since"),
        ({"table": "feedback", "path": "a.csv", "overwrite": "yes"}, "overwrite"),
        (
            {
                "table": "feedback",
                "path": "a.csv",
                "since": datetime(2026, 2, 1, tzinfo=UTC),
                "until": datetime(2026, 1, 1, tzinfo=UTC),
            },
            "since",
        ),
    ],
)
def test_what_can_t_be_exported_is_refused(here: Heedful, options: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        here.insight.export(**options)
    assert refused.value.field == field
    assert not Path("a.csv").exists()


@pytest.mark.parametrize("cursor", ["", "5", "a", "z.5", "a.five", "a.5.5", "b.5", 5, "a.\0", "a.99999999999999999999"])
@pytest.mark.parametrize("table", ["feedback", "recalls"])
def test_a_cursor_that_no_page_gave_is_refused(here: Heedful, table: TableName, cursor: Any) -> None:
    if (table, cursor) == ("recalls", "a.5.5"):
        cursor = "a.5.5.5.5"
    with pytest.raises(Invalid, match="cursor"):
        here.insight.rows(table, cursor=cursor)


def test_parquet_without_its_extra_says_what_to_install(
    here: Heedful, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(Unavailable, match="pyarrow is missing") as refused:
        here.insight.export("feedback", tmp_path / "said.parquet")
    assert (refused.value.code, "heedful[parquet]" in (refused.value.remedy or "")) == ("extra_missing", True)
    assert list(tmp_path.glob("*.parquet*")) == []


@pytest.mark.slow
def test_a_client_writes_the_same_file_where_it_is(tmp_path: Path) -> None:
    with running(tmp_path / "served.db") as server, server.connect() as client:
        client.remember(KETTLE, metadata={"pages": [1, 2]})
        client.sessions.create("monday")
        for number in range(5):
            client.sessions.add_session_feedback("monday", {"rating": "down", "comment": f"={number}"})
        client.recall("May I send a kettle back?")
        for table in TABLE_NAMES:
            for suffix in ("csv", "jsonl"):
                client.insight.export(table, tmp_path / f"{table}.{suffix}")
        with pytest.raises(Conflict):
            client.insight.export("feedback", tmp_path / "feedback.csv")
        with pytest.raises(NotFound):
            client.insight.export("feedback", tmp_path / "lamps.csv", dataset="lamps")
        assert not (tmp_path / "lamps.csv").exists()
    with heedful.open(tmp_path / "served.db", embedding=WordEmbedder()) as store:
        for table in TABLE_NAMES:
            for suffix in ("csv", "jsonl"):
                store.insight.export(table, tmp_path / f"{table}-here.{suffix}")
                theirs = (tmp_path / f"{table}.{suffix}").read_text()
                assert (tmp_path / f"{table}-here.{suffix}").read_text() == theirs, table


def test_the_command_writes_files_and_standard_output(store: Heedful, path: Path, tmp_path: Path) -> None:
    def run(*arguments: str) -> Any:
        return CliRunner().invoke(cli, ["--store", str(path), "--embedding", "fast", "insight", *arguments])

    store.sessions.create("monday")
    store.sessions.add_message("monday", "user", "Hello, world")
    store.sessions.add_session_feedback("monday", {"rating": "up"})
    file = tmp_path / "events.jsonl"
    done = run("export", "events", str(file))
    assert done.exit_code == 0, done.output
    assert done.stdout == f"1 row of events in {file}\n"
    assert isinstance(run("export", "events", str(file)).exception, Conflict)
    assert run("export", "events", str(file), "--force").exit_code == 0
    shown = run("export", "messages", "-", "--format", "csv")
    [row] = csv.DictReader(io.StringIO(shown.stdout, newline=""))
    assert row["content"] == "Hello, world"
    assert isinstance(run("export", "messages", "-").exception, Invalid)
    assert run("export", "opinions", "-").exit_code == 2
    assert json.loads(run("dictionary", "--json").stdout)[0]["name"] == "feedback"
    assert "feedback_id" in run("dictionary").stdout
