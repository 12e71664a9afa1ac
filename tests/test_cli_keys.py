"""The command line on a server: the same commands, keys, and what only works where the store is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from server import Running, running

from heedful import Heedful, HeedfulError, etag
from heedful.errors import Conflict, Forbidden, Invalid, NotFound, Unavailable
from heedful.interfaces.cli.main import cli

Run = Callable[..., Result]


@pytest.fixture
def local(path: Path, store: Heedful) -> Run:
    """Calls the command line on a store."""
    store.close()

    def call(*arguments: str) -> Result:
        return CliRunner().invoke(cli, ["--store", str(path), "--embedding", "fast", *arguments])

    return call


@pytest.fixture
def server(path: Path) -> Iterator[Running]:
    with running(path) as server:
        yield server


@pytest.fixture
def remote(server: Running, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Calls the command line on a server."""
    monkeypatch.setenv("HEEDFUL_API_KEY", server.key)
    return lambda *arguments: CliRunner().invoke(cli, ["--store", server.url, *arguments])


def read(result: Result) -> Any:
    assert result.exit_code == 0, (result.output, result.exception)
    return json.loads(result.stdout)


def shown(result: Result) -> str:
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def refused(result: Result) -> HeedfulError:
    assert isinstance(result.exception, HeedfulError), result.output
    return result.exception


@pytest.mark.slow
def test_the_loop_runs_on_a_server(remote: Run, server: Running) -> None:
    (fact,) = read(remote("remember", "The office opens at eight.", "--json"))["facts"]
    recall = read(remote("recall", "When does the office open?", "--session-id", "s", "--json"))
    assert recall["hits"][0]["fact_id"] == fact["fact_id"]
    assert "1 signal, 1 fact updated" in shown(remote("signal", "--recall", recall["recall_id"], "--used", "1"))
    assert "The office opens" in shown(remote("stats", fact["fact_id"]))
    shown(remote("sessions", "add-feedback", "s", recall["qa_id"], "--feedback-score", "5"))
    assert read(remote("improve", "--json"))["entries"] == 1
    assert shown(remote("datasets")) == "main_dataset\n"
    assert "ok" in shown(remote("doctor"))
    with server.connect() as connected:
        assert connected.fact_stats(fact["fact_id"]).signal_count >= 1


def test_files_are_read_where_the_command_runs(remote: Run, tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("The printer is out of toner.", encoding="utf-8")
    assert "1 new" in shown(remote("remember", "--file", str(tmp_path / "note.md")))


@pytest.mark.slow
def test_the_project_is_named_as_ever(remote: Run, server: Running) -> None:
    shown(remote("--project", "other", "remember", "Elsewhere."))
    with server.connect("other") as connected:
        assert connected.datasets() == ["main_dataset"]
    assert shown(remote("datasets")) == ""


def test_a_setting_may_name_the_server(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_STORE", server.url)
    monkeypatch.setenv("HEEDFUL_API_KEY", server.key)
    assert "1 new" in shown(CliRunner().invoke(cli, ["remember", "The office opens at eight."]))


def test_without_a_good_key_nothing_is_done(remote: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_API_KEY", "hf_wrong")
    assert isinstance(refused(remote("datasets")), Forbidden)
    monkeypatch.delenv("HEEDFUL_API_KEY")
    assert refused(remote("datasets")).code == "key_missing"


def test_a_server_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    for address in ("http://127.0.0.1:9", "HTTP://127.0.0.1:9"):
        result = CliRunner().invoke(cli, ["--store", address, "datasets"])
        assert isinstance(refused(result), Unavailable)


@pytest.mark.parametrize("command", ["reembed", "serve"])
def test_what_needs_the_file_says_so(remote: Run, command: str) -> None:
    error = refused(remote(command))
    assert isinstance(error, Invalid)
    assert (error.field, command in error.message) == ("store", True)


@pytest.mark.parametrize("option", ["--embedding", "--language-model", "--sessions"])
def test_what_the_server_has_can_not_be_chosen_by_a_caller(remote: Run, option: str) -> None:
    assert refused(remote(option, "x", "datasets")).field == option[2:].replace("-", "_")


def test_a_key_is_made_shown_once_and_revoked(local: Run) -> None:
    made = read(local("keys", "add", "agent", "--json"))
    assert made["api_key"].startswith("hf_")
    assert made["scopes"] == ["read", "write", "feedback"]
    other = shown(local("keys", "add", "site", "--scope", "feedback", "--rate-limit", "5"))
    assert other.startswith("hf_")
    assert "it may: feedback" in other
    listed = shown(local("keys", "list"))
    assert made["api_key"] not in listed
    assert listed.count("active") == 2
    assert "agent is revoked" in shown(local("keys", "revoke", made["key_id"], "--yes"))
    assert [each["revoked_at"] is None for each in read(local("keys", "list", "--json"))] == [False, True]
    assert isinstance(refused(local("keys", "revoke", "nope", "--yes")), NotFound)


def test_a_key_of_the_command_line_opens_the_server(
    remote: Run, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = read(remote("keys", "add", "reader", "--scope", "read", "--json"))
    monkeypatch.setenv("HEEDFUL_API_KEY", made["api_key"])
    shown(remote("datasets"))
    assert refused(remote("remember", "text")).code == "scope_missing"


def test_a_token_names_what_may_be_rated(local: Run) -> None:
    token = read(local("keys", "token", "--target", "session_id=a,b", "--target", "session_id=s,qa_id=7", "--json"))
    assert [{name: value for name, value in each.items() if value} for each in token["targets"]] == [
        {"session_id": "a,b"},
        {"session_id": "s", "qa_id": "7"},
    ]
    text = shown(local("keys", "token", "--target", "recall_id=1", "--author", "Ida", "--expires-in", "60"))
    assert text.startswith("hft_")
    assert "for Ida" in text
    assert refused(local("keys", "token", "--target", "planet=Mars")).field == "targets[0].planet"


def test_changes_are_refused_that_somebody_else_has_overtaken(local: Run) -> None:
    session = read(local("sessions", "add", "s", "--metadata", "a=1", "--json"))
    seen = etag(session["metadata"])
    shown(local("sessions", "update-metadata", "s", "a=2", "--if-match", seen))
    assert isinstance(refused(local("sessions", "update-metadata", "s", "a=3", "--if-match", seen)), Conflict)
    assert isinstance(refused(local("sessions", "remove-metadata", "s", "a", "--if-match", seen)), Conflict)
