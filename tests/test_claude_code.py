"""The plugin for Claude Code: its hooks, run as Claude Code runs them, and what they do to the next prompt."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from mcp import Client, StdioServerParameters, stdio_client
from patience import until

import heedful
from heedful.integrations.claude_code import last_answer

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PLUGIN = ROOT / "plugins/claude-code"
SOURCE = Path(heedful.__file__).parents[1]
"""Of the Heedful that is tested, also by the commands."""
HOOKS = json.loads((PLUGIN / "hooks/hooks.json").read_text(encoding="utf-8"))["hooks"]

AT_SIX = "The gym opens at six."
AT_SEVEN = "The gym opens at seven."
QUESTION = "When does the gym open?"
ANSWER = "The gym opens at six. [1]"


def front_matter(text: str) -> dict[str, Any]:
    """What a file says of itself, as YAML; Claude Code drops all of it if it can't be read."""
    found = re.match(r"---\n(.*?)^---\n", text, re.MULTILINE | re.DOTALL)
    assert found
    head = yaml.safe_load(found[1])
    assert isinstance(head, dict)
    return head


def said(kind: str, *content: Any, **fields: Any) -> str:
    """A line of a transcript."""
    blocks = [{"type": "text", "text": each} if isinstance(each, str) else each for each in content]
    message = {"role": kind, "content": content[0] if kind == "user" and isinstance(content[0], str) else blocks}
    return json.dumps({"type": kind, "message": message, "uuid": "u", **fields}) + "\n"


