"""Finding facts, ranking them, and keeping the receipt."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from sqlalchemy import Connection

from heedful.api import checks
from heedful.clock import new_id, without_receipt
from heedful.errors import Invalid
from heedful.ledger import events, receipts, scores, strengths
from heedful.ledger.adaptive_policy import Neighbour, rivals
from heedful.ledger.contexts import Match
from heedful.ledger.fold_cache import View, folds_of
from heedful.ledger.ranking_policy import (
    AdaptiveJudge,
    Context,
    DocumentedJudge,
    Facts,
    Judge,
    effective_policy,
    explore,
    no_facts,
)
from heedful.ledger.receipts import NewReceipt, ShownFact
from heedful.ledger.usefulness import Candidate, Ranked, Usefulness
from heedful.memory import fact_stats
from heedful.memory.answer import LEARNT
from heedful.memory.graph_recall import Expanded, GraphExpansion
from heedful.model import MODES, Hit, Metadata, Mode, PolicyName, Recall, limits
from heedful.model.base import NEUTRAL
from heedful.search.relevance import Copies, Distinct, Found, Search
from heedful.storage import external_ids, facts, scopes
from heedful.storage.facts import DisplayRow
from heedful.storage.filters import Allowed, conditions, selections
from heedful.storage.rows import Direct
from heedful.storage.scopes import State, read_state
from heedful.storage.vectors import ModelRow, Vectors, pack
from heedful.workspace import Workspace

DIGITS = 6  # Relevance is rounded to this many digits, so that the arithmetic of a score can be checked by hand.

SAME_QUESTION = 0.96
"""The similarity from which a rated question is the very one that is asked, and not only one that means the same."""

CLOSE = 1e-9  # A score that is this close to the least that is asked for is enough.


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
    asks_for_boost: bool = False
    """Whether the caller asked for the boost, by a flag or a weight."""
    external_id: str | None = None
    shown: tuple[int, ...] = ()
    """The facts of the pages before."""
    held_out: tuple[str, ...] | None = None
    """Queries whose votes don't count, with those that mean the same as the one asked; None where all count."""

    @property
    def question(self) -> list[Any]:
        """The part that the pages of a recall have in common."""
        return [self.query, self.dataset, self.mode, self.where]

    @property
    def boosted(self) -> bool:
        return self.weight > 0 or self.min_usefulness > 0


