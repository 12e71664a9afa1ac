"""Who may overtake whom: facts that nobody has judged are not buried, and now and then one is tried."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random


def merged(
    relevance: Sequence[float], score: Sequence[float], latest: Sequence[int], known: Sequence[bool]
) -> list[int]:
    """Places by score, but no unknown one is overtaken by more than one known one beyond those it has by relevance.

    The known keep their order by score and the unknown theirs by relevance; only how the two merge is bounded, so an
    unknown fact has no say in where any other goes. Of equals, the one with the latest support comes first, then
    the more relevant, then the earlier place.
    """
    places = range(len(relevance))
    by_relevance = sorted(places, key=lambda place: (-relevance[place], place))
    by_score = sorted(places, key=lambda place: (-score[place], -latest[place], -relevance[place], place))
    ahead_by_relevance = _known_ahead(by_relevance, known)
    ahead_by_score = _known_ahead(by_score, known)
    position = {place: index for index, place in enumerate(by_score)}

    def slot(place: int) -> tuple[int, bool, int]:
        ahead = ahead_by_score[place]
        if not known[place]:
            ahead = min(ahead, ahead_by_relevance[place] + 1)
        # A known fact stands before the unknown ones that have as many known ones ahead as itself and it.
        return (ahead + 1 if known[place] else ahead, not known[place], position[place])

    return sorted(places, key=slot)


def _known_ahead(order: Sequence[int], known: Sequence[bool]) -> dict[int, int]:
    ahead, count = {}, 0
    for place in order:
        ahead[place] = count
        count += known[place]
    return ahead


def explored(
    order: Sequence[int], known: Sequence[bool], shown: int, share: float, seed: int
) -> tuple[list[int], float]:
    """With the chance `share`, an unknown fact from the next `shown` places gets the last place that is shown.

    Returns the order, and the chance with which whatever is in that place got there.
    """
    waiting = [place for place in order[shown : 2 * shown] if not known[place]]
    if share <= 0 or not waiting:
        return list(order), 1.0
    draw = Random(seed)
    if draw.random() >= share:
        return list(order), 1.0 - share
    chosen = draw.choice(waiting)
    rest = [place for place in order if place != chosen]
    return [*rest[: shown - 1], chosen, *rest[shown - 1 :]], share / len(waiting)
