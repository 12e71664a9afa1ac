"""Files of mem0, cognee, Hindsight and Langfuse, imported: once, however often, with bad lines by number."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result
from foreign_files import FILES, cognee_archive, hindsight_archive
from server import running

import heedful
from heedful import Heedful, Invalid, NotFound
from heedful.interfaces.cli.main import cli
from heedful.providers.configured import embedder_from
from heedful.testing import ManualClock, WordEmbedder
from heedful.transfer import Imported, import_from, verify

Run = Callable[..., Result]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Heedful]:
    with heedful.open(tmp_path / "store.db", embedding=WordEmbedder()) as opened:
        yield opened


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(sys.modules[embedder_from.__module__], "bundled", WordEmbedder)

    def call(*arguments: str) -> Result:
        return CliRunner().invoke(cli, ["--store", str(tmp_path / "store.db"), "import", *arguments])

    return call


def counts(result: Imported) -> tuple[int, ...]:
    assert result.errors == []
    return result.added, result.known, result.signals, result.answers, result.ratings


def test_memories_of_mem0_and_what_was_said_of_them(memory: Heedful) -> None:
    first = import_from(memory, "mem0", FILES / "mem0.json")
    assert counts(first) == (2, 0, 0, 0, 0)
    assert first.skipped == {"expired memories": 1}
    assert counts(import_from(memory, "mem0", FILES / "mem0.json")) == (0, 2, 0, 0, 0)
    hit = memory.recall("Where does Dev work?", top_k=1, where={"user_id": "dev"})[0]
    assert (hit.text, hit.metadata["type"], hit.metadata["categories"]) == (
        "Dev works at TechCorp as a senior engineer.",
        "professional",
        ["work"],
    )
    for _ in range(2):
        assert counts(import_from(memory, "mem0", FILES / "mem0_feedback.jsonl")) == (0, 0, 2, 0, 0)
    stats = memory.usefulness_stats()
    assert (stats.total_facts, stats.total_signals) == (2, 2)
    assert [each.signal_type for each in memory.fact_history(hit.fact_id).points] == ["helpful"]


def test_an_edited_memory_takes_the_place_of_the_old_one(memory: Heedful, tmp_path: Path) -> None:
    file = tmp_path / "mem0.jsonl"
    file.write_bytes(orjson.dumps({"id": "1", "memory": "The gym opens at six."}))
    import_from(memory, "mem0", file)
    file.write_bytes(orjson.dumps({"id": "1", "memory": "The gym opens at seven."}))
    import_from(memory, "mem0", file)
    assert [fact.text for fact in memory.facts().items] == ["The gym opens at seven."]


def test_a_session_of_cognee_with_its_ratings(memory: Heedful) -> None:
    for _ in range(2):
        result = import_from(memory, "cognee", FILES / "support-chat.json")
        assert (result.answers, result.ratings, result.waiting, result.errors) == (2, 2, 0, [])
    good, bad = memory.sessions.entries("support-chat").items
    assert (good.question, good.feedback_score, good.feedback_text) == (
        "When does the gym open?",
        5,
        "Right, and quick.",
    )
    assert (bad.feedback_score, bad.feedback_text) == (1, None)
    assert memory.sessions.feedback_metrics().total == 2


def test_an_archive_of_cognee(memory: Heedful, tmp_path: Path) -> None:
    file = cognee_archive(tmp_path)
    result = import_from(memory, "cognee", file)
    assert counts(result) == (2, 0, 0, 0, 0)
    assert result.skipped == {"records of the kind entity": 1}
    assert {fact.text for fact in memory.facts().items} == {"The gym opens at six.", "The canteen closes at three."}
    assert counts(import_from(memory, "cognee", file)) == (0, 2, 0, 0, 0)


def test_memories_and_signals_of_hindsight(memory: Heedful) -> None:
    assert counts(import_from(memory, "hindsight", FILES / "hindsight_memories.json", dataset="bank")) == (
        2,
        0,
        0,
        0,
        0,
    )
    for _ in range(2):
        result = import_from(memory, "hindsight", FILES / "hindsight_signals.jsonl", dataset="bank")
        assert counts(result) == (0, 0, 2, 0, 0)
    hit = memory.recall("Where does Alice work?", dataset="bank", boost_by_usefulness=True)[0]
    assert (hit.text, hit.metadata["fact_type"]) == ("Alice works at Google on the AI team.", "world")
    assert hit.usefulness == pytest.approx(0.65)


def test_an_archive_of_hindsight(memory: Heedful, tmp_path: Path) -> None:
    file = hindsight_archive(tmp_path)
    for added, known in ((2, 0), (0, 2)):
        result = import_from(memory, "hindsight", file)
        assert (result.added, result.known, result.skipped) == (added, known, {"rows of observations.json": 1})
    assert memory.facts().items[0].metadata["page"] == "4"


def test_traces_and_scores_of_langfuse(memory: Heedful) -> None:
    for _ in range(2):
        traces = import_from(memory, "langfuse", FILES / "langfuse_traces.jsonl")
        assert (traces.answers, traces.skipped) == (2, {"traces without input or output": 1})
        scores = import_from(memory, "langfuse", FILES / "langfuse_scores.jsonl")
        assert (scores.ratings, scores.waiting, scores.skipped) == (2, 0, {"scores of evaluators": 1})
    good, bad = memory.sessions.entries("chat-1").items
    assert (good.question, good.answer, good.feedback_score, good.feedback_text) == (
        "When does the gym open?",
        "At six.",
        5,
        "Right.",
    )
    assert (bad.question, bad.feedback_score, bad.feedback_text) == (
        "When does the canteen close?",
        1,
        "It closes at three.",
    )
    assert memory.sessions.get("chat-1").metadata["release"] == "2026.5"
    assert memory.sessions.feedback_metrics().total == 2
    assert [item.question for item in memory.review.list().items] == ["When does the canteen close?"]


def test_scores_that_come_before_their_traces_wait_for_them(memory: Heedful) -> None:
    assert import_from(memory, "langfuse", FILES / "langfuse_scores.jsonl").waiting == 2
    import_from(memory, "langfuse", FILES / "langfuse_traces.jsonl")
    assert [entry.feedback_score for entry in memory.sessions.entries("chat-1").items] == [5, 1]


def test_enriched_observations_and_a_page_of_the_api(memory: Heedful, tmp_path: Path) -> None:
    file = tmp_path / "page.json"
    root = {"id": "o-1", "traceId": "t-9", "type": "SPAN", "parentObservationId": None, "sessionId": "s"}
    inner = root | {"id": "o-2", "parentObservationId": "o-1"}
    said = {"input": {"question": "Why?"}, "output": {"answer": "Because."}}
    file.write_bytes(orjson.dumps({"data": [root | said, inner | said], "meta": {"page": 1}}))
    result = import_from(memory, "langfuse", file)
    assert (result.answers, result.skipped) == (1, {"observations inside others": 1})
    assert memory.sessions.entries("s").items[0].answer == "Because."


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        ("Because.", "Because."),
        ('{"choices": [{"message": {"role": "assistant", "content": "Because."}}]}', "Because."),
        ([{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Because."}], "Because."),
        ({"content": [{"type": "text", "text": "Because"}, {"type": "text", "text": "so."}]}, "Because so."),
        ({"rows": 3}, '{"rows": 3}'),
        ("{not JSON", "{not JSON"),
    ],
)
def test_answers_of_langfuse_in_the_forms_that_programs_log(
    memory: Heedful, tmp_path: Path, output: object, answer: str
) -> None:
    file = tmp_path / "trace.json"
    file.write_bytes(orjson.dumps({"id": "t", "sessionId": "s", "input": "Why?", "output": output}))
    assert import_from(memory, "langfuse", file).answers == 1
    assert memory.sessions.entries("s").items[0].answer == answer


def test_numbers_of_another_scale(memory: Heedful, tmp_path: Path) -> None:
    import_from(memory, "langfuse", FILES / "langfuse_traces.jsonl")
    file = tmp_path / "scores.jsonl"
    file.write_bytes(orjson.dumps({"id": "s", "trace_id": "trace-1", "name": "stars", "value": 4, "source": "API"}))
    refused = import_from(memory, "langfuse", file)
    assert (refused.ratings, refused.errors[0].line, refused.errors[0].field) == (0, 1, "rating")
    assert import_from(memory, "langfuse", file, scale=(1, 5)).errors == []
    assert memory.sessions.entries("chat-1").items[0].feedback_score == 4


def test_bad_lines_are_named_and_the_others_imported(memory: Heedful, tmp_path: Path) -> None:
    lines = tmp_path / "lines.jsonl"
    lines.write_text(
        '{"id": "1", "memory": "The gym opens at six."}\n'
        "{broken\n"
        '{"id": "2"}\n'
        "\n"
        '{"id": "3", "memory": 7}\n'
        '{"memory_id": "1", "feedback": "MEH"}\n'
        '{"memory_id": "9", "feedback": "POSITIVE"}\n'
        "[1]\n"
    )
    result = import_from(memory, "mem0", lines)
    assert (result.added, result.signals) == (1, 0)
    assert [(each.line, each.field) for each in sorted(result.errors, key=lambda each: each.line)] == [
        (2, None),
        (3, "memory"),
        (5, "memory"),
        (6, "feedback"),
        (7, "fact_id"),
        (8, None),
    ]
    page = tmp_path / "page.json"
    page.write_text('{\n "next": null,\n "results": [\n  {"id": "4", "memory": "a"},\n  {"id": "5"}\n ]\n}')
    assert [(each.line, each.field) for each in import_from(memory, "mem0", page).errors] == [(5, "memory")]
    page.write_text('[\n {"id": "4", "memory": "a"},\n {"id": \n]')
    broken = import_from(memory, "mem0", page)
    assert (broken.known, [each.line for each in broken.errors]) == (1, [4])


def test_a_dry_run_writes_nothing(memory: Heedful) -> None:
    result = import_from(memory, "mem0", FILES / "mem0.json", dry_run=True)
    assert (result.dry_run, result.sources, result.added) == (True, 2, 0)
    assert import_from(memory, "langfuse", FILES / "langfuse_traces.jsonl", dry_run=True).answers == 2
    assert memory.facts().items == []
    assert memory.sessions.list().items == []


def test_what_cant_be_imported_at_all(memory: Heedful, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no file"):
        import_from(memory, "mem0", tmp_path / "nowhere.json")
    with pytest.raises(Invalid, match="unknown system"):
        import_from(memory, "zep", FILES / "mem0.json")  # type: ignore[arg-type]
    (tmp_path / "latin.json").write_bytes(b'{"memory": "caf\xe9"}')
    with pytest.raises(Invalid, match="not UTF-8"):
        import_from(memory, "mem0", tmp_path / "latin.json")


def test_it_is_the_same_over_http(tmp_path: Path) -> None:
    with running(tmp_path / "server.db", clock=ManualClock()) as server, server.connect() as memory:
        for added, known in ((2, 0), (0, 2)):
            assert counts(import_from(memory, "mem0", FILES / "mem0.json"))[:2] == (added, known)
        assert import_from(memory, "langfuse", FILES / "langfuse_traces.jsonl").answers == 2
        assert import_from(memory, "langfuse", FILES / "langfuse_scores.jsonl").waiting == 0
        assert [entry.feedback_score for entry in memory.sessions.entries("chat-1").items] == [5, 1]


def test_the_command(run: Run, tmp_path: Path) -> None:
    dry = run("--from", "mem0", str(FILES / "mem0.json"), "--dry-run")
    assert (dry.exit_code, "nothing was written" in dry.stdout) == (0, True)
    done = run("--from", "mem0", str(FILES / "mem0.json"))
    assert (done.exit_code, "facts: 2 new, 0 known" in done.stdout) == (0, True)
    assert "left out: 1 expired memories" in done.stdout
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"id": "1"}\n{"id": "2", "memory": "The gym opens at six."}\n')
    some = run("--from", "mem0", str(bad))
    assert (some.exit_code, some.stderr.strip()) == (1, "not imported: line 1: has no memory (id 1)")
    again = orjson.loads(run("--from", "mem0", str(bad), "--json").stdout)
    assert (again["known"], again["errors"][0]["field"]) == (1, "memory")
    assert verify(tmp_path / "store.db").ok
