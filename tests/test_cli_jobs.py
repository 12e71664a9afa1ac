"""heedful jobs and heedful worker."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from heedful import Conflict, NotFound
from heedful.interfaces.cli.main import cli

pytestmark = pytest.mark.usefixtures("warm_processes")

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def call(*arguments: str, **options: Any) -> Result:
        return CliRunner().invoke(cli, ["--store", str(tmp_path / "s.db"), *arguments], **options)

    return call


def read(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_job_is_added_shown_and_done_by_a_worker(run: Run) -> None:
    run("remember", "Ada is the CEO.")
    assert run("jobs", "list").stdout.startswith("No jobs.")
    added = read(run("improve", "--background", "--json"))
    assert (added["kind"], added["status"]) == ("improve", "waiting")
    # Looking does nothing to it.
    assert read(run("jobs", "show", added["job_id"], "--json")) == added
    assert read(run("jobs", "list", "--json"))["items"] == [added]
    assert "waiting" in run("jobs", "list").stdout
    assert run("worker", "--once").exit_code == 0
    done = read(run("jobs", "list", "--status", "done", "--json"))["items"]
    # The first worker of a store maintains it, too.
    assert [each["kind"] for each in done] == ["maintain", "improve"]
    assert done[1]["job_id"] == added["job_id"]
    shown = run("jobs", "show", added["job_id"]).stdout
    assert shown.startswith(f"improve {added['job_id']}: done, attempt 1\n")
    assert "dataset" not in shown


def test_a_job_is_cancelled_and_tried_again(run: Run) -> None:
    run("sessions", "add", "a")
    run("remember", "Ada is the CEO.", "--dataset", "notes")
    added = read(run("improve", "--background", "--dataset", "notes", "--session-id", "a", "--json"))
    assert isinstance(run("jobs", "retry", added["job_id"]).exception, Conflict)
    assert read(run("jobs", "cancel", added["job_id"], "--json"))["status"] == "cancelled"
    again = read(run("jobs", "retry", added["job_id"], "--json"))
    assert again["arguments"] == added["arguments"] == {"dataset": "notes", "session_ids": ["a"]}
    assert again["status"] == "waiting"


def test_without_a_project_all_jobs_are_seen_and_with_one_its_own(run: Run) -> None:
    for project in ("shop", "kiosk"):
        run("--project", project, "sessions", "add")
    shop = read(run("--project", "shop", "improve", "--background", "--json"))
    run("--embedding", "fast", "reembed", "--background")
    found = read(run("jobs", "list", "--json"))["items"]
    assert [(each["kind"], each["project"], each["arguments"].get("embedding")) for each in found] == [
        ("reembed", None, "fast"),
        ("improve", "shop", None),
    ]
    assert read(run("--project", "shop", "jobs", "list", "--json"))["items"] == [shop]
    assert read(run("--project", "kiosk", "jobs", "list", "--json"))["items"] == []
    assert isinstance(run("--project", "kiosk", "jobs", "show", shop["job_id"]).exception, NotFound)
    assert "fast" in run("jobs", "show", found[0]["job_id"]).stdout
    assert "all" in run("jobs", "list", "--kind", "reembed").stdout


def test_vectors_are_rebuilt_by_a_worker(run: Run) -> None:
    run("remember", "Ada is the CEO.", "Bo sings.")
    output = run("--embedding", "fast", "reembed", "--background").stdout
    job_id = output.split()[1]
    assert output.startswith(f"job {job_id} is waiting")
    assert run("worker", "--once").exit_code == 0
    job = read(run("jobs", "show", job_id, "--json"))
    assert (job["status"], job["done"], job["total"]) == ("done", 2, 2)
    assert run("--embedding", "fast", "recall", "Who sings?").exit_code == 0


def test_alerts_are_listed_by_their_kind(run: Run) -> None:
    run("sessions", "add")
    assert read(run("jobs", "list", "--kind", "deliver", "--json"))["items"] == []


@pytest.mark.slow
def test_a_worker_works_until_it_is_told_to_stop(run: Run, tmp_path: Path) -> None:
    run("remember", "Ada is the CEO.")
    process = subprocess.Popen(
        [sys.executable, "-m", "heedful", "--store", str(tmp_path / "s.db"), "worker"],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        assert process.stderr.readline().startswith("working on ")
        added = read(run("improve", "--background", "--json"))
        deadline = time.monotonic() + 60
        while read(run("jobs", "show", added["job_id"], "--json"))["status"] != "done":
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait(60)
        process.stderr.close()


def test_a_worker_needs_a_store_of_its_own(run: Run) -> None:
    result = CliRunner().invoke(cli, ["--store", "http://localhost:1", "worker"])
    assert "works on a store" in str(result.exception)
