"""One life of one project: every call of the interface, well and badly used, on whatever has that interface."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
from cities import IN_ITALY, IN_ITALY_SQL, LONG_AGO, make_cities

from heedful.errors import HeedfulError, Unavailable
from heedful.memory import answer
from heedful.model import Document, Signal, etag
from heedful.providers.llm import ChatMessage
from heedful.sessions.hooks import AlertHook
from heedful.sql import generation
from heedful.testing import ManualClock, ScriptedModel

UNKNOWN_ID = "0198c0de-dead-7000-8000-000000000000"
"""An id that nothing has."""

IN_FRANCE = "How many cities are in France?"
SALES = "What did we sell?"
SALES_SQL = "SELECT item, price, sold_on, sold_at, part, photo, tags FROM sale ORDER BY item"
STREETS = "Which streets are there?"

TABLES = """
CREATE TABLE sale (item varchar, price decimal(8, 2), sold_on date, sold_at timestamp, part uuid,
    photo blob, tags varchar[]);
INSERT INTO sale VALUES
    ('Kettle', 49.90, DATE '2025-12-24', TIMESTAMP '2025-12-24 17:05:00', '0198c0de-aaaa-7000-8000-000000000001',
        '\\x00\\xFF'::blob, ['kitchen', 'steel']),
    ('Lamp', 120.00, DATE '2025-12-27', TIMESTAMP '2025-12-27 09:30:00.25', NULL, NULL, []);
"""


@dataclass(frozen=True, slots=True)
class Failure:
    """How a call was refused."""

    kind: str
    code: str | None
    field: str | None
    message: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One call, and what came of it."""

    name: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    result: Any


@dataclass(frozen=True, slots=True)
class World:
    """What the calls are about: databases and files that no call changes."""

    folder: Path

    @property
    def cities(self) -> str:
        return f"sqlite:///{self.folder / 'cities.db'}"

    @property
    def sales(self) -> str:
        return f"duckdb:///{self.folder / 'sales.duckdb'}"


def make_world(folder: Path) -> World:
    """Two databases, notes to remember, and a file of examples."""
    make_cities(folder)
    with duckdb.connect(str(folder / "sales.duckdb")) as connection:
        connection.execute(TABLES)
    os.utime(folder / "sales.duckdb", (LONG_AGO, LONG_AGO))
    notes = folder / "notes"
    notes.mkdir()
    (notes / "printer.md").write_text("The printer on the second floor is out of toner.\n", encoding="utf-8")
    (notes / "scan.png").write_bytes(b"\x89PNG")
    (folder / "examples.jsonl").write_text(
        '{"question": "How many cities are there?", "sql_query": "SELECT count(*) AS cities FROM city", "by": "Ida"}\n',
        encoding="utf-8",
    )
    (folder / "broken.csv").write_text("question,sql_query\nHow many?,DROP TABLE city\n", encoding="utf-8")
    return World(folder)


def model() -> ScriptedModel:
    """A language model whose answers depend on nothing but the question."""
    return ScriptedModel(_answered)


def _answered(messages: Sequence[ChatMessage]) -> str:
    rules = messages[0].content
    if rules == answer.RULES:
        return "The office opens at eight [1]. It closes at six [1][2]."
    if rules.startswith(generation.RULES.partition("{")[0]):
        if "weather" in messages[-1].content:
            return "The schema says nothing of the weather."
        return "```sql\nSELECT name FROM street ORDER BY name\n```"
    return '{"text": 1, "names": ["Lisbon"]}'


class Desk:
    """Where no alert ever arrives."""

    name = "desk"

    def send(self, alert_id: str, payload: Mapping[str, Any]) -> None:
        raise Unavailable("nobody is at the desk")


def hook() -> AlertHook:
    """Writes an alert for what is rated down, which stays in the outbox."""
    return AlertHook(Desk())


@dataclass(slots=True)
class Life:
    """Calls an engine, and keeps what came of each call; a second passes between two of them."""

    engine: Any
    clock: ManualClock
    world: World
    steps: list[Step] = field(default_factory=list)

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """A call that is expected to succeed."""
        place, _, verb = name.rpartition(".")
        self.clock.advance(seconds=1)
        result = getattr(getattr(self.engine, place) if place else self.engine, verb)(*args, **kwargs)
        self.steps.append(Step(name, args, kwargs, result))
        return result

    def mistyped(self, name: str, /, *args: Any, **kwargs: Any) -> None:
        """A call that is expected to fail because of a value that no parameter of that name can have.

        Over HTTP that is told by the request's own types, in other words, and down to the item of a list.
        """
        self.refused(name, *args, **kwargs)
        step = self.steps.pop()
        field = None if step.result.field is None else step.result.field.partition("[")[0]
        told = step.result.message if step.result.kind == "none" else "in its own words"
        self.steps.append(replace(step, result=replace(step.result, field=field, message=told, remedy=None)))

    def refused(self, name: str, /, *args: Any, **kwargs: Any) -> None:
        """A call that is expected to fail."""
        place, _, verb = name.rpartition(".")
        self.clock.advance(seconds=1)
        try:
            result = getattr(getattr(self.engine, place) if place else self.engine, verb)(*args, **kwargs)
        except HeedfulError as error:
            failure = Failure(type(error).__name__, error.code, error.field, error.message, error.remedy)
        except TypeError as error:
            failure = Failure("TypeError", None, None, str(error))
        else:
            failure = Failure("none", None, None, f"it was accepted: {result!r}")
        self.steps.append(Step(name, args, kwargs, failure))

    def note(self, name: str, value: Any) -> None:
        """Something else that came of a call."""
        self.steps.append(Step(name, (), {}, value))


def live(engine: Any, clock: ManualClock, world: World) -> list[Step]:
    """The whole life."""
    life = Life(engine, clock, world)
    memory(life)
    opinions(life)
    sessions(life)
    answers(life)
    ratings(life)
    connectors(life)
    executions(life)
    execution_feedback(life)
    examples(life)
    chat(life)
    review(life)
    keys(life)
    jobs(life)
    end(life)
    return life.steps


