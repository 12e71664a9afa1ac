"""Opinions about facts, on their way into the ledger and the scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import Connection

from heedful.clock import to_stored
from heedful.errors import Invalid
from heedful.learning.signals import Observation
from heedful.learning.trust import standing_of
from heedful.memory import checks
from heedful.memory.workspace import Workspace
from heedful.model import GivenSignal, ItemError, Signal, SignalResult
from heedful.storage import facts, ledger, queries, requests, scopes, scores
from heedful.storage.ledger import SIGNAL, Event
from heedful.storage.opinions import Surviving
from heedful.storage.rows import AnyRow


@dataclass(frozen=True, slots=True)
class Given:
    """A signal on its way into the ledger."""

    index: int
    signal: Signal
    source: str
    receipt_id: str | None = None
    rank: int | None = None
    key: str | None = None


def parsed(signals: Signal | Iterable[Signal | Mapping[str, Any]]) -> list[Signal]:
    """All signals, checked; the first that can't be accepted refuses the whole call."""
    if isinstance(signals, Signal | Mapping):
        signals = [signals]
    if isinstance(signals, str) or not isinstance(signals, Iterable):
        raise Invalid(f"signals must be a list of signals, got {signals!r}", field="signals", value=signals)
    items = list(signals)
    checks.batch("signals", items, checks.MAX_SIGNALS)
    found = []
    for place, item in enumerate(items):
        try:
            if not isinstance(item, Signal | Mapping):
                raise Invalid(f"must be a Signal or a mapping, got {item!r}", field="", value=item)
            signal = item if isinstance(item, Signal) else Signal(**item)
            checks.query(signal.query)
        except Invalid as error:
            name = f"signals[{place}].{error.field}" if error.field else f"signals[{place}]"
            message = error.message.removeprefix(error.field or "").lstrip()
            raise Invalid(f"{name} {message}", field=name, value=error.value, remedy=error.remedy) from None
        found.append(signal)
    return found


def signal(
    workspace: Workspace, given: Sequence[Signal], idempotency_key: str | None, dataset: str | None = None
) -> SignalResult:
    """Takes signals into the ledger and the scores; unknown facts are refused one by one."""
    checks.idempotency_key(idempotency_key)
    for place, each in enumerate(given):
        checks.not_ahead(f"signals[{place}].at", each.at, workspace.now())
    if dataset is not None:
        checks.name("dataset", dataset)
    fingerprint = b""
    if idempotency_key is not None:
        said = [each.model_dump(mode="json") for each in given]
        fingerprint = requests.fingerprint("signal", said if dataset is None else [dataset, *said])
    items = [
        Given(place, each, "signal", key=requests.event_key("signal", each.idempotency_key))
        for place, each in enumerate(given)
    ]
    with workspace.write() as connection:
        first = earlier(workspace, connection, idempotency_key, fingerprint)
        return first or take(workspace, connection, idempotency_key, fingerprint, items, [], dataset)


def earlier(workspace: Workspace, connection: Connection, key: str | None, fingerprint: bytes) -> SignalResult | None:
    """The result of the first call with this key, if there was one."""
    project = scopes.project_id(connection, workspace.project)
    if key is None or project is None:
        return None
    first = requests.earlier(connection, project, key, fingerprint)
    return None if first is None else SignalResult(**first)


def take(
    workspace: Workspace,
    connection: Connection,
    key: str | None,
    fingerprint: bytes,
    items: list[Given],
    errors: list[ItemError],
    dataset: str | None = None,
) -> SignalResult:
    """Takes signals in an open transaction, and keeps the result for retries of a call that has a key."""
    result = _apply(workspace, connection, items, errors, dataset)
    if key is not None:
        now = workspace.now()
        project = scopes.ensure_project(connection, workspace.project, now)
        requests.keep(connection, project, key, fingerprint, result.model_dump(mode="json"), now)
    return result


