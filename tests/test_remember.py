from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from heedful import Heedful, Invalid, NotFound, Unavailable
from heedful.providers.embedding import Vectors
from heedful.testing import WordEmbedder


def texts_of(store: Heedful, dataset: str = "main_dataset") -> set[str]:
    """All texts of a small dataset."""
    return {hit.text for hit in store.recall("anything", dataset=dataset, mode="semantic", top_k=1000)}


def test_a_text_becomes_a_fact(store: Heedful) -> None:
    result = store.remember("Anna leads the company.")
    assert (result.added, result.known, result.removed, result.errors) == (1, 0, 0, [])
    assert [(fact.text, fact.new) for fact in result.facts] == [("Anna leads the company.", True)]
    hit = store.recall("company")[0]
    assert (hit.fact_id, hit.text, hit.metadata, hit.source) == (
        result.fact_ids[0],
        "Anna leads the company.",
        {},
        None,
    )


def test_many_texts_become_facts_in_order(store: Heedful) -> None:
    texts = [f"fact number {number}" for number in range(5)]
    result = store.remember(texts)
    assert [fact.text for fact in result.facts] == texts
    assert len(set(result.fact_ids)) == 5
    assert texts_of(store) == set(texts)


def test_no_texts_are_no_facts(store: Heedful) -> None:
    assert store.remember([]).facts == []
    assert store.datasets() == []


def test_what_is_there_already_is_recognised(store: Heedful) -> None:
    first = store.remember(["one thing", "another thing"])
    again = store.remember(["another thing", "a third thing"])
    assert (again.added, again.known) == (1, 1)
    assert again.fact_ids[0] == first.fact_ids[1]
    assert [fact.new for fact in again.facts] == [False, True]
    assert store.usefulness_stats().total_facts == 3


def test_the_same_text_twice_in_one_call_is_one_fact(store: Heedful) -> None:
    result = store.remember(["twin", "twin"])
    assert (result.added, result.known) == (1, 1)
    assert result.fact_ids[0] == result.fact_ids[1]


def test_the_same_text_from_another_source_or_with_other_metadata_is_another_fact(store: Heedful) -> None:
    store.remember("said here")
    assert store.remember("said here", source="a").added == 1
    assert store.remember("said here", source="b").added == 1
    assert store.remember("said here", metadata={"lang": "en"}).added == 1
    assert store.remember("said here", metadata={"lang": "en"}).known == 1
    assert store.usefulness_stats().total_facts == 4


def test_a_signal_survives_remembering_again(store: Heedful) -> None:
    fact = store.remember("kept").fact_ids[0]
    store.signal([{"fact_id": fact, "signal_type": "used", "query": "q"}])
    store.remember("kept")
    assert store.fact_stats(fact).signal_count == 1


def test_metadata_and_source_come_back(store: Heedful) -> None:
    about = {"lang": "en", "year": 2024, "ratio": 0.5, "tags": ["a", "b"], "deep": {"er": None, "ok": True}}
    store.remember("a fact with details", metadata=about, source="handbook")
    hit = store.recall("details")[0]
    assert hit.metadata == about
    assert hit.source == "handbook"


def test_each_text_may_have_its_own_metadata(store: Heedful) -> None:
    store.remember(["first", "second"], metadata=[{"n": 1}, {"n": 2}])
    assert {hit.text: hit.metadata["n"] for hit in store.recall("first second")} == {"first": 1, "second": 2}


def test_a_long_text_is_split_and_each_piece_knows_its_position(store: Heedful) -> None:
    text = "# Start\n" + " ".join(f"Sentence number {number} stands here." for number in range(200))
    result = store.remember(text, source="book")
    assert len(result.facts) > 1
    for hit in store.recall("sentence number", top_k=1000):
        assert hit.position is not None
        start, stop = hit.position
        assert text[start:stop] == hit.text


def test_the_facts_beside_a_match_are_lifted(store: Heedful) -> None:
    store.remember(["What colour is the bicycle?", "Crimson, mostly."], source="chat")
    store.remember("Crimson, mostly!")
    hits = {(hit.text, hit.source): hit for hit in store.recall("bicycle colour")}
    assert hits["Crimson, mostly.", "chat"].relevance > hits["Crimson, mostly!", None].relevance


def test_datasets_are_made_when_they_are_first_written_to(store: Heedful) -> None:
    store.remember("one", dataset="first")
    store.remember("two", dataset="second")
    assert store.datasets() == ["first", "second"]
    assert texts_of(store, "first") == {"one"}


def test_progress_is_told(store: Heedful) -> None:
    messages: list[tuple[int, int]] = []
    store.remember(
        [f"fact {number}" for number in range(600)], progress=lambda done, total: messages.append((done, total))
    )
    assert len(messages) > 1
    assert messages[-1] == (600, 600)
    assert [done for done, _ in messages] == sorted(done for done, _ in messages)
    assert {total for _, total in messages} == {600}


