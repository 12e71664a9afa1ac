"""Training data: read from the ledger, filtered, split by need, and the same file for the same ledger."""

from __future__ import annotations

import hashlib
import io
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from server import running

import heedful
from heedful import Conflict, Heedful, Invalid, NotFound, Signal, transfer
from heedful.evaluation import rated, training_data
from heedful.interfaces.cli.main import cli
from heedful.model import TrainingFormat
from heedful.testing import ManualClock, WordEmbedder

FORMATS: tuple[TrainingFormat, ...] = ("kto", "dpo", "sft", "triplets", "text2sql", "evals")
RETURNS, CARDS = "Returns are accepted within 30 days.", "Gift cards never expire."
QUESTION = "How many days do I have for returns?"


def shop_file(folder: Path) -> str:
    with closing(sqlite3.connect(folder / "shop.sqlite")) as made:
        made.executescript("CREATE TABLE IF NOT EXISTS sales (year INTEGER); INSERT INTO sales VALUES (2023), (2024)")
    return f"sqlite:///{folder / 'shop.sqlite'}"


def rate(store: Heedful, question: str, answer: str, *facts: str, session: str = "monday", **ratings: Any) -> str:
    """An answer made from facts, and what people say about it: a score, or a score and a comment."""
    if not store.sessions.exists(session):
        store.sessions.create(session)
    recall = store.recall(question, top_k=50).recall_id if facts else None
    qa_id = store.sessions.add_entry(session, question, answer, recall_id=recall, used=list(facts) or None).qa_id
    for author, said in ratings.items():
        score, comment = said if isinstance(said, tuple) else (said, None)
        store.sessions.add_feedback(session, qa_id, comment, score, author=author.replace("_", "-"))
    return qa_id


def helpful(store: Heedful, fact: str, query: str) -> None:
    store.signal(Signal(fact_id=fact, query=query, signal_type="helpful", author="ann"))


def lived(store: Heedful, folder: Path) -> Heedful:
    """A project with ratings of every kind."""
    returns, cards, *_ = store.remember([RETURNS, CARDS, "Norway takes five days."]).fact_ids
    rate(store, QUESTION, RETURNS, returns, ann=5, bob=4, cy=1)
    rate(store, QUESTION.lower(), "You can't.", returns, ann=1)
    rate(store, "Do gift cards expire?", "After a year.", cards, ann=(1, "Wrong! Gift cards never expire."))
    recall = store.recall("Do gift cards expire?")
    store.signal_recall(recall.recall_id, helpful=[cards], not_helpful=[returns], author="ann")
    store.connectors.create("shop", shop_file(folder))
    run = store.executions.execute_query("SELECT count(*) FROM sales", question="How many sales were there?")
    store.feedback.create_positive(execution_id=run.execution_id, author="ann")
    store.golden_examples.create("Which years have sales?", "SELECT DISTINCT year FROM sales")
    return store


def made(store: Heedful, format: TrainingFormat, **options: Any) -> list[dict[str, Any]]:
    """All lines, by pages; a file has the same."""
    found: list[dict[str, Any]] = []
    page = store.insight.training(format, limit=2, **options)
    while True:
        found += page.items
        if page.next_cursor is None:
            break
        page = store.insight.training(format, limit=2, cursor=page.next_cursor, **options)
    output = io.BytesIO()
    exported = store.insight.export_training(output, format, **options)
    assert [json.loads(line) for line in output.getvalue().splitlines()] == found
    assert exported.data == page.data
    assert hashlib.sha256(output.getvalue()).hexdigest() == exported.data.sha256
    assert (exported.path, exported.data.lines, sum(exported.data.splits.values())) == (None, len(found), len(found))
    return found


def taught(store: Heedful, **options: Any) -> set[str]:
    return {line["messages"][1]["content"] for line in made(store, "sft", **options)}


def left_out(store: Heedful, format: TrainingFormat, **options: Any) -> dict[str, int]:
    return store.insight.training(format, **options).data.left_out


