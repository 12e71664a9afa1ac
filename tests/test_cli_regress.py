"""heedful regress, and --check of the commands that change what recalls find."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import heedful
from heedful.interfaces.cli.main import cli

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs commands on a store with eight rated questions about a document."""
    store, book = tmp_path / "s.db", tmp_path / "book.jsonl"
    topics = ("parcels", "refunds", "invoices", "vouchers", "couriers", "stickers", "baskets", "reviews")
    book.write_text("".join(json.dumps({"text": f"The rule for {topic} is rule {topic}."}) + "\n" for topic in topics))
    with heedful.open(store, embedding="fast", worker=False) as memory:
        memory.remember(book)
        for topic in topics:
            recall = memory.recall(f"What is the rule for {topic}?")
            memory.signal_recall(recall.recall_id, helpful=[recall.hits[0]], author="ann")

    def call(*arguments: str, **options: Any) -> Result:
        return CliRunner().invoke(cli, ["--store", str(store), "--embedding", "fast", *arguments], **options)

    return call


def cut(folder: Path) -> Path:
    """The document with one rule cut short."""
    book = folder / "book.jsonl"
    lines = book.read_text().splitlines()
    book.write_text("\n".join([json.dumps({"text": "The rule for parcels is"}), *lines[1:]]))
    return book


@pytest.mark.slow
def test_an_unchanged_store(run: Run, tmp_path: Path) -> None:
    result = run("regress", "--fail-below", "1")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[:2] == [
        "the store as it is: 8 of 8 rated questions compared (8 needs)",
        "0 better, 8 the same, 0 worse; 100.0% don't get worse (100.0% to 100.0%)",
    ]


@pytest.mark.slow
def test_a_worse_copy_fails_with_1_and_is_reported(run: Run, tmp_path: Path) -> None:
    copy, html = tmp_path / "copy.db", tmp_path / "report.html"
    assert run("copy", str(tmp_path / "s.db"), str(copy)).exit_code == 0
    changed = CliRunner().invoke(
        cli, ["--store", str(copy), "--embedding", "fast", "remember", "--file", str(cut(tmp_path))]
    )
    assert changed.exit_code == 0, changed.output
    result = run("regress", "--against", str(copy), "--fail-below", "1", "--html", str(html))
    assert result.exit_code == 1
    assert "What is the rule for parcels?" in result.stdout
    assert "  only a part of the fact is there: 'The rule for parcels is'" in result.stdout
    assert run("regress", "--against", str(copy), "--fail-below", "0.5").exit_code == 0
    page = html.read_text()
    assert "<h1>What people rated well, and against=" in page
    assert "The rule for parcels is rule parcels." in page
    assert "already exists" in str(run("regress", "--html", str(html)).exception)
    report = json.loads(run("regress", "--against", str(copy), "--json").stdout)
    assert (report["worse"], report["worst"][0]["facts"][0]["new_rank"]) == (1, None)


def test_nothing_rated_fails_a_check(tmp_path: Path) -> None:
    heedful.open(tmp_path / "n.db", embedding="fast", worker=False).close()
    arguments = ["--store", str(tmp_path / "n.db"), "--embedding", "fast", "regress", "--fail-below", "0"]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 1
    assert result.stdout.startswith("Nobody has rated anything well yet")


def test_a_server_takes_no_other_store(run: Run) -> None:
    result = CliRunner().invoke(cli, ["--store", "http://localhost:1", "regress", "--against", "x.db"])
    assert "against names another store" in str(result.exception)


@pytest.mark.slow
def test_policy_shows_what_it_would_do(run: Run) -> None:
    refused = run("policy", "documented", "--check", input="n\n")
    assert refused.exit_code == 1
    assert "policy=documented: 8 of 8 rated questions compared" in refused.stdout
    assert "adaptive" in run("policy").stdout
    assert run("policy", "documented", "--check", "--yes").exit_code == 0
    assert "documented" in run("policy").stdout


@pytest.mark.slow
def test_reembed_shows_what_it_would_do(run: Run, tmp_path: Path) -> None:
    store = ["--store", str(tmp_path / "s.db"), "--embedding", "bundled", "reembed", "--check"]
    refused = CliRunner().invoke(cli, store, input="n\n")
    assert refused.exit_code == 1
    assert "embedding=bundled: 8 of 8 rated questions compared" in refused.stdout
    assert run("facts").exit_code == 0
    done = CliRunner().invoke(cli, [*store, "--yes"])
    assert done.exit_code == 0, done.output
    assert "it was opened with wordllama" in str(run("recall", "parcels").exception)


@pytest.mark.slow
def test_remember_shows_what_a_document_would_do(run: Run, tmp_path: Path) -> None:
    book = cut(tmp_path)
    refused = run("remember", "--file", str(book), "--check", input="n\n")
    assert refused.exit_code == 1
    assert "7 the same, 1 worse" in refused.stdout
    assert "rule parcels" in run("facts").stdout
    done = run("remember", "--file", str(book), "--check", "--yes")
    assert done.exit_code == 0, done.output
    assert "rule parcels" not in run("facts").stdout


@pytest.mark.slow
def test_import_shows_what_it_would_do(run: Run, tmp_path: Path) -> None:
    other = tmp_path / "mem0.json"
    other.write_text(json.dumps({"results": [{"id": "1", "memory": "The rule for parcels is old."}]}))
    done = run("import", "--from", "mem0", str(other), "--check", "--yes")
    assert done.exit_code == 0, done.output
    assert "8 of 8 rated questions compared" in done.stdout
    assert "facts: 1 new" in done.stdout
