"""Opinions as evidence: masses, voices, and trust."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.clock import DAY
from heedful.model import SIGNAL_TYPES, SignalType
from heedful.ranking.evidence import (
    ANONYMOUS,
    MAX_AUTHOR_WEIGHT,
    REPLACED_OPINION_WEIGHT,
    Agreement,
    AuthorVote,
    QueryVotes,
    aging,
    agreement,
    as_of,
    mass,
    votes_per_fact,
)
from heedful.ranking.signals import Opinion


def said(
    kind: SignalType, fact: int = 0, author: str | None = "ann", at: int = 0, rank: int | None = None, sure: float = 1.0
) -> Opinion:
    return Opinion(fact, 0, kind, sure, at, rank=rank, author=author)


def vote(author: str, verdict: int, fact: int = 0) -> AuthorVote:
    return AuthorVote(fact, author, float(verdict > 0), float(verdict < 0))


@pytest.mark.parametrize("kind", ["used", "helpful", "not_helpful"])
def test_only_what_was_ignored_is_corrected_for_its_rank(kind: SignalType) -> None:
    assert mass(said(kind, rank=4)) == 1.0
    assert mass(said("ignored", rank=4)) == 0.25
    assert mass(said("ignored", rank=None)) == 1.0


@pytest.mark.parametrize("kind", SIGNAL_TYPES)
def test_confidence_scales_a_mass(kind: SignalType) -> None:
    assert mass(said(kind, rank=2, sure=0.5)) == mass(said(kind, rank=2)) / 2


def test_nobody_said_nothing() -> None:
    assert QueryVotes([]).folded().votes == []
    assert agreement([]) == {}


def test_each_author_has_one_voice_for_each_fact() -> None:
    found = (
        QueryVotes(
            [said("helpful", 0, "ann"), said("used", 1, "ann"), said("helpful", 0, "bob"), said("used", 0, "bob")]
        )
        .folded()
        .votes
    )
    assert [(voice.fact, voice.author) for voice in found] == [(0, "ann"), (0, "bob"), (1, "ann")]


def test_opinions_without_an_author_are_one_voice() -> None:
    (voice,) = QueryVotes([said("helpful", author=None, at=at) for at in range(50)]).folded().votes
    assert voice.author == ANONYMOUS
    assert voice.positive <= MAX_AUTHOR_WEIGHT + 1e-9


@given(kinds=st.lists(st.sampled_from(SIGNAL_TYPES), min_size=1, max_size=40), crowd=st.integers(0, 20))
def test_one_author_never_weighs_more_than_the_limit(kinds: list[SignalType], crowd: int) -> None:
    opinions = [said(kind) for kind in kinds] + [said("used", author=f"other {number}") for number in range(crowd)]
    result = {voice.author: voice for voice in QueryVotes(opinions).folded().votes}
    assert result["ann"].positive + result["ann"].negative <= max(1.0, MAX_AUTHOR_WEIGHT / (crowd + 1)) + 1e-9


def test_a_changed_mind_shows_at_once() -> None:
    (voice,) = (
        QueryVotes(
            [*(said("helpful", at=at) for at in range(20)), *(said("not_helpful", at=20 + at) for at in range(5))]
        )
        .folded()
        .votes
    )
    assert voice.verdict == -1


def test_earlier_opinions_count_less() -> None:
    (voice,) = QueryVotes([said("helpful", at=0), said("not_helpful", at=1)]).folded().votes
    assert voice.positive == pytest.approx(REPLACED_OPINION_WEIGHT * voice.negative)


def test_a_voice_remembers_when_it_last_spoke_for_a_fact() -> None:
    (voice,) = QueryVotes([said("helpful", at=3), said("used", at=7), said("not_helpful", at=9)]).folded().votes
    assert voice.latest == 7
    (against,) = QueryVotes([said("ignored", at=9)]).folded().votes
    assert against.latest == 0


def test_evidence_fades_by_5_per_cent_a_week() -> None:
    assert aging(0) == 1.0
    assert aging(7 * DAY) == pytest.approx(0.95)
    assert aging(14 * DAY) == pytest.approx(0.95**2)


def test_evidence_of_the_future_has_not_grown() -> None:
    assert aging(-7 * DAY) == aging(-1_000_000 * DAY) == 1.0


def test_masses_are_as_of_the_last_opinion() -> None:
    (voice,) = QueryVotes([said("helpful", at=0), said("helpful", at=7 * DAY)]).folded().votes
    assert voice.positive == pytest.approx(REPLACED_OPINION_WEIGHT * 0.95 + 1.0)
    assert voice.last == 7 * DAY
    early, late = said("helpful", author="ann", at=0), said("not_helpful", author="bob", at=7 * DAY)
    (fact,) = votes_per_fact([early, late]).values()
    assert fact.net == pytest.approx(0.95 - 1.0)
    assert fact.last == 7 * DAY


@pytest.mark.parametrize("at", [-700_000 * DAY, 40_000 * DAY, 2_900_000 * DAY])
def test_masses_stay_finite_for_any_date(at: int) -> None:
    (voice,) = QueryVotes([said("helpful", at=at)]).folded().votes
    assert voice.positive == 1.0


def test_opinions_of_the_future_are_those_of_now() -> None:
    earlier, later = said("helpful", at=3), said("used", at=7)
    assert as_of([earlier, later], now=5) == [earlier, replace(later, at=5)]


def test_an_author_whom_nobody_contradicts_is_trusted() -> None:
    assert Agreement().trust == 1.0
    assert agreement([vote("ann", 1)]) == {}
    assert agreement([vote("ann", 1), vote("bob", 1)])["ann"].trust == 1.0


def test_who_disagrees_with_everyone_counts_less_and_the_others_hardly() -> None:
    evidence = [
        vote(author, -1 if author == "eve" else 1, fact) for fact in range(5) for author in ("ann", "bob", "cy", "eve")
    ]
    found = agreement(evidence)
    assert found["eve"].trust < 0.5 < 0.8 < found["ann"].trust


def test_trust_lies_between_0_and_1_and_falls_with_disagreement() -> None:
    trusts = [Agreement(agree=1.0, differ=float(differ)).trust for differ in range(10)]
    assert trusts == sorted(trusts, reverse=True)
    assert 0 < trusts[-1] < trusts[0] <= 1


def test_the_undecided_agree_with_nobody() -> None:
    assert agreement([vote("ann", 0), vote("bob", 1)]) == {}


def test_agreements_add_up() -> None:
    assert Agreement(1, 2) + Agreement(3, 4) == Agreement(4, 6)


@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from([-1, 0, 1]), st.integers(0, 3)),
        max_size=12,
        unique_by=lambda each: (each[0], each[2]),
    )
)
def test_agreement_does_not_depend_on_who_is_heard_first(cast: list[tuple[str, int, int]]) -> None:
    one = agreement([vote(*each) for each in cast])
    other = agreement([vote(*each) for each in reversed(cast)])
    assert {author: each.trust for author, each in one.items()} == pytest.approx(
        {author: each.trust for author, each in other.items()}
    )
