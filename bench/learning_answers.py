"""What ratings of answers do to the next answers, end to end: LoCoMo, `recall` with answers, ratings, `improve`.

Half of the questions are asked as they stand, and the answers are rated by how many of the reference's words they have.
Then all questions are asked in other words: those of the rated half, and those of the half that nobody rated. Answers
are made without a language model. `python -m bench.learning_answers --data FOLDER`.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import numpy as np

import heedful
from bench import data, learning_stats, locomo
from bench.learning_stats import Change
from bench.learning_worlds import SPLIT_SEED, Floats, Numbers
from bench.measure import Report, about, console, say
from bench.phrasings import phrasings
from bench.recall import remember
from bench.vectors import Served, embedded
from heedful.engine import Heedful
from heedful.providers.embedding.onnx import bundled
from heedful.text.words import terms

Scale = Callable[[float], int]
"""The score of an answer that has this share of the reference's words."""

SCALES: dict[str, Scale] = {
    "from 1 to 5": lambda share: 1 + round(4 * share),
    "up or down": lambda share: 5 if share >= 0.5 else 1,
}
"""A thumb up or down is a 5 or a 1, as `heedful.normalise_rating` has it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, its other phrasings, the terms of the reference, and whether its answer is rated."""

    dataset: str
    text: str
    others: list[str]
    reference: frozenset[int]
    evidence: frozenset[str]
    rated: bool


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.learning_answers", description=__doc__)
    parser.add_argument("--data", help=f"folder with {locomo.FILE}; {data.VARIABLE} if left out")
    parser.add_argument("--out", type=Path, default=Path("bench/out"), help="where figures go")
    options = parser.parse_args(arguments)
    folder = data.folder(options.data)
    if folder is None or not (folder / locomo.FILE).is_file():
        console.print(f"There is no {locomo.FILE}.\n{data.WHERE}", highlight=False, markup=False)
        return
    report = measured(folder / locomo.FILE, options.out)
    report.show()
    report.save(options.out / "learning-answers.json")


def measured(file: Path, out: Path) -> Report:
    """The report on all conversations of a file."""
    conversations = locomo.read(file)
    asked = _asked(conversations)
    model = _served(conversations, asked, out)
    report = Report(
        "Learning: answers",
        about(
            data=f"LoCoMo: {len(conversations)} conversations, {len(asked)} questions, "
            f"{sum(each.rated for each in asked)} of them rated once",
            intervals="95%, paired bootstrap over questions",
        ),
    )
    section = report.section(
        "Share of the reference's words in the answer, of answers that have all of them, and change of the former in %",
        *("asked in other words", "words before", "after", "all words before", "after", "change", "answers made worse"),
    )
    say("answers before any rating")
    with _opened(conversations, model) as store:
        before = _shares(store, asked)
    for scale, score in SCALES.items():
        say(f"answers rated {scale}")
        with _opened(conversations, model) as store:
            _rate(store, asked, score)
            for conversation in conversations:
                store.improve(conversation.id)
            after = _shares(store, asked)
        counts = [len(each.others) for each in asked]
        needs, rated = np.repeat(np.arange(len(asked)), counts), np.repeat([each.rated for each in asked], counts)
        proven = frozenset().union(*(each.evidence for each in asked if each.rated))
        shared = np.repeat([bool(each.evidence & proven) for each in asked], counts)
        parts = {
            "the rated half": rated,
            "the other half": ~rated,
            "of it, what rated ones share evidence with": ~rated & shared,
        }
        for name, chosen in parts.items():
            row, figures = _row(before[chosen], after[chosen], needs[chosen])
            section.rows.append([f"{name}, rated {scale}", *row])
            say(": ".join([f"{name}, rated {scale}", ", ".join(row)]))
            report.figures[f"{name}, {scale}"] = figures
    return report


def _row(before: Floats, after: Floats, needs: Numbers) -> tuple[list[str], dict[str, float]]:
    changed: Change = learning_stats.change(before, after, needs)
    whole = [float(np.mean(each >= 1)) for each in (before, after)]
    row = [f"{changed.before:.3f}", f"{changed.after:.3f}", *(f"{share:.1%}" for share in whole), str(changed)]
    return [*row, f"{changed.worse:.1f}%"], asdict(changed) | {"all before": whole[0], "all after": whole[1]}


def _asked(conversations: Sequence[locomo.Conversation]) -> list[Asked]:
    random = Random(SPLIT_SEED)
    found = []
    for conversation in conversations:
        for question in conversation.questions:
            reference = frozenset(terms(question.answer))
            if reference:
                # One of them: an answer takes a tenth of a second.
                others = [random.choice(phrasings(question.text, random))]
                evidence = frozenset(f"{conversation.id}/{turn}" for turn in question.evidence)
                rated = random.random() < 0.5
                found.append(Asked(conversation.id, question.text, others, reference, evidence, rated))
    return found


def _served(conversations: Sequence[locomo.Conversation], asked: Sequence[Asked], out: Path) -> Served:
    turns = [turn.text for conversation in conversations for turn in conversation.turns]
    queries = [text for each in asked for text in (each.text, *each.others)]
    vectors = np.concatenate([embedded(turns, out, say), embedded(queries, out, say)])
    return Served(bundled(), [*turns, *queries], vectors)


@contextmanager
def _opened(conversations: Sequence[locomo.Conversation], model: Served) -> Iterator[Heedful]:
    """A store with these conversations, that nobody has rated."""
    with tempfile.TemporaryDirectory() as home, heedful.open(Path(home) / "locomo.db", embedding=model) as store:
        for conversation in conversations:
            remember(store, conversation)
        yield store


def _rate(store: Heedful, asked: Sequence[Asked], score: Scale) -> None:
    """Asks the questions that are to be rated, as they stand, and rates the answers."""
    for number, each in enumerate(asked):
        if each.rated:
            session = f"session {number}"
            found = store.recall(each.text, dataset=each.dataset, session_id=session)
            assert found.qa_id is not None
            given = score(_share(found.answer, each.reference))
            store.sessions.add_feedback(session, found.qa_id, feedback_score=given, author=f"user {number % 50}")


def _shares(store: Heedful, asked: Sequence[Asked]) -> Floats:
    return np.array(
        [
            _share(store.recall(text, dataset=each.dataset, answer=True).answer, each.reference)
            for each in asked
            for text in each.others
        ]
    )


def _share(answer: str | None, reference: frozenset[int]) -> float:
    return len(reference.intersection(terms(answer or ""))) / len(reference)


if __name__ == "__main__":
    main()
