"""Words of English questions: how a text is split into them, which mean the same, which decide, and their forms.

Only words that any question may use stand here. What a word means for one schema is learned from proven questions.
Two different words never meet in one form because letters were cut off: a rate is no rating, and planes are no plans.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from heedful.caching import cache_short
from heedful.text import word_set
from heedful.text.regex import regex

Words = tuple[str, ...]


def word_groups(text: str) -> list[list[str]]:
    """The words of a list of groups, which lines and semicolons part."""
    return [group.split() for group in text.replace("\n", ";").split(";") if group.strip()]


_WORD = regex(
    r"\d{4}-\d{2}-\d{2}|(?<![\w.)])-?(?:\d+(?:[.,]\d+)*|\.\d+)(?:k|mn?|bn)?(?![^\W_])|[^\W_]+"
    r"|!=|<>|[<>]=|!(?=[^\W_])|[<>=≤≥≠$€£¥%+#√‰±≈~°′″§¬^×÷∞\u0334-\u0338\u2600-\u27bf\U0001f000-\U0001faff]",
    re.IGNORECASE,
)
_TYPED = regex(rf"[^\W_]+n['’]t(?![^\W_])|{_WORD.pattern}", re.IGNORECASE)
_ACCENTS = regex("[\u0300-\u0333\u0339-\u036f]")  # Not what strikes through.
_MINUS = regex(r"(?<![\w)])[\u2010-\u2015\u2212](?=[\d.])")
_RAISED = regex("[\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u209f\u2150-\u215f\u2189\u2460-\u24ff]")
"""Numbers that are no digits: powers, fractions and those in circles."""
_DIGITS = regex(r"\d+(?:,\d{3})*(?:\.\d+)?")
_ONES = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_COUNTED = {word: count for count, word in enumerate(_ONES.split())} | {
    word: 10 * count for count, word in enumerate(_TENS.split(), start=2)
}
_SCALES = {"dozen": 12, "hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_SCALES |= {"mn": 1_000_000, "bn": 1_000_000_000}
_LARGEST = Decimal(10) ** 20  # What is scaled further is no number that somebody means.
_COMPOUND = frozenset((*_SCALES, *_TENS.split()))


def split(text: str) -> list[str]:
    """The words of a text in lower case, without accents and punctuation, but with signs that compare or are units.
    A number in several words is one.

    >>> split("Saint-Étienne, on 2024-05-01: over 1,500")
    ['saint', 'etienne', 'on', '2024-05-01', 'over', '1,500']
    >>> split("more than two hundred and fifty thousand"), split("half a dozen")
    (['more', 'than', '250000'], ['6'])
    """
    text = text.casefold().replace("’", "'").replace("can't", "can not").replace("won't", "will not")
    if not text.isascii():
        text = _RAISED.sub(" ^ ", _MINUS.sub("-", text))
        text = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    words = _WORD.findall(text.replace("n't", " not"))
    return words if _COMPOUND.isdisjoint(words) else _with_numbers(words)


@cache_short(entries=4_096, characters=500)
def places(text: str) -> tuple[tuple[str, int, int], ...]:
    """Each word of a text as it is compared, and where it begins and ends there; "don't" is two."""
    return tuple((word, *found.span()) for found in _TYPED.finditer(text) for word in split(found.group()))


def _with_numbers(words: Sequence[str]) -> list[str]:
    """The words, with numbers of several words as one: "twenty-five", "two hundred and five", "2.5 million"."""
    made, place = [], 0
    while place < len(words):
        length, value = _number(words, place)
        made.append(format(value.normalize(), "f") if length > 1 else words[place])
        place += length
    return made


def _number(words: Sequence[str], start: int) -> tuple[int, Decimal]:
    """How many words from `start` on are one number, and its value; 1 where there is none."""
    follows = words[start + 1] if start + 1 < len(words) else ""
    total, current, place = Decimal(0), Decimal(0), start
    behind = words[start + 2 : start + 3]
    if words[start] == "half" and follows in ("a", "an") and not _SCALES.keys().isdisjoint(behind):
        current, place = Decimal("0.5"), start + 2
    elif follows in _SCALES and (words[start] in ("a", "an") or _DIGITS.fullmatch(words[start])):
        current, place = Decimal(1 if words[start] in ("a", "an") else words[start].replace(",", "")), start + 1
    while place < len(words):
        word = words[place]
        follows = words[place + 1] if place + 1 < len(words) else ""
        if word in _SCALES and 0 < current < _LARGEST:
            scale = _SCALES[word]
            total, current = (total, current * scale) if scale <= 100 else (total + current * scale, Decimal(0))
        elif word in _COUNTED and _follows(current, _COUNTED[word]):
            current += _COUNTED[word]
        elif word != "and" or not (total or current >= 100) or follows not in _COUNTED or current % 100:
            break
        place += 1
    return max(1, place - start), total + current


def _follows(current: Decimal, count: int) -> bool:
    """Whether a count may stand behind a number: "twenty" before "five", "hundred" before anything."""
    tens = current % 100
    return not tens or (tens >= 20 and not tens % 10 and 0 < count < 10)


def other_numbers(word: str) -> tuple[str, ...]:
    """The singular or the plural that a noun may be of.

    >>> other_numbers("cities"), other_numbers("boxes"), other_numbers("car")
    (('city',), ('box', 'boxe'), ('cars', 'cares'))
    """
    if len(word) < 3 or not word.isalpha():
        return ()
    if word.endswith("ies") and len(word) > 4:
        return (f"{word[:-3]}y",)
    if word.endswith("es"):
        return word[:-2], word[:-1]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return (word[:-1],)
    if word.endswith("y") and word[-2] not in "aeiou":
        return (f"{word[:-1]}ies",)
    return f"{word}s", f"{word}es"


def occurrences(words: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """The places where some words stand in a row."""
    return [at for at in range(len(words) - len(wanted) + 1) if list(words[at : at + len(wanted)]) == list(wanted)]


def plain(value: str) -> str:
    """A value as it is compared: its words, whatever their case and punctuation."""
    return " ".join(split(value))


class Mark(NamedTuple):
    """Features of one word; "" where nothing is said."""

    main: str = ""
    """Whether something *is* it or *has* it."""
    voice: str = ""
    tense: str = ""


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
    **dict.fromkeys(("over", "above", "exceeding"), "more_than"),
    **dict.fromkeys(("under", "below"), "less_than"),
}
# Only words that mean the same of anything: "cost" and "price" may be two columns.
_SAME = """
largest biggest greatest; large big; larger bigger; smallest littlest tiniest; small little tiny; smaller tinier
average mean avg; total sum; maximum max; minimum min; fewest least; latest newest; each every per; not no none without
except excluding exclude excludes; only solely exclusively; begin start; end finish; buy purchase
movie film; car automobile; doctor physician; airplane plane aircraft; photo photograph
"""
FILLERS = word_set("""
a an the is are was were be been being am do does did has have had having of in within with
what which that there these those this whose me please located situated so also s
""")
LEADS = word_set("""
give show tell list name find return display get fetch provide print enumerate identify retrieve
giving showing telling listing naming informing
""")
ASKING = word_set(
    "can could would will do you i we us me want need like to know see please let hello hi hey ask mind happen"
)
ASKED = word_set("know see please hello hi hey want need like ask mind")
"""Words that end an introduction where nothing like "show" follows."""
SCOPE_AT_LEAD = frozenset(("all", "some", "any"))

NEGATIONS = word_set("not no never without except neither nor nobody nothing non but")
AGGREGATES = word_set(
    "how_many how_much how average total maximum minimum median who when where why whom count percentage share"
)
SUPERLATIVES = word_set("""
largest smallest highest lowest longest shortest tallest oldest youngest most least best worst earliest
deepest richest poorest fastest slowest closest nearest farthest furthest cheapest heaviest lightest densest
strongest weakest first last latest top bottom
""")
OPERATORS = SUPERLATIVES | word_set("""
at_least at_most more_than less_than more less fewer before after since until between above below over under
larger smaller higher lower longer shorter taller older younger newer equal than exactly
""")
SCOPES = word_set("all each per only both or and other another same different distinct unique by top bottom")
NUMBERS = {word: str(count) for word, count in _COUNTED.items() if count > 1}

PHRASES: dict[tuple[str, ...], tuple[str, ...]] = {
    tuple(words[: words.index("=")]): tuple(words[words.index("=") + 1 :]) for words in word_groups(_PHRASES)
}
MAX_PHRASE_WORDS = max(map(len, PHRASES))
GROUPS = word_groups(_SAME)
SAME: dict[str, str] = {word: group[0] for group in GROUPS for word in group}

# Words that are units behind a number.
_UNITS = """
second seconds sec secs; minute minutes min mins; hour hours hr hrs h; day days; week weeks; month months; year years
gram grams g gramme grammes; kilogram kilograms kg kgs kilo kilos; milligram milligrams mg; percent % pct
meter meters metre metres m; kilometer kilometers kilometre kilometres km kms; centimeter centimeters centimetre cm
mile miles; euro euros eur €; dollar dollars usd $; pound pounds gbp £; cent cents; liter liters litre litres l
"""
UNITS = {word: group[0] for group in word_groups(_UNITS) for word in group}

GENERIC = word_set("name title id code label key value text full short")
"""Names of columns that don't tell what their values are."""

