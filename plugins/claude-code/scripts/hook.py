"""What Claude Code runs for each hook: it passes the event on to a process that is warm, and prints what that answers.

When nothing answers, it starts that process for the next time. If Heedful isn't installed or its store can't be used,
it says so, once in a session. It runs before every prompt, with whatever Python there is, so it imports almost nothing.
"""

from __future__ import annotations

import os
import sys

# Of `socket`, which takes as long to import as Python takes to start, it needs no more than this.
from _socket import AF_UNIX, SHUT_WR, SOCK_STREAM, socket

FOLDER = os.path.join(os.path.expanduser("~"), ".heedful")
SECONDS = 2.5
"""How long a prompt waits at most; a recall that takes longer than 2 s has ended by then."""

PATIENCE = 20.0
"""How long a command of the user's waits, also for the process to start."""

NOT_HERE = "Heedful can't be started, so no memories are shown and nothing is stored"
INSTALL = 'Heedful must be on the PATH of Claude Code: pipx install "heedful[mcp]", or uv tool install "heedful[mcp]"'


def main() -> None:
    event = sys.argv[1]
    environment = dict(os.environ)
    environment.setdefault("HEEDFUL_STORE", os.path.join(FOLDER, "claude-code.db"))
    os.makedirs(FOLDER, mode=0o700, exist_ok=True)
    message = b"" if event == "mcp" else sys.stdin.buffer.read()
    # Also keeps the settings of a repository that was only opened from being read.
    os.chdir(FOLDER)
    if event == "mcp":
        serve_mcp(environment)
    command = event == "UserPromptExpansion"
    if command and b"heedful:" not in message:
        return
    name = socket_name(environment)
    answer = ask(name, event, message, PATIENCE if command else SECONDS)
    asks = event in ("SessionStart", "UserPromptSubmit", "UserPromptExpansion")
    problem = "" if event == "SessionStart" else read(f"{name}.problem")
    if answer is None and asks:
        try:
            start(name, environment)
        except OSError as error:
            problem = f"{NOT_HERE}: {error.strerror}: {error.filename}. {INSTALL}"
        else:
            if command:
                answer = ask_again(name, event, message)
                problem = read(f"{name}.problem")
    # A command is answered in any case.
    if problem and asks and (not is_told(f"{name}.told", message) or (command and not answer)):
        answer = notice(event, problem, answer)
    sys.stdout.buffer.write(answer or b"")


def serve_mcp(environment: dict[str, str]) -> None:
    # This folder is the user's own, whatever was opened.
    if os.path.exists("heedful.toml"):
        environment.setdefault("HEEDFUL_CONFIG", os.path.join(FOLDER, "heedful.toml"))
    try:
        os.execvpe("heedful", ["heedful", "mcp"], environment)
    except OSError as error:
        sys.exit(f"{NOT_HERE}: {error.strerror}: heedful. {INSTALL}")


def read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(2_000)
    except OSError:
        return ""


def is_told(path: str, message: bytes) -> bool:
    """Whether this session was told already; from now on it was."""
    session = message.partition(b'"session_id"')[2].partition(b'"')[2].partition(b'"')[0]
    with open(path, "a+b") as told:
        told.seek(max(0, told.tell() - 65_536))
        if session in told.read().splitlines():
            return True
        told.write(session + b"\n")
    return False


def notice(event: str, problem: str, answer: bytes | None) -> bytes:
    """The output of a hook with what Claude and its user are told besides."""
    import json

    output = json.loads(answer or b'{"hookSpecificOutput": {"additionalContext": ""}}')
    specific = output["hookSpecificOutput"]
    specific |= {
        "hookEventName": event,
        "additionalContext": f"Heedful: {problem}\n{specific['additionalContext']}".strip(),
    }
    return json.dumps({**output, "systemMessage": problem}).encode()


def socket_name(environment: dict[str, str]) -> str:
    """One process for each set of settings."""
    import zlib

    settings = sorted(f"{key}={value}" for key, value in environment.items() if key.startswith("HEEDFUL_"))
    return f"claude-code-{zlib.crc32(chr(0).join(settings).encode(errors='surrogateescape')):08x}.sock"


def ask(name: str, event: str, message: bytes, seconds: float) -> bytes | None:
    """What the process answers, nothing if it takes too long; None if there is no process."""
    connection = socket(AF_UNIX, SOCK_STREAM)
    try:
        connection.settimeout(seconds)
        try:
            connection.connect(name)
        except OSError:
            return None
        try:
            connection.sendall(event.encode() + b"\n" + message)
            connection.shutdown(SHUT_WR)
            parts: list[bytes] = []
            while True:
                part = connection.recv(65536)
                if not part:
                    return b"".join(parts)
                parts.append(part)
        except OSError:
            return b""
    finally:
        connection.close()


def ask_again(name: str, event: str, message: bytes) -> bytes | None:
    """What a process answers that was only just started."""
    import time

    until = time.monotonic() + PATIENCE
    # It has ended if it says what its problem is.
    while time.monotonic() < until and not os.path.exists(f"{name}.problem"):
        answer = ask(name, event, message, PATIENCE)
        if answer is not None:
            return answer
        time.sleep(0.1)
    return None


def start(name: str, environment: dict[str, str]) -> None:
    """Starts the process, and leaves it to itself. A second one ends by itself."""
    import subprocess

    if os.path.exists(f"{name}.problem"):
        os.unlink(f"{name}.problem")
    with open(f"{name}.log", "ab") as log:
        subprocess.Popen(
            ["heedful-claude-code", name],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


if __name__ == "__main__":
    try:
        main()
    except Exception:
        # Whatever it is: Claude Code goes on as if there were no plugin.
        sys.exit(0)
