"""May a proven query be used again? `python -m bench.cache --data FOLDER --name geography`.

Each question is asked of all others, except those with the same text. Similarity finds candidates, and so do frames
(the same words around other values); the gates decide. An answer is wrong when its rows differ from the gold SQL's.
Rules were tuned on the templates of one half; of the other half two wrong answers were looked at while they took shape.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from random import Random

import numpy as np

from bench import cache_pairs, cache_sets, data
from bench.cache_data import DIALECT, Database, Question, questions
from bench.cache_lookup import lookups
from bench.measure import Bar, Report, Timing, about, console, load, say
from bench.vectors import Vectors, embedded
from heedful.sql.reuse.decision import Question as Asked
from heedful.sql.reuse.decision import choose, decide, same_frame_ids
from heedful.sql.reuse.evidence import Evidence
from heedful.sql.reuse.reasons import Verdict
from heedful.sql.reuse.study import ProvenQuery
from heedful.sql.reuse.values import Known
from heedful.text.same_question import normal

THRESHOLD, LIMIT = 0.65, 50
COSINES = (0.65, 0.80, 0.95, 0.99)
SHARES = (0.1, 0.25, 0.5)
WRONG, REUSED = 0.2, 60.0
SLOWER = {"again": 2.0, "first": 3.0}
NOW = datetime(2024, 1, 1)

GATES, COSINE_ONLY, ALONE = "gates", "gates, candidates by cosine alone", "gates, each candidate by itself"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one question: the verdict that was used, if one was, and whether it was right.

    `missed` is the verdict on the nearest candidate with the same SQL but for its values, when nothing was used.
    """

    question: Question
    decision: str | None = None
    right: bool = False
    gate: str = ""
    source: str = ""
    missed: Verdict | None = None
    missed_source: str = ""


