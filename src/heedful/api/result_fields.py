"""The meaning of each field of the models, in a sentence, for the description of the API and for the docs."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping
from functools import cache
from types import ModuleType

from pydantic import BaseModel

FIELDS = {
    "Stopping.decided": "Whether there are enough ratings.",
    "Stopping.reason": "The same in words.",
    "added": "How many facts are new.",
    "alert_id": "The same in every attempt.",
    "attempts": "How often it was tried.",
    "author": "Whose opinion it is.",
    "avg_comment_length": "Characters of a comment, on average.",
    "better": "The value of the likelier winner.",
    "by": "The key.",
    "channel": "The name of the channel it is for.",
    "comment": "What was said in words.",
    "completion_tokens": "Tokens that it wrote.",
    "content": "The text of the message.",
    "created_at": "When it was made.",
    "delivered_at": "When it arrived.",
    "down": "Ratings down, and scores of 1 and 2.",
    "feedback_score": "The latest score that stands.",
    "feedback_text": "The latest text that stands.",
    "gate": "Which gate decided.",
    "high": "The upper end.",
    "items": "What is on this page.",
    "learnt": "The facts that were made.",
    "learnt_from": "A well-rated answer, or feedback that corrects a fact.",
    "link_signals_added": "Signals about links of the graph.",
    "link_signals_retracted": "Those that no rating bears out any longer.",
    "low": "The lower end of its 95% interval (Wilson).",
    "message_id": "The message.",
    "messages": "How many messages.",
    "negative": "Ratings down, and scores of 1 and 2.",
    "neutral": "Neither up nor down, and scores of 3.",
    "payload": "What is sent.",
    "positive": "Ratings up, and scores of 4 and 5.",
    "probability": "That its true satisfaction is greater.",
    "prompt_tokens": "Tokens that it read.",
    "qa_id": "The entry's id, for `add_feedback`.",
    "question": "The question.",
    "role": "Who said it.",
    "session_id": "The session.",
    "SessionDeletion.entries": "How many questions and answers.",
    "SessionDeletion.feedbacks": "How many opinions.",
    "signals_added": "Signals about facts that ratings made.",
    "signals_retracted": "Those that no rating bears out any longer.",
    "target_id": "The session, or the entry.",
    "target_type": "What it is about.",
    "than": "The value of the other one.",
    "time": "When it was answered.",
    "total": "How many opinions stand.",
    "up": "Ratings up, and scores of 4 and 5.",
    "usage": "What the language model counted.",
    "Alert.created_at": "When the feedback was given.",
    "Entry.answer": "What was answered.",
    "Entry.dataset": "Where the evidence is from.",
    "Feedback.created_at": "When it was given.",
    "Message.at": "When it was said.",
    "Session.metadata": "What is known of it.",
    "LearntFact.session_id": "The session it was learnt in.",
    "LearntFact.qa_id": "The entry it was learnt from.",
    "LearntFact.fact_id": "The new fact.",
    "Variant.value": "The value.",
    "arithmetic": "The way to the score, in lines for people.",
    "at": "When it was given.",
    "code": "A stable word for programs.",
    "confidence": "How sure the author is.",
    "context": "A note that is kept with the signal. It does not change the score.",
    "context_similarity": "How alike that query and the one asked are.",
    "dataset": "The dataset.",
    "detail": "What was found.",
    "errors": "What was refused, one by one.",
    "event_id": "The event, for `retract`.",
    "event_ids": "The ledger's events, for `retract`. A signal that was given before has its first event here.",
    "explanation": "The reasons, with `explain=True`.",
    "fact_id": "The fact.",
    "facts": "The facts, in order.",
    "Dataset.metadata": "What is known of it.",
    "Dataset.name": "What it is called.",
    "ForgetResult.facts": "How many are gone.",
    "facts_with_signals": "How many active facts have signals.",
    "hits": "The facts found, best first. The object itself can be iterated and indexed, too.",
    "idempotency_key": "A signal with a key that was seen before counts once.",
    "index": "Its place in the call.",
    "known": "How many facts were there already.",
    "last_signal_at": "When the newest signal was given.",
    "least_useful": "The ten facts with the lowest scores.",
    "message": "What is wrong, for people.",
    "metadata": "The fact's metadata.",
    "mode": "How it was searched.",
    "most_useful": "The ten facts with the highest scores.",
    "name": "What was looked at.",
    "new": "Whether it was stored now.",
    "ok": "Whether it is right now.",
    "policy": "The rule it was ranked by.",
    "queries": "All queries of the context.",
    "query": "The question.",
    "overall_usefulness": "The usefulness over all queries, by the documented arithmetic, decayed to now.",
    "rank": "The place, from 1.",
    "reasons": "The reason.",
    "recall_id": "The receipt's id, for `signal_recall`.",
    "relevance": "How well the fact answers by meaning and words, in [0, 1].",
    "removed": "How many facts a changed file no longer says.",
    "repaired": "Whether it was wrong and was rebuilt.",
    "retracted": "The event that no longer counts.",
    "satisfaction": "up / (up + down); None without any.",
    "score": "What the rank is by.",
    "shown": "The facts, in the order they were shown.",
    "signal_breakdown": "How many signals of each type.",
    "signal_count": "How many signals count.",
    "signal_type": "What is said of the fact.",
    "source": "Where the text comes from.",
    "superseded_by": "The fact that is recalled in its place.",
    "text": "The fact's text.",
    "total_facts": "How many active facts there are: superseded and expired facts don't count.",
    "total_signals": "How many signals count.",
    "updated_facts": "The facts whose scores were recomputed.",
    "SignalResult.updated_facts": "The facts that have new scores.",
    "usefulness": "What signals say of the fact for this query, in [0, 1]; 0.5 is neutral.",
    "usefulness_source": "Whether that is from this context, from all queries, or from nobody.",
    "age_days": "How long ago it ran.",
    "audience": "Whom it is for; None is everybody.",
    "candidates_checked": "How many stored questions were looked at.",
    "chat_message_id": "The message of a chat that it belongs to.",
    "chat_session_id": "The chat session.",
    "columns": "The columns, in order.",
    "connector_id": "The connector.",
    "decision": "Whether it may be used as it is, may be used with other values, or may not be used.",
    "deleted_count": "How many were retracted.",
    "derived_from": "The execution or golden example whose SQL was reused.",
    "dialect": "The kind of database.",
    "execution_id": "The execution.",
    "execution_time_ms": "How long it took, in milliseconds.",
    "feedback": "The reason.",
    "feedback_comment": "What was said of it in words.",
    "feedback_is_positive": "Whether it was right, by all opinions; None if there is none.",
    "has_feedback": "Whether anybody has said anything of it.",
    "id": "Its id.",
    "is_positive": "Whether it was right.",
    "limit": "How many were asked for.",
    "origin": "How it came about.",
    "parameters": "The values of the `:name` places.",
    "result": "Its rows.",
    "rows": "The rows, each a list of values.",
    "ResultColumn.name": "What it is called.",
    "similarity_score": "How alike the two questions are; it decides nothing.",
    "skip": "How many were left out at the beginning.",
    "sql_query": "The SQL.",
    "type": "Its type, as the database calls it.",
    "updated_at": "When it was changed last.",
    "url": "Its URL, without secrets.",
    "ChatAnswer.answer": "The result in words.",
    "ChatSession.name": "What it is called.",
    "Connector.name": "What it is called.",
    "GoldenExample.question": "The question that the SQL answers.",
    "FeedbackList.total": "How many there are in all.",
}
"""Of models, where the code below the field says nothing; "Model.name" is for the exceptions."""


def describe_field(model: type[BaseModel], name: str, known: Mapping[str, str] = FIELDS) -> str:
    """The meaning of a field: as it is written below the field, or in the table."""
    owners = [owner for owner in model.__mro__ if issubclass(owner, BaseModel)]
    keys = [f"{owner.__name__}.{name}" for owner in owners]
    below = {key: text for owner in owners for key, text in attribute_docs(sys.modules[owner.__module__]).items()}
    for key, meanings in [*((key, below) for key in keys), *((key, known) for key in (*keys, name))]:
        if key in meanings:
            return meanings[key]
    raise KeyError(f"nothing is said of {keys[0]}: write it below the field, or in FIELDS in {__name__}")


@cache
def attribute_docs(module: ModuleType) -> dict[str, str]:
    """The texts that stand below names, as "NAME" or "Class.name"."""
    found: dict[str, str] = {}

    def walk(body: list[ast.stmt], prefix: str) -> None:
        for line, below in zip(body, [*body[1:], None], strict=True):
            if isinstance(line, ast.ClassDef):
                walk(line.body, f"{line.name}.")
            if isinstance(line, ast.Assign):
                named: ast.expr | None = line.targets[0]
            else:
                named = line.target if isinstance(line, ast.AnnAssign) else None
            if isinstance(named, ast.Name) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                found[prefix + named.id] = inspect.cleandoc(str(below.value.value))

    walk(ast.parse(inspect.getsource(module)).body, "")
    return found