def memory(life: Life) -> None:
    call, refused, mistyped = life.call, life.refused, life.mistyped
    call("remember", "The Lisbon office opens at eight in the morning.", metadata={"city": "Lisbon", "floor": 2})
    call("remember", ["The Lisbon office closes at six.", "Visitors sign in at the desk."], source="handbook")
    call("remember", "Visitors sign in at the desk.", source="handbook")
    messages: list[tuple[int, int]] = []
    call(
        "remember",
        [life.world.folder / "notes", Document(source="wiki/wifi", texts=["The guest network is called Tejo."])],
        dataset="notes",
        progress=lambda done, total: messages.append((done, total)),
    )
    life.note("remember.progress", messages)
    missing = life.world.folder / "missing.txt"
    refused("remember", missing)
    call("remember", [missing, Document(source="odd", texts=["fine", " "])])
    call("remember", "The canteen has soup on Fridays.", dataset="menu", self_improvement=False, metadata=None)
    refused("remember", "  ")
    refused("remember", ["a text", ""])
    mistyped("remember", 7)
    mistyped("remember", ["a text", 7])
    refused("remember", "a text", dataset="")
    mistyped("remember", "a text", dataset=5)
    refused("remember", "a text", metadata={"when": float("nan")})
    refused("remember", ["one", "two"], metadata=[{}])
    refused("remember", life.world.folder / "notes", source="handbook")
    mistyped("remember")
    mistyped("remember", "a text", unknown=1)
    call("datasets")
    call("create_dataset", "policies", metadata={"owner": "legal"})
    call("create_dataset", "policies")
    mistyped("create_dataset", "")
    mistyped("create_dataset", "policies", metadata="legal")
    call("get_dataset", "main_dataset")
    refused("get_dataset", "no such dataset")
    page = call("facts", limit=2)
    call("facts", limit=2, cursor=page.next_cursor)
    call("facts", source="handbook", newest_first=True)
    call("facts", where={"lang": {"!=": "de"}}, limit=2)
    refused("facts", where={"lang": {"$near": "en"}})
    mistyped("facts", where="lang")
    refused("facts", dataset="no such dataset")
    refused("facts", limit=0)
    refused("facts", cursor="nowhere")
    mistyped("facts", newest_first="yes")
    mistyped("facts", limit="2")
    call("fact", page.items[0].fact_id)
    refused("fact", UNKNOWN_ID)
    refused("fact", "")
    call("recall", "When does the office open?", top_k=3)
    call("recall", "office", mode="lexical", where={"city": "Lisbon"})
    call("recall", "office", where={"floor": {">=": 2}}, top_k=1, explain=True)
    call("recall", "guest network", dataset="notes", mode="graph")
    first = call("recall", "office", top_k=1)
    call("recall", "office", top_k=1, cursor=first.next_cursor)
    refused("recall", "guest network", cursor=first.next_cursor)
    refused("recall", "office", cursor="nowhere-at-all")
    refused("recall", "office", cursor=first.next_cursor, external_id="page-2")
    mistyped("recall", "office", cursor=5)
    refused("recall", "nothing", dataset="no such dataset")
    tokens: list[str] = []
    call("recall", "When does the office open?", answer=True, on_token=tokens.append)
    life.note("recall.on_token", tokens)
    refused("recall", "")
    mistyped("recall", 5)
    refused("recall", "office", top_k=0)
    mistyped("recall", "office", top_k="3")
    mistyped("recall", "office", top_k=True)
    mistyped("recall", "office", mode="telepathic")
    refused("recall", "office", where={"city": {"$near": 1}})
    mistyped("recall", "office", where="Lisbon")
    refused("recall", "office", usefulness_weight=1.5)
    mistyped("recall", "office", feedback_influence="much")
    refused("recall", "office", min_usefulness=float("nan"))
    mistyped("recall", "office", policy="whim")
    refused("recall", "office", exploration=-0.1)
    mistyped("recall", "office", seed="x")
    mistyped("recall", "office", explain="yes")
    refused("recall", "office", on_token=tokens.append)
    refused("recall", "office", session_id=" ")
    call("policy")
    call("set_policy", "adaptive", dataset="notes")
    call("policy", dataset="notes")
    refused("policy", dataset="no such dataset")
    mistyped("policy", dataset=5)
    call("set_policy", None)
    mistyped("set_policy", "whim")
    mistyped("set_policy", 3)
    refused("set_policy", "adaptive", dataset="")


