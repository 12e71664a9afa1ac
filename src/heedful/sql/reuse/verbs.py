"""What forms of "be", "have" and "do" say of the words that they belong to: tense, voice, and being against having.

Questions are compared without these small words, and mostly rightly: "which cities are in Texas" asks for what "cities
in Texas" does. Books that are borrowed are not those that were, though, nor are employees that have managers those
that are managers. What a question doesn't say agrees with anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from heedful.sql.reuse.inflection import gerund_of, past_of, singular

_BE = {"is": "present", "are": "present", "am": "present", "was": "past", "were": "past"}
_HAVE = {"have": "present", "has": "present", "had": "past"}
_INFINITIVES = frozenset(("be", "have"))
_MODALS = frozenset("will would can could shall should may might must to".split())  # noqa: SIM905
_BETWEEN = frozenset(
    """
    the the_ a an no not also still already currently now ever never all any some only been being
    """.split()  # noqa: SIM905
)
_WH = frozenset("what which who whom whose where when why how many much".split())  # noqa: SIM905
_ADVERBIAL = frozenset("when where why how".split())  # noqa: SIM905
_RELATIVE = frozenset(("who", "that", "which"))
_PRONOUNS = frozenset("i we you he she it they".split())  # noqa: SIM905
_PREPOSITIONS = frozenset(
    """
    in at on by of from to for with without within during before after since until under over near between among
    about through than as and or but if into per like
    """.split()  # noqa: SIM905
)
_TIMES = frozenset("last past previous yesterday ago earlier recently".split())  # noqa: SIM905
_SUPERLATIVES = frozenset("most least first last top best worst".split())  # noqa: SIM905
_NAMED = frozenset("named called titled entitled".split())  # noqa: SIM905
NAMED = "named"
_NO_NAMES = ("‹date›", "‹number›")


class Mark(NamedTuple):
    """What is said of one word; "" where nothing is."""

    main: str = ""
    """Whether something *is* it or *has* it."""
    voice: str = ""
    tense: str = ""


class Verbs(NamedTuple):
    """The verbs of a question, by the places of their words."""

    marks: dict[int, Mark]
    forms: dict[int, str]
    """Canonical forms where they depend on the words around: "are living" is "live"."""
    said: dict[int, str]
    """What was typed for a mark: "have been borrowed"."""


def verbs(
    words: Sequence[str], nouns: frozenset[str] = frozenset(), participles: frozenset[int] = frozenset()
) -> Verbs:
    """What the small words of a question say; those in `nouns` are names of the schema, and no verbs. `participles` are
    the places of values like "cancelled".

    >>> verbs("which books have been borrowed".split()).marks
    {4: Mark(main='', voice='passive', tense='past')}
    >>> verbs("which employees have managers".split()).marks
    {3: Mark(main='have', voice='', tense='present')}
    """
    return _Reader(words, nouns, participles).read()


def names_time(words: Sequence[str]) -> bool:
    """Whether a question says when, so that its tense adds nothing: "sales in 2023"."""
    return any(word in _TIMES or _is_year(word) for word in words)


def opposition(asked: Mark, proven: Iterable[Mark]) -> bool:
    """Whether something is said that all proven questions which say something there contradict."""
    known = list(proven)
    for place, feature in enumerate(asked):
        others = {each[place] for each in known} - {""}
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
                modal = any(each in _MODALS for each in self.words[max(0, place - 2) : place])
                self._have(place, "" if modal else "past" if "did" in self.words[:place] else _HAVE[word])
            elif word == "be":
                self._be(place, "")
            elif word == "being" and not self._finite_before(place):
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
        if _is_slot(self.words[at]) and self.words[at + 1 : at + 2] == ("s",):
            at = min(at + 2, len(self.words) - 1)  # "Who is ‹Ann› s manager?"
        elif place == 0 or before in _ADVERBIAL or _is_slot(self.words[at]) or self.words[at] in _PRONOUNS:
            # "When was the book Dune borrowed?", "Which drugs is Ann taking?"
            for each in self._clause(at):
                if self._participle(place, each, tense):
                    return
            if place == 0 and _is_slot(self.words[at]):
                self._owned(place, at, "be", tense)  # "Is ‹Ann› a manager?"
                return
        at = self._noun(at)
        follows = "".join(self.words[at + 1 : at + 2])
        if self._is_content(at) and (not _is_slot(follows) or follows in _NO_NAMES):  # "Is the city ‹Hull› in"
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
        inverted = place == 0 or _is_slot(self.words[at]) or self.words[at] in _PRONOUNS
        if inverted:
            at = next((each for each in self._clause(at) if past_of(self.words[each]) is not None), at)
        if past_of(self.words[at]) is not None:
            self._mark(place, at, Mark("", "active", "past"))
        elif place == 0 and _is_slot(self.words[at]):
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
        is_value = at < len(self.words) and _is_slot(self.words[at])
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
        if _is_slot(before):
            return _is_slot(after) or after in ("the", "the_", "a", "an")
        return self._is_content(at - 1) and singular(before) != before and after != "of"

    def _mark(self, place: int, at: int, mark: Mark) -> None:
        if any(mark) and at not in self.found.marks:
            self.found.marks[at] = mark
            small = (
                [each for each in self.words[place:at] if each not in ("the", "the_", "a", "an") and not _is_slot(each)]
                if at - place < 4
                else [self.words[place]]
            )
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
            word = self.words[at]
            if word in _PREPOSITIONS or word in _BE or word in _HAVE or word in _WH:
                return
            yield at

    def _finite_before(self, place: int) -> bool:
        return any(word in _BE for word in self.words[max(0, place - 2) : place])

    def _is_content(self, at: int) -> bool:
        if not 0 <= at < len(self.words):
            return False
        word = self.words[at]
        small = word in _PREPOSITIONS or word in _WH or word in _BETWEEN or word in _MODALS or word in _PRONOUNS
        return not (
            small or _is_slot(word) or word in ("there", "that", "do", "does", "did") or word in _BE or word in _HAVE
        )


def _is_slot(word: str) -> bool:
    return word.endswith("›")


def _is_year(word: str) -> bool:
    return word[:2] in ("19", "20") and word[:4].isdigit() and len(word) in (4, 10)
