"""A proven question read together with its SQL: where its values stand there, and how others are put in their place."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple

from heedful.sql.reuse import question_reading as reading
from heedful.sql.reuse import question_words, reasons
from heedful.sql.reuse.consensus import Author
from heedful.sql.reuse.query_parts import Literal, Query, parse_query
from heedful.sql.reuse.question_periods import Period, periods
from heedful.sql.reuse.question_reading import Frame, Slot, Span, is_name, name
from heedful.sql.reuse.question_words import DATE, NUMBER, is_slot, number, occurrences, plain, singular, split
from heedful.sql.reuse.reasons import Bound, Gate, Inline
from heedful.sql.reuse.sql_dates import DatedLiteral, DateShape, Unclear, dated_literals, rebound_dates, unnamed
from heedful.sql.reuse.values import Column, Values

Comparisons = tuple[tuple[str, str, str], ...]
_LONGEST_PART = 4  # Signs of a year, the longest part of a date.
_SETTLED = ("eq", "neq", "in", "gt", "gte", "lt", "lte", "between", "limit", "is")
_LONGEST_NUMBER = 100
_LONGEST_INTEGER = 18  # Databases have 64 bits.


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
    """The text of the literals, where that is the singular or plural of what the question says."""

    @property
    def span(self) -> Span:
        """The words of the question that are the value."""
        return Span(self.start, self.start + len(self.text.split()), (self.kind,), self.held)

    @property
    def columns(self) -> list[Column]:
        """The columns that the value is compared with, as far as they are plain to see."""
        return [literal.column for literal in self.literals if literal.column is not None]

    @property
    def comparisons(self) -> Comparisons:
        """The columns that the value is compared with, and how: the same in another spelling of the SQL."""
        return tuple(sorted((*(literal.column or ("", "")), literal.operator) for literal in self.literals))


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
        return self.query.template(
            [*[literal.place for value in self.open for literal in value.literals], *self.passing]
        )


def study(question: str, sql: str, dialect: str, values: Values, at: datetime) -> Study | None:
    """Read a question with the SQL that was proven for it at a time, or None when the SQL can't be read."""
    query = parse_query(sql, dialect)
    if query is None:
        return None
    words = reading.read(question)
    known = reading.spans(words, values)
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
            others = [form for form in question_words.other_numbers(text) if form in words]
            said, held = (others[0], text) if others and values.columns_of(text) else (text, "")
        places = [at for at in _places(words, said, quoted) if taken.isdisjoint(range(at, at + len(said.split())))]
        taken.update(place for at in places for place in range(at, at + len(said.split())))
        if len(places) == 1 and kind is not None and not _inside(places[0], said, known):
            certain = all(literal.operator in _SETTLED for literal in literals) and (len(literals) == 1 or quoted)
            found.append(OpenValue(places[0], said, kind, tuple(literals), certain, held))
    named, dated = _open_periods(words, query, found, values, at)
    within = [Span(period.start, period.stop, (DATE,)) for period in named]
    found = [value for value in found if not any(map(value.span.overlaps, within))]
    for place, span in enumerate(within):
        own = tuple(moment.literal for moment in dated if any(edge.period == place for edge in moment.edges))
        found.append(OpenValue(span.start, name(words, span), DATE, own))
        taken.update(range(span.start, span.stop))
    known = [span for span in known if not any(map(span.overlaps, within))]
    found.sort(key=lambda value: value.start)
    chosen = []
    for value in found:
        kinds = next((span.kinds for span in known if span.start == value.start), (value.kind,))
        chosen.append((value.span._replace(kinds=kinds), value.kind))
    chosen += [(span, span.kinds[0]) for span in known if _is_ignored(words, span, taken, groups)]
    opened = {value.text for value in found} | {plain(moment.literal.searched or "") for moment in dated}
    texts = {text for text, quoted in groups if quoted and _places(words, text, quoted)}
    fixed = tuple(sorted((texts | {name(words, span) for span in known if is_name(span)}) - opened))
    bound = {literal.place for value in found for literal in value.literals}
    passing = _passing(question, query, at, bound)
    made = reading.frame(words, chosen, reading.vocabulary(values))
    made = reading.in_order(made, {period.start: period for period in named}, at)
    return Study(words, query, tuple(found), made, fixed, tuple(dated), passing)


def _open_periods(
    words: Sequence[str], query: Query, found: Sequence[OpenValue], values: Values, at: datetime
) -> tuple[list[Period], list[DatedLiteral]]:
    """The periods that decide about dates of the SQL, and these dates. A year that is a number like others is none, nor
    is a value of a column."""
    named = periods(tuple(words))
    if not named:
        return [], []
    found = [value for value in found if value.kind == NUMBER or _is_held(value, values)]
    held = {literal.place: value for value in found for literal in value.literals}
    chosen: list[Period] = []
    by_literal: dict[tuple[int, DateShape], DatedLiteral] = {}
    for period, dated in zip(named, dated_literals(query, named, at), strict=True):
        span = Span(period.start, period.stop, (DATE,))
        others = [held.get(moment.literal.place) for moment in dated]
        explained = {moment.literal.place for moment in dated}
        is_own = all(value is None or value.span.overlaps(span) for value in others)
        inside = [literal.place for value in found if value.span.overlaps(span) for literal in value.literals]
        if all(others) or not is_own or not explained.issuperset(inside):
            continue
        for moment in dated:
            # It may follow from another period as well.
            before = by_literal.get((moment.literal.place, moment.shape))
            edges = [edge._replace(period=len(chosen)) for edge in moment.edges]
            by_literal[moment.literal.place, moment.shape] = moment._replace(
                edges=(*(before.edges if before is not None else ()), *edges)
            )
        chosen.append(period)
    return chosen, list(by_literal.values())


