"""Which of the facts that were shown did an answer use? `detect` reads them from the store, `attribute` decides.

No language model is asked. Words of the answer count as evidence for the facts that have them, by how rare they are
and how few of the shown facts share them; where several facts have a word, the one that fits the sentence better
takes most of the credit. Shared runs of words and closeness in meaning, ahead of all other facts, add to it. One
logistic rule turns this into a probability, and what lies between its two marks is left open.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from heedful.api import checks
from heedful.ledger.receipts import receipt_of
from heedful.model import Detection
from heedful.storage import facts as stored_facts
from heedful.storage.vectors import Vectors, unpack
from heedful.text.same_question import MINILM, Calibration
from heedful.text.sentences import cited
from heedful.text.sentences import sentences as split_sentences
from heedful.text.words import Word, words
from heedful.workspace import Workspace

Floats = NDArray[np.float64]
Rarity = Callable[[str], float]  # How rare a term is, in [0, 1].

USED_FROM = 0.5
IGNORED_TO = 0.1  # The probabilities of use from which, and down to which, a fact is spoken of.

# The logistic rule, fitted on three conversations of LoCoMo and rounded; bench/detect.py measures it.
BIAS = -3.0
SHARE = 7.0  # for the share of a sentence that is credited to the fact
RUN = 3.0  # for the logarithm of the weight of the longest run of words in common
NEARER = 1.0  # for being nearer in meaning to a sentence than any other fact is
NEARER_OVERALL = 1.0  # and to the question and the answer as a whole

NAME_WEIGHT = 1.5  # the weight of a name, number or date against that of another word
ECHOED = 0.3  # the weight of a word that is in the question already
IN_A_RUN = 0.1  # what each word adds to a run that has words of weight
DOUBT = 0.5  # evidence that every sentence is short of; keeps a single word from being a whole proof
FIT = 0.3  # how much closeness in meaning counts when facts compete for a word
CONTRADICTED = 0.3  # what is left of the evidence when sentence and fact have numbers, and none in common
UNSEEN = 10  # texts that are taken to exist beside those that rarity is counted in

EXPLAINED = 0.25
TELLS_MUCH = 4.0
"""A fact is ignored only if facts explain this share of the answer, or the answer has this weight of words; and not if
it is the nearest in meaning to a sentence of which less is explained."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """The use of one fact by an answer; `signal_type` is None where it is unclear."""

    signal_type: Literal["used", "ignored"] | None
    probability: float
    """That the fact was used."""
    reasons: list[str]

    @property
    def confidence(self) -> float:
        """How sure `signal_type` is, in [0, 1]; 0 without one."""
        return {None: 0.0, "used": self.probability, "ignored": 1.0 - self.probability}[self.signal_type]


def attribute(
    sentences: Sequence[str],
    facts: Sequence[str],
    cosines: NDArray[np.floating],
    overall: NDArray[np.floating] | None = None,
    *,
    query: str = "",
    rarity: Rarity | None = None,
    calibration: Calibration = MINILM,
) -> list[Attribution]:
    """One attribution for each fact, in order, from the sentences of an answer.

    `cosines` has a row for each sentence and a column for each fact. `overall` has, for each fact, the cosine with
    the question and the answer in one text; it is the best of the sentences if left out. `query` is the question:
    repeating its words proves little. `rarity` is taken from the facts and sentences themselves if left out.
    `calibration` is that of the model behind the cosines.
    """
    shape = (len(sentences), len(facts))
    if cosines.shape != shape or (overall is not None and overall.shape != shape[1:]):
        raise ValueError(f"the cosines of {shape[0]} sentences and {shape[1]} facts are a matrix of that shape")
    if not facts:
        return []
    if not sentences:
        return [Attribution(None, _logistic(BIAS), ["the answer is empty"]) for _ in facts]
    near = np.nan_to_num(cosines.astype(np.float64)).clip(-1, 1)
    whole = near.max(axis=0) if overall is None else np.nan_to_num(overall.astype(np.float64)).clip(-1, 1)
    evidence = _Evidence(sentences, facts, near, query, rarity or rarity_among([*facts, *sentences]))
    lead = _ahead(near, calibration)
    ahead = np.minimum(lead, lead * evidence.agreement).max(axis=0)
    ahead_overall = _ahead(whole[None], calibration)[0]
    unexplained = evidence.shares.sum(axis=1, keepdims=True) < EXPLAINED
    paraphrased = (unexplained & (lead >= 0) & (near >= calibration.same / 2)).any(axis=0)
    return [
        _attribution(
            BIAS
            + SHARE * evidence.shares[:, fact].max()
            + RUN * math.log1p(evidence.runs[:, fact].max())
            + NEARER * ahead[fact]
            + NEARER_OVERALL * ahead_overall[fact],
            evidence,
            fact,
            bool(ahead[fact] > 0),
            bool(paraphrased[fact]),
        )
        for fact in range(len(facts))
    ]


def rarity_among(texts: Sequence[str]) -> Rarity:
    """How rare a term is among these texts, in [0, 1].

    >>> rarity = rarity_among(["one cat", "a dog", "a dog and a cat", "a dog"])
    >>> rarity("cat") > rarity("dog")
    True
    """
    holders = Counter(term for text in texts for term in {word.term for word in words(text)})
    count = len(texts) + UNSEEN
    greatest = math.log(2 + 2 * count)

    def rarity(term: str) -> float:
        return math.log(1 + (count - holders[term] + 0.5) / (holders[term] + 0.5)) / greatest

    return rarity


class _Evidence:
    """The evidence in the words of an answer, by sentence and fact."""

    def __init__(self, sentences: Sequence[str], facts: Sequence[str], near: Floats, query: str, rarity: Rarity):
        self.sentences = sentences
        self.answer_words = [words(sentence) for sentence in sentences]
        self._facts = [words(fact) for fact in facts]
        self._has = [_content(fact) for fact in self._facts]
        self._holders = Counter(term for terms in self._has for term in terms)
        self._query_terms = _content(words(query))
        self._rarity = rarity
        self.weights = [self._weights(spoken) for spoken in self.answer_words]
        self.masses = np.array([sum(weights.values()) for weights in self.weights]) + DOUBT
        self.runs = np.zeros(near.shape)
        self._run_places: dict[tuple[int, int], tuple[int, int]] = {}
        terms = [[word.term for word in spoken] for spoken in self.answer_words]
        self._pairs = [frozenset(pairwise(spoken)) for spoken in terms]
        self._automata = [SuffixAutomaton(spoken) for spoken in terms]
        self._sums = [
            [0.0, *accumulate(weights.get(term, 0.0) for term in spoken)]
            for spoken, weights in zip(terms, self.weights, strict=True)
        ]
        for index in np.ndindex(near.shape):
            self.runs[index] = self._longest_run(*index)
        credits = self._credits(near)
        self.agreement = self._agreement()
        self.shares = credits / self.masses[:, None] * self.agreement
        self.runs *= self.agreement
        content_mass = float((self.masses - DOUBT).sum())
        self.can_rule_out = content_mass >= TELLS_MUCH or credits.sum() / (content_mass + DOUBT) >= EXPLAINED

    def shared(self, sentence: int, fact: int) -> list[Word]:
        """The words that count and that a sentence has in common with a fact, the most significant first."""
        weights = self.weights[sentence]
        counted = {word.term: word for word in self.answer_words[sentence] if weights.get(word.term, 0) > 0}
        common = [word for term, word in counted.items() if term in self._has[fact]]
        return sorted(common, key=lambda word: (-weights[word.term], word.start))

    def run_text(self, sentence: int, fact: int) -> str | None:
        """The longest run of words in common, as the sentence has it."""
        span = self._run_places.get((sentence, fact))
        if span is None:
            return None
        first, last = (self.answer_words[sentence][at] for at in span)
        return self.sentences[sentence][first.start : last.stop]

    def _weights(self, spoken: tuple[Word, ...]) -> dict[str, float]:
        weights: dict[str, float] = {}
        for term, kind, _, _ in spoken:
            if kind != "common":
                weight = self._rarity(term) * self._distinction(term)
                weight *= NAME_WEIGHT if kind in ("name", "number") else 1.0
                weight *= ECHOED if term in self._query_terms else 1.0
                weights[term] = max(weight, weights.get(term, 0.0))
        return weights

    def _distinction(self, term: str) -> float:
        """1 if at most one fact has a term, 0 if all have it: that proves nothing."""
        holders = self._holders[term]
        return 1.0 if holders <= 1 else 1.0 - math.log(holders) / math.log(len(self._facts))

    def _longest_run(self, sentence: int, fact: int) -> float:
        """The weight of the weightiest run of two words or more."""
        known = [word.term for word in self._facts[fact]]
        if self._pairs[sentence].isdisjoint(pairwise(known)):
            return 0.0
        best, sums = 0.0, self._sums[sentence]
        for end, size in self._automata[sentence].runs(known):
            weight = sums[end] - sums[end - size]
            if size > 1 and weight > 0 and weight + IN_A_RUN * size > best:
                best = weight + IN_A_RUN * size
                self._run_places[sentence, fact] = (end - size, end - 1)
        return best

    def _agreement(self) -> Floats:
        """The share of the evidence that is left, by sentence and fact, where their numbers contradict each other."""
        stated, known = (
            [frozenset(word.term for word in text if word.kind == "number") for text in texts]
            for texts in (self.answer_words, self._facts)
        )
        return np.array(
            [[CONTRADICTED if a and b and a.isdisjoint(b) else 1.0 for b in known] for a in stated], np.float64
        )

    def _credits(self, near: Floats) -> Floats:
        """The weight of words credited to each fact: a word that several have is shared out by how well they fit."""
        credits = np.zeros(near.shape)
        for index, weights in enumerate(self.weights):
            held = np.array([[term in terms for term in weights] for terms in self._has], bool)
            held = held.reshape(len(self._has), len(weights))
            weight = np.array(list(weights.values()))
            fit = (held @ weight / self.masses[index] + FIT * near[index].clip(0)) ** 2 + 1e-9
            claims = held * fit[:, None]
            credits[index] = (claims / np.maximum(claims.sum(axis=0), 1e-9)) @ weight
        return credits


def _content(spoken: Sequence[Word]) -> frozenset[str]:
    return frozenset(word.term for word in spoken if word.kind != "common")


def _ahead(near: Floats, calibration: Calibration) -> Floats:
    """How far each column is ahead of the best other one, row by row, in units of the model's scale."""
    floor, same = calibration
    if near.shape[1] == 1:
        rivals = np.full(near.shape, floor)
    else:
        ordered = np.sort(near, axis=1)
        best, second = ordered[:, -1:], ordered[:, -2:-1]
        rivals = np.where(near == best, second, best)
    ahead: Floats = (near - rivals) / (same - floor)
    return ahead