def opinions(life: Life) -> None:
    call, refused, mistyped = life.call, life.refused, life.mistyped
    reply = call("recall", "When does the office open?", boost_by_usefulness=True)
    opens, closes = reply.hits[0], reply.hits[1]
    call("receipt", reply.recall_id)
    refused("receipt", UNKNOWN_ID)
    refused("receipt", "")
    refused("receipt", 4)
    call("detect", "It opens at eight in the morning.", reply.recall_id)
    call("detect", "", reply.recall_id)
    refused("detect", "It opens at eight.", UNKNOWN_ID)
    given = call(
        "signal",
        [{"fact_id": opens.fact_id, "signal_type": "helpful", "query": "opening hours", "confidence": 0.9}],
        idempotency_key="signal-1",
    )
    call(
        "signal",
        [{"fact_id": opens.fact_id, "signal_type": "helpful", "query": "opening hours", "confidence": 0.9}],
        idempotency_key="signal-1",
    )
    refused(
        "signal",
        [{"fact_id": opens.fact_id, "signal_type": "ignored", "query": "opening hours"}],
        idempotency_key="signal-1",
    )
    call("signal", Signal(fact_id=closes.fact_id, signal_type="ignored", query="opening hours", author="Ida"))
    call("signal", (Signal(fact_id=each, signal_type="used", query="hours") for each in (opens.fact_id, UNKNOWN_ID)))
    refused("signal", [{"fact_id": opens.fact_id, "signal_type": "loved", "query": "hours"}])
    refused("signal", [{"fact_id": opens.fact_id, "signal_type": "used"}])
    refused("signal", [{"fact_id": opens.fact_id, "signal_type": "used", "query": "hours", "mood": 1}])
    mistyped("signal", 5)
    mistyped("signal", [5])
    refused("signal", [], idempotency_key="")
    call("signal_recall", reply.recall_id, helpful=[opens], used=closes.fact_id, author="Ida", idempotency_key="sr-1")
    call("signal_recall", reply.recall_id, answer="It opens at eight in the morning.", author="Ole")
    refused("signal_recall", UNKNOWN_ID, used=[opens])
    refused("signal_recall", reply.recall_id, used=[UNKNOWN_ID])
    call("signal_recall", reply.recall_id, used=[closes.fact_id, UNKNOWN_ID])
    call("signal_recall", reply.recall_id, used=[opens], not_helpful=[opens])
    refused("signal_recall", reply.recall_id, used=5)
    mistyped("signal_recall", reply.recall_id, used=[5])
    refused("signal_recall", reply.recall_id, confidence=1.5)
    refused("signal_recall", reply.recall_id, author="")
    call("signal_recall", reply.recall_id)
    call("fact_stats", opens.fact_id)
    call("fact_history", opens.fact_id)
    refused("fact_stats", UNKNOWN_ID)
    call("usefulness_stats")
    refused("usefulness_stats", "no such dataset")
    refused("usefulness_stats", " ")
    call("replay", weights=[0.2, 0.5], seed=7)
    call("replay", dataset="notes", policies=("documented",), since=datetime(2026, 1, 1, tzinfo=UTC))
    refused("replay", weights=[2.0])
    mistyped("replay", policies="documented")
    mistyped("replay", policies=["whim"])
    mistyped("replay", since="yesterday")
    mistyped("replay", seed="x")
    call("regress", seed=7)
    call("regress", policy="documented", usefulness_weight=0.5, dataset="notes", sample=5, answers=True)
    refused("regress", usefulness_weight=2.0)
    refused("regress", dataset="nowhere")
    mistyped("regress", sample="x")
    mistyped("regress", policy="whim")
    call("retract", given.event_ids[0], author="Ida")
    call("retract", given.event_ids[0])
    refused("retract", UNKNOWN_ID)
    refused("retract", "")
    corrected = call("supersede", closes.fact_id, "The Lisbon office closes at seven.", author="Ida")
    refused("supersede", closes.fact_id, "The Lisbon office closes at nine.")
    refused("supersede", UNKNOWN_ID, "text")
    refused("supersede", opens.fact_id)
    refused("supersede", opens.fact_id, "text", by=closes.fact_id)
    call("retract", corrected.event_id)
    call("recall", "When does the office open?", boost_by_usefulness=True, explain=True, top_k=2)


def sessions(life: Life) -> None:
    call, refused, mistyped = life.call, life.refused, life.mistyped
    call("sessions.create", "monday", metadata={"variant": "A", "user": {"name": "Ida"}})
    call("sessions.create", "monday", metadata={"lang": "pt"})
    call("sessions.create", "tuesday/1 ü?", metadata={"variant": "B"})
    call("sessions.create")
    refused("sessions.create", "")
    mistyped("sessions.create", 5)
    mistyped("sessions.create", "x", metadata="variant")
    refused("sessions.create", "x", metadata={"a.b": 1, "$set": 2})
    call("sessions.get", "monday")
    call("sessions.get", "tuesday/1 ü?")
    refused("sessions.get", "sunday")
    refused("sessions.get", "..")
    mistyped("sessions.get", "")
    mistyped("sessions.get", None)
    call("sessions.exists", "monday")
    call("sessions.exists", "sunday")
    page = call("sessions.list", limit=1)
    call("sessions.list", limit=1, cursor=page.next_cursor)
    call("sessions.list", where={"variant": "B"})
    refused("sessions.list", limit=0)
    mistyped("sessions.list", limit="5")
    mistyped("sessions.list", limit="five")
    mistyped("sessions.list", limit=True)
    refused("sessions.list", cursor="nowhere")
    mistyped("sessions.list", where="variant")
    refused("sessions.list", where={"variant": {"$near": 1}})
    call("sessions.add_message", "monday", "user", "When do you open?")
    call("sessions.add_message", "monday", "assistant", "At eight.", at=datetime(2026, 1, 1, 9, tzinfo=UTC))
    refused("sessions.add_message", "monday", "", "text")
    mistyped("sessions.add_message", "monday", "user", 5)
    mistyped("sessions.add_message", "monday", "user", "text", at="soon")
    added = call("sessions.add_messages", "monday", [{"role": "user", "content": "Thanks!"}])
    call("sessions.add_messages", "tuesday/1 ü?", iter(added))
    call("sessions.add_messages", "monday", [])
    mistyped("sessions.add_messages", "monday", [{"role": "user"}])
    refused("sessions.add_messages", "monday", "text")
    mistyped("sessions.add_messages", "monday", [5])
    (thanks,) = added
    call("sessions.update_message", "monday", thanks.message_id, "Thank you!")
    refused("sessions.update_message", "tuesday/1 ü?", thanks.message_id, "Thank you!")
    refused("sessions.update_message", "monday", "no such message", "Thank you!")
    mistyped("sessions.update_message", "monday", thanks.message_id, 5)
    call("sessions.messages", "monday", limit=2)
    call("sessions.messages", "monday", newest_first=True)
    refused("sessions.messages", "sunday")
    mistyped("sessions.messages", "monday", newest_first="yes")
    call("sessions.delete_message", "monday", thanks.message_id)
    refused("sessions.delete_message", "monday", thanks.message_id)
    reply = call("sessions.get_metadata", "monday")
    refused("sessions.get_metadata", "sunday")
    call("sessions.update_metadata", "monday", {"user.team": "sales", "vip": True}, if_match=etag(reply))
    refused("sessions.update_metadata", "monday", {"vip": False}, if_match=etag(reply))
    mistyped("sessions.update_metadata", "monday", {"vip": False}, if_match="")
    refused("sessions.update_metadata", "monday", {"variant.deep": 1})
    mistyped("sessions.update_metadata", "monday", [1])
    refused("sessions.update_metadata", "sunday", {"vip": True})
    call("sessions.delete_metadata", "monday", ["vip", "no such"])
    call("sessions.delete_metadata", "monday", "user.team")
    mistyped("sessions.delete_metadata", "monday", 5)
    refused("sessions.delete_metadata", "monday", ["lang"], if_match="0" * 32)
    refused("sessions.delete_metadata", "sunday", ["vip"])


