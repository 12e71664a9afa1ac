"""Sums over opinions, as a screen shows them."""

from __future__ import annotations

from typing import Any

from rich.markup import escape

from heedful.interfaces.cli.common import console, echo, shortened, table
from heedful.model import (
    CacheReport,
    Coverage,
    Note,
    RankedFact,
    Satisfaction,
    Themes,
    Trend,
    UsefulnessReport,
    Variant,
)


def show_satisfaction(found: Satisfaction) -> None:
    if not found.variants:
        echo(f"No session has {found.by!r} in its metadata: heedful sessions update-metadata ID {found.by}=…")
        return
    numbers = ("sessions", "up", "down", "neutral", "satisfaction", "95% interval", "mean score", "best with")
    rows = table(found.by, *numbers, numbers=numbers, less=("neutral", "mean score", "sessions"))
    for each in found.variants:
        shown = ["" if each.sessions is None else str(each.sessions), *_counts(each)]
        rows.add_row(_label(each.value), *shown, _percent(each.probability_best))
    screen = console()
    screen.print(rows)
    for pair in found.comparisons:
        better, than = _label(pair.better), _label(pair.than)
        screen.print(f"{better} is better than {than} with a probability of {pair.probability:.1%}")
    if found.stopping is not None:
        screen.print(f"{'Enough' if found.stopping.decided else 'Not enough yet'}: {escape(found.stopping.reason)}")


def show_trend(found: Trend) -> None:
    if not any(line.points for line in found.lines):
        echo("No opinions in this period")
        return
    numbers = ("up", "down", "neutral", "satisfaction", "95% interval", "mean score")
    named = [found.by] if found.by else []
    rows = table(*named, found.over, *numbers, numbers=numbers, less=("neutral", "mean score"))
    for line in found.lines:
        for point in line.points:
            rows.add_row(*([_label(line.value)] if found.by else []), point.start.isoformat(), *_counts(point))
    rows.add_row(*([""] if found.by else []), "all", *_counts(found.total))
    console().print(rows)


def show_coverage(found: Coverage) -> None:
    numbers = ("shown", "rated", "share", "95% interval")
    rows = table("", *numbers, numbers=numbers)
    for each in (found.answers, found.executions, found.recalls):
        rows.add_row(each.kind, str(each.shown), str(each.rated), _percent(each.share), _interval(each))
    console().print(rows)


def show_usefulness(found: UsefulnessReport) -> None:
    if not found.facts_with_signals:
        echo(f"No signals about the {found.total_facts} facts of {found.dataset} yet: heedful signal …")
        return
    echo(
        f"{found.facts_with_signals} of {found.total_facts} facts have {found.total_signals} signals; "
        f"their average score is {found.average_score:.3f}"
    )
    screen = console()
    rows = table("score", "facts", "", numbers=("facts",))
    largest = max(found.distribution.values())
    for place, count in found.distribution.items():
        rows.add_row(place, str(count), "█" * round(30 * count / largest))
    screen.print(rows)
    for title, facts in (("most useful", found.most_useful), ("least useful", found.least_useful)):
        _show_facts(title, facts)
    for each in found.mixed:
        screen.print(
            f"{escape(shortened(each.text))}  {each.fact_id}\n  helps ({each.helps.score:.2f}) for "
            f"{escape(each.helps.query)!r}, hurts ({each.hurts.score:.2f}) for {escape(each.hurts.query)!r}"
        )


def _show_facts(title: str, facts: list[RankedFact]) -> None:
    rows = table(title, "signals", "fact", "fact_id", numbers=(title, "signals"))
    for each in facts:
        rows.add_row(f"{each.score:.3f}", str(each.signal_count), escape(shortened(each.text)), each.fact_id)
    console().print(rows)


def show_cache(found: CacheReport) -> None:
    if not found.total:
        echo("No cache lookups in this period")
        return
    echo(f"{found.total} decisions, {found.reused} times something was reused")
    screen = console()
    rows = table("decision", "gate", "count", "share", numbers=("count", "share"))
    for each in found.counts:
        rows.add_row(each.decision, each.gate, str(each.count), f"{each.share:.1%}")
    screen.print(rows)
    newest = table("at", "decision", "question", "reason")
    for decision in found.newest:
        newest.add_row(
            f"{decision.at:%Y-%m-%d %H:%M}",
            decision.decision,
            escape(shortened(decision.question, 50)),
            escape(shortened(decision.reason, 80)),
        )
    screen.print(newest)


def show_themes(found: Themes) -> None:
    if not found.comments:
        echo("No negative comments in this period")
        return
    echo(f"{found.comments} negative comments; {found.other} match no theme")
    screen = console()
    for each in found.themes:
        screen.print(f"[bold]{escape(each.name)}[/bold]: {each.comments}, the last on {each.last_at:%Y-%m-%d}")
        for example in each.examples:
            screen.print(f"  {escape(shortened(example, 110))}")


def show_notes(found: list[Note]) -> None:
    if not found:
        echo("No significant changes")
    for each in found:
        echo(each.text)
        for line in each.arithmetic:
            echo(f"  {line}")


def _counts(each: Variant | Any) -> list[str]:
    return [
        str(each.up),
        str(each.down),
        str(each.neutral),
        _percent(each.satisfaction),
        _interval(each),
        "" if each.mean_score is None else f"{each.mean_score:.2f}",
    ]


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def _interval(each: Any) -> str:
    return "" if each.low is None or each.high is None else f"{each.low:.1%} to {each.high:.1%}"


def _label(value: Any) -> str:
    return "none" if value is None else escape(str(value))
