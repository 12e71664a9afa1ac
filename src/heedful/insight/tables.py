"""What can be exported: the tables, their columns, and what these mean."""

from __future__ import annotations

from typing import Any

from heedful.errors import Invalid, quoted
from heedful.model import TABLE_NAMES, ColumnType, ExportColumn, ExportTable, TableName


def _table(name: TableName, meaning: str, *columns: tuple[str, ColumnType, str]) -> ExportTable:
    return ExportTable(
        name=name,
        meaning=meaning,
        columns=[ExportColumn(name=each, type=kind, meaning=description) for each, kind, description in columns],
    )


_TABLES = (
    _table(
        "feedback",
        "One version of an opinion about a session, an answer, a message or an execution, even if it was retracted.",
        ("feedback_id", "text", "The opinion. What replaces one about an execution or a message has the same."),
        ("session_id", "text", "The session it was given in, if in any."),
        ("target_type", "text", "What it is about: session, entry, message or execution."),
        ("target_id", "text", "Which of them."),
        ("dataset", "text", "The dataset that the answer was made from."),
        ("author", "text", "Whose opinion it is."),
        ("author_kind", "text", "Who they are: named, program (no name given) or visitor."),
        ("rating", "text", "up, down, or nothing for neither."),
        ("score", "integer", "1 (worst) to 5 (best), of answers."),
        ("comment", "text", "What was said in words."),
        ("extra", "json", "What was given with it."),
        ("created_at", "time", "When it was first given."),
        ("updated_at", "time", "When this version was given."),
        ("active", "boolean", "Whether it counts: it was neither replaced nor retracted."),
        ("event_id", "text", "The event of this version in the ledger."),
        ("message_id", "text", "The message of a chat that it was given under."),
    ),
    _table(
        "signals",
        "One signal about a fact.",
        ("event_id", "text", "Its event in the ledger."),
        ("fact_id", "text", "The fact."),
        ("dataset", "text", "The dataset of the fact."),
        ("query", "text", "What was asked."),
        ("signal", "text", "used, ignored, helpful or not_helpful."),
        ("confidence", "number", "How sure it is, from 0 to 1."),
        ("author", "text", "Who gave it."),
        ("author_kind", "text", "Who they are: named, program (no name given) or visitor."),
        ("source", "text", "How it came: signal, signal_recall, improve, and so on."),
        ("recall_id", "text", "The recall that showed the fact."),
        ("rank", "integer", "Where the fact stood there."),
        ("note", "text", "What was written with it."),
        ("created_at", "time", "When it was given."),
        ("recorded_at", "time", "When it was stored."),
        ("active", "boolean", "Whether it counts: it was not retracted."),
    ),
    _table(
        "entries",
        "One question and its answer.",
        ("qa_id", "text", "The entry."),
        ("session_id", "text", "The session."),
        ("question", "text", "What was asked."),
        ("answer", "text", "What was answered."),
        ("context", "text", "The texts that the answer was made from."),
        ("dataset", "text", "The dataset that it was made from."),
        ("recall_id", "text", "The recall that showed the facts."),
        ("model", "text", "The language model that wrote it."),
        ("used", "json", "The facts in it, as [fact_id, share, links]."),
        ("usage", "json", "Tokens that the language model read and wrote."),
        ("external_id", "text", "The caller's own id, such as that of a run or a trace."),
        ("created_at", "time", "When it was kept."),
    ),
    _table(
        "sessions",
        "One session.",
        ("session_id", "text", "The session."),
        ("metadata", "json", "What is known of it."),
        ("created_at", "time", "When it was made."),
        ("updated_at", "time", "When something was last written to it."),
    ),
    _table(
        "messages",
        "One message of a session.",
        ("message_id", "text", "The message."),
        ("session_id", "text", "The session."),
        ("role", "text", "Who said it."),
        ("content", "text", "What was said."),
        ("created_at", "time", "When it was said."),
    ),
    _table(
        "facts",
        "One fact.",
        ("fact_id", "text", "The fact."),
        ("dataset", "text", "Its dataset."),
        ("text", "text", "What it says."),
        ("metadata", "json", "What is known of it."),
        ("source", "text", "Where it comes from."),
        ("superseded", "boolean", "Whether another fact replaces it."),
        ("expires_at", "time", "When it ends; nothing if it doesn't."),
        (
            "overall_usefulness",
            "number",
            "How useful it is now over all questions, from 0 to 1; nothing while nobody has said so.",
        ),
        ("used", "integer", "Signals that it was used."),
        ("ignored", "integer", "Signals that it was ignored."),
        ("helpful", "integer", "Signals that it was helpful."),
        ("not_helpful", "integer", "Signals that it was not."),
        ("created_at", "time", "When it was stored."),
    ),
    _table(
        "recalls",
        "One fact that a recall showed, as its receipt has it.",
        ("recall_id", "text", "The recall."),
        ("dataset", "text", "The dataset."),
        ("query", "text", "What was asked."),
        ("mode", "text", "How it was searched: hybrid, semantic, lexical or graph."),
        ("policy", "text", "The rule it went by."),
        ("usefulness_weight", "number", "The share of usefulness in the score."),
        ("created_at", "time", "When it was asked."),
        ("rank", "integer", "Where the fact stood, from 1 on."),
        ("fact_id", "text", "The fact, which may be forgotten since."),
        ("score", "number", "What it was ranked by."),
        ("relevance", "number", "How well it fits the query, from 0 to 1."),
        ("usefulness", "number", "How useful it was then, from 0 to 1."),
        ("usefulness_source", "text", "Where that came from: context, related, global or neutral."),
        ("propensity", "number", "The chance it had to be shown there."),
    ),
    _table(
        "executions",
        "One SQL query that ran; its result stays in the store.",
        ("execution_id", "text", "The execution."),
        ("connector_id", "text", "The connector it ran through."),
        ("question", "text", "What it answers."),
        ("sql_query", "text", "The SQL."),
        ("parameters", "json", "The values of its parameters."),
        ("row_count", "integer", "Rows of the result."),
        ("truncated", "boolean", "Whether there were more rows than are kept."),
        ("seconds", "number", "How long it took."),
        ("origin", "text", "Where the SQL came from."),
        ("derived_from", "text", "The execution whose SQL was used again."),
        ("message_id", "text", "The message of a chat that it belongs to."),
        ("audience", "text", "Whom it may be reused for; nothing for everybody."),
        ("created_at", "time", "When it ran."),
    ),
    _table(
        "golden_examples",
        "One question with the SQL that answers it, by people's word.",
        ("example_id", "text", "The example."),
        ("connector_id", "text", "The connector."),
        ("question", "text", "The question."),
        ("sql_query", "text", "The SQL."),
        ("origin", "text", "Where it comes from."),
        ("execution_id", "text", "The execution it was made from."),
        ("audience", "text", "Whom it is for; nothing for everybody."),
        ("created_at", "time", "When it was made."),
        ("updated_at", "time", "When it was last changed."),
    ),
    _table(
        "decisions",
        "One decision of the cache of executions.",
        ("decision_id", "text", "The decision."),
        ("connector_id", "text", "The connector."),
        ("question", "text", "What was asked."),
        ("decision", "text", "serve, rebind, refuse or nothing."),
        ("gate", "text", "Which gate decided."),
        ("reason", "text", "Why, in words."),
        ("similarity", "number", "Of the nearest stored question."),
        ("candidate_id", "text", "The execution or golden example that was looked at."),
        ("execution_id", "text", "The execution that was made of it."),
        ("created_at", "time", "When it was decided."),
    ),
    _table(
        "review_items",
        "One item of the review queue; chosen by when its newest opinion was given.",
        ("item_id", "text", "The item."),
        ("target_type", "text", "What its opinions are about."),
        ("dataset", "text", "The dataset of the answers."),
        ("status", "text", "open, resolved or dismissed."),
        ("assignee", "text", "Who has taken it up."),
        ("opinions", "integer", "Active negative opinions."),
        ("opened_at", "time", "When it came up."),
        ("last_at", "time", "When its newest opinion was given."),
        ("changed_at", "time", "When somebody last acted on it."),
    ),
    _table(
        "events",
        "One line of the ledger; it keeps no words of people.",
        ("event_id", "text", "The event."),
        ("kind", "text", "signal, link_signal, feedback, retraction, supersession, and so on."),
        ("target_type", "text", "What it is about."),
        ("target_id", "text", "Which of them."),
        ("dataset", "text", "The dataset, where it is about facts."),
        ("author", "text", "Whose it is."),
        ("author_kind", "text", "Who they are: named, program (no name given) or visitor."),
        ("source", "text", "How it came."),
        ("created_at", "time", "When it was said."),
        ("recorded_at", "time", "When it was stored."),
        ("query", "text", "What was asked, where it is a signal."),
        ("value", "text", "What was said: a signal, a score or a rating."),
        ("confidence", "number", "How sure it is, from 0 to 1."),
        ("recall_id", "text", "The recall that showed the fact."),
        ("rank", "integer", "Where the fact stood there."),
        ("body", "json", "What else belongs to it."),
    ),
)

TABLES: dict[TableName, ExportTable] = {table.name: table for table in _TABLES}
"""By name."""


def table_named(name: Any, dataset: str | None) -> ExportTable:
    """A table by its name, which can be filtered as asked."""
    if name not in TABLE_NAMES:
        raise Invalid(
            f"unknown table {quoted(name)}", field="table", value=name, remedy=f"Use one of {', '.join(TABLE_NAMES)}"
        )
    table = TABLES[name]
    if dataset is not None and not any(column.name == "dataset" for column in table.columns):
        with_one = [each.name for each in _TABLES if any(column.name == "dataset" for column in each.columns)]
        raise Invalid(
            f"the rows of {name} belong to no dataset",
            field="dataset",
            value=dataset,
            remedy=f"Leave it out, or export one of {', '.join(with_one)}",
        )
    return table
