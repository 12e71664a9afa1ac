"""What the cache of a connector knows, what it is asked and refuses, and what to prove next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from heedful.clock import from_stored
from heedful.model import CacheCoverage, CacheSuggestion, MissingExample, ProvenKind, RefusedKind
from heedful.sql.reuse import cache
from heedful.sql.reuse.asker import Person, person
from heedful.sql.reuse.decision import Question, choose, same_frame_ids
from heedful.sql.reuse.evidence import Evidence, ProvenQuery, Words
from heedful.sql.reuse.query_parts import with_gaps
from heedful.sql.space import ExecutionSpace
from heedful.storage.executions import runs
from heedful.storage.rows import AnyRow

MAX_REFUSED = 500
"""Different questions that are looked at, the most frequent first."""

EXAMPLES = 3


@dataclass(slots=True)
class _Asked:
    """Questions that belong together, with how often each was asked."""

    times: dict[str, int] = field(default_factory=dict)
    suggestion: CacheSuggestion | None = None

    @property
    def asked(self) -> int:
        return sum(self.times.values())

    @property
    def questions(self) -> list[str]:
        """The most frequent first."""
        return sorted(self.times, key=lambda each: -self.times[each])


def coverage(space: ExecutionSpace, connector: AnyRow, since: int, limit: int) -> CacheCoverage:
    """What is proven on a connector, and what was refused since a moment and would be refused again."""
    with space.proofs.reading(connector, space.target, space.workspace.read) as known:
        project, evidence = connector.project_id, known.evidence
        rows = runs.refused_questions(known.connection, project, connector.id, since, MAX_REFUSED)
        kinds = evidence.by_template()
        gates, missing = _refused(rows, evidence, from_stored(space.now()))
    largest = sorted(kinds.items(), key=lambda item: (-len(item[1]), item[0]))
    next_ones = sorted(missing.values(), key=lambda each: (-each.asked, -len(each.times)))
    return CacheCoverage(
        connector_id=connector.id,
        proven=[_proven_kind(template, proven) for template, proven in largest[:limit]],
        proven_questions=sum(map(len, kinds.values())),
        proven_kinds=len(kinds),
        refused=[
            RefusedKind(gate=gate, asked=each.asked, questions=len(each.times), examples=each.questions[:EXAMPLES])
            for gate, each in sorted(gates.items(), key=lambda item: -item[1].asked)
        ],
        missing=[
            MissingExample(
                question=each.questions[0], asked=each.asked, questions=len(each.times), suggestion=each.suggestion
            )
            for each in next_ones[:limit]
        ],
    )


def _refused(
    rows: Sequence[AnyRow], evidence: Evidence, now: datetime
) -> tuple[dict[str, _Asked], dict[Words, _Asked]]:
    """The questions that are still refused, by gate, and those that differ in values alone by what they share."""
    gates: dict[str, _Asked] = {}
    alike: dict[Words, _Asked] = {}
    for row in rows:
        reading = Question(row.question, evidence.values, now)
        proven = evidence.proven(same_frame_ids(reading, evidence))
        verdicts = choose(reading, proven, evidence=evidence, explained=0)
        if any(verdict.decision != "refuse" for verdict in verdicts):
            continue  # It was proven since.
        gates.setdefault(row.gate, _Asked()).times[row.question] = row.times
        if person(row.question, evidence.values) is Person.ASKER:
            continue  # To prove it would answer nobody else.
        group = alike.setdefault(reading.frames[0].key, _Asked())
        group.times[row.question] = row.times
        if group.suggestion is None and group.questions[0] == row.question:
            for each, verdict in zip(proven, verdicts, strict=True):
                if verdict.suggested is not None:
                    # The name of an example among what is proven ends with its time.
                    source = str(each.id).partition("/")[0]
                    group.suggestion = cache.suggestion(each.question, source, verdict.suggested)
    return gates, alike


def _proven_kind(template: str, proven: Sequence[ProvenQuery]) -> ProvenKind:
    first = min(proven, key=lambda each: str(each.id))
    return ProvenKind(sql_template=with_gaps(template), questions=len(proven), example=first.question)
