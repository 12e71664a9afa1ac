"""Writes the figures of docs/benchmarks.md and README.md from the records: `python -m bench.page`.

The text of both is written by hand. What is between `<!-- bench:NAME -->` and `<!-- /bench -->` comes from the record
NAME, or, for `head`, `missed`, `numbers` and `learning-summary`, from several.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import pictures
from bench.measure import number
from bench.plan import BENCHMARKS, DOCUMENTED, WORLDS
from bench.records import ROOT, Record, Table, all_records

Records = Mapping[str, Record]

PAGE, README = ROOT / "docs" / "benchmarks.md", ROOT / "README.md"
IMAGES = ROOT / "docs" / "images"
BLOCK = re.compile(r"<!-- bench:([\w-]+) -->\n(.*?)<!-- /bench -->", re.DOTALL)

BLEND = "documented, w = .3"
"""The fixed blend that the page compares with; the README has `WEAK_BLEND`, too."""
WEAK_BLEND = "documented, w = .1"
MANY = 6
"""Missed aims of one record that are listed together with those of others."""
SETS = ("geography", "scholar", "advising")


def main() -> None:
    write(all_records())


def write(records: Records) -> None:
    """Fills the page and the README, and draws the pictures."""
    for file in (PAGE, README):
        file.write_text(filled(file, records), encoding="utf-8")
    for name, drawn in images(records).items():
        (IMAGES / name).write_text(drawn, encoding="utf-8")


def images(records: Records) -> dict[str, str]:
    """The pictures, by the names of their files."""
    return {
        "learning.svg": pictures.learning(records["learning"].figures["explicit, exact"], BLEND),
        "growth.svg": pictures.growth(records["scale"].figures, records["speed"].figures),
    }


def filled(file: Path, records: Records) -> str:
    """The text of a file, with its blocks from these records."""

    def fill(found: re.Match[str]) -> str:
        name = found[1]
        if name in COMPOSED:
            text = COMPOSED[name](records)
        elif name in records:
            text = records[name].markdown()
        else:
            text = f"*Not measured yet: `make bench-all ONLY={_benchmark(name, file)}`.*"
        return f"<!-- bench:{name} -->\n\n{text}\n\n<!-- /bench -->"

    return BLOCK.sub(fill, file.read_text(encoding="utf-8"))


def _benchmark(name: str, file: Path) -> str:
    """The benchmark that leaves a record."""
    for benchmark, plan in BENCHMARKS.items():
        if any(part.name == name for part in plan.parts):
            return benchmark
    raise KeyError(f"{file.name} has a block bench:{name}; bench/results has no {name}.json, and nothing writes it")


def head(records: Records) -> str:
    """What the page begins with."""
    recall, held = records["recall"].figures["tuned"], records["recall-held-out"].figures["held out"]
    speed, aging = records["speed"].figures, records["aging"].figures
    gains, harms = _changes(records, "adaptive")
    blend_gains, blend_harms = _changes(records, BLEND)
    noisy, _ = _changes(records, "adaptive", "explicit, 30% noise")
    server = records["server"]
    aims = [aim for record in records.values() for aim in record.aims]
    missed, count = [aim for aim in aims if not aim.met], len(aims)
    year = [aging[kind] for kind in ("SQLite", "PostgreSQL")]
    lines = [
        f"**Recall** finds {recall['hybrid']:.0%} of LoCoMo's evidence among its first ten facts; rank fusion finds"
        f" {recall['fusion']:.0%}, BM25 {recall['words']:.0%} and vectors {recall['vectors']:.0%}. On held-out"
        f" conversations it found {held['hybrid']:.0%} ([quality](#quality-of-recall)).",
        f"**Speed**: among {speed['facts']:,} facts, a recall takes {number(speed['milliseconds'])} ms with its receipt"
        f" on disk, {speed['times']:.2f} times as long as embedding its query ([speed](#speed-and-size)).",
        "**Learning** from ratings changes the mean reciprocal rank of the right fact by"
        f" {_range(gains)} for other phrasings in four worlds, and by {_range(harms)} for questions that nobody rated."
        f" A fixed blend changes them by {_range(blend_gains)} and {_range(blend_harms)} ([learning](#learning)).",
        f"**Wrong ratings** cost much: with 30% of them wrong, the gain is {_range(noisy)}.",
        f"**Reuse** answers {_listed(_shares(records, 'reused'))} of the questions of three sets with SQL that was"
        f" proven for others, and {_listed(_shares(records, 'wrong'), 2)} wrongly. A cosine of 0.80 or more gives"
        f" {_listed(_shares(records, 'wrong', ' by cosine'))} wrong answers ([reuse](#reuse-of-executions)).",
        f"**A year of traffic** makes recall {year[0]['recall']:.2f} times as slow on SQLite and"
        f" {year[1]['recall']:.2f} times on PostgreSQL; servers grow to {max(each['memory'] for each in year):.2f}"
        f" times their memory, and {aging['wrong']['count']:.0f} scores are wrong ([a long life](#a-long-life)).",
        f"**The server**: {_aims(server)} ([the server](#the-server)).",
        f"**Missed**: {len(missed)} of {count} aims, [listed at the end](#aims-that-were-missed).",
    ]
    dates = sorted(record.date for record in records.values())
    carried = sum(record.carried for record in records.values())
    age = (
        f"Measured between {dates[0]} and {dates[-1]}. Each table ends with its commit, date and machine;"
        f" {carried} of {len(records)} were measured with an earlier version, and say so."
    )
    return "\n".join(f"- {line}" for line in lines) + f"\n\n{age}"


def numbers(records: Records) -> str:
    """The figures of the README."""
    held = records["recall-held-out"].figures["held out"]
    gains, harms = _changes(records, "adaptive")
    strong_gains, strong_harms = _changes(records, BLEND)
    weak_gains, weak_harms = _changes(records, WEAK_BLEND)
    noisy, _ = _changes(records, "adaptive", "explicit, 30% noise")
    reused, wrong = _shares(records, "reused"), _shares(records, "wrong")
    others, others_wrong = _shares(records, "reused", " by cosine"), _shares(records, "wrong", " by cosine")
    page = "docs/benchmarks.md"
    rows = [
        [
            f"[Learning]({page}#learning): change of the right fact's rank for rated questions in other words",
            f"**{_range(gains)}**",
            f"fixed blend: {_range(weak_gains)} (weight 0.1), {_range(strong_gains)} (weight 0.3)",
        ],
        [
            "… for questions that nobody rated",
            f"**{_range(harms)}**",
            f"{_range(weak_harms)} (weight 0.1), {_range(strong_harms)} (weight 0.3)",
        ],
        [
            f"[Reuse]({page}#reuse-of-executions): questions answered with SQL that was confirmed for others",
            f"**{_range(reused, '')}**",
            f"cosine ≥ 0.80: {_range(others, '')}",
        ],
        ["… and answered wrongly", f"**{_range(wrong, '', 1)}**", _range(others_wrong, "")],
        [
            f"[Recall]({page}#quality-of-recall): evidence found among the first ten facts",
            f"**{held['hybrid']:.0%}**",
            f"BM25 with vectors: {held['fusion']:.0%}; vectors: {held['vectors']:.0%}",
        ],
    ]
    table = Table("", ["", "Heedful", "others on the same data"], rows).markdown()
    return (
        f"{table}\n\nRanks are mean reciprocal ranks on four data sets. Reuse is a share of all questions of three data"
        " sets, on which its rules were tuned.\nRecall is measured on conversations of LoCoMo that nothing was tuned"
        f" on. If 30% of the ratings are wrong, rated questions gain only {_range(noisy, '')}."
    )


def learning_summary(records: Records) -> str:
    """What explicit ratings change in each world, by rule; with 30% of them wrong for the default."""
    found = records["learning"].figures
    rows = []
    for condition, shown in (("explicit, exact", "explicit ratings"), ("explicit, 30% noise", "30% of ratings wrong")):
        for arm in ("adaptive", *DOCUMENTED):
            cells = [found[condition].get(world, {}).get(arm) for world in WORLDS.values()]
            if any(cells):
                changes = ["" if each is None else f"{_signed(each[0], 1)} / {_signed(each[1], 1)}" for each in cells]
                rows.append([f"{shown}: {arm.replace('w = .', 'w = 0.')}", *changes])
    title = "Change of the mean reciprocal rank: other phrasings of rated needs / needs that nobody rated"
    return Table(title, ["", *WORLDS.values()], rows).markdown()


def missed(records: Records) -> str:
    """All aims that were missed, and where; of a record that missed many, only how many."""
    rows, many = [], []
    for name, record in records.items():
        aims = [aim for aim in record.aims if not aim.met]
        if len(aims) > MANY:
            many.append(f"{name} {len(aims)}")
        else:
            rows += [[name, aim.name, aim.measured, aim.limit] for aim in aims]
    notes = (
        [f"Records that missed more than {MANY} aims list them in their own table: {', '.join(many)}."] if many else []
    )
    return Table("", ["record", "figure", "measured", "aim"], rows, notes).markdown()


COMPOSED: dict[str, Callable[[Records], str]] = {
    "head": head,
    "numbers": numbers,
    "learning-summary": learning_summary,
    "missed": missed,
}


def _changes(records: Records, arm: str, condition: str = "explicit, exact") -> tuple[list[float], list[float]]:
    """The changes of all worlds: for other phrasings, and for needs that nobody rated."""
    found = [world[arm] for world in records["learning"].figures[condition].values() if arm in world]
    return [each[0] for each in found], [each[1] for each in found]


def _shares(records: Records, what: str, by: str = "") -> list[float]:
    figures: dict[str, Any] = {**records["reuse"].figures, **records["reuse-sets"].figures}
    return [figures[name + by][what] for name in SETS]


def _range(values: Sequence[float], sign: str = "+", digits: int = 0) -> str:
    """From the least change in size to the greatest, in percent.

    >>> _range([28.5, 7.8]), _range([-0.3, -1.1, 0.0], digits=1), _range([39.3, 60.9], "")
    ('+8% to +29%', '0% to −1.1%', '39% to 61%')
    """
    low, high = (min(values), max(values)) if max(values) > 0 else (max(values), min(values))
    if sign and -2 < high <= 0:
        digits = 1
    return " to ".join(_signed(each, digits, sign) + "%" for each in (low, high))


def _signed(value: float, digits: int = 0, sign: str = "+") -> str:
    # Halves are rounded away from zero, as a reader would.
    rounded = f"{value + math.copysign(1e-9, value):{sign}.{digits}f}"
    return rounded.replace("-", "−") if float(rounded) else "0"


def _listed(values: Sequence[float], digits: int = 0) -> str:
    shown = [f"{_signed(value, digits, '')}%" for value in values]
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def _aims(record: Record) -> str:
    return "; ".join(f"{aim.name}: {aim.measured} (aim {aim.limit})" for aim in record.aims)


if __name__ == "__main__":
    main()
