"""What comments are about: groups of those that mean the same, named by their own words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from heedful.errors import Invalid
from heedful.learning.grouping import Group, divided, groups
from heedful.learning.naming import Namer, english, terms

ALIKE = 0.3
"""The cosine that two comments on one matter have on average, at least, with the bundled model."""

WORDS = 0.1
"""What shared words add to the cosine at most, where the model does not know the language well."""

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
    texts: Sequence[str], vectors: Vectors, *, most: int = 8, smallest: int = 3, alike: float = ALIKE
) -> list[Theme]:
    """The themes of comments, the largest first; `vectors` are their embeddings, one row of length 1 each.

    At most `most` are told, each of at least `smallest` comments. A comment is in one theme or in none. Which ones
    belong together does not depend on their order. `alike` is the mean cosine within a theme, at least; it depends on
    the model. Time and memory grow with the square of the number of comments: a few thousand are no trouble.

    >>> comments = ["The refund is late", "refund late again", "Late refund!", "I like the logo"]
    >>> same, other = [1.0, 0.0], [0.0, 1.0]
    >>> themes(comments, np.array([same, same, same, other], np.float32))
    [Theme(name='refund late', words=('late', 'refund'), members=(2, 0, 1), cohesion=1.0)]
    """
    if len(texts) != len(vectors):
        raise Invalid(
            f"vectors must be one a text, got {len(vectors)} for {len(texts)}", field="vectors", value=len(vectors)
        )
    if most < 1 or smallest < 2:
        field, value, least = ("most", most, 1) if most < 1 else ("smallest", smallest, 2)
        raise Invalid(f"{field} must be {least} or more, got {value}", field=field, value=value)
    plain = [" ".join(normalize("NFC", text).split()) for text in texts]
    # In an order of their own, so that the one they come in decides nothing.
    order = sorted(
        (place for place, text in enumerate(plain) if text),
        key=lambda place: (plain[place], vectors[place].tobytes(), place),
    )
    if len(order) < smallest:
        return []
    ordered = [plain[place] for place in order]
    rows = np.nan_to_num(vectors[order].astype(np.float64), posinf=0.0, neginf=0.0)
    namer = Namer(ordered)
    found = [_theme(namer, rows, group) for group in _grouped(ordered, rows, smallest, alike)]
    found.sort(key=lambda theme: (-len(theme.members), -theme.cohesion, theme.name))
    names: list[str] = []
    for each in found[:most]:
        names.append(namer.distinct(each.name, each.members, names))
    return [
        Theme(name, each.words, tuple(order[member] for member in each.members), each.cohesion)
        for name, each in zip(names, found, strict=False)
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
    similarity[within] += WORDS * _shared([texts[place] for place in others])
    # To most models all signs are one, be they a heart or a thumb turned down.
    wordless = np.array([not any(map(str.isalnum, text)) for text in texts])
    similarity[wordless] = similarity[:, wordless] = 0.0
    _, same = np.unique([text.casefold() for text in texts], return_inverse=True)
    similarity[same[:, None] == same] = 1.0
    return similarity


def _shared(texts: Sequence[str]) -> NDArray[np.float64]:
    """How much texts share of their terms, where rare ones count more."""
    held = [terms(text) for text in texts]
    having = Counter(term for each in held for term in each)
    weights = {term: math.log1p(len(texts) / count) for term, count in having.items()}
    columns = {term: column for column, term in enumerate(sorted(term for term in having if having[term] > 1))}
    table = np.zeros((len(texts), len(columns)))
    for row, each in zip(table, held, strict=True):
        length = math.sqrt(math.fsum(weights[term] ** 2 for term in each)) or 1.0
        for term in each & columns.keys():
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
