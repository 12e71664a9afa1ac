"""The command line as somebody types it: options anywhere, tables that fit, exit codes, questions, first minutes."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import click
import pytest
from cli_commands import leaf_commands
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result

import heedful
from heedful import errors
from heedful.interfaces.cli import screen
from heedful.interfaces.cli.command_table import COMMANDS, GROUPS
from heedful.interfaces.cli.main import ANYWHERE, cli, main
from heedful.testing import WordEmbedder

LONG = "Ask the help desk for a one-time code, which is valid for an hour, when your password has expired or was lost."


LEAVES = dict(leaf_commands(cli))
NO_JSON = {
    "demo": "a story",
    "try": "asks",
    "serve": "runs until it is stopped",
    "proxy": "runs until it is stopped",
    "dashboard": "runs until it is stopped",
    "worker": "runs until it is stopped",
    "mcp": "speaks JSON anyway",
}
NARROW = {"TTY_COMPATIBLE": "1", "TERM": "dumb", "COLUMNS": "80"}
"""A terminal of 80 columns that knows no colours."""

UNKNOWN = [
    ("forget", "x"), ("forget", "--dataset", "x"), ("sessions", "remove", "x"), ("connectors", "remove", "x"),
    ("executions", "remove", "x"), ("golden", "remove", "x"), ("keys", "revoke", "x"),
]  # fmt: skip


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store in the current folder, with one fact in its project `shop`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEEDFUL_EMBEDDING", "bundled")
    run("remember", LONG, "-s", "s.db", "-p", "shop")
    return "s.db"


def run(*arguments: str, **options: Any) -> Result:
    result = CliRunner().invoke(cli, arguments, **options)
    assert result.exit_code == 0, (result.output, result.exception)
    return result


def fails(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """The exit code of the program, and what it says."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert isinstance(ended.value.code, int)
    return ended.value.code, capsys.readouterr().err


def test_options_may_stand_anywhere(store: str) -> None:
    for line in (
        ["--store", store, "--project", "shop", "stats", "--json"],
        ["stats", "--json", f"--store={store}", "-p", "shop"],
        ["-p", "shop", "stats", "-s", store, "--json"],
    ):
        assert json.loads(run(*line).stdout)["total_facts"] == 1


def test_what_follows_two_dashes_is_no_option(store: str) -> None:
    run("-s", store, "-p", "other", "remember", "--", "--project")
    assert json.loads(run("stats", "-s", store, "-p", "other", "--json").stdout)["total_facts"] == 1


OWN = {name: {word for each in command.params for word in each.opts} for name, command in LEAVES.items()}


def test_no_command_has_an_option_of_the_whole_line() -> None:
    assert [name for name, own in OWN.items() if not own.isdisjoint(ANYWHERE)] == []


def test_every_command_that_prints_a_result_prints_json() -> None:
    assert {name for name, own in OWN.items() if "--json" not in own} == NO_JSON.keys()


def test_the_help_is_grouped_and_short() -> None:
    shown = run("--help", terminal_width=80).stdout
    places = [shown.index(f"{title}:\n") for title in GROUPS]
    assert places == sorted(places)
    assert all(f"  {name} " in shown for name in COMMANDS)
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("group", ["", *(name for name, each in cli.commands.items() if isinstance(each, click.Group))])
def test_no_line_of_the_help_is_cut_off(group: str) -> None:
    shown = run(*group.split(), "--help", terminal_width=80).stdout.splitlines()
    assert [line for line in shown if line.endswith("...") and not line.startswith("Usage:")] == []


def test_one_thing_has_one_verb() -> None:
    verbs = {word for name in LEAVES for word in name.split()[-1].split("-")}
    assert verbs >= {"list", "show", "add", "remove", "undo"}
    assert verbs.isdisjoint({"create", "delete", "get", "new", "make"})


def test_a_recall_can_be_read_on_80_columns(store: str) -> None:
    narrow = run("recall", "password?", "-s", store, "-p", "shop", env=NARROW).stdout
    assert max(map(len, narrow.splitlines())) <= 80
    assert "one-time code" in narrow
    assert "fact_id" not in narrow
    wide = run("recall", "password?", "-s", store, "-p", "shop", "--wide", env=NARROW).stdout
    assert "fact_id" in wide
    assert "relevance" in wide


@pytest.mark.slow
def test_ids_that_are_needed_go_below_the_text(store: str) -> None:
    for comment in ("It is wrong in every respect, and was so last week.", "No."):
        made = json.loads(run("sessions", "add", "-s", store, "--json").stdout)["session_id"]
        run("sessions", "add-session-feedback", made, "--comment", comment, "--author", "Adelheid", "-s", store)
    shown = run("sessions", "feedbacks", made, "-s", store, env=NARROW).stdout
    found = json.loads(run("sessions", "feedbacks", made, "-s", store, "--json").stdout)["items"][0]["feedback_id"]
    assert found in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.Invalid("x"), 2),
        (errors.NotFound("x"), 3),
        (errors.Conflict("x"), 4),
        (errors.Forbidden("x"), 4),
        (errors.Unavailable("x"), 5),
        (errors.HeedfulError("x"), 1),
    ],
)
def test_each_kind_of_error_has_an_exit_code(error: errors.HeedfulError, code: int) -> None:
    assert screen.exit_code(error) == code


