"""Which rule a project or a dataset recalls by."""

from __future__ import annotations

from heedful.memory import checks
from heedful.memory.workspace import Workspace
from heedful.model import PolicyName
from heedful.storage import audit, scopes


def set_policy(workspace: Workspace, policy: PolicyName | None, dataset: str | None) -> None:
    """Sets the policy of a dataset, or of the project; None takes it back."""
    if policy is not None:
        checks.policy(policy)
    with workspace.write() as connection:
        at = workspace.now()
        project = scopes.ensure_project(connection, workspace.project, at)
        number = None
        if dataset is not None:
            number = workspace.dataset(connection, checks.name("dataset", dataset))
            if number is None:
                number = scopes.ensure_dataset(connection, workspace.project, dataset, at)
        scopes.set_policy(connection, project, number, policy)
        audit.note_action(connection, "set_policy", at, project, dataset)
