"""The rules that fold opinions into usefulness and ranks, one a file."""

from heedful.model import PolicyName
from heedful.ranking.policies.adaptive import Adaptive
from heedful.ranking.policies.base import Candidate, Policy, Ranked, Usefulness
from heedful.ranking.policies.documented import Documented, Tally

__all__ = [
    "POLICIES",
    "Adaptive",
    "Candidate",
    "Documented",
    "Policy",
    "Ranked",
    "Tally",
    "Usefulness",
]

POLICIES: dict[PolicyName, Policy] = {"documented": Documented(), "adaptive": Adaptive()}
