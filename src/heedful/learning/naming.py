"""Groups of short texts named by their own words.

A word is typical of a group when many of its texts have it and few others do. Forms of one word count as one, by their
English stem, and are shown as they are mostly written. Where words are not set apart by spaces, the text nearest to the
centre stands for the name.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from itertools import count

from heedful.learning.words import Word, words

NAME_WORDS = 3
"""Words in a name at most."""

TYPICAL_WORDS = 6
"""Words that are told of a group at most."""

LOOKED_AT = 1_000
"""Characters of a text that are looked at: a comment that has not come to its matter by then has none."""

SHARED = 0.25
"""The share of a group's texts that have a word of its name."""

NEARLY = 0.25
"""A word joins the most typical one in a name if it is this much as typical."""

SHORT = 40
"""Characters of a text that stands for a name."""

# Characters of writing without spaces, or with marks inside of words that split them.
_UNSPACED = re.compile(r"[\u0900-\u109f\u1780-\u17ff\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")

# What is most frequent and tells least, in German, Spanish, French, Italian, Portuguese and Russian.
_LITTLE_WORDS = frozenset(
    """
    der die das den dem des ein eine einen einem einer ich du er sie es wir ihr mein meine meinen ist sind war hat habe
    und oder aber nicht kein keine auf aus bei mit nach seit von vor zu zum zur für im am so sehr viel noch immer auch
    nur schon wie wo was wann dass mir mich
    el la los las un una unos unas lo le les mi su que qué y o pero no ni en de del al con por para es son está están
    ha han muy más ya se me te como dónde
    le les une du au aux et ou mais ne pas est sont dans sur avec pour par ce cette il elle je mon ma mes très plus
    il i gli di da che è sono non per con più molto
    o os as um uma do dos não é são em muito mais
    и в на не я он она мы вы они что это как так но а по у к за из от до же уже мой моя мне очень где
    """.split()  # noqa: SIM905
)


def terms(text: str) -> frozenset[str]:
    """What a text is about: its telling words, and where there are no spaces each two characters.

    >>> sorted(terms("The refunds are late")), sorted(terms("退款太慢"))
    (['late', 'refund'], ['太慢', '款太', '退款'])
    """
    start = text[:LOOKED_AT]
    pairs = (run[at : at + 2] for run in _UNSPACED.findall(start) for at in range(len(run) - 1))
    return frozenset({word.term for word in _telling(start)}.union(pairs))


def english(text: str) -> bool:
    """Whether a text reads like English: it has some of the little words that English can't do without.

    >>> english("The refund is late"), english("Die Erstattung kommt zu spät")
    (True, False)
    """
    found = words(text[:LOOKED_AT])
    return sum(word.kind == "common" for word in found) > len(found) * 0.15


class Namer:
    """Names groups of some texts, against all of them."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = [text[:LOOKED_AT] for text in texts]
        self._words = [_telling(text) for text in self._texts]
        self._having = Counter(term for found in self._words for term in {word.term for word in found})

    def typical(self, members: Sequence[int]) -> list[str]:
        """The terms most typical of a group, the most typical one first; none where words are not told apart."""
        if sum(bool(_UNSPACED.search(self._texts[member])) for member in members) * 2 > len(members):
            return []
        weights = self._weights(members, max(2, math.ceil(SHARED * len(members))))
        best = max(weights.values(), default=0.0)
        return [term for term in _heaviest(weights) if weights[term] >= NEARLY * best][:TYPICAL_WORDS]

    def name(self, members: Sequence[int]) -> tuple[str, tuple[str, ...]]:
        """The name of a group whose most central member comes first, and its typical words."""
        typical = self.typical(members)
        if not typical:
            return shortened(self._texts[members[0]]), ()
        shown, places = self._written(members)
        order = sorted(typical[:NAME_WORDS], key=lambda term: sum(places[term]) / len(places[term]))
        return " ".join(shown[term] for term in order), tuple(shown[term] for term in typical)

    def distinct(self, name: str, members: Sequence[int], taken: Collection[str]) -> str:
        """A group's name, unless it is taken, whatever its capitals: then with further words of the group that more
        than one text has, the most typical first, and with a number if they don't set it apart."""
        names = {each.casefold() for each in taken}
        if name.casefold() not in names:
            return name
        shown, _ = self._written(members)
        longer = name
        for term in _heaviest(self._weights(members, 2)):
            if shown[term].casefold() not in name.casefold().split():
                longer = f"{longer} {shown[term]}"
                if longer.casefold() not in names:
                    return longer
        return next(each for number in count(2) if (each := f"{name} ({number})").casefold() not in names)

    def _weights(self, members: Sequence[int], least: int) -> dict[str, float]:
        """How typical of a group the terms are that at least so many of its texts have."""
        inside = Counter(term for member in members for term in {word.term for word in self._words[member]})
        others = len(self._texts) - len(members)

        def weight(term: str) -> float:
            share = inside[term] / len(members)
            elsewhere = (self._having[term] - inside[term] + 0.5) / (others + 1)
            return share * math.log1p(share / elsewhere)

        return {term: weight(term) for term in inside if inside[term] >= least}

    def _written(self, members: Sequence[int]) -> tuple[dict[str, str], dict[str, list[float]]]:
        """How a group's terms are mostly written, and where in its texts they stand."""
        forms: dict[str, Counter[str]] = defaultdict(Counter)
        places: dict[str, list[float]] = defaultdict(list)
        for member in members:
            text = self._texts[member]
            for word in self._words[member]:
                form = text[word.start : word.stop]
                # A capital at the start of a sentence says nothing of how the word is written.
                opens = word.kind == "word" and form != form.lower()
                forms[word.term][form.lower() if opens else form] += 0 if opens else 1
                places[word.term].append(word.start / len(text))
        return {term: min(each, key=lambda form: (-each[form], form)) for term, each in forms.items()}, places


def shortened(text: str) -> str:
    """A text as a name: its first characters, up to a word's end if there is one.

    >>> shortened("The bot did not tell me how to get my money back")
    'The bot did not tell me how to get my…'
    """
    if len(text) <= SHORT:
        return text
    start, space, _ = text[:SHORT].rpartition(" ")
    return f"{start if space and len(start) > SHORT // 2 else text[: SHORT - 1]}…"


def _heaviest(weights: dict[str, float]) -> list[str]:
    return sorted(weights, key=lambda term: (-weights[term], term))


def _telling(text: str) -> list[Word]:
    return [
        word
        for word in words(text)
        if word.kind in ("word", "name")
        and text[word.start : word.stop].lower() not in _LITTLE_WORDS
        and not _UNSPACED.search(text, word.start, word.stop)
    ]
