"""One project as every part of this wing works on it, and the hosts and files that its connectors may use: any for the
operator, those in the settings for others."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection
from sqlalchemy.engine import URL

from heedful.api import checks
from heedful.errors import Forbidden, Invalid, NotFound, quoted
from heedful.model import Metadata
from heedful.providers.llm import LanguageModel
from heedful.sessions.space import SessionSpace
from heedful.settings import Trust
from heedful.sql import records, secrets
from heedful.sql.databases import errors
from heedful.sql.sandbox.pool import Queries, Target
from heedful.sql.secrets import DatabaseKind
from heedful.storage import scopes
from heedful.storage.rows import AnyRow
from heedful.storage.vectors import ensure_model, pack
from heedful.workspace import Workspace

if TYPE_CHECKING:
    from heedful.sql.reuse.proofs import Proofs

SYSTEM = "system"
"""The option's value for the certificates that this machine trusts."""


@dataclass(frozen=True, slots=True)
class Permissions:
    """Which hosts, files and variables the connectors of one caller may use."""

    everywhere: bool = True
    """Whether any host and any file is allowed."""
    hosts: Sequence[str] = ()
    """Each `host`, for the usual port, or `host:port`."""
    folders: Sequence[str] = ()
    secrets: frozenset[str] | None = None
    """The environment variables that URLs may reference; None for all but those of Heedful."""

    def check(self, address: URL, kind: DatabaseKind) -> None:
        """Refuses an address that this caller may not use, without revealing what is there."""
        if self.everywhere:
            return
        certificates = address.query.get(kind.certificates or "", SYSTEM)
        if certificates != SYSTEM:
            self._check_file(str(certificates))
        if kind.is_file:
            self._check_file(address.database or "")
        elif _host_and_port(address.host, address.port, kind) not in {_listed(host, kind) for host in self.hosts}:
            message = "only a server-wide key may connect a host that is not listed"
            remedy = (
                "Have the operator add host:port to connector_hosts (HEEDFUL_CONNECTOR_HOSTS), or create it "
                "with a server-wide key"
            )
            raise Forbidden(message, code="connector_host", field="url", remedy=remedy)

    def check_operator(self) -> None:
        """Refuses a privileged login unless this caller may accept one."""
        if not self.everywhere:
            message = "only a server-wide key may accept a login that may do more than read"
            remedy = "Connect as a role that may only read, or have the operator create the connector"
            raise Forbidden(message, code="role_privileged", field="privileged", remedy=remedy)

    def _check_file(self, file: str) -> None:
        try:
            path = Path(file).expanduser().resolve()
            allowed = any(path.is_relative_to(Path(folder).expanduser().resolve()) for folder in self.folders)
        except (OSError, RuntimeError, ValueError):
            # A symbolic link that points to itself, or an unknown home folder.
            allowed = False
        if not allowed:
            message = "only a server-wide key may name a file outside of the folders that are listed"
            remedy = (
                "Have the operator add its folder to connector_folders (HEEDFUL_CONNECTOR_FOLDERS), or create "
                "it with a server-wide key"
            )
            raise Forbidden(message, code="connector_folder", field="url", remedy=remedy)


OPERATOR = Permissions()
"""The permissions of a program that opens the store itself."""


def _host_and_port(host: str | None, port: int | None, kind: DatabaseKind) -> tuple[str, int | None]:
    return (host or "").strip("[]").lower(), port or kind.port


def _listed(entry: str, kind: DatabaseKind) -> tuple[str, int | None]:
    host, colon, port = entry.rpartition(":")
    # An IPv6 address contains colons, and is in brackets if a port follows.
    if colon and port.isdecimal() and (":" not in host or host.endswith("]")):
        return _host_and_port(host, int(port), kind)
    return _host_and_port(entry, None, kind)


FILES = ("sqlite", "duckdb")
"""Databases that are files. They reliably detect changes of their data, except for a moment right after one."""

PRIVILEGED = "privileged"
"""The option of a connector for which the operator accepted a login that may do more than read."""

RESTRICTED = "listed"
"""The option of a connector that is restricted to the operator's lists."""

NO_PROJECT = -1
"""The number that stands for a project without data."""


class LazyProofs:
    """The proven queries of a project, which are read when they are first needed."""

    def __init__(self, queries: Queries, authors_to_veto: int) -> None:
        self._queries = queries
        self._authors_to_veto = authors_to_veto
        self._lock = threading.Lock()
        self._opened: Proofs | None = None

    @property
    def opened(self) -> Proofs:
        with self._lock:
            if self._opened is None:
                from heedful.sql.reuse.proofs import Proofs

                self._opened = Proofs(self._queries, self._authors_to_veto)
            return self._opened

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()


