"""Reuse on other schemas: questions of a set's training part are run and rated right, those of its
test part are looked up, all through the public calls. An answer is judged by its SQL, since the databases are almost
empty: it is right when it is one of the spellings of the gold SQL, but for aliases and the order of joins.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import heedful
from bench.cache_data import DIALECT, Database, filled, single_quoted
from bench.measure import Report, say
from bench.vectors import Served, embedded
from heedful.providers.embedding.onnx import bundled
from heedful.ranking.similarity import normal
from heedful.sql.reuse.query_parts import parse_query

PROVEN, ASKED = 1_200, 300
SHARES = (0.25, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class SetQuestion:
    """A question of a set, all spellings of its SQL, and whether it belongs to the test part."""

    text: str
    spellings: tuple[str, ...]
    entry: int
    test: bool


@dataclass(frozen=True, slots=True)
class Looked:
    """What the cache had for a question."""

    question: SetQuestion
    gate: str
    sql: str | None = None
    source: str = ""
    has_sibling: bool = False

    @property
    def right(self) -> bool:
        """Whether the SQL is a spelling of the gold one."""
        return self.sql is not None and _form(self.sql) in {_form(each) for each in self.question.spellings}


def evaluate(report: Report, folder: Path, names: Sequence[str], out: Path) -> None:
    """Adds what came of each set to a report."""
    section = report.section(
        "Other schemas: trained, then asked",
        "set", "proven", "asked", "with a sibling", "reused", "wrong, of all asked",
    )  # fmt: skip
    for name in names:
        proven, asked = _parts(folder, name)
        wrong: list[Looked] = []
        for share in SHARES:
            part = proven[: int(share * len(proven))]
            found = look_up(folder / f"{name}.sqlite", part, asked, out)
            reused = [each for each in found if each.sql is not None]
            wrong = [each for each in reused if not each.right]
            figures = {
                "proven": len(part),
                "asked": len(found),
                "sibling": 100 * sum(each.has_sibling for each in found) / len(found),
                "reused": 100 * len(reused) / len(found),
                "wrong": 100 * len(wrong) / len(found),
            }
            report.figures[f"{name}, {share:.0%}"] = figures
            shares = [f"{figures[key]:.1f}%" for key in ("sibling", "reused", "wrong")]
            section.rows.append([name, str(len(part)), str(len(found)), *shares])
        report.figures[f"{name}, wrong"] = [
            {"asked": each.question.text, "proven": each.source, "sql": each.sql, "gold": each.question.spellings[0]}
            for each in wrong
        ]
        gates = Counter(each.gate for each in found if each.sql is None and each.has_sibling)
        section.notes.append(
            f"{name}, refused with a sibling: " + ", ".join(f"{g} {n}" for g, n in gates.most_common())
        )
        section.notes += [f"{name}, judge: “{each.question.text}” / “{each.source}”" for each in wrong]


def look_up(database: Path, proven: Sequence[SetQuestion], asked: Sequence[SetQuestion], out: Path) -> list[Looked]:
    """Runs the proven questions' SQL and rates it right, then looks up those that are asked."""
    texts = [each.text for each in (*proven, *asked)]
    embedder = Served(bundled(), texts, embedded(texts, out, say))
    siblings = {each.entry for each in proven}
    result = []
    with (
        tempfile.TemporaryDirectory() as place,
        heedful.open(Path(place) / "store.db", embedding=embedder) as memory,
    ):
        memory.connectors.create("bench", f"sqlite:///{database.resolve()}")
        for each in proven:
            done = memory.executions.execute_query(each.spellings[0], question=each.text)
            memory.feedback.create_positive(execution_id=done.execution_id)
        say(f"{len(proven)} questions proven")
        for each in asked:
            lookup = memory.chat.execution_cache_lookup(each.text)
            first = lookup.matches[0] if lookup.matches else None
            gate = first.gate if first is not None else "candidates"
            sibling = each.entry in siblings
            if lookup.cache_hit and first is not None:
                result.append(Looked(each, gate, str(first.execution["sql_query"]), first.question, sibling))
            else:
                result.append(Looked(each, gate, has_sibling=sibling))
    return result


def _parts(folder: Path, name: str) -> tuple[list[SetQuestion], list[SetQuestion]]:
    """What is proven and what is asked: questions whose SQL executes, without test questions that are proven."""
    database = Database(folder / f"{name}.sqlite")
    result = []
    for number, entry in enumerate(json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))):
        examples = {each["name"]: each["example"] for each in entry.get("variables", [])}
        for sentence in entry["sentences"]:
            values = {**examples, **sentence["variables"]}
            written = {key: value.replace("'", "''") for key, value in values.items()}
            spellings = tuple(filled(single_quoted(sql), written) for sql in entry["sql"])
            if sentence["question-split"] in ("train", "dev", "test") and database.run(spellings[0]) is not None:
                test = sentence["question-split"] == "test"
                result.append(SetQuestion(filled(sentence["text"], values), spellings, number, test))
    Random(7).shuffle(result)
    proven = [each for each in result if not each.test][:PROVEN]
    known = {normal(each.text) for each in proven}
    return proven, [each for each in result if each.test and normal(each.text) not in known][:ASKED]


def _form(sql: str) -> str:
    query = parse_query(sql.lower(), DIALECT)
    return query.canonical if query is not None else " ".join(sql.lower().split())
