"""Langfuse: scores of traces, by its public API (`/api/public/v3/scores`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from heedful.errors import Invalid
from heedful.integrations.scores.api import MARK, OURS, Api, Score, Written

PAGE = 100
MAX_TEXT = 500
"""Characters of a score that is a text."""


class Langfuse(Api):
    """A project of Langfuse. Scores of people are imported; with `evaluators`, those of evaluators, too.

    `scale` is the worst and the best number of numeric scores, and `names` chooses scores. The external id of an answer
    is `prefix` and the id of its trace.
    """

    name = "langfuse"

    def __init__(
        self,
        url: str,
        public_key: str,
        secret_key: str,
        *,
        prefix: str = "",
        scale: Sequence[float] = (0, 1),
        names: Sequence[str] | None = None,
        evaluators: bool = False,
    ) -> None:
        super().__init__("Langfuse", url, auth=(public_key, secret_key))
        self.prefix = prefix
        self._scale = scale
        self._names = names
        self._evaluators = evaluators

    def scores(self, answer_ids: Sequence[str], since: datetime | None) -> list[Score]:
        names = None if self._names is None else ",".join(self._names)
        found = (self._score(row) for row in self._rows(name=names, since=since))
        return [each for each in found if each is not None]

    def written(self, answer_ids: Sequence[str]) -> list[Written]:
        return [
            Written(
                key=row["id"],
                answer_id=trace,
                value=None if row["dataType"] == "TEXT" else float(row["value"]),
                comment=row.get("comment"),
                mark=(row.get("metadata") or {}).get(MARK),
            )
            for row in self._rows(name=OURS)
            if (trace := _trace(row)) is not None
        ]

    def write(self, new: Sequence[Written], known: frozenset[str]) -> None:
        for start in range(0, len(new), PAGE):
            answer = self.call("POST", "/api/public/scores", body=[_row(each) for each in new[start : start + PAGE]])
            if answer and answer.get("rejected"):
                raise Invalid(f"Langfuse refuses {answer['rejected']} scores: {answer.get('errors')}")

    def delete(self, old: Sequence[Written]) -> None:
        for each in old:
            self.call("DELETE", f"/api/public/scores/{each.key}")

    def _rows(self, *, name: str | None, since: datetime | None = None) -> Iterator[dict[str, Any]]:
        cursor = None
        while True:
            page = self.call(
                "GET",
                "/api/public/v3/scores",
                params={
                    "limit": PAGE,
                    "cursor": cursor,
                    "fields": "details,subject,annotation",
                    "name": name,
                    "fromTimestamp": None if since is None else since.isoformat(),
                },
            )
            yield from page["data"]
            cursor = page["meta"].get("cursor")
            if not cursor:
                return

    def _score(self, row: dict[str, Any]) -> Score | None:
        trace = _trace(row)
        is_human = row["source"] != "EVAL" or self._evaluators
        if trace is None or not is_human or row["name"] == OURS:
            return None
        kind, value, comment = row["dataType"], row["value"], row.get("comment")
        if kind in ("TEXT", "CORRECTION"):
            value, comment = None, comment or value
        return Score(
            trace,
            row.get("authorUserId") or (row["name"] if row["source"] == "EVAL" else None),
            value,
            comment or None,
            self._scale if kind == "NUMERIC" else None,
            row["updatedAt"],
        )


def _trace(row: dict[str, Any]) -> str | None:
    """The trace that a score is about, or that has what it is about."""
    subject = row.get("subject") or {}
    found = {"trace": subject.get("id"), "observation": subject.get("traceId")}.get(subject.get("kind", ""))
    return None if found is None else str(found)


def _row(new: Written) -> dict[str, Any]:
    row = {
        "id": new.key,
        "traceId": new.answer_id,
        "name": OURS,
        "value": (new.comment or "")[:MAX_TEXT] if new.value is None else new.value,
        "dataType": "TEXT" if new.value is None else "NUMERIC",
        "comment": new.comment,
        "metadata": new.metadata,
    }
    # The same time again makes it the same score, changed.
    return row if new.at is None else row | {"timestamp": new.at.isoformat()}
