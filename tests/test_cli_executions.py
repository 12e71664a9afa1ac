"""The command line of connectors, executions, the cache and feedback: what is printed, and what is refused."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from cities import IN_ITALY, IN_ITALY_SQL, Cities, make_cities
from click.testing import CliRunner, Result
from command import run_main

from heedful import HeedfulError
from heedful.errors import Conflict, Forbidden, Invalid, NotFound, Unavailable
from heedful.interfaces.cli.main import cli
from heedful.interfaces.cli.query_commands import cache, connectors, feedback, golden

Run = Callable[..., Result]
IN_FRANCE = "How many cities are in France?"


@pytest.fixture
def cities(tmp_path: Path) -> Cities:
    return make_cities(tmp_path)


@pytest.fixture
def bare(tmp_path: Path) -> Run:
    def call(*arguments: str, **options: Any) -> Result:
        command = ["--store", str(tmp_path / "s.db"), "--embedding", "fast", *arguments]
        return CliRunner().invoke(cli, command, **options)

    return call


@pytest.fixture
def run(bare: Run, cities: Cities) -> Run:
    """Calls the command line on a store that has a connector."""
    bare("connect", "geo", cities.url)
    return bare


def read(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def shown(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(result: Result) -> HeedfulError:
    assert isinstance(result.exception, HeedfulError), result.output
    return result.exception


def proven(run: Run) -> str:
    """The id of an execution that is rated as right."""
    done: str = read(run("run", IN_ITALY_SQL, "--question", IN_ITALY, "--json"))["execution_id"]
    shown(run("feedback", "add", "--positive", "--execution", done, "--text", "Checked."))
    return done


@pytest.mark.parametrize("group", [connectors, cache, golden, feedback])
def test_every_command_is_tested_here(group: click.Group) -> None:
    source = Path(__file__).read_text()
    assert [name for name in group.commands if f'"{group.name}", "{name}"' not in source] == []


def test_connect_and_connectors(bare: Run, cities: Cities) -> None:
    bare("remember", "Ada is the CEO.")
    assert "heedful connect NAME URL" in shown(bare("connectors", "list"))
    assert shown(bare("connect", "geo", cities.url)).startswith("geo: 2 tables in sqlite:///")
    assert isinstance(refused(bare("connect", "geo", cities.url)), Conflict)
    made = read(bare("connect", "second", cities.url, "--json"))
    assert [each["name"] for each in read(bare("connectors", "list", "--json"))] == ["geo", "second"]
    assert made["connector_id"] in read(bare("connectors", "list", "--json"))[1]["connector_id"]
    assert "second" in shown(bare("connectors", "list"))
    cities.write("CREATE TABLE lake (id integer)")
    assert shown(bare("connectors", "refresh", "geo")) == "geo: 3 tables\n"
    assert read(bare("connectors", "refresh", "geo", "--json"))["tables"] == 3
    assert shown(bare("connectors", "confirm", "geo")).startswith("geo is on: 3 tables in sqlite:///")
    assert read(bare("connectors", "confirm", "geo", "--json"))["enabled"] is True
    assert bare("connectors", "remove", "geo", input="n\n").exit_code == 1
    assert shown(bare("connectors", "remove", "geo", "--yes")) == "deleted\n"
    assert isinstance(refused(bare("connectors", "remove", "geo", "--yes")), NotFound)


def test_a_password_is_neither_kept_nor_printed(bare: Run) -> None:
    result = bare("connect", "pg", "postgresql://user:hunter2@127.0.0.1:1/x")
    assert refused(result).code == "secret_plain"
    assert "hunter2" not in result.output + str(result.exception)


def test_run(run: Run) -> None:
    done = read(run("run", IN_ITALY_SQL, "--json"))
    assert done["result"]["rows"] == [[2]]
    printed = shown(run("run", "-", "--connector", "geo", input="SELECT name FROM city ORDER BY id"))
    assert "Rome" in printed
    assert "execution " in printed
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30) SELECT i, NULL FROM n"
    assert "… 10 more rows" in shown(run("run", many))
    assert "[bold]" in shown(run("run", "SELECT '[bold]' AS \"[red]x\""))
    assert isinstance(refused(run("run", "DELETE FROM city")), Forbidden)
    assert isinstance(refused(run("run", "SELECT 1", "--connector", "nope")), NotFound)


@pytest.mark.slow
def test_ask(run: Run) -> None:
    missing = refused(run("ask", IN_ITALY))
    assert (type(missing), missing.code) == (Unavailable, "nothing_proven")
    proven(run)
    printed = shown(run("ask", IN_ITALY))
    assert printed.startswith("cities: 2\n")
    assert IN_ITALY_SQL in printed
    assert "served: " in printed
    answer = read(run("ask", IN_FRANCE, "--json"))
    assert (answer["origin"], answer["execution_result"]["result"]["rows"]) == ("rebound", [[2]])
    again = read(run("ask", IN_ITALY, "--chat-session", answer["chat_session_id"], "--json"))
    assert again["chat_session_id"] == answer["chat_session_id"]
    assert refused(run("ask", IN_ITALY, "--feedback-cutoff", "7")).field == "feedback_cutoff"
    assert isinstance(refused(run("ask", IN_ITALY, "--chat-session", "nope")), NotFound)


@pytest.mark.slow
def test_a_suggestion_is_shown_with_the_command_that_confirms_it(run: Run) -> None:
    for name in ("Via Appia", "Karl Johan"):
        sql = f"SELECT c.name FROM city c JOIN street s ON s.city_id = c.id WHERE s.name = '{name}'"
        done = read(run("run", sql, "--question", f"Which large old city has the street {name}?", "--json"))
        shown(run("feedback", "add", "--positive", "--execution", done["execution_id"]))
    asked = "Which large city has the street Via Veneto?"
    for command in (("ask",), ("cache", "lookup")):
        printed = shown(run(*command, asked))
        assert "Did you mean: Which large old city has the street Via Veneto?" in printed
    words = shlex.split(printed.partition("Confirm it: heedful ")[2].replace("\n", " "))
    assert words[:3] == ["cache", "confirm-suggestion", asked]
    assert "Rome" in shown(run(*words, "--author", "ann"))
    assert read(run("cache", "lookup", asked, "--json"))["cache_hit"]
    assert refused(run(*words)).code == "not_suggested"


def test_cache_coverage(run: Run) -> None:
    done = read(run("run", IN_ITALY_SQL, "--question", IN_ITALY, "--json"))
    shown(run("feedback", "add", "--positive", "--execution", done["execution_id"]))
    shown(run("cache", "lookup", "How many cities are not in Italy?"))
    printed = shown(run("cache", "coverage"))
    assert "1 proven question of 1 kind" in printed
    assert "only one of them negates" in printed
    assert "negation" not in printed
    found = read(run("cache", "coverage", "--limit", "1", "--json"))
    assert found["missing"][0]["question"] == "How many cities are not in Italy?"
    assert refused(run("cache", "coverage", "--limit", "0")).field == "limit"


@pytest.mark.slow
def test_cache_lookup(run: Run) -> None:
    assert shown(run("cache", "lookup", IN_ITALY)) == "nothing alike; 0 looked at\n"
    proven(run)
    found = read(run("cache", "lookup", IN_FRANCE, "--only-positive-feedback", "--top-n", "1", "--json"))
    assert (found["cache_hit"], found["matches"][0]["decision"]) == (True, "rebind")
    assert found["matches"][0]["execution"]["result"]["rows"] == [[2]]
    printed = shown(run("cache", "lookup", IN_ITALY, "--reuse", "result", "--limit", "10"))
    assert "serve" in printed
    assert "cities" in printed
    printed = shown(run("cache", "lookup", "How many cities are not in Italy?"))
    assert "refuse" in printed
    assert "Only the question you asked says “are not”." in " ".join(printed.split())
    assert "negation" not in printed
    assert "gate: negation" in shown(run("cache", "lookup", "How many cities are not in Italy?", "--explain"))
    assert refused(run("cache", "lookup", IN_ITALY, "--similarity-threshold", "7.5")).field == "similarity_threshold"
    assert refused(run("cache", "lookup", IN_ITALY, "--max-age-days", "-5")).field == "max_age_days"
    assert run("cache", "lookup", IN_ITALY, "--reuse", "both").exit_code == 2


@pytest.mark.slow
def test_feedback(run: Run) -> None:
    done = proven(run)
    wrong = read(
        run("feedback", "add", "--negative", "--execution", done, "--text", 'a, "b"\nc', "--author", "ada", "--json")
    )
    assert (wrong["is_positive"], wrong["author"], wrong["execution_id"]) == (False, "ada", done)
    assert isinstance(refused(run("feedback", "add", "--execution", done)), Invalid)
    assert refused(run("feedback", "add", "--positive")).field == "execution_id"
    assert isinstance(refused(run("feedback", "add", "--positive", "--message", "nope")), NotFound)
    assert "2 of 2" in shown(run("feedback", "list"))
    assert "1 of 2" in shown(run("feedback", "list", "--skip", "1"))
    assert read(run("feedback", "list", "--negative", "--json"))["items"] == [wrong]
    assert read(run("feedback", "list", "--positive", "--limit", "1", "--json"))["total"] == 1
    assert read(run("feedback", "list", "--search", "CHECKED", "--json"))["total"] == 1
    assert refused(run("feedback", "list", "--search", "x", "--positive")).field == "search"
    assert not read(run("cache", "lookup", IN_ITALY, "--json"))["cache_hit"]
    assert shown(run("feedback", "retract", wrong["id"])) == "retracted\n"
    assert read(run("cache", "lookup", IN_ITALY, "--json"))["cache_hit"]
    assert isinstance(refused(run("feedback", "retract", wrong["id"])), NotFound)


@pytest.mark.slow
def test_golden(run: Run, tmp_path: Path) -> None:
    made = read(run("golden", "add", IN_ITALY, IN_ITALY_SQL, "--json"))
    assert shown(run("golden", "add", "All?", "SELECT count(*) FROM city", "--connector", "geo")).startswith("example ")
    done = proven(run)
    assert isinstance(refused(run("golden", "promote", done)), Conflict)
    promoted = read(run("golden", "promote", done, "--question", "Count Italy", "--json"))
    assert (promoted["origin"], promoted["execution_id"]) == ("promoted", done)
    file = tmp_path / "e.csv"
    file.write_text("question,sql_query\nOne?,SELECT 1\nTwo?,SELECT 2\n", encoding="utf-8")
    assert shown(run("golden", "import", str(file))) == "2 examples\n"
    assert len(read(run("golden", "import", str(file), "--json"))) == 2
    assert len(read(run("golden", "list", "--limit", "3", "--json"))) == 3
    assert "SELECT 2" in shown(run("golden", "list", "--connector", "geo"))
    assert shown(run("golden", "remove", made["id"], "--yes")) == "deleted\n"
    assert isinstance(refused(run("golden", "remove", made["id"], "--yes")), NotFound)
    assert isinstance(refused(run("golden", "import", str(tmp_path / "nope.csv"))), NotFound)


def test_an_error_is_told_in_a_line_with_what_to_do(tmp_path: Path, cities: Cities) -> None:
    store = str(tmp_path / "s.db")
    assert run_main("--store", store, "connect", "geo", cities.url).returncode == 0
    done = run_main("--store", store, "run", "DELETE FROM city")
    assert (done.returncode, done.stdout) == (4, "")
    assert "only reading is allowed" in done.stderr
    assert "Traceback" not in done.stderr


def test_executions_can_be_found_again(run: Run) -> None:
    made = run("run", IN_ITALY_SQL, "--question", IN_ITALY)
    execution = made.stdout.split("execution ")[1].strip()
    listed = run("executions", "list")
    assert execution in listed.stdout
    assert "query" in listed.stdout
    shown = run("executions", "show", execution)
    assert shown.stdout == made.stdout


def test_feedback_and_examples_are_changed(run: Run) -> None:
    done = read(run("run", IN_ITALY_SQL, "--question", IN_ITALY, "--json"))
    items = ["feedback", "add", "--positive", "--execution", done["execution_id"], "--idempotency-key", "k", "--json"]
    stored = read(run(*items))
    assert read(run(*items))["id"] == stored["id"]
    tag = shown(run("feedback", "show", stored["id"])).split()[-1]
    assert "wrong: No." in shown(
        run("feedback", "update", stored["id"], "--negative", "--text", "No.", "--if-match", tag)
    )
    assert isinstance(refused(run("feedback", "update", stored["id"], "--positive", "--if-match", tag)), Conflict)
    made = read(run("golden", "add", "Which?", "SELECT name FROM city", "--json"))
    text = shown(run("golden", "update", made["id"], "--sql-query", "SELECT name FROM street"))
    assert "Which?\nSELECT name FROM street" in text
    assert read(run("golden", "list", "--skip", "1", "--json")) == []
    shown(run("executions", "remove", done["execution_id"], "--yes"))
    assert isinstance(refused(run("executions", "show", done["execution_id"])), NotFound)


def test_values_fill_places_of_a_statement(run: Run) -> None:
    sql = "SELECT name FROM city WHERE country = :land AND people > :least"
    done = read(run("run", sql, "--parameter", "land=Italy", "--parameter", "least=2000000", "--json"))
    assert done["result"]["rows"] == [["Rome"]]