def answers(life: Life) -> None:
    call, refused, mistyped = life.call, life.refused, life.mistyped
    reply = call("recall", "When does the office open?", session_id="monday", top_k=2)
    call(
        "sessions.add_entry",
        "monday",
        "When does it close?",
        "At six.",
        context="The Lisbon office closes at six.",
        recall_id=reply.recall_id,
        used={reply.hits[0].fact_id: 0.25, reply.hits[1].fact_id: 0.75},
    )
    own = call("sessions.add_entry", "tuesday/1 ü?", "Where is the desk?", "By the door.")
    refused("sessions.add_entry", "monday", "", "text")
    refused("sessions.add_entry", "monday", "q", "a", recall_id=UNKNOWN_ID)
    refused("sessions.add_entry", "monday", "q", "a", recall_id=reply.recall_id, used=[UNKNOWN_ID])
    mistyped("sessions.add_entry", "monday", "q", "a", recall_id=reply.recall_id, used=5)
    refused("sessions.add_entry", "monday", "q", "a", used=[reply.hits[0].fact_id])
    call("sessions.entries", "monday")
    call("sessions.entries", "monday", limit=1, newest_first=True)
    refused("sessions.entries", "sunday")
    refused("sessions.entries", "monday", limit=100_000)
    call("sessions.entry", "monday", reply.qa_id)
    refused("sessions.entry", "monday", UNKNOWN_ID)
    refused("sessions.entry", "monday", own.qa_id)
    call("sessions.add_feedback", "monday", reply.qa_id, "Just what I needed.", 5, author="Ida")
    call("sessions.add_feedback", "tuesday/1 ü?", own.qa_id, feedback_score=2)
    call("sessions.add_feedback", "monday", UNKNOWN_ID, feedback_score=5)
    call("sessions.add_feedback", "sunday", UNKNOWN_ID, feedback_score=5)
    traced = call("sessions.add_entry", "monday", "Who is there?", "Nobody.", external_id="trace/1 ü")
    assert (
        call("sessions.add_entry", "monday", "Who is there?", "Nobody.", external_id="trace/1 ü").qa_id == traced.qa_id
    )
    refused("sessions.add_entry", "monday", "Who is there?", "Somebody.", external_id="trace/1 ü")
    call("sessions.rate", "trace/1 ü", "VERY_NEGATIVE", comment="Ola was.", author="Ida")
    call("sessions.rate", "later", 0.9, author="Ida")
    call("sessions.rate", "later", 1, scale=(0, 1), author="Ida")
    call("sessions.delete_feedback", "monday", "later", author="Ida")
    refused("sessions.rate", "trace/1 ü", 1)
    refused("sessions.rate", "trace/1 ü", "superb")
    refused("sessions.rate", "trace/1 ü")
    call("sessions.delete_feedback", "monday", "trace/1 ü", author="Ida")
    refused("sessions.add_feedback", "monday", reply.qa_id)
    refused("sessions.add_feedback", "monday", reply.qa_id, feedback_score=6)
    mistyped("sessions.add_feedback", "monday", reply.qa_id, feedback_score="5")
    mistyped("sessions.add_feedback", "monday", reply.qa_id, feedback_text=5)
    call("improve", session_ids=["monday"])
    call("improve")
    call("improve", "notes")
    call("improve", session_ids="monday")
    refused("improve", session_ids=["sunday"])
    refused("improve", "")
    call("sessions.delete_feedback", "monday", reply.qa_id, author="Ida")
    call("sessions.delete_feedback", "tuesday/1 ü?", own.qa_id)
    call("sessions.delete_feedback", "monday", UNKNOWN_ID)
    refused("sessions.delete_feedback", "monday", reply.qa_id, author="")


def ratings(life: Life) -> None:
    call, refused, mistyped = life.call, life.refused, life.mistyped
    reply = call(
        "sessions.add_session_feedback",
        "monday",
        {"rating": "up", "comment": "Quick.", "page": "/help"},
        author="Ida",
        idempotency_key="rate-1",
    )
    call(
        "sessions.add_session_feedback",
        "monday",
        {"rating": "up", "comment": "Quick.", "page": "/help"},
        author="Ida",
        idempotency_key="rate-1",
    )
    call("sessions.add_session_feedback", "tuesday/1 ü?", {"rating": "down", "comment": "Too slow."})
    call("sessions.add_session_feedback", "tuesday/1 ü?", {"rating": None})
    refused("sessions.add_session_feedback", "monday", {"rating": "sideways"})
    mistyped("sessions.add_session_feedback", "monday", "up")
    refused("sessions.add_session_feedback", "sunday", {"rating": "up"})
    refused("sessions.add_session_feedback", "monday", {"rating": "down"}, author="Ida", idempotency_key="rate-1")
    call("sessions.feedbacks", "tuesday/1 ü?", newest_first=True)
    refused("sessions.feedbacks", "sunday")
    call("sessions.feedback_metrics")
    call("insight.satisfaction", "variant")
    call("insight.satisfaction", "variant", since=datetime(2030, 1, 1, tzinfo=UTC))
    refused("insight.satisfaction", "")
    refused("insight.satisfaction", "nothing")
    call("insight.satisfaction", "target_type", target_type="entry", until=datetime(2030, 1, 1, tzinfo=UTC))
    call("insight.trend")
    call("insight.trend", over="week", by="variant", since=datetime(2024, 1, 1, tzinfo=UTC))
    refused("insight.trend", since=datetime(2030, 1, 1, tzinfo=UTC), until=datetime(2020, 1, 1, tzinfo=UTC))
    mistyped("insight.trend", over="year")
    call("insight.coverage")
    refused("insight.coverage", dataset="nothing")
    call("insight.cache", limit=3)
    call("insight.themes")
    call("insight.notes", by="variant")
    refused("insight.notes", by="nothing")
    mistyped("insight.satisfaction", 5)
    mistyped("insight.satisfaction", "variant", since="soon")
    exports(life)
    waiting = call("sessions.alerts", pending=True)
    call("sessions.deliver_alerts")
    call("sessions.discard_alert", waiting.items[0].alert_id)
    call("sessions.alerts", limit=5)
    refused("sessions.discard_alert", UNKNOWN_ID)
    mistyped("sessions.alerts", pending="yes")
    call("retract", reply.feedback_id)


