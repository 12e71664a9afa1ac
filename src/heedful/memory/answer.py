"""Answers from recalled facts, written by a language model or quoted, and the facts that they cite."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from heedful.caching import cache_short
from heedful.errors import Invalid
from heedful.ledger.used_facts import DISLIKED
from heedful.model import Hit, Recall
from heedful.model.base import NEUTRAL
from heedful.providers.llm import NOTICE, ChatMessage, LanguageModel, OnToken, Usage, quote
from heedful.text.regex import regex
from heedful.text.sentences import answer_kind, asks_for_a_list, cited, has, sentences, without_citations
from heedful.text.words import words

MAX_EVIDENCE = 24_000  # Characters of evidence in a prompt at most; the best hits are kept.

MAX_EARLIER = 6_000
MAX_EARLIER_TURN = 1_500
"""Characters of earlier turns in a prompt at most, and of one question or answer in them; the newest turns are kept."""

RULES = f"""\
You answer questions from evidence.

The evidence is a list of numbered lines, each with one text that was stored earlier, by anyone. {NOTICE}

- Answer only with what the evidence says, in one to three sentences, in the language of the question.
- Behind every sentence, cite the evidence it is from by its number: [1], or [1][3] for several.
- Do not answer with a line that is marked as corrected: answer with the line that corrects it.
- If the evidence does not answer the question, say so in one sentence and cite nothing."""


MARK = "(disliked)"  # Behind the number of evidence that people disliked for the same question.

AVOID = f"""\
An earlier answer to this question, or to one like it, used what is marked {MARK}, and was rated down. Answer from the \
rest if it answers the question. If only marked evidence does, begin with exactly these words: {DISLIKED}"""


PROMPT = """\
These texts were stored earlier, by anyone, and may help to answer. {notice} Behind each sentence that you take from \
one, cite its number: [1], or [1][3] for several.
{lines}"""


@dataclass(frozen=True, slots=True)
class Use:
    """A fact that an answer was made from, and its part in it."""

    fact_id: str
    share: float
    """In (0, 1]; the shares of one answer sum to 1."""


@dataclass(frozen=True, slots=True)
class Written:
    """An answer, and the facts it was made from."""

    text: str
    used: list[Use]
    """The facts cited, in the order they are cited; empty where none is."""
    model: str | None
    """The language model that wrote it; None where none did."""
    usage: Usage | None


def write(
    model: LanguageModel,
    question: str,
    hits: Sequence[Hit],
    earlier: Sequence[tuple[str, str]] = (),
    on_token: OnToken | None = None,
) -> Written:
    """The model's answer from the hits; `earlier` are the questions and answers before this one, oldest first.

    The text stays as the model wrote it, so that it is what `on_token` was given: a citation of a number that no hit
    has is left in it, and counts for nothing.
    """
    shown = _fitting(hits, MAX_EVIDENCE)
    completion = model.complete(prompt(question, shown, earlier), on_token=on_token)
    shares = cited(completion.text, len(shown))
    used = [Use(shown[number - 1].fact_id, share) for number, share in shares.items()]
    return Written(completion.text, used, model.name, completion.usage)


def prompt(question: str, hits: Sequence[Hit], earlier: Sequence[tuple[str, str]]) -> list[ChatMessage]:
    """The rules, the conversation so far, and the evidence with the question."""
    messages = [ChatMessage("system", RULES)]
    for past_question, past_answer in _newest(earlier):
        messages += [ChatMessage("user", past_question), ChatMessage("assistant", past_answer)]
    lines = _lines(enumerate(hits, start=1), MAX_EVIDENCE) or "(there is none)"
    messages.append(ChatMessage("user", f"Evidence:\n{lines}\n\nQuestion: {question}"))
    return messages


def said(answer: str) -> str:
    """The words of an answer: without citations, and without the notice that it was disliked before."""
    return without_citations(answer.removeprefix(DISLIKED)).strip()


def as_prompt(hits: Recall | Sequence[Hit], *, max_characters: int = MAX_EVIDENCE) -> str:
    """The recalled facts as text for the prompt of your own language model; empty if there are none.

    Each text is quoted on one numbered line and marked as data, so that instructions in it stay something that it says.
    The best hits are taken, up to so many characters of text; those that people disliked come last, and all keep their
    rank as number. A model that cites them, as asked, says by that which ones it used: `detect`, `signal_recall` and
    `improve` read it in the answer.
    """
    try:
        shown = _fitting(list(hits), max_characters)
    except (TypeError, AttributeError):
        raise Invalid.got("hits", "must be what recall returned", hits) from None
    if not shown:
        return ""
    return PROMPT.format(notice=NOTICE, lines=_lines(((hit.rank, hit) for hit in shown), max_characters))


def _lines(numbered: Iterable[tuple[int, Hit]], max_length: int) -> str:
    shown = {hit.fact_id: (number, hit) for number, hit in numbered}

    def mark(hit: Hit) -> str:
        if hit.corrected_by is None:
            return f"{MARK} " if opinion(hit) < 0 else ""
        return f"(corrected by [{shown[hit.corrected_by][0]}]) " if hit.corrected_by in shown else "(corrected since) "

    lines: dict[bool, list[str]] = {False: [], True: []}  # By whether people disliked it: a reader trusts the first.
    for number, hit in shown.values():
        is_disliked = opinion(hit) < 0 and hit.corrected_by is None
        lines[is_disliked].append(f"[{number}] {mark(hit)}{quote(hit.text, max_length)}")
    return "\n".join([*lines[False], *lines[True], *([AVOID] if lines[True] else [])])


def without_opinions(hit: Hit) -> Hit:
    """The hit as if nobody had judged it."""
    return hit.model_copy(update={"usefulness": NEUTRAL, "usefulness_source": "neutral"})


def opinion(hit: Hit) -> float:
    """The opinion about a fact for this very question: above 0 if people liked it, below 0 if not."""
    return hit.usefulness - NEUTRAL if hit.usefulness_source == "context" else 0.0


def _fitting(hits: Sequence[Hit], room: int) -> list[Hit]:
    fitting: list[Hit] = []
    for hit in hits:
        room -= len(hit.text)
        if fitting and room < 0:
            break
        fitting.append(hit)
    return fitting


def _newest(earlier: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The newest turns that fit, oldest first, without citations of evidence that is not in this prompt."""
    newest: list[tuple[str, str]] = []
    room = MAX_EARLIER
    for question, answered in reversed(earlier):
        turn = _short(question), _short(said(answered))
        room -= len(turn[0]) + len(turn[1])
        if room < 0:
            break
        newest.append(turn)
    return newest[::-1]


