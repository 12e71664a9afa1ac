"""A project travels as lines of JSON, and works on in another store as it did in its own."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
import scenario
from lived import MOVED, QUESTION, Place, dumped

import heedful
from heedful import Conflict, Heedful, Invalid, NotFound, Unavailable, files
from heedful.errors import HeedfulError
from heedful.model.base import Mode
from heedful.providers.embedding import Vectors
from heedful.testing import ManualClock, WordEmbedder
from heedful.transfer import export, export_file, import_file, verify

pytestmark = pytest.mark.usefixtures("warm_processes")

KINDS = ("sqlite", "postgresql")
Line = dict[str, Any]
MODES: list[tuple[Mode, bool]] = [("hybrid", False), ("hybrid", True), ("graph", True)]


class NoEmbedder(WordEmbedder):
    """The same model, but it must not be needed."""

    def embed(self, texts: Any) -> Vectors:
        raise AssertionError(f"{texts} were embedded")


class OtherEmbedder(WordEmbedder):
    name = "other-words-for-tests"


def opened(url: str | Path, project: str, **options: Any) -> Heedful:
    return heedful.open(url, project=project, clock=ManualClock(), **{"embedding": WordEmbedder(), **options})


def exported(store: str | Path, project: str, **options: Any) -> list[Line]:
    out = io.BytesIO()
    export(store, out.write, project=project, **options)
    return [orjson.loads(line) for line in out.getvalue().splitlines()]


def packed(lines: list[Line]) -> io.BytesIO:
    return io.BytesIO(b"".join(orjson.dumps(line) + b"\n" for line in lines))


def without_time(lines: list[Line]) -> list[Line]:
    return [{name: value for name, value in line.items() if name not in ("exported_at", "project")} for line in lines]


def entries(store: Heedful) -> list[Any]:
    """What was answered, and from what; links have numbers, which differ."""
    found = store.sessions.entries("tour").items
    return [
        each.model_dump(exclude={"used"})
        | {"used": [(used.fact_id, used.share, len(used.links)) for used in each.used]}
        for each in found
        if each.used is not None
    ]


@pytest.fixture
def other(lived: Path, tmp_path: Path) -> Path:
    """The file of the project `other`."""
    export_file(lived, tmp_path / "other.jsonl", project="other")
    return tmp_path / "other.jsonl"


@pytest.mark.parametrize("project", ["default", "other"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.nightly
def test_what_was_imported_exports_the_same_lines(lived: Path, place: Place, kind: str, project: str) -> None:
    lines = exported(lived, project)
    target = place(kind)
    made = import_file(target, packed(lines), embedding=NoEmbedder())
    again = exported(target, project)
    assert without_time(again) == without_time(lines)
    assert verify(target).projects == verify(lived, project=project).projects
    assert verify(target).ok
    assert (made.project, made.embedded) == (project, 0)
    assert made.counts["fact"] > 0
    assert made.ledger_checksum == lines[-1]["ledger_checksum"]


@pytest.mark.slow
def test_every_type_of_line_is_there(lived: Path) -> None:
    counts = dict.fromkeys(exported(lived, "default")[0]["counts"], 0)
    for project in ("default", "other"):
        for line in exported(lived, project)[1:-1]:
            counts[line["type"]] += 1
    assert all(counts.values()), counts


def test_no_numbers_and_no_keys_travel(lived: Path) -> None:
    lines = exported(lived, "default")
    names = {name for line in lines for name in line}
    assert not names & {"seq", "dataset_id", "query_id", "session_seq", "fact_seq", "project_id", "model_id"}
    assert b"scopes" not in packed(lines).getvalue()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.nightly
def test_an_imported_project_behaves_as_its_source(lived: Path, other: Path, place: Place, kind: str) -> None:
    target = place(kind)
    with opened(target, "first") as store:
        # So that no number can be the same.
        store.remember(["Charles Babbage is here, too.", "Ada Lovelace as well."])
        store.recall("Who?")
    import_file(target, other, project="moved", embedding=WordEmbedder())
    with opened(lived, "other") as source, opened(target, "moved") as moved:
        for question in (QUESTION, MOVED, "What was never built?"):
            for mode, boost in MODES:
                before, after = (
                    each.recall(question, mode=mode, boost_by_usefulness=boost, explain=True)
                    for each in (source, moved)
                )
                assert after.hits == before.hits
        fact = source.recall(QUESTION, boost_by_usefulness=True)[0].fact_id
        assert moved.fact_stats(fact) == source.fact_stats(fact)
        assert moved.usefulness_stats() == source.usefulness_stats()
        assert moved.sessions.get("tour") == source.sessions.get("tour")
        assert entries(moved) == entries(source)
        assert moved.insight.satisfaction(by="variant") == source.insight.satisfaction(by="variant")
        # What improve has derived stays derived: it finds its signals by their keys, also those about links.
        assert moved.improve().signals_added == source.improve().signals_added == 0
        entry = source.sessions.entries("tour").items[0]
        for store in (source, moved):
            assert store.sessions.add_feedback("tour", entry.qa_id, None, 1, author="Ida")
            store.improve()
        assert moved.fact_stats(fact) == source.fact_stats(fact)
        assert moved.usefulness_stats() == source.usefulness_stats()
        assert all(check.ok for check in moved.doctor(repair=False))
    assert verify(target).ok
    with opened(target, "first") as store:
        assert store.usefulness_stats().total_facts == 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.nightly
def test_executions_and_their_cache_travel(lived: Path, place: Place, kind: str) -> None:
    target = place(kind)
    import_file(target, packed(exported(lived, "default")), embedding=WordEmbedder())
    with (
        opened(lived, "default", language_model=scenario.model()) as source,
        opened(target, "default", language_model=scenario.model()) as moved,
    ):
        confirmed = [moved.connectors.confirm(each.name) for each in moved.connectors.list()]
        same = {"schema_at": None}
        assert [each.model_copy(update=same) for each in confirmed] == [
            each.model_copy(update=same) for each in source.connectors.list()
        ]
        assert moved.golden_examples.list() == source.golden_examples.list()
        assert moved.feedback.list() == source.feedback.list()
        assert moved.executions.list() == source.executions.list()
        assert moved.keys.list() == []
        asked = {each.question for each in source.executions.list().items if each.question}
        for question in sorted(asked):
            assert looked_up(moved, question) == looked_up(source, question)


def looked_up(store: Heedful, question: str) -> Any:
    """What the cache says, but for the ids of what it ran again and how long that took."""
    found = store.chat.execution_cache_lookup(question, connector_id="geo").model_dump(exclude={"execution_time_ms"})
    for match in found["matches"]:
        for name in ("execution_id", "execution_time_ms"):
            match["execution"].pop(name, None)
    return found


@pytest.mark.slow
def test_without_vectors_facts_are_embedded_again(lived: Path, place: Place) -> None:
    target = place("sqlite")
    lines = exported(lived, "other", vectors=False)
    assert not any("vector" in line for line in lines)
    made = import_file(target, packed(lines), embedding=WordEmbedder())
    assert made.embedded == made.counts["fact"] > 0
    with opened(lived, "other") as source, opened(target, "other") as moved:
        assert [hit.score for hit in moved.recall(QUESTION)] == [hit.score for hit in source.recall(QUESTION)]


def test_facts_of_another_model_are_embedded_with_that_of_the_store(other: Path, place: Place) -> None:
    target = place("sqlite")
    made = import_file(target, other, embedding=OtherEmbedder())
    assert made.embedded == made.counts["fact"]
    with opened(target, "other", embedding=OtherEmbedder()) as moved:
        assert moved.recall(QUESTION, boost_by_usefulness=True).hits
        assert all(check.ok for check in moved.doctor(repair=False))


def test_a_store_of_another_model_is_not_mixed(other: Path, place: Place) -> None:
    target = place("sqlite")
    with opened(target, "mine") as store:
        store.remember("Mine.")
    with pytest.raises(Conflict, match="were made by") as refused:
        import_file(target, other, embedding=OtherEmbedder())
    assert refused.value.code == "other_model"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_a_project_with_something_in_it_is_left_alone(other: Path, place: Place, kind: str) -> None:
    target = place(kind)
    with opened(target, "other") as store:
        store.sessions.create("mine")
    with pytest.raises(Conflict, match="is not empty") as refused:
        import_file(target, other, embedding=WordEmbedder())
    assert refused.value.code == "project_not_empty"
    with opened(target, "other") as store:
        assert store.datasets() == []


@pytest.mark.slow
def test_a_project_that_has_only_keys_is_empty(other: Path, place: Place) -> None:
    target = place("sqlite")
    with opened(target, "other") as store:
        store.keys.create("website")
    import_file(target, other, embedding=WordEmbedder())
    with opened(target, "other") as store:
        assert [key.name for key in store.keys.list()] == ["website"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.nightly
def test_ids_that_the_store_has_are_refused(other: Path, place: Place, kind: str) -> None:
    target = place(kind)
    import_file(target, other, embedding=WordEmbedder())
    with pytest.raises(Conflict, match=r"has the fact \S+ of line \d+ already") as refused:
        import_file(target, other, project="again", embedding=WordEmbedder())
    assert refused.value.code == "id_taken"
    assert [each.project for each in verify(target).projects] == ["other"]


def _cut(lines: list[Line]) -> list[Line]:
    return lines[:-1]


def _half(lines: list[Line]) -> list[Line]:
    return lines[: len(lines) // 2]


def _less(lines: list[Line]) -> list[Line]:
    return [line for line in lines if line["type"] != "note"]


def _more(lines: list[Line]) -> list[Line]:
    return [*lines, lines[1]]


def _first(kind: str, **changes: Any) -> Callable[[list[Line]], list[Line]]:
    """Changes the first line of a kind; None takes a field away."""

    def changed(lines: list[Line]) -> list[Line]:
        place = next(at for at, line in enumerate(lines) if line["type"] == kind)
        line = {name: value for name, value in (lines[place] | changes).items() if value is not None}
        return [*lines[:place], line, *lines[place + 1 :]]

    return changed


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_cut, "cut off"),
        (_half, "cut off"),
        (_less, "counts or checksums that don't match"),
        (_more, "after the end"),
        (lambda lines: lines[1:], "line 1 is not the beginning"),
        (_first("event", value="not_helpful", confidence=0.7), "counts or checksums that don't match"),
        (_first("event", author=""), r"line \d+ has the author ''"),
        (_first("event", author=" ann", author_kind="named"), r"line \d+ has the author ' ann'"),
        (_first("event", author="Visitor-7", author_kind="named"), r"line \d+ has the author 'Visitor-7'"),
        (_first("event", author="visitor-7", author_kind="named"), r"'visitor-7' of the kind 'named'"),
        (_first("event", author_kind="verified"), r"of the kind 'verified'"),
        (_first("heedful", format=99), "has the format 99"),
        (_first("heedful", model={"name": 5}), "line 1 names the model"),
        (_first("fact", text=None), r"line \d+ has no text"),
        (_first("fact", text=5), r"line \d+ has text 5"),
        (_first("fact", text="a\0b"), r"line \d+ can't be stored: text must not hold a NUL"),
        (_first("fact", colour="red"), r"line \d+ has a field 'colour'"),
        (_first("fact", vector="AAAA"), r"line \d+ has a vector"),
        (_first("fact", dataset="elsewhere"), "."),
        (_first("fact", metadata=[1]), r"line \d+ has a malformed metadata"),
        (_first("fact", created_at=2**63), r"line \d+ has created_at"),
        (_first("fact", type="dragon"), r"line \d+ has the unknown type 'dragon'"),
        (_first("query", digest="zz"), r"line \d+ has digest"),
        (_first("receipt", shown=[5]), r"line \d+ has malformed links"),
        (_first("receipt", query="00ff"), r"line \d+ names the query"),
        (_first("entry", session="nobody's"), r"line \d+ names the session"),
        (_first("note", fact="nobody's"), r"line \d+ names the fact"),
    ],
)
@pytest.mark.nightly
def test_a_damaged_file_is_refused_and_nothing_is_imported(
    lived: Path, place: Place, damage: Callable[[list[Line]], list[Line]], message: str
) -> None:
    target = place("sqlite")
    lines = exported(lived, "other")
    with pytest.raises(Invalid, match=message):
        import_file(target, packed(damage(lines)), embedding=WordEmbedder())
    assert not Path(target).exists() or verify(target).projects == []


def test_a_line_that_is_no_json_is_named(other: Path, place: Place) -> None:
    content = other.read_bytes().splitlines(keepends=True)
    content[7] = content[7][:40] + b"\n"
    with pytest.raises(Invalid, match="line 8 is not JSON") as refused:
        import_file(place("sqlite"), io.BytesIO(b"".join(content)), embedding=WordEmbedder())
    assert (refused.value.code, refused.value.value) == ("file_damaged", 8)


@pytest.mark.slow
def test_an_import_that_is_killed_leaves_nothing(other: Path, place: Place) -> None:
    target = place("sqlite")
    program = (
        "import os, signal, sys\n"
        "from heedful.transfer import import_file\n"
        "from heedful.testing import WordEmbedder\n"
        "die = lambda done, total: done >= total and os.kill(os.getpid(), signal.SIGKILL)\n"
        "import_file(sys.argv[1], sys.argv[2], embedding=WordEmbedder(), progress=die)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, target, str(other)], capture_output=True, check=False)
    assert killed.returncode == -9, killed.stderr.decode()
    assert verify(target).projects == []
    import_file(target, other, embedding=WordEmbedder())
    assert verify(target).ok


def test_a_file_is_replaced_only_when_asked(lived: Path, other: Path) -> None:
    before = other.read_bytes()
    with pytest.raises(Conflict, match="already exists"):
        export_file(lived, other, project="default")
    assert other.read_bytes() == before
    export_file(lived, other, project="default", force=True)
    assert b'"project":"default"' in other.read_bytes()


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_the_store_itself_is_never_replaced(lived: Path, suffix: str) -> None:
    before = dumped(lived)
    with pytest.raises(Invalid, match="the store itself") as refused:
        export_file(lived, f"{lived}{suffix}", project="other", force=True)
    assert (refused.value.field, refused.value.value) == ("file", f"{lived}{suffix}")
    (lived.parent / "link").symlink_to(lived)
    with pytest.raises(Invalid, match="the store itself"):
        export_file(f"sqlite:///{lived}", lived.parent / "link", project="other", force=True)
    assert dumped(lived) == before


def test_what_is_no_file_is_not_replaced(lived: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in (tmp_path / "pipe", tmp_path, Path("/dev/null")):
        with pytest.raises(Invalid, match="not a file"):
            export_file(lived, name, project="other", force=True)
    assert (tmp_path / "pipe").is_fifo()


def test_bad_names_are_refused(lived: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="has no project 'nobody'"):
        export(lived, lambda line: None, project="nobody")
    with pytest.raises(NotFound, match="there is no store"):
        export(tmp_path / "missing.db", lambda line: None, project="default")
    with pytest.raises(NotFound, match="there is no file"):
        import_file(tmp_path / "new.db", tmp_path / "missing.jsonl")
    with pytest.raises(Unavailable, match="can't be written"):
        export_file(lived, tmp_path / "no" / "folder.jsonl", project="other")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lived.db"]


def test_a_full_disk_is_told_and_leaves_no_file(lived: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A device that has no room, in the place of the file that is written first.
    monkeypatch.setattr(files, "create", lambda path: Path("/dev/full").open("wb"))  # noqa: SIM115
    with pytest.raises(HeedfulError) as refused:
        export_file(lived, tmp_path / "out.jsonl", project="other")
    assert refused.value.code == "disk_full"
    assert not (tmp_path / "out.jsonl").exists()
