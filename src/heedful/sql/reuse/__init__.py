"""May a proven SQL query be used again for another question? Pure decisions, which say why they refuse."""

from heedful.sql.reuse.decision import alike, choose, decide
from heedful.sql.reuse.evidence import Evidence, Proven, Study, study
from heedful.sql.reuse.query_parts import is_deterministic
from heedful.sql.reuse.values import Known, Values
from heedful.sql.reuse.verdict import Difference, Verdict

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
