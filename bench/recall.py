"""Quality of recall on LoCoMo: `python -m bench.recall --data FOLDER`.

Facts are the turns of a conversation, questions name the turns that answer them; the figure is the share of these
turns among the first ten facts recalled, averaged over questions.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence, Set
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import heedful
from bench import baselines, data, locomo, plots
from bench.measure import Bar, Report, Spent, about, console, number, say, timed, timing
from bench.vectors import Served, embedded
from heedful.engine import Heedful
from heedful.model import MODES, Mode
from heedful.providers.embedding import bundled

TOP = 10
LIMIT = 0.65

GRAPH_CHOSEN_ON = frozenset({"conv-26", "conv-41", "conv-43"})
"""The conversations that the constants of the mode `graph` were chosen on; the others say what they are worth."""

CHOSEN_ON = GRAPH_CHOSEN_ON | {"conv-30", "conv-42"}
"""Those that any constant was chosen on: half of LoCoMo."""

Shares = list[tuple[int, float]]
"""(category, share of its evidence found) of each question."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.recall", description=__doc__)
    parser.add_argument("--data", help=f"folder with {locomo.FILE}; {data.VARIABLE} if left out")
    parser.add_argument("--out", type=Path, default=Path("bench/out"), help="where figures and pictures go")
    parser.add_argument("--quick", action="store_true", help="one conversation, to see that it runs")
    options = parser.parse_args(arguments)
    folder = data.folder(options.data)
    if folder is None or not (folder / locomo.FILE).is_file():
        missing = "No data folder was named." if folder is None else f"{folder} has no {locomo.FILE}."
        console.print(f"{missing}\n{data.WHERE}", highlight=False, markup=False)
        return
    conversations = locomo.read(folder / locomo.FILE)
    if options.quick:
        conversations = [each for each in conversations if each.id not in GRAPH_CHOSEN_ON][:1]
    report = measured(conversations, options.out)
    report.show()
    report.save(options.out / "recall.json")
    say(f"picture written to {plots.quality(report.figures, LIMIT, options.out / 'recall.png')}")


def measured(conversations: Sequence[locomo.Conversation], out: Path) -> Report:
    """The report over all conversations."""
    shares: dict[str, Shares] = {}
    for name, found in _baselines(conversations, out).items():
        shares[f"baseline: {name}"] = found
    spent: dict[str, list[Spent]] = {mode: [] for mode in MODES}
    for name, found in _heedful(conversations, out, spent).items():
        shares[f"heedful: {name}"] = found
    turns = sum(len(conversation.turns) for conversation in conversations)
    asked = sum(len(conversation.questions) for conversation in conversations)
    report = Report(
        "Quality of recall",
        about(data=f"LoCoMo: {len(conversations)} conversations, {turns:,} turns, {asked:,} questions"),
    )
    report.figures = {name: by_category(found) for name, found in shares.items()}
    columns = ["", "all", *locomo.CATEGORIES.values()]
    section = report.section(f"Share of evidence turns in the top {TOP}", *columns)
    for name, figures in report.figures.items():
        section.rows.append([name, *(f"{figures[column]:.3f}" for column in columns[1:])])
    counts = [sum(kind == category for kind, _ in shares["heedful: hybrid"]) for category in locomo.CATEGORIES]
    section.rows.append(["questions", f"{asked:,}", *(number(count) for count in counts)])
    _apart(report, "that the graph was not fitted on", conversations, shares, GRAPH_CHOSEN_ON)
    if any(conversation.id not in CHOSEN_ON for conversation in conversations):
        _apart(report, "that nothing was fitted on", conversations, shares, CHOSEN_ON)
    times = {mode: timing(each) for mode, each in spent.items()}
    section = report.section("Time of a recall, without embedding the query", "", "median", "to hybrid")
    for mode, each in times.items():
        section.rows.append([mode, f"{each.p50:.2f} ms", f"{each.p50 / times['hybrid'].p50:.2f}"])
    report.bars.append(
        Bar("share of evidence in the top 10, hybrid", report.figures["heedful: hybrid"]["all"], LIMIT, "at least")
    )
    return report


