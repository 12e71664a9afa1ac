"""What a search promises, whether memory or the database does it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import psycopg
import pytest
from searching import NO_GRAPHS, can_build_graphs

import heedful
from heedful import Heedful
from heedful.model import DEFAULT_DATASET, MODES, Mode
from heedful.search import DatabaseIndex, DatasetIndex
from heedful.search.database_index import build_due
from heedful.storage import open_store, scopes
from heedful.testing import ManualClock, WordEmbedder

pytestmark = pytest.mark.skipif(not can_build_graphs(), reason=NO_GRAPHS)

FACTS = 1000
VOCABULARY = [
    f"{first}{second}"
    for first in ["ba", "be", "bi", "do", "du", "fa", "fe", "go", "gu", "la"]
    for second in ["kor", "min", "nal", "ped", "rus", "tav"]
]
MODES_WITHOUT_GRAPH: tuple[Mode, ...] = ("semantic", "lexical", "hybrid")


@cache
def sentences(count: int) -> list[str]:
    """Distinct ones, of words that are as unequally frequent as in real texts."""
    random = np.random.default_rng(7)
    words = [*VOCABULARY, *(f"rare{number}" for number in range(2000))]
    weights = 1 / (np.arange(len(words)) + 2.0)
    weights /= weights.sum()
    made: dict[str, None] = {}
    while len(made) < count:
        made[" ".join(random.choice(words, random.integers(5, 14), p=weights))] = None
    return list(made)


def searched_inside(store: Heedful) -> None:
    """Builds what is due for the datasets of a store, however small they are."""
    build_due(store._workspace.database, lambda step: None, limit=0)


def searcher(store: Heedful) -> type:
    workspace = store._workspace
    with workspace.read() as connection:
        model = workspace.model(connection)
        dataset = scopes.dataset_id(connection, DEFAULT_DATASET)
        assert model is not None
        assert dataset is not None
        found = workspace.index(connection, dataset, model)
        found.follow(connection)
        return type(found)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, postgresql_server: str) -> Iterator[tuple[Heedful, Heedful]]:
    """The same thousand facts, searched in memory and inside a database."""
    name = f"contract_{uuid4().hex}"
    server = postgresql_server.replace("DATABASE", "postgres")
    texts = sentences(FACTS)
    with ExitStack() as opened:
        connection = opened.enter_context(psycopg.connect(server, autocommit=True))
        connection.execute(f"CREATE DATABASE {name}".encode())
        opened.callback(connection.execute, f"DROP DATABASE {name} WITH (FORCE)".encode())
        patch = opened.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("HEEDFUL_SEARCH_IN_MEMORY", "0")
        file = tmp_path_factory.mktemp("contract") / "store.db"
        stores = [
            opened.enter_context(heedful.open(where, embedding=WordEmbedder(), clock=ManualClock()))
            for where in (file, postgresql_server.replace("DATABASE", name))
        ]
        for store in stores:
            for first in range(0, FACTS, 50):
                store.remember(texts[first : first + 50], source=f"book {first}", metadata={"book": first // 50})
            searched_inside(store)
        assert [searcher(store) for store in stores] == [DatasetIndex, DatabaseIndex]
        yield stores[0], stores[1]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.nightly
def test_both_find_the_same(both: tuple[Heedful, Heedful], mode: Mode) -> None:
    random = np.random.default_rng(11)
    texts = sentences(FACTS)
    overlaps = []
    for place in random.integers(0, FACTS, 30).tolist():
        query = " ".join(random.permutation(texts[place].split())[:4])
        one, other = ({hit.text for hit in store.recall(query, mode=mode, top_k=10)} for store in both)
        overlaps.append(len(one & other) / max(len(one), 1))
    assert np.mean(overlaps) >= 0.9


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.nightly
def test_both_rate_what_they_find_alike(both: tuple[Heedful, Heedful], mode: Mode) -> None:
    for text in sentences(FACTS)[::170]:
        one, other = ({hit.text: hit.relevance for hit in store.recall(text, mode=mode)} for store in both)
        common = one.keys() & other.keys()
        assert common
        assert [one[each] for each in common] == pytest.approx([other[each] for each in common], abs=2e-3)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.slow
def test_exact_wording_is_found_first(both: tuple[Heedful, Heedful], mode: Mode) -> None:
    for text in sentences(FACTS)[::100]:
        assert [store.recall(text, mode=mode, top_k=1).hits[0].text for store in both] == [text, text]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("where", [{"book": 7}, {"book": {">=": 5}}, {"book": {"!=": 3}}])
@pytest.mark.nightly
def test_filters_are_kept_and_lose_nothing(both: tuple[Heedful, Heedful], mode: Mode, where: dict[str, object]) -> None:
    texts = sentences(FACTS)
    for text in (texts[355], texts[960]):
        one, other = ([hit.text for hit in store.recall(text, mode=mode, where=where, top_k=10)] for store in both)
        assert len(set(one) & set(other)) >= 0.8 * len(one)
        books = {hit.metadata["book"] for hit in both[1].recall(text, mode=mode, where=where)}
        assert all(passes(book, where["book"]) for book in books)


def passes(book: Any, wanted: Any) -> bool:
    if not isinstance(wanted, dict):
        return bool(book == wanted)
    ((operator, limit),) = wanted.items()
    return bool(book >= limit if operator == ">=" else book != limit)


@pytest.fixture(params=["memory", "database"])
def opening(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, clock: ManualClock, path: Path
) -> Iterator[Callable[[], Heedful]]:
    """Opens a store whose datasets are searched by one or the other, with some facts in it."""
    monkeypatch.setenv("HEEDFUL_SEARCH_IN_MEMORY", "0")
    where = path if request.param == "memory" else request.getfixturevalue("empty_database")
    with ExitStack() as opened:

        def open_it() -> Heedful:
            return opened.enter_context(heedful.open(where, embedding=WordEmbedder(), clock=clock))

        store = open_it()
        store.remember(
            [
                "The harbour opens at dawn.",
                "Ships wait outside the harbour.",
                "Bread is baked in the old mill.",
                "Anna Berger sails with Tom Reed.",
                "Tom Reed bakes bread on Sundays.",
            ],
            source="town",
        )
        searched_inside(store)
        assert searcher(store) is (DatasetIndex if request.param == "memory" else DatabaseIndex)
        yield open_it


@pytest.fixture
def town(opening: Callable[[], Heedful]) -> Heedful:
    return opening()


def shown(store: Heedful, query: str, **options: object) -> list[str]:
    return [hit.text for hit in store.recall(query, **options)]  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.nightly
def test_what_is_written_is_found_at_once(town: Heedful, mode: Mode) -> None:
    town.remember("A lighthouse stands on the cliff.")
    assert shown(town, "lighthouse cliff", mode=mode)[0] == "A lighthouse stands on the cliff."


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.nightly
def test_others_find_it_as_well(opening: Callable[[], Heedful], mode: Mode) -> None:
    one, other = opening(), opening()
    assert shown(other, "harbour", mode=mode)
    one.remember("A lighthouse stands on the cliff.")
    assert shown(other, "lighthouse cliff", mode=mode)[0] == "A lighthouse stands on the cliff."


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.nightly
def test_what_is_forgotten_is_not_found(town: Heedful, mode: Mode) -> None:
    hit = town.recall("The harbour opens at dawn.", mode=mode).hits[0]
    town.forget(hit.fact_id)
    assert hit.text not in shown(town, "The harbour opens at dawn.", mode=mode, top_k=50)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.nightly
def test_what_is_superseded_is_not_found_until_that_is_undone(town: Heedful, mode: Mode) -> None:
    old = town.recall("The harbour opens at dawn.", mode=mode).hits[0]
    made = town.supersede(old.fact_id, "The harbour opens at seven.")
    assert old.text not in shown(town, "The harbour opens at dawn.", mode=mode, top_k=50)
    assert shown(town, "harbour opens seven", mode=mode)[0] == "The harbour opens at seven."
    town.retract(made.event_id)
    assert shown(town, "The harbour opens at dawn.", mode=mode)[0] == old.text


@pytest.mark.parametrize("mode", MODES_WITHOUT_GRAPH)
@pytest.mark.nightly
def test_a_proven_fact_is_a_candidate_however_far_it_is(town: Heedful, mode: Mode) -> None:
    far = town.recall("bread mill", mode="semantic").hits[0]
    town.signal([{"fact_id": far.fact_id, "signal_type": "helpful", "query": "ships outside"}])
    result = town.recall("ships outside", mode=mode, top_k=50, boost_by_usefulness=True)
    assert far.fact_id in [hit.fact_id for hit in result]


@pytest.mark.parametrize("least", [0.3, 0.5, 0.6])
@pytest.mark.nightly
def test_what_is_not_useful_enough_is_left_out(town: Heedful, least: float) -> None:
    good, bad = town.recall("harbour", mode="lexical").hits
    town.signal(
        [
            {"fact_id": good.fact_id, "signal_type": "helpful", "query": "harbour"},
            *({"fact_id": bad.fact_id, "signal_type": "not_helpful", "query": "harbour"} for _ in range(4)),
        ]
    )
    result = {hit.fact_id for hit in town.recall("harbour", boost_by_usefulness=True, min_usefulness=least, top_k=50)}
    assert good.fact_id in result
    assert bad.fact_id not in result
    assert (len(result) == 1) == (least > 0.5)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.nightly
def test_a_query_without_any_known_word_breaks_nothing(town: Heedful, mode: Mode) -> None:
    assert len(shown(town, "of the", mode=mode)) <= 5
    assert len(shown(town, "xylophone", mode=mode)) <= 5
    assert len(shown(town, "!?", mode=mode)) <= 5


@pytest.mark.slow
def test_a_long_query_is_answered(town: Heedful) -> None:
    query = " ".join([*(f"word{number}" for number in range(900)), "harbour"])
    assert shown(town, query, mode="lexical") != []


def test_the_graph_reaches_what_shares_no_word(town: Heedful) -> None:
    assert "Tom Reed bakes bread on Sundays." in shown(town, "Who does Anna Berger sail with?", mode="graph", top_k=3)


def test_neighbours_lend_their_words(town: Heedful) -> None:
    hits = {hit.text: hit for hit in town.recall("ships harbour", explain=True, top_k=50)}
    explanation = hits["Bread is baked in the old mill."].explanation
    assert explanation is not None
    assert explanation.neighbours is not None
    assert explanation.neighbours > 0


def test_doctor_is_content(town: Heedful) -> None:
    assert all(check.ok for check in town.doctor(repair=False))


@pytest.fixture
def large(empty_database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Heedful]:
    """A store whose dataset is over the limit, and not built yet."""
    monkeypatch.setenv("HEEDFUL_SEARCH_IN_MEMORY", "20")
    with heedful.open(empty_database, embedding=WordEmbedder()) as store:
        store.remember(sentences(60))
        yield store


def due(store: Heedful, report: Callable[[str], None] = lambda step: None) -> int:
    return build_due(store._workspace.database, report, limit=20)


def indexes(store: Heedful) -> dict[str, bool]:
    """The indexes of large datasets, and whether they are valid."""
    with store._workspace.read() as connection:
        rows = connection.exec_driver_sql(
            "SELECT indexrelid::regclass::text, indisvalid FROM pg_index"
            " WHERE indexrelid::regclass::text ~ '^ix_(words|vectors)_of_'"
        )
        return {row[0]: row[1] for row in rows}


class TestBuilding:
    @pytest.mark.slow
    def test_memory_searches_until_it_is_built(self, large: Heedful) -> None:
        assert searcher(large) is DatasetIndex
        assert due(large) == 1
        assert searcher(large) is DatabaseIndex
        assert len(indexes(large)) == 2
        assert due(large) == 0

    @pytest.mark.slow
    def test_a_small_dataset_is_searched_in_memory(self, large: Heedful) -> None:
        large.remember("alone", dataset="small")
        assert due(large) == 1
        assert len(indexes(large)) == 2

    @pytest.mark.slow
    def test_it_goes_on_where_it_was_stopped(self, large: Heedful) -> None:
        steps: list[str] = []

        def stop(step: str) -> None:
            steps.append(step)
            if step.startswith("index ix_vectors"):
                raise InterruptedError

        with pytest.raises(InterruptedError):
            due(large, stop)
        assert searcher(large) is DatasetIndex
        large.remember("written meanwhile")
        assert due(large) == 1
        assert shown(large, "written meanwhile", mode="lexical") == ["written meanwhile"]
        assert all(check.ok for check in large.doctor(repair=False))

    @pytest.mark.slow
    def test_an_index_that_was_left_half_built_is_built_again(self, large: Heedful) -> None:
        due(large)
        address = large._workspace.database.name.replace("keeper@", "postgres@")
        with psycopg.connect(address) as connection:
            connection.execute(
                "UPDATE pg_index SET indisvalid = false WHERE indexrelid::regclass::text ~ 'ix_vectors_of_'"
            )
        assert not all(indexes(large).values())
        assert due(large) == 1
        assert all(indexes(large).values())

    @pytest.mark.slow
    def test_two_at_once_do_not_collide(self, large: Heedful) -> None:
        counts: list[int] = []
        threads = [threading.Thread(target=lambda: counts.append(due(large))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert sum(counts) == 1
        assert all(indexes(large).values())

    @pytest.mark.nightly
    def test_what_is_small_again_is_searched_in_memory(self, large: Heedful) -> None:
        due(large)
        for fact in large.facts(limit=55).items:
            large.forget(fact.fact_id)
        assert due(large) == 1
        assert indexes(large) == {}
        assert searcher(large) is DatasetIndex

    @pytest.mark.slow
    def test_another_model_gets_another_index(self, large: Heedful, empty_database: str) -> None:
        due(large)
        before = set(indexes(large))

        class Other(WordEmbedder):
            name = "other"
            dimensions = 32

        large.close()
        heedful.reembed(empty_database, embedding=Other())
        with heedful.open(empty_database, embedding=Other()) as store:
            assert searcher(store) is DatasetIndex
            assert due(store) == 1
            assert searcher(store) is DatabaseIndex
            assert len(indexes(store)) == 2
            assert set(indexes(store)) != before

    @pytest.mark.nightly
    def test_missing_words_are_found_and_fixed(self, large: Heedful) -> None:
        due(large)
        with large._workspace.write() as connection:
            connection.exec_driver_sql("DELETE FROM words WHERE mod(fact_seq, 2) = 0")
        assert not all(check.ok for check in large.doctor(repair=False))
        large.doctor(repair=True)
        assert all(check.ok for check in large.doctor(repair=False))

    def test_files_have_nothing_to_build(self, path: Path) -> None:
        database = open_store(path)
        assert build_due(database, lambda step: None, limit=0) == 0
        database.close()
