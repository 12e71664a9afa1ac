"""An array that rows are appended to."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Kind = TypeVar("Kind", bound=np.generic)


class Growable(Generic[Kind]):
    """Rows in one block of memory that doubles when it is full; the last axis grows if `last` is set."""

    def __init__(self, rows: NDArray[Kind], *, last: bool = False) -> None:
        self._axis = rows.ndim - 1 if last else 0
        self._block = rows
        self._size = rows.shape[self._axis]

    @property
    def rows(self) -> NDArray[Kind]:
        """What is there now; writing to it changes it."""
        return self._block[(slice(None),) * self._axis + (slice(0, self._size),)]

    def reserve(self, more: int) -> None:
        """Makes room for so many more, so that appending them copies nothing."""
        if self._size + more > self._block.shape[self._axis]:
            self._move(self._size + more)

    def append(self, more: NDArray[Any]) -> None:
        added = more.shape[self._axis]
        if self._size + added > self._block.shape[self._axis]:
            self._move(max(1024, 2 * (self._size + added)))
        place = slice(self._size, self._size + added)
        self._block[(slice(None),) * self._axis + (place,)] = more
        self._size += added

    def _move(self, room: int) -> None:
        shape = list(self._block.shape)
        shape[self._axis] = room
        block: NDArray[Kind] = np.empty(shape, self._block.dtype)
        block[(slice(None),) * self._axis + (slice(0, self._size),)] = self.rows
        self._block = block
