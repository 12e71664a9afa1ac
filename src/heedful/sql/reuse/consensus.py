"""Proven questions that agree: the nearest ones with the same kinds of values, and what their SQL is asked with.

The words of one proven question say little about which of them matter. Those of all questions proven with one SQL
template do: a question whose words all occur among them, which lacks none that most of them have and whose nearest
neighbours all have that template asks for the same.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import NamedTuple, TypeVar

from heedful.caching import cache_short
from heedful.sql.reuse.question_reading import POLAR, Frame, canonical
from heedful.sql.reuse.question_words import DECIDING, GENERIC, OPERATORS, Words, is_slot, number, split
from heedful.text.regex import regex
from heedful.text.same_question import difference

Kinds = tuple[str, ...]
Author = str | None
Item = TypeVar("Item", bound=Hashable)

NEIGHBOURS = 2
"""The nearest proven questions that must all have the same SQL template."""

CORE_SHARE = 0.8
"""The share of a template's questions that have a word from which on it may not be missing."""

OPTIONAL_SHARE = 0.5
OPTIONAL_TEMPLATES = 3
"""A word is optional that at least so many templates are asked with and without, and none mostly with."""

WITNESSES = 2
"""Pairs of proven questions, the same but for one word, that show that their words are exchangeable."""

MAX_EXCHANGED = 2

TIED_SHARE = 0.8
"""The share of the authors, and of what each of them proves, that settles which of several templates is meant."""

MIN_LIKENESS, MARGIN = 0.4, 0.1
"""How like the nearest question must be, and by how much others may be less like to be as near as it."""

LIKELY, LIKELY_MARGIN = 0.6, 0.2
"""How like a question must be to be suggested, and by how much more like than any with other SQL."""

# Words that only make a sentence of the others: closed classes of English, and what requests begin with.
_QUIET = """
a an the is are was were be been being am do does did done has have had having can could will would shall should may
might must i me we us you he him she her it they them one ones thing things such either if so also just still ever
what which that there these those this whose here now currently of in within with on at to from by for about as into
onto upon during among toward towards through throughout via s t d ll re ve m please want need know see let get
show list find any located situated
"""
QUIET = frozenset(("the_", *_QUIET.split())) | {form for word in _QUIET.split() for form in canonical((word,))}

# Words beside a value that make it another question: not that one, or somewhere else.
_ELSEWHERE = """
outside beyond near nearby close around far away off opposite against unlike despite beside besides minus instead
regardless aside apart north south east west avoid bypass omit skip ignore lack miss missing fail failed failing failure
reject rejected refuse refused deny denied cancel cancelled canceled excluded exclusion exception inverse reverse
"""
ELSEWHERE = frozenset(form for word in _ELSEWHERE.split() for form in canonical((word,)))
_NEGATING = regex(r"(?:un|non|dis|mis|anti)\w{3,}|\w{3,}less")

# Prepositions that compare only before numbers, where they have another name.
_OPEN_DECIDING = frozenset(("by", "over", "above", "under", "below"))
_TIMES = frozenset(("next", "previous", "past", "current", "coming", "upcoming", "recent"))
_AGAIN = frozenset(("back", "return", "again", "else", "instead"))  # They ask for more than the rest does.
_NOT = frozenset(("no", "not", "without", "non"))
_OF_COUNTING = frozenset(("as", "for", "toward", "towards"))
_MAX_KNOWN = 1_000  # Questions whose neighbours are kept until a proven one is added or removed.
_COUNTED = regex(r"\bCOUNT\([^()]*\)")
_VALUE = regex(r"'(?:[^']|'')*'|\b\d+(?:\.\d+)?\b")


class Terms(NamedTuple):
    """The words and kinds of a frame, whatever their order."""

    kinds: Kinds
    content: frozenset[str]
    """The words that carry meaning; the second "state" of a frame is another word than the first."""
    deciding: Words
    """The words that compare, count or negate."""
    pairs: frozenset[tuple[str, str]]
    """Those that compare, each with the word that follows it: "largest" what?"""
    head: str
    """The first word that carries meaning: mostly what is asked for."""
    governing: frozenset[str]
    """The words directly before a value: "visits fail in ‹city.name›"."""

    def compares_like(self, other: Terms) -> bool:
        """Whether both compare, count and negate alike."""
        return (self.deciding, self.pairs) == (other.deciding, other.pairs)


