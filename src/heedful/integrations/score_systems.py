"""The systems whose scores are imported and exported: Langfuse, LangSmith and Phoenix, by the APIs of their servers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar, Literal, Self, TypedDict, Unpack
from urllib.parse import quote
from uuid import UUID

import httpx

from heedful.errors import Forbidden, Invalid, NotFound, Unavailable, quoted

TIMEOUT = 30
PAGE = 100
OURS = "heedful"
"""The name of the scores that Heedful writes; they are not imported again."""

MARK = "store"
"""The key of a score's metadata that has the mark of the store which wrote it."""


Row = dict[str, Any]
Names = Sequence[str] | None


class ScoreOptions(TypedDict, total=False):
    """The options of all systems; the documentation of each says what they mean there."""

    prefix: str
    scale: Sequence[float]
    names: Names
    evaluators: bool


@dataclass(frozen=True, slots=True)
class Score:
    """An opinion that somebody gave of an answer in another system."""

    answer_id: str
    """The id that the answer has there, such as that of its trace."""
    author: str | None
    """The user who said it, or the evaluator; None if the score names nobody."""
    rating: Any
    comment: str | None = None
    scale: Sequence[float] | None = None
    at: str = ""
    """When it was last changed, as an ISO time."""
    name: str = ""
    is_evaluator: bool = False


@dataclass(frozen=True, slots=True)
class WrittenScore:
    """An opinion of Heedful's in another system."""

    key: str
    """The same for the same author and answer, always: a UUID."""
    answer_id: str
    value: float | None
    """From 0 (worst) to 1 (best); None for a comment alone."""
    comment: str | None
    mark: str | None
    """Of the store that wrote it; None for what a person wrote under the same name."""
    author: str | None = None
    at: datetime | None = None

    @property
    def content(self) -> tuple[str, float | None, str | None]:
        """The part that has to be the same for nothing to be written."""
        return self.answer_id, self.value, self.comment

    @property
    def metadata(self) -> Row:
        return {"author": self.author, MARK: self.mark}


