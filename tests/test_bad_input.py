"""Bad input gets a clear error, and nothing is half done."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from sqlalchemy import event

import heedful
from heedful import Document, Heedful, Invalid, NotFound, Signal, Unavailable
from heedful.model.limits import MAX_KEY, MAX_METADATA, MAX_NAME, MAX_QUERY, MAX_SIGNALS, MAX_TEXT, MAX_TOP_K
from heedful.storage.sqlite import Sqlite
from heedful.testing import WordEmbedder

pytestmark = pytest.mark.usefixtures("warm_processes")

NAN = float("nan")
SURROGATE = "lone \ud800 surrogate"


def content(path: Path) -> str:
    """All rows of a store."""
    connection = sqlite3.connect(path)
    dump = "\n".join(connection.iterdump())
    connection.close()
    return dump


@contextmanager
def unchanged(path: Path) -> Iterator[None]:
    before = content(path)
    yield
    assert content(path) == before


@pytest.fixture
def fact(store: Heedful) -> str:
    return store.remember("a good fact").fact_ids[0]


def good(fact: str, **changes: Any) -> dict[str, Any]:
    return {"fact_id": fact, "signal_type": "used", "query": "q", **changes}


class TestSignals:
    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("query", ""),
            ("query", " \t\n"),
            ("query", None),
            ("query", "x" * (MAX_QUERY + 1)),
            ("query", "a\0b"),
            ("query", SURROGATE),
            ("signal_type", "liked"),
            ("signal_type", ""),
            ("signal_type", None),
            ("confidence", -0.0001),
            ("confidence", 1.0001),
            ("confidence", NAN),
            ("confidence", float("inf")),
            ("confidence", None),
            ("fact_id", ""),
            ("fact_id", None),
            ("fact_id", SURROGATE),
            ("author", SURROGATE),
            ("context", SURROGATE),
            ("idempotency_key", SURROGATE),
            ("at", "soon"),
        ],
    )
    def test_a_bad_field_refuses_the_call_by_name_and_place(
        self, store: Heedful, path: Path, fact: str, field: str, value: Any
    ) -> None:
        with unchanged(path), pytest.raises(Invalid) as caught:
            store.signal([good(fact), good(fact, **{field: value})])
        assert caught.value.field == f"signals[1].{field}"
        assert f"signals[1].{field}" in str(caught.value)

    @pytest.mark.parametrize("field", ["fact_id", "signal_type", "query"])
    def test_a_missing_field_is_named(self, store: Heedful, path: Path, fact: str, field: str) -> None:
        item = good(fact)
        del item[field]
        with unchanged(path), pytest.raises(Invalid, match=rf"signals\[0\]\.{field} is required"):
            store.signal([item])

    @pytest.mark.parametrize("signals", [[None], ["used"], [3], None, 7, "used"])
    def test_what_is_no_signal_is_refused(self, store: Heedful, path: Path, fact: str, signals: Any) -> None:
        with unchanged(path), pytest.raises(Invalid, match="signals"):
            store.signal(signals)

    def test_a_batch_over_the_limit_is_refused_with_the_limit(self, store: Heedful, path: Path, fact: str) -> None:
        one = Signal(**good(fact))
        with unchanged(path), pytest.raises(Invalid, match=str(MAX_SIGNALS)) as caught:
            store.signal([one] * (MAX_SIGNALS + 1))
        assert (caught.value.field, caught.value.value) == ("signals", MAX_SIGNALS + 1)

    def test_an_unknown_fact_among_many_is_refused_alone(self, store: Heedful, fact: str) -> None:
        result = store.signal([good(fact), good("nobody"), good(fact)])
        assert result.processed == 2
        assert [(error.index, error.code) for error in result.errors] == [(1, "not_found")]

    @pytest.mark.parametrize("key", [SURROGATE, 3, b"key"])
    def test_a_key_that_is_no_text_is_refused(self, store: Heedful, path: Path, fact: str, key: Any) -> None:
        with unchanged(path), pytest.raises(Invalid, match="idempotency_key"):
            store.signal([good(fact)], idempotency_key=key)


class TestRecall:
    @pytest.mark.parametrize(
        ("field", "value", "message"),
        [
            ("query", "", "''"),
            ("query", " \n", "blank"),
            ("query", None, "None"),
            ("query", 3, "3"),
            ("query", "x" * (MAX_QUERY + 1), str(MAX_QUERY)),
            ("query", "a\0b", "NUL"),
            ("query", SURROGATE, "Unicode"),
            ("top_k", 0, "1 to"),
            ("top_k", -3, "-3"),
            ("top_k", 1.5, "1.5"),
            ("top_k", True, "True"),
            ("top_k", "3", "'3'"),
            ("top_k", MAX_TOP_K + 1, str(MAX_TOP_K)),
            ("mode", "fuzzy", "hybrid"),
            ("mode", None, "None"),
            ("usefulness_weight", -0.1, "[0, 1]"),
            ("usefulness_weight", 1.1, "[0, 1]"),
            ("usefulness_weight", NAN, "nan"),
            ("usefulness_weight", "0.3", "'0.3'"),
            ("min_usefulness", -0.1, "[0, 1]"),
            ("min_usefulness", 2, "[0, 1]"),
            ("min_usefulness", NAN, "nan"),
            ("dataset", "", "''"),
            ("dataset", None, "None"),
            ("dataset", "x" * (MAX_NAME + 1), str(MAX_NAME)),
            ("dataset", SURROGATE, "dataset"),
        ],
    )
    @pytest.mark.parametrize("boost", [False, True])
    @pytest.mark.nightly
    def test_a_bad_argument_is_named_with_its_value_or_limit(
        self, store: Heedful, path: Path, fact: str, field: str, value: Any, message: str, boost: bool
    ) -> None:
        with unchanged(path), pytest.raises(Invalid) as caught:
            store.recall(**{"query": "q", "boost_by_usefulness": boost, field: value})
        assert caught.value.field == field
        assert field in str(caught.value)
        assert message in str(caught.value)


class TestRemember:
    @pytest.mark.parametrize(
        "texts", ["", "  ", "\n", ["fine", ""], ["fine", " "], ["fine", None], ["fine", 3], None, 3]
    )
    def test_a_blank_text_refuses_the_call(self, store: Heedful, path: Path, texts: Any) -> None:
        with unchanged(path), pytest.raises(Invalid, match="texts"):
            store.remember(texts)

    def test_a_text_over_the_limit_is_refused_with_the_limit(self, store: Heedful, path: Path) -> None:
        with unchanged(path), pytest.raises(Invalid, match=str(MAX_TEXT)) as caught:
            store.remember(["fine", "x" * (MAX_TEXT + 1)])
        assert caught.value.field == "texts[1]"
        assert len(str(caught.value)) < 300

    @pytest.mark.parametrize("text", ["a\0b", SURROGATE])
    def test_a_text_that_can_not_be_stored_is_refused(self, store: Heedful, path: Path, text: str) -> None:
        with unchanged(path), pytest.raises(Invalid, match=r"texts\[1\]"):
            store.remember(["fine", text])

    @pytest.mark.parametrize(
        "metadata",
        [
            {"n": NAN},
            {"n": [1, {"m": float("-inf")}]},
            {"n": object()},
            {"n": {1, 2}},
            {"n": b"bytes"},
            {"n": 2**70},
            {"n": 2**63},
            {"n": -(2**63) - 1},
            {"n": "a\0b"},
            {"n": [{"m": "a\0b"}]},
            {"a\0b": 1},
            {"n": {"a\0b": 1}},
            {"k" * (MAX_KEY + 1): 1},
            {"k" * 150: {"l" * 50: 1}},
            {1: "n"},
            {"n": {2: "m"}},
            {"n": SURROGATE},
            {SURROGATE: 1},
            {"n": "x" * MAX_METADATA},
            "n",
            3,
            [{}],
            [{}, {}, {}],
            [{}, None],
        ],
    )
    def test_metadata_that_json_can_not_hold_is_refused(self, store: Heedful, path: Path, metadata: Any) -> None:
        with unchanged(path), pytest.raises(Invalid, match="metadata"):
            store.remember(["one", "two"], metadata=metadata)

    def test_metadata_without_a_bottom_is_refused(self, store: Heedful, path: Path) -> None:
        deep: dict[str, Any] = {}
        for _ in range(5000):
            deep = {"n": deep}
        with unchanged(path), pytest.raises(Invalid, match="metadata"):
            store.remember("one", metadata=deep)

    def test_a_source_of_a_document_or_file_is_held_to_the_same(self, store: Heedful, tmp_path: Path) -> None:
        with pytest.raises(Invalid, match="source takes 3000 bytes"):
            Document(source="x" * 3_000, texts=["one"])
        (tmp_path / "notes").mkdir()
        (tmp_path / "notes" / "a\x07b.txt").write_text("a file")
        (error,) = store.remember(tmp_path / "notes").errors
        assert "source must not hold the control or invisible character U+0007" in error.message

    @pytest.mark.parametrize("source", ["x" * 2_000, "😀" * 500])
    def test_a_source_at_its_limit_comes_back(self, store: Heedful, source: str) -> None:
        store.remember("one", source=source)
        assert [fact.source for fact in store.facts(source=source).items] == [source]

    @pytest.mark.parametrize(
        "dataset",
        ["", " ", None, 3, "x" * (MAX_NAME + 1), SURROGATE, "a\0b", "a\nb", "a\x1b[31mb", "a\u202eb", "\u200b\ufeff"],
    )
    def test_a_dataset_without_a_name_is_refused(self, store: Heedful, path: Path, dataset: Any) -> None:
        with unchanged(path), pytest.raises(Invalid, match="dataset"):
            store.remember("one", dataset=dataset)

    @pytest.mark.parametrize("source", ["", " ", 3, SURROGATE, "a\0b", "a\x1b[2Jb", "x" * 2_001, "ü" * 1_001])
    def test_a_source_without_a_name_is_refused(self, store: Heedful, path: Path, source: Any) -> None:
        with unchanged(path), pytest.raises(Invalid, match="source"):
            store.remember("one", source=source)


@pytest.mark.parametrize("name", ["nobody", SURROGATE, "", "' OR 1=1 --"])
def test_what_is_not_there_is_not_found_whatever_its_name(store: Heedful, path: Path, fact: str, name: str) -> None:
    verbs: list[Callable[[str], object]] = [
        store.fact_stats,
        store.receipt,
        store.retract,
        store.forget,
        store.signal_recall,
        lambda source: store.forget(source=source),
    ]
    for verb in verbs:
        with unchanged(path), pytest.raises((NotFound, Invalid)):
            verb(name)


class TestStores:
    def test_a_damaged_file_is_left_alone(self, open_store: Callable[..., Heedful], path: Path) -> None:
        for damaged in (
            b"this is a text file, not a store\n" * 200,
            os.urandom(8192),
            b"SQLite format 3\0" + b"\xff" * 9000,
        ):
            path.write_bytes(damaged)
            with pytest.raises(Unavailable, match="damaged") as caught:
                open_store()
            assert caught.value.code == "store_damaged"
            assert str(path) in str(caught.value)
            assert "backup" in str(caught.value)
            assert path.read_bytes() == damaged
            assert [file.name for file in path.parent.iterdir()] == [path.name]

    def test_a_store_that_lost_its_end_is_damaged(self, open_store: Callable[..., Heedful], path: Path) -> None:
        store = open_store()
        store.remember([f"fact {number} {'x' * 900}" for number in range(150)])
        store.close()
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2])
        with pytest.raises(Unavailable, match="damaged"):
            open_store().recall("fact")

    def test_a_missing_folder_is_named(self, open_store: Callable[..., Heedful], tmp_path: Path) -> None:
        with pytest.raises(Unavailable, match=r"folder .*missing does not exist") as caught:
            open_store(tmp_path / "missing" / "store.db")
        assert caught.value.remedy
        assert not (tmp_path / "missing").exists()

    def test_a_path_is_no_project(self) -> None:
        with pytest.raises(Invalid, match=r"an open project, got 'x\.db'. Open a store with heedful\.open\(path\)"):
            Heedful("x.db")  # type: ignore[arg-type]

    def test_a_folder_is_no_store(self, open_store: Callable[..., Heedful], tmp_path: Path) -> None:
        with pytest.raises(Unavailable) as caught:
            open_store(tmp_path)
        assert f"store {tmp_path} is a folder" in caught.value.message
        assert str(caught.value.remedy).startswith("Name a file in it")
        assert list(tmp_path.iterdir()) == []

    def test_a_place_where_nothing_can_be_made_is_named(self, open_store: Callable[..., Heedful]) -> None:
        with pytest.raises(Unavailable, match=r"/proc/store\.db") as caught:
            open_store("/proc/store.db")
        assert caught.value.code == "store_read_only"

    def fill(self, folder: Path) -> None:
        with heedful.open(folder / "store.db", embedding=WordEmbedder()) as store:
            store.remember("x")

    @pytest.mark.parametrize("existing", [False, True])
    @pytest.mark.slow
    def test_a_read_only_folder_is_named_and_left_alone(self, existing: bool) -> None:
        with TemporaryDirectory() as name:
            folder = Path(name)
            if existing:
                self.fill(folder)
                (folder / "store.db").chmod(0o444)
            before = {file.name: file.read_bytes() for file in folder.iterdir()}
            folder.chmod(0o555)
            assert run(folder, "store().remember('y')").startswith("store_read_only")
            assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
            folder.chmod(0o755)

    @pytest.mark.slow
    def test_a_read_only_store_is_named(self) -> None:
        with TemporaryDirectory() as name:
            folder = Path(name)
            self.fill(folder)
            folder.chmod(0o777)
            (folder / "store.db").chmod(0o444)
            before = (folder / "store.db").read_bytes()
            assert run(folder, "store().remember('y')").startswith("store_read_only")
            assert (folder / "store.db").read_bytes() == before

    @pytest.mark.slow
    def test_a_folder_that_may_not_be_read_is_reported_and_the_rest_is_remembered(self) -> None:
        with TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "files" / "closed").mkdir(parents=True)
            (folder / "files" / "good.txt").write_text("a good file")
            (folder / "files" / "closed").chmod(0o000)
            folder.chmod(0o777)
            work = "r = store().remember(pathlib.Path('files')); assert r.added == 1 and len(r.errors) == 1, r"
            outcome = run(folder, work)
            (folder / "files" / "closed").chmod(0o755)
            assert outcome == "done"


class TestFullDisk:
    @contextmanager
    def full(self, store: Heedful) -> Iterator[None]:
        """No connection of the store may add a page to the file."""
        backend = store._workspace.database
        assert isinstance(backend, Sqlite)
        engine = backend.engine
        with store._workspace.database.read() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()

        def limit(connection: sqlite3.Connection, record: Any) -> None:
            connection.execute(f"PRAGMA max_page_count = {pages}")

        # Closes its connections; it opens others when they are needed.
        backend._close()
        event.listen(engine, "connect", limit)
        yield
        event.remove(engine, "connect", limit)
        backend._close()

    @pytest.mark.slow
    def test_it_is_named_and_nothing_is_half_done(self, store: Heedful, path: Path, fact: str) -> None:
        verbs: list[Callable[[], object]] = [
            lambda: store.remember([f"a new fact number {number} " * 30 for number in range(80)]),
            lambda: store.signal([good(fact, query=f"question {number} " * 90) for number in range(100)]),
        ]
        for verb in verbs:
            with unchanged(path), self.full(store):
                with pytest.raises(Unavailable, match="disk is full") as caught:
                    verb()
                assert caught.value.code == "disk_full"
                assert "Free some space" in str(caught.value)
            verb()
        assert all(check.ok and not check.repaired for check in store.doctor())

    @pytest.mark.nightly
    def test_a_limit_on_the_size_of_files_changes_nothing(self, open_store: Callable[..., Heedful], path: Path) -> None:
        open_store().remember("there before")
        limit = path.stat().st_size + 50_000
        outcome = run(
            path.parent, "store().remember(['much more text ' * 60 + str(n) for n in range(600)])", size=limit
        )
        assert outcome.split(":")[0] in ("disk_full", "store_io")
        store = open_store()
        assert store.recall("there before", top_k=1)[0].text == "there before"
        assert all(check.ok for check in store.doctor())


def run(folder: Path, work: str, *, size: int | None = None) -> str:
    """Does some work in a process that may not write everywhere; returns "done" or the error's code and message."""
    script = f"""
import os, pathlib, resource, heedful
from heedful.testing import WordEmbedder
def store(path="store.db"):
    return heedful.open(path, embedding=WordEmbedder())
with store(":memory:") as everything_is_imported_now:
    everything_is_imported_now.remember("x")
    everything_is_imported_now.recall("x")
    "x".encode("utf-8-sig")
if {size is None} and os.geteuid() == 0:
    os.setegid(65534)
    os.seteuid(65534)
if {size is not None}:
    resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))
try:
    {work}
except heedful.HeedfulError as error:
    print(f"{{error.code}}: {{error}}")
else:
    print("done")
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_parameter_that_a_call_does_not_have_is_named_with_those_it_has(store: Heedful) -> None:
    with pytest.raises(
        TypeError, match=r"^recall\(\) got an unexpected keyword argument 'k'\. It takes: query, .*top_k"
    ):
        store.recall("bell", k=3)  # type: ignore[call-arg]
