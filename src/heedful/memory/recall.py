"""Finding facts, ranking them, and keeping the receipt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sqlalchemy import Connection

from heedful.errors import Invalid
from heedful.ids import new_id, without_receipt
from heedful.memory import checks, stats, strengths
from heedful.memory.answer import LEARNT
from heedful.memory.browse import check_where
from heedful.memory.graph_recall import Expanded, GraphExpansion
from heedful.memory.recall_pages import MAX_SHOWN, read_cursor, write_cursor
from heedful.memory.usefulness import NO_FACTS, AdaptiveJudge, Context, DocumentedJudge, Judge
from heedful.memory.workspace import Workspace
from heedful.model import Hit, Metadata, Mode, PolicyName, Recall
from heedful.ranking.affinity import Neighbour, rivals
from heedful.ranking.evidence import explore
from heedful.ranking.policies import Candidate, Ranked
from heedful.ranking.signals import NEUTRAL
from heedful.search.copies import Copies, Distinct
from heedful.search.evidence import Match, View
from heedful.search.fusion import Found
from heedful.storage import external_ids, fact_expiry, facts, link_scores, receipts, scopes
from heedful.storage.facts import DisplayRow
from heedful.storage.filters import Allowed, selections
from heedful.storage.receipts import NewReceipt
from heedful.storage.rows import Direct
from heedful.storage.scopes import State, read_state
from heedful.storage.vectors import ModelRow, Vectors, pack

DIGITS = 6
"""Relevance is rounded to this many digits, so that the arithmetic of a score can be checked by hand."""

DEFAULT_POLICY: PolicyName = "adaptive"
"""The policy of a project that has set none."""

BLEND_POLICY: PolicyName = "documented"
"""The policy of a recall that asks for the boost, where none was set."""

SAME_QUESTION = 0.96
"""The similarity from which a rated question is the very one that is asked, and not only one that means the same."""

CLOSE = 1e-9
"""A score that is this close to the least that is asked for is enough."""


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """A recall whose arguments were checked."""

    query: str
    dataset: str
    top_k: int
    mode: Mode
    where: Metadata | None
    weight: float
    min_usefulness: float
    policy: PolicyName | None
    exploration: float
    seed: int | None
    explain: bool
    default_policy: PolicyName = DEFAULT_POLICY
    """What counts where neither this call nor the project names a policy."""
    external_id: str | None = None
    shown: tuple[int, ...] = ()
    """The facts of the pages before."""

    @property
    def question(self) -> list[Any]:
        """What the pages of a recall have in common."""
        return [self.query, self.dataset, self.mode, self.where]

    @property
    def boosted(self) -> bool:
        return self.weight > 0 or self.min_usefulness > 0


def check_request(
    query: str,
    dataset: str,
    top_k: int,
    mode: Mode,
    where: Metadata | None,
    boost_by_usefulness: bool | float | None,
    usefulness_weight: float,
    min_usefulness: float,
    policy: PolicyName | None,
    exploration: float,
    seed: int | None,
    explain: bool,
    external_id: str | None = None,
    cursor: str | None = None,
) -> RecallRequest:
    """The request behind the arguments of `recall`."""
    checks.mode(mode)
    weight = checks.fraction("usefulness_weight", usefulness_weight)
    least = checks.fraction("min_usefulness", min_usefulness)
    boost = checks.boost(boost_by_usefulness)
    if isinstance(boost, float):
        weight = boost
    if cursor is not None and external_id is not None:
        raise Invalid(
            "cursor can't be combined with external_id",
            field="external_id",
            value=external_id,
            remedy="A page is a recall of its own: name it by its recall_id in feedback",
        )
    request = RecallRequest(
        query=checks.query(query),
        dataset=checks.name("dataset", dataset),
        top_k=checks.top_k(top_k),
        mode=mode,
        where=check_where(where),
        weight=0.0 if boost is False else weight,
        min_usefulness=0.0 if boost is False else least,
        policy=None if policy is None else checks.policy(policy),
        exploration=checks.fraction("exploration", exploration),
        seed=checks.seed(seed),
        explain=checks.flag("explain", explain),
        default_policy=DEFAULT_POLICY if boost is None or boost is False else BLEND_POLICY,
        external_id=None if external_id is None else checks.external_id(external_id),
    )
    if cursor is None:
        return request
    return replace(request, shown=tuple(read_cursor(request.question, checks.identifier("cursor", cursor))))


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a search came to, and what its receipt needs."""

    hits: list[Hit]
    policy: PolicyName
    vector: Vectors | None
    links: dict[str, list[str]] = field(default_factory=dict)
    """The links that carried a hit, by its fact."""
    propensity: float = 1.0
    """The probability that the last fact was shown at its rank."""
    facts: tuple[int, ...] = ()
    """The numbers of the hits."""


