"""signal, detect, retract, stats."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click
from rich.markup import escape

from heedful.bootstrap import store_sizes
from heedful.engine import Heedful
from heedful.errors import Invalid
from heedful.interfaces.cli.common import (
    Options,
    as_json,
    console,
    counted,
    cursor,
    dataset,
    echo,
    idempotency_key,
    limit,
    more,
    needs_project,
    newest_first,
    pairs,
    print_json,
    shortened,
    table,
)
from heedful.interfaces.client.surface import RemoteHeedful
from heedful.model import RATINGS, SIGNAL_TYPES, FactStats, RankedFact, SignalResult, TableSize, UsefulnessStats


@click.command()
@click.argument("fact_ids", nargs=-1)
@click.option("--type", "signal_type", type=click.Choice(SIGNAL_TYPES), help="The signal for FACT_IDS.")
@click.option("--query", metavar="TEXT", help="The query FACT_IDS were (not) useful for.")
@click.option("--context", metavar="TEXT", help="A note that is stored with the signal.")
@click.option("--dataset", metavar="NAME", help="Only facts of this dataset; others are refused.")
@click.option("--recall", "--recall-id", "recall_id", metavar="ID", help="Rate the facts of this recall instead.")
@click.option("--used", multiple=True, metavar="FACT", help="With --recall: a fact_id or a rank; may be repeated.")
@click.option("--helpful", multiple=True, metavar="FACT", help="With --recall; may be repeated.")
@click.option("--not-helpful", multiple=True, metavar="FACT", help="With --recall; may be repeated.")
@click.option("--answer", metavar="TEXT", help="With --recall: the agent's answer, from which used facts are detected.")
@click.option("--confidence", default=1.0, show_default=True, help="How sure you are, from 0 to 1.")
@click.option("--author", metavar="NAME", help="Whose opinion it is.")
@click.option("--external-id", metavar="ID", help="Your own id for the signal about one FACT_ID, for retract.")
@idempotency_key
@as_json
@needs_project
def signal(
    options: Options,
    fact_ids: tuple[str, ...],
    signal_type: str | None,
    query: str | None,
    context: str | None,
    dataset: str | None,
    recall_id: str | None,
    used: tuple[str, ...],
    helpful: tuple[str, ...],
    not_helpful: tuple[str, ...],
    answer: str | None,
    confidence: float,
    author: str | None,
    external_id: str | None,
    idempotency_key: str | None,
    as_json: bool,
) -> None:
    """Say how useful facts were: for a --query, or of a --recall.

    With --recall, what was shown and is not named counts as ignored.
    """
    if recall_id is None and (not fact_ids or signal_type is None or query is None):
        raise Invalid(
            "the facts and the query are missing",
            field="fact_ids",
            remedy='Pass FACT_ID --type used --query "…", or --recall RECALL_ID --used 1',
        )
    if recall_id is not None and (fact_ids or signal_type or query):
        raise Invalid(
            "--recall can't be combined with FACT_IDS, --type or --query",
            field="recall",
            value=recall_id,
            remedy="Name its facts with --used, --helpful and --not-helpful",
        )
    if external_id is not None and len(fact_ids) != 1:
        raise Invalid(
            "--external-id is of the signal about one FACT_ID",
            field="external_id",
            value=external_id,
            remedy="Name one fact",
        )
    with options.open() as heedful:
        if recall_id is None:
            signals: list[dict[str, Any]] = [
                {
                    "fact_id": fact_id,
                    "signal_type": signal_type,
                    "query": query,
                    "confidence": confidence,
                    "context": context,
                    "author": author,
                    "external_id": external_id,
                }
                for fact_id in fact_ids
            ]
            result = heedful.signal(signals, dataset=dataset, idempotency_key=idempotency_key)
        else:
            result = heedful.signal_recall(
                recall_id,
                used=_facts(heedful, recall_id, used),
                helpful=_facts(heedful, recall_id, helpful),
                not_helpful=_facts(heedful, recall_id, not_helpful),
                answer=answer,
                confidence=confidence,
                author=author,
                idempotency_key=idempotency_key,
            )
    _show(result, as_json)


def _facts(heedful: Heedful | RemoteHeedful, recall_id: str, references: Sequence[str]) -> list[str]:
    """Fact ids; a small number means the fact that was shown at that rank."""
    if not any(reference.isdigit() for reference in references):
        return list(references)
    facts_by_rank = {str(line.rank): line.fact_id for line in heedful.receipt(recall_id).shown}
    for reference in references:
        if reference.isdigit() and reference not in facts_by_rank:
            raise Invalid(
                f"the recall showed no rank {reference}",
                field="rank",
                value=reference,
                remedy=f"Use a rank from 1 to {len(facts_by_rank)}",
            )
    return [facts_by_rank.get(reference, reference) for reference in references]


def _show(result: SignalResult, as_json: bool) -> None:
    if as_json:
        print_json(result)
    else:
        echo(f"{counted(result.processed, 'signal')}, {counted(len(result.updated_facts), 'fact')} updated")
        rows = table("signal", "event_id", "fact_id", less=("fact_id",))
        for signal in result.signals:
            rows.add_row(signal.signal_type, signal.event_id, signal.fact_id)
        if result.signals:
            console().print(rows)
    for error in result.errors:
        echo(f"not applied: {error.message}", err=True)
    if result.errors:
        raise SystemExit(1)


@click.command()
@click.argument("recall_id")
@click.argument("answer")
@as_json
@needs_project
def detect(options: Options, recall_id: str, answer: str, as_json: bool) -> None:
    """Detect which facts of RECALL_ID the ANSWER used. A single - reads it from standard input."""
    text = sys.stdin.read() if answer == "-" else answer
    with options.open() as heedful:
        detections = heedful.detect(text, recall_id)
    if as_json:
        print_json(detections)
        return
    rows = table("signal", "confidence", "why", "fact_id", numbers=("confidence",))
    for detection in detections:
        rows.add_row(
            detection.signal_type or "unsure",
            f"{detection.confidence:.2f}",
            escape("; ".join(detection.reasons)),
            detection.fact_id,
        )
    console().print(rows)


@click.command()
@click.argument("event_id")
@click.option("--author", metavar="NAME", help="Who retracts it.")
@as_json
@needs_project
def retract(options: Options, event_id: str, author: str | None, as_json: bool) -> None:
    """Undo the signal or supersession EVENT_ID.

    Everything becomes as if it had never been given.
    """
    with options.open() as heedful:
        result = heedful.retract(event_id, author=author)
    if as_json:
        print_json(result)
    elif result.updated_facts:
        echo(f"retracted {result.retracted}; scores of {', '.join(result.updated_facts)} recomputed")
    else:
        echo(f"{result.retracted} was retracted before, or its fact is gone; nothing changed")


@click.command()
@click.argument("fact_id", required=False)
@dataset
@click.option("--storage", is_flag=True, help="Show storage sizes of the whole store instead.")
@as_json
@needs_project
def stats(options: Options, fact_id: str | None, dataset: str, storage: bool, as_json: bool) -> None:
    """Show the usefulness of a dataset, or of one FACT_ID."""
    if storage:
        _show_storage(store_sizes(options.local("stats --storage")), as_json)
        return
    with options.open() as heedful:
        result = heedful.usefulness_stats(dataset) if fact_id is None else heedful.fact_stats(fact_id)
    if as_json:
        print_json(result)
    elif isinstance(result, FactStats):
        _show_fact(result)
    else:
        _show_dataset(result)


def _show_storage(sizes: Sequence[TableSize], as_json: bool) -> None:
    if as_json:
        print_json(sizes)
        return
    rows = table("table", "rows", "MB", numbers=("rows", "MB"))
    for size in sizes:
        rows.add_row(size.table, "" if size.rows is None else f"{size.rows:,}", f"{size.bytes / 1e6:,.2f}")
    rows.add_row("all", "", f"{sum(size.bytes for size in sizes) / 1e6:,.2f}")
    console().print(rows)


def _show_fact(stats: FactStats) -> None:
    screen = console()
    screen.print(escape(shortened(stats.text)))
    breakdown = ", ".join(f"{count} {kind}" for kind, count in stats.signal_breakdown.items())
    screen.print(f"overall usefulness {stats.overall_usefulness:.4f} from {stats.signal_count} signals ({breakdown})")
    if stats.contexts:
        rows = table("score", "signals", "last", "context", numbers=("score", "signals"))
        for context in stats.contexts:
            also = f" (+{len(context.queries) - 1} alike)" if len(context.queries) > 1 else ""
            rows.add_row(
                f"{context.score:.4f}",
                str(context.signal_count),
                f"{context.last_signal_at:%Y-%m-%d %H:%M}",
                escape(shortened(context.query)) + also,
            )
        screen.print(rows)
        shown = sum(len(context.queries) for context in stats.contexts)
        if shown < stats.query_count:
            screen.print(f"Contexts of the {shown} queries with the most signals, of {stats.query_count:,}")


def _show_dataset(stats: UsefulnessStats) -> None:
    screen = console()
    screen.print(
        f"{stats.dataset}: {stats.total_facts} facts, {stats.facts_with_signals} with signals, "
        f"{stats.total_signals} signals, average overall usefulness {stats.average_overall_usefulness:.4f}"
    )
    if not stats.total_signals:
        screen.print("Nobody has given a signal yet: heedful signal --recall RECALL_ID --used 1")
        return
    screen.print(", ".join(f"{count} {kind}" for kind, count in stats.signal_breakdown.items()))
    most = max(stats.distribution.values())
    for label, count in stats.distribution.items():
        screen.print(f"  {label}  {'█' * round(30 * count / most):30} {count}")
    _show_ranked("most useful", stats.most_useful)
    _show_ranked("least useful", stats.least_useful)


def _show_ranked(title: str, facts: Sequence[RankedFact]) -> None:
    rows = table("overall usefulness", "signals", title, "fact_id", numbers=("overall usefulness", "signals"))
    for fact in facts:
        rows.add_row(
            f"{fact.overall_usefulness:.4f}", str(fact.signal_count), escape(shortened(fact.text, 60)), fact.fact_id
        )
    console().print(rows)


@click.command()
@click.argument("session_id")
@click.option(
    "--rating",
    type=click.Choice([*RATINGS, "neutral"]),
    default="neutral",
    show_default=True,
    help="Your rating of the session.",
)
@click.option("--comment", metavar="TEXT", default="", help="Why.")
@click.option("--extra", multiple=True, metavar="KEY=VALUE", help="A further field to store with it; may be repeated.")
@click.option("--author", metavar="NAME", help="Whose opinion it is; a later one replaces it.")
@idempotency_key
@as_json
@click.pass_obj
def add_session_feedback(
    options: Options,
    session_id: str,
    rating: str,
    comment: str,
    extra: tuple[str, ...],
    author: str | None,
    idempotency_key: str | None,
    as_json: bool,
) -> None:
    """Rate a whole session."""
    feedback = {**(pairs("extra", extra) or {}), "rating": None if rating == "neutral" else rating, "comment": comment}
    with options.open() as heedful:
        stored = heedful.sessions.add_session_feedback(
            session_id, feedback, author=author, idempotency_key=idempotency_key
        )
    assert stored is not None
    if as_json:
        print_json(stored)
    else:
        echo(f"feedback {stored.feedback_id}; to retract it: heedful retract {stored.feedback_id}")


@click.command()
@click.argument("session_id")
@cursor
@limit
@newest_first
@as_json
@needs_project
def feedbacks(
    options: Options, session_id: str, cursor: str | None, limit: int, newest_first: bool, as_json: bool
) -> None:
    """Show the feedback on a session as a whole."""
    with options.open() as heedful:
        page = heedful.sessions.feedbacks(session_id, cursor=cursor, limit=limit, newest_first=newest_first)
    if as_json:
        print_json(page)
        return
    rows = table("at", "rating", "author", "comment", "feedback_id")
    for each in page.items:
        rows.add_row(
            f"{each.created_at:%Y-%m-%d %H:%M}",
            each.rating or "neutral",
            escape(each.author or ""),
            escape(shortened(each.comment or "")),
            each.feedback_id,
        )
    console().print(rows)
    more(page)


@click.command()
@as_json
@needs_project
def feedback_metrics(options: Options, as_json: bool) -> None:
    """Count all active feedback."""
    with options.open() as heedful:
        metrics = heedful.sessions.feedback_metrics()
    if as_json:
        print_json(metrics)
    else:
        echo(
            f"{metrics.total} feedbacks: {metrics.positive} positive, {metrics.negative} negative, "
            f"{metrics.neutral} neutral; comments have {metrics.avg_comment_length:.0f} characters on average"
        )


@click.command()
@click.option("--pending", is_flag=True, help="Only those that are still to be delivered.")
@cursor
@limit
@as_json
@needs_project
def alerts(options: Options, pending: bool, cursor: str | None, limit: int, as_json: bool) -> None:
    """Show alerts, the newest first."""
    with options.open() as heedful:
        page = heedful.sessions.alerts(pending=pending, cursor=cursor, limit=limit)
    if as_json:
        print_json(page)
        return
    rows = table(
        "created", "channel", "state", "attempts", "error", "alert_id", numbers=("attempts",), less=("attempts",)
    )
    for each in page.items:
        if each.delivered_at is not None:
            state = f"delivered {each.delivered_at:%Y-%m-%d %H:%M}"
        else:
            state = "discarded" if each.next_at is None else f"next try {each.next_at:%Y-%m-%d %H:%M}"
        rows.add_row(
            f"{each.created_at:%Y-%m-%d %H:%M}",
            escape(each.channel),
            state,
            str(each.attempts),
            escape(shortened(each.error or "", 50)),
            each.alert_id,
        )
    console().print(rows)
    more(page)


@click.command()
@click.argument("alert_id")
@as_json
@needs_project
def discard_alert(options: Options, alert_id: str, as_json: bool) -> None:
    """Discard an alert that can't be delivered."""
    with options.open() as heedful:
        alert = heedful.sessions.discard_alert(alert_id)
    if as_json:
        print_json(alert)
    else:
        echo("it was delivered before" if alert.delivered_at else "discarded")
