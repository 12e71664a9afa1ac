"""Bodies and parameters of requests, read into models; what can't be accepted is refused by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field

from heedful.compat.foreign_api import Body, read
from heedful.errors import Invalid, quoted
from heedful.model import SIGNAL_TYPES, Dataset, Fact, Fraction, Hit, Metadata, NotBlank, RankedFact, SignalType, Text

METADATA_KEY = "hindsight"
"""The key of the metadata, of a fact and of a dataset, for what only Hindsight has a name for."""

TAGS = f"{METADATA_KEY}.tags"
BUDGETS = {"low": 10, "mid": 25, "high": 100}
"""How many facts a budget is good for."""

MAX_RESULTS = 1_000
"""Facts that one recall finds at most."""

RAW = frozenset({"world", "experience"})
"""The types that facts here match: they are not distinguished."""

Matching = Literal["any", "all", "any_strict", "all_strict", "exact"]
Trait = Annotated[int, Field(ge=1, le=5)]


class Block(Body):
    type: str
    text: str | None = None


class Item(Body):
    content: NotBlank | list[Block]
    timestamp: datetime | Literal["unset"] | None = None
    context: Text | None = None
    metadata: dict[str, Any] | None = None
    document_id: NotBlank | None = None
    tags: list[NotBlank] | None = None
    update_mode: Literal["replace", "append"] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, str):
            return self.content
        other = next((block.type for block in self.content if block.type != "text"), None)
        if other is not None:
            message = f"content has a block of type {quoted(other)}"
            raise Invalid(message, field="items.content", value=other, remedy="Only texts can be remembered here")
        return "\n".join(block.text or "" for block in self.content)

    def about(self, document_tags: Sequence[str]) -> Metadata:
        """The metadata of the fact: the item's own, and what only Hindsight has a name for."""
        metadata = dict(self.metadata or {})
        if METADATA_KEY in metadata:
            message = f"metadata has the key {quoted(METADATA_KEY)}"
            raise Invalid(message, field="items.metadata", value=METADATA_KEY, remedy="Use another name for it")
        at = self.timestamp.isoformat() if isinstance(self.timestamp, datetime) else None
        tags = list(dict.fromkeys([*(self.tags or []), *document_tags]))
        extra = {"tags": tags, "context": self.context, "timestamp": at}
        filled = {name: value for name, value in extra.items() if value}
        return metadata | {METADATA_KEY: filled} if filled else metadata


class Retain(Body):
    items: list[Item]
    document_tags: list[NotBlank] | None = None


class LeastScores(Body):
    final: float | None = None
    semantic: float | None = None
    keyword: float | None = None
    reranker: float | None = None


class Recalling(Body):
    query: NotBlank
    types: list[str] | None = None
    type: str | None = None
    budget: Literal["low", "mid", "high"] | None = None
    max_tokens: Annotated[int, Field(ge=1)] = 4096
    tags: list[str] | None = None
    tags_match: Matching = "any"
    tag_groups: list[Any] | None = None
    min_scores: LeastScores | None = None
    boost_by_usefulness: bool = False
    usefulness_weight: Fraction = 0.3
    min_usefulness: Fraction = 0.0

    @property
    def filter(self) -> TagFilter:
        return TagFilter(tags=self.tags or [], match=self.tags_match)

    @property
    def top_k(self) -> int:
        return BUDGETS[self.budget or "mid"]

    @property
    def wants_facts(self) -> bool:
        """Whether the types it asks for include those that facts have."""
        types = {*(self.types or []), *([self.type] if self.type else [])}
        return not types or bool(types & RAW)

    def refuse_what_has_no_like(self) -> None:
        """A filter that is not applied would be worse than an error."""
        if self.tag_groups:
            raise Invalid("tag_groups is not supported here", field="tag_groups", remedy="Use tags and tags_match")
        least = self.min_scores
        for name in ("semantic", "keyword", "reranker"):
            if least is not None and getattr(least, name) is not None:
                remedy = "Use min_scores.final"
                raise Invalid(f"min_scores.{name} is not supported here", field=f"min_scores.{name}", remedy=remedy)


class TagFilter(Body):
    """Which facts pass by their tags."""

    tags: list[str]
    match: Matching

    @property
    def wheres(self) -> list[Metadata | None]:
        """Conditions whose facts together are all that can pass."""
        untagged: Metadata = {TAGS: {"exists": False}}
        if not self.tags:
            return [untagged if self.match == "exact" else None]
        tagged: Metadata = {TAGS: self.tags if self.match.startswith("any") else self.tags[0]}
        return [tagged] if self.match not in ("any", "all") else [tagged, untagged]

    def passes(self, metadata: Metadata) -> bool:
        stored, tags = extras(metadata).get("tags", []), set(self.tags)
        # What was learnt from facts without a tag in common has null: no tag finds it.
        fact_tags = {None} if stored is None else set(stored)
        if self.match == "exact":
            return fact_tags == tags
        if not tags:
            return True
        if not fact_tags:
            return self.match in ("any", "all")
        return tags <= fact_tags if self.match.startswith("all") else bool(tags & fact_tags)

    def enough(self, top_k: int) -> int:
        """How many to look at, so that `top_k` are left: conditions can name one of several tags that all must hold."""
        return MAX_RESULTS if len(self.tags) > 1 and not self.match.startswith("any") else top_k


