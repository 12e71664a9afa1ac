"""What the proven questions of a connector teach about words: which may stand for which, and where.

Two proven questions with the same SQL but for its values, and the same words but in one place, show that the words in
that place are interchangeable. Two with different SQL show that they are not.
"""

from __future__ import annotations

import threading
from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple, TypeVar

from cachetools import FIFOCache

from heedful.sql.reuse.consensus import Agreement, Author, Consensus, is_settled, less
from heedful.sql.reuse.dated_literals import DatedLiteral, Shape, dated_literals
from heedful.sql.reuse.moments import moments, resolution, unnamed
from heedful.sql.reuse.periods import Period, periods
from heedful.sql.reuse.query_parts import Literal, Query, parse_query
from heedful.sql.reuse.question_reading import (
    MAX_WORDS,
    Frame,
    Span,
    frame,
    in_order,
    is_name,
    name,
    read,
    spans,
    vocabulary,
)
from heedful.sql.reuse.question_words import DATE, NUMBER, is_slot, number
from heedful.sql.reuse.values import Values, other_numbers, plain, split
from heedful.sql.reuse.verbs import Mark, opposition

Words = tuple[str, ...]
Comparisons = tuple[tuple[str, str, str], ...]
Made = TypeVar("Made")
_MAX_SWAP_WORDS = 3  # Words in a row that are exchanged as a whole.
_GAP = "_"
_MAX_CACHED = 20_000  # Questions with SQL whose reading is kept, proven or not.
_MAX_RECALLED = 1_000  # What was made of questions that are kept until a proven one is added or removed.
_MAX_RECALLED_APART = 20
_LONGEST_PART = 4  # Signs of a year, the longest part of a date.
_MAX_ALIKE = 50  # Proven questions that are looked at beside those that similarity finds.


class Swap(NamedTuple):
    """What is known about exchanging some words.

    `places` are the SQL templates that were proven with both, and in how many places each; there are none where the
    SQL changed with the words somewhere. What one author alone proves is not `shared`, unless there is no other.
    """

    places: Counter[str]
    shared: bool


