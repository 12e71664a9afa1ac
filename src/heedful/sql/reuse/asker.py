"""Questions about whoever asks: "What are my orders?" has another answer for each of them.

English, German, French and Spanish. What is unclear counts as the first person: to refuse costs a query, to serve shows
one person's rows to another.
"""

from __future__ import annotations

import re
import unicodedata
from enum import IntEnum
from typing import NamedTuple

from heedful.caching import cache_short
from heedful.sql.reuse.question_reading import is_name, name, spans
from heedful.sql.reuse.values import Values, split


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


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _language(asker: str, group: str, other: str) -> _Language:
    return _Language(_words(asker), _words(group), _words(other))


_LANGUAGES = (
    _language(
        "i me my mine myself im ive",
        "we us our ours ourselves weve",
        "the of a an is are was were do does did has have had what which who how many in on at by for with from to",
    ),
    _language(
        "ich mich mir mein meine meinen meinem meiner meines",
        "wir uns unser unsere unseren unserem unserer unseres",
        "der die das den dem ein eine und ist sind war wie viele was welche wer wo in im am mit von je pro nach hat es",
    ),
    _language(
        "je j moi mon ma mes mien mienne miens miennes",
        "nous notre nos notres",
        "le la les un une des du de et est sont quel quelle quels quelles combien qui que ou quand dans avec pour par",
    ),
    _language(
        "yo mi mis mio mia mios mias me conmigo tengo debo gasto gaste compre pedi pague hice soy estoy puedo",
        "nosotros nosotras nuestro nuestra nuestros nuestras nos tenemos somos estamos vendimos gastamos compramos",
        "el la los las un una de del y es son cual cuales cuanto cuantos cuantas que quien donde cuando en con por",
    ),
)

_AMBIGUOUS = _words("me mi mis mon ma mes nos mia mio im ive j je mir mein gasto gaste compre debo soy")
"""Words of another kind in other languages: they count in a question of their own."""

_SHOW = "show|give|list|name|find|get|fetch|provide|bring|send|return|remind|inform|help|let|allow|refer"
_SEE = "see|view|look|know|ask|learn|find out|check"
_WANT = "want|need|wish|wanna|would like|would love|d like|d love"
_THINGS = "a|an|the|all|some|any|every|each|information|you"
_HELLO = r"^(?:(?:please|kindly|hi|hello|hey|ok|okay|so|thanks|now|just|good \w+)(?: [,!.])? )*"
_START = r"(?:^|[,;:.!] |\b(?:please|kindly|hi|hello|hey|ok|okay|so|thanks|now|just) )"
_YOU = r"(?:can|could|would|will|might) you (?:(?:please|kindly|just|also|maybe) )*"
_POLITE = tuple(
    re.compile(pattern)
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

_TOKEN = re.compile(r"[^\W_]+|[,;:.!?]")
_APOSTROPHES = str.maketrans(dict.fromkeys("’‘ʼ´`＇", "'"))
_INVISIBLE = re.compile("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]")
_ACRONYM = re.compile(r"\bU\.? ?S\b\.?(?!\w)")
_COUNTRY = re.compile(
    r"\b(?:the|in|within|across|inside|throughout|which|what|whole|entire|continental) us\b"
    r"|\b(?!(?:all|each|both|none|some|most|any|one|two|three|four|many|few|half|rest|several|which|who) )\w+ of us\b"
    r"|\bus (?:states?|cit(?:y|ies)|citizens?|dollars?|populations?|rivers?|territor(?:y|ies)|presidents?)\b"
)
"""The United States; "sold by us" is the first person."""
_NUMERAL = re.compile(
    r"\b(?:war|type|phase|part|level|class|category|tier|stage|grade|volume|chapter|section|act|title|division) i"
    r"(?=$| [,;:.?!]| (?:in|of|for)\b)|\bworld war i\b"
    r"|\bi \.(?= \w)|\ba \. i\b|\bi o\b"  # "Michael I. Jordan", "A.I.", "I/O".
)
_PIT = re.compile(
    r"\b(?:a|an|the|each|every|which|what|any|no|coal|gold|copper|iron|silver|salt|diamond|land|data) mine\b"
)


_WORDS_OF_NAMES = 3
"""So many words make a name that holds a pronoun: "My Fair Lady", and not "My Orders"."""


def person(question: str, values: Values) -> Person:
    """Whom a question is about. A name that columns of the database hold, written as they do, is no pronoun.

    >>> from heedful.sql.reuse.values import Known
    >>> [person(each, Known({})).name for each in ("What are my orders?", "Show me the orders", "Do we have orders?")]
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
            for spelling in {each for column in columns for each in values.spellings(*column, text)}:
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
    known = [len(words & (each.asker | each.group | each.other)) for each in _LANGUAGES]
    for pattern in (*_POLITE, _COUNTRY, _NUMERAL, _PIT):
        said = pattern.sub(" ", said)
    words = set(said.split())
    spoken = [each for each, count in zip(_LANGUAGES, known, strict=True) if count == max(known)]
    for about, pronouns in ((Person.ASKER, 0), (Person.GROUP, 1)):
        if any(words & (each[pronouns] if each in spoken else each[pronouns] - _AMBIGUOUS) for each in _LANGUAGES):
            return about
    return Person.NOBODY
