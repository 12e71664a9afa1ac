"""The review queue moves with its project: as lines of an export, in a copy and in a backup."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import orjson
import pytest
from lived import Place
from queues import NEVER_MIND, WRONG, Done, fill, listed, told, without_ids

import heedful
from heedful import Conflict, Heedful, Invalid
from heedful.testing import ManualClock, WordEmbedder
from heedful.transfer import backup, copy, export, import_file, verify

pytestmark = pytest.mark.slow

Line = dict[str, Any]
Open = Callable[..., Heedful]
OF_REVIEW = {"review_item": 4, "review_member": 7, "review_note": 4}


class OtherEmbedder(WordEmbedder):
    name = "other-words-for-tests"


@pytest.fixture
def opened(clock: ManualClock) -> Iterator[Open]:
    """Opens stores by their addresses, which are closed at the end."""
    with ExitStack() as stack:

        def opening(where: str | Path, project: str = "port", **options: Any) -> Heedful:
            chosen = {"clock": clock, "embedding": WordEmbedder(), **options}
            return stack.enter_context(heedful.open(where, project=project, **chosen))

        yield opening


@pytest.fixture
def source(opened: Open, path: Path) -> Heedful:
    return opened(path)


@pytest.fixture
def done(source: Heedful) -> Done:
    return fill(source)


def exported(store: str | Path, **options: Any) -> list[Line]:
    out = io.BytesIO()
    export(store, out.write, project="port", **options)
    return [orjson.loads(line) for line in out.getvalue().splitlines()]


def packed(lines: list[Line]) -> io.BytesIO:
    return io.BytesIO(b"".join(orjson.dumps(line) + b"\n" for line in lines))


def ways(path: Path) -> dict[str, Callable[[str], Any]]:
    return {
        "export": lambda target: import_file(target, packed(exported(path)), embedding=WordEmbedder()),
        "copy": lambda target: copy(path, target),
        "backup": lambda target: backup(path, target),
    }


def test_the_queue_has_all_that_can_travel(source: Heedful, done: Done) -> None:
    assert sorted(item.status for item in listed(source)) == ["dismissed", "open", "open", "resolved"]
    wrong = next(case for case in told(source) if case.item.assignee == "eva")
    assert [(each.action, each.note, each.undone) for each in wrong.history] == [
        ("assign", None, False),
        ("supersede", "Tried.", True),
        ("retract", "Of another ferry.", False),
    ]


@pytest.mark.parametrize(
    ("way", "kind"),
    [(way, kind) for way in ("export", "copy") for kind in ("sqlite", "postgresql")] + [("backup", "sqlite")],
)
@pytest.mark.nightly
def test_the_queue_is_the_same_and_goes_on_where_it_was(
    source: Heedful, done: Done, opened: Open, place: Place, path: Path, way: str, kind: str
) -> None:
    target = place(kind)
    if way == "export":
        with opened(target, "first") as first:
            # So that no number can be the same.
            fill(first)
    before = told(source)
    ways(path)[way](target)
    moved = opened(target)
    assert told(moved) == before
    assert all(check.ok for check in moved.doctor(repair=False))
    for event_id in (done.retracted, done.superseded):
        for store in (source, moved):
            assert store.review.undo(event_id, author="rev").undone
        assert without_ids(told(moved)) == without_ids(told(source))
    wrong = next(item for item in listed(moved) if item.assignee == "eva")
    assert (wrong.status, wrong.assignee, wrong.opinions) == ("open", "eva", 2)
    assert moved.recall("Where is the ferry ticket office?")[0].text == "The ferry ticket office is on the quay."
    assert verify(target, project="port").ok


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.nightly
def test_what_is_said_in_the_new_place_joins_the_items_that_came(
    source: Heedful, done: Done, opened: Open, place: Place, path: Path, kind: str
) -> None:
    target = place(kind)
    ways(path)["export"](target)
    moved = opened(target)
    for question in (WRONG, "When does the ferry to Cacilhas leave please?", NEVER_MIND):
        result = moved.recall(question, session_id="later")
        assert result.qa_id is not None
        moved.sessions.add_feedback("later", result.qa_id, None, 1, author="ann")
    more = {WRONG: 2, NEVER_MIND: 1}
    assert {item.item_id: (item.status, item.opinions) for item in listed(moved)} == {
        item.item_id: (item.status, item.opinions + (item.target_type == "entry") * more.get(str(item.question), 0))
        for item in listed(source)
    }


def test_what_nobody_has_looked_at_yet_becomes_an_item_in_the_new_place(
    source: Heedful, done: Done, opened: Open, place: Place, path: Path
) -> None:
    target = place("sqlite")
    source.sessions.add_session_feedback("ferry", {"rating": "down", "comment": "All of it."})
    ways(path)["export"](target)
    (new,) = [item for item in listed(opened(target)) if item.target_type == "session"]
    assert (new.status, new.comment) == ("open", "All of it.")


@pytest.mark.parametrize(("vectors", "embedder"), [(False, WordEmbedder), (True, OtherEmbedder)])
@pytest.mark.nightly
def test_without_vectors_of_the_model_the_queue_is_the_same(
    source: Heedful, done: Done, opened: Open, place: Place, path: Path, vectors: bool, embedder: type[WordEmbedder]
) -> None:
    target = place("sqlite")
    import_file(target, packed(exported(path, vectors=vectors)), embedding=embedder())
    moved = opened(target, embedding=embedder())
    assert told(moved) == told(source)
    result = moved.recall(WRONG, session_id="later")
    assert moved.sessions.add_feedback("later", str(result.qa_id), None, 1, author="ann")
    assert len(listed(moved)) == len(listed(source))


def test_lines_of_the_queue_name_items_by_ids(source: Heedful, done: Done, path: Path) -> None:
    lines = exported(path)
    result = {name: [line for line in lines if line["type"] == name] for name in OF_REVIEW}
    assert {name: len(found) for name, found in result.items()} == OF_REVIEW
    ids = {line["id"] for line in result["review_item"]}
    assert {line["item"] for line in result["review_member"]} == ids > {line["item"] for line in result["review_note"]}
    assert not {name for line in lines for name in line} & {"seq", "item_seq", "project_id", "model_id"}


def older(lines: list[Line]) -> list[Line]:
    """The file as the first format had it."""
    remaining = [line for line in lines if line["type"] not in OF_REVIEW]
    for line in (remaining[0], remaining[-1]):
        line["counts"] = {name: count for name, count in line["counts"].items() if name not in OF_REVIEW}
    remaining[0]["format"] = 1
    return remaining


def test_a_file_without_a_queue_is_read_as_ever(
    source: Heedful, done: Done, opened: Open, place: Place, path: Path
) -> None:
    target = place("sqlite")
    import_file(target, packed(older(exported(path))), embedding=WordEmbedder())
    # What people said makes items again; what was done about others is about them.
    assert {item.question for item in listed(opened(target))} >= {WRONG, NEVER_MIND}
    assert {item.status for item in listed(opened(target))} == {"open"}
    lines = older(exported(path))
    del lines[0]["counts"]["fact"]
    with pytest.raises(Invalid, match="counts or checksums that don't match"):
        import_file(place("sqlite"), packed(lines), embedding=WordEmbedder())


def test_a_queue_that_the_store_has_is_not_taken_twice(source: Heedful, done: Done, place: Place, path: Path) -> None:
    lines = [line for line in exported(path) if line["type"] in ("heedful", "project", "end", "review_item")]
    for line in (lines[0], lines[-1]):
        line["counts"] = {name: count for name, count in line["counts"].items() if name in ("project", "review_item")}
    lines[-1] |= {"facts_checksum": EMPTY, "ledger_checksum": EMPTY}
    with pytest.raises(Conflict, match="has the review_item") as refused:
        import_file(path, packed(lines), project="again", embedding=WordEmbedder())
    assert refused.value.code == "id_taken"


EMPTY = "cae66941d9efbd404e4d88758ea67670"
"""The sum of no lines."""


def changed(lines: list[Line], kind: str, **changes: Any) -> list[Line]:
    place = next(at for at, line in enumerate(lines) if line["type"] == kind)
    return [*lines[:place], lines[place] | changes, *lines[place + 1 :]]


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("review_item", {"status": "lost"}, r"line \d+ has the unknown status 'lost'"),
        ("review_item", {"digest": "zz"}, r"line \d+ has digest"),
        ("review_item", {"vector": "AAAA"}, r"line \d+ has a vector"),
        ("review_member", {"item": "nobody's"}, r"line \d+ names the item"),
        ("review_member", {"active": "yes"}, r"line \d+ has active"),
    ],
)
def test_a_damaged_line_of_the_queue_is_named(
    source: Heedful, done: Done, place: Place, path: Path, kind: str, changes: Line, message: str
) -> None:
    with pytest.raises(Invalid, match=message) as refused:
        import_file(place("sqlite"), packed(changed(exported(path), kind, **changes)), embedding=WordEmbedder())
    assert refused.value.code == "file_damaged"