class ClaudeCode:
    """Runs hooks as Claude Code does: by a shell, with JSON on standard input."""

    def __init__(self, folder: Path, store: str | None = None) -> None:
        self.folder = folder
        self.store = folder / "memory.db"
        self.address = store or str(self.store)
        self.home = folder / "home"
        commands = folder / "bin"
        for each in (self.home, commands, folder / "repository"):
            each.mkdir()
        # A python3 that is found by a script, as those of version managers are, would start ten times as slowly.
        (commands / "python3").symlink_to(sys.executable)
        for name, module in (
            ("heedful", "heedful.interfaces.cli"),
            ("heedful-claude-code", "heedful.integrations.claude_code"),
        ):
            command = commands / name
            command.write_text(
                f"#!/bin/sh\nPYTHONPATH={SOURCE} exec {sys.executable} -c 'from {module} import main; main()' \"$@\"\n"
            )
            command.chmod(0o755)
        self.environment = {
            "PATH": f"{commands}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "HEEDFUL_STORE": self.address,
            "HEEDFUL_EMBEDDING": "fast",
            "CLAUDE_PLUGIN_ROOT": str(PLUGIN),
            "CLAUDE_PROJECT_DIR": str(folder / "repository"),
        }

    def hook(self, event: str, message: dict[str, Any] | bytes = b"", *, session: str = "s1") -> str:
        """What is added to the context of Claude by the hook of an event."""
        if isinstance(message, dict):
            transcript = {"transcript_path": str(self.transcript(session)), "cwd": str(self.folder / "repository")}
            message = json.dumps({"session_id": session, "hook_event_name": event, **transcript, **message}).encode()
        done = subprocess.run(
            ["/bin/sh", "-c", HOOKS[event][0]["hooks"][0]["command"]],
            input=message,
            capture_output=True,
            env=self.environment,
            cwd=self.folder / "repository",
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        if not done.stdout:
            return ""
        output = json.loads(done.stdout)
        specific = output["hookSpecificOutput"]
        assert specific["hookEventName"] == event
        context: str = specific["additionalContext"]
        # People are told what Claude is told.
        assert f"Heedful: {output['systemMessage']}" in context if "systemMessage" in output else True
        return context

    def answer(self, event: str, message: dict[str, Any], *, seconds: float = 5) -> bytes:
        """What the process behind the hooks answers in time, while a hook would give up after two seconds."""
        (name,) = self.home.glob(".heedful/*.sock")
        with tempfile.TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(seconds)
            # The path of a socket may have about a hundred characters, and a folder of pytest's more.
            link = Path(short, "home")
            link.symlink_to(name.parent)
            connection.connect(str(link / name.name))
            connection.sendall(event.encode() + b"\n" + json.dumps(message).encode())
            connection.shutdown(socket.SHUT_WR)
            return connection.recv(65536)

    def transcript(self, session: str) -> Path:
        return self.folder / f"{session}.jsonl"

    def prompt(self, text: str = QUESTION, session: str = "s1") -> str:
        with self.transcript(session).open("a") as lines:
            lines.write(said("user", text))
        return self.hook("UserPromptSubmit", {"prompt": text}, session=session)

    def stop(self, answer: str = ANSWER, session: str = "s1") -> None:
        with self.transcript(session).open("a") as lines:
            lines.write(said("assistant", answer))
        message = {"stop_hook_active": False, "last_assistant_message": answer}
        assert self.hook("Stop", message, session=session) == ""

    def command(self, text: str, session: str = "s1") -> str:
        name, _, words = text.removeprefix("/").partition(" ")
        given = {"expansion_type": "slash_command", "command_name": name, "command_args": words, "prompt": text}
        return self.hook("UserPromptExpansion", {**given, "command_source": "plugin"}, session=session)

    def teach(self) -> None:
        """Stores two facts and starts a session, and waits until the process behind the hooks is warm."""
        with heedful.open(self.address, embedding="fast", worker=False) as memory:
            memory.remember([AT_SIX, AT_SEVEN])
        assert self.hook("SessionStart", {"source": "startup"}) == ""
        assert "no answer yet" in self.command("/heedful:good")

    def close(self) -> None:
        for lock in self.home.glob(".heedful/*.lock"):
            with lock.open() as held:
                # The process holds it until it has ended.
                try:
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    os.kill(int(lock.read_text()), signal.SIGTERM)
                    fcntl.flock(held, fcntl.LOCK_EX)


@pytest.fixture
def claude(tmp_path: Path) -> Iterator[ClaudeCode]:
    with running(tmp_path) as opened:
        yield opened


@contextmanager
def running(folder: Path, store: str | None = None) -> Iterator[ClaudeCode]:
    """Claude Code, whose process is ended with it."""
    opened = ClaudeCode(folder, store)
    try:
        yield opened
    finally:
        opened.close()


@pytest.fixture
def taught(claude: ClaudeCode) -> ClaudeCode:
    """With two facts, of which the first is shown first."""
    claude.teach()
    return claude


def shown(context: str) -> list[str]:
    return sorted((fact for fact in (AT_SIX, AT_SEVEN) if fact in context), key=context.index)


@pytest.mark.slow
def test_a_rating_changes_the_memories_of_the_next_prompt_and_its_retraction_changes_them_back(
    tmp_path: Path, any_store: str
) -> None:
    with running(tmp_path, any_store) as taught:
        taught.teach()
        first = taught.prompt()
        assert shown(first) == [AT_SIX, AT_SEVEN]
        assert "[1]" in first
        taught.stop()
        rated = taught.command("/heedful:bad It opens at seven, doesn't it?")
        assert rated == "Heedful: the last answer is rated as bad"
        assert shown(taught.prompt())[0] == AT_SEVEN
        assert taught.command("/heedful:undo") == "Heedful: the rating of the last answer is undone"
        assert shown(taught.prompt()) == [AT_SIX, AT_SEVEN]
    with heedful.open(any_store, embedding="fast", worker=False) as memory:
        (entry,) = memory.sessions.entries("s1").items
        assert (entry.question, entry.answer) == (QUESTION, ANSWER)
        assert str(entry.external_id).startswith("claude-code/")
        assert [memory.fact(each.fact_id).text for each in entry.used or []] == [AT_SIX]


@pytest.mark.slow
def test_a_good_answer_is_remembered(taught: ClaudeCode) -> None:
    taught.prompt("Which editor do I use?")
    taught.stop("You use Helix.")
    assert taught.command("/heedful:good") == "Heedful: the last answer is rated as good"
    assert "You use Helix." in taught.prompt("Which editor do I use?")


@pytest.mark.nightly
def test_a_correction_is_remembered(taught: ClaudeCode) -> None:
    taught.prompt()
    taught.stop()
    assert "what is right is missing" in taught.command("/heedful:correct")
    assert "remembered" in taught.command('/heedful:correct The gym opens at "eight", $(date) isn\'t right.')
    assert 'opens at \\"eight\\"' in taught.prompt() or 'opens at "eight"' in taught.prompt()


@pytest.mark.nightly
def test_a_rating_is_no_question_of_its_own(taught: ClaudeCode) -> None:
    taught.prompt()
    taught.stop()
    # Whether a command is also submitted as a prompt depends on the version of Claude Code.
    taught.command("/heedful:good")
    assert taught.prompt("/heedful:good") == "Heedful: the last answer is rated as good"
    taught.stop("Noted.")
    with heedful.open(taught.store, embedding="fast", worker=False) as memory:
        (entry,) = memory.sessions.entries("s1").items
        assert (entry.question, entry.feedback_score) == (QUESTION, 5)


class TestWhatIsDoneAfterAStop:
    """An answer is stored after the hook was answered; what comes next waits for it."""

    @pytest.mark.nightly
    def test_each_rating_lands_on_the_answer_before_it(self, taught: ClaudeCode) -> None:
        for number in range(4):
            taught.prompt(f"Which number is {number}?")
            taught.stop(f"It is {number}.")
            taught.command("/heedful:good" if number % 2 else "/heedful:bad")
        with heedful.open(taught.store, embedding="fast", worker=False) as memory:
            entries = memory.sessions.entries("s1").items
        assert [(each.question, each.answer, each.feedback_score) for each in entries] == [
            (f"Which number is {number}?", f"It is {number}.", 5 if number % 2 else 1) for number in range(4)
        ]

    def test_a_rating_waits_for_an_answer_that_is_not_stored_yet(self, taught: ClaudeCode) -> None:
        taught.prompt()
        with ThreadPoolExecutor(1) as threads:
            with busy(taught.store) as entries:
                assert taught.answer("Stop", {"session_id": "s1", "last_assistant_message": ANSWER}) == b""
                assert entries() == 0
                rated = threads.submit(taught.command, "/heedful:good")
            assert rated.result() == "Heedful: the last answer is rated as good"
        with heedful.open(taught.store, embedding="fast", worker=False) as memory:
            (entry,) = memory.sessions.entries("s1").items
            assert (entry.answer, entry.feedback_score) == (ANSWER, 5)

    @pytest.mark.nightly
    def test_a_process_that_is_told_to_end_stores_the_answer_first(self, taught: ClaudeCode) -> None:
        taught.prompt()
        with ThreadPoolExecutor(1) as threads:
            with busy(taught.store) as entries:
                taught.stop()
                ended = threads.submit(taught.close)
                with pytest.raises(TimeoutError):
                    ended.result(timeout=1)
                assert entries() == 0
            ended.result()
        with heedful.open(taught.store, embedding="fast", worker=False) as memory:
            assert [each.answer for each in memory.sessions.entries("s1").items] == [ANSWER]


@contextmanager
def busy(store: Path) -> Iterator[Callable[[], int]]:
    """Lets nobody write to a store; what it yields counts its answers."""
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield lambda: connection.execute("SELECT count(*) FROM entries").fetchone()[0]


@pytest.mark.nightly
def test_sessions_at_the_same_time_do_not_mix(taught: ClaudeCode) -> None:
    def talk(number: int) -> None:
        session = f"at-once-{number}"
        for turn in range(2):
            prompt = {"session_id": session, "prompt": f"Number {number}, turn {turn}?"}
            stop = {"session_id": session, "last_assistant_message": f"Answer {number}, turn {turn}."}
            # Not by hooks, which give up after two seconds: on a busy machine, an answer would be missing.
            taught.answer("UserPromptSubmit", prompt, seconds=60)
            taught.answer("Stop", stop, seconds=60)

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(talk, range(6)))
    taught.close()  # It stores the last answers first.
    with heedful.open(taught.store, embedding="fast", worker=False) as memory:
        for number in range(6):
            entries = memory.sessions.entries(f"at-once-{number}").items
            assert [(each.question, each.answer) for each in entries] == [
                (f"Number {number}, turn {turn}?", f"Answer {number}, turn {turn}.") for turn in range(2)
            ]