@pytest.mark.slow
def test_every_format_has_its_lines(open_either: Callable[..., Heedful], tmp_path: Path) -> None:
    store = lived(open_either(), tmp_path)
    labels = {line["completion"][0]["content"]: line["label"] for line in made(store, "kto")}
    assert labels == {RETURNS: True, "You can't.": False, "After a year.": False}
    pairs = {(line["chosen"][0]["content"], line["rejected"][0]["content"]) for line in made(store, "dpo")}
    assert pairs == {(RETURNS, "You can't."), (CARDS, "After a year.")}
    assert taught(store) == {RETURNS, CARDS}
    triplets = {line["query"]: (line["positive"], line["negatives"]) for line in made(store, "triplets")}
    assert triplets == {QUESTION: (RETURNS, []), "Do gift cards expire?": (CARDS, [RETURNS])}
    sql = {line["question"]: line for line in made(store, "text2sql")}
    assert {line["sql"] for line in sql.values()} == {"SELECT count(*) FROM sales", "SELECT DISTINCT year FROM sales"}
    assert sql["How many sales were there?"]["schema"] == "sales (year INTEGER)"
    evals = {
        line["input"]: (line["reference"], [each["text"] for each in line["facts"]]) for line in made(store, "evals")
    }
    assert evals == {QUESTION: (RETURNS, [RETURNS]), "Do gift cards expire?": (CARDS, [CARDS])}
    (agreed,) = [line for line in made(store, "kto") if line["label"]]
    assert (agreed["agreement"], agreed["votes"], agreed["dataset"]) == (0.6667, 3, "main_dataset")


def test_a_store_without_ratings_has_no_lines(either: Heedful) -> None:
    for format in FORMATS:
        assert made(either, format) == []


@pytest.mark.slow
def test_a_copy_of_the_ledger_gives_the_same_file(
    open_store: Callable[..., Heedful], any_store: str, tmp_path: Path
) -> None:
    store = lived(open_store(tmp_path / "first.db"), tmp_path)
    first = {format: store.insight.export_training(io.BytesIO(), format).data for format in FORMATS}
    assert all(data.lines for data in first.values())
    store.close()
    transfer.copy(tmp_path / "first.db", any_store)
    copied = open_store(any_store)
    assert {format: copied.insight.export_training(io.BytesIO(), format).data for format in FORMATS} == first


def test_retracted_opinions_do_not_count(open_either: Callable[..., Heedful]) -> None:
    store = open_either()
    qa_id = store.sessions.add_entry("monday", QUESTION, "Thirty days.").qa_id
    store.sessions.add_feedback("monday", qa_id, None, 5, author="ann")
    assert taught(store) == {"Thirty days."}
    page = store.insight.rows("feedback")
    while not page.items and page.next_cursor is not None:
        page = store.insight.rows("feedback", cursor=page.next_cursor)
    store.retract(page.items[0]["feedback_id"])
    for format in FORMATS:
        assert made(store, format) == []


def test_the_last_vote_of_an_author_counts_in_all_answers_with_the_same_words(
    either: Heedful, clock: ManualClock
) -> None:
    rate(either, QUESTION, "Thirty days.", ann=5)
    clock.advance(minutes=1)
    rate(either, QUESTION, "Thirty days.", session="tuesday", ann=1)
    assert [(line["label"], line["votes"]) for line in made(either, "kto")] == [(False, 1)]


def test_visitors_count_only_if_they_are_asked_for(either: Heedful) -> None:
    rate(either, QUESTION, "Thirty days.", visitor_x=5)
    assert taught(either) == set()
    assert taught(either, visitors=True) == {"Thirty days."}


@pytest.mark.slow
def test_what_was_superseded_or_has_expired_is_not_taught_as_right(store: Heedful, clock: ManualClock) -> None:
    old, ending = store.remember([RETURNS, CARDS]).fact_ids
    store.remember(CARDS, expires_at=clock() + timedelta(days=1))
    rate(store, QUESTION, "Thirty days.", old, ann=5)
    rate(store, "Do gift cards expire?", "They don't.", ending, ann=5)
    assert taught(store) == {"Thirty days.", "They don't."}
    store.supersede(old, "Returns are accepted within 45 days.")
    clock.advance(days=2)
    for format in FORMATS:
        assert made(store, format) == []
    assert left_out(store, "sft") == {"outdated": 2}


def test_a_correction_that_the_team_made_a_fact_is_taught_and_another_is_not(store: Heedful) -> None:
    old = store.remember(RETURNS).fact_ids[0]
    rate(store, QUESTION, RETURNS, old, ann=(1, "No, it is 45 days."))
    assert taught(store) == {"It is 45 days."}
    newer = store.supersede(old, "Returns are accepted within 45 days.").superseded_by
    assert taught(store) == {"It is 45 days."}
    store.supersede(newer, "Returns are accepted within 60 days.")
    assert taught(store) == set()