def _attribution(score: float, evidence: _Evidence, fact: int, nearest: bool, paraphrased: bool) -> Attribution:
    probability = _logistic(score)
    sentence = int(evidence.shares[:, fact].argmax())
    if probability >= USED_FROM:
        return Attribution("used", probability, _proofs(evidence, sentence, fact, nearest))
    if probability > IGNORED_TO:
        proofs = _proofs(evidence, sentence, fact, nearest)
        return Attribution(None, probability, ["not enough to tell", *proofs])
    if not evidence.can_rule_out:
        return Attribution(None, probability, ["the answer has too few words of its own to tell"])
    if paraphrased:
        return Attribution(None, probability, ["nearest in meaning to a sentence that no fact has the words of"])
    if evidence.shared(sentence, fact):
        return Attribution("ignored", probability, ["other facts, or none, account for the words in common"])
    return Attribution("ignored", probability, ["no telling word in common"])


def _proofs(evidence: _Evidence, sentence: int, fact: int, nearest: bool) -> list[str]:
    """The reasons for the use of a fact, in words."""
    proofs = []
    run = evidence.run_text(int(evidence.runs[:, fact].argmax()), fact)
    if run is not None:
        proofs.append(f'both say "{run}"')
    shared = evidence.shared(sentence, fact)
    for label, kinds in (("numbers", ("number",)), ("names", ("name",)), ("words", ("word",))):
        quoted = [evidence.sentences[sentence][word.start : word.stop] for word in shared if word.kind in kinds]
        if quoted:
            proofs.append(f"{label} in common: {', '.join(quoted[:5])}")
    if nearest:
        proofs.append("nearer in meaning to a sentence than any other fact")
    return proofs


