"""Finding facts, ranking them, and keeping the receipt."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection

from heedful.ids import new_id
from heedful.index.dataset import Found
from heedful.learning.decay import NEUTRAL
from heedful.learning.policies import Usefulness
from heedful.memory import checks, explain
from heedful.memory.usefulness import POLICY, Context, assess, context_of, proven
from heedful.memory.workspace import Workspace
from heedful.model import Hit, Metadata, Mode, Recall
from heedful.storage import facts, queries, receipts
from heedful.storage.filters import selections
from heedful.storage.receipts import NewReceipt
from heedful.storage.vectors import ModelRow, Vectors, pack

DIGITS = 6
"""Relevance is rounded to this many digits, so that the arithmetic of a score can be checked by hand."""


@dataclass(frozen=True, slots=True)
class Request:
    """A recall whose arguments were checked."""

    query: str
    dataset: str
    top_k: int
    mode: Mode
    where: Metadata | None
    weight: float
    min_usefulness: float
    explain: bool

    @property
    def boosted(self) -> bool:
        return self.weight > 0 or self.min_usefulness > 0


def checked(
    query: str,
    dataset: str,
    top_k: int,
    mode: Mode,
    where: Metadata | None,
    boost_by_usefulness: bool,
    usefulness_weight: float,
    min_usefulness: float,
    explain: bool,
) -> Request:
    """The request behind the arguments of `recall`."""
    checks.mode(mode)
    weight = checks.fraction("usefulness_weight", usefulness_weight)
    least = checks.fraction("min_usefulness", min_usefulness)
    return Request(
        query=checks.query(query),
        dataset=checks.name("dataset", dataset),
        top_k=checks.top_k(top_k),
        mode=mode,
        where=None if where is None else checks.metadata("where", where),
        weight=weight if boost_by_usefulness else 0.0,
        min_usefulness=least if boost_by_usefulness else 0.0,
        explain=explain,
    )


@dataclass(frozen=True, slots=True)
class _Candidate:
    seq: int
    place: int
    relevance: float
    usefulness: Usefulness
    score: float


def recall(workspace: Workspace, request: Request) -> Recall:
    """The best facts for a query, under a receipt that feedback can name later."""
    vector = workspace.embed([request.query])[0] if request.mode != "lexical" else None
    with workspace.database.read() as connection:
        model = workspace.model(connection)
        dataset = workspace.dataset(connection, request.dataset)
        recall_id = new_id()
        if model is None or dataset is None:
            return Recall(recall_id=recall_id, query=request.query, dataset=request.dataset, mode=request.mode, hits=[])
        hits, vector = _search(workspace, connection, request, dataset, model, vector)
    _keep(workspace, request, recall_id, dataset, model, vector, hits)
    return Recall(recall_id=recall_id, query=request.query, dataset=request.dataset, mode=request.mode, hits=hits)


def _search(
    workspace: Workspace,
    connection: Connection,
    request: Request,
    dataset: int,
    model: ModelRow,
    vector: Vectors | None,
) -> tuple[list[Hit], Vectors | None]:
    allowed = None
    if request.where:
        allowed = facts.matching(connection, selections(dataset, request.where))
    context = Context()
    if workspace.has_signals(connection, dataset):
        if vector is None:
            vector = workspace.embed([request.query])[0]
        context = context_of(workspace, connection, dataset, model, request.query, vector)
    index = workspace.index(dataset, model)
    index.follow(connection)
    also = proven(connection, dataset, context) if request.boosted else []
    found = index.search(request.query, vector, request.mode, allowed, also, 2 * request.top_k)
    now = workspace.now()
    ranked = _ranked(connection, request, found, context, now)
    rows = facts.by_seq(connection, [candidate.seq for candidate in ranked])
    hits = []
    for rank, candidate in enumerate((each for each in ranked if each.seq in rows), start=1):
        row = rows[candidate.seq]
        explanation = None
        if request.explain:
            explanation = explain.explanation(
                connection, found, candidate.place, candidate.usefulness, context, request.weight, candidate.seq, now
            )
        hits.append(
            Hit(
                fact_id=row.id,
                text=row.text,
                score=candidate.score,
                relevance=candidate.relevance,
                usefulness=candidate.usefulness.value,
                usefulness_source=candidate.usefulness.source,
                metadata=row.metadata,
                source=row.source,
                position=(row.start, row.stop),
                rank=rank,
                explanation=explanation,
            )
        )
    return hits, vector


def _ranked(connection: Connection, request: Request, found: Found, context: Context, now: int) -> list[_Candidate]:
    relevance = np.round(found.relevance.astype(np.float64), DIGITS)
    order = np.lexsort((found.facts, -relevance))
    if not request.boosted:
        order = order[: request.top_k]
    seqs = found.facts[order].tolist()
    known = assess(connection, seqs, context, now) if seqs else {}
    candidates = []
    for place, seq in zip(order.tolist(), seqs, strict=True):
        usefulness = known.get(seq, Usefulness(NEUTRAL, "neutral"))
        if usefulness.value < request.min_usefulness:
            continue
        own = float(relevance[place])
        score = POLICY.blend(own, usefulness.value, request.weight)
        candidates.append(_Candidate(seq, place, own, usefulness, score))
    candidates.sort(key=lambda candidate: (-candidate.score, candidate.seq))
    return candidates[: request.top_k]


def _keep(
    workspace: Workspace,
    request: Request,
    recall_id: str,
    dataset: int,
    model: ModelRow,
    vector: Vectors | None,
    hits: list[Hit],
) -> None:
    shown: list[receipts.Line] = [
        (hit.fact_id, hit.score, hit.relevance, hit.usefulness, hit.usefulness_source) for hit in hits
    ]
    known = {} if vector is None else {request.query: (model.id, pack(vector))}
    with workspace.database.write(durable=False) as connection:
        query = queries.find(connection, dataset, request.query)
        if query is None:
            query = queries.ensure(workspace.database, connection, dataset, [request.query], known)[request.query]
        receipts.add(connection, NewReceipt(recall_id, dataset, query, request.mode, workspace.now(), shown))
