"""What clients of cognee's HTTP interface send; each name may be written with capitals or with underscores."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, ConfigDict, Field
from pydantic.alias_generators import to_camel

from heedful.compat.bodies import Body
from heedful.errors import Invalid
from heedful.model import DEFAULT_DATASET, Fraction, Metadata, NotBlank, Text

UNSUPPORTED: dict[str, dict[str, str]] = {
    "add and cognify are one step here. Use POST /api/v1/remember": {
        "/add": "POST",
        "/cognify": "POST",
        "/update": "PATCH",
    },
    "search is called recall here. Use POST /api/v1/recall": {"/search": "GET POST"},
    "memify is called improve here. Use POST /api/v1/improve": {"/memify": "POST"},
    "delete is called forget here. Use POST /api/v1/forget": {"/delete": "DELETE"},
    "datasets are named here, and made by being used. Use POST /api/v1/remember and /api/v1/forget": {
        "/datasets": "POST DELETE",
        "/datasets/{dataset_id}": "DELETE",
    },
    "graphs are not here as such. Use POST /api/v1/recall": {
        "/datasets/{dataset_id}/graph": "GET",
        "/visualize": "GET",
    },
}
"""Routes that have no like, under the reason and what to use."""

GRAPH = (None, "auto", "graph", "all", ["graph"])
"""Scopes that mean the facts."""


class Camel(Body):
    """A body whose names may also be in camel case."""

    model_config = ConfigDict(alias_generator=to_camel, loc_by_alias=False)

    def refuse(self, *names: str) -> None:
        """A part of a request that would be dropped is worse than an error."""
        for name in names:
            if getattr(self, name):
                raise Invalid(f"{name} has no like here", field=name, value=getattr(self, name), remedy="Leave it out")


class Remembering(Camel):
    """Texts to remember."""

    data: NotBlank | list[NotBlank] = Field(validation_alias=AliasChoices("data", "raw_data", "rawData"))
    dataset_name: str = DEFAULT_DATASET
    dataset_id: str | None = None
    session_id: str | None = None
    self_improvement: bool = True
    content_type: str | None = None
    external_metadata: list[Metadata | None] | None = None


class SessionEntry(Camel):
    """A question and answer, or feedback on one."""

    type: Literal["qa", "feedback"]
    qa_id: str | None = None
    question: str | None = None
    answer: str | None = None
    context: Text | None = None
    feedback_text: str | None = None
    feedback_score: int | None = None


class RememberingEntry(Camel):
    """An entry to keep in a session."""

    entry: SessionEntry
    session_id: NotBlank
    dataset_name: str = DEFAULT_DATASET


class Asking(Camel):
    """A question."""

    query: NotBlank = Field(validation_alias=AliasChoices("query", "query_text", "queryText"))
    search_type: str | None = Field(
        None, validation_alias=AliasChoices("search_type", "searchType", "query_type", "queryType")
    )
    datasets: str | list[str] | None = None
    top_k: int | None = None
    session_id: str | None = None
    feedback_influence: Fraction = 0.0
    only_context: bool = False
    scope: str | list[str] | None = None
    dataset_ids: list[str] | None = None
    node_name: list[str] | None = None
    response_schema: dict[str, Any] | None = None
    code_query: dict[str, Any] | None = None
    tool_connections: list[str] | None = None
    stream: bool | None = None

    def refuse_what_has_no_like(self) -> None:
        self.refuse("dataset_ids", "node_name", "response_schema", "code_query", "tool_connections", "stream")
        if self.scope not in GRAPH:
            self.refuse("scope")


class Improving(Camel):
    """What to improve, and from which sessions."""

    dataset_name: str = Field(DEFAULT_DATASET, validation_alias=AliasChoices("dataset_name", "datasetName", "dataset"))
    dataset_id: str | None = None
    session_ids: list[str] | None = None


class Forgetting(Camel):
    """What to forget."""

    dataset: str | None = None
    dataset_id: str | None = None
    data_id: str | None = None
    everything: bool = False
    memory_only: bool = False


class Rating(Camel):
    """What somebody says of an answer."""

    feedback_text: str | None = None
    feedback_score: int | None = None


class SessionPage(Camel):
    """The parameters of a list of sessions."""

    limit: Annotated[int, Field(ge=1, le=500)] = 50
    offset: Annotated[int, Field(ge=0)] = 0
    range: str = "all"
    status: str | None = None


class Last(Camel):
    """How much of a session is wanted."""

    last_n: Annotated[int, Field(ge=1)] | None = None
