"""Erasing a person: neither their name nor their words are left anywhere, and every score is what it was."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from cities import IN_ITALY, IN_ITALY_SQL, make_cities
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from properties import some
from pymongo import MongoClient
from server import running
from sqlalchemy import inspect, text

import heedful
from heedful import Conflict, Forbidden, Heedful, Invalid, NotFound, Signal
from heedful.interfaces.cli.main import cli
from heedful.ledger import erasure
from heedful.ledger.adaptive_policy import Adaptive
from heedful.ledger.usefulness import Candidate, Opinion, Ranked
from heedful.model import Erasure, ForgetResult, PolicyName, SignalType
from heedful.sessions.hooks import AlertHook
from heedful.testing import ManualClock, WordEmbedder
from heedful.transfer import backup, export_file, import_file, verify

NAME = "Annabel Quist"
WORD = "xylograph"
"""Stands in everything that she wrote, and in nothing else."""

RETURNS = "Parcels may be returned within 30 days."
REFUNDS = "Refunds are paid within two weeks."
QUESTION = "When may parcels be returned?"
SIGNAL_TYPES: list[SignalType] = ["used", "ignored", "helpful", "not_helpful"]


class Desk:
    """A channel that is never reached."""

    name = "desk"

    def send(self, alert_id: str, payload: Mapping[str, Any]) -> None:
        raise OSError("nobody is there")


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
def opening(where: dict[str, Any], clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Heedful]:
    monkeypatch.setenv("HEEDFUL_AUTHORS_TO_TEACH", "1")
    hook = AlertHook(Desk())
    return lambda: heedful.open(**where, clock=clock, embedding=WordEmbedder(), worker=False, feedback_hook=hook)


def live(store: Heedful, clock: ManualClock, folder: Path) -> None:
    """Annabel and Bob say all that can be said, each in their own words."""
    returns, refunds = store.remember([RETURNS, REFUNDS]).fact_ids
    store.remember(f"Her favourite tool is the {WORD}.", metadata={"user_id": NAME, "kind": "taste"})
    for author, key in ((NAME, f"{NAME}-1"), ("bob", "bob-1"), (NAME, "again")):
        clock.advance(minutes=1)
        context = f"a {WORD} told me" if author == NAME else "I looked it up"
        signal = Signal(fact_id=returns, signal_type="helpful", query=QUESTION, author=author, context=context)
        store.signal([signal], idempotency_key=key)
    shown = store.recall(QUESTION)
    store.signal_recall(shown.recall_id, helpful=[refunds], author=NAME)
    store.supersede(refunds, f"Refunds are paid within a {WORD}.", author=NAME)
    _talk(store, clock, returns)
    _run(store, folder)
    _review(store)
    store.keys.create(NAME)


def _talk(store: Heedful, clock: ManualClock, returns: str) -> None:
    shown = store.recall(QUESTION, session_id="bobs")
    qa_id = str(shown.qa_id)
    store.sessions.update_metadata("bobs", {"user_id": "bob", "variant": "b"})
    store.sessions.add_feedback(
        "bobs", qa_id, f"No, parcels may be returned within 45 days, not {WORD}.", 2, author=NAME
    )
    clock.advance(minutes=1)
    store.sessions.add_feedback("bobs", qa_id, "Good.", 5, author="bob")
    feedback = {"rating": "down", "comment": f"No {WORD}.", "email": f"{WORD}@example.com"}
    store.sessions.add_session_feedback("bobs", feedback, author=NAME, idempotency_key=f"of {NAME}")
    mine = {"user_id": NAME, "email": f"{NAME}@example.com", "variant": "b"}
    store.sessions.create("hers", metadata=mine)
    store.sessions.add_message("hers", "user", f"Where is my {WORD}?")
    entry = store.sessions.add_entry(
        "hers", QUESTION, f"With your {WORD}.", recall_id=shown.recall_id, used=[returns], context=WORD
    )
    store.recall(f"How old is a {WORD}?", session_id="hers")
    store.sessions.add_entry("hers", "Which?", f"Your {WORD}.", external_id=f"run of {NAME}")
    store.sessions.rate("run of nobody", "down", comment=f"No {WORD}.", author=NAME)
    store.sessions.rate(f"next run of {NAME}", "down", author="bob")
    store.sessions.add_feedback("hers", entry.qa_id, "Well said.", 5, author="bob")
    learnt = store.improve().learnt
    assert sum(WORD in each.text for each in learnt) == 2


def _run(store: Heedful, folder: Path) -> None:
    store.connectors.create("geo", make_cities(folder).url)
    done = [store.executions.execute_query(f"{IN_ITALY_SQL} LIMIT {n}", question=IN_ITALY) for n in (7, 8)]
    for each in done:
        store.feedback.create_negative(feedback=f"It is a {WORD}", execution_id=each.execution_id, author=NAME)
    store.executions.delete(done[0].execution_id)
    store.feedback.create_positive(execution_id=done[1].execution_id, author="bob")


def _review(store: Heedful) -> None:
    items = {each.target_type: each.item_id for each in store.review.list().items}
    hers = {
        kind: next(each.event_id for each in store.review.get(item).opinions if each.author == NAME)
        for kind, item in items.items()
    }
    store.review.assign(items["entry"], NAME, author="lead")
    store.review.fix(items["entry"], "teach", event_id=hers["entry"], text=f"A {WORD} it is.", author="lead")
    store.review.fix(items["session"], "retract", event_id=hers["session"], author="lead", note="She was wrong.")
    store.review.resolve(items["entry"], note=f"By a {WORD}.", author=NAME)


def everything(store: Heedful, where: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(place, content) of every row of every table, and of every document."""
    with store._workspace.database.read() as connection:
        for table in inspect(connection).get_table_names():
            for row in connection.execute(text(f'SELECT * FROM "{table}"')):
                for name, value in row._mapping.items():
                    yield f"{table}.{name}", value.decode("latin-1") if isinstance(value, bytes) else str(value)
    if "sessions" in where:
        with MongoClient[dict[str, Any]](where["sessions"]) as client:
            documents = client.get_default_database()
            for name in documents.list_collection_names():
                yield from ((name, str(each)) for each in documents[name].find())


