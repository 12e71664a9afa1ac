"""How fast answers and opinions are kept, beside the bare driver that stores the same."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bench.measure import Spent, timed
from bench.sessions_bare import Answer, BareMongo, BareSqlite, Opinion
from heedful.engine import Heedful

SESSIONS = 2
"""New sessions of each round."""
EACH = 5
"""Answers in a session, scores, and ratings of the whole, each by another author."""
CALLS = SESSIONS * EACH
"""Few, so that SQLite moves its log into the file in few of the rounds: a median leaves those out on both sides."""

KINDS = {"entries": "entries", "scores": "feedback on entries", "ratings": "feedback on sessions"}

_QUESTION = "When is the office open on public holidays, and whom do I call if it is not?"
_ANSWER = (
    "The office is open from nine to twelve on public holidays, except on the first of January [1]. "
    "When it is closed, the service line takes calls at all hours; its number is on the back of your card [3]."
)
_COMMENT = "Right, and quickly found; the number would have helped."


@dataclass(slots=True)
class Writes:
    """What each round's calls took, by kind."""

    ours: dict[str, list[Spent]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    bare: dict[str, list[Spent]] = field(default_factory=lambda: {kind: [] for kind in KINDS})

    def share(self, kind: str) -> float:
        """Heedful's calls a second in those of the bare driver."""
        return calls_a_second(self.ours[kind]) / calls_a_second(self.bare[kind])


def calls_a_second(rounds: Sequence[Spent]) -> float:
    """Calls a second, by the median round."""
    return CALLS / statistics.median(each.wall for each in rounds)


def measure(store: Heedful, bare: BareSqlite | BareMongo, rounds: int) -> Writes:
    """Rounds of both in turns; every call is stored for good before the next begins."""
    writes = Writes()
    for place in range(rounds + 1):
        tasks = [(writes.ours, _ours(store, place)), (writes.bare, _bare(bare, place))]
        for kind in KINDS:
            for kept, task in tasks if place % 2 else tasks[::-1]:
                spent = timed(task[kind])[0]
                if place:  # The first is for warming up.
                    kept[kind].append(spent)
    return writes


def _ours(store: Heedful, place: int) -> dict[str, Callable[[], None]]:
    sessions = [store.sessions.create(f"round {place}, session {each}").session_id for each in range(SESSIONS)]
    made: list[tuple[str, str]] = []

    def entries() -> None:
        for each in range(CALLS):
            session = sessions[each % SESSIONS]
            made.append((session, store.sessions.add_entry(session, _QUESTION, _ANSWER).qa_id))

    def scores() -> None:
        for each, (session, entry) in enumerate(made):
            store.sessions.add_feedback(session, entry, _COMMENT, each % 5 + 1, author="reader")

    def ratings() -> None:
        for each in range(CALLS):
            feedback = {"rating": "up", "comment": _COMMENT}
            store.sessions.add_session_feedback(
                sessions[each % SESSIONS], feedback, author=f"reader {each // SESSIONS}"
            )

    return {"entries": entries, "scores": scores, "ratings": ratings}


def _bare(bare: BareSqlite | BareMongo, place: int) -> dict[str, Callable[[], None]]:
    sessions = [f"round {place}, session {each}" for each in range(SESSIONS)]
    for session in sessions:
        bare.create(session)
    made: list[tuple[str, str]] = []

    def entries() -> None:
        for each in range(CALLS):
            session = sessions[each % SESSIONS]
            made.append((session, bare.keep(Answer(session, _QUESTION, _ANSWER))))

    def scores() -> None:
        for each, (session, entry) in enumerate(made):
            score = each % 5 + 1
            bare.rate(Opinion(session, entry, "reader", score, _rating(score), _COMMENT))

    def ratings() -> None:
        for each in range(CALLS):
            author = f"reader {each // SESSIONS}"
            bare.rate(Opinion(sessions[each % SESSIONS], None, author, None, "up", _COMMENT))

    return {"entries": entries, "scores": scores, "ratings": ratings}


def _rating(score: int) -> str | None:
    return None if score == 3 else "up" if score > 3 else "down"
