"""The themes of comments: groups of those that mean the same, named by their own words."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import count
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from heedful.errors import Invalid
from heedful.text import word_set
from heedful.text.regex import regex
from heedful.text.words import Word, words

MIN_COSINE = 0.3
"""The cosine that two comments on one matter have on average, at least, with the bundled model."""

WORDS = 0.1
"""The most that shared words add to the cosine, where the model does not know the language well."""

FIRMNESS = 0.9
"""There, a group is divided if its parts are less alike than this share of what each is within itself."""

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Theme:
    """Comments that mean the same.

    `name` is made of one to three of its typical `words`, or is its most central comment, shortened, if it has none;
    where a larger theme has that name, further words or a number are added.
    `members` are places of comments, nearest to the centre first; `cohesion` is the mean cosine of any two.
    """

    name: str
    words: tuple[str, ...]
    members: tuple[int, ...]
    cohesion: float


def themes(
    texts: Sequence[str], vectors: Vectors, *, most: int = 8, smallest: int = 3, alike: float = MIN_COSINE
) -> list[Theme]:
    """The themes of comments, the largest first; `vectors` are their embeddings, one row of length 1 each.

    At most `most` are returned, each of at least `smallest` comments. A comment is in one theme or in none. Which ones
    belong together does not depend on their order. `alike` is the mean cosine within a theme, at least; it depends on
    the model. Time and memory grow with the square of the number of comments: a few thousand are no trouble.

    >>> comments = ["The refund is late", "refund late again", "Late refund!", "I like the logo"]
    >>> same, other = [1.0, 0.0], [0.0, 1.0]
    >>> themes(comments, np.array([same, same, same, other], np.float32))
    [Theme(name='refund late', words=('late', 'refund'), members=(2, 0, 1), cohesion=1.0)]
    """
    if len(texts) != len(vectors):
        raise Invalid(
            f"vectors must be one per text, got {len(vectors)} for {len(texts)}", field="vectors", value=len(vectors)
        )
    if most < 1 or smallest < 2:
        field, value, least = ("most", most, 1) if most < 1 else ("smallest", smallest, 2)
        raise Invalid(f"{field} must be {least} or more, got {value}", field=field, value=value)
    plain = [considered(text) for text in texts]
    # In an order of their own, so that the one they come in decides nothing.
    order = sorted(
        (index for index, text in enumerate(plain) if text),
        key=lambda index: (plain[index], vectors[index].tobytes(), index),
    )
    if len(order) < smallest:
        return []
    ordered = [plain[index] for index in order]
    rows = np.nan_to_num(vectors[order].astype(np.float64), posinf=0.0, neginf=0.0)
    namer = Namer(ordered)
    found = [_theme(namer, rows, group) for group in _grouped(ordered, rows, smallest, alike)]
    found.sort(key=lambda theme: (-len(theme.members), -theme.cohesion, theme.name))
    names: list[str] = []
    for theme in found[:most]:
        names.append(namer.distinct(theme.name, theme.members, names))
    return [
        Theme(name, theme.words, tuple(order[member] for member in theme.members), theme.cohesion)
        for name, theme in zip(names, found, strict=False)
    ]


def _grouped(texts: Sequence[str], rows: NDArray[np.float64], smallest: int, alike: float) -> list[Group]:
    foreign = np.array([not english(text) for text in texts])
    found: list[Group] = []
    for group in groups(_similarity(texts, rows, foreign), alike):
        # In a language that the model does not know well, all texts are rather alike.
        apart = bool(foreign[list(group.members)].mean() > 0.5)
        found += divided(group, smallest=smallest, firmness=FIRMNESS) if apart else [group]
    return [group for group in found if len(group.members) >= smallest]


def _similarity(texts: Sequence[str], rows: NDArray[np.float64], foreign: NDArray[np.bool_]) -> NDArray[np.float64]:
    """How alike the comments are two by two; equal ones are, whatever the model makes of them."""
    similarity: NDArray[np.float64] = rows @ rows.T
    others = np.flatnonzero(foreign).tolist()
    within = np.ix_(others, others)
    similarity[within] += WORDS * _shared([texts[index] for index in others])
    # To most models all signs are one, be they a heart or a thumb turned down.
    wordless = np.array([not any(map(str.isalnum, text)) for text in texts])
    similarity[wordless] = similarity[:, wordless] = 0.0
    _, same = np.unique([text.casefold() for text in texts], return_inverse=True)
    similarity[same[:, None] == same] = 1.0
    return similarity


def _shared(texts: Sequence[str]) -> NDArray[np.float64]:
    """How much texts share of their terms, where rare ones count more. Of very many terms, the most frequent decide."""
    held = [terms(text) for text in texts]
    having = Counter(term for own in held for term in own)
    weights = {term: math.log1p(len(texts) / count) for term, count in having.items()}
    repeated = sorted((term for term in having if having[term] > 1), key=lambda term: (-having[term], term))
    columns = {term: column for column, term in enumerate(repeated[:MAX_TERMS])}
    table = np.zeros((len(texts), len(columns)))
    for row, own in zip(table, held, strict=True):
        length = math.sqrt(math.fsum(weights[term] ** 2 for term in own)) or 1.0
        for term in own:
            if term in columns:
                row[columns[term]] = weights[term] / length
    return table @ table.T


def _theme(namer: Namer, rows: NDArray[np.float64], group: Group) -> Theme:
    members = np.array(group.members)
    vectors = rows[members]
    centre = vectors.sum(axis=0)
    # Rounded, as equal comments differ in the last digits of a sum.
    nearest = members[np.argsort(-(vectors @ centre).round(9), kind="stable")].tolist()
    pairs = len(members) * (len(members) - 1)
    cohesion = float((centre @ centre - np.square(vectors).sum()) / pairs)
    name, words = namer.name(nearest)
    return Theme(name, words, tuple(nearest), cohesion)


NAME_WORDS = 3
"""Words in a name at most."""

TYPICAL_WORDS = 6
"""The most words in the label of a group."""

MAX_CHARACTERS = 1_000
"""Characters of a text that are looked at: a comment that has not come to its matter by then has none."""

MAX_TERMS = 5_000
"""Terms that texts are compared by, the most frequent ones; each is in at least two texts."""

MIN_SHARE = 0.25
"""The share of a group's texts that have a word of its name."""