def _logistic(score: float) -> float:
    return 1.0 / (1.0 + math.exp(-score))


def detect_recall(workspace: Workspace, answer: str, recall_id: str) -> list[Detection]:
    """Decides which of the facts that a recall showed an answer used."""
    checks.identifier("recall_id", recall_id)
    with workspace.read() as connection:
        shown = receipt_of(workspace, connection, recall_id)
    return detect(workspace, answer, [fact.fact_id for fact in shown.shown], query=shown.query)


MAX_ANSWER = 100_000

CITED = 0.95  # How sure it is that an answer used a fact that it cites.


def detect(workspace: Workspace, answer: str, fact_ids: Sequence[str], *, query: str = "") -> list[Detection]:
    """For each of the facts that an answer was given from: `used`, `ignored`, or None where it is unclear.

    Name all facts that were shown, in that order, because what only one of them says distinguishes them, and because an
    answer may cite them as [1], [2]; those that were deleted are left out. `query` is the question, if known: it makes
    the result a little surer.
    """
    checks.any_text("answer", answer, MAX_ANSWER)
    answer = answer.removeprefix(DISLIKED)
    shown = list(dict.fromkeys(fact_ids))
    ids, texts, vectors = _read(workspace, shown)
    if not ids:
        return []
    citations = {shown[number - 1]: number for number in cited(answer, len(shown))}
    parts = split_sentences(answer)
    near = np.zeros((len(parts), len(ids)), np.float32)
    overall = None
    if parts:
        *per_sentence, overall = workspace.embed([*parts, f"{query} {answer}".strip()]) @ vectors.T
        near = np.stack(per_sentence)
    attributions = attribute(parts, texts, near, overall, query=query, calibration=workspace.embedder.calibration)
    detections = []
    for fact_id, use in zip(ids, attributions, strict=True):
        signal_type, confidence, reasons = use.signal_type, round(use.confidence, 4), use.reasons
        if fact_id in citations:
            # Whoever cites a fact has used it, whatever else their words show.
            confidence = max(confidence if signal_type == "used" else 0.0, CITED)
            signal_type, reasons = "used", [f"the answer cites it as [{citations[fact_id]}]", *reasons]
        detections.append(Detection(fact_id=fact_id, signal_type=signal_type, confidence=confidence, reasons=reasons))
    return detections


