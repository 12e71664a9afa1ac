"""remember, recall, explain, supersede, facts, datasets, forget; signal, detect, retract, stats."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from rich.markup import escape
from rich.padding import Padding
from rich.text import Text

from heedful import model
from heedful.bootstrap import store_sizes
from heedful.errors import Forbidden, Invalid, NotFound, quoted
from heedful.interfaces.cli import screen as shown
from heedful.interfaces.cli.regress_commands import check, check_change
from heedful.interfaces.cli.runner import STDIN, Engine, Options, command, parameters, runs, yes
from heedful.interfaces.cli.screen import console, echo, progress, show_result, show_table
from heedful.interfaces.cli.start_commands import check_files, how_split
from heedful.text import counted, shortened

MAX_LISTED = 10
"""Files and facts that are listed one by one."""


def _read_time(context: click.Context, parameter: click.Parameter, typed: str | None) -> datetime | None:
    try:
        return None if typed is None else datetime.fromisoformat(typed)
    except ValueError:
        problem = f"{parameter.name} is {quoted(typed)}, which is not a valid time"
        remedy = "Write it as 2030-01-31T12:00:00Z"
        raise Invalid(problem, field=parameter.name, value=typed, remedy=remedy) from None


@command(None)
@click.argument("texts", nargs=-1)
@click.option(
    *("-f", "--file", "files"),
    multiple=True,
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="A file or folder (.txt .md .jsonl .csv .pdf); may be repeated.",
)
@parameters(
    "remember",
    texts=None,
    metadata="Metadata for all of them; may be repeated.",
    expires_at={"type": str, "metavar": "TIME", "callback": _read_time},
)
@check
@yes
def remember(
    options: Options,
    /,
    texts: tuple[str, ...],
    files: tuple[Path, ...],
    check: bool,
    yes: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Store facts: TEXTS, or files and folders with --file. A single - reads lines from standard input.

    A text file (.txt .md) in which each line is complete, with no blank lines, becomes one fact per line; any other,
    one per paragraph. Rows of .jsonl and .csv are facts.
    """
    lines = [line.strip() for line in sys.stdin if line.strip()] if texts == ("-",) else texts
    contents: list[str | Path] = [*lines, *files]
    if not contents:
        raise Invalid("nothing to remember", field="texts", remedy="Pass texts, or --file PATH")
    check_files(files)
    if check:
        check_change(options, lambda trial: trial.remember(contents, **given), "remember", sure=yes, as_json=as_json)
    with options.open() as heedful, progress("remembering") as show:
        result = heedful.remember(contents, **given, progress=show)
    show_result(result, as_json, lambda result: _show_remembered(result, how_split(files)))
    for error in result.errors:
        echo(f"not remembered: {error.source}: {error.message}", err=True)
    for text in texts:
        if len(text) < 200 and Path(text).exists():
            echo(f"hint: {text} is also a file; --file {text} remembers what it says", err=True)
    if any(error.code != "unsupported" for error in result.errors):
        sys.exit(1)


def _show_remembered(result: model.RememberResult, how: str) -> None:
    screen = console()
    removed = f", {result.removed} removed" if result.removed else ""
    screen.print(f"{result.added} new, {result.known} known{removed} in {result.dataset}{how}")
    if result.facts:
        show_table(result.facts[:MAX_LISTED], "fact_id | fact=text:70")
    if len(result.facts) > MAX_LISTED:
        screen.print(f"  … and {len(result.facts) - MAX_LISTED} more")
    for conflict in result.conflicts[:MAX_LISTED]:
        values = f"{escape(conflict.other_value)} instead of {escape(conflict.value)}"
        screen.print(f"another fact says {values}: {escape(shortened(conflict.text))}")
        screen.print(f"  to replace it: heedful supersede {conflict.conflicts_with} --by {conflict.fact_id}")


_POLICY = "Override the dataset's policy."
_BLEND = "Blend relevance and usefulness, or rank by relevance alone. Left out, the dataset's policy decides."


@runs("recall", "query", waits="recalling", boost_by_usefulness=_BLEND, policy=_POLICY)
def recall(result: model.Recall) -> None:
    _show_recall(result)
    shown.more(result)


