from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import grids
import orjson
import pytest
from click.testing import CliRunner, Result

import heedful.store
from heedful import Heedful, Invalid, NotFound
from heedful.interfaces.cli.main import cli
from heedful.model import PolicyName, ReplayReport
from heedful.simulate import Need, SimulatedUser
from heedful.testing import ManualClock, WordEmbedder

HONEST = (SimulatedUser(1, examination=0), SimulatedUser(2, examination=0))


def needs(store: Heedful, count: int = 5, **options: Any) -> list[Need]:
    """Things people ask for, whose answer is the last of four facts by relevance."""
    result = []
    for number in range(count):
        rivals = [f"topic{number} alpha{number} rules {place}" for place in range(3)]
        ids = store.remember([*rivals, f"topic{number} answer{number}"], **options).fact_ids
        result.append(Need([f"topic{number} alpha{number} rules", f"Topic{number} alpha{number} rules?"], [ids[3]]))
    return result


def ask(
    store: Heedful,
    clock: ManualClock,
    wanted: list[Need],
    users: tuple[SimulatedUser, ...] = HONEST,
    times: int = 50,
    **options: Any,
) -> None:
    """Recalls an hour apart, each rated a minute later."""
    draw = Random(7)
    for _ in range(times):
        need, user = draw.choice(wanted), draw.choice(users)
        clock.advance(hours=1)
        recall = store.recall(user.query(need), **{"top_k": 6, "boost_by_usefulness": False, **options})
        clock.advance(minutes=1)
        user.respond(store, recall, need.answers)


def advised(report: ReplayReport) -> dict[PolicyName, float | None]:
    return {advice.policy: advice.usefulness_weight for advice in report.advice}


@pytest.mark.nightly
def test_where_feedback_helps_it_shows_a_gain_and_a_weight(store: Heedful, clock: ManualClock) -> None:
    ask(store, clock, needs(store))
    report = store.replay()
    assert (report.rated, report.replayed, report.effective_sample_size) == (50, 50, 50)
    assert report.queries == 10
    assert report.none is not None
    assert report.none.mrr.value == 0.25
    assert [(arm.policy, arm.usefulness_weight) for arm in report.arms] == [
        (policy, tenth / 10) for policy in ("documented", "adaptive") for tenth in range(1, 10)
    ]
    for policy, weight in advised(report).items():
        assert weight is not None
        assert weight > 0
        arm = next(arm for arm in report.arms if (arm.policy, arm.usefulness_weight) == (policy, weight))
        assert arm.mrr_change.low > 0.3
        assert arm.ndcg_change.low > 0
        assert (arm.queries_better, arm.queries_worse, arm.worse) == (10, 0, [])
        assert arm.mrr.low <= arm.mrr.value <= arm.mrr.high


@pytest.mark.nightly
def test_the_recommended_weight_does_what_was_promised(store: Heedful, clock: ManualClock) -> None:
    expected = needs(store)
    ask(store, clock, expected)
    weight = advised(store.replay(policies=["adaptive"]))["adaptive"]
    assert weight is not None
    for need in expected:
        hits = store.recall(need.queries[0], boost_by_usefulness=True, usefulness_weight=weight, policy="adaptive")
        assert [hits[0].fact_id] == need.answers


@pytest.mark.nightly
def test_what_would_have_ranked_best_is_recommended(store: Heedful, clock: ManualClock) -> None:
    ask(store, clock, needs(store), boost_by_usefulness=False)
    best = store.replay().recommendation
    assert best is not None
    assert best.policy is not None
    assert best.is_certain
    assert best.mrr_change.low > 0
    assert best.reason.startswith(f"{best.policy} with a weight of {best.usefulness_weight:g} would have ranked better")


def test_nothing_is_recommended_for_a_few_ratings(store: Heedful, clock: ManualClock) -> None:
    (need,) = needs(store, 1)
    HONEST[0].respond(store, store.recall(need.queries[0]), need.answers)
    assert store.replay().recommendation is None