def check_where(value: Any) -> Metadata | None:
    """A filter of metadata, if it says anything and can be understood."""
    if value is None:
        return None
    checked = checks.metadata("where", value, limits.MAX_WHERE)
    for _ in conditions(checked):
        pass
    return checked or None


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
    feedback_influence: float | None = None,
) -> RecallRequest:
    """The request behind the arguments of `recall`."""
    if feedback_influence is not None:
        usefulness_weight = checks.fraction("feedback_influence", feedback_influence)
        boost_by_usefulness = usefulness_weight > 0
    checks.one_of("mode", mode, MODES)
    weight = checks.fraction("usefulness_weight", usefulness_weight)
    least = checks.fraction("min_usefulness", min_usefulness)
    boost = checks.boost(boost_by_usefulness)
    if isinstance(boost, float):
        weight = boost
    if cursor is not None and external_id is not None:
        message = "cursor can't be combined with external_id"
        remedy = "Each page is a separate recall: name it by its recall_id in feedback"
        raise Invalid(message, field="external_id", value=external_id, remedy=remedy)
    request = RecallRequest(
        query=checks.query(query),
        dataset=checks.name("dataset", dataset),
        top_k=top_k,
        mode=mode,
        where=check_where(where),
        weight=0.0 if boost is False else weight,
        min_usefulness=0.0 if boost is False else least,
        policy=None if policy is None else checks.policy(policy),
        exploration=checks.fraction("exploration", exploration),
        seed=checks.seed(seed),
        explain=checks.flag("explain", explain),
        asks_for_boost=boost is not None and boost is not False,
        external_id=None if external_id is None else checks.name("external_id", external_id),
    )
    if cursor is None:
        return request
    return replace(request, shown=tuple(read_cursor(request.question, checks.identifier("cursor", cursor))))


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The result of a search, and the values that its receipt needs."""

    hits: list[Hit]
    policy: PolicyName
    vector: Vectors | None
    links: dict[str, list[str]] = field(default_factory=dict)
    """The links that carried a hit, by its fact."""
    propensity: float = 1.0
    """The probability that the last fact was shown at its rank."""
    facts: tuple[int, ...] = ()
    """The numbers of the hits."""


def recall(
    workspace: Workspace,
    request: RecallRequest,
    *,
    keep: bool = False,
    quiet: bool = False,
    vector: Vectors | None = None,
) -> Recall:
    """The best facts for a query, under a receipt that feedback can name later; `keep` it, whatever share is kept.
    With `quiet`, there is none: somebody only looks. With an external id that was used, those shown then. `vector` is
    that of the query, where it is known."""
    earlier = None if request.external_id is None else _earlier(workspace, request, request.external_id)
    if earlier is not None:
        return earlier
    keep = keep or (request.external_id is not None and not workspace.database.read_only)
    if vector is None and request.mode != "lexical":
        vector = workspace.embed([request.query])[0]
    recall_id = new_id()
    if request.mode == "graph":
        workspace.link(request.dataset)
    with workspace.direct(write=False) as direct:
        connection = direct.connection
        state = read_state(direct, request.dataset)
        model = workspace.fitting(state.model)
        dataset = workspace.existing(connection, request.dataset, state.dataset)
        if model is None or dataset is None:
            outcome = _Outcome([], effective_policy(request.policy, None, request.asks_for_boost), vector)
        else:
            outcome = _search(workspace, direct, request, state, dataset, model, vector, recall_id)
    folds_of(workspace).keep_vectors()
    # By its id, whose end is random.
    sampled = workspace.receipt_share >= 1 or int(recall_id[-8:], 16) < workspace.receipt_share * 2**32
    sampled = sampled and not workspace.database.read_only
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
        state = read_state(direct, dataset)
        model = workspace.fitting(state.model)
        number = workspace.existing(direct.connection, dataset, state.dataset)
        if model is None or number is None or not state.event:
            return False
        matches, _ = folds_of(workspace).contexts(direct.connection, number, model, state.event).near(query, vector)
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
        if (receipt.dataset, events.query_digest(receipt.query)) != (
            request.dataset,
            events.query_digest(request.query),
        ):
            raise checks.external_id_reused(external_id, "recall")
        places = facts.locate(direct.connection, [fact.fact_id for fact in receipt.shown])
        rows = facts.display_rows(direct, [seq for seq, _ in places.values()])
    hits = [
        _hit(row, rank, fact.score, fact.relevance, Usefulness(fact.usefulness, fact.usefulness_source))
        for rank, fact in enumerate(receipt.shown, start=1)
        if fact.fact_id in places and (row := rows.get(places[fact.fact_id][0])) is not None
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


def _hit(row: DisplayRow, rank: int, score: float, relevance: float, usefulness: Usefulness, **details: Any) -> Hit:
    return Hit(
        fact_id=row.id,
        text=row.text,
        score=score,
        relevance=relevance,
        usefulness=usefulness.value,
        usefulness_source=usefulness.source,
        metadata=row.metadata,
        source=row.source,
        position=(row.start, row.stop),
        rank=rank,
        **details,
    )


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
    judged: Callable[[], Facts] = no_facts
    if state.event:
        if vector is None:
            vector = workspace.embed([request.query])[0]
        known = folds_of(workspace).contexts(connection, dataset, model, state.event)
        matches, nearest = known.near(request.query, vector)
        judged = partial(known.judged, connection, state.event)
    held_out: set[int] = set()
    if request.held_out is not None:
        held_out = {match.query_id for match in matches} | events.query_numbers(connection, dataset, request.held_out)
        matches, nearest = [], (near for near in nearest if near.query not in held_out)
    policy = effective_policy(request.policy, state.policy, request.asks_for_boost)
    now = workspace.now()
    index = workspace.index(connection, dataset, model)
    index.follow(connection, state.change)
    judge: Judge
    if policy == "adaptive":
        view = View(connection, state.event, state.change)
        evidence = folds_of(workspace).evidence(dataset)
        judge = AdaptiveJudge(view, evidence, partial(index.vectors_of, connection), vector, matches, nearest, now)
        if evidence.wants_fit():
            strengths.fit_soon(workspace, dataset)
        context = judge.context
    else:
        context = Context(matches)
        overall = folds_of(workspace).overall(dataset)
        judge = DocumentedJudge(connection, overall, state.event, context, now, judged(), sorted(held_out))
    has_expired = state.first_end is not None and state.first_end <= now
    expired = facts.expired(connection, dataset, now) if has_expired else []
    allowed = _filter(request, dataset, judge, [*expired, *request.shown])
    also = judge.proven() if request.boosted else []
    mode: Mode = "hybrid" if request.mode == "graph" else request.mode
    distinct = Distinct(judged, request.shown)
    search = Search(request.query, vector, mode, 2 * request.top_k, allowed, also, distinct=distinct)
    if isinstance(judge, AdaptiveJudge) and (request.min_usefulness or request.shown):
        # Facts that are not asked for, or were shown before, are still what others are held against.
        everything = Allowed([] if request.where is None else selections(dataset, request.where), without=expired)
        best = index.search(connection, replace(search, allowed=everything, also=(), distinct=Distinct(judged)))
        judge.first = rivals(dict(zip(best.facts.tolist(), _rounded(best).tolist(), strict=True)))
    if request.mode == "graph":
        graph = workspace.graph(dataset)
        graph.follow(connection, state.change)
        weight = request.weight if state.event else 0.0
        expansion = GraphExpansion(connection, graph, dataset, request.query, weight, now)
        found = index.search(connection, replace(search, expand=expansion.expand))
        expanded = expansion.take(found)
    else:
        found = index.search(connection, search)
        expanded = Expanded(found)
    ranked, propensity = _rank(request, expanded.found, judge, recall_id)
    rows = facts.display_rows(direct, [line.fact for line in ranked])
    corrected = _corrections(direct, dataset, rows, allowed, now) if state.corrects else {}
    if corrected:
        ranked = _correct(request, expanded.found, judge, ranked, corrected)
        rows = facts.display_rows(direct, [line.fact for line in ranked])
    hits = _hits(direct, request, expanded, ranked, rows, corrected, found.copies, context, policy)
    links = _path_links(connection, expanded, ranked)
    return _Outcome(hits, policy, vector, links, propensity, tuple(line.fact for line in ranked))


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
    relevance = _rounded(found)
    order = np.lexsort((found.facts, -relevance))
    if not request.boosted and not request.exploration:
        order = order[: request.top_k]
    elif not request.exploration:
        order = order[judge.contenders(found.facts[order], request.top_k)]
    ranked = judge.rank(_candidates(found.facts[order], relevance[order]), request.weight)
    if request.min_usefulness:
        ranked = [line for line in ranked if line.usefulness.value >= request.min_usefulness - CLOSE]
    if not request.exploration:
        return ranked[: request.top_k], 1.0
    seed = request.seed if request.seed is not None else int(recall_id.replace("-", ""), 16)
    known = [line.usefulness.source in ("context", "related") for line in ranked]
    places, propensity = explore(range(len(ranked)), known, request.top_k, request.exploration, seed)
    return [ranked[place] for place in places[: request.top_k]], propensity


def _rounded(found: Found) -> NDArray[np.float64]:
    return found.relevance.astype(np.float64).round(DIGITS)


def _candidates(numbers: NDArray[np.int64], relevance: NDArray[np.float64]) -> list[Candidate]:
    return list(map(Candidate, numbers.tolist(), relevance.tolist()))


def _corrections(
    direct: Direct, dataset: int, rows: Mapping[int, DisplayRow], allowed: Allowed, now: int
) -> dict[int, tuple[int, str]]:
    """(number, id) of the fact that corrects a fact, or what it was learnt from, by its number."""
    sources = {
        seq: [row.id, *(facts.sources(row.metadata) if row.metadata.get(LEARNT) == "answer" else ())]
        for seq, row in rows.items()
    }
    named = [source for ids in sources.values() for source in ids]
    corrections = facts.corrections(direct, dataset, named, allowed.where, now) if named else {}
    return {
        seq: correction
        for seq, ids in sources.items()
        if (correction := next((corrections[source] for source in ids if source in corrections), None)) is not None
    }


def _correct(
    request: RecallRequest, found: Found, judge: Judge, ranked: list[Ranked], corrected: Mapping[int, tuple[int, str]]
) -> list[Ranked]:
    """The ranking with each correction directly before the first fact that it corrects, unless it is before it."""
    known = {line.fact: line for line in ranked}
    missing = np.isin(found.facts, [seq for seq, _ in corrected.values() if seq not in known])
    candidates = _candidates(found.facts[missing], _rounded(found)[missing])
    known |= {line.fact: line for line in judge.rank(candidates, request.weight)}
    placed: dict[int, Ranked] = {}

    def place(fact: int, after: tuple[int, ...] = ()) -> None:
        if fact in known and fact not in placed and fact not in after:
            if fact in corrected:
                place(corrected[fact][0], (*after, fact))
            placed[fact] = known[fact]

    for line in ranked:
        place(line.fact)
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
    repeated = {line.fact: copies[line.fact] for line in ranked if line.fact in copies}
    others = facts.display_rows(direct, [seq for same in repeated.values() for seq in same.facts])
    for rank, line in enumerate((line for line in ranked if line.fact in rows), start=1):
        row, details = rows[line.fact], dict[str, Any]()
        if line.fact in repeated:
            same = repeated[line.fact]
            of_copies = [row, *(others[seq] for seq in same.facts if seq in others)]
            sources = dict.fromkeys(copy.source for copy in of_copies if copy.source is not None)
            details |= {"copies": same.count, "sources": list(sources)}
        if line.fact in corrected:
            details["corrected_by"] = corrected[line.fact][1]
        if request.explain:
            weight = request.weight
            explained = fact_stats.explanation(direct.connection, expanded, line, context, policy, weight)
            details["explanation"] = explained
        hits.append(_hit(row, rank, line.score, line.relevance, line.usefulness, **details))
    return hits


def _path_links(connection: Connection, expanded: Expanded, ranked: list[Ranked]) -> dict[str, list[str]]:
    """The links of the path to each hit that was reached by one: the hit's own, then that of the fact it came from."""
    paths = {line.fact: expanded.paths[line.fact] for line in ranked if line.fact in expanded.paths}
    if not paths:
        return {}
    ids = facts.ids(connection, [*paths, *(path.seed for path in paths.values() if path.seed is not None)])
    return {
        ids[fact]: [scores.link_name(ids[end], path.entity) for end in (fact, path.seed) if end in ids]
        for fact, path in paths.items()
        if fact in ids
    }


