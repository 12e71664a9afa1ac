"""Watches what people say after a change of policy, and switches back if configured to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from heedful.clock import DAY
from heedful.insight.counting import DERIVED, OUTCOMES, Counting
from heedful.insight.satisfaction import day
from heedful.memory.workspace import Workspace
from heedful.model import Note, OpinionTarget
from heedful.statistics.change import Change, arithmetic, rise
from heedful.storage import audit, ledger, policies, scopes
from heedful.storage.policies import WHOLE_PROJECT
from heedful.storage.rows import AnyRow
from heedful.storage.tallies import TallyQuery

SPAN = 28
"""Days before and after a change that are compared, at most."""

SOURCE = "guard"

RATINGS: dict[str, tuple[OpinionTarget, ...]] = {"answers": OUTCOMES, "facts": ("fact",)}
"""What explicit ratings are about, in words."""


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

    @property
    def where(self) -> str:
        return "the project" if self.target == WHOLE_PROJECT else self.target

    def concerns(self, dataset: str) -> bool:
        return dataset not in self.except_for if self.target == WHOLE_PROJECT else dataset == self.target


def notes(workspace: Workspace, counting: Counting, since: int, until: int, dataset: str | None) -> list[Note]:
    """One note for each change of policy in this time after which ratings got worse than chance allows."""
    switches = [
        each
        for each in _switches(workspace, until)
        if since <= each.at < until and (dataset is None or each.concerns(dataset))
    ]
    return [_note(each, about, changed) for each, about, changed in _worse(counting, switches)]


def switch_back(workspace: Workspace, counting: Counting) -> list[str]:
    """Takes back each change of policy after which ratings got worse; returns the events. Once for each change:
    whoever retracts such an event keeps the policy."""
    now = workspace.now()
    recent = [each for each in _switches(workspace, now + 1) if now - each.at < SPAN * DAY]
    done = []
    for each, _, _ in _worse(counting, [each for each in recent if each.reverted_by is None]):
        with workspace.write() as connection:
            project = scopes.project_id(connection, workspace.project)
            assert project is not None
            last = next(iter(policies.choices(connection, project, [each.target])), None)
            known = ledger.with_keys(connection, project, [policies.revert_key(each.event_id)])
            if last is None or last.id != each.event_id or known:
                continue
            chosen = None
            if each.target != WHOLE_PROJECT:
                number = workspace.dataset(connection, each.target)
                if number is None:
                    continue
                chosen = number, each.target
            event = policies.choose(connection, project, chosen, each.before, now, source=SOURCE, reverts=each.event_id)
            audit.note_action(connection, "set_policy", now, project, each.target or None)
            done.append(event.id)
    return done


def _switches(workspace: Workspace, until: int) -> list[Switch]:
    """The last change of each dataset and of the project, with the one before it if it takes that back."""
    with workspace.read() as connection:
        project = scopes.project_id(connection, workspace.project)
        if project is None:
            return []
        own_policies = scopes.policies(connection, workspace.project)[1]
        rows = policies.choices(connection, project, [*own_policies, WHOLE_PROJECT])
    chosen = frozenset(name for name, policy in own_policies.items() if policy is not None)
    found = []
    for target in dict.fromkeys(row.target_id for row in rows):
        history = [row for row in rows if row.target_id == target and row.at < until]
        if not history:
            continue
        last, *earlier = history
        reverted = next((row for row in earlier if row.id == last.body["reverts"]), None)
        if reverted is not None:
            older = [row for row in earlier if row.seq < reverted.seq]
            own = _switch(reverted, older, last.at)
            found.append(replace(own, reverted_by=last.id, except_for=chosen))
        else:
            found.append(replace(_switch(last, earlier, until), except_for=chosen))
    return found


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


def _worse(counting: Counting, switches: Sequence[Switch]) -> list[tuple[Switch, str, Change]]:
    """Those after which down-votes rose, with what they are about; the most striking kind of ratings of each."""
    found = []
    for each in switches:
        changes = []
        for about, target_types in RATINGS.items():
            before, after = (
                _days(counting, each, target_types, start, stop)
                for start, stop in ((each.first, each.at), (each.at, each.last))
            )
            changed = rise(each.at // DAY, before, after, tests=len(RATINGS) * len(switches))
            changes += [] if changed is None else [(about, changed)]
        if changes:
            found.append((each, *min(changes, key=lambda pair: pair[1].p_value)))
    return found


def _days(
    counting: Counting, switch: Switch, target_types: tuple[OpinionTarget, ...], since: int, until: int
) -> list[tuple[int, int]]:
    """The down-votes of each day in this time, and all votes."""
    if since >= until:
        return []
    downs: Counter[int] = Counter()
    votes: Counter[int] = Counter()
    for line in counting.counts(TallyQuery("dataset", None, "day", since, until, None, target_types, DERIVED)):
        if switch.concerns(line.value or ""):
            assert line.start is not None
            downs[line.start] += line.down
            votes[line.start] += line.up + line.down
    return [(downs[start], votes[start]) for start in sorted(votes)]


def _note(switch: Switch, about: str, changed: Change) -> Note:
    since = day(changed.since)
    worse = f"down-votes of {about} rose from {_share(changed, False)} to {_share(changed, True)}"
    named = f"the policy of {switch.where} changed from {_name(switch.before)} to {_name(switch.policy)}"
    text = f"Since {named} on {since:%A} {since.day} {since:%B}, {worse}"
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


def _name(policy: str | None) -> str:
    return "the default" if policy is None else policy


def _share(changed: Change, after: bool) -> str:
    events, exposure = (
        (changed.after_events, changed.after_exposure) if after else (changed.before_events, changed.before_exposure)
    )
    return f"{events / exposure:.0%}"
