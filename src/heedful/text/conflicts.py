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
from heedful.text.corrections import unit_family
from heedful.text.entities import entities
from heedful.text.words import Kind, Word, sentences, stem, words

ConflictKind = Literal["number", "date", "name"]

MAX_TEXT = 1_000
"""Characters of a text that is compared; a longer one says too much to be one statement."""

MAX_SENTENCES = 6
"""Sentences of a text that are compared."""

MAX_VALUE_WORDS = 5
"""Words of a value."""


class Difference(NamedTuple):
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


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CLOCK = re.compile(r":00$")
_DAYS = _set("monday tuesday wednesday thursday friday saturday sunday")
_MONTHS = _set("january february march april may june july august september october november december")
# Words that may be added or left out without saying something else.
_LIGHT = _set("the a an now currently only already just actually still really indeed that our please note today new")
# Present states: what they say has one value at a time.
_STATES = _set(
    "is are has have costs cost opens open closes close starts start begins begin ends end takes take lasts last "
    "expires expire lives live resides works work weighs weigh measures needs requires require allows allow accepts "
    "holds contains contain supports support runs run uses use equals listens belongs reports pays pay earns owns "
    "must can may should will offers offer seats serves leaves arrives departs sits stands covers charges receives "
    "ships delivers leads heads chairs 's 're kostet dauert öffnet schließt beginnt endet"
)
# Past events that happen once.
_ONCE = _set("born founded established built released launched incorporated died invented opened completed published")
_UNIQUE_PAST = _set("was were")
# Words that name what their number tells apart from others: room 4 is another room than room 5.
_NUMBERED = _set(
    "room order ticket invoice issue case chapter section page line step phase flight gate platform bus route version "
    "release level floor building apartment unit item part no number nr id question exercise figure table article "
    "paragraph episode season volume lesson module sprint week day quarter year month team group class grade server "
    "node shard player user customer account row column slide plan option tier batch lot model series type zone"
)
_UNSURE = re.compile(
    r"\b(?:if|unless|maybe|perhaps|might|either|or|whether|probably|for example|e\.g|such as|one of|some of|used to|"
    r"sometimes|often|instead of|compared|before|after|except|another|other|also|too|again)\b|[?\"“]",
    re.IGNORECASE,
)
_NAME_AFTER = re.compile(
    r"(?:lives? in|resides? in|works? (?:at|for)|reports? to|belongs? to|runs? on"
    r"|(?:is|are) (?:based|located|headquartered|situated|hosted|stored|registered) (?:in|at|on)"
    r"|(?:is|are) (?:employed|led|run|managed|owned|headed|chaired|maintained|operated) by"
    r"|(?:is|are) (?:married to|called|named)|(?:is|was|were) born in"
    r"|(?:was|were) (?:founded|invented|written|built|directed|designed|established) (?:in|by))"
)
_ATTRIBUTES = _set(
    "name email mail address phone number birthday birthplace hometown nationality occupation job title role position "
    "employer manager boss supervisor assistant owner maintainer lead leader head ceo cto cfo coo president chairman "
    "director secretary principal mayor captain coach editor author capital language currency headquarters location "
    "venue city country timezone zone password passcode pin code color colour favourite favorite deadline host "
    "status partner wife husband spouse provider vendor supplier carrier plan tier database framework engine editor "
    "username handle contact surname nickname"
)
_LEADS = _set("leads heads chairs")

_PREDICATES = (
    r"(?:now |currently |recently |just |has |have |had )*(?:lives?|living|resides?|moved|relocated)(?: back)? "
    r"(?:in|to)",
    r"(?:now |currently |recently |just |has |have )*(?:works? (?:at|for)|joined|is employed (?:at|by))",
    r"(?:now |currently )*(?:reports? to|is managed by)",
    r"(?:was|were) born in",
)
"""What is said in several ways, and has one object: where one lives, whom one works for, reports to, was born."""
_YEAR = re.compile(r"(?:19|20)\d\d")
_NAME = r"[A-ZÀ-Þ][\w'’.-]*(?: (?:of |de |da |la |van |von )?[A-ZÀ-Þ][\w'’.-]*){0,3}"
_TRIPLE = [
    re.compile(rf"^(?P<subject>(?:{_NAME}: )?(?:{_NAME}|I|[Hh]e|[Ss]he|[Ww]e)) {verb} (?P<object>{_NAME})(?P<rest>.*)$")
    for verb in _PREDICATES
]
_SINGLE = re.compile(r"^(?P<subject>.+?) (?:is|are)(?: now)? (?P<object>\S+?)[.!]?$")
_SINGLE_ATTRIBUTES = _set(
    "name email mail password passcode pin code color colour favourite favorite username handle currency language "
    "capital timezone nickname surname url domain"
)
_REST = re.compile(r"(?:[.!]|,? (?:now|currently|these days|at the moment|with .*|last (?:week|month|year)))*[.!]?")