NUMBER, DATE = "number", "date"
FIXED, COMPARING = NEGATIONS | AGGREGATES, OPERATORS | SCOPES
DECIDING = FIXED | COMPARING
_THOUSANDS = regex(r",(?=\d{3}(?!\d))")
_ZEROS = {"k": 3, "m": 6, "mn": 6, "bn": 9}
_SCALED = regex(r"([-\d.,]*\d)(k|mn?|bn)")


class Said(NamedTuple):
    """The mark of a canonical word, and the text typed for both."""

    word: str
    mark: Mark
    typed: str


class Phrase(NamedTuple):
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


_PLURALS = """
men man; women woman; children child; mice mouse; feet foot; teeth tooth; geese goose; oxen ox; criteria criterion
phenomena phenomenon; analyses analysis; diagnoses diagnosis; hypotheses hypothesis; theses thesis; crises crisis
syntheses synthesis; parentheses parenthesis; oases oasis; axes axis; indices index; vertices vertex; matrices matrix
appendices appendix; halves half; knives knife; shelves shelf; wolves wolf; calves calf; thieves thief; loaves loaf
wives wife; elves elf; scarves scarf; movies movie; cookies cookie; calories calorie; rookies rookie; zombies zombie
selfies selfie; hoodies hoodie; smoothies smoothie; prairies prairie; ties tie; dies die; lies lie; pies pie; vies vie
shoes shoe; toes toe; canoes canoe; caches cache; headaches headache; toothaches toothache; aches ache; niches niche
avalanches avalanche; gases gas; quizzes quiz; biases bias; canvases canvas; atlases atlas; aliases alias; lenses lens
busses bus; does do; goes go; has have; buses bus; focuses focus; menus menu; flus flu
"""
# They end as plurals do and are none, or are the same in both numbers.
_UNCHANGED = word_set("""
news series species means headquarters barracks gas bias canvas atlas alias lens texas kansas arkansas christmas
always perhaps sometimes afterwards towards besides overseas whereas yes his hers its ours yours theirs as was this
us plus thus is diabetes rabies chaos pancreas dallas less unless across savings earnings winnings belongings dues
odds riches goods customs overalls surroundings humanities
""")
_IN_IC = word_set("topic clinic metric mechanic critic comic graphic fabric statistic classic tactic medic")
_IRREGULAR = """
begin began begun; bring brought; build built; buy bought; catch caught; choose chose chosen; come came; do done
draw drew drawn; drink drank drunk; drive drove driven; eat ate eaten; fall fell fallen; feel felt; fight fought
find found; fly flew flown; forget forgot forgotten; get got gotten; give gave given; go went gone; grow grew grown
hear heard; hide hid hidden; hold held; keep kept; know knew known; lead led; leave left; lend lent; lose lost
make made; mean meant; meet met; pay paid; ride rode ridden; rise rose risen; run ran; say said; see saw seen
sell sold; send sent; sing sang sung; sit sat; sleep slept; speak spoke spoken; spend spent; stand stood
steal stole stolen; swim swam swum; take took taken; teach taught; tell told; think thought
throw threw thrown; understand understood; wear wore worn; win won; write wrote written; withdraw withdrew withdrawn
"""
_NO_PAST = word_set("hundred sacred naked wicked embed kindred hatred shred sled bobsled biped moped infrared")
_NO_VERB = word_set("""
morning evening during everything something nothing anything king ring wing string spring thing ceiling sibling
bring sing swing cling fling sling sting wring pudding herring sterling duckling
""")
# Verbs whose "e" the rules below don't find, and those that they would find one in.
_WITH_E = word_set("""
adore arrange assume become breathe browse challenge change combine compete compile complete confine consume convene
create decline decode define degrade delete denote determine devote downgrade encode escape evade examine exchange
excite explode explore headline ignite ignore imagine incline interfere intervene invade invite machine nickname
outline overcome overtake overwrite paste persuade postpone presume profile promote quote range rearrange recreate
redefine refine rename reroute reschedule restore resume reunite rewrite route schedule squeeze taste telephone
undermine undertake underline unite upgrade waste welcome
""")
_WITHOUT_E = word_set("bias bus calendar combat debut dial focus fuel gas ruin suit")
_WITH_E_US = word_set("excus accus refus confus reus amus abus fus mus infus diffus")
_IN_EE = word_set("agree disagree free guarantee decree")
_DOUBLE = word_set("enroll recall install instill fulfill add err boycott")
_VOWEL = regex("[aeiouy]+")
_BEFORE_E = tuple("v u c iz bl tl dl gl pl fl kl zl cl dg rg ns rs ls lg ps iat uat ced rib yz ys".split())  # noqa: SIM905
_CLOSED = tuple("at us as os is id ud ak ok ag ut ir ur ar".split())  # noqa: SIM905
_SIBILANT = ("ss", "sh", "ch", "x", "zz")


