"""Where an item stands: the fold of what reviewers did, and of when people last complained. Pure.

An item is what the last of `resolve`, `dismiss` and `reopen` says, and open before there is one. An opinion that was
given after an item was resolved opens it again, for as long as that opinion stands: the mend didn't hold. What was
dismissed stays so, whoever says it again. It is the time of the opinion that counts, not when it arrived: what was said
before the mend is no news. Somebody is assigned until another one, or nobody, is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from heedful.model import ReviewStatus

CLOSES: dict[str, ReviewStatus] = {"resolve": "resolved", "dismiss": "dismissed"}


class Act(NamedTuple):
    """An action that stands, as the fold sees it."""

    action: str
    at: int
    author: str | None = None
    assignee: str | None = None


class Standing(NamedTuple):
    """Where an item stands."""

    status: ReviewStatus = "open"
    assignee: str | None = None
    closed: Act | None = None
    """What closed it."""


def folded(acts: Iterable[Act], last_at: int | None) -> Standing:
    """What the actions that stand, in order, and the time of the newest opinion that stands come to."""
    assignee: str | None = None
    closed: Act | None = None
    for act in acts:
        if act.action == "assign":
            assignee = act.assignee
        elif act.action in CLOSES:
            closed = act
        elif act.action == "reopen":
            closed = None
    if closed is not None and closed.action == "resolve" and last_at is not None and last_at > closed.at:
        closed = None
    return Standing("open" if closed is None else CLOSES[closed.action], assignee, closed)
