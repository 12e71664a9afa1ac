"""Forms of English words by the rules of spelling and lists of exceptions: plurals, third persons, past forms, "-ing".

Two different words never meet in one form because letters were cut off: a rate is no rating, and planes are no plans.
"""

from __future__ import annotations

import re

from heedful.caching import cache_short

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
_UNCHANGED = frozenset(
    """
    news series species means headquarters barracks gas bias canvas atlas alias lens texas kansas arkansas christmas
    always perhaps sometimes afterwards towards besides overseas whereas yes his hers its ours yours theirs as was this
    us plus thus is diabetes rabies chaos pancreas dallas less unless across savings earnings winnings belongings dues
    odds riches goods customs overalls surroundings humanities
    """.split()  # noqa: SIM905
)
_IN_IC = frozenset("topic clinic metric mechanic critic comic graphic fabric statistic classic tactic medic".split())  # noqa: SIM905
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
_NO_PAST = frozenset("hundred sacred naked wicked embed kindred hatred shred sled bobsled biped moped infrared".split())  # noqa: SIM905
_NO_VERB = frozenset(
    """
    morning evening during everything something nothing anything king ring wing string spring thing ceiling sibling
    bring sing swing cling fling sling sting wring pudding herring sterling duckling
    """.split()  # noqa: SIM905
)
# Verbs whose "e" the rules below don't find, and those that they would find one in.
_WITH_E = frozenset(
    """
    adore arrange assume become breathe browse challenge change combine compete compile complete confine consume convene
    create decline decode define degrade delete denote determine devote downgrade encode escape evade examine exchange
    excite explode explore headline ignite ignore imagine incline interfere intervene invade invite machine nickname
    outline overcome overtake overwrite paste persuade postpone presume profile promote quote range rearrange recreate
    redefine refine rename reroute reschedule restore resume reunite rewrite route schedule squeeze taste telephone
    undermine undertake underline unite upgrade waste welcome
    """.split()  # noqa: SIM905
)
_WITHOUT_E = frozenset("bias bus calendar combat debut dial focus fuel gas ruin suit".split())  # noqa: SIM905
_WITH_E_US = frozenset("excus accus refus confus reus amus abus fus mus infus diffus".split())  # noqa: SIM905
_IN_EE = frozenset("agree disagree free guarantee decree".split())  # noqa: SIM905
_DOUBLE = frozenset("enroll recall install instill fulfill add err boycott".split())  # noqa: SIM905
_VOWEL = re.compile("[aeiouy]+")
_BEFORE_E = tuple("v u c iz bl tl dl gl pl fl kl zl cl dg rg ns rs ls lg ps iat uat ced rib yz ys".split())  # noqa: SIM905
_SIBILANT = ("ss", "sh", "ch", "x", "zz")


def _listed(text: str, *, first: bool) -> dict[str, str]:
    """Each form of a list with its base, which comes `first` or last."""
    groups = [group.split() for group in text.replace("\n", ";").split(";") if group.strip()]
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
    syllables = len(_VOWEL.findall(stem))
    if is_closed and syllables == 1:
        return True
    return (
        stem.endswith(("at", "us", "as", "os", "is", "id", "ud", "ak", "ok", "ag", "ut", "ir", "ur", "ar"))
        and is_closed
    )
