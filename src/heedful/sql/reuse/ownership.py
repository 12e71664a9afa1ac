"""Whose a proven query is, where it names no audience, and whom a question is about.

`customer = 'ann'` is the answer to "What does this customer owe?" as long as Ann asks. A value that neither the
question names nor other queries explain keeps SQL with its owner: the chat session that it ran for, else those who
proved it. "What are my orders?" has another answer for each asker, in English, German, French and Spanish. A question
that is unclear counts as the first person: to refuse costs a query, to serve shows one person's rows to another.
"""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import islice
from typing import NamedTuple

from sqlglot import exp

from heedful.caching import cache_short
from heedful.sql.reuse.consensus import Author, count
from heedful.sql.reuse.query_parts import Literal, function_name, parsed
from heedful.sql.reuse.question_reading import is_name, name, spans
from heedful.sql.reuse.question_words import Words, number, other_numbers, plain, split
from heedful.sql.reuse.study import Study
from heedful.sql.reuse.values import Column, Values
from heedful.text import word_set
from heedful.text.regex import regex

_COMPARING = frozenset(("eq", "neq", "is", "in", "like", "gt", "gte", "lt", "lte", "between"))
_FLAGS = frozenset(("0", "1", "true", "false"))
_FLAG_OPERATORS = frozenset(("eq", "neq", "is"))
_IDENTIFYING = word_set("""
id uid uuid guid key code no nr num number ssn email login user users username account owner customer client
person people member employee staff manager patient doctor student teacher author tenant company supplier vendor
seller buyer contact assignee reviewer by to
""")
_NO_IDS = word_set("paid unpaid prepaid valid invalid void solid hybrid bid grid")
_DATE = regex(r"\d{4}-\d{1,2}(-\d{1,2})?([ T].*)?|\d{4}/\d{1,2}/\d{1,2}|\d{1,2}:\d{2}(:\d{2})?(\.\d+)?")
_YEAR = regex(r"(19|20)\d\d")
_DATED = word_set("""
date time datetime julianday strftime timestamp year month day hour minute week quarter extract date_part
date_trunc datepart dayofweek dayofyear weekday to_char to_date format date_format str_to_date strptime time_to_str
str_to_time ts_or_ds_to_date datetrunc timestamp_trunc cast_to_date now interval date_add date_sub
""")
_CONDITIONS = (exp.Where, exp.Having, exp.Qualify, exp.Predicate, exp.RegexpLike, exp.Values, exp.Join)
_WILDCARDS = regex(r"[%_*^$.]+")
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
        self._count(known, authors, 1)

    def remove(self, name: str) -> None:
        """Takes a proven query out."""
        if name in self._known:
            self._count(*self._known.pop(name), -1)

    def _count(self, known: Study, authors: frozenset[Author], step: int) -> None:
        count(self._proven[known.words, known.template], authors, step)
        for condition in filter(None, {*map(_condition, known.query.literals)}):
            questions = self._shared.setdefault(condition, {})
            count(questions.setdefault(known.words, Counter()), authors, step)
            if not questions[known.words]:
                del questions[known.words]

    def is_owned(self, known: Study) -> bool:
        """Whether SQL has a value that neither its question names, nor other questions of several authors explain, and
        that several authors have not proven for this question."""
        if len(self._proven.get((known.words, known.template), ())) >= _MIN_AUTHORS:
            return False
        return any(not (literal and self._is_default(literal, known.words)) for literal in _unnamed(known))

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
    """The other side of the comparison that a literal is in."""

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
        others = [other for other in parent.iter_expressions() if other is not child] if direct and parent else []
        columns = tuple(column.name.lower() for other in others for column in other.find_all(exp.Column))
        above = [node.parent] if node.parent is not None else []
        while above[-1].parent is not None:
            above.append(above[-1].parent)
        return cls(
            direct,
            any(isinstance(node, _CONDITIONS) for node in above),
            columns,
            any(other.find(exp.AggFunc) for other in others),
            any(function_name(inner) in _DATED for other in others for inner in other.find_all(exp.Func)),
            any(function_name(node) in _DATED for node in above if isinstance(node, exp.Func)),
        )


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


