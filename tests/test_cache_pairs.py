"""Reuse on pairs of questions that try to mislead it: right rows or none, for whoever asks, on any day."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from kinds import KINDS
from server import running

from bench.cache_pairs import REUSED, SCHEMAS, Judge, Opening, Outcome, Pair, pairs, statements
from heedful.providers.embedding import Embedder
from heedful.store import Store

pytestmark = pytest.mark.slow


def of_schema(schema: str) -> list[Pair]:
    return [pair for pair in pairs("tuning") if pair.schema == schema]


def one_of_each_class(schema: str) -> list[Pair]:
    """A pair of each class that must not be served as it was proven; all where it matters who asks, or when."""
    chosen: dict[str, Pair] = {}
    for pair in of_schema(schema):
        if not pair.means_same:
            chosen[pair.id if pair.kind == "who asks" or pair.another_day else pair.kind] = pair
    return list(chosen.values())


def wrong(outcomes: Iterable[Outcome]) -> list[tuple[str, str | None]]:
    return [(each.pair.id, each.answer.sql) for each in outcomes if each.wrong]


def outcomes(judge: Judge, chosen: Sequence[Pair], open_project: Opening) -> list[Outcome]:
    return [judge.outcome(pair, open_project) for pair in chosen]


def made(kind: str, request: pytest.FixtureRequest, folder: Path, schema: str) -> Judge:
    place = KINDS[kind](request, folder)
    place.write(";\n".join(statements(schema)))
    return Judge({schema: place.url})


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.nightly
def test_no_answer_is_wrong_and_most_that_mean_the_same_are_reused(
    schema: str, request: pytest.FixtureRequest, path: Path, tmp_path: Path, bundled: Embedder
) -> None:
    judge = made("sqlite", request, tmp_path, schema)
    with closing(Store(path, clock=judge.clock, embedding=bundled, language_model=judge.model)) as store:
        found = outcomes(judge, of_schema(schema), store.open)
    assert wrong(found) == []
    alike = [each for each in found if each.pair.means_same]
    reused = 100 * sum(not each.needless for each in alike) / len(alike)
    assert reused >= REUSED, [each.pair.id for each in alike if each.needless]


@pytest.mark.parametrize(("kind", "schema"), [("postgresql", "clinic"), ("duckdb", "hr"), ("mysql", "shop")])
@pytest.mark.nightly
def test_no_answer_is_wrong_on_other_connectors(
    kind: str, schema: str, request: pytest.FixtureRequest, path: Path, tmp_path: Path, bundled: Embedder
) -> None:
    judge = made(kind, request, tmp_path, schema)
    with closing(Store(path, clock=judge.clock, embedding=bundled, language_model=judge.model)) as store:
        assert wrong(outcomes(judge, one_of_each_class(schema), store.open)) == []


@pytest.mark.nightly
def test_no_answer_is_wrong_in_any_store(
    any_store: str, request: pytest.FixtureRequest, tmp_path: Path, bundled: Embedder
) -> None:
    judge = made("sqlite", request, tmp_path, "hr")
    with closing(Store(any_store, clock=judge.clock, embedding=bundled, language_model=judge.model)) as store:
        assert wrong(outcomes(judge, one_of_each_class("hr"), store.open)) == []


def test_no_answer_is_wrong_over_http(request: pytest.FixtureRequest, path: Path, tmp_path: Path) -> None:
    judge = made("sqlite", request, tmp_path, "shop")
    with running(path, clock=judge.clock, language_model=judge.model) as server:
        assert wrong(outcomes(judge, one_of_each_class("shop"), server.connect)) == []