class Trial:
    """Leave-one-out over one set of questions."""

    def __init__(self, asked: Sequence[Question], vectors: Vectors, database: Database, values: Known) -> None:
        self.asked = asked
        self.database = database
        self.values = values
        self.near = vectors @ vectors.T
        self.proven = [ProvenQuery(place, each.text, each.sql, NOW) for place, each in enumerate(asked)]
        self.twins: dict[str, list[int]] = {}
        for place, each in enumerate(asked):
            self.twins.setdefault(normal(each.text), []).append(place)

    def cosine(self, threshold: float) -> list[Outcome]:
        """Serving the nearest question from a similarity on."""
        result = []
        for place, question in enumerate(self.asked):
            first = next(self._nearest(place, threshold), None)
            if first is None:
                result.append(Outcome(question))
            else:
                right = question.answered_by(self.asked[first].rows)
                result.append(Outcome(question, "serve", right, "cosine", self.asked[first].text))
        return result

    def gates(self, *, frames: bool = True, together: bool = True, share: float = 1.0) -> list[Outcome]:
        """Deciding over candidates, of which a share of the other questions is at hand."""
        random = Random(0)
        kept = {each.id for each in self.proven if random.random() < share}
        evidence = Evidence(DIALECT, self.values, [each for each in self.proven if each.id in kept])
        result = []
        for place, question in enumerate(self.asked):
            twins = [twin for twin in self.twins[normal(question.text)] if twin in kept]
            for twin in twins:
                evidence.remove(twin)
            candidates = [each for each in self._nearest(place, THRESHOLD) if each in kept][:LIMIT]
            if frames:
                alike = same_frame_ids(Asked(question.text, self.values, NOW), evidence)
                candidates += [int(str(each)) for each in alike if each not in candidates]
            result.append(self._judged(question, candidates, evidence, together))
            for twin in twins:
                evidence.add(self.proven[twin])
        return result

    def _judged(self, question: Question, candidates: list[int], evidence: Evidence, together: bool) -> Outcome:
        proven = [self.proven[each] for each in candidates]
        if together:
            asked = Asked(question.text, self.values, NOW)
            verdicts = choose(asked, proven, evidence=evidence, explained=len(proven))
        else:
            verdicts = [
                decide(
                    question.text, each.question, each.sql, dialect=DIALECT, values=self.values, now=NOW, proven_at=NOW
                )
                for each in proven
            ]
        for decision in ("serve", "rebind"):
            for verdict, each in zip(verdicts, proven, strict=True):
                if verdict.decision == decision and verdict.sql is not None:
                    right = question.answered_by(self.database.run(verdict.sql, verdict.parameters))
                    learned = any(difference.kind == "learned" for difference in verdict.differences)
                    gate = f"{decision}, learned words" if learned else decision
                    return Outcome(question, decision, right, gate, each.question)
        for verdict, place in zip(verdicts, candidates, strict=True):
            if self.asked[place].template == question.template:
                return Outcome(question, missed=verdict, missed_source=self.asked[place].text)
        return Outcome(question)

    def _nearest(self, place: int, threshold: float) -> Iterator[int]:
        """The other questions from a similarity on, the nearest first."""
        near = self.near[place]
        twins = set(self.twins[normal(self.asked[place].text)])
        for other in np.argsort(-near, kind="stable"):
            if near[other] < threshold:
                return
            if int(other) not in twins:
                yield int(other)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.cache", description=__doc__)
    parser.add_argument("--data", help=f"folder with NAME.json and NAME.sqlite; {data.VARIABLE} if left out")
    parser.add_argument("--name", default="geography", help="which set of questions")
    parser.add_argument("--sets", nargs="*", default=["scholar", "advising"], help="sets to train and ask")
    parser.add_argument("--out", type=Path, default=Path("bench/out"), help="where figures and pictures go")
    parser.add_argument("--quick", action="store_true", help="a tenth of the questions and pairs, to see that it runs")
    options = parser.parse_args(arguments)
    began = time.monotonic()
    folder = data.folder(options.data)
    if folder is None or not all((folder / f"{options.name}.{kind}").is_file() for kind in ("json", "sqlite")):
        missing = "No data folder was named." if folder is None else f"{folder} has no {options.name}.json and .sqlite."
        console.print(f"{missing}\n{data.WHERE}", highlight=False)
        return
    database = Database(folder / f"{options.name}.sqlite")
    asked, total = questions(folder, options.name, database)
    most = len(asked) // 10 if options.quick else None
    asked = asked[:most]
    say(f"{len(asked)} of {total} questions execute")
    vectors = embedded([each.text for each in asked], options.out, say)
    trial = Trial(asked, vectors, database, database.values())
    arms = {f"cosine ≥ {threshold:.2f}": trial.cosine(threshold) for threshold in COSINES}
    arms[ALONE] = trial.gates(together=False)
    arms[COSINE_ONLY] = trial.gates(frames=False)
    for share in SHARES:
        arms[f"gates, {share:.0%} of the proven questions"] = trial.gates(share=share)
    arms[GATES] = trial.gates()
    report = Report(
        "May a proven query be used again?", about(data=f"{options.name}: {len(asked)} of {total} questions execute")
    )
    _tabulate(report, arms)
    _break_down(report, arms[GATES])
    figures = report.figures["all"][GATES]
    report.bars.append(Bar("wrong answers, of all questions", figures["wrong"], WRONG, "at most", "%"))
    report.bars.append(Bar("questions answered by reuse", figures["reused"], REUSED, "at least", "%"))
    _time(report, lookups(asked, vectors, folder.resolve() / f"{options.name}.sqlite"))
    cache_sets.evaluate_alone(report, folder, options.name, options.out, most)
    there = [name for name in options.sets if (folder / f"{name}.sqlite").is_file()]
    cache_sets.evaluate(report, folder, there, options.out, most)
    cache_pairs.evaluate(report, cache_pairs.pairs()[:: 10 if options.quick else 1], options.out)
    report.about["took"] = f"{(time.monotonic() - began) / 60:.1f} minutes; the load at its end was {load()}"
    report.show()
    report.save(options.out / f"cache_{options.name}.json")
    _draw(trial, report, options.out / f"cache_{options.name}.png")