class Person(IntEnum):
    """Whom a question is about, as far as it says."""

    NOBODY = 0
    GROUP = 1
    """ "We": the asker among others."""
    ASKER = 2
    """ "I": the asker alone."""


class _Language(NamedTuple):
    asker: frozenset[str]
    group: frozenset[str]
    other: frozenset[str]
    """Words by which a question in this language is known."""


_PRONOUNS = (
    (
        "i me my mine myself im ive",
        "we us our ours ourselves weve",
        "the of a an is are was were do does did has have had what which who how many in on at by for with from to",
    ),
    (
        "ich mich mir mein meine meinen meinem meiner meines",
        "wir uns unser unsere unseren unserem unserer unseres",
        "der die das den dem ein eine und ist sind war wie viele was welche wer wo in im am mit von je pro nach hat es",
    ),
    (
        "je j moi mon ma mes mien mienne miens miennes",
        "nous notre nos notres",
        "le la les un une des du de et est sont quel quelle quels quelles combien qui que ou quand dans avec pour par",
    ),
    (
        "yo mi mis mio mia mios mias me conmigo tengo debo gasto gaste compre pedi pague hice soy estoy puedo",
        "nosotros nosotras nuestro nuestra nuestros nuestras nos tenemos somos estamos vendimos gastamos compramos",
        "el la los las un una de del y es son cual cuales cuanto cuantos cuantas que quien donde cuando en con por",
    ),
)
_LANGUAGES = [_Language(*map(word_set, words)) for words in _PRONOUNS]

_AMBIGUOUS = word_set("me mi mis mon ma mes nos mia mio im ive j je mir mein gasto gaste compre debo soy")
"""Words of another kind in other languages: they count in a question of their own."""

_SHOW = "show|give|list|name|find|get|fetch|provide|bring|send|return|remind|inform|help|let|allow|refer"
_SEE = "see|view|look|know|ask|learn|find out|check"
_WANT = "want|need|wish|wanna|would like|would love|d like|d love"
_THINGS = "a|an|the|all|some|any|every|each|information|you"
_HELLO = r"^(?:(?:please|kindly|hi|hello|hey|ok|okay|so|thanks|now|just|good \w+)(?: [,!.])? )*"
_START = r"(?:^|[,;:.!] |\b(?:please|kindly|hi|hello|hey|ok|okay|so|thanks|now|just) )"
_YOU = r"(?:can|could|would|will|might) you (?:(?:please|kindly|just|also|maybe) )*"
_POLITE = tuple(
    regex(pattern)
    for pattern in (
        # "Find me in the list" is about the asker.
        rf"{_START}(?:{_YOU})?(?:{_SHOW}) (?:me|us)\b(?! (?:in|on|at|among|within|by)\b)",
        rf"(?:{_START}|\b{_YOU}|\byou to |\band )(?:tell|show) (?:me|us)\b",
        r"\bmind (?:telling|showing|informing) (?:me|us)\b",
        # "I need to pay how much?" and "Which doctors can I see?" are, too.
        rf"{_HELLO}(?:i|we)(?: (?:really|just|only|also|ll|will))* (?:{_WANT}) (?:to (?:{_SEE}|get|have)|{_THINGS})\b",
        rf"{_HELLO}(?:i|we)(?: am| are| m| re| was)? (?:wonder(?:ing)?|(?:looking|searching) for|interested in)\b",
        rf"{_HELLO}(?:can|could|may|might) (?:i|we)(?: please)? (?:{_SEE}|(?:get|have) (?:a|the) (?:list|names?))\b",
        r"\b(?:zeig|zeige|gib|nenne|nenn|sag|liste)(?: bitte)? (?:mir|uns)\b",
        r"\bkannst du (?:mir|uns)\b|\bkonnen sie (?:mir|uns)\b|\b(?:ich|wir) (?:mochte|mochten|will|wollen) wissen\b",
        r"\b(?:montre|donne|dis|montrez|donnez|dites) (?:moi|nous)\b|\b(?:je|nous) (?:veux|voudrais|voulons) savoir\b",
        r"\bj aimerais savoir\b|\bpeux tu (?:me|nous)\b|\bpouvez vous (?:me|nous)\b",
        r"\b(?:me|nos) (?:puedes|puede|podrias|podria|das|dices|muestras)\b|^puedo (?:ver|saber)\b",
    )
)
"""Ways to ask that are not about the asker: "show me", "I want to know", "can I see"."""

