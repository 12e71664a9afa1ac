"""Significant changes in ratings, themes of comments, and policies that are switched back because ratings got worse."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from heedful.clock import DAY
from heedful.insight.comments import MAX_COMMENTS, Comments
from heedful.insight.counting import DERIVED, OUTCOMES, PREFIX, InsightSpace, decode_tag
from heedful.insight.satisfaction import day
from heedful.ledger import events as ledger
from heedful.ledger import ranking_policy
from heedful.ledger.ranking_policy import WHOLE_PROJECT
from heedful.ledger.tallies import TallyCounts, TallyQuery
from heedful.model import Facet, Note, OpinionTarget, Themes
from heedful.sessions.metadata import check_key
from heedful.statistics.change import Change, arithmetic, change, describe, is_significant, rise
from heedful.storage import audit, scopes
from heedful.storage.rows import AnyRow

SPAN = 28
"""Days that are compared by default, and at most before and after a change of policy."""

SLICES: tuple[Facet, ...] = ("dataset", "model", "target_type")
SUBJECTS = {"dataset": "in dataset {}", "model": "on answers by {}", "target_type": "on {}s"}


@dataclass(slots=True)
class Series:
    """Daily down-votes of something, and how many opinions there were."""

    about: str
    value: Any
    subject: str
    """The counted opinions, in words."""
    downs: Counter[int] = field(default_factory=Counter)
    opinions: Counter[int] = field(default_factory=Counter)
    among: Series | None = None
    """It and its like together."""


def list_themes(space: InsightSpace, since: datetime | None, until: datetime | None, dataset: str | None) -> Themes:
    start, stop = space.period(since, until, dataset)
    return space.comments.themes(start, stop, dataset)


def list_notes(
    space: InsightSpace, since: datetime | None, until: datetime | None, dataset: str | None, by: str | None
) -> list[Note]:
    start, stop = space.period(since, until, dataset)
    last = space.workspace.now() + 1 if stop is None else stop
    key = by.removeprefix(PREFIX) if isinstance(by, str) else by
    if key is not None:
        check_key("by", key)
    return notes(space, key, last - SPAN * DAY if start is None else start, last, dataset)


def notes(space: InsightSpace, key: str | None, since: int, until: int, dataset: str | None) -> list[Note]:
    """All that changed in this time: after changes of policy, then the most striking first, by metadata keys with a few
    values, and by `key`."""
    after_policies = _policy_notes(space, since, until, dataset)
    return [*after_policies, *_changes(space, key, since, until, dataset)]


def _changes(space: InsightSpace, key: str | None, since: int, until: int, dataset: str | None) -> list[Note]:
    """A part is reported only if it changed more than its peers: if all got worse, one note is enough."""
    all_of_it = Series("all", None, "down-votes")
    for line in space.counts(TallyQuery(None, None, "day", since, until, dataset, OUTCOMES, DERIVED)):
        _count(all_of_it, line)
    if not all_of_it.opinions:
        return []
    # Days before the first opinion would look like a change, and are only the beginning.
    days = range(min(all_of_it.opinions), (until - 1) // DAY + 1)
    series = [all_of_it]
    for facet in SLICES:
        targets = () if facet == "target_type" else OUTCOMES
        query = TallyQuery(facet, None, "day", since, until, dataset, targets, DERIVED)
        series += _series_by_slice(space, query, facet)
    chosen_keys = [key] if key is not None and space.values(key) else []
    for name in dict.fromkeys([*chosen_keys, *space.telling_keys()]):
        query = TallyQuery(None, name, "day", since, until, dataset, OUTCOMES, DERIVED)
        series += _series_by_slice(space, query, f"metadata.{name}")
    series += _series_by_theme(space.comments, all_of_it, since, until, dataset)
    tested = [part for part in series if sum(part.downs.values())]
    significant = []
    for part in tested:
        downs, opinions = [part.downs[number] for number in days], [float(part.opinions[number]) for number in days]
        changed = change(list(days), downs, opinions, tests=len(tested))
        if changed is not None and _is_significant(changed, part, days):
            significant.append((changed, part))
    significant.sort(key=lambda pair: pair[0].p_value)
    return [_note(changed, part) for changed, part in significant]


def _series_by_slice(space: InsightSpace, query: TallyQuery, about: str) -> list[Series]:
    by_value: dict[str, Series] = {}
    together = Series(about, None, "")
    for line in space.counts(query):
        _count(together, line)
        if not line.value:
            continue
        value = line.value if query.key is None else decode_tag(line.value)
        words = str(value).lower() if isinstance(value, bool) else "answer" if value == "entry" else value
        subject = "down-votes " + SUBJECTS.get(about, f"where {about.removeprefix(PREFIX)} is {{}}").format(words)
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
        series.value, series.subject = name, f"down-votes on “{name}”"
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


RATINGS: dict[str, tuple[OpinionTarget, ...]] = {"answers": OUTCOMES, "facts": ("fact",)}
"""The targets of explicit ratings, by their name in a note."""


@dataclass(frozen=True, slots=True)
class Switch:
    """A change of policy that is in force, or that was reverted, and the times that are compared."""

    event_id: str
    target: str
    """The dataset; empty for the project."""
    before: str | None
    policy: str | None
    at: int
    first: int
    last: int
    except_for: frozenset[str] = frozenset()
    """Datasets with a policy of their own, which a change for the project does not concern."""
    reverted_by: str | None = None
    """The event that took it back."""

    def concerns(self, dataset: str) -> bool:
        return dataset not in self.except_for if self.target == WHOLE_PROJECT else dataset == self.target


def _policy_notes(space: InsightSpace, since: int, until: int, dataset: str | None) -> list[Note]:
    """One note for each change of policy in this time after which ratings got worse than chance allows."""
    switches = [
        switch
        for switch in _switches(space, until)
        if since <= switch.at < until and (dataset is None or switch.concerns(dataset))
    ]
    return [_policy_note(switch, about, changed) for switch, about, changed in _worse(space, switches)]


def switch_back(space: InsightSpace) -> list[str]:
    """Takes back each change of policy after which ratings got worse; returns the events. Once for each change:
    whoever retracts such an event keeps the policy."""
    workspace, now = space.workspace, space.workspace.now()
    recent = [switch for switch in _switches(space, now + 1) if now - switch.at < SPAN * DAY]
    done = []
    for switch, _, _ in _worse(space, [switch for switch in recent if switch.reverted_by is None]):
        with workspace.write() as connection:
            project = space.project(connection)
            assert project is not None
            last = next(iter(ranking_policy.choices(connection, project, [switch.target])), None)
            known = ledger.with_keys(connection, project, [ranking_policy.revert_key(switch.event_id)])
            if last is None or last.id != switch.event_id or known:
                continue
            chosen = None
            if switch.target != WHOLE_PROJECT:
                number = workspace.dataset(connection, switch.target)
                if number is None:
                    continue
                chosen = number, switch.target
            event = ranking_policy.choose(
                connection, project, chosen, switch.before, now, source="guard", reverts=switch.event_id
            )
            audit.note_action(connection, "set_policy", now, project, switch.target or None)
            done.append(event.id)
    return done


def _switches(space: InsightSpace, until: int) -> list[Switch]:
    """The last change of each dataset and of the project, with the one before it if it takes that back."""
    with space.workspace.read() as connection:
        project = space.project(connection)
        if project is None:
            return []
        own_policies = scopes.policies(connection)[1]
        rows = ranking_policy.choices(connection, project, [*own_policies, WHOLE_PROJECT])
    chosen = frozenset(name for name, policy in own_policies.items() if policy is not None)
    switches = []
    for target in dict.fromkeys(row.target_id for row in rows):
        history = [row for row in rows if row.target_id == target and row.at < until]
        if not history:
            continue
        last, *earlier = history
        switch = replace(_switch(last, earlier, until), except_for=chosen)
        reverted = next((row for row in earlier if row.id == last.body["reverts"]), None)
        if reverted is not None:
            older = [row for row in earlier if row.seq < reverted.seq]
            switch = replace(_switch(reverted, older, last.at), reverted_by=last.id, except_for=chosen)
        switches.append(switch)
    return switches


def _switch(row: AnyRow, earlier: Sequence[AnyRow], until: int) -> Switch:
    began = earlier[0].at if earlier else 0
    return Switch(
        event_id=row.id,
        target=row.target_id,
        before=row.body["before"],
        policy=row.value,
        at=row.at,
        first=max(began, row.at - SPAN * DAY),
        last=min(until, row.at + SPAN * DAY),
    )


def _worse(space: InsightSpace, switches: Sequence[Switch]) -> list[tuple[Switch, str, Change]]:
    """Those after which down-votes rose, with what they are about; the most striking kind of ratings of each."""
    worse = []
    for switch in switches:
        changes = []
        for about, target_types in RATINGS.items():
            before = _votes_by_day(space, switch, target_types, switch.first, switch.at)
            after = _votes_by_day(space, switch, target_types, switch.at, switch.last)
            changed = rise(switch.at // DAY, before, after, tests=len(RATINGS) * len(switches))
            if changed is not None:
                changes.append((about, changed))
        if changes:
            worse.append((switch, *min(changes, key=lambda pair: pair[1].p_value)))
    return worse


def _votes_by_day(
    space: InsightSpace, switch: Switch, target_types: tuple[OpinionTarget, ...], since: int, until: int
) -> list[tuple[int, int]]:
    """The down-votes of each day in this time, and all votes."""
    if since >= until:
        return []
    downs: Counter[int] = Counter()
    votes: Counter[int] = Counter()
    for line in space.counts(TallyQuery("dataset", None, "day", since, until, None, target_types, DERIVED)):
        if switch.concerns(line.value or ""):
            assert line.start is not None
            downs[line.start] += line.down
            votes[line.start] += line.up + line.down
    return [(downs[start], votes[start]) for start in sorted(votes)]


def _policy_note(switch: Switch, about: str, changed: Change) -> Note:
    since = day(changed.since)
    before, after = changed.before_events / changed.before_exposure, changed.after_events / changed.after_exposure
    old, new = ("the default" if policy is None else policy for policy in (switch.before, switch.policy))
    where = "the project" if switch.target == WHOLE_PROJECT else switch.target
    text = (
        f"Since the policy of {where} changed from {old} to {new} on {since:%A} {since.day} {since:%B}, "
        f"down-votes of {about} rose from {before:.0%} to {after:.0%}"
    )
    if switch.reverted_by is not None:
        text = f"{text}, so it was changed back"
    return Note(
        text=text,
        about="policy",
        value=switch.target or None,
        since=since,
        ratio=changed.ratio if changed.before_events else None,
        worse=True,
        arithmetic=arithmetic(changed),
        event_id=switch.reverted_by or switch.event_id,
    )
