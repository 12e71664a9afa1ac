"""Hindsight's HTTP interface for banks, memories and signals, on Heedful.

A bank is a dataset of the key's project. Banks need not be made: one that is not there answers as an empty one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from heedful.compat.foreign_api import ForeignRequest, ForeignRoute, every, problem, read, unsupported
from heedful.compat.hindsight import bodies
from heedful.engine import Heedful, project_of
from heedful.errors import HeedfulError, Invalid, NotFound
from heedful.model import Dataset, Fact, Metadata, Signal


def error_body(error: HeedfulError, status: int) -> Any:
    """The body of an error: a list of problems for a request that can't be read, else a sentence."""
    if status == 422 and isinstance(error, Invalid):
        return {"detail": [problem(error)]}
    return {"detail": str(error)}


def list_banks(store: Heedful, request: ForeignRequest) -> Any:
    query = read(
        bodies.Listing, {name: request.query[name] for name in ("q", "limit", "offset") if name in request.query}
    )
    banks = [bodies.bank_summary(store.get_dataset(name)) for name in reversed(store.datasets())]
    if query.q:
        banks = [bank for bank in banks if query.q.lower() in f"{bank['bank_id']}\n{bank['name']}".lower()]
    limit = query.limit if "limit" in request.query else max(len(banks), 1)
    return {
        "banks": banks[query.offset : query.offset + limit],
        "total": len(banks),
        "limit": limit,
        "offset": query.offset,
    }


def put_bank(store: Heedful, request: ForeignRequest) -> Any:
    bank = request.path["bank_id"]
    changes = read(bodies.Profile, request.body)
    existing = _bank(store, bank)
    merged = changes.merged({} if existing is None else bodies.extras(existing.metadata))
    return bodies.profile(store.create_dataset(bank, metadata={bodies.METADATA_KEY: merged}))


def get_bank(store: Heedful, request: ForeignRequest) -> Any:
    return bodies.profile(store.get_dataset(request.path["bank_id"]))


def change_bank(store: Heedful, request: ForeignRequest) -> Any:
    store.get_dataset(request.path["bank_id"])
    return put_bank(store, request)


def get_config(store: Heedful, request: ForeignRequest) -> Any:
    return bodies.config(store.get_dataset(request.path["bank_id"]))


def change_config(store: Heedful, request: ForeignRequest) -> Any:
    changes = read(bodies.Settings, request.body).profile
    bank = store.get_dataset(request.path["bank_id"])
    return bodies.config(
        store.create_dataset(bank.name, metadata={bodies.METADATA_KEY: changes.merged(bodies.extras(bank.metadata))})
    )


def reset_config(store: Heedful, request: ForeignRequest) -> Any:
    bank = store.get_dataset(request.path["bank_id"])
    stays = {
        name: value for name, value in bodies.extras(bank.metadata).items() if name not in ("mission", "disposition")
    }
    return bodies.config(store.create_dataset(bank.name, metadata={bodies.METADATA_KEY: stays}))


def delete_bank(store: Heedful, request: ForeignRequest) -> Any:
    bank = request.path["bank_id"]
    result = store.forget(dataset=bank)
    return {"success": True, "message": f"bank {bank!r} was deleted", "deleted_count": result.facts}


def clear_bank(store: Heedful, request: ForeignRequest) -> Any:
    if "type" in request.query:
        remedy = "Leave it out to clear the bank"
        raise Invalid("facts have no types here", field="type", value=request.query["type"], remedy=remedy)
    bank = store.get_dataset(request.path["bank_id"])
    result = store.forget(dataset=bank.name)
    store.create_dataset(bank.name, metadata=bank.metadata)
    return {"success": True, "message": f"bank {bank.name!r} is empty", "deleted_count": result.facts}


