"""Exported tables: their columns and what these mean, and rows as CSV, lines of JSON, or Parquet."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import orjson

from heedful.api import checks
from heedful.api.parameters import Output
from heedful.clock import to_stored
from heedful.errors import Invalid, extra_missing, quoted
from heedful.files import write_atomically
from heedful.model import EXPORT_FORMATS, TABLE_NAMES, ColumnType, ExportFormat, ExportResult, ExportTable, TableName
from heedful.text.regex import regex

if TYPE_CHECKING:
    from heedful.sessions.session_store import Rows

_SIGNS = "=+\\-@＝＋－＠﹦﹢﹣﹫⁼⁺₌₊\ufb29"
"""The beginnings of formulas; a spreadsheet also takes their wide and small forms for them."""

_BLANKS = "\\s\x00-\x1f\x7f-\x9f\u00ad\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff"
"""Characters that a spreadsheet may drop before it reads a text: blanks, controls, and those of no width."""

_FORMULA = regex(f"[\t\r]|[{_BLANKS}]*+[{_SIGNS}]")

_SEPARATOR = regex("[;\t\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
"""Where a cell begins inside a text, in a spreadsheet that does not split lines at commas."""

_BEFORE_SIGN = regex(f'(?<![{_BLANKS};"])[{_BLANKS};"]++(?=[{_SIGNS}])')

Values = Sequence[Any]
Conversions = Mapping[ColumnType, Callable[[Values], Values]]


def _format_of(path: Output, requested: Any) -> ExportFormat:
    """The requested format, or the one of the file's name."""
    name = requested
    if name is None and isinstance(path, str | Path):
        name = Path(path).suffix.lower().lstrip(".")
    for supported in EXPORT_FORMATS:
        if name == supported:
            return supported
    raise Invalid(
        "format is missing and can't be inferred from the file name"
        if requested is None
        else f"unknown format {quoted(requested)}",
        field="format",
        value=requested,
        remedy=f"Use one of {', '.join(EXPORT_FORMATS)}, or a file name with that extension",
    )


def _open_target(path: Output, *, overwrite: bool) -> AbstractContextManager[IO[bytes]]:
    """A file that is in its place when it is complete, or the object that takes bytes."""
    if isinstance(path, str | Path):
        return write_atomically(Path(path), overwrite=overwrite)
    if not callable(getattr(path, "write", None)):
        raise Invalid.got("path", "must name a file", path)
    return nullcontext(path)


def to_json_rows(table: ExportTable, rows: Rows) -> list[dict[str, Any]]:
    """Rows for JSON, by the names of the columns."""
    names = [column.name for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in _converted(table, rows, _PLAIN)]