def conflict(new: str, old: str) -> Difference | None:
    """What a new statement says otherwise than an old one.

    >>> conflict("The office opens at 9.", "The office opens at 8.")
    Difference(kind='number', new='9', old='8')
    >>> conflict("The CEO of Acme is Bo Lind.", "The CEO of Acme is Ada Berg.")
    Difference(kind='name', new='Bo Lind', old='Ada Berg')
    >>> conflict("Room 5 opens at 8.", "Room 4 opens at 8.")
    >>> conflict("Ada visited Paris.", "Ada visited Rome.")
    """
    if max(len(new), len(old)) > MAX_TEXT:
        return None
    held = _statements(old)
    for own in _statements(new):
        # A text that says the same as well takes nothing back.
        if not any(own.text == each.text for each in held):
            for other in held:
                found = _in_same_words(own, other) or _of_same_predicate(own.text, other.text)
                if found is not None:
                    return found
    return None


class Statement(NamedTuple):
    """A sentence, and what is compared of it."""

    text: str
    tokens: tuple[Token, ...]
    terms: frozenset[str]


@cache_short(entries=256, characters=2_000)
def _statements(text: str) -> tuple[Statement, ...]:
    return tuple(_statement(each) for each in sentences(text)[:MAX_SENTENCES] if not _UNSURE.search(each))


def _statement(text: str) -> Statement:
    named = {part for each in entities(text) for part in each.name.lower().replace("’", "'").split()}
    tokens = tuple(_token(text, word, named) for word in words(text))
    return Statement(text, tokens, frozenset(each.term for each in tokens if each.kind != "common"))


def _token(text: str, word: Word, named: Set[str]) -> Token:
    low = text[word.start : word.stop].lower().replace("’", "'")
    kind: Kind | Literal["date"] = word.kind
    if low in _DAYS or (low in _MONTHS and text[word.start].isupper()):
        kind = "date"
    elif kind in ("word", "name"):
        kind = "name" if kind == "name" or (text[word.start].isupper() and low.removesuffix("'s") in named) else "word"
    return Token(_CLOCK.sub("", word.term), low, kind, word.start, word.stop)


def _in_same_words(new: Statement, old: Statement) -> Difference | None:
    """Two sentences that are the same but for one value."""
    if len(new.terms ^ old.terms) > 2 * MAX_VALUE_WORDS:
        return None
    ours = [each for each in new.tokens if each.low not in _LIGHT]
    theirs = [each for each in old.tokens if each.low not in _LIGHT]
    matcher = SequenceMatcher(None, [each.term for each in theirs], [each.term for each in ours], autojunk=False)
    changes = [each for each in matcher.get_opcodes() if each[0] != "equal"]
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
    if any(each.low in ("and", "or", "to", "und") for each in [*a, *b]):
        return None
    kind = _kind_of(a, b)
    if kind is None or not _is_slot(kind, theirs, *held) or not _is_slot(kind, ours, *stated):
        return None
    if kind == "name" and _is_part(_value(new.text, b), _value(old.text, a)):
        return None
    return Difference(kind, _value(new.text, b), _value(old.text, a))


def _dated_run(tokens: Iterable[Token]) -> int:
    """How many words of a date follow."""
    return sum(1 for _ in takewhile(lambda each: _is_dated([each]), tokens))


def _value(text: str, tokens: Sequence[Token]) -> str:
    return text[tokens[0].start : tokens[-1].stop]


def _kind_of(one: Sequence[Token], other: Sequence[Token]) -> ConflictKind | None:
    """What both values are; None if they are not of one kind."""
    kinds = [{each.kind for each in side if not unit_family(each.term)} - {"common"} for side in (one, other)]
    if all(found == {"name"} for found in kinds):
        return "name"
    if not all(found and found <= {"number", "date"} for found in kinds):
        return None
    families = [{unit_family(each.term) for each in side} - {""} for side in (one, other)]
    if families[0] and families[1] and families[0] != families[1]:
        return None
    dated = [_is_dated(side) for side in (one, other)]
    if all(dated):
        return "date"
    return None if any(dated) else "number"


def _is_dated(tokens: Sequence[Token]) -> bool:
    return any(each.kind == "date" or each.term in _MONTHS or _YEAR.fullmatch(each.term) for each in tokens)


