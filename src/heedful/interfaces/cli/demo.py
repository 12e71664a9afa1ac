"""demo: the whole loop in a few seconds, on a store that is thrown away."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from rich.markup import escape

import heedful
from heedful.engine import Heedful
from heedful.errors import Invalid
from heedful.interfaces.cli.common import Options, Screen, console, table
from heedful.interfaces.cli.sessions import show_dashboard
from heedful.model import Hit
from heedful.simulate import SimulatedUser

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
QUESTIONS = ("How do I reset my password?", "How can I reset my password?", "How to reset a password?")
RELATED_QUESTION = "I forgot my password, how do I reset it?"


@click.command()
@click.option(
    "--dashboard", is_flag=True, help="Show the dashboard of a help desk after four weeks of traffic instead."
)
@click.option("--port", default=8001, show_default=True, help="The dashboard's port; 0 for any that is free.")
@click.option(
    "--keep",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the dashboard's store in this folder, and use it again.",
)
@click.pass_obj
def demo(options: Options, dashboard: bool, port: int, keep: Path | None) -> None:
    """Show the loop: facts, a question, feedback, and undo.

    With --dashboard, show what the loop looks like in use, until Ctrl-C.
    """
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
        screen.print(f"\n[bold]2. Recall[/bold] {RELATED_QUESTION!r}: what helps is at rank {rank}.")
        _ranking(screen, before.hits)

        events = give_feedback(memory, helpful)
        screen.print("\n[bold]3. Signal.[/bold] Three people asked, in other words, and said what helped:")
        for question in QUESTIONS:
            screen.print(f"   {question!r}")

        after = memory.recall(RELATED_QUESTION, top_k=5, explain=True)
        screen.print(f"\n[bold]4. Recall[/bold] {RELATED_QUESTION!r} again:")
        _ranking(screen, after.hits, before.hits)

        screen.print("\n[bold]5. Explain[/bold] the first rank:")
        reasons = after.hits[0].explanation
        assert reasons is not None
        for line in reasons.arithmetic:
            screen.print(f"   {line}")

        for event in events:
            memory.retract(event)
        restored = memory.recall(RELATED_QUESTION, top_k=5)
        same = [hit.fact_id for hit in restored.hits] == [hit.fact_id for hit in before.hits]
        verdict = "exactly as it was" if same else "changed, which should not be"
        screen.print(f"\n[bold]6. Retract[/bold] all {len(events)} signals: the ranking is {verdict}.\n")


def give_feedback(memory: Heedful, helpful: str) -> list[str]:
    """Three simulated people ask, read all they are shown, and say what helped; returns the events."""
    events: list[str] = []
    for seed, question in enumerate(QUESTIONS):
        person = SimulatedUser(seed, examination=0.0)
        events += person.respond(memory, memory.recall(question), {helpful}).event_ids
    return events


def _ranking(screen: Screen, hits: Sequence[Hit], earlier: Sequence[Hit] = ()) -> None:
    ranks = {hit.fact_id: hit.rank for hit in earlier}
    rows = table("   rank", "was", "score", "usefulness", "fact", numbers=("   rank", "was", "score", "usefulness"))
    for hit in hits:
        style = "bold green" if hit.text == HELPFUL else ""
        rows.add_row(
            str(hit.rank),
            str(ranks.get(hit.fact_id, "-")) if earlier else "",
            f"{hit.score:.3f}",
            f"{hit.usefulness:.2f}",
            escape(hit.text),
            style=style,
        )
    screen.print(rows)
