"""Opinions about facts, on their way into the ledger and the scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import Connection

from heedful.clock import to_stored
from heedful.errors import Invalid, NotFound
from heedful.learning.signals import Observation
from heedful.memory import checks
from heedful.memory.workspace import Workspace
from heedful.model import ItemError, Signal, SignalResult, SignalType
from heedful.storage import facts, ledger, queries, receipts, requests, scopes, scores
from heedful.storage.ledger import SIGNAL, Event
from heedful.storage.rows import AnyRow


@dataclass(frozen=True, slots=True)
class _Given:
    """A signal on its way into the ledger."""

    index: int
    signal: Signal
    source: str
    receipt_id: str | None = None
    rank: int | None = None
    key: str | None = None


def parsed(signals: Iterable[Signal | Mapping[str, Any]]) -> list[Signal]:
    """All signals, checked; the first that can't be accepted refuses the whole call."""
    items = list(signals)
    checks.batch("signals", items, checks.MAX_SIGNALS)
    found = []
    for place, item in enumerate(items):
        try:
            signal = item if isinstance(item, Signal) else Signal(**item)
            checks.query(signal.query)
        except Invalid as error:
            raise Invalid(
                f"signals[{place}].{error.message}", field=f"signals[{place}].{error.field}", value=error.value
            ) from None
        found.append(signal)
    return found


def signal(workspace: Workspace, given: Sequence[Signal], idempotency_key: str | None) -> SignalResult:
    """Takes signals into the ledger and the scores; unknown facts are refused one by one."""
    arguments = [each.model_dump(mode="json") for each in given]
    fingerprint = requests.fingerprint("signal", arguments)
    items = [_Given(place, each, "signal", key=each.idempotency_key) for place, each in enumerate(given)]
    with workspace.database.write() as connection:
        return _once(workspace, connection, idempotency_key, fingerprint, items, [])


def signal_recall(
    workspace: Workspace,
    recall_id: str,
    named: Mapping[SignalType, Sequence[str]],
    confidence: float,
    author: str | None,
    idempotency_key: str | None,
) -> SignalResult:
    """Signals about what a recall showed; what nobody has spoken of under its receipt is `ignored`."""
    checks.fraction("confidence", confidence)
    both = set(named["helpful"]) & set(named["not_helpful"])
    if both:
        raise Invalid(f"fact {min(both)} is named as helpful and as not_helpful", field="not_helpful", value=min(both))
    fingerprint = requests.fingerprint(
        "signal_recall", [recall_id, {kind: sorted(ids) for kind, ids in named.items()}, confidence, author]
    )
    with workspace.database.write() as connection:
        receipt = receipts.get(connection, workspace.project, recall_id)
        if receipt is None:
            raise NotFound(
                f"no recall {recall_id!r} in project {workspace.project!r}",
                field="recall_id",
                value=recall_id,
                remedy="Use the recall_id that recall() returned",
            )
        items, errors = _from_receipt(connection, receipt, named, confidence, author)
        return _once(workspace, connection, idempotency_key, fingerprint, items, errors)


def _once(
    workspace: Workspace,
    connection: Connection,
    key: str | None,
    fingerprint: bytes,
    items: list[_Given],
    errors: list[ItemError],
) -> SignalResult:
    if key is None:
        return _apply(workspace, connection, items, errors)
    if not isinstance(key, str) or not key.strip() or len(key) > checks.MAX_NAME:
        raise Invalid(
            f"idempotency_key must be a text of 1 to {checks.MAX_NAME} characters, got {key!r}",
            field="idempotency_key",
            value=key,
        )
    now = workspace.now()
    project = scopes.ensure_project(connection, workspace.project, now)
    first = requests.earlier(connection, project, key, fingerprint)
    if first is not None:
        return SignalResult(**first)
    result = _apply(workspace, connection, items, errors)
    requests.keep(connection, project, key, fingerprint, result.model_dump(mode="json"), now)
    return result