def recall(workspace: Workspace, request: RecallRequest, *, keep: bool = False, quiet: bool = False) -> Recall:
    """The best facts for a query, under a receipt that feedback can name later; `keep` it, whatever share is kept.
    With `quiet`, there is none: somebody only looks. With an external id that was used, what was shown then."""
    earlier = None if request.external_id is None else _earlier(workspace, request, request.external_id)
    if earlier is not None:
        return earlier
    keep = keep or (request.external_id is not None and not workspace.database.read_only)
    vector = workspace.embed([request.query])[0] if request.mode != "lexical" else None
    recall_id = new_id()
    if request.mode == "graph":
        workspace.link(request.dataset)
    with workspace.direct(write=False) as direct:
        connection = direct.connection
        state = read_state(direct, workspace.project, request.dataset)
        model = workspace.fitting(state.model)
        dataset = workspace.existing(connection, request.dataset, state.dataset)
        if model is None or dataset is None:
            outcome = _Outcome([], request.policy or request.default_policy, vector)
        else:
            outcome = _search(workspace, direct, request, state, dataset, model, vector, recall_id)
    workspace.keep_vectors()
    sampled = _sample(recall_id, workspace.receipt_share) and not workspace.database.read_only
    if dataset is None:
        # Looking into a dataset that is not there makes none, so there is nothing to keep a receipt in.
        recall_id = without_receipt(recall_id)
    with_receipt = dataset is not None and (keep or (sampled and not quiet))
    if with_receipt and dataset is not None:
        _write_receipt(workspace, request, recall_id, dataset, model, outcome)
        # Another call may have used the external id meanwhile.
        earlier = None if request.external_id is None else _earlier(workspace, request, request.external_id)
        if earlier is not None and earlier.recall_id != recall_id:
            return earlier
    return Recall(
        recall_id=recall_id,
        query=request.query,
        dataset=request.dataset,
        mode=request.mode,
        policy=outcome.policy,
        hits=outcome.hits,
        receipt=with_receipt,
        next_cursor=_next_cursor(request, outcome.facts),
    )


def was_rated(workspace: Workspace, query: str, dataset: str) -> bool:
    """Whether facts were judged for this very question."""
    vector = workspace.embed([query])[0]
    with workspace.direct(write=False) as direct:
        state = read_state(direct, workspace.project, dataset)
        model = workspace.fitting(state.model)
        number = workspace.existing(direct.connection, dataset, state.dataset)
        if model is None or number is None or not state.event:
            return False
        matches = workspace.contexts(direct.connection, number, model, state.event).matches(query, vector)
    return any(match.similarity >= SAME_QUESTION for match in matches)


def _next_cursor(request: RecallRequest, page: Sequence[int]) -> str | None:
    shown = {*request.shown, *page}
    if len(page) < request.top_k or len(shown) >= MAX_SHOWN:
        return None
    return write_cursor(request.question, shown)


