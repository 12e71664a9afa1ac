"""Contradictions that `remember` notices: how many, how many wrongly, and what it costs: `python -m bench.conflicts`.

Made pairs: all facts that were there are in one dataset, and each new one may be said to conflict with its own alone.
LoCoMo: what the data set's observers noted of ten people's lives, in order, one dataset a conversation; what was
noticed was judged by hand. Altered: the same notes with another number, which a reader may or may not call a conflict.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import heedful
from bench import data, locomo
from bench.conflict_pairs import COMPATIBLE, CONFLICTING, TRUE_IN_LOCOMO
from bench.measure import Bar, Report, Spent, about, console, in_turns, say, timed, timing
from heedful import Heedful

MIN_PRECISION, MAX_COST = 0.95, 1.2

CALLS = 200
"""Facts that are remembered one by one, with and without."""

Notes = dict[str, list[str]]
"""What was noted, by conversation."""

_NUMBER = re.compile(r"\b(?:\d+|two|three|four|five|six|seven|eight|nine|ten)\b")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.conflicts", description=__doc__)
    parser.add_argument("--data", help=f"folder with {locomo.FILE}; {data.VARIABLE} if left out")
    parser.add_argument("--out", type=Path, default=Path("bench/out"), help="where the figures go")
    parser.add_argument("--facts", type=int, default=10_000, help="facts of the store that the cost is measured in")
    options = parser.parse_args(arguments)
    folder = data.folder(options.data)
    report = Report("Contradictions that remember notices", about())
    with TemporaryDirectory() as made:
        _measure_pairs(report, Path(made))
        if folder is not None and (folder / locomo.FILE).is_file():
            _measure_locomo(report, Path(made), observations(folder / locomo.FILE))
        else:
            console.print(data.WHERE, highlight=False)
        _measure_cost(report, Path(made), folder, options.facts)
    report.show()
    report.save(options.out / "conflicts.json")


def observations(file: Path) -> Notes:
    """What the observers of LoCoMo noted, session by session."""
    with gzip.open(file, "rt", encoding="utf-8") as stream:
        items = json.load(stream)
    found: Notes = {}
    for item in items:
        sessions = sorted(item["observation"].items(), key=lambda each: int(re.findall(r"\d+", each[0])[0]))
        texts = [note[0] for _, speakers in sessions for notes in speakers.values() for note in notes]
        found[item["sample_id"]] = list(dict.fromkeys(text for text in texts if isinstance(text, str)))
    return found


def _measure_pairs(report: Report, folder: Path) -> None:
    section = report.section("Made pairs", "pairs", "of", "noticed", "share")
    wrong: list[tuple[str, str]] = []
    missed: list[tuple[str, str]] = []
    with heedful.open(folder / "pairs.db") as memory:
        memory.remember([old for old, _ in CONFLICTING])
        for old, new in CONFLICTING:
            result = memory.remember(new)
            named = {each.text for each in result.conflicts}
            wrong += [(text, new) for text in sorted(named) if (text, new) not in CONFLICTING]
            missed += [] if old in named else [(old, new)]
            memory.forget(result.fact_ids)
        for place, (old, new) in enumerate(COMPATIBLE):
            memory.remember(old, dataset=f"pair {place}")
            wrong += [(old, new)] if memory.remember(new, dataset=f"pair {place}").conflicts else []
    noticed = len(CONFLICTING) - len(missed)
    for name, count, of in (("conflicting", noticed, CONFLICTING), ("compatible", len(wrong), COMPATIBLE)):
        section.rows.append([name, str(len(of)), str(count), f"{count / len(of):.2f}"])
    section.notes += [f"wrong: {old!r} and {new!r}" for old, new in wrong]
    section.notes += [f"missed: {old!r} and {new!r}" for old, new in missed]
    precision, recall = noticed / max(1, noticed + len(wrong)), noticed / len(CONFLICTING)
    report.figures["made"] = {"precision": precision, "recall": recall}
    report.bars.append(Bar("precision, made pairs", precision, MIN_PRECISION, "at least"))
    section.notes.append(f"precision {precision:.3f}, recall {recall:.3f}")


def _measure_locomo(report: Report, folder: Path, notes: Notes) -> None:
    section = report.section("LoCoMo", "conversation", "notes", "noticed", "right", "numbers altered", "noticed")
    noticed: list[tuple[str, str]] = []
    altered = found = 0
    with heedful.open(folder / "locomo.db") as memory:
        for name, texts in notes.items():
            own = list(_noticed(memory, texts, name))
            changed, seen = _altered(memory, texts, name)
            right = sum(pair in TRUE_IN_LOCOMO for pair in own)
            section.rows.append([name, str(len(texts)), str(len(own)), str(right), str(changed), str(seen)])
            noticed += own
            altered, found = altered + changed, found + seen
    section.notes += [
        f"{'right' if pair in TRUE_IN_LOCOMO else 'WRONG'}: {pair[0]!r} and {pair[1]!r}" for pair in noticed
    ]
    right = sum(pair in TRUE_IN_LOCOMO for pair in noticed)
    report.figures["locomo"] = {
        "notes": sum(map(len, notes.values())),
        "noticed": len(noticed),
        "right": right,
        "altered": altered,
        "altered noticed": found,
    }


def _noticed(memory: Heedful, texts: Sequence[str], dataset: str) -> Iterator[tuple[str, str]]:
    for text in texts:
        for each in memory.remember(text, dataset=dataset).conflicts:
            yield each.text, text


def _altered(memory: Heedful, texts: Sequence[str], dataset: str) -> tuple[int, int]:
    """How many notes have a number, and how many are found when they are remembered with another one."""
    changed = [(text, _NUMBER.sub("17", text, count=1)) for text in texts if _NUMBER.search(text)]
    found = 0
    for old, new in changed:
        if new not in texts:
            result = memory.remember(new, dataset=dataset)
            found += old in {each.text for each in result.conflicts}
            memory.forget([fact.fact_id for fact in result.facts if fact.new] or None)
    return len(changed), found


def _measure_cost(report: Report, out: Path, folder: Path | None, facts: int) -> None:
    """The processor's time of a fact that is remembered alone, with and without looking for conflicts."""
    section = report.section("Cost of one remember", "facts", "without, ms", "with, ms", "ratio")
    for size in (1_000, facts):
        texts = data.corpus(folder, size + 2 * CALLS).facts
        # Most real texts are questions, which contradict nothing; the notes are statements, as facts are.
        notes = [] if folder is None else list(chain(*observations(folder / locomo.FILE).values()))
        with heedful.open(out / f"cost-{size}.db") as memory:
            say(f"remembering {size} facts")
            memory.remember(texts[:size])
            memory.recall("A question, so that the index is there")
            rest = iter([*notes[: 2 * CALLS], *texts[size:]])

            def remember(place: int, memory: Heedful = memory, rest: Iterator[str] = rest) -> Spent:
                return timed(lambda: memory.remember(next(rest)))[0]

            def without(place: int, remember: Callable[[int], Spent] = remember) -> Spent:
                with patch("heedful.memory.remember.MAX_CHECKED", 0):
                    return remember(place)

            spent = in_turns({"without": without, "with": remember}, range(CALLS))
        cost = {name: timing(each).processor for name, each in spent.items()}
        ratio = cost["with"] / cost["without"]
        section.rows.append([f"{size:,}", f"{cost['without']:.2f}", f"{cost['with']:.2f}", f"{ratio:.2f}"])
        report.bars.append(Bar(f"processor's time, {size:,} facts", ratio, MAX_COST, "at most"))


if __name__ == "__main__":
    main()
