"""The same life, embedded and over HTTP, blocking and awaited: the same results, types and errors."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from comparing import Plain, embedded, remote
from scenario import Failure, Step, World, hook, live, make_world, model
from server import running

import heedful
from heedful.api import CALLS
from heedful.testing import ManualClock, WordEmbedder

REWORDED = {
    (
        "golden_examples.import_file",
        "sql_writes",
    ): "the server is sent records, and knows of no file",
}
"""Errors that are told in other words over HTTP, and why."""


class Awaited:
    """What is awaited, as if it blocked."""

    def __init__(self, runner: asyncio.Runner, inner: Any) -> None:
        self._runner = runner
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return Awaited(self._runner, found)

        async def call(*args: Any, **kwargs: Any) -> Any:
            return await found(*args, **kwargs)

        return lambda *args, **kwargs: self._runner.run(call(*args, **kwargs))


@contextmanager
def awaited(path: Path | str) -> Iterator[tuple[Any, ManualClock]]:
    clock = ManualClock()
    with asyncio.Runner() as runner:
        engine = runner.run(
            heedful.aopen(
                path, clock=clock, embedding=WordEmbedder(), language_model=model(), feedback_hook=hook(), worker=False
            )
        )
        yield Awaited(runner, engine), clock
        runner.run(engine.close())


@contextmanager
def awaited_remote(path: Path | str) -> Iterator[tuple[Any, ManualClock]]:
    with (
        running(path, language_model=model(), feedback_hook=hook(), worker=False) as server,
        asyncio.Runner() as runner,
    ):
        engine = runner.run(heedful.aconnect(server.url, api_key=server.key))
        yield Awaited(runner, engine), server.clock
        runner.run(engine.close())


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory, world: World) -> list[Step]:
    with embedded(tmp_path_factory.mktemp("embedded") / "store.db") as (engine, clock):
        return live(engine, clock, world)


def outcomes(steps: list[Step]) -> list[tuple[str, Any]]:
    """What came of each call; where the words are known to differ, without them."""
    plain = Plain()
    return [
        (each.name, plain.of(replace(each.result, message="") if _is_reworded(each) else each.result)) for each in steps
    ]


def _is_reworded(step: Step) -> bool:
    return isinstance(step.result, Failure) and (step.name, step.result.code) in REWORDED


@pytest.mark.slow
def test_the_scenario_calls_every_operation(expected: list[Step]) -> None:
    called = {each.name for each in expected if not isinstance(each.result, Failure)}
    refused = {each.name for each in expected if isinstance(each.result, Failure)}
    assert called >= {*CALLS, "golden_examples.import_file"}
    assert not [each for each in expected if isinstance(each.result, Failure) and each.result.kind == "none"]
    assert len(refused) > 60


@pytest.mark.parametrize(
    "opened", [remote, *(pytest.param(each, marks=pytest.mark.nightly) for each in (awaited, awaited_remote))]
)
@pytest.mark.slow
def test_it_makes_no_difference_where_the_engine_is(
    opened: Any, expected: list[Step], world: World, tmp_path: Path
) -> None:
    with opened(tmp_path / "store.db") as (engine, clock):
        steps = live(engine, clock, world)
    assert len(steps) == len(expected)
    for here, there, step in zip(outcomes(expected), outcomes(steps), expected, strict=True):
        assert there == here, f"{step.name}{step.args}{step.kwargs}"


@pytest.mark.slow
def test_it_makes_no_difference_which_store_it_is(expected: list[Step], world: World, empty_database: str) -> None:
    # Over HTTP: the engine is the same behind it.
    with remote(empty_database) as (engine, clock):
        steps = live(engine, clock, world)
    assert len(steps) == len(expected)
    for here, there, step in zip(outcomes(expected), outcomes(steps), expected, strict=True):
        assert there == here, f"{step.name}{step.args}{step.kwargs}"


@pytest.mark.slow
def test_values_of_a_cached_result_keep_their_types(expected: list[Step]) -> None:
    """So that the comparison above can fail: the results have what JSON lacks."""
    rows = [
        match.execution["result"].rows
        for each in expected
        if each.name == "chat.execution_cache_lookup" and not isinstance(each.result, Failure)
        for match in each.result.matches
        if match.execution["result"] is not None
    ]
    result = {type(value) for each in rows for row in each for value in row}
    assert result >= {Decimal, date, datetime, UUID, bytes, list, str, int}


def test_reworded_errors_are_still_met(expected: list[Step]) -> None:
    assert {(step.name, step.result.code) for step in expected if _is_reworded(step)} == set(REWORDED)
