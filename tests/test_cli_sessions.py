"""The command line of sessions, improve and insight: what is printed, and what is said when something is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from command import run_main

import heedful
from heedful import HeedfulError
from heedful.interfaces.cli.main import cli
from heedful.interfaces.cli.session_commands import sessions

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def call(*arguments: str, **options: Any) -> Result:
        command = ["--store", str(tmp_path / "s.db"), "--embedding", "fast", *arguments]
        return CliRunner().invoke(cli, command, **options)

    return call


def read(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def shown(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(result: Result) -> HeedfulError:
    assert isinstance(result.exception, HeedfulError), result.output
    return result.exception


def asked(run: Run, session: str = "s") -> dict[str, Any]:
    """An answer about parcels that is kept in a session."""
    run("remember", "Parcels may be returned within 30 days.", "Opened software can not be returned.")
    found: dict[str, Any] = read(run("recall", "When may parcels be returned?", "--session-id", session, "--json"))
    return found


def test_every_command_of_sessions_is_tested_here() -> None:
    source = Path(__file__).read_text()
    assert [name for name in sessions.commands if f'"sessions", "{name}"' not in source] == []


def test_create_and_get(run: Run) -> None:
    made = read(run("sessions", "add", "s", "--metadata", "variant=B", "--metadata", 'user={"plan": "pro"}', "--json"))
    assert (made["session_id"], made["metadata"]) == ("s", {"variant": "B", "user": {"plan": "pro"}})
    assert read(run("sessions", "show", "s", "--json")) == made
    assert shown(run("sessions", "show", "s")).splitlines()[1:] == ["  variant: B", "  user: {'plan': 'pro'}"]
    named = shown(run("sessions", "add")).split()[0]
    assert read(run("sessions", "show", named, "--json"))["session_id"] == named
    assert "no session 'nope'" in refused(run("sessions", "show", "nope")).message
    assert refused(run("sessions", "add", "x", "--metadata", "variant")).field == "metadata"
    assert refused(run("sessions", "add", "x", "--metadata", "$set=1")).field == "metadata"


@pytest.mark.slow
def test_list(run: Run) -> None:
    run("remember", "Ada is the CEO.")
    assert shown(run("sessions", "list")).startswith("No sessions.")
    for number, variant in enumerate("ABB"):
        run("sessions", "add", f"s{number}", "--metadata", f"variant={variant}")
    page = read(run("sessions", "list", "--limit", "2", "--json"))
    assert [each["session_id"] for each in page["items"]] == ["s2", "s1"]
    rest = read(run("sessions", "list", "--cursor", page["next_cursor"], "--json"))
    assert [each["session_id"] for each in rest["items"]] == ["s0"]
    table = shown(run("sessions", "list", "--where", "variant=B", "--limit", "1"))
    assert "s2" in table
    assert "variant=B" in table
    assert "there is more: --cursor " in table
    assert "s0" not in table
    assert refused(run("sessions", "list", "--cursor", "x")).field == "cursor"
    assert refused(run("sessions", "list", "--limit", "0")).field == "limit"


def test_delete(run: Run) -> None:
    run("sessions", "add-message", "s", "user", "hi")
    assert run("sessions", "remove", "s", input="n\n").exit_code == 1
    assert shown(run("sessions", "remove", "s", "--yes")) == (
        "s deleted: 1 message, 0 answers, 0 feedbacks, 0 learnt facts\n"
    )
    assert "no session 's'" in refused(run("sessions", "remove", "s", "--yes")).message
    run("sessions", "add", "t")
    assert read(run("sessions", "remove", "t", "--json", "--yes"))["session_id"] == "t"


def test_messages(run: Run) -> None:
    assert shown(run("sessions", "add-message", "s", "user", "[bold]Hello")).startswith("message ")
    added = read(run("sessions", "add-message", "s", "assistant", "-", "--json", input="from\nthe pipe"))
    page = read(run("sessions", "messages", "s", "--newest-first", "--json"))
    assert page["items"][0] == added
    assert [each["content"] for each in page["items"]] == ["from\nthe pipe", "[bold]Hello"]
    table = shown(run("sessions", "messages", "s", "--limit", "1"))
    assert "[bold]Hello" in table
    assert "there is more" in table
    changed = read(run("sessions", "update-message", "s", added["message_id"], "-", "--json", input="again"))
    assert changed == added | {"content": "again"}
    assert "changed" in shown(run("sessions", "update-message", "s", added["message_id"], "once more"))
    assert "deleted" in shown(run("sessions", "remove-message", "s", added["message_id"], "--yes"))
    assert refused(run("sessions", "update-message", "s", added["message_id"], "x")).code == "not_found"
    assert refused(run("sessions", "messages", "nope")).code == "not_found"
    assert refused(run("sessions", "add-message", "s", " ", "x")).field == "role"


def test_metadata(run: Run) -> None:
    run("sessions", "add", "s")
    done = read(run("sessions", "update-metadata", "s", "a=1", "b.c=x y", "d=[1, 2]", "e=", "--json"))
    assert done["metadata"] == {"a": 1, "b": {"c": "x y"}, "d": [1, 2], "e": ""}
    assert "  a: 2" in shown(run("sessions", "update-metadata", "s", "a=2"))
    done = read(run("sessions", "remove-metadata", "s", "a", "b.c", "nothing", "--json"))
    assert done["metadata"] == {"b": {}, "d": [1, 2], "e": ""}
    assert refused(run("sessions", "update-metadata", "s", "a")).field == "metadata"
    assert refused(run("sessions", "update-metadata", "nope", "a=1")).code == "not_found"
    assert refused(run("sessions", "remove-metadata", "s", "$a")).field == "keys"
    assert run("sessions", "update-metadata", "s").exit_code == 2


@pytest.mark.slow
def test_entries(run: Run) -> None:
    found = asked(run)
    entry = read(run("sessions", "entry", "s", found["qa_id"], "--json"))
    assert (entry["question"], entry["answer"]) == (found["query"], found["answer"])
    text = shown(run("sessions", "entry", "s", found["qa_id"]))
    assert "Parcels may be returned within 30 days. [1]" in text
    assert f"used {found['hits'][0]['fact_id']}  share 1.00" in text
    first = found["hits"][0]["fact_id"]
    stored = read(
        run(
            "sessions",
            "add-entry",
            "s",
            "How?",
            "-",
            "--recall",
            found["recall_id"],
            "--used",
            first,
            "--json",
            input="So.",
        )
    )
    assert (stored["answer"], stored["used"][0]["fact_id"]) == ("So.", first)
    assert shown(run("sessions", "add-entry", "s", "Why?", "Because.", "--context", "a book")).startswith("qa_id ")
    page = read(run("sessions", "entries", "s", "--newest-first", "--limit", "2", "--json"))
    assert [each["question"] for each in page["items"]] == ["Why?", "How?"]
    table = shown(run("sessions", "entries", "s", "--limit", "2"))
    assert found["qa_id"] in table
    assert "there is more" in table
    assert refused(run("sessions", "entry", "s", "nope")).code == "not_found"
    assert refused(run("sessions", "entries", "nope")).code == "not_found"
    assert refused(run("sessions", "add-entry", "s", " ", "x")).field == "question"
    assert refused(run("sessions", "add-entry", "s", "q", "x", "--used", first)).field == "used"
    assert refused(run("sessions", "add-entry", "s", "q", "x", "--recall", "nope")).code == "not_found"


def test_feedback_on_an_answer(run: Run) -> None:
    found = asked(run)
    rate = ("sessions", "add-feedback", "s", found["qa_id"])
    assert "heedful improve" in shown(
        run(*rate, "--feedback-score", "5", "--feedback-text", "Good!", "--author", "ann")
    )
    text = shown(run("sessions", "entry", "s", found["qa_id"]))
    assert "feedback: 5 of 5  Good!" in text
    assert "5" in shown(run("sessions", "entries", "s"))
    assert refused(run(*rate, "--feedback-score", "6")).field == "feedback_score"
    assert refused(run(*rate)).field == "feedback_score"
    assert run(*rate, "--feedback-score", "five").exit_code == 2
    problem = refused(run("sessions", "add-feedback", "s", "nope", "--feedback-score", "5"))
    assert (problem.code, problem.remedy) == ("not_found", "heedful sessions entries s lists them")
    clear = ("sessions", "remove-feedback", "s", found["qa_id"])
    unrated = run(*clear, "--author", "bo")
    assert (unrated.exit_code, unrated.stdout, unrated.stderr) == (0, "nothing to clear\n", "it is rated by ann\n")
    assert read(run("sessions", "entry", "s", found["qa_id"], "--json"))["feedback_score"] == 5
    assert shown(run(*clear)) == "cleared\n"
    assert read(run("sessions", "entry", "s", found["qa_id"], "--json"))["feedback_score"] is None
    assert refused(run("sessions", "remove-feedback", "s", "nope")).code == "not_found"


def test_feedback_on_a_session(run: Run) -> None:
    run("sessions", "add", "s")
    rate = ("sessions", "add-session-feedback", "s")
    stored = read(run(*rate, "--rating", "down", "--comment", "[red]No", "--extra", "page=3", "--json"))
    assert (stored["rating"], stored["comment"], stored["extra"]) == ("down", "[red]No", {"page": 3})
    text = shown(run(*rate, "--rating", "up", "--author", "ann", "--idempotency-key", "k"))
    assert "to retract it: heedful retract " in text
    assert shown(run(*rate, "--rating", "up", "--author", "ann", "--idempotency-key", "k")) == text
    assert refused(run(*rate, "--author", "ann", "--idempotency-key", "k")).code == "idempotency_key_reused"
    assert shown(run(*rate)).startswith("feedback ")
    page = read(run("sessions", "feedbacks", "s", "--newest-first", "--json"))
    assert [each["rating"] for each in page["items"]] == [None, "up", "down"]
    table = shown(run("sessions", "feedbacks", "s", "--limit", "2"))
    assert "[red]No" in table
    assert "there is more" in table
    assert shown(run("sessions", "feedback-metrics")).startswith("3 feedbacks: 1 positive, 1 negative, 1 neutral;")
    run("retract", stored["feedback_id"])
    assert read(run("sessions", "feedback-metrics", "--json"))["negative"] == 0
    assert run(*rate, "--rating", "maybe").exit_code == 2
    assert refused(run("sessions", "add-session-feedback", "nope", "--rating", "up")).code == "not_found"
    assert refused(run(*rate, "--extra", "$set=1")).field == "feedback"
    assert refused(run("sessions", "feedbacks", "nope")).code == "not_found"


class Desk:
    name = "desk"

    def send(self, alert_id: str, payload: Any) -> None:
        raise heedful.Unavailable("nobody is there")


def test_alerts(run: Run, tmp_path: Path) -> None:
    from heedful.sessions.hooks import AlertHook

    with heedful.open(tmp_path / "s.db", embedding="fast", feedback_hook=AlertHook(Desk())) as store:
        store.sessions.create("s")
        store.sessions.add_session_feedback("s", {"rating": "down", "comment": "no"})
    (alert,) = read(run("sessions", "alerts", "--pending", "--json"))["items"]
    assert (alert["channel"], alert["payload"]["feedback"]["comment"]) == ("desk", "no")
    table = shown(run("sessions", "alerts"))
    assert "nobody is there" in table
    assert "next try" in table
    assert shown(run("sessions", "discard-alert", alert["alert_id"])) == "discarded\n"
    assert read(run("sessions", "discard-alert", alert["alert_id"], "--json"))["next_at"] is None
    assert read(run("sessions", "alerts", "--pending", "--json"))["items"] == []
    assert "discarded" in shown(run("sessions", "alerts"))
    assert refused(run("sessions", "discard-alert", "nope")).code == "not_found"


def test_a_rating_by_the_callers_own_id(run: Run) -> None:
    asked(run)
    early = shown(run("sessions", "rate", "run-1", "1", "--scale", "0", "1", "--author", "ann"))
    assert early == "waiting\nNo answer has the id 'run-1' yet; the rating counts once one has, within 1 day.\n"
    assert "add_session_feedback rates that" in shown(run("sessions", "rate", "s", "down"))
    added = ("sessions", "add-entry", "s", "When?", "Within 30 days.", "--external-id", "run-1", "--json")
    assert read(run(*added))["feedback_score"] == 5
    assert shown(run("sessions", "rate", "run-1", "down", "--comment", "No.", "--author", "ann")) == "stored\n"
    assert read(run(*added))["feedback_text"] == "No."
    assert refused(run("sessions", "rate", "run-1", "1")).field == "scale"


@pytest.mark.usefixtures("one_author_teaches")
@pytest.mark.slow
def test_improve(run: Run) -> None:
    found = asked(run)
    assert shown(run("improve")) == "0 rated answers; nothing new\n"
    run(
        "sessions",
        "add-feedback",
        "s",
        found["qa_id"],
        "--feedback-score",
        "1",
        "--feedback-text",
        "No, it is 45 days.",
    )
    text = shown(run("improve", "--session-id", "s"))
    assert text.startswith("1 rated answer: 1 signal added, 0 retracted; 1 fact changed\n")
    assert "  learnt from feedback: When may parcels be returned? It is 45 days." in text
    assert shown(run("improve")) == "1 rated answer; nothing new: all of it was learnt before\n"
    assert read(run("improve", "--json"))["signals_added"] == 0
    short = shown(run("sessions", "add-entry", "s", "When?", "No.")).split()[1]
    run("sessions", "rate", short, "down")
    without = "  1 rated answer without effect on facts: none is recognised in the text\n  Let the model cite facts"
    assert without in shown(run("improve"))
    assert refused(run("improve", "--session-id", "nope")).code == "not_found"
    assert refused(run("improve", "--dataset", " ")).field == "dataset"


@pytest.mark.slow
def test_insight(run: Run) -> None:
    run("remember", "Ada is the CEO.")
    assert shown(run("insight", "satisfaction", "--by", "variant")).startswith("No session has 'variant'")
    for variant, ratings in (("A", ["down"]), ("B", ["up", "up", "neutral"])):
        run("sessions", "add", variant, "--metadata", f"variant={variant}")
        for rating in ratings:
            run("sessions", "add-session-feedback", variant, "--rating", rating)
    table = shown(run("insight", "satisfaction", "--by", "variant"))
    assert "100.0%" in table
    assert "34.2% to 100.0%" in table
    assert "B is better than A with a probability of 90.0%" in table
    found = read(run("insight", "satisfaction", "--by", "variant", "--json"))
    assert [(each["value"], each["up"], each["down"], each["neutral"]) for each in found["variants"]] == [
        ("A", 0, 1, 0),
        ("B", 2, 0, 1),
    ]
    later = read(run("insight", "satisfaction", "--by", "variant", "--since", "2999-01-01", "--json"))
    assert sum(each["up"] + each["down"] for each in later["variants"]) == 0
    assert run("insight", "satisfaction", "--by", "variant", "--since", "soon").exit_code == 2
    assert refused(run("insight", "satisfaction", "--by", "$where")).field == "by"
    assert run("insight", "satisfaction").exit_code == 2


def test_sessions_in_a_mongodb(run: Run, mongodb_url: str) -> None:
    assert shown(run("--sessions", mongodb_url, "sessions", "add", "s")).startswith("s ")
    assert read(run("--sessions", mongodb_url, "sessions", "show", "s", "--json"))["session_id"] == "s"
    assert shown(run("sessions", "list")).startswith("No sessions.")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["sessions", "show", "nope"], 3, "error: no session 'nope' in project 'default'"),
        (["sessions", "show", " "], 2, "error: SESSION_ID must be a name"),
        (["--sessions", "mongodb://127.0.0.1:1/x?serverSelectionTimeoutMS=200", "sessions", "list"], 5, "127.0.0.1:1"),
        (["--sessions", "postgres://host", "sessions", "list"], 2, "Use mongodb://host/database"),
    ],
)
def test_an_error_is_a_line_with_what_to_do(
    path: Path, empty_store: bytes, arguments: list[str], code: int, said: str
) -> None:
    path.write_bytes(empty_store)
    done = run_main("--store", str(path), *arguments)
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_an_error_is_json_where_json_is_asked_for(path: Path, empty_store: bytes) -> None:
    path.write_bytes(empty_store)
    done = run_main("--store", str(path), "sessions", "show", "nope", "--json")
    problem = json.loads(done.stderr)["error"]
    assert (problem["code"], problem["field"]) == ("not_found", "session_id")
