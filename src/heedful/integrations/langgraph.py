"""LangGraph's store: items of an agent's long-term memory, as facts that feedback can rank."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from langgraph.runtime import get_runtime
from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)
from langgraph.store.base.embed import get_text_at_path

from heedful.compat.foreign_api import every
from heedful.errors import NotFound
from heedful.integrations.turns import BlockingMemory, Scoped, Turns, scoped, stored, strings
from heedful.model import Document, Fact, Hit, Metadata, Page, Recall
from heedful.model.limits import MAX_TOP_K

DATASET = "langgraph"

ITEMS: Metadata = {"learnt_from": {"exists": False}}
"""Without what was learnt from items, which has their metadata."""

Namespace = tuple[str, ...]


class HeedfulItem(SearchItem):
    """An item that a search with a query found. `memory.signal_recall(item.recall_id, helpful=item.fact_id)` says that
    it was useful."""

    __slots__ = ("fact_id", "recall_id")

    def __init__(self, item: Item, score: float, fact_id: str, recall_id: str) -> None:
        super().__init__(item.namespace, item.key, item.value, item.created_at, item.updated_at, score)
        self.fact_id = fact_id
        self.recall_id = recall_id


class HeedfulStore(BaseStore):
    """Items as facts of one dataset, their namespace, key and value as metadata.

    A search with a query is a recall. `fields` says which parts of a value can be found so, as in LangGraph's `index`;
    left out, all its texts can. An item that is put again with the same value stays as it is, with what was said of it.
    `dataset` may be a function of the `runtime.context` of the graph.

    If Heedful fails, a search finds nothing, and the log says so once; all else raises its error, after 30 seconds at
    most, as an agent must not take for stored what is not.
    """

    __slots__ = ("_fields", "_memory", "_options", "_turns")

    def __init__(
        self, memory: BlockingMemory, *, dataset: Scoped[str] = DATASET, fields: Sequence[str] | None = None
    ) -> None:
        self._memory = memory
        self._options = {"dataset": dataset}
        self._fields = fields
        self._turns = Turns(memory).require_sync()

    @property
    def _dataset(self) -> str:
        return str(scoped(self._options, runtime_context())["dataset"])

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Runs operations; all reads see what was there before the writes, and of two writes of an item the last
        counts."""
        found: list[Result] = []
        puts: dict[str, PutOp] = {}
        for op in ops:
            if isinstance(op, PutOp):
                if op.ttl is not None:
                    raise NotImplementedError(
                        "HeedfulStore does not support a time to live: refreshing it on read would be a write. Pass "
                        "ttl=None, and delete expired items yourself"
                    )
                puts[_source(op.namespace, op.key)] = op
                found.append(None)
            elif isinstance(op, GetOp):
                found.append(self._turns.demand(self._get, _source(op.namespace, op.key)))
            elif isinstance(op, SearchOp):
                found.append(self._search(op))
            else:
                found.append(self._turns.demand(self._namespaces, op))
        if puts:
            self._turns.demand(self._put, puts)
        return found

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await asyncio.to_thread(self.batch, list(ops))

    def _get(self, source: str) -> Item | None:
        facts = self._page(source=source, limit=1).items
        return _item(facts[0].metadata) if facts else None

    def _put(self, puts: Mapping[str, PutOp]) -> None:
        documents: list[Document] = []
        for source, op in puts.items():
            before = self._get(source)
            if op.value is None:
                if before is not None:
                    self._memory.forget(source=source, dataset=self._dataset)
                continue
            now, value = datetime.now(UTC), dict(op.value)
            texts = self._texts(op)
            metadata = {
                "namespace": {str(level): name for level, name in enumerate(op.namespace)},
                "key": op.key,
                "value": value,
                "created_at": (before.created_at if before else now).isoformat(),
                # The same metadata and text are the same fact, which keeps its feedback.
                "updated_at": (before.updated_at if before and before.value == value else now).isoformat(),
                "indexed": bool(texts),
            }
            texts = texts or [json.dumps(value, ensure_ascii=False)]
            documents.append(Document(source=source, texts=texts, metadata=[metadata] * len(texts)))
        if documents:
            stored(self._memory.remember(documents, dataset=self._dataset))

    def _texts(self, op: PutOp) -> list[str]:
        """The texts by which an item can be found; none if it is not indexed."""
        if op.index is False:
            return []
        fields = self._fields if op.index is None else op.index
        texts = (
            strings(op.value)
            if fields is None
            else (text for path in fields for text in get_text_at_path(op.value, path))
        )
        # Once each, in their order.
        return list(dict.fromkeys(text for text in texts if text.strip()))

    def _search(self, op: SearchOp) -> list[SearchItem]:
        _passes({}, op.filter)  # A filter that is wrong is no failure of the store.
        return self._turns.attempt("search", self._find, op) or []

    def _find(self, op: SearchOp) -> list[SearchItem]:
        end = op.offset + op.limit
        items = self._recalled(op, end) if op.query else self._listed(op)
        return list(islice(items, op.offset, end))

    def _listed(self, op: SearchOp) -> Iterator[SearchItem]:
        """Items of a namespace, those that were changed last first."""
        for fact in self._facts(_where(op)):
            item = _item(fact.metadata)
            if item.namespace[: len(op.namespace_prefix)] == op.namespace_prefix and _passes(item.value, op.filter):
                yield SearchItem(item.namespace, item.key, item.value, item.created_at, item.updated_at)

    def _recalled(self, op: SearchOp, wanted: int) -> list[SearchItem]:
        """The items that a query finds, by their best fact; more facts are recalled until there are enough items."""
        top_k = min(max(wanted, 1), MAX_TOP_K)
        while True:
            found = self._memory.recall(
                str(op.query), dataset=self._dataset, top_k=top_k, where={**_where(op), "indexed": True}
            )
            items = _best(found, op)
            if len(items) >= wanted or len(found) < top_k or top_k == MAX_TOP_K:
                return items
            top_k = min(top_k * 4, MAX_TOP_K)

    def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        conditions = op.match_conditions or ()
        found = {_namespace(fact.metadata) for fact in self._facts(_where_prefixed(conditions))}
        fitting = {name for name in found if all(_fits(name, condition) for condition in conditions)}
        cut = sorted({name[: op.max_depth] for name in fitting})
        return cut[op.offset : op.offset + op.limit]

    def _facts(self, where: Metadata) -> Iterator[Fact]:
        """One fact of each item that passes, the newest first."""
        seen: set[str | None] = set()
        for fact in every(self._page, where=where, newest_first=True):
            if fact.source not in seen:
                seen.add(fact.source)
                yield fact

    def _page(self, **options: Any) -> Page[Fact]:
        try:
            return self._memory.facts(dataset=self._dataset, **options)
        except NotFound:
            # Nothing was put yet.
            return Page(items=[], next_cursor=None)


