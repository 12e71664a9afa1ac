"""How long a fresh process needs from opening a store to its first recall, and how much memory it takes.

`python -m bench.opening STORE QUERY` is that process.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import heedful
from heedful.providers.embedding import bundled


@dataclass(frozen=True, slots=True)
class Opened:
    """Seconds to open, seconds of the first recall, the part of it that was embedding, and memory in MB."""

    open: float
    first: float
    embedding: float
    memory_before: float
    memory: float

    @property
    def seconds(self) -> float:
        """From `heedful.open` to the first result."""
        return self.open + self.first


def measure(store: Path, query: str) -> Opened:
    """Opens the store in a process of its own."""
    command = [sys.executable, "-m", "bench.opening", str(store), query]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return Opened(**json.loads(answer.stdout.splitlines()[-1]))


def peak_memory() -> float:
    """The most memory this process has had, in MB, files that it maps included."""
    status = Path("/proc/self/status")
    if status.is_file():
        # What `getrusage` says of a new process includes the memory of the one that started it.
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)


def main(store: str, query: str) -> None:
    """Loads the model, then opens the store and asks."""
    model = bundled()
    model.embed([query])
    start = time.perf_counter()
    model.embed([query])
    embedding = time.perf_counter() - start
    before = peak_memory()
    start = time.perf_counter()
    opened = heedful.open(store, embedding=model)
    then = time.perf_counter()
    result = opened.recall(query)
    end = time.perf_counter()
    assert len(result) == 10
    made = {"open": then - start, "first": end - then, "embedding": embedding}
    print(json.dumps({**made, "memory_before": before, "memory": peak_memory()}))
    opened.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