def _show_recall(result: model.Recall) -> None:
    """Prints the answer, and the facts with their ranks or with the reasons for them."""
    screen = console()
    if result.answer is not None:
        screen.print(f"{escape(result.answer)}\n")
    if not result.hits:
        screen.print(f"Nothing found in {result.dataset}.")
    elif result.hits[0].explanation is None:
        show_hits(result.hits)
    else:
        for hit in result.hits:
            _show_reasons(hit)
    if result.qa_id is not None:
        screen.print(f"qa_id {result.qa_id}")
    screen.print(f"recall_id {result.recall_id}")


@runs(
    "recall",
    "query",
    waits="explaining",
    does=lambda heedful, **given: heedful.recall(**given, explain=True),
    top_k={"default": 3},
    policy=_POLICY,
    only=("dataset", "top_k", "usefulness_weight", "policy"),
)
def explain(result: model.Recall) -> None:
    """The reasons go down to the events and the arithmetic."""
    _show_recall(result)


def _show_reasons(hit: model.Hit) -> None:
    screen, why = console(), hit.explanation
    assert why is not None
    screen.print(f"[bold]{hit.rank}. {escape(shortened(hit.text))}[/bold]")
    screen.print(f"   fact_id {hit.fact_id}")
    reasons = why.arithmetic
    if why.matched_context is not None:
        reasons = [f"context: {why.matched_context!r} (similarity {why.context_similarity:.4f})", *reasons]
    for line in reasons:
        screen.print(Padding(Text(shown.visible(line)), (0, 0, 0, 3), expand=False))
    if why.events:
        show_table(
            why.events[-MAX_LISTED:],
            ("  ", lambda event: ""),
            "signal=signal_type | confidence:g | at | query:50 | event_id",
        )


def show_hits(hits: Sequence[model.Hit]) -> None:
    """Prints ranked facts, with the numbers behind the rank."""
    columns = "rank | score:.4f | relevance:.4f | usefulness:.4f | from=usefulness_source | fact=text:70 | fact_id"
    show_table(hits, columns, less=("fact_id", "from", "relevance"))


@runs("supersede", "fact_id", "text", by={"metavar": "FACT_ID", "help": "Instead of TEXT: a fact that already exists."})
def supersede(result: model.Supersession) -> str:
    """Replace FACT_ID with TEXT. Retract the event to undo it."""
    return f"{result.fact_id} is superseded by {result.superseded_by}\n  event {result.event_id}"


@runs("facts", name="facts")
def list_facts(page: model.Page[model.Fact], dataset: str) -> None:
    show_table(
        page,
        "fact_id | created=created_at | source | fact=text:70",
        less=("source", "created"),
        empty=f"No facts found in {dataset}.",
    )


@runs("datasets")
def datasets(names: list[str]) -> None:
    for name in names:
        echo(name)


def _ask_forget(
    heedful: Engine, fact_ids: tuple[str, ...], source: str | None, dataset: str | None, author: str | None
) -> str | None:
    for fact_id in fact_ids:
        heedful.fact(fact_id)
    if dataset is not None:
        heedful.get_dataset(dataset)
    if author is not None:
        return f"Erase {author} from this project? It can't be undone."
    if fact_ids or source is not None:
        subject = counted(len(fact_ids), "fact") if fact_ids else f"all facts of {source}"
        return f"Forget {subject}, with what was learnt about them? It can't be undone."
    return None if dataset is None else f"Forget all of dataset {dataset}? It can't be undone."


@runs(
    "forget",
    "fact_ids",
    waits="forgetting",
    asks=_ask_forget,
    author="Erase the author with exactly this name from the project.",
)
def forget(result: model.ForgetResult) -> None:
    """Everything derived from them goes, too. Or erase an author: a pseudonym takes the place of the name, their words
    go, and every score stays what it is.
    """
    erased = result.erased
    if erased is None:
        echo(f"{counted(result.facts, 'fact')} forgotten in {result.dataset}")
    elif erased.author is None:
        echo("Nothing has this name in this project, so nothing was erased. Names must match exactly.")
    else:
        echo(f"Erased; what remains is attributed to {erased.author}")
        counts = erased.model_dump(exclude={"author", "event_id"})
        for kind, count in {"facts": result.facts, **counts}.items():
            if count:
                echo(f"  {count} {kind}")
        echo(f"  event {erased.event_id}")
    for fact_id in result.restored:
        echo(f"recalled again, since its correction is forgotten: {fact_id}")


