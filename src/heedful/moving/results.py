"""What moving and verifying a store return."""

from __future__ import annotations

from heedful.model.base import Model


class Sums(Model):
    """One project in a few characters: two stores that agree on them hold the same facts and the same ledger."""

    project: str
    facts: int
    events: int
    facts_checksum: str
    ledger_checksum: str


class Copied(Model):
    """A copy that was made and compared with its source."""

    source: str
    target: str
    tables: dict[str, int]
    """How many rows each table has, in the source and in the copy."""
    written: int
    """How many rows this run wrote or removed; fewer than all if it went on where another one was stopped."""
    projects: list[Sums]


class Moved(Model):
    """A project that was written to a file, or read from one."""

    project: str
    counts: dict[str, int]
    """How many lines of each type."""
    facts_checksum: str
    ledger_checksum: str
    embedded: int = 0
    """How many facts had to be embedded, because the file has no vectors of the store's model."""


class BackedUp(Model):
    """A backup that was checked."""

    file: str
    bytes: int
    tables: dict[str, int]


class Difference(Model):
    """Something that is not what the ledger says."""

    project: str
    dataset: str | None
    what: str
    """What was compared, in a few words."""
    count: int
    examples: list[str]
    """The first few things that differ, by id."""


class Verified(Model):
    """What a replay of the ledger found."""

    store: str
    projects: list[Sums]
    compared: int
    """How many scores of facts and of links were compared with the fold of the ledger."""
    differences: list[Difference]

    @property
    def ok(self) -> bool:
        return not self.differences
