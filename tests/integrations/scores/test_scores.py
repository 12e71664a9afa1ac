"""Scores in and out, with the systems' own clients as the other side: what one of them writes is imported, and what is
exported is what it reads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import score_servers
from closed_loop import recalled
from langfuse.api.client import LangfuseAPI
from langfuse.api.scores.types.create_score_request import CreateScoreRequest
from langsmith import Client as LangSmithClient
from loop import ANSWER, AT_SEVEN, AT_SIX, QUESTION, SESSION, Memory, opened, run_examples, shown
from patience import until
from phoenix.client import Client as PhoenixClient
from score_servers import PROJECT, Server, serving
from server import running

import heedful
from heedful import AsyncHeedful, Forbidden, NotFound, Unavailable
from heedful.integrations import scores
from heedful.integrations.score_systems import ScoreSystem
from heedful.integrations.scores import (
    Langfuse,
    LangSmith,
    Phoenix,
    aexport_scores,
    aimport_scores,
    export_scores,
    import_scores,
)
from heedful.testing import WordEmbedder

ANSWERS = [str(uuid4()) for _ in range(3)]


@dataclass
class There:
    """A system, its server, and what its own client does."""

    system: ScoreSystem
    server: Server
    add: Callable[[str, float, str | None], None]
    """Scores an answer by a person."""
    evaluate: Callable[[str, float], None]
    """Scores an answer by an evaluator."""
    by_hand: Callable[[str, float], None]
    """Scores an answer by a person, under the name that Heedful's scores have."""
    read: Callable[[], list[tuple[str, float | None, str | None]]]
    """What has that name: answer, value and comment."""

    def forget(self, answer: str) -> None:
        for key, row in list(self.server.rows.items()):
            if answer in str(row):
                del self.server.rows[key]


def langfuse(server: Server) -> There:
    client = LangfuseAPI(base_url=server.url, username="pk", password="sk")

    def add(answer: str, value: float, comment: str | None) -> None:
        # One opinion of the score's name about a trace.
        request = CreateScoreRequest(id=f"user/{answer}", trace_id=answer, name="user", value=value, comment=comment)
        client.scores.create(request=[request])

    def evaluate(answer: str, value: float) -> None:
        client.scores.create(request=[CreateScoreRequest(id=f"e/{answer}", trace_id=answer, name="judge", value=value)])
        server.rows[f"e/{answer}"]["source"] = "EVAL"

    def by_hand(answer: str, value: float) -> None:
        request = CreateScoreRequest(trace_id=answer, name="heedful", value=value, comment="By hand.")
        client.scores.create(request=[request])

    def read() -> list[tuple[str, float | None, str | None]]:
        found, cursor = [], None
        while True:
            page = client.scores.get_many(name="heedful", fields="details,subject", cursor=cursor)
            for each in page.data:
                value = None if each.data_type == "TEXT" else float(each.value)
                assert each.subject is not None
                found.append((each.subject.id, value, each.comment))
            cursor = page.meta.cursor
            if cursor is None:
                return found

    return There(Langfuse(server.url, "pk", "sk"), server, add, evaluate, by_hand, read)


def langsmith(server: Server) -> There:
    client = LangSmithClient(api_url=server.url, api_key="key", auto_batch_tracing=False)

    def add(answer: str, value: float, comment: str | None, source: str = "api") -> None:
        known = next(
            (key for key, row in server.rows.items() if row["run_id"] == answer and row["key"] == "user"), None
        )
        if known is not None:
            client.update_feedback(known, score=value, comment=comment)
            return
        client.create_feedback(
            answer, "user", score=value, comment=comment, feedback_source_type=source, session_id=PROJECT
        )

    def evaluate(answer: str, value: float) -> None:
        client.create_feedback(answer, "judge", score=value, feedback_source_type="model", session_id=PROJECT)

    def by_hand(answer: str, value: float) -> None:
        client.create_feedback(answer, "heedful", score=value, comment="By hand.", session_id=PROJECT)

    def read() -> list[tuple[str, float | None, str | None]]:
        rows = client.list_feedback(feedback_key=["heedful"])
        return [(str(each.run_id), None if each.score is None else float(each.score), each.comment) for each in rows]

    return There(LangSmith("key", url=server.url), server, add, evaluate, by_hand, read)


