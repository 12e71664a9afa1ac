"""Texts about the data, which come back as they were sent: contexts, schema metadata, and descriptions of things that
Heedful has no field for."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import orjson
from sqlalchemy import Connection

from heedful.api import checks
from heedful.clock import from_stored, new_id
from heedful.compat.foreign_api import ForeignRequest
from heedful.compat.text2everything import requests
from heedful.compat.text2everything.requests import project_route
from heedful.engine import Heedful, project_of
from heedful.errors import Invalid, NotFound
from heedful.ledger import supersessions
from heedful.memory import remember
from heedful.memory.documents import Piece, Pieces, split
from heedful.model import Metadata
from heedful.sql.generation import ALWAYS, CONTEXTS, SCHEMA_METADATA
from heedful.storage import facts, scopes
from heedful.storage.facts import DisplayRow
from heedful.storage.rows import batches
from heedful.workspace import Workspace

DESCRIPTIONS = "descriptions"
"""The dataset for descriptions that the client gives and Heedful has no field for."""

_OWN_KEYS = ("remark_id", "place", "made_at", "changed_at")


@dataclass(frozen=True, slots=True)
class Remark:
    id: str
    text: str
    metadata: Metadata
    made_at: int
    changed_at: int


class Remarks:
    """The remarks in one dataset of a project, by id."""

    def __init__(self, workspace: Workspace, dataset: str) -> None:
        self._workspace = workspace
        self._dataset = dataset

    def put(self, remark_id: str, text: str, metadata: Metadata) -> Remark:
        """Stores a remark, replacing the one with this id."""
        checks.text("text", text)
        before, now = self.find(remark_id), self._workspace.now()
        remark = Remark(remark_id, text, metadata, before.made_at if before else now, now)
        own_metadata = {**metadata, "remark_id": remark_id, "made_at": remark.made_at, "changed_at": remark.changed_at}
        # Pieces that join to exactly the same text.
        edges = [0, *(piece.start for piece in split(text)[1:]), len(text)]
        pieces = [
            (Piece(text[start:stop], start, stop), checks.metadata("metadata", {**own_metadata, "place": start}))
            for start, stop in pairwise(edges)
        ]
        with self._workspace.read() as connection:
            self._workspace.model(connection)
        remember.store(self._workspace, self._dataset, [Pieces(pieces, remark_id, replaces=True)])
        return remark

    def find(self, remark_id: str) -> Remark | None:
        checks.identifier("id", remark_id)
        return next(iter(self._read(remark_id)), None)

    def get(self, remark_id: str) -> Remark:
        remark = self.find(remark_id)
        if remark is None:
            message = f"nothing with the id {remark_id!r} in {self._dataset} of project {self._workspace.project!r}"
            raise NotFound(message, field="id", value=remark_id)
        return remark

    def list(self) -> builtins.list[Remark]:
        """All of them, the oldest first."""
        return sorted(self._read(None), key=lambda remark: (remark.made_at, remark.id))

    def delete(self, remark_id: str) -> None:
        """Forgets a remark; an unknown one is `NotFound`."""
        self.get(remark_id)
        with self._workspace.write() as connection:
            number = self._number(connection)
            if number is not None:
                seqs = [seq for seq, _ in facts.of_dataset(connection, number, remark_id)]
                supersessions.remove_facts(connection, number, seqs)

    def _read(self, remark_id: str | None) -> builtins.list[Remark]:
        with self._workspace.read() as connection:
            number = self._number(connection)
            seqs = [] if number is None else [seq for seq, _ in facts.of_dataset(connection, number, remark_id)]
            rows = [row for run in batches(seqs) for row in facts.by_seq(connection, run).values()]
        pieces: dict[str, list[DisplayRow]] = {}
        for row in sorted(rows, key=lambda row: row.start):
            # Other facts in this dataset help to answer questions, but are no remarks.
            if "remark_id" in row.metadata:
                pieces.setdefault(row.metadata["remark_id"], []).append(row)
        return [_joined(rows) for rows in pieces.values()]

    def _number(self, connection: Connection) -> int | None:
        return scopes.dataset_id(connection, self._dataset)


def _joined(pieces: Sequence[DisplayRow]) -> Remark:
    first: Metadata = pieces[0].metadata
    metadata = {key: value for key, value in first.items() if key not in _OWN_KEYS}
    text = "".join(row.text for row in pieces)
    return Remark(first["remark_id"], text, metadata, first["made_at"], first["changed_at"])


def remarks(heedful: Heedful, dataset: str = DESCRIPTIONS) -> Remarks:
    """The texts that are kept in a dataset of the project."""
    return Remarks(project_of(heedful).workspace, dataset)


def describe(heedful: Heedful, entity_id: str, description: str | None, **metadata: Any) -> None:
    """Stores the client's description of something; an empty one is deleted."""
    descriptions = remarks(heedful)
    if description is not None or any(metadata.values()):
        descriptions.put(entity_id, description or entity_id, {"description": description, **metadata})
    elif descriptions.find(entity_id) is not None:
        descriptions.delete(entity_id)