def _listed(text: str, *, first: bool) -> dict[str, str]:
    """Each form of a list with its base, which comes `first` or last."""
    groups = word_groups(text)
    return {form: group[0] if first else group[-1] for group in groups for form in (group[1:] if first else group[:-1])}


_BASES = _listed(_PLURALS, first=False)
_PASTS = _listed(_IRREGULAR, first=True)


@cache_short(entries=16_384, characters=100)
def singular(word: str) -> str:
    """A noun in the singular, or a verb in the third person without its ending; any other word as it is.

    >>> [singular(word) for word in "planes plans cities classes houses statuses rates ratings status".split()]
    ['plane', 'plan', 'city', 'class', 'house', 'status', 'rate', 'rating', 'status']
    """
    if word in _BASES:
        return _BASES[word]
    if len(word) < 4 or not word.endswith("s") or word in _UNCHANGED or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ics"):
        return word[:-1] if word[:-1] in _IN_IC else word  # "Economics" is no plural.
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    if word.endswith("es"):
        stem = word[:-2]
        if stem.endswith(_SIBILANT) or (stem.endswith("o") and len(stem) > 2):
            return stem
        if stem.endswith("us") and not stem.endswith(("ous", "aus")) and len(stem) > 3 and stem not in _WITH_E_US:
            return stem
    return word[:-1]


