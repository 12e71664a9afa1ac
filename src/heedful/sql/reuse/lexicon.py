"""Words of English questions: which carry no meaning of their own, which mean the same, and which decide.

Only words that any question may use stand here. What a word means for one schema is learned from proven questions.
"""

from __future__ import annotations

_PHRASES = """
how many people live = population; how many people reside = population; how many people in = population in
how many people are there in = population in; how many people are in = population in
how many inhabitants live = population; how many inhabitants = population; how many residents live = population
how many residents = population; how many citizens live = population; how many citizens = population
number of inhabitants = population; number of residents = population; number of citizens = population
the total number of = how_many; the number of = how_many; number of = how_many; the count of = how_many
count of = how_many; count the = how_many; how many = how_many; how much = how_much
at least = at_least; no less than = at_least; no fewer than = at_least; a minimum of = at_least; or more = at_least
at most = at_most; no more than = at_most; not more than = at_most; a maximum of = at_most; up to = at_most
or less = at_most; or fewer = at_most
more than = more_than; greater than = more_than; larger than = more_than; bigger than = more_than
higher than = more_than; in excess of = more_than
less than = less_than; fewer than = less_than; smaller than = less_than; lower than = less_than
prior to = before; earlier than = before; later than = after
for each = each; for every = each
as well as = and; along with = and; in addition to = and
other than = except; apart from = except; except for = except; excluding = except
such that = that; in terms of = by; according to = by
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
average mean avg; total sum; maximum max; minimum min; fewest least; latest newest; each every per; no none
named called titled; only solely exclusively; begin start; end finish; buy purchase
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
"""
LEADS = frozenset(_LEADS.split())
ASKING = frozenset("can could would will you i we us me want need like to know see please let hello hi hey".split())  # noqa: SIM905
SCOPE_AT_LEAD = frozenset(("all", "some", "any"))

NEGATIONS = frozenset("not no never without except neither nor nobody nothing non but exclude".split())  # noqa: SIM905
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
NUMBERS = {word: str(number) for number, word in enumerate(_COUNTED.split(), start=2)}

PHRASES: dict[tuple[str, ...], tuple[str, ...]] = {
    tuple(left.split()): tuple(right.split())
    for line in _PHRASES.replace("\n", ";").split(";")
    if line.strip()
    for left, right in [line.split("=")]
}
MAX_PHRASE_WORDS = max(map(len, PHRASES))
SAME: dict[str, str] = {
    word: group.split()[0] for group in _SAME.replace("\n", ";").split(";") if group.strip() for word in group.split()
}
