"""Sums over opinions, as a screen shows them."""

from __future__ import annotations

from typing import Any

from rich.markup import escape

from heedful.interfaces import gates
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


def show_satisfaction(report: Satisfaction) -> None:
    if not report.variants:
        echo(f"No session has {report.by!r} in its metadata: heedful sessions update-metadata ID {report.by}=…")
        return
    numbers = ("sessions", "up", "down", "neutral", "satisfaction", "95% interval", "mean score", "best with")
    rows = table(report.by, *numbers, numbers=numbers, less=("neutral", "mean score", "sessions"))
    for variant in report.variants:
        cells = ["" if variant.sessions is None else str(variant.sessions), *_counts(variant)]
        rows.add_row(_label(variant.value), *cells, _percent(variant.probability_best))
    screen = console()
    screen.print(rows)
    for pair in report.comparisons:
        better, than = _label(pair.better), _label(pair.than)
        screen.print(f"{better} is better than {than} with a probability of {pair.probability:.1%}")
    if report.stopping is not None:
        screen.print(f"{'Enough' if report.stopping.decided else 'Not enough yet'}: {escape(report.stopping.reason)}")


def show_trend(report: Trend) -> None:
    if not any(line.points for line in report.lines):
        echo("No opinions in this period")
        return
    numbers = ("up", "down", "neutral", "satisfaction", "95% interval", "mean score")
    group_column = [report.by] if report.by else []
    rows = table(*group_column, report.over, *numbers, numbers=numbers, less=("neutral", "mean score"))
    for line in report.lines:
        for point in line.points:
            rows.add_row(*([_label(line.value)] if report.by else []), point.start.isoformat(), *_counts(point))
    rows.add_row(*([""] if report.by else []), "all", *_counts(report.total))
    console().print(rows)


def show_coverage(report: Coverage) -> None:
    numbers = ("shown", "rated", "share", "95% interval")
    rows = table("", *numbers, numbers=numbers)
    for covered in (report.answers, report.executions, report.recalls):
        rows.add_row(covered.kind, str(covered.shown), str(covered.rated), _percent(covered.share), _interval(covered))
    console().print(rows)


def show_usefulness(report: UsefulnessReport) -> None:
    if not report.facts_with_signals:
        echo(f"No signals about the {report.total_facts} facts of {report.dataset} yet: heedful signal …")
        return
    echo(
        f"{report.facts_with_signals} of {report.total_facts} facts have {report.total_signals} signals; "
        f"their average overall usefulness is {report.average_overall_usefulness:.3f}"
    )
    screen = console()
    rows = table("overall usefulness", "facts", "", numbers=("facts",))
    largest = max(report.distribution.values())
    for interval, count in report.distribution.items():
        rows.add_row(interval, str(count), "█" * round(30 * count / largest))
    screen.print(rows)
    for title, facts in (("most useful", report.most_useful), ("least useful", report.least_useful)):
        _show_facts(title, facts)
    for fact in report.mixed:
        screen.print(
            f"{escape(shortened(fact.text))}  {fact.fact_id}\n  helps ({fact.helps.score:.2f}) for "
            f"{escape(repr(fact.helps.query))}, hurts ({fact.hurts.score:.2f}) for {escape(repr(fact.hurts.query))}"
        )


def _show_facts(title: str, facts: list[RankedFact]) -> None:
    rows = table(title, "signals", "fact", "fact_id", numbers=(title, "signals"))
    for fact in facts:
        rows.add_row(
            f"{fact.overall_usefulness:.3f}", str(fact.signal_count), escape(shortened(fact.text)), fact.fact_id
        )
    console().print(rows)


def show_cache(report: CacheReport) -> None:
    if not report.total:
        echo("No cache lookups in this period")
        return
    echo(f"{report.total} decisions, {report.reused} times something was reused")
    screen = console()
    rows = table("decision", "why", "count", "share", numbers=("count", "share"))
    for line in report.counts:
        rows.add_row(line.decision, gates.label(line.gate), str(line.count), f"{line.share:.1%}")
    screen.print(rows)
    newest = table("at", "decision", "question", "reason")
    for decision in report.newest:
        newest.add_row(
            f"{decision.at:%Y-%m-%d %H:%M}",
            decision.decision,
            escape(shortened(decision.question, 50)),
            escape(shortened(decision.reason, 80)),
        )
    screen.print(newest)


def show_themes(report: Themes) -> None:
    if not report.comments:
        echo("No negative comments in this period")
        return
    echo(f"{report.comments} negative comments; {report.other} match no theme")
    screen = console()
    for theme in report.themes:
        screen.print(f"[bold]{escape(theme.name)}[/bold]: {theme.comments}, the last on {theme.last_at:%Y-%m-%d}")
        for example in theme.examples:
            screen.print(f"  {escape(shortened(example, 110))}")


def show_notes(notes: list[Note]) -> None:
    if not notes:
        echo("No significant changes")
    for note in notes:
        echo(note.text)
        for line in note.arithmetic:
            echo(f"  {line}")
        if note.event_id is not None:
            echo(f"  To undo the change: heedful retract {note.event_id}")


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
