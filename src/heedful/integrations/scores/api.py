"""What the clients of all systems share: requests, and errors as Heedful's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Protocol, Self

import httpx

from heedful.errors import Forbidden, Invalid, Unavailable

TIMEOUT = 30
OURS = "heedful"
"""The name of the scores that Heedful writes; they are not imported again."""


MARK = "store"
"""The key of a score's metadata that has the mark of the store which wrote it."""


@dataclass(frozen=True, slots=True)
class Score:
    """What somebody said in another system of an answer."""

    answer_id: str
    """The id that the answer has there, such as that of its trace."""
    author: str | None
    """The user who said it, or the evaluator; None if the score names nobody."""
    rating: Any
    comment: str | None = None
    scale: Sequence[float] | None = None
    at: str = ""
    """When it was last changed, as an ISO time."""


@dataclass(frozen=True, slots=True)
class Written:
    """An opinion of Heedful's in another system."""

    key: str
    """The same for the same author and answer, always: a UUID."""
    answer_id: str
    value: float | None
    """From 0 (worst) to 1 (best); None for a comment alone."""
    comment: str | None
    mark: str | None
    """Of the store that wrote it; None for what a person wrote under the same name, and for what an earlier version
    wrote."""
    author: str | None = None
    at: datetime | None = None

    @property
    def said(self) -> tuple[str, float | None, str | None]:
        """What has to be the same for nothing to be written."""
        return self.answer_id, self.value, self.comment

    @property
    def metadata(self) -> dict[str, Any]:
        return {"author": self.author, MARK: self.mark}


class System(Protocol):
    """Another system that has scores."""

    name: str
    prefix: str
    """What the external id of an answer has before the id it has there."""

    def scores(self, answer_ids: Sequence[str], since: datetime | None) -> list[Score]:
        """What people said there: since a time, or at all. Some systems return it only for answers that are named."""

    def written(self, answer_ids: Sequence[str]) -> list[Written]:
        """What has the name of Heedful's scores there: written by this store, by another one, or by a person."""

    def write(self, new: Sequence[Written], known: frozenset[str]) -> None:
        """Writes or replaces opinions; those with a key that is `known` are there."""

    def delete(self, old: Sequence[Written]) -> None:
        """Removes opinions."""


class Api:
    """Requests to one server."""

    def __init__(
        self,
        name: str,
        url: str,
        *,
        auth: tuple[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._name = name
        self._client = httpx.Client(base_url=url, auth=auth, headers=dict(headers or {}), timeout=TIMEOUT)

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def call(self, method: str, path: str, *, params: Mapping[str, Any] | None = None, body: Any = None) -> Any:
        """The JSON of an answer; None if it has none."""
        shown = {name: each for name, each in (params or {}).items() if each is not None}
        try:
            answer = self._client.request(method, path, params=shown, json=body)
        except httpx.HTTPError as error:
            raise Unavailable(f"{self._name} can't be reached: {error}", remedy="Check its address") from error
        if answer.status_code in (401, 403):
            raise Forbidden(
                f"{self._name} refuses the key: {answer.status_code}", remedy="Check the key and its rights"
            )
        if answer.status_code == 429 or answer.status_code >= 500:
            raise Unavailable(f"{self._name} answers {answer.status_code}", remedy="Try again later")
        if answer.status_code >= 400:
            raise Invalid(f"{self._name} refuses the request: {answer.status_code} {answer.text[:200]}")
        return answer.json() if answer.content and "json" in answer.headers.get("content-type", "") else None
