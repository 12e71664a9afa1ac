"""Training data from what people rated: which ratings become which lines of a format. Pure.

An answer, a fact or a query of the same words is one thing, however often it was shown: each author has one vote about
it, and the larger side decides. A tie teaches nothing.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import orjson

from heedful.evaluation.rated import Author, Votes
from heedful.model import TrainingFormat, TrainingSplit
from heedful.text.same_question import normal

Line = dict[str, Any]
Kind = Literal["answer", "correction", "fact", "shown", "sql"]

SHOWN = 20
"""Facts without a rating that a line of `triplets` names, at most."""


@dataclass(frozen=True, slots=True)
class Thing:
    """Something that was shown for a question, with what people said about it."""

    kind: Kind
    scope: str
    """The dataset; of SQL, the connector."""
    question: str
    text: str
    votes: Votes = field(default_factory=Votes)
    is_current: bool = True
    """Whether the facts behind it can still be recalled."""
    facts: tuple[tuple[str, str], ...] = ()
    """(id, text): the facts that an answer rests on; of a fact, itself; of a correction, the fact that it is about."""
    corrects: str = ""
    """Of a correction: the answer."""
    terms: tuple[str, ...] = ()
    """Of a correction: what it puts in place of other words, nothing if it says what the fact says. Corrections with
    the same terms agree."""
    parameters: str = ""
    """Of SQL: the values of its parameters, as JSON."""

    @property
    def words(self) -> str:
        """The question without what never changes its meaning."""
        return normal(self.question)

    def packed(self) -> bytes:
        votes = [[author, *vote] for author, vote in self.votes.by.items()]
        return orjson.dumps([votes, *(getattr(self, name) for name in self.__slots__ if name != "votes")])

    @classmethod
    def unpacked(cls, packed: bytes) -> Thing:
        (voted, kind, scope, question, text, is_current, facts, corrects, terms, *rest) = orjson.loads(packed)
        votes = Votes({author: (at, is_good) for author, at, is_good in voted})
        pairs = tuple((fact_id, said) for fact_id, said in facts)
        return cls(kind, scope, question, text, votes, is_current, pairs, corrects, tuple(terms), *rest)

    def merged(self, other: Thing) -> Thing:
        """Both as one; of each author, the later vote."""
        votes = Votes()
        votes.update(self.votes)
        votes.update(other.votes)
        is_current = self.is_current and other.is_current
        facts = min((each.facts for each in (self, other) if each.facts), default=())
        question = min(self.question, other.question)
        return Thing(
            *(self.kind, self.scope, question, self.text, votes, is_current, facts),
            *(self.corrects, self.terms, self.parameters),
        )


class Schema(NamedTuple):
    """The schema of a connector, in words."""

    connector: str
    dialect: str
    text: str


class Taught(NamedTuple):
    """A text that is taught as right, or as wrong."""

    question: str
    text: str
    votes: int
    """Authors who voted."""
    agreement: float
    facts: tuple[tuple[str, str], ...] = ()


class Need:
    """All that was rated for one need, in one dataset or on one connector."""

    def __init__(self, scope: str, things: Iterable[Thing]) -> None:
        self.scope = scope
        self.left_out: Counter[str] = Counter()
        by_key: dict[tuple[Any, ...], Thing] = {}
        for thing in things:
            key = (thing.kind, thing.words, thing.text, thing.corrects, thing.parameters)
            by_key[key] = by_key[key].merged(thing) if key in by_key else thing
        self._things: dict[Kind, dict[str, list[Thing]]] = defaultdict(lambda: defaultdict(list))
        for _, thing in sorted(by_key.items(), key=lambda item: item[0]):
            self._things[thing.kind][thing.words].append(thing)

    def of(self, kind: Kind) -> Iterator[Thing]:
        for things in self._things[kind].values():
            yield from things

    def words_of(self, kind: Kind) -> Iterable[str]:
        return self._things[kind]

    def about(self, kind: Kind, words: str) -> Sequence[Thing]:
        """The things of a kind that were shown for a question."""
        return self._things[kind].get(words, ())

    def right(self, thing: Thing) -> bool:
        """Whether something is taught as right; counts why not, unless people say that it is wrong."""
        if thing.votes.is_good and thing.is_current:
            return True
        if thing.votes.is_good:
            self.left_out["outdated"] += 1
        elif thing.votes.by and not thing.votes.is_bad:
            self.left_out["tied"] += 1
        return False

    @cached_property
    def right_answers(self) -> list[Taught]:
        return [_taught(answer, answer.facts) for answer in self.of("answer") if self.right(answer)]

    @property
    def wrong_answers(self) -> list[Taught]:
        return [_taught(answer) for answer in self.of("answer") if answer.votes.is_bad]

    @property
    def corrections(self) -> list[tuple[Taught, list[str]]]:
        """The correction of a fact that most authors give for a question, and the answers that are wrong for it. An
        answer that most people call right needs no correction."""
        found = []
        for words, things in self._things["correction"].items():
            good = {answer.text for answer in self.about("answer", words) if answer.votes.is_good}
            by_fact: dict[Any, list[Thing]] = defaultdict(list)
            for thing in things:
                if thing.corrects not in good:
                    by_fact[thing.facts].append(thing)
            for group in by_fact.values():
                if (settled := self._settled(group)) is not None:
                    found.append(settled)
        return found

    def _settled(self, corrections: Sequence[Thing]) -> tuple[Taught, list[str]] | None:
        """The correction of one fact that most authors give, each of whom has one voice: the last."""
        last: dict[Author, tuple[int, str, Thing]] = {}
        for thing in corrections:
            for author, (at, _) in thing.votes.by.items():
                if author not in last or (at, thing.text) > last[author][:2]:
                    last[author] = at, thing.text, thing
        sides: dict[tuple[str, ...], list[Thing]] = defaultdict(list)
        for _, _, thing in last.values():
            sides[thing.terms].append(thing)
        sizes = sorted((len(side) for side in sides.values()), reverse=True)
        if len(sizes) > 1 and sizes[0] == sizes[1]:
            self.left_out["tied"] += 1
            return None
        chosen = max(sides.values(), key=len)
        if not all(thing.is_current for thing in chosen):
            self.left_out["outdated"] += 1
            return None
        texts = Counter(thing.text for thing in chosen)
        text = min(texts, key=lambda text: (-texts[text], text))
        question = min(thing.question for thing in chosen)
        # A fact that is corrected is not expected.
        facts = () if chosen[0].terms else chosen[0].facts
        said = Taught(question, text, len(last), sizes[0] / len(last), facts)
        return said, sorted({thing.corrects for thing in corrections if thing.terms == chosen[0].terms})


def _taught(thing: Thing, facts: tuple[tuple[str, str], ...] = ()) -> Taught:
    return Taught(thing.question, thing.text, len(thing.votes.by), thing.votes.agreement, facts)


def _asked(question: str) -> list[Line]:
    return [{"role": "user", "content": question}]


def _answered(text: str) -> list[Line]:
    return [{"role": "assistant", "content": text}]


def _measure(*of: Taught) -> Line:
    """The agreement in a line, which is the least of its parts, and the votes behind it."""
    return {"agreement": round(min(each.agreement for each in of), 4), "votes": sum(each.votes for each in of)}


def _kto(need: Need) -> Iterator[Line]:
    labelled = [(answer, True) for answer in need.right_answers] + [(each, False) for each in need.wrong_answers]
    for answer, label in labelled:
        prompt, completion = _asked(answer.question), _answered(answer.text)
        yield {"prompt": prompt, "completion": completion, "label": label} | _measure(answer)


def _dpo(need: Need) -> Iterator[Line]:
    right, wrong = need.right_answers, need.wrong_answers
    pairs: list[tuple[Taught, Taught]] = []
    if right and wrong:
        pairs += [(_best(right, each), each) for each in wrong]
        used = {chosen for chosen, _ in pairs}
        pairs += [(each, _best(wrong, each)) for each in right if each not in used]
    for correction, answers in need.corrections:
        pairs += [(correction, Taught(correction.question, each, 0, 1.0)) for each in answers]
    paired = {each.text for pair in pairs for each in pair}
    need.left_out["unpaired"] += sum(each.text not in paired for each in (*right, *wrong))
    for chosen, rejected in pairs:
        if chosen.text != rejected.text:
            texts = {"chosen": _answered(chosen.text), "rejected": _answered(rejected.text)}
            yield {"prompt": _asked(chosen.question), **texts} | _measure(chosen, rejected)


def _best(among: Sequence[Taught], other: Taught) -> Taught:
    """The answer to pair another one with: to the same words if there is one, and that most people agree on."""
    words = normal(other.question)
    return min(among, key=lambda each: (normal(each.question) != words, -each.agreement, -each.votes, each.text))


def _sft(need: Need) -> Iterator[Line]:
    for answer in [*need.right_answers, *(correction for correction, _ in need.corrections)]:
        yield {"messages": [*_asked(answer.question), *_answered(answer.text)]} | _measure(answer)


def _triplets(need: Need) -> Iterator[Line]:
    for query, right, wrong in _rated_facts(need):
        known = {each.text for each in (*right, *wrong)}
        shown = [each.text for each in need.about("shown", normal(query)) if each.text not in known]
        negatives = [each.text for each in sorted(wrong, key=lambda each: (-each.agreement, -each.votes, each.text))]
        for fact in right:
            texts = {"query": query, "positive": fact.text, "negatives": negatives, "unrated": shown[:SHOWN]}
            yield texts | _measure(fact)


def _rated_facts(need: Need) -> Iterator[tuple[str, list[Taught], list[Taught]]]:
    """By question, the facts that helped, and those that didn't. Facts that nobody rated themselves helped if a right
    answer rests on them. That a wrong answer does says nothing: it may be wrong for another reason."""
    behind: dict[str, dict[tuple[str, str], Taught]] = defaultdict(dict)
    for answer in need.right_answers:
        for fact in answer.facts:
            known = behind[normal(answer.question)].get(fact)
            if known is None or (answer.agreement, answer.votes) > (known.agreement, known.votes):
                behind[normal(answer.question)][fact] = answer._replace(text=fact[1], facts=(fact,))
    for words in sorted({*behind, *need.words_of("fact")}):
        things = need.about("fact", words)
        rated = {thing.facts[0] for thing in things}
        right = [_taught(thing, thing.facts) for thing in things if need.right(thing)]
        right += [taught for fact, taught in sorted(behind[words].items()) if fact not in rated]
        wrong = [_taught(thing, thing.facts) for thing in things if thing.votes.is_bad and thing.is_current]
        if right:
            yield min(taught.question for taught in (*right, *wrong)), right, wrong
        else:
            need.left_out["unpaired"] += len(wrong)


def _evals(need: Need) -> Iterator[Line]:
    references: dict[str, list[Taught]] = defaultdict(list)
    for answer in [*need.right_answers, *(correction for correction, _ in need.corrections)]:
        references[normal(answer.question)].append(answer)
    facts = {normal(query): right for query, right, _ in _rated_facts(need)}
    for words in sorted({*references, *facts}):
        known = references.get(words, [])
        reference = min(known, key=lambda each: (-each.agreement, -each.votes, each.text), default=None)
        helpful = facts.get(words, [])
        expected = {fact for each in (*helpful, *([reference] if reference else [])) for fact in each.facts}
        question = min(each.question for each in (*known, *helpful))
        yield {
            "input": question,
            "reference": "" if reference is None else reference.text,
            "facts": [{"fact_id": fact_id, "text": text} for fact_id, text in sorted(expected)],
            **_measure(*([reference] if reference else helpful)),
        }


def _text2sql(need: Need, schemas: Mapping[str, Schema]) -> Iterator[Line]:
    schema = schemas[need.scope]
    for thing in need.of("sql"):
        if need.right(thing):
            about = {
                "schema": schema.text,
                "sql": thing.text,
                "parameters": thing.parameters,
                "dialect": schema.dialect,
            }
            yield {"question": thing.question, **about} | _measure(_taught(thing))


KINDS: Mapping[TrainingFormat, frozenset[Kind]] = {
    "kto": frozenset({"answer"}),
    "dpo": frozenset({"answer", "correction"}),
    "sft": frozenset({"answer", "correction"}),
    "triplets": frozenset({"answer", "fact", "shown"}),
    "text2sql": frozenset({"sql"}),
    "evals": frozenset({"answer", "correction", "fact"}),
}
"""The things that each format is made from."""

_FORMATS: Mapping[TrainingFormat, Callable[[Need], Iterator[Line]]] = {
    "kto": _kto,
    "dpo": _dpo,
    "sft": _sft,
    "triplets": _triplets,
    "evals": _evals,
}


def lines(
    format: TrainingFormat, name: str, need: Need, split: TrainingSplit, schemas: Mapping[str, Schema]
) -> list[tuple[str, bytes]]:
    """The lines of one need, with their ids, in the order of these."""
    found = {}
    made = _text2sql(need, schemas) if format == "text2sql" else _FORMATS[format](need)
    place = {"connector": schemas[need.scope].connector} if format == "text2sql" else {"dataset": need.scope}
    for line in made:
        whole = line | {"need": name, "split": split} | place
        digest = hashlib.blake2b(orjson.dumps(whole, option=orjson.OPT_SORT_KEYS), digest_size=8).hexdigest()
        found[digest] = orjson.dumps(whole | {"id": digest}, option=orjson.OPT_APPEND_NEWLINE)
    return sorted(found.items())


def split_of(need: str, test_share: float) -> TrainingSplit:
    """The side of a need, which depends on its name alone.

    >>> [split_of("0f" * 8, share) for share in (0.0, 0.05, 0.1)]
    ['train', 'train', 'test']
    """
    return "test" if int(need, 16) < test_share * 16 ** len(need) else "train"
