"""Words of English questions: which carry no meaning of their own, which mean the same, and which decide.

Only words that any question may use stand here. What a word means for one schema is learned from proven questions.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from heedful.sql.reuse.verbs import Mark

_PHRASES = """
the total number of = how_many; the number of = how_many; number of = how_many; the count of = how_many
count of = how_many; count the = how_many; how many = how_many; how much = how_much
how many different = how_many distinct; how many unique = how_many distinct
at least = at_least; no less than = at_least; no fewer than = at_least; a minimum of = at_least; or more = at_least
at most = at_most; no more than = at_most; not more than = at_most; a maximum of = at_most; up to = at_most
or less = at_most; or fewer = at_most
more than = more_than; greater than = more_than; larger than = more_than; bigger than = more_than
higher than = more_than; in excess of = more_than
less than = less_than; fewer than = less_than; smaller than = less_than; lower than = less_than
prior to = before; earlier than = before; later than = after
for each = each; for every = each
as well as = and; along with = and; in addition to = and
other than = except; apart from = except; except for = except
of these = of_these; of those = of_these; such that = that; in terms of = by; according to = by
can not = not; do not = not; does not = not; did not = not; is not = not; are not = not; was not = not; were not = not
"""
BEFORE_NUMBERS = {
    "over": "more_than",
    "above": "more_than",
    "exceeding": "more_than",
    "under": "less_than",
    "below": "less_than",
}
# Only words that mean the same of anything: "cost" and "price" may be two columns.
_SAME = """
largest biggest greatest; large big; larger bigger; smallest littlest tiniest; small little tiny; smaller tinier
average mean avg; total sum; maximum max; minimum min; fewest least; latest newest; each every per; not no none without
except excluding exclude excludes; only solely exclusively; begin start; end finish; buy purchase
movie film; car automobile; doctor physician; airplane plane aircraft; photo photograph
"""
FILLERS = frozenset(
    """
    a an the is are was were be been being am do does did has have had having of in within with
    what which that there these those this whose me please located situated so also s
    """.split()  # noqa: SIM905
)
_LEADS = """
give show tell list name find return display get fetch provide print enumerate identify retrieve
giving showing telling listing naming informing
"""
LEADS = frozenset(_LEADS.split())
ASKING = frozenset(
    "can could would will do you i we us me want need like to know see please let hello hi hey ask mind happen".split()  # noqa: SIM905
)
ASKED = frozenset("know see please hello hi hey want need like ask mind".split())  # noqa: SIM905
"""What an introduction ends with where nothing like "show" follows."""
SCOPE_AT_LEAD = frozenset(("all", "some", "any"))

NEGATIONS = frozenset("not no never without except neither nor nobody nothing non but".split())  # noqa: SIM905
AGGREGATES = frozenset(
    "how_many how_much how average total maximum minimum median who when where why whom count percentage share".split()  # noqa: SIM905
)
SUPERLATIVES = frozenset(
    """
    largest smallest highest lowest longest shortest tallest oldest youngest most least best worst earliest
    deepest richest poorest fastest slowest closest nearest farthest furthest cheapest heaviest lightest densest
    strongest weakest first last latest top bottom
    """.split()  # noqa: SIM905
)
OPERATORS = SUPERLATIVES | frozenset(
    """
    at_least at_most more_than less_than more less fewer before after since until between above below over under
    larger smaller higher lower longer shorter taller older younger newer equal than exactly
    """.split()  # noqa: SIM905
)
SCOPES = frozenset("all each per only both or and other another same different distinct unique by top bottom".split())  # noqa: SIM905
_COUNTED = """
two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen
twenty
"""
_TENS = "thirty forty fifty sixty seventy eighty ninety"
NUMBERS = {word: str(number) for number, word in enumerate(_COUNTED.split(), start=2)} | {
    word: f"{number}0" for number, word in enumerate(_TENS.split(), start=3)
}

PHRASES: dict[tuple[str, ...], tuple[str, ...]] = {
    tuple(left.split()): tuple(right.split())
    for line in _PHRASES.replace("\n", ";").split(";")
    if line.strip()
    for left, right in [line.split("=")]
}
MAX_PHRASE_WORDS = max(map(len, PHRASES))
GROUPS = [group.split() for group in _SAME.replace("\n", ";").split(";") if group.strip()]
SAME: dict[str, str] = {word: group[0] for group in GROUPS for word in group}

# Words that are units behind a number.
_UNITS = """
second seconds sec secs; minute minutes min mins; hour hours hr hrs h; day days; week weeks; month months; year years
gram grams g gramme grammes; kilogram kilograms kg kgs kilo kilos; milligram milligrams mg; percent % pct
meter meters metre metres m; kilometer kilometers kilometre kilometres km kms; centimeter centimeters centimetre cm
mile miles; euro euros eur €; dollar dollars usd $; pound pounds gbp £; cent cents; liter liters litre litres l
"""
UNITS = {word: group.split()[0] for group in _UNITS.replace("\n", ";").split(";") for word in group.split()}

NUMBER, DATE = "number", "date"
DECIDING = OPERATORS | AGGREGATES | NEGATIONS | SCOPES
_THOUSANDS = re.compile(r",(?=\d{3}(?!\d))")
_ZEROS = {"k": 3, "m": 6, "mn": 6, "bn": 9}
_SCALED = re.compile(r"([-\d.,]*\d)(k|mn?|bn)")


class Said(NamedTuple):
    """What small words say of a canonical word, and what was typed for both."""

    word: str
    mark: Mark
    typed: str


class Word(NamedTuple):
    """A word in its canonical form, and the words that were typed for it."""

    canonical: str
    typed: str
    place: int = -1
    """Where they begin."""
    mark: Said | None = None
    participle: bool = False
    """Whether it stands for a value that is a participle: "cancelled"."""
    turned: str = ""
    """The tense of what was an active verb and is a passive one now."""


def is_slot(word: str) -> bool:
    """Whether a canonical word stands for a value."""
    return word.endswith("›")


def number(word: str) -> str | None:
    """A number in one form, or None for any other word.

    >>> number("1,500"), number("five"), number("2.50"), number("1.5m"), number("b12")
    ('1500', '5', '2.5', '1500000', None)
    """
    if word.isalpha():
        return NUMBERS.get(word)
    sign, digits = ("-", word[1:]) if word.startswith("-") else ("", word)
    digits, zeros = _THOUSANDS.sub("", digits), 0
    if scaled := _SCALED.fullmatch(digits):
        digits, zeros = scaled[1], _ZEROS[scaled[2]]
    if not (digits.isascii() and digits.replace(".", "", 1).isdecimal()):
        return None
    whole, _, part = digits.partition(".")
    part = part.ljust(zeros, "0")
    whole, part = (whole + part[:zeros]).lstrip("0") or "0", part[zeros:].rstrip("0")
    return sign + whole + (f".{part}" if part else "")


def is_scaled(word: str) -> bool:
    """Whether a word is a number in thousands, millions or billions: "5k"."""
    return _SCALED.fullmatch(word) is not None
