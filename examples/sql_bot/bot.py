"""A bot that answers questions about a shop's orders with SQL, as it would in Slack: people react to its messages, and
what they proved is run again instead of being written again.

`python examples/sql_bot/bot.py` plays a day in the channel and writes `reuse.svg`. In Slack, `ask` is what a message
event calls, and `react` what `reaction_added` and `reaction_removed` do: the time of a message is its id in both.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import heedful
from heedful import Heedful, HeedfulError
from heedful.interfaces.charts import Point, Series, line_chart

SHOP = """
CREATE TABLE orders (id integer PRIMARY KEY, city text, year integer, euros integer);
INSERT INTO orders (city, year, euros) VALUES
  ('Rome', 2025, 120), ('Rome', 2026, 80), ('Oslo', 2025, 200),
  ('Oslo', 2026, 310), ('Nice', 2025, 60), ('Nice', 2026, 45);
"""
REACTIONS = {"+1": True, "white_check_mark": True, "-1": False, "x": False}

Writer = Callable[[str], str]
"""Writes SQL for a question: a language model, in earnest."""


@dataclass(frozen=True)
class Message:
    """What the bot said."""

    ts: str
    """When: Slack's id of a message."""
    text: str
    reused: bool
    """Whether the SQL was proven before."""


class Bot:
    """Answers in one channel, from one connector."""

    def __init__(self, memory: Heedful, connector: str, write: Writer) -> None:
        self._memory = memory
        self._connector = connector
        self._write = write
        self._reactions: dict[tuple[str, str], str] = {}

    def ask(self, question: str, ts: str) -> Message:
        """Answers with proven SQL if there is some, else with SQL that is written now."""
        found = self._memory.chat.execution_cache_lookup(
            question, connector_id=self._connector, only_positive_feedback=True
        )
        proven = found.matches[0].execution["sql_query"] if found.cache_hit else None
        try:
            done = self._memory.executions.execute_query(
                proven or self._write(question), connector_id=self._connector, question=question, external_id=ts
            )
        except HeedfulError as error:
            return Message(ts, f"I can't answer that: {error}", reused=False)
        rows = "; ".join(", ".join(map(str, row)) for row in done.result.rows)
        return Message(ts, f"{rows}\n`{done.sql_query}`", reused=proven is not None)

    def react(self, ts: str, reaction: str, user: str, *, removed: bool = False) -> None:
        """Somebody says by a reaction that a message is right or wrong, or takes that back."""
        if reaction not in REACTIONS:
            return
        if removed:
            given = self._reactions.pop((ts, user), None)
            if given is not None:
                self._memory.feedback.delete(given)
            return
        said = self._memory.feedback.create(is_positive=REACTIONS[reaction], execution_id=ts, author=user)
        self._reactions[ts, user] = said.id


def scripted(question: str) -> str:
    """Stands for a language model."""
    city = re.search(r"\b(Rome|Oslo|Nice)\b", question)
    year = re.search(r"\b20\d\d\b", question)
    wanted = [f"city = '{city[0]}'"] if city else []
    wanted += [f"year = {year[0]}"] if year else []
    return "SELECT sum(euros) AS euros FROM orders" + (f" WHERE {' AND '.join(wanted)}" if wanted else "")


DAY = [
    [("ada", "How much did we sell in Rome in 2025?"), ("bo", "How much did we sell in Oslo in 2026?")],
    [("cy", "How much did we sell in Nice in 2026?"), ("ada", "How much did we sell in Rome in 2026?")],
    [("bo", "How much did we sell in Nice in 2025?"), ("cy", "How much did we sell in Oslo in 2025?")],
]
"""Hours, with who asks what."""


def main(picture: str | Path = "reuse.svg") -> list[float]:
    """Plays a day, writes the picture, and returns the share of answers from proven SQL by hour."""
    with TemporaryDirectory() as folder:
        shop = sqlite3.connect(Path(folder) / "shop.db")
        with shop:
            shop.executescript(SHOP)
        shop.close()
        with heedful.open(Path(folder) / "memory.db", worker=False) as memory:
            memory.connectors.create("shop", f"sqlite:///{Path(folder) / 'shop.db'}")
            bot = Bot(memory, "shop", scripted)
            shares, number = [], 0
            for hour in DAY:
                reused = 0
                for user, question in hour:
                    number += 1
                    said = bot.ask(question, f"17946.{number:04}")
                    print(f"{user}: {question}\nbot{' (proven)' if said.reused else ''}: {said.text}\n")
                    bot.react(said.ts, "+1", user)
                    reused += said.reused
                shares.append(reused / len(hour))
    points = [Point(hour, share) for hour, share in enumerate(shares, start=1)]
    title = "Answers from proven SQL, by hour"
    chart = line_chart([Series("proven", points)], title=title, least=0, most=1, percent=True, standalone=True)
    Path(picture).write_text(chart, encoding="utf-8")
    return shares


if __name__ == "__main__":
    print("answers from proven SQL by hour:", " ".join(f"{share:.0%}" for share in main()))