def _short(text: str) -> str:
    return text if len(text) <= MAX_EARLIER_TURN else f"{text[: MAX_EARLIER_TURN - 1]}…"


NO_ANSWER = "Nothing that is remembered answers this."

LEARNT = "learnt_from"
"""In the metadata of a fact that was learnt in a session: its first line is the question that the rest answers."""

Similarity = Callable[[Sequence[str]], Sequence[float]]  # The cosine of each text to the question.

# Chosen on three conversations of LoCoMo, where much around them does as well: what a part of a score counts.
SHARED = 0.5  # the share of the question's words, by rarity, that the sentence has
NEAR = 1.0  # closeness in meaning
SCORE_WEIGHT = 0.8  # the hit's own score, against the best one's
KIND_WEIGHT = 0.3  # having the kind of answer that is asked for
LITTLE_NEW_PENALTY = 0.2  # what a sentence loses that says next to nothing beyond the question

LEAST_SHARED = 0.3
LEAST_NEAR = 0.5
"""A fact that has less of the question's words, in a sentence that is less close in meaning, doesn't answer it."""

MAX_SENTENCES, MAX_LIST_SENTENCES = 3, 6  # How many sentences at most, and where a list is asked for.
MIN_SHARE, MIN_LIST_SHARE = 0.9, 0.8
"""A further sentence has at least this share of the best one's score; so again for a list."""
MIN_LIKED_SHARE = 0.5  # The same for what was liked for this question: an answer that was liked is not shortened.
COMPARABLE = 0.8  # The share of a disliked fact's relevance from which another fact answers in its place.
ALIKE = 0.75  # A sentence that has this share of its words in common with one that was chosen says nothing new.

