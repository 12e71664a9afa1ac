"""The hooks of the plugin for Claude Code: `python -m bench.claude_code [--facts N] [--rounds N]`.

How long Claude Code waits for each, from the start of its command to its end, with a store of many facts; beside a
Python that does nothing, which is the least that any hook in Python takes.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import heedful

PLUGIN = Path(__file__).parents[1] / "plugins/claude-code"
NOTHING = "python that does nothing"
MOST = 150.0
"""Milliseconds that a hook may take at the 95th percentile."""


def main() -> None:
    """Prints a line for each hook; fails if one is too slow."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--facts", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = _prepare(folder, options.facts)
        try:
            slowest = _measure(folder, environment, options.rounds)
        finally:
            for lock in folder.glob(".heedful/*.lock"):
                os.kill(int(lock.read_text()), signal.SIGTERM)
    sys.exit(slowest > MOST)


def _prepare(folder: Path, facts: int) -> dict[str, str]:
    with heedful.open(folder / "memory.db", worker=False) as memory:
        memory.remember([f"{_statement(number)} in rack {number % 97}." for number in range(facts)])
    command = folder / "heedful-claude-code"
    source = Path(heedful.__file__).parents[1]
    main = "from heedful.integrations.claude_code import main; main()"
    command.write_text(f"#!/bin/sh\nPYTHONPATH={source} exec {sys.executable} -c '{main}' \"$@\"\n")
    command.chmod(0o755)
    return {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "HOME": str(folder),
        "HEEDFUL_STORE": str(folder / "memory.db"),
        "CLAUDE_PLUGIN_ROOT": str(PLUGIN),
    }


def _statement(number: int) -> str:
    return f"Service {number} listens on port {20_000 + number}"


def _measure(folder: Path, environment: dict[str, str], rounds: int) -> float:
    hooks = json.loads((PLUGIN / "hooks/hooks.json").read_text())["hooks"]
    transcript = folder / "transcript.jsonl"
    base = {"session_id": "bench", "transcript_path": str(transcript), "cwd": str(folder)}

    def run(command: str, message: dict[str, object]) -> float:
        started = time.perf_counter()
        content = json.dumps(base | message).encode()
        subprocess.run(["/bin/sh", "-c", command], input=content, env=environment, check=True, capture_output=True)
        return (time.perf_counter() - started) * 1000

    def hook(event: str, **message: object) -> float:
        return run(hooks[event][0]["hooks"][0]["command"], {"hook_event_name": event, **message})

    hook("UserPromptExpansion", command_name="heedful:good", command_args="", prompt="/heedful:good")
    spent: dict[str, list[float]] = {}
    for number in range(rounds):
        question, answer = f"Which port does service {number} use?", f"{_statement(number)}. [1]"
        lines = [
            {"type": "user", "message": {"role": "user", "content": question}},
            {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": answer}]}},
        ]
        spent.setdefault(NOTHING, []).append(run("python3 -I -S -c ''", {}))
        spent.setdefault("SessionStart", []).append(hook("SessionStart", source="startup"))
        spent.setdefault("UserPromptSubmit", []).append(hook("UserPromptSubmit", prompt=question))
        with transcript.open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        spent.setdefault("Stop", []).append(hook("Stop", last_assistant_message=answer, stop_hook_active=False))
    bare = np.percentile(spent[NOTHING], 95)
    print(f"{'milliseconds':26}{'least':>8}{'median':>8}{'p95':>8}{'of bare':>9}")
    for name, taken in spent.items():
        p95 = np.percentile(taken, 95)
        print(f"{name:26}{min(taken):8.1f}{np.median(taken):8.1f}{p95:8.1f}{p95 / bare:9.2f}")
    return max(float(np.percentile(taken, 95)) for taken in spent.values())


if __name__ == "__main__":
    main()
