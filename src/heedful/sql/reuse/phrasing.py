"""One order of words for questions that are phrased in several ways: active and passive, before and behind a noun.

Each rule holds for any schema: "which drugs does Bayer make" asks as "which drugs are made by Bayer" does, "cancelled
visits" are "visits that were cancelled", and "which product is the cheapest" asks for "the cheapest product".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heedful.sql.reuse.inflection import gerund_of, past_of, singular
from heedful.sql.reuse.question_words import (
    DATE,
    DECIDING,
    FILLERS,
    NUMBER,
    SUPERLATIVES,
    UNITS,
    Word,
    is_slot,
    number,
)

_DO = frozenset(("do", "does", "did"))
_HAVE = frozenset(("has", "have", "had"))
_BE = frozenset(("is", "are", "was", "were"))
_PAST = frozenset(("was", "were", "did", "had"))
_RELATIVE = frozenset(("that", "which", "who", "whom"))
_PREPOSITIONS = frozenset(
    """in on at of for from to with by within during since until before after between over under about per as
    into""".split()  # noqa: SIM905
)
_BEFORE_NOUNS = frozenset("which what the all any a an these those how_many of for in by with from".split())  # noqa: SIM905
_PRESENTLY = (("currently",), ("presently",), ("right", "now"), ("at", "the", "moment"), ("at", "present"))
_SPANS = frozenset("second minute hour day week month quarter year".split())  # noqa: SIM905
_LONGER = {"longer": "more_than", "shorter": "less_than"}
_CHEAPER = {"cheaper": "less_than", "dearer": "more_than", "costlier": "more_than"}
_MAX_NOUN_WORDS = 3


def rephrased(words: Sequence[Word]) -> list[Word]:
    """The words of a question in one order, without what adds nothing."""
    made = list(words)
    for rule in _RULES:
        made = rule(made)
    return made


def _without_present(words: list[Word]) -> list[Word]:
    """ "Currently" adds nothing where nothing is in the past, nor does "so far" behind what is no span of time."""
    said = _texts(words)
    if len(said) > 2 and said[-2:] == ["so", "far"] and singular(said[-3]) not in _SPANS:
        words, said = words[:-2], said[:-2]
    if not _PAST.isdisjoint(said):
        return words
    for phrase in _PRESENTLY:
        for at in range(1, len(said) - len(phrase) + 1):
            if tuple(said[at : at + len(phrase)]) == phrase:
                return [*words[:at], *words[at + len(phrase) :]]
    return words


def _relative(words: list[Word]) -> list[Word]:
    """ "Patients who have insurance" are "patients that have insurance", and "have got" is "have"."""
    made: list[Word] = []
    for word in words:
        before = made[-1].canonical if made else ""
        if word.canonical == "who" and _is_noun(before):
            word = word._replace(canonical="that")
        if not (word.canonical == "got" and before in _HAVE):
            made.append(word)
    return made


def _units(words: list[Word]) -> list[Word]:
    """ "500 mg" are "500 milligrams"."""
    made = list(words)
    for at in range(1, len(made)):
        if _is_number(made[at - 1].canonical) and made[at].canonical in UNITS:
            made[at] = made[at]._replace(canonical=UNITS[made[at].canonical])
    return made


def _lacking(words: list[Word]) -> list[Word]:
    """ "Do not have any allergies" and "without allergies" are "have no allergies"."""
    made: list[Word] = []
    place = 0
    while place < len(words):
        said = _texts(words[place : place + 3])
        length = 2 if said[:2] == ["not", "have"] else 1
        if length == 2 or said[0] == "without":
            length += said[length : length + 1] in (["any"], ["a"], ["an"])
            typed = " ".join(word.typed for word in words[place : place + length])
            made.append(words[place]._replace(canonical="no", typed=typed))
        else:
            made.append(words[place])
        place += length
    return made


def _comparing(words: list[Word]) -> list[Word]:
    """ "Longer than 30 minutes" is "more than 30 minutes", and "cheaper than 50" is to "cost less than 50"."""
    said = _texts(words)
    for at, word in enumerate(said[:-2]):
        if said[at + 1] != "than" or not _is_number(said[at + 2]):
            continue
        typed = f"{words[at].typed} {words[at + 1].typed}"
        if word in _LONGER and said[at + 3 : at + 4] and said[at + 3] in _SPANS:
            return [*words[:at], Word(_LONGER[word], typed), *words[at + 2 :]]
        if word in _CHEAPER:
            return [*words[:at], Word("cost", ""), Word(_CHEAPER[word], typed), *words[at + 2 :]]
    return words


def _possessive(words: list[Word]) -> list[Word]:
    """ "Olga Pell's guardian" is "the guardian of Olga Pell"."""
    said = _texts(words)
    for at in range(len(said) - 2):
        if _is_value(said[at]) and said[at + 1] == "s":
            stop = at + 2
            while stop < len(said) and (_is_noun(said[stop]) or said[stop] in SUPERLATIVES):
                stop += 1
            if stop > at + 2 and (stop == len(said) or said[stop] in _PREPOSITIONS or said[stop] in _BE):
                return [*words[:at], *words[at + 2 : stop], Word("of", ""), words[at], *words[stop:]]
    return words


def _superlative_first(words: list[Word]) -> list[Word]:
    """ "Which 3 products are the most expensive" asks for "the 3 most expensive products"."""
    said = _texts(words)
    verb = next((at for at, word in enumerate(said) if word in _BE), len(said))
    first = verb + 1 + (said[verb + 1 : verb + 2] == ["the"])
    if not said or said[0] not in ("which", "what") or first >= len(said) or said[first] not in SUPERLATIVES:
        return words
    last = first + 1
    if said[first] in ("most", "least") and last < len(said) and _is_noun(said[last]):
        last += 1
    if last < len(said) and not (said[last] in _PREPOSITIONS and any(map(_is_value, said[last + 1 : last + 3]))):
        return words  # "Which state is the largest in population" asks for something else.
    counted = [word for word in words[1:verb] if _is_number(word.canonical)]
    noun = [word for word in words[1:verb] if not _is_number(word.canonical)]
    if not 1 <= len(noun) <= _MAX_NOUN_WORDS or any(is_slot(each) or each in DECIDING for each in _texts(noun)):
        return words
    return [*counted, *words[first:last], *noun, *words[last:]]


def _adjective_first(words: list[Word]) -> list[Word]:
    """ "Which customers are active" and "customers that are active" ask for "active customers"."""
    said = _texts(words)
    for at in range(1, len(said) - 1):
        negated = said[at] == "not" and words[at].typed.split()[0] in _BE
        noun = at - 2 if said[at - 1] in _RELATIVE else at - 1
        before = said[noun - 1].rstrip("_") if noun > 0 else "the"
        follows = said[at + 2] if at + 2 < len(said) else "in"
        if not (negated or said[at] in _BE) or noun < 0 or not _is_noun(said[noun]):
            continue
        ends = follows in _PREPOSITIONS or follows == f"‹{DATE}›"
        if before in _BEFORE_NOUNS and ends and _is_adjective(words[at + 1]):
            return [*words[:noun], *words[at : at + 1] * negated, words[at + 1], words[noun], *words[at + 2 :]]
    return words


def _is_adjective(word: Word) -> bool:
    """Whether what is said to be so may be an adjective, or a value that is used as one."""
    text = word.canonical
    is_plain = _is_noun(text) and singular(text) == text and gerund_of(text) is None
    return (is_plain or _is_value(text)) and not _is_participle(word)


def _participle_behind(words: list[Word]) -> list[Word]:
    """ "Cancelled visits" are "visits cancelled"."""
    made = list(words)
    for at in range(len(made) - 1):
        before = made[at - 1].canonical.rstrip("_") if at else "the"
        if _is_participle(made[at]) and before in _BEFORE_NOUNS and _is_noun(made[at + 1].canonical):
            made[at], made[at + 1] = made[at + 1], made[at]
            if before == "the" and at:
                made[at - 1] = made[at - 1]._replace(canonical="the")
    return made


def _passive(words: list[Word]) -> list[Word]:
    """ "Drugs does Bayer make", "drugs that Bayer made" and "drugs Bayer has made" are "drugs made by Bayer"."""
    said = _texts(words)
    for at in range(1, len(said) - 1):
        start = at - 1 if said[at - 1] not in ("the", "the_") else at - 2
        follows = said[at + 2] if at + 2 < len(said) else "in"
        if not _is_value(said[at]) or start < 0 or not (follows in _PREPOSITIONS or is_slot(follows)):
            continue
        if not (start or _is_noun(said[start])):
            continue  # A question that begins with "did" is for yes or no.
        before, verb = said[start], said[at + 1]
        if before in _DO:
            # "What does Rex mean" has no passive.
            base = verb if _is_noun(verb) and past_of(verb) is None and verb != "mean" else None
        elif before in _BE:
            base = gerund_of(verb)
        elif before in _HAVE or before in _RELATIVE or _is_noun(before):
            base = past_of(verb)
        else:
            continue
        if base is not None:
            tense = "present" if before in ("do", "does", "is", "are") else "past"
            turned = words[at + 1]._replace(canonical=f"{base}+ed", turned=tense)
            return [*words[: start + 1], turned, Word("by", ""), *words[start + 1 : at + 1], *words[at + 2 :]]
    return words


_RULES: tuple[Callable[[list[Word]], list[Word]], ...] = (
    _without_present,
    _relative,
    _units,
    _lacking,
    _comparing,
    _possessive,
    _superlative_first,
    _adjective_first,
    _participle_behind,
    _passive,
)


def _texts(words: Sequence[Word]) -> list[str]:
    return [word.canonical for word in words]


def _is_number(word: str) -> bool:
    return number(word) is not None or word == f"‹{NUMBER}›"


def _is_value(word: str) -> bool:
    return is_slot(word) and word not in (f"‹{NUMBER}›", f"‹{DATE}›")


def _is_noun(word: str) -> bool:
    """Whether a word may be a noun or a verb, and no small word."""
    return word.isalpha() and word not in FILLERS and word not in DECIDING and word not in _PREPOSITIONS


def _is_participle(word: Word) -> bool:
    return word.participle or past_of(word.canonical) is not None
