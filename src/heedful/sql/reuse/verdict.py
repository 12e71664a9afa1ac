"""What is decided about reusing a proven query, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

Decision = Literal["serve", "rebind", "refuse"]
Gate = Literal[
    "same",
    "rebind",
    "literals",
    "operators",
    "negation",
    "form",
    "aggregate",
    "scope",
    "argument_order",
    "relative_dates",
    "words",
    "kind",
    "conflict",
    "sql",
    "asker",
]


class Inline(str):
    """A date or time that is written into the SQL where the proven one is: its type depends on its place."""

    __slots__ = ()


Bound = str | int | Decimal


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where the two questions part; a side that says nothing there is empty.

    `kind` is the gate it concerns, or `value` (rebound) or `learned` (other proven questions show it is the same).
    """

    kind: Gate | Literal["value", "learned"]
    asked: str
    proven: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a proven query answers what was asked.

    `gate` is the stable code of the gate that decided and `reason` a sentence for people. `sql` is the statement to
    run, with `:p1` and so on where `parameters` go, and `display` the same with its values written out. Both are None
    when refused.
    """

    decision: Decision
    gate: Gate
    reason: str
    differences: tuple[Difference, ...] = ()
    sql: str | None = None
    parameters: Mapping[str, Bound] = field(default_factory=dict)
    display: str | None = None
    suggested: Verdict | None = None
    """When it is refused: what it would be if the question meant the same, where that is the only likely reading."""