def terms(frame: Frame) -> Terms:
    """The kinds of a frame's values, and its words."""
    said = _said(frame)
    words = [word for word in said if not is_slot(word)]
    counted: Counter[str] = Counter()
    content = []
    for word in words:
        if not _decides(word):
            counted[word] += 1
            content.append(word if counted[word] == 1 else f"{word}#{counted[word]}")
    pairs = {(word, after) for word, after in pairwise([*said, ""]) if word in OPERATORS or word in _TIMES}
    pairs |= {("to", word) for word in frame.words if is_slot(word) and word.startswith("to ")}
    governing = frozenset(word for word, after in pairwise(said) if is_slot(after) and not is_slot(word))
    deciding = tuple(sorted(word for word in words if _decides(word)))
    head = next((word for word in words if word != POLAR and not _decides(word)), "")
    kinds = tuple(sorted(slot.kind for slot in frame.slots))
    return Terms(kinds, frozenset(content), deciding, frozenset(pairs), head, governing)


def _said(frame: Frame) -> list[str]:
    """The words without those that carry nothing where they stand."""
    words = [part for word in frame.words for part in word.split(" ")]
    found: list[str] = []
    before = ""
    has_words = False
    last_and = max((place for place, word in enumerate(words) if word == "and"), default=-1)
    for place, (word, after) in enumerate(zip(words, _following(words), strict=True)):
        if word not in QUIET:
            beside, before = (before, after), word
            # "Papers in the journal Cell" are those in Cell, once that is one. What comes first is asked for.
            if has_words and not _decides(word) and any(word in _names(neighbour) for neighbour in beside):
                continue
        joins = is_slot(after) or number(after) is not None
        if word in QUIET or (word == "and" and not joins) or (word == "both" and place < last_and):
            continue
        if word == "count" and words[place + 1 : place + 2] and words[place + 1] in _OF_COUNTING:
            word = "count+as"  # "Classes that count as electives" are not counted.
        found.append("not" if word in _NOT else word)
        has_words = has_words or not is_slot(word)
    return found


def _following(words: Sequence[str]) -> list[str]:
    """The next word after each that carries meaning."""
    following = [""] * len(words)
    for place in range(len(words) - 1, 0, -1):
        following[place - 1] = following[place] if words[place] in QUIET else words[place]
    return following


@cache_short(entries=4_096, characters=300)
def _names(slot: str) -> frozenset[str]:
    """The names for values of a kind: "‹journal.journal_name›" is a "journal", and "‹author.name›" an "author"."""
    if not is_slot(slot):
        return frozenset()
    table, _, column = slot.strip("‹›").rpartition(".")
    for name in (column, table):
        parts = {part for word in split(name.replace("_", " ")) for part in (word, *map(word.removesuffix, GENERIC))}
        named = {form for part in parts - GENERIC - {""} for form in canonical((part,))}
        if named:
            return frozenset(named | {f"{form}+ed" for form in named})
    return frozenset()


@cache_short(entries=4_096, characters=2_000)
def _returned(template: str) -> frozenset[str]:
    """The words that name what a template returns."""
    shown = template.partition(" FROM ")[0].replace("_", " ")
    return frozenset(form for word in split(shown) for form in canonical((word,)))


Rest = tuple[Kinds, Words, frozenset[str]]


def _rests(said: Terms) -> Iterator[tuple[Rest, str]]:
    """The rest of a question besides each of its words, with that word; and all of it, with none."""
    for word in said.content:
        yield (said.kinds, said.deciding, said.content - {word}), word
    yield (said.kinds, said.deciding, said.content), ""


def _decides(word: str) -> bool:
    if word in _TIMES or word in _AGAIN:
        return True
    return (word in DECIDING and word not in _OPEN_DECIDING) or number(word) is not None


@dataclass(slots=True)
class _Template:
    """The questions proven with one SQL template and the same kinds of values."""

    shape: str
    """The template without any values, and without what it counts."""
    words: Counter[str] = field(default_factory=Counter)
    pairs: Counter[frozenset[tuple[str, str]]] = field(default_factory=Counter)
    heads: Counter[str] = field(default_factory=Counter)
    members: dict[Hashable, Terms] = field(default_factory=dict)
    alike: dict[tuple[frozenset[str], Words], dict[Hashable, None]] = field(default_factory=dict)
    """The members by what makes them alike: content and deciding words."""


