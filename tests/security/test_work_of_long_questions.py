"""Questions of many small words: the work of reading them grows with their length, not faster."""

from __future__ import annotations

import pytest

from heedful.sql.reuse import consensus
from heedful.sql.reuse.question_reading import Frame


class CountingWords(frozenset[str]):
    """Words that count how often somebody looks for one."""

    lookups = 0

    def __contains__(self, word: object) -> bool:
        type(self).lookups += 1
        return super().__contains__(word)


@pytest.mark.parametrize("word", [min(consensus.QUIET), "and", "both", "‹city.name›", "visits", "1"])
def test_each_word_of_a_question_is_looked_at_a_few_times(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = CountingWords(consensus.QUIET)
    monkeypatch.setattr(consensus, "QUIET", words)
    for size in (1_000, 2_000):
        CountingWords.lookups = 0
        consensus.terms(Frame((word,) * size, ()))
        assert CountingWords.lookups <= 4 * size
