"""The adaptive policy through the library's own interface."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import some

import heedful
from heedful import Heedful, Invalid, NotFound, Recall, Signal
from heedful.clock import to_stored
from heedful.ledger import events as ledger
from heedful.ledger.adaptive_policy import (
    RELATED,
    Adaptive,
    Neighbour,
    Related,
    Same,
    Strengths,
    Supported,
    Verdicts,
    VoteTable,
    rivals,
    votes_per_fact,
)
from heedful.ledger.fold_cache import EvidenceIndex, View, folds_of
from heedful.ledger.ranking_policy import POLICIES
from heedful.ledger.usefulness import Candidate, Opinion, Ranked
from heedful.ledger.votes import counted_votes
from heedful.model import POLICY_NAMES, SIGNAL_TYPES, PolicyName
from heedful.providers.embedding import Embedder
from heedful.storage import facts as stored_facts
from heedful.storage.vectors import of_facts
from heedful.testing import ManualClock

pytestmark = pytest.mark.usefixtures("warm_processes")

QUERY = "which ripe apples should I buy"
TEXTS = ["ripe red apples", "ripe green apples", "ripe sour apples", "ripe sweet apples", "ripe cheap apples"]
CREW = ("ann", "bob", "cy", "dan", "eli")


def praise(store: Heedful, fact: str, *authors: str, query: str = QUERY) -> list[str]:
    given_signals = [Signal(fact_id=fact, signal_type="helpful", query=query, author=each) for each in authors]
    return store.signal(given_signals).event_ids


def boosted(store: Heedful, query: str = QUERY, policy: PolicyName | None = "adaptive", **options: object) -> Recall:
    return store.recall(query, boost_by_usefulness=True, policy=policy, **options)  # type: ignore[arg-type]


@pytest.fixture
def facts(store: Heedful) -> list[str]:
    return store.remember(TEXTS).fact_ids


class TestWhichPolicy:
    def test_adaptive_unless_the_call_asks_for_the_boost(self, store: Heedful, facts: list[str]) -> None:
        assert store.recall(QUERY).policy == "adaptive"
        assert store.recall(QUERY, boost_by_usefulness=True).policy == "documented"

    def test_a_call_comes_before_the_dataset_and_the_dataset_before_the_project(
        self, store: Heedful, facts: list[str]
    ) -> None:
        store.set_policy("adaptive")
        assert store.recall(QUERY).policy == "adaptive"
        store.set_policy("documented", dataset="main_dataset")
        assert store.recall(QUERY).policy == "documented"
        assert store.recall(QUERY, policy="adaptive").policy == "adaptive"
        store.set_policy(None, dataset="main_dataset")
        assert store.recall(QUERY).policy == "adaptive"
        store.set_policy("documented")
        assert store.recall(QUERY).policy == "documented"
        store.set_policy(None)
        assert store.recall(QUERY).policy == "adaptive"

    def test_a_dataset_of_another_name_or_project_is_left_alone(
        self, store: Heedful, facts: list[str], open_store: Callable[..., Heedful]
    ) -> None:
        store.remember("pears", dataset="fruit")
        store.set_policy("documented", dataset="fruit")
        assert store.recall("pears", dataset="fruit").policy == "documented"
        assert store.recall("pears").policy == "adaptive"
        store.set_policy("documented")
        other = open_store(project="other")
        other.remember("pears")
        assert other.recall("pears").policy == "adaptive"

    def test_it_is_kept_and_written_on_the_receipt(
        self, store: Heedful, facts: list[str], open_store: Callable[..., Heedful]
    ) -> None:
        store.set_policy("adaptive")
        store.close()
        again = open_store()
        result = again.recall(QUERY)
        assert (result.policy, again.receipt(result.recall_id).policy) == ("adaptive", "adaptive")

    def test_a_policy_that_is_none_is_refused_by_name(self, store: Heedful, facts: list[str]) -> None:
        with pytest.raises(Invalid, match="magic"):
            store.recall(QUERY, policy="magic")  # type: ignore[arg-type]
        with pytest.raises(Invalid, match="magic"):
            store.set_policy("magic")  # type: ignore[arg-type]

    def test_a_project_may_choose_before_there_are_facts(self, store: Heedful) -> None:
        store.set_policy("adaptive")
        store.remember("pears")
        assert store.recall("pears").policy == "adaptive"


class TestThePolicyInUse:
    def test_it_is_the_default_until_one_is_chosen(self, store: Heedful) -> None:
        in_use = store.policy()
        assert (in_use.policy, in_use.chosen_for, in_use.event_id) == ("adaptive", None, None)
        assert store.policy(dataset="main_dataset").policy == "adaptive"

    def test_it_names_the_choice_that_decides(self, store: Heedful, facts: list[str]) -> None:
        project = store.set_policy("documented")
        assert store.policy(dataset="main_dataset").event_id == project.event_id
        dataset = store.set_policy("adaptive", dataset="main_dataset")
        in_use = store.policy(dataset="main_dataset")
        assert (in_use.policy, in_use.chosen_for, in_use.chosen_by) == ("adaptive", "dataset", "set_policy")
        assert (in_use.event_id, in_use.chosen_at is None) == (dataset.event_id, False)
        assert (store.policy().policy, store.policy().chosen_for) == ("documented", "project")

    def test_it_is_that_of_recalls_after_each_undo(self, store: Heedful, facts: list[str]) -> None:
        first = store.set_policy("documented")
        store.set_policy("adaptive", dataset="main_dataset")
        assert dataset_policy(store) == ("adaptive", "dataset")
        event = store.policy(dataset="main_dataset").event_id
        assert event is not None
        store.retract(event)
        assert dataset_policy(store) == ("documented", "project")
        assert first.event_id is not None
        store.retract(first.event_id)
        assert dataset_policy(store) == ("adaptive", None)

    def test_a_dataset_that_does_not_exist_has_none(self, store: Heedful, facts: list[str]) -> None:
        with pytest.raises(NotFound, match="apples"):
            store.policy(dataset="apples")


def dataset_policy(store: Heedful) -> tuple[str, str | None]:
    """The policy in use for the main dataset, which is that of a recall, and what it was chosen for."""
    in_use = store.policy(dataset="main_dataset")
    assert store.recall(QUERY).policy == in_use.policy
    return in_use.policy, in_use.chosen_for


class TestLearning:
    def test_praise_lifts_a_fact_for_that_question(self, store: Heedful, facts: list[str]) -> None:
        last = store.recall(QUERY)[4].fact_id
        praise(store, last, *CREW)
        hit = boosted(store)[0]
        assert (hit.fact_id, hit.usefulness_source) == (last, "context")
        assert hit.usefulness > 0.5

    def test_a_signal_on_one_phrasing_helps_another(
        self, open_store: Callable[..., Heedful], bundled: Embedder
    ) -> None:
        store = open_store(embedding=bundled)
        facts = store.remember(
            [
                "Passwords must have at least twelve characters.",
                "Accounts are locked after five failed attempts.",
                "The help desk is open on weekdays.",
            ]
        ).fact_ids
        praise(store, facts[1], *CREW, "eve", "fay", query="How do I reset my password?")
        question = "How can I reset my password?"
        assert store.recall(question, boost_by_usefulness=False)[0].fact_id == facts[0]
        assert boosted(store, question)[0].fact_id == facts[1]

    def test_it_says_nothing_of_another_question(self, store: Heedful, facts: list[str]) -> None:
        praise(store, facts[4], "ann", "bob", "cy")
        store.signal([Signal(fact_id=facts[0], signal_type="not_helpful", query=QUERY, author="ann")])
        other = "how sour are green ones"
        plain, learned = store.recall(other), boosted(store, other)
        assert [(hit.fact_id, hit.score) for hit in plain] == [(hit.fact_id, hit.score) for hit in learned]

    @pytest.mark.slow
    def test_a_new_fact_is_not_buried(self, store: Heedful, facts: list[str], clock: ManualClock) -> None:
        for number in range(10):
            shown = store.recall(QUERY)
            store.signal_recall(shown.recall_id, helpful=facts[:4], author=f"user {number}")
            clock.advance(minutes=1)
        (new,) = store.remember("apples you should buy").fact_ids
        plain = [hit.fact_id for hit in store.recall(QUERY)]
        learned = [hit.fact_id for hit in boosted(store)]
        assert learned.index(new) <= plain.index(new) + 1

    def test_the_score_stays_within_the_weight(self, store: Heedful, facts: list[str]) -> None:
        praise(store, facts[4], *(f"user {number}" for number in range(20)))
        for weight in (0.0, 0.1, 1.0):
            for hit in boosted(store, usefulness_weight=weight):
                assert abs(hit.score - hit.relevance) <= weight + 1e-9

    def test_of_two_facts_alike_the_later_evidence_wins_and_age_alone_does_not(
        self, store: Heedful, clock: ManualClock
    ) -> None:
        old, new = store.remember(["the boss is Ada", "the boss is Bob"]).fact_ids

        def leader() -> str:
            return boosted(store, "boss", mode="lexical")[0].fact_id

        assert leader() == old
        praise(store, new, "ann", query="boss")
        assert leader() == new
        clock.advance(hours=1)
        praise(store, old, "bob", query="boss")
        assert leader() == old
        clock.advance(hours=1)
        praise(store, new, "cy", query="boss")
        praise(store, old, "cy", query="boss")
        clock.advance(hours=1)
        store.signal([Signal(fact_id=old, signal_type="not_helpful", query="boss", author="dan")])
        assert leader() == new

    def test_a_lie_told_often_is_still_one_voice(self, store: Heedful, facts: list[str], clock: ManualClock) -> None:
        praise(store, facts[1], *(f"user {number}" for number in range(9)))
        clock.advance(minutes=1)
        for _ in range(20):
            store.signal([Signal(fact_id=facts[1], signal_type="not_helpful", query=QUERY, author="eve")])
            praise(store, facts[0], "eve")
            clock.advance(minutes=1)
        assert boosted(store)[0].fact_id == facts[1]


class TestRelatedQuestions:
    """One rating, by default."""

    TEXTS = (
        "Password reset e-mails expire after fifteen minutes.",
        "Your account is locked after five wrong passwords.",
        "To get back into your account, call the help desk for a one-time code.",
    )
    ASKED = "How can I log in again?"
    RELATED = "I can't log in to my account any more, what now?"

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Heedful]:
        with heedful.open(str(tmp_path / "model.db")) as opened:
            opened.remember(self.TEXTS)
            yield opened

    def test_one_rating_changes_the_ranks_of_a_related_question_and_undo_restores_them(self, store: Heedful) -> None:
        plain = store.recall(self.RELATED)
        second = plain[1].fact_id
        (event,) = store.signal([Signal(fact_id=second, signal_type="helpful", query=self.ASKED)]).event_ids
        rated = store.recall(self.RELATED, explain=True)
        assert rated[0].fact_id == second
        assert rated[0].usefulness_source == "related"
        explanation = rated[0].explanation
        assert explanation is not None
        assert [each.query for each in explanation.events] == [self.ASKED]
        assert "related" in explanation.arithmetic[1]
        store.retract(event)
        assert store.recall(self.RELATED).hits == plain.hits

    def test_a_question_about_something_else_ranks_exactly_as_before(self, store: Heedful) -> None:
        other = "When does the canteen open?"
        plain = store.recall(other)
        store.signal([Signal(fact_id=plain[-1].fact_id, signal_type="helpful", query=self.ASKED)])
        assert store.recall(other).hits == plain.hits

    def test_what_was_said_against_a_fact_here_counts_before_what_others_lend_it(self, store: Heedful) -> None:
        second = store.recall(self.RELATED)[1].fact_id
        store.signal([Signal(fact_id=second, signal_type="helpful", query=self.ASKED)])
        for author in CREW:
            store.signal([Signal(fact_id=second, signal_type="not_helpful", query=self.RELATED, author=author)])
        assert store.recall(self.RELATED)[0].fact_id != second


class TestUndo:
    def test_it_is_exact(self, store: Heedful, facts: list[str], clock: ManualClock) -> None:
        praise(store, facts[3], "ann")
        before = boosted(store).hits
        events = praise(store, facts[4], "ann", "bob", "cy")
        assert boosted(store).hits != before
        for event in events:
            store.retract(event)
        assert boosted(store).hits == before

    def test_of_everything_gives_the_plain_order_and_scores(self, store: Heedful, facts: list[str]) -> None:
        for event in praise(store, facts[4], "ann", "bob"):
            store.retract(event)
        assert [(hit.fact_id, hit.score) for hit in boosted(store)] == [
            (hit.fact_id, hit.score) for hit in store.recall(QUERY)
        ]


class TestProof:
    ODD = "zebra crossings hum quietly"
    ASKED = "which amber brick cedar denim ember do apples need"

    @pytest.fixture
    def odd(self, store: Heedful) -> str:
        words = ["amber", "brick", "cedar", "denim", "ember"]
        store.remember(
            [f"{words[number % 5]} filler{number} padding{number} stuffing{number}" for number in range(300)]
        )
        return store.remember(self.ODD).fact_ids[0]

    @pytest.mark.slow
    def test_a_fact_proven_for_this_question_is_a_candidate(self, store: Heedful, odd: str) -> None:
        assert odd not in [hit.fact_id for hit in store.recall(self.ASKED, top_k=50)]
        praise(store, odd, "ann", "bob", "cy", query=self.ASKED)
        assert odd in [hit.fact_id for hit in boosted(store, self.ASKED, top_k=10, usefulness_weight=0.6)]

    def test_not_without_boost_and_not_for_another_question(self, store: Heedful, odd: str) -> None:
        praise(store, odd, "ann", "bob", "cy", query=self.ASKED)
        assert odd not in [hit.fact_id for hit in store.recall(self.ASKED, top_k=50, boost_by_usefulness=False)]
        assert odd not in [hit.fact_id for hit in boosted(store, "amber filler1 brick", top_k=50)]

    def test_what_was_blamed_as_much_as_praised_is_none(self, store: Heedful, odd: str) -> None:
        praise(store, odd, "ann", query=self.ASKED)
        store.signal([Signal(fact_id=odd, signal_type="not_helpful", query=self.ASKED, author="bob")])
        assert odd not in [hit.fact_id for hit in boosted(store, self.ASKED, top_k=50)]

    def test_a_filter_holds_for_proven_facts_as_well(self, store: Heedful, odd: str) -> None:
        praise(store, odd, "ann", "bob", "cy", query=self.ASKED)
        assert odd not in [hit.fact_id for hit in boosted(store, self.ASKED, where={"team": "a"})]


SPEAK = """
import sys
import heedful
from heedful.testing import WordEmbedder
with heedful.open(sys.argv[1], embedding=WordEmbedder()) as store:
    store.signal([{"fact_id": sys.argv[2], "signal_type": "helpful", "query": sys.argv[3], "author": "elsewhere"}])
    print(store.recall(sys.argv[3], boost_by_usefulness=True, policy="adaptive")[0].fact_id)