def is_settled(votes: Iterable[tuple[Author, str]], template: str) -> bool:
    """Whether authors agree on a template, given what each of them has proven.

    >>> is_settled([("ann", "a"), ("bo", "a"), ("cy", "a"), ("di", "a"), *[("eve", "b")] * 50], "a")
    True
    >>> is_settled([("ann", "a"), *[("eve", "b")] * 50], "b")
    False
    """
    by_author: dict[Author, Counter[str]] = defaultdict(Counter)
    for author, name in votes:
        by_author[author][name] += 1
    agreeing = sum(counts[template] >= TIED_SHARE * counts.total() for counts in by_author.values())
    return agreeing >= TIED_SHARE * len(by_author)


class Agreement(NamedTuple):
    """Proven questions that agree on the SQL for another one, the nearest first."""

    template: str
    ids: list[Hashable]


Scored = tuple[float, str, dict[Hashable, None]]
"""How like proven questions with the same words are, their template, and their ids."""


def _has_rival(template: str, groups: Mapping[str, _Template], scored: Sequence[Scored]) -> bool:
    """Whether questions that are at least half as near as the nearest have SQL that differs in a value, or in what it
    counts: the question that was asked doesn't say which is meant."""
    shape, best = groups[template].shape, scored[0][0]
    return any(score >= best / 2 and name != template and groups[name].shape == shape for score, name, _ in scored)


def count(counts: Counter[Item], items: Iterable[Item], step: int) -> None:
    """Counts items in, by a step of 1, or out, by -1; none stays with a count of 0."""
    for item in items:
        counts[item] += step
        if not counts[item]:
            del counts[item]


