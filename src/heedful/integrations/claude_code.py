"""Claude Code: the process behind the hooks of `plugins/claude-code`. It stays warm, so that they are quick.

`heedful-claude-code NAME` listens on a socket of this name in the current folder, until nobody asked for an hour.
"""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

import heedful
from heedful import settings
from heedful.clock import new_id
from heedful.errors import Unavailable
from heedful.integrations.turns import BlockingMemory, Memories, Runs, Turns, strings
from heedful.providers.configured import configured_embedder

IDLE = 3_600.0
"""Seconds without a hook after which the process ends."""

SLOW = 5.0
"""Seconds after which a store that is still being opened is a problem."""

MAYBE_LOCKED = "; another program may have locked the store, or its server doesn't answer"

MAX_MESSAGE = 20_000_000
"""Bytes of a hook's message that are read at most."""

MAX_QUESTION = 4_000
"""Characters of a prompt that are recalled for, and stored."""

MAX_STORING = 8
"""Answers that are stored at the same time."""

COMMANDS = ("good", "bad", "correct", "undo")
PREFIX = "heedful:"
"""Before the name of a command."""

BEST, WORST = 5, 1

Payload = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PendingPrompt:
    """A prompt that is being answered."""

    memories: Memories
    external_id: str


class Problem(logging.Handler):
    """A file that says why Heedful doesn't work, while it doesn't: hooks tell it to each session once.

    It has the last warning of the adapters. `name` is that of the socket.
    """

    def __init__(self, name: str) -> None:
        super().__init__(logging.WARNING)
        self._path, self._told = Path(f"{name}.problem"), Path(f"{name}.told")
        self._is_new = False

    def emit(self, record: logging.LogRecord) -> None:
        is_slow = isinstance(record.args, tuple) and any(isinstance(each, Unavailable) for each in record.args)
        self.tell(f"{record.getMessage()}{MAYBE_LOCKED if is_slow else ''}")

    def tell(self, text: str) -> None:
        self._is_new = True
        written = self._path.with_suffix(".writing")
        # A hook reads all of it or nothing; on a full disk, the log has it.
        with suppress(OSError):
            written.write_text(text, errors="replace")
            written.replace(self._path)

    def end(self) -> None:
        """Heedful works again; if it fails later, that is told again."""
        self._is_new = False
        self._path.unlink(missing_ok=True)
        self._told.unlink(missing_ok=True)

    def take(self) -> bool:
        """Whether something failed since this was last asked."""
        was_new, self._is_new = self._is_new, False
        return was_new