"""


class TestProcesses:
    @pytest.mark.slow
    def test_two_processes_see_each_others_opinions(self, open_store: Callable[..., Heedful], path: Path) -> None:
        store = open_store(clock=None)
        facts = store.remember(TEXTS).fact_ids
        praise(store, facts[0], "ann")
        assert boosted(store)[0].fact_id == facts[0]
        praise(store, facts[4], *CREW)
        done = subprocess.run(
            [sys.executable, "-c", SPEAK, str(path), facts[4], QUERY], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == facts[4]
        before = boosted(store, explain=True)[0]
        assert before.fact_id == facts[4]
        assert before.explanation is not None
        assert "elsewhere" in {event.author for event in before.explanation.events}

    def test_a_retraction_elsewhere_is_seen(
        self, store: Heedful, facts: list[str], open_store: Callable[..., Heedful]
    ) -> None:
        other = open_store()
        events = praise(store, facts[4], *CREW)
        assert boosted(other)[0].fact_id == facts[4]
        for event in events:
            store.retract(event)
        assert boosted(other).hits == boosted(store).hits
        assert boosted(other)[0].usefulness_source == "neutral"


class TestViews:
    """A recall that began before a signal may look after one that began behind it."""

    def test_what_an_older_view_reads_is_not_kept(self, store: Heedful, facts: list[str]) -> None:
        praise(store, facts[0], "ann")
        workspace = store._workspace
        evidence = EvidenceIndex(1)
        with workspace.read() as older:
            (query,) = ledger.queries_after(older, 1, 0)
            praise(store, facts[1], "ann")
            with workspace.read() as newer:
                evidence.follow(View.of(newer, 1))
                assert evidence.votes(View.of(older, 1), [query], workspace.now())[query].facts.tolist() == [1]
                evidence.follow(View.of(newer, 1))
                assert evidence.votes(View.of(newer, 1), [query], workspace.now())[query].facts.tolist() == [1, 2]

    @pytest.mark.parametrize(("seed", "cached"), [(0, 10_000), (1, 10_000), (2, 4)])
    @pytest.mark.slow
    def test_what_is_taken_in_by_and_by_equals_what_is_read_at_once(
        self,
        store: Heedful,
        facts: list[str],
        clock: ManualClock,
        seed: int,
        cached: int,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr("heedful.ledger.fold_cache.CACHED_VOTES", cached)
        chosen, workspace, evidence = random.Random(seed), store._workspace, EvidenceIndex(1)
        events: list[str] = []
        existing = list(facts)
        for turn in range(60):
            if events and chosen.random() < 0.25:
                store.retract(events.pop(chosen.randrange(len(events))))
            elif chosen.random() < 0.1:
                store.forget(existing.pop(chosen.randrange(len(existing))))
                existing += store.remember(f"Number {turn} is about apples and pears.").fact_ids
            else:
                signals = [
                    Signal(
                        fact_id=chosen.choice(existing),
                        signal_type=chosen.choice(SIGNAL_TYPES),
                        query=chosen.choice([QUERY, "pears"]),
                        at=clock() - timedelta(minutes=chosen.choice([0, 0, chosen.randrange(9999)])),
                        author=chosen.choice([None, *CREW]),
                    )
                    for _ in range(chosen.choice([1, 1, 4]))
                ]
                events += store.signal(signals).event_ids
            with workspace.read() as connection:
                view = View.of(connection, 1)
                queries = sorted(ledger.queries_after(connection, 1, 0))
                at_once = EvidenceIndex(1)
                for index in (evidence, at_once):
                    index.follow(view)
                now = store._workspace.now()
                followed, read = evidence.votes(view, queries, now), at_once.votes(view, queries, now)
            for query in queries:
                for column in ("facts", "net", "last"):
                    assert getattr(followed[query], column).tolist() == getattr(read[query], column).tolist()


PHRASINGS = [
    QUERY,
    "which ripe apples should I buy now",
    "which ripe red apples should I buy now",
    "pears",
]
numbers = count()


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[int, int, int, int, float, int]]:
    """Signals as (fact, phrasing, kind, author, confidence, minutes ago), at distinct times."""
    ago = draw(st.lists(st.integers(0, 60 * 24 * 100), max_size=10, unique=True))
    return [
        (
            draw(st.integers(0, 4)),
            draw(st.integers(0, 3)),
            draw(st.integers(0, 3)),
            draw(st.integers(0, 3)),
            draw(st.sampled_from([0.4, 1.0])),
            minutes,
        )
        for minutes in ago
    ]


@pytest.mark.parametrize("policy", POLICY_NAMES)
@some(1 / 5)
@given(history=histories(), taken_back=st.sets(st.integers(0, 9), max_size=4), weight=st.sampled_from([0.1, 0.3, 1.0]))
@pytest.mark.slow
def test_the_store_ranks_as_the_rule_does_on_its_ledger(
    store: Heedful,
    clock: ManualClock,
    policy: PolicyName,
    history: list[tuple[int, int, int, int, float, int]],
    taken_back: set[int],
    weight: float,
) -> None:
    dataset = f"example {next(numbers)}"
    ids = store.remember(TEXTS, dataset=dataset).fact_ids
    events = []
    for fact, phrasing, kind, author, sure, minutes in history:
        given_signal = Signal(
            fact_id=ids[fact],
            signal_type=SIGNAL_TYPES[kind],
            query=PHRASINGS[phrasing],
            confidence=sure,
            at=clock() - timedelta(minutes=minutes),
            author=None if author == 3 else f"user {author}",
        )
        events += store.signal([given_signal]).event_ids
        if phrasing:  # What a recall reads of the ledger is kept, and followed from there.
            boosted(store, PHRASINGS[0], policy, dataset=dataset)
    for place in taken_back:
        if place < len(events):
            store.retract(events[place])
    for asked in (PHRASINGS[0], PHRASINGS[2]):
        plain = store.recall(asked, dataset=dataset)
        numbers_of, opinions, neighbours = seen_from(store, dataset, asked)
        candidates = [Candidate(numbers_of[hit.fact_id], hit.relevance) for hit in plain]
        if policy == "adaptive":
            expected = by_adaptive(store, asked, candidates, opinions, neighbours, weight, to_stored(clock()))
        else:
            counted = counted_votes(opinions)
            expected = POLICIES[policy].rank(candidates, POLICIES[policy].judge(counted, to_stored(clock())), weight)
        found = boosted(store, asked, policy, dataset=dataset, usefulness_weight=weight).hits
        assert [numbers_of[hit.fact_id] for hit in found] == [each.fact for each in expected]
        assert [hit.score for hit in found] == pytest.approx([each.score for each in expected], abs=1e-6)
        assert [hit.usefulness_source for hit in found] == [each.usefulness.source for each in expected]


def by_adaptive(
    store: Heedful,
    question: str,
    candidates: list[Candidate],
    opinions: list[Opinion],
    neighbours: list[Neighbour],
    weight: float,
    now: int,
) -> list[Ranked]:
    """The order by the adaptive rule on opinions that are folded at once."""
    by_query: dict[int, list[Opinion]] = defaultdict(list)
    for opinion in opinions:
        by_query[opinion.query].append(opinion._replace(at=min(opinion.at, now)))
    tables = {query: VoteTable.of(votes_per_fact(theirs)) for query, theirs in by_query.items()}
    near = {each.query: each for each in neighbours}
    workspace, rule = store._workspace, Adaptive()
    asked = workspace.embed([question])[0]
    with workspace.read() as connection:
        model = workspace.model(connection)
        assert model is not None
        vectors = of_facts(connection, model, [each.fact for each in candidates])
    same = [Same(theirs[0].similarity, tables[query]) for query, theirs in by_query.items()]
    related = [Related(each, tables[query]) for query, each in near.items() if query in tables and tables[query].counts]
    lifts = rule.affinity.lifts(
        Supported(related, now, Strengths().certainty),
        asked,
        vectors,
        vectors,
        rivals({each.fact: each.relevance for each in candidates}),
        0.0,
    )
    return rule.rank(candidates, Verdicts(rule.verdicts(same, now, Strengths()), lifts), weight)


def seen_from(store: Heedful, dataset: str, asked: str) -> tuple[dict[str, int], list[Opinion], list[Neighbour]]:
    """The numbers of facts, all opinions that stand in the ledger, as seen from a query, and its neighbours."""
    workspace = store._workspace
    with workspace.read() as connection:
        number, model = workspace.dataset(connection, dataset), workspace.model(connection)
        assert number is not None
        assert model is not None
        located = stored_facts.locate(connection, [hit.fact_id for hit in store.recall(asked, dataset=dataset)])
        queries = sorted(ledger.queries_after(connection, number, 0))
        newest = ledger.last_event(connection, number)
        contexts = folds_of(workspace).contexts(connection, number, model, newest)
        matches, neighbours = contexts.near(asked, workspace.embed([asked])[0])
        similar = {match.query_id: match.similarity for match in matches}
        given_opinions = [
            ledger.opinion(row)._replace(similarity=similar.get(query, 0.0))
            for query, theirs in ledger.of_queries(connection, queries).items()
            for row in theirs
        ]
    numbers_of = {fact: seq for fact, (seq, _) in located.items()}
    return numbers_of, sorted(given_opinions, key=lambda each: each.at), list(neighbours)[:RELATED]
