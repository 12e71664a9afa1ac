"""May a proven SQL query be used again for another question? Pure decisions, which say why they refuse."""

from heedful.sql.reuse.decision import Question, choose, decide, same_frame_ids
from heedful.sql.reuse.evidence import Evidence, ProvenQuery, Study, study
from heedful.sql.reuse.query_parts import is_deterministic
from heedful.sql.reuse.values import Known, Values
from heedful.sql.reuse.verdict import Difference, Verdict

__all__ = [
    "Difference",
    "Evidence",
    "Known",
    "ProvenQuery",
    "Question",
    "Study",
    "Values",
    "Verdict",
    "choose",
    "decide",
    "is_deterministic",
    "same_frame_ids",
    "study",
]
