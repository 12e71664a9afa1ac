"""Groups of what is alike, as a tree of which each part holds together at least as well as the whole.

Average linkage: the two groups whose members are most alike on average become one, until none are alike enough. Found
along chains of nearest neighbours (Murtagh, "A survey of recent advances in hierarchical clustering algorithms", 1983),
in as many steps as there are pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_NEVER = -np.inf


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Some members, and the two groups they come from; a single member has none.

    `level` is how alike the members of one half are to those of the other, on average, and `cohesion` how alike any two
    members are.
    """

    members: tuple[int, ...]
    halves: tuple[Group, Group] | None = None
    level: float = 1.0
    cohesion: float = 1.0


def groups(similarity: NDArray[np.float64], alike: float) -> list[Group]:
    """The groups of rows that are alike on average; each row is in one, if need be by itself.

    >>> [group.members for group in groups(np.array([[1, 0.1, 0.9], [0.1, 1, 0.2], [0.9, 0.2, 1]]), 0.5)]
    [(0, 2), (1,)]
    """
    open_ = {place: Group((place,)) for place in range(len(similarity))}
    nearness = similarity.astype(np.float64)
    np.fill_diagonal(nearness, _NEVER)
    done: list[Group] = []
    chain: list[int] = []
    while open_:
        if not chain:
            chain.append(next(iter(open_)))
        last = chain[-1]
        near = int(nearness[last].argmax())
        if len(chain) > 1 and nearness[last, chain[-2]] >= nearness[last, near]:
            near = chain[-2]
        if nearness[last, near] < alike:
            # No later group is nearer to this one than its nearest part is.
            done.append(open_.pop(chain.pop()))
            nearness[last] = nearness[:, last] = _NEVER
        elif len(chain) > 1 and near == chain[-2]:
            del chain[-2:]
            _join(nearness, open_, last, near)
        else:
            chain.append(near)
    return sorted(done, key=lambda group: group.members)


def _join(nearness: NDArray[np.float64], open_: dict[int, Group], kept: int, gone: int) -> None:
    one, other = open_[kept], open_.pop(gone)
    level = float(nearness[kept, gone])
    here, there = len(one.members), len(other.members)
    joined = (here * nearness[kept] + there * nearness[gone]) / (here + there)
    nearness[kept] = nearness[:, kept] = joined
    nearness[kept, kept] = _NEVER
    nearness[gone] = nearness[:, gone] = _NEVER
    alike = _pairs(here) * one.cohesion + _pairs(there) * other.cohesion + here * there * level
    open_[kept] = Group(
        members=tuple(sorted(one.members + other.members)),
        halves=(one, other),
        level=level,
        cohesion=alike / _pairs(here + there),
    )


def _pairs(members: int) -> int:
    return members * (members - 1) // 2


def divided(group: Group, *, smallest: int, firmness: float) -> list[Group]:
    """A group, or its parts of at least `smallest` members where those hold together much better by themselves.

    That is where the level between two parts is below `firmness` times the cohesion of either. What is near no part is
    left out.
    """
    parts: list[Group] = []
    open_ = [group]
    while open_:
        whole = at = open_.pop()
        while len(large := [half for half in at.halves or () if len(half.members) >= smallest]) == 1:
            at = large[0]
        if large and at.level < firmness * min(half.cohesion for half in large):
            open_ += large
        else:
            parts.append(whole)
    return sorted(parts, key=lambda part: part.members)
