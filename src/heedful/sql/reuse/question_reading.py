"""Questions as frames: their words in one form, with the places of their values left open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from itertools import combinations, islice, pairwise, product
from typing import NamedTuple
from weakref import WeakKeyDictionary

from heedful.caching import cache_short
from heedful.sql.reuse import question_words as lists
from heedful.sql.reuse.grammar import NAMED, names_time, rephrased, verbs
from heedful.sql.reuse.question_periods import Period
from heedful.sql.reuse.question_words import (
    DATE,
    NUMBER,
    Mark,
    Phrase,
    Said,
    is_slot,
    number,
    occurrences,
    plain,
    split,
)
from heedful.sql.reuse.values import Values
from heedful.text import word_set
from heedful.text.same_question import quotations

MAX_WORDS = 100
"""Words of a question beyond which it is no longer compared word by word."""
_MAX_READINGS = 48  # Ways to read one question that are looked at, when its values can mean several things.
PLURAL = "+s"
POLAR = "?"
"""Begins a frame that can be answered by yes or no: "is the shop in Hull?"; not so "are there any shops?"."""
_OPENINGS = word_set("for in of during at on by with after before between this next last")
_FRONTED = _OPENINGS - {"of"}  # "Of the shops, which are open?" asks for shops.
_NOT_POLAR = lists.LEADS | word_set("what which who whom whose when where why how that")
_COMMON = word_set("how many much one").union(lists.FILLERS, lists.SAME, lists.DECIDING, lists.LEADS, lists.ASKING)
_AUXILIARIES = word_set("is are was were am do does did has have had can could will would should may must")


class Vocabulary(NamedTuple):
    """The names of a schema, and words that it tells apart."""

    names: frozenset[str] = frozenset()
    """The words of its tables and columns."""
    apart: frozenset[str] = frozenset()
    """Those that mean the same elsewhere, and here are two columns, tables or values."""


_vocabularies: WeakKeyDictionary[Values, Vocabulary] = WeakKeyDictionary()


def vocabulary(values: Values) -> Vocabulary:
    """The vocabulary of the schema that values are of."""
    if values not in _vocabularies:
        named = {part for column in values.columns for name in column for part in split(name.replace("_", " "))}
        known = named | {lists.singular(word) for word in named}
        apart: set[str] = set()
        for group in lists.GROUPS:
            holds = group[0] not in lists.DECIDING
            forms = {word: (word, *lists.other_numbers(word)) if holds else () for word in group}
            here = [word for word in group if word in known or any(map(values.columns_of, forms[word]))]
            apart.update(here if len(here) > 1 else ())
        # "Rate" and "rates" of one table.
        apart.update(
            name
            for table, name in values.columns
            if lists.singular(name) != name and (table, lists.singular(name)) in values.columns
        )
        _vocabularies[values] = Vocabulary(frozenset(known), frozenset(apart))
    return _vocabularies[values]


class Span(NamedTuple):
    """Words `start` to `stop` of a question, which may be a value of these kinds."""

    start: int
    stop: int
    kinds: tuple[str, ...]
    held: str = ""
    """The form that columns hold, where that is the singular or plural of what the question says."""

    def overlaps(self, other: Span) -> bool:
        """Whether both have a word in common."""
        return self.start < other.stop and other.start < self.stop


class Slot(NamedTuple):
    """A value that a frame leaves open: its kind, its words, where they begin, and what columns may hold instead."""

    kind: str
    text: str
    start: int
    held: str = ""

    @property
    def value(self) -> str:
        """The words as columns hold them."""
        return self.held or self.text

    @property
    def span(self) -> Span:
        """The words that are the value."""
        return Span(self.start, self.start + len(self.text.split()), (self.kind,), self.held)


@dataclass(frozen=True, slots=True)
class Frame:
    """A question in its canonical words; those like "‹city.name›" stand for the slots, in the same order."""

    words: tuple[str, ...]
    slots: tuple[Slot, ...]
    typed: tuple[str, ...] = field(default=(), compare=False)
    """These words as the question has them, but for case and accents."""
    marks: tuple[Said, ...] = field(default=(), compare=False)
    """The marks of its small words."""
    wording: tuple[str, ...] = field(default=(), compare=False)
    """All words as they were typed, with the kinds of the slots."""

    @property
    def key(self) -> tuple[str, ...]:
        """Equal for frames that ask the same: only "from" and "to" with their values may change places."""
        return _key(self.words)

    def bound(self, *, by_kind: bool = False) -> dict[str, list[Slot]]:
        """The slots by the word that stands for them, or by their kind alone."""
        found: dict[str, list[Slot]] = {}
        slots = iter(self.slots)
        for word in self.words:
            if is_slot(word):
                found.setdefault(word.split(" ", 1)[-1] if by_kind else word, []).append(next(slots))
        return found

    def beside(self) -> dict[str, list[tuple[str, str]]]:
        """The words before and after each slot, by the kinds of the slots."""
        found: dict[str, list[tuple[str, str]]] = {}
        parts = ["", *[part for word in self.words for part in word.split(" ")], ""]
        for before, word, after in zip(parts, parts[1:], parts[2:], strict=False):
            if is_slot(word):
                found.setdefault(word, []).append((before, after))
        return found


def read(text: str) -> tuple[str, ...]:
    """The words of a question in their usual order: what asks comes first, and a phrase before it goes behind it.

    >>> " ".join(read("In the next 3 weeks, which shops are open?"))
    'which shops are open in the next 3 weeks'
    >>> " ".join(read("The shop in Hull opens when?"))
    'when the shop in hull opens'
    """
    words = tuple(split(text))
    if not words or words[0] in _NOT_POLAR:
        return words
    if words[-1] in ("when", "where", "why"):
        return words[-1:] + words[:-1]
    if words[0] not in _FRONTED:
        return words
    start = next((place for place in range(len(words)) if _asks(words, place)), 0)
    # "For people that are ill, who …" has a clause in front, which may not go elsewhere.
    if start < 2 or "that" in words[:start]:
        return words
    return words[start:] + words[:start]


def _asks(words: Sequence[str], place: int) -> bool:
    """Whether a question may begin here: "which", "are", or "name the", but not in "the name of"."""
    if words[place] in lists.LEADS:
        return words[place + 1 : place + 2] in (("me",), ("us",), ("the",), ("all",))
    return words[place] in _NOT_POLAR or words[place] in _AUXILIARIES


def quoted(text: str) -> set[str]:
    """The texts in quotation marks, as they are compared.

    >>> quoted('films called "The Sting"')
    {'the sting'}
    """
    return {plain(quotation) for quotation in quotations(text)} - {""}


def spans(words: Sequence[str], values: Values) -> list[Span]:
    """The numbers and known values among the words, the longest first where they overlap."""
    found = []
    place = 0
    while place < len(words):
        length, held = values.longest(words, place), ""
        text = " ".join(words[place : place + length])
        if length <= 1 and is_common(words[place]):
            text = ""
        elif not length:
            text = held = next((form for form in lists.other_numbers(words[place]) if values.columns_of(form)), "")
        kinds = tuple(sorted({values.kind(*column) for column in values.columns_of(text)})) if text else ()
        if length <= 1 and number(words[place]) is not None:
            length, kinds = 1, (*kinds, NUMBER)
        if kinds:
            found.append(Span(place, place + max(1, length), kinds, held))
        place += max(1, length)
    return found


def is_name(span: Span) -> bool:
    """Whether a span may be a value of a column, and not only a number or a date."""
    return not span.held and any(kind not in (NUMBER, DATE) for kind in span.kinds)


def name(words: Sequence[str], span: Span) -> str:
    """The words of a span."""
    return " ".join(words[span.start : span.stop])


def frame(
    words: Sequence[str], chosen: Sequence[tuple[Span, str]], known: Vocabulary, *, articles: bool = True
) -> Frame:
    """The frame in which each chosen span is a value of the kind beside it. Without `articles`, "the" before a value
    that can be of one kind alone says nothing."""
    at = {span.start: (span, kind) for span, kind in chosen}
    parts: list[str] = []
    participles: list[int] = []
    slots = []
    place = 0
    while place < len(words):
        if place not in at:
            parts.append(words[place])
            place += 1
            continue
        span, kind = at[place]
        if parts and parts[-1] == "the" and kind not in (NUMBER, DATE) and (articles or len(span.kinds) > 1):
            parts[-1] = "the_"  # "border the Mississippi" names the river and "border Mississippi" the state.
        if lists.past_of(words[span.stop - 1]) is not None:
            participles.append(len(parts))
        parts.append(f"‹{kind}›")
        slots.append(Slot(kind, name(words, span), place, span.held))
        place = span.stop
    canonical = canonical_words(tuple(parts), known, frozenset(participles))
    marks = tuple(word.mark for word in canonical if word.mark is not None)
    if names_time(words):
        marks = tuple(said._replace(mark=said.mark._replace(tense="")) for said in marks)
    if _is_polar(words):
        canonical = (Phrase(POLAR, ""), *canonical)
    names = iter(slots)
    # "From ‹city.name›" is one word.
    typed = (
        f"{word.canonical.partition('‹')[0]}{next(names).text}" if is_slot(word.canonical) else word.typed
        for word in canonical
    )
    return Frame(tuple(word.canonical for word in canonical), tuple(slots), tuple(typed), marks, tuple(parts))


def _is_polar(words: Sequence[str]) -> bool:
    """Whether yes or no answers it. "Are there any shops" asks for them, and "can you show" is polite."""
    said = [words[place] for place in _without_lead(words)]
    start = 0
    if said and said[0] in _OPENINGS:
        # "In Hull, are the shops open?"
        places = (place for place, word in enumerate(said) if word in _AUXILIARIES or word in _NOT_POLAR)
        start = next(places, 0)
    if len(said) < start + 2 or said[start] not in _AUXILIARIES:
        return False
    # "Are there", "will there be any" and "is there a list of" ask for some.
    is_list = said[start] in ("are", "were") or said[start + 2 : start + 4] in (["be", "any"], ["a", "list"])
    return said[start + 1] != "you" and not (said[start + 1] == "there" and is_list)


def readings(
    words: Sequence[str], found: Sequence[Span], known: Vocabulary, named: Sequence[Span] = ()
) -> Iterator[Frame]:
    """All frames of a question: each span as a value of one of its kinds, or as plain words. So are the periods in
    `named`, but all of them together if there are more than two."""
    for some in _some(named):
        rest = [span for span in found if not any(map(span.overlaps, some))]
        choices = [[*[(span, kind) for kind in span.kinds], None] for span in rest]
        for chosen in islice(product(*choices), _MAX_READINGS):
            values = [*filter(None, chosen), *((span, DATE) for span in some)]
            yield frame(words, values, known)
            if any(words[span.start - 1 : span.start] == ("the",) and len(span.kinds) == 1 for span, _ in values):
                yield frame(words, values, known, articles=False)


def _some(named: Sequence[Span]) -> Iterator[Sequence[Span]]:
    for count in range(len(named) + 1) if len(named) < 3 else (0, len(named)):
        yield from combinations(named, count)


def in_order(frame: Frame, named: Mapping[int, Period], at: datetime) -> Frame:
    """The frame with the ends of "between 100 and 50" in their order; `named` has the periods, by their first words."""
    if "between" not in frame.words:
        return frame
    slots = list(frame.slots)
    places = [place for place, word in enumerate(frame.words) if is_slot(word)]
    for place, (here, there) in enumerate(pairwise(places)):
        if frame.words[here - 1 : here] == ("between",) and frame.words[here + 1 : there] == ("and",):
            first, second = (_size(slot, named, at) for slot in slots[place : place + 2])
            if first is not None and second is not None and type(first) is type(second) and second < first:  # type: ignore[operator]
                slots[place : place + 2] = slots[place + 1], slots[place]
    return replace(frame, slots=tuple(slots))


def _size(slot: Slot, named: Mapping[int, Period], at: datetime) -> Decimal | datetime | None:
    if slot.kind == NUMBER:
        return Decimal(number(slot.text) or 0)
    if slot.kind == DATE and slot.start in named:
        return min((days.first for days in named[slot.start].ranges(at).values()), default=None)
    return None


def verbatim(words: Sequence[str], found: Sequence[Span], values: Sequence[Slot], known: Vocabulary) -> Frame | None:
    """The frame with the values of another one, or None when one of them doesn't stand there once."""
    chosen = []
    for slot in values:
        wanted = slot.text.split()
        places = occurrences(words, wanted)
        if len(places) != 1:
            return None
        kinds = next((span.kinds for span in found if span.start == places[0]), (slot.kind,))
        chosen.append((Span(places[0], places[0] + len(wanted), kinds), slot.kind))
    return frame(words, chosen, known)