def _earlier(workspace: Workspace, request: RecallRequest, external_id: str) -> Recall | None:
    """The recall that was first sent with an external id, from its receipt; forgotten facts are left out."""
    with workspace.direct(write=False) as direct:
        receipt = receipts.external(direct.connection, workspace.project, external_id)
        if receipt is None:
            return None
        if (receipt.dataset, receipts.digest(receipt.query)) != (request.dataset, receipts.digest(request.query)):
            raise checks.external_id_reused(external_id, "recall")
        places = facts.locate(direct.connection, workspace.project, [line[0] for line in receipt.shown])
        rows = facts.display_rows(direct, [seq for seq, _ in places.values()])
    hits = [
        Hit(
            fact_id=line[0],
            text=row.text,
            score=line[1],
            relevance=line[2],
            usefulness=line[3],
            usefulness_source=line[4],
            metadata=row.metadata,
            source=row.source,
            position=(row.start, row.stop),
            rank=rank,
        )
        for rank, line in enumerate(receipt.shown, start=1)
        if line[0] in places and (row := rows.get(places[line[0]][0])) is not None
    ]
    return Recall(
        recall_id=receipt.id,
        query=request.query,
        dataset=receipt.dataset,
        mode=receipt.mode,
        policy=receipt.policy,
        hits=hits,
        next_cursor=_next_cursor(request, [seq for seq, _ in places.values()]),
    )


def _sample(recall_id: str, share: float) -> bool:
    """Whether a recall is among the share whose receipts are kept: by its id, whose end is random."""
    return share >= 1 or int(recall_id[-8:], 16) < share * 2**32


def _search(
    workspace: Workspace,
    direct: Direct,
    request: RecallRequest,
    state: State,
    dataset: int,
    model: ModelRow,
    vector: Vectors | None,
    recall_id: str,
) -> _Outcome:
    connection = direct.connection
    matches: list[Match] = []
    nearest: Iterable[Neighbour] = ()
    judged = NO_FACTS
    if state.event:
        if vector is None:
            vector = workspace.embed([request.query])[0]
        known = workspace.contexts(connection, dataset, model, state.event)
        (matches, nearest), judged = known.near(request.query, vector), known.judged
    policy = checks.policy(request.policy or state.policy or request.default_policy)
    now = workspace.now()
    judge: Judge
    if policy == "adaptive":
        view = View(connection, state.event, state.change)
        evidence = workspace.evidence(dataset)
        judge = AdaptiveJudge(view, evidence, model, vector, matches, nearest, now)
        if evidence.wants_fit():
            strengths.fit_soon(workspace, dataset)
        context = judge.context
    else:
        context = Context(matches)
        judge = DocumentedJudge(connection, workspace.overall(dataset), state.event, context, now, judged)
    index = workspace.index(connection, dataset, model)
    index.follow(connection, state.change)
    has_expired = state.first_end is not None and state.first_end <= now
    expired = fact_expiry.expired(connection, dataset, now) if has_expired else []
    allowed = _filter(request, dataset, judge, [*expired, *request.shown])
    also = judge.proven() if request.boosted else []
    distinct = Distinct(judged, request.shown)
    if isinstance(judge, AdaptiveJudge) and (request.min_usefulness or request.shown):
        # What is not asked for, or was shown before, is still what others are held against.
        everything = Allowed([] if request.where is None else selections(dataset, request.where), without=expired)
        mode: Mode = "hybrid" if request.mode == "graph" else request.mode
        best = index.search(
            connection, request.query, vector, mode, everything, [], 2 * request.top_k, distinct=Distinct(judged)
        )
        rounded = np.round(best.relevance.astype(np.float64), DIGITS).tolist()
        judge.first = rivals(dict(zip(best.facts.tolist(), rounded, strict=True)))
    if request.mode == "graph":
        graph = workspace.graph(dataset)
        graph.follow(connection, state.change)
        expansion = GraphExpansion(
            connection, graph, dataset, request.query, request.weight if state.event else 0.0, now
        )
        found = index.search(
            connection, request.query, vector, "hybrid", allowed, also, 2 * request.top_k, expansion.expand, distinct
        )
        expanded = expansion.take(found)
    else:
        found = index.search(
            connection, request.query, vector, request.mode, allowed, also, 2 * request.top_k, distinct=distinct
        )
        expanded = Expanded(found)
    ranked, propensity = _rank(request, expanded.found, judge, recall_id)
    rows = facts.display_rows(direct, [each.fact for each in ranked])
    corrected = _corrections(connection, dataset, rows, allowed, now)
    if corrected:
        ranked = _correct(request, expanded.found, judge, ranked, corrected)
        rows = facts.display_rows(direct, [each.fact for each in ranked])
    hits = _hits(direct, request, expanded, ranked, rows, corrected, found.copies, context, policy)
    found_facts = tuple(each.fact for each in ranked)
    return _Outcome(hits, policy, vector, _path_links(connection, expanded, ranked), propensity, found_facts)