def traces_of(store: Heedful, where: dict[str, Any]) -> set[str]:
    """Where the name or the words are."""
    found = everything(store, where)
    return {place for place, content in found if NAME in content or WORD in content}


def computed(store: Heedful) -> dict[str, Any]:
    """All that is computed from what people said, to the digit, of the facts that she did not write."""
    facts = [each for each in store.facts(limit=100).items if WORD not in each.text]
    return {
        "facts": {each.fact_id: store.fact_stats(each.fact_id).model_dump(exclude={"last_signal"}) for each in facts},
        "by": [store.insight.satisfaction(by=by).model_dump() for by in ("metadata.variant", "author_kind", "source")],
        "metrics": store.sessions.feedback_metrics().model_dump(exclude={"avg_comment_length"}),
        "queue": [(each.item_id, each.status, each.opinions) for each in store.review.list().items],
    }


def erased(result: ForgetResult) -> Erasure:
    assert result.erased is not None
    return result.erased


def sound(store: Heedful, where: dict[str, Any]) -> None:
    """What is derived agrees with the ledger."""
    assert all(check.ok and not check.repaired for check in store.doctor(repair=False))
    assert verify(where["url_or_path"]).differences == []
    assert store._project.sessions.store.check() == "ok"


@pytest.mark.nightly
def test_nothing_is_left_of_her_and_every_score_stays(
    opening: Callable[[], Heedful], where: dict[str, Any], clock: ManualClock, tmp_path: Path
) -> None:
    with opening() as store:
        live(store, clock, tmp_path)
        # Notes, feedback, alerts, entries, messages, facts, keys, kept results and so on.
        assert len(traces_of(store, where)) >= 12
        before = computed(store)
        result = store.forget(author=NAME)
        assert traces_of(store, where) == set()
        after = computed(store)
        # The fact that she had corrected is recalled again.
        assert [after["facts"].pop(fact_id)["signal_count"] for fact_id in result.restored] == [1]
        assert after == before
        sound(store, where)
        report = erased(result)
        assert result.facts == 5
        assert report.model_dump(exclude={"author", "event_id"}) == {
            "events": 12,
            "feedback": 5,
            "notes": 2,
            "review": 3,
            "sessions": 1,
            "executions": 0,
            "questions": 1,
            "alerts": 2,
            "results": 1,
            "keys": 1,
        }
        again = store.forget(author=NAME)
        assert (again.facts, again.dataset) == (0, "")
        assert set(erased(again).model_dump().values()) == {0, None}
        # What nobody says any more is not learnt again, and what is learnt changes no score.
        assert [each.text for each in store.improve().learnt if WORD in each.text] == []
        assert computed(store)["facts"].keys() >= before["facts"].keys()
        sound(store, where)
        assert [(each.operation, each.target) for each in store.audit(kind="action").items][:1] == [
            ("forget", report.author)
        ]
    _left_in_files(where, tmp_path, report)


