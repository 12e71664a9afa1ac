"""LangSmith: feedback about runs (`/feedback`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from heedful.integrations.scores.api import MARK, OURS, Api, Score, Written

PAGE = 100
URL = "https://api.smith.langchain.com"


class LangSmith(Api):
    """A workspace of LangSmith. Feedback of people and programs is imported; with `evaluators`, that of models, too.

    `scale` is the worst and the best score, and `names` chooses feedback by its key. The external id of an answer is
    `prefix` and the id of its run, a UUID; answers with another are not exported.
    """

    name = "langsmith"

    def __init__(
        self,
        api_key: str,
        *,
        url: str = URL,
        prefix: str = "",
        scale: Sequence[float] = (0, 1),
        names: Sequence[str] | None = None,
        evaluators: bool = False,
    ) -> None:
        super().__init__("LangSmith", url, headers={"x-api-key": api_key})
        self.prefix = prefix
        self._scale = scale
        self._names = names
        self._evaluators = evaluators

    def scores(self, answer_ids: Sequence[str], since: datetime | None) -> list[Score]:
        found = (self._score(row) for row in self._rows(self._names))
        return [each for each in found if each is not None and (since is None or _time(each.at) >= since)]

    def written(self, answer_ids: Sequence[str]) -> list[Written]:
        return [
            Written(
                key=row["id"],
                answer_id=str(row["run_id"]),
                value=row.get("score"),
                comment=row.get("comment"),
                mark=((row.get("feedback_source") or {}).get("metadata") or {}).get(MARK),
            )
            for row in self._rows([OURS])
        ]

    def write(self, new: Sequence[Written], known: frozenset[str]) -> None:
        for each in new:
            if not _is_uuid(each.answer_id):
                continue
            said = {"score": each.value, "comment": each.comment}
            if each.key in known:
                self.call("PATCH", f"/feedback/{each.key}", body=said)
                continue
            source = {"type": "api", "metadata": each.metadata}
            about = {"id": each.key, "run_id": each.answer_id, "key": OURS, "feedback_source": source}
            self.call("POST", "/feedback", body=about | said)

    def delete(self, old: Sequence[Written]) -> None:
        for each in old:
            self.call("DELETE", f"/feedback/{each.key}")

    def _rows(self, keys: Sequence[str] | None) -> Iterator[dict[str, Any]]:
        offset = 0
        while True:
            params = {"limit": PAGE, "offset": offset, "key": None if keys is None else list(keys)}
            page = self.call("GET", "/feedback", params=params)
            yield from page
            if len(page) < PAGE:
                return
            offset += len(page)

    def _score(self, row: dict[str, Any]) -> Score | None:
        source = row.get("feedback_source") or {}
        is_human = source.get("type") != "model" or self._evaluators
        if row.get("run_id") is None or not is_human or row["key"] == OURS:
            return None
        score, value, correction = row.get("score"), row.get("value"), row.get("correction")
        is_number = isinstance(score, int | float) and not isinstance(score, bool)
        rating = score if score is not None else value if isinstance(value, str | bool) else None
        return Score(
            str(row["run_id"]),
            source.get("user_id") or source.get("user_name") or (row["key"] if source.get("type") == "model" else None),
            rating,
            row.get("comment") or (correction if isinstance(correction, str) else None),
            self._scale if is_number else None,
            row.get("modified_at") or row["created_at"],
        )


def _time(text: str) -> datetime:
    parsed = datetime.fromisoformat(text)
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
