"""demo: the whole loop in a few seconds on a store that is thrown away, or a dashboard after two weeks."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

import heedful
from heedful.clock import system_clock
from heedful.engine import Heedful
from heedful.errors import Conflict, Invalid
from heedful.files import FOLDER_MODE
from heedful.interfaces.cli.runner import Options, command, extra
from heedful.interfaces.cli.screen import STOPPED, console, echo, progress, show_table
from heedful.interfaces.cli.server_commands import show_link
from heedful.model import Hit, NewKey
from heedful.simulate import traffic
from heedful.simulate.shop import HANDBOOK
from heedful.simulate.traffic import Embedding

FACTS = (
    "Passwords must have at least twelve characters and one digit.",
    "Password reset e-mails expire after fifteen minutes.",
    "To get back into your account, ask the help desk for a one-time code.",
    "Password managers are allowed on company laptops.",
    "The help desk is open from 8:00 to 18:00.",
    "Your account is locked after five wrong passwords.",
    "Visitors get a Wi-Fi password at the reception.",
    "Expense reports are due on the fifth of each month.",
    "The office in Lisbon opens at nine.",
    "Annual leave is requested in the HR portal.",
)
HELPFUL = FACTS[2]
RATED_QUESTION = "How do I reset my password?"
RELATED_QUESTION = "I forgot my password, how do I reset it?"


@command(None, as_json=False)
@click.option("--dashboard", is_flag=True, help="Show the dashboard of a help desk after two weeks instead.")
@click.option("--port", default=8001, show_default=True, help="The dashboard's port; 0 for any that is free.")
@click.option(
    "--keep",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the dashboard's store in this folder, and use it again.",
)
def demo(options: Options, dashboard: bool, port: int, keep: Path | None) -> None:
    """With --dashboard, show what the loop looks like in use, until Ctrl-C."""
    if dashboard:
        show_dashboard(options, port, keep)
    elif keep is not None:
        raise Invalid("--keep requires --dashboard", field="keep", value=str(keep), remedy="Add --dashboard")
    else:
        show_loop(options)


def show_loop(options: Options) -> None:
    """The loop, step by step."""
    screen = console()
    with heedful.open(":memory:", embedding=options.embedding) as memory:
        facts = memory.remember(list(FACTS))
        helpful = facts.fact_ids[FACTS.index(HELPFUL)]
        screen.print(f"\n[bold]1. Remember[/bold] {facts.added} facts of a help desk.")

        before = memory.recall(RELATED_QUESTION, top_k=5)
        rank = next((str(hit.rank) for hit in before.hits if hit.fact_id == helpful), "6 or below")
        screen.print(f"\n[bold]2. Recall[/bold] {RELATED_QUESTION!r}: what helps, in green, is at rank {rank}.")
        _ranking(before.hits)

        shown = memory.recall(RATED_QUESTION)
        rated = memory.signal_recall(shown, helpful=[helpful], author="ana")
        rank = next(str(hit.rank) for hit in shown.hits if hit.fact_id == helpful)
        screen.print(f"\n[bold]3. Rate.[/bold] Ana asks {RATED_QUESTION!r} and says that this, at rank {rank}, helped:")
        screen.print(f"   [bold green]{HELPFUL}[/bold green]")

        after = memory.recall(RELATED_QUESTION, top_k=5, explain=True)
        screen.print(f"\n[bold]4. Recall[/bold] {RELATED_QUESTION!r} again:")
        _ranking(after.hits, before.hits)

        screen.print("\n[bold]5. Explain[/bold] the first rank:")
        reasons = after.hits[0].explanation
        assert reasons is not None
        for line in reasons.arithmetic:
            screen.print(f"   {line}")

        for event in rated.event_ids:
            memory.retract(event)
        restored = memory.recall(RELATED_QUESTION, top_k=5)
        same = [hit.fact_id for hit in restored.hits] == [hit.fact_id for hit in before.hits]
        verdict = "exactly as it was" if same else "changed, which should not be"
        screen.print(f"\n[bold]6. Undo.[/bold] Ana takes her rating back: the ranking is {verdict}.")
        _ranking(restored.hits, after.hits)
        command = "heedful" if shutil.which("heedful") else sys.argv[0]
        screen.print(f"\nNext: [bold]{command} try FILE[/bold], with a text of your own.\n")


def _ranking(hits: Sequence[Hit], earlier: Sequence[Hit] = ()) -> None:
    ranks = {hit.fact_id: hit.rank for hit in earlier}
    show_table(
        hits,
        ("   rank", "rank"),
        ("was", lambda hit: str(ranks.get(hit.fact_id, "-")) if earlier else ""),
        "score:.3f | usefulness:.2f | fact=text",
        numbers=("was",),
        style=lambda hit: "bold green" if hit.text == HELPFUL else "",
    )


STORE = "demo.db"
PROJECT = "demo"

SEED = 4
"""The traffic that is also in the pictures of the documentation."""

CLOSING_HOUR = 17
"""When the help desk closes, in UTC."""

SUMMARY_LABELS = {
    "facts": "facts remembered",
    **{name: name for name in ("sessions", "entries", "ratings", "comments", "signals", "executions")},
}
"""The labels of the counts that are printed after filling a store."""


def show_dashboard(options: Options, port: int, keep: Path | None) -> None:
    """Fills a store, if it is not there yet, and serves its dashboard until Ctrl-C; only what is kept stays."""
    # Loaded before anything is filled, because it is an extra.
    with extra("server", "the dashboard"):
        from heedful.interfaces.dashboard.app import serve
        from heedful.interfaces.http.config import Config
    folder: AbstractContextManager[str] = nullcontext(str(keep))
    if keep is None:
        folder = tempfile.TemporaryDirectory(prefix="heedful-demo-", ignore_cleanup_errors=True)
    # Ctrl-C is how it is stopped.
    with suppress(KeyboardInterrupt), folder as name:
        store = Path(name) / STORE
        pages = _fill_or_remove(store, options.embedding)

        def ready(address: str, key: NewKey | None, link: str | None) -> None:
            show_link(link)
            echo("then look at")
            for number, (page, words) in enumerate(pages, 1):
                echo(f"  {number}. {words}\n     {address}/p/{PROJECT}/{page}")
            echo("Ctrl-C stops it", err=True)

        serve(Config(store=str(store), port=port, quiet=True), ready)


def _fill_or_remove(store: Path, embedding: Embedding) -> list[tuple[str, str]]:
    """The same as `fill_or_reuse`; what was filled in part when somebody pressed Ctrl-C is of no use, and goes."""
    before = _files(store)
    try:
        return fill_or_reuse(store, embedding)
    except KeyboardInterrupt:
        if store not in before:
            for file in _files(store) - before:
                file.unlink(missing_ok=True)
            echo("stopped; nothing is kept", err=True)
        sys.exit(STOPPED)


def _files(store: Path) -> set[Path]:
    """The files of a store that are there, and of the shop beside it."""
    return {*store.parent.glob(f"{STORE}*"), *store.parent.glob(traffic.warehouse_file(store).name)}


def fill_or_reuse(store: Path, embedding: Embedding, *, sessions: int = traffic.SESSIONS) -> list[tuple[str, str]]:
    """Fills a store that is not there, and uses one that is there as it is; returns the pages to look at."""
    if not store.exists():
        store.parent.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
        echo(f"filling {store.parent} with two weeks of a help desk, a minute or two…", err=True)
        with progress("visits of two weeks") as show:
            filled = fill_demo(store, system_clock(), embedding, sessions=sessions, progress=show)
        echo(", ".join(f"{filled.counts.get(name, 0)} {word}" for name, word in SUMMARY_LABELS.items()))
    with heedful.open(store, project=PROJECT, embedding=embedding, worker=False) as memory:
        if not traffic.is_filled(memory):
            problem = f"{store} was not completely filled by this command"
            remedy = "Delete it, or name another folder"
            raise Conflict(problem, field="keep", value=str(store.parent), remedy=remedy)
        return worth_a_look(memory)


def worth_a_look(memory: Heedful) -> list[tuple[str, str]]:
    """The pages that tell the story, each with what it shows."""
    pages = [("overview", memory.insight.digest().headline.partition(": ")[2])]
    for item in memory.review.list(status="resolved", limit=200).items:
        if any(action.action == "supersede" for action in memory.review.get(item.item_id).history):
            pages.append((f"review/{item.item_id}", "the complaints about a price, and how it was corrected"))
    return [*pages, (f"overview?dataset={HANDBOOK}", "the questions of another team, which nothing disturbed")]


def fill_demo(
    store: Path,
    now: datetime,
    embedding: Embedding = None,
    *,
    sessions: int = traffic.SESSIONS,
    progress: traffic.Progress | None = None,
) -> traffic.Filled:
    """Fills a store with the help desk that the demo shows at a moment."""
    start, end = _two_weeks(now)
    return traffic.fill(
        store,
        project=PROJECT,
        days=(end - start) / timedelta(days=1),
        seed=SEED,
        until=end,
        embedding=embedding,
        sessions=sessions,
        progress=progress,
    )


def _two_weeks(now: datetime) -> tuple[datetime, datetime]:
    """The 7 days that the dashboard shows first, and the 7 that it compares them with, up to the last closing hour.

    The few ratings of a night would look like a change.
    """
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    end = today + timedelta(hours=CLOSING_HOUR)
    return today - timedelta(days=traffic.DAYS - 1), end if end <= now else end - timedelta(days=1)