def _left_in_files(where: dict[str, Any], folder: Path, report: Erasure) -> None:
    file = folder / "exported.jsonl"
    export_file(where["url_or_path"], file, project="default")
    written = file.read_bytes()
    assert b'"kind":"erasure"' in written
    assert str(report.author).encode() in written
    import_file(folder / "imported.db", file, embedding=WordEmbedder())
    assert verify(folder / "imported.db").differences == []
    files = [file]
    if not where["url_or_path"].startswith("postgresql"):
        backup(where["url_or_path"], folder / "copy.db")
        # The store's own file, too: what was deleted is overwritten there.
        files += [folder / "copy.db", *folder.glob("store.db*")]
    for each in files:
        for one in each.rglob("*") if each.is_dir() else [each]:
            assert NAME.encode() not in one.read_bytes(), one
            assert WORD.encode() not in one.read_bytes(), one


def test_a_run_that_was_cut_off_is_finished_by_the_next_one(
    open_store: Callable[..., Heedful], mongodb_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(sessions=mongodb_url)
    fact = store.remember(RETURNS).fact_ids[0]
    store.signal([Signal(fact_id=fact, signal_type="helpful", query=QUESTION, author=NAME)])
    store.sessions.create("s")
    store.sessions.add_session_feedback("s", {"rating": "up", "comment": WORD}, author=NAME)

    def die(*args: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(erasure, "clear_results", die)
        with pytest.raises(KeyboardInterrupt):
            store.forget(author=NAME)
    where = {"sessions": mongodb_url}
    # In the ledger alone, and on PostgreSQL in the partitions of it.
    assert {place.split(".")[0].split("_")[0] for place in traces_of(store, where)} == {"events"}
    report = erased(store.forget(author=NAME))
    assert traces_of(store, where) == set()
    # One name in both databases, and all that was erased is counted.
    assert (report.events, report.feedback) == (2, 1)
    (said,) = store.sessions.feedbacks("s").items
    assert said.author == report.author == store.fact_history(fact).points[0].author


@pytest.mark.slow
def test_a_visitor_stays_a_visitor_and_a_named_author_named(store: Heedful) -> None:
    store.sessions.create("s")
    names = {"visitor-7": "visitor-erased-", "ann": "erased-"}
    for name in names:
        store.sessions.add_session_feedback("s", {"rating": "up"}, author=name)
    before = store.insight.satisfaction(by="author_kind")
    for name, begins in names.items():
        assert str(erased(store.forget(author=name)).author).startswith(begins)
    assert store.insight.satisfaction(by="author_kind") == before
    assert [each.author_kind for each in store.sessions.feedbacks("s").items] == ["visitor", "named"]


def test_only_who_has_exactly_this_name_is_erased(open_store: Callable[..., Heedful]) -> None:
    store, other = open_store(), open_store(project="other")
    for each in (store, other):
        each.sessions.create("s", metadata={"user_id": "Annabel Quistgaard", "note": "annabel quist-like"})
        for name in ("ann", "anna", "Ann"):
            each.sessions.add_session_feedback("s", {"rating": "up", "comment": name}, author=name)
    store.forget(author="ann")
    assert {each.comment for each in store.sessions.feedbacks("s").items} == {"", "anna", "Ann"}
    assert {each.comment for each in other.sessions.feedbacks("s").items} == {"ann", "anna", "Ann"}
    assert store.sessions.get_metadata("s")["user_id"] == "Annabel Quistgaard"
    assert erased(store.forget(author="nobody")).author is None


def test_what_makes_no_sense_is_refused(store: Heedful) -> None:
    options: list[dict[str, Any]] = [{}, {"dataset": "d"}, {"source": "s"}, {"fact_ids": ["f"]}]
    for each in options:
        with pytest.raises(Invalid) as caught:
            store.forget(author="ann" if each else " ", **each)
        assert caught.value.field == "author"


def test_an_erasure_is_not_undone(store: Heedful) -> None:
    fact = store.remember(RETURNS).fact_ids[0]
    store.signal([Signal(fact_id=fact, signal_type="helpful", query=QUESTION, author="ann")])
    report = erased(store.forget(author="ann"))
    with pytest.raises(Conflict, match="can't be retracted"):
        store.retract(str(report.event_id))


@pytest.mark.slow
def test_a_process_that_knows_her_name_still_counts_her_once(open_store: Callable[..., Heedful]) -> None:
    here, there = open_store(), open_store()
    facts = here.remember([RETURNS, REFUNDS]).fact_ids

    def ranked(store: Heedful) -> list[tuple[str, float, float]]:
        hits = store.recall(QUESTION, policy="adaptive", boost_by_usefulness=True, usefulness_weight=0.9).hits
        return [(hit.fact_id, hit.score, hit.usefulness) for hit in hits]

    # Everybody contradicts her, for two questions that mean the same: it is known by both how far to trust her.
    for author in (NAME, "bob", "cy"):
        for query in (QUESTION, QUESTION.upper()):
            kind: SignalType = "not_helpful" if author == NAME else "helpful"
            here.signal([Signal(fact_id=facts[0], signal_type=kind, query=query, author=author)])
    before = ranked(there)
    here.forget(author=NAME)
    assert ranked(there) == ranked(here) == before
    here.signal([Signal(fact_id=facts[1], signal_type="helpful", query=QUESTION, author="bob")])
    assert ranked(there) == ranked(here) == ranked(open_store())


@given(
    message=st.lists(
        st.tuples(st.integers(0, 4), st.sampled_from(SIGNAL_TYPES), st.integers(1, 997)), min_size=4, max_size=12
    ),
    names=st.permutations(["a", "b", "c", "d", "e"]),
)
@pytest.mark.slow
def test_the_adaptive_rule_does_not_care_what_authors_are_called(
    message: list[tuple[int, SignalType, int]], names: list[str]
) -> None:
    def ranked(called: str | list[str]) -> list[Ranked]:
        items = [
            Opinion(1, 1, kind, confidence / 997, place, author=called[who], similarity=1.0)
            for place, (who, kind, confidence) in enumerate(message)
        ]
        return Adaptive().rank([Candidate(1, 0.5), Candidate(2, 0.5)], Adaptive().judge(items, 100), 0.9)

    assert ranked(names) == ranked("abcde")


opinions = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(SIGNAL_TYPES),
        st.sampled_from([NAME, "bob", "zoe", None]),
        st.sampled_from([QUESTION, "When are refunds paid?", "When may parcels be sent back?"]),
        st.floats(0.1, 1.0),
    ),
    min_size=1,
    max_size=25,
)