def canonical(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words that carry meaning, one form for all that mean the same.

    >>> canonical(tuple("can you tell me what the biggest cities are".split()))
    ('largest', 'city', '+s')
    """
    return tuple(word.canonical for word in canonical_words(words, Vocabulary()))


@cache_short(entries=16_384, characters=300)
def canonical_words(
    words: tuple[str, ...], known: Vocabulary, participles: frozenset[int] = frozenset()
) -> tuple[Phrase, ...]:
    """The words that carry meaning, each with what was typed for it. `participles` are the places of values like
    "cancelled"."""
    found = verbs(words, known.names, participles)
    phrased = [word._replace(participle=word.place in participles) for word in _phrased(words)]
    asked = [phrased[place] for place in _without_lead([word.canonical for word in phrased])]
    kept = [word for word in rephrased(asked) if word.canonical not in lists.FILLERS]
    made = []
    for word in kept:
        if word.turned:
            made.append(word._replace(mark=Said(word.canonical, Mark("", "passive", word.turned), word.typed)))
            continue
        form = _canonical(word.canonical, known.apart)
        form = form if word.canonical in lists.SAME else found.forms.get(word.place, form)
        mark = found.marks.get(word.place)
        said = None if mark is None else Said(form, mark, found.said[word.place])
        # "Are called" is another word than "called".
        typed = found.said.get(word.place, word.typed) if form == NAMED else word.typed
        made.append(Phrase(form, typed, word.place, said))
    head = next((place for place, word in enumerate(made) if _is_subject(word.canonical)), None)
    superlative = any(word.canonical in lists.SUPERLATIVES for word in made)
    if head is not None and superlative and lists.singular(made[head].typed) != made[head].typed:
        made.insert(head + 1, Phrase(PLURAL, ""))
    joined: list[Phrase] = []
    for word in made:
        if is_slot(word.canonical) and joined and joined[-1].canonical in ("from", "to"):
            before = joined[-1]
            joined[-1] = Phrase(f"{before.canonical} {word.canonical}", f"{before.typed} {word.typed}")
        else:
            joined.append(word)
    return tuple(joined)


@cache_short(entries=16_384, characters=300)
def _key(words: tuple[str, ...]) -> tuple[str, ...]:
    movable = [word for word in words if is_slot(word) and word[0] != "‹"]
    if len(movable) < 2 or len(set(movable)) < len(movable):
        return words
    return (*[word for word in words if word not in movable], *sorted(movable))


def _is_subject(word: str) -> bool:
    return bool(word) and not is_slot(word) and word not in lists.DECIDING and number(word) is None and word != "the_"


def is_common(word: str) -> bool:
    """Whether a word is one that questions are made of, even if some column holds it."""
    return word in _COMMON


def _canonical(word: str, apart: frozenset[str]) -> str:
    if is_slot(word) or word == "the_":
        return word
    if (value := number(word)) is not None:
        return value
    if word in apart:
        return word
    if word in lists.SAME:
        return lists.SAME[word]
    if word in lists.DECIDING:
        return word
    if (verb := lists.past_of(word)) is not None:
        return f"{verb}+ed"  # "Closed shops" are not "close shops", nor "papers cited" "papers citing".
    base = lists.singular(word)
    return base if base in apart else lists.SAME.get(base, base)


def _phrased(words: Sequence[str]) -> list[Phrase]:
    """Phrases of several words as one."""
    made: list[Phrase] = []
    place = 0
    while place < len(words):
        for length in range(min(lists.MAX_PHRASE_WORDS, len(words) - place), 1, -1):
            if phrase := lists.PHRASES.get(tuple(words[place : place + length])):
                said = " ".join(words[place : place + length])
                made += (Phrase(word, said, place) for word in phrase)
                place += length
                break
        else:
            word = words[place]
            follows = words[place + 1] if place + 1 < len(words) else ""
            numeric = number(follows) is not None or follows == f"‹{NUMBER}›"
            made.append(Phrase(lists.BEFORE_NUMBERS.get(word, word) if numeric else word, word, place))
            place += 1
    return made


def _without_lead(words: Sequence[str]) -> list[int]:
    """The places of the words without what only asks: "could you please show me all the …"."""
    place = 0
    while place < len(words) and words[place] in lists.ASKING:
        place += 1
    if place < len(words) and words[place] in lists.LEADS:
        place += 1
        if place < len(words) and words[place] in ("me", "us"):
            place += 1
    elif place and words[place - 1] not in lists.ASKED:
        place = 0
    # "A list of the shops" asks for the shops.
    first = next((at for at in range(place, len(words)) if words[at] not in lists.FILLERS), len(words))
    if list(words[first : first + 2]) == ["list", "of"]:
        place = first + 2
    rest = list(range(place, len(words)))
    for at in rest:
        if words[at] in lists.SCOPE_AT_LEAD:
            rest.remove(at)
            return rest
        if words[at] not in lists.FILLERS:
            break
    return rest
