"""Whose a proven query is, where it names no audience: SQL may be right for one person alone without saying so.

`customer = 'ann'` is the answer to "What does this customer owe?" as long as Ann asks. A value that neither the
question names nor other queries explain keeps SQL with its owner: the chat session that it ran for, else those who
proved it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from sqlglot import exp

from heedful.caching import cache_short
from heedful.sql.reuse.consensus import Author
from heedful.sql.reuse.evidence import Study, Words
from heedful.sql.reuse.query_parts import Literal, parsed
from heedful.sql.reuse.question_words import number
from heedful.sql.reuse.values import Column, other_numbers, plain

_COMPARING = frozenset(("eq", "neq", "is", "in", "like", "gt", "gte", "lt", "lte", "between"))
_FLAGS = frozenset(("0", "1", "true", "false"))
_FLAG_OPERATORS = frozenset(("eq", "neq", "is"))
_IDENTIFYING = frozenset(
    """id uid uuid guid key code no nr num number ssn email login user users username account owner customer client
    person people member employee staff manager patient doctor student teacher author tenant company supplier vendor
    seller buyer contact assignee reviewer by to""".split()  # noqa: SIM905
)
_NO_IDS = frozenset("paid unpaid prepaid valid invalid void solid hybrid bid grid".split())  # noqa: SIM905
_DATE = re.compile(r"\d{4}-\d{1,2}(-\d{1,2})?([ T].*)?|\d{4}/\d{1,2}/\d{1,2}|\d{1,2}:\d{2}(:\d{2})?(\.\d+)?")
_YEAR = re.compile(r"(19|20)\d\d")
_DATED = frozenset(
    """date time datetime julianday strftime timestamp year month day hour minute week quarter extract date_part
    date_trunc datepart dayofweek dayofyear weekday to_char to_date format date_format str_to_date strptime time_to_str
    str_to_time ts_or_ds_to_date datetrunc timestamp_trunc cast_to_date now interval date_add date_sub""".split()  # noqa: SIM905
)
_CONDITIONS = (exp.Where, exp.Having, exp.Qualify, exp.Predicate, exp.RegexpLike, exp.Values, exp.Join)
_WILDCARDS = re.compile(r"[%_*^$.]+")
_MIN_QUESTIONS, _MIN_AUTHORS = 2, 2  # Other questions with the same condition, and authors, that make it a default.
_MAX_COMPARED = 1_000


class Asker(NamedTuple):
    """Who asks, as far as that is known. Without an author, it is the program."""

    audience: str | None = None
    author: str | None = None
    chat_session_id: str | None = None


NOBODY = Asker()
"""The program, which asks for somebody it doesn't name."""


class _Value(NamedTuple):
    """A value of a condition: the place of its literal if it is one, its text, and the name of its column if it has
    one."""

    place: int | None
    text: str
    column: str | None


Condition = tuple[Column, str, str]


class Conditions:
    """The conditions of what is proven for everybody, by which a default is told from a value that is somebody's."""

    def __init__(self) -> None:
        self._shared: dict[Condition, dict[Words, Counter[Author]]] = {}
        self._proven: dict[tuple[Words, str], Counter[Author]] = defaultdict(Counter)
        self._known: dict[str, tuple[Study, frozenset[Author]]] = {}

    def add(self, name: str, known: Study, authors: frozenset[Author]) -> None:
        """Counts a proven query in."""
        self._known[name] = known, authors
        self._proven[known.words, known.template].update(authors)
        for condition in _conditions(known):
            self._shared.setdefault(condition, {}).setdefault(known.words, Counter()).update(authors)

    def remove(self, name: str) -> None:
        """Takes a proven query out."""
        if name not in self._known:
            return
        known, authors = self._known.pop(name)
        self._proven[known.words, known.template] -= Counter(authors)
        for condition in _conditions(known):
            questions = self._shared[condition]
            questions[known.words] -= Counter(authors)
            if not questions[known.words]:
                del questions[known.words]

    def is_owned(self, known: Study) -> bool:
        """Whether SQL has a value that neither its question names, nor other questions of several authors explain, and
        that several authors have not proven for this question."""
        if len(self._proven.get((known.words, known.template), ())) >= _MIN_AUTHORS:
            return False
        return any(not (each and self._is_default(each, known.words)) for each in _unnamed(known))

    def _is_default(self, literal: Literal, words: Words) -> bool:
        condition = _condition(literal)
        others = set[Words]()
        authors = set[Author]()
        for question, said_by in islice(self._shared.get(condition, {}).items() if condition else (), _MAX_COMPARED):
            if question != words:
                others.add(question)
                authors |= said_by.keys()
                if len(others) >= _MIN_QUESTIONS and len(authors) >= _MIN_AUTHORS:
                    return True
        return False


def has_unnamed_values(known: Study) -> bool:
    """Whether SQL has a value, other than a flag, that its question doesn't name."""
    return any(True for _ in _unnamed(known))


def _unnamed(known: Study) -> Iterator[Literal | None]:
    """The values that a question doesn't name: the literals, or None for what is not written as one."""
    named = {literal.place for value in known.open for literal in value.literals}
    for value in _values(known.query.sql, known.query.dialect):
        literal = None if value.place is None else known.query.literals[value.place]
        if not (value.place in named or _is_named(value.text, known.words) or _is_flag(value, literal)):
            yield literal


