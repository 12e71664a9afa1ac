"""Runs of words that two texts have in common, found in one pass over each, however often they repeat themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


class SuffixAutomaton:
    """Reads along which runs of words a text has.

    Blumer et al., "The smallest automaton recognizing the subwords of a text", 1985.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._moves: list[dict[str, int]] = [{}]
        self._links = [-1]
        self._lengths = [0]
        self._ends = [0]
        last = 0
        for end, word in enumerate(words, start=1):
            last = self._append(word, last, end)

    def _append(self, word: str, last: int, end: int) -> int:
        current = self._state({}, 0, self._lengths[last] + 1, end)
        state = last
        while state >= 0 and word not in self._moves[state]:
            self._moves[state][word] = current
            state = self._links[state]
        if state < 0:
            return current
        target = self._moves[state][word]
        if self._lengths[state] + 1 < self._lengths[target]:
            longer = target
            target = self._state(
                dict(self._moves[longer]), self._links[longer], self._lengths[state] + 1, self._ends[longer]
            )
            self._links[longer] = target
            while state >= 0 and self._moves[state].get(word) == longer:
                self._moves[state][word] = target
                state = self._links[state]
        self._links[current] = target
        return current

    def _state(self, moves: dict[str, int], link: int, length: int, end: int) -> int:
        self._moves.append(moves)
        self._links.append(link)
        self._lengths.append(length)
        self._ends.append(end)
        return len(self._moves) - 1

    def runs(self, words: Iterable[str]) -> Iterator[tuple[int, int]]:
        """For each word of another text, the longest run up to it that this one has: where it ends here, and its size.

        >>> list(SuffixAutomaton("the cat sat on the mat".split()).runs("a cat sat by the mat".split()))
        [(0, 0), (2, 1), (3, 2), (0, 0), (1, 1), (6, 2)]
        """
        state = size = 0
        for word in words:
            while state and word not in self._moves[state]:
                state = self._links[state]
                size = self._lengths[state]
            state = self._moves[state].get(word, 0)
            size = size + 1 if state else 0
            yield self._ends[state], size
