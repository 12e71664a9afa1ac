"""Odd inputs have the same outcome on every store, embedded and over HTTP: they are stored and come back as they were
given, or the same error names the same field."""

from __future__ import annotations

from pathlib import Path

import pytest
import scenario
from comparing import embedded, remote
from odd_inputs import Outcome, outcomes
from scenario import World, make_world

from heedful.testing import ManualClock

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


def is_refusal(outcome: Outcome) -> bool:
    """Whether it is an error that blames the input."""
    return outcome.error is not None and outcome.error.split()[1] in ("Invalid", "NotFound", "Conflict", "Forbidden")


def test_no_odd_input_is_a_fault(expected: list[Outcome]) -> None:
    assert [each for each in expected if each.error is not None and not is_refusal(each)] == []
    assert len([each for each in expected if each.error is None]) > 300


def test_every_refusal_of_a_value_names_its_field(expected: list[Outcome]) -> None:
    refused = [each for each in expected if each.error is not None and each.error.startswith("raises Invalid")]
    assert [each for each in refused if str(each.error).endswith(" None")] == []


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


def test_over_http_the_same_is_accepted(expected: list[Outcome], world: World, tmp_path: Path) -> None:
    with remote(tmp_path / "store.db") as (engine, clock):
        for here, there in zip(expected, tried(engine, clock, world), strict=True):
            assert there.error is None or is_refusal(there), there
            if there.odd not in ONLY_PYTHON:
                assert (there.error is None) == (here.error is None), there
