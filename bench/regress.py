"""What `regress` notices: `make bench-regress`.

People rate what COVID-Q's and LoCoMo's questions find. Then the store is changed in ways that make it worse: another
model (`fast`), a re-import that cuts a tenth of the facts in half, and the fixed blend at 0.5. How many rated questions
does it take until each is called worse? And how often is a change that does nothing called worse: an unchanged store, a
copy of it, and changes whose effects are drawn at random, for better as often as for worse?
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import heedful
from bench import data, learning_worlds
from bench.measure import Report, about, console, say
from bench.vectors import Served, embedded
from heedful.engine import Heedful, project_of
from heedful.evaluation import regression
from heedful.evaluation.comparison import Compared, totals
from heedful.model import DEFAULT_DATASET
from heedful.providers.embedding import bundled

SIZES = (25, 50, 100, 200, 400)
DRAWS = 200
PER_DOCUMENT = 50
MOST_QUESTIONS = 600
"""Of a world, which bounds how long it takes."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The rated questions of a world with one change."""

    name: str
    compared: list[Compared]
    needs: list[str]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.regress", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help=f"the folder of the data sets; {data.VARIABLE} if left out")
    parser.add_argument("--out", type=Path, default=Path("bench/out"), help="where figures and caches go")
    parser.add_argument("--quick", action="store_true", help="thirty questions of each, to see that it runs")
    options = parser.parse_args(arguments)
    folder = data.folder(options.data)
    if folder is None:
        console.print(data.WHERE, highlight=False)
        return
    report = Report("Regressions", about(samples=DRAWS))
    for name, file in (("COVID-Q", learning_worlds.FILE), ("LoCoMo", learning_worlds.LOCOMO)):
        facts, asked = _world(folder / file)
        _tell(report, name, facts, asked[: 30 if options.quick else None], options.out)
    report.show()
    report.save(options.out / "regress.json")


def _world(file: Path) -> tuple[list[str], list[tuple[str, str]]]:
    """The facts, and questions with the fact that answers each, a fixed sample of them."""
    if file.name == learning_worlds.LOCOMO:
        facts, needs = learning_worlds._turns(file)
    else:
        facts, needs = [], learning_worlds._answered(file)
    texts = list(dict.fromkeys([*(need.answer for need in needs), *facts]))
    asked = [(query, need.answer) for need in needs for query in need.queries if query]
    Random(1).shuffle(asked)
    return texts, asked[:MOST_QUESTIONS]


def _tell(report: Report, name: str, facts: Sequence[str], asked: Sequence[tuple[str, str]], out: Path) -> None:
    questions = [question for question, _ in asked]
    texts = list(dict.fromkeys([*facts, *questions]))
    model = Served(bundled(), texts, embedded(texts, out, say))
    with TemporaryDirectory() as folder:
        file = Path(folder) / "store.db"
        with heedful.open(file, embedding=model, worker=False) as store:
            rated = _fill(store, facts, asked)
        say(f"{name}: {len(facts):,} facts, {len(asked):,} questions, {rated:,} of them rated")
        cut = Path(folder) / "cut.db"
        shutil.copy(file, cut)
        with heedful.open(cut, embedding=model, worker=False) as store:
            _cut(store, facts)
        with heedful.open(file, embedding=model, worker=False) as store:
            worse: dict[str, dict[str, Any]] = {
                "the model `fast`": {"embedding": "fast"},
                "a tenth of the facts cut in half": {"against": cut},
                "the fixed blend at 0.5": {"policy": "documented", "usefulness_weight": 0.5},
            }
            same: dict[str, dict[str, Any]] = {
                "the store as it is": {},
                "a copy, embedded again": {"as_of": datetime.now(UTC)},
            }
            outcomes = {kind: _compared(store, change) for kind, change in {**worse, **same}.items()}
    title = f"{name}: how often a sample of so many rated questions is called worse"
    section = report.section(title, "change", "worse", "better", "score", *(f"{size} rated" for size in SIZES))
    section.rows += [[kind, *_row(outcome)] for kind, outcome in outcomes.items()]
    for kind in worse:
        chance = (f"{_accused(outcomes[kind], size, True):.1%}" for size in SIZES)
        section.rows.append([f"{kind}, signs at random", "", "", "", *chance])


def _fill(store: Heedful, facts: Sequence[str], asked: Sequence[tuple[str, str]]) -> int:
    """Remembers the facts as documents; three people rate what they are shown. Returns how many questions have a
    helpful fact."""
    for start in range(0, len(facts), PER_DOCUMENT):
        _remember(store, start, facts[start : start + PER_DOCUMENT])
    draw, rated = Random(2), 0
    for question, answer in asked:
        recall = store.recall(question, boost_by_usefulness=False)
        right = [hit.fact_id for hit in recall.hits if hit.text == answer]
        if right:
            store.signal_recall(recall.recall_id, helpful=right, author=f"person {draw.randrange(3)}")
            rated += 1
    return rated


def _remember(store: Heedful, number: int, texts: Sequence[str]) -> None:
    project_of(store).store_documents(DEFAULT_DATASET, [(f"document {number}", True, [(text, {}) for text in texts])])


def _cut(store: Heedful, facts: Sequence[str]) -> None:
    """Imports the documents again, a tenth of their facts cut in half."""
    draw = Random(3)
    for start in range(0, len(facts), PER_DOCUMENT):
        _remember(
            store, start, [_half(text) if draw.random() < 0.1 else text for text in facts[start : start + PER_DOCUMENT]]
        )


def _half(text: str) -> str:
    words = text.split()
    return " ".join(words[: max(1, len(words) // 2)])


def _compared(store: Heedful, change: dict[str, Any]) -> Outcome:
    """All rated questions with a change, one by one."""
    seen: list[regression._Run] = []
    summed = regression._Run._summed

    def keep(run: regression._Run, *arguments: Any) -> Any:
        seen.append(run)
        return summed(run, *arguments)

    regression._Run._summed = keep  # type: ignore[method-assign, assignment]
    try:
        report = store.regress(**change)
    finally:
        regression._Run._summed = summed  # type: ignore[method-assign]
    counts = f"{report.compared} compared, {report.worse} worse, {report.retired} retired"
    say(f"{report.candidate}: {counts}")
    return Outcome(report.candidate, seen[0]._compared, [one.need for one in seen[0]._sources])


def _row(outcome: Outcome) -> list[str]:
    worse, better = (sum(getattr(one, side) for one in outcome.compared) for side in ("is_worse", "is_better"))
    before, after = (np.mean([getattr(one, side) for one in outcome.compared]) for side in ("before", "after"))
    return [
        str(worse),
        str(better),
        f"{before:.3f} → {after:.3f}",
        *(f"{_accused(outcome, size):.1%}" for size in SIZES),
    ]


def _accused(outcome: Outcome, size: int, at_random: bool = False) -> float:
    """How often a sample of this size is called worse; if asked for, with effects whose signs are drawn by need."""
    if not any(one.change for one in outcome.compared):
        return 0.0
    draw = Random(size)
    accused = 0
    for number in range(DRAWS):
        places = draw.sample(range(len(outcome.compared)), min(size, len(outcome.compared)))
        chosen = [outcome.compared[place] for place in places]
        needs = [outcome.needs[place] for place in places]
        if at_random:
            turned = {need: draw.random() < 0.5 for need in sorted(set(needs))}
            chosen = [
                replace(one, before=one.after, after=one.before) if turned[need] else one
                for one, need in zip(chosen, needs, strict=True)
            ]
        accused += totals(chosen, needs, number).is_worse
    return accused / DRAWS


if __name__ == "__main__":
    main()