class SignalItem(Body):
    fact_id: NotBlank
    signal_type: SignalType
    confidence: Fraction = 1.0
    query: NotBlank
    context: Text | None = None


class Signals(Body):
    signals: list[SignalItem]


class Traits(Body):
    skepticism: Trait | None = None
    literalism: Trait | None = None
    empathy: Trait | None = None


class Profile(Body):
    """The description of a bank; fields that are left out stay as they are."""

    name: Text | None = None
    mission: Text | None = None
    reflect_mission: Text | None = None
    background: Text | None = None
    disposition: Traits | None = None
    disposition_skepticism: Trait | None = None
    disposition_literalism: Trait | None = None
    disposition_empathy: Trait | None = None

    def merged(self, earlier: Mapping[str, Any]) -> Metadata:
        changes = {
            "name": self.name,
            "mission": self.mission if self.mission is not None else self.reflect_mission,
            "background": self.background,
        }
        traits = (self.disposition or Traits()).model_dump() | {
            trait: value
            for trait in Traits.model_fields
            if (value := getattr(self, f"disposition_{trait}")) is not None
        }
        disposition = dict(earlier.get("disposition", {})) | {k: v for k, v in traits.items() if v is not None}
        result = dict(earlier) | {name: value for name, value in changes.items() if value is not None}
        return result | ({"disposition": disposition} if disposition else {})


class Settings(Body):
    """Changes of the settings of a bank; those that say how Hindsight reads texts have no like here."""

    updates: dict[str, Any]

    @property
    def profile(self) -> Profile:
        supported = {"reflect_mission", *(f"disposition_{trait}" for trait in Traits.model_fields)}
        other = sorted(self.updates.keys() - supported)
        if other:
            message = f"updates.{other[0]} is not supported here"
            remedy = f"Change {', '.join(sorted(supported))}"
            raise Invalid(message, field=f"updates.{other[0]}", value=self.updates[other[0]], remedy=remedy)
        return read(Profile, self.updates)


class Listing(Body):
    q: str | None = None
    limit: Annotated[int, Field(ge=0)] = 100
    offset: Annotated[int, Field(ge=0)] = 0
    type: str | None = None
    document_id: str | None = None
    tags: list[str] | None = None
    tags_match: Matching = "any"
    state: Literal["valid", "invalidated"] | None = None
    entity_id: str | None = None
    consolidation_state: str | None = None
    time_field: str | None = None
    start_date: str | None = None
    end_date: str | None = None

    def refuse_what_has_no_like(self) -> None:
        """A filter that is not applied would be worse than an error."""
        for name in ("entity_id", "consolidation_state", "time_field", "start_date", "end_date"):
            if getattr(self, name) is not None:
                raise Invalid(f"{name} is not supported here", field=name, remedy="Leave it out")

    @property
    def filters(self) -> bool:
        """Whether some facts may be left out."""
        return bool(self.q or self.document_id is not None or self.tags or self.tags_match == "exact")

    def passes(self, fact: Fact) -> bool:
        """Whether a fact, of the right document, is wanted."""
        words = f"{fact.text}\n{extras(fact.metadata).get('context', '')}"
        tags = TagFilter(tags=self.tags or [], match=self.tags_match)
        return tags.passes(fact.metadata) and (self.q or "").lower() in words.lower()


def extras(metadata: Metadata) -> Metadata:
    """The metadata that only Hindsight has a name for."""
    value = metadata.get(METADATA_KEY)
    return value if isinstance(value, dict) else {}


CHARACTERS = 4
"""Of a token, on average."""

TRAITS = {"skepticism": 3, "literalism": 3, "empathy": 3}
TYPE = "world"

NO_USEFULNESS: dict[str, Any] = {
    "total_facts_with_signals": 0,
    "average_usefulness": 0.5,
    "total_signals": 0,
    "signal_distribution": dict.fromkeys(SIGNAL_TYPES, 0),
    "top_useful_facts": [],
    "least_useful_facts": [],
}

FEATURES = (
    "observations mcp worker bank_llm_health file_upload_api document_export_api document_import_api "
    "audit_log llm_trace store_document_text"
)
VERSION = {
    "api_version": "0.0.0+heedful",
    "features": dict.fromkeys(FEATURES.split(), False) | {"bank_config_api": True},
}

