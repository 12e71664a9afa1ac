"""Pairs of questions that try to mislead reuse: `python -m bench.cache_pairs --half tuning --list-wrong`.

Each pair of tests/data/reuse proves one or more questions, asks another, and names the SQL of the right answer. It has
a project of its own, and all goes through the public calls: run, rate, look up. An answer is wrong when its rows
differ from those of the right SQL, or when nothing should have been served. A refusal is needless when both questions
mean the same. Rules may be tuned on the half `tuning`; nobody looks at the half `aside`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, get_args

from bench.measure import Bar, Report, about, console, say
from bench.pair_databases import KINDS, databases
from bench.vectors import Served, embedded
from heedful.providers.embedding import bundled
from heedful.providers.llm import ChatMessage
from heedful.store import Store
from heedful.testing import ManualClock, ScriptedModel

FOLDER = Path(__file__).parents[1] / "tests/data/reuse"
SCHEMAS = ("shop", "clinic", "hr")
Half = Literal["tuning", "aside"]
REFUSE = "refuse"
DEFAULT_TIME = datetime(2026, 3, 16, 10, tzinfo=UTC)
"""A Monday: what the clock says where a pair doesn't."""

AGE = 365
"""Days that a proof is used for: refusals should come from the questions."""

WRONG, REUSED = 0.5, 60.0
NEVER = ("who asks", "another day")
"""Where no answer may be wrong."""

Rows = list[tuple[Any, ...]]
Opening = Callable[[str], AbstractContextManager[Any]]
"""Opens a project by its name: embedded or over HTTP."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One question as somebody asks it, with its SQL where it is proven."""

    question: str
    sql: str = ""
    at: datetime = DEFAULT_TIME
    audience: str | None = None
    author: str | None = None
    chat: str | None = None
    """A name for the chat session, in which it is asked."""

    @classmethod
    def of(cls, written: Mapping[str, str]) -> Turn:
        fields: dict[str, Any] = dict(written)
        if "at" in fields:
            fields["at"] = datetime.fromisoformat(fields["at"]).replace(tzinfo=UTC)
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class Pair:
    """What is proven, what is asked then, and the SQL of the right answer."""

    id: str
    half: Half
    schema: str
    kind: str
    """Its class: what it tries to mislead by."""
    means_same: bool
    another_day: bool
    proven: tuple[Turn, ...]
    asked: Turn
    right: str
    """SQL, or `refuse` where the schema has no answer or nobody may give it."""

    @property
    def texts(self) -> list[str]:
        """All its questions."""
        return [each.question for each in (*self.proven, self.asked)]