def retain(store: Heedful, request: ForeignRequest) -> Any:
    bank = request.path["bank_id"]
    body = read(bodies.Retain, request.body)
    documents: dict[str | None, list[tuple[str, Metadata]]] = {}
    appended = {item.document_id for item in body.items if item.update_mode == "append"}
    for item in body.items:
        documents.setdefault(item.document_id, []).append((item.text, item.about(body.document_tags or [])))
    # One call for all: in a transaction for each document, a batch of many takes many times as long.
    project_of(store).store_documents(
        bank,
        [
            (document, document not in appended, texts)
            for document, items in documents.items()
            for texts in ([items] if document is not None else [[item] for item in items])
        ],
    )
    # It is done when the answer leaves, whether or not the caller would have waited.
    return {"success": True, "bank_id": bank, "items_count": len(body.items), "async": False}


def recall(store: Heedful, request: ForeignRequest) -> Any:
    body = read(bodies.Recalling, request.body)
    body.refuse_what_has_no_like()
    if not body.wants_facts or _bank(store, request.path["bank_id"]) is None:
        return {"results": []}
    top_k = body.filter.enough(body.top_k)
    hits = [
        hit
        for where in body.filter.wheres
        for hit in store.recall(
            body.query,
            dataset=request.path["bank_id"],
            top_k=top_k,
            where=where,
            boost_by_usefulness=body.boost_by_usefulness,
            usefulness_weight=body.usefulness_weight,
            min_usefulness=body.min_usefulness,
            # Without the boost a policy ranks nothing, and says what the documented usefulness is.
            policy=None if body.boost_by_usefulness else "documented",
        )
        if body.filter.passes(hit.metadata)
    ]
    least = body.min_scores.final if body.min_scores is not None else None
    best = sorted((hit for hit in hits if least is None or hit.score >= least), key=lambda hit: -hit.score)
    return {"results": [bodies.result(hit) for hit in bodies.within(best[: body.top_k], body.max_tokens)]}


def list_memories(store: Heedful, request: ForeignRequest) -> Any:
    query = read(bodies.Listing, {**request.query, "tags": list(request.every.get("tags", [])) or None})
    query.refuse_what_has_no_like()
    bank = _bank(store, request.path["bank_id"])
    stop = query.offset + query.limit
    if bank is None or query.state == "invalidated" or (query.type is not None and query.type not in bodies.RAW):
        facts, total = [], 0
    elif query.filters:
        facts = [fact for fact in _facts(store, bank.name, query.document_id) if query.passes(fact)]
        total = len(facts)
    else:
        facts, total = list(islice(_facts(store, bank.name, None), stop)), bank.facts
    return {
        "items": [bodies.unit(fact) for fact in facts[query.offset : stop]],
        "total": total,
        "limit": query.limit,
        "offset": query.offset,
    }


def get_memory(store: Heedful, request: ForeignRequest) -> Any:
    return bodies.unit(_fact(store, request.path["bank_id"], request.path["memory_id"]))


def delete_document(store: Heedful, request: ForeignRequest) -> Any:
    document = request.path["document_id"]
    result = store.forget(source=document, dataset=request.path["bank_id"])
    return {
        "success": True,
        "message": f"document {document!r} was deleted",
        "document_id": document,
        "memory_units_deleted": result.facts,
    }


def signal(store: Heedful, request: ForeignRequest) -> Any:
    bank = request.path["bank_id"]
    signals = read(bodies.Signals, request.body).signals
    given = [Signal(**item.model_dump(), author=request.author) for item in signals]
    try:
        result = store.signal(given, dataset=bank)
        processed, updated = result.processed, result.updated_facts
        unknown = [(error.index, error.fact_id) for error in result.errors]
    except NotFound:
        # Their clients read a list of errors, even if nothing could be done.
        processed, updated = 0, []
        unknown = [(index, item.fact_id) for index, item in enumerate(given)]
    return {
        "success": not unknown,
        "signals_processed": processed,
        "updated_facts": updated,
        "errors": [
            {"index": index, "fact_id": fact_id, "message": f"bank {bank!r} has no fact {fact_id!r}"}
            for index, fact_id in unknown
        ],
    }