def _time(report: Report, times: dict[str, Timing]) -> None:
    """How long lookups took beside embedding the question alone."""
    report.figures["lookup"] = {name: asdict(each) for name, each in times.items()}
    own = times["embedding"]
    columns = "p50", "p95", "÷ embedding", "processor time, p50", "÷ embedding"
    section = report.section("One lookup among 10,000 executions, a quarter of them rated; ms", "", *columns)
    for name, each in times.items():
        ratios = each.p50 / own.p50, each.processor / own.processor
        shown = each.p50, each.p95, ratios[0], each.processor, ratios[1]
        section.rows.append([name, *(f"{figure:.1f}" for figure in shown)])
        if name in SLOWER:
            bar = f"lookup among 10,000 ÷ embedding, p50, {name}, processor time"
            report.bars.append(Bar(bar, ratios[1], SLOWER[name], "at most"))


def figures(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Shares in percent: of all questions, but for `wrong of reused`."""
    count = len(outcomes) or 1
    reused = [each for each in outcomes if each.decision]
    wrong = [each for each in reused if not each.right]
    result = {
        "questions": len(outcomes),
        "reused": 100 * len(reused) / count,
        "wrong": 100 * len(wrong) / count,
        "wrong of reused": 100 * len(wrong) / (len(reused) or 1),
    }
    for decision in ("serve", "rebind"):
        own = [each for each in reused if each.decision == decision]
        result[decision] = 100 * len(own) / count
        result[f"{decision} wrong"] = sum(not each.right for each in own)
    return result


def _tabulate(report: Report, arms: dict[str, list[Outcome]]) -> None:
    halves: dict[str, Callable[[Question], bool]] = {
        "all": lambda question: True,
        "templates not tuned on": lambda question: not question.tuned_on,
        "templates tuned on": lambda question: question.tuned_on,
    }
    for half, wanted in halves.items():
        made = {name: figures([each for each in found if wanted(each.question)]) for name, found in arms.items()}
        count = int(next(iter(made.values()))["questions"])
        columns = ["reused", "wrong of all", "wrong of reused", "served", "wrong", "rebound", "wrong"]
        section = report.section(f"{half[0].upper()}{half[1:]}: {count} questions", "", *columns)
        for name, one in made.items():
            shares = [f"{one[key]:.1f}%" for key in ("reused", "wrong", "wrong of reused")]
            decisions = [
                shown
                for decision in ("serve", "rebind")
                for shown in (f"{one[decision]:.1f}%", f"{one[f'{decision} wrong']:.0f}")
            ]
            section.rows.append([name, *shares, *decisions])
        report.figures[half] = made


def _break_down(report: Report, outcomes: Sequence[Outcome]) -> None:
    """What was refused although SQL of the same template was at hand, and what was reused wrongly, by gate."""
    missed = [each for each in outcomes if each.missed is not None]
    section = report.section("Refused although the SQL was at hand", "gate", "questions", "for example")
    for gate, count in Counter(each.missed.gate for each in missed if each.missed).most_common():
        example = next(each for each in missed if each.missed and each.missed.gate == gate)
        section.rows.append([gate, str(count), f"{example.question.text} / {example.missed_source}"])
    unseen = sum(each.decision is None and each.missed is None for each in outcomes)
    section.notes.append(f"{unseen} questions had no such candidate")
    wrong = [each for each in outcomes if each.decision and not each.right]
    section = report.section("Reused wrongly", "decision", "asked", "proven")
    section.rows += [[each.gate, each.question.text, each.source] for each in wrong]
    section.notes.append(f"{len(wrong)} in all")
    report.figures["refused"] = [
        {
            "gate": each.missed.gate,
            "asked": each.question.text,
            "proven": each.missed_source,
            "reason": each.missed.reason,
        }
        for each in missed
        if each.missed
    ]
    report.figures["reused wrongly"] = [
        {"decision": each.gate, "asked": each.question.text, "proven": each.source, "gold": each.question.sql}
        for each in wrong
    ]


def _draw(trial: Trial, report: Report, file: Path) -> None:
    curve = [figures(trial.cosine(threshold)) for threshold in np.linspace(0.6, 1.0, 41).tolist()]
    try:
        from bench.cache_plots import trade_off

        say(f"picture written to {trade_off(curve, report.figures['all'], WRONG, REUSED, file)}")
    except ModuleNotFoundError:
        say("no picture: matplotlib is not installed")


if __name__ == "__main__":
    main()
