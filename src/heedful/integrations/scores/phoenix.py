"""Phoenix: annotations of traces or spans (`/v1/projects/{project}/trace_annotations`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Literal
from urllib.parse import quote

from heedful.integrations.scores.api import MARK, OURS, Api, Score, Written

PAGE = 100
ANSWERS = 50
"""Answers that one request asks about: their ids are in its address."""


class Phoenix(Api):
    """A project of Phoenix. Annotations of people are imported; with `evaluators`, those of models and code, too.

    `scale` is the worst and the best score, and `names` chooses annotations. The external id of an answer is `prefix`
    and the id of its trace, or of its span if those are annotated. Phoenix returns feedback only for answers that
    are named, so only those that Heedful has are asked for.
    """

    name = "phoenix"

    def __init__(
        self,
        url: str,
        project: str = "default",
        *,
        api_key: str | None = None,
        annotates: Literal["trace", "span"] = "trace",
        prefix: str = "",
        scale: Sequence[float] = (0, 1),
        names: Sequence[str] | None = None,
        evaluators: bool = False,
    ) -> None:
        headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        super().__init__("Phoenix", url, headers=headers)
        self.prefix = prefix
        self._annotates = annotates
        self._path = f"/v1/projects/{quote(project, safe='')}/{annotates}_annotations"
        self._scale = scale
        self._names = names
        self._evaluators = evaluators

    def scores(self, answer_ids: Sequence[str], since: datetime | None) -> list[Score]:
        found = (self._score(row) for row in self._rows(answer_ids, self._names))
        return [
            each for each in found if each is not None and (since is None or datetime.fromisoformat(each.at) >= since)
        ]

    def written(self, answer_ids: Sequence[str]) -> list[Written]:
        return [
            Written(
                key=row["identifier"],
                answer_id=str(row[f"{self._annotates}_id"]),
                value=(row.get("result") or {}).get("score"),
                comment=(row.get("result") or {}).get("explanation"),
                mark=(row.get("metadata") or {}).get(MARK),
            )
            for row in self._rows(answer_ids, [OURS])
        ]

    def write(self, new: Sequence[Written], known: frozenset[str]) -> None:
        for start in range(0, len(new), PAGE):
            body = {"data": [self._row(each) for each in new[start : start + PAGE]]}
            self.call("POST", f"/v1/{self._annotates}_annotations", params={"sync": "true"}, body=body)

    def delete(self, old: Sequence[Written]) -> None:
        for each in old:
            # Of any time: the identifier names one of them.
            params = {"name": OURS, "identifier": each.key, "delete_all": "true"}
            self.call("DELETE", self._path, params=params)

    def _rows(self, answer_ids: Sequence[str], names: Sequence[str] | None) -> Iterator[dict[str, Any]]:
        for start in range(0, len(answer_ids), ANSWERS):
            cursor = None
            while True:
                params = {
                    f"{self._annotates}_ids": list(answer_ids[start : start + ANSWERS]),
                    "include_annotation_names": None if names is None else list(names),
                    "limit": PAGE,
                    "cursor": cursor,
                }
                page = self.call("GET", self._path, params=params)
                yield from page["data"]
                cursor = page.get("next_cursor")
                if not cursor:
                    break

    def _score(self, row: dict[str, Any]) -> Score | None:
        is_human = row["annotator_kind"] == "HUMAN" or self._evaluators
        if not is_human or row["name"] == OURS:
            return None
        result = row.get("result") or {}
        score = result.get("score")
        return Score(
            str(row[f"{self._annotates}_id"]),
            row.get("user_id") or (None if row["annotator_kind"] == "HUMAN" else row["name"]),
            result.get("label") if score is None else score,
            result.get("explanation") or None,
            None if score is None else self._scale,
            row["updated_at"],
        )

    def _row(self, new: Written) -> dict[str, Any]:
        result = {"score": new.value, "explanation": new.comment}
        return {
            f"{self._annotates}_id": new.answer_id,
            "name": OURS,
            "annotator_kind": "HUMAN",
            "identifier": new.key,
            "result": {name: each for name, each in result.items() if each is not None},
            "metadata": new.metadata,
        }
