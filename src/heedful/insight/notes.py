"""What changed, and is not luck."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from heedful.clock import DAY
from heedful.insight import guard
from heedful.insight.comments import MAX_COMMENTS, Comments
from heedful.insight.counting import DERIVED, OUTCOMES, Counting, decode_tag
from heedful.insight.satisfaction import day
from heedful.memory.workspace import Workspace
from heedful.model import Facet, Note
from heedful.statistics.change import Change, arithmetic, change, describe, is_significant
from heedful.storage.tallies import TallyCounts, TallyQuery

SPAN = 28
"""Days that are looked at, if nobody says how many."""

SLICES: tuple[Facet, ...] = ("dataset", "model", "target_type")


@dataclass(slots=True)
class Series:
    """Daily down-votes of something, and how many opinions there were."""

    about: str
    value: Any
    subject: str
    """What is counted, in words."""
    downs: Counter[int] = field(default_factory=Counter)
    opinions: Counter[int] = field(default_factory=Counter)
    among: Series | None = None
    """It and its like together."""


def notes(
    workspace: Workspace,
    counting: Counting,
    comments: Comments,
    key: str | None,
    since: int,
    until: int,
    dataset: str | None,
) -> list[Note]:
    """All that changed in this time: after changes of policy, then the most striking first, by metadata keys with a few
    values, and by `key`."""
    of_policies = guard.notes(workspace, counting, since, until, dataset)
    return [*of_policies, *_changes(counting, comments, key, since, until, dataset)]


def _changes(
    counting: Counting,
    comments: Comments,
    key: str | None,
    since: int,
    until: int,
    dataset: str | None,
) -> list[Note]:
    """A part is reported only if it changed more than its peers: if all got worse, one note is enough."""
    all_of_it = Series("all", None, "down-votes")
    for line in counting.counts(TallyQuery(None, None, "day", since, until, dataset, OUTCOMES, DERIVED)):
        _count(all_of_it, line)
    if not all_of_it.opinions:
        return []
    # Days before the first opinion would look like a change, and are only the beginning.
    days = range(min(all_of_it.opinions), (until - 1) // DAY + 1)
    series = [all_of_it]
    for facet in SLICES:
        targets = () if facet == "target_type" else OUTCOMES
        series += _series_by_slice(
            counting, TallyQuery(facet, None, "day", since, until, dataset, targets, DERIVED), facet
        )
    chosen_keys = [key] if key is not None and counting.values(key) else []
    for each_key in dict.fromkeys([*chosen_keys, *counting.telling_keys()]):
        query = TallyQuery(None, each_key, "day", since, until, dataset, OUTCOMES, DERIVED)
        series += _series_by_slice(counting, query, f"metadata.{each_key}")
    series += _series_by_theme(comments, all_of_it, since, until, dataset)
    tested = [each for each in series if sum(each.downs.values())]
    significant = []
    for each in tested:
        changed = change(
            list(days),
            [each.downs[number] for number in days],
            [float(each.opinions[number]) for number in days],
            tests=len(tested),
        )
        if changed is not None and _is_significant(changed, each, days):
            significant.append((changed, each))
    significant.sort(key=lambda pair: pair[0].p_value)
    return [_note(changed, each) for changed, each in significant]


def _series_by_slice(counting: Counting, query: TallyQuery, about: str) -> list[Series]:
    by_value: dict[str, Series] = {}
    together = Series(about, None, "")
    for line in counting.counts(query):
        _count(together, line)
        if not line.value:
            continue
        value = line.value if query.key is None else decode_tag(line.value)
        subject = f"down-votes with {about} {str(value).lower() if isinstance(value, bool) else value}"
        _count(by_value.setdefault(line.value, Series(about, value, subject, among=together)), line)
    # Where there is only one, it says what all of it says.
    return list(by_value.values()) if len(by_value) > 1 else []


def _series_by_theme(
    comments: Comments, all_of_it: Series, since: int, until: int, dataset: str | None
) -> list[Series]:
    recent = comments.newest(since, until, dataset)
    # What is older than the oldest comment that was read may have had the same theme, unseen.
    first = since // DAY if len(recent) < MAX_COMMENTS else recent[-1].at // DAY + 1
    by_theme: defaultdict[str, Series] = defaultdict(lambda: Series("theme", None, ""))
    for name, members in comments.groups(recent):
        series = by_theme[name]
        series.value, series.subject = name, f"down-votes on {name}"
        series.downs.update(comment.at // DAY for comment in members if comment.at // DAY >= first)
        series.opinions.update({number: count for number, count in all_of_it.opinions.items() if number >= first})
    return list(by_theme.values())


def _is_significant(changed: Change, series: Series, days: range) -> bool:
    if series.among is None:
        return True
    downs, opinions = series.among.downs - series.downs, series.among.opinions - series.opinions
    return is_significant(changed, days, [downs[day] for day in days], [opinions[day] for day in days])


def _count(series: Series, line: TallyCounts) -> None:
    assert line.start is not None
    series.downs[line.start] += line.down
    series.opinions[line.start] += line.up + line.down


def _note(changed: Change, series: Series) -> Note:
    since = day(changed.since)
    text = describe(changed, series.subject, f"{since:%A} {since.day} {since:%B}")
    return Note(
        text=text[0].upper() + text[1:],
        about=series.about,
        value=series.value,
        since=since,
        ratio=changed.ratio if changed.before_events else None,
        worse=changed.ratio > 1,
        arithmetic=arithmetic(changed),
    )