_ONE = "GET PATCH DELETE"
UNSUPPORTED: dict[str, dict[str, str]] = {
    "reflect is not here. Recall, and let your model reason; or ask Heedful for an answer with recall(answer=true)": {
        "/reflect": "POST"
    },
    "mental models are not here: nothing is made of facts but what people's feedback says": {
        "/mental-models": "GET POST",
        "/mental-models/{model_id}": _ONE,
        "/mental-models/{model_id}/history": "GET",
        "/mental-models/{model_id}/refresh": "POST",
        "/mental-models/{model_id}/dry-run-refresh": "POST",
        "/mental-models/{model_id}/clear": "POST",
    },
    "directives are not here, as there is no reflect": {"/directives": "GET POST", "/directives/{directive_id}": _ONE},
    "knowledge pages are not here": {
        "/knowledge-base/tree": "GET",
        "/knowledge-base/folders": "POST",
        "/knowledge-base/pages": "POST",
        "/knowledge-base/pages/{page_id}": "GET",
        "/knowledge-base/nodes/{node_id}": "PATCH DELETE",
        "/knowledge-base/search": "GET",
        "/knowledge-base/export": "GET",
    },
    "observations and consolidation are not here; improve learns from feedback": {
        "/consolidate": "POST",
        "/observations": "DELETE",
        "/observations/scopes": "GET",
    },
    "files can't be sent here; remember them with Heedful's own interface": {"/files/retain": "POST"},
    "documents are not kept here as such, only their facts: list memories with document_id": {
        "/documents": "GET",
        "/documents/{document_id}": "GET PATCH",
    },
    "facts can't be changed here; correct one with Heedful's own supersede": {"/memories/{memory_id}": "PATCH"},
    "there are no operations here: a memory can be recalled when retain answers": {
        "/operations": "GET",
        "/operations/{operation_id}": "GET DELETE",
    },
    "entities have no interface of their own here": {"/entities": "GET", "/entities/{entity_id}": "GET"},
    "the graph can't be read here": {"/graph": "GET"},
    "tags are not counted here; recall and the list of memories filter by them": {"/tags": "GET"},
    "counts of nodes and links are not here; see stats/usefulness": {"/stats": "GET"},
    "banks can't be copied here": {
        "/clone": "POST",
        "/transfer/export": "POST",
        "/transfer/import": "POST",
        "/document-transfer": "GET POST",
        "/document-transfer/export": "POST",
    },
    "webhooks are not here; Heedful's alerts go out on feedback": {"/webhooks": "GET POST"},
}


def profile(bank: Dataset) -> dict[str, Any]:
    extra = extras(bank.metadata)
    return {
        "bank_id": bank.name,
        "name": extra.get("name", bank.name),
        "disposition": TRAITS | extra.get("disposition", {}),
        "mission": extra.get("mission", ""),
        "background": extra.get("background", ""),
    }


def config(bank: Dataset) -> dict[str, Any]:
    """The settings of a bank: its profile, as these are called there."""
    extra = extras(bank.metadata)
    overrides = {"reflect_mission": extra["mission"]} if "mission" in extra else {}
    overrides |= {f"disposition_{trait}": value for trait, value in extra.get("disposition", {}).items()}
    defaults = {"reflect_mission": ""} | {f"disposition_{trait}": value for trait, value in TRAITS.items()}
    return {"bank_id": bank.name, "config": defaults | overrides, "overrides": overrides}


def bank_summary(bank: Dataset) -> dict[str, Any]:
    counts = {"fact_count": bank.facts, "memory_count": bank.facts}
    return profile(bank) | counts | {"created_at": bank.created_at.isoformat()}


def result(hit: Hit) -> dict[str, Any]:
    return _common(hit.fact_id, hit.text, hit.source, hit.metadata) | {
        "type": TYPE,
        "metadata": own_metadata(hit.metadata),
        "scores": {"final": hit.score, "relevance": hit.relevance, "usefulness": hit.usefulness},
    }


def unit(fact: Fact) -> dict[str, Any]:
    common = _common(fact.fact_id, fact.text, fact.source, fact.metadata)
    return common | {
        "type": TYPE,
        "fact_type": TYPE,
        "context": common["context"] or "",
        "date": common["mentioned_at"] or fact.created_at.isoformat(),
        "metadata": own_metadata(fact.metadata),
        "state": "valid",
    }


def ranked(fact: RankedFact) -> dict[str, Any]:
    """A fact in a list of the most or least useful."""
    return {
        "fact_id": fact.fact_id,
        "score": fact.overall_usefulness,
        "text": fact.text,
        "signal_count": fact.signal_count,
    }


def within(hits: Sequence[Hit], max_tokens: int) -> Iterator[Hit]:
    """The first hits, as many as have not more tokens than that."""
    budget = max_tokens * CHARACTERS
    for hit in hits:
        budget -= len(hit.text)
        if budget < 0:
            return
        yield hit


def own_metadata(metadata: Metadata) -> dict[str, str]:
    """The caller's own metadata; Hindsight has texts only."""
    return {
        name: value if isinstance(value, str) else orjson.dumps(value).decode()
        for name, value in metadata.items()
        if name != METADATA_KEY
    }


def _common(fact_id: str, text: str, source: str | None, metadata: Metadata) -> dict[str, Any]:
    extra = extras(metadata)
    return {
        "id": fact_id,
        "text": text,
        "context": extra.get("context"),
        "mentioned_at": extra.get("timestamp"),
        "document_id": source,
        "tags": extra.get("tags") or [],
    }
