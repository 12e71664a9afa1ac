"""How many files of the project one warm call passes through: what a reader must open to follow it."""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

from fastapi.testclient import TestClient

import heedful
from bench.measure import Report, about
from heedful.interfaces.http.app import create, set_up
from heedful.interfaces.http.config import Config
from heedful.store import Store
from heedful.testing import WordEmbedder

ROOT = Path(heedful.__file__).parent
QUERY = "How long do refunds take?"
QUESTION = "How many orders are in Rome?"
KEY = "an-admin-key-for-counting-files"


class Files:
    """The files that ran, in all threads, while it was on."""

    def __init__(self) -> None:
        self._on = False
        self._found: set[str] = set()
        threading.setprofile(self._seen)
        sys.setprofile(self._seen)

    def of(self, call: Callable[[], object]) -> list[str]:
        """The files of the project that a call passes through; it is made once before, to be warm."""
        call()
        self._found, self._on = set(), True
        call()
        self._on = False
        return sorted(self._found)

    def _seen(self, frame: FrameType, event: str, argument: object) -> None:
        if self._on and event == "call" and frame.f_code.co_filename.startswith(str(ROOT)):
            self._found.add(str(Path(frame.f_code.co_filename).relative_to(ROOT)))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.files_per_call", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("bench/out"), help="where figures go")
    parser.add_argument("-v", "--verbose", action="store_true", help="list the files of each call, too")
    options = parser.parse_args(arguments)
    files = Files()
    report = Report("Files that one call passes through", about())
    section = report.section("A warm call", "call", "files")
    with tempfile.TemporaryDirectory() as folder:
        for name, found in _counted(files, Path(folder)).items():
            section.rows.append([name, str(len(found))])
            report.figures[name] = found
            section.notes += [f"{name}: {', '.join(found)}"] if options.verbose else []
    report.show()
    report.save(options.out / "files.json")


def _counted(files: Files, folder: Path) -> dict[str, list[str]]:
    with sqlite3.connect(folder / "shop.sqlite") as shop:
        shop.executescript("CREATE TABLE orders (id integer, city text); INSERT INTO orders VALUES (1, 'Rome')")
    with heedful.open(folder / "store.db", embedding=WordEmbedder(), worker=False) as store:
        store.remember(["Refunds take 14 days.", "The shop is in Rome.", "Lamps come with a battery."])
        shown = store.recall(QUERY, session_id="s")
        assert shown.qa_id is not None
        entry, fact = shown.qa_id, shown[0].fact_id
        store.connectors.create("shop", f"sqlite:///{folder / 'shop.sqlite'}")
        run = store.executions.execute_query("SELECT count(*) FROM orders WHERE city = 'Rome'", question=QUESTION)
        store.feedback.create_positive(execution_id=run.execution_id, author="ann")
        signal = {"fact_id": fact, "signal_type": "used", "query": QUERY}
        counted = {
            "recall": files.of(lambda: store.recall(QUERY)),
            "signal": files.of(lambda: store.signal([signal])),
            "add_feedback": files.of(lambda: store.sessions.add_feedback("s", entry, "good", 5, author="ann")),
            "cache lookup": files.of(lambda: store.chat.execution_cache_lookup(QUESTION)),
            "retract": files.of(lambda: store.retract(store.signal([signal]).event_ids[0])),
        }
    config = Config(store=str(folder / "store.db"), admin_key=KEY, quiet=True, worker=False)
    set_up(config)
    headers = {"Authorization": f"Bearer {KEY}"}
    with TestClient(create(config, Store(config.store, embedding=WordEmbedder())), headers=headers) as client:
        path = "/v1/projects/default/recall"
        counted["recall over REST"] = files.of(lambda: client.post(path, json={"query": QUERY}).raise_for_status())
    return counted


if __name__ == "__main__":
    main()