def _read(workspace: Workspace, fact_ids: list[str]) -> tuple[list[str], list[str], Vectors]:
    """The ids, texts and vectors of those facts that still exist."""
    with workspace.read() as connection:
        model = workspace.model(connection)
        places = stored_facts.locate(connection, fact_ids)
        if model is None or not places:
            return [], [], np.empty((0, 0), np.float32)
        by_dataset: dict[int, list[int]] = {}
        for seq, dataset in places.values():
            by_dataset.setdefault(dataset, []).append(seq)
        rows = {
            row.id: row
            for dataset in sorted(by_dataset)
            for row in stored_facts.indexable(connection, dataset, model.id, by_dataset[dataset])
        }
    shown = [rows[fact_id] for fact_id in fact_ids if fact_id in rows]
    vectors = unpack([row.vector for row in shown], model.dimensions)
    return [row.id for row in shown], [row.text for row in shown], vectors


DISLIKED = "This was disliked before, and nothing better is known:"
"""Begins an answer that repeats what people disliked for the same question."""


class SuffixAutomaton:
    """Reads along which runs of words a text has.

    Blumer et al., "The smallest automaton recognizing the subwords of a text", 1985.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._moves: list[dict[str, int]] = [{}]
        self._links = [-1]
        self._lengths = [0]
        self._ends = [0]
        last = 0
        for end, word in enumerate(words, start=1):
            last = self._append(word, last, end)

    def _append(self, word: str, last: int, end: int) -> int:
        current = self._state({}, 0, self._lengths[last] + 1, end)
        state = last
        while state >= 0 and word not in self._moves[state]:
            self._moves[state][word] = current
            state = self._links[state]
        if state < 0:
            return current
        target = self._moves[state][word]
        if self._lengths[state] + 1 < self._lengths[target]:
            longer = target
            target = self._state(
                dict(self._moves[longer]), self._links[longer], self._lengths[state] + 1, self._ends[longer]
            )
            self._links[longer] = target
            while state >= 0 and self._moves[state].get(word) == longer:
                self._moves[state][word] = target
                state = self._links[state]
        self._links[current] = target
        return current

    def _state(self, moves: dict[str, int], link: int, length: int, end: int) -> int:
        self._moves.append(moves)
        self._links.append(link)
        self._lengths.append(length)
        self._ends.append(end)
        return len(self._moves) - 1

    def runs(self, words: Iterable[str]) -> Iterator[tuple[int, int]]:
        """For each word of another text, the longest run up to it that this one has: where it ends here, and its size.

        >>> list(SuffixAutomaton("the cat sat on the mat".split()).runs("a cat sat by the mat".split()))
        [(0, 0), (2, 1), (3, 2), (0, 0), (1, 1), (6, 2)]
        """
        state = size = 0
        for word in words:
            while state and word not in self._moves[state]:
                state = self._links[state]
                size = self._lengths[state]
            state = self._moves[state].get(word, 0)
            size = size + 1 if state else 0
            yield self._ends[state], size
