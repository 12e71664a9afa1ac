"""The simulated user: attention, errors, malice, changes of mind, and seeds."""

from __future__ import annotations

from collections import Counter

import pytest

from heedful import Heedful
from heedful.simulate import Judgement, Need, SimulatedUser

SHOWN = [f"fact {number}" for number in range(1, 11)]


def judgements(user: SimulatedUser, times: int, answers: list[str]) -> list[Judgement]:
    return [user.judge(SHOWN, answers) for _ in range(times)]


def spoken(judgement: Judgement) -> list[str]:
    return [*judgement.used, *judgement.helpful, *judgement.not_helpful]


def test_attention_fades_with_the_rank() -> None:
    looked = Counter(fact for each in judgements(SimulatedUser(1), 3000, []) for fact in spoken(each))
    assert [looked[fact] / 3000 for fact in SHOWN] == pytest.approx([1 / rank for rank in range(1, 11)], abs=0.03)


def test_without_fading_everything_is_looked_at() -> None:
    assert spoken(SimulatedUser(1, examination=0).judge(SHOWN, [])) == SHOWN


def test_an_exact_user_says_what_is_true() -> None:
    verdict = SimulatedUser(1, examination=0).judge(SHOWN, ["fact 2", "fact 4"])
    assert verdict.helpful == ["fact 2", "fact 4"]
    assert verdict.not_helpful == [fact for fact in SHOWN if fact not in verdict.helpful]
    assert verdict.used == []


def test_an_implicit_user_just_uses() -> None:
    verdict = SimulatedUser(1, examination=0, explicit=False).judge(SHOWN, ["fact 2"])
    assert verdict == Judgement(used=["fact 2"])


@pytest.mark.parametrize("noise", [0.2, 0.5])
def test_noise_is_the_share_of_errors(noise: float) -> None:
    said = judgements(SimulatedUser(1, noise=noise, examination=0), 500, ["fact 2"])
    wrong = sum(("fact 2" in each.not_helpful) + len([f for f in each.helpful if f != "fact 2"]) for each in said)
    assert wrong / (500 * len(SHOWN)) == pytest.approx(noise, abs=0.03)


def test_an_adversary_says_the_contrary() -> None:
    honest, liar = (SimulatedUser(3, noise=0.2, adversarial=each) for each in (False, True))
    for _ in range(20):
        one, other = honest.judge(SHOWN, ["fact 2"]), liar.judge(SHOWN, ["fact 2"])
        assert (one.helpful, one.not_helpful) == (other.not_helpful, other.helpful)


def test_habits_do_not_disturb_each_other() -> None:
    exact, noisy = SimulatedUser(5), SimulatedUser(5, noise=0.3)
    for _ in range(20):
        assert sorted(spoken(exact.judge(SHOWN, ["fact 2"]))) == sorted(spoken(noisy.judge(SHOWN, ["fact 2"])))


def test_a_seed_repeats_a_user() -> None:
    one, same, other = SimulatedUser(7, noise=0.3), SimulatedUser(7, noise=0.3), SimulatedUser(8, noise=0.3)
    said = judgements(one, 20, ["fact 2"])
    assert judgements(same, 20, ["fact 2"]) == said
    assert judgements(other, 20, ["fact 2"]) != said
    assert (one.author, SimulatedUser(7, author="ann").author) == ("simulated-7", "ann")


def test_the_world_may_change() -> None:
    need = Need(["q"], ["old"], later=["new"], changes_at=3)
    assert [list(need.answers_at(asked)) for asked in range(5)] == [["old"]] * 3 + [["new"]] * 2
    assert list(Need(["q"], ["old"]).answers_at(1000)) == ["old"]


def test_a_need_is_asked_for_in_all_its_ways() -> None:
    need = Need(["one", "two", "three"], ["a"])
    questions = [SimulatedUser(1).query(need), *(user.query(need) for user in [SimulatedUser(2)] for _ in range(50))]
    assert set(questions) == {"one", "two", "three"}


def test_nothing_shown_is_nothing_said() -> None:
    assert SimulatedUser(1).judge([], ["a"]) == Judgement()


def test_a_response_is_recorded_with_its_ranks_and_author(store: Heedful) -> None:
    facts = store.remember(["apples are red", "apples are green", "apples are sour"]).fact_ids
    shown = store.recall("apples")
    result = SimulatedUser(1, author="ann", examination=0).respond(store, shown, [facts[1]])
    assert (result.processed, result.errors) == (3, [])
    assert store.fact_stats(facts[1]).signal_breakdown["helpful"] == 1
    assert store.fact_stats(facts[0]).signal_breakdown["not_helpful"] == 1


def test_what_was_not_looked_at_is_ignored(store: Heedful) -> None:
    store.remember(["apples are red", "apples are green", "apples are sour"])
    shown = store.recall("apples")
    SimulatedUser(1, explicit=False, examination=100).respond(store, shown, [shown[0].fact_id, shown[1].fact_id])
    kinds = [store.fact_stats(hit.fact_id).signal_breakdown for hit in shown]
    assert [(kind["used"], kind["ignored"]) for kind in kinds] == [(1, 0), (0, 1), (0, 1)]


@pytest.mark.parametrize("explicit", [True, False])
@pytest.mark.slow
def test_a_crowd_teaches_a_store_and_follows_a_change(store: Heedful, explicit: bool) -> None:
    facts = store.remember(["the code is red", "the code is blue", "the code is pink"]).fact_ids
    need = Need(["what is the code"], [facts[2]], later=[facts[1]], changes_at=15)
    users = [SimulatedUser(seed, noise=0.1, examination=0.2, explicit=explicit) for seed in range(5)]
    leaders = []
    for asked in range(40):
        shown = store.recall(need.queries[0], boost_by_usefulness=True, policy="adaptive")
        leaders.append(shown[0].fact_id)
        users[asked % 5].respond(store, shown, need.answers_at(asked))
    assert leaders[14] == facts[2]
    assert leaders[-1] == facts[1]
