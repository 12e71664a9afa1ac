"""Words: equal to BM25 written the slow way, however the texts came and went."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.search import relevance
from heedful.search.relevance import K1, B
from heedful.text.words import terms

words = st.sampled_from(["apple", "apples", "banana", "cherry", "running", "runs", "the", "of", "dog", "Dogs", "2024"])
texts = st.lists(words, max_size=8).map(" ".join)
queries = st.lists(words | st.just("zebra"), min_size=1, max_size=5).map(" ".join)


def naive(documents: list[str], query: str) -> list[float]:
    bags = [Counter(terms(text)) for text in documents]
    lengths = [sum(bag.values()) for bag in bags]
    mean = max(sum(lengths) / len(lengths), 1.0) if lengths else 1.0
    scores, bound = [0.0] * len(documents), 0.0
    for term in set(terms(query)):
        holders = sum(term in bag for bag in bags)
        rarity = math.log(1 + (len(bags) - holders + 0.5) / (holders + 0.5))
        bound += rarity
        for row, bag in enumerate(bags):
            if bag[term]:
                norm = K1 * (1 - B + B * lengths[row] / mean)
                scores[row] += rarity * bag[term] * (K1 + 1) / (bag[term] + norm)
    return [min(1.0, score / bound) if bound else 0.0 for score in scores]


def coverage(
    segments: list[relevance.Segment], query: str, live: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> list[float]:
    lengths = np.concatenate([segment.lengths for segment in segments])
    found = relevance.coverage(segments, query, live, relevance.length_norms(lengths, live))
    return [float(score) for score in found]


@given(st.lists(texts, min_size=1, max_size=12), queries)
def test_coverage_is_bm25_over_its_bound(documents: list[str], query: str) -> None:
    live = np.ones(len(documents), bool)
    found = coverage([relevance.build_segment(documents, 0)], query, live)
    assert found == pytest.approx(naive(documents, query), abs=1e-5)


@given(st.lists(texts, min_size=1, max_size=12), queries, st.data())
def test_segments_merges_and_removals_do_not_change_a_score(
    documents: list[str], query: str, data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(documents)))) | {0, len(documents)})
    segments = [relevance.build_segment(documents[start:stop], start) for start, stop in pairwise(cuts) if stop > start]
    live = np.array(data.draw(st.lists(st.booleans(), min_size=len(documents), max_size=len(documents))))
    living = [text for text, lives in zip(documents, live, strict=True) if lives]
    wanted = iter(naive(living, query))
    expected = pytest.approx([next(wanted) if lives else 0.0 for lives in live], abs=1e-5)

    assert coverage(segments, query, live) == expected
    merged = relevance.merge_segments(segments)
    assert coverage([merged], query, live) == expected
    if living:
        moved = np.where(live, np.cumsum(live) - 1, -1).astype(np.int32)
        kept = relevance.keep_only(merged, moved)
        assert coverage([kept], query, np.ones(len(living), bool)) == pytest.approx(naive(living, query), abs=1e-5)


@given(st.lists(texts, min_size=1, max_size=12), queries)
def test_coverage_is_bounded(documents: list[str], query: str) -> None:
    found = coverage([relevance.build_segment(documents, 0)], query, np.ones(len(documents), bool))
    assert all(0.0 <= score <= 1.0 for score in found)


def test_a_word_that_no_text_has_lowers_what_words_can_say() -> None:
    documents = ["apple banana", "cherry"]
    live = np.ones(2, bool)
    segment = relevance.build_segment(documents, 0)
    assert coverage([segment], "apple zebra", live)[0] < coverage([segment], "apple", live)[0]


def test_a_query_of_the_commonest_words_finds_nothing() -> None:
    assert coverage([relevance.build_segment(["the dog of the house"], 0)], "of the", np.ones(1, bool)) == [0.0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Running", "runs"),
        ("apples", "apple"),
        ("CEO", "ceo"),
        ("it's Anna's", "its anna"),
        ("naïve Über", "NAÏVE über"),
    ],
)
def test_forms_of_a_word_are_one_term(one: str, other: str) -> None:
    assert terms(one) == terms(other)


def test_terms_keep_their_order_and_number() -> None:
    assert len(terms("dog bites dog")) == 3
    assert terms("dog bites dog")[0] == terms("dog bites dog")[2]


def test_the_commonest_words_are_left_out() -> None:
    assert terms("Who is the dog of the house?") == terms("dog house")


def test_may_and_will_are_names_too() -> None:
    assert len(terms("May Will")) == 2
