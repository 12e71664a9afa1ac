"""recall(exploration=…): now and then, a fact that nobody has judged is shown."""

from __future__ import annotations

import pytest

from heedful import Heedful, Invalid
from heedful.model import POLICY_NAMES, PolicyName

WORDS = ["amber", "brick", "cedar", "denim", "ember", "flint", "grape", "hazel", "ivory", "jade", "karst", "lemon"]
QUERY = "apples"


@pytest.fixture
def memory(store: Heedful) -> Heedful:
    store.remember([f"apples {word}" for word in WORDS])
    return store


def shown(memory: Heedful, share: float, seed: int | None, **options: object) -> list[str]:
    return [hit.fact_id for hit in memory.recall(QUERY, top_k=3, exploration=share, seed=seed, **options)]  # type: ignore[arg-type]


def propensities(memory: Heedful, share: float, seed: int) -> list[float]:
    result = memory.recall(QUERY, top_k=3, exploration=share, seed=seed)
    return [line.propensity for line in memory.receipt(result.recall_id).shown]


@pytest.mark.parametrize("boost", [False, True])
@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_a_share_of_0_does_nothing(memory: Heedful, policy: PolicyName, boost: bool) -> None:
    plain = [hit.fact_id for hit in memory.recall(QUERY, top_k=3, policy=policy, boost_by_usefulness=boost)]
    for seed in range(5):
        assert shown(memory, 0.0, seed, policy=policy, boost_by_usefulness=boost) == plain
    assert propensities(memory, 0.0, 1) == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_a_share_of_1_always_shows_another_in_the_last_place(memory: Heedful, policy: PolicyName) -> None:
    plain = [hit.fact_id for hit in memory.recall(QUERY, top_k=6)]
    for seed in range(10):
        found = shown(memory, 1.0, seed, policy=policy)
        assert found[:2] == plain[:2]
        assert found[2] in plain[3:6]


def test_the_same_seed_shows_the_same(memory: Heedful) -> None:
    for seed in range(10):
        assert shown(memory, 0.5, seed) == shown(memory, 0.5, seed)
    assert len({tuple(shown(memory, 0.5, seed)) for seed in range(20)}) > 2


def test_without_a_seed_each_recall_draws_again(memory: Heedful) -> None:
    assert len({tuple(shown(memory, 0.9, None)) for _ in range(30)}) > 1


@pytest.mark.slow
def test_the_receipt_has_the_chance_of_what_was_shown(memory: Heedful) -> None:
    plain = shown(memory, 0.0, 0)
    for seed in range(20):
        result = memory.recall(QUERY, top_k=3, exploration=0.4, seed=seed)
        lines = memory.receipt(result.recall_id).shown
        tried = lines[2].fact_id != plain[2]
        assert [line.propensity for line in lines] == pytest.approx([1.0, 1.0, 0.4 / 3 if tried else 0.6])


def test_a_fact_that_was_judged_for_this_question_is_not_tried_again(memory: Heedful) -> None:
    plain = [hit.fact_id for hit in memory.recall(QUERY, top_k=6)]
    memory.signal([{"fact_id": fact, "signal_type": "not_helpful", "query": QUERY} for fact in (plain[3], plain[5])])
    tried = {shown(memory, 1.0, seed, policy="adaptive")[2] for seed in range(10)}
    assert plain[4] in tried
    assert tried.isdisjoint({plain[3], plain[5]})


def test_fewer_facts_than_places_leave_nothing_to_explore(store: Heedful) -> None:
    store.remember(["apples amber", "apples brick"])
    assert propensities(store, 1.0, 1) == [1.0, 1.0]


def test_nothing_found_is_no_error(store: Heedful) -> None:
    assert store.recall(QUERY, exploration=1.0, seed=1).hits == []


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), "1", True])
def test_a_share_outside_is_refused(memory: Heedful, share: float) -> None:
    with pytest.raises(Invalid, match="exploration"):
        memory.recall(QUERY, exploration=share)