class Consensus:
    """The proven questions of one connector by the kinds of their values; they can be added and removed."""

    def __init__(self, columns: frozenset[str] = frozenset()) -> None:
        """`columns` are words that name something in the schema: they are never said for nothing."""
        self._columns = columns
        self._groups: dict[Kinds, dict[str, _Template]] = defaultdict(dict)
        self._authors: dict[Hashable, frozenset[Author]] = {}
        self._frequency: Counter[str] = Counter()
        self._users: dict[str, set[tuple[Kinds, str]]] = defaultdict(set)
        self._by_author: Counter[Author] = Counter()
        self._fills: dict[Rest, dict[str, dict[str, Counter[Author]]]] = defaultdict(dict)
        """Who has proven what, by the rest of a question, the word that fills it, and the template."""
        self._rests: dict[str, Counter[Rest]] = defaultdict(Counter)
        self._forget()

    def _forget(self) -> None:
        """Drops the conclusions, which hold until a question is added or removed."""
        self._optional: dict[tuple[str, int], bool] = {}
        self._exchanged: dict[tuple[str, str], bool] = {}
        self._weights: dict[frozenset[str], float] = {}
        self._agreed: dict[Terms, Agreement | None] = {}

    def add(self, proven_id: Hashable, frame: Frame, template: str, authors: frozenset[Author]) -> None:
        """Count a proven question in."""
        said = terms(frame)
        group = self._groups[said.kinds].get(template)
        if group is None:
            shape = _COUNTED.sub("COUNT(?)", _VALUE.sub("?", template))
            group = self._groups[said.kinds][template] = _Template(shape)
        self._authors[proven_id] = authors
        group.members[proven_id] = said
        group.alike.setdefault((said.content, said.deciding), {})[proven_id] = None
        self._count(said, group, template, authors, 1)

    def remove(self, proven_id: Hashable, frame: Frame, template: str) -> None:
        """Take a proven question out."""
        said = terms(frame)
        groups = self._groups[said.kinds]
        group = groups[template]
        del group.members[proven_id]
        same = group.alike[said.content, said.deciding]
        del same[proven_id]
        if not same:
            del group.alike[said.content, said.deciding]
        if not group.members:
            del groups[template]
        self._count(said, group, template, self._authors.pop(proven_id), -1)

    def _count(self, said: Terms, group: _Template, template: str, authors: frozenset[Author], step: int) -> None:
        self._forget()
        count(self._by_author, authors, step)
        count(self._frequency, said.content, step)
        count(group.words, said.content, step)
        count(group.pairs, [said.pairs], step)
        count(group.heads, [said.head], step)
        for word in said.content:
            change = self._users[word].add if word in group.words else self._users[word].discard
            change((said.kinds, template))
        for rest, fill in _rests(said):
            count(self._rests[fill], [rest], step)
            fills = self._fills[rest]
            proven = fills.setdefault(fill, {})
            count(proven.setdefault(template, Counter()), authors, step)
            if not proven[template]:
                del proven[template]
            if not proven:
                del fills[fill]
            if not fills:
                del self._fills[rest]

    def agreed(self, frame: Frame) -> Agreement | None:
        """The template that the nearest proven questions agree on, if the frame's words are those of it."""
        said, agreed = terms(frame), self._agreed
        if said not in agreed:
            if len(agreed) >= _MAX_KNOWN:
                agreed = self._agreed = {}  # Others may be reading the one that is full.
            agreed[said] = self._agreement(said)
        return agreed[said]

    def is_contested(self, frame: Frame, template: str) -> bool:
        """Whether questions of the same words, in any order, are proven with another template, and none with this."""
        said = terms(frame)
        words = said.content, said.deciding
        others = {name for name, group in self._groups.get(said.kinds, {}).items() if words in group.alike}
        return bool(others) and template not in others

    def likely(self, frame: Frame) -> Agreement | None:
        """The nearest proven question, if it compares alike and no other template is nearly as near."""
        said = terms(frame)
        groups = self._groups.get(said.kinds, {})
        scored = self._nearest(said, groups)
        if not scored or scored[0][0] < LIKELY:
            return None
        score, template, _ = scored[0]
        group = groups[template]
        nearest_ids = [
            proven_id for other, name, ids in scored if (other, name) == (score, template) for proven_id in ids
        ]
        proven_id = min(nearest_ids, key=lambda each: (not group.members[each].compares_like(said), str(each)))
        rival = next((other for other, name, _ in scored if name != template), 0.0)
        nearest = group.members[proven_id]
        if score - rival < LIKELY_MARGIN or not nearest.compares_like(said):
            return None
        # One word may be new, and one left out: then a person can tell at a glance what differs.
        new = [word for word in said.content if word not in group.words]
        left_out = [word for word in nearest.content if word not in said.content and group.words[word] > 1]
        if len(new) > 1 or len(left_out) > 1 or any(map(self._is_core, new)) or said.head not in group.heads:
            return None
        if _has_rival(template, groups, scored) or not self._is_harmless(said, nearest, template):
            return None
        # Not if the SQL returns what only the proven question names.
        is_named = _returned(template).isdisjoint(nearest.content - said.content)
        return Agreement(template, [proven_id]) if is_named else None

    def _is_harmless(self, said: Terms, nearest: Terms, template: str) -> bool:
        """Whether the words of one question alone neither negate nor exclude, as far as words tell: one that no other
        SQL is asked with must not govern a value, add a verb or look like the opposite of something."""
        for mine, other in ((said, nearest), (nearest, said)):
            others = other.content - mine.content
            adds_verb = not any(word.endswith("+ed") for word in others)
            for word in mine.content - other.content:
                if word in ELSEWHERE or any(difference(word, other_word) for other_word in others):
                    return False
                if self._users.get(word, set()) <= {(said.kinds, template)} and (
                    word in mine.governing or (adds_verb and word.endswith("+ed")) or _NEGATING.fullmatch(word)
                ):
                    return False
        return True

    def _agreement(self, said: Terms) -> Agreement | None:
        groups = self._groups.get(said.kinds, {})
        fitting = [template for template, group in groups.items() if self._fits(said, group)]
        if not fitting:
            return None
        scored = self._nearest(said, groups)
        counts = accumulate(len(ids) for _, _, ids in scored)
        last = next((score for (score, _, _), count in zip(scored, counts, strict=True) if count >= NEIGHBOURS), None)
        if last is None:
            return None
        # All that are about as near as the nearest: none of them is before the others.
        best = scored[0][0]
        least = min(last, best - MARGIN)
        nearest = [
            (score, template, proven_id) for score, template, ids in scored if score >= least for proven_id in ids
        ]
        votes = [(author, template) for _, template, each in nearest for author in self._authors[each]]
        template = next((template for template in fitting if is_settled(votes, template)), None)
        if template is None or best < MIN_LIKENESS or _has_rival(template, groups, scored):
            return None
        members = groups[template].members
        order = [
            (members[each].deciding != said.deciding, -score, str(each), each)
            for score, name, each in nearest
            if name == template
        ]
        order.sort(key=lambda entry: entry[:3])
        return None if order[0][0] else Agreement(template, [each for *_, each in order[:NEIGHBOURS]])

    def _is_optional(self, word: str, least: int = OPTIONAL_TEMPLATES) -> bool:
        """Whether a word comes and goes within the same SQL wherever it is used: then it says nothing."""
        if (word, least) not in self._optional:
            self._optional[word, least] = word not in self._columns and self._comes_and_goes(word, least)
        return self._optional[word, least]

    def _is_core(self, word: str) -> bool:
        """Whether some SQL is mostly asked for with this word: then it says what is asked for."""
        groups = [self._groups[kinds][template] for kinds, template in self._users.get(word, ())]
        return any(len(group.members) > 2 and group.words[word] >= CORE_SHARE * len(group.members) for group in groups)

    def _comes_and_goes(self, word: str, least: int) -> bool:
        coming = 0
        for kinds, template in self._users.get(word, ()):
            group = self._groups[kinds][template]
            share = group.words[word] / len(group.members)
            if share >= OPTIONAL_SHARE and len(group.members) > 1:
                return False
            coming += share < OPTIONAL_SHARE
        return coming >= least

    def _exchangeable(self, new: str, old: str) -> bool:
        """Whether proven questions show that one word may stand for the other, or be left out if that is empty."""
        if (new, old) not in self._exchanged:
            self._exchanged[new, old] = self._are_exchanged(new, old)
        return self._exchanged[new, old]

    def _are_exchanged(self, new: str, old: str) -> bool:
        none: Counter[Rest] = Counter()
        few, many = sorted((self._rests.get(new, none), self._rests.get(old, none)), key=len)
        agreeing = contrary = 0
        authors: set[Author] = set()
        for rest in few:
            if rest in many:
                fills = self._fills[rest]
                common = fills[new].keys() & fills[old].keys()
                agreeing += bool(common)
                contrary += not common
                for name in common:
                    authors |= fills[new][name].keys() | fills[old][name].keys()
        is_shared = len(authors) > 1 or len(self._by_author) == 1
        if agreeing < WITNESSES * (1 + 2 * contrary) or not is_shared:
            return False
        return difference(new, old) is None if old else self._is_optional(new, 0)

    def _fits(self, said: Terms, group: _Template) -> bool:
        """Whether the words of a frame are those that a template is asked with, but for a few that may differ."""
        if said.pairs not in group.pairs or (said.pairs and said.head not in group.heads):
            return False
        least = CORE_SHARE * len(group.members)
        missing = [word for word, count in group.words.items() if count >= least and word not in said.content]
        if len(missing) > MAX_EXCHANGED:
            return False
        unknown = [word for word in said.content if word not in group.words and not self._is_optional(word)]
        if len(missing) + len(unknown) > MAX_EXCHANGED:
            return False
        spare = [word for word in said.content if group.words[word] < least]
        absent = [word for word in group.words if word not in said.content]
        return all(any(self._exchangeable(word, new) for new in spare) for word in missing) and all(
            any(self._exchangeable(word, old) for old in ("", *absent)) for word in unknown
        )

    def _nearest(self, said: Terms, groups: dict[str, _Template]) -> list[Scored]:
        """The proven questions with the same kinds of values, those with the same words together, with how like they
        are; the most like first."""
        own = {word: self._weight(frozenset((word,))) for word in said.content}
        scored = [
            (self._likeness(said, own, content, deciding), template, ids)
            for template, group in groups.items()
            for (content, deciding), ids in group.alike.items()
        ]
        scored.sort(key=lambda each: -each[0])
        return scored

    def _likeness(self, said: Terms, own: Mapping[str, float], content: frozenset[str], deciding: Words) -> float:
        """The share of weight that is common: of words that carry meaning, the rarer the more, and of deciding ones."""
        common = sum(weight for word, weight in own.items() if word in content)
        both = sum(own.values()) + self._weight(content) - common
        common += len({*said.deciding} & {*deciding})
        both += len({*said.deciding, *deciding})
        # Rounded, because words are added up in any order.
        return round(common / both, 9) if both else 1.0

    def _weight(self, words: frozenset[str]) -> float:
        if words not in self._weights:
            self._weights[words] = sum(1.0 / (1.0 + math.log1p(self._frequency[word])) for word in words)
        return self._weights[words]
