"""Whether two statements give another value for the same thing: another number, date or name.

Similarity can't tell: "opens at 8" and "opens at 9" are nearer to each other than most paraphrases are. So the words
are compared: all that says what a statement is about must be the same, and what differs must be a value of something
that has one value at a time. What is unclear is no conflict.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Literal, NamedTuple

from heedful.caching import cache_short
from heedful.text import word_set
from heedful.text.corrections import unit_family
from heedful.text.entities import entities
from heedful.text.regex import regex
from heedful.text.words import Kind, Word, sentences, stem, words

ConflictKind = Literal["number", "date", "name"]

MAX_TEXT = 1_000
"""Characters of a text that is compared; a longer one says too much to be one statement."""

MAX_SENTENCES = 6
"""Sentences of a text that are compared."""

MAX_VALUE_WORDS = 5
"""Words of a value."""


class ValueConflict(NamedTuple):
    """The value that a new statement gives, and the one that the old statement gave."""

    kind: ConflictKind
    new: str
    old: str


class Token(NamedTuple):
    """A word of a statement."""

    term: str
    low: str
    kind: Kind | Literal["date"]
    start: int
    stop: int


_CLOCK = regex(r":00$")
_DAYS = word_set("monday tuesday wednesday thursday friday saturday sunday")
_MONTHS = word_set("january february march april may june july august september october november december")
# Words that may be added or left out without saying something else.
_LIGHT = word_set(
    "the a an now currently only already just actually still really indeed that our please note today new"
)
# Present states: what they say has one value at a time.
_STATES = word_set(
    "is are has have costs cost opens open closes close starts start begins begin ends end takes take lasts last "
    "expires expire lives live resides works work weighs weigh measures needs requires require allows allow accepts "
    "holds contains contain supports support runs run uses use equals listens belongs reports pays pay earns owns "
    "must can may should will offers offer seats serves leaves arrives departs sits stands covers charges receives "
    "ships delivers leads heads chairs 's 're kostet dauert öffnet schließt beginnt endet"
)
# Past events that happen once.
_ONCE = word_set(
    "born founded established built released launched incorporated died invented opened completed published"
)
_VERBS = _STATES | {"was", "were"}
# Words that name what their number tells apart from others: room 4 is another room than room 5.
_NUMBERED = word_set(
    "room order ticket invoice issue case chapter section page line step phase flight gate platform bus route version "
    "release level floor building apartment unit item part no number nr id question exercise figure table article "
    "paragraph episode season volume lesson module sprint week day quarter year month team group class grade server "
    "node shard player user customer account row column slide plan option tier batch lot model series type zone"
)
_UNSURE = regex(
    r"\b(?:if|unless|maybe|perhaps|might|either|or|whether|probably|for example|e\.g|such as|one of|some of|used to|"
    r"sometimes|often|instead of|compared|before|after|except|another|other|also|too|again)\b|[?\"“]",
    re.IGNORECASE,
)
_NAME_AFTER = regex(
    r"(?:lives? in|resides? in|works? (?:at|for)|reports? to|belongs? to|runs? on"
    r"|(?:is|are) (?:based|located|headquartered|situated|hosted|stored|registered) (?:in|at|on)"
    r"|(?:is|are) (?:employed|led|run|managed|owned|headed|chaired|maintained|operated) by"
    r"|(?:is|are) (?:married to|called|named)|(?:is|was|were) born in"
    r"|(?:was|were) (?:founded|invented|written|built|directed|designed|established) (?:in|by))"
)
_ATTRIBUTES = word_set(
    "name email mail address phone number birthday birthplace hometown nationality occupation job title role position "
    "employer manager boss supervisor assistant owner maintainer lead leader head ceo cto cfo coo president chairman "
    "director secretary principal mayor captain coach editor author capital language currency headquarters location "
    "venue city country timezone zone password passcode pin code color colour favourite favorite deadline host "
    "status partner wife husband spouse provider vendor supplier carrier plan tier database framework engine editor "
    "username handle contact surname nickname"
)
_LEADS = word_set("leads heads chairs")

_PREDICATES = (
    r"(?:now |currently |recently |just |has |have |had )*(?:lives?|living|resides?|moved|relocated)(?: back)? "
    r"(?:in|to)",
    r"(?:now |currently |recently |just |has |have )*(?:works? (?:at|for)|joined|is employed (?:at|by))",
    r"(?:now |currently )*(?:reports? to|is managed by)",
    r"(?:was|were) born in",
)
"""Statements with several wordings and one object: where one lives, whom one works for, reports to, was born."""
_YEAR = regex(r"(?:19|20)\d\d")
_NAME = r"[A-ZÀ-Þ][\w'’.-]*(?: (?:of |de |da |la |van |von )?[A-ZÀ-Þ][\w'’.-]*){0,3}"
_TRIPLE = [
    regex(rf"^(?P<subject>(?:{_NAME}: )?(?:{_NAME}|I|[Hh]e|[Ss]he|[Ww]e)) {verb} (?P<object>{_NAME})(?P<rest>.*)$")
    for verb in _PREDICATES
]
_SINGLE = regex(r"^(?P<subject>.+?) (?:is|are)(?: now)? (?P<object>\S+?)[.!]?$")
_SINGLE_ATTRIBUTES = word_set(
    "name email mail password passcode pin code color colour favourite favorite username handle currency language "
    "capital timezone nickname surname url domain"
)
_REST = regex(r"(?:[.!]|,? (?:now|currently|these days|at the moment|with .*|last (?:week|month|year)))*[.!]?")


def conflict(new: str, old: str) -> ValueConflict | None:
    """The value that a new statement gives otherwise than an old one.

    >>> conflict("The office opens at 9.", "The office opens at 8.")
    ValueConflict(kind='number', new='9', old='8')
    >>> conflict("The CEO of Acme is Bo Lind.", "The CEO of Acme is Ada Berg.")
    ValueConflict(kind='name', new='Bo Lind', old='Ada Berg')
    >>> conflict("Room 5 opens at 8.", "Room 4 opens at 8.")
    >>> conflict("Ada visited Paris.", "Ada visited Rome.")
    """
    if max(len(new), len(old)) > MAX_TEXT:
        return None
    held = _statements(old)
    for own in _statements(new):
        # A text that says the same as well takes nothing back.
        if not any(own.text == other.text for other in held):
            for other in held:
                found = _in_same_words(own, other) or _of_same_predicate(own.text, other.text)
                if found is not None:
                    return found
    return None


class ReadSentence(NamedTuple):
    """A sentence, and what is compared of it."""

    text: str
    tokens: tuple[Token, ...]
    terms: frozenset[str]


@cache_short(entries=256, characters=2_000)
def _statements(text: str) -> tuple[ReadSentence, ...]:
    return tuple(_statement(sentence) for sentence in sentences(text)[:MAX_SENTENCES] if not _UNSURE.search(sentence))


def _statement(text: str) -> ReadSentence:
    named = {part for entity in entities(text) for part in entity.name.lower().replace("’", "'").split()}
    tokens = tuple(_token(text, word, named) for word in words(text))
    return ReadSentence(text, tokens, frozenset(token.term for token in tokens if token.low not in _LIGHT))


def _token(text: str, word: Word, named: Set[str]) -> Token:
    low = text[word.start : word.stop].lower().replace("’", "'")
    kind: Kind | Literal["date"] = word.kind
    if low in _DAYS or (low in _MONTHS and text[word.start].isupper()):
        kind = "date"
    elif kind in ("word", "name"):
        kind = "name" if kind == "name" or (text[word.start].isupper() and low.removesuffix("'s") in named) else "word"
    return Token(_CLOCK.sub("", word.term), low, kind, word.start, word.stop)


def _in_same_words(new: ReadSentence, old: ReadSentence) -> ValueConflict | None:
    """Two sentences that are the same but for one value."""
    if max(len(new.terms - old.terms), len(old.terms - new.terms)) > MAX_VALUE_WORDS:
        return None
    ours = [token for token in new.tokens if token.low not in _LIGHT]
    theirs = [token for token in old.tokens if token.low not in _LIGHT]
    matcher = SequenceMatcher(None, [token.term for token in theirs], [token.term for token in ours], autojunk=False)
    changes = [change for change in matcher.get_opcodes() if change[0] != "equal"]
    if not changes:
        return None
    # What stands between two changed words belongs to the value, and so does the rest of a date.
    left = _dated_run(reversed(ours[: changes[0][3]]))
    right = _dated_run(ours[changes[-1][4] :])
    held, stated = (changes[0][1] - left, changes[-1][2] + right), (changes[0][3] - left, changes[-1][4] + right)
    a, b = theirs[slice(*held)], ours[slice(*stated)]
    if not (0 < len(a) <= MAX_VALUE_WORDS and 0 < len(b) <= MAX_VALUE_WORDS):
        return None
    # A list has several values.
    if any(token.low in ("and", "or", "to", "und") for token in [*a, *b]):
        return None
    kind = _kind_of(a, b)
    if kind is None or not _is_slot(kind, theirs, *held) or not _is_slot(kind, ours, *stated):
        return None
    if kind == "name" and _is_part(_value(new.text, b), _value(old.text, a)):
        return None
    return ValueConflict(kind, _value(new.text, b), _value(old.text, a))


def _dated_run(tokens: Iterable[Token]) -> int:
    return sum(1 for _ in takewhile(lambda token: _is_dated([token]), tokens))


def _value(text: str, tokens: Sequence[Token]) -> str:
    return text[tokens[0].start : tokens[-1].stop]


def _kind_of(one: Sequence[Token], other: Sequence[Token]) -> ConflictKind | None:
    """The kind of both values; None if they are not of one kind."""
    kinds = [{token.kind for token in side if not unit_family(token.term)} - {"common"} for side in (one, other)]
    if all(found == {"name"} for found in kinds):
        return "name"
    if not all(found and found <= {"number", "date"} for found in kinds):
        return None
    families = [{unit_family(token.term) for token in side} - {""} for side in (one, other)]
    if families[0] and families[1] and families[0] != families[1]:
        return None
    dated = [_is_dated(side) for side in (one, other)]
    if all(dated):
        return "date"
    return None if any(dated) else "number"


def _is_dated(tokens: Sequence[Token]) -> bool:
    return any(token.kind == "date" or token.term in _MONTHS or _YEAR.fullmatch(token.term) for token in tokens)


def _is_slot(kind: ConflictKind, tokens: Sequence[Token], start: int, stop: int) -> bool:
    """Whether the words there are the one value of the matter of the rest."""
    rest = [*tokens[:start], *tokens[stop:]]
    verb = next((place for place, token in enumerate(tokens) if token.low in _VERBS), None)
    about = [token for token in rest if token.kind != "common" and token.low not in _VERBS]
    if not about:
        return False
    if kind == "name":
        return _is_name_slot(tokens, start, stop, verb)
    before = tokens[start - 1] if start else None
    if before is not None and (before.low in _NUMBERED or stem(before.low) in _NUMBERED or before.low in ("#", "no")):
        return False
    if verb is None:
        # "Port: 5432"; "Battery dead after 4 hours" tells what happened.
        return (
            0 < start <= 3 and stop == len(tokens) and all(token.kind in ("word", "name") for token in tokens[:start])
        )
    is_state = tokens[verb].low in _STATES or any(token.low in _ONCE for token in tokens[verb + 1 : verb + 3])
    if start < verb or not is_state:
        return False
    others = [token for token in tokens[verb + 1 :] if token not in tokens[start:stop]]
    if kind == "date":
        # "It is 5 million in 2023" speaks of 2023.
        return not any(token.kind in ("number", "date", "name") for token in others)
    return not any(token.kind == "date" or token.term in _MONTHS for token in rest)


def _is_name_slot(tokens: Sequence[Token], start: int, stop: int, verb: int | None) -> bool:
    if verb is None:
        return False
    if start > verb:
        phrase = " ".join(token.low for token in tokens[verb:start])
        if _NAME_AFTER.fullmatch(phrase):
            return stop == len(tokens)
        subject = {token.low.removesuffix("'s") for token in tokens[:verb]} | {token.term for token in tokens[:verb]}
        return phrase in ("is", "are") and stop == len(tokens) and bool(subject & _ATTRIBUTES)
    if start > 1 or stop != verb:
        return False
    # "Ada is the CEO": the article is a light word, so the role says it.
    role = [token for token in tokens[verb + 1 :] if token.kind != "common"]
    if tokens[verb].low in _LEADS:
        return bool(role)
    return tokens[verb].low == "is" and bool(role) and role[0].low in _ATTRIBUTES


def _of_same_predicate(new: str, old: str) -> ValueConflict | None:
    """Two sentences that say in their own words where one lives, whom one works for, and the like."""
    for pattern in _TRIPLE:
        ours, theirs = pattern.match(new), pattern.match(old)
        if ours is None or theirs is None or ours["subject"].lower() != theirs["subject"].lower():
            continue
        values = ours["object"].rstrip("."), theirs["object"].rstrip(".")
        if all(_REST.fullmatch(match["rest"]) for match in (ours, theirs)) and not _is_part(*values):
            return ValueConflict("name", *values)
    return _of_same_attribute(new, old)


def _of_same_attribute(new: str, old: str) -> ValueConflict | None:
    """Two sentences like "Ada's email is ada@example.com"."""
    ours, theirs = _SINGLE.match(new), _SINGLE.match(old)
    if ours is None or theirs is None or ours["subject"].lower() != theirs["subject"].lower():
        return None
    if _SINGLE_ATTRIBUTES.isdisjoint(re.findall(r"[a-z]+", ours["subject"].lower())):
        return None
    same = ours["object"].casefold() == theirs["object"].casefold()
    return None if same else ValueConflict("name", ours["object"], theirs["object"])


def have_same_values(one: str, other: str) -> bool:
    """Whether two texts have the same numbers and dates, and each has the names of the other.

    >>> have_same_values("Visitors meet Ada at 8", "At 8, visitors meet Ada"), have_same_values("Ada is 3", "Bo is 3")
    (True, False)
    """
    ours, theirs = _statement(one).tokens, _statement(other).tokens
    return (
        _terms(ours, "number", "date") == _terms(theirs, "number", "date")
        and _terms(ours, "name") <= {token.term for token in theirs}
        and _terms(theirs, "name") <= {token.term for token in ours}
    )


def _terms(tokens: Iterable[Token], *kinds: str) -> set[str]:
    return {token.term for token in tokens if token.kind in kinds}


def states_value(text: str) -> bool:
    """Whether a text gives any value that another text could contradict."""
    return len(text) <= MAX_TEXT and any(
        _SINGLE.match(sentence.text) or any(token.kind in ("number", "date", "name") for token in sentence.tokens)
        for sentence in _statements(text)
    )


def _is_part(one: str, other: str) -> bool:
    """Whether one name is a part of the other: Berlin, and Berlin Mitte."""
    ours, theirs = ({stem(word) for word in re.findall(r"\w+", name.lower())} for name in (one, other))
    return ours <= theirs or theirs <= ours