@pytest.mark.slow
def test_errors_are_told_in_the_words_of_the_command_line(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = fails(capsys, "recall", "x", "-k", "0", "-s", store, "-p", "shop")
    assert code == 2
    assert said.startswith("error: --top-k ")
    code, said = fails(capsys, "stats", "-s", "nothing.db")
    assert (code, said[:7]) == (3, "error: ")
    code, said = fails(capsys, "stats", "-s", "http://127.0.0.1:9")
    assert (code, said[:7]) == (5, "error: ")


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        (
            ("sessions", "show", "x"),
            "Create it first: heedful sessions add SESSION_ID, or heedful recall … --session-id …",
        ),
        (("review", "show", "x"), "heedful review list shows them"),
        (("run", "SELECT 1"), "Add one: heedful connect NAME URL"),
        (("stats", "x"), "Use a FACT_ID that heedful recall …, heedful facts or the evidence of a review item shows"),
    ],
)
def test_errors_name_commands_and_no_calls(
    store: str, line: tuple[str, ...], remedy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, said = fails(capsys, *line, "-s", store, "-p", "shop")
    assert said.endswith(f"\n  {remedy}\n")


def test_a_line_that_can_not_be_read_is_an_error_like_others(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = fails(capsys, "recall", "x", "--tpo-k", "3")
    assert code == 2
    assert said.startswith("error: no such option")
    assert said.endswith("See: heedful recall --help\n")
    code, said = fails(capsys, "recall", "--json")
    assert code == 2
    assert json.loads(said)["error"]["code"] == "usage"


def test_a_file_that_does_not_exist_is_told_before_anything_is_done(
    store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = fails(capsys, "remember", "A fact.", "--file", "no.md", "-s", "new.db")
    assert code == 3
    assert said.startswith("error: no.md does not exist\n")
    assert not (tmp_path / "new.db").exists()


@pytest.mark.slow
def test_what_can_not_be_undone_asks_first(store: str) -> None:
    there = ("-s", store, "-p", "shop")
    run("sessions", "add", "chat", *there)
    fact = json.loads(run("facts", "--json", *there).stdout)["items"][0]["fact_id"]
    key = json.loads(run("keys", "add", "reader", "--json", *there).stdout)["key_id"]
    for line in (
        *(("forget", fact), ("forget", "--source", "x"), ("forget", "--dataset", "main_dataset")),
        *(("forget", "--author", "x"), ("sessions", "remove", "chat"), ("keys", "revoke", key)),
    ):
        result = CliRunner().invoke(cli, [*there, *line], input="n\n")
        assert result.exit_code == 1
        assert "[y/N]" in result.stderr, line
    assert "Forget 1 fact, " in CliRunner().invoke(cli, [*there, "forget", fact], input="n\n").stderr
    assert json.loads(run("stats", "--json", *there).stdout)["total_facts"] == 1


@pytest.mark.parametrize("line", UNKNOWN, ids=" ".join)
def test_what_does_not_exist_is_said_before_anything_is_asked(
    store: str, line: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = fails(capsys, *line, "-s", store, "-p", "shop")
    assert code == 3
    assert "[y/N]" not in said


def test_a_line_without_a_command_shows_six_to_start_with(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([])
    shown = capsys.readouterr().out
    first = re.findall(r"^  heedful ([\w-]+)", shown, re.MULTILINE)
    assert ended.value.code == 0
    assert (len(first), set(first) - set(COMMANDS)) == (6, set())
    assert shown.endswith(f"All {len(COMMANDS)} commands: heedful --help. One of them: heedful COMMAND --help.\n")


def test_a_signal_names_the_facts_it_is_about(store: str) -> None:
    recall = json.loads(run("recall", "my password", "-s", store, "-p", "shop", "--json").stdout)["recall_id"]
    shown = run("signal", "--recall", recall, "--helpful", "1", "-s", store, "-p", "shop").stdout
    assert shown.startswith("1 signal, 1 fact updated\n")
    assert LONG[:60] in shown


def test_a_file_makes_the_same_facts_wherever_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("facts.txt").write_text("The CEO is Ada.\nRefunds take 14 days.\nThe office is in Berlin.\n")
    Path("page.md").write_text("# Refunds\n\nRefunds take\n14 days.\n\nReturns are free.\n")
    assert run("try", "facts.txt", input="\n").stdout.startswith("3 facts, one per line.")
    assert run("remember", "-f", "facts.txt").stdout.startswith("3 new, 0 known in main_dataset, one per line\n")
    assert run("try", "page.md", input="\n").stdout.startswith("2 facts, one per paragraph.")
    shown = run("remember", "-f", "page.md", "-f", "facts.txt").stdout
    assert shown.startswith("2 new, 3 known in main_dataset, one per line or paragraph\n")


def test_a_question_without_an_answer_ends_the_program(
    store: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    code, said = fails(capsys, "forget", "--dataset", "main_dataset", "-s", store, "-p", "shop")
    assert code == 1
    assert said.endswith("stopped\n")


@pytest.mark.slow
def test_colours_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[1;32m" in run("demo").stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[1;32m" not in run("demo").stdout


def test_a_shell_can_complete_commands_and_options() -> None:
    complete = ShellComplete(cli, {}, "heedful", "_HEEDFUL_COMPLETE")
    assert [each.value for each in complete.get_completions([], "rec")] == ["recall"]
    assert "--top-k" in [each.value for each in complete.get_completions(["recall"], "--to")]


def test_try_shows_the_loop_on_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "desk.jsonl").write_text(
        "\n".join(
            json.dumps({"text": text})
            for text in (
                "Password reset e-mails expire after fifteen minutes.",
                "Your account is locked after five wrong passwords.",
                "To get back into your account, call the help desk for a one-time code.",
            )
        )
    )
    typed = (
        "I can't log in to my account any more, what now?\n2\n"
        "I can't log in any more, what can I do?\n\n"
        "When do password reset e-mails expire?\n\n\n"
    )
    shown = run("try", "desk.jsonl", input=typed).stdout
    assert shown.startswith("3 facts.")
    before, after, elsewhere = (part.splitlines()[1:4] for part in shown.split("rank  ")[1:])
    assert ["Your account is locked" in line for line in before] == [True, False, False]
    assert ["call the help desk" in line for line in after] == [True, False, False]
    # A rating leaves other questions alone, as it does by default; the fixed blend would move them.
    assert [line.split()[:3] for line in elsewhere] == [[str(rank), str(rank), "0.50"] for rank in (1, 2, 3)]
    unmoved = "Your ratings are about other questions: this one ranks as it would without them. Rate it, too."
    assert shown.count(unmoved) == 1
    assert unmoved in shown.split("rank  ")[3]
    assert "nothing is kept" in shown
    assert {each.name for each in tmp_path.iterdir()} == {"desk.jsonl"}


def test_try_compares_with_ranks_without_feedback_and_splits_a_short_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "handbook.md").write_text(
        "# Parking\n\nVisitors park behind the building.\n\nParking is free after five in the evening.\n"
    )
    shown = run("try", "handbook.md", input="Where can my guest park?\n2\nWhere can a guest park?\n9\n\n\n").stdout
    assert shown.startswith("2 facts, one per paragraph. ")
    lines = [line.split() for line in shown.splitlines()]
    first, second = (number + 1 for number, line in enumerate(lines) if line[:1] == ["rank"])
    assert lines[first][:2] == ["1", "1"]
    # What helped moved up, and the second column says where it was.
    assert lines[second][:2] == ["1", "2"]
    # The rank is asked for again, and the next question comes after it.
    assert shown.endswith(
        "There is no rank 9. Enter rates nothing.\n1 rating, and nothing is kept. A store that keeps them: "
        "heedful remember --file handbook.md\n"
    )
    assert "1 rating, and nothing is kept" in shown


def test_a_rating_of_an_unknown_id_says_what_it_waits_for(store: str) -> None:
    shown = run("sessions", "rate", "chat-1", "up", "-s", store, "-p", "shop").stdout
    assert shown.startswith("waiting\n")
    assert "No answer has the id 'chat-1' yet" in shown


def test_the_guide_names_the_commands_that_need_the_store_itself() -> None:
    root = Path(__file__).parents[1]
    sources = [file.read_text(encoding="utf-8") for file in root.glob("src/heedful/interfaces/cli/*.py")]
    named = {name for source in sources for name in re.findall(r'\.local\("([^"]+)"\)', source)}
    guide = (root / "docs/howto/connect.md").read_text(encoding="utf-8")
    assert {name for name in named if f"`{name}`" not in guide.partition("### What needs the store")[2]} == set()


def test_a_signal_about_a_recall_names_facts_of_one(path: Path) -> None:
    with heedful.open(path, embedding=WordEmbedder()) as store:
        store.remember("Bikes can be unlocked offline.")
        shown = store.recall("How do I unlock a bike?").recall_id
    for arguments, problem in (
        (("--recall", shown), "nothing is said about the facts of the recall"),
        (("--helpful", "1"), "are about the facts of a recall"),
    ):
        refused = CliRunner().invoke(cli, ["--store", str(path), "signal", *arguments])
        assert isinstance(refused.exception, heedful.Invalid)
        assert problem in refused.exception.message
