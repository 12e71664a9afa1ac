"""A proven question beside its SQL: which of its words are values that the SQL holds, and the frame around them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from heedful.learning.reuse.queries import Literal, Query, parsed
from heedful.learning.reuse.reading import DATE, NUMBER, Frame, Span, frame, is_name, name, number, read, spans
from heedful.learning.reuse.values import Values, plain, split

_SETTLED = ("eq", "neq", "in", "gt", "gte", "lt", "lte", "between", "limit", "is")


class Proven(NamedTuple):
    """An execution by its id: a question, the SQL that is proven to answer it, and when that was."""

    id: Hashable
    question: str
    sql: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Open:
    """A value that stands once in the question, and in the SQL at these literals."""

    start: int
    text: str
    kind: str
    literals: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class Study:
    """A proven question read together with its SQL."""

    words: tuple[str, ...]
    query: Query
    open: tuple[Open, ...]
    frame: Frame
    template: str
    fixed: tuple[str, ...]
    """Values that stand in the question and are not open: known ones, and texts of the SQL."""

    @property
    def values(self) -> list[tuple[str, str]]:
        """The open values, as (kind, words)."""
        return [(each.kind, each.text) for each in self.open]


def study(question: str, sql: str, dialect: str, values: Values) -> Study | None:
    """Read a proven question with its SQL, or None when the SQL can't be read."""
    query = parsed(sql, dialect)
    if query is None:
        return None
    words = read(question)
    known = spans(words, values)
    groups: dict[tuple[str, bool], list[Literal]] = {}
    for literal in query.literals:
        text = plain(literal.text) if literal.quoted else number(literal.text)
        if text:
            groups.setdefault((text, literal.quoted), []).append(literal)
    found: list[Open] = []
    taken: set[int] = set()
    for (text, quoted), literals in sorted(groups.items(), key=lambda item: -len(item[0][0].split())):
        places = [at for at in _places(words, text, quoted) if taken.isdisjoint(range(at, at + len(text.split())))]
        taken.update(place for at in places for place in range(at, at + len(text.split())))
        kind = _kind(text, quoted, literals, values)
        if len(places) == 1 and kind is not None and not _inside(places[0], text, known):
            found.append(Open(places[0], text, kind, tuple(literals)))
    found.sort(key=lambda each: each.start)
    chosen = []
    for each in found:
        kinds = next((span.kinds for span in known if span.start == each.start), (each.kind,))
        chosen.append((Span(each.start, each.start + len(each.text.split()), kinds), each.kind))
    template = query.template([literal.place for each in found for literal in each.literals])
    opened = {each.text for each in found}
    texts = {text for text, quoted in groups if quoted and _places(words, text, quoted)}
    fixed = tuple(sorted((texts | {name(words, span) for span in known if is_name(span)}) - opened))
    return Study(words, query, tuple(found), frame(words, chosen), template, fixed)


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
    """What kind of value the literals are, or None when that isn't certain."""
    if any(literal.operator not in _SETTLED or literal.span is None for literal in literals):
        return None
    if not quoted:
        # LIMIT 1 comes from a superlative, whatever number the question names.
        return NUMBER if len(literals) == 1 and (literals[0].operator, text) != ("limit", "1") else None
    if len(text) == 10 and text[4:5] == "-":
        return DATE if len(literals) == 1 else None
    if any(literal.column is None for literal in literals):
        return None
    kinds = {values.kind(*literal.column) for literal in literals if literal.column is not None}
    return kinds.pop() if len(kinds) == 1 else None