def phoenix(server: Server) -> There:
    client = PhoenixClient(base_url=server.url)

    def add(answer: str, value: float, comment: str | None, kind: Any = "HUMAN", name: str = "user") -> None:
        client.spans.add_span_annotation(
            span_id=answer, annotation_name=name, annotator_kind=kind, score=value, explanation=comment, sync=True
        )

    def evaluate(answer: str, value: float) -> None:
        add(answer, value, None, "LLM", "judge")

    def by_hand(answer: str, value: float) -> None:
        add(answer, value, "By hand.", name="heedful")

    def read() -> list[tuple[str, float | None, str | None]]:
        rows = client.spans.get_span_annotations(
            span_ids=ANSWERS, project_identifier="default", include_annotation_names=["heedful"]
        )
        results = [(row["span_id"], row.get("result") or {}) for row in rows]
        return [(span, result.get("score"), result.get("explanation")) for span, result in results]

    return There(Phoenix(server.url, annotates="span"), server, add, evaluate, by_hand, read)


SYSTEMS = {"langfuse": langfuse, "langsmith": langsmith, "phoenix": phoenix}


@pytest.fixture(params=["open", "connect"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    with opened(request.param, tmp_path) as memory:
        yield memory


@pytest.fixture(params=list(SYSTEMS))
def there(request: pytest.FixtureRequest) -> Iterator[There]:
    with serving(getattr(score_servers, request.param)) as server:
        made = SYSTEMS[request.param](server)
        yield made
        made.system.close()  # type: ignore[attr-defined]


def answered(memory: Memory, answer: str) -> None:
    found = memory.recall(QUESTION)
    memory.sessions.add_entry(SESSION, QUESTION, ANSWER, recall_id=found.recall_id, external_id=answer)


def rated(memory: Memory) -> list[tuple[int | None, str | None]]:
    return [(each.feedback_score, each.feedback_text) for each in memory.sessions.entries(SESSION).items]


def test_scores_come_in_once_are_changed_and_retracted(memory: Memory, there: There) -> None:
    for answer in ANSWERS:
        answered(memory, answer)
    for answer, value in zip(ANSWERS, (1, 0, 0.5), strict=True):
        there.add(answer, value, f"It is {value}.")
        there.evaluate(answer, 0)
    first = import_scores(memory, there.system)
    assert (first.stored, first.unknown, first.retracted, first.errors) == (3, 0, 0, [])
    assert rated(memory) == [(5, "It is 1."), (1, "It is 0."), (3, "It is 0.5.")]
    again = import_scores(memory, there.system)
    assert (again.stored, again.unchanged, again.retracted) == (0, 3, 0)
    there.add(ANSWERS[0], 0.25, None if there.system.name != "langsmith" else "Changed.")
    there.forget(ANSWERS[1])
    changed = import_scores(memory, there.system)
    assert (changed.stored, changed.unchanged, changed.retracted) == (1, 1, 1)
    assert [score for score, _ in rated(memory)] == [2, None, 3]
    # Nothing that was imported is written back.
    assert export_scores(memory, there.system).written == 0


def test_what_was_said_there_changes_the_next_prompt(memory: Memory, there: There) -> None:
    answered(memory, ANSWERS[0])
    there.add(ANSWERS[0], 0, "Wrong.")
    import_scores(memory, there.system)
    for author in ("ada", "bo"):
        memory.sessions.rate(ANSWERS[0], "down", author=author)
    until(lambda: recalled(memory) == [AT_SEVEN, AT_SIX])
    assert shown(heedful.as_prompt(memory.recall(QUESTION))) == [AT_SEVEN, AT_SIX]
    there.forget(ANSWERS[0])
    for author in ("ada", "bo"):
        memory.sessions.delete_feedback(SESSION, ANSWERS[0], author=author)
    assert import_scores(memory, there.system).retracted == 1
    assert shown(heedful.as_prompt(memory.recall(QUESTION))) == [AT_SIX, AT_SEVEN]


def test_only_what_is_new_is_read_since_a_time(memory: Memory, there: There) -> None:
    answered(memory, ANSWERS[0])
    there.add(ANSWERS[0], 1, None)
    import_scores(memory, there.system)
    there.server.rows.clear()
    later = import_scores(memory, there.system, since=datetime.now(UTC) + timedelta(hours=1))
    assert (later.stored, later.retracted, rated(memory)) == (0, 0, [(5, None)])


def test_opinions_go_out_once_are_changed_and_deleted(memory: Memory, there: There) -> None:
    for answer in ANSWERS:
        answered(memory, answer)
    memory.sessions.rate(ANSWERS[0], "up", comment="Right.", author="ada")
    memory.sessions.rate(ANSWERS[0], "down", author="bo")
    memory.sessions.rate(ANSWERS[1], comment="Why?", author="ada")
    # The scores of others stay as they are.
    there.add(ANSWERS[2], 1, "Theirs.")
    assert export_scores(memory, there.system).written == 3
    wanted = [(ANSWERS[0], 1.0, "Right."), (ANSWERS[0], 0.0, None), (ANSWERS[1], None, "Why?")]
    assert sorted(there.read(), key=str) == sorted(wanted, key=str)
    there.server.requests.clear()
    again = export_scores(memory, there.system)
    assert (again.written, again.unchanged, again.deleted, there.server.requests) == (0, 3, 0, [])
    memory.sessions.rate(ANSWERS[0], "down", comment="No.", author="ada")
    memory.sessions.delete_feedback(SESSION, ANSWERS[0], author="bo")
    third = export_scores(memory, there.system)
    assert (third.written, third.unchanged, third.deleted) == (1, 1, 1)
    assert sorted(there.read(), key=str) == sorted([(ANSWERS[0], 0.0, "No."), (ANSWERS[1], None, "Why?")], key=str)
    # What Heedful wrote is not imported again.
    assert import_scores(memory, there.system).stored == 1
    assert len(there.server.rows) == 3


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Memory]:
    """Another store, whose scores go to the same project."""
    with heedful.open(tmp_path / "other.db", embedding=WordEmbedder(), worker=False) as other:
        yield other


def test_stores_that_share_a_project_and_people_leave_each_others_scores_alone(
    memory: Memory, other: Memory, there: There
) -> None:
    for store, answers in ((memory, ANSWERS[:2]), (other, ANSWERS[1:])):
        for answer in answers:
            answered(store, answer)
            store.sessions.rate(answer, "up", comment=f"{answer} is right.", author="ada")
    there.by_hand(ANSWERS[0], 0)
    there.by_hand(ANSWERS[2], 0)
    hand = [(ANSWERS[0], 0.0, "By hand."), (ANSWERS[2], 0.0, "By hand.")]
    good = [(answer, 1.0, f"{answer} is right.") for answer in (ANSWERS[0], ANSWERS[1], ANSWERS[1], ANSWERS[2])]
    for store in (memory, other):
        assert export_scores(store, there.system).written == 2
    for store in (memory, other, memory):
        again = export_scores(store, there.system)
        assert (again.written, again.unchanged, again.deleted) == (0, 2, 0)
    assert sorted(there.read()) == sorted([*good, *hand])
    # What one of them changes and retracts is all that changes.
    memory.sessions.rate(ANSWERS[0], "down", comment="No.", author="ada")
    memory.sessions.delete_feedback(SESSION, ANSWERS[1], author="ada")
    changed = export_scores(memory, there.system)
    assert (changed.written, changed.unchanged, changed.deleted) == (1, 0, 1)
    assert (export_scores(other, there.system).unchanged, export_scores(memory, there.system).deleted) == (2, 0)
    assert sorted(there.read()) == sorted([(ANSWERS[0], 0.0, "No."), *good[2:], *hand])
    # One that is given again is written again.
    memory.sessions.rate(ANSWERS[1], "up", comment=f"{ANSWERS[1]} is right.", author="ada")
    assert export_scores(memory, there.system).written == 1
    assert sorted(there.read()) == sorted([(ANSWERS[0], 0.0, "No."), *good[1:], *hand])


def test_scores_of_a_session_that_was_deleted_go(memory: Memory, other: Memory, there: There) -> None:
    for store, answer in ((memory, ANSWERS[0]), (other, ANSWERS[1])):
        answered(store, answer)
        store.sessions.rate(answer, "up", author="ada")
        export_scores(store, there.system)
    memory.sessions.delete(SESSION)
    left = [(ANSWERS[1], 1.0, None)]
    # Phoenix returns the annotations of answers that are named, and this one's name is forgotten.
    forgets = there.system.name != "phoenix"
    assert export_scores(memory, there.system).deleted == int(forgets)
    assert sorted(there.read()) == (left if forgets else sorted([(ANSWERS[0], 1.0, None), *left]))


def test_the_name_of_somebody_who_was_erased_goes(memory: Memory, there: There) -> None:
    answered(memory, ANSWERS[0])
    memory.sessions.rate(ANSWERS[0], "up", comment="I am Grace.", author="grace")
    export_scores(memory, there.system)
    assert "grace" in str(there.server.rows)
    memory.forget(author="grace")
    erased = export_scores(memory, there.system)
    assert (erased.written, erased.deleted) == (1, 1)
    assert "grace" not in str(there.server.rows).lower()
    assert there.read() == [(ANSWERS[0], 1.0, None)]


def test_scores_without_the_mark_of_the_store_are_left_alone(memory: Memory, there: There) -> None:
    answered(memory, ANSWERS[0])
    for author in ("ada", "bo"):
        memory.sessions.rate(ANSWERS[0], "up", author=author)
    export_scores(memory, there.system)
    for row in there.server.rows.values():
        del row.get("feedback_source", row)["metadata"]["store"]
    memory.sessions.delete_feedback(SESSION, ANSWERS[0], author="bo")
    result = export_scores(memory, there.system)
    assert (result.written, result.unchanged, result.deleted) == (0, 1, 0)
    assert there.read() == [(ANSWERS[0], 1.0, None)] * 2


@pytest.mark.parametrize("kind", ["open", "connect", "aopen", "aconnect"])
def test_both_ways_are_awaited_with_a_memory_of_any_kind(kind: str, tmp_path: Path, there: There) -> None:
    async def check(awaited: Memory | AsyncHeedful) -> None:
        there.add(ANSWERS[0], 0, "Wrong.")
        assert (await aimport_scores(awaited, there.system)).stored == 1
        assert (await aexport_scores(awaited, there.system)).written == 1
        there.forget(ANSWERS[0])
        assert (await aimport_scores(awaited, there.system)).retracted == 1

    async def check_async(opening: Coroutine[Any, Any, AsyncHeedful]) -> None:
        async with await opening as awaited:
            await check(awaited)

    path = tmp_path / "store.db"
    with running(path) as server, server.connect() as memory:
        for answer in ANSWERS:
            answered(memory, answer)
        memory.sessions.rate(ANSWERS[1], "up", author="ada")
        if kind == "connect":
            asyncio.run(check(memory))
        elif kind == "aconnect":
            asyncio.run(check_async(heedful.aconnect(server.url, api_key=server.key)))
        elif kind == "aopen":
            asyncio.run(check_async(heedful.aopen(path, embedding=WordEmbedder(), worker=False)))
        else:
            with heedful.open(path, embedding=WordEmbedder(), worker=False) as opened_here:
                asyncio.run(check(opened_here))
        assert there.read() == [(ANSWERS[1], 1.0, None)]
        assert [score for score, _ in rated(memory)] == [None, 5, None]


def test_a_system_that_is_down_is_an_error_of_ours(memory: Memory, there: There) -> None:
    answered(memory, ANSWERS[0])
    there.server.down = True
    with pytest.raises(Unavailable, match="503"):
        import_scores(memory, there.system)


def test_a_key_that_is_refused_is_an_error_of_ours(memory: Memory) -> None:
    with (
        serving(score_servers.langsmith) as server,
        LangSmith("", url=server.url) as system,
        pytest.raises(Forbidden, match="refuses the key"),
    ):
        import_scores(memory, system)
    with Langfuse("http://127.0.0.1:9", "pk", "sk") as nowhere, pytest.raises(Unavailable, match="can't be reached"):
        import_scores(memory, nowhere)


def test_traces_of_phoenix_are_annotated_by_default(memory: Memory) -> None:
    answered(memory, ANSWERS[0])
    with serving(score_servers.phoenix) as server, Phoenix(server.url) as system:
        client = PhoenixClient(base_url=server.url)
        client.traces.add_trace_annotation(
            trace_id=ANSWERS[0], annotation_name="user", annotator_kind="HUMAN", label="negative", sync=True
        )
        assert import_scores(memory, system).stored == 1
        assert rated(memory) == [(2, None)]
        memory.sessions.rate(ANSWERS[0], "up", author="ada")
        assert export_scores(memory, system).written == 1
        assert len(server.rows) == 2


def test_scores_of_answers_that_are_not_here_are_stored_once_they_are(memory: Memory, there: There) -> None:
    for answer in ANSWERS:
        there.add(answer, 1, None)
    answered(memory, ANSWERS[0])
    # Phoenix is only asked for those that are here.
    others = 0 if there.system.name == "phoenix" else 2
    for stored in (1, 0):
        result = import_scores(memory, there.system)
        assert (result.stored, result.unchanged, result.unknown) == (stored, 1 - stored, others)
    # Nothing waits here for an answer of somebody else's.
    answered(memory, ANSWERS[1])
    assert rated(memory) == [(5, None), (None, None)]
    assert import_scores(memory, there.system).stored == 1
    assert rated(memory) == [(5, None), (5, None)]


def test_an_import_leaves_what_others_chose(memory: Memory, there: There) -> None:
    for answer in ANSWERS:
        answered(memory, answer)
    there.add(ANSWERS[0], 1, "Yes.")
    there.add(ANSWERS[1], 0, None)
    there.evaluate(ANSWERS[2], 0)
    system = there.system
    system._names = ["user"]
    assert import_scores(memory, system, author="support").stored == 2
    system._names, system._evaluators = ["judge"], True
    for stored in (1, 0):
        result = import_scores(memory, system)
        assert (result.stored, result.retracted) == (stored, 0)
    assert [score for score, _ in rated(memory)] == [5, 1, 1]
    # What goes there goes here, by whoever reads it.
    there.forget(ANSWERS[1])
    assert import_scores(memory, system).retracted == 1
    system._names, system._evaluators = ["user"], False
    result = import_scores(memory, system, author="support")
    assert (result.unchanged, result.retracted) == (1, 0)
    assert [score for score, _ in rated(memory)] == [5, None, 1]


class TestProjectsOfLangSmith:
    @pytest.mark.parametrize("can_find_runs", [True, False])
    def test_feedback_names_its_project(self, memory: Memory, can_find_runs: bool) -> None:
        answered(memory, ANSWERS[0])
        memory.sessions.rate(ANSWERS[0], "up", author="ada")
        with serving(score_servers.langsmith) as server:
            server.can_find_runs = can_find_runs
            client = LangSmithClient(api_url=server.url, api_key="key", auto_batch_tracing=False)
            with LangSmith("key", url=server.url, project="agents") as system:
                assert export_scores(memory, system).written == 1
            (written,) = client.list_feedback(feedback_key=["heedful"])
            assert str(written.session_id) == PROJECT

    def test_the_project_of_a_run_is_looked_up(self, memory: Memory) -> None:
        answered(memory, ANSWERS[0])
        memory.sessions.rate(ANSWERS[0], "up", author="ada")
        with serving(score_servers.langsmith) as server, LangSmith("key", url=server.url) as system:
            server.can_find_runs = False
            refused = export_scores(memory, system)
            assert refused.written == 0
            assert refused.errors == [f"{ANSWERS[0]}: LangSmith doesn't find this run; if it has it, pass project=…"]
            server.can_find_runs = True
            assert export_scores(memory, system).written == 1
            assert [row["session_id"] for row in server.rows.values()] == [PROJECT]

    def test_a_project_that_is_not_there_is_an_error(self, memory: Memory) -> None:
        answered(memory, ANSWERS[0])
        memory.sessions.rate(ANSWERS[0], "up", author="ada")
        with (
            serving(score_servers.langsmith) as server,
            LangSmith("key", url=server.url, project="agent") as system,
            pytest.raises(NotFound, match="no project 'agent'"),
        ):
            export_scores(memory, system)


def test_words_scales_and_what_cant_be_read(memory: Memory) -> None:
    for answer in ANSWERS:
        answered(memory, f"run/{answer}")
    with serving(score_servers.langsmith) as server:
        client = LangSmithClient(api_url=server.url, api_key="key", auto_batch_tracing=False)
        client.create_feedback(ANSWERS[0], "stars", score=4, session_id=PROJECT)
        client.create_feedback(ANSWERS[1], "user", value="VERY_NEGATIVE", session_id=PROJECT)
        client.create_feedback(ANSWERS[2], "user", value="meh", session_id=PROJECT)
        with LangSmith("key", url=server.url, prefix="run/", scale=(1, 5)) as system:
            result = import_scores(memory, system)
            assert (result.stored, len(result.errors)) == (2, 1)
            assert ANSWERS[2] in result.errors[0]
        assert [score for score, _ in rated(memory)] == [4, 1, None]
        with LangSmith("key", url=server.url, prefix="run/", scale=(1, 5), names=["stars"]) as system:
            result = import_scores(memory, system)
            assert (result.unchanged, result.retracted, result.errors) == (1, 0, [])
    assert UUID(ANSWERS[0])


def test_the_page_says_what_works(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    answered(memory, ANSWERS[0])
    with serving(score_servers.langfuse) as server:
        langfuse(server).add(ANSWERS[0], 1.0, "Right.")
        monkeypatch.setattr(scores, "Langfuse", lambda url, *keys: Langfuse(server.url, *keys))
        given: dict[str, Any] = {"memory": memory}
        run_examples("scores", given)
    assert rated(memory) == [(5, "Right.")]
    assert given["memory"].recall(QUESTION)
    given["provider"].shutdown()
