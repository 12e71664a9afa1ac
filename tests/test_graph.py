"""Recall by the graph: over what facts mention, to facts that words and meaning would miss."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import some

from heedful import Conflict, Heedful, Hit, NotFound, Signal
from heedful.clock import to_stored
from heedful.ledger import scores
from heedful.ledger.signals import LinkSignal, signal_links
from heedful.ledger.usefulness import Tally
from heedful.model import MODES, SIGNAL_TYPES, Mode, Shown, SignalType
from heedful.search.graph_index import GraphIndex
from heedful.storage import facts as stored_facts
from heedful.storage import graph
from heedful.testing import ManualClock

QUESTION = "who wrote about the harbour"
SEED = "The harbour report was written by Mirela Kovac."
HIDDEN = "Mirela Kovac keeps bees on her roof."
NOISE = [
    f"{word} people wrote letters to their friends at home"
    for word in ("young", "busy", "tired", "happy", "quiet", "gentle", "clever")
]


@pytest.fixture
def facts(store: Heedful) -> dict[str, str]:
    """The ids of facts, by text."""
    made = store.remember([SEED, *NOISE, HIDDEN])
    return {fact.text: fact.fact_id for fact in made.facts}


def texts(store: Heedful, query: str = QUESTION, mode: Mode = "graph", top_k: int = 3, **options: object) -> list[str]:
    return [hit.text for hit in store.recall(query, mode=mode, top_k=top_k, **options)]  # type: ignore[arg-type]


def relevance(store: Heedful, text: str, **options: object) -> float:
    hits: Iterable[Hit] = store.recall(QUESTION, mode="graph", top_k=50, **options)  # type: ignore[arg-type]
    return {hit.text: hit.relevance for hit in hits}[text]


def lifted(store: Heedful, **options: object) -> set[str]:
    """The facts that the graph makes more relevant."""
    one, other = (
        {hit.text: hit.relevance for hit in store.recall(QUESTION, mode=mode, top_k=50, **options)}  # type: ignore[arg-type]
        for mode in ("hybrid", "graph")
    )
    return {text for text in other if other[text] > one.get(text, 0)}


def shown(store: Heedful, fact: str, **options: object) -> Shown:
    recall = store.recall(QUESTION, mode="graph", top_k=50, **options)  # type: ignore[arg-type]
    return {line.fact_id: line for line in store.receipt(recall.recall_id).shown}[fact]


def rows(path: Path, statement: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


def say(store: Heedful, *signals: LinkSignal) -> list[str | None]:
    workspace = store._workspace
    with workspace.write() as connection:
        return signal_links(workspace, connection, signals, source="test")


def test_the_second_hop_is_found_by_the_graph_and_not_by_words_and_meaning(
    store: Heedful, facts: dict[str, str]
) -> None:
    assert HIDDEN not in texts(store, mode="hybrid")
    assert texts(store)[:2] == [SEED, HIDDEN]


def test_what_the_query_names_is_reached_in_any_case(store: Heedful, facts: dict[str, str]) -> None:
    question = "letters of mirela kovac"
    plain = {hit.text: hit.relevance for hit in store.recall(question, top_k=50)}
    expanded = {hit.text: hit.relevance for hit in store.recall(question, mode="graph", top_k=50)}
    assert expanded[HIDDEN] > plain[HIDDEN]
    assert {text: expanded[text] for text in NOISE} == {text: plain[text] for text in NOISE}


def test_relevance_is_lent_within_bounds(store: Heedful, facts: dict[str, str]) -> None:
    plain = {hit.text: hit.relevance for hit in store.recall(QUESTION, top_k=50)}
    for hit in store.recall(QUESTION, mode="graph", top_k=50):
        if hit.text in plain:
            assert plain[hit.text] <= hit.relevance <= plain[hit.text] + 0.3 * (1 - plain[hit.text]) + 1e-6
        assert 0 <= hit.relevance <= 1


@pytest.mark.parametrize("boost", [False, True])
def test_without_entities_the_graph_is_hybrid(store: Heedful, boost: bool) -> None:
    ids = store.remember(["apples are red", "pears are green", "the sky is blue"]).fact_ids
    store.signal([Signal(fact_id=ids[1], signal_type="helpful", query="which fruit")])
    one, other = (store.recall("which fruit", mode=mode, boost_by_usefulness=boost) for mode in ("hybrid", "graph"))
    assert one.hits == other.hits
    assert all(line.links == [] for line in store.receipt(other.recall_id).shown)


def test_an_entity_that_everybody_mentions_leads_nowhere(store: Heedful) -> None:
    store.remember([f"the {number}th thing that Omnipresent Corp made" for number in range(60)])
    query = "thing number 7th"
    assert store.recall(query, mode="graph").hits == store.recall(query, mode="hybrid").hits


def test_rare_entities_lend_more(store: Heedful) -> None:
    store.remember([SEED, HIDDEN, *NOISE])
    rare = relevance(store, HIDDEN)
    store.remember([f"once {word} met Mirela Kovac" for word in ("alice", "bob", "carol", "dave", "eve")])
    assert relevance(store, HIDDEN) < rare


def test_superseded_facts_are_neither_found_nor_walked_over(store: Heedful, facts: dict[str, str]) -> None:
    event = store.supersede(facts[HIDDEN], "Mirela Kovac keeps goats.").event_id
    assert HIDDEN not in texts(store, top_k=50)
    assert "Mirela Kovac keeps goats." in texts(store)
    store.retract(event)
    assert HIDDEN in texts(store)
    store.supersede(facts[SEED], "Nobody wrote the harbour report.")
    assert HIDDEN not in texts(store)


def test_filters_hold_for_what_is_reached(store: Heedful) -> None:
    store.remember([SEED, *NOISE], metadata={"kind": "office"})
    store.remember(HIDDEN, metadata={"kind": "home"})
    assert HIDDEN in texts(store)
    assert HIDDEN not in texts(store, where={"kind": "office"}, top_k=50)
    assert texts(store, where={"kind": "home"}, top_k=50) == [HIDDEN]


def test_usefulness_and_its_least_count_as_in_every_mode(store: Heedful, facts: dict[str, str]) -> None:
    store.signal([Signal(fact_id=facts[HIDDEN], signal_type="not_helpful", query=QUESTION) for _ in range(3)])
    hits = store.recall(QUESTION, mode="graph", boost_by_usefulness=True, top_k=50)
    hidden = next(hit for hit in hits if hit.text == HIDDEN)
    assert hidden.usefulness == pytest.approx(0.2)
    assert hidden.usefulness_source == "context"
    assert hidden.score == pytest.approx(0.7 * hidden.relevance + 0.3 * hidden.usefulness)
    assert HIDDEN not in texts(store, boost_by_usefulness=True, min_usefulness=0.4, top_k=50)


def test_exploration_works_on_what_the_graph_found(store: Heedful, facts: dict[str, str]) -> None:
    recall = store.recall(QUESTION, mode="graph", top_k=2, exploration=1.0, seed=1)
    line = store.receipt(recall.recall_id).shown[-1]
    assert 0 < line.propensity < 1


def test_an_explanation_names_the_entity(store: Heedful, facts: dict[str, str]) -> None:
    hits = {hit.text: hit for hit in store.recall(QUESTION, mode="graph", explain=True)}
    why = hits[HIDDEN].explanation
    assert why is not None
    assert why.links == ["Mirela Kovac"]
    assert "(over Mirela Kovac)" in why.arithmetic[0]
    assert why.arithmetic[0].endswith(f"= {hits[HIDDEN].relevance:.4f}")
    assert hits[NOISE[0]].explanation.links == []  # type: ignore[union-attr]


def test_a_receipt_keeps_the_links_that_carried_a_hit(
    open_store: Callable[..., Heedful], store: Heedful, facts: dict[str, str], path: Path
) -> None:
    ((entity,),) = rows(path, "SELECT id FROM entities WHERE key = 'mirela kovac'")
    assert shown(store, facts[HIDDEN]).links == [f"{facts[HIDDEN]}/{entity}", f"{facts[SEED]}/{entity}"]
    assert shown(open_store(), facts[NOISE[0]]).links == []


def test_feedback_on_a_recall_by_the_graph_lands(store: Heedful, facts: dict[str, str]) -> None:
    recall = store.recall(QUESTION, mode="graph", top_k=3)
    result = store.signal_recall(recall.recall_id, helpful=[facts[HIDDEN]])
    assert {each.signal_type for each in result.signals} == {"helpful", "ignored"}
    assert store.fact_stats(facts[HIDDEN]).overall_usefulness == pytest.approx(0.65)


def test_facts_are_linked_as_they_come_and_go(store: Heedful, facts: dict[str, str]) -> None:
    assert texts(store, top_k=2) == [SEED, HIDDEN]
    more = store.remember("a prize for Mirela Kovac").fact_ids[0]
    assert lifted(store) >= {HIDDEN, "a prize for Mirela Kovac"}
    store.forget(more)
    assert "a prize for Mirela Kovac" not in texts(store, top_k=50)
    store.forget(facts[SEED])
    assert lifted(store) == set()


def test_other_processes_follow(open_store: Callable[..., Heedful], store: Heedful, facts: dict[str, str]) -> None:
    other = open_store()
    assert HIDDEN in texts(other)
    store.remember("a prize for Mirela Kovac")
    assert "a prize for Mirela Kovac" in lifted(other)
    workspace = store._workspace
    with workspace.write() as connection:
        places = stored_facts.locate(connection, [facts[SEED], facts[NOISE[3]]])
        for seq, dataset in places.values():
            graph.enrich(connection, dataset, seq, ["harbour report", " Harbour  Report"])
    assert shown(other, facts[NOISE[3]]).links != []
    assert all(check.ok and not check.repaired for check in other.doctor())


class TestForgetting:
    def test_an_entity_goes_with_the_last_fact_that_mentions_it(
        self, store: Heedful, facts: dict[str, str], path: Path
    ) -> None:
        store.forget(facts[SEED])
        assert rows(path, "SELECT key FROM entities") == [("mirela kovac",)]
        store.forget(facts[HIDDEN])
        assert rows(path, "SELECT key FROM entities") == []
        assert rows(path, "SELECT * FROM links") == []

    def test_nothing_of_a_forgotten_dataset_is_left(self, store: Heedful, path: Path) -> None:
        store.remember(HIDDEN, dataset="second")
        store.remember(HIDDEN)
        store.forget(dataset="second")
        assert rows(path, "SELECT count(*) FROM entities") == [(1,)]
        assert rows(path, "SELECT count(*) FROM links") == [(1,)]

    def test_a_file_that_no_longer_names_somebody_leaves_no_name(
        self, store: Heedful, path: Path, tmp_path: Path
    ) -> None:
        file = tmp_path / "note.txt"
        file.write_text(HIDDEN)
        store.remember(file)
        file.write_text("nobody keeps bees")
        store.remember(file)
        assert rows(path, "SELECT key FROM entities") == []


class TestIsolation:
    def test_datasets_do_not_share_entities(self, store: Heedful) -> None:
        store.remember([SEED, *NOISE])
        store.remember(HIDDEN, dataset="second")
        assert HIDDEN not in texts(store, top_k=50)
        assert texts(store, dataset="second") == [HIDDEN]

    def test_projects_do_not_share_entities_and_links(self, open_store: Callable[..., Heedful], path: Path) -> None:
        ours, theirs = open_store(project="ours"), open_store(project="theirs")
        theirs.remember(HIDDEN)
        ours.remember([SEED, *NOISE])
        assert HIDDEN not in texts(ours, top_k=50)
        named = "SELECT facts.id || '/' || entity_id FROM links JOIN facts ON seq = fact_seq ORDER BY seq"
        (link,) = rows(path, named)[0]
        assert say(ours, LinkSignal(str(link), "helpful")) == [None]
        (event,) = say(theirs, LinkSignal(str(link), "helpful"))
        with pytest.raises(NotFound):
            ours.retract(str(event))


class TestStoresFromBefore:
    @pytest.fixture
    def old(self, store: Heedful, facts: dict[str, str], path: Path) -> Heedful:
        rows(path, "DELETE FROM links")
        rows(path, "DELETE FROM entities")
        rows(path, "UPDATE facts SET linked = 0")
        return store

    def test_they_are_linked_on_first_use_and_once(self, old: Heedful, path: Path) -> None:
        for mode in MODES:
            if mode != "graph":
                old.recall(QUESTION, mode=mode)
        assert rows(path, "SELECT count(*) FROM links") == [(0,)]
        assert texts(old, top_k=2) == [SEED, HIDDEN]
        assert rows(path, "SELECT DISTINCT linked FROM facts") == [(1,)]
        feed = rows(path, "SELECT count(*) FROM changes")
        texts(old)
        assert rows(path, "SELECT count(*) FROM changes") == feed

    def test_reading_another_dataset_links_nothing(self, old: Heedful, path: Path) -> None:
        with pytest.raises(NotFound):
            texts(old, dataset="elsewhere")
        assert rows(path, "SELECT count(*) FROM links") == [(0,)]

    def test_they_can_be_forgotten_and_checked_before(self, old: Heedful, facts: dict[str, str]) -> None:
        assert all(check.ok and not check.repaired for check in old.doctor())
        old.forget(facts[HIDDEN])
        assert HIDDEN not in texts(old, top_k=50)


class TestLinkSignals:
    def test_they_move_what_a_path_lends_and_only_where_usefulness_counts(
        self, store: Heedful, facts: dict[str, str]
    ) -> None:
        plain = relevance(store, HIDDEN, boost_by_usefulness=False)
        boosted = relevance(store, HIDDEN, boost_by_usefulness=True)
        assert plain == boosted
        for link in shown(store, facts[HIDDEN]).links:
            say(store, LinkSignal(link, "not_helpful"))
            lower = relevance(store, HIDDEN, boost_by_usefulness=True)
            assert lower < boosted
            boosted = lower
        assert relevance(store, HIDDEN, boost_by_usefulness=False) == plain
        assert relevance(store, HIDDEN, boost_by_usefulness=True, usefulness_weight=1.0) < boosted

    def test_they_fade(self, store: Heedful, facts: dict[str, str], clock: ManualClock) -> None:
        plain = relevance(store, HIDDEN)
        say(store, LinkSignal(shown(store, facts[HIDDEN]).links[0], "helpful"))
        fresh = relevance(store, HIDDEN, boost_by_usefulness=True)
        clock.advance(days=70)
        assert plain < relevance(store, HIDDEN, boost_by_usefulness=True) < fresh

    def test_they_leave_the_usefulness_of_facts_alone(self, store: Heedful, facts: dict[str, str]) -> None:
        before = store.fact_stats(facts[HIDDEN]), store.usefulness_stats()
        say(store, *(LinkSignal(link, "used") for link in shown(store, facts[HIDDEN]).links))
        assert (store.fact_stats(facts[HIDDEN]), store.usefulness_stats()) == before

    def test_retracting_one_undoes_it_exactly(self, store: Heedful, facts: dict[str, str], path: Path) -> None:
        link = shown(store, facts[HIDDEN]).links[0]
        say(store, LinkSignal(link, "helpful"))
        before = rows(path, "SELECT * FROM links"), relevance(store, HIDDEN, boost_by_usefulness=True)
        (event,) = say(store, LinkSignal(link, "not_helpful", 0.7))
        assert rows(path, "SELECT * FROM links") != before[0]
        undone = store.retract(str(event))
        assert undone.updated_facts == [facts[HIDDEN]]
        assert (rows(path, "SELECT * FROM links"), relevance(store, HIDDEN, boost_by_usefulness=True)) == before
        assert store.retract(str(event)).event_id == undone.event_id
        with pytest.raises(Conflict):
            store.retract(undone.event_id)

    def test_a_retry_counts_once(self, store: Heedful, facts: dict[str, str], path: Path) -> None:
        signal = LinkSignal(shown(store, facts[HIDDEN]).links[0], "helpful", idempotency_key="k")
        first = say(store, signal, signal)
        assert first[0] == first[1]
        assert say(store, signal) == first[:1]
        assert rows(path, "SELECT sum(helpful) FROM links") == [(1,)]

    @pytest.mark.parametrize("link", ["", "x", "/", "nobody/1", "1/x", "{fact}/99999", "{fact}/"])
    def test_a_link_that_is_not_there_is_not_signalled(
        self, store: Heedful, facts: dict[str, str], path: Path, link: str
    ) -> None:
        assert say(store, LinkSignal(link.format(fact=facts[HIDDEN]), "helpful")) == [None]
        assert rows(path, "SELECT count(*) FROM events") == [(0,)]

    def test_a_signal_about_a_forgotten_link_can_be_retracted(self, store: Heedful, facts: dict[str, str]) -> None:
        (event,) = say(store, LinkSignal(shown(store, facts[HIDDEN]).links[0], "helpful"))
        store.forget(facts[HIDDEN])
        assert store.retract(str(event)).updated_facts == []


class TestDoctor:
    @pytest.mark.parametrize(
        "damage",
        [
            "UPDATE links SET score = 0.9",
            "UPDATE links SET helpful = helpful + 1 WHERE last_at IS NOT NULL",
            "UPDATE links SET last_at = 7, score = 0.2 WHERE last_at IS NULL",
            "UPDATE links SET last_at = NULL",
            "DELETE FROM links",
            "INSERT INTO entities (project_id, dataset_id, key, name) SELECT 1, id, 'secret', 'Secret' FROM datasets",
            "INSERT INTO links (fact_seq, entity_id, project_id, dataset_id, score, used, ignored, helpful, "
            "not_helpful) SELECT 3, id, project_id, dataset_id, 0.5, 0, 0, 0, 0 FROM entities",
        ],
    )
    @pytest.mark.nightly
    def test_wrong_links_are_fixed(self, store: Heedful, facts: dict[str, str], path: Path, damage: str) -> None:
        say(store, LinkSignal(shown(store, facts[HIDDEN]).links[0], "helpful"))
        statements = "SELECT * FROM links ORDER BY 1, 2", "SELECT key, name FROM entities"
        before = [rows(path, statement) for statement in statements], texts(store, boost_by_usefulness=True)
        rows(path, damage)
        looked, fixed, after = (
            next(check for check in store.doctor(repair=repair) if check.name == "links of main_dataset")
            for repair in (False, True, True)
        )
        assert (looked.ok, fixed.ok, fixed.repaired, after.ok, after.repaired) == (False, True, True, True, False)
        assert ([rows(path, each) for each in statements], texts(store, boost_by_usefulness=True)) == before

    def test_what_a_model_found_is_not_taken_for_wrong(self, store: Heedful, facts: dict[str, str]) -> None:
        workspace = store._workspace
        with workspace.write() as connection:
            ((seq, dataset),) = stored_facts.locate(connection, [facts[NOISE[0]]]).values()
            graph.enrich(connection, dataset, seq, ["monthly report"])
        assert all(check.ok and not check.repaired for check in store.doctor())


said = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from(SIGNAL_TYPES),
        st.sampled_from([0.0, 0.25, 1.0]),
        st.integers(0, 40),
        st.booleans(),
    ),
    max_size=12,
)
Said = tuple[int, SignalType, float, int, bool]


@some(1 / 4)
@given(said, st.lists(st.integers(1, 4), max_size=12))
@pytest.mark.nightly
def test_any_order_of_link_signals_gives_the_documented_score(
    open_store: Callable[..., Heedful],
    documented_score: Callable[[Iterable[tuple[SignalType, float, datetime]], datetime], float],
    clock: ManualClock,
    path: Path,
    given: list[Said],
    sizes: list[int],
) -> None:
    path.unlink(missing_ok=True)
    start = clock.now = datetime(2026, 1, 1, tzinfo=UTC)
    with open_store() as store:
        ids = store.remember([SEED, HIDDEN]).fact_ids
        ((entity,),) = rows(path, "SELECT id FROM entities")
        clock.advance(days=60)
        left, done = list(given), 0
        events: list[str | None] = []
        for size in [*sizes, len(left) + 1]:
            events += say(
                store,
                *(
                    LinkSignal(f"{ids[fact]}/{entity}", kind, sure, to_stored(start + timedelta(days=day)))
                    for fact, kind, sure, day, _ in left[done : done + size]
                ),
            )
            done += size
        for event, (*_, retracted) in zip(events, given, strict=True):
            if retracted:
                store.retract(str(event))
        with store._workspace.read() as connection:
            kept = scores.rated_links_in(connection, 1)
        for place in range(2):
            left = sorted((each for each in given if each[0] == place and not each[4]), key=lambda each: each[3])
            tally = kept.get((place + 1, int(str(entity))), Tally())
            expected = [(kind, sure, start + timedelta(days=day)) for _, kind, sure, day, _ in left]
            assert tally.at(to_stored(clock())) == pytest.approx(documented_score(expected, clock()), abs=1e-9)
            assert tally.count == len(left)
        assert all(check.ok and not check.repaired for check in store.doctor())


steps = st.lists(st.tuples(st.sampled_from(["add", "forget", "supersede", "enrich"]), st.integers(0, 9)), max_size=25)


@some(1 / 4)
@given(steps, st.integers(1, 4))
@pytest.mark.slow
def test_a_graph_that_follows_is_the_one_that_is_built_again(
    open_store: Callable[..., Heedful], path: Path, steps: list[tuple[str, int]], every: int
) -> None:
    path.unlink(missing_ok=True)
    with open_store() as store:
        workspace = store._workspace
        store.remember("first of Alpha and Beta")
        following = GraphIndex(1)
        living: list[str] = []
        for number, (what, which) in enumerate(steps):
            if what == "add" or not living:
                pair = f"about {'Alpha' if which % 2 else 'Beta'} and Gamma{which}"
                living += store.remember(f"number {number} {pair}").fact_ids
            elif what == "forget":
                store.forget(living.pop(which % len(living)))
            elif what == "supersede":
                store.supersede(living.pop(which % len(living)), f"correction {number} by Delta")
            else:
                with workspace.write() as connection:
                    ((seq, dataset),) = stored_facts.locate(connection, [living[which % len(living)]]).values()
                    graph.enrich(connection, dataset, seq, [f"found{which}", "Alpha"])
            if number % every == 0:
                with workspace.read() as connection:
                    following.follow(connection)
        fresh = GraphIndex(1)
        with workspace.read() as connection:
            for index in (following, fresh):
                index.follow(connection)
            entities = np.array(sorted(row for row in range(60)), np.int64)
            everyone = np.arange(100)
        assert len(following) == len(fresh)
        for most in (2, 100):
            (one, counts), (other, again) = (index.links_to(entities, most) for index in (following, fresh))
            assert counts.tolist() == again.tolist()
            assert sorted(zip(*map(np.ndarray.tolist, one), strict=True)) == sorted(
                zip(*map(np.ndarray.tolist, other), strict=True)
            )
        one, other = (index.links_of(everyone) for index in (following, fresh))
        assert sorted(zip(*map(np.ndarray.tolist, one), strict=True)) == sorted(
            zip(*map(np.ndarray.tolist, other), strict=True)
        )