def fact_stats(store: Heedful, request: ForeignRequest) -> Any:
    fact = _fact(store, request.path["bank_id"], request.path["fact_id"])
    stats = store.fact_stats(fact.fact_id)
    return {
        "fact_id": stats.fact_id,
        "usefulness_score": stats.overall_usefulness,
        "signal_count": stats.signal_count,
        "signal_breakdown": stats.signal_breakdown,
        "last_signal_at": None if stats.last_signal_at is None else stats.last_signal_at.isoformat(),
        "created_at": fact.created_at.isoformat(),
    }


def usefulness_stats(store: Heedful, request: ForeignRequest) -> Any:
    bank = request.path["bank_id"]
    if _bank(store, bank) is None:
        return bodies.NO_USEFULNESS | {"bank_id": bank}
    stats = store.usefulness_stats(bank)
    return {
        "bank_id": bank,
        "total_facts_with_signals": stats.facts_with_signals,
        "average_usefulness": stats.average_overall_usefulness,
        "total_signals": stats.total_signals,
        "signal_distribution": stats.signal_breakdown,
        "top_useful_facts": [bodies.ranked(fact) for fact in stats.most_useful],
        "least_useful_facts": [bodies.ranked(fact) for fact in stats.least_useful],
    }


def version(store: Heedful, request: ForeignRequest) -> Any:
    return bodies.VERSION


def _bank(store: Heedful, bank: str) -> Dataset | None:
    try:
        return store.get_dataset(bank)
    except NotFound:
        return None


def _fact(store: Heedful, bank: str, fact_id: str) -> Fact:
    fact = store.fact(fact_id)
    if fact.dataset != bank:
        raise NotFound(f"bank {bank!r} has no fact {fact_id!r}", field="fact_id", value=fact_id)
    return fact


def _facts(store: Heedful, bank: str, source: str | None) -> Iterator[Fact]:
    """All facts of a bank, or of one document, the newest first."""
    return every(store.facts, dataset=bank, source=source, newest_first=True)


BANKS = "/v1/default/banks"
BANK = f"{BANKS}/{{bank_id}}"

ROUTES: tuple[ForeignRoute, ...] = (
    ForeignRoute("GET", "/version", version, "read"),
    ForeignRoute("GET", BANKS, list_banks, "read"),
    ForeignRoute("PUT", BANK, put_bank, "write"),
    ForeignRoute("GET", BANK, get_bank, "read"),
    ForeignRoute("PATCH", BANK, change_bank, "write"),
    ForeignRoute("DELETE", BANK, delete_bank, "write"),
    ForeignRoute("GET", f"{BANK}/profile", get_bank, "read"),
    ForeignRoute("PUT", f"{BANK}/profile", change_bank, "write"),
    ForeignRoute("GET", f"{BANK}/config", get_config, "read"),
    ForeignRoute("PATCH", f"{BANK}/config", change_config, "write"),
    ForeignRoute("DELETE", f"{BANK}/config", reset_config, "write"),
    ForeignRoute("POST", f"{BANK}/memories", retain, "write"),
    ForeignRoute("DELETE", f"{BANK}/memories", clear_bank, "write"),
    ForeignRoute("POST", f"{BANK}/memories/recall", recall, "read"),
    ForeignRoute("GET", f"{BANK}/memories/list", list_memories, "read"),
    ForeignRoute("GET", f"{BANK}/memories/{{memory_id}}", get_memory, "read"),
    ForeignRoute("DELETE", f"{BANK}/documents/{{document_id}}", delete_document, "write"),
    ForeignRoute("POST", f"{BANK}/signal", signal, "feedback", batch=True),
    ForeignRoute("GET", f"{BANK}/facts/{{fact_id}}/stats", fact_stats, "read"),
    ForeignRoute("GET", f"{BANK}/stats/usefulness", usefulness_stats, "read"),
    *unsupported(BANK, bodies.UNSUPPORTED),
)