def _read_ranks(context: click.Context, parameter: click.Parameter, facts: tuple[str, ...]) -> tuple[str | int, ...]:
    """Facts as they were typed: a small number is a rank."""
    return tuple(int(fact) if fact.isdecimal() and len(fact) < 6 else fact for fact in facts)


_NAMED = {
    "multiple": True,
    "metavar": "FACT",
    "callback": _read_ranks,
    "help": "With --recall: a fact_id or a rank; may be repeated.",
}


@command()
@click.argument("fact_ids", nargs=-1)
@click.option("--type", "signal_type", type=click.Choice(model.SIGNAL_TYPES), help="The signal for FACT_IDS.")
@click.option("--query", metavar="TEXT", help="The query FACT_IDS were (not) useful for.")
@click.option("--context", metavar="TEXT", help="A note that is stored with the signal.")
@click.option("-d", "--dataset", metavar="NAME", help="Only facts of this dataset; others are refused.")
@parameters(
    "signal_recall",
    recall_id={"required": False, "help": "Rate the facts of this recall instead."},
    used=_NAMED,
    helpful=_NAMED,
    not_helpful=_NAMED,
    answer="With --recall: the agent's answer, from which used facts are detected.",
)
@click.option("--external-id", metavar="ID", help="Your own id for the signal about one FACT_ID, for retract.")
def signal(
    options: Options,
    fact_ids: tuple[str, ...],
    signal_type: str | None,
    query: str | None,
    recall_id: str | None,
    dataset: str | None,
    idempotency_key: str | None,
    external_id: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """With --recall, what was shown and is not named counts as ignored."""
    named = given["answer"] is not None or any(given[name] for name in ("used", "helpful", "not_helpful"))
    if recall_id is None and named:
        problem = "--used, --helpful, --not-helpful and --answer are about the facts of a recall"
        raise Invalid(problem, field="recall", remedy="Name it: --recall RECALL_ID, which heedful recall prints")
    if recall_id is not None and not (named or fact_ids or signal_type or query):
        problem = "nothing is said about the facts of the recall"
        remedy = "Name some by their ranks: --helpful 1, --used 1 or --not-helpful 1"
        raise Invalid(problem, field="recall", value=recall_id, remedy=remedy)
    if recall_id is None and (not fact_ids or signal_type is None or query is None):
        remedy = 'Name them: FACT_ID --type used --query "…", or --recall RECALL_ID --used 1'
        raise Invalid("the facts and the query are missing", field="fact_ids", remedy=remedy)
    if recall_id is not None and (fact_ids or signal_type or query):
        problem = "--recall can't be combined with FACT_IDS, --type or --query"
        remedy = "Name its facts with --used, --helpful and --not-helpful"
        raise Invalid(problem, field="recall", value=recall_id, remedy=remedy)
    if external_id is not None and len(fact_ids) != 1:
        problem = "--external-id is of the signal about one FACT_ID"
        raise Invalid(problem, field="external_id", value=external_id, remedy="Name one fact")
    with options.open() as heedful:
        if recall_id is None:
            common = {name: given[name] for name in ("confidence", "context", "author")}
            common |= {"signal_type": signal_type, "query": query, "external_id": external_id}
            signals = [{"fact_id": fact_id, **common} for fact_id in fact_ids]
            result = heedful.signal(signals, dataset=dataset, idempotency_key=idempotency_key)
        else:
            del given["context"]
            result = heedful.signal_recall(recall_id, **given, idempotency_key=idempotency_key)
        texts = {} if as_json else {signal.fact_id: _text(heedful, signal.fact_id) for signal in result.signals}
    show_result(result, as_json, lambda result: _show_signals(result, texts))
    for error in result.errors:
        echo(f"not applied: {error.message}", err=True)
    if result.errors:
        sys.exit(1)


def _text(heedful: Engine, fact_id: str) -> str:
    # A key may be allowed to give feedback and not to read.
    with suppress(Forbidden, NotFound):
        return shortened(heedful.fact(fact_id).text)
    return ""


def _show_signals(result: model.SignalResult, texts: Mapping[str, str]) -> None:
    echo(f"{counted(result.processed, 'signal')}, {counted(len(result.updated_facts), 'fact')} updated")
    if result.signals:
        fact = ("fact", lambda signal: escape(texts[signal.fact_id]))
        show_table(result.signals, "signal=signal_type", fact, "event_id | fact_id", less=("fact_id",))


@runs("detect", "recall_id", "answer", answer=STDIN)
def detect(detections: list[model.Detection]) -> None:
    """Detect which facts of RECALL_ID the ANSWER used. A single - reads it from standard input."""
    show_table(
        detections,
        ("signal", lambda detection: detection.signal_type or "unsure"),
        "confidence:.2f",
        ("why", lambda detection: "; ".join(detection.reasons)),
        "fact_id",
    )


@runs("retract", "event_id")
def retract(result: model.Retraction) -> str:
    """Everything becomes as if it had never been given."""
    if result.updated_facts:
        return f"retracted {result.retracted}; scores of {', '.join(result.updated_facts)} recomputed"
    return f"{result.retracted} was retracted before, or its fact is gone; nothing changed"


@command()
@click.argument("fact_id", required=False)
@parameters("usefulness_stats")
@click.option("--storage", is_flag=True, help="Show storage sizes of the whole store instead.")
def stats(options: Options, fact_id: str | None, dataset: str, storage: bool, as_json: bool) -> None:
    if storage:
        show_result(store_sizes(options.local("stats --storage")), as_json, _show_storage)
        return
    with options.open() as heedful:
        if fact_id is None:
            show_result(heedful.usefulness_stats(dataset), as_json, show_usefulness)
        else:
            show_result(heedful.fact_stats(fact_id), as_json, _show_fact)


def _show_storage(sizes: Sequence[model.TableSize]) -> None:
    whole = model.TableSize(table="all", rows=None, bytes=sum(size.bytes for size in sizes))
    show_table([*sizes, whole], "table | rows:,", ("MB", lambda size: f"{size.bytes / 1e6:,.2f}"), numbers=("MB",))


def _show_fact(stats: model.FactStats) -> None:
    screen = console()
    screen.print(escape(shortened(stats.text)))
    breakdown = ", ".join(f"{count} {kind}" for kind, count in stats.signal_breakdown.items())
    signals = counted(stats.signal_count, "signal") + (f" ({breakdown})" if breakdown else "")
    screen.print(f"overall usefulness {stats.overall_usefulness:.4f} from {signals}")
    if stats.contexts:
        show_table(stats.contexts, "score:.4f | signals=signal_count | last=last_signal_at", ("context", _context))
        shown = sum(len(context.queries) for context in stats.contexts)
        if shown < stats.query_count:
            screen.print(f"Contexts of the {shown} queries with the most signals, of {stats.query_count:,}")


def _context(context: model.ContextScore) -> str:
    alike = len(context.queries) - 1
    return shortened(context.query) + (f" (+{alike} alike)" if alike else "")


def show_usefulness(stats: model.UsefulnessStats) -> None:
    """Prints the distribution of usefulness in a dataset, the facts at both ends, and those with mixed feedback."""
    screen = console()
    signals = f"{stats.facts_with_signals:,} with signals, {counted(stats.total_signals, 'signal')}"
    screen.print(escape(f"{stats.dataset}: {counted(stats.total_facts, 'fact')}, {signals}"))
    if not stats.total_signals:
        screen.print("Nobody has given a signal yet: heedful signal --recall RECALL_ID --used 1")
        return
    mean = f"mean overall usefulness {stats.average_overall_usefulness:.4f}"
    screen.print(", ".join([*(f"{count} {kind}" for kind, count in stats.signal_breakdown.items()), mean]))
    most = max(stats.distribution.values())
    for label, count in stats.distribution.items():
        screen.print(f"  {label}  {'█' * round(30 * count / most):30} {count}")
    for title, facts in (("most useful", stats.most_useful), ("least useful", stats.least_useful)):
        show_table(
            facts, "overall usefulness=overall_usefulness:.4f | signals=signal_count", (title, "text:60"), "fact_id"
        )
    for fact in stats.mixed:
        helps, hurts = (f"({one.score:.2f}) for {one.query!r}" for one in (fact.helps, fact.hurts))
        screen.print(escape(f"{shortened(fact.text)}  {fact.fact_id}\n  helps {helps}, hurts {hurts}"))