def exports(life: Life) -> None:
    call, refused, mistyped = life.call, life.refused, life.mistyped
    call("insight.digest")
    call("insight.digest", since=datetime(2025, 12, 1, tzinfo=UTC), until=datetime(2026, 2, 1, tzinfo=UTC))
    refused("insight.digest", since=datetime(2030, 1, 1, tzinfo=UTC))
    call("insight.dictionary")
    for table in ("feedback", "signals", "entries", "sessions", "messages", "facts", "recalls", "events"):
        call("insight.rows", table)
    call("insight.rows", "feedback", limit=1)
    call("insight.rows", "events", since=datetime(2030, 1, 1, tzinfo=UTC), dataset="main_dataset")
    refused("insight.rows", "sessions", dataset="main_dataset")
    refused("insight.rows", "feedback", dataset="nowhere")
    refused("insight.rows", "feedback", cursor="a.b")
    mistyped("insight.rows", "opinions")
    mistyped("insight.rows", "feedback", limit=0)
    answered = call("sessions.add_entry", "rated", "May I send a kettle back?", "Within thirty days.")
    call("sessions.add_feedback", "rated", answered.qa_id, None, 5, author="Ida")
    for format in ("sft", "kto", "dpo", "triplets", "text2sql", "evals"):
        call("insight.training", format)
    call("sessions.delete", "rated")
    call("insight.training", "triplets", dataset="main_dataset", where={"page": {"exists": False}}, limit=1)
    call("insight.training", "kto", visitors=True, test_share=0.5, split="test", until=datetime(2030, 1, 1, tzinfo=UTC))
    refused("insight.training", "sft", dataset="nowhere")
    refused("insight.training", "text2sql", dataset="main_dataset")
    refused("insight.training", "sft", cursor=f"{'0' * 16}.1")
    mistyped("insight.training", "orpo")
    mistyped("insight.training", "sft", test_share=2)
    call("insight.export_training", life.world.folder / "pairs.jsonl", "dpo", overwrite=True)
    call("insight.export_training", str(life.world.folder / "triplets.jsonl"), "triplets", overwrite=True)
    refused("insight.export_training", life.world.folder / "pairs.jsonl", "dpo")
    refused("insight.export_training", life.world.folder / "more.jsonl", "sft", dataset="nowhere")
    call("insight.export", "feedback", life.world.folder / "feedback.csv", overwrite=True)
    call("insight.export", "recalls", str(life.world.folder / "recalls.txt"), format="jsonl", overwrite=True)
    refused("insight.export", "feedback", life.world.folder / "feedback.csv")
    refused("insight.export", "feedback", life.world.folder / "feedback.xlsx")
    refused("insight.export", "opinions", life.world.folder / "opinions.csv")
    refused("insight.export", "feedback", life.world.folder / "more.csv", dataset="nowhere")


def connectors(life: Life) -> None:
    call, refused, mistyped = life.call, life.refused, life.mistyped
    refused("executions.execute_query", "SELECT 1")
    call("connectors.create", "geo", life.world.cities, sensitive_columns=["city.id"])
    shop = call("connectors.create", "shop", life.world.sales)
    refused("connectors.create", "geo", life.world.cities)
    refused("connectors.create", "", life.world.cities)
    refused("connectors.create", "other", "nonsense")
    refused("connectors.create", "other", f"sqlite:///{life.world.folder / 'missing.db'}")
    mistyped("connectors.create", "other", 5)
    call("connectors.list")
    call("connectors.get", "geo")
    call("connectors.get", shop.connector_id)
    refused("connectors.get", "moon")
    call("connectors.schema", "geo")
    refused("connectors.schema", "moon")
    call("connectors.refresh", "shop")
    refused("connectors.refresh", "moon")
    call("connectors.confirm", "geo")
    refused("connectors.confirm", "moon")


def executions(life: Life) -> None:
    call, refused, mistyped = life.call, life.refused, life.mistyped
    call("executions.execute_query", IN_ITALY_SQL, connector_id="geo", question=IN_ITALY)
    sold = call("executions.execute_query", SALES_SQL, connector_id="shop", question=SALES)
    call(
        "executions.execute_query",
        "SELECT name FROM city WHERE people > :least ORDER BY name",
        connector_id="geo",
        parameters={"least": 1_000_000},
    )
    refused("executions.execute_query", IN_ITALY_SQL)
    refused("executions.execute_query", IN_ITALY_SQL, connector_id="moon")
    refused("executions.execute_query", "DELETE FROM city", connector_id="geo")
    refused("executions.execute_query", "SELECT * FROM planet", connector_id="geo")
    refused("executions.execute_query", "SELEC", connector_id="geo")
    refused("executions.execute_query", "SELECT :a", connector_id="geo")
    mistyped("executions.execute_query", 5, connector_id="geo")
    refused("executions.execute_query", IN_ITALY_SQL, connector_id="geo", question=" ")
    mistyped("executions.execute_query", IN_ITALY_SQL, connector_id="geo", parameters=[1])
    refused("executions.execute_query", IN_ITALY_SQL, connector_id="geo", chat_message_id=UNKNOWN_ID)
    call("executions.get", sold.execution_id)
    refused("executions.get", UNKNOWN_ID)
    page = call("executions.list", limit=1)
    call("executions.list", limit=1, cursor=page.next_cursor)
    call("executions.list", connector_id="shop")
    refused("executions.list", connector_id="moon")
    refused("executions.list", limit=0)
    call("executions.delete", page.items[0].execution_id)
    refused("executions.delete", page.items[0].execution_id)


