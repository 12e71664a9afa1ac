"""Does learning help, and harm nobody? `python -m bench.learning --data FOLDER`.

Questions with known answers, in several worlds: COVID-Q, CLINC150 as a help desk, LoCoMo, the simulated shop, or any
CSV file with the columns of COVID-Q, or a folder of them (`--file`). Half of the needs that are asked for in several
ways are rated by simulated people, in half of their phrasings; the figures are the changes of the mean reciprocal rank
of the right fact for their other phrasings, and for needs that nobody rated. The needs are split once into a half that
constants were tuned on (of COVID-Q and CLINC150) and a half that is reported. Ratings of answers are measured at the
end, on LoCoMo.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from bench import (
    data,
    learning_answers,
    learning_arms,
    learning_plots,
    learning_scenarios,
    learning_stats,
    learning_worlds,
)
from bench.learning_arms import PARTS, POOLED, RULES, Arm
from bench.learning_cost import Cost, cost
from bench.learning_scenarios import Drift, NewFact
from bench.learning_stats import Change
from bench.learning_worlds import CLINC, FILE, LOCOMO, Condition, Corpus, Floats, Half, Numbers, World
from bench.measure import Bar, Report, about, console, say

WHERE = f"""\
COVID-Q is public: github.com/JerryWeiAI/COVID-Q. Put it into a folder as {FILE}, and name the folder with --data or
{data.VARIABLE}. CLINC150 is public, too: github.com/clinc/oos-eval, data_full.json, as {CLINC}. Any CSV file with the
columns Category, Question ID, Question and Answers will do, or a folder of them: name it with --file. So is LoCoMo:
github.com/snap-research/locomo, locomo10.json, as {LOCOMO}."""

EXACT = Condition("explicit, exact", True, 0.0)
NOISY = Condition("explicit, 30% noise", True, 0.3)
IMPLICIT = Condition("implicit, exact", False, 0.0)
CONDITIONS = [
    EXACT,
    NOISY,
    IMPLICIT,
    Condition("implicit, 30% noise", False, 0.3),
    Condition("explicit, 3 of 10 lie", True, 0.0, adversaries=3),
]
ALONE = [Condition(f"{each.name}, 1 rating", each.explicit, each.noise, users=1) for each in CONDITIONS[:3]]
"""Each rated question is rated by one person instead of three."""

FIRST = [
    Condition("the first 20 ratings", True, 0.0, first=7),
    Condition("the first 20 ratings, 30% noise", True, 0.3, first=7),
]
ONE_NEED = [
    Condition("five ratings on one need", True, 0.0, users=5, on_one=5),
    Condition("five ratings of one question", True, 0.0, users=5, on_one=1),
]
"""New stores, in each of which one need is rated, in several phrasings or in one."""
GAINS = {FILE: 24.0, CLINC: 8.0}
"""The gain that is aimed at, in per cent."""
BETTER = 0.05
"""The lower end of a gain, in per cent, from which it is one: what is shown as more than zero."""
PART_SEEDS = 3
"""Draws for the rule without each of its parts."""
ABLATED = CONDITIONS[:2]
"""The conditions of those."""

DRIFT_AUTHORS = (1, 2, 5)

Table = dict[str, dict[str, tuple[Change, Change]]]


class Runs:
    """All arms on all draws of one condition."""

    def __init__(self, corpus: Corpus, half: Half, condition: Condition, seeds: int) -> None:
        self._corpus = corpus
        self._worlds = [
            world for seed in range(seeds) for world in learning_worlds.worlds(corpus, half, seed, condition)
        ]
        self._found: dict[str, list[Floats]] = {}
        self.held_out_needs = self._needs("held_out")
        self.unrated_needs = self._needs("unrated")

    def run(self, name: str, arm: Arm) -> None:
        self._found[name] = [learning_arms.reciprocal_ranks(arm, self._corpus, world) for world in self._worlds]

    def held_out(self, name: str) -> Floats:
        return np.concatenate([found[: len(w.held_out)] for found, w in self._pairs(name)])

    def unrated(self, name: str) -> Floats:
        return np.concatenate([found[len(w.held_out) :] for found, w in self._pairs(name)])

    def changes(self, name: str, base: str = "none") -> tuple[Change, Change]:
        """What an arm changes for held-out phrasings and for needs that nobody rated."""
        return (
            learning_stats.change(self.held_out(base), self.held_out(name), self.held_out_needs),
            learning_stats.change(self.unrated(base), self.unrated(name), self.unrated_needs),
        )

    def ratio(self, one: str, other: str) -> tuple[float, float, float]:
        """How many times the held-out gain of another arm one has."""
        gains = [self.held_out(each) for each in ("none", one, other)]
        return learning_stats.ratio(gains[0], gains[1], gains[2], self.held_out_needs)

    def without(self, name: str, whole: str, base: str) -> tuple[float, float, float]:
        """What leaving out a part changes for held-out phrasings, in per cent of the base."""
        gains = [self.held_out(each) for each in (base, whole, name)]
        return learning_stats.difference(gains[0], gains[1], gains[2], self.held_out_needs)

    def _pairs(self, name: str) -> list[tuple[Floats, World]]:
        return list(zip(self._found[name], self._worlds, strict=True))

    def _needs(self, part: str) -> Numbers:
        return np.concatenate([self._corpus.need[getattr(world, part)] for world in self._worlds])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.learning", description=__doc__)
    parser.add_argument("--data", help=f"folder with {FILE}; {data.VARIABLE} if left out")
    parser.add_argument("--file", help="another file of the same format, or a folder of them")
    parser.add_argument("--seeds", type=int, default=12, help="draws of rated needs, phrasings and opinions")
    parser.add_argument("--half", choices=["report", "tune"], default="report", help="which needs to measure")
    parser.add_argument("--out", type=Path, default=Path("bench/out"), help="where figures and pictures go")
    options = parser.parse_args(arguments)
    folder = data.folder(options.data)
    corpora = _corpora(folder, options.file, options.out)
    shown: dict[str, Table] = {}
    for number, corpus in enumerate(corpora):
        report, table = measured(corpus, options.half, options.seeds, scenarios=not number)
        report.show()
        report.save(options.out / f"learning-{corpus.name.split('.')[0].replace(' ', '-')}-{options.half}.json")
        shown[corpus.name] = {arm: table[arm] for arm in RULES if arm != "none"}
    if options.file is None and folder is not None and (folder / LOCOMO).is_file():
        answers = learning_answers.measured(folder / LOCOMO, options.out)
        answers.show()
        answers.save(options.out / "learning-answers.json")
    names = [condition.name for condition in CONDITIONS[:3]]
    title = f"Gain and harm of learning, the {options.half} half"
    try:
        picture = learning_plots.trade_off(shown, names, title, options.out / f"learning-{options.half}.png")
    except ModuleNotFoundError as error:
        say(f"no picture: {error}; it comes with heedful[bench]")
    else:
        say(f"picture written to {picture}")


def _corpora(folder: Path | None, file: str | None, out: Path) -> list[Corpus]:
    """The worlds that can be had."""
    if file is not None:
        path = (folder or Path()) / file
        return [learning_worlds.read(each, out) for each in (sorted(path.glob("*.csv")) if path.is_dir() else [path])]
    files = (FILE, CLINC, LOCOMO)
    found = [each for each in files if folder is not None and (folder / each).is_file()]
    for missing in sorted({*files} - {*found}):
        console.print(f"There is no {missing}.\n{WHERE}", highlight=False)
    return [*(learning_worlds.read(Path(folder or "") / each, out) for each in found), learning_worlds.shop(out)]


def measured(corpus: Corpus, half: Half, seeds: int, *, scenarios: bool = True) -> tuple[Report, Table]:
    """The whole report on one half of the needs; `scenarios` and cost are the same for every corpus."""
    several = [need for need in corpus.half[half] if np.count_nonzero(corpus.need == need) >= 2]
    report = Report(
        f"Learning: {corpus.name}",
        about(
            data=f"{corpus.name}: {len(corpus.facts)} facts, {len(corpus.queries)} questions",
            half=f"{half}: {len(corpus.half[half])} needs, {len(several)} of them with several phrasings",
            seeds=seeds,
            intervals="95%, paired bootstrap that resamples whole needs; they do not include the choice of the split",
        ),
    )
    table: Table = {}
    runs = _compared(corpus, half, seeds, table, [*CONDITIONS, *ALONE, *FIRST, *ONE_NEED], RULES)
    _rules(report, table)
    every = {**RULES, **PARTS, **POOLED}
    parts = _compared(corpus, half, min(seeds, PART_SEEDS), {}, ABLATED, every)
    _ablation(report, parts)
    _learning_bars(report, corpus, runs, table)
    if scenarios:
        _scenarios(report, corpus, half)
        _cost(report)
    report.figures["mrr"] = {
        arm: {condition: {"held out": asdict(held), "unrated": asdict(free)} for condition, (held, free) in row.items()}
        for arm, row in table.items()
    }
    return report, table


def _compared(
    corpus: Corpus, half: Half, seeds: int, table: Table, conditions: Sequence[Condition], arms: Mapping[str, Arm]
) -> dict[str, Runs]:
    runs: dict[str, Runs] = {}
    for condition in conditions:
        say(f"{corpus.name}, {condition.name}: {seeds} draws of {len(arms)} rules")
        own = runs[condition.name] = Runs(corpus, half, condition, seeds)
        for name, arm in arms.items():
            own.run(name, arm)
            base = next(iter(POOLED)) if name in POOLED else "none"
            table.setdefault(name, {})[condition.name] = own.changes(name, base)
    return runs


def _rules(report: Report, table: Table) -> None:
    section = report.section(
        "Change of MRR in %, and share of single queries made worse", "rule", "held out", "nobody rated", "worse"
    )
    for condition in [*CONDITIONS, *ALONE, *FIRST, *ONE_NEED]:
        none = table["none"][condition.name]
        section.rows.append(
            [f"[bold]{condition.name}[/bold]", f"none: {none[0].before:.3f}", f"{none[1].before:.3f}", ""]
        )
        for arm in RULES:
            if arm != "none":
                held_out, unrated = table[arm][condition.name]
                worse = f"{worse_share(held_out, unrated):.1f}%"
                section.rows.append([f"  {arm}", str(held_out), str(unrated), worse])


def _ablation(report: Report, runs: Mapping[str, Runs]) -> None:
    section = report.section(
        "Adaptive without each part: held-out change against the whole rule, in points; nobody rated, against none",
        "without",
        "held out",
        "nobody rated",
        "worse",
    )
    base, whole, bare = POOLED
    parts = {part: (part, "adaptive", "none") for part in PARTS}
    parts[f"candidates by proof (of {learning_arms.SMALL_POOL})"] = (bare, whole, base)
    for condition in ABLATED:
        own = runs[condition.name]
        section.rows.append([f"[bold]{condition.name}[/bold]", "", "", ""])
        for name, (arm, against, nothing) in parts.items():
            lost, low, high = own.without(arm, against, nothing)
            held_out, unrated = own.changes(arm, nothing)
            worse = f"{worse_share(held_out, unrated):.1f}%"
            section.rows.append([f"  {name}", f"{lost:+.1f} [{low:+.1f}, {high:+.1f}]", str(unrated), worse])
            differences = report.figures.setdefault("without", {}).setdefault(name, {})
            differences[condition.name] = {"points": lost, "low": low, "high": high}
    section.notes.append("Exploration is off in all arms: it shows facts to learn from, and can only cost rank here.")


def _learning_bars(report: Report, corpus: Corpus, runs: Mapping[str, Runs], table: Table) -> None:
    own = table["adaptive"]
    exact = own[EXACT.name][0]
    if corpus.name in GAINS:
        named = f"held out, {EXACT.name}: change of MRR {exact}"
        report.bars.append(Bar(named, exact.change, GAINS[corpus.name], "at least", "%"))
    for condition in CONDITIONS[:4]:
        held_out, unrated = own[condition.name]
        blends = {arm: table[arm][condition.name][0].change for arm in RULES if arm.startswith("documented")}
        best = max(blends, key=lambda arm: blends[arm])
        more = held_out.change - blends[best]
        report.bars.append(Bar(f"held out, {condition.name}: points above {best}", more, 0, "at least"))
    for condition in [*CONDITIONS, *FIRST, *ONE_NEED]:
        held_out, unrated = own[condition.name]
        named = f"nobody rated, {condition.name}: lower end of {unrated}"
        report.bars.append(Bar(named, unrated.low, -1, "at least", "%"))
        share = worse_share(held_out, unrated)
        report.bars.append(Bar(f"single queries made worse, {condition.name}", share, 2, "at most", "%"))
    for noisy, clean in ((CONDITIONS[1], CONDITIONS[0]), (CONDITIONS[3], CONDITIONS[2])):
        kept = own[noisy.name][0].change / max(own[clean.name][0].change, 1e-9)
        report.bars.append(Bar(f"gain of {noisy.name} ÷ that of {clean.name}", kept, 0.4, "at least"))
    for condition, least in [*((each, 0.0) for each in FIRST), *((each, BETTER) for each in ONE_NEED)]:
        held_out = own[condition.name][0]
        report.bars.append(
            Bar(f"held out, {condition.name}: lower end of {held_out}", held_out.low, least, "at least", "%")
        )


def _scenarios(report: Report, corpus: Corpus, half: Half) -> None:
    say("a new fact among rated rivals")
    new: dict[str, NewFact] = {
        "adaptive": learning_scenarios.new_fact(corpus, half, 30, "adaptive"),
        "documented": learning_scenarios.new_fact(corpus, half, 30, "documented"),
    }
    late = new["adaptive"]
    named = f"new fact after 50 ratings of rivals: places lost, worst of {late.trials}"
    report.bars.append(Bar(named, late.worst, 1, "at most"))
    result: list[Drift] = []
    section = report.section(
        "Drift: another fact becomes right after 20 ratings",
        "authors",
        "signals until it leads",
        "20% noise: flipped back at the end",
        "ever",
        "responses behind",
        "later than 5 responses",
    )
    for authors in DRIFT_AUTHORS:
        say(f"drift with {authors} authors")
        own = learning_scenarios.drift(authors, 300)
        result.append(own)
        shares = [own.flipped_at_end, own.flipped_ever, own.steps_behind, own.late]
        needed = "never" if own.signals is None else str(own.signals)
        section.rows.append([str(authors), needed, *(f"{share:.1f}%" for share in shares)])
        # A response to a recall judges both facts, so the bar can be read as 5 signals or as 5 responses.
        signals = 2 * learning_scenarios.CONTRARY if own.signals is None else own.signals
        report.bars.append(Bar(f"drift, {authors} authors: contrary signals", signals, 5, "at most"))
        report.bars.append(Bar(f"drift, {authors} authors: contrary responses", (signals + 1) // 2, 5, "at most"))
    section.notes.append("A response judges both facts: the old one not helpful, the new one helpful.")
    for own in result:
        for what, share in {
            "trials flipped back at the end": own.flipped_at_end,
            "later responses behind": own.steps_behind,
            "trials that ever flipped back": own.flipped_ever,
        }.items():
            report.bars.append(Bar(f"drift, {own.authors} authors, 20% noise: {what}", share, 5, "at most", "%"))
    say("a coordinated minority")
    lost = learning_scenarios.minority(20, 9, 20)
    report.bars.append(Bar("facts of 20 supporters that 9 attackers with 20 repeats flip", lost, 0, "at most", "%"))
    report.figures |= {
        "new fact": {policy: asdict(each) for policy, each in new.items()},
        "drift": [asdict(each) for each in result],
        "minority": lost,
    }
    section.notes.append(
        f"New fact, places lost: adaptive {late.worst} at worst, {late.mean:.2f} on average;"
        f" documented {new['documented'].worst} and {new['documented'].mean:.2f}."
    )


def _cost(report: Report) -> None:
    own: Cost = cost()
    section = report.section(
        f"Evidence of one recall at {own.signals:,} signals", "", "p50, ms", "p95, ms", "processor, p50, ms"
    )
    for name, time in {
        "voices in memory": own.warm,
        "one query rated just before": own.after_a_signal,
        "voices read from the store": own.cold,
    }.items():
        section.rows.append([name, f"{time.p50:.2f}", f"{time.p95:.2f}", f"{time.processor:.2f}"])
    section.notes += [
        f"Included: a look at the ledger's end, the evidence of {own.near} queries that are alike, proven candidates,"
        " the order of 100. Not included: finding those queries, and the fact index.",
        f"The first recall after opening took {own.opening:.1f} s: it sums up the ledger once.",
    ]
    report.bars.append(
        Bar("usefulness of 100 candidates at 1M signals, in memory, p50", own.warm.p50, 1, "at most", "ms")
    )
    report.bars.append(Bar("the same, processor time, p50", own.warm.processor, 1, "at most", "ms"))
    report.bars.append(Bar("the same, p95", own.warm.p95, 1, "at most", "ms"))
    report.bars.append(Bar("the same from the store, p50", own.cold.p50, 1, "at most", "ms"))
    report.figures["cost"] = asdict(own)


def worse_share(held_out: Change, unrated: Change) -> float:
    """Per cent of all queries asked whose right fact sank."""
    total = held_out.queries + unrated.queries
    return (held_out.worse * held_out.queries + unrated.worse * unrated.queries) / total


if __name__ == "__main__":
    main()
