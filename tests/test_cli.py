"""The command line: what it prints, as JSON too, and how it says that something is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from command import run_main

from heedful.interfaces.cli.main import cli

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def call(*arguments: str, **options: Any) -> Result:
        return CliRunner().invoke(cli, ["--store", str(tmp_path / "s.db"), *arguments], **options)

    return call


def read(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.slow
def test_the_loop_by_json(run: Run) -> None:
    fact, other = [each["fact_id"] for each in read(run("remember", "Ada is the CEO.", "Bo sings.", "--json"))["facts"]]
    recall = read(run("recall", "Who is the CEO?", "--json"))
    assert recall["hits"][0]["fact_id"] == fact
    given = read(run("signal", "--recall", recall["recall_id"], "--used", "1", "--json"))
    assert {each["fact_id"]: each["signal_type"] for each in given["signals"]} == {fact: "used", other: "ignored"}
    assert read(run("stats", fact, "--json"))["overall_usefulness"] == pytest.approx(0.6, abs=1e-6)
    explained = read(run("explain", "Who is the chief executive?", "--policy", "documented", "--json"))["hits"][0][
        "explanation"
    ]
    assert explained["matched_context"] == "Who is the CEO?"
    assert read(run("retract", given["event_ids"][0], "--json"))["updated_facts"] == [fact]
    found = read(run("detect", recall["recall_id"], "Ada is the CEO.", "--json"))
    assert {each["fact_id"]: each["signal_type"] for each in found}[fact] == "used"
    assert read(run("supersede", fact, "Cy is the CEO.", "--json"))["fact_id"] == fact
    assert read(run("forget", other, "--json", "--yes"))["facts"] == 1
    assert all(check["ok"] for check in read(run("doctor", "--json")))


def test_tables_name_facts_ranks_and_receipts(run: Run) -> None:
    run("remember", "Ada is the CEO.")
    shown = run("recall", "Who is the CEO?").stdout
    assert "Ada is the CEO." in shown
    assert "recall_id" in shown
    assert "score = 0.7 ×" in run("explain", "Who is the CEO?", "--policy", "documented").stdout


@pytest.mark.slow
def test_explain_shows_a_question_as_it_was_asked_and_indents_lines_that_break(run: Run) -> None:
    question = "Who is the [bold]CEO[/bold] of [red]Acme\\[1]?"
    run("remember", "Ada is the CEO.")
    recall = read(run("recall", question, "--json"))
    run("signal", "--recall", recall["recall_id"], "--used", "1")
    assert f"   context: {question!r} (similarity 1.0000)" in run("explain", question).stdout.splitlines()
    narrow = run("explain", question, env={"FORCE_COLOR": "1", "COLUMNS": "60"}).stdout
    lines = click.unstyle(narrow).splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("   relevance ="))
    assert lines[start + 1].startswith("   ")


def test_facts_are_listed_by_metadata_and_page_by_page(run: Run) -> None:
    run("remember", "Ada sings.", "Bo sings.", "--metadata", "lang=en", "--source", "choir")
    run("remember", "Eva singt.", "--metadata", "lang=de")
    page = read(run("facts", "--where", "lang=en", "--newest-first", "--limit", "1", "--json"))
    assert [fact["text"] for fact in page["items"]] == ["Bo sings."]
    page = read(run("facts", "--source", "choir", "--limit", "1", "--cursor", page["next_cursor"], "--json"))
    assert page["items"] == []
    table = run("facts", "--limit", "2").stdout
    assert "Ada sings." in table
    assert "there is more: --cursor" in table
    assert run("facts", "--where", "lang=fr").stdout == "No facts found in main_dataset.\n"


def test_a_recall_goes_on_where_the_last_one_ended(run: Run) -> None:
    run("remember", "Ada sings.", "Bo sings.", "Eva sings.")
    first = read(run("recall", "Who sings?", "-k", "2", "--json"))
    second = read(run("recall", "Who sings?", "-k", "2", "--cursor", first["next_cursor"], "--json"))
    assert len({hit["fact_id"] for page in (first, second) for hit in page["hits"]}) == 3
    assert f"--cursor {first['next_cursor']}" in run("recall", "Who sings?", "-k", "2").stdout


@pytest.mark.slow
def test_conflicts_are_shown_and_facts_are_audited(run: Run) -> None:
    old = read(run("remember", "The gym opens at 6.", "--json"))["facts"][0]["fact_id"]
    shown = run("remember", "The gym opens at 7.").stdout
    assert "another fact says 6 instead of 7: The gym opens at 6." in shown
    assert f"to replace it: heedful supersede {old} --by " in shown
    item = read(run("review", "list", "--json"))["items"][0]
    new = read(run("review", "show", item["item_id"], "--json"))["evidence"][0]["fact_id"]
    run("review", "fix", item["item_id"], "supersede", "--fact-id", old, "--by", new)
    assert read(run("review", "list", "--json"))["items"] == []
    assert "nothing found" in run("doctor", "--facts").stdout
    run("remember", "The gym opens at 7.", "--source", "wiki")
    audit = run("doctor", "--facts").stdout
    assert "1 duplicate: Keep one of each" in audit
    assert read(run("doctor", "--facts", "--limit", "1", "--json"))["findings"][0]["count"] == 1


def test_lines_come_from_standard_input(run: Run) -> None:
    assert run("remember", "-", input="one fact\n\nanother fact\n").stdout.startswith("2 new")


def test_a_file_that_can_not_be_read_is_named_and_the_rest_is_remembered(run: Run, tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text("A good file.")
    (tmp_path / "bad.txt").write_bytes(b"\xff\x00")
    result = run("remember", "--file", str(tmp_path / "good.txt"), "--file", str(tmp_path / "bad.txt"))
    assert result.exit_code == 1
    assert result.stdout.startswith("1 new")
    assert "not remembered" in result.stderr
    assert "bad.txt" in result.stderr


def test_a_whole_dataset_goes_only_when_asked_twice(run: Run) -> None:
    run("remember", "one fact")
    assert run("forget", "--dataset", "main_dataset", input="n\n").exit_code == 1
    assert read(run("stats", "--json"))["total_facts"] == 1
    assert read(run("forget", "--dataset", "main_dataset", "--yes", "--json"))["facts"] == 1


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["recall", " "], 2, "error: QUERY must not be empty"),
        (["recall", "x", "--dataset", "nope"], 3, "has no dataset 'nope'"),
        (["forget"], 2, "Pass FACT_IDS, --source, --dataset or --author"),
        (["signal"], 2, "--recall RECALL_ID --used 1"),
        (["retract", "nope"], 3, "no event 'nope'"),
    ],
)
def test_an_error_is_a_line_with_what_to_do(
    tmp_path: Path, empty_store: bytes, arguments: list[str], code: int, said: str
) -> None:
    (tmp_path / "s.db").write_bytes(empty_store)
    done = run_main("--store", str(tmp_path / "s.db"), *arguments)
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr
