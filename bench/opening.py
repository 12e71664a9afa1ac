"""How long a fresh process needs from opening a store to its first recall, and how much memory it takes.

`python -m bench.opening STORE QUERY` is that process.
"""

from __future__ import annotations

import importlib
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
    """Seconds to import what opening a store needs, to open, of the first recall, the part of it that was embedding, of
    a bare SELECT that reads the saved index on a new connection (0 for a file, which is mapped), and memory in MB."""

    imports: float
    open: float
    first: float
    embedding: float
    bare: float
    memory_before: float
    memory: float

    @property
    def seconds(self) -> float:
        """From `heedful.open` to the first result."""
        return self.imports + self.ready

    @property
    def ready(self) -> float:
        """The same without imports and embedding."""
        return self.open + self.first - self.embedding


def measure(store: str | Path, query: str) -> Opened:
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
    start = time.perf_counter()
    is_server = store.startswith("postgresql")
    for module in ("heedful.store", "numpy.ma", *(["psycopg"] if is_server else [])):
        importlib.import_module(module)
    imports = time.perf_counter() - start
    before = peak_memory()
    start = time.perf_counter()
    opened = heedful.open(store, embedding=model)
    then = time.perf_counter()
    result = opened.recall(query)
    end = time.perf_counter()
    assert len(result) == 10
    made = {"imports": imports, "open": then - start, "first": end - then, "embedding": embedding}
    memory = peak_memory()
    opened.close()
    bare = bare_read(store) if is_server else 0.0
    print(json.dumps({**made, "bare": bare, "memory_before": before, "memory": memory}))


def bare_read(url: str) -> float:
    """Seconds of connecting and of reading all saved indexes, by the driver alone."""
    import psycopg

    start = time.perf_counter()
    with psycopg.connect(url, options="-c heedful.everything=on") as connection:
        connection.cursor(binary=True).execute("SELECT content FROM heedful.saved_indexes").fetchall()
    return time.perf_counter() - start


if __name__ == "__main__":
    main(*sys.argv[1:])
