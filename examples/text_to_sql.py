"""Text to SQL with reuse: SQL that somebody confirmed is run again, also with other values, without a language model.

Run it with `python examples/text_to_sql.py`. It needs no extra and no key.
"""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import heedful

SHOP = """
CREATE TABLE orders (id integer PRIMARY KEY, city text, year integer, euros integer);
INSERT INTO orders (city, year, euros) VALUES ('Rome', 2025, 120), ('Rome', 2026, 80), ('Oslo', 2025, 200),
  ('Oslo', 2026, 310), ('Nice', 2025, 60), ('Nice', 2026, 45);
"""


def model(question: str) -> str:
    """Stands in for a language model that writes SQL. Call yours here."""
    city, year = re.search(r"Rome|Oslo|Nice", question), re.search(r"20\d\d", question)
    conditions = [f"city = '{city[0]}'"] if city else []
    conditions += [f"year = {year[0]}"] if year else []
    return "SELECT sum(euros) AS euros FROM orders" + (f" WHERE {' AND '.join(conditions)}" if conditions else "")


class Answer(NamedTuple):
    """Rows, the SQL that returned them, and where the SQL comes from."""

    rows: list[list[Any]]
    sql: str
    origin: str
    execution_id: str


def ask(memory: heedful.Heedful, question: str, user: str) -> Answer:
    """Runs confirmed SQL if there is some for this question, or else SQL that the model writes."""
    found = memory.chat.execution_cache_lookup(question, only_positive_feedback=True, author=user)
    if found.cache_hit:  # It has run. Otherwise, `found.matches` says why each candidate was refused.
        reused = found.matches[0].execution
        return Answer(reused["result"].rows, reused["sql_query"], "reused", reused["execution_id"])
    done = memory.executions.execute_query(model(question), connector_id="shop", question=question)
    return Answer(done.result.rows, done.sql_query, "written by the model", done.execution_id)


def main() -> list[Answer]:
    """Two people ask; the first answer is confirmed."""
    answers = []
    with TemporaryDirectory() as folder:
        with sqlite3.connect(Path(folder) / "shop.db") as shop:
            shop.executescript(SHOP)
        with heedful.open(Path(folder) / "memory.db") as memory:
            memory.connectors.create("shop", f"sqlite:///{folder}/shop.db")
            for user, question in [
                ("ada", "How much did we sell in Rome in 2025?"),
                ("bo", "How much did we sell in Oslo in 2026?"),
                ("bo", "How much did we sell in all?"),
            ]:
                answer = ask(memory, question, user)
                print(f"{user}: {question}\n  {answer.rows}, {answer.origin}: {answer.sql}")
                if user == "ada":  # Ada clicks a thumb.
                    memory.feedback.create_positive(execution_id=answer.execution_id, author=user)
                answers.append(answer)
    return answers


if __name__ == "__main__":
    main()