# A run of a script that is written without spaces.
_UNSPACED = regex(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_SPEAKER = regex(r"(?:[^\W\d_a-z][\w.'’-]{0,30}\s?){1,3}: (?=\S)")
_QUESTION = regex(r"[?？؟\u037e][^\w?？؟\u037e]*+$")


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A sentence that may be quoted, and the index of its hit."""

    hit: int
    text: str
    terms: frozenset[str]
    question: str = ""
    """The question that it answers, where its fact is a question with its answer."""

    @property
    def whole(self) -> str:
        return f"{self.question} {self.text}".strip()


def extract(question: str, hits: Sequence[Hit], similarity: Similarity | None = None) -> Written:
    """The few sentences of the hits that answer best, each cited as [1] by the rank of its hit.

    `similarity` gives the closeness in meaning, where there is an embedder; without it, words decide alone. The same
    question and hits give the same answer. If a fact that people liked for this question answers about as well as the
    best one, only such facts are quoted. Facts that they disliked are left out if another fact of comparable relevance
    answers; otherwise the answer says so.
    """
    candidates = [
        candidate for index, hit in enumerate(hits) if not hit.corrected_by for candidate in _candidates(index, hit)
    ]
    scores = _scores(question, hits, candidates, similarity) if candidates else []
    most, least = (MAX_LIST_SENTENCES, MIN_LIST_SHARE) if asks_for_a_list(question) else (MAX_SENTENCES, MIN_SHARE)
    liked = {index for index, hit in enumerate(hits) if opinion(hit) > 0}
    disliked = {index for index, hit in enumerate(hits) if opinion(hit) < 0}
    scored = zip(candidates, scores, strict=True)
    best_liked = max((score for candidate, score in scored if candidate.hit in liked), default=0.0)
    if best_liked > 0 and best_liked >= least * max(scores):
        chosen = _choose(candidates, scores, liked, max(most, min(len(liked), MAX_LIST_SENTENCES)), MIN_LIKED_SHARE)
    else:
        chosen = _choose(candidates, scores, range(len(hits)), most, least)
    notice = ""
    if repeated := [hits[quoted.hit].relevance for quoted in chosen if quoted.hit in disliked]:
        comparable = [index for index, hit in enumerate(hits) if hit.relevance >= COMPARABLE * max(repeated)]
        others = _choose(candidates, scores, set(comparable) - disliked, most, least)
        others = others or [quoted for quoted in chosen if quoted.hit not in disliked]
        chosen, notice = (others, "") if others else (chosen, f"{DISLIKED} ")
    if not chosen:
        return Written(NO_ANSWER, [], None, None)
    text = notice + " ".join(f"{quoted.text} [{quoted.hit + 1}]" for quoted in chosen)
    times_quoted = Counter(hits[quoted.hit].fact_id for quoted in chosen)
    return Written(text, [Use(fact_id, times / len(chosen)) for fact_id, times in times_quoted.items()], None, None)


def _candidates(index: int, hit: Hit) -> list[_Candidate]:
    """The sentences of a hit that say something; who speaks is said with each."""
    # A fact whose first line is a question is taken apart.
    first, _, rest = hit.text.partition("\n")
    has_question = rest.strip() and (LEARNT in hit.metadata or _QUESTION.search(first))
    question, text = (first.strip(), rest) if has_question else ("", hit.text)
    speaker = match.group() if (match := _SPEAKER.match(text)) else ""
    statements = [part if part.startswith(speaker) else speaker + part for part in sentences(text)]
    return [
        _Candidate(index, sentence, terms, question)
        for sentence in statements
        if not _QUESTION.search(sentence) and (terms := _terms(sentence.removeprefix(speaker)))
    ]


def _scores(
    question: str, hits: Sequence[Hit], candidates: Sequence[_Candidate], similarity: Similarity | None
) -> list[float]:
    """How well each sentence answers; 0 where its fact doesn't."""
    sought = _terms(question)
    facts = [_terms(hit.text) for hit in hits]
    among = Counter(term for fact in facts for term in fact)
    weights = {term: math.log(1 + (len(hits) + 1) / (among[term] + 0.5)) for term in sorted(sought)}
    total = sum(weights.values()) or 1.0
    wholes = [candidate.whole for candidate in candidates]
    near = [0.0] * len(candidates) if similarity is None else similarity(wholes)
    best = max(hit.score for hit in hits)
    kind = answer_kind(question)
    scores = []
    for candidate, whole, cosine in zip(candidates, wholes, near, strict=True):
        shared = sum(weights[term] for term in sorted(sought & _terms(whole))) / total
        around = sum(weights[term] for term in sorted(sought & facts[candidate.hit])) / total
        if around < LEAST_SHARED and cosine < LEAST_NEAR:
            scores.append(0.0)
            continue
        score = SHARED * shared + NEAR * max(0.0, float(cosine))
        score += SCORE_WEIGHT * (hits[candidate.hit].score / best if best > 0 else 1.0)
        score += KIND_WEIGHT * has(kind, candidate.text, sought) if kind is not None else 0.0
        scores.append(score - (LITTLE_NEW_PENALTY if len(candidate.terms - sought) < 2 else 0.0))
    return scores


def _choose(
    candidates: Sequence[_Candidate], scores: Sequence[float], among: Collection[int], most: int, least: float
) -> list[_Candidate]:
    """The best sentences of the hits `among` all, none twice; facts in the order of their best one, and a fact's in its
    own order."""
    places = [index for index, candidate in enumerate(candidates) if candidate.hit in among]
    order = sorted(places, key=lambda index: (-round(scores[index], 9), index))
    chosen: list[int] = []
    for index in order:
        if scores[index] <= 0 or scores[index] < least * scores[order[0]] or len(chosen) == most:
            break
        terms = candidates[index].terms
        others = [candidates[other].terms for other in chosen]
        if not any(len(terms & other) >= ALIKE * min(len(terms), len(other)) for other in others):
            chosen.append(index)
    hits = list(dict.fromkeys(candidates[index].hit for index in chosen))
    chosen.sort(key=lambda index: (hits.index(candidates[index].hit), index))
    return [candidates[index] for index in chosen]


@cache_short(entries=4_096, characters=1_000)
def _terms(text: str) -> frozenset[str]:
    """The content words; where a script has no spaces, every two letters in a row."""
    terms: set[str] = set()
    for word in words(text):
        if run := _UNSPACED.fullmatch(word.term):
            letters = run.group()
            terms.update(letters[at : at + 2] for at in range(max(1, len(letters) - 1)))
        elif word.kind != "common":
            terms.add(word.term)
    return frozenset(terms)
