"""Visitors ask and rate for a while, and a picture shows how the answers become right.

`python examples/support_agent/improve.py` writes `improvement.svg`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import heedful
from heedful import Heedful
from heedful.interfaces.charts import Point, Series, line_chart

sys.path.insert(0, str(Path(__file__).parent))

from desk import FACTS, RIGHT

VISITORS = ("ada", "bo", "cy")
ROUNDS = 4


def round_of(memory: Heedful, number: int) -> float:
    """Everybody asks everything once, and rates what they get. The share of answers that are right."""
    right = 0
    sessions = [f"{visitor}-{number}" for visitor in VISITORS]
    for session, visitor in zip(sessions, VISITORS, strict=True):
        for question, wanted in RIGHT.items():
            found = memory.recall(question, top_k=1, session_id=session)
            is_right = wanted in str(found.answer)
            right += is_right
            score = 5 if is_right else 1
            memory.sessions.add_feedback(session, str(found.qa_id), feedback_score=score, author=visitor)
    memory.improve(session_ids=sessions)
    return right / (len(RIGHT) * len(VISITORS))


def main(store: str | Path = ":memory:", picture: str | Path = "improvement.svg") -> list[float]:
    """Writes the picture, and returns the share of right answers by round."""
    with heedful.open(store, worker=False) as memory:
        memory.remember(FACTS)
        shares = [round_of(memory, number) for number in range(1, ROUNDS + 1)]
    points = [Point(number, share) for number, share in enumerate(shares, start=1)]
    title = "Right answers of the support agent, by round of visitors"
    chart = line_chart([Series("right answers", points)], title=title, least=0, most=1, percent=True, standalone=True)
    Path(picture).write_text(chart, encoding="utf-8")
    return shares


if __name__ == "__main__":
    print("right answers by round:", " ".join(f"{share:.0%}" for share in main()))