@cache_short(entries=16_384, characters=100)
def past_of(word: str) -> str | None:
    """The verb that a word is a past form of.

    >>> [past_of(word) for word in "borrowed rated planned carried wrote written need".split()]
    ['borrow', 'rate', 'plan', 'carry', 'write', 'write', None]
    """
    if word in _PASTS:
        return _PASTS[word]
    if len(word) < 5 or not word.endswith("ed") or word in _NO_PAST:
        return None
    stem = word[:-2]
    if stem.endswith("e"):
        return word[:-1] if word[:-1] in _IN_EE else None
    return f"{stem[:-1]}y" if stem.endswith("i") else _verb(stem)


@cache_short(entries=16_384, characters=100)
def gerund_of(word: str) -> str | None:
    """The verb that a word has the "-ing" of.

    >>> [gerund_of(word) for word in "living running bordering seeing morning".split()]
    ['live', 'run', 'border', 'see', None]
    """
    stem = word[:-3]
    if not word.endswith("ing") or word in _NO_VERB or not _VOWEL.search(stem):
        return None
    return _verb(stem)


def _verb(stem: str) -> str:
    """The verb that is left without "-ed" or "-ing": "plann" is of "plan", and "rat" of "rate"."""
    if f"{stem}e" in _WITH_E:
        return f"{stem}e"
    if stem in _WITHOUT_E:
        return stem
    if len(stem) > 2 and stem[-1] == stem[-2] and stem[-1] in "bdgklmnprtvz":
        undoubled = stem[:-1]
        # "Call", "add" and "fill" have both letters.
        return stem if stem in _DOUBLE or (stem[-1] == "l" and len(_VOWEL.findall(undoubled)) == 1) else undoubled
    if stem.endswith(_BEFORE_E):
        return f"{stem}e"
    return f"{stem}e" if _lacks_e(stem) else stem


def _lacks_e(stem: str) -> bool:
    """Whether one consonant behind one vowel, as in "rat", would be doubled before an ending if no "e" were gone."""
    if len(stem) < 2 or stem[-1] in "aeiouwxy":
        return False
    if stem[-1] == "s" and stem[-2] in "aeiou":
        return True
    is_closed = stem[-2] in "aeiouy" and (len(stem) < 3 or stem[-3] not in "aeiou" or stem[-3:-1] == "ui")
    return is_closed and (len(_VOWEL.findall(stem)) == 1 or stem.endswith(_CLOSED))
