"""try: the loop on a text of your own."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import click

import heedful
from heedful.engine import Heedful
from heedful.errors import Invalid, NotFound
from heedful.interfaces.cli.runner import Options, command
from heedful.interfaces.cli.screen import echo, progress, show_table
from heedful.memory import documents
from heedful.model import Hit
from heedful.text import counted

TOP_K = 5
"""Facts that are shown for a question."""

POOL = 100
"""Facts among which the plain rank of a fact is looked up."""


@command(None, name="try", as_json=False)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
def try_(options: Options, files: tuple[Path, ...]) -> None:
    """Nothing is kept. FILES are texts or folders of them (.txt .md .jsonl .csv .pdf), split into facts as by remember
    --file: one per line in a list, otherwise one per paragraph. Facts are ranked as by recall. An empty question ends
    it.
    """
    check_files(files)
    with heedful.open(":memory:", embedding=options.embedding) as memory:
        with progress("reading") as show:
            read = memory.remember(list(files), progress=show)
        for error in read.errors:
            echo(f"not read: {error.source}: {error.message}", err=True)
        if not read.facts:
            raise Invalid("there is no text in these files", field="files", remedy="Name files of text, or folders")
        echo(f"{counted(read.added, 'fact')}{how_split(files)}. Ask about them; Enter ends.")
        if read.added == 1:
            echo("With one fact there is no order to learn: try a longer text, or several files.", err=True)
        rated = 0
        try:
            while question := _prompt("\nYour question"):
                rated += _round(memory, question, rated)
        except click.Abort:
            # The end of the input is an end, too.
            echo("")
    named = shlex.join(word for file in files for word in ("--file", str(file)))
    echo(f"{counted(rated, 'rating')}, and nothing is kept. A store that keeps them: heedful remember {named}")


def how_split(files: Sequence[Path]) -> str:
    """How texts became facts, in words that follow a count."""
    either = ["line", "paragraph"]
    units = sorted({unit for file in files for unit in (either if file.is_dir() else [documents.unit(file)]) if unit})
    return f", one per {' or '.join(units)}" if units else ""


def check_files(files: tuple[Path, ...]) -> None:
    """Fails if one does not exist, before anything is done."""
    for file in files:
        if not file.exists():
            raise NotFound(f"{file} does not exist", field="file", value=str(file), remedy="Check its name")


def _round(memory: Heedful, question: str, rated: int) -> int:
    """One question: what is found, and which of it helped; returns how many ratings were given. `rated` is how many
    there were before."""
    plain = {hit.fact_id: hit.rank for hit in memory.recall(question, top_k=POOL, boost_by_usefulness=False)}
    recall = memory.recall(question, top_k=TOP_K)
    if not recall.hits:
        echo("Nothing found.")
        return 0
    _show(recall.hits, plain)
    if rated and all(hit.usefulness_source == "neutral" for hit in recall.hits):
        echo("Your ratings are about other questions: this one ranks as it would without them. Rate it, too.")
    ranks = {str(hit.rank): hit.fact_id for hit in recall.hits}
    while (answer := _prompt("Which one helped? Its rank")) not in ranks:
        if not answer:
            return 0
        echo(f"There is no rank {answer}. Enter rates nothing.")
    memory.signal_recall(recall.recall_id, helpful=[ranks[answer]], author="you")
    echo("Noted. Ask again, in the same or other words, and see where it ranks; then ask about something else.")
    return 1


def _show(hits: list[Hit], plain: dict[str, int]) -> None:
    show_table(
        hits,
        "rank",
        ("by relevance", lambda hit: plain.get(hit.fact_id)),
        "usefulness:.2f | fact=text:200",
        style=lambda hit: "bold green" if hit.rank < plain.get(hit.fact_id, 0) else None,
    )


def _prompt(question: str) -> str:
    answer: str = click.prompt(question, default="", show_default=False, err=True)
    return answer.strip()
