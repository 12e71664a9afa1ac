"""Odd inputs have the same outcome on every store, embedded and over HTTP: they are stored and come back as they were
given, or the same error names the same field."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import scenario
from comparing import embedded, remote
from hypothesis import given
from hypothesis import strategies as st
from odd_inputs import WIDE, Outcome, outcomes
from scenario import World, make_world, model

import heedful
from heedful import Heedful, HeedfulError, Unavailable
from heedful.ledger import tallies
from heedful.storage import scopes
from heedful.testing import ManualClock, WordEmbedder

pytestmark = pytest.mark.slow

CHAPTERS = [
    scenario.memory,
    scenario.opinions,
    scenario.sessions,
    scenario.answers,
    scenario.ratings,
    scenario.connectors,
    scenario.executions,
    scenario.execution_feedback,
    scenario.examples,
    scenario.chat,
    scenario.review,
    scenario.keys,
    scenario.jobs,
]
"""The life up to its end, where all is deleted."""

PAGES = {"insight.rows"}
"""With sessions in MongoDB, its first page may be empty, and another one follows."""

ONLY_PYTHON = {"bytes", "set"}
"""What the client writes as JSON, and the engine refuses."""


def tried(engine: object, clock: ManualClock, world: World) -> list[Outcome]:
    life = scenario.Life(engine, clock, world)
    for chapter in CHAPTERS:
        chapter(life)
    return list(outcomes(engine, life.steps))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory, world: World) -> list[Outcome]:
    with embedded(tmp_path_factory.mktemp("embedded") / "store.db") as (engine, clock):
        return tried(engine, clock, world)


@pytest.fixture
def two_stores(tmp_path: Path, empty_database: str) -> Iterator[list[Heedful]]:
    with (
        heedful.open(tmp_path / "store.db", embedding=WordEmbedder(), worker=False) as here,
        heedful.open(empty_database, embedding=WordEmbedder(), worker=False) as there,
    ):
        yield [here, there]


def is_refusal(outcome: Outcome) -> bool:
    """Whether it is an error that blames the input."""
    return outcome.error is not None and outcome.error.split()[1] in ("Invalid", "NotFound", "Conflict", "Forbidden")


@pytest.mark.nightly
def test_no_odd_input_is_a_fault(expected: list[Outcome]) -> None:
    assert [each for each in expected if each.error is not None and not is_refusal(each)] == []
    assert len([each for each in expected if each.error is None]) > 100


def test_every_refusal_of_a_value_names_its_field(expected: list[Outcome]) -> None:
    refused = [each for each in expected if each.error is not None and each.error.startswith("raises Invalid")]
    assert [each for each in refused if str(each.error).endswith(" None")] == []


@pytest.mark.nightly
def test_postgresql_has_the_same_outcomes(expected: list[Outcome], world: World, empty_database: str) -> None:
    with embedded(empty_database) as (engine, clock):
        for here, there in zip(expected, tried(engine, clock, world), strict=True):
            assert there == here


def test_sessions_in_mongodb_have_the_same_outcomes(
    expected: list[Outcome], world: World, tmp_path: Path, mongodb_url: str
) -> None:
    with embedded(tmp_path / "store.db", sessions=mongodb_url) as (engine, clock):
        for here, there in zip(expected, tried(engine, clock, world), strict=True):
            assert there.error == here.error if there.call in PAGES else there == here


@pytest.mark.nightly
def test_over_http_the_same_is_accepted(expected: list[Outcome], world: World, tmp_path: Path) -> None:
    with remote(tmp_path / "store.db") as (engine, clock):
        for here, there in zip(expected, tried(engine, clock, world), strict=True):
            assert there.error is None or is_refusal(there), there
            if there.odd not in ONLY_PYTHON:
                assert (there.error is None) == (here.error is None), there


def test_the_widest_names_fit_into_every_index(any_store: str) -> None:
    with heedful.open(any_store, embedding=WordEmbedder(), language_model=model(), worker=False) as store:
        store.remember("The office opens at eight.", dataset=WIDE, source="😀" * 500, metadata={WIDE: WIDE * 3})
        store.sessions.create(WIDE, metadata={WIDE: WIDE * 3})
        asked = store.recall("When?", dataset=WIDE, session_id=WIDE, external_id=WIDE, answer=True)
        assert asked.qa_id is not None
        store.sessions.add_feedback(WIDE, asked.qa_id, feedback_score=5, author=WIDE)
        store.signal_recall(WIDE, helpful=asked.hits[0], author=WIDE, idempotency_key=WIDE)
        with store._workspace.write() as connection:
            tallies.fold(connection, scopes.project_id(connection, "default") or 0, WIDE)
        (variant,) = store.insight.satisfaction(WIDE).variants
        assert variant.sessions == 1
        assert [fact.source for fact in store.facts(dataset=WIDE, where={WIDE: WIDE * 3}).items] == ["😀" * 500]


TEXT = st.text(st.characters(), min_size=1, max_size=8)
"""With lone surrogates, which `st.text` leaves out."""


@given(st.dictionaries(TEXT, TEXT | st.integers() | st.floats() | st.none(), max_size=3), TEXT)
def test_any_text_and_any_metadata_have_one_outcome(
    two_stores: list[Heedful], metadata: dict[str, Any], name: str
) -> None:
    def result(store: Heedful) -> Any:
        try:
            store.remember(f"About {name}.", dataset=name, source=name, metadata=metadata)
            store.sessions.create(name, metadata=metadata)
            where = {key: {"=": value} for key, value in metadata.items()}
            found = store.facts(dataset=name, source=name, where=where or None).items
            return [(each.text, each.source, each.metadata) for each in found], store.sessions.get(name).metadata
        except HeedfulError as error:
            return type(error), error.code, error.field, error.message

    first, second = map(result, two_stores)
    assert first == second
    assert Unavailable not in first
