"""Evidence of proven questions about words: which may stand for which, and which is a typing error.

Two proven questions with the same SQL but for its values, and the same words but in one place, show that the words in
that place are interchangeable. Two with different SQL show that they are not.
"""

from __future__ import annotations

import threading
from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import date, datetime
from difflib import SequenceMatcher
from functools import partial
from itertools import product
from string import ascii_lowercase
from typing import Any, TypeVar

from cachetools import FIFOCache

from heedful.caching import cache_short
from heedful.sql.reuse.consensus import Author, Consensus, count, is_settled
from heedful.sql.reuse.grammar import opposition
from heedful.sql.reuse.question_reading import MAX_WORDS, Frame, Span, canonical, is_common, vocabulary
from heedful.sql.reuse.question_words import COMPARING, FIXED, Mark, Words, is_slot, number, other_numbers, places
from heedful.sql.reuse.sql_dates import moments, names_time
from heedful.sql.reuse.study import Comparisons, OpenValue, ProvenQuery, Study, study
from heedful.sql.reuse.values import Values
from heedful.text.same_question import difference

Made = TypeVar("Made")
ByTemplate = tuple[str, list[Hashable]]
"""A SQL template, and the ids of questions that are proven with it."""
_MAX_SWAP_WORDS = 3  # Words in a row that are exchanged as a whole.
_GAP = "_"
_MAX_CACHED = 20_000  # Questions with SQL whose reading is kept, proven or not.
_MAX_RECALLED = 1_000  # What was made of questions that are kept until a proven one is added or removed.
_MAX_RECALLED_APART = 20
_MAX_ALIKE = 50  # Proven questions that are looked at beside those that similarity finds.


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
        """The marks of a word, by the template and the word."""
        self._proven: dict[Hashable, ProvenQuery] = {}
        self._by_author: Counter[Author] = Counter()
        self._by_template: dict[str, Counter[Author]] = defaultdict(Counter)
        self.consensus = Consensus(vocabulary(values).names)
        self._recalled: dict[Hashable, Any] = {}
        self._max_recalled = _MAX_RECALLED
        for query in proven:
            self.add(query)

    def apart(self) -> Evidence:
        """An empty one for the same database, which shares how questions and SQL were read, and is forgetful: there may
        be hundreds of them."""
        made = Evidence(self.dialect, self.values)
        made._read, made._reading = self._read, self._reading
        made._max_recalled = _MAX_RECALLED_APART
        return made

    def recalled(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """The value made for a key since a question was last added or removed; otherwise it is made now."""
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
        key = proven.question, proven.sql, self.resolution(proven.sql, proven.at) if is_dated else None
        with self._reading:
            if key in self._read:
                return self._read[key]
        made = study(proven.question, proven.sql, self.dialect, self.values, proven.at)
        with self._reading:
            self._read[key] = made
        return made

    def resolution(self, sql: str, at: datetime) -> date:
        """The day of a time, or its minute if the statement names a time of the day: for as long as that is the same,
        the statement answers the same questions."""
        return at.replace(second=0, microsecond=0) if names_time(sql, self.dialect) else at.date()

    def readable(self, proven: ProvenQuery) -> Study:
        """The same where it is known that the SQL can be read."""
        known = self.study(proven)
        assert known is not None
        return known

    def add(self, proven: ProvenQuery) -> None:
        """Count a proven question in."""
        self._recalled.clear()
        known = self._studies[proven.id] = self.study(proven)
        if known is None or len(known.words) > MAX_WORDS:
            return
        key, template = known.frame.key, known.template
        members = self._members.setdefault(key, {}).setdefault(template, {})
        insort(members.setdefault(_values(known.frame), []), proven.id, key=str)
        insort(self._ids.setdefault((key, template), []), proven.id, key=str)
        self._proven[proven.id] = proven
        self._count(known, proven.authors, 1)
        self.consensus.add(proven.id, known.frame, template, proven.authors)

    def remove(self, proven_id: Hashable) -> None:
        """Take a proven question out."""
        self._recalled.clear()
        known = self._studies.pop(proven_id, None)
        if known is None or len(known.words) > MAX_WORDS:
            return
        key, template = known.frame.key, known.template
        members, values = self._members[key], _values(known.frame)
        members[template][values].remove(proven_id)
        self._ids[key, template].remove(proven_id)
        if not members[template][values]:
            del members[template][values]
        if not members[template]:
            del members[template], self._ids[key, template]
        self._count(known, self._proven.pop(proven_id).authors, -1)
        self.consensus.remove(proven_id, known.frame, template)

    def _count(self, known: Study, authors: frozenset[Author], step: int) -> None:
        key, words, template = known.frame.key, known.frame.words, known.template
        for value in known.open:
            count(self._texts[template, value.comparisons], [value.text], step)
        for said in known.frame.marks:
            count(self._marks[template, said.word], [said.mark], step)
        count(self.vocabulary, known.words, step)
        said_by = self._said_by[words, template]
        was_said = bool(said_by)
        for by_author in (self._by_author, self._by_template[template], said_by):
            count(by_author, authors, step)
        if said_by and was_said:
            return
        if not said_by:
            del self._said_by[words, template]
        for hole, fill in _holes(words):
            count(self._fills.setdefault(hole, {}).setdefault(fill, Counter()), [template], step)
            count(self._holes[fill], [hole], step)
            count(self._keys[hole], [key], step)

    def templates(self, key: Words) -> dict[str, int]:
        """The SQL templates proven for a frame, and with how many different values."""
        return {template: len(values) for template, values in self._members.get(key, {}).items()}

    def by_template(self) -> dict[str, list[ProvenQuery]]:
        """The proven queries by SQL template."""
        found: dict[str, list[ProvenQuery]] = defaultdict(list)
        for proven in self._proven.values():
            found[self.readable(proven).template].append(proven)
        return found

    def proven(self, ids: Iterable[Hashable]) -> list[ProvenQuery]:
        """The proven queries with these ids."""
        return [self._proven[proven_id] for proven_id in ids]

    def marks(self, template: str, word: str) -> Iterable[Mark]:
        """The marks of a word in the questions proven with a template."""
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
        worded = self._of_frames(proven, lambda other: other.wording == frame.wording)
        same = self._of_frames(worded, lambda other: _values(other) == _values(frame))
        templates = {name for name, _ in same}
        others = self._authors_of([(name, ids) for name, ids in worded if name not in templates])
        others -= self._authors_of(same)
        if len(templates) == 1 and len(self._authors_of(same)) > len(others):
            worded = same
        proven = worded or self._of_frames(proven, partial(_says_alike, frame)) or proven
        votes = [(author, name) for name, ids in proven for author in self._authors_of([(name, ids)])]
        return not is_settled(votes, template)

    def _of_frames(self, proven: Sequence[ByTemplate], is_wanted: Callable[[Frame], bool]) -> list[ByTemplate]:
        wanted = (
            (name, [query for query in self.proven(ids) if is_wanted(self.readable(query).frame)])
            for name, ids in proven
        )
        return [(name, [query.id for query in queries]) for name, queries in wanted if queries]

    def _authors_of(self, proven: Sequence[ByTemplate]) -> frozenset[Author]:
        return frozenset(author for _, ids in proven for query in self.proven(ids) for author in query.authors)

    def distinct_values(self, template: str, value: OpenValue) -> int:
        """With how many different values a template is proven in the place of this one."""
        return len(self._texts.get((template, value.comparisons), ()))

    def is_shared(self, template: str) -> bool:
        """Whether several authors have proven a template, or there is only one author of all that is proven."""
        return len(self._by_template.get(template, ())) > 1 or len(self._by_author) == 1

    def like(self, frames: Sequence[Frame]) -> list[Hashable]:
        """Proven questions with one of these frames, or all but a few words of it: one for each template and
        frame, with the same values if there is one.
        """
        same: set[Hashable] = set()
        near: set[Hashable] = set()
        for frame in frames:
            same |= self._first(frame.key, frame)
            keys = set[Words]()
            for hole, _ in _holes(frame.words):
                # Where nothing else is left, nothing says what is asked.
                if not all(word == _GAP or is_slot(word) for word in hole):
                    keys.update(self._keys.get(hole, ()))
            for key in keys:
                near |= self._first(key, frame)
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

    def witnesses(self, old: Words, new: Words) -> Counter[str]:
        """The SQL templates that were proven with `new` in place of `old`, and in how many places each; none where the
        SQL changed with the words somewhere, or one author alone proved it, unless there is no other."""
        few, many = sorted((self._holes.get(old, Counter()), self._holes.get(new, Counter())), key=len)
        authors: set[Author] = set()
        places: Counter[str] = Counter()
        for hole in few:
            if hole in many:
                fills = self._fills[hole]
                common = fills[old].keys() & fills[new].keys()
                if not common:
                    return Counter()
                places.update(common)
                gap = hole.index(_GAP)
                for fill, name in product((old, new), common):
                    authors |= self._said_by[(*hole[:gap], *fill, *hole[gap + 1 :]), name].keys()
        return places if len(authors) > 1 or len(self._by_author) == 1 else Counter()


def _says_alike(asked: Frame, proven: Frame) -> bool:
    """Whether the words that carry meaning are the same ones, and the small words don't contradict each other."""
    mine, theirs = (
        tuple(typed for word, typed in zip(frame.words, frame.typed, strict=True) if not is_slot(word))
        for frame in (asked, proven)
    )
    marks = {said.word: said.mark for said in proven.marks}
    return mine == theirs and not any(opposition(said.mark, [marks.get(said.word, Mark())]) for said in asked.marks)


def _values(frame: Frame) -> Words:
    return tuple(slot.text for slot in frame.slots)


def _holes(words: Words) -> Iterator[tuple[Words, Words]]:
    """The rest of a frame around each run of words, with that run."""
    for start in range(len(words) + 1):
        for stop in range(start, min(len(words), start + _MAX_SWAP_WORDS) + 1):
            fill = words[start:stop]
            if any(map(is_slot, fill)):
                break
            yield (*words[:start], _GAP, *words[stop:]), fill


_NEAR = 8  # Words in which two frames may differ before they are held apart without looking closer.
_MAX_COMPARED = 200  # Words of two frames: where these differ is found in steps of the third power of their number.

MAX_SWAPS = 2
"""Places where learned words may differ."""

MIN_WITNESSES = 2
"""Pairs of proven questions, in other places or with other SQL, that show that words are interchangeable."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """Words that may be exchanged, as far as can be said without knowing the SQL."""

    new: Words
    old: Words
    places: Counter[str]

    def is_shown_for(self, known: Study) -> bool:
        """Whether proven questions show that they mean the same; those that compare, within this SQL template."""
        # To know the template takes long, and most of them don't depend on it.
        is_general = COMPARING.isdisjoint((*self.new, *self.old)) and len(self.places) >= MIN_WITNESSES
        return is_general or self.places[known.template] >= MIN_WITNESSES


def learned_readings(
    frames: Sequence[Frame], proven: Frame, evidence: Evidence
) -> Iterator[tuple[Frame, list[Exchange]]]:
    """The readings that may meet a proven frame when words are exchanged that are known to mean the same."""
    for frame in frames:
        swaps = exchanges(frame.words, proven.words)
        if len(swaps) <= MAX_SWAPS:
            found = [_exchange(new, old, evidence) for new, old in swaps]
            if all(exchange.places.total() >= MIN_WITNESSES for exchange in found):
                yield frame, found


def _exchange(new: Words, old: Words, evidence: Evidence) -> Exchange:
    never = any(map(is_slot, (*new, *old))) or is_never_exchanged(new, old)
    return Exchange(new, old, Counter() if never else evidence.witnesses(old, new))


def opcodes(asked: Words, proven: Words) -> list[tuple[str, int, int, int, int]]:
    """Where two frames differ, as difflib tells it; of long ones, only that they do."""
    if len(asked) + len(proven) > _MAX_COMPARED:
        return [("equal" if asked == proven else "replace", 0, len(asked), 0, len(proven))]
    return [*SequenceMatcher(None, asked, proven, autojunk=False).get_opcodes()]


@cache_short(entries=16_384, characters=600)
def exchanges(asked: Words, proven: Words) -> list[tuple[Words, Words]]:
    """The changes as exchanges: words that are only added or left out are taken together with the word beside them."""
    found = []
    for tag, a, b, c, d in opcodes(asked, proven):
        if tag == "equal":
            continue
        if a == b or c == d:
            if a > 0 and c > 0 and not is_slot(asked[a - 1]):
                a, c = a - 1, c - 1
            elif b < len(asked) and d < len(proven) and not is_slot(asked[b]):
                b, d = b + 1, d + 1
        found.append((asked[a:b], proven[c:d]))
    return found


def nearby(asked: Words, proven: Words) -> set[str] | None:
    """The words in which two frames with the same slots differ; None if they are too many to be worth comparing, or no
    evidence makes them interchangeable."""
    differing = set(asked).symmetric_difference(proven)
    if len(differing) > _NEAR or not FIXED.isdisjoint(differing) or any(map(is_slot, differing)):
        return None
    return differing


@cache_short(entries=16_384, characters=600)
def is_never_exchanged(new: Words, old: Words) -> bool:
    """Whether words negate, count, name numbers or are opposites: what no evidence makes interchangeable."""
    if any(word in FIXED or number(word) is not None for word in (*new, *old)):
        return True
    return difference(" ".join(new), " ".join(old)) is not None


MIN_LETTERS, MAX_LETTERS = 7, 30
"""Letters of a word in which one may be wrong: many shorter words differ in one letter, and no word is longer."""

_ENDINGS = frozenset(("", *"d e r s y ed ee er es rs ees ers".split()))  # noqa: SIM905
"""Endings of relatives of one word: "arrives" is no error for "arrived", nor "employer" for "employee"."""


def corrected(question: str, words: Sequence[str], spans: Sequence[Span], evidence: Evidence) -> str | None:
    """The question with one word put right, or None when no word is wrong, or it may be several."""
    values = {place for span in spans for place in range(span.start, span.stop)}
    unknown = [at for at, word in enumerate(words) if at not in values and _is_unknown(word, evidence)]
    if len(unknown) != 1:
        return None
    (place,) = unknown
    wrong = words[place]
    known = _known(words, place, {*_edits(wrong)} - {wrong}, evidence)
    meant = {word for word in known if not _are_related(wrong, word)}
    if len({canonical((word,)) for word in meant}) != 1:
        return None
    right = min(meant, key=lambda word: (word[-1] != wrong[-1], word))
    start, stop = next((start, stop) for word, start, stop in places(question) if word == wrong)
    return f"{question[:start]}{right.capitalize() if question[start].isupper() else right}{question[stop:]}"


def _is_unknown(word: str, evidence: Evidence) -> bool:
    if not MIN_LETTERS <= len(word) <= MAX_LETTERS or not (word.isascii() and word.isalpha()) or is_common(word):
        return False
    names = vocabulary(evidence.values).names
    return not any(form in evidence.vocabulary or form in names for form in (word, *other_numbers(word)))


def _known(words: Sequence[str], place: int, edits: Set[str], evidence: Evidence) -> set[str]:
    """The words that proven questions have, or columns hold, alone or with the word before or after it."""
    texts = {word: word for word in edits}
    for at, form in ((place - 1, "{0} {1}"), (place + 1, "{1} {0}")):
        if 0 <= at < len(words) and not is_common(words[at]):
            texts |= {form.format(words[at], word): word for word in edits}
    held = {texts[text] for text in evidence.values.among(texts.keys())}
    return held | {word for word in edits if word in evidence.vocabulary}


def _edits(word: str) -> Iterator[str]:
    """The words that a letter more, less, other or in place of the next makes of one, but for its first letter: there,
    it may mean the opposite ("atypical")."""
    for at in range(1, len(word) + 1):
        left, right = word[:at], word[at:]
        yield left + right[1:]
        yield left + right[1:2] + right[:1] + right[2:]
        for letter in ascii_lowercase:
            yield left + letter + right
            yield left + letter + right[1:]


def _are_related(one: str, other: str) -> bool:
    """Whether two words differ only in what forms of one word end with."""
    stem = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return {one[stem:], other[stem:]} <= _ENDINGS
