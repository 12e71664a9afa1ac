"""What clients of Hindsight read, and what they can't have here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from heedful.compat.hindsight_bodies import OURS, extras
from heedful.model import SIGNAL_TYPES, Dataset, Fact, Hit, Metadata, RankedFact

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
"""Routes of the clients that do nothing here, by the reason."""


def profile(bank: Dataset) -> dict[str, Any]:
    """A bank, as it describes itself."""
    said = extras(bank.metadata)
    return {
        "bank_id": bank.name,
        "name": said.get("name", bank.name),
        "disposition": TRAITS | said.get("disposition", {}),
        "mission": said.get("mission", ""),
        "background": said.get("background", ""),
    }


def config(bank: Dataset) -> dict[str, Any]:
    """The settings of a bank: its profile, as these are called there."""
    said = extras(bank.metadata)
    overrides = {"reflect_mission": said["mission"]} if "mission" in said else {}
    overrides |= {f"disposition_{trait}": value for trait, value in said.get("disposition", {}).items()}
    defaults = {"reflect_mission": ""} | {f"disposition_{trait}": value for trait, value in TRAITS.items()}
    return {"bank_id": bank.name, "config": defaults | overrides, "overrides": overrides}


def listed(bank: Dataset) -> dict[str, Any]:
    """A bank in a list."""
    counts = {"fact_count": bank.facts, "memory_count": bank.facts}
    return profile(bank) | counts | {"created_at": bank.created_at.isoformat()}


def result(hit: Hit) -> dict[str, Any]:
    """A hit, as recall shows it."""
    return _common(hit.fact_id, hit.text, hit.source, hit.metadata) | {
        "type": TYPE,
        "metadata": own(hit.metadata),
        "scores": {"final": hit.score, "relevance": hit.relevance, "usefulness": hit.usefulness},
    }


def unit(fact: Fact) -> dict[str, Any]:
    """A fact in a list."""
    said = _common(fact.fact_id, fact.text, fact.source, fact.metadata)
    return said | {
        "type": TYPE,
        "fact_type": TYPE,
        "context": said["context"] or "",
        "date": said["mentioned_at"] or fact.created_at.isoformat(),
        "metadata": own(fact.metadata),
        "state": "valid",
    }


def ranked(fact: RankedFact) -> dict[str, Any]:
    """A fact in a list of the most or least useful."""
    return {"fact_id": fact.fact_id, "score": fact.score, "text": fact.text, "signal_count": fact.signal_count}


def within(hits: Sequence[Hit], max_tokens: int) -> Iterator[Hit]:
    """The first hits, as many as have not more tokens than that."""
    left = max_tokens * CHARACTERS
    for hit in hits:
        left -= len(hit.text)
        if left < 0:
            return
        yield hit


def own(metadata: Metadata) -> dict[str, str]:
    """The caller's own metadata; Hindsight has texts only."""
    return {
        name: value if isinstance(value, str) else orjson.dumps(value).decode()
        for name, value in metadata.items()
        if name != OURS
    }


def _common(fact_id: str, text: str, source: str | None, metadata: Metadata) -> dict[str, Any]:
    said = extras(metadata)
    return {
        "id": fact_id,
        "text": text,
        "context": said.get("context"),
        "mentioned_at": said.get("timestamp"),
        "document_id": source,
        "tags": said.get("tags", []),
    }
