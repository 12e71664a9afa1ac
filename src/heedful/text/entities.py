"""Names, titles, ids and addresses in a text. Told from how they are written, in any language that has capitals, and
from quotes and digits in the others."""

from __future__ import annotations

import re
import sys
from functools import cache
from typing import NamedTuple

from heedful.text import word_set
from heedful.text.regex import regex

MAX_KEY = 200
"""Characters of a name that are compared."""

MAX_NAME_WORDS = 6
"""Words of a name; a longer run of capitals is a heading, or shouting."""

MAX_MENTION_WORDS = 6
"""Words of a query that are looked up together."""


class Entity(NamedTuple):
    """Something a text mentions; two names with one `key` are one thing."""

    key: str
    name: str


_PARTICLES = "van|von|der|den|de|del|della|di|da|do|dos|das|du|la|le|el|al|bin|ibn|ter|ten|zu|of|the"
_TITLES = "Mr|Mrs|Ms|Dr|Prof"


@cache
def _mention() -> re.Pattern[str]:
    """Compiled when it is needed first: it takes a while, and many processes only read."""
    upper = "[" + "".join(letter for letter in map(chr, range(sys.maxunicode // 8)) if letter.isupper()) + "]"
    part = rf"(?:(?:{upper}\.)+|(?:{_TITLES})\.|{upper}(?:[^\W_]|['’-](?=[^\W\d_]))*)"
    # What may fail behind its beginning is bounded, so that no text takes longer than its length allows.
    return regex(
        # Plain words, many at once: most of a text is skipped that way.
        rf"""(?<!\w)(?:(?:[a-z]+(?:['’][a-z]+)?[,.;:!?]*[ ]+)++
        | (?P<address>https?://[^\s<>"”]+ | www\.[^\s<>"”]+ | [\w.+-]{{1,64}}@[\w-]+(?:\.[\w-]+)+)
        | ["“„«](?P<title>(?:{upper}|\d)[^"“”«»\n]{{0,60}}[^\s"“”«»\n.,!?])["”“»]
        | `(?P<ticked>[^`\s]{{2,60}})`
        | (?P<code>\w+(?:::\w+)+ | [^\W\d]\w*(?=\(\)) | [^\W_]+(?:_[^\W_]+)+ | [a-z]+[A-Z]\w*
            | [a-z][\w/-]{{0,99}}\.(?:\w[\w/-]{{0,30}}\.){{0,4}}[a-z]{{2,5}}\b)
        | (?P<digits>\#?(?:[^\W_]{{1,30}}-){{0,4}}[^\W_]{{0,30}}\d\w*(?:[-./:,]\w+)*)
        | (?P<name>{part}(?:[ ](?:(?:{_PARTICLES})[ ]){{0,2}}{part})*(?:[ ]\d{{1,3}}(?![\w.,:]))?)
        ) | [「《](?P<cited>[^」》\n]{{1,60}})[」》]""",
        re.VERBOSE,
    )


_WORD = regex(r"[^\W_]+(?:['’.@/:_-]+[^\W_]+)*")
_OWNER = regex(r"['’]s?(?= |$)")
_TITLE = regex(rf"(?:{_TITLES})\.? ")
# Amounts, times and ordinals; years and long numbers do identify something.
_AMOUNT = regex(r"(?!\d{4,}$)\d+(?:[.,:]\d+)*[^\W\d]{0,3}|1?\d{3}s|\d{4,}(?:[.,:]\d+)+[^\W\d]{0,3}")
_BEFORE_OPENING = frozenset('.!?:;\n"“„«([{*•–—>-…。！？')
_FOLLOWING = regex(r"(?:['’]s)? +([^\W_]+)")
_ARTICLES = frozenset(("the", "a", "an"))
_SPACE = regex(r"\s+")

# Words that get a capital without naming anything: they open sentences, or are dates.
_ORDINARY = word_set("""
a an the and or but nor so yet if of to in on at by for from with without as is are was were be been being am do
does did done have has had having will would can could shall should may might must i you he she it we they me him
her us them my your his its our their mine yours hers ours theirs myself yourself this that these those what which
who whom whose when where why how not no than then there here about into onto up out off over under again just also
too very really quite rather yes yeah yep nope ok okay oh ah wow hey hi hello bye goodbye thanks thank please sorry
sure right well now today tomorrow yesterday tonight soon later before after during while until since because
although though however therefore moreover furthermore meanwhile instead otherwise perhaps maybe sometimes often
always never usually recently finally first second third last next once twice one two three four five six seven
eight nine ten all any each every both either neither some many much more most several few another other others
such same only even still already almost enough let lets get got go going gone went come came make made take took
give gave see saw look looks looking know knew think thought want wanted need needed like love hope glad good great
nice awesome amazing cool congrats congratulations happy old big small long short high low best better worst
everyone everybody someone somebody anyone anybody nobody nothing something anything everything people things time
according per via note see use used using keep put try
tell told say said says ask asked call called find found show shows add please remember never between against
through along around above below within among like unlike whether thus hence else agreed definitely absolutely
exactly totally especially speaking talking sounds seems feels wish welcome dear gonna gotta wanna btw fyi yup woah
whoa aww haha lol plus besides anyway anyways
monday tuesday tues wednesday thursday friday fri saturday sunday january february march april june july august
september october november december
""")


# A name that opens a sentence is followed by what it does; these follow commands, exclamations and the like.
_NOT_AFTER_NAMES = _ORDINARY - word_set("""
and or but is are was were be been am do does did have has had will would can could shall should may might must
also always never often usually recently once just still already got get gave came come made make took take
thought think knew know wanted want needed need went go gone saw see said says say told tell asked ask called call
found find showed shows show used use keep put looks like liked loves love hopes hope not who whose of
""")


def entities(text: str) -> list[Entity]:
    """The entities that a text mentions, each once, in the order of the text.

    >>> [found.name for found in entities("Yesterday Ada Lovelace read Emma to Ludwig van Beethoven's dog in Rome.")]
    ['Ada Lovelace', 'Emma', 'Ludwig van Beethoven', 'Rome']
    >>> [found.key for found in entities('See #4711 about parse_date() and "The Long Walk", or ask ops@example.com.')]
    ['#4711', 'parse_date', 'the long walk', 'ops@example.com']
    """
    found: dict[str, str] = {}
    for match in _mention().finditer(text):
        kind = match.lastgroup
        if kind is None:
            continue
        token = match[kind]
        if kind == "name":
            names = _names(token, text, match.start(), match.end())
        elif kind == "digits":
            names = [] if _AMOUNT.fullmatch(token) else [token]
        else:
            names = [token.rstrip(".,;:!?)") if kind == "address" else token]
        for name in names:
            made = entity(name)
            if made is not None and made.key not in _ORDINARY:
                found.setdefault(*made)
    return [Entity(key, name) for key, name in found.items()]


def _names(run: str, text: str, start: int, stop: int) -> list[str]:
    """The names in a run of words with capitals: owners apart, ordinary words at both ends left out."""
    found = []
    for part in _OWNER.split(_TITLE.sub("", run)):
        words = part.split()
        first, last = 0, len(words)
        while first < last and (_is_ordinary(words[first]) or words[first].isdigit()):
            first += 1
        while first < last and _is_ordinary(words[last - 1]):
            last -= 1
        words = words[first:last]
        name = " ".join(words)
        if (
            len(name) > 2 - name.isalnum()
            and len(words) <= MAX_NAME_WORDS
            and not (name == run and _is_opener(name, text, start, stop))
        ):
            found.append(name)
    return found


def _is_ordinary(word: str) -> bool:
    """Whether a word names nothing; "it'll" is as ordinary as "it"."""
    low = word.lower()
    if low in _ORDINARY or low.isalnum():
        return low in _ORDINARY
    first = low.replace("’", "'").partition("'")[0]
    return first != low and (first in _ORDINARY or first.removesuffix("n") in _ORDINARY)


def _is_opener(name: str, text: str, start: int, stop: int) -> bool:
    """Whether a word has its capital because a sentence begins with it, as far as the next word can tell.

    "Ada leads sales" and "Ada: hello" speak of Ada; "Check it", "Seeing you" and "Plus, ..." of nobody.
    """
    if not name[1:].islower() or " " in name:
        return False
    before = text[max(0, start - 4) : start].rstrip(" ")
    if before and before[-1] not in _BEFORE_OPENING:
        return False
    follows = _FOLLOWING.match(text, stop)
    if follows is None:
        return text[stop : stop + 1] not in ("", ":")
    if name.endswith("ing") and not follows[1].endswith("ed"):
        return True
    return follows[1] in _NOT_AFTER_NAMES or f" {name.lower()}" in text


def mentions(query: str) -> list[str]:
    """The keys under which a query may name known entities, however it is written: every few words of it in a row.

    >>> mentions("where is ada's desk in the long hall?")
    ['ada', 'ada desk', 'ada desk in the long hall', 'desk', 'desk in the long hall', 'the long hall', 'hall']
    """
    words = [_OWNER.sub("", word) for word in _WORD.findall(query.casefold())]
    ordinary = [word in _ORDINARY for word in words]
    spans = [
        " ".join(words[first:last])
        for first in range(len(words))
        # A title may begin with an article; nothing else begins or ends with an ordinary word.
        if not ordinary[first] or words[first] in _ARTICLES
        for last in range(first + 1, min(len(words), first + MAX_MENTION_WORDS) + 1)
        if not ordinary[last - 1]
    ]
    return list(dict.fromkeys([*spans, *(found.key for found in entities(query))]))


def entity(name: str) -> Entity | None:
    """A name as an entity; None if nothing of it can be compared."""
    tidy = _SPACE.sub(" ", name).strip()
    key = tidy.casefold()[:MAX_KEY].strip()
    return Entity(key, tidy[:MAX_KEY]) if key else None
