"""What people and programs do all day: a mixture of calls. The ledger grows, what is active does not.

Facts, sessions and executions come and go: once there are as many as `Level` says, the oldest leave as new ones come.
Opinions are never removed, and the questions that they are about come from a list, as those of a help desk do.
"""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TypeVar

import httpx

from heedful.errors import NotFound
from heedful.interfaces.client.surface import RemoteHeedful
from heedful.model import Document, Recall

NAMES = ("Ada", "Boris", "Chen", "Dora", "Emil", "Fatima", "Goran", "Hana", "Ines", "Jonas", "Kira", "Luis")
PLACES = ("Porto", "Ghent", "Oslo", "Graz", "Lyon", "Turin", "Malmo", "Split", "Cork", "Basel")
THINGS = ("invoice", "parcel", "refund", "voucher", "warranty", "battery", "password", "newsletter", "lamp", "table")
DEEDS = ("sends", "checks", "repairs", "approves", "delays", "replaces", "counts", "signs", "returns", "archives")
COUNTRIES = ("France", "Norway", "Spain", "Poland", "Italy", "Chile", "Japan", "Kenya")
QUESTIONS = [f"who {deed} the {thing} in {place}" for place in PLACES for deed in DEEDS[:5] for thing in THINGS[:6]]
AUTHORS = [f"{name.lower()}@example.org" for name in NAMES]

Thing = TypeVar("Thing")

SOURCES = 20
TEXTS = 60
"""Texts of one source."""
BATCH_SIZE = 1000
"""Opinions of one call on the first day."""


@dataclass(frozen=True, slots=True)
class Level:
    """How many exist at a time."""

    facts: int = 400
    """Beside those of sources."""
    corrected: int = 100
    """Facts that were superseded, each with its successor."""
    sessions: int = 120
    executions: int = 150


@dataclass(slots=True)
class Tally:
    """What came of the calls of one step."""

    milliseconds: dict[str, list[float]] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    gone: int = 0
    """Calls about something that another caller had just removed."""
    failures: list[str] = field(default_factory=list)


