"""What moving and verifying a store return."""

from __future__ import annotations

from heedful.model.base import Model


class ProjectChecksum(Model):
    """One project in a few characters: two stores that agree on them hold the same facts and the same ledger."""

    project: str
    """Its name."""
    facts: int
    """How many facts it has."""
    events: int
    """How many lines its ledger has."""
    facts_checksum: str
    """The fold of its facts, in the order they were stored."""
    ledger_checksum: str
    """The fold of its ledger, in the order it was written."""


class Copied(Model):
    """A copy that was made and compared with its source."""

    source: str
    """The file, or the address without secrets."""
    target: str
    """The file, or the address without secrets."""
    tables: dict[str, int]
    """How many rows each table has, in the source and in the copy."""
    written: int
    """How many rows this run wrote or removed; fewer than all if it went on where another one was stopped."""
    projects: list[ProjectChecksum]
    """The checksums of all projects, which are the same on both sides."""


class Transferred(Model):
    """A project that was written to a file, or read from one."""

    project: str
    """Its name in the store."""
    counts: dict[str, int]
    """How many lines of each type."""
    facts_checksum: str
    """The fold of its facts."""
    ledger_checksum: str
    """The fold of its ledger."""
    embedded: int = 0
    """How many facts had to be embedded, because the file has no vectors of the store's model."""


class BackedUp(Model):
    """A backup that was checked."""

    file: str
    """Where it is."""
    bytes: int
    """How large it is."""
    tables: dict[str, int]
    """How many rows each table has."""


class Difference(Model):
    """Something that is not what the ledger says."""

    project: str | None
    """The project it is in; None for what belongs to the whole store."""
    dataset: str | None
    """The dataset it is in, if it is in one."""
    what: str
    """What was compared, in a few words."""
    count: int
    """How many differ."""
    examples: list[str]
    """The first few things that differ, by id."""


class Verified(Model):
    """What a replay of the ledger found."""

    store: str
    """The file, or the address without secrets."""
    projects: list[ProjectChecksum]
    """The checksums of the projects that were looked at, but for those with facts that can't be read."""
    compared: int
    """How many scores of facts and of links were compared with the fold of the ledger."""
    differences: list[Difference]
    """What differs; nothing in a sound store."""

    @property
    def ok(self) -> bool:
        """Whether nothing differs."""
        return not self.differences


class LineError(Model):
    """A line of a file that was not imported."""

    file: str | None
    """The file inside the archive, if the file is one."""
    line: int
    """The line on which the row begins."""
    field: str | None
    """The field that is wrong, if it is one."""
    message: str
    """What is wrong, for people."""


class Imported(Model):
    """What a file of another system had, and what became of it."""

    system: str
    """Which system wrote the file."""
    dataset: str
    """Where its facts are now."""
    dry_run: bool
    """Whether the file was only read."""
    sources: int
    """How many memories or documents it has."""
    added: int
    """How many facts are new."""
    known: int
    """How many facts were there already."""
    signals: int
    """How many opinions about facts it has."""
    answers: int
    """How many questions with their answers it has."""
    ratings: int
    """How many opinions about answers it has."""
    waiting: int
    """How many of those wait for their answer, which is in no file yet."""
    skipped: dict[str, int]
    """What has no place here, by what it is."""
    errors: list[LineError]
    """What was refused, line by line."""