@pytest.mark.parametrize("seed", range(6) if grids.WHOLE else range(2))
@pytest.mark.nightly
def test_coins_are_no_reason_to_change(open_store: Callable[..., Heedful], clock: ManualClock, seed: int) -> None:
    store = open_store(":memory:")
    tossing = tuple(SimulatedUser(each, noise=0.5, examination=0) for each in (2 * seed, 2 * seed + 1))
    ask(store, clock, needs(store), tossing, boost_by_usefulness=False)
    best = store.replay().recommendation
    assert best is not None
    assert not best.is_certain


@pytest.mark.nightly
def test_raters_who_toss_coins_earn_no_weight(store: Heedful, clock: ManualClock) -> None:
    tossing = tuple(SimulatedUser(seed, noise=0.5, examination=0) for seed in (3, 4))
    ask(store, clock, needs(store), tossing, boost_by_usefulness=False)
    report = store.replay()
    assert advised(report) == {"documented": 0, "adaptive": 0}
    assert all("relevance alone" in advice.reason for advice in report.advice)
    assert any(arm.worse for arm in report.arms)


@pytest.mark.nightly
def test_adversaries_among_the_raters_earn_less(open_store: Callable[..., Heedful], clock: ManualClock) -> None:
    mixed = (HONEST[0], SimulatedUser(5, examination=0, adversarial=True))
    best = []
    for users in (HONEST, mixed):
        store = open_store(":memory:")
        ask(store, clock, needs(store), users)
        report = store.replay()
        assert report.none is not None
        best.append(max(arm.mrr.value for arm in report.arms) - report.none.mrr.value)
    assert best[1] < best[0] / 2


@pytest.mark.slow
def test_ratings_given_after_a_recall_do_not_help_it(store: Heedful, clock: ManualClock) -> None:
    (need,) = needs(store, 1)
    recalls = []
    for _ in range(25):
        clock.advance(hours=1)
        recalls.append(store.recall(need.queries[0]))
    clock.advance(hours=1)
    for recall in recalls:
        HONEST[0].respond(store, recall, need.answers)
    report = store.replay()
    assert report.replayed == 25
    assert {(arm.mrr.value, arm.mrr_change.value) for arm in report.arms} == {(0.25, 0)}
    assert advised(report) == {"documented": 0, "adaptive": 0}


def test_ratings_of_the_very_moment_do_not_help(store: Heedful) -> None:
    (need,) = needs(store, 1)
    for _ in range(5):
        HONEST[0].respond(store, store.recall(need.queries[0]), need.answers)
    assert {arm.mrr.value for arm in store.replay().arms} == {0.25}


def test_a_signal_dated_back_counts_from_when_it_was_recorded(store: Heedful, clock: ManualClock) -> None:
    (need,) = needs(store, 1)
    early = clock.now - timedelta(days=1)
    recall = store.recall(need.queries[0])
    clock.advance(hours=1)
    store.signal([{"fact_id": need.answers[0], "signal_type": "helpful", "query": need.queries[0], "at": early}] * 5)  # type: ignore[index]
    HONEST[0].respond(store, recall, need.answers)
    assert {arm.mrr.value for arm in store.replay().arms} == {0.25}


def test_retracted_ratings_do_not_count(store: Heedful, clock: ManualClock) -> None:
    expected = needs(store, 1)
    ask(store, clock, expected, times=4)
    recall = store.recall(expected[0].queries[0])
    before = store.replay()
    result = store.signal_recall(recall.recall_id, helpful=list(expected[0].answers))
    assert store.replay().replayed == 5
    for event in result.event_ids:
        store.retract(event)
    assert store.replay() == before


def test_the_last_word_of_each_author_counts_and_most_decide(store: Heedful) -> None:
    fact, _ = store.remember(["one thing", "another thing"]).fact_ids
    recall = store.recall("thing")
    store.signal_recall(recall.recall_id, helpful=[fact], author="ann")
    assert store.replay().replayed == 1
    store.signal_recall(recall.recall_id, not_helpful=[fact], author="ann")
    assert (store.replay().rated, store.replay().replayed) == (1, 0)
    store.signal_recall(recall.recall_id, helpful=[fact], author="bo")
    assert store.replay().replayed == 0
    store.signal_recall(recall.recall_id, helpful=[fact], author="cy")
    assert store.replay().replayed == 1


