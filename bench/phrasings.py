"""Other words for a question, by rule: as keywords, and loosely."""

from __future__ import annotations

import re
from random import Random

from bench.answers import Rewording, reworded

LOOSELY = Rewording(dropped=0.15, inflected=0.15)

ASKING = frozenset(
    """
    a an and are as at be been can could did do does for from had has have her his how in is it its may might of on or
    she he should than that the their them they this to was were what when where which who whom whose why will with
    would
    """.split()  # noqa: SIM905
)
"""Words that people leave out when they type keywords."""

_EDGES = re.compile(r"^\W+|\W+$")


def phrasings(question: str, random: Random) -> list[str]:
    """A question in other words.

    >>> phrasings("When did Caroline go to the support group?", Random(1))[0]
    'Caroline go support group'
    """
    words = [_EDGES.sub("", word) for word in question.split()]
    keywords = " ".join(word for word in words if word and word.lower() not in ASKING)
    return [keywords or question, f"{reworded(question, LOOSELY, random)}?"]