class Evidence:
    """The proven questions of one connector; they can be added and removed one by one.

    Threads may read it at the same time, but not while one of them adds or removes.
    """

    def __init__(self, dialect: str, values: Values, proven: Iterable[ProvenQuery] = ()) -> None:
        self.dialect = dialect
        self.values = values
        self.vocabulary: Counter[str] = Counter()
        """The words of proven questions as they were typed."""
        self._studies: dict[Hashable, Study | None] = {}
        self._read: FIFOCache[tuple[str, str, date | None], Study | None] = FIFOCache(_MAX_CACHED)
        self._reading = threading.Lock()
        self._members: dict[Words, dict[str, dict[Words, list[Hashable]]]] = {}
        self._ids: dict[tuple[Words, str], list[Hashable]] = {}
        """Those of each key and template. All are sorted: in what order they came must not matter."""
        self._fills: dict[Words, dict[Words, Counter[str]]] = {}
        self._holes: dict[Words, Counter[Words]] = defaultdict(Counter)
        self._keys: dict[Words, Counter[Words]] = defaultdict(Counter)
        self._said_by: dict[tuple[Words, str], Counter[Author]] = defaultdict(Counter)
        self._texts: dict[tuple[str, Comparisons], Counter[str]] = defaultdict(Counter)
        self._marks: dict[tuple[str, str], Counter[Mark]] = defaultdict(Counter)
        """What small words say of a word, by the template and the word."""
        self._proven: dict[Hashable, ProvenQuery] = {}
        self._by_author: Counter[Author] = Counter()
        self._by_template: dict[str, Counter[Author]] = defaultdict(Counter)
        self._consensus = Consensus(vocabulary(values).names)
        self._recalled: dict[Hashable, Any] = {}
        self._max_recalled = _MAX_RECALLED
        for each in proven:
            self.add(each)

    def apart(self) -> Evidence:
        """An empty one for the same database, which shares how questions and SQL were read, and is forgetful: there may
        be hundreds of them."""
        made = Evidence(self.dialect, self.values)
        made._read, made._reading = self._read, self._reading
        made._max_recalled = _MAX_RECALLED_APART
        return made

    def recalled(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What was made for a key since a question was last added or removed, or is made now."""
        try:
            found: Made = self._recalled[key]
        except KeyError:
            if len(self._recalled) >= self._max_recalled:
                self._recalled.clear()
            found = self._recalled[key] = make()
        return found

    def study(self, proven: ProvenQuery) -> Study | None:
        """A proven question read together with its SQL, or None when the SQL can't be read."""
        if proven.id in self._studies:
            return self._studies[proven.id]
        is_dated = bool(moments(proven.sql, self.dialect))
        key = proven.question, proven.sql, resolution(proven.sql, self.dialect, proven.at) if is_dated else None
        with self._reading:
            if key in self._read:
                return self._read[key]
        made = study(proven.question, proven.sql, self.dialect, self.values, proven.at)
        with self._reading:
            self._read[key] = made
        return made

    def add(self, proven: ProvenQuery) -> None:
        """Count a proven question in."""
        self._recalled.clear()
        known = self._studies[proven.id] = self.study(proven)
        if known is None or len(known.words) > MAX_WORDS:
            return
        key, words, template = known.frame.key, known.frame.words, known.template
        members = self._members.setdefault(key, {}).setdefault(template, {})
        insort(members.setdefault(_values(known.frame), []), proven.id, key=str)
        insort(self._ids.setdefault((key, template), []), proven.id, key=str)
        for each in known.open:
            self._texts[template, each.comparisons][each.text] += 1
        for said in known.frame.marks:
            self._marks[template, said.word][said.mark] += 1
        self._proven[proven.id] = proven
        self.vocabulary.update(known.words)
        self._by_author.update(proven.authors)
        self._by_template[template].update(proven.authors)
        self._consensus.add(proven.id, known.frame, template, proven.authors)
        is_new = (words, template) not in self._said_by
        self._said_by[words, template].update(proven.authors)
        if is_new:
            for hole, fill in _holes(words):
                self._fills.setdefault(hole, {}).setdefault(fill, Counter())[template] += 1
                self._holes[fill][hole] += 1
                self._keys[hole][key] += 1

    def remove(self, proven_id: Hashable) -> None:
        """Take a proven question out."""
        self._recalled.clear()
        known = self._studies.pop(proven_id, None)
        if known is None or len(known.words) > MAX_WORDS:
            return
        key, words, template = known.frame.key, known.frame.words, known.template
        members, values = self._members[key], _values(known.frame)
        members[template][values].remove(proven_id)
        self._ids[key, template].remove(proven_id)
        if not members[template][values]:
            del members[template][values]
        if not members[template]:
            del members[template], self._ids[key, template]
        for each in known.open:
            less(self._texts[template, each.comparisons], each.text)
        for said in known.frame.marks:
            less(self._marks[template, said.word], said.mark)
        for word in known.words:
            less(self.vocabulary, word)
        authors = self._proven.pop(proven_id).authors
        self._by_author -= Counter(authors)
        self._by_template[template] -= Counter(authors)
        self._consensus.remove(proven_id, known.frame, template)
        self._said_by[words, template] -= Counter(authors)
        if not self._said_by[words, template]:
            del self._said_by[words, template]
            for hole, fill in _holes(words):
                less(self._fills[hole][fill], template)
                less(self._holes[fill], hole)
                less(self._keys[hole], key)

    def templates(self, key: Words) -> dict[str, int]:
        """The SQL templates proven for a frame, and with how many different values."""
        return {template: len(values) for template, values in self._members.get(key, {}).items()}

    def by_template(self) -> dict[str, list[ProvenQuery]]:
        """What is proven, by SQL template."""
        found: dict[str, list[ProvenQuery]] = defaultdict(list)
        for proven_id, proven in self._proven.items():
            known = self._studies[proven_id]
            assert known is not None
            found[known.template].append(proven)
        return found

    def proven(self, ids: Iterable[Hashable]) -> list[ProvenQuery]:
        """What is proven, by id."""
        return [self._proven[each] for each in ids]

    def marks(self, template: str, word: str) -> Iterable[Mark]:
        """What small words say of a word in the questions proven with a template."""
        return self._marks.get((template, word), ())

    def is_disputed(self, frame: Frame, template: str) -> bool:
        """Whether those who prove a frame don't agree on a template. Each author has one vote, however much they prove.

        Those who use the words that were asked decide: all of them, or those that carry meaning. About the very same
        question, those who prove it decide, unless they disagree, or as many others prove other SQL in these words.
        """
        members = self._members.get(frame.key, {})
        if not members.keys() - {template}:
            return False
        proven = [(name, ids) for name, by_values in members.items() for ids in by_values.values()]
        worded = self._alike(proven, frame, _is_worded_alike)
        same = self._alike(worded, frame, _has_same_values)
        templates = {name for name, _ in same}
        others = self._authors_of([each for each in worded if each[0] not in templates]) - self._authors_of(same)
        if len(templates) == 1 and len(self._authors_of(same)) > len(others):
            worded = same
        proven = worded or self._alike(proven, frame, _says_alike) or proven
        votes = [(author, name) for name, ids in proven for author in self._authors_of([(name, ids)])]
        return not is_settled(votes, template)

    def _alike(
        self, proven: Sequence[tuple[str, list[Hashable]]], frame: Frame, is_alike: Callable[[Frame, Frame], bool]
    ) -> list[tuple[str, list[Hashable]]]:
        """Those of proven questions, by their templates, whose frame is like another one."""
        found = [(name, [each for each in ids if is_alike(frame, self._frame(each))]) for name, ids in proven]
        return [(name, ids) for name, ids in found if ids]

    def _frame(self, proven_id: Hashable) -> Frame:
        known = self._studies[proven_id]
        assert known is not None
        return known.frame

    def _authors_of(self, proven: Sequence[tuple[str, list[Hashable]]]) -> frozenset[Author]:
        return frozenset(author for _, ids in proven for each in ids for author in self._proven[each].authors)

    def distinct_values(self, template: str, value: OpenValue) -> int:
        """With how many different values a template is proven in the place of this one."""
        return len(self._texts.get((template, value.comparisons), ()))

    def is_shared(self, template: str) -> bool:
        """Whether several authors have proven a template, or there is only one author of all that is proven."""
        return len(self._by_template.get(template, ())) > 1 or len(self._by_author) == 1

    def agreed(self, frame: Frame) -> Agreement | None:
        """What the nearest proven questions with the same kinds of values agree on."""
        return self._consensus.agreed(frame)

    def is_contested(self, frame: Frame, template: str) -> bool:
        """Whether questions of the same words, in any order, are proven with another template, and none with this."""
        return self._consensus.is_contested(frame, template)

    def likely(self, frame: Frame) -> Agreement | None:
        """What is probably meant, where nothing is agreed on."""
        return self._consensus.likely(frame)

    def like(self, frames: Sequence[Frame]) -> list[Hashable]:
        """Proven questions with one of these frames, or all but a few words of it: one for each template and
        frame, with the same values if there is one.
        """
        same: set[Hashable] = set()
        near: set[Hashable] = set()
        for each in frames:
            same |= self._first(each.key, each)
            keys = set[Words]()
            for hole, _ in _holes(each.words):
                # Where nothing else is left, nothing says what is asked.
                if not all(word == _GAP or is_slot(word) for word in hole):
                    keys.update(self._keys.get(hole, ()))
            for key in keys:
                near |= self._first(key, each)
        return [*sorted(same, key=str), *sorted(near - same, key=str)][:_MAX_ALIKE]

    def _first(self, key: Words, frame: Frame) -> set[Hashable]:
        """The first proven question of each template with a key, with the values of a frame if there is one."""
        return {
            (members.get(_values(frame)) or self._ids[key, template])[0]
            for template, members in self._members.get(key, {}).items()
        }

    def knows(self, word: str) -> bool:
        """Whether a proven question has the word."""
        return bool(self._holes.get((word,)))

    def swap(self, old: Words, new: Words) -> Swap:
        """What is known about saying `new` in place of `old`."""
        few, many = sorted((self._holes.get(old, Counter()), self._holes.get(new, Counter())), key=len)
        authors: set[Author] = set()
        places: Counter[str] = Counter()
        for hole in few:
            if hole in many:
                fills = self._fills[hole]
                common = fills[old].keys() & fills[new].keys()
                if not common:
                    return Swap(Counter(), shared=False)
                places.update(common)
                for fill, name in product((old, new), common):
                    authors |= self._said_by[_filled(hole, fill), name].keys()
        return Swap(places, shared=len(authors) > 1 or len(self._by_author) == 1)


def _has_same_values(asked: Frame, proven: Frame) -> bool:
    return _values(asked) == _values(proven)


def _is_worded_alike(asked: Frame, proven: Frame) -> bool:
    return asked.wording == proven.wording


def _says_alike(asked: Frame, proven: Frame) -> bool:
    """Whether the words that carry meaning are the same ones, and the small words don't contradict each other."""
    mine, theirs = (
        tuple(typed for word, typed in zip(frame.words, frame.typed, strict=True) if not is_slot(word))
        for frame in (asked, proven)
    )
    marks = {each.word: each.mark for each in proven.marks}
    return mine == theirs and not any(opposition(each.mark, [marks.get(each.word, Mark())]) for each in asked.marks)


def _values(frame: Frame) -> Words:
    return tuple(slot.text for slot in frame.slots)


def _holes(words: Words) -> Iterator[tuple[Words, Words]]:
    """What is left of a frame around each run of words, with that run."""
    for start in range(len(words) + 1):
        for stop in range(start, min(len(words), start + _MAX_SWAP_WORDS) + 1):
            fill = words[start:stop]
            if any(map(is_slot, fill)):
                break
            yield (*words[:start], _GAP, *words[stop:]), fill


def _filled(hole: Words, fill: Words) -> Words:
    """The frame of which a hole is left without some words."""
    place = hole.index(_GAP)
    return (*hole[:place], *fill, *hole[place + 1 :])


_SETTLED = ("eq", "neq", "in", "gt", "gte", "lt", "lte", "between", "limit", "is")


class ProvenQuery(NamedTuple):
    """An execution by its id: a question, the SQL that is proven to answer it, and when that was."""

    id: Hashable
    question: str
    sql: str
    at: datetime
    authors: frozenset[Author] = frozenset((None,))
    """Who says that it is right; None is the program."""


@dataclass(frozen=True, slots=True)
class OpenValue:
    """A value that stands once in the question, and in the SQL at these literals."""

    start: int
    text: str
    kind: str
    literals: tuple[Literal, ...]
    certain: bool = True
    """Whether one question shows that the literals come from it; otherwise two with different values do."""
    held: str = ""
    """What the literals have, where that is the singular or plural of what the question says."""

    @property
    def span(self) -> Span:
        """The words of the question that are the value."""
        return Span(self.start, self.start + len(self.text.split()), (self.kind,), self.held)

    @property
    def comparisons(self) -> Comparisons:
        """The columns that the value is compared with, and how: the same in another spelling of the SQL."""
        return tuple(sorted((*(each.column or ("", "")), each.operator) for each in self.literals))


@dataclass(frozen=True)
class Study:
    """A proven question read together with its SQL. Its frame also has the numbers that the SQL doesn't use."""

    words: tuple[str, ...]
    query: Query
    open: tuple[OpenValue, ...]
    frame: Frame
    fixed: tuple[str, ...]
    """Values that stand in the question and are not open: known ones, and texts of the SQL."""
    dated: tuple[DatedLiteral, ...] = ()
    """Literals that follow from the periods of the question which are open, by their places among those."""
    passing: tuple[int, ...] = ()
    """The places of dates that the question doesn't name: another proof of it has others on another day."""

    @cached_property
    def template(self) -> str:
        """The SQL without its open values. It takes longer than the rest, and most candidates are refused before."""
        return self.query.template([*[literal.place for each in self.open for literal in each.literals], *self.passing])

    @property
    def values(self) -> list[tuple[str, str]]:
        """The values of the frame, as (kind, words)."""
        return [(slot.kind, slot.text) for slot in self.frame.slots]


def study(question: str, sql: str, dialect: str, values: Values, at: datetime) -> Study | None:
    """Read a question with the SQL that was proven for it at a time, or None when the SQL can't be read."""
    query = parse_query(sql, dialect)
    if query is None:
        return None
    words = read(question)
    known = spans(words, values)
    groups: dict[tuple[str, bool], list[Literal]] = {}
    for literal in query.literals:
        text = plain(literal.searched or "") if literal.quoted else number(literal.text)
        if text:
            groups.setdefault((text, literal.quoted), []).append(literal)
    found: list[OpenValue] = []
    taken: set[int] = set()
    for (text, quoted), literals in sorted(groups.items(), key=lambda item: -len(item[0][0].split())):
        kind = _kind(text, quoted, literals, values)
        said, held = text, ""
        if quoted and kind is not None and not _places(words, text, quoted):
            others = [each for each in other_numbers(text) if each in words]
            said, held = (others[0], text) if others and values.columns_of(text) else (text, "")
        places = [at for at in _places(words, said, quoted) if taken.isdisjoint(range(at, at + len(said.split())))]
        taken.update(place for at in places for place in range(at, at + len(said.split())))
        if len(places) == 1 and kind is not None and not _inside(places[0], said, known):
            certain = all(each.operator in _SETTLED for each in literals) and (len(literals) == 1 or quoted)
            found.append(OpenValue(places[0], said, kind, tuple(literals), certain, held))
    named, dated = _open_periods(words, query, found, values, at)
    within = [Span(each.start, each.stop, (DATE,)) for each in named]
    found = [each for each in found if not any(each.span.overlaps(span) for span in within)]
    for place, span in enumerate(within):
        own = tuple(each.literal for each in dated if any(edge.period == place for edge in each.edges))
        found.append(OpenValue(span.start, name(words, span), DATE, own))
        taken.update(range(span.start, span.stop))
    known = [span for span in known if not any(span.overlaps(each) for each in within)]
    found.sort(key=lambda each: each.start)
    chosen = []
    for each in found:
        kinds = next((span.kinds for span in known if span.start == each.start), (each.kind,))
        chosen.append((each.span._replace(kinds=kinds), each.kind))
    chosen += [(span, span.kinds[0]) for span in known if _is_ignored(words, span, taken, groups)]
    opened = {each.text for each in found} | {plain(each.literal.searched or "") for each in dated}
    texts = {text for text, quoted in groups if quoted and _places(words, text, quoted)}
    fixed = tuple(sorted((texts | {name(words, span) for span in known if is_name(span)}) - opened))
    bound = {literal.place for each in found for literal in each.literals}
    passing = _passing(question, query, at, bound)
    made = in_order(frame(words, chosen, vocabulary(values)), {each.start: each for each in named}, at)
    return Study(words, query, tuple(found), made, fixed, tuple(dated), passing)


def _open_periods(
    words: Sequence[str], query: Query, found: Sequence[OpenValue], values: Values, at: datetime
) -> tuple[list[Period], list[DatedLiteral]]:
    """The periods that decide about dates of the SQL, and these dates. A year that is a number like others is none, nor
    is a value of a column."""
    named = periods(tuple(words))
    if not named:
        return [], []
    found = [each for each in found if each.kind == NUMBER or _is_held(each, values)]
    held = {literal.place: each for each in found for literal in each.literals}
    chosen: list[Period] = []
    by_literal: dict[tuple[int, Shape], DatedLiteral] = {}
    for period, dated in zip(named, dated_literals(query, named, at), strict=True):
        span = Span(period.start, period.stop, (DATE,))
        others = [held.get(each.literal.place) for each in dated]
        explained = {each.literal.place for each in dated}
        is_own = all(each is None or each.span.overlaps(span) for each in others)
        inside = [literal.place for each in found if each.span.overlaps(span) for literal in each.literals]
        if all(others) or not is_own or not explained.issuperset(inside):
            continue
        for each in dated:
            # It may follow from another period as well.
            before = by_literal.get((each.literal.place, each.shape))
            edges = [edge._replace(period=len(chosen)) for edge in each.edges]
            by_literal[each.literal.place, each.shape] = each._replace(
                edges=(*(before.edges if before is not None else ()), *edges)
            )
        chosen.append(period)
    return chosen, list(by_literal.values())


def _is_held(value: OpenValue, values: Values) -> bool:
    """Whether a column that a value is compared with has it."""
    columns = (each.column for each in value.literals if each.column is not None)
    return any(values.has(*column, value.held or value.text) for column in columns)


def _passing(question: str, query: Query, at: datetime, bound: Set[int]) -> tuple[int, ...]:
    texts = unnamed(question, query.sql, query.dialect, at)
    return tuple(
        each.place
        for each in query.literals
        # A short number may be anything else where it occurs a second time.
        if each.text in texts and len(each.text) > _LONGEST_PART and each.span and each.place not in bound
    )


def _is_ignored(words: Sequence[str], span: Span, taken: Set[int], literals: Mapping[tuple[str, bool], object]) -> bool:
    """Whether a question names a number that its SQL doesn't use: it is asked for, whatever is answered."""
    text = name(words, span)
    is_used = (text, True) in literals or (str(number(text)), False) in literals
    return not is_used and span.kinds == (NUMBER,) and taken.isdisjoint(range(span.start, span.stop))


def _places(words: Sequence[str], text: str, quoted: bool) -> list[int]:
    if not quoted:
        return [place for place, word in enumerate(words) if number(word) == text]
    wanted = split(text)
    return [at for at in range(len(words) - len(wanted) + 1) if list(words[at : at + len(wanted)]) == wanted]


def _inside(start: int, text: str, known: Sequence[Span]) -> bool:
    """Whether the words are only a part of a longer value, as "york" in "new york"."""
    stop = start + len(text.split())
    return any(span.start < stop and start < span.stop and span.stop - span.start > stop - start for span in known)


def _kind(text: str, quoted: bool, literals: Sequence[Literal], values: Values) -> str | None:
    """What kind of value the literals are, or None when that can't be known."""
    if any(literal.span is None for literal in literals):
        return None
    if not quoted:
        # LIMIT 1 comes from a superlative, whatever number the question names.
        return NUMBER if all((literal.operator, text) != ("limit", "1") for literal in literals) else None
    if any(literal.operator not in (*_SETTLED, "like") for literal in literals):
        return None
    columns = {literal.column for literal in literals}
    if len(columns) > 1 and all(literal.operator == "like" for literal in literals):
        # A text that is searched in several columns is of the kind of those that hold it.
        columns &= values.columns_of(text)
    if None in columns:
        return None
    kinds = {values.kind(*column) for column in columns if column is not None}
    return kinds.pop() if len(kinds) == 1 else None
