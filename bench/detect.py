"""Telling which facts an answer used, on LoCoMo: `python -m bench.detect --data FOLDER`.

For each question, ten turns are recalled. An answer is then given: the data set's own (where the turns it names as
evidence are the ones used), one made from sentences of one to three of the ten, or one about something else. The
coefficients of the rule were fitted on the first three conversations. The others were never fitted on, but their
figures were seen while the rule took shape, so they may be kinder than those of data nobody has looked at.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import json
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import heedful
from bench import data, locomo
from bench.answers import Rewording, extracted
from bench.measure import Bar, Report, about, console, say
from bench.vectors import Served, Vectors, embedded
from heedful.ledger.used_facts import USED_FROM, attribute
from heedful.providers.embedding import bundled
from heedful.text.words import sentences

TOP = 10
FITTED = 3
"""Conversations, from the first, that the constants were fitted on."""

LIMIT = 0.8
RESAMPLES = 1000

GOLD, GOLD_ASKED = "the data set's answer", "the same, question known"
LIGHT, HEAVY, OTHER = "from facts, lightly reworded", "from facts, much reworded", "about something else"
REWORDINGS = {LIGHT: Rewording(0.15, 0.1), HEAVY: Rewording(0.4, 0.3)}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, the facts recalled for it, and the data set's answer."""

    conversation: str
    category: str
    question: str
    facts: list[str]
    answer: str
    evidence: frozenset[int]


