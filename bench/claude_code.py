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
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

import heedful
from bench.measure import Bar, Report, about, number

PLUGIN = Path(__file__).parents[1] / "plugins/claude-code"
NOTHING = "python that does nothing"
MOST = 150.0
"""Milliseconds that a hook may take at the 95th percentile."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.claude_code", description=__doc__)
    parser.add_argument("--facts", type=int, default=10_000, help="facts in the store (10000)")
    parser.add_argument("--rounds", type=int, default=200, help="times that each hook runs (200)")
    parser.add_argument("--out", type=Path, default=Path("bench/out"), help="where figures go")
    options = parser.parse_args(arguments)
    report = Report("Hooks of Claude Code", about(facts=f"{options.facts:,}", rounds=options.rounds))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = _prepare(folder, options.facts)
        try:
            _tell(report, _measure(folder, environment, options.rounds))
        finally:
            for lock in folder.glob(".heedful/*.lock"):
                os.kill(int(lock.read_text()), signal.SIGTERM)
    report.show()
    report.save(options.out / "claude_code.json")


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


def _measure(folder: Path, environment: dict[str, str], rounds: int) -> dict[str, list[float]]:
    """The milliseconds of each hook, in turns."""
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
    for turn in range(rounds):
        question, answer = f"Which port does service {turn} use?", f"{_statement(turn)}. [1]"
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
    return spent


def _tell(report: Report, spent: Mapping[str, Sequence[float]]) -> None:
    bare = np.percentile(spent[NOTHING], 95)
    section = report.section("A hook, ms", "hook", "least", "p50", "p95", "÷ Python that does nothing, p95")
    for name, taken in spent.items():
        p50, p95 = (float(each) for each in np.percentile(taken, [50, 95]))
        section.rows.append([name, number(min(taken)), number(p50), number(p95), f"{p95 / bare:.2f}"])
        if name != NOTHING:
            report.bars.append(Bar(f"{name}, p95", p95, MOST, "at most", "ms"))


if __name__ == "__main__":
    main()