def _is_slot(kind: ConflictKind, tokens: Sequence[Token], start: int, stop: int) -> bool:
    """Whether what stands there is the one value of what the rest is about."""
    rest = [*tokens[:start], *tokens[stop:]]
    verb = next((place for place, each in enumerate(tokens) if _is_verb(each)), None)
    about = [each for each in rest if each.kind != "common" and not _is_verb(each)]
    if not about:
        return False
    if kind == "name":
        return _is_name_slot(tokens, start, stop, verb)
    before = tokens[start - 1] if start else None
    if before is not None and (before.low in _NUMBERED or stem(before.low) in _NUMBERED or before.low in ("#", "no")):
        return False
    if verb is None:
        # "Port: 5432"; "Battery dead after 4 hours" tells what happened.
        return 0 < start <= 3 and stop == len(tokens) and all(each.kind in ("word", "name") for each in tokens[:start])
    if start < verb or not _is_state(tokens, verb):
        return False
    others = [each for each in tokens[verb + 1 :] if each not in tokens[start:stop]]
    if kind == "date":
        # "It is 5 million in 2023" speaks of 2023.
        return not any(each.kind in ("number", "date", "name") for each in others)
    return not any(each.kind == "date" or each.term in _MONTHS for each in rest)


def _is_verb(token: Token) -> bool:
    return token.low in _STATES or token.low in _UNIQUE_PAST


def _is_state(tokens: Sequence[Token], verb: int) -> bool:
    if tokens[verb].low in _STATES:
        return True
    return any(each.low in _ONCE for each in tokens[verb + 1 : verb + 3])


def _is_name_slot(tokens: Sequence[Token], start: int, stop: int, verb: int | None) -> bool:
    if verb is None:
        return False
    if start > verb:
        phrase = " ".join(each.low for each in tokens[verb:start])
        if _NAME_AFTER.fullmatch(phrase):
            return stop == len(tokens)
        subject = {each.low.removesuffix("'s") for each in tokens[:verb]} | {each.term for each in tokens[:verb]}
        return phrase in ("is", "are") and stop == len(tokens) and bool(subject & _ATTRIBUTES)
    if start > 1 or stop != verb:
        return False
    # "Ada is the CEO": the article is a light word, so the role says it.
    role = [each for each in tokens[verb + 1 :] if each.kind != "common"]
    if tokens[verb].low in _LEADS:
        return bool(role)
    return tokens[verb].low == "is" and bool(role) and role[0].low in _ATTRIBUTES


def _of_same_predicate(new: str, old: str) -> Difference | None:
    """Two sentences that say in their own words where one lives, whom one works for, and the like."""
    for pattern in _TRIPLE:
        ours, theirs = pattern.match(new), pattern.match(old)
        if ours is None or theirs is None or ours["subject"].lower() != theirs["subject"].lower():
            continue
        values = ours["object"].rstrip("."), theirs["object"].rstrip(".")
        if all(_REST.fullmatch(each["rest"]) for each in (ours, theirs)) and not _is_part(*values):
            return Difference("name", *values)
    return _of_same_attribute(new, old)


def _of_same_attribute(new: str, old: str) -> Difference | None:
    """Two sentences like "Ada's email is ada@example.com"."""
    ours, theirs = _SINGLE.match(new), _SINGLE.match(old)
    if ours is None or theirs is None or ours["subject"].lower() != theirs["subject"].lower():
        return None
    if _SINGLE_ATTRIBUTES.isdisjoint(re.findall(r"[a-z]+", ours["subject"].lower())):
        return None
    same = ours["object"].casefold() == theirs["object"].casefold()
    return None if same else Difference("name", ours["object"], theirs["object"])


def have_same_values(one: str, other: str) -> bool:
    """Whether two texts have the same numbers and dates, and each has the names of the other.

    >>> have_same_values("Visitors meet Ada at 8", "At 8, visitors meet Ada"), have_same_values("Ada is 3", "Bo is 3")
    (True, False)
    """
    ours, theirs = _statement(one).tokens, _statement(other).tokens
    return (
        _terms(ours, "number", "date") == _terms(theirs, "number", "date")
        and _terms(ours, "name") <= {each.term for each in theirs}
        and _terms(theirs, "name") <= {each.term for each in ours}
    )


def _terms(tokens: Iterable[Token], *kinds: str) -> set[str]:
    return {each.term for each in tokens if each.kind in kinds}


def states_value(text: str) -> bool:
    """Whether a text gives any value that another text could contradict."""
    return len(text) <= MAX_TEXT and any(
        _SINGLE.match(each.text) or any(token.kind in ("number", "date", "name") for token in each.tokens)
        for each in _statements(text)
    )


def _is_part(one: str, other: str) -> bool:
    """Whether one name is a part of the other: Berlin, and Berlin Mitte."""
    ours, theirs = ({stem(word) for word in re.findall(r"\w+", each.lower())} for each in (one, other))
    return ours <= theirs or theirs <= ours