def _is_held(value: OpenValue, values: Values) -> bool:
    """Whether a column that a value is compared with has it."""
    return any(values.has(*column, value.held or value.text) for column in value.columns)


def _passing(question: str, query: Query, at: datetime, bound: Set[int]) -> tuple[int, ...]:
    # A short number may be anything else where it occurs a second time.
    texts = {text for text in unnamed(question, query.sql, query.dialect, at) if len(text) > _LONGEST_PART}
    return tuple(
        literal.place
        for literal in query.literals
        if literal.text in texts and literal.span and literal.place not in bound
    )


def _is_ignored(words: Sequence[str], span: Span, taken: Set[int], literals: Mapping[tuple[str, bool], object]) -> bool:
    """Whether a question names a number that its SQL doesn't use: it is asked for, whatever is answered."""
    text = name(words, span)
    is_used = (text, True) in literals or (str(number(text)), False) in literals
    return not is_used and span.kinds == (NUMBER,) and taken.isdisjoint(range(span.start, span.stop))


def _places(words: Sequence[str], text: str, quoted: bool) -> list[int]:
    if quoted:
        return occurrences(words, split(text))
    return [place for place, word in enumerate(words) if number(word) == text]


def _inside(start: int, text: str, known: Sequence[Span]) -> bool:
    """Whether the words are only a part of a longer value, as "york" in "new york"."""
    stop = start + len(text.split())
    return any(span.start < stop and start < span.stop and span.stop - span.start > stop - start for span in known)


def _kind(text: str, quoted: bool, literals: Sequence[Literal], values: Values) -> str | None:
    """The kind of value that the literals are, or None when that can't be known."""
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


@dataclass(frozen=True, slots=True)
class ChangedValue:
    """One value that changes."""

    old: OpenValue
    new: Slot


class Doubt(Exception):
    """A value can't be put in place of another with certainty."""

    def __init__(self, gate: Gate, reason: str) -> None:
        super().__init__(reason)
        self.gate = gate
        self.reason = reason


def changed_values(asked: Frame, study: Study) -> list[ChangedValue]:
    """The values in which a question differs from a proven one with the same kinds of values; raises `Doubt` when the
    SQL doesn't use one of them."""
    opened = {value.start: value for value in study.open}
    found = []
    for slot, before in _pairs(asked, study.frame):
        if slot.text != before.text and number(slot.text) != (number(before.text) or before.text):
            if before.start not in opened:
                raise Doubt("literals", reasons.UNUSED.format(slot.text, before.text))
            found.append(ChangedValue(opened[before.start], slot))
    return found


def _pairs(asked: Frame, proven: Frame) -> Iterator[tuple[Slot, Slot]]:
    """The slots of a question with those of a proven one.

    Values of one kind are taken in their order, but for "from" and "to", which say which is which.
    """
    new, old = asked.bound(), proven.bound()
    if new.keys() != old.keys():
        new, old = asked.bound(by_kind=True), proven.bound(by_kind=True)
    for word, slots in new.items():
        yield from zip(slots, old[word], strict=True)


def bindings(text: str, words: Sequence[str], changes: Sequence[ChangedValue], values: Values) -> dict[int, Bound]:
    """The new value of each literal that changes; raises `Doubt` when one isn't certain."""
    made: dict[int, Bound] = {}
    for change in changes:
        if change.old.kind == DATE:
            continue
        if len(occurrences(words, split(change.new.text))) != 1:
            raise Doubt("literals", reasons.REPEATED.format(change.new.text))
        for literal in change.old.literals:
            if change.old.kind == NUMBER:
                made[literal.place] = _numeric(text, change.new.text, literal.operator)
            else:
                made[literal.place] = _spelled(text, change, literal, values)
    return made


@dataclass(frozen=True, slots=True)
class Dates:
    """The dates of a statement that follow from the periods of a question."""

    bound: dict[int, Inline]
    """The new text of each of these literals, by its place."""
    moved: Sequence[tuple[str, str]]
    """Those that were others in the proven statement, as (new, old)."""
    named: frozenset[tuple[str, str]]
    """Those that the question names by that, each with the part of a date that it is."""


