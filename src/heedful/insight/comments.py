"""Negative comments and their themes."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from cachetools import LRUCache

from heedful.clock import from_stored
from heedful.ledger import opinion_reports
from heedful.model import Theme, Themes
from heedful.sessions.session_store import SessionStore, Transaction
from heedful.storage import scopes
from heedful.storage.vectors import Vectors
from heedful.text.themes import considered
from heedful.text.themes import themes as grouped
from heedful.workspace import Workspace

MAX_COMMENTS = 500
"""Comments that are read at most, the newest."""
CACHE_SIZE = 8_000_000
"""Bytes of vectors kept in memory: those of `MAX_COMMENTS` comments with the largest common models."""
MAX_EXAMPLES = 3
MAX_LENGTH = 300


@dataclass(frozen=True, slots=True)
class Comment:
    """The words of a negative opinion."""

    feedback_id: str
    text: str
    at: int


class Comments:
    """The negative comments of one open project. Their vectors are cached, because embedding takes the longest."""

    def __init__(self, workspace: Workspace, store: SessionStore) -> None:
        self._workspace = workspace
        self._store = store
        self._lock = threading.Lock()
        self._vectors: LRUCache[bytes, Vectors] = LRUCache(CACHE_SIZE, getsizeof=lambda vector: vector.nbytes)

    def newest(self, since: int | None, until: int | None, dataset: str | None) -> list[Comment]:
        """The newest that are active."""

        def read(tx: Transaction) -> list[tuple[str, str, int]]:
            return tx.feedbacks.negative_comments(dataset, since, until, MAX_COMMENTS)

        rows = self._store.read(read)
        if self._store.remote:
            with self._workspace.read() as connection:
                project = scopes.project_id(connection, self._workspace.project)
                if project is not None:
                    rows += opinion_reports.negative_comments(connection, project, dataset, since, until, MAX_COMMENTS)
        rows.sort(key=lambda row: (-row[2], row[0]))
        return [Comment(*row) for row in rows[:MAX_COMMENTS] if row[1].strip()]

    def groups(self, comments: Sequence[Comment]) -> list[tuple[str, list[Comment]]]:
        """Comments that are about the same, under their most typical words; the most typical first."""
        if not comments:
            return []
        texts = [considered(comment.text) for comment in comments]
        return [
            (theme.name, [comments[index] for index in theme.members])
            for theme in grouped(texts, self._embedded(texts))
        ]

    def themes(self, since: int | None, until: int | None, dataset: str | None) -> Themes:
        comments = self.newest(since, until, dataset)
        groups = self.groups(comments)
        other = len(comments) - sum(len(members) for _, members in groups)
        themes = [_theme(name, members) for name, members in groups]
        return Themes(comments=len(comments), themes=themes, other=other)

    def _embedded(self, texts: Sequence[str]) -> Vectors:
        digests = [hashlib.blake2b(text.encode(), digest_size=16).digest() for text in texts]
        # Locked while texts are embedded, so that calls at the same time don't all embed the same ones.
        with self._lock:
            vectors = {digest: self._vectors[digest] for digest in digests if digest in self._vectors}
            missing = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in vectors}
            if missing:
                rows = self._workspace.embed(list(missing.values()))
                # Copied, because a row would keep the whole array in memory.
                new = {digest: row.copy() for digest, row in zip(missing, rows, strict=True)}
                vectors |= new
                self._vectors.update(new)
        return np.stack([vectors[digest] for digest in digests])


def shorten(text: str) -> str:
    """A comment in one line."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_LENGTH else line[: MAX_LENGTH - 1] + "…"


def _theme(name: str, members: Sequence[Comment]) -> Theme:
    times = [comment.at for comment in members]
    return Theme(
        name=name,
        comments=len(members),
        examples=list(dict.fromkeys(shorten(comment.text) for comment in members))[:MAX_EXAMPLES],
        feedback_ids=[comment.feedback_id for comment in members],
        first_at=from_stored(min(times)),
        last_at=from_stored(max(times)),
    )