class Hooks:
    """Answers the hooks of all sessions; threads may share it. When Heedful fails, the answer is empty, and the problem
    says why.

    No hook waits until Claude's answer is stored, but the next one of the same session; call `finish` before the memory
    is closed.
    """

    def __init__(self, memory: BlockingMemory, problem: Problem) -> None:
        self._memory = memory
        self._problem = problem
        self._recalls = Turns(memory)
        self._turns = Runs()
        self._storing = Runs()
        self._pool = ThreadPoolExecutor(MAX_STORING)
        self._events: dict[str, Callable[[str, Payload], str]] = {
            "UserPromptSubmit": self._prompt,
            "UserPromptExpansion": self._command,
            "Stop": self._stop,
            "SessionEnd": self._end,
        }

    def answer(self, event: str, payload: Payload) -> bytes:
        """The output of the hook of an event."""
        handle = self._events.get(event)
        session_id = payload.get("session_id")
        if handle is None or not isinstance(session_id, str):
            return b""
        self.finish(payload)
        context = ""
        with self._recalls.guarded(f"answer {event}"):
            context = handle(session_id, payload)
        if not context:
            return b""
        return orjson.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": context}})

    def finish(self, payload: Payload) -> None:
        """Waits until the last answer of a session is stored."""
        storing: Future[None] | None = self._storing.get(str(payload.get("session_id")))
        if storing is not None:
            wait([storing])

    def forget(self, payload: Payload) -> None:
        """Forgets the turn of a session, whose prompt was not given the memories."""
        self._turns.pop(str(payload.get("session_id")))

    def _prompt(self, session_id: str, payload: Payload) -> str:
        prompt = str(payload.get("prompt") or "").strip()
        if prompt.startswith(f"/{PREFIX}"):
            return self._command(session_id, payload)
        self._turns.pop(session_id)
        if not prompt:
            return ""
        was_new = self._problem.take()
        memories = self._recalls.recall(prompt[:MAX_QUESTION])
        if memories.recall_id is None:
            self._problem.take()
        elif not was_new:
            # What failed after the last prompt, such as storing its answer, is still to be told.
            self._problem.end()
        self._turns.put(session_id, PendingPrompt(memories, f"claude-code/{new_id()}"))
        return memories.prompt

    def _stop(self, session_id: str, payload: Payload) -> str:
        turn: PendingPrompt | None = self._turns.pop(session_id)
        if turn is None:
            return ""
        # Read now: the next prompt may be in the transcript before its hook runs.
        path, final = Path(str(payload.get("transcript_path"))), str(payload.get("last_assistant_message") or "")
        answer = last_answer(path, final)
        if answer.text:
            self._storing.put(session_id, self._pool.submit(self._store, session_id, turn, answer))
        return ""

    def _store(self, session_id: str, turn: PendingPrompt, answer: WrittenAnswer) -> None:
        """Stores the entry; what it used is detected once, here, also in what was done besides writing."""
        recall_id, used = turn.memories.recall_id, None
        with self._recalls.guarded("store the answer"):
            if recall_id is not None:
                detected = self._memory.detect(answer.evidence, recall_id)
                used = {fact.fact_id: fact.confidence for fact in detected if fact.signal_type == "used"}
            ids = {"recall_id": recall_id, "external_id": turn.external_id}
            self._memory.sessions.add_entry(session_id, turn.memories.question, answer.text, used=used, **ids)

    def _command(self, session_id: str, payload: Payload) -> str:
        """Does what `/heedful:…` says, with the last answer of the session."""
        name, text = _read_command(payload)
        if name not in COMMANDS:
            return ""
        # It is no question itself.
        self._turns.pop(session_id)
        if name == "correct" and text is None:
            return "Heedful: nothing was stored, because what is right is missing: /heedful:correct WHAT IS RIGHT"
        sessions = self._memory.sessions
        entries = sessions.entries(session_id, limit=1, newest_first=True).items if sessions.exists(session_id) else []
        if not entries:
            return "Heedful: nothing was stored, because this session has no answer yet"
        qa_id = entries[0].qa_id
        if name == "undo":
            done = sessions.delete_feedback(session_id, qa_id)
            return f"Heedful: {'the rating of the last answer is undone' if done else 'the last answer had no rating'}"
        sessions.add_feedback(session_id, qa_id, text, BEST if name == "good" else WORST)
        learnt = self._memory.improve(session_ids=[session_id]).learnt
        if name == "correct" and text is not None:
            if not learnt:
                self._memory.remember(text)
            return "Heedful: the last answer is rated as wrong, and what is right is remembered"
        return f"Heedful: the last answer is rated as {name}"

    def _end(self, session_id: str, payload: Payload) -> str:
        self._turns.pop(session_id)
        return ""


def _read_command(payload: Payload) -> tuple[str, str | None]:
    """The name of a command of ours, and the words behind it."""
    name, words = payload.get("command_name"), payload.get("command_args")
    if not isinstance(name, str):
        name, _, words = str(payload.get("prompt") or "").strip().removeprefix("/").partition(" ")
    if not name.startswith(PREFIX):
        return "", None
    return name.removeprefix(PREFIX), str(words or "").strip() or None


class _Handler(socketserver.StreamRequestHandler):
    """One hook: the name of its event in a line, then its message."""

    server: HookServer

    def handle(self) -> None:
        event, _, body = self.rfile.read(MAX_MESSAGE).partition(b"\n")
        try:
            payload = orjson.loads(body or b"{}")
        except orjson.JSONDecodeError:
            return
        if not isinstance(payload, dict):
            return
        hooks = self.server.hooks
        answer = hooks.answer(event.decode(errors="replace"), payload)
        try:
            self.wfile.write(answer)
            # The hook ends here, and not when the rest is done.
            self.connection.shutdown(socket.SHUT_WR)
        except OSError:
            # The hook didn't wait, so Claude was shown nothing.
            hooks.forget(payload)
        hooks.finish(payload)


