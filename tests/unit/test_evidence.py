"""Opinions as evidence: what they weigh, and the one vote of each author."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.clock import DAY, to_stored
from heedful.ledger.adaptive_policy import POSITIVE, aging, as_of, mass, vote, votes_per_fact
from heedful.ledger.usefulness import Opinion
from heedful.model import SIGNAL_TYPES, SignalType


def said(
    kind: SignalType, fact: int = 0, author: str | None = "ann", at: int = 0, rank: int | None = None, sure: float = 1.0
) -> Opinion:
    return Opinion(fact, 0, kind, sure, at, rank=rank, author=author)


def net(*opinions: Opinion) -> float:
    found = votes_per_fact(opinions)
    return found[0].net if found else 0.0


@pytest.mark.parametrize("kind", ["used", "helpful", "not_helpful"])
def test_only_what_was_ignored_is_corrected_for_its_rank(kind: SignalType) -> None:
    assert mass(said(kind, rank=4)) == 1.0
    assert mass(said("ignored", rank=4)) == 0.25
    assert mass(said("ignored", rank=None)) == 1.0


@pytest.mark.parametrize("kind", SIGNAL_TYPES)
def test_confidence_scales_a_mass(kind: SignalType) -> None:
    assert mass(said(kind, rank=2, sure=0.5)) == mass(said(kind, rank=2)) / 2


def test_nobody_said_nothing() -> None:
    assert votes_per_fact([]) == {}
    assert votes_per_fact([said("helpful", sure=0.0)]) == {}


def test_each_author_has_one_vote_and_the_program_is_one_author() -> None:
    assert net(said("helpful"), said("used"), said("helpful")) == 1
    assert net(said("used", author=None), said("used", author=None)) == 1
    assert net(said("helpful"), said("used", author=None), said("helpful", author="bob")) == 3


def test_a_changed_mind_shows_at_once() -> None:
    assert net(said("helpful", at=1), said("not_helpful", at=2)) == -1
    assert net(said("helpful", at=1), said("not_helpful", at=2), said("helpful", at=3, sure=0.4)) == 0.4


def test_a_rating_counts_before_what_a_program_saw() -> None:
    assert net(said("helpful", at=1), said("ignored", at=2)) == 1
    assert net(said("not_helpful", at=1), said("used", at=2)) == -1
    assert net(said("used", at=1), said("ignored", at=2)) == -1


def test_the_strongest_counts_of_what_was_said_for_one_side() -> None:
    assert net(said("helpful", at=1), said("used", at=2, sure=0.3)) == 1
    assert net(said("used", at=1, sure=0.3), said("helpful", at=2)) == 1
    assert net(said("helpful", at=DAY, sure=0.9), said("helpful", at=100 * 7 * DAY, sure=0.8)) == 0.8


def test_raters_are_counted_by_what_they_say() -> None:
    found = votes_per_fact([said("helpful"), said("not_helpful", author="bob"), said("used", author="cy")])[0]
    assert (found.helpful, found.not_helpful) == (1, 1)


FIRST, LAST = to_stored(datetime.min), to_stored(datetime.max)
opinions = st.lists(
    st.builds(
        said,
        st.sampled_from(SIGNAL_TYPES),
        author=st.sampled_from([None, "ann"]),
        at=st.integers(0, 400 * DAY),
        rank=st.sampled_from([None, 1, 5]),
        sure=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    ),
    max_size=6,
    unique_by=lambda each: each.at,
)


@given(opinions, st.sampled_from(SIGNAL_TYPES), st.integers(0, 400 * DAY), st.sampled_from([0.1, 1.0]))
def test_saying_more_for_a_fact_never_weakens_it(known: list[Opinion], kind: SignalType, at: int, sure: float) -> None:
    def today(every: list[Opinion]) -> float:
        found = votes_per_fact(sorted(every, key=lambda each: each.at))
        return found[0].net * aging(500 * DAY - found[0].last) if found else 0.0

    if any(each.at == at for each in known):
        return
    before, after = today(known), today([*known, said(kind, at=at, sure=sure)])
    if kind in POSITIVE:
        assert after >= before - 1e-12
    else:
        assert after <= before + 1e-12


@given(opinions)
def test_the_vote_of_an_author_is_one_of_their_opinions(known: list[Opinion]) -> None:
    own = sorted((each for each in known if each.author == "ann"), key=lambda each: each.at)
    if own:
        assert vote(own) in (None, *own)


def test_evidence_fades_by_5_per_cent_a_week() -> None:
    assert aging(7 * DAY) == 0.95
    assert aging(0) == 1


def test_evidence_of_the_future_has_not_grown() -> None:
    assert aging(-7 * DAY) == 1


@given(st.integers(FIRST, LAST))
def test_votes_stay_finite_for_any_date(at: int) -> None:
    assert net(said("helpful", at=at), said("helpful", author="bob", at=0)) <= 2


def test_opinions_of_the_future_are_those_of_now() -> None:
    assert as_of([said("used", at=5), said("used", at=20)], 10) == [said("used", at=5), said("used", at=10)]