def _filter(request: RecallRequest, dataset: int, judge: Judge, without: list[int]) -> Allowed:
    """All but what has expired or was shown that passes the filter and is useful enough; none of it is lost behind the
    others."""
    where = [] if request.where is None else selections(dataset, request.where)
    if not request.min_usefulness:
        return Allowed(where, without=without)
    least = request.min_usefulness - CLOSE
    judged, passing = judge.might_reach(least)
    if least > NEUTRAL:
        return Allowed(where, only=judged[passing].tolist(), without=without)
    return Allowed(where, without=[*judged[~passing].tolist(), *without])


def _rank(request: RecallRequest, found: Found, judge: Judge, recall_id: str) -> tuple[list[Ranked], float]:
    relevance = np.round(found.relevance.astype(np.float64), DIGITS)
    order = np.lexsort((found.facts, -relevance))
    if not request.boosted and not request.exploration:
        order = order[: request.top_k]
    elif not request.exploration:
        order = order[judge.contenders(found.facts[order], request.top_k)]
    candidates = [
        Candidate(fact, own) for fact, own in zip(found.facts[order].tolist(), relevance[order].tolist(), strict=True)
    ]
    ranked = judge.rank(candidates, request.weight)
    if request.min_usefulness:
        ranked = [each for each in ranked if each.usefulness.value >= request.min_usefulness - CLOSE]
    if not request.exploration:
        return ranked[: request.top_k], 1.0
    seed = request.seed if request.seed is not None else int(recall_id.replace("-", ""), 16)
    known = [each.usefulness.source in ("context", "related") for each in ranked]
    places, propensity = explore(range(len(ranked)), known, request.top_k, request.exploration, seed)
    return [ranked[place] for place in places[: request.top_k]], propensity


def _corrections(
    connection: Connection, dataset: int, rows: Mapping[int, DisplayRow], allowed: Allowed, now: int
) -> dict[int, tuple[int, str]]:
    """(number, id) of the fact that corrects a fact, or what it was learnt from, by its number."""
    sources = {
        seq: [row.id, *(facts.sources(row.metadata) if row.metadata.get(LEARNT) == "answer" else ())]
        for seq, row in rows.items()
    }
    named = [source for ids in sources.values() for source in ids]
    found = facts.corrections(connection, dataset, named, allowed.where, now) if named else {}
    return {
        seq: correction
        for seq, ids in sources.items()
        if (correction := next((found[source] for source in ids if source in found), None)) is not None
    }


def _correct(
    request: RecallRequest, found: Found, judge: Judge, ranked: list[Ranked], corrected: Mapping[int, tuple[int, str]]
) -> list[Ranked]:
    """The ranking with each correction directly before the first fact that it corrects, unless it is before it."""
    known = {each.fact: each for each in ranked}
    missing = np.isin(found.facts, [seq for seq, _ in corrected.values() if seq not in known])
    relevance = np.round(found.relevance[missing].astype(np.float64), DIGITS).tolist()
    candidates = [Candidate(*each) for each in zip(found.facts[missing].tolist(), relevance, strict=True)]
    known |= {each.fact: each for each in judge.rank(candidates, request.weight)}
    placed: dict[int, Ranked] = {}

    def place(fact: int, after: tuple[int, ...] = ()) -> None:
        if fact in known and fact not in placed and fact not in after:
            if fact in corrected:
                place(corrected[fact][0], (*after, fact))
            placed[fact] = known[fact]

    for each in ranked:
        place(each.fact)
    return list(placed.values())[: request.top_k]


