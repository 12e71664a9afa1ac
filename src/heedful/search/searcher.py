"""What a recall asks of an index, wherever that is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from heedful.model import Mode
from heedful.storage.filters import Allowed
from heedful.storage.vectors import Vectors

POOL = 100
"""Candidates from each side; the rest of a large dataset is never looked at twice."""

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Found:
    """Candidates, in no order: fact numbers, relevance in [0, 1], and its parts where the mode has them."""

    facts: NDArray[np.int64]
    relevance: Floats
    vector: Floats | None
    words: Floats | None
    neighbours: Floats | None


Expand: TypeAlias = Callable[[Found], list[int]]
"""Is shown candidates, and names others that should join them."""


class Searcher(Protocol):
    """Searches one dataset; `follow` it before, in the transaction of the search."""

    def __len__(self) -> int:
        """How many facts it knew when it last followed."""

    def follow(self, connection: Connection, newest: int | None = None) -> None:
        """Takes in every change that was committed before `connection` looked, up to `newest` if that is known."""

    def search(
        self,
        connection: Connection,
        query: str,
        vector: Vectors | None,
        mode: Mode,
        allowed: Allowed,
        also: list[int],
        pool: int,
        expand: Expand | None = None,
    ) -> Found:
        """The candidates of a query among the allowed facts, and `also` these, whatever their relevance.

        `reach` is shown the candidates and may name others, which join them if they are allowed.
        """

    def is_damaged(self) -> bool:
        """Whether what was kept of it for the next process is not what was kept."""

    def differences(self, connection: Connection) -> int:
        """How many facts the store and the index do not have in common."""

    def rebuild(self, connection: Connection) -> None:
        """Rebuilds what it has derived from the store; `connection` may write."""
