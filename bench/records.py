"""What a benchmark measured, kept in `bench/results` with the commit, the date and how quiet the machine was.

`docs/benchmarks.md` is written from these records: `bench.page`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.measure import number
from bench.quiet import Share

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results"

MOST_AIMS = 12
"""If a record has more, the page shows those that were missed."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a record; one with `more` is kept, and not shown on the page."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)
    more: bool = False

    def markdown(self) -> str:
        """The table in Markdown, with its title above and its notes below.

        >>> print(Table("", ["", "ms"], [["a | b", "1"]], ["Each [bold]once[/bold]."]).markdown())
        |  | ms |
        | --- | --- |
        | a \\| b | 1 |
        <BLANKLINE>
        Each **once**.
        """
        lines = [_line(self.columns), _line(["---"] * len(self.columns)), *map(_line, self.rows)]
        title = [f"**{_plain(self.title)}**"] if self.title else []
        return "\n\n".join([*title, "\n".join(lines), *map(_plain, self.notes)])


@dataclass(frozen=True, slots=True)
class Aim:
    """A figure and the limit it is held against, both as they are shown."""

    name: str
    measured: str
    limit: str
    met: bool


@dataclass(frozen=True, slots=True)
class Machine:
    """Where it was measured: what it is, what others took before and during the run, and how long quiet was awaited."""

    name: str
    before: Share
    stolen: float
    waited: float

    def __str__(self) -> str:
        quiet = "" if self.before.quiet else f" It didn't become quiet within {self.waited:.0f} s."
        return (
            f"{self.name}. Other programs took {self.before.busy:.0%} of the processors before the run and the host"
            f" {self.before.stolen:.1%}; during it the host took {self.stolen:.1%}.{quiet}"
        )


@dataclass(frozen=True, slots=True)
class Record:
    """The figures of one run, or of one table that an earlier version's page had (`carried`)."""

    name: str
    command: str
    version: str
    commit: str
    date: str
    machine: Machine | None = None
    carried: bool = False
    aims: list[Aim] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)

    def markdown(self) -> str:
        """What the page shows of it."""
        parts = [_aims(self.aims)] if self.aims else []
        parts += [table.markdown() for table in self.tables if not table.more]
        if more := sum(table.more for table in self.tables):
            parts.append(f"[The record](../bench/results/{self.name}.json) has {more} more table{'s'[: more > 1]}.")
        return "\n\n".join([*parts, *map(_plain, self.notes), f"*{self.origin()}*"])

    def origin(self) -> str:
        """One line: what measured it, at which commit, when and where."""
        by = f" By `{self.command}`." if self.command else ""
        if self.carried:
            of = f"{self.version}, commit {self.commit[:8]} or before, {self.date}"
            return f"Measured with an earlier version ({of}), and not since.{by}"
        where = f" {self.machine}" if self.machine is not None else ""
        return f"Version {self.version}, commit {self.commit[:8]}, {self.date}.{by}{where}"

    def save(self, folder: Path = RESULTS) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        content = {key: value for key, value in asdict(self).items() if value not in ([], {}, None, False)}
        text = json.dumps(content, indent=1, ensure_ascii=False)
        # One row a line.
        short = re.sub(r'\[\n\s+("(?:[^"\\]|\\.)*"(?:,\n\s+"(?:[^"\\]|\\.)*")*)\n\s+\]', _one_line, text)
        (folder / f"{self.name}.json").write_text(short + "\n", encoding="utf-8")


def read(file: Path) -> Record:
    """A record from its file."""
    content = json.loads(file.read_text(encoding="utf-8"))
    machine = content.pop("machine", None)
    if machine is not None:
        machine = Machine(**{**machine, "before": Share(**machine["before"])})
    aims = [Aim(**each) for each in content.pop("aims", [])]
    tables = [Table(**each) for each in content.pop("tables", [])]
    return Record(**content, machine=machine, aims=aims, tables=tables)


def all_records(folder: Path = RESULTS) -> dict[str, Record]:
    """All records, by name."""
    return {file.stem: read(file) for file in sorted(folder.glob("*.json"))}


def aim_of(bar: Mapping[str, Any]) -> Aim:
    """The aim of a bar in a report's file."""
    unit = f" {bar['unit']}".rstrip().replace(" %", "%")
    sign = "≤" if bar["kind"] == "at most" else "≥"
    return Aim(
        str(bar["name"]), f"{number(bar['measured'])}{unit}", f"{sign} {number(bar['limit'])}{unit}", bool(bar["met"])
    )


def _aims(aims: Sequence[Aim]) -> str:
    """A table of the aims; where there are many, of those that were missed."""
    shown = aims if len(aims) <= MOST_AIMS else [each for each in aims if not each.met]
    rows = [[each.name, each.measured, each.limit, "met" if each.met else "**not met**"] for each in shown]
    left = len(aims) - len(shown)
    notes = [f"The other {left} of {len(aims)} aims are met."] if left else []
    return Table("", ["figure", "measured", "aim", ""], rows, notes).markdown()


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_plain(cell).strip().replace('|', chr(92) + '|') for cell in cells)} |"


def _plain(text: str) -> str:
    """A text of the screen in Markdown."""
    return re.sub(r"\[/?bold\]", "**", text)


def _one_line(found: re.Match[str]) -> str:
    return "[" + re.sub(r",\n\s+", ", ", found[1]) + "]"
