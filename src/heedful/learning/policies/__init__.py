"""The rules that fold signals into usefulness, one a file."""

from heedful.learning.policies.base import Policy, Usefulness
from heedful.learning.policies.documented import Documented, Tally

__all__ = ["Documented", "Policy", "Tally", "Usefulness"]
