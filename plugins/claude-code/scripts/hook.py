"""What Claude Code runs for each hook: it passes the event on to a process that is warm, and prints what that answers.

When nothing answers, it prints nothing, and starts that process for the next time. It runs before every prompt, with
whatever Python there is, so it imports almost nothing.
"""

from __future__ import annotations

import os
import sys

# Of `socket`, which takes as long to import as Python takes to start, it needs no more than this.
from _socket import AF_UNIX, SHUT_WR, SOCK_STREAM, socket

FOLDER = os.path.join(os.path.expanduser("~"), ".heedful")
SECONDS = 2.0
"""How long a prompt waits at most."""

PATIENCE = 20.0
"""How long a command of the user's waits, also for the process to start."""


def main() -> None:
    event = sys.argv[1]
    environment = dict(os.environ)
    environment.setdefault("HEEDFUL_STORE", os.path.join(FOLDER, "claude-code.db"))
    os.makedirs(FOLDER, mode=0o700, exist_ok=True)
    message = b"" if event == "mcp" else sys.stdin.buffer.read()
    # Also keeps the settings of a repository that was only opened from being read.
    os.chdir(FOLDER)
    if event == "mcp":
        # This folder is the user's own, whatever was opened.
        if os.path.exists("heedful.toml"):
            environment.setdefault("HEEDFUL_CONFIG", os.path.join(FOLDER, "heedful.toml"))
        os.execvpe("heedful", ["heedful", "mcp"], environment)
    command = event == "UserPromptExpansion"
    if command and b"heedful:" not in message:
        return
    name = socket_name(environment)
    answer = ask(name, event, message, PATIENCE if command else SECONDS)
    if answer is None and event in ("SessionStart", "UserPromptSubmit", "UserPromptExpansion"):
        start(name, environment)
        if command:
            answer = ask_again(name, event, message)
    sys.stdout.buffer.write(answer or b"")


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
    while time.monotonic() < until:
        answer = ask(name, event, message, PATIENCE)
        if answer is not None:
            return answer
        time.sleep(0.1)
    return None


def start(name: str, environment: dict[str, str]) -> None:
    """Starts the process, and leaves it to itself. A second one ends by itself."""
    import subprocess

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
