"""The effect of a change on whatever people rated well."""

from __future__ import annotations

from typing import Literal

from heedful.model.base import Model, public
from heedful.model.memory import Estimate

RatedKind = Literal["question", "answer", "execution"]
"""The kind of thing that was rated: facts for a `question`, an `answer`, or an `execution`."""

Retired = Literal["superseded", "forgotten", "expired", "not_stored_then", "rows_changed", "not_written"]
"""Why something is not compared: its fact was `superseded`, `forgotten` or has `expired`, or is younger than the time
that is asked about; the database has other rows now; or the answer could not be written."""


class HelpfulFact(Model):
    """A fact that helped, and its places."""

    fact_id: str
    text: str
    """Its first 200 characters."""
    old_rank: int | None
    """Its rank as the store is; None where it is not among the facts that are asked for."""
    new_rank: int | None
    """Its rank with the change."""


class Regression(Model):
    """A question that would get worse."""

    kind: RatedKind
    """The kind of thing that was rated: `question`, `answer` or `execution`."""
    question: str
    dataset: str | None
    """Where its facts are; None for an execution."""
    theme: str | None
    """The theme of the question, if it has one."""
    target_id: str | None
    """The entry or the execution that was rated."""
    change: float
    """The change of its score, below 0. The score is the mean reciprocal rank of the facts that helped, or whether the
    answer or the result is still the same (1 or 0)."""
    facts: list[HelpfulFact]
    """The facts that helped."""
    before: str | None
    """The first fact, the answer or the result as it is now."""
    after: str | None
    """The same with the change."""
    reason: str
    """Why, in words."""


class NotCompared(Model):
    """Something that was rated well and is gone on purpose, or is no fault of the change."""

    kind: RatedKind
    """The kind of thing that was rated: `question`, `answer` or `execution`."""
    question: str
    dataset: str | None
    """Where its facts are; None for an execution."""
    fact_id: str | None
    """The fact, if it is about one."""
    reason: Retired
    """A word for programs."""
    detail: str
    """The reason in words."""


class RegressGroup(Model):
    """The rated questions of one kind, dataset or theme."""

    name: str
    """The kind, the dataset or the theme."""
    compared: int
    """How many questions it has."""
    better: int
    """How many of them get better."""
    same: int
    """How many stay as they are."""
    worse: int
    """How many get worse."""
    change: float
    """The mean change of their scores."""


@public
class RegressReport(Model):
    """The effect of a change on the questions that people rated well."""

    candidate: str
    """The change that is compared with the store as it is."""
    rated: int
    """How many different questions were rated well."""
    compared: int
    """How many of them were compared: a sample if one was asked for."""
    needs: int
    """How many needs these are: phrasings of one question count once in the intervals."""
    complete: bool
    """Whether all that should be compared was; false if the deadline came first."""
    better: int
    """How many get better."""
    same: int
    """How many stay as they are."""
    worse: int
    """How many get worse."""
    kept: Estimate
    """The share of the questions that don't get worse. Its interval resamples whole needs."""
    score_before: float
    """The mean score now, in [0, 1]."""
    score_after: float
    """The mean score with the change."""
    change: Estimate
    """The difference of the two."""
    certainty: float
    """The share of resamples in which the change is below 0."""
    is_worse: bool
    """Whether the change makes things worse for sure: with a certainty of 0.998, and seven needs that change."""
    worst: list[Regression]
    """The questions that get worse, worst first; at most 100."""
    not_compared: list[NotCompared]
    """The rated things that are gone on purpose; at most 100 are listed."""
    retired: int
    """How many those are."""
    kinds: list[RegressGroup]
    """The same for questions, answers and executions."""
    datasets: list[RegressGroup]
    """The same for each dataset."""
    themes: list[RegressGroup]
    """The largest themes of the questions, by what they ask for."""
    seed: int
    """The seed of the sample and of the intervals."""