def from_json_rows(table: ExportTable, items: Iterable[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """The rows behind the result of `to_json_rows`."""
    return [tuple(_from_json(column.type, item[column.name]) for column in table.columns) for item in items]


def _iso(stored: Sequence[int]) -> list[str]:
    """Stored times as text.

    >>> _iso([1_767_225_600_000_000])
    ['2026-01-01T00:00:00.000000Z']
    """
    # Only a store has times to convert; a client gets them as text.
    import numpy as np

    formatted = np.datetime_as_string(np.array(stored, dtype="datetime64[us]"), unit="us", timezone="UTC")
    texts: list[str] = formatted.tolist()
    return texts


def escape_formula(text: str) -> str:
    """A text that no spreadsheet takes for a formula, whether it splits lines at commas, semicolons or tabs.

    >>> escape_formula("=1+1"), escape_formula(" ＝1+1"), escape_formula("1+1"), escape_formula("nice; =1+1")
    ("'=1+1", "' ＝1+1", '1+1', "nice; '=1+1")
    """
    guarded = _BEFORE_SIGN.sub(_guard, text) if _SEPARATOR.search(text) else text
    return "'" + guarded if _FORMULA.match(guarded) else guarded


def _guard(before: re.Match[str]) -> str:
    return before[0] + "'" if _SEPARATOR.search(before[0]) else before[0]


class Export:
    """A table that is being written to a file, wherever its rows come from."""

    def __init__(self, table: ExportTable, path: Output, output: IO[bytes]) -> None:
        self.table = table
        self._path = path
        self._output = output
        self._rows = 0

    def add(self, rows: Rows) -> None:
        self._write(rows)
        self._rows += len(rows)

    def result(self) -> ExportResult:
        path = str(self._path) if isinstance(self._path, str | Path) else None
        return ExportResult(table=self.table.name, rows=self._rows, path=path)

    def close(self) -> None:
        """Writes the end of the file, if the format has one."""

    def _write(self, rows: Rows) -> None:
        raise NotImplementedError


class _Csv(Export):
    def __init__(self, table: ExportTable, path: Output, output: IO[bytes]) -> None:
        super().__init__(table, path, output)
        output.write((",".join(column.name for column in table.columns) + "\r\n").encode())

    def _write(self, rows: Rows) -> None:
        # Put together by hand: each column is quoted as a whole, in a third of the time that the library takes.
        lines = [",".join(row) for row in _converted(self.table, rows, _CELLS)]
        self._output.write("".join(f"{line}\r\n" for line in lines).encode())


class _Jsonl(Export):
    def _write(self, rows: Rows) -> None:
        names = [column.name for column in self.table.columns]
        lines = [
            orjson.dumps(dict(zip(names, row, strict=True)), option=orjson.OPT_APPEND_NEWLINE)
            for row in _converted(self.table, rows, _LINES)
        ]
        self._output.write(b"".join(lines))


class _Parquet(Export):
    def __init__(self, table: ExportTable, path: Output, output: IO[bytes]) -> None:
        super().__init__(table, path, output)
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError as error:
            raise extra_missing(
                "parquet", "Parquet, unlike csv and jsonl, needs an extra (pyarrow is missing)"
            ) from error
        kinds = {
            "text": pyarrow.string(),
            "json": pyarrow.string(),
            "integer": pyarrow.int64(),
            "number": pyarrow.float64(),
            "boolean": pyarrow.bool_(),
            "time": pyarrow.timestamp("us", tz="UTC"),
        }
        self._pyarrow = pyarrow
        fields = [(column.name, kinds[column.type], {"meaning": column.meaning}) for column in table.columns]
        self._schema = pyarrow.schema([pyarrow.field(name, kind, metadata=notes) for name, kind, notes in fields])
        self._writer = parquet.ParquetWriter(output, self._schema)

    def _write(self, rows: Rows) -> None:
        if rows:
            columns = _columns(self.table, rows, {"boolean": _booleans})
            types = (field.type for field in self._schema)
            arrays = [self._pyarrow.array(values, type=kind) for values, kind in zip(columns, types, strict=True)]
            self._writer.write_table(self._pyarrow.Table.from_arrays(arrays, schema=self._schema))

    def close(self) -> None:
        self._writer.close()


_FORMATS: Mapping[ExportFormat, type[Export]] = {"csv": _Csv, "jsonl": _Jsonl, "parquet": _Parquet}


def _converted(table: ExportTable, rows: Rows, conversions: Conversions) -> Iterable[tuple[Any, ...]]:
    """Rows with each column converted as a whole, which takes a third of the time that rows one by one take."""
    return zip(*_columns(table, rows, conversions), strict=True) if rows else ()


def _columns(table: ExportTable, rows: Rows, conversions: Conversions) -> Iterator[Values]:
    # Not strict: there may be more values behind the columns.
    for column, values in zip(table.columns, zip(*rows, strict=True), strict=False):
        yield conversions[column.type](values) if column.type in conversions else values


def _times(values: Values) -> Values:
    texts = iter(_iso([value for value in values if value is not None]))
    return [None if value is None else next(texts) for value in values]


def _booleans(values: Values) -> Values:
    return [None if value is None else bool(value) for value in values]


def _cells(values: Values) -> Values:
    """Quoted texts; empty for None."""
    return ["" if value is None else f'"{value}"' if _is_plain(value) else _quoted(value) for value in values]


def _is_plain(text: str) -> bool:
    # No formula begins with a letter or a digit.
    return '"' not in text and text[:1].isalnum() and not _SEPARATOR.search(text)


def _quoted(text: str) -> str:
    return '"' + escape_formula(text).replace('"', '""') + '"'


def _numbers(values: Values) -> Values:
    return ["" if value is None else str(value) for value in values]


_PLAIN: Conversions = {
    "time": _times,
    "boolean": _booleans,
    "json": lambda values: [None if value is None else orjson.loads(value) for value in values],
}
_CELLS: Conversions = {
    "time": lambda values: [value or "" for value in _times(values)],
    "boolean": lambda values: ["" if value is None else "true" if value else "false" for value in values],
    "integer": _numbers,
    "number": _numbers,
    "text": _cells,
    "json": _cells,
}
_LINES: Conversions = {
    **_PLAIN,
    "json": lambda values: [None if value is None else orjson.Fragment(value) for value in values],
}


def _from_json(kind: ColumnType, value: Any) -> Any:
    if value is None or kind not in ("time", "json"):
        return value
    return to_stored(datetime.fromisoformat(value)) if kind == "time" else orjson.dumps(value).decode()


@contextmanager
def export(
    table: Any, path: Output, format: Any, dataset: str | None, overwrite: bool
) -> Generator[Export, None, None]:
    """A file to add rows to, which is complete and in its place at the end; no file is left if the block fails."""
    chosen = table_named(table, dataset)
    kind = _format_of(path, format)
    checks.flag("overwrite", overwrite)
    with _open_target(path, overwrite=overwrite) as output:
        exported = _FORMATS[kind](chosen, path, output)
        yield exported
        exported.close()


_DICTIONARY = """
feedback: One version of an opinion about a session, an answer, a message or an execution, even if it was retracted.
    feedback_id text    The opinion. What replaces one about an execution or a message has the same.
    session_id  text    The session it was given in, if in any.
    target_type text    What it is about: session, entry, message or execution.
    target_id   text    Which of them.
    dataset     text    The dataset that the answer was made from.
    author      text    Whose opinion it is.
    author_kind text    Who they are: named, program (no name given) or visitor.
    rating      text    up, down, or nothing for neither.
    score       integer 1 (worst) to 5 (best), of answers.
    comment     text    What was said in words.
    extra       json    What was given with it.
    created_at  time    When it was first given.
    updated_at  time    When this version was given.
    active      boolean Whether it counts: it was neither replaced nor retracted.
    event_id    text    The event of this version in the ledger.
    message_id  text    The message of a chat that it was given under.
signals: One signal about a fact.
    event_id    text    Its event in the ledger.
    fact_id     text    The fact.
    dataset     text    The dataset of the fact.
    query       text    What was asked.
    signal      text    used, ignored, helpful or not_helpful.
    confidence  number  How sure it is, from 0 to 1.
    author      text    Who gave it.
    author_kind text    Who they are: named, program (no name given) or visitor.
    source      text    How it came: signal, signal_recall, improve, and so on.
    recall_id   text    The recall that showed the fact.
    rank        integer Where the fact stood there.
    note        text    What was written with it.
    created_at  time    When it was given.
    recorded_at time    When it was stored.
    active      boolean Whether it counts: it was not retracted.
entries: One question and its answer.
    qa_id       text    The entry.
    session_id  text    The session.
    question    text    What was asked.
    answer      text    What was answered.
    context     text    The texts that the answer was made from.
    dataset     text    The dataset that it was made from.
    recall_id   text    The recall that showed the facts.
    model       text    The language model that wrote it.
    used        json    The facts in it, as [fact_id, share, links].
    usage       json    Tokens that the language model read and wrote.
    external_id text    The caller's own id, such as that of a run or a trace.
    created_at  time    When it was kept.
sessions: One session.
    session_id text    The session.
    metadata   json    What is known of it.
    created_at time    When it was made.
    updated_at time    When something was last written to it.
messages: One message of a session.
    message_id text    The message.
    session_id text    The session.
    role       text    Who said it.
    content    text    What was said.
    created_at time    When it was said.
facts: One fact.
    fact_id            text    The fact.
    dataset            text    Its dataset.
    text               text    What it says.
    metadata           json    What is known of it.
    source             text    Where it comes from.
    superseded         boolean Whether another fact replaces it.
    expires_at         time    When it ends; nothing if it doesn't.
    overall_usefulness number  How useful it is now over all questions, from 0 to 1; nothing while nobody has said so.
    used               integer Signals that it was used.
    ignored            integer Signals that it was ignored.
    helpful            integer Signals that it was helpful.
    not_helpful        integer Signals that it was not.
    created_at         time    When it was stored.
recalls: One fact that a recall showed, as its receipt has it.
    recall_id         text    The recall.
    dataset           text    The dataset.
    query             text    What was asked.
    mode              text    How it was searched: hybrid, semantic, lexical or graph.
    policy            text    The rule it went by.
    usefulness_weight number  The share of usefulness in the score.
    created_at        time    When it was asked.
    rank              integer Where the fact stood, from 1 on.
    fact_id           text    The fact, which may be forgotten since.
    score             number  What it was ranked by.
    relevance         number  How well it fits the query, from 0 to 1.
    usefulness        number  How useful it was then, from 0 to 1.
    usefulness_source text    Where that came from: context, related, global or neutral.
    propensity        number  The chance it had to be shown there.
executions: One SQL query that ran; its result stays in the store.
    execution_id text    The execution.
    connector_id text    The connector it ran through.
    question     text    What it answers.
    sql_query    text    The SQL.
    parameters   json    The values of its parameters.
    row_count    integer Rows of the result.
    truncated    boolean Whether there were more rows than are kept.
    seconds      number  How long it took.
    origin       text    Where the SQL came from.
    derived_from text    The execution whose SQL was used again.
    message_id   text    The message of a chat that it belongs to.
    audience     text    Whom it may be reused for; nothing for everybody.
    created_at   time    When it ran.
golden_examples: One question with the SQL that answers it, by people's word.
    example_id   text    The example.
    connector_id text    The connector.
    question     text    The question.
    sql_query    text    The SQL.
    origin       text    Where it comes from.
    execution_id text    The execution it was made from.
    audience     text    Whom it is for; nothing for everybody.
    created_at   time    When it was made.
    updated_at   time    When it was last changed.
decisions: One decision of the cache of executions.
    decision_id  text    The decision.
    connector_id text    The connector.
    question     text    What was asked.
    decision     text    serve, rebind, refuse or nothing.
    gate         text    Which gate decided.
    reason       text    Why, in words.
    similarity   number  Of the nearest stored question.
    candidate_id text    The execution or golden example that was looked at.
    execution_id text    The execution that was made of it.
    created_at   time    When it was decided.
review_items: One item of the review queue; chosen by when its newest opinion was given.
    item_id     text    The item.
    target_type text    What its opinions are about.
    dataset     text    The dataset of the answers.
    status      text    open, resolved or dismissed.
    assignee    text    Who has taken it up.
    opinions    integer Active negative opinions.
    opened_at   time    When it came up.
    last_at     time    When its newest opinion was given.
    changed_at  time    When somebody last acted on it.
events: One line of the ledger; it keeps no words of people.
    event_id    text    The event.
    kind        text    signal, link_signal, feedback, retraction, supersession, and so on.
    target_type text    What it is about.
    target_id   text    Which of them.
    dataset     text    The dataset, where it is about facts.
    author      text    Whose it is.
    author_kind text    Who they are: named, program (no name given) or visitor.
    source      text    How it came.
    created_at  time    When it was said.
    recorded_at time    When it was stored.
    query       text    What was asked, where it is a signal.
    value       text    What was said: a signal, a score or a rating.
    confidence  number  How sure it is, from 0 to 1.
    recall_id   text    The recall that showed the fact.
    rank        integer Where the fact stood there.
    body        json    What else belongs to it.
"""


def _read_dictionary() -> Iterator[ExportTable]:
    for block in re.split(r"\n(?=\w)", _DICTIONARY)[1:]:
        header, *lines = block.splitlines()
        name, meaning = header.split(": ", 1)
        columns = [dict(zip(("name", "type", "meaning"), line.split(None, 2), strict=True)) for line in lines]
        yield ExportTable.model_validate({"name": name, "meaning": meaning, "columns": columns})


TABLES: dict[TableName, ExportTable] = {table.name: table for table in _read_dictionary()}


def table_named(name: Any, dataset: str | None) -> ExportTable:
    """A table by its name, which can be filtered as asked."""
    if name not in TABLE_NAMES:
        raise Invalid.unknown("table", name, TABLE_NAMES)
    table = TABLES[name]
    if dataset is not None and not _has_dataset(table):
        with_one = [other.name for other in TABLES.values() if _has_dataset(other)]
        remedy = f"Leave it out, or export one of {', '.join(with_one)}"
        raise Invalid(f"the rows of {name} belong to no dataset", field="dataset", value=dataset, remedy=remedy)
    return table


def _has_dataset(table: ExportTable) -> bool:
    return any(column.name == "dataset" for column in table.columns)