@given(message=opinions)
@some(1 / 8)
@pytest.mark.slow
def test_no_score_and_no_vote_changes(new_store: Callable[[ManualClock], Heedful], message: list[Any]) -> None:
    clock = ManualClock()
    with new_store(clock) as store:
        facts = store.remember([RETURNS, REFUNDS, "Parcels are sent back at the desk."]).fact_ids
        for place, kind, author, query, confidence in message:
            clock.advance(hours=7)
            store.signal(
                [Signal(fact_id=facts[place], signal_type=kind, query=query, author=author, confidence=confidence)]
            )

        def seen() -> list[Any]:
            policies: tuple[PolicyName, ...] = ("documented", "adaptive")
            ranks = [
                [
                    (hit.fact_id, hit.score, hit.usefulness)
                    for hit in store.recall(QUESTION, policy=each, boost_by_usefulness=True, usefulness_weight=0.9)
                ]
                for each in policies
            ]
            return [*ranks, [store.fact_stats(each) for each in facts], store.replay().model_dump()]

        before = seen()
        report = erased(store.forget(author=NAME))
        assert report.events == sum(author == NAME for _, _, author, _, _ in message)
        assert seen() == before
        assert verify(store._workspace.database.name).differences == []


@pytest.mark.slow
def test_over_http_it_takes_an_admin_of_the_project(path: Path) -> None:
    with running(path) as server, server.connect() as admin, server.connect(project="other") as other:
        admin.sessions.create("s")
        admin.sessions.add_session_feedback("s", {"rating": "up", "comment": WORD}, author=NAME)
        writer = admin.keys.create("writer", scopes=["read", "write"]).api_key
        own = admin.keys.create("own", scopes=["admin"]).api_key
        other.keys.create("foreign", scopes=["admin"])
        with server.connect(key=writer) as limited, pytest.raises(Forbidden, match="no scope 'admin'"):
            limited.forget(author=NAME)
        with server.connect(key=own) as limited:
            report = erased(limited.forget(author=NAME))
            assert (report.feedback, report.events) == (1, 1)
            assert erased(limited.forget(author=NAME)).author is None
            line = limited.audit(kind="action").items[0]
            assert (line.operation, line.target) == ("forget", report.author)
            with server.connect(key=own, project="other") as elsewhere, pytest.raises(NotFound):
                elsewhere.forget(author=NAME)
        (said,) = admin.sessions.feedbacks("s").items
        assert (said.author, said.comment) == (report.author, "")
        asyncio.run(_asynchronously(server.url, server.key))