class TestWhenHeedfulDoesNotWork:
    """Claude and its user are told once in a session, and no hook fails or waits."""

    def test_heedful_is_not_installed(self, claude: ClaudeCode) -> None:
        for name in ("heedful", "heedful-claude-code"):
            (claude.folder / "bin" / name).unlink()
        claude.environment["PATH"] = f"{claude.folder / 'bin'}:/usr/bin:/bin"
        message = {"prompt": QUESTION, "last_assistant_message": ANSWER, "source": "startup", "reason": "exit"}
        for session in ("s1", "s2"):
            told = claude.hook("SessionStart", message, session=session)
            assert "no memories are shown and nothing is stored: No such file" in told
            assert 'pipx install "heedful[mcp]"' in told
            for event in HOOKS:
                assert claude.hook(event, message, session=session) == ""
        # A command is answered in any case.
        assert "nothing is stored" in claude.command("/heedful:good")
        server = json.loads((PLUGIN / ".mcp.json").read_text())["mcpServers"]["memory"]
        script = [each.replace("${CLAUDE_PLUGIN_ROOT}", str(PLUGIN)) for each in server["args"]]
        done = subprocess.run(["python3", *script], env=claude.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert 'pipx install "heedful[mcp]"' in done.stderr

    @pytest.mark.nightly
    def test_the_store_is_broken(self, claude: ClaudeCode) -> None:
        def has_ended() -> bool:
            return bool(list(claude.home.glob(".heedful/*.problem")))

        claude.store.write_text("This is no store.")
        assert claude.hook("SessionStart", {"source": "startup"}) == ""
        until(has_ended)
        assert "Heedful can't open its memory, so nothing is shown or stored: " in claude.prompt()
        claude.stop()
        until(has_ended)
        assert claude.prompt() == ""
        until(has_ended)
        claude.store.unlink()
        assert "no answer yet" in claude.command("/heedful:good")
        assert not has_ended()

    @pytest.mark.nightly
    def test_the_store_is_locked(self, taught: ClaudeCode) -> None:
        with busy(taught.store):
            # The process gives up just before the hook does.
            told = taught.prompt() or taught.prompt()
            assert re.search("did not answer within 2 seconds .*; another program may have locked the store", told)
            assert taught.prompt() == ""
        until(lambda: shown(taught.prompt()) == [AT_SIX, AT_SEVEN])
        assert not list(taught.home.glob(".heedful/*.problem"))

    @pytest.mark.nightly
    def test_the_store_is_locked_before_it_is_opened(self, claude: ClaudeCode) -> None:
        claude.teach()
        claude.close()
        with busy(claude.store):
            assert claude.hook("SessionStart", {"source": "startup"}) == ""
            until(lambda: "may have locked the store" in claude.prompt())
        until(lambda: shown(claude.prompt()) == [AT_SIX, AT_SEVEN])

    @pytest.mark.nightly
    def test_an_answer_was_not_stored(self, taught: ClaudeCode) -> None:
        taught.prompt()
        with closing(sqlite3.connect(taught.store)) as connection:
            connection.execute("CREATE TRIGGER t BEFORE INSERT ON entries BEGIN SELECT RAISE(ABORT, 'no room'); END")
        taught.stop()
        told = taught.prompt()
        assert re.search("^Heedful: .*can't store the answer.*no room", told)
        assert shown(told) == [AT_SIX, AT_SEVEN]
        assert "no room" not in taught.prompt()
        (log,) = taught.home.glob(".heedful/*.log")
        assert re.search("can't store the answer.*no room", log.read_text())


@pytest.mark.nightly
def test_messages_that_are_none_do_no_harm(taught: ClaudeCode) -> None:
    for message in (b"", b"no json", b"[]", b'{"session_id": 5, "prompt": 5}', b'{"prompt": "x"}'):
        for event in HOOKS:
            assert taught.hook(event, message) == "", message
    taught.hook("UserPromptSubmit", {"prompt": "x" * 2_000_000})
    taught.hook("Stop", {"transcript_path": "/nonexistent", "last_assistant_message": None})
    assert shown(taught.prompt()) == [AT_SIX, AT_SEVEN]


@pytest.mark.nightly
def test_a_second_process_ends_by_itself_and_nobody_else_can_ask(taught: ClaudeCode) -> None:
    folder = taught.home / ".heedful"
    (name,) = folder.glob("*.sock")
    second = subprocess.run(
        ["heedful-claude-code", name.name], cwd=folder, env=taught.environment, timeout=60, check=False
    )
    assert second.returncode == 0
    assert shown(taught.prompt()) == [AT_SIX, AT_SEVEN]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(name.stat().st_mode) & 0o077 == 0


@pytest.mark.nightly
def test_the_settings_of_a_repository_are_not_read(taught: ClaudeCode) -> None:
    hostile = taught.folder / "repository/heedful.toml"
    hostile.write_text('project = "hostile"\nstore = "hostile.db"\n')
    assert shown(taught.prompt()) == [AT_SIX, AT_SEVEN]
    assert sorted(each.name for each in hostile.parent.iterdir()) == ["heedful.toml"]


@pytest.mark.nightly
def test_the_mcp_server_of_the_plugin_has_the_same_memory(taught: ClaudeCode) -> None:
    server = json.loads((PLUGIN / ".mcp.json").read_text())["mcpServers"]["memory"]
    arguments = [each.replace("${CLAUDE_PLUGIN_ROOT}", str(PLUGIN)) for each in server["args"]]

    async def talk() -> str:
        parameters = StdioServerParameters(command=server["command"], args=arguments, env=taught.environment)
        async with Client(stdio_client(parameters)) as client:
            return str((await client.call_tool("recall", {"query": QUESTION})).content)

    assert shown(asyncio.run(talk())) == [AT_SIX, AT_SEVEN]


class TestTranscripts:
    def test_the_answer_is_all_that_was_said_since_the_prompt(self, tmp_path: Path) -> None:
        path = tmp_path / "s.jsonl"
        tool = {"type": "tool_use", "name": "Bash", "input": {"command": "uv sync", "more": [{"a": "b"}]}}
        lines = [
            said("user", "First?"),
            said("assistant", "An earlier answer."),
            said("user", "Second?"),
            said("assistant", "Let me see.", tool),
            said("user", {"type": "tool_result", "content": "done"}),
            said("assistant", "From a subagent.", isSidechain=True),
            "no json\n",
            "5\n",
            said("assistant", "Done."),
        ]
        path.write_text("".join(lines))
        answer = last_answer(path, "Done.")
        assert answer.text == "Let me see.\n\nDone."
        assert "uv sync" in answer.evidence
        assert "earlier" not in answer.evidence

    def test_what_is_not_written_yet_is_added(self, tmp_path: Path) -> None:
        assert last_answer(tmp_path / "none.jsonl", "Done.").text == "Done."
        assert last_answer(tmp_path / "none.jsonl").text == ""


class TestFiles:
    def test_the_manifest_and_the_marketplace_agree(self) -> None:
        manifest = json.loads((PLUGIN / ".claude-plugin/plugin.json").read_text())
        (listed,) = json.loads((ROOT / ".claude-plugin/marketplace.json").read_text())["plugins"]
        assert manifest["name"] == listed["name"] == "heedful"
        assert (ROOT / listed["source"]).resolve() == PLUGIN
        assert manifest["version"] == heedful.__version__

    def test_every_skill_is_a_command_that_only_people_give(self) -> None:
        names = {path.parent.name for path in PLUGIN.glob("skills/*/SKILL.md")}
        assert names == {"good", "bad", "correct", "undo"}
        for name in names:
            text = (PLUGIN / f"skills/{name}/SKILL.md").read_text()
            head = front_matter(text)
            assert (head["name"], head["disable-model-invocation"]) == (name, True)
            # Claude Code would run it.
            assert "!`" not in text

    @pytest.mark.parametrize("path", sorted(PLUGIN.rglob("*.md")), ids=lambda path: str(path.relative_to(PLUGIN)))
    def test_what_a_file_says_of_itself_can_be_read(self, path: Path) -> None:
        head = front_matter(path.read_text(encoding="utf-8"))
        assert all(isinstance(head.get(name, ""), str) for name in ("name", "description", "argument-hint"))
        assert head["description"].strip()

    def test_hooks_have_a_limit_and_a_path_of_the_plugin(self) -> None:
        for entries in HOOKS.values():
            for hook in (each for entry in entries for each in entry["hooks"]):
                assert (hook["type"], "${CLAUDE_PLUGIN_ROOT}" in hook["command"]) == ("command", True)
                assert 0 < hook["timeout"] <= 30
        assert shutil.which("python3")
