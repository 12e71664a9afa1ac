"""What every part of the executions works on."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection

from heedful.errors import Invalid, NotFound, quoted
from heedful.memory import checks
from heedful.memory.workspace import Workspace
from heedful.providers.llm.contract import LanguageModel
from heedful.ranking.signals import Trust
from heedful.sessions.space import SessionSpace
from heedful.sql import connector_access
from heedful.sql.connector_access import OPERATOR, Permissions
from heedful.sql.reuse.proofs import Proofs
from heedful.sql.sandbox.pool import Queries, Target
from heedful.storage import scopes
from heedful.storage.executions import connectors, golden, runs
from heedful.storage.rows import AnyRow
from heedful.storage.vectors import ensure_model, pack

NO_PROJECT = -1
"""The number that stands for a project without data."""


@dataclass(frozen=True, slots=True)
class ExecutionSpace:
    """One project: its store, its chat sessions, the language model, if there is one, what runs its queries, and what
    its connectors may reach."""

    workspace: Workspace
    sessions: SessionSpace
    language_model: LanguageModel | None
    queries: Queries
    proofs: Proofs
    permissions: Permissions = OPERATOR

    def now(self) -> int:
        return self.workspace.now()

    @property
    def trust(self) -> Trust:
        """How many authors make an opinion count."""
        return self.workspace.trust

    def project(self, connection: Connection) -> int:
        """The number of the project to read from."""
        number = scopes.project_id(connection, self.workspace.project)
        return NO_PROJECT if number is None else number

    def own_project(self, connection: Connection) -> int:
        """The number of the project to write to."""
        return scopes.ensure_project(connection, self.workspace.project, self.now())

    def connector(self, connection: Connection, id_or_name: str | None) -> AnyRow:
        """A connector by id or name; without one, the project's only connector."""
        project = self.project(connection)
        if id_or_name is None:
            existing = connectors.list_connectors(connection, project)
            if len(existing) == 1:
                return existing[0]
            raise Invalid(
                f"project {quoted(self.workspace.project)} has {len(existing)} connectors, and none is named",
                field="connector_id",
                remedy=_remedy(existing),
            )
        row = connectors.get(connection, project, checks.identifier("connector_id", id_or_name))
        if row is None:
            raise NotFound(
                f"no connector {id_or_name!r} in project {self.workspace.project!r}",
                field="connector_id",
                value=id_or_name,
                remedy=_remedy(connectors.list_connectors(connection, project)),
            )
        return row

    def execution(self, connection: Connection, execution_id: str) -> AnyRow:
        """An execution by its id or external id."""
        row = runs.get(connection, self.project(connection), execution_id)
        if row is None:
            raise NotFound(
                f"no execution {execution_id!r} in project {self.workspace.project!r}",
                field="execution_id",
                value=execution_id,
                remedy="executions.list(), or heedful executions list, shows them",
            )
        return row

    def suggestion_source(self, connection: Connection, execution_id: str) -> AnyRow:
        """The golden example or execution that a suggestion comes from."""
        example = golden.get(connection, self.project(connection), execution_id)
        return self.execution(connection, execution_id) if example is None else example

    def target(self, connector: AnyRow) -> Target:
        """The database behind a connector, if this caller may use it."""
        return connector_access.target_of(connector, self.permissions, self.workspace.database.url)

    def embedded(self, connection: Connection, vector: bytes | None) -> int | None:
        """The number of the model that made a vector."""
        if vector is None:
            return None
        model = ensure_model(connection, self.workspace.embedder.name, self.workspace.embedder.dimensions)
        self.workspace.model(connection)
        return model

    def vector(self, text: str) -> bytes:
        """The stored vector of a text."""
        return pack(self.workspace.embed([text])[0])


def _remedy(existing: list[AnyRow]) -> str:
    if not existing:
        return "Add one: connectors.create(name, url), or heedful connect NAME URL"
    return f"It has: {', '.join(row.name for row in existing)}"