def _apply(
    workspace: Workspace,
    connection: Connection,
    items: list[Given],
    errors: list[ItemError],
    only: str | None,
) -> SignalResult:
    now = workspace.now()
    project = scopes.project_id(connection, workspace.project)
    places = facts.locate(connection, workspace.project, sorted({item.signal.fact_id for item in items}))
    if only is not None:
        number = scopes.dataset_id(connection, workspace.project, only)
        places = {fact_id: place for fact_id, place in places.items() if place[1] == number}
    keys = [item.key for item in items if item.key is not None]
    seen = ledger.with_keys(connection, project, keys) if project is not None and keys else {}
    accepted: list[Given] = []
    taken: list[GivenSignal] = []
    events: list[Event] = []
    known = _queries(workspace, connection, items, places)
    for item in items:
        fact_id = item.signal.fact_id
        if item.key is not None and item.key in seen:
            query = known[places[fact_id][1], item.signal.query] if fact_id in places else None
            if not _is_same(seen[item.key], item, query):
                errors.append(_reused(item))
            else:
                taken.append(_taken(item, seen[item.key].id))
            continue
        if fact_id not in places or project is None:
            errors.append(_unknown(item.index, fact_id, workspace.project, only))
            continue
        dataset = places[fact_id][1]
        event = _event(item, project, dataset, known[dataset, item.signal.query], now)
        if item.key is not None:
            seen[item.key] = event
        accepted.append(item)
        events.append(event)
        taken.append(_taken(item, event.id))
    ledger.append(connection, events)
    ledger.annotate(
        connection,
        [
            (event.id, places[item.signal.fact_id][0], item.signal.context)
            for item, event in zip(accepted, events, strict=True)
            if item.signal.context is not None
        ],
    )
    counted = scores.observe(
        workspace.database,
        connection,
        dict(places.values()),
        [
            Surviving(
                event.id,
                places[item.signal.fact_id][0],
                cast(int, event.query_id),
                Observation(item.signal.signal_type, item.signal.confidence, event.at),
                event.author,
                standing_of(event.author),
            )
            for item, event in zip(accepted, events, strict=True)
        ],
    )
    changed = set(counted)
    named = dict.fromkeys(item.signal.fact_id for item in accepted)
    updated = [fact_id for fact_id in named if places[fact_id][0] in changed]
    return SignalResult(
        processed=len(events),
        updated_facts=updated,
        errors=sorted(errors, key=lambda error: error.index),
        event_ids=[each.event_id for each in taken],
        signals=taken,
    )


def _queries(
    workspace: Workspace,
    connection: Connection,
    items: list[Given],
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


def _event(item: Given, project: int, dataset: int, query: int, now: int) -> Event:
    given = item.signal
    return Event(
        project_id=project,
        kind=SIGNAL,
        target_type="fact",
        target_id=given.fact_id,
        source=item.source,
        at=now if given.at is None else min(now, to_stored(given.at)),
        recorded_at=now,
        dataset_id=dataset,
        author=given.author,
        query_id=query,
        value=given.signal_type,
        confidence=given.confidence,
        receipt_id=item.receipt_id,
        rank=item.rank,
        idempotency_key=item.key or "",
    )


def _is_same(event: AnyRow | Event, item: Given, query: int | None) -> bool:
    """Whether an event says what a signal with its key says again; a fact that is gone can't be compared further."""
    given = item.signal
    said = (event.target_id, event.value, event.confidence)
    return said == (given.fact_id, given.signal_type, given.confidence) and query in (None, event.query_id)


def _taken(item: Given, event_id: str) -> GivenSignal:
    return GivenSignal(event_id=event_id, fact_id=item.signal.fact_id, signal_type=item.signal.signal_type)


def _unknown(index: int, fact_id: str, project: str, dataset: str | None) -> ItemError:
    where = f"project {project!r}" if dataset is None else f"dataset {dataset!r} of project {project!r}"
    return ItemError(
        index=index,
        code="not_found",
        message=f"no fact {fact_id!r} in {where}",
        fact_id=fact_id,
    )


def _reused(item: Given) -> ItemError:
    return ItemError(
        index=item.index,
        code="idempotency_key_reused",
        message=f"idempotency_key {item.signal.idempotency_key!r} was used for another signal",
        fact_id=item.signal.fact_id,
    )
