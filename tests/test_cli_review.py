"""heedful review."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import heedful
from heedful import Conflict
from heedful.interfaces.cli.main import cli

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs commands on a store in which somebody disliked an answer."""
    store = tmp_path / "s.db"
    with heedful.open(store, embedding="fast") as memory:
        memory.remember("The Lisbon office opens at eight.")
        result = memory.recall("When does the Lisbon office open?", session_id="monday")
        memory.sessions.add_feedback("monday", str(result.qa_id), "It opens at nine.", 1, author="ida")

    def call(*arguments: str, **options: Any) -> Result:
        return CliRunner().invoke(cli, ["--store", str(store), "--embedding", "fast", *arguments], **options)

    return call


def read(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.slow
def test_an_item_is_seen_fixed_resolved_and_undone(run: Run) -> None:
    (item,) = read(run("review", "list", "--json"))["items"]
    item_id = item["item_id"]
    assert item["comment"] == "It opens at nine."
    assert item_id in run("review", "list").stdout
    shown = run("review", "show", item_id).stdout
    assert "  asked: When does the Lisbon office open?\n" in shown
    assert "The Lisbon office opens at eight." in shown
    case = read(run("review", "show", item_id, "--json"))
    fact_id = case["evidence"][0]["fact_id"]
    text = "The Lisbon office opens at nine."
    done = read(
        run(
            *("review", "fix", item_id, "supersede", "--fact-id", fact_id, "--text", text),
            *("--note", "Since May.", "--author", "eva", "--json"),
        )
    )
    assert "(superseded)" in run("review", "show", item_id).stdout
    again = run("review", "ask-again", item_id).stdout
    assert f"  now: {text} [1]\n" in again
    assert again.endswith("changed\n")
    assert read(run("review", "ask-again", item_id, "--json"))["changed"] is True
    output = run("review", "assign", item_id, "eva", "--author", "ida").stdout
    assert output == f"item {item_id}: open, assigned to eva\n"
    assert read(run("review", "assign", item_id, "--json"))["assignee"] is None
    assert run("review", "resolve", item_id, "--author", "eva").stdout == f"item {item_id}: resolved\n"
    assert isinstance(run("review", "dismiss", item_id, "--author", "ole").exception, Conflict)
    assert run("review", "list").stdout == "Nothing to review.\n"
    assert item_id in run("review", "list", "--status", "all").stdout
    assert read(run("review", "reopen", item_id, "--json"))["status"] == "open"
    assert run("review", "undo", done["event_id"]).stdout == f"supersede, event {done['event_id']}, is undone\n"
    assert "supersede (undone)" in run("review", "show", item_id).stdout


@pytest.mark.slow
def test_a_fix_says_how_to_take_it_back(run: Run) -> None:
    (item,) = read(run("review", "list", "--json"))["items"]
    (opinion,) = read(run("review", "show", item["item_id"], "--json"))["opinions"]
    output = run("review", "fix", item["item_id"], "retract", "--event-id", opinion["event_id"]).stdout
    event_id = output.split()[-1]
    assert output.startswith(f"retract, event {event_id}; to undo it: ")
    assert run("review", "list").stdout == "Nothing to review.\n"
    assert run("review", "undo", event_id).exit_code == 0
    assert item["item_id"] in run("review", "list").stdout
