"""What a replay of other policies says."""

from __future__ import annotations

from heedful.model.base import Model, PolicyName


class Estimate(Model):
    """A mean and its 95% interval."""

    value: float
    """The mean."""
    low: float
    """The lower end."""
    high: float
    """The upper end."""


class WorseQuery(Model):
    """A query whose helpful fact another order would put lower."""

    query: str
    receipts: int
    """How many of its rated recalls were replayed."""
    change: float
    """The mean change of the reciprocal rank over those; below 0."""
    recall_id: str
    """The recall of it that would lose most."""
    old_rank: int
    """Where that recall showed its first helpful fact."""
    new_rank: int
    """Where it would have been."""


class ReplayArm(Model):
    """What one way to order the facts that were shown is worth, by the ratings they got."""

    policy: PolicyName | None
    """None for the logged order and for relevance alone."""
    usefulness_weight: float | None
    """None for the logged order, whose recalls may have had different ones."""
    mrr: Estimate
    """The mean reciprocal rank of the first helpful fact."""
    ndcg: Estimate
    """nDCG at 10; helpful facts count 1, all others 0."""
    mrr_change: Estimate
    """The difference to the logged order, with the interval of the paired difference."""
    ndcg_change: Estimate
    """The same of nDCG."""
    queries_better: int
    """How many queries have a better mean reciprocal rank than they had as logged."""
    queries_worse: int
    """How many have a worse one."""
    worse: list[WorseQuery]
    """The ten that lose most, worst first."""


class ReplayAdvice(Model):
    """The weight that a policy should be given, by what was replayed."""

    policy: PolicyName
    usefulness_weight: float | None
    """0 where nothing surely beats relevance alone; None where there are too few ratings to tell."""
    reason: str
    """Why, in words."""


class ReplayRecommendation(Model):
    """The order that would have been best, of relevance alone and each policy with its recommended weight."""

    policy: PolicyName | None
    """None for relevance alone."""
    usefulness_weight: float
    """The weight that was best for it; 0 for relevance alone."""
    mrr_change: Estimate
    """The difference to the order that was shown."""
    certainty: float
    """The share of resamples in which it is better than that; 0.5 is a coin."""
    is_certain: bool
    """Whether that is 0.95 or more: enough to change something."""
    reason: str
    """Why, in words."""


class ReplayReport(Model):
    """What other policies and weights would have made of the recalls that people rated."""

    dataset: str
    rated: int
    """Recalls with active explicit ratings."""
    replayed: int
    """Those of them with a fact rated helpful: the others say nothing about an order."""
    queries: int
    """How many different queries those had."""
    effective_sample_size: float
    """How many recalls with equal weights would say as much; below `replayed` where exploration was at work."""
    seed: int
    """What the intervals were drawn with."""
    logged: ReplayArm | None
    """The order that was shown; None where nothing was replayed."""
    none: ReplayArm | None
    """Relevance alone."""
    arms: list[ReplayArm]
    """Each policy with each weight."""
    advice: list[ReplayAdvice]
    """One for each policy."""
    recommendation: ReplayRecommendation | None = None
    """None where there are too few ratings to tell."""