_TOKEN = regex(r"[^\W_]+|[,;:.!?]")
_APOSTROPHES = str.maketrans(dict.fromkeys("’‘ʼ´`＇", "'"))
_INVISIBLE = regex("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]")
_ACRONYM = regex(r"\bU\.? ?S\b\.?(?!\w)")
_COUNTRY = regex(
    r"\b(?:the|in|within|across|inside|throughout|which|what|whole|entire|continental) us\b"
    r"|\b(?!(?:all|each|both|none|some|most|any|one|two|three|four|many|few|half|rest|several|which|who) )\w+ of us\b"
    r"|\bus (?:states?|cit(?:y|ies)|citizens?|dollars?|populations?|rivers?|territor(?:y|ies)|presidents?)\b"
)
"""The United States; "sold by us" is the first person."""
_NUMERAL = regex(
    r"\b(?:war|type|phase|part|level|class|category|tier|stage|grade|volume|chapter|section|act|title|division) i"
    r"(?=$| [,;:.?!]| (?:in|of|for)\b)|\bworld war i\b"
    r"|\bi \.(?= \w)|\ba \. i\b|\bi o\b"  # "Michael I. Jordan", "A.I.", "I/O".
)
_PIT = regex(r"\b(?:a|an|the|each|every|which|what|any|no|coal|gold|copper|iron|silver|salt|diamond|land|data) mine\b")


_WORDS_OF_NAMES = 3
"""So many words make a name that holds a pronoun: "My Fair Lady", and not "My Orders"."""


def person(question: str, values: Values) -> Person:
    """Whom a question is about. A name that columns of the database hold, written as they do, is no pronoun.

    >>> from heedful.sql.reuse.values import Known
    >>> [person(asked, Known({})).name for asked in ("What are my orders?", "Show me the orders", "Do we have orders?")]
    ['ASKER', 'NOBODY', 'GROUP']
    """
    found = _person(question)
    if found is Person.NOBODY:
        return found
    words = split(question)
    rest = question
    for span in spans(words, values):
        if is_name(span) and span.stop - span.start >= _WORDS_OF_NAMES:
            text = name(words, span)
            columns = values.columns_of(text)
            for spelling in {spelling for column in columns for spelling in values.spellings(*column, text)}:
                # In lower case, it may as well be what somebody asked before.
                if spelling != spelling.lower():
                    rest = rest.replace(spelling, " ")
    return found if rest == question else _person(rest)


def may_be_personal(question: str) -> bool:
    """Whether a question has the first person, names aside."""
    return _person(question) is not Person.NOBODY


@cache_short(entries=16_384, characters=300)
def _person(question: str) -> Person:
    text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", question))
    if not text.isupper():
        text = _ACRONYM.sub(" ", text)
    text = unicodedata.normalize("NFKD", text.casefold().translate(_APOSTROPHES))
    said = " ".join(_TOKEN.findall("".join(sign for sign in text if not unicodedata.combining(sign))))
    words = set(said.split())
    known = [len(words & (language.asker | language.group | language.other)) for language in _LANGUAGES]
    for pattern in (*_POLITE, _COUNTRY, _NUMERAL, _PIT):
        said = pattern.sub(" ", said)
    words = set(said.split())
    spoken = [each for each, count in zip(_LANGUAGES, known, strict=True) if count == max(known)]
    for about, pronouns in ((Person.ASKER, 0), (Person.GROUP, 1)):
        if any(
            words & (language[pronouns] if language in spoken else language[pronouns] - _AMBIGUOUS)
            for language in _LANGUAGES
        ):
            return about
    return Person.NOBODY