@pytest.mark.slow
def test_nothing_rests_on_forgotten_facts(open_either: Callable[..., Heedful]) -> None:
    store = open_either()
    fact, _ = store.remember([RETURNS, CARDS]).fact_ids
    rate(store, QUESTION, "Thirty days.", fact, ann=5)
    rate(store, "And with a voucher?", "Never.", fact, ann=1)
    helpful(store, fact, "returns")
    assert len(made(store, "kto")) == 2
    store.forget(fact)
    for format in FORMATS:
        assert made(store, format) == []
    assert left_out(store, "kto") == {"forgotten": 2}


@pytest.mark.nightly
def test_nothing_of_erased_people_is_in_a_file(open_either: Callable[..., Heedful]) -> None:
    store = open_either()
    fact = store.remember(RETURNS).fact_ids[0]
    store.sessions.create("private", metadata={"user": "dora"})
    recall = store.recall("May Dora Example return her kettle?", session_id="private")
    assert recall.qa_id is not None
    store.sessions.add_feedback("private", recall.qa_id, None, 5, author="ann")
    store.signal_recall(recall.recall_id, helpful=[fact], author="ann")
    rate(store, QUESTION, "Thirty days.", fact, dora=5)
    rate(store, "Until when?", "Day thirty.", fact, dora=5, ann=1, bob=5)
    assert len(made(store, "sft")) == 3
    assert "Dora" in str(made(store, "triplets"))
    store.forget(author="dora")
    for format in FORMATS:
        assert "Dora" not in str(made(store, format))
    assert made(store, "sft") == []
    assert left_out(store, "kto") == {"erased": 2, "tied": 1}


@pytest.mark.slow
def test_personal_data_that_was_taken_out_of_a_fact_stays_out(store: Heedful) -> None:
    mail = "ada@example.com"
    fact = store.remember(f"Write to {mail} for returns.").fact_ids[0]
    rate(store, QUESTION, f"Write to {mail}.", fact, ann=5)
    rate(store, "Whom do I write to?", f"Only {mail} knows.", fact, ann=1)
    rate(store, "My mail is eve@example.org, what now?", "Wait.", fact, ann=5)
    assert {line["label"] for line in made(store, "kto")} == {True, False}
    assert left_out(store, "kto") == {"personal_data": 1}
    store.supersede(fact, "Write to [removed] for returns.")
    for format in FORMATS:
        assert "@" not in str(made(store, format))
    assert left_out(store, "kto") == {"personal_data": 3}


@pytest.mark.nightly
def test_ratings_are_chosen_by_dataset_time_and_metadata(
    open_either: Callable[..., Heedful], clock: ManualClock
) -> None:
    store = open_either()
    english = store.remember(RETURNS, metadata={"lang": "en"}).fact_ids[0]
    other = store.remember(CARDS, dataset="cards", metadata={"lang": "de"}).fact_ids[0]
    helpful(store, english, QUESTION)
    begin = clock()
    clock.advance(days=1)
    helpful(store, other, "cards")
    store.improve()

    def facts(**options: Any) -> set[str]:
        return {line["positive"] for line in made(store, "triplets", **options)}

    assert facts() == {RETURNS, CARDS}
    assert facts(dataset="cards") == facts(where={"lang": "de"}) == facts(since=begin + timedelta(hours=1)) == {CARDS}
    assert facts(where={"lang": ["en"]}) == facts(until=begin + timedelta(hours=1)) == {RETURNS}
    assert facts(where={"lang": "fr"}) == set()
    rate(store, QUESTION, "Thirty days.", english, ann=5)
    rate(store, QUESTION, "Nobody knows.", ann=5)
    assert taught(store, where={"lang": "en"}) == {"Thirty days."}
    assert taught(store, where={"lang": "de"}) == set()
    with pytest.raises(NotFound, match="no dataset 'lamps'"):
        store.insight.training("sft", dataset="lamps")


@pytest.mark.nightly
def test_phrasings_of_one_need_are_on_one_side_in_every_format(store: Heedful) -> None:
    for number in range(30):
        fact = store.remember(f"Fact {number} says topic{number}.").fact_ids[0]
        for form in (
            f"what about topic{number} item{number} thing{number}",
            f"What about topic{number} item{number} thing{number}?",
        ):
            rate(store, form, f"Answer {number} to {form}", fact, ann=5)
            helpful(store, fact, form)
    sides: dict[str, set[str]] = {}
    for format in FORMATS:
        for line in made(store, format, test_share=0.3):
            sides.setdefault(line["need"], set()).add(line["split"])
    assert len(sides) == 30
    assert {len(each) for each in sides.values()} == {1}
    assert {side for each in sides.values() for side in each} == {"train", "test"}
    both = made(store, "sft", test_share=0.3)
    train = made(store, "sft", test_share=0.3, split="train")
    test = made(store, "sft", test_share=0.3, split="test")
    assert sorted(line["id"] for line in [*train, *test]) == sorted(line["id"] for line in both)
    assert {line["need"] for line in train}.isdisjoint(line["need"] for line in test)
    assert made(store, "sft", test_share=0) == made(store, "sft", test_share=0, split="train")