def _apply(workspace: Workspace, connection: Connection, items: list[_Given], errors: list[ItemError]) -> SignalResult:
    now = workspace.now()
    project = scopes.project_id(connection, workspace.project)
    places = facts.locate(connection, workspace.project, sorted({item.signal.fact_id for item in items}))
    keys = [item.key for item in items if item.key is not None]
    seen = ledger.with_keys(connection, project, keys) if project is not None and keys else {}
    accepted: list[_Given] = []
    event_ids: list[str] = []
    events: list[Event] = []
    known = _queries(workspace, connection, items, places)
    for item in items:
        fact_id = item.signal.fact_id
        if item.key is not None and item.key in seen:
            event_ids.append(seen[item.key])
            continue
        if fact_id not in places or project is None:
            errors.append(_unknown(item.index, fact_id, workspace.project))
            continue
        dataset = places[fact_id][1]
        event = _event(item, project, dataset, known[dataset, item.signal.query], now)
        if item.key is not None:
            seen[item.key] = event.id
        accepted.append(item)
        events.append(event)
        event_ids.append(event.id)
    ledger.append(connection, events)
    scores.observe(
        workspace.database,
        connection,
        dict(places.values()),
        [
            (
                places[item.signal.fact_id][0],
                cast(int, event.query_id),
                Observation(item.signal.signal_type, item.signal.confidence, event.at),
            )
            for item, event in zip(accepted, events, strict=True)
        ],
    )
    updated = list(dict.fromkeys(item.signal.fact_id for item in accepted))
    return SignalResult(
        processed=len(events), updated_facts=updated, errors=sorted(errors, key=lambda e: e.index), event_ids=event_ids
    )


def _queries(
    workspace: Workspace,
    connection: Connection,
    items: list[_Given],
    places: dict[str, tuple[int, int]],
) -> dict[tuple[int, str], int]:
    """The number of each query, by dataset and words. New ones are embedded when a recall first needs them,
    so that taking a signal needs no model."""
    wanted: dict[int, dict[str, None]] = {}
    for item in items:
        if item.signal.fact_id in places:
            wanted.setdefault(places[item.signal.fact_id][1], {})[item.signal.query] = None
    return {
        (dataset, text): number
        for dataset, texts in wanted.items()
        for text, number in queries.ensure(workspace.database, connection, dataset, list(texts)).items()
    }


def _event(item: _Given, project: int, dataset: int, query: int, now: int) -> Event:
    given = item.signal
    return Event(
        project_id=project,
        kind=SIGNAL,
        target_type="fact",
        target_id=given.fact_id,
        source=item.source,
        at=now if given.at is None else to_stored(given.at),
        recorded_at=now,
        dataset_id=dataset,
        author=given.author,
        query_id=query,
        value=given.signal_type,
        confidence=given.confidence,
        receipt_id=item.receipt_id,
        rank=item.rank,
        body=None if given.context is None else {"context": given.context},
        idempotency_key=item.key or "",
    )


def _from_receipt(
    connection: Connection,
    receipt: AnyRow,
    named: Mapping[SignalType, Sequence[str]],
    confidence: float,
    author: str | None,
) -> tuple[list[_Given], list[ItemError]]:
    ranks = {line[0]: rank for rank, line in enumerate(receipt.shown, start=1)}
    project = scopes.owner(connection, receipt.dataset_id)

    def key(kind: str, fact_id: str) -> str:
        return f"{receipt.id}/{author or ''}/{fact_id}/{kind}"

    spoken = ledger.with_keys(
        connection,
        project,
        [key(kind, fact) for fact in ranks for kind in ("used", "helpful", "not_helpful", "ignored")],
    )
    wanted = [(kind, fact) for kind, ids in named.items() for fact in dict.fromkeys(ids)]
    about = {fact for _, fact in wanted} | {
        fact for fact in ranks if any(key(kind, fact) in spoken for kind in ("used", "helpful", "not_helpful"))
    }
    present = facts.present(connection, list(ranks))
    wanted += [("ignored", fact) for fact in ranks if fact not in about and fact in present]
    items, errors = [], []
    for index, (kind, fact) in enumerate(wanted):
        if fact not in ranks:
            errors.append(
                ItemError(
                    index=index,
                    code="not_found",
                    message=f"fact {fact!r} was not shown by recall {receipt.id}",
                    fact_id=fact,
                )
            )
            continue
        given = Signal(fact_id=fact, signal_type=kind, query=receipt.query, confidence=confidence, author=author)
        items.append(_Given(index, given, "signal_recall", receipt.id, ranks[fact], key(kind, fact)))
    return items, errors


def _unknown(index: int, fact_id: str, project: str) -> ItemError:
    return ItemError(
        index=index,
        code="not_found",
        message=f"no fact {fact_id!r} in project {project!r}",
        fact_id=fact_id,
    )