def list_texts(dataset: str, heedful: Heedful, request: ForeignRequest) -> Any:
    always = requests.query_flag(request, ALWAYS)
    matching = [
        remark
        for remark in remarks(heedful, dataset).list()
        if always in (None, remark.metadata[ALWAYS])
        and requests.has(request, remark.metadata["name"], remark.metadata["description"], remark.text)
    ]
    return requests.paginate(matching, request, _LIMITS[dataset], partial(_to_text, dataset, heedful))


def get_text(dataset: str, heedful: Heedful, request: ForeignRequest) -> Any:
    return _to_text(dataset, heedful, remarks(heedful, dataset).get(request.path["text_id"]))


def create_text(dataset: str, heedful: Heedful, request: ForeignRequest) -> Any:
    return _put_text(dataset, heedful, request, new_id())


def update_text(dataset: str, heedful: Heedful, request: ForeignRequest) -> Any:
    """Takes the place of what is there; the client sends all of it."""
    return _put_text(dataset, heedful, request, remarks(heedful, dataset).get(request.path["text_id"]).id)


def delete_text(dataset: str, heedful: Heedful, request: ForeignRequest) -> Any:
    remarks(heedful, dataset).delete(request.path["text_id"])
    return {"message": f"{request.path['text_id']} is deleted"}


def delete_texts(dataset: str, heedful: Heedful, request: ForeignRequest) -> Any:
    return requests.bulk(remarks(heedful, dataset).delete, request)


def _put_text(dataset: str, heedful: Heedful, request: ForeignRequest, text_id: str) -> Any:
    metadata = {
        "name": requests.text(request, "name"),
        "description": requests.optional(request, "description"),
        ALWAYS: requests.flag(request, ALWAYS),
    }
    written = requests.text(request, "content") if dataset == CONTEXTS else _schema(request)
    return _to_text(dataset, heedful, remarks(heedful, dataset).put(text_id, written, metadata))


def _schema(request: ForeignRequest) -> str:
    data = requests.body(request).get("schema_data")
    if not isinstance(data, dict) or not data:
        raise Invalid("schema_data must be a non-empty object", field="schema_data")
    # On many lines, so that a long schema is split between two of them.
    return orjson.dumps(data, option=orjson.OPT_INDENT_2).decode()


def _to_text(dataset: str, heedful: Heedful, remark: Remark) -> dict[str, Any]:
    content = {"content": remark.text} if dataset == CONTEXTS else {"schema_data": orjson.loads(remark.text)}
    return {
        "id": remark.id,
        "project_id": requests.project(heedful),
        "name": remark.metadata["name"],
        "description": remark.metadata["description"],
        ALWAYS: remark.metadata[ALWAYS],
        **content,
        "created_at": from_stored(remark.made_at).isoformat(),
        "updated_at": from_stored(remark.changed_at).isoformat(),
    }


_LIMITS = {CONTEXTS: 50, SCHEMA_METADATA: 100}

ROUTES = tuple(
    route
    for dataset, path in ((CONTEXTS, "/contexts"), (SCHEMA_METADATA, "/schema-metadata"))
    for route in (
        project_route("GET", path, partial(list_texts, dataset), "read"),
        project_route("POST", path, partial(create_text, dataset), "write"),
        project_route("POST", f"{path}/bulk-delete", partial(delete_texts, dataset), "write"),
        project_route("GET", f"{path}/{{text_id}}", partial(get_text, dataset), "read"),
        project_route("PUT", f"{path}/{{text_id}}", partial(update_text, dataset), "write"),
        project_route("DELETE", f"{path}/{{text_id}}", partial(delete_text, dataset), "write"),
    )
)