def test_sql_is_for_everybody_and_for_the_schema_as_it_is(store: Heedful, tmp_path: Path) -> None:
    store.connectors.create("shop", shop_file(tmp_path))
    for question, audience in (("How many sales?", "ann"), ("What are my sales?", None)):
        run = store.executions.execute_query("SELECT count(*) FROM sales", question=question, audience=audience)
        store.feedback.create_positive(execution_id=run.execution_id, author="ann")
    run = store.executions.execute_query(
        "SELECT count(*) FROM sales WHERE year = :year", question="How many in 2024?", parameters={"year": 2024}
    )
    store.feedback.create_positive(execution_id=run.execution_id, author="ann")
    (line,) = made(store, "text2sql")
    assert (line["question"], line["parameters"], line["connector"]) == ("How many in 2024?", '{"year":2024}', "shop")
    assert left_out(store, "text2sql") == {"for_somebody": 2}
    with closing(sqlite3.connect(tmp_path / "shop.sqlite")) as changed:
        changed.executescript("ALTER TABLE sales ADD COLUMN price REAL")
    store.connectors.refresh("shop")
    assert made(store, "text2sql") == []
    assert left_out(store, "text2sql") == {"schema_changed": 3}


def test_a_page_of_other_data_is_refused(open_either: Callable[..., Heedful]) -> None:
    store = open_either()
    for number in range(5):
        rate(store, f"topic{number}?", "Yes.", ann=5)
    page = store.insight.training("sft", limit=2)
    assert page.next_cursor is not None
    assert len(store.insight.training("sft", limit=2, cursor=page.next_cursor).items) == 2
    with pytest.raises(Conflict) as other:
        store.insight.training("kto", cursor=page.next_cursor)
    assert other.value.code == "training_data_changed"
    rate(store, "topic9?", "Yes.", ann=5)
    with pytest.raises(Conflict, match="ratings have changed"):
        store.insight.training("sft", cursor=page.next_cursor)
    for cursor in ("", "5", f"{'a' * 15}.1", f"{'a' * 16}.x", 5):
        with pytest.raises(Invalid, match="cursor"):
            store.insight.training("sft", cursor=cursor)  # type: ignore[arg-type]


