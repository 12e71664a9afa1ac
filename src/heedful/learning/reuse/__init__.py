"""May a proven SQL query be used again for another question? Pure decisions, which say why they refuse."""

from heedful.learning.reuse.deciding import alike, choose, decide
from heedful.learning.reuse.evidence import Evidence
from heedful.learning.reuse.queries import is_deterministic
from heedful.learning.reuse.studies import Proven, Study, study
from heedful.learning.reuse.values import Known, Values
from heedful.learning.reuse.verdict import Difference, Verdict

__all__ = [
    "Difference",
    "Evidence",
    "Known",
    "Proven",
    "Study",
    "Values",
    "Verdict",
    "alike",
    "choose",
    "decide",
    "is_deterministic",
    "study",
]
