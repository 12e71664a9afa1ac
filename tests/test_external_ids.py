"""Ids of the caller's: what has them is stored once, feedback names them, and a rating may come before its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cities import IN_ITALY, IN_ITALY_SQL, make_cities
from server import running

import heedful
from heedful import Conflict, Heedful, Invalid, NotFound
from heedful.clock import to_stored
from heedful.jobs import retention
from heedful.model import Check
from heedful.settings import Retention
from heedful.testing import ManualClock, WordEmbedder
from heedful.transfer import export_file, import_file, verify

GYM = "The gym opens at six."
BREAD = "Bread is baked at nine."
QUESTION = "When does the gym open?"


@pytest.fixture(params=["sqlite", "postgresql", "mongodb", "standalone_mongodb"])
def where(request: pytest.FixtureRequest, path: Path, empty_store: bytes) -> dict[str, Any]:
    """Where facts and sessions are: in one database, or in two."""
    if request.param == "postgresql":
        return {"url_or_path": request.getfixturevalue("empty_database")}
    path.write_bytes(empty_store)
    path.chmod(0o600)
    if request.param == "sqlite":
        return {"url_or_path": str(path)}
    return {"url_or_path": str(path), "sessions": request.getfixturevalue(f"{request.param}_url")}


@pytest.fixture
def anywhere(where: dict[str, Any], clock: ManualClock) -> Iterator[Heedful]:
    with heedful.open(**where, clock=clock, embedding=WordEmbedder(), worker=False) as store:
        store.remember([GYM, BREAD])
        yield store


def opinions(store: Heedful, qa_id: str) -> list[tuple[str | None, int | None, str | None]]:
    """(author, score, comment) of the active opinions about an entry."""
    rows = store._project.sessions.store.read(lambda tx: tx.feedbacks.active("entry", [qa_id]))
    return sorted(((row.author, row.score, row.comment) for row in rows), key=str)


def test_an_entry_with_an_external_id_is_stored_once(anywhere: Heedful) -> None:
    sessions = anywhere.sessions
    first = sessions.add_entry("s", QUESTION, "At six.", external_id="run-1")
    assert sessions.add_entry("s", QUESTION, "At six.", external_id="run-1") == first
    assert first.external_id == "run-1"
    assert [each.external_id for each in sessions.entries("s").items] == ["run-1"]
    assert sessions.entry("s", "run-1") == sessions.entry("s", first.qa_id) == first
    for session, answer in (("s", "At seven."), ("other", "At six.")):
        with pytest.raises(Conflict, match="external_id") as refused:
            sessions.add_entry(session, QUESTION, answer, external_id="run-1")
        assert refused.value.code == "external_id_reused"
    assert not sessions.exists("other")
    with pytest.raises(Invalid, match="external_id"):
        sessions.add_entry("s", "q", "a", external_id=" ")


@pytest.mark.slow
def test_feedback_names_an_entry_by_its_external_id(anywhere: Heedful) -> None:
    sessions = anywhere.sessions
    entry = sessions.add_entry("s", QUESTION, "At six.", external_id="run-1")
    assert sessions.add_feedback("s", "run-1", "Thanks", 5, author="ada")
    assert sessions.add_feedback("s", entry.qa_id, None, 4, author="ada")
    assert sessions.rate("run-1", "down", author="bo")
    assert opinions(anywhere, entry.qa_id) == [("ada", 4, None), ("bo", 1, None)]
    assert sessions.rate(entry.qa_id, "up", comment="Right.", author="bo").status == "stored"
    assert opinions(anywhere, entry.qa_id) == [("ada", 4, None), ("bo", 5, "Right.")]
    assert not sessions.add_feedback("other", "run-1", feedback_score=1)
    assert sessions.delete_feedback("s", "run-1", author="bo")
    assert opinions(anywhere, entry.qa_id) == [("ada", 4, None)]


def test_a_rating_waits_for_its_answer(anywhere: Heedful) -> None:
    sessions = anywhere.sessions
    early = sessions.rate("run-1", 2, comment="first", author="ada")
    assert early.status == "waiting"
    assert early.detail is not None
    assert early.detail.startswith("No answer has the id 'run-1' yet")
    assert not sessions.rate("run-1", "VERY_NEGATIVE", comment="second", author="ada")
    assert not sessions.rate("run-1", True)
    assert not sessions.rate("run-2", True)
    assert sessions.feedback_metrics().total == 0
    recalled = anywhere.recall(QUESTION)
    entry = sessions.add_entry("s", QUESTION, GYM, recall_id=recalled.recall_id, external_id="run-1")
    assert opinions(anywhere, entry.qa_id) == [("ada", 1, "second"), (None, 5, None)]
    assert sessions.feedback_metrics().total == 2
    assert sessions.add_entry("s", QUESTION, GYM, external_id="run-1").qa_id == entry.qa_id
    assert sessions.feedback_metrics().total == 2
    assert anywhere.improve().signals_added > 0
    assert anywhere._project.sessions.store.check() == "ok"


def test_a_rating_that_waits_can_be_taken_back(anywhere: Heedful) -> None:
    sessions = anywhere.sessions
    sessions.rate("run-1", "down", author="ada")
    sessions.rate("run-1", "up", author="bo")
    assert sessions.delete_feedback("s", "run-1", author="ada")
    assert not sessions.delete_feedback("s", "run-1", author="ada")
    entry = sessions.add_entry("s", QUESTION, GYM, external_id="run-1")
    assert opinions(anywhere, entry.qa_id) == [("bo", 5, None)]


def test_ratings_whose_answer_never_comes_are_noticed(anywhere: Heedful, clock: ManualClock) -> None:
    def check() -> Check:
        return next(each for each in anywhere.doctor() if each.name == "ratings")

    assert not anywhere.sessions.rate("mistyped", "up")
    assert check().ok
    clock.advance(hours=2)
    assert not anywhere.sessions.rate("run-9", "down")
    found = check()
    assert not found.ok
    assert "'mistyped'" in found.detail
    assert "run-9" not in found.detail
    anywhere.sessions.add_entry("s", QUESTION, "At six.", external_id="mistyped")
    assert check().ok


@pytest.mark.nightly
def test_a_rating_and_its_answer_come_at_the_same_moment(anywhere: Heedful) -> None:
    sessions = anywhere.sessions
    sessions.create("s")
    with ThreadPoolExecutor(8) as pool:
        for number in range(12):
            run = f"run-{number}"
            calls: list[Callable[[], Any]] = [
                partial(sessions.rate, run, "down", author="ada"),
                partial(sessions.add_entry, "s", QUESTION, GYM, external_id=run),
                partial(sessions.rate, run, "up", author="bo"),
                partial(sessions.add_entry, "s", QUESTION, GYM, external_id=run),
            ]
            for done in [pool.submit(call) for call in calls]:
                done.result(60)
    entries = sessions.entries("s").items
    assert sorted(str(each.external_id) for each in entries) == sorted(f"run-{number}" for number in range(12))
    assert all(opinions(anywhere, each.qa_id) == [("ada", 1, None), ("bo", 5, None)] for each in entries)
    assert anywhere._project.sessions.store.check() == "ok"


def test_a_deleted_session_frees_its_external_ids(anywhere: Heedful) -> None:
    anywhere.sessions.add_entry("s", QUESTION, GYM, external_id="run-1")
    anywhere.sessions.delete("s")
    assert not anywhere.sessions.rate("run-1", "up", author="ada")
    again = anywhere.sessions.add_entry("s", QUESTION, BREAD, external_id="run-1")
    assert again.feedback_score == 5


def test_a_hook_sees_a_rating_when_its_answer_comes(where: dict[str, Any], clock: ManualClock) -> None:
    seen: list[tuple[str, Any]] = []

    def hook(original_func: Any, action: str, session_id: str, **kwargs: Any) -> Any:
        seen.append((session_id, kwargs["feedback"]["feedback_score"]))
        if kwargs["feedback"]["feedback_score"] == 1:
            raise Invalid("not today")
        return original_func(kwargs["feedback"])

    with heedful.open(**where, clock=clock, embedding=WordEmbedder(), worker=False, feedback_hook=hook) as store:
        store.sessions.rate("run-1", "down", author="ada")
        store.sessions.rate("run-1", "up", author="bo")
        assert seen == []
        entry = store.sessions.add_entry("s", QUESTION, GYM, external_id="run-1")
        assert sorted(seen) == [("s", 1), ("s", 5)]
        assert opinions(store, entry.qa_id) == [("bo", 5, None)]
        store.sessions.add_entry("s", QUESTION, GYM, external_id="run-1")
        assert len(seen) == 2


def test_maintenance_ends_the_wait_and_says_so(store: Heedful, clock: ManualClock) -> None:
    store.sessions.rate("run-1", "down", author="ada")
    clock.advance(hours=23)
    store.sessions.rate("run-2", "down", author="ada")
    clock.advance(hours=2)

    def maintained(**days: int) -> list[str]:
        return retention.maintain(store._workspace.database, to_stored(clock()), Retention(**days))

    assert not any("waited" in line for line in maintained(waiting_days=0))
    assert "removed 1 ratings that waited for an answer in vain" in maintained()
    assert store.sessions.add_entry("s", QUESTION, GYM, external_id="run-1").feedback_score is None
    assert store.sessions.add_entry("s", QUESTION, GYM, external_id="run-2").feedback_score == 1


@pytest.mark.nightly
def test_a_recall_with_an_external_id_is_one_recall(anywhere: Heedful) -> None:
    first = anywhere.recall(QUESTION, external_id="run-1")
    anywhere.remember("The gym opens at seven on Sunday.")
    again = anywhere.recall(QUESTION, external_id="run-1")
    assert again == first
    assert anywhere.receipt("run-1").recall_id == first.recall_id
    with pytest.raises(Conflict, match="external_id"):
        anywhere.recall("When is bread baked?", external_id="run-1")
    assert anywhere.signal_recall("run-1", used=first[0]).processed == 2
    assert anywhere.detect(f"{GYM} [1]", "run-1")[0].signal_type == "used"
    entry = anywhere.sessions.add_entry("s", QUESTION, GYM, recall_id="run-1")
    assert entry.recall_id == first.recall_id


@pytest.mark.slow
def test_a_recall_with_an_answer_gives_both_the_same_id(anywhere: Heedful) -> None:
    anywhere.sessions.rate("run-1", "up", author="ada")
    first = anywhere.recall(QUESTION, session_id="s", external_id="run-1")
    again = anywhere.recall(QUESTION, session_id="s", external_id="run-1")
    assert (again.qa_id, again.answer, again.recall_id) == (first.qa_id, first.answer, first.recall_id)
    assert len(anywhere.sessions.entries("s").items) == 1
    assert anywhere.sessions.entry("s", "run-1").feedback_score == 5


def test_many_recalls_with_one_external_id_are_one(anywhere: Heedful) -> None:
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: anywhere.recall(QUESTION, external_id="run-1").recall_id, range(12)))
    assert len(set(found)) == 1
    assert anywhere.receipt("run-1").recall_id == found[0]


def test_a_signal_is_retracted_by_its_external_id(store: Heedful) -> None:
    fact = store.remember(GYM).fact_ids[0]
    values = {"fact_id": fact, "signal_type": "helpful", "query": QUESTION, "external_id": "score-1"}
    before = store.fact_stats(fact).overall_usefulness
    first = store.signal([values])
    again = store.signal([values])
    assert (first.processed, again.processed, again.event_ids) == (1, 0, first.event_ids)
    other = store.signal([{**values, "signal_type": "not_helpful"}])
    assert [error.code for error in other.errors] == ["external_id_reused"]
    assert store.retract("score-1").retracted == first.event_ids[0]
    assert store.fact_stats(fact).overall_usefulness == before
    with pytest.raises(Invalid, match="external_id"):
        store.signal([{**values, "idempotency_key": "key"}])
    with pytest.raises(NotFound):
        store.retract("score-2")


def test_an_execution_with_an_external_id_runs_once(store: Heedful, tmp_path: Path) -> None:
    store.connectors.create("geo", make_cities(tmp_path).url)
    run = store.executions.execute_query
    first = run(IN_ITALY_SQL, question=IN_ITALY, external_id="span-1")
    assert run(f"{IN_ITALY_SQL};", question=IN_ITALY, external_id="span-1") == first
    assert len(store.executions.list().items) == 1
    assert store.executions.get("span-1") == first
    with pytest.raises(Conflict, match="external_id"):
        run("SELECT 1", external_id="span-1")
    opinion = store.feedback.create_positive(execution_id="span-1", author="ada")
    assert opinion.execution_id == first.execution_id
    assert store.golden_examples.promote("span-1").execution_id == first.execution_id
    assert store.executions.delete("span-1")
    assert run("SELECT 1", external_id="span-1").execution_id != first.execution_id


def test_projects_have_their_own_external_ids(open_store: Callable[..., Heedful]) -> None:
    one, other = open_store(), open_store(project="other")
    one.sessions.add_entry("s", QUESTION, GYM, external_id="run-1")
    assert not other.sessions.rate("run-1", "up", author="ada")
    assert other.sessions.add_entry("t", QUESTION, BREAD, external_id="run-1").feedback_score == 5
    assert one.sessions.entry("s", "run-1").feedback_score is None


@pytest.mark.slow
def test_an_export_keeps_external_ids_and_ratings_that_wait(store: Heedful, path: Path, tmp_path: Path) -> None:
    store.remember(GYM)
    recalled = store.recall(QUESTION, external_id="run-1")
    store.sessions.add_entry("s", QUESTION, GYM, external_id="run-1")
    store.sessions.rate("run-2", 4, comment="fine", author="ada")
    store.close()
    export_file(path, tmp_path / "project.jsonl", project="default")
    import_file(tmp_path / "other.db", tmp_path / "project.jsonl", embedding=WordEmbedder())
    assert verify(tmp_path / "other.db").differences == []
    with heedful.open(tmp_path / "other.db", embedding=WordEmbedder(), worker=False) as copy:
        assert copy.receipt("run-1").recall_id == recalled.recall_id
        assert copy.sessions.entry("s", "run-1").external_id == "run-1"
        assert copy.sessions.add_entry("s", QUESTION, GYM, external_id="run-2").feedback_text == "fine"


def test_a_browser_rates_by_the_id_that_its_token_names(path: Path, empty_store: bytes) -> None:
    path.write_bytes(empty_store)
    path.chmod(0o600)
    with running(path) as server, heedful.connect(server.url, api_key=server.key) as store:
        token = store.keys.create_token({"external_id": "run-1"}, author="ada")
        with heedful.connect(server.url, api_key=token.token) as browser:
            assert not browser.sessions.rate("run-1", "up")
            with pytest.raises(heedful.Forbidden):
                browser.sessions.rate("run-2", "up")
        assert store.sessions.add_entry("s", QUESTION, GYM, external_id="run-1").feedback_score == 5
