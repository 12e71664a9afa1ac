"""Facts that have an end: gone at that moment, whoever looks and however, and removed later."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest
from click.testing import CliRunner
from lived import Place
from searching import can_build_graphs, search_inside_from_the_first_fact
from server import running
from sqlalchemy import func, select

import heedful
from heedful import Conflict, Heedful, Invalid, NotFound, transfer
from heedful.clock import to_stored
from heedful.interfaces.cli.main import cli
from heedful.jobs import retention
from heedful.model import Mode
from heedful.settings import Retention
from heedful.storage.schema import events, facts, vectors
from heedful.testing import ManualClock, ScriptedModel, WordEmbedder

CODE, OFFICE = "The door code of the office is 1234.", "The office of the company is in Rome."
QUERY = "What is the door code of the office?"
MODES = get_args(Mode)
TICK = timedelta(microseconds=1)


@pytest.fixture
def store(any_store: str, clock: ManualClock) -> Iterator[Heedful]:
    model = ScriptedModel(lambda messages: "One, two, three and four [1].")
    with heedful.open(any_store, clock=clock, embedding=WordEmbedder(), language_model=model, worker=False) as opened:
        yield opened


def found(store: Heedful, query: str = QUERY, **options: Any) -> list[str]:
    return sorted(hit.text for hit in store.recall(query, **options))


def maintain(store: Heedful, clock: ManualClock) -> list[str]:
    return retention.maintain(store._workspace.database, to_stored(clock()), Retention())


def rows(store: Heedful, table: Any) -> int:
    with store._workspace.database.read() as connection:
        return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


@pytest.mark.nightly
def test_a_fact_is_gone_at_its_end_and_not_before(store: Heedful, clock: ManualClock) -> None:
    end = clock() + timedelta(hours=1)
    (code,) = store.remember(CODE, expires_at=end).fact_ids
    (office,) = store.remember(OFFICE).fact_ids
    for fact in (code, office):
        store.signal([{"fact_id": fact, "signal_type": "helpful", "query": QUERY}])
    clock.advance(hours=1, microseconds=-1)
    assert all(found(store, mode=mode) == [CODE, OFFICE] for mode in MODES)
    assert (store.facts().items[0].expires_at, store.facts().items[1].expires_at) == (end, None)
    assert store.usefulness_stats().facts_with_signals == 2
    clock.advance(microseconds=1)
    for mode in MODES:
        assert found(store, mode=mode) == [OFFICE]
        for least in (0.3, 0.55):
            assert found(store, mode=mode, boost_by_usefulness=True, min_usefulness=least) == [OFFICE]
        assert found(store, mode=mode, policy="adaptive", boost_by_usefulness=True) == [OFFICE]
        assert found(store, mode=mode, where={"a": {"exists": False}}) == [OFFICE]
    assert [each.fact_id for each in store.facts().items] == [office]
    assert store.get_dataset("main_dataset").facts == 1
    stats = store.usefulness_stats()
    assert (stats.total_facts, stats.facts_with_signals) == (1, 1)
    assert [each.fact_id for each in stats.most_useful] == [office]
    assert store.fact(code).expires_at == store.fact_history(code).expires_at == end, "it can be looked at by its id"


@pytest.mark.nightly
def test_maintenance_removes_it_and_the_ledger_stays(store: Heedful, any_store: str, clock: ManualClock) -> None:
    end = clock() + timedelta(hours=1)
    (code,) = store.remember(CODE, expires_at=end).fact_ids
    store.remember(OFFICE)
    store.signal([{"fact_id": code, "signal_type": "helpful", "query": QUERY}])
    assert not any("expired" in line for line in maintain(store, clock))
    clock.advance(hours=1)
    assert "removed 1 facts that had expired" in maintain(store, clock)
    assert (rows(store, facts), rows(store, vectors), rows(store, events)) == (1, 1, 1)
    assert found(store) == [OFFICE]
    with pytest.raises(NotFound):
        store.fact(code)
    with pytest.raises(NotFound):
        store.signal([{"fact_id": code, "signal_type": "used", "query": QUERY}])
    assert all(check.ok for check in store.doctor())
    assert transfer.verify(any_store).ok


@pytest.mark.nightly
def test_expired_facts_do_not_crowd_out_the_others(store: Heedful, clock: ManualClock) -> None:
    crowd(store, clock, ("hybrid", "semantic", "lexical"))


def crowd(store: Heedful, clock: ManualClock, modes: Sequence[Mode]) -> None:
    store.remember([f"The door code is {number}" for number in range(500)], expires_at=clock() + timedelta(hours=1))
    live = store.remember([f"A door of the house number {number} is red" for number in range(5)]).facts
    for mode in modes:
        assert len(store.recall("The door code", mode=mode, top_k=10)) == 10
    clock.advance(hours=1)
    for mode in modes:
        assert found(store, "The door code", mode=mode, top_k=10) == sorted(each.text for each in live)


@pytest.mark.slow
def test_nor_where_postgresql_searches_by_itself(
    empty_database: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    search_inside_from_the_first_fact(monkeypatch)
    with heedful.open(empty_database, clock=clock, embedding=WordEmbedder(), worker=False) as store:
        crowd(store, clock, ("hybrid", "semantic", "lexical") if can_build_graphs() else ("lexical",))


def test_whoever_remembers_it_again_says_how_long_it_holds(store: Heedful, clock: ManualClock) -> None:
    soon, later = clock() + timedelta(hours=1), clock() + timedelta(days=1)
    first = store.remember(CODE, expires_at=soon).fact_ids
    assert store.remember(CODE, expires_at=later).fact_ids == first
    assert store.fact(first[0]).expires_at == later
    assert store.remember(CODE).fact_ids == first
    assert store.fact(first[0]).expires_at is None
    store.remember(CODE, expires_at=soon)
    clock.advance(hours=1)
    assert found(store) == []
    (again,) = store.remember(CODE).facts
    assert again.new, "what has expired is gone, and the same text is another fact"
    assert again.fact_id != first[0]
    assert found(store) == [CODE]


def test_a_correction_ends_with_what_it_corrects(store: Heedful, clock: ManualClock) -> None:
    end = clock() + timedelta(hours=1)
    (code,) = store.remember(CODE, expires_at=end).fact_ids
    corrected = store.supersede(code, CODE.replace("1234", "5678")).superseded_by
    assert store.fact(corrected).expires_at == end
    (office,) = store.remember(OFFICE).fact_ids
    clock.advance(hours=1)
    assert found(store) == [OFFICE]
    for fact, given in ((corrected, {"text": "x"}), (office, {"by": corrected})):
        with pytest.raises(Conflict) as caught:
            store.supersede(fact, **given)
        assert (caught.value.code, caught.value.value) == ("fact_expired", corrected)
        assert caught.value.remedy
    maintain(store, clock)
    assert [each.fact_id for each in store.facts().items] == [office]


@pytest.mark.usefixtures("one_author_teaches")
@pytest.mark.slow
def test_what_is_learnt_from_a_fact_ends_with_it(store: Heedful, clock: ManualClock) -> None:
    end = clock() + timedelta(hours=1)
    store.remember(CODE, expires_at=end)
    answered = store.recall(QUERY, session_id="s")
    assert answered.qa_id is not None
    store.sessions.add_feedback("s", answered.qa_id, feedback_score=5)
    (lesson,) = store.improve().learnt
    assert store.fact(lesson.fact_id).expires_at == end
    assert len(found(store)) == 2
    clock.advance(hours=1)
    assert found(store) == []


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (datetime(2040, 1, 1), "has no time zone"),
        (datetime(2001, 1, 1, tzinfo=UTC), "which is in the past"),
        ("2040-01-01T00:00:00Z", "must be a datetime"),
        (2_000_000_000, "must be a datetime"),
    ],
)
def test_a_bad_end_is_refused_by_name(open_store: Callable[..., Heedful], values: Any, message: str) -> None:
    store = open_store()
    with pytest.raises(Invalid, match=message) as caught:
        store.remember(CODE, expires_at=values)
    assert caught.value.field == "expires_at"
    assert str(getattr(values, "isoformat", lambda: values)()) in str(caught.value)
    assert "2030-01-31T12:00:00Z" in (caught.value.remedy or "")
    assert store.datasets() == []


def test_an_end_of_now_is_past(open_store: Callable[..., Heedful], clock: ManualClock) -> None:
    store = open_store()
    with pytest.raises(Invalid, match="which is in the past"):
        store.remember(CODE, expires_at=clock())
    assert store.remember(CODE, expires_at=clock() + TICK).added == 1


@pytest.mark.nightly
def test_copies_exports_and_tables_keep_the_end(
    store: Heedful, any_store: str, clock: ManualClock, place: Place, tmp_path: Path
) -> None:
    end = clock() + timedelta(hours=1)
    (code,) = store.remember(CODE, expires_at=end).fact_ids
    (row,) = store.insight.rows("facts").items
    assert datetime.fromisoformat(row["expires_at"]) == end
    copied, imported = place("sqlite"), place("sqlite")
    transfer.copy(any_store, copied)
    made = transfer.export_file(any_store, tmp_path / "facts.jsonl", project="default")
    read = transfer.import_file(imported, tmp_path / "facts.jsonl", embedding=WordEmbedder())
    assert read.facts_checksum == made.facts_checksum
    for other in (copied, imported):
        with heedful.open(other, clock=clock, embedding=WordEmbedder()) as opened:
            assert opened.fact(code).expires_at == end
            assert found(opened) == [CODE]
    clock.advance(hours=1)
    for other in (copied, imported):
        with heedful.open(other, clock=clock, embedding=WordEmbedder()) as opened:
            assert found(opened) == []


@pytest.mark.slow
def test_over_http(any_store: str, clock: ManualClock) -> None:
    with running(any_store, clock=clock) as server, server.connect() as client:
        end, key = clock() + timedelta(hours=1), {"Authorization": f"Bearer {server.key}"}
        (code,) = client.remember(CODE, expires_at=end).fact_ids
        assert client.fact(code).expires_at == client.fact_history(code).expires_at == end
        assert found(client) == [CODE]  # type: ignore[arg-type]
        for bad, said in (
            ("tomorrow", "expires_at"),
            ("2040-01-01T00:00:00", "has no time zone"),
            ("2001-01-01T00:00:00Z", "which is in the past"),
            ("4102444800", "not a number"),
        ):
            answer = httpx.post(
                f"{server.url}/v1/projects/default/facts", headers=key, json={"texts": CODE, "expires_at": bad}
            )
            assert answer.status_code == 422, bad
            assert said in answer.text
            assert "expires_at" in answer.text
        clock.advance(hours=1)
        assert found(client) == []  # type: ignore[arg-type]
        assert client.facts().items == []


def test_by_the_command_line(tmp_path: Path) -> None:
    def run(*arguments: str) -> Any:
        return CliRunner().invoke(cli, ["--store", str(tmp_path / "s.db"), *arguments])

    assert run("remember", CODE, "--expires-at", "2100-01-01T00:00:00+01:00", "--json").exit_code == 0
    assert "1234" in run("recall", QUERY).output
    with heedful.open(tmp_path / "s.db") as store:
        assert store.facts().items[0].expires_at == datetime(2099, 12, 31, 23, tzinfo=UTC)
    for bad in ("tomorrow", "2100-01-01", "2001-01-01T00:00:00Z"):
        refused = run("remember", CODE, "--expires-at", bad)
        assert isinstance(refused.exception, Invalid)
        assert refused.exception.field == "expires_at"
        assert bad.partition("T")[0] in str(refused.exception)