class Failing(WordEmbedder):
    """Fails at texts that hold a certain word."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        if any("poison" in text for text in texts):
            raise Unavailable("the model is gone")
        return super().embed(texts)


def test_a_document_is_stored_whole_or_not_at_all(open_store: Callable[..., Heedful]) -> None:
    store = open_store(embedding=Failing())
    text = " ".join(f"Sentence number {number} stands here." for number in range(200)) + " poison"
    with pytest.raises(Unavailable):
        store.remember(text)
    assert store.datasets() == []
    assert len(store.recall("sentence")) == 0


class TestFiles:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        made = tmp_path / "library"
        (made / "inner").mkdir(parents=True)
        (made / "notes.txt").write_text("A note in a text file.")
        (made / "page.md").write_text("# Heading\nA page in Markdown.")
        (made / "inner" / "lines.jsonl").write_text(
            '{"text": "A line with its own metadata.", "metadata": {"n": 1}}\n\n{"text": "Another line.", "n": 2}\n'
        )
        (made / "inner" / "table.csv").write_text(
            'text,lang,empty\n"A row, with a comma.",en,\n,de,\nSecond row.,fr,x\n'
        )
        (made / ".hidden.txt").write_text("Nobody sees this.")
        return made

    def test_a_folder_is_remembered_with_all_in_it(self, store: Heedful, folder: Path) -> None:
        result = store.remember(folder)
        assert result.errors == []
        assert [fact.text for fact in result.facts] == [
            "A line with its own metadata.",
            "Another line.",
            "A row, with a comma.",
            "Second row.",
            "A note in a text file.",
            "# Heading\nA page in Markdown.",
        ]

    def test_records_carry_their_metadata_and_files_their_path(self, store: Heedful, folder: Path) -> None:
        store.remember(folder, metadata={"by": "me"})
        hits = {hit.text: hit for hit in store.recall("line row note page", top_k=20)}
        assert hits["A line with its own metadata."].metadata == {"by": "me", "n": 1}
        assert hits["Another line."].metadata == {"by": "me", "n": 2}
        assert hits["A row, with a comma."].metadata == {"by": "me", "lang": "en"}
        assert hits["A note in a text file."].source == (folder / "notes.txt").as_posix()

    def test_files_and_texts_may_be_mixed(self, store: Heedful, folder: Path) -> None:
        result = store.remember([folder / "notes.txt", "a plain text"])
        assert [fact.text for fact in result.facts] == ["A note in a text file.", "a plain text"]

    def test_the_position_is_that_in_the_file(self, store: Heedful, tmp_path: Path) -> None:
        file = tmp_path / "long.md"
        file.write_text("\n".join(f"Line {number} says something.\r\n" for number in range(150)), newline="")
        store.remember(file)
        content = file.read_bytes().decode()
        for hit in store.recall("line", top_k=100):
            assert hit.position is not None
            assert content[slice(*hit.position)] == hit.text

    def test_a_byte_order_mark_is_not_part_of_the_text(self, store: Heedful, tmp_path: Path) -> None:
        (tmp_path / "bom.txt").write_bytes(b"\xef\xbb\xbfHello there.")
        assert [fact.text for fact in store.remember(tmp_path / "bom.txt").facts] == ["Hello there."]

    def test_a_file_replaces_what_it_said_before(self, store: Heedful, tmp_path: Path) -> None:
        file = tmp_path / "facts.jsonl"
        file.write_text('{"text": "stays"}\n{"text": "goes"}\n')
        first = store.remember(file)
        stays = first.fact_ids[0]
        store.signal([{"fact_id": stays, "signal_type": "used", "query": "q"}])
        file.write_text('{"text": "comes"}\n{"text": "stays"}\n')
        second = store.remember(file)
        assert (second.added, second.known, second.removed) == (1, 1, 1)
        assert second.fact_ids[1] == stays
        assert store.fact_stats(stays).signal_count == 1
        assert texts_of(store) == {"stays", "comes"}

    def test_an_unchanged_file_changes_nothing(self, store: Heedful, folder: Path) -> None:
        store.remember(folder)
        again = store.remember(folder)
        assert (again.added, again.removed, again.known) == (0, 0, 6)

    def test_a_line_separator_inside_a_record_is_part_of_it(self, store: Heedful, tmp_path: Path) -> None:
        file = tmp_path / "lines.jsonl"
        text = "one\u2028two\u0085three\x0bfour"
        file.write_text(json.dumps({"text": text}, ensure_ascii=False) + "\n", encoding="utf-8")
        result = store.remember(file)
        assert result.errors == []
        assert [fact.text for fact in result.facts] == [text]

    def test_a_pdf_is_read(self, store: Heedful, tmp_path: Path) -> None:
        file = tmp_path / "paper.pdf"
        file.write_bytes(a_pdf("Hello from a paper"))
        result = store.remember(file)
        assert result.errors == []
        assert [fact.text for fact in result.facts] == ["Hello from a paper"]

    def test_what_no_store_holds_is_marked_in_the_text_of_a_pdf(self, store: Heedful, tmp_path: Path) -> None:
        (tmp_path / "paper.pdf").write_bytes(a_pdf(r"The of\000ce opens at eight"))
        (fact,) = store.remember(tmp_path / "paper.pdf").facts
        assert fact.text == "The of\N{REPLACEMENT CHARACTER}ce opens at eight"

    def test_a_pdf_without_the_extra_says_what_to_install(
        self, store: Heedful, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "paper.pdf").write_bytes(a_pdf("Hello"))
        monkeypatch.setitem(__import__("sys").modules, "pypdf", None)
        (error,) = store.remember(tmp_path / "paper.pdf").errors
        assert error.code == "extra_missing"
        assert 'pip install "heedful[pdf]"' in error.message

    @pytest.mark.parametrize(
        ("name", "content", "code"),
        [
            ("binary.txt", bytes(range(256)), "undecodable"),
            ("nul.md", b"text\0more", "undecodable"),
            ("latin.txt", "Grüße".encode("latin-1"), "undecodable"),
            ("empty.txt", b"", "invalid"),
            ("blank.md", b" \n ", "invalid"),
            ("broken.jsonl", b'{"text": "fine"}\n{"text": ', "invalid"),
            ("textless.jsonl", b'{"title": "x"}', "invalid"),
            ("list.jsonl", b'["x"]', "invalid"),
            ("nan.jsonl", b'{"text": "x", "metadata": {"n": NaN}}', "invalid"),
            ("columns.csv", b"title,body\na,b\n", "invalid"),
            ("huge.csv", b'text\n"' + b"word " * 40_000 + b'"\n', None),
            ("picture.png", b"\x89PNG", "unsupported"),
            ("noise.pdf", b"\x00\x01\x02", "undecodable"),
            ("cut.pdf", b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog", "undecodable"),
        ],
    )
    def test_a_file_that_can_not_be_read_is_reported_and_the_rest_is_remembered(
        self, store: Heedful, tmp_path: Path, name: str, content: bytes, code: str | None
    ) -> None:
        folder = tmp_path / "many"
        folder.mkdir()
        (folder / "a.txt").write_text("The first good file.")
        (folder / name).write_bytes(content)
        (folder / "z.txt").write_text("The last good file.")
        result = store.remember(folder)
        found = {fact.text for fact in result.facts}
        assert {"The first good file.", "The last good file."} <= found
        if code is None:
            assert result.errors == []
            return
        (error,) = result.errors
        assert (error.source, error.code) == ((folder / name).as_posix(), code)
        assert error.message
        assert len(found) == 2

    def test_a_file_with_a_name_that_is_no_unicode_is_reported(self, store: Heedful, tmp_path: Path) -> None:
        folder = tmp_path / "many"
        folder.mkdir()
        (folder / "good.txt").write_text("A good file.")
        with open(os.fsencode(folder) + b"/caf\xe9.txt", "w") as file:
            file.write("A file with a strange name.")
        result = store.remember(folder)
        assert "A good file." in {fact.text for fact in result.facts}
        assert len(result.facts) + len(result.errors) == 2

    def test_a_folder_that_holds_itself_is_read_once(self, store: Heedful, folder: Path) -> None:
        (folder / "inner" / "again").symlink_to(folder)
        assert store.remember(folder).added == 6

    def test_a_file_that_is_not_there_is_reported(self, store: Heedful, tmp_path: Path) -> None:
        (error,) = store.remember([tmp_path / "gone.txt", "A bell costs 9 euros."]).errors
        assert error.source == (tmp_path / "gone.txt").as_posix()

    def test_a_broken_file_keeps_what_it_said_before(self, store: Heedful, tmp_path: Path) -> None:
        file = tmp_path / "facts.txt"
        file.write_text("What it said.")
        store.remember(file)
        file.write_bytes(b"\xff\xfe\x00")
        assert len(store.remember(file).errors) == 1
        assert texts_of(store) == {"What it said."}

    def test_a_source_can_not_be_given_to_a_file(self, store: Heedful, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_text("x")
        with pytest.raises(Invalid, match="source"):
            store.remember(tmp_path / "a.txt", source="elsewhere")
        assert store.datasets() == []


def a_pdf(text: str) -> bytes:
    """The smallest file that a PDF reader accepts, with one line of text."""
    stream = f"BT /F1 24 Tf 72 720 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
    ]
    content, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(content))
        content += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    start = len(content)
    content += b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, table)
    return content + b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, start)


@pytest.mark.parametrize("names", [["gone.txt"], ["gone.txt", "left/"]])
def test_files_none_of_which_exists_are_an_error(store: Heedful, tmp_path: Path, names: list[str]) -> None:
    missing = [tmp_path / name for name in names]
    for given in (missing, missing[0]):
        with pytest.raises(NotFound, match="no such file: ") as error:
            store.remember(given)
        assert str(missing[0]) in error.value.message
    assert store.remember([*missing, "A bell costs 9 euros."]).added == 1