def _write_receipt(
    workspace: Workspace,
    request: RecallRequest,
    recall_id: str,
    dataset: int,
    model: ModelRow | None,
    outcome: _Outcome,
) -> None:
    """Writes the receipt; a dataset that was forgotten meanwhile gets none."""
    shown = [
        ShownFact(
            *(hit.fact_id, hit.score, hit.relevance, hit.usefulness, hit.usefulness_source),
            propensity=outcome.propensity if hit is outcome.hits[-1] else 1.0,
            links=outcome.links.get(hit.fact_id, ()),
        )
        for hit in outcome.hits
    ]
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
        query = events.ensure_query(direct, dataset, request.query, model_id, vector)
        if query is not None:
            receipts.add(
                direct, NewReceipt(recall_id, dataset, query, request.mode, outcome.policy, request.weight, now, shown)
            )


MAX_SHOWN = 1_000  # Facts that the pages of one recall show in all.

_DIGEST = 8


def write_cursor(question: Sequence[Any], shown: Collection[int]) -> str:
    """Where the next page begins, after the facts with these numbers; `question` is what the pages have in common."""
    packed = bytearray(_fingerprint(question))
    last = 0
    for number in sorted(shown):
        gap, last = number - last, number
        while gap >= 0x80:
            packed.append(gap & 0x7F | 0x80)
            gap >>= 7
        packed.append(gap)
    return urlsafe_b64encode(packed).rstrip(b"=").decode()


def read_cursor(question: Sequence[Any], cursor: str) -> list[int]:
    """The numbers of the facts that were shown before; a cursor of another recall is refused."""
    try:
        packed = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    except (Error, ValueError):
        raise _invalid(cursor) from None
    if packed[:_DIGEST] != _fingerprint(question) or (len(packed) > _DIGEST and packed[-1] >= 0x80):
        raise _invalid(cursor)
    numbers: list[int] = []
    value = shift = last = 0
    for byte in packed[_DIGEST:]:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            last += value
            numbers.append(last)
            value = shift = 0
        if shift > 63 or last >= 2**63 or len(numbers) > MAX_SHOWN:
            raise _invalid(cursor)
    return numbers


def _fingerprint(question: Sequence[Any]) -> bytes:
    packed = orjson.dumps(question, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(packed, digest_size=_DIGEST).digest()


def _invalid(cursor: str) -> Invalid:
    remedy = "Use the next_cursor of a recall of the same query, dataset, mode and where"
    return Invalid("the cursor is none of this recall", field="cursor", value=cursor[:50], remedy=remedy)