def execution_feedback(life: Life) -> None:
    call, refused, mistyped = life.call, life.refused, life.mistyped
    done = call("executions.list", connector_id="geo").items[0]
    sold = call("executions.list", connector_id="shop").items[0]
    reply = call(
        "feedback.create",
        is_positive=True,
        feedback="I counted them.",
        execution_id=done.execution_id,
        author="Ida",
        idempotency_key="feedback-1",
    )
    call(
        "feedback.create",
        is_positive=True,
        feedback="I counted them.",
        execution_id=done.execution_id,
        author="Ida",
        idempotency_key="feedback-1",
    )
    refused("feedback.create", is_positive=False, execution_id=done.execution_id, idempotency_key="feedback-1")
    refused("feedback.create", is_positive=True)
    refused("feedback.create", is_positive=True, execution_id=UNKNOWN_ID)
    mistyped("feedback.create", is_positive="yes", execution_id=done.execution_id)
    mistyped("feedback.create", execution_id=done.execution_id)
    call("feedback.create_positive", feedback_text="Right.", execution_id=sold.execution_id, author="Ole")
    refused("feedback.create_positive", execution_id=UNKNOWN_ID)
    wrong = call("feedback.create_negative", feedback="Not all of it.", execution_id=sold.execution_id, author="Ida")
    mistyped("feedback.create_negative", feedback=5, execution_id=sold.execution_id)
    call("feedback.get", reply.id)
    refused("feedback.get", UNKNOWN_ID)
    call("feedback.list", search="counted")
    call("feedback.list", skip=1, limit=1)
    refused("feedback.list", skip=-1)
    mistyped("feedback.list", search=5)
    call("feedback.list_positive")
    call("feedback.list_negative", limit=10)
    refused("feedback.list_positive", limit=0)
    mistyped("feedback.list_negative", skip="1")
    seen = etag(reply)
    call("feedback.update", reply.id, feedback="I counted them twice.", if_match=seen)
    refused("feedback.update", reply.id, feedback="Again.", if_match=seen)
    call("feedback.update", reply.id, feedback=None)
    call("feedback.update", reply.id)
    mistyped("feedback.update", reply.id, is_positive=None)
    refused("feedback.update", UNKNOWN_ID, is_positive=False)
    call("feedback.bulk_delete", [wrong.id, UNKNOWN_ID])
    mistyped("feedback.bulk_delete", wrong.id)
    mistyped("feedback.bulk_delete", [5])
    call("chat.execution_cache_lookup", IN_ITALY, connector_id="geo")
    call("chat.execution_cache_lookup", IN_FRANCE, connector_id="geo", only_positive_feedback=True)
    call("chat.execution_cache_lookup", SALES, connector_id="shop", reuse="result")
    call("chat.execution_cache_lookup", SALES, connector_id="shop", max_age_days=0.5, top_n=1)
    call("chat.execution_cache_lookup", "Who is the mayor?", connector_id="geo", similarity_threshold=0.99)
    refused("chat.execution_cache_lookup", "", connector_id="geo")
    refused("chat.execution_cache_lookup", IN_ITALY, connector_id="moon")
    mistyped("chat.execution_cache_lookup", IN_ITALY, connector_id="geo", reuse="luck")
    refused("chat.execution_cache_lookup", IN_ITALY, connector_id="geo", similarity_threshold=1.5)
    refused("chat.execution_cache_lookup", IN_ITALY, connector_id="geo", top_n=0)
    mistyped("chat.execution_cache_lookup", IN_ITALY, connector_id="geo", max_age_days="old")
    mistyped("chat.execution_cache_lookup", IN_ITALY, connector_id="geo", only_positive_feedback="yes")
    suggestions(life)


def suggestions(life: Life) -> None:
    call, refused, mistyped = life.call, life.refused, life.mistyped
    for street in ("Via Appia", "Karl Johan"):
        sql = f"SELECT c.name FROM city c JOIN street s ON s.city_id = c.id WHERE s.name = '{street}'"
        asked = f"Which large old city has the street {street}?"
        done = call("executions.execute_query", sql, question=asked, connector_id="geo")
        call("feedback.create_positive", execution_id=done.execution_id)
    meant = "Which large city has the street Via Veneto?"
    likely = call("chat.execution_cache_lookup", meant, connector_id="geo").suggestion
    call("chat.execution_cache_coverage", connector_id="geo")
    call("chat.execution_cache_coverage", connector_id="geo", max_age_days=1, limit=1)
    refused("chat.execution_cache_coverage", connector_id="moon")
    refused("chat.execution_cache_coverage", connector_id="geo", limit=0)
    mistyped("chat.execution_cache_coverage", connector_id="geo", max_age_days="old")
    refused("chat.confirm_suggestion", meant, UNKNOWN_ID, connector_id="geo")
    refused("chat.confirm_suggestion", "", likely.execution_id, connector_id="geo")
    mistyped("chat.confirm_suggestion", meant, 5, connector_id="geo")
    call("chat.confirm_suggestion", meant, likely.execution_id, connector_id="geo", author="ann")