@dataclass(frozen=True, slots=True)
class ExecutionSpace:
    """One project: its store, its chat sessions, the language model, if there is one, what runs its queries, and what
    its connectors may reach."""

    workspace: Workspace
    sessions: SessionSpace
    language_model: LanguageModel | None
    queries: Queries
    lazy_proofs: LazyProofs
    permissions: Permissions = OPERATOR

    @property
    def proofs(self) -> Proofs:
        return self.lazy_proofs.opened

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
            existing = records.list_connectors(connection, project)
            if len(existing) == 1:
                return existing[0]
            message = f"project {quoted(self.workspace.project)} has {len(existing)} connectors, and none is named"
            raise Invalid(message, field="connector_id", remedy=_remedy(existing))
        row = records.get_connector(connection, project, checks.identifier("connector_id", id_or_name))
        if row is None:
            remedy = _remedy(records.list_connectors(connection, project))
            raise NotFound.in_project(self.workspace.project, "connector", id_or_name, "connector_id", remedy)
        return row

    def read_connector(self, id_or_name: str | None) -> AnyRow:
        """The same, in a transaction of its own."""
        with self.workspace.read() as connection:
            return self.connector(connection, id_or_name)

    def execution(self, connection: Connection, execution_id: str) -> AnyRow:
        """An execution by its id or external id."""
        checks.identifier("execution_id", execution_id)
        row = records.get_run(connection, self.project(connection), execution_id)
        if row is None:
            remedy = "executions.list() shows them"
            raise NotFound.in_project(self.workspace.project, "execution", execution_id, "execution_id", remedy)
        return row

    def suggestion_source(self, connection: Connection, execution_id: str) -> AnyRow:
        """The golden example or execution that a suggestion comes from."""
        example = records.get_example(connection, self.project(connection), execution_id)
        return self.execution(connection, execution_id) if example is None else example

    def check_message(self, message_id: str) -> None:
        if self.sessions.store.read(lambda tx: tx.conversations.message(message_id)) is None:
            raise NotFound.in_project(self.workspace.project, "message", message_id, "chat_message_id")

    def target(self, connector: AnyRow) -> Target:
        """The database behind a connector, with its secrets in place, if this caller may use it."""
        if not connector.enabled:
            name = connector.name
            message = f"connector {name!r} was imported, and its URL has not been confirmed"
            calls = f"connectors.confirm({name!r}), or heedful connectors confirm {name}"
            remedy = f"Look at its URL and confirm it: {calls}"
            raise Forbidden(
                message, code="connector_unconfirmed", field="connector_id", value=connector.id, remedy=remedy
            )
        return self.target_at(connector.url, connector.options)

    def target_at(self, stored_url: str, options: Metadata) -> Target:
        """The database at a stored URL, after all checks."""
        url = secrets.decrypt_url(stored_url, secrets.keys_from())
        address = self.check_url(url, options)
        _check_other_file(address, self.workspace.database.url)
        if "${" in url:
            address = secrets.parse_url(secrets.resolve_references(url, self.permissions.secrets))
        return Target(
            # The query process may run in another folder.
            _with_absolute_path(address).render_as_string(hide_password=False),
            options.get("role"),
            privileged=options.get(PRIVILEGED) is True,
            sensitive=tuple(options.get(records.SENSITIVE, ())),
        )

    def check_url(self, url: str, options: Metadata) -> URL:
        """Checks a connector's URL against the rules, without connecting; returns it parsed."""
        address = secrets.parse_url(url)
        kind = secrets.check_url(address)
        if options.get(RESTRICTED):
            self.permissions.check(address, kind)
        return address

    def embedded(self, connection: Connection, vector: bytes | None) -> int | None:
        """The number of the model that made a vector."""
        if vector is None:
            return None
        model = ensure_model(connection, self.workspace.embedder.name, self.workspace.embedder.dimensions)
        self.workspace.model(connection)
        return model

    def vector(self, text: str) -> bytes:
        return pack(self.workspace.embed([text])[0])


def _remedy(existing: list[AnyRow]) -> str:
    if not existing:
        return "Add one: connectors.create(name, url)"
    return f"It has: {', '.join(row.name for row in existing)}"


def with_absolute_path(url: str) -> str:
    """The URL with an absolute path, so that it means the same from every folder."""
    address = secrets.parse_url(url)
    absolute = _with_absolute_path(address)
    return url if absolute is address else absolute.render_as_string(hide_password=False)


def _with_absolute_path(address: URL) -> URL:
    file = address.database
    if address.get_backend_name() not in FILES or not file or file.startswith((":", "file:")):
        return address
    try:
        path = Path(file).expanduser().absolute()
    except RuntimeError:
        raise errors.no_file(address.get_backend_name()) from None
    return address.set(database=str(path))


def _check_other_file(address: URL, store: URL) -> None:
    """Refuses a connector to the store's own file; other stores are recognised by their tables."""
    files = [url.database for url in (address, store) if url.get_backend_name() in FILES and url.database]
    if len(files) < 2:
        return
    try:
        same = os.path.samefile(*files)
    except (OSError, ValueError):
        # It doesn't exist; opening it gives a better error.
        same = False
    if same:
        raise errors.own_store(files[0])