def _apart(
    report: Report,
    which: str,
    conversations: Sequence[locomo.Conversation],
    shares: Mapping[str, Shares],
    fitted: Set[str],
) -> None:
    """A section about the conversations that are not among the `fitted`."""
    questions = [conversation.id for conversation in conversations for _ in conversation.questions]
    columns = ["", "all", *locomo.CATEGORIES.values()]
    section = report.section(f"The same, on conversations {which}", *columns)
    for name, found in shares.items():
        figures = by_category([each for each, asked in zip(found, questions, strict=True) if asked not in fitted])
        section.rows.append([name, *(f"{figures[column]:.3f}" for column in columns[1:])])


def by_category(shares: Shares) -> dict[str, float]:
    """The mean over all questions, and over those of each category."""
    result = {"all": float(np.mean([share for _, share in shares]))}
    for category, name in locomo.CATEGORIES.items():
        result[name] = float(np.mean([share for kind, share in shares if kind == category]))
    return result


def share(evidence: frozenset[str], turns: Sequence[str]) -> float:
    """The part of the evidence that is among these turns.

    >>> share(frozenset({"D1:1", "D1:2"}), ["D1:2", "D3:1"])
    0.5
    """
    return len(evidence.intersection(turns)) / len(evidence)


def _heedful(
    conversations: Sequence[locomo.Conversation], out: Path, spent: Mapping[str, list[Spent]]
) -> dict[str, Shares]:
    """The shares by mode; what each recall took goes to `spent`."""
    turns = [turn.text for conversation in conversations for turn in conversation.turns]
    questions = [[question.text for question in conversation.questions] for conversation in conversations]
    vectors = [embedded(turns, out, say), *(embedded(some, out, say) for some in questions)]
    texts = [*turns, *(text for some in questions for text in some)]
    served = Served(bundled(), texts, np.concatenate(vectors))
    shares: dict[str, Shares] = {mode: [] for mode in MODES}
    with tempfile.TemporaryDirectory() as home, heedful.open(Path(home) / "locomo.db", embedding=served) as store:
        for conversation in conversations:
            say(f"recalling from {conversation.id}: {len(conversation.turns)} facts")
            remember(store, conversation)
            for mode in MODES:
                for question in conversation.questions:
                    took, found = timed(partial(_recalled, store, question.text, conversation.id, mode))
                    spent[mode].append(took)
                    shares[mode].append((question.category, share(question.evidence, found)))
    return shares


def _recalled(store: Heedful, query: str, dataset: str, mode: Mode) -> list[str]:
    return [hit.metadata["dia_id"] for hit in store.recall(query, dataset=dataset, mode=mode, top_k=TOP)]


def remember(store: Heedful, conversation: locomo.Conversation) -> None:
    """One dataset a conversation, one source a session."""
    for session in dict.fromkeys(turn.session for turn in conversation.turns):
        turns = [turn for turn in conversation.turns if turn.session == session]
        store.remember(
            [turn.text for turn in turns],
            dataset=conversation.id,
            source=session,
            metadata=[{"dia_id": turn.id} for turn in turns],
        )


def _baselines(conversations: Sequence[locomo.Conversation], out: Path) -> dict[str, Shares]:
    shares: dict[str, Shares] = {}
    for conversation in conversations:
        texts = [turn.text for turn in conversation.turns]
        words = baselines.Bm25(texts)
        vectors = embedded(texts, out, say)
        asked = embedded([question.text for question in conversation.questions], out, say)
        for question, vector in zip(conversation.questions, asked, strict=True):
            by_words, by_vector = words.scores(question.text), vectors @ vector
            scores: Mapping[str, NDArray[np.float64]] = {
                "BM25": by_words,
                "vector": by_vector.astype(np.float64),
                "reciprocal-rank fusion of both": baselines.reciprocal_rank_fusion([by_words, by_vector]),
            }
            for name, score in scores.items():
                top = np.argsort(-score, kind="stable")[:TOP]
                turns = [conversation.turns[row].id for row in top]
                shares.setdefault(name, []).append((question.category, share(question.evidence, turns)))
    return shares


if __name__ == "__main__":
    main()