@dataclass(frozen=True, slots=True)
class Case:
    """An answer, what was shown before it was given, and the places of the facts it used."""

    condition: str
    conversation: str
    category: str
    query: str
    answer: str
    facts: list[str]
    used: frozenset[int]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was said of one fact, and the truth."""

    answer: int
    signal_type: str | None
    confidence: float
    probability: float
    used: bool


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.detect", description=__doc__)
    parser.add_argument("--data", help=f"folder with {locomo.FILE}; {data.VARIABLE} if left out")
    parser.add_argument("--out", type=Path, default=Path("bench/out"), help="where figures and pictures go")
    parser.add_argument("--quick", action="store_true", help="one question of twenty, to see that it runs")
    options = parser.parse_args(arguments)
    folder = data.folder(options.data)
    if folder is None or not (folder / locomo.FILE).is_file():
        missing = "No data folder was named." if folder is None else f"{folder} has no {locomo.FILE}."
        console.print(f"{missing}\n{data.WHERE}", highlight=False)
        return
    asked = recalled(folder / locomo.FILE, options.out)[:: 20 if options.quick else 1]
    fitted = set(list(dict.fromkeys(each.conversation for each in asked))[:FITTED])
    made = cases(asked)
    judged = dict(zip(range(len(made)), verdicts(made, options.out), strict=True))
    report = Report("Which facts did an answer use?", about(data=f"LoCoMo: {len(asked)} questions, {TOP} facts each"))

    def found(wanted: Callable[[Case], bool]) -> list[Verdict]:
        return [each for place, case in enumerate(made) if wanted(case) for each in judged[place]]

    for title, wanted in (
        ("Conversations that nothing was fitted on", lambda case: case.conversation not in fitted),
        ("Conversations that the constants were fitted on", lambda case: case.conversation in fitted),
    ):
        _tabulate(report, title, made, wanted, found)
    held_out = report.figures["Conversations that nothing was fitted on"]
    for condition in (LIGHT, HEAVY, GOLD_ASKED):
        bar = f"precision of `used`, {condition}"
        report.bars.append(Bar(bar, held_out[condition]["all"]["used"]["precision"], LIMIT, "at least"))
    report.show()
    report.save(options.out / "detect.json")
    curves = {
        condition: found(lambda case, name=condition: case.condition == name and case.conversation not in fitted)  # type: ignore[misc]
        for condition in (GOLD, GOLD_ASKED, LIGHT, HEAVY)
    }
    say(f"picture written to {drawn(curves, options.out / 'detect.png')}")


def recalled(file: Path, out: Path) -> list[Asked]:
    """Every question with the facts that the public interface recalls for it."""
    conversations = locomo.read(file)
    answers = _answers(file)
    texts = [turn.text for each in conversations for turn in each.turns]
    texts += [question.text for each in conversations for question in each.questions]
    served = Served(bundled(), texts, embedded(texts, out, say))
    result = []
    with tempfile.TemporaryDirectory() as home, heedful.open(Path(home) / "locomo.db", embedding=served) as store:
        for conversation in conversations:
            for session in dict.fromkeys(turn.session for turn in conversation.turns):
                turns = [turn for turn in conversation.turns if turn.session == session]
                store.remember(
                    [turn.text for turn in turns],
                    dataset=conversation.id,
                    source=session,
                    metadata=[{"dia_id": turn.id} for turn in turns],
                )
            for question in conversation.questions:
                hits = store.recall(question.text, dataset=conversation.id, top_k=TOP).hits
                evidence = [place for place, hit in enumerate(hits) if hit.metadata["dia_id"] in question.evidence]
                result.append(
                    Asked(
                        conversation.id,
                        locomo.CATEGORIES[question.category],
                        question.text,
                        [hit.text for hit in hits],
                        answers[conversation.id, question.text],
                        frozenset(evidence),
                    )
                )
    return result


def cases(asked: Sequence[Asked]) -> list[Case]:
    """All conditions of all questions, the same ones every time."""
    made = []
    for seed, each in enumerate(asked):
        random = Random(seed)
        items = [(GOLD, "", each.answer, each.evidence), (GOLD_ASKED, each.question, each.answer, each.evidence)]
        for condition, rewording in REWORDINGS.items():
            answer, used = extracted(each.facts, rewording, random)
            items.append((condition, each.question, answer, used))
        elsewhere = random.choice([other for other in asked if other.conversation != each.conversation])
        items.append((OTHER, each.question, extracted(elsewhere.facts, REWORDINGS[LIGHT], random)[0], frozenset()))
        made += [
            Case(condition, each.conversation, each.category, query, answer, each.facts, used)
            for condition, query, answer, used in items
        ]
    return made


def verdicts(made: Sequence[Case], out: Path) -> list[list[Verdict]]:
    """What the rule says of every fact of every case."""
    texts = sorted({text for case in made for text in [*case.facts, *sentences(case.answer), _whole(case)]})
    vectors = embedded(texts, out, say)
    places = {text: place for place, text in enumerate(texts)}

    def of(wanted: Iterable[str]) -> Vectors:
        return vectors[np.array([places[text] for text in wanted], np.int64)]

    result = []
    for number, case in enumerate(made):
        parts, facts = sentences(case.answer), of(case.facts)
        near, overall = of(parts) @ facts.T, (of([_whole(case)]) @ facts.T)[0]
        result.append(
            [
                Verdict(number, each.signal_type, each.confidence, each.probability, place in case.used)
                for place, each in enumerate(attribute(parts, case.facts, near, overall, query=case.query))
            ]
        )
    return result


def figures(found: Sequence[Verdict]) -> dict[str, Any]:
    """Precision and recall of both signals, with what is left open; None where there is nothing to divide by."""
    result: dict[str, Any] = {"facts": len(found), "used facts": sum(each.used for each in found)}
    for signal_type, truth in (("used", True), ("ignored", False)):
        opinions = [each for each in found if each.signal_type == signal_type]
        right = sum(each.used == truth for each in opinions)
        result[signal_type] = {
            "said": len(opinions),
            "precision": _ratio(right, len(opinions)),
            "interval": _interval([(each.answer, each.used == truth) for each in opinions]),
            "recall": _ratio(right, sum(each.used == truth for each in found)),
            "mean confidence": _ratio(sum(each.confidence for each in opinions), len(opinions)),
        }
    result["open"] = _ratio(sum(each.signal_type is None for each in found), len(found))
    result["answers with a false `used`"] = _ratio(
        len({each.answer for each in found if each.signal_type == "used" and not each.used}),
        len({each.answer for each in found}),
    )
    return result


def curve(found: Sequence[Verdict]) -> tuple[list[float], list[float]]:
    """(share of the used facts that are named, precision), from the surest fact on."""
    ordered = sorted(found, key=lambda each: -each.probability)
    right = np.cumsum([each.used for each in ordered])
    return (right / right[-1]).tolist(), (right / np.arange(1, len(ordered) + 1)).tolist()


def drawn(conditions: dict[str, list[Verdict]], file: Path) -> Path:
    """Precision of `used` against coverage; a dot where the rule stands."""
    importlib.import_module("matplotlib").use("Agg")
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots(figsize=(8, 4.8), layout="constrained")
    for (name, found), colour in zip(conditions.items(), ("#9aa5b1", "#e08e45", "#1b6ca8", "#5b9fd0"), strict=True):
        coverage, precision = curve(found)
        first = max(10, len(coverage) // 200)
        axes.plot(coverage[first:], precision[first:], color=colour, label=name)
        at = sum(each.probability >= USED_FROM for each in found) - 1
        axes.plot([coverage[at]], [precision[at]], "o", color=colour)
    axes.axhline(LIMIT, color="#c0392b", linestyle="--", linewidth=1)
    axes.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="share of the used facts that are named", ylabel="precision of `used`")
    axes.set_title("Which facts did an answer use? (held-out conversations)", fontsize=10, loc="left")
    axes.legend(fontsize=8, frameon=False, loc="lower left")
    axes.grid(color="#d8dee4", linewidth=0.7)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=130)
    pyplot.close(figure)
    return file


def _tabulate(
    report: Report,
    title: str,
    made: Sequence[Case],
    wanted: Callable[[Case], bool],
    found: Callable[[Callable[[Case], bool]], list[Verdict]],
) -> None:
    columns = ["used facts", "`used`: precision", "95%", "recall", "`ignored`: precision", "recall", "left open"]
    section = report.section(title, "", *columns, "answers with a false `used`")
    by_condition: dict[str, Any] = {}
    for condition in dict.fromkeys(case.condition for case in made):
        by_condition[condition] = {}
        for category in ["all", *locomo.CATEGORIES.values()]:
            one = figures(
                found(
                    lambda case, condition=condition, category=category: (  # type: ignore[misc]
                        wanted(case) and case.condition == condition and category in ("all", case.category)
                    )
                )
            )
            by_condition[condition][category] = one
            low, high = one["used"]["interval"] or (None, None)
            section.rows.append(
                [
                    condition if category == "all" else f"  {category}",
                    f"{one['used facts']} of {one['facts']}",
                    _shown(one["used"]["precision"]),
                    f"{_shown(low)}-{_shown(high)}",
                    _shown(one["used"]["recall"]),
                    _shown(one["ignored"]["precision"]),
                    _shown(one["ignored"]["recall"]),
                    _shown(one["open"]),
                    _shown(one["answers with a false `used`"]),
                ]
            )
    report.figures[title] = by_condition


def _answers(file: Path) -> dict[tuple[str, str], str]:
    """The data set's answers, by conversation and question."""
    with gzip.open(file, "rt", encoding="utf-8") as stream:
        content = json.load(stream)
    return {(item["sample_id"], qa["question"]): str(qa.get("answer", "")) for item in content for qa in item["qa"]}


def _whole(case: Case) -> str:
    return f"{case.query} {case.answer}".strip()


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _interval(right: Sequence[tuple[int, bool]]) -> tuple[float, float] | None:
    """The 95% interval of a share, by resampling answers."""
    if not right:
        return None
    answers = sorted({answer for answer, _ in right})
    place = {answer: row for row, answer in enumerate(answers)}
    counts = np.zeros((len(answers), 2))
    for answer, hit in right:
        counts[place[answer]] += (hit, 1)
    random = np.random.default_rng(0)
    drawn = random.integers(0, len(answers), (RESAMPLES, len(answers)))
    sums = counts[drawn].sum(axis=1)
    low, high = np.percentile(sums[:, 0] / sums[:, 1], [2.5, 97.5])
    return float(low), float(high)


if __name__ == "__main__":
    main()