class Traffic:
    """Callers of some servers; any number of threads may `work` at the same time."""

    def __init__(self, clients: Sequence[RemoteHeedful], folder: Path, level: Level | None = None) -> None:
        self._clients = clients
        self._level = level or Level()
        self._lock = threading.Lock()
        self._numbers = count()
        self._facts: deque[str] = deque()
        self._corrected: deque[tuple[str, str]] = deque()
        self._sessions: deque[tuple[str, list[str]]] = deque()
        self._executions: deque[str] = deque()
        self._events: deque[str] = deque(maxlen=200)
        self._opinions: deque[str] = deque(maxlen=200)
        self._orders = folder / "orders.db"
        self.tally = Tally()
        self.page: httpx.Client | None = None
        """Who looks at the dashboard."""

    def begin(self, opinions: int) -> None:
        """What is there on the first day, so many opinions among it."""
        with sqlite3.connect(self._orders) as connection:
            connection.execute("CREATE TABLE orders (id integer PRIMARY KEY, country text, amount integer)")
            rows = [(COUNTRIES[place % len(COUNTRIES)], place) for place in range(400)]
            connection.executemany("INSERT INTO orders (country, amount) VALUES (?, ?)", rows)
        chosen = random.Random("first")
        self._clients[0].connectors.create("shop", f"sqlite:///{self._orders}")
        for place in range(SOURCES):
            self._import(self._clients[0], chosen, place)
        while len(self._facts) < self._level.facts:
            self._remember(self._clients[0], chosen)
        for country in COUNTRIES:
            self._execute(self._clients[0], chosen, country)
        while len(self._executions) < self._level.executions:
            self._execute(self._clients[0], chosen)
        while len(self._sessions) < self._level.sessions:
            self._talk(self._clients[0], chosen)
        for _ in range(0, opinions, BATCH_SIZE):
            self._report(self._clients[0], chosen, BATCH_SIZE)

    def work(self, until: float, seed: str) -> None:
        """Calls one after the other, until a moment of the monotonic clock."""
        chosen = random.Random(seed)
        while time.monotonic() < until and not self.tally.failures:
            name, act = chosen.choices(_ACTS, _WEIGHTS)[0]
            started = time.perf_counter()
            try:
                act(self, chosen.choice(self._clients), chosen)
            except NotFound:
                with self._lock:
                    self.tally.gone += 1
            except Exception as error:
                # A thread has nobody who would hear of it: the year ends, and says why.
                with self._lock:
                    self.tally.failures.append(f"{name}: {error!r}")
            else:
                spent = (time.perf_counter() - started) * 1000
                with self._lock:
                    self.tally.calls[name] += 1
                    self.tally.milliseconds.setdefault(name, []).append(spent)

    def taken(self) -> Tally:
        """What came of the calls since it was last asked."""
        with self._lock:
            done, self.tally = self.tally, Tally()
            return done

    def _recall(self, client: RemoteHeedful, chosen: random.Random) -> Recall:
        """Most questions are asked again and again; some are new, and nobody asks them again."""
        if chosen.random() < 0.25:
            return client.recall(f"what about case {next(self._numbers)} of {chosen.choice(PLACES)}", top_k=5)
        way = chosen.random()
        question = _asked(chosen)
        if way < 0.4:
            return client.recall(question, top_k=5)
        if way < 0.8:
            return client.recall(question, top_k=5, boost_by_usefulness=True)
        if way < 0.9:
            return client.recall(question, top_k=5, boost_by_usefulness=True, min_usefulness=0.5)
        return client.recall(question, top_k=5, mode="graph")

    def _judge(self, client: RemoteHeedful, chosen: random.Random) -> None:
        """A recall, and what its caller says about it on whichever server."""
        result = client.recall(_asked(chosen), top_k=5)
        ids = [hit.fact_id for hit in result]
        if len(ids) < 2:
            return
        other = chosen.choice(self._clients)
        author = chosen.choice([None, *AUTHORS])
        key = "helpful" if chosen.random() < 0.7 else "not_helpful"
        feedback = {"used": ids[1:2], key: ids[:1]}
        given = other.signal_recall(result.recall_id, author=author, **feedback)  # type: ignore[arg-type]
        with self._lock:
            self._events.extend(given.event_ids[:1])

    def _signal(self, client: RemoteHeedful, chosen: random.Random) -> None:
        """A program that reports what was used, forty at a time."""
        self._report(client, chosen, 40)

    def _report(self, client: RemoteHeedful, chosen: random.Random, signals: int) -> None:
        """Each fact is of use for a few questions."""
        kinds = ("used", "ignored", "helpful", "not_helpful")
        client.signal(
            [
                {"fact_id": fact, "signal_type": chosen.choice(kinds), "query": _fitting(fact, chosen)}
                for fact in self._some(self._facts, chosen, signals)
            ],
            idempotency_key=f"report {next(self._numbers)}",
        )

    def _retract(self, client: RemoteHeedful, chosen: random.Random) -> None:
        event = self._taken(self._events)
        if event is not None:
            client.retract(event)

    def _talk(self, client: RemoteHeedful, chosen: random.Random) -> None:
        """A session with some answers, of which people rate some."""
        name = f"session {next(self._numbers)}"
        client.sessions.create(name, metadata={"channel": chosen.choice(["web", "mail", "phone"])})
        answers = []
        for _ in range(2):
            found = self._recall(client, chosen)
            client.sessions.add_message(name, "user", found.query)
            used = [hit.fact_id for hit in found][:2]
            entry = client.sessions.add_entry(name, found.query, "It is so.", recall_id=found.recall_id, used=used)
            answers.append(entry.qa_id)
        client.sessions.add_feedback(name, answers[0], "as it is", chosen.randint(1, 5), author=chosen.choice(AUTHORS))
        with self._lock:
            self._sessions.append((name, answers))
            old = self._sessions.popleft() if len(self._sessions) > self._level.sessions else None
        if old is not None:
            client.sessions.delete(old[0])

    def _rate(self, client: RemoteHeedful, chosen: random.Random) -> None:
        """An opinion about a conversation."""
        for name, _ in self._some(self._sessions, chosen, 1):
            down = chosen.random() < 0.3
            feedback = {
                "rating": "down" if down else "up",
                "comment": f"{chosen.choice(THINGS)} was late" if down else None,
            }
            client.sessions.add_session_feedback(name, feedback, author=chosen.choice(AUTHORS))

    def _rate_answer(self, client: RemoteHeedful, chosen: random.Random) -> None:
        """An opinion about an answer, which may replace an earlier one."""
        for name, answers in self._some(self._sessions, chosen, 1):
            score = chosen.randint(1, 5)
            client.sessions.add_feedback(name, chosen.choice(answers), None, score, author=chosen.choice(AUTHORS))

    def _execute(self, client: RemoteHeedful, chosen: random.Random, country: str | None = None) -> None:
        """A query that somebody wrote, most of which are rated."""
        where = country or chosen.choice(COUNTRIES)
        least = 0 if country else next(self._numbers) % 1000
        question = f"How many orders above {least} are in {where}?"
        sql = f"SELECT count(*) AS n FROM orders WHERE amount > {least} AND country = '{where}'"
        done = client.executions.execute_query(sql, question=question)
        right = country is not None or chosen.random() < 0.7
        feedback = client.feedback.create(
            is_positive=right, execution_id=done.execution_id, author=chosen.choice(AUTHORS)
        )
        if country is not None:
            return
        with self._lock:
            self._opinions.append(feedback.id)
        self._replace_oldest(client, done.execution_id)

    def _replace_oldest(self, client: RemoteHeedful, execution: str) -> None:
        with self._lock:
            self._executions.append(execution)
            old = self._executions.popleft() if len(self._executions) > self._level.executions else None
        if old is not None:
            client.executions.delete(old)

    def _look_up(self, client: RemoteHeedful, chosen: random.Random) -> None:
        """A question that is proven, or the same with another value."""
        least = 0 if chosen.random() < 0.7 else chosen.randrange(1000)
        question = f"How many orders above {least} are in {chosen.choice(COUNTRIES)}?"
        result = client.chat.execution_cache_lookup(question)
        if result.cache_hit and chosen.random() < 0.1:
            hit = str(result.matches[0].execution["execution_id"])
            client.feedback.create(is_positive=True, execution_id=hit, author=chosen.choice(AUTHORS))
            self._replace_oldest(client, hit)

    def _withdraw(self, client: RemoteHeedful, chosen: random.Random) -> None:
        """Somebody takes back what they said of a query."""
        opinion = self._taken(self._opinions)
        if opinion is not None:
            client.feedback.delete(opinion)

    def _remember(self, client: RemoteHeedful, chosen: random.Random) -> None:
        made = client.remember(f"{_sentence(chosen)} since {next(self._numbers)}").fact_ids
        with self._lock:
            self._facts.extend(made)
            old = self._facts.popleft() if len(self._facts) > self._level.facts else None
        if old is not None:
            client.forget(fact_ids=[old])

    def _supersede(self, client: RemoteHeedful, chosen: random.Random) -> None:
        fact = self._taken(self._facts)
        if fact is None:
            return
        new = client.supersede(fact, f"{_sentence(chosen)} until {next(self._numbers)}").superseded_by
        with self._lock:
            self._corrected.append((fact, new))
            old = self._corrected.popleft() if len(self._corrected) > self._level.corrected else ()
        if old:
            client.forget(fact_ids=list(old))

    def _import(self, client: RemoteHeedful, chosen: random.Random, place: int | None = None) -> None:
        """A source that is read again, with a few of its texts changed."""
        number = chosen.randrange(SOURCES) if place is None else place
        same = random.Random(f"source {number}")
        texts = [f"{_sentence(same)} by rule {number}.{line}" for line in range(TEXTS)]
        for line in () if place is not None else chosen.sample(range(TEXTS), 6):
            texts[line] = f"{_sentence(chosen)} by rule {number}.{line}"
        client.remember(Document(source=f"handbook {number}", texts=texts))

    def _improve(self, client: RemoteHeedful, chosen: random.Random) -> None:
        client.jobs.improve()

    def _overview(self, client: RemoteHeedful, chosen: random.Random) -> None:
        """A page of the dashboard, as somebody sees it who looks at the last month."""
        assert self.page is not None
        self.page.get("/p/default/overview").raise_for_status()

    def _review(self, client: RemoteHeedful, chosen: random.Random) -> None:
        client.review.list(limit=10)

    def _taken(self, things: deque[str]) -> str | None:
        with self._lock:
            return things.popleft() if things else None

    def _some(self, things: deque[Thing], chosen: random.Random, number: int) -> list[Thing]:
        with self._lock:
            return [things[chosen.randrange(len(things))] for _ in range(number)] if things else []


