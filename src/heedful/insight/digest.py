"""What people said in some time, beside the time before it, in short."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from heedful.clock import DAY, from_stored
from heedful.insight.comments import Comments
from heedful.insight.counting import DERIVED, OUTCOMES, Counting
from heedful.insight.notes import SPAN, notes
from heedful.insight.satisfaction import NO_COUNTS, variant
from heedful.memory.workspace import Workspace
from heedful.model import Digest, Note, OpinionTarget, Theme, Variant
from heedful.storage import insight, scopes
from heedful.storage.tallies import TallyQuery

DEFAULT_PERIOD = 7 * DAY
"""The time a digest is about, if nobody says."""

MAX_LISTED = 3
"""The most themes and notes in a digest."""


def digest(workspace: Workspace, counting: Counting, comments: Comments, since: int, until: int) -> Digest:
    """All of it, added up by the database."""
    now = _opinion_counts(counting, since, until, OUTCOMES)
    # Where nobody rates answers, what is said of facts is what there is.
    target_types: tuple[OpinionTarget, ...] = OUTCOMES if _all(now) else ("fact",)
    now = _opinion_counts(counting, since, until, target_types)
    before = _opinion_counts(counting, since - (until - since), since, target_types)
    first = min(since, until - SPAN * DAY)
    changes = notes(workspace, counting, comments, None, first, until, None)[:MAX_LISTED] if _all(now) else []
    themes = comments.themes(since, until, None).themes[:MAX_LISTED]
    with workspace.read() as connection:
        project = scopes.project_id(connection, workspace.project)
        items = 0 if project is None else insight.open_items(connection, project)
    start, stop = from_stored(since), from_stored(until)
    headline = f"{workspace.project}: {_headline(now, before, stop - start)}"
    return Digest(
        project=workspace.project,
        since=start,
        until=stop,
        now=now,
        before=before,
        themes=themes,
        notes=changes,
        open_items=items,
        headline=headline,
        text=_text(headline, start, stop, now, before, themes, changes, items),
    )


def opinions(report: Digest) -> int:
    """How many there are in the time of a digest."""
    return _all(report.now)


def _opinion_counts(counting: Counting, since: int, until: int, target_types: tuple[OpinionTarget, ...]) -> Variant:
    lines = counting.counts(TallyQuery(since=since, until=until, target_types=target_types, without_sources=DERIVED))
    return variant(None, lines[0] if lines else NO_COUNTS)


def _all(variant: Variant) -> int:
    return variant.up + variant.down + variant.neutral


def _headline(now: Variant, before: Variant, length: timedelta) -> str:
    if not _all(now):
        return f"nobody said anything in {_long(length)}"
    if now.satisfaction is None:
        return f"{_all(now)} opinions in {_long(length)}, none of them up or down"
    headline = f"{now.satisfaction:.0%} satisfied in {_long(length)}"
    if before.satisfaction is None:
        return headline
    change = round(100 * (now.satisfaction - before.satisfaction))
    if not change:
        return f"{headline}, as before"
    points = f"{abs(change)} {'point' if abs(change) == 1 else 'points'}"
    return f"{headline}, {points} {'more' if change > 0 else 'less'} than before"


def _long(length: timedelta) -> str:
    """
    >>> _long(timedelta(days=7)), _long(timedelta(days=1)), _long(timedelta(hours=36))
    ('7 days', 'a day', '36 hours')
    """
    if length % timedelta(days=1):
        return f"{length / timedelta(hours=1):.0f} hours"
    return "a day" if length.days == 1 else f"{length.days} days"


def _text(
    headline: str,
    since: datetime,
    until: datetime,
    now: Variant,
    before: Variant,
    themes: Sequence[Theme],
    changes: Sequence[Note],
    items: int,
) -> str:
    parts = [
        headline,
        f"From {since:%Y-%m-%d %H:%M} to {until:%Y-%m-%d %H:%M} (UTC): {_counts(now)}\nBefore: {_counts(before)}",
    ]
    if changes:
        parts.append("What changed:\n" + "\n".join(f"- {note.text}" for note in changes))
    if themes:
        lines = [f'- {theme.name} ({theme.comments}): "{theme.examples[0]}"' for theme in themes]
        parts.append("What negative comments are about:\n" + "\n".join(lines))
    if items:
        parts.append(f"To be reviewed: {items}")
    return "\n\n".join(parts) + "\n"


def _counts(variant: Variant) -> str:
    counts = f"{variant.up} up, {variant.down} down, {variant.neutral} neutral"
    if variant.satisfaction is None or variant.low is None or variant.high is None:
        return counts
    return f"{counts}; {variant.satisfaction:.1%} satisfied (95% interval {variant.low:.1%} to {variant.high:.1%})"
