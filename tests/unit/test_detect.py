from collections.abc import Iterator
from pathlib import Path

import pytest

import heedful
from heedful.errors import Invalid
from heedful.ledger.used_facts import MAX_ANSWER, detect
from heedful.model import Detection
from heedful.testing import WordEmbedder
from heedful.workspace import Workspace

FACTS = [
    "The office in Lisbon opens at nine and closes at six.",
    "Maria adopted a greyhound called Biscuit last spring.",
    "Invoices over 5,000 euros need a second signature.",
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[heedful.Heedful]:
    with heedful.open(tmp_path / "detect.db", embedding=WordEmbedder(256)) as opened:
        yield opened


def workspace(store: heedful.Heedful) -> Workspace:
    return store._workspace


def test_what_the_answer_says_of_the_facts_named_in_their_order(store: heedful.Heedful) -> None:
    ids = store.remember(FACTS).fact_ids
    answer = "Sure. Maria adopted Biscuit, a greyhound, last spring."
    detections = detect(workspace(store), answer, [*reversed(ids), ids[0]], query="Who has a dog?")
    assert [each.fact_id for each in detections] == ids[::-1]
    assert [each.signal_type for each in detections] == ["ignored", "used", "ignored"]
    assert all(isinstance(each, Detection) and 0.9 < each.confidence <= 1 and each.reasons for each in detections)


def test_facts_of_several_datasets(store: heedful.Heedful) -> None:
    ids = [store.remember(fact, dataset=f"set {place}").fact_ids[0] for place, fact in enumerate(FACTS)]
    assert [each.signal_type for each in detect(workspace(store), FACTS[2], ids)] == ["ignored", "ignored", "used"]


def test_facts_that_are_not_there_are_left_out(store: heedful.Heedful) -> None:
    assert detect(workspace(store), FACTS[0], ["nothing"]) == []
    ids = store.remember(FACTS).fact_ids
    store.forget(ids[1])
    assert [each.fact_id for each in detect(workspace(store), FACTS[0], ids)] == [ids[0], ids[2]]
    assert detect(workspace(store), FACTS[0], []) == []


@pytest.mark.parametrize("answer", ["", " \n "])
def test_an_empty_answer_leaves_it_open(store: heedful.Heedful, answer: str) -> None:
    ids = store.remember(FACTS).fact_ids
    assert [(each.signal_type, each.confidence) for each in detect(workspace(store), answer, ids)] == [(None, 0.0)] * 3


@pytest.mark.parametrize("answer", [None, 7, "x" * (MAX_ANSWER + 1)])
def test_an_answer_that_is_no_text_or_too_long_is_refused(store: heedful.Heedful, answer: object) -> None:
    with pytest.raises(Invalid) as caught:
        detect(workspace(store), answer, [])  # type: ignore[arg-type]
    assert caught.value.field == "answer"


def test_a_fact_that_the_answer_cites_is_used(store: heedful.Heedful) -> None:
    ids = store.remember(["The gym opens at six.", "Bread is baked at nine.", "Rome is in Italy."]).fact_ids
    found = {each.fact_id: each for each in detect(store._workspace, "As it says [2], and so on [7].", ids)}
    assert (found[ids[1]].signal_type, found[ids[1]].reasons[0]) == ("used", "the answer cites it as [2]")
    assert found[ids[1]].confidence >= 0.95
    assert all(found[each].signal_type != "used" for each in (ids[0], ids[2]))
