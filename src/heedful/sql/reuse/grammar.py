"""The grammar of English questions: what small words say of others, and one order for what is phrased in several ways.

Questions are compared without forms of "be", "have" and "do", and mostly rightly: "which cities are in Texas" asks for
what "cities in Texas" does. Books that are borrowed are not those that were, though, nor are employees that have
managers those that are managers. What a question doesn't say agrees with anything.

Each rule holds for any schema: "which drugs does Bayer make" asks as "which drugs are made by Bayer" does, "cancelled
visits" are "visits that were cancelled", and "which product is the cheapest" asks for "the cheapest product".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from heedful.sql.reuse import question_words as lists
from heedful.sql.reuse.question_words import DATE, NUMBER, Mark, Phrase, gerund_of, is_slot, number, past_of, singular
from heedful.text import word_set
from heedful.text.regex import regex

_BE = {"is": "present", "are": "present", "am": "present", "was": "past", "were": "past"}
_HAVE = {"have": "present", "has": "present", "had": "past"}
_INFINITIVES = frozenset(("be", "have"))
_MODALS = word_set("will would can could shall should may might must to")
_BETWEEN = word_set("the the_ a an no not also still already currently now ever never all any some only been being")
_WH = word_set("what which who whom whose where when why how many much")
_ADVERBIAL = word_set("when where why how")
_RELATIVE = frozenset(("who", "that", "which"))
_PRONOUNS = word_set("i we you he she it they")
PREPOSITIONS = word_set(
    "in on at of for from to with by within during since until before after between over under about per as into"
)
_NO_NOUNS = lists.FILLERS | lists.DECIDING | PREPOSITIONS
_ENDING_CLAUSES = PREPOSITIONS | word_set("without near among through than and or but if like")
_SMALL = _ENDING_CLAUSES.union(_WH, _BETWEEN, _MODALS, _PRONOUNS, _BE, _HAVE, ("there", "that", "do", "does", "did"))
_TIMES = word_set("last past previous yesterday ago earlier recently")
_SUPERLATIVES = word_set("most least first last top best worst")
_YEAR = regex(r"(?:19|20)\d\d(?:.{6})?", re.DOTALL)
_NAMED = word_set("named called titled entitled")
NAMED = "named"
_CLAUSE_ENDS = _ENDING_CLAUSES.union(_BE, _HAVE, _WH)
_ARTICLES = ("the", "the_", "a", "an")
_NO_NAMES = ("‹date›", "‹number›")


class Verbs(NamedTuple):
    """The verbs of a question, by the places of their words."""

    marks: dict[int, Mark]
    forms: dict[int, str]
    """Canonical forms where they depend on the words around: "are living" is "live"."""
    said: dict[int, str]
    """The text typed for a mark: "have been borrowed"."""


def verbs(
    words: Sequence[str], nouns: frozenset[str] = frozenset(), participles: frozenset[int] = frozenset()
) -> Verbs:
    """The verbs of a question; words in `nouns` are names of the schema, and no verbs. `participles` are
    the places of values like "cancelled".

    >>> verbs("which books have been borrowed".split()).marks
    {4: Mark(main='', voice='passive', tense='past')}
    >>> verbs("which employees have managers".split()).marks
    {3: Mark(main='have', voice='', tense='present')}
    """
    return _Reader(words, nouns, participles).read()


def names_time(words: Sequence[str]) -> bool:
    """Whether a question says when, so that its tense adds nothing: "sales in 2023"."""
    return any(word in _TIMES or _YEAR.fullmatch(word) for word in words)


def opposition(asked: Mark, proven: Iterable[Mark]) -> bool:
    """Whether something is said that all proven questions which say something there contradict."""
    known = list(proven)
    for place, feature in enumerate(asked):
        others = {mark[place] for mark in known} - {""}
        if feature and others and feature not in others:
            return True
    return False


class _Reader:
    def __init__(self, words: Sequence[str], nouns: frozenset[str], participles: frozenset[int]) -> None:
        self.words = words
        self.nouns = nouns
        self.participles = participles
        self.found = Verbs({}, {}, {})

    def read(self) -> Verbs:
        for place, word in enumerate(self.words):
            if word in _BE:
                self._be(place, _BE[word])
            elif word in _HAVE:
                modal = any(word in _MODALS for word in self.words[max(0, place - 2) : place])
                self._have(place, "" if modal else "past" if "did" in self.words[:place] else _HAVE[word])
            elif word == "be":
                self._be(place, "")
            elif word == "being" and _BE.keys().isdisjoint(self.words[max(0, place - 2) : place]):
                self._participle(place, self._next(place), "present")
            elif word == "did":
                self._did(place)
            elif word in ("with", "without") and self._is_content(place - 1):
                self._has(place, self._next(place), "")
        self._alone()
        return self.found

    def _be(self, place: int, tense: str) -> None:
        at = self._next(place)
        if at is None or self._participle(place, at, tense):
            return
        before = self.words[place - 1] if place else ""
        if is_slot(self.words[at]) and self.words[at + 1 : at + 2] == ("s",):
            at = min(at + 2, len(self.words) - 1)  # "Who is ‹Ann› s manager?"
        elif place == 0 or before in _ADVERBIAL or is_slot(self.words[at]) or self.words[at] in _PRONOUNS:
            # "When was the book Dune borrowed?", "Which drugs is Ann taking?"
            for behind in self._clause(at):
                if self._participle(place, behind, tense):
                    return
            if place == 0 and is_slot(self.words[at]):
                self._owned(place, at, "be", tense)  # "Is ‹Ann› a manager?"
                return
        at = self._noun(at)
        follows = "".join(self.words[at + 1 : at + 2])
        if self._is_content(at) and (not is_slot(follows) or follows in _NO_NAMES):  # "Is the city ‹Hull› in"
            relative = before in _RELATIVE and self._is_content(place - 2)
            is_main = relative or before == "who" or self._is_content(place - 1)
            self._mark(place, at, Mark("be" if is_main else "", "", tense))

    def _have(self, place: int, tense: str) -> None:
        at = self._next(place)
        if at is None:
            return
        if "been" in self.words[place:at]:
            if not self._participle(place, at, "past") and self._is_content(at):
                self._mark(place, at, Mark("be", "", "past"))
            return
        inverted = place == 0 or is_slot(self.words[at]) or self.words[at] in _PRONOUNS
        if inverted:
            at = next((behind for behind in self._clause(at) if past_of(self.words[behind]) is not None), at)
        if past_of(self.words[at]) is not None:
            self._mark(place, at, Mark("", "active", "past"))
        elif place == 0 and is_slot(self.words[at]):
            self._owned(place, at, "have", tense)
        else:
            self._has(place, at, tense)

    def _owned(self, place: int, subject: int, main: str, tense: str) -> None:
        """Marks what the value behind a verb that comes first is or has."""
        at = self._next(subject)
        if at is not None and self._is_content(at := self._noun(at)):
            self._mark(place, at, Mark(main, "", tense))

    def _has(self, place: int, at: int | None, tense: str) -> None:
        if at is None:
            return
        at = self._noun(at)
        is_value = at < len(self.words) and is_slot(self.words[at])
        if is_value or (self._is_content(at) and past_of(self.words[at]) is None):
            self._mark(place, at, Mark("have", "", tense))

    def _participle(self, place: int, at: int | None, tense: str) -> bool:
        """Marks a participle that a form of "be" belongs to."""
        if at is None:
            return False
        word = self.words[at]
        if at in self.participles or past_of(word) is not None:
            self._mark(place, at, Mark("", "passive", tense))
            if word in _NAMED:
                self.found.forms[at] = NAMED
            return True
        verb = gerund_of(word) if word not in self.nouns else None
        if verb is not None:
            perfect = "been" in self.words[place:at]
            self.found.forms[at] = f"{verb}+ed" if tense == "past" and not perfect else verb
            self._mark(place, at, Mark("", "active", ""))
            return True
        return False

    def _did(self, place: int) -> None:
        """Marks the verb whose past "did" forms: the last word behind it before a preposition, if a subject is
        between them."""
        clause = list(self._clause(place + 1))
        if len(clause) < 2:
            return
        at = clause[-1]
        word = self.words[at]
        if self._is_content(at) and singular(word) == word and past_of(word) is None and word not in _INFINITIVES:
            self.found.forms[at] = f"{word}+ed"
            self._mark(place, at, Mark("", "active", "past"))

    def _alone(self) -> None:
        """Marks past forms without an auxiliary: those of main clauses are active, others may be either."""
        finite = any(word in _BE or word in _HAVE or word in ("do", "does", "did") for word in self.words)
        asks = bool(self.words) and self.words[0] in _WH
        for at, word in enumerate(self.words):
            if at in self.found.marks:
                continue
            if past_of(word) is not None:
                relative = self.words[at - 1] in _RELATIVE and at > 1
                after = self.words[at + 1] if at + 1 < len(self.words) else ""
                if at and (relative or (asks and not finite)) and after != "by":
                    self._mark(at, at, Mark("", "active", "past"))
                    finite = True
                elif word in _NAMED:
                    self.found.forms[at] = NAMED
            elif at and word not in self.nouns and (verb := gerund_of(word)) and self._is_postnominal(at):
                self.found.forms[at] = verb

    def _is_postnominal(self, at: int) -> bool:
        """Whether an "-ing" says what a noun does: "papers citing Clark", but not "the customers' rating of Rex"."""
        before, after = self.words[at - 1], self.words[at + 1] if at + 1 < len(self.words) else "of"
        if is_slot(before):
            return is_slot(after) or after in _ARTICLES
        return self._is_content(at - 1) and singular(before) != before and after != "of"

    def _mark(self, place: int, at: int, mark: Mark) -> None:
        if any(mark) and at not in self.found.marks:
            self.found.marks[at] = mark
            between = self.words[place:at] if at - place < 4 else self.words[place : place + 1]
            small = [word for word in between if at - place >= 4 or not (word in _ARTICLES or is_slot(word))]
            self.found.said[at] = " ".join([*small, self.words[at]])

    def _next(self, place: int) -> int | None:
        """The next word that an auxiliary may belong to."""
        at = place + 1
        while at < len(self.words) and self.words[at] in _BETWEEN:
            at += 1
        return at if at < len(self.words) else None

    def _noun(self, at: int) -> int:
        """The place behind superlatives: "has the largest population" says that there is a population."""
        while at < len(self.words) and (self.words[at].endswith("est") or self.words[at] in _SUPERLATIVES):
            at += 1
        return at

    def _clause(self, start: int) -> Iterator[int]:
        """The places from here on to the next preposition or auxiliary."""
        for at in range(start, len(self.words)):
            if self.words[at] in _CLAUSE_ENDS:
                return
            yield at

    def _is_content(self, at: int) -> bool:
        if not 0 <= at < len(self.words):
            return False
        return self.words[at] not in _SMALL and not is_slot(self.words[at])


_DO = frozenset(("do", "does", "did"))
_IS = frozenset(("is", "are", "was", "were"))
_PAST = frozenset(("was", "were", "did", "had"))
_RELATIVE_PRONOUNS = frozenset(("that", "which", "who", "whom"))
_BEFORE_NOUNS = word_set("which what the all any a an these those how_many of for in by with from")
_PRESENTLY = (("currently",), ("presently",), ("right", "now"), ("at", "the", "moment"), ("at", "present"))
_SPANS = word_set("second minute hour day week month quarter year")
_LONGER = {"longer": "more_than", "shorter": "less_than"}
_CHEAPER = {"cheaper": "less_than", "dearer": "more_than", "costlier": "more_than"}
_MAX_NOUN_WORDS = 3


def rephrased(words: Sequence[Phrase]) -> list[Phrase]:
    """The words of a question in one order, without what adds nothing."""
    made = list(words)
    for rule in _RULES:
        made = rule(made)
    return made


def _without_present(words: list[Phrase]) -> list[Phrase]:
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


def _relative(words: list[Phrase]) -> list[Phrase]:
    """ "Patients who have insurance" are "patients that have insurance", and "have got" is "have"."""
    made: list[Phrase] = []
    for word in words:
        before = made[-1].canonical if made else ""
        if word.canonical == "who" and _is_noun(before):
            word = word._replace(canonical="that")
        if not (word.canonical == "got" and before in _HAVE):
            made.append(word)
    return made


def _units(words: list[Phrase]) -> list[Phrase]:
    """ "500 mg" are "500 milligrams"."""
    made = list(words)
    for at in range(1, len(made)):
        if _is_number(made[at - 1].canonical) and made[at].canonical in lists.UNITS:
            made[at] = made[at]._replace(canonical=lists.UNITS[made[at].canonical])
    return made


def _lacking(words: list[Phrase]) -> list[Phrase]:
    """ "Do not have any allergies" and "without allergies" are "have no allergies"."""
    made: list[Phrase] = []
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


def _comparing(words: list[Phrase]) -> list[Phrase]:
    """ "Longer than 30 minutes" is "more than 30 minutes", and "cheaper than 50" is to "cost less than 50"."""
    said = _texts(words)
    for at, word in enumerate(said[:-2]):
        if said[at + 1] != "than" or not _is_number(said[at + 2]):
            continue
        typed = f"{words[at].typed} {words[at + 1].typed}"
        if word in _LONGER and said[at + 3 : at + 4] and said[at + 3] in _SPANS:
            return [*words[:at], Phrase(_LONGER[word], typed), *words[at + 2 :]]
        if word in _CHEAPER:
            return [*words[:at], Phrase("cost", ""), Phrase(_CHEAPER[word], typed), *words[at + 2 :]]
    return words


def _possessive(words: list[Phrase]) -> list[Phrase]:
    """ "Olga Pell's guardian" is "the guardian of Olga Pell"."""
    said = _texts(words)
    for at in range(len(said) - 2):
        if _is_value(said[at]) and said[at + 1] == "s":
            stop = at + 2
            while stop < len(said) and (_is_noun(said[stop]) or said[stop] in lists.SUPERLATIVES):
                stop += 1
            if stop > at + 2 and (stop == len(said) or said[stop] in PREPOSITIONS or said[stop] in _IS):
                return [*words[:at], *words[at + 2 : stop], Phrase("of", ""), words[at], *words[stop:]]
    return words


def _superlative_first(words: list[Phrase]) -> list[Phrase]:
    """ "Which 3 products are the most expensive" asks for "the 3 most expensive products"."""
    said = _texts(words)
    verb = next((at for at, word in enumerate(said) if word in _IS), len(said))
    first = verb + 1 + (said[verb + 1 : verb + 2] == ["the"])
    if not said or said[0] not in ("which", "what") or first >= len(said) or said[first] not in lists.SUPERLATIVES:
        return words
    last = first + 1
    if said[first] in ("most", "least") and last < len(said) and _is_noun(said[last]):
        last += 1
    if last < len(said) and not (said[last] in PREPOSITIONS and any(map(_is_value, said[last + 1 : last + 3]))):
        return words  # "Which state is the largest in population" asks for something else.
    counted = [word for word in words[1:verb] if _is_number(word.canonical)]
    noun = [word for word in words[1:verb] if not _is_number(word.canonical)]
    if not 1 <= len(noun) <= _MAX_NOUN_WORDS or any(is_slot(word) or word in lists.DECIDING for word in _texts(noun)):
        return words
    return [*counted, *words[first:last], *noun, *words[last:]]


def _adjective_first(words: list[Phrase]) -> list[Phrase]:
    """ "Which customers are active" and "customers that are active" ask for "active customers"."""
    said = _texts(words)
    for at in range(1, len(said) - 1):
        negated = said[at] == "not" and words[at].typed.split()[0] in _IS
        noun = at - 2 if said[at - 1] in _RELATIVE_PRONOUNS else at - 1
        before = said[noun - 1].rstrip("_") if noun > 0 else "the"
        follows = said[at + 2] if at + 2 < len(said) else "in"
        if not (negated or said[at] in _IS) or noun < 0 or not _is_noun(said[noun]):
            continue
        ends = follows in PREPOSITIONS or follows == f"‹{DATE}›"
        if before in _BEFORE_NOUNS and ends and _is_adjective(words[at + 1]):
            return [*words[:noun], *words[at : at + 1] * negated, words[at + 1], words[noun], *words[at + 2 :]]
    return words


def _is_adjective(word: Phrase) -> bool:
    """Whether a word behind "are" may be an adjective, or a value that is used as one."""
    text = word.canonical
    is_plain = _is_noun(text) and singular(text) == text and gerund_of(text) is None
    return (is_plain or _is_value(text)) and not _is_participle(word)


def _participle_behind(words: list[Phrase]) -> list[Phrase]:
    """ "Cancelled visits" are "visits cancelled"."""
    made = list(words)
    for at in range(len(made) - 1):
        before = made[at - 1].canonical.rstrip("_") if at else "the"
        if _is_participle(made[at]) and before in _BEFORE_NOUNS and _is_noun(made[at + 1].canonical):
            made[at], made[at + 1] = made[at + 1], made[at]
            if before == "the" and at:
                made[at - 1] = made[at - 1]._replace(canonical="the")
    return made


def _passive(words: list[Phrase]) -> list[Phrase]:
    """ "Drugs does Bayer make", "drugs that Bayer made" and "drugs Bayer has made" are "drugs made by Bayer"."""
    said = _texts(words)
    for at in range(1, len(said) - 1):
        start = at - 1 if said[at - 1] not in ("the", "the_") else at - 2
        follows = said[at + 2] if at + 2 < len(said) else "in"
        if not _is_value(said[at]) or start < 0 or not (follows in PREPOSITIONS or is_slot(follows)):
            continue
        if not (start or _is_noun(said[start])):
            continue  # A question that begins with "did" is for yes or no.
        before, verb = said[start], said[at + 1]
        if before in _DO:
            # "What does Rex mean" has no passive.
            base = verb if _is_noun(verb) and past_of(verb) is None and verb != "mean" else None
        elif before in _IS:
            base = gerund_of(verb)
        elif before in _HAVE or before in _RELATIVE_PRONOUNS or _is_noun(before):
            base = past_of(verb)
        else:
            continue
        if base is not None:
            tense = "present" if before in ("do", "does", "is", "are") else "past"
            turned = words[at + 1]._replace(canonical=f"{base}+ed", turned=tense)
            return [*words[: start + 1], turned, Phrase("by", ""), *words[start + 1 : at + 1], *words[at + 2 :]]
    return words


_RULES: tuple[Callable[[list[Phrase]], list[Phrase]], ...] = (
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


def _texts(words: Sequence[Phrase]) -> list[str]:
    return [word.canonical for word in words]


def _is_number(word: str) -> bool:
    return number(word) is not None or word == f"‹{NUMBER}›"


def _is_value(word: str) -> bool:
    return is_slot(word) and word not in (f"‹{NUMBER}›", f"‹{DATE}›")


def _is_noun(word: str) -> bool:
    """Whether a word may be a noun or a verb, and no small word."""
    return word.isalpha() and word not in _NO_NOUNS


def _is_participle(word: Phrase) -> bool:
    return word.participle or past_of(word.canonical) is not None