def _conditions(known: Study) -> set[Condition]:
    return {found for literal in known.query.literals if (found := _condition(literal)) is not None}


def _condition(literal: Literal) -> Condition | None:
    if literal.column is None or literal.operator not in _COMPARING:
        return None
    return literal.column, literal.operator, literal.text


def _is_named(text: str, words: Words) -> bool:
    said = f" {' '.join(words)} "
    pieces = [plain(piece) for piece in _WILDCARDS.split(text)] if plain(text) else []
    return f" {plain(text)} " in said or all(
        f" {piece} " in said
        or (number(piece) or piece) in {number(word) or word for word in words}
        or any(piece in other_numbers(word) for word in words)
        for piece in pieces
        if piece
    )


def _is_flag(value: _Value, literal: Literal | None) -> bool:
    """Whether a value is that of a flag, as in `deleted = 0`, and not the first id."""
    if literal is None or literal.operator not in _FLAG_OPERATORS or value.text.lower() not in _FLAGS:
        return False
    last = (value.column or "id").rsplit("_", 1)[-1]
    return last not in _IDENTIFYING and (not last.endswith("id") or last in _NO_IDS)


@cache_short(entries=4_096, characters=2_000)
def _values(sql: str, dialect: str) -> tuple[_Value, ...]:
    """The values that a statement compares with: of conditions, and of rows that it makes up itself. Dates are not, for
    the clock decides about them, nor are formats, limits and what is calculated with."""
    tree = parsed(sql, dialect)
    if tree is None:
        return ()
    found = [*_literals(tree)]
    for node in tree.find_all(exp.HexString, exp.National, exp.RawString, exp.ByteString):
        found.append(_Value(None, str(node.this), None))
    if dialect == "sqlite":
        # SQLite reads "ann" as a text if there is no such column.
        found += (_Value(None, node.name, None) for node in tree.find_all(exp.Column) if _may_be_text(node))
    return tuple(found)


def _literals(tree: exp.Expression) -> Iterator[_Value]:
    for place, node in enumerate(tree.find_all(exp.Literal, bfs=False)):
        text = str(node.this)
        compared = _Compared.of(node)
        if not text or _is_date(text, bool(node.is_string), compared):
            continue
        if node.is_string:
            if compared.is_format or not (compared.in_condition or _is_made_up(node, tree)):
                continue
        elif not (compared.direct and compared.columns and not compared.aggregates) and not _is_made_up(node, tree):
            continue
        yield _Value(place, text, compared.columns[0] if compared.columns else None)


@dataclass(frozen=True, slots=True)
class _Compared:
    """What a literal is compared with."""

    direct: bool
    """Whether it is one side of a comparison, and not part of a calculation."""
    in_condition: bool
    columns: tuple[str, ...]
    aggregates: bool
    dated: bool
    """Whether the other side is a part of a date."""
    is_format: bool
    """Whether it says how a date is read or written."""

    @classmethod
    def of(cls, node: exp.Expr) -> _Compared:
        child, parent = node, node.parent
        while isinstance(parent, (exp.Paren, exp.Neg, exp.Cast, exp.Tuple, exp.Lower, exp.Upper)):
            child, parent = parent, parent.parent
        direct = isinstance(parent, (exp.Binary, exp.In, exp.Between)) and isinstance(parent, exp.Predicate)
        others = [each for each in parent.iter_expressions() if each is not child] if direct and parent else []
        columns = tuple(column.name.lower() for each in others for column in each.find_all(exp.Column))
        above = [node.parent] if node.parent is not None else []
        while above[-1].parent is not None:
            above.append(above[-1].parent)
        return cls(
            direct,
            any(isinstance(each, _CONDITIONS) for each in above),
            columns,
            any(each.find(exp.AggFunc) for each in others),
            any(_function(inner) in _DATED for each in others for inner in each.find_all(exp.Func)),
            any(_function(each) in _DATED for each in above if isinstance(each, exp.Func)),
        )


def _function(node: exp.Func) -> str:
    return node.name.lower() if isinstance(node, exp.Anonymous) else node.sql_name().lower()


def _is_date(text: str, quoted: bool, compared: _Compared) -> bool:
    if compared.dated or (quoted and _DATE.fullmatch(text)):
        return True
    return _YEAR.fullmatch(text) is not None and any("year" in name for name in compared.columns)


def _is_made_up(node: exp.Expr, tree: exp.Expression) -> bool:
    """Whether a value is a column of an inner query as it is: `WITH me AS (SELECT 'ann' AS name) …`."""
    parent = node.parent
    if isinstance(parent, exp.Alias):
        parent = parent.parent
    return (
        isinstance(parent, exp.Select)
        and parent is not tree
        and not isinstance(parent.parent, (exp.Exists, exp.Union))
        and parent.find_ancestor(exp.Exists) is None
    )


def _may_be_text(node: exp.Column) -> bool:
    """Whether a name in quotation marks is compared with a column, so that it may be a value."""
    if node.table or not node.this.args.get("quoted"):
        return False
    compared = _Compared.of(node)
    return compared.direct and bool(compared.columns)
