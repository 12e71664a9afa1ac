"""What ratings of answers do to the next answers, end to end: LoCoMo, `recall` with answers, ratings, `improve`.

Half of the questions are asked in five rounds, each time in other words but for the first, and the answers are rated by
how many of the reference's words they have. After each round, all questions are asked in words that no round used:
those of the rated half, and those of the half that nobody rated. The ceiling is what the same answerer reaches in a
store that holds nothing but the question's evidence. Answers are made without a language model.
`python -m bench.learning_answers --data FOLDER`.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

import heedful
from bench import data, learning_stats, locomo
from bench.learning_worlds import SPLIT_SEED, Floats
from bench.measure import Bar, Report, Section, about, console, say
from bench.phrasings import phrasings
from bench.recall import remember
from bench.vectors import Served, Vectors, embedded
from heedful.engine import Heedful
from heedful.model import Recall
from heedful.providers.embedding import bundled
from heedful.text.words import terms

Scale = Callable[[float], int]
"""The score of an answer that has this share of the reference's words."""

SCALES: dict[str, Scale] = {
    "from 1 to 5": lambda share: 1 + round(4 * share),
    "up or down": lambda share: 5 if share >= 0.5 else 1,
}
"""A thumb up or down is a 5 or a 1, as `heedful.normalise_rating` has it."""


ROUNDS = 5
WRONG = (0.0, 0.3)
"""The shares of ratings that say the opposite."""
ONE_ROUND, ALL_ROUNDS = 25, 50
"""How much of the way to the ceiling one round and all rounds should go, in per cent."""
MOST_HARM = -1
"""What the half that nobody rated may lose, in per cent."""
COMPARABLE = 0.8
"""The share of the relevance of what was quoted from which another fact could have answered."""
ANOTHER = 90
"""How often one "no" should bring another answer where one could have, in per cent."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, the terms of the reference, and whether its answer is rated."""

    dataset: str
    phrasings: list[str]
    """What each round asks; the first is the question as it stands."""
    other: str
    """What no round asks."""
    reference: frozenset[int]
    evidence: list[str]
    rated: bool


class Remembering(Served):
    """Serves every text a second time without the model: the answerer embeds the same sentences again and again."""

    def __init__(self, texts: Sequence[str], vectors: Vectors) -> None:
        super().__init__(bundled())
        self._known = dict(zip(texts, vectors, strict=True))

    def embed(self, texts: Sequence[str]) -> Vectors:
        unknown = [text for text in dict.fromkeys(texts) if text not in self._known]
        if unknown:
            self._known.update(zip(unknown, super().embed(unknown), strict=True))
        return np.array([self._known[text] for text in texts], np.float32).reshape(len(texts), self.dimensions)


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
    rated = np.array([each.rated for each in asked])
    report = Report(
        "Learning: answers",
        about(
            data=f"LoCoMo: {len(conversations)} conversations, {len(asked)} questions, {rated.sum()} of them rated",
            intervals="95%, paired bootstrap over questions",
        ),
    )
    say("answers from nothing but the evidence")
    ceiling = _ceiling(asked, model)
    section = report.section(
        "Share of the reference's words in answers to other words, and the way from the start to the ceiling",
        *("rated", "round", "rated half", "of the way", "other half", "its change in %", "rated answers worse"),
    )
    for scale, score in SCALES.items():
        for wrong in WRONG:
            name = f"{scale}, {wrong:.0%} wrong" if wrong else scale
            say(f"answers rated {name}")
            with _opened(conversations, model) as store:
                before = _shares(store, asked)
                curve = []
                for number in range(ROUNDS):
                    _rate(store, asked, score, number, wrong)
                    for conversation in conversations:
                        store.improve(conversation.id)
                    curve.append(_shares(store, asked))
            way = _curve(report, section, name, before, curve, ceiling, rated)
            if wrong:
                report.bars.append(Bar(f"{name}: the lowest round, of the way", min(way), 0, "at least", "%"))
            else:
                steps = np.diff([0.0, *way])
                report.bars.append(Bar(f"{name}: one round, of the way", way[0], ONE_ROUND, "at least", "%"))
                report.bars.append(Bar(f"{name}: {ROUNDS} rounds, of the way", way[-1], ALL_ROUNDS, "at least", "%"))
                report.bars.append(Bar(f"{name}: the least rise of a round", float(steps.min()), 0, "at least", "%"))
    say('one "no" on the very question')
    with _opened(conversations, model) as store:
        possible, another = _after_one_no(store, asked)
    section = report.section(
        'One "no", and the same question again', "questions", "could have another answer", "had it"
    )
    section.rows.append([str(len(asked)), str(possible), str(another)])
    share = 100 * another / possible
    report.figures["one no"] = {"possible": possible, "another": another}
    report.bars.append(Bar('another answer after one "no"', share, ANOTHER, "at least", "%"))
    return report