def dates(asked: Frame, study: Study, named: Mapping[int, Period], now: datetime) -> Dates:
    """The dates for the periods of a question, given by their first words; raises `Doubt` when one isn't certain. Words
    that are the same may still be right on the day they were proven: then there are none."""
    opened = [value for value in study.open if value.kind == DATE]
    places = {value.start: place for place, value in enumerate(opened)}
    found = [(slot, before) for slot, before in _pairs(asked, study.frame) if slot.kind == DATE]
    following = {places[before.start]: named[slot.start] for slot, before in found}
    for slot, before in found:
        period = named[slot.start]
        names_year = any(period.names_year for period in periods(tuple(before.text.split())))
        if names_year and not (period.names_year or period.follows_clock):
            raise Doubt("relative_dates", reasons.UNCLEAR_DAYS.format(period.words))  # "In March" of which year?
    try:
        bound = rebound_dates(study.dated, following, now, asked.words)
    except Unclear as unclear:
        if any(slot.text != before.text for slot, before in found):
            raise Doubt("relative_dates", str(unclear)) from unclear
        bound = {}
    literals = study.query.literals
    moved = [(text, literals[place].text) for place, text in bound.items() if text != literals[place].text]
    own = {(str(bound[moment.literal.place]), moment.part) for moment in study.dated if moment.literal.place in bound}
    return Dates(bound, moved, frozenset(own))


def ambiguous(change: ChangedValue, asked: Frame, values: Values) -> str | None:
    """Other kinds that the new value may be of and the proven one can't, or None when the question settles it."""
    if change.old.kind in (NUMBER, DATE):
        return None
    texts = change.new.value, change.old.held or change.old.text
    new, old = ({values.kind(*column) for column in values.columns_of(text)} for text in texts)
    others = new - old - {change.old.kind}
    return ", ".join(sorted(others)) if others and not _says_column(change.old.columns, change, asked) else None


def says_otherwise(change: ChangedValue, asked: Frame, values: Values) -> bool:
    """Whether a word beside the value says that it is one of another column: "the Ohio river"."""
    own = {values.kind(*column) for column in change.old.columns}
    others = [column for column in values.columns_of(change.new.value) if values.kind(*column) not in own]
    return _says_column(others, change, asked)


def _says_column(columns: Iterable[Column], change: ChangedValue, asked: Frame) -> bool:
    """Whether a noun before the new value ("the state of Ohio", but not "rivers in Ohio") or behind it ("the Ohio
    river") names one of these columns, or its table where the column only says "name"."""
    words = [word for word in asked.wording if word not in ("the", "the_")]
    slots = [at for at, word in enumerate(words) if is_slot(word)]
    place = slots[asked.slots.index(change.new)]
    before = place - 2 if words[place - 1 : place] == ["of"] else place - 1
    beside = {singular(word) for word in (*words[max(0, before) : before + 1], *words[place + 1 : place + 2])}
    for column in columns:
        table, name = ({singular(part) for part in split(text.replace("_", " "))} for text in column)
        if not beside.isdisjoint(name - question_words.GENERIC or table):
            return True
    return False


def _numeric(asked: str, text: str, operator: str) -> int | Decimal:
    value = number(text)
    if question_words.is_scaled(text) and not _is_amount(asked, text, operator):
        raise Doubt("kind", reasons.PERHAPS_NO_NUMBER.format(text))
    if value is None or len(value) > _LONGEST_NUMBER:
        raise Doubt("literals", reasons.NO_NUMBER.format(text[:_LONGEST_NUMBER]))
    if "." not in value and len(value.lstrip("-")) > _LONGEST_INTEGER:
        raise Doubt("literals", reasons.TOO_LARGE.format(text))
    if operator == "limit" and not value.isdigit():
        raise Doubt("literals", reasons.NO_COUNT.format(text))
    return Decimal(value) if "." in value else int(value)


def _is_amount(asked: str, text: str, operator: str) -> bool:
    """Whether "5m" is a number: not metres or minutes, nor the name of something."""
    if operator in ("eq", "neq", "in", "is"):
        return False
    return not text.endswith("m") or f"{text[:-1]}M" in asked or any(f"{sign}{text}" in asked for sign in "$€£¥")


def _spelled(asked: str, change: ChangedValue, literal: Literal, values: Values) -> str:
    """The new value as the column writes it; among several spellings, the one that the question has."""
    text, column = change.new.value, literal.column
    assert column is not None
    if change.new.held and not change.old.held:
        # A name is what it is: "Alien" is not "Aliens".
        raise Doubt("kind", reasons.no_value(change.new.text, column, text))
    spellings = values.spellings(*column, text)
    if literal.operator == "like":
        for other in change.old.columns:
            spellings = spellings or values.spellings(*other, text)
    if not spellings:
        raise Doubt("kind", reasons.no_value(text, column))
    written = {spelling for spelling in spellings if spelling in asked} if len(spellings) > 1 else spellings
    if len(written) != 1:
        raise Doubt("kind", reasons.SEVERAL_SPELLINGS.format(*column, text))
    (spelling,) = written
    old = literal.searched or ""
    if literal.operator == "like":
        return literal.pattern(spelling)
    if old not in values.spellings(*column, old):
        # The SQL may compare in another case than the column is written in; keep to a form that both have.
        raise Doubt("kind", reasons.OTHER_SPELLING.format(plain(old), *column))
    return spelling