def _asked(chosen: random.Random) -> str:
    """A question of the list, those at its beginning much more often."""
    return QUESTIONS[min(int(chosen.expovariate(6 / len(QUESTIONS))), len(QUESTIONS) - 1)]


def _fitting(fact: str, chosen: random.Random) -> str:
    """One of the five questions that a fact is of use for."""
    return QUESTIONS[random.Random(f"{fact} {chosen.randrange(5)}").randrange(len(QUESTIONS))]


def _sentence(chosen: random.Random) -> str:
    name, deed, thing, place = (chosen.choice(words) for words in (NAMES, DEEDS, THINGS, PLACES))
    return f"{name} {deed} the {thing} in {place}"


RECALL, RATE, LOOK_UP, OVERVIEW = "recall", "rating", "lookup", "overview"
MEASURED = (RECALL, LOOK_UP, RATE, OVERVIEW)
"""The calls whose time is compared."""

Act = Callable[[Traffic, RemoteHeedful, random.Random], object]
_MIX: tuple[tuple[str, Act, float], ...] = (
    (RECALL, Traffic._recall, 24),
    ("judged recall", Traffic._judge, 12),
    ("signals", Traffic._signal, 5),
    ("retraction", Traffic._retract, 2),
    ("session", Traffic._talk, 4),
    (RATE, Traffic._rate, 16),
    ("rating of an answer", Traffic._rate_answer, 8),
    ("execution", Traffic._execute, 4),
    (LOOK_UP, Traffic._look_up, 12),
    ("withdrawal", Traffic._withdraw, 0.5),
    ("fact", Traffic._remember, 5),
    ("correction", Traffic._supersede, 1.5),
    ("import", Traffic._import, 0.5),
    ("improve", Traffic._improve, 0.5),
    (OVERVIEW, Traffic._overview, 5),
    ("review", Traffic._review, 1),
)
_ACTS = [(name, act) for name, act, _ in _MIX]
_WEIGHTS = [weight for _, _, weight in _MIX]