def _curve(
    report: Report,
    section: Section,
    name: str,
    before: Floats,
    curve: Sequence[Floats],
    ceiling: Floats,
    rated: NDArray[np.bool_],
) -> list[float]:
    """Adds a row for each round; returns how much of the way to the ceiling each went, in per cent."""
    needs = np.arange(len(before))
    first, top = before[rated].mean(), ceiling[rated].mean()
    section.rows.append([name, "0", f"{first:.3f}", f"ceiling {top:.3f}", f"{before[~rated].mean():.3f}", "", ""])
    way, harm = [], []
    for number, after in enumerate(curve, start=1):
        gone, low, high = learning_stats.ratio(before[rated], after[rated], ceiling[rated], needs[rated])
        mine = learning_stats.change(before[rated], after[rated], needs[rated])
        other = learning_stats.change(before[~rated], after[~rated], needs[~rated])
        way.append(100 * gone)
        harm.append(other.change)
        row = [f"{mine.after:.3f}", f"{100 * gone:+.0f}% [{100 * low:+.0f}, {100 * high:+.0f}]", f"{other.after:.3f}"]
        section.rows.append([name, str(number), *row, str(other), f"{mine.worse:.1f}%"])
        say(": ".join([f"{name}, round {number}", ", ".join(section.rows[-1][2:])]))
        report.figures[f"{name}, round {number}"] = {"way": gone, "rated": asdict(mine), "other": asdict(other)}
    report.bars.append(Bar(f"{name}: the other half, worst round", min(harm), MOST_HARM, "at least", "%"))
    return way


def _asked(conversations: Sequence[locomo.Conversation]) -> list[Asked]:
    random = Random(SPLIT_SEED)
    found = []
    for conversation in conversations:
        texts = {turn.id: turn.text for turn in conversation.turns}
        for question in conversation.questions:
            reference = frozenset(terms(question.answer))
            if reference:
                other = random.choice(phrasings(question.text, random))
                evidence = [texts[turn] for turn in sorted(question.evidence)]
                rated = random.random() < 0.5
                rounds = [question.text, *(_another(question.text, other, random) for _ in range(ROUNDS - 1))]
                found.append(Asked(conversation.id, rounds, other, reference, evidence, rated))
    return found


def _another(question: str, used: str, random: Random) -> str:
    """The question in other words than the `used` ones."""
    return random.choice([text for text in phrasings(question, random) if text != used] or [question])


def _served(conversations: Sequence[locomo.Conversation], asked: Sequence[Asked], out: Path) -> Remembering:
    turns = [turn.text for conversation in conversations for turn in conversation.turns]
    queries = [text for each in asked for text in (*each.phrasings, each.other)]
    vectors = np.concatenate([embedded(turns, out, say), embedded(queries, out, say)])
    return Remembering([*turns, *queries], vectors)


@contextmanager
def _opened(conversations: Sequence[locomo.Conversation], model: Served) -> Iterator[Heedful]:
    """A store with these conversations, that nobody has rated."""
    with tempfile.TemporaryDirectory() as home, heedful.open(Path(home) / "locomo.db", embedding=model) as store:
        for conversation in conversations:
            remember(store, conversation)
        yield store


def _ceiling(asked: Sequence[Asked], model: Served) -> Floats:
    """The shares where each question has a dataset of its own evidence."""
    apart = [replace(each, dataset=f"question {number}") for number, each in enumerate(asked)]
    with _opened([], model) as store:
        for each in apart:
            store.remember(each.evidence, dataset=each.dataset)
        return _shares(store, apart)


def _rate(store: Heedful, asked: Sequence[Asked], score: Scale, number: int, wrong: float) -> None:
    """Asks the questions that are to be rated, in the words of a round, and rates the answers."""
    random = Random(number)
    for place, each in enumerate(asked):
        if each.rated:
            session = f"round {number}, question {place}"
            found = store.recall(each.phrasings[number], dataset=each.dataset, session_id=session)
            given = score(_share(found.answer, each.reference))
            author = f"user {(place + 17 * number) % 50}"
            given = 6 - given if random.random() < wrong else given
            store.sessions.add_feedback(session, str(found.qa_id), feedback_score=given, author=author)


def _after_one_no(store: Heedful, asked: Sequence[Asked]) -> tuple[int, int]:
    """How often another fact was about as relevant as what was quoted, and how often none of that was quoted again."""
    possible = another = 0
    for number, each in enumerate(asked):
        session = f"question {number}"
        found = store.recall(each.phrasings[0], dataset=each.dataset, session_id=session)
        used = _quoted(store, found)
        relevance = [hit.relevance for hit in found if hit.fact_id in used]
        others = [hit.relevance for hit in found if hit.fact_id not in used]
        if not used or max(others, default=0.0) < COMPARABLE * max(relevance):
            continue
        possible += 1
        store.sessions.add_feedback(session, str(found.qa_id), feedback_score=1, author="ada")
        store.improve(each.dataset, [session])
        again = _quoted(store, store.recall(each.phrasings[0], dataset=each.dataset, session_id=session))
        another += bool(again) and not again & used
        store.sessions.delete_feedback(session, str(found.qa_id), author="ada")
    return possible, another


def _quoted(store: Heedful, found: Recall) -> set[str]:
    entry = store.sessions.entry(str(found.session_id), str(found.qa_id))
    return {use.fact_id for use in entry.used or ()}


def _shares(store: Heedful, asked: Sequence[Asked]) -> Floats:
    return np.array(
        [_share(store.recall(each.other, dataset=each.dataset, answer=True).answer, each.reference) for each in asked]
    )


def _share(answer: str | None, reference: frozenset[int]) -> float:
    return len(reference.intersection(terms(answer or ""))) / len(reference)


if __name__ == "__main__":
    main()