class ScoreSystem(ABC):
    """One server of another system that has scores; its errors are raised as Heedful's."""

    name: ClassVar[str]
    title: ClassVar[str]
    """The name for people."""

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "",
        scale: Sequence[float] = (0, 1),
        names: Names = None,
        evaluators: bool = False,
        auth: tuple[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.prefix = prefix
        """The part of an answer's external id before the id it has there."""
        self._scale = scale
        self._names = names
        self._evaluators = evaluators
        self._client = httpx.Client(base_url=url, auth=auth, headers=dict(headers or {}), timeout=TIMEOUT)

    def scores(self, answer_ids: Sequence[str], since: datetime | None) -> list[Score]:
        """The scores since a time, or all, of any name: those that are not chosen may have been imported before. Some
        systems return them only for answers that are named."""
        scores = [self._score(row) for row in self._rows(answer_ids, None if since is None else self._names, since)]
        return [score for score in scores if score is not None]

    def chooses(self, score: Score) -> bool:
        """Whether a score is to be imported."""
        return (self._names is None or score.name in self._names) and (self._evaluators or not score.is_evaluator)

    def written(self, answer_ids: Sequence[str]) -> list[WrittenScore]:
        """All that has the name of Heedful's scores there: written by this store, by another one, or by a person."""
        scores = [self._written(row) for row in self._rows(answer_ids, [OURS], None)]
        return [score for score in scores if score is not None]

    @abstractmethod
    def write(self, new: Sequence[WrittenScore], known: frozenset[str]) -> list[str]:
        """Writes or replaces opinions; those with a key that is `known` are there. Returns what can't be written."""

    @abstractmethod
    def delete(self, old: Sequence[WrittenScore]) -> None: ...

    @abstractmethod
    def _rows(self, answer_ids: Sequence[str], names: Names, since: datetime | None) -> Iterator[Row]:
        """The scores with these names, changed since a time, as the server returns them."""

    @abstractmethod
    def _score(self, row: Row) -> Score | None:
        """A score of somebody else's; None if it is about no answer."""

    @abstractmethod
    def _written(self, row: Row) -> WrittenScore | None:
        """A score with Heedful's name; None if it is about no answer."""

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def call(self, method: str, path: str, *, params: Mapping[str, Any] | None = None, body: Any = None) -> Any:
        """The JSON of an answer; None if it has none."""
        given = {name: value for name, value in (params or {}).items() if value is not None}
        try:
            answer = self._client.request(method, path, params=given, json=body)
        except httpx.HTTPError as error:
            raise Unavailable(f"{self.title} can't be reached: {error}", remedy="Check its address") from error
        if answer.status_code in (401, 403):
            raise Forbidden(
                f"{self.title} refuses the key: {answer.status_code}", remedy="Check the key and its rights"
            )
        if answer.status_code == 429 or answer.status_code >= 500:
            raise Unavailable(f"{self.title} answers {answer.status_code}", remedy="Try again later")
        if answer.status_code >= 400:
            raise Invalid(f"{self.title} refuses the request: {answer.status_code} {answer.text[:200]}")
        return answer.json() if answer.content and "json" in answer.headers.get("content-type", "") else None

    def _pages(self, path: str, params: Mapping[str, Any]) -> Iterator[Row]:
        """The rows of all pages, where each page names the cursor of the next."""
        cursor = None
        while True:
            page = self.call("GET", path, params={**params, "limit": PAGE, "cursor": cursor})
            yield from page["data"]
            cursor = page.get("next_cursor") or page.get("meta", {}).get("cursor")
            if not cursor:
                return


class Langfuse(ScoreSystem):
    """A project of Langfuse. Scores of people are imported; with `evaluators`, those of evaluators, too.

    `scale` is the worst and the best number of numeric scores, and `names` chooses scores. The external id of an answer
    is `prefix` and the id of its trace.
    """

    name = "langfuse"
    title = "Langfuse"

    def __init__(self, url: str, public_key: str, secret_key: str, **options: Unpack[ScoreOptions]) -> None:
        super().__init__(url, auth=(public_key, secret_key), **options)

    def write(self, new: Sequence[WrittenScore], known: frozenset[str]) -> list[str]:
        for start in range(0, len(new), PAGE):
            rows = [_langfuse_row(score) for score in new[start : start + PAGE]]
            answer = self.call("POST", "/api/public/scores", body=rows)
            if answer and answer.get("rejected"):
                raise Invalid(f"Langfuse refuses {answer['rejected']} scores: {answer.get('errors')}")
        return []

    def delete(self, old: Sequence[WrittenScore]) -> None:
        for score in old:
            self.call("DELETE", f"/api/public/scores/{score.key}")

    def _rows(self, answer_ids: Sequence[str], names: Names, since: datetime | None) -> Iterator[Row]:
        params = {
            "fields": "details,subject,annotation",
            "name": None if names is None else ",".join(names),
            "fromTimestamp": None if since is None else since.isoformat(),
        }
        return self._pages("/api/public/v3/scores", params)

    def _score(self, row: Row) -> Score | None:
        trace, is_evaluator = _trace(row), row["source"] == "EVAL"
        if trace is None or row["name"] == OURS:
            return None
        kind, value, comment = row["dataType"], row["value"], row.get("comment")
        if kind in ("TEXT", "CORRECTION"):
            value, comment = None, comment or value
        return Score(
            trace,
            row.get("authorUserId") or (row["name"] if is_evaluator else None),
            value,
            comment or None,
            self._scale if kind == "NUMERIC" else None,
            row["updatedAt"],
            row["name"],
            is_evaluator,
        )

    def _written(self, row: Row) -> WrittenScore | None:
        trace, value = _trace(row), None if row["dataType"] == "TEXT" else float(row["value"])
        if trace is None:
            return None
        return WrittenScore(row["id"], trace, value, row.get("comment"), (row.get("metadata") or {}).get(MARK))


MAX_TEXT = 500
"""Characters of a score of Langfuse that is a text."""


def _trace(row: Row) -> str | None:
    """The trace that a score of Langfuse is about, or that has what it is about."""
    subject = row.get("subject") or {}
    trace = {"trace": subject.get("id"), "observation": subject.get("traceId")}.get(subject.get("kind", ""))
    return None if trace is None else str(trace)


def _langfuse_row(new: WrittenScore) -> Row:
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


class LangSmith(ScoreSystem):
    """A workspace of LangSmith. Feedback of people and programs is imported; with `evaluators`, that of models, too.

    `scale` is the worst and the best score, and `names` chooses feedback by its key. The external id of an answer is
    `prefix` and the id of its run, a UUID; answers with another are not exported. Feedback has to say which project its
    run is in: it is looked up, unless `project` names it. Servers that keep runs in SmithDB alone need the name.
    """

    name = "langsmith"
    title = "LangSmith"

    def __init__(
        self,
        api_key: str,
        *,
        project: str | None = None,
        url: str = "https://api.smith.langchain.com",
        **options: Unpack[ScoreOptions],
    ) -> None:
        super().__init__(url, headers={"x-api-key": api_key}, **options)
        self._project = project

    def write(self, new: Sequence[WrittenScore], known: frozenset[str]) -> list[str]:
        errors = []
        for score in new:
            if not _is_uuid(score.answer_id):
                continue
            opinion = {"score": score.value, "comment": score.comment}
            if score.key in known:
                self.call("PATCH", f"/feedback/{score.key}", body=opinion)
                continue
            place = self._place(score.answer_id)
            if place is None:
                errors.append(f"{score.answer_id}: LangSmith doesn't find this run; if it has it, pass project=…")
                continue
            source = {"type": "api", "metadata": score.metadata}
            about = {"id": score.key, "run_id": score.answer_id, "key": OURS, "feedback_source": source}
            self.call("POST", "/feedback", body=about | opinion | place)
        return errors

    def _place(self, run_id: str) -> Row | None:
        """Where a run is, without which LangSmith will not take feedback about it; None if it can't be found."""
        if self._project is not None:
            return {"session_id": self._project_id}
        try:
            run = self.call("GET", f"/runs/{run_id}")
        except Invalid:
            return None
        return {name: run[name] for name in ("session_id", "start_time", "trace_id") if run.get(name)}

    @cached_property
    def _project_id(self) -> str:
        found = self.call("GET", "/sessions", params={"name": self._project, "limit": 1})
        if not found:
            message = f"LangSmith has no project {quoted(self._project)}"
            raise NotFound(message, field="project", value=self._project, remedy="Pass the name of the runs' project")
        return str(found[0]["id"])

    def delete(self, old: Sequence[WrittenScore]) -> None:
        for score in old:
            self.call("DELETE", f"/feedback/{score.key}")

    def _rows(self, answer_ids: Sequence[str], names: Names, since: datetime | None) -> Iterator[Row]:
        offset = 0
        while True:
            params = {"limit": PAGE, "offset": offset, "key": None if names is None else list(names)}
            page = self.call("GET", "/feedback", params=params)
            yield from (row for row in page if _is_since(row.get("modified_at") or row["created_at"], since))
            if len(page) < PAGE:
                return
            offset += len(page)

    def _score(self, row: Row) -> Score | None:
        source = row.get("feedback_source") or {}
        is_model = source.get("type") == "model"
        if row.get("run_id") is None or row["key"] == OURS:
            return None
        score, value, correction = row.get("score"), row.get("value"), row.get("correction")
        is_number = isinstance(score, int | float) and not isinstance(score, bool)
        return Score(
            str(row["run_id"]),
            source.get("user_id") or source.get("user_name") or (row["key"] if is_model else None),
            score if score is not None else value if isinstance(value, str | bool) else None,
            row.get("comment") or (correction if isinstance(correction, str) else None),
            self._scale if is_number else None,
            row.get("modified_at") or row["created_at"],
            row["key"],
            is_model,
        )

    def _written(self, row: Row) -> WrittenScore:
        mark = ((row.get("feedback_source") or {}).get("metadata") or {}).get(MARK)
        return WrittenScore(row["id"], str(row["run_id"]), row.get("score"), row.get("comment"), mark)


class Phoenix(ScoreSystem):
    """A project of Phoenix. Annotations of people are imported; with `evaluators`, those of models and code, too.

    `scale` is the worst and the best score, and `names` chooses annotations. The external id of an answer is `prefix`
    and the id of its trace, or of its span if those are annotated. Phoenix returns feedback only for answers that
    are named, so only those that Heedful has are asked for.
    """

    name = "phoenix"
    title = "Phoenix"

    def __init__(
        self,
        url: str,
        project: str = "default",
        *,
        api_key: str | None = None,
        annotates: Literal["trace", "span"] = "trace",
        **options: Unpack[ScoreOptions],
    ) -> None:
        super().__init__(url, headers={} if api_key is None else {"Authorization": f"Bearer {api_key}"}, **options)
        self._annotates = annotates
        self._path = f"/v1/projects/{quote(project, safe='')}/{annotates}_annotations"

    def write(self, new: Sequence[WrittenScore], known: frozenset[str]) -> list[str]:
        for start in range(0, len(new), PAGE):
            body = {"data": [self._row(score) for score in new[start : start + PAGE]]}
            self.call("POST", f"/v1/{self._annotates}_annotations", params={"sync": "true"}, body=body)
        return []

    def delete(self, old: Sequence[WrittenScore]) -> None:
        for score in old:
            # Of any time: the identifier names one of them.
            params = {"name": OURS, "identifier": score.key, "delete_all": "true"}
            self.call("DELETE", self._path, params=params)

    def _rows(self, answer_ids: Sequence[str], names: Names, since: datetime | None) -> Iterator[Row]:
        for start in range(0, len(answer_ids), MAX_ANSWERS):
            params = {
                f"{self._annotates}_ids": list(answer_ids[start : start + MAX_ANSWERS]),
                "include_annotation_names": None if names is None else list(names),
            }
            rows = self._pages(self._path, params)
            yield from (row for row in rows if _is_since(row["updated_at"], since))

    def _score(self, row: Row) -> Score | None:
        is_human, result = row["annotator_kind"] == "HUMAN", row.get("result") or {}
        if row["name"] == OURS:
            return None
        score = result.get("score")
        return Score(
            str(row[f"{self._annotates}_id"]),
            row.get("user_id") or (None if is_human else row["name"]),
            result.get("label") if score is None else score,
            result.get("explanation") or None,
            None if score is None else self._scale,
            row["updated_at"],
            row["name"],
            not is_human,
        )

    def _written(self, row: Row) -> WrittenScore:
        result, mark = row.get("result") or {}, (row.get("metadata") or {}).get(MARK)
        answer_id = str(row[f"{self._annotates}_id"])
        return WrittenScore(row["identifier"], answer_id, result.get("score"), result.get("explanation"), mark)

    def _row(self, new: WrittenScore) -> Row:
        result = {"score": new.value, "explanation": new.comment}
        return {
            f"{self._annotates}_id": new.answer_id,
            "name": OURS,
            "annotator_kind": "HUMAN",
            "identifier": new.key,
            "result": {name: value for name, value in result.items() if value is not None},
            "metadata": new.metadata,
        }


MAX_ANSWERS = 50
"""Answers that one request to Phoenix asks about: their ids are in its address."""


def _is_since(text: str, since: datetime | None) -> bool:
    if since is None:
        return True
    parsed = datetime.fromisoformat(text)
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)) >= since


def _is_uuid(text: str) -> bool:
    try:
        return bool(UUID(text))
    except ValueError:
        return False