def test_implicit_signals_and_signals_without_a_receipt_judge_nothing(store: Heedful) -> None:
    fact = store.remember("one thing").fact_ids[0]
    store.signal_recall(store.recall("thing").recall_id, used=[fact])
    store.signal([{"fact_id": fact, "signal_type": "helpful", "query": "thing"}])
    assert store.replay().rated == 0


@pytest.mark.slow
def test_facts_that_were_forgotten_are_left_out(store: Heedful, clock: ManualClock) -> None:
    expected = needs(store, 2)
    ask(store, clock, expected, times=12)
    replayed = store.replay().replayed
    rival = store.recall(expected[0].queries[0], boost_by_usefulness=False)[0].fact_id
    store.forget(rival)
    report = store.replay()
    assert report.replayed == replayed
    assert report.logged is not None
    assert 0.25 < report.logged.mrr.value < 1
    store.forget(list(expected[0].answers))
    assert store.replay().replayed < replayed


def test_queries_that_get_worse_are_named_worst_first(store: Heedful, clock: ManualClock) -> None:
    ids = store.remember(["red apple tart", "red apple pie", "red apple"]).fact_ids
    for asked in ("red apple tart", "red apple pie"):
        recall = store.recall(asked)
        assert recall[0].fact_id == ids[("red apple tart", "red apple pie").index(asked)]
        for author in ("ann", "bo", "cy"):
            clock.advance(hours=1)
            store.signal([{"fact_id": ids[2], "signal_type": "helpful", "query": asked, "author": author}])
        clock.advance(hours=1)
        recall = store.recall(asked)
        clock.advance(hours=1)
        store.signal_recall(recall.recall_id, helpful=[recall[0].fact_id, recall[1].fact_id][:1])
    (arm,) = store.replay(policies=["documented"], weights=[0.9]).arms
    assert arm.queries_worse == 2
    assert [each.change for each in arm.worse] == sorted(each.change for each in arm.worse)
    worst = arm.worse[0]
    assert worst.old_rank == 1
    assert worst.new_rank > 1
    assert worst.receipts == 1
    assert store.receipt(worst.recall_id).query == worst.query


@pytest.mark.slow
def test_rarely_drawn_facts_count_more_and_make_it_less_sure(store: Heedful, clock: ManualClock) -> None:
    (need,) = needs(store, 1)
    first = store.recall(need.queries[0])[0].fact_id
    both = Need(need.queries, [first, *need.answers])
    ask(store, clock, [both], times=30, top_k=3, exploration=0.3)
    report = store.replay()
    assert report.replayed == 30
    assert report.effective_sample_size < 30


@pytest.mark.slow
def test_too_few_ratings_say_so(store: Heedful, clock: ManualClock) -> None:
    ask(store, clock, needs(store), times=19)
    report = store.replay()
    assert len(report.arms) == 18
    assert advised(report) == {"documented": None, "adaptive": None}
    assert all("19" in advice.reason and "too few" in advice.reason for advice in report.advice)


def test_nothing_to_replay(store: Heedful) -> None:
    for _ in range(2):
        report = store.replay()
        assert (report.rated, report.replayed, report.logged, report.none, report.arms) == (0, 0, None, None, [])
        assert advised(report) == {"documented": None, "adaptive": None}
        store.remember("a fact")


@pytest.mark.nightly
def test_since_judges_later_recalls_by_all_that_was_said(store: Heedful, clock: ManualClock) -> None:
    expected = needs(store)
    ask(store, clock, expected, times=30)
    then = clock.now
    ask(store, clock, expected, times=25)
    report = store.replay(since=then)
    assert report.replayed == 25
    (whole,) = store.replay(weights=[0.9], policies=["adaptive"]).arms
    (later,) = store.replay(weights=[0.9], policies=["adaptive"], since=then).arms
    assert later.mrr.value > whole.mrr.value


@pytest.mark.slow
def test_projects_and_datasets_do_not_see_each_other(open_store: Callable[..., Heedful], clock: ManualClock) -> None:
    one, other = open_store(project="one"), open_store(project="other")
    ask(one, clock, needs(one), times=10)
    ask(one, clock, needs(one, dataset="second"), times=5, dataset="second")
    assert other.replay().rated == 0
    needs(other)
    assert other.replay().rated == 0
    assert one.replay().replayed == 10
    assert one.replay(dataset="second").replayed == 5
    with pytest.raises(NotFound, match="'second'"):
        other.replay(dataset="second")


