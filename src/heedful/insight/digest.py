"""Digests: the opinions of a period compared with the period before, in short; sent once for each period, project and
channel, however many workers there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from uuid import UUID, uuid5

from heedful.clock import DAY, from_stored, new_id
from heedful.errors import Invalid
from heedful.insight.counting import DERIVED, OUTCOMES, InsightSpace
from heedful.insight.notes import SPAN, notes
from heedful.insight.satisfaction import NO_COUNTS, opinions, variant
from heedful.ledger import opinion_reports
from heedful.ledger.tallies import TallyQuery
from heedful.model import Digest, OpinionTarget, Variant
from heedful.notifications import Channel
from heedful.notifications.outbox import AlertRow, Dispatcher
from heedful.sessions.session_store import Transaction
from heedful.sessions.space import SessionSpace
from heedful.text import counted

DEFAULT_PERIOD = 7 * DAY

MAX_LISTED = 3
"""The most themes and notes in a digest."""


def digest(space: InsightSpace, since: datetime | None, until: datetime | None) -> Digest:
    first, last = space.period(since, until)
    if last is None:
        # By default whole days, today included, as everything else that counts by day shows them.
        last = space.workspace.now() + 1 if since else (space.workspace.now() // DAY + 1) * DAY
    first = last - DEFAULT_PERIOD if first is None else first
    if first >= last:
        raise Invalid(f"since is {since}, and that period is not over yet", field="since", value=since)
    # Items are created when somebody reads the queue; a digest counts them.
    space.follow_review()
    now = _opinion_counts(space, first, last, OUTCOMES)
    # Where nobody rates answers, opinions about facts are what there is.
    target_types: tuple[OpinionTarget, ...] = OUTCOMES if opinions(now) else ("fact",)
    now = _opinion_counts(space, first, last, target_types)
    before = _opinion_counts(space, first - (last - first), first, target_types)
    earliest = min(first, last - SPAN * DAY)
    changes = notes(space, None, earliest, last, None)[:MAX_LISTED] if opinions(now) else []
    themes = space.comments.themes(first, last, None).themes[:MAX_LISTED]
    with space.workspace.read() as connection:
        project = space.project(connection)
        items = 0 if project is None else opinion_reports.open_items(connection, project)
    start, stop = from_stored(first), from_stored(last)
    headline = f"{space.workspace.project}: {_headline(now, before, stop - start)}"
    end = "now" if last > space.workspace.now() else f"{stop:%Y-%m-%d %H:%M}"
    period = f"From {start:%Y-%m-%d %H:%M} to {end} (UTC)"
    parts = [headline, f"{period}: {_counts(now)}\nBefore: {_counts(before)}"]
    if changes:
        parts.append("What changed:\n" + "\n".join(f"- {note.text}" for note in changes))
    if themes:
        lines = [f'- {theme.name} ({theme.comments}): "{theme.examples[0]}"' for theme in themes]
        parts.append("What negative comments are about:\n" + "\n".join(lines))
    if items:
        parts.append(f"To be reviewed: {items}")
    return Digest(
        project=space.workspace.project,
        since=start,
        until=stop,
        now=now,
        before=before,
        themes=themes,
        notes=changes,
        open_items=items,
        headline=headline,
        text="\n\n".join(parts) + "\n",
    )


def _opinion_counts(space: InsightSpace, since: int, until: int, target_types: tuple[OpinionTarget, ...]) -> Variant:
    lines = space.counts(TallyQuery(since=since, until=until, target_types=target_types, without_sources=DERIVED))
    return variant(None, lines[0] if lines else NO_COUNTS)


def _headline(now: Variant, before: Variant, length: timedelta) -> str:
    if not opinions(now):
        return f"nobody said anything in {_long(length)}"
    if now.satisfaction is None:
        return f"{counted(opinions(now), 'opinion')} in {_long(length)}, none of them up or down"
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


def _counts(variant: Variant) -> str:
    counts = f"{variant.up} up, {variant.down} down, {variant.neutral} neutral"
    if variant.satisfaction is None or variant.low is None or variant.high is None:
        return counts
    return f"{counts}; {variant.satisfaction:.1%} satisfied (95% interval {variant.low:.1%} to {variant.high:.1%})"


_NAMES = UUID("6d0f5d0a-9c5e-4a53-9a5b-7c1f0a1f3b6e")


def send(
    space: SessionSpace,
    create: Callable[[], Digest],
    channels: Sequence[Channel],
    since: int,
    until: int,
    *,
    again: bool = False,
) -> list[AlertRow]:
    """Puts the digest of a time into the outbox, unless it was already or `again` is said, and delivers what is due.

    Returns the alerts, one for each channel; none, if nobody said anything in that time.
    """
    # The same for every worker.
    names = {channel.name: f"{since}/{until}/{channel.name}/{space.project}" for channel in channels}
    keys = {channel: new_id() if again else str(uuid5(_NAMES, name)) for channel, name in names.items()}
    if None in _stored_alerts(space, keys.values()):
        report = create()
        if not opinions(report.now):
            return []
        payload = {"type": "digest", **report.model_dump(mode="json")}
        at = space.now()
        rows = [AlertRow(key, channel, payload, at, next_at=at) for channel, key in keys.items()]

        def put(tx: Transaction) -> None:
            tx.outbox.add(None, [row for row in rows if tx.outbox.get(row.id) is None])

        space.store.write(put)
    dispatcher = Dispatcher(space.store, space.now, background=False)
    dispatcher.add(*channels)
    dispatcher.deliver_due()
    return [row for row in _stored_alerts(space, keys.values()) if row is not None]


def _stored_alerts(space: SessionSpace, keys: Iterable[str]) -> list[AlertRow | None]:
    alerts: list[AlertRow | None] = space.store.read(lambda tx: [tx.outbox.get(key) for key in keys])
    return alerts
