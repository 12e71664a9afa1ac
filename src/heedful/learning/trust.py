"""How far an opinion is trusted, and how many make one count. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from heedful.model import AuthorStanding

VISITOR = "visitor-"
"""How the names of anonymous visitors begin."""

ANYONE = f"{VISITOR}anyone"
"""The one voice of all visitors whom nobody tells apart."""


@dataclass(frozen=True, slots=True)
class Trust:
    """How many known authors must agree where one verified caller is enough. Anonymous visitors never are."""

    authors_to_teach: int = 2
    """To make a fact of a correction, or of an answer."""
    authors_to_veto: int = 1
    """To keep SQL from being used again."""


def standing_of(author: str | None) -> AuthorStanding:
    """What a name says of who speaks.

    >>> standing_of(None), standing_of("ann"), standing_of("visitor-anyone")
    ('verified', 'known', 'anonymous')
    """
    if author is None:
        return "verified"
    return "anonymous" if author.startswith(VISITOR) else "known"


def suffices(votes: Iterable[tuple[AuthorStanding, str | None]], authors: int) -> bool:
    """Whether these votes count: a verified one alone, or so many known authors.

    >>> suffices([("known", "ann"), ("known", "ann")], 2), suffices([("known", "ann"), ("known", "bo")], 2)
    (False, True)
    >>> suffices([("anonymous", f"visitor-{n}") for n in range(10)], 1), suffices([("verified", None)], 2)
    (False, True)
    """
    given = list(votes)
    known = {author for standing, author in given if standing == "known"}
    return any(standing == "verified" for standing, _ in given) or len(known) >= authors
