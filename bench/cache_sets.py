"""Reuse on other schemas: questions of a set's training part are run and rated right, those of its
test part are looked up, all through the public calls. An answer is judged by its SQL, since the databases are almost
empty: it is right when it is one of the spellings of the gold SQL, but for aliases and the order of joins.

Leave-one-out, each question is asked while the proofs of it and of its twins are retracted.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import heedful
from bench.cache_data import DIALECT, Database, filled, single_quoted
from bench.measure import Bar, Report, say
from bench.vectors import Served, embedded
from heedful.interfaces.charts import Point, Series, line_chart
from heedful.providers.embedding import bundled
from heedful.sql.reuse.query_parts import canonical, parse_query
from heedful.text.same_question import normal

PROVEN, ASKED = 1_200, 300
AUTHOR = "student"
"""Who proves and asks: questions in the first person are about them."""
SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)
COSINES = (0.80, 0.90, 0.95)
WRONG, WRONG_ALONE, SUGGESTED_RIGHT = 0.5, 0.2, 80.0
REUSED = {"geography": 60.0, "scholar": 45.0, "advising": 40.0}


@dataclass(frozen=True, slots=True)
class SetQuestion:
    """A question of a set, all spellings of its SQL, and whether it belongs to the test part."""

    text: str
    spellings: tuple[str, ...]
    entry: int
    test: bool

    def is_answered_by(self, sql: str) -> bool:
        """Whether SQL is a spelling of the gold one."""
        return _form(sql) in {_form(each) for each in self.spellings}


@dataclass(frozen=True, slots=True)
class Looked:
    """What the cache had for a question."""

    question: SetQuestion
    gate: str
    sql: str | None = None
    source: str = ""
    has_sibling: bool = False
    suggested: str | None = None

    @property
    def right(self) -> bool:
        """Whether the SQL is a spelling of the gold one."""
        return self.sql is not None and self.question.is_answered_by(self.sql)


def evaluate(report: Report, folder: Path, names: Sequence[str], out: Path, most: int | None = None) -> None:
    """Adds what came of each set to a report, and draws how reuse grows with what is proven; of at most so many."""
    section = report.section(
        "Other schemas: trained, then asked",
        "set", "proven", "asked", "with a sibling", "reused", "wrong, of all asked", "suggestions", "right",
    )  # fmt: skip
    curves = []
    for name in names:
        proven, asked = (each[:most] for each in _parts(folder, name))
        points = [Point(0.0, 0.0)]
        for count, found in look_up(folder / f"{name}.sqlite", proven, asked, out):
            figures = _figures(found)
            points.append(Point(float(count), figures["reused"] / 100))
            report.figures[f"{name}, {count} proven"] = figures
            section.rows.append([name, str(count), *_row(figures)])
        curves.append(Series(name.capitalize(), points))
        _judge(report, section.notes, name, found)
        _hold(report, name, figures, WRONG)
        for least, found in cosines(proven, asked, out):
            section.rows.append([f"{name}, cosine ≥ {least:.2f}", str(len(proven)), *_row(_figures(found))])
    drawn = line_chart(
        curves, title="Questions answered by reuse, over the number of proven questions",
        desc="Test questions of public sets that nothing proven has word for word", percent=True, standalone=True,
    )  # fmt: skip
    (out / "cache_curves.svg").write_text(drawn, encoding="utf-8")
    say(f"picture written to {out / 'cache_curves.svg'}")


def evaluate_alone(report: Report, folder: Path, name: str, out: Path, most: int | None = None) -> None:
    """Adds what came of a set, leave-one-out, to a report."""
    every = _questions(folder, name)[:most]
    found = leave_one_out(folder / f"{name}.sqlite", every, out)
    figures = _figures(found)
    report.figures[f"{name}, leave-one-out"] = figures
    columns = "set", "asked", "with a sibling", "reused", "wrong, of all asked", "suggestions", "right"
    section = report.section("Leave-one-out, through the public calls; by the gold SQL, not by its rows", *columns)
    section.rows.append([name, *_row(figures)])
    _judge(report, section.notes, name, found)
    _hold(report, name, figures, WRONG_ALONE)


def _hold(report: Report, name: str, figures: dict[str, float], wrong: float) -> None:
    """Holds what came of a set against the bars."""
    report.bars.append(Bar(f"{name}: wrong, of all asked", figures["wrong"], wrong, "at most", "%"))
    if name in REUSED:
        report.bars.append(Bar(f"{name}: reused", figures["reused"], REUSED[name], "at least", "%"))
    if figures["suggestions"]:
        right = 100 * figures["suggestions right"] / figures["suggestions"]
        report.bars.append(Bar(f"{name}: suggestions right", right, SUGGESTED_RIGHT, "at least", "%"))


def look_up(
    database: Path, proven: Sequence[SetQuestion], asked: Sequence[SetQuestion], out: Path
) -> Iterator[tuple[int, list[Looked]]]:
    """Runs the SQL of ever more proven questions and rates it right; looks up those that are asked each time."""
    with _opened(database, [*proven, *asked], out) as memory:
        done = 0
        for share in SHARES:
            for each in proven[done : int(share * len(proven))]:
                _prove(memory, each)
            done = int(share * len(proven))
            say(f"{done} questions proven")
            siblings = Counter(each.entry for each in proven[:done])
            yield done, [_looked(memory, each, siblings) for each in asked]


def leave_one_out(database: Path, every: Sequence[SetQuestion], out: Path) -> list[Looked]:
    """Proves all questions, then looks each of them up while it is not proven."""
    found = []
    with _opened(database, every, out) as memory:
        runs = [memory.executions.execute_query(each.spellings[0], question=each.text).execution_id for each in every]
        rated = [memory.feedback.create_positive(execution_id=each, author=AUTHOR).id for each in runs]
        say(f"{len(every)} questions proven")
        twins: dict[str, list[int]] = {}
        for place, each in enumerate(every):
            twins.setdefault(normal(each.text), []).append(place)
        siblings = Counter(each.entry for each in every)
        for each in every:
            gone = twins[normal(each.text)]
            memory.feedback.bulk_delete([rated[place] for place in gone])
            left = siblings - Counter(every[place].entry for place in gone)
            found.append(_looked(memory, each, left, proven_only=True))
            for place in gone:
                rated[place] = memory.feedback.create_positive(execution_id=runs[place], author=AUTHOR).id
    return found


def cosines(
    proven: Sequence[SetQuestion], asked: Sequence[SetQuestion], out: Path
) -> Iterator[tuple[float, list[Looked]]]:
    """What serving the nearest question from a similarity on would have given."""
    vectors = embedded([each.text for each in (*proven, *asked)], out, say)
    near = vectors[len(proven) :] @ vectors[: len(proven)].T
    for least in COSINES:
        found = []
        for each, row in zip(asked, near, strict=True):
            place = int(row.argmax())
            first = proven[place]
            served = row[place] >= least
            found.append(Looked(each, "cosine", first.spellings[0] if served else None, first.text))
        yield least, found


@contextmanager
def _opened(database: Path, questions: Sequence[SetQuestion], out: Path) -> Iterator[heedful.Heedful]:
    texts = [each.text for each in questions]
    embedder = Served(bundled(), texts, embedded(texts, out, say))
    with (
        tempfile.TemporaryDirectory() as place,
        heedful.open(Path(place) / "store.db", embedding=embedder) as memory,
    ):
        memory.connectors.create("bench", f"sqlite:///{database.resolve()}")
        yield memory


def _prove(memory: heedful.Heedful, each: SetQuestion) -> None:
    done = memory.executions.execute_query(each.spellings[0], question=each.text)
    memory.feedback.create_positive(execution_id=done.execution_id, author=AUTHOR)


def _looked(memory: heedful.Heedful, each: SetQuestion, siblings: Counter[int], *, proven_only: bool = False) -> Looked:
    lookup = memory.chat.execution_cache_lookup(each.text, only_positive_feedback=proven_only, author=AUTHOR)
    first = lookup.matches[0] if lookup.matches else None
    gate = first.gate if first is not None else "candidates"
    sibling = siblings[each.entry] > 0
    if lookup.cache_hit and first is not None:
        return Looked(each, gate, str(first.execution["sql_query"]), first.question, sibling)
    suggested = None if lookup.suggestion is None else lookup.suggestion.sql_query
    return Looked(each, gate, has_sibling=sibling, suggested=suggested)


def _figures(found: Sequence[Looked]) -> dict[str, float]:
    """Counts, and shares in percent of all that was asked."""
    reused = [each for each in found if each.sql is not None]
    suggested = [each for each in found if each.suggested is not None]
    return {
        "asked": len(found),
        "sibling": 100 * sum(each.has_sibling for each in found) / len(found),
        "reused": 100 * len(reused) / len(found),
        "wrong": 100 * sum(not each.right for each in reused) / len(found),
        "suggestions": len(suggested),
        "suggestions right": sum(each.question.is_answered_by(str(each.suggested)) for each in suggested),
    }


def _row(figures: dict[str, float]) -> list[str]:
    shares = [f"{figures[key]:.1f}%" for key in ("sibling", "reused", "wrong")]
    return [f"{figures['asked']:.0f}", *shares, f"{figures['suggestions']:.0f}", f"{figures['suggestions right']:.0f}"]


def _judge(report: Report, notes: list[str], name: str, found: Sequence[Looked]) -> None:
    """Every wrong answer, to be read, and what refused questions whose SQL was at hand."""
    wrong = [each for each in found if each.sql is not None and not each.right]
    report.figures[f"{name}, wrong"] = [
        {"asked": each.question.text, "proven": each.source, "sql": each.sql, "gold": each.question.spellings[0]}
        for each in wrong
    ]
    gates = Counter(each.gate for each in found if each.sql is None and each.has_sibling)
    notes.append(f"{name}, refused with a sibling: " + ", ".join(f"{g} {n}" for g, n in gates.most_common()))
    for each in wrong:
        notes.append(f"{name}, wrong: “{each.question.text}” by “{each.source}”")
        notes.append(f"    used {each.sql}\n    gold {each.question.spellings[0]}")
    for each in found:
        if each.suggested is not None and not each.question.is_answered_by(each.suggested):
            notes.append(f"{name}, suggested wrongly: “{each.question.text}”\n    {each.suggested}")


def _questions(folder: Path, name: str) -> list[SetQuestion]:
    """The questions of a set whose SQL executes."""
    database = Database(folder / f"{name}.sqlite")
    found = []
    for number, entry in enumerate(json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))):
        examples = {each["name"]: each["example"] for each in entry.get("variables", [])}
        for sentence in entry["sentences"]:
            values = {**examples, **sentence["variables"]}
            written = {key: value.replace("'", "''") for key, value in values.items()}
            spellings = tuple(filled(single_quoted(sql), written) for sql in entry["sql"])
            if sentence["question-split"] in ("train", "dev", "test") and database.run(spellings[0]) is not None:
                test = sentence["question-split"] == "test"
                found.append(SetQuestion(filled(sentence["text"], values), spellings, number, test))
    return found


def _parts(folder: Path, name: str) -> tuple[list[SetQuestion], list[SetQuestion]]:
    """What is proven and what is asked: questions whose SQL executes, without test questions that are proven."""
    found = _questions(folder, name)
    Random(7).shuffle(found)
    proven = [each for each in found if not each.test][:PROVEN]
    known = {normal(each.text) for each in proven}
    return proven, [each for each in found if each.test and normal(each.text) not in known][:ASKED]


def _form(sql: str) -> str:
    query = parse_query(sql.lower(), DIALECT)
    return canonical(query.sql, query.dialect) if query is not None else " ".join(sql.lower().split())