@pytest.mark.slow
def test_the_same_seed_makes_the_same_report(store: Heedful, clock: ManualClock) -> None:
    ask(store, clock, needs(store), (SimulatedUser(1, noise=0.3, examination=0),), times=25)
    assert store.replay(seed=3) == store.replay(seed=3)
    one, other = store.replay(seed=3), store.replay(seed=4)
    assert [arm.mrr.value for arm in one.arms] == [arm.mrr.value for arm in other.arms]
    assert [arm.mrr.low for arm in one.arms] != [arm.mrr.low for arm in other.arms]


def test_nothing_is_changed(store: Heedful, clock: ManualClock) -> None:
    ask(store, clock, needs(store), times=10)
    before = store.usefulness_stats()
    store.replay()
    assert store.usefulness_stats() == before


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("dataset", ""),
        ("policies", []),
        ("policies", "adaptive"),
        ("policies", ["none"]),
        ("weights", []),
        ("weights", [1.5]),
        ("weights", [float("nan")]),
        ("weights", ["0.3"]),
        ("weights", [place / 1000 for place in range(101)]),
        ("since", "2026-01-01"),
        ("seed", -1),
        ("seed", 0.5),
    ],
)
def test_bad_arguments_are_refused_by_name(store: Heedful, field: str, value: object) -> None:
    with pytest.raises(Invalid) as caught:
        store.replay(**{field: value})  # type: ignore[arg-type]
    assert caught.value.field in (field, "policy")


class TestCommandLine:
    @pytest.fixture
    def run(
        self, store: Heedful, clock: ManualClock, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> Callable[..., Result]:
        ask(store, clock, needs(store), (SimulatedUser(1, noise=0.2, examination=0),), times=25)
        monkeypatch.setattr(heedful.store, "configured_embedder", lambda *given, **options: WordEmbedder())

        def run(*arguments: str) -> Result:
            return CliRunner().invoke(cli, ["--store", str(path), "replay", *arguments])

        return run

    @pytest.mark.nightly
    def test_json_is_the_report(self, run: Callable[..., Result], store: Heedful) -> None:
        result = run("--json", "--policy", "adaptive", "--weight", "0.3", "--weight", "0.6", "--seed", "5")
        assert result.exit_code == 0, result.output
        report = ReplayReport(**orjson.loads(result.stdout))
        assert report == store.replay(policies=["adaptive"], weights=[0.3, 0.6], seed=5)

    @pytest.mark.nightly
    def test_the_table_has_every_arm_and_the_advice(self, run: Callable[..., Result]) -> None:
        result = run("--since", "2026-01-01")
        assert result.exit_code == 0, result.output
        lines = result.stdout.splitlines()
        assert sum(line.startswith("documented ") for line in lines) == 9
        assert sum(line.startswith("adaptive ") for line in lines) == 9
        assert any(line.startswith("documented: usefulness_weight") for line in lines)

    @pytest.mark.nightly
    def test_nothing_in_the_time_that_was_asked_for(self, run: Callable[..., Result]) -> None:
        result = run("--since", "2030-01-01", "--picture", "out.svg")
        assert result.exit_code == 0, result.output
        assert "Nothing can be replayed yet" in result.stdout
        assert not Path("out.svg").exists()

    @pytest.mark.parametrize("arguments", [(), ("--weight", "0.3"), ("--policy", "documented"), ("--weight", "0")])
    @pytest.mark.nightly
    def test_the_picture_is_xml(self, run: Callable[..., Result], arguments: tuple[str, ...]) -> None:
        result = run("--picture", "out.svg", *arguments)
        assert result.exit_code == 0, result.output
        root = ElementTree.parse("out.svg").getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        words = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
        assert {"as logged", "relevance alone", "usefulness_weight", "documented"} <= words

    @pytest.mark.parametrize("file", ["out.gif", "missing/out.svg"])
    @pytest.mark.nightly
    def test_a_picture_that_can_not_be_is_refused_first(self, run: Callable[..., Result], file: str) -> None:
        result = run("--picture", file)
        assert isinstance(result.exception, Invalid | NotFound)
        assert result.exception.field == "picture"
