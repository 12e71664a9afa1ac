"""A store or a project that is named by mistake: commands about what is there say so, and make nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import orjson
import pytest
from cli_commands import leaf_commands
from click.testing import CliRunner, Result

from heedful import NotFound
from heedful.interfaces.cli.main import cli
from heedful.store import Store, session_projects
from heedful.testing import WordEmbedder

pytestmark = pytest.mark.usefixtures("warm_processes")

BEGIN = {
    "connect",
    "demo",
    "golden add",
    "golden import",
    "import",
    "mcp",
    "migrate",
    "proxy",
    "remember",
    "serve",
    "sessions add-entry",
    "sessions add-message",
    "sessions add-session-feedback",
    "sessions add",
    "worker",
}
"""Commands with which a store may begin."""

ELSEWHERE = {"copy", "try"}
"""Commands whose store is an argument, or that open none."""


COMMANDS = {name: command for name, command in leaf_commands(cli) if name not in BEGIN | ELSEWHERE}


def filled_in(command: click.Command) -> list[str]:
    """Something for all that a command insists on."""
    items: list[str] = []
    for each in command.params:
        if not each.required:
            continue
        value = each.type.choices[0] if isinstance(each.type, click.Choice) else "x=y"
        items += [value] if isinstance(each, click.Argument) else [each.opts[0], value]
    return items


Run = Callable[..., Result]


@pytest.fixture
def run(path: Path) -> Run:
    def call(*arguments: str, store: Path | str = path) -> Result:
        return CliRunner().invoke(cli, ["--store", str(store), *arguments])

    return call


def refused(result: Result) -> NotFound:
    assert isinstance(result.exception, NotFound), result.output
    return result.exception


def test_the_commands_that_may_begin_a_store_are_all_there() -> None:
    assert {name for name, _ in leaf_commands(cli)} >= BEGIN | ELSEWHERE


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_about_a_store_makes_none(run: Run, tmp_path: Path, name: str) -> None:
    error = refused(run(*name.split(), *filled_in(COMMANDS[name])))
    assert error.code == "store_missing"
    assert str(tmp_path / "store.db") in error.message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"backup", "keys add", "keys token"}))
def test_what_is_about_a_project_names_those_that_are_there(run: Run, path: Path, open_store: Any, name: str) -> None:
    open_store(path, project="helpdesk").sessions.create("s")
    error = refused(run("--project", "helpdeks", *name.split(), *filled_in(COMMANDS[name])))
    assert (error.field, error.value) == ("project", "helpdeks")
    assert "Did you mean 'helpdesk'? There are: helpdesk" in str(error.remedy)


def test_stores_of_a_near_name_are_named(run: Run, tmp_path: Path, empty_store: bytes) -> None:
    for name in ("helpdesk.db", "shop.db", "helpdesk.txt"):
        (tmp_path / name).write_bytes(empty_store)
    text = str(refused(run("stats", store=tmp_path / "helpdeks.db")).remedy)
    assert f"Did you mean {tmp_path / 'helpdesk.db'}? " in text
    assert "shop.db" not in text
    assert "heedful remember makes a new store" in text
    assert "helpdesk.db" in str(refused(run("stats", store=tmp_path / "helpdesk")).remedy)
    assert "Did you mean" not in str(refused(run("stats", store=tmp_path / "invoices.db")).remedy)


@pytest.mark.slow
def test_it_is_an_error_like_others(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "heedful", "--store", str(tmp_path / "s.db"), "stats"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr.startswith(f"error: there is no store at {tmp_path / 's.db'}\n  Check --store")
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    told = orjson.loads(done.stderr)["error"]
    assert (told["code"], told["field"]) == ("store_missing", "store")
    assert list(tmp_path.iterdir()) == []


def test_a_url_names_a_file_too(run: Run, path: Path) -> None:
    assert refused(run("stats", store=f"sqlite:///{path}")).code == "store_missing"
    assert not path.exists()


@pytest.mark.slow
def test_the_project_that_nobody_named_may_be_missing_where_there_are_others(
    run: Run, path: Path, open_store: Any
) -> None:
    open_store(path, project="shop").sessions.create("s")
    error = refused(run("sessions", "list"))
    assert error.value == "default"
    assert str(error.remedy) == "There are: shop; choose one by heedful --project NAME …"
    assert run("--project", "shop", "sessions", "list").exit_code == 0
    # These are about the whole store.
    for whole in (["verify"], ["jobs", "list"], ["doctor"], ["insight", "dictionary"]):
        assert run(*whole).exit_code == 0


def test_a_store_in_which_nothing_was_written_is_there(run: Run, path: Path, empty_store: bytes) -> None:
    path.write_bytes(empty_store)
    assert run("sessions", "list").stdout.startswith("No sessions.")
    assert "There is none yet" in str(refused(run("--project", "shop", "sessions", "list")).remedy)


def test_many_projects_are_not_all_named(run: Run, path: Path, open_store: Any) -> None:
    for number in range(13):
        open_store(path, project=f"p{number}").sessions.create("s")
    text = str(refused(run("--project", "shop", "stats")).remedy)
    assert "p9, and 3 more" in text
    assert "Did you mean" not in text


def test_settings_name_a_project_as_an_option_does(
    run: Run, path: Path, open_store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_store(path).remember("The shop opens at nine.")
    monkeypatch.setenv("HEEDFUL_PROJECT", "shop")
    assert refused(run("stats")).value == "shop"
    assert refused(run("jobs", "list")).value == "shop"


def test_the_dashboards_own_option_is_looked_at(run: Run, tmp_path: Path, path: Path, empty_store: bytes) -> None:
    path.write_bytes(empty_store)
    missing = tmp_path / "stroe.db"
    error = refused(run("dashboard", "--store", str(missing)))
    assert str(missing) in error.message
    assert str(path) in str(error.remedy)


def test_what_writes_makes_a_store_as_ever(run: Run, path: Path) -> None:
    assert run("--project", "new", "remember", "A fact.").exit_code == 0
    assert path.exists()
    assert run("--project", "other", "sessions", "add", "s").exit_code == 0


@pytest.mark.slow
def test_a_project_that_is_in_a_mongodb_alone_is_there(run: Run, path: Path, mongodb_url: str, open_store: Any) -> None:
    assert session_projects(mongodb_url) == []
    error = refused(run("--sessions", mongodb_url, "--project", "chat", "sessions", "list"))
    assert error.code == "store_missing"
    open_store(path, project="chat", sessions=mongodb_url).sessions.create("s")
    assert session_projects(mongodb_url) == ["chat"]
    assert "s " in run("--sessions", mongodb_url, "--project", "chat", "sessions", "list").stdout
    assert "There are: chat" in str(refused(run("--sessions", mongodb_url, "--project", "x", "stats")).remedy)
    fresh = run("--sessions", mongodb_url, "--project", "chat", "sessions", "list", store=path.with_name("new.db"))
    assert fresh.exit_code == 0
    assert "s " in fresh.stdout
    assert fresh.stderr.startswith("note: there is no store at ")


def test_a_host_knows_projects_of_both_databases(path: Path, mongodb_url: str, open_store: Any) -> None:
    open_store(path, project="facts", sessions=mongodb_url).remember("The shop opens at nine.")
    for name in ("chat", "facts"):
        open_store(path, project=name, sessions=mongodb_url).sessions.create("s")
    opened = Store(path, embedding=WordEmbedder(), sessions=mongodb_url)
    try:
        assert opened.projects() == ["facts"]
        assert opened.all_projects() == ["facts", "chat"]
    finally:
        opened.close()
