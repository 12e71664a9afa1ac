"""`heedful demo --dashboard`: a help desk after two weeks, to look at."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

import heedful
from heedful.cli.common import Options, extra, progress
from heedful.cli.output import echo
from heedful.errors import Conflict
from heedful.files import FOLDER_MODE
from heedful.model import NewKey
from heedful.simulate import traffic
from heedful.simulate.traffic import Embedding

STORE = "demo.db"
PROJECT = "demo"

INTERRUPTED = 130
"""The exit code of what Ctrl-C stopped before it was done."""

TOLD = {
    "facts": "facts remembered",
    "learnt facts": "learnt",
    **{name: name for name in ("sessions", "entries", "ratings", "comments", "signals", "executions")},
}
"""What is told of a store that was filled, in which words."""

Run = Callable[[str, str, int, Callable[[str, NewKey | None], None]], None]


def show_dashboard(options: Options, port: int, keep: Path | None) -> None:
    """Fills a store, if it is not there yet, and serves its dashboard until Ctrl-C; only what is kept stays."""
    run = _dashboard()
    # Ctrl-C is how it is stopped.
    with suppress(KeyboardInterrupt), _folder(keep) as name:
        store = Path(name) / STORE
        own = _filled(store, options.embedding)

        def ready(address: str, key: NewKey | None) -> None:
            shown = own or key
            if shown is not None:
                echo(f"key to log in with: {shown.api_key}")
            echo(f"dashboard on {address}/p/{PROJECT}/overview", err=True)
            echo("Ctrl-C stops it", err=True)

        run(str(store), "127.0.0.1", port, ready)


def _filled(store: Path, embedding: Embedding) -> NewKey | None:
    """The same as `fill_or_use`; what was filled in part when somebody pressed Ctrl-C is of no use, and goes."""
    before = _files(store)
    try:
        return fill_or_use(store, embedding)
    except KeyboardInterrupt:
        if store not in before:
            for file in _files(store) - before:
                file.unlink(missing_ok=True)
            echo("stopped; nothing is kept", err=True)
        sys.exit(INTERRUPTED)


def _files(store: Path) -> set[Path]:
    """The files of a store that are there, and of the shop beside it."""
    return {*store.parent.glob(f"{STORE}*"), *store.parent.glob(traffic.warehouse_file(store).name)}


def fill_or_use(store: Path, embedding: Embedding, *, sessions: int = traffic.SESSIONS) -> NewKey | None:
    """Fills a store that is not there. One that is there is used as it is: it gets a key, as its first was shown."""
    if not store.exists():
        store.parent.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
        echo(f"filling {store.parent} with two weeks of a help desk, about half a minute…", err=True)
        with progress("visits of two weeks") as show:
            filled = traffic.fill(store, project=PROJECT, embedding=embedding, sessions=sessions, progress=show)
        echo(", ".join(f"{filled.counts.get(name, 0)} {word}" for name, word in TOLD.items()))
        return None
    with heedful.open(store, project=PROJECT, embedding=embedding, worker=False) as memory:
        if not traffic.is_filled(memory):
            raise Conflict(
                f"{store} is no store that this command has filled to the end",
                field="keep",
                value=str(store.parent),
                remedy="Delete it, or name another folder",
            )
        return memory.keys.create("demo", scopes=["admin"])


def _folder(keep: Path | None) -> AbstractContextManager[str]:
    if keep is not None:
        return nullcontext(str(keep))
    return tempfile.TemporaryDirectory(prefix="heedful-demo-", ignore_cleanup_errors=True)


def _dashboard() -> Run:
    """What serves a dashboard; asked for before anything is filled, because it is an extra."""
    with extra("dashboard", "the dashboard"):
        from heedful.dashboard.serve import run
    return run