class HookServer(socketserver.ThreadingUnixStreamServer):
    """Listens from the beginning: a hook that comes while the store is being opened waits for it."""

    daemon_threads = False
    request_queue_size = 64
    hooks: Hooks

    def __init__(self, name: str, idle: float = IDLE) -> None:
        self._idle = idle
        self._last = time.monotonic()
        super().__init__(name, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._last = time.monotonic()
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        if time.monotonic() - self._last > self._idle:
            self.stop()

    def stop(self, *_: object) -> None:
        """Ends the serving, from any thread."""
        threading.Thread(target=self.shutdown, name="heedful-stop").start()


def main() -> None:
    """Serves the hooks; ends at once where another process does."""
    name = sys.argv[1]
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    os.umask(0o077)
    with open(f"{name}.lock", "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        lock.truncate(0)
        print(os.getpid(), file=lock, flush=True)
        with suppress(FileNotFoundError):
            os.unlink(name)
        problem = Problem(name)
        logging.getLogger("heedful.integrations").addHandler(problem)
        with HookServer(name) as server:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, server.stop)
            late = threading.Timer(
                SLOW, problem.tell, [f"Heedful's memory is not open after {SLOW:g} seconds{MAYBE_LOCKED}"]
            )
            late.daemon = True
            late.start()
            try:
                memory = _opened()
            except Exception as error:
                problem.tell(f"Heedful can't open its memory, so nothing is shown or stored: {error}")
                raise
            finally:
                late.cancel()
            problem.end()
            with memory:
                server.hooks = Hooks(memory, problem)
                server.serve_forever()
                # Waits for the hooks that are being answered, and for what they left to do, with the store open.
                server.server_close()
        with suppress(FileNotFoundError):
            os.unlink(name)


def _opened() -> BlockingMemory:
    """The store or server of the settings, with a model that is loaded."""
    config = settings.load()
    if config.store.startswith(("http://", "https://")):
        settings.check_server_key()
        return heedful.connect(config.store, project=config.project)
    embedder = configured_embedder(config, None)
    embedder.embed(["warm"])
    # The store of one person, whose word is enough.
    if "authors_to_teach" not in config.model_fields_set:
        os.environ["HEEDFUL_AUTHORS_TO_TEACH"] = "1"
    return heedful.open(embedding=embedder)


MAX_READ = 4_000_000
"""Bytes at the end of a transcript that are looked at; a session may have many times as much."""

MAX_EVIDENCE = 200_000
"""Characters of what was done in which facts are looked for."""


@dataclass(frozen=True, slots=True)
class WrittenAnswer:
    """An answer of Claude's."""

    text: str
    """The words that it wrote."""
    evidence: str
    """The same, and what it passed to tools: a fact may be used in a command and not in words."""


def last_answer(path: Path, final: str = "") -> WrittenAnswer:
    """The answer to the last prompt in a transcript; `final` is its end, which may not be written there yet."""
    texts: list[str] = []
    inputs: list[str] = []
    for message in _since_prompt(path):
        for block in message:
            if block.get("type") == "text":
                texts.append(str(block.get("text", "")))
            elif block.get("type") == "tool_use":
                inputs += strings(block.get("input"))
    if final and final not in texts:
        texts.append(final)
    text = "\n\n".join(part.strip() for part in texts if part.strip())
    return WrittenAnswer(text, "\n".join([text, *inputs])[:MAX_EVIDENCE])


def _since_prompt(path: Path) -> list[list[dict[str, Any]]]:
    """The contents of what the assistant said since the last prompt, in order."""
    found: list[list[dict[str, Any]]] = []
    for line in reversed(_last_lines(path)):
        try:
            entry = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        message = entry.get("message") if isinstance(entry, dict) else None
        if not isinstance(message, dict) or entry.get("isSidechain") or entry.get("isMeta"):
            continue
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        blocks = [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
        if entry.get("type") == "assistant":
            found.append(blocks)
        elif entry.get("type") == "user" and any(block.get("type") == "text" for block in blocks):
            break
    return found[::-1]


def _last_lines(path: Path) -> list[bytes]:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - MAX_READ))
            return file.read(MAX_READ).splitlines()
    except OSError:
        return []
