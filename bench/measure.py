"""Timing, the bars that a figure is held against, and the report: a table on the screen and a JSON file."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from rich.console import Console
from rich.table import Table

console = Console(soft_wrap=True)

Result = TypeVar("Result")


def say(text: str) -> None:
    """One line on the screen about what is going on."""
    console.print(f"[dim]{text}[/dim]", highlight=False)


class Spent(NamedTuple):
    """Seconds on the clock, and seconds of the processor, which other programs do not lengthen."""

    wall: float
    processor: float

    def less(self, other: Spent) -> Spent:
        """What is left without a part."""
        return Spent(self.wall - other.wall, self.processor - other.processor)


@dataclass(frozen=True, slots=True)
class Timing:
    """How long calls took, in milliseconds."""

    p50: float
    p95: float
    processor: float
    """The median of the processor's time, over all threads."""
    calls: int


def timing(spent: Sequence[Spent]) -> Timing:
    """The median and the 95th percentile of measured calls."""
    p50, p95 = np.percentile([each.wall * 1000 for each in spent], [50, 95])
    processor = statistics.median(each.processor * 1000 for each in spent)
    return Timing(float(p50), float(p95), processor, len(spent))


def in_turns(
    tasks: Mapping[str, Callable[[int], Spent]], places: Sequence[int], block: int = 25
) -> dict[str, list[Spent]]:
    """What each task says it took for each place.

    Tasks take turns in blocks of places, so that a machine that is busy for a while slows all of them.
    """
    spent: dict[str, list[Spent]] = {name: [] for name in tasks}
    for first in range(0, len(places), block):
        for name, task in tasks.items():
            spent[name] += [task(place) for place in places[first : first + block]]
    return spent


def timed(call: Callable[[], Result]) -> tuple[Spent, Result]:
    """What a call takes, and its result."""
    wall, processor = time.perf_counter(), time.process_time()
    result = call()
    return Spent(time.perf_counter() - wall, time.process_time() - processor), result


@dataclass(frozen=True, slots=True)
class Bar:
    """A measured figure and the limit it is held against."""

    name: str
    measured: float
    limit: float
    kind: Literal["at most", "at least"]
    unit: str = ""

    @property
    def met(self) -> bool:
        return self.measured <= self.limit if self.kind == "at most" else self.measured >= self.limit


@dataclass(slots=True)
class Section:
    """A table of figures: one row a thing that was measured."""

    title: str
    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Report:
    """All figures of one run."""

    title: str
    about: dict[str, Any]
    sections: list[Section] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)

    def section(self, title: str, *columns: str) -> Section:
        """A new table at the end of the report."""
        made = Section(title, list(columns))
        self.sections.append(made)
        return made

    def show(self) -> None:
        """Prints the tables, then the bars."""
        console.print(f"\n[bold]{self.title}[/bold]")
        for name, value in self.about.items():
            console.print(f"  {name}: {value}", highlight=False)
        for section in self.sections:
            console.print(_table(section))
            for note in section.notes:
                console.print(f"  {note}", highlight=False)
        if self.bars:
            console.print(_table(_verdicts(self.bars)))

    def save(self, file: Path) -> None:
        """Writes everything as JSON."""
        file.parent.mkdir(parents=True, exist_ok=True)
        content = asdict(self)
        for bar, made in zip(self.bars, content["bars"], strict=True):
            made["met"] = bar.met
        file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        say(f"figures written to {file}")


def number(value: float) -> str:
    """A figure with three digits that matter, or whole if it is large."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    digits = 2 if abs(value) >= 10 else 3 if abs(value) >= 0.1 else 4
    return f"{value:,.{digits - 1}f}" if abs(value) >= 1 else f"{value:,.{digits}f}"


def about(**more: Any) -> dict[str, Any]:
    """What a reader needs to know to compare figures: the machine, the versions, and `more`."""
    return {
        "machine": f"{machine()}, {platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "versions": ", ".join(f"{name} {version}" for name, version in versions().items()),
        "load": load(),
        **more,
    }


def machine() -> str:
    """The processor, and how many cores of it."""
    return f"{_processor()}, {os.cpu_count()} cores"


def load() -> str:
    """How many programs wanted a processor in the last minute; figures are good when it is about 1."""
    return f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def versions() -> dict[str, str]:
    """The versions of what is measured, as far as installed."""
    result = {}
    for name in ("heedful", "numpy", "onnxruntime", "sqlalchemy", "chromadb", "lancedb"):
        try:
            result[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return result


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(": ", 1)[1] for line in lines if line.startswith("model name")), platform.machine())


def _verdicts(bars: Sequence[Bar]) -> Section:
    section = Section("Bars", ["figure", "measured", "limit", ""])
    for bar in bars:
        limit = f"{'≤' if bar.kind == 'at most' else '≥'} {number(bar.limit)} {bar.unit}".rstrip()
        verdict = "[green]met[/green]" if bar.met else "[red]NOT MET[/red]"
        section.rows.append([bar.name, f"{number(bar.measured)} {bar.unit}".rstrip(), limit, verdict])
    return section


def _table(section: Section) -> Table:
    table = Table(title=section.title, title_justify="left", title_style="bold")
    for place, column in enumerate(section.columns):
        table.add_column(column, justify="left" if place == 0 else "right")
    for row in section.rows:
        table.add_row(*row)
    return table