def runtime_context() -> Any:
    """That of the run that this is part of, if it is part of one."""
    with suppress(RuntimeError, KeyError):
        return get_runtime().context
    return None


def _source(namespace: Namespace, key: str) -> str:
    return json.dumps([*namespace, key], ensure_ascii=False)


def _namespace(metadata: Metadata) -> Namespace:
    levels = metadata["namespace"]
    return tuple(levels[str(level)] for level in range(len(levels)))


def _item(metadata: Metadata) -> Item:
    return Item(
        value=metadata["value"],
        key=metadata["key"],
        namespace=_namespace(metadata),
        created_at=datetime.fromisoformat(metadata["created_at"]),
        updated_at=datetime.fromisoformat(metadata["updated_at"]),
    )


def _best(found: Recall, op: SearchOp) -> list[SearchItem]:
    best: dict[str | None, Hit] = {}
    for hit in found:
        best.setdefault(hit.source, hit)
    items = [HeedfulItem(_item(hit.metadata), hit.score, hit.fact_id, found.recall_id) for hit in best.values()]
    return [item for item in items if _passes(item.value, op.filter)]


def _where(op: SearchOp) -> Metadata:
    """The conditions that the store can filter by itself: the namespace, and values that have to be equal."""
    levels = {f"namespace.{level}": name for level, name in enumerate(op.namespace_prefix)}
    return levels | dict(_equal("value", op.filter or {})) | ITEMS


def _equal(path: str, wanted: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The conditions of a filter that mean the same to the store. Others don't: `$gt` also compares texts as numbers,
    and to the store a list equals each of its items, so `$ne` would leave some out."""
    for name, value in wanted.items():
        if "." in name:
            continue
        if isinstance(value, Mapping) and not any(inner.startswith("$") for inner in value):
            yield from _equal(f"{path}.{name}", value)
        exact = value.get("$eq") if isinstance(value, Mapping) else value
        if isinstance(exact, str | int | float | bool):
            yield f"{path}.{name}", exact


def _where_prefixed(conditions: Iterable[MatchCondition]) -> Metadata:
    """The labels that namespaces must begin with; those of a second condition are left to the adapter."""
    where: Metadata = {**ITEMS}
    for condition in conditions:
        if condition.match_type == "prefix":
            for level, name in enumerate(condition.path):
                if name != "*":
                    where.setdefault(f"namespace.{level}", name)
    return where


def _fits(namespace: Namespace, condition: MatchCondition) -> bool:
    path = condition.path
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    return len(part) == len(path) and all(wanted in ("*", name) for wanted, name in zip(path, part, strict=True))


def _passes(value: Any, wanted: Any) -> bool:
    """Whether a value has all that a filter says, by LangGraph's rules."""
    if wanted is None:
        return True
    return isinstance(value, Mapping) and all(_matches(value.get(name), each) for name, each in wanted.items())


def _matches(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(name.startswith("$") for name in wanted):
            return all(_compares(value, operator, each) for operator, each in wanted.items())
        return _passes(value, wanted)
    if isinstance(wanted, list | tuple):
        same_length = isinstance(value, list | tuple) and len(value) == len(wanted)
        return same_length and all(_matches(*pair) for pair in zip(value, wanted, strict=True))
    return bool(value == wanted)


def _compares(value: Any, operator: str, wanted: Any) -> bool:
    if operator == "$eq":
        return bool(value == wanted)
    if operator == "$ne":
        return bool(value != wanted)
    if operator not in ("$gt", "$gte", "$lt", "$lte"):
        raise ValueError(f"unsupported operator {operator!r}; use $eq, $ne, $gt, $gte, $lt or $lte")
    if value is None:
        return False
    number, limit = float(value), float(wanted)
    return {"$gt": number > limit, "$gte": number >= limit, "$lt": number < limit, "$lte": number <= limit}[operator]