def _hits(
    direct: Direct,
    request: RecallRequest,
    expanded: Expanded,
    ranked: list[Ranked],
    rows: Mapping[int, DisplayRow],
    corrected: Mapping[int, tuple[int, str]],
    copies: Mapping[int, Copies],
    context: Context,
    policy: PolicyName,
) -> list[Hit]:
    hits = []
    repeated = {each.fact: copies[each.fact] for each in ranked if each.fact in copies}
    others = facts.display_rows(direct, [seq for each in repeated.values() for seq in each.facts])
    for rank, each in enumerate((each for each in ranked if each.fact in rows), start=1):
        row = rows[each.fact]
        same = (
            [row, *(others[seq] for seq in repeated[each.fact].facts if seq in others)] if each.fact in repeated else []
        )
        explanation = None
        if request.explain:
            explanation = stats.explanation(direct.connection, expanded, each, context, policy, request.weight)
        hits.append(
            Hit(
                fact_id=row.id,
                text=row.text,
                score=each.score,
                relevance=each.relevance,
                usefulness=each.usefulness.value,
                usefulness_source=each.usefulness.source,
                metadata=row.metadata,
                source=row.source,
                position=(row.start, row.stop),
                rank=rank,
                copies=repeated[each.fact].count if same else 0,
                sources=list(dict.fromkeys(one.source for one in same if one.source is not None)),
                corrected_by=corrected[each.fact][1] if each.fact in corrected else None,
                explanation=explanation,
            )
        )
    return hits


def _path_links(connection: Connection, expanded: Expanded, ranked: list[Ranked]) -> dict[str, list[str]]:
    """The links of the path to each hit that was reached by one: the hit's own, then that of the fact it came from."""
    paths = {each.fact: expanded.paths[each.fact] for each in ranked if each.fact in expanded.paths}
    if not paths:
        return {}
    ids = facts.ids(connection, [*paths, *(path.seed for path in paths.values() if path.seed is not None)])
    return {
        ids[fact]: [link_scores.target(ids[end], path.entity) for end in (fact, path.seed) if end in ids]
        for fact, path in paths.items()
        if fact in ids
    }


def _line(hit: Hit, propensity: float, links: dict[str, list[str]]) -> receipts.Line:
    line = (hit.fact_id, hit.score, hit.relevance, hit.usefulness, hit.usefulness_source, propensity)
    return (*line, links[hit.fact_id]) if hit.fact_id in links else line


def _write_receipt(
    workspace: Workspace,
    request: RecallRequest,
    recall_id: str,
    dataset: int,
    model: ModelRow | None,
    outcome: _Outcome,
) -> None:
    """Writes the receipt; a dataset that was forgotten meanwhile gets none."""
    shown = [_line(hit, 1.0, outcome.links) for hit in outcome.hits]
    if outcome.propensity != 1.0:
        shown[-1] = _line(outcome.hits[-1], outcome.propensity, outcome.links)
    model_id, vector = None, None
    if outcome.vector is not None and model is not None:
        model_id, vector = model.id, pack(outcome.vector)
    with workspace.direct(write=True, durable=False, exclusive=False) as direct:
        now = workspace.now()
        if request.external_id is not None:
            project = scopes.owner(direct.connection, dataset)
            taken = external_ids.add(direct.connection, project, "recall", request.external_id, recall_id, now)
            if taken != recall_id:
                return
        query = receipts.ensure_query(direct, dataset, request.query, model_id, vector)
        if query is not None:
            receipts.add(
                direct,
                NewReceipt(recall_id, dataset, query, request.mode, outcome.policy, request.weight, now, shown),
            )