def examples(life: Life) -> None:
    call, refused, mistyped = life.call, life.refused, life.mistyped
    done = call("feedback.list_positive").items[-1].execution_id
    made = call("golden_examples.create", "Which cities are large?", "SELECT name FROM city", connector_id="geo")
    refused("golden_examples.create", "Which cities are large?", "SELECT name FROM city", connector_id="geo")
    refused("golden_examples.create", "Which?", "DROP TABLE city", connector_id="geo")
    refused("golden_examples.create", "Which?", "SELECT :a", connector_id="geo")
    refused("golden_examples.create", "", "SELECT 1", connector_id="geo")
    refused("golden_examples.create", "Which?", "SELECT 1")
    call("golden_examples.promote", done)
    refused("golden_examples.promote", done)
    refused("golden_examples.promote", UNKNOWN_ID)
    call(
        "golden_examples.import_examples",
        [{"question": "Which streets?", "sql_query": "SELECT name FROM street"}],
        connector_id="geo",
    )
    refused(
        "golden_examples.import_examples", [{"question": "Which?", "sql_query": "DROP TABLE x"}], connector_id="geo"
    )
    mistyped("golden_examples.import_examples", [{"question": "Which?"}], connector_id="geo")
    mistyped("golden_examples.import_examples", "text", connector_id="geo")
    mistyped("golden_examples.import_examples", [5], connector_id="geo")
    call("golden_examples.import_file", life.world.folder / "examples.jsonl", connector_id="geo")
    refused("golden_examples.import_file", life.world.folder / "missing.csv", connector_id="geo")
    refused("golden_examples.import_file", str(life.world.folder / "broken.csv"), connector_id="geo")
    refused("golden_examples.import_file", life.world.folder / "cities.db", connector_id="geo")
    call("golden_examples.get", made.id)
    refused("golden_examples.get", UNKNOWN_ID)
    call("golden_examples.list", connector_id="geo", limit=10)
    call("golden_examples.list", skip=1, limit=1)
    refused("golden_examples.list", skip=-1)
    seen = etag(made)
    call("golden_examples.update", made.id, sql_query="SELECT name FROM city WHERE people > 1000000", if_match=seen)
    refused("golden_examples.update", made.id, question="Which?", if_match=seen)
    mistyped("golden_examples.update", made.id, question=None)
    refused("golden_examples.update", made.id, sql_query="DROP TABLE city")
    refused("golden_examples.update", UNKNOWN_ID, question="Which?")
    call("golden_examples.delete", made.id)
    refused("golden_examples.delete", made.id)


def chat(life: Life) -> None:
    call, refused = life.call, life.refused
    talk = call("chat_sessions.create", name="Geography")
    call("chat_sessions.create")
    refused("chat_sessions.create", name="")
    call("chat_sessions.get", talk.id)
    refused("chat_sessions.get", "monday")
    call("chat_sessions.list", limit=1)
    refused("chat_sessions.list", limit=0)
    reply = call("chat.chat_to_sql", talk.id, IN_FRANCE, connector_id="geo")
    call("chat.chat_to_sql", talk.id, STREETS, connector_id="geo", feedback_cutoff=0.9, remarks=["Streets have names."])
    refused("chat.chat_to_sql", talk.id, STREETS, connector_id="geo", remarks=[" "])
    life.mistyped("chat.chat_to_sql", talk.id, STREETS, connector_id="geo", remarks="Streets have names.")
    refused("chat.chat_to_sql", talk.id, "How is the weather?", connector_id="geo")
    refused("chat.chat_to_sql", UNKNOWN_ID, IN_FRANCE, connector_id="geo")
    refused("chat.chat_to_sql", talk.id, "", connector_id="geo")
    refused("chat.chat_to_sql", talk.id, IN_FRANCE)
    refused("chat.chat_to_sql", talk.id, IN_FRANCE, connector_id="geo", feedback_cutoff=1.5)
    call("chat.chat_to_answer", talk.id, IN_ITALY, connector_id="geo")
    call("chat.chat_to_answer", talk.id, SALES, connector_id="shop")
    refused("chat.chat_to_answer", talk.id, "How is the weather?", connector_id="geo")
    call("executions.execute_from_chat", reply.chat_message_id)
    refused("executions.execute_from_chat", UNKNOWN_ID)
    call("executions.execute_query", IN_ITALY_SQL, connector_id="geo", chat_message_id=reply.chat_message_id)
    call("feedback.create_positive", chat_message_id=reply.chat_message_id)
    said = call("feedback.get_feedback_for_message", reply.chat_message_id)
    call("feedback.get_feedback_for_message", UNKNOWN_ID)
    refused("feedback.get_feedback_for_message", "")
    call("feedback.delete", said.items[0].id)
    refused("feedback.delete", said.items[0].id)
    call("chat_sessions.get_questions", talk.id)
    refused("chat_sessions.get_questions", UNKNOWN_ID)
    call("chat_sessions.delete", talk.id)
    refused("chat_sessions.delete", talk.id)