@dataclass(frozen=True, slots=True)
class Answer:
    """What was served for a question, if anything was, and the reason given."""

    reason: str
    sql: str | None = None
    rows: Sequence[Sequence[Any]] | None = None
    suggestion: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a pair."""

    pair: Pair
    answer: Answer
    is_right: bool

    @property
    def wrong(self) -> bool:
        return self.answer.rows is not None and not self.is_right

    @property
    def needless(self) -> bool:
        return self.pair.means_same and self.answer.rows is None


def pairs(half: Half | None = None) -> list[Pair]:
    """The pairs of a half, or all."""
    return [
        Pair(
            each["id"],
            name,
            each["schema"],
            each["class"],
            each["means_same"],
            each.get("another_day", False),
            tuple(map(Turn.of, each["proven"])),
            Turn.of(each["asked"]),
            each["right"],
        )
        for name in get_args(Half)
        if half in (None, name)
        for each in json.loads((FOLDER / f"pairs_{name}.json").read_text(encoding="utf-8"))
    ]


def statements(schema: str) -> list[str]:
    """The SQL that makes the tables of a schema and fills them."""
    script = (FOLDER / f"{schema}.sql").read_text(encoding="utf-8")
    return [each for each in script.split(";\n") if each.strip()]


class Judge:
    """Puts pairs to a store that uses its clock and its language model, each pair in a project of its own."""

    def __init__(self, urls: Mapping[str, str]) -> None:
        self.clock = ManualClock(DEFAULT_TIME)
        self.model = ScriptedModel(self._write)
        self._written = ""
        self._urls = urls

    def outcome(self, pair: Pair, open_project: Opening) -> Outcome:
        """Proves what a pair has proven, asks its question and compares the rows."""
        with open_project(pair.id) as memory:
            memory.connectors.create(pair.schema, self._urls[pair.schema])
            chats: dict[str, str] = {}
            for turn in pair.proven:
                self._prove(memory, turn, chats)
            self.clock.now = pair.asked.at
            ask = self._ask if pair.asked.chat is None else self._chat
            answer = ask(memory, pair.asked, chats)
            if answer.rows is None or pair.right == REFUSE:
                return Outcome(pair, answer, is_right=False)
            rows = memory.executions.execute_query(pair.right).result.rows
        return Outcome(pair, answer, is_right=comparable(answer.rows, pair.right) == comparable(rows, pair.right))

    def _prove(self, memory: Any, turn: Turn, chats: dict[str, str]) -> None:
        self.clock.now = turn.at
        if turn.chat is None:
            execution = memory.executions.execute_query(turn.sql, question=turn.question, audience=turn.audience)
        else:
            self._written = turn.sql
            answer = memory.chat.chat_to_answer(self._session(memory, turn, chats), turn.question)
            assert answer.execution_result is not None
            execution = answer.execution_result
        memory.feedback.create_positive(execution_id=execution.execution_id, author=turn.author)

    def _ask(self, memory: Any, turn: Turn, chats: dict[str, str]) -> Answer:
        found = memory.chat.execution_cache_lookup(
            turn.question, max_age_days=AGE, audience=turn.audience, author=turn.author
        )
        first = found.matches[0] if found.matches else None
        suggestion = None if found.suggestion is None else found.suggestion.question
        reason = "nothing like it was found" if first is None else f"{first.gate}: {first.reason}"
        if first is None or not found.cache_hit:
            return Answer(reason, suggestion=suggestion)
        return Answer(reason, first.execution["sql_query"], first.execution["result"].rows)

    def _chat(self, memory: Any, turn: Turn, chats: dict[str, str]) -> Answer:
        self._written = "SELECT 1"
        answer = memory.chat.chat_to_answer(self._session(memory, turn, chats), turn.question)
        if answer.origin not in ("served", "rebound") or answer.execution_result is None:
            return Answer("the language model was asked")
        return Answer(answer.explanation, answer.sql_query, answer.execution_result.result.rows)

    def _session(self, memory: Any, turn: Turn, chats: dict[str, str]) -> str:
        assert turn.chat is not None
        if turn.chat not in chats:
            chats[turn.chat] = memory.chat_sessions.create(audience=turn.audience).id
        return chats[turn.chat]

    def _write(self, messages: Sequence[ChatMessage]) -> str:
        return f"```sql\n{self._written}\n```"


def comparable(rows: Iterable[Iterable[Any]], sql: str) -> Rows:
    """Rows as every database gives them: numbers as far as they matter, dates as text; sorted unless the SQL sorts."""
    plain = [tuple(_plain(value) for value in row) for row in rows]
    return plain if "order by" in sql.lower() else sorted(plain, key=repr)


def _plain(value: Any) -> Any:
    if isinstance(value, int | float | Decimal):
        return round(float(value), 2)
    return value.isoformat() if isinstance(value, date) else value


def evaluate(report: Report, chosen: Sequence[Pair], out: Path, connector: str = "sqlite") -> list[Outcome]:
    """Adds to a report what came of the pairs, and holds it against the bars."""
    texts = sorted({text for pair in chosen for text in pair.texts})
    embedding = Served(bundled(), texts, embedded(texts, out, say))
    with (
        tempfile.TemporaryDirectory() as place,
        databases(connector, Path(place), {schema: statements(schema) for schema in SCHEMAS}) as urls,
    ):
        judge = Judge(urls)
        file = Path(place) / "store.db"
        with closing(Store(file, clock=judge.clock, embedding=embedding, language_model=judge.model)) as store:
            outcomes = [judge.outcome(pair, store.open) for pair in chosen]
    columns = "class", "must differ", "wrong", "mean the same", "reused", "needless"
    for half in sorted({pair.half for pair in chosen}, reverse=True):
        section = report.section(f"Pairs that try to mislead, half “{half}”", *columns)
        for name, found in _grouped([each for each in outcomes if each.pair.half == half]):
            section.rows.append([name, *_counts(found)])
    every = dict(_grouped(outcomes))
    differing = sum(not each.pair.means_same for each in outcomes) or 1
    alike = [each for each in outcomes if each.pair.means_same]
    wrong = 100 * sum(each.wrong for each in outcomes) / differing
    reused = 100 * sum(not each.needless for each in alike) / (len(alike) or 1)
    report.bars.append(Bar("pairs: wrong, of those that must differ", wrong, WRONG, "at most", "%"))
    for name in NEVER:
        report.bars.append(Bar(f"pairs: wrong, {name}", sum(each.wrong for each in every.get(name, [])), 0, "at most"))
    report.bars.append(Bar("pairs: reused, of those that mean the same", reused, REUSED, "at least", "%"))
    report.figures["pairs"] = [
        {"id": each.pair.id, "half": each.pair.half, "wrong": each.wrong, "needless": each.needless}
        for each in outcomes
    ]
    return outcomes


def _grouped(outcomes: Sequence[Outcome]) -> Iterator[tuple[str, list[Outcome]]]:
    """By class, then those about another day, which belong to ranges of time, and all."""
    for kind in Counter(each.pair.kind for each in outcomes):
        yield kind, [each for each in outcomes if each.pair.kind == kind]
    yield "another day", [each for each in outcomes if each.pair.another_day]
    yield "all", list(outcomes)


def _counts(found: Sequence[Outcome]) -> list[str]:
    alike = [each for each in found if each.pair.means_same]
    needless = sum(each.needless for each in alike)
    reused = f"{100 * (len(alike) - needless) / len(alike):.0f}%" if alike else ""
    wrong = sum(each.wrong for each in found)
    return [str(len(found) - len(alike)), str(wrong), str(len(alike)), reused, str(needless)]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.cache_pairs", description=__doc__)
    parser.add_argument("--half", choices=get_args(Half), help="one half of the pairs; both if left out")
    parser.add_argument("--connector", choices=KINDS, default="sqlite", help="the database that queries run on")
    parser.add_argument("--list-wrong", action="store_true", help="list each wrong and each needless pair")
    parser.add_argument("--id", nargs="*", help="only these pairs, listed whatever came of them")
    parser.add_argument("--out", type=Path, default=Path("bench/out"), help="where vectors are kept")
    options = parser.parse_args(arguments)
    chosen = [each for each in pairs(options.half) if not options.id or each.id in options.id]
    report = Report("May a proven query be used again? Pairs", about(connector=options.connector))
    outcomes = evaluate(report, chosen, options.out, options.connector)
    for each in outcomes:
        if options.id or (options.list_wrong and (each.wrong or each.needless)):
            _list(each)
    report.show()


def _list(outcome: Outcome) -> None:
    pair = outcome.pair
    verdict = "WRONG" if outcome.wrong else "needless" if outcome.needless else "right"
    lines = [f"{verdict}  {pair.id}  ({pair.kind}, {pair.schema}, {pair.half})"]
    for name, turn in [*(("proven", each) for each in pair.proven), ("asked ", pair.asked)]:
        given = {"at": None if turn.at == DEFAULT_TIME else f"{turn.at:%a %Y-%m-%d %H:%M}"}
        given |= {"audience": turn.audience, "author": turn.author, "chat": turn.chat}
        notes = ", ".join(f"{key} {value}" for key, value in given.items() if value is not None)
        lines.append(f"  {name} {turn.question}" + (f"  [{notes}]" if notes else ""))
        if turn.sql:
            lines.append(f"         {turn.sql}")
    lines.append(f"  right  {pair.right}")
    answer = outcome.answer
    lines.append(f"  served {answer.sql}" if answer.sql is not None else "  refused")
    lines.append(f"  why    {answer.reason}")
    if answer.suggestion is not None:
        lines.append(f"  suggested {answer.suggestion}")
    console.print("\n".join(lines) + "\n", highlight=False, markup=False, soft_wrap=True)


if __name__ == "__main__":
    main()
