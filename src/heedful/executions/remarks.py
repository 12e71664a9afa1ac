"""Remarks: what people write about their data, for whoever writes SQL. They are facts, in datasets of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlalchemy import Connection

from heedful.errors import NotFound
from heedful.memory import checks as values
from heedful.memory import recall, remember
from heedful.memory.documents import Pieces
from heedful.memory.splitting import Piece, split
from heedful.memory.workspace import Workspace
from heedful.model import Metadata
from heedful.storage import facts, scopes
from heedful.storage.rows import AnyRow, batches

CONTEXTS = "contexts"
SCHEMA_METADATA = "schema_metadata"

ALWAYS = "is_always_displayed"
"""The key under which the metadata of a remark say that every question needs it."""

RELEVANT = 5
"""Facts of each dataset that a language model reads, beside those that it always reads."""

_OWN = ("remark_id", "place", "made_at", "changed_at")


@dataclass(frozen=True, slots=True)
class Remark:
    """A text as it was written, with what is said of it."""

    id: str
    text: str
    metadata: Metadata
    made_at: int
    changed_at: int


class Remarks:
    """The remarks in one dataset of a project, whole, by the ids that they were given."""

    def __init__(self, workspace: Workspace, dataset: str) -> None:
        self._workspace = workspace
        self._dataset = dataset

    def put(self, remark_id: str, text: str, metadata: Metadata) -> Remark:
        """Keeps a remark; it takes the place of the one that has this id."""
        values.text("text", text)
        before, now = self.find(remark_id), self._workspace.now()
        remark = Remark(remark_id, text, metadata, before.made_at if before else now, now)
        own = {**metadata, "remark_id": remark_id, "made_at": remark.made_at, "changed_at": remark.changed_at}
        pieces = [(piece, values.metadata("metadata", {**own, "place": piece.start})) for piece in _pieces(text)]
        with self._workspace.read() as connection:
            self._workspace.model(connection)
        remember.store(self._workspace, self._dataset, [Pieces(pieces, remark_id, replaces=True)])
        return remark

    def find(self, remark_id: str) -> Remark | None:
        """The remark with this id, if there is one."""
        values.identifier("id", remark_id)
        return next(iter(self._read(remark_id)), None)

    def get(self, remark_id: str) -> Remark:
        """The remark with this id."""
        found = self.find(remark_id)
        if found is None:
            raise NotFound(
                f"nothing with the id {remark_id!r} in {self._dataset} of project {self._workspace.project!r}",
                field="id",
                value=remark_id,
            )
        return found

    def list(self) -> Many:
        """All of them, the oldest first."""
        return sorted(self._read(None), key=lambda each: (each.made_at, each.id))

    def delete(self, remark_id: str) -> None:
        """Forgets a remark; an unknown one is `NotFound`."""
        self.get(remark_id)
        with self._workspace.write() as connection:
            number = self._number(connection)
            if number is not None:
                facts.remove(connection, number, [seq for seq, _ in facts.of_dataset(connection, number, remark_id)])

    def _read(self, remark_id: str | None) -> Many:
        with self._workspace.read() as connection:
            number = self._number(connection)
            seqs = [] if number is None else [seq for seq, _ in facts.of_dataset(connection, number, remark_id)]
            rows = _rows(connection, seqs)
        pieces: dict[str, list[AnyRow]] = {}
        for row in sorted(rows, key=lambda row: row.start):
            # What somebody remembered in this dataset otherwise is read to answer questions, but is no remark.
            if "remark_id" in row.metadata:
                pieces.setdefault(row.metadata["remark_id"], []).append(row)
        return [_whole(each) for each in pieces.values()]

    def _number(self, connection: Connection) -> int | None:
        return scopes.dataset_id(connection, self._workspace.project, self._dataset)


# Inside the class, `list` is a method.
Many = list[Remark]


def relevant(workspace: Workspace, question: str) -> list[str]:
    """What to read before writing SQL for a question: what is always read, then what is nearest to the question."""
    found: dict[str, None] = {}
    for dataset in (CONTEXTS, SCHEMA_METADATA):
        with workspace.read() as connection:
            number = scopes.dataset_id(connection, workspace.project, dataset)
            now = workspace.now()
            if number is None or not facts.count(connection, number, now):
                continue
            current = facts.recallable(connection, number, now)
            always = [seq for seq in facts.tagged(connection, number, ALWAYS, [True]) if seq in current]
            rows = _rows(connection, sorted(always))
        request = recall.checked(
            question, dataset, RELEVANT, "hybrid", None, False, 0.0, 0.0, None, 0.0, None, explain=False
        )
        found |= dict.fromkeys(_titled(row.text, row.metadata) for row in rows)
        found |= dict.fromkeys(_titled(hit.text, hit.metadata) for hit in recall.recall(workspace, request).hits)
    return list(found)


def _titled(text: str, metadata: Metadata) -> str:
    title = metadata.get("name")
    return f"{title}: {text.strip()}" if isinstance(title, str) else text.strip()


def _rows(connection: Connection, seqs: Sequence[int]) -> list[AnyRow]:
    return [row for run in batches(seqs) for row in facts.by_seq(connection, run).values()]


def _whole(pieces: Sequence[AnyRow]) -> Remark:
    first: Metadata = pieces[0].metadata
    return Remark(
        first["remark_id"],
        "".join(row.text for row in pieces),
        {key: value for key, value in first.items() if key not in _OWN},
        first["made_at"],
        first["changed_at"],
    )


def _pieces(text: str) -> list[Piece]:
    """Pieces that a question can find, and that make up the text to the last space."""
    edges = [0, *(piece.start for piece in split(text)[1:]), len(text)]
    return [Piece(text[start:stop], start, stop) for start, stop in pairwise(edges)]