@pytest.mark.nightly
def test_what_was_rated_is_read_a_few_at_a_time(
    open_either: Callable[..., Heedful], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = lived(open_either(), tmp_path)
    rate(store, "And what else?", "Nothing.", session="tuesday", ann=5)
    whole = {format: made(store, format) for format in FORMATS}
    monkeypatch.setattr(rated, "RUN", 1)
    monkeypatch.setattr(rated, "SESSIONS", 1)
    monkeypatch.setattr(training_data, "RUN", 1)
    monkeypatch.setattr(training_data.TrainingCache, "get", lambda *_: None)
    assert {format: made(store, format) for format in FORMATS} == whole


def test_a_file_comes_with_a_card_and_both_replace_nothing_unasked(store: Heedful, tmp_path: Path) -> None:
    lived(store, tmp_path)
    file = tmp_path / "pairs.jsonl"
    seen: list[tuple[int, int]] = []
    exported = store.insight.export_training(file, "dpo", progress=lambda done, total: seen.append((done, total)))
    assert (exported.path, exported.card_path) == (str(file), f"{file}.md")
    assert seen[-1][0] == seen[-1][1] > 0
    card = (tmp_path / "pairs.jsonl.md").read_text()
    assert card == exported.data.card
    assert hashlib.sha256(file.read_bytes()).hexdigest() in card
    assert "2 lines about 2 needs" in card
    content = file.read_bytes()
    with pytest.raises(Conflict, match="already exists"):
        store.insight.export_training(file, "kto")
    (tmp_path / "other.jsonl.md").write_text("precious")
    with pytest.raises(Conflict, match=r"other\.jsonl\.md already exists"):
        store.insight.export_training(tmp_path / "other.jsonl", "kto")
    assert not (tmp_path / "other.jsonl").exists()
    assert file.read_bytes() == content
    store.insight.export_training(file, "dpo", overwrite=True)
    assert file.read_bytes() == content


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"format": "orpo"}, "format"),
        ({"format": "sft", "split": "validation"}, "split"),
        ({"format": "sft", "test_share": 1.5}, "test_share"),
        ({"format": "sft", "test_share": "half"}, "test_share"),
        ({"format": "sft", "visitors": "yes"}, "visitors"),
        ({"format": "sft", "where": {"lang": {"~": 1}}}, "where"),
        ({"format": "sft", "since": "yesterday"}, "since"),
        ({"format": "text2sql", "dataset": "main_dataset"}, "dataset"),
        ({"format": "text2sql", "where": {"lang": "en"}}, "where"),
        ({"format": "sft", "path": 5}, "path"),
        ({"format": "sft", "overwrite": "yes"}, "overwrite"),
    ],
)
def test_what_can_t_be_made_is_refused(store: Heedful, tmp_path: Path, options: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        store.insight.export_training(**{"path": tmp_path / "a.jsonl", **options})
    assert refused.value.field == field
    assert list(tmp_path.glob("a.jsonl*")) == []


def test_since_must_be_before_until(store: Heedful, clock: ManualClock) -> None:
    with pytest.raises(Invalid, match="must be before until"):
        store.insight.training("sft", since=clock(), until=clock())


@pytest.mark.slow
def test_a_client_writes_the_same_file_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with heedful.open(tmp_path / "served.db", embedding=WordEmbedder()) as store:
        lived(store, tmp_path)
        for number in range(4):
            rate(store, f"topic{number}?", f"Answer {number}", ann=5)
        here = {form: store.insight.export_training(tmp_path / f"{form}.here", form) for form in FORMATS}
    with running(tmp_path / "served.db") as server, server.connect() as client:
        for format in FORMATS:
            there = client.insight.export_training(tmp_path / f"{format}.there", format)
            assert there.data == here[format].data
            assert (tmp_path / f"{format}.there").read_bytes() == (tmp_path / f"{format}.here").read_bytes()
            assert (tmp_path / f"{format}.there.md").read_text() == there.data.card
        page = client.insight.training("sft", limit=2, where={"page": {"exists": False}})
        assert len(page.items) == 2
        with pytest.raises(Invalid, match="belongs to no dataset"):
            client.insight.export_training(tmp_path / "sql.jsonl", "text2sql", dataset="main_dataset")
        with pytest.raises(Conflict):
            client.insight.export_training(tmp_path / "sft.there", "sft")
        assert not (tmp_path / "sql.jsonl").exists()


@pytest.mark.slow
def test_the_command_writes_a_file_or_standard_output(store: Heedful, path: Path, tmp_path: Path) -> None:
    def run(*arguments: str) -> Any:
        return CliRunner().invoke(cli, ["--store", str(path), "--embedding", "fast", "export", *arguments])

    rate(store, QUESTION, "Thirty days.", ann=5)
    rate(store, "Until when?", "Day thirty.", ann=5, bob=1)
    file = tmp_path / "taught.jsonl"
    done = run("training", str(file), "--format", "sft")
    assert done.exit_code == 0, done.output
    assert f"1 line (1 to train, 0 to test) about 1 need in {file}; how they were made: {file}.md" in done.stdout
    assert "as many votes for it as against it" in done.stdout
    assert isinstance(run("training", str(file), "--format", "sft").exception, Conflict)
    assert run("training", str(file), "--format", "sft", "--force").exit_code == 0
    assert run("training", "-", "--format", "sft").stdout.encode() == file.read_bytes()
    shown = json.loads(run("training", str(tmp_path / "b.jsonl"), "--format", "kto", "--json").stdout)
    assert (shown["data"]["lines"], shown["data"]["left_out"]) == (1, {"tied": 1})
    nothing = run("training", str(tmp_path / "c.jsonl"), "--format", "triplets")
    assert "nothing was rated that triplets can be made from" in nothing.stdout
    assert run("training", str(file)).exit_code == 2
    # Without that word, it is the project.
    for words in (["project.jsonl"], ["project", "again.jsonl"], ["--no-vectors", "bare.jsonl"]):
        assert run(*words).exit_code == 0
        assert json.loads(Path(words[-1]).read_text().splitlines()[0])["type"] == "heedful"
