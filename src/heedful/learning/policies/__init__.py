"""The rules that fold opinions into usefulness and ranks, one a file."""

from heedful.learning.policies.adaptive import Adaptive
from heedful.learning.policies.base import Candidate, Policy, Ranked, Usefulness
from heedful.learning.policies.documented import Documented, Tally
from heedful.model import PolicyName

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
