"""How much of what was shown was rated."""

from __future__ import annotations

from typing import Literal

from heedful.clock import DAY
from heedful.insight.counting import Counting
from heedful.learning.proportions import wilson
from heedful.memory.workspace import Workspace
from heedful.model import Coverage, Covered
from heedful.storage import insight, scopes
from heedful.storage.tallies import Asked


def coverage(
    counting: Counting, workspace: Workspace, since: int | None, until: int | None, dataset: str | None
) -> Coverage:
    """Of answers, executions and recalls; what is counted is counted by whole days."""
    start = None if since is None else since // DAY * DAY
    stop = None if until is None else -(-until // DAY) * DAY
    lines = counting.counts(Asked(by="target_type", since=start, until=stop, dataset=dataset))
    counted = {line.value: (line.shown, line.rated) for line in lines}
    with workspace.read() as connection:
        project = scopes.project_id(connection, workspace.project)
        number = None if dataset is None else scopes.dataset_id(connection, workspace.project, dataset)
        if project is None or (dataset is not None and number is None):
            recalls = 0
        else:
            recalls = insight.recalls(connection, project, number, start, stop)
    return Coverage(
        answers=_covered("answers", *counted.get("entry", (0, 0))),
        executions=_covered("executions", *counted.get("execution", (0, 0))),
        recalls=_covered("recalls", recalls, min(recalls, counted.get("recall", (0, 0))[1])),
    )


def _covered(kind: Literal["answers", "executions", "recalls"], shown: int, rated: int) -> Covered:
    low, high = wilson(min(rated, shown), shown) if shown else (None, None)
    return Covered(kind=kind, shown=shown, rated=rated, share=rated / shown if shown else None, low=low, high=high)