def review(life: Life) -> None:
    call, refused, mistyped = life.call, life.refused, life.mistyped
    reply = call("recall", "When does the office open?", session_id="monday", top_k=2)
    call("sessions.add_feedback", "monday", reply.qa_id, "It opens at nine.", 1, author="Ida")
    call("sessions.add_feedback", "monday", reply.qa_id, "Right.", 5, author="Ole")
    done = call("executions.list", connector_id="geo").items[0]
    call("feedback.create_negative", feedback="Too many.", execution_id=done.execution_id, author="Ida")
    page = call("review.list", limit=1)
    call("review.list", limit=1, cursor=page.next_cursor)
    call("review.list", status=None, dataset="main_dataset")
    refused("review.list", limit=0)
    refused("review.list", cursor="nowhere")
    mistyped("review.list", status="lost")
    mistyped("review.list", target_type="planet")
    item = call("review.list", target_type="entry").items[0]
    ran = call("review.list", target_type="execution").items[0]
    case = call("review.get", item.item_id)
    refused("review.get", UNKNOWN_ID)
    call("review.assign", item.item_id, "Eva", author="Ida", if_match=etag(item))
    refused("review.assign", item.item_id, "Ole", if_match=etag(item))
    refused("review.assign", item.item_id, "")
    mistyped("review.assign", item.item_id, 5)
    call("review.list", assignee="Eva")
    fact_id = case.evidence[0].fact_id
    fixed = call(
        "review.fix",
        item.item_id,
        "supersede",
        fact_id=fact_id,
        text="The Lisbon office opens at nine in the morning.",
        note="Since May.",
        author="Eva",
    )
    refused("review.fix", item.item_id, "supersede", fact_id=fact_id, text="At ten.")
    refused("review.fix", item.item_id, "supersede", fact_id=fact_id)
    refused("review.fix", item.item_id, "block", execution_id=UNKNOWN_ID)
    refused("review.fix", item.item_id, "retract", event_id=UNKNOWN_ID)
    refused("review.fix", UNKNOWN_ID, "retract", event_id=UNKNOWN_ID)
    mistyped("review.fix", item.item_id, "burn")
    call("review.ask_again", item.item_id)
    refused("review.ask_again", UNKNOWN_ID)
    call("review.resolve", item.item_id, note="Corrected.", author="Eva")
    refused("review.resolve", item.item_id, author="Ole")
    refused("review.dismiss", item.item_id, author="Ole")
    mistyped("review.dismiss", item.item_id, note=5)
    call("review.reopen", item.item_id, author="Ole")
    call("review.dismiss", item.item_id, note="It is right as it is.", author="Ole")
    refused("review.reopen", UNKNOWN_ID)
    call("review.undo", fixed.event_id, author="Ole")
    call("review.undo", fixed.event_id)
    refused("review.undo", UNKNOWN_ID)
    refused("review.fix", ran.item_id, "promote", execution_id=done.execution_id, author="Eva")
    (opinion,) = call("review.get", ran.item_id).opinions
    back = call("review.fix", ran.item_id, "retract", event_id=opinion.event_id, author="Eva")
    example = call("review.fix", ran.item_id, "add_example", question="Who?", sql_query="SELECT 1", connector_id="geo")
    call("review.ask_again", ran.item_id)
    call("retract", example.event_id, author="Eva")
    call("review.undo", back.event_id)
    call("review.get", ran.item_id)
    call("feedback.bulk_delete", [each.id for each in call("feedback.list_negative").items])


def keys(life: Life) -> None:
    call, refused, mistyped = life.call, life.refused, life.mistyped
    made = call("keys.create", "website", scopes=["feedback", "read"], rate_limit=50)
    call("keys.create", "agent")
    refused("keys.create", "")
    refused("keys.create", "x", scopes=[])
    mistyped("keys.create", "x", scopes=["root"])
    mistyped("keys.create", "x", scopes="read")
    refused("keys.create", "x", rate_limit=0)
    mistyped("keys.create", "x", rate_limit="50")
    call("keys.revoke", made.key_id)
    refused("keys.revoke", UNKNOWN_ID)
    call("keys.list")
    call("keys.create_token", [{"session_id": "monday"}, {"recall_id": UNKNOWN_ID}], author="Ida", expires_in=3600)
    call("keys.create_token", {"session_id": "monday", "qa_id": UNKNOWN_ID})
    call("keys.rotate_signing", grace=3600)
    refused("keys.rotate_signing", grace=-1)
    call("audit", kind="refusal", since=datetime(2100, 1, 1, tzinfo=UTC), limit=20)
    mistyped("audit", kind="rumour")
    refused("audit", limit=0)
    refused("keys.create_token", [])
    refused("keys.create_token", [{"qa_id": UNKNOWN_ID}])
    refused("keys.create_token", [{"planet": "Mars"}])
    refused("keys.create_token", {"session_id": "monday"}, expires_in=0)
    mistyped("keys.create_token", {"session_id": "monday"}, expires_in="600")


def jobs(life: Life) -> None:
    """Nobody does them: what becomes of them would depend on who comes first."""
    call, refused, mistyped = life.call, life.refused, life.mistyped
    added = call("jobs.improve")
    call("jobs.improve", "main_dataset")
    call("jobs.improve", "menu", ["monday"])
    refused("jobs.improve", " ")
    mistyped("jobs.improve", 5)
    call("jobs.list", limit=1)
    call("jobs.list", status="waiting", kind="improve")
    call("jobs.list", kind="deliver", limit=5)
    refused("jobs.list", kind="deliver", status="failed")
    mistyped("jobs.list", status="lost")
    call("jobs.get", added.job_id)
    refused("jobs.get", UNKNOWN_ID)
    refused("jobs.retry", added.job_id)
    call("jobs.cancel", added.job_id)
    call("jobs.cancel", added.job_id)
    refused("jobs.cancel", UNKNOWN_ID)
    call("jobs.retry", added.job_id)
    refused("jobs.retry", UNKNOWN_ID)


def end(life: Life) -> None:
    call, refused, mistyped = life.call, life.refused, life.mistyped
    call("check_facts", limit=2)
    call("check_facts", dataset="notes")
    refused("check_facts", limit=0)
    refused("check_facts", dataset="no such dataset")
    call("doctor", repair=False)
    call("doctor")
    mistyped("doctor", repair="yes")
    facts = call("recall", "desk visitors", top_k=1)
    call("forget", facts.hits[0].fact_id)
    call("forget", source="handbook", dataset="main_dataset")
    call("forget", dataset="menu")
    refused("forget", [facts.hits[0].fact_id])
    refused("forget")
    mistyped("forget", 5)
    refused("forget", dataset="no such dataset")
    call("sessions.delete", "monday")
    refused("sessions.delete", "monday")
    call("connectors.delete", "shop")
    refused("connectors.delete", "shop")
    call("datasets")
