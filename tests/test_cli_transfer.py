"""copy, export, import, backup and verify on the command line."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result
from lived import dumped

from heedful.errors import Conflict, Invalid
from heedful.interfaces.cli.main import cli
from heedful.providers.configured import embedder_from
from heedful.testing import WordEmbedder
from heedful.transfer import verify

pytestmark = pytest.mark.slow

Run = Callable[..., Result]


@pytest.fixture
def run(lived: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Calls the command line on the store in which all has happened."""
    monkeypatch.setattr(sys.modules[embedder_from.__module__], "bundled", WordEmbedder)

    def call(*arguments: str, store: str | Path = lived) -> Result:
        return CliRunner().invoke(cli, ["--store", str(store), *arguments])

    return call


def read(result: Result) -> Any:
    assert result.exit_code == 0, (result.output, result.exception)
    return orjson.loads(result.stdout)


@pytest.mark.nightly
def test_copy_prints_tables_and_checksums(run: Run, lived: Path, tmp_path: Path) -> None:
    shown = run("copy", str(lived), str(tmp_path / "copy.db")).stdout
    sums = verify(lived).projects
    assert all(each.ledger_checksum in shown and each.facts_checksum in shown for each in sums)
    assert "is a copy of" in shown
    assert dumped(tmp_path / "copy.db") == dumped(lived)
    text = read(run("copy", str(lived), str(tmp_path / "other.db"), "--json"))
    assert text["tables"]["facts"] == sum(each.facts for each in sums)
    refused = run("copy", str(lived), str(tmp_path / "other.db"))
    assert isinstance(refused.exception, Conflict)


def test_a_project_goes_through_a_file(run: Run, lived: Path, tmp_path: Path) -> None:
    file, new = tmp_path / "p.jsonl", tmp_path / "new.db"
    written = run("--project", "other", "export", str(file))
    assert written.exit_code == 0, written.output
    assert isinstance(run("--project", "other", "export", str(file)).exception, Conflict)
    assert run("--project", "other", "export", str(file), "--force").exit_code == 0
    text = read(run("import", str(file), "--json", store=new))
    assert (text["project"], text["embedded"]) == ("other", 0)
    assert run("--project", "again", "import", str(file), store=tmp_path / "third.db").stdout.startswith(
        "project again"
    )
    (ledger,) = [each.ledger_checksum for each in verify(lived).projects if each.project == "other"]
    assert ledger in run("verify", store=new).stdout
    assert ledger in run("--project", "again", "verify", store=tmp_path / "third.db").stdout


def test_the_project_of_the_settings_is_obeyed(
    run: Run, lived: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, new = str(tmp_path / "p.jsonl"), tmp_path / "new.db"
    assert [each["project"] for each in read(run("verify", "--json"))["projects"]] == ["default", "other"]
    monkeypatch.setenv("HEEDFUL_PROJECT", "other")
    assert [each["project"] for each in read(run("verify", "--json"))["projects"]] == ["other"]
    assert run("export", file).exit_code == 0
    monkeypatch.setenv("HEEDFUL_PROJECT", "mine")
    assert read(run("import", file, "--json", store=new))["project"] == "mine"
    assert read(run("--project", "yours", "import", file, "--json", store=tmp_path / "b.db"))["project"] == "yours"
    monkeypatch.delenv("HEEDFUL_PROJECT")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "heedful.toml").write_text('project = "ours"')
    assert read(run("import", file, "--json", store=tmp_path / "c.db"))["project"] == "ours"


@pytest.mark.nightly
def test_a_project_goes_through_a_pipe(lived: Path, tmp_path: Path) -> None:
    heedful = f"{sys.executable} -m heedful --embedding fast"
    written = f"{heedful} --store {lived} --project other export --no-vectors"
    line = f"{written} | {heedful} --store {tmp_path}/new.db import - --json"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    message = orjson.loads(done.stdout)
    assert message["embedded"] == message["counts"]["fact"] > 0


def test_a_reader_who_goes_away_is_no_fault(lived: Path) -> None:
    line = f"{sys.executable} -m heedful --store {lived} export | head -c 10"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr == ""


def test_backup_says_what_it_holds(run: Run, lived: Path, tmp_path: Path) -> None:
    shown = run("backup", str(tmp_path / "b.db")).stdout
    assert "facts" in shown
    assert read(run("backup", str(tmp_path / "b.db"), "--force", "--json"))["tables"]["facts"] > 0
    held, original = dumped(tmp_path / "b.db"), dumped(lived)
    assert (held.pop("signing"), original.pop("signing") != []) == ([], True)
    assert held == original
    assert isinstance(run("backup", str(tmp_path / "b.db")).exception, Conflict)
    on_server = run("backup", str(tmp_path / "b.dump"), store="postgresql://ada:secret@db.example.com/heedful")
    assert isinstance(on_server.exception, Invalid)
    assert "pg_dump --format=custom" in str(on_server.exception)
    assert "secret" not in str(on_server.exception)


def test_verify_fails_when_something_differs(run: Run, lived: Path) -> None:
    sound = run("verify")
    assert sound.exit_code == 0
    assert "0 differences" in sound.stdout
    with closing(sqlite3.connect(lived)) as store, store:
        store.execute("UPDATE scores SET score = 0.99")
    broken = run("verify")
    assert broken.exit_code == 1
    assert "BAD other/main_dataset: " in broken.stdout
    output = run("verify", "--json")
    assert output.exit_code == 1
    assert orjson.loads(output.stdout)["differences"]


@pytest.mark.parametrize("command", [["export"], ["import", "x.jsonl"], ["backup", "x.db"], ["verify"]])
def test_they_need_the_store_itself(run: Run, command: list[str]) -> None:
    refused = run(*command, store="http://127.0.0.1:8000")
    assert isinstance(refused.exception, Invalid)
    assert "is a server" in str(refused.exception)
