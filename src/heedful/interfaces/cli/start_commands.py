"""init, try: the first minutes."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import click
import orjson
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

import heedful
from heedful.bootstrap import store_file
from heedful.engine import Heedful
from heedful.errors import Conflict, Invalid, NotFound
from heedful.interfaces.cli.runner import Options, command, force, yes
from heedful.interfaces.cli.screen import echo, progress, show_table
from heedful.memory import documents
from heedful.model import DEFAULT_PROJECT, Hit
from heedful.settings import CONFIG, FILE, Settings, ignored_for
from heedful.text import counted

TOP_K = 5
"""Facts that are shown for a question."""

POOL = 100
"""Facts among which the plain rank of a fact is looked up."""

_ASKED = {
    "store": ("Where is the store? A file, or postgresql://user@host/database", "heedful.db"),
    "project": ("Which project?", DEFAULT_PROJECT),
    "embedding": ("Which embedding model? bundled, fast, a folder, or URL#model", "bundled"),
    "language_model": ("Which language model writes answers? URL#model, or none", "none"),
}
"""The questions of `init` by setting, with their defaults."""


@command(None, as_json=False)
@yes
@force
def init(options: Options, yes: bool, force: bool) -> None:
    """Each has a default. Options such as --store answer them beforehand. With --yes, nothing is asked."""
    file = Path.cwd() / FILE
    if file.exists() and not force:
        raise Conflict(f"{FILE} already exists", field="force", remedy="Edit it, or pass --force")
    values = {
        name: _answer(question, getattr(options, name), default, yes) for name, (question, default) in _ASKED.items()
    }
    if values["language_model"] == "none":
        del values["language_model"]
    _check_store(values["store"])
    Settings.model_validate(values)
    # A text of JSON is one of TOML, too.
    file.write_text("".join(f"{name} = {orjson.dumps(value).decode()}\n" for name, value in values.items()), "utf-8")
    ignored = ignored_for(values["store"], values, file.parent)
    if ignored:
        names = " and ".join(ignored)
        echo(f"The store is outside this folder: {names} will be ignored unless {CONFIG} names the file.")
    echo(f"{FILE} is written. Next:")
    for line in (
        *([f"export {CONFIG}={file}"] if ignored else []),
        "heedful remember --file FOLDER",
        'heedful recall "A question of yours"',
        "heedful signal --recall RECALL_ID --helpful 1",
    ):
        echo(f"  {line}")


def _answer(question: str, option: str | None, default: str, yes: bool) -> str:
    if option is not None or yes:
        return option or default
    answer: str = click.prompt(question, default=default, err=True)
    return answer.strip()


def _check_store(store: str) -> None:
    if store.lower().startswith(("http://", "https://")):
        problem = f"a server is not named in {FILE}, because a file may not choose where your key is sent"
        remedy = f"Set HEEDFUL_STORE={store} in your environment"
        raise Invalid(problem, field="store", value=store, remedy=remedy)
    try:
        password = make_url(store).password
    except ArgumentError:
        password = None
    if password is not None:
        remedy = "Leave it out of the URL, and set PGPASSWORD in your environment"
        raise Invalid(f"the password should not be in {FILE}", field="store", remedy=remedy)
    if "://" in store and not store.startswith("postgresql") and store_file(store) is None:
        raise Invalid(f"{store} names no store", field="store", value=store, remedy="Use a file, or postgresql://…")


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
