"""remember, recall, explain, supersede, facts, datasets, forget."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import click
from rich.markup import escape
from rich.padding import Padding
from rich.text import Text

from heedful.errors import Invalid, quoted
from heedful.interfaces.cli.common import (
    Options,
    Screen,
    as_json,
    confirm,
    console,
    cursor,
    dataset,
    echo,
    limit,
    more,
    needs_project,
    newest_first,
    pairs,
    print_json,
    progress,
    shortened,
    table,
    visible,
    waiting,
    yes,
)
from heedful.interfaces.cli.start import check_files
from heedful.model import MODES, POLICY_NAMES, Erasure, Hit, Mode, PolicyName, Recall

where = click.option(
    "-w", "--where", multiple=True, metavar="KEY=VALUE", help="Only facts with this metadata; may be repeated."
)

MAX_LISTED = 10
"""Files and facts that are listed one by one."""


@click.command()
@click.argument("texts", nargs=-1)
@click.option(
    "-f",
    "--file",
    "files",
    multiple=True,
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="A file or folder (.txt .md .jsonl .csv .pdf); may be repeated.",
)
@dataset
@click.option("-m", "--metadata", multiple=True, metavar="KEY=VALUE", help="Metadata for all of them; may be repeated.")
@click.option("--source", metavar="NAME", help="Where the texts come from.")
@click.option("--expires-at", metavar="TIME", help="Recall them only before then: 2030-01-31T12:00:00Z.")
@click.option("--self-improvement", is_flag=True, help="Run improve afterwards.")
@as_json
@click.pass_obj
def remember(
    options: Options,
    texts: tuple[str, ...],
    files: tuple[Path, ...],
    dataset: str,
    metadata: tuple[str, ...],
    source: str | None,
    expires_at: str | None,
    self_improvement: bool,
    as_json: bool,
) -> None:
    """Store facts: TEXTS, or files and folders with --file. A single - reads lines from standard input."""
    contents: list[str | Path] = [*_lines(texts), *files]
    if not contents:
        raise Invalid("nothing to remember", field="texts", remedy="Pass texts, or --file PATH")
    check_files(files)
    with options.open() as heedful, progress("remembering") as show:
        result = heedful.remember(
            contents,
            dataset=dataset,
            metadata=pairs("metadata", metadata),
            source=source,
            expires_at=_time("expires_at", expires_at),
            self_improvement=self_improvement,
            progress=show,
        )
    if as_json:
        print_json(result)
    else:
        screen = console()
        removed = f", {result.removed} removed" if result.removed else ""
        screen.print(f"{result.added} new, {result.known} known{removed} in {result.dataset}")
        rows = table("fact_id", "fact")
        for fact in result.facts[:MAX_LISTED]:
            rows.add_row(fact.fact_id, escape(shortened(fact.text)))
        if result.facts:
            screen.print(rows)
        if len(result.facts) > MAX_LISTED:
            screen.print(f"  … and {len(result.facts) - MAX_LISTED} more")
        for conflict in result.conflicts[:MAX_LISTED]:
            screen.print(
                f"another fact says {escape(conflict.other_value)} instead of {escape(conflict.value)}: "
                f"{escape(shortened(conflict.text))}"
            )
            screen.print(f"  to replace it: heedful supersede {conflict.conflicts_with} --by {conflict.fact_id}")
    for error in result.errors:
        echo(f"not remembered: {error.source}: {error.message}", err=True)
    for text in texts:
        if len(text) < 200 and Path(text).exists():
            echo(f"hint: {text} is also a file; --file {text} remembers what it says", err=True)
    if any(error.code != "unsupported" for error in result.errors):
        sys.exit(1)


def _time(field: str, typed: str | None) -> datetime | None:
    try:
        return None if typed is None else datetime.fromisoformat(typed)
    except ValueError:
        raise Invalid(
            f"{field} is {quoted(typed)}, which is not a valid time",
            field=field,
            value=typed,
            remedy="Write it as 2030-01-31T12:00:00Z",
        ) from None


def _lines(texts: tuple[str, ...]) -> Sequence[str]:
    if texts != ("-",):
        return texts
    return [line.strip() for line in sys.stdin if line.strip()]


@click.command()
@click.argument("query")
@dataset
@click.option("-k", "--top-k", default=10, show_default=True, help="How many facts.")
@click.option("--mode", type=click.Choice(MODES), default="hybrid", show_default=True, help="How to search.")
@where
@click.option(
    "--boost-by-usefulness/--no-boost-by-usefulness",
    default=None,
    help="Blend relevance and usefulness, or rank by relevance alone. Left out, the policy of the dataset decides.",
)
@click.option("--usefulness-weight", default=0.3, show_default=True, help="The share of usefulness in the score.")
@click.option(
    "--feedback-influence",
    type=float,
    help="The same as --usefulness-weight; above 0, it turns the boost on, and 0 turns it off.",
)
@click.option("--min-usefulness", default=0.0, show_default=True, help="Leave out facts below this.")
@click.option("--policy", type=click.Choice(POLICY_NAMES), help="Override the dataset's policy.")
@click.option(
    "--exploration", default=0.0, show_default=True, help="The probability of showing a fact that nobody has rated."
)
@click.option("--seed", type=int, help="The seed for --exploration.")
@click.option("--explain", is_flag=True, help="Show the reasons for every rank.")
@click.option("--session-id", metavar="ID", help="Answer too, and keep question and answer in this session.")
@click.option("--answer", is_flag=True, help="Answer too.")
@click.option("--external-id", metavar="ID", help="Your own id for it, which feedback may name.")
@cursor
@as_json
@needs_project
def recall(
    options: Options,
    query: str,
    dataset: str,
    top_k: int,
    mode: Mode,
    where: tuple[str, ...],
    boost_by_usefulness: bool | None,
    usefulness_weight: float,
    feedback_influence: float | None,
    min_usefulness: float,
    policy: PolicyName | None,
    exploration: float,
    seed: int | None,
    explain: bool,
    session_id: str | None,
    answer: bool,
    external_id: str | None,
    cursor: str | None,
    as_json: bool,
) -> None:
    """Find the facts that answer QUERY, best first."""
    with waiting("recalling"), options.open() as heedful:
        result = heedful.recall(
            query,
            dataset=dataset,
            top_k=top_k,
            mode=mode,
            where=pairs("where", where),
            boost_by_usefulness=boost_by_usefulness,
            usefulness_weight=usefulness_weight,
            feedback_influence=feedback_influence,
            min_usefulness=min_usefulness,
            policy=policy,
            exploration=exploration,
            seed=seed,
            explain=explain,
            session_id=session_id,
            answer=answer,
            external_id=external_id,
            cursor=cursor,
        )
    _show(result, as_json)


@click.command()
@click.argument("query")
@dataset
@click.option("-k", "--top-k", default=3, show_default=True, help="How many facts.")
@click.option("--usefulness-weight", default=0.3, show_default=True, help="The share of usefulness in the score.")
@click.option("--policy", type=click.Choice(POLICY_NAMES), help="Override the dataset's policy.")
@as_json
@needs_project
def explain(
    options: Options,
    query: str,
    dataset: str,
    top_k: int,
    usefulness_weight: float,
    policy: PolicyName | None,
    as_json: bool,
) -> None:
    """Show why each fact ranks where it does for QUERY.

    The reasons go down to the events and the arithmetic.
    """
    with waiting("explaining"), options.open() as heedful:
        result = heedful.recall(
            query,
            dataset=dataset,
            top_k=top_k,
            usefulness_weight=usefulness_weight,
            policy=policy,
            explain=True,
        )
    _show(result, as_json)


def _show(result: Recall, as_json: bool) -> None:
    if as_json:
        print_json(result)
        return
    screen = console()
    if result.answer is not None:
        screen.print(f"{escape(result.answer)}\n")
    if not result.hits:
        screen.print(f"Nothing found in {result.dataset}.")
    elif result.hits[0].explanation is None:
        print_hits(screen, result.hits)
    else:
        _show_reasons(result)
    if result.qa_id is not None:
        screen.print(f"qa_id {result.qa_id}")
    screen.print(f"recall_id {result.recall_id}")
    more(result)


def _show_reasons(result: Recall) -> None:
    screen = console()
    for hit in result.hits:
        why = hit.explanation
        assert why is not None
        screen.print(f"[bold]{hit.rank}. {escape(shortened(hit.text))}[/bold]")
        screen.print(f"   fact_id {hit.fact_id}")
        reasons = why.arithmetic
        if why.matched_context is not None:
            reasons = [f"context: {why.matched_context!r} (similarity {why.context_similarity:.4f})", *reasons]
        for line in reasons:
            screen.print(Padding(Text(visible(line)), (0, 0, 0, 3), expand=False))
        if why.events:
            rows = table("  ", "signal", "confidence", "at", "query", "event_id", numbers=("confidence",))
            for event in why.events[-MAX_LISTED:]:
                rows.add_row(
                    "",
                    event.signal_type,
                    f"{event.confidence:g}",
                    f"{event.at:%Y-%m-%d %H:%M}",
                    escape(shortened(event.query, 50)),
                    event.event_id,
                )
            screen.print(rows)


@click.command()
@click.argument("fact_id")
@click.argument("text", required=False)
@click.option("--by", metavar="FACT_ID", help="Instead of TEXT: a fact that already exists.")
@click.option("--author", metavar="NAME", help="Who corrects it.")
@as_json
@needs_project
def supersede(
    options: Options, fact_id: str, text: str | None, by: str | None, author: str | None, as_json: bool
) -> None:
    """Replace FACT_ID with TEXT. Retract the event to undo it."""
    with options.open() as heedful:
        result = heedful.supersede(fact_id, text, by=by, author=author)
    if as_json:
        print_json(result)
    else:
        echo(f"{result.fact_id} is superseded by {result.superseded_by}")
        echo(f"  event {result.event_id}")


@click.command("facts")
@dataset
@click.option("--source", metavar="NAME", help="Only facts of this source.")
@where
@cursor
@limit
@newest_first
@as_json
@needs_project
def list_facts(
    options: Options,
    dataset: str,
    source: str | None,
    where: tuple[str, ...],
    cursor: str | None,
    limit: int,
    newest_first: bool,
    as_json: bool,
) -> None:
    """List facts, in the order in which they were stored."""
    with options.open() as heedful:
        page = heedful.facts(
            dataset=dataset,
            source=source,
            where=pairs("where", where),
            cursor=cursor,
            limit=limit,
            newest_first=newest_first,
        )
    if as_json:
        print_json(page)
        return
    if not page.items:
        echo(f"No facts found in {dataset}.")
        return
    rows = table("fact_id", "created", "source", "fact", less=("source", "created"))
    for fact in page.items:
        rows.add_row(
            fact.fact_id, f"{fact.created_at:%Y-%m-%d %H:%M}", escape(fact.source or ""), escape(shortened(fact.text))
        )
    console().print(rows)
    more(page)


@click.command()
@as_json
@needs_project
def datasets(options: Options, as_json: bool) -> None:
    """List datasets, oldest first."""
    with options.open() as heedful:
        names = heedful.datasets()
    if as_json:
        print_json(names)
        return
    for name in names:
        echo(name)


@click.command()
@click.argument("fact_ids", nargs=-1)
@click.option("--source", metavar="NAME", help="Forget all facts of a source.")
@click.option("--dataset", metavar="NAME", help="The source's dataset; alone, forget the whole dataset.")
@click.option("--author", metavar="NAME", help="Erase the author with exactly this name from the project.")
@yes
@as_json
@needs_project
def forget(
    options: Options,
    fact_ids: tuple[str, ...],
    source: str | None,
    dataset: str | None,
    author: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Remove FACT_IDS, a source or a dataset.

    Everything derived from them goes, too. Or erase an author: a pseudonym takes the place of the name, their words
    go, and every score stays what it is.
    """
    if author is not None:
        confirm(f"Erase {author} from this project? It can't be undone.", yes)
    elif fact_ids or source is not None:
        subject = f"{len(fact_ids)} facts" if fact_ids else f"all facts of {source}"
        confirm(f"Forget {subject}, with what was learnt about them? It can't be undone.", yes)
    elif dataset is not None:
        confirm(f"Forget all of dataset {dataset}? It can't be undone.", yes)
    with waiting("forgetting"), options.open() as heedful:
        result = heedful.forget(list(fact_ids) or None, source=source, dataset=dataset, author=author)
    if as_json:
        print_json(result)
    elif result.erased is not None:
        _show_erased(result.facts, result.erased)
    else:
        echo(f"{result.facts} facts forgotten in {result.dataset}")
    if not as_json:
        for fact_id in result.restored:
            echo(f"recalled again, since its correction is forgotten: {fact_id}")


def _show_erased(facts: int, erased: Erasure) -> None:
    if erased.author is None:
        echo("Nothing has this name in this project, so nothing was erased. Names must match exactly.")
        return
    echo(f"Erased; what remains is attributed to {erased.author}")
    counts = erased.model_dump(exclude={"author", "event_id"})
    for kind, count in {"facts": facts, **counts}.items():
        if count:
            echo(f"  {count} {kind}")
    echo(f"  event {erased.event_id}")


def print_hits(screen: Screen, hits: Sequence[Hit]) -> None:
    """Ranked facts, with the numbers behind the rank."""
    numbers = ("rank", "score", "relevance", "usefulness")
    rows = table(*numbers, "from", "fact", "fact_id", numbers=numbers, less=("fact_id", "from", "relevance"))
    for hit in hits:
        rows.add_row(
            str(hit.rank),
            f"{hit.score:.4f}",
            f"{hit.relevance:.4f}",
            f"{hit.usefulness:.4f}",
            hit.usefulness_source,
            shortened(hit.text),
            hit.fact_id,
        )
    screen.print(rows)