async def _asynchronously(url: str, key: str) -> None:
    async with await heedful.aconnect(url, api_key=key) as remote:
        assert erased(await remote.forget(author=NAME)).author is None


def test_the_command_asks_first(path: Path) -> None:
    with heedful.open(path) as store:
        store.sessions.create("s")
        store.sessions.add_session_feedback("s", {"rating": "up", "comment": WORD}, author=NAME)
    run = CliRunner()
    options = ["--store", str(path), "forget", "--author", NAME]
    asked = run.invoke(cli, options, input="n\n")
    assert (asked.exit_code, "can't be undone" in asked.output) == (1, True)
    done = run.invoke(cli, [*options, "--yes"])
    assert done.exit_code == 0
    assert "1 feedback" in done.output
    assert NAME not in done.output
    assert "Nothing has this name" in run.invoke(cli, [*options, "--yes"]).output


def test_what_she_asked_of_data_is_not_found_by_her_question(store: Heedful, tmp_path: Path) -> None:
    store.connectors.create("geo", make_cities(tmp_path).url)
    proven = store.executions.execute_query(IN_ITALY_SQL, question=IN_ITALY).execution_id
    store.feedback.create_positive(execution_id=proven, author="bob")
    chat = store.chat_sessions.create().id
    store.sessions.update_metadata(chat, {"user": NAME})
    ran = store.executions.execute_from_chat(store.chat.chat_to_sql(chat, IN_ITALY).chat_message_id)
    other = store.executions.execute_query(f"{IN_ITALY_SQL} LIMIT 3", question="How many are there?").execution_id
    assert erased(store.forget(author=NAME)).executions == 1
    assert store.executions.get(ran.execution_id).question is None
    assert store.executions.get(ran.execution_id).result == ran.result
    assert store.executions.get(other).question == "How many are there?"
    assert store.chat_sessions.get_questions(chat) == []
    # Bob's question is still proven.
    assert store.chat.execution_cache_lookup(IN_ITALY).cache_hit
