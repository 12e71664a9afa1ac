"""Results in a few lines, for a model to read."""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch

from heedful.errors import HeedfulError
from heedful.interfaces.mcp.tools import EntryRating
from heedful.model import (
    Entry,
    ExecutionFeedback,
    Feedback,
    ForgetResult,
    Improvement,
    Model,
    Recall,
    RememberResult,
    Retraction,
    SignalResult,
)

MAX_LISTED = 10
"""Facts that `remember` lists one by one."""


@singledispatch
def describe(result: Model) -> str:
    """What came of a call."""
    raise NotImplementedError(type(result).__name__)


def describe_error(error: HeedfulError) -> str:
    """What is wrong, then what to do."""
    return _lines([f"error ({error.code}): {error.message}"], [error.remedy] if error.remedy else [])


@describe.register
def _(result: Recall) -> str:
    ids = [] if result.qa_id is None else [f"session_id {result.session_id}, qa_id {result.qa_id}"]
    return _lines(
        [f"recall_id {result.recall_id}: {_count(len(result.hits), 'hit')}"],
        (f"{hit.rank}. {_one_line(hit.text)} (fact_id {hit.fact_id}, score {hit.score:.4f})" for hit in result.hits),
        [] if result.answer is None else [f"answer: {result.answer}"],
        ids,
    )


@describe.register
def _(result: RememberResult) -> str:
    rest = len(result.facts) - MAX_LISTED
    return _lines(
        [f"{result.added} new, {result.known} known in {result.dataset}"],
        (f"{fact.fact_id} {_one_line(fact.text)[:80]}" for fact in result.facts[:MAX_LISTED]),
        [f"and {rest} more"] if rest > 0 else [],
        (
            f"conflict: fact {each.conflicts_with} says {each.other_value}, not {each.value}: {_one_line(each.text)}"
            for each in result.conflicts[:MAX_LISTED]
        ),
    )


@describe.register
def _(result: SignalResult) -> str:
    return _lines(
        [f"{_count(result.processed, 'signal')} taken, {_count(len(result.updated_facts), 'fact')} updated"],
        (f"{each.signal_type} for fact {each.fact_id} (event_id {each.event_id})" for each in result.signals),
        (f"not taken: {error.message}" for error in result.errors),
    )


@describe.register
def _(result: Entry | EntryRating) -> str:
    score = "no score" if result.feedback_score is None else f"{result.feedback_score} of 5"
    return f"the answer {result.qa_id} has the score {score}"


@describe.register
def _(result: Feedback) -> str:
    rating = result.rating or "no rating"
    return f"feedback {result.feedback_id}: {rating} for the session {result.session_id}; to undo it, retract it"


@describe.register
def _(result: ExecutionFeedback) -> str:
    rating = "right" if result.is_positive else "wrong"
    subject = result.execution_id or f"of message {result.chat_message_id}"
    return f"feedback {result.id}: execution {subject} was {rating}; to undo it, retract it"


@describe.register
def _(result: Improvement) -> str:
    refused = [f"not learnt from {each.learnt_from} {each.feedback_id}: {each.detail}" for each in result.not_learnt]
    if not result.changed:
        return _lines([f"nothing new in {result.dataset}"], refused)
    return _lines(
        [
            f"{_count(result.signals_added, 'signal')} added and {result.signals_retracted} retracted, "
            f"{_count(len(result.updated_facts), 'fact')} updated, {len(result.learnt)} learnt, "
            f"{len(result.forgotten)} forgotten in {result.dataset}"
        ],
        [*(f"learnt: {_one_line(each.text)} (fact_id {each.fact_id})" for each in result.learnt), *refused],
    )


@describe.register
def _(result: Retraction) -> str:
    return f"{result.retracted} is retracted, {_count(len(result.updated_facts), 'fact')} updated"


@describe.register
def _(result: ForgetResult) -> str:
    if result.erased is not None:
        message = "nothing has this name" if result.erased.author is None else f"erased; now {result.erased.author}"
        message = f"{message}, {_count(result.facts, 'fact')} forgotten"
    else:
        message = f"{_count(result.facts, 'fact')} forgotten in {result.dataset}"
    back = [f"recalled again, since its correction is forgotten: {fact_id}" for fact_id in result.restored]
    return _lines([message], back)


def _lines(*parts: Iterable[str]) -> str:
    return "\n".join(line for part in parts for line in part)


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _one_line(text: str) -> str:
    return " ".join(text.split())