MIN_TYPICALITY = 0.25
"""A word joins the most typical one in a name if it is this much as typical."""

MAX_NAME = 40
"""The most characters of a text that is used as a label."""

# Characters of writing without spaces, or with marks inside of words that split them.
_UNSPACED = regex(r"[\u0900-\u109f\u1780-\u17ff\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")

# Words of any complaint, and the most frequent words in German, Spanish, French, Italian, Portuguese and Russian.
_LITTLE_WORDS = word_set("""
sorry wrong incorrect false answer answers answered reply response again still please check correct thanks
leider falsch falsche antwort bitte wieder désolé faux fausse réponse encore perdón incorrecto incorrecta respuesta
der die das den dem des ein eine einen einem einer ich du er sie es wir ihr mein meine meinen ist sind war hat habe
und oder aber nicht kein keine auf aus bei mit nach seit von vor zu zum zur für im am so sehr viel noch immer auch
nur schon wie wo was wann dass mir mich
el la los las un una unos unas lo le les mi su que qué y o pero no ni en de del al con por para es son está están
ha han muy más ya se me te como dónde
le les une du au aux et ou mais ne pas est sont dans sur avec pour par ce cette il elle je mon ma mes très plus
il i gli di da che è sono non per con più molto
o os as um uma do dos não é são em muito mais
и в на не я он она мы вы они что это как так но а по у к за из от до же уже мой моя мне очень где
""")


def considered(text: str) -> str:
    """The part of a text that themes depend on, in one line: its first `MAX_CHARACTERS` characters.

    >>> considered("  The refund\\n is late ")
    'The refund is late'
    """
    return " ".join(normalize("NFC", text).split())[:MAX_CHARACTERS].rstrip()


def terms(text: str) -> frozenset[str]:
    """The telling words of a text, and where there are no spaces each two characters.

    >>> sorted(terms("The refunds are late")), sorted(terms("退款太慢"))
    (['late', 'refund'], ['太慢', '款太', '退款'])
    """
    start = text[:MAX_CHARACTERS]
    pairs = (run[at : at + 2] for run in _UNSPACED.findall(start) for at in range(len(run) - 1))
    return frozenset({word.term for word in _content_words(start)}.union(pairs))


def english(text: str) -> bool:
    """Whether a text reads like English: it has some of the little words that English can't do without.

    >>> english("The refund is late"), english("Die Erstattung kommt zu spät")
    (True, False)
    """
    found = words(text[:MAX_CHARACTERS])
    return sum(word.kind == "common" for word in found) > len(found) * 0.15


class Namer:
    """Names groups of some texts, against all of them."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = [text[:MAX_CHARACTERS] for text in texts]
        self._words = [_content_words(text) for text in self._texts]
        self._having = Counter(term for found in self._words for term in {word.term for word in found})

    def typical(self, members: Sequence[int]) -> list[str]:
        """The terms most typical of a group, the most typical one first; none where words are not told apart."""
        if sum(bool(_UNSPACED.search(self._texts[member])) for member in members) * 2 > len(members):
            return []
        weights = self._weights(members, max(2, math.ceil(MIN_SHARE * len(members))))
        best = max(weights.values(), default=0.0)
        return [term for term in _heaviest(weights) if weights[term] >= MIN_TYPICALITY * best][:TYPICAL_WORDS]

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
        names = {other.casefold() for other in taken}
        if name.casefold() not in names:
            return name
        shown, _ = self._written(members)
        longer = name
        for term in _heaviest(self._weights(members, 2)):
            if shown[term].casefold() not in name.casefold().split():
                longer = f"{longer} {shown[term]}"
                if longer.casefold() not in names:
                    return longer
        return next(text for number in count(2) if (text := f"{name} ({number})").casefold() not in names)

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
        """How a group's terms are mostly written, and where they are in its texts."""
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
        return {term: min(own, key=lambda form: (-own[form], form)) for term, own in forms.items()}, places


def shortened(text: str) -> str:
    """A text as a name: its first characters, up to a word's end if there is one.

    >>> shortened("The bot did not tell me how to get my money back")
    'The bot did not tell me how to get my…'
    """
    if len(text) <= MAX_NAME:
        return text
    start, space, _ = text[:MAX_NAME].rpartition(" ")
    return f"{start if space and len(start) > MAX_NAME // 2 else text[: MAX_NAME - 1]}…"


def _heaviest(weights: dict[str, float]) -> list[str]:
    return sorted(weights, key=lambda term: (-weights[term], term))


def _content_words(text: str) -> list[Word]:
    return [
        word
        for word in words(text)
        if word.kind in ("word", "name")
        and text[word.start : word.stop].lower() not in _LITTLE_WORDS
        and not _UNSPACED.search(text, word.start, word.stop)
    ]


_NEVER = -np.inf


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Some members, and the two groups they come from; a single member has none.

    `level` is how alike the members of one half are to those of the other, on average, and `cohesion` how alike any two
    members are.
    """

    members: tuple[int, ...]
    halves: tuple[Group, Group] | None = None
    level: float = 1.0
    cohesion: float = 1.0


def groups(similarity: NDArray[np.float64], alike: float) -> list[Group]:
    """The groups of rows that are alike on average; each row is in one, if need be by itself.

    >>> [group.members for group in groups(np.array([[1, 0.1, 0.9], [0.1, 1, 0.2], [0.9, 0.2, 1]]), 0.5)]
    [(0, 2), (1,)]
    """
    open_ = {index: Group((index,)) for index in range(len(similarity))}
    nearness = similarity.astype(np.float64)
    np.fill_diagonal(nearness, _NEVER)
    done: list[Group] = []
    chain: list[int] = []
    while open_:
        if not chain:
            chain.append(next(iter(open_)))
        last = chain[-1]
        near = int(nearness[last].argmax())
        if len(chain) > 1 and nearness[last, chain[-2]] >= nearness[last, near]:
            near = chain[-2]
        if nearness[last, near] < alike:
            # No later group is nearer to this one than its nearest part is.
            done.append(open_.pop(chain.pop()))
            nearness[last] = nearness[:, last] = _NEVER
        elif len(chain) > 1 and near == chain[-2]:
            del chain[-2:]
            _join(nearness, open_, last, near)
        else:
            chain.append(near)
    return sorted(done, key=lambda group: group.members)


def _join(nearness: NDArray[np.float64], open_: dict[int, Group], target: int, merged: int) -> None:
    one, other = open_[target], open_.pop(merged)
    level = float(nearness[target, merged])
    here, there = len(one.members), len(other.members)
    joined = (here * nearness[target] + there * nearness[merged]) / (here + there)
    nearness[target] = nearness[:, target] = joined
    nearness[target, target] = _NEVER
    nearness[merged] = nearness[:, merged] = _NEVER
    alike = _pairs(here) * one.cohesion + _pairs(there) * other.cohesion + here * there * level
    members = tuple(sorted(one.members + other.members))
    open_[target] = Group(members, (one, other), level, alike / _pairs(here + there))


def _pairs(members: int) -> int:
    return members * (members - 1) // 2


def divided(group: Group, *, smallest: int, firmness: float) -> list[Group]:
    """A group, or its parts of at least `smallest` members where those hold together much better by themselves.

    That is where the level between two parts is below `firmness` times the cohesion of either. What is near no part is
    left out.
    """
    parts: list[Group] = []
    open_ = [group]
    while open_:
        whole = at = open_.pop()
        while len(large := [half for half in at.halves or () if len(half.members) >= smallest]) == 1:
            at = large[0]
        if large and at.level < firmness * min(half.cohesion for half in large):
            open_ += large
        else:
            parts.append(whole)
    return sorted(parts, key=lambda part: part.members)
