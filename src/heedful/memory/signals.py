"""Opinions about facts, on their way into the ledger and the scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from sqlalchemy import Connection

from heedful.clock import to_stored
from heedful.errors import Invalid, NotFound, quoted
from heedful.ids import has_no_receipt, new_id
from heedful.memory import checks
from heedful.memory.answer import DISLIKED
from heedful.memory.history import retract_events
from heedful.memory.workspace import Workspace
from heedful.model import Detection, Hit, ItemError, RecordedSignal, Signal, SignalResult, SignalType, limits
from heedful.protocols.engine import Facts
from heedful.ranking.attribution import attribute
from heedful.ranking.signals import Observation, kind_of
from heedful.storage import facts, ledger, receipts, requests, scopes, scores
from heedful.storage.ledger import SIGNAL, Event, Surviving
from heedful.storage.rows import AnyRow
from heedful.storage.vectors import Vectors, unpack
from heedful.text.sentences import cited
from heedful.text.words import sentences


@dataclass(frozen=True, slots=True)
class SignalInput:
    """A signal on its way into the ledger."""

    index: int
    signal: Signal
    source: str
    receipt_id: str | None = None
    rank: int | None = None
    key: str | None = None


def parse_signals(signals: Signal | Iterable[Signal | Mapping[str, Any]]) -> list[Signal]:
    """All signals, checked; the first that can't be accepted refuses the whole call."""
    if isinstance(signals, Signal | Mapping):
        signals = [signals]
    if isinstance(signals, str) or not isinstance(signals, Iterable):
        raise Invalid(f"signals must be a list of signals, got {quoted(signals)}", field="signals", value=signals)
    items = list(signals)
    checks.batch("signals", items, limits.MAX_SIGNALS)
    found = []
    for index, item in enumerate(items):
        try:
            if not isinstance(item, Signal | Mapping):
                raise Invalid(f"must be a Signal or a mapping, got {quoted(item)}", field="", value=item)
            signal = item if isinstance(item, Signal) else Signal(**item)
            checks.query(signal.query)
            if signal.external_id is not None and signal.idempotency_key is not None:
                raise Invalid(
                    "external_id can't be combined with an idempotency_key",
                    field="external_id",
                    value=signal.external_id,
                    remedy="Leave the key out: the external_id makes a retry recognisable, too",
                )
        except Invalid as error:
            name = f"signals[{index}].{error.field}" if error.field else f"signals[{index}]"
            message = error.message.removeprefix(error.field or "").lstrip()
            raise Invalid(f"{name} {message}", field=name, value=error.value, remedy=error.remedy) from None
        found.append(signal)
    return found


def signal(
    workspace: Workspace, signals: Sequence[Signal], idempotency_key: str | None, dataset: str | None = None
) -> SignalResult:
    """Takes signals into the ledger and the scores; unknown facts are refused one by one, unless all are unknown."""
    checks.idempotency_key(idempotency_key)
    for index, each in enumerate(signals):
        checks.not_ahead(f"signals[{index}].at", each.at, workspace.now())
    if dataset is not None:
        checks.name("dataset", dataset)
    fingerprint = b""
    if idempotency_key is not None:
        payload = [each.model_dump(mode="json") for each in signals]
        fingerprint = requests.fingerprint("signal", payload if dataset is None else [dataset, *payload])
    items = [SignalInput(index, each, "signal", key=_key(each)) for index, each in enumerate(signals)]
    with workspace.direct(write=True) as direct:
        connection = direct.connection
        first = earlier_result(workspace, connection, idempotency_key, fingerprint)
        return first or _some(record_signals(workspace, connection, idempotency_key, fingerprint, items, [], dataset))


def _some(result: SignalResult) -> SignalResult:
    """The result, if anything came of the call: one that only names unknown facts is refused as a whole."""
    if result.signals or not result.errors or any(error.code != "not_found" for error in result.errors):
        return result
    first, *others = result.errors
    raise NotFound(
        first.message + (f", nor any of the {len(others)} other facts that were named" if others else ""),
        field="fact_id",
        value=first.fact_id,
        remedy="Use the fact_id of a hit; nothing was recorded",
    )


def _key(signal: Signal) -> str | None:
    if signal.external_id is None:
        return requests.event_key("signal", signal.idempotency_key)
    return ledger.external_key(signal.external_id)


def earlier_result(
    workspace: Workspace, connection: Connection, key: str | None, fingerprint: bytes
) -> SignalResult | None:
    """The result of the first call with this key, if there was one."""
    project = scopes.project_id(connection, workspace.project)
    if key is None or project is None:
        return None
    first = requests.earlier_result(connection, project, key, fingerprint)
    return None if first is None else SignalResult(**first)


def record_signals(
    workspace: Workspace,
    connection: Connection,
    key: str | None,
    fingerprint: bytes,
    items: list[SignalInput],
    errors: list[ItemError],
    dataset: str | None = None,
) -> SignalResult:
    """Takes signals in an open transaction, and keeps the result for retries of a call that has a key."""
    result = _apply(workspace, connection, items, errors, dataset)
    if key is not None:
        now = workspace.now()
        project = scopes.ensure_project(connection, workspace.project, now)
        requests.store_result(connection, project, key, fingerprint, result.model_dump(mode="json"), now)
    return result


def _apply(
    workspace: Workspace,
    connection: Connection,
    items: list[SignalInput],
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
    accepted: list[SignalInput] = []
    taken: list[RecordedSignal] = []
    events: list[Event] = []
    known = _queries(workspace, connection, items, places)
    for item in items:
        fact_id = item.signal.fact_id
        if item.key is not None and item.key in seen:
            query = known[places[fact_id][1], item.signal.query] if fact_id in places else None
            if not _is_same(seen[item.key], item, query):
                errors.append(_reused(item))
            else:
                taken.append(_to_recorded(item, seen[item.key].id))
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
        taken.append(_to_recorded(item, event.id))
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
                kind_of(event.author),
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
    items: list[SignalInput],
    places: dict[str, tuple[int, int]],
) -> dict[tuple[int, str], int]:
    """The number of each query, by dataset and words. New ones are embedded when a recall first needs them,
    so that taking a signal needs no model."""
    by_dataset: dict[int, dict[str, None]] = {}
    for item in items:
        if item.signal.fact_id in places:
            by_dataset.setdefault(places[item.signal.fact_id][1], {})[item.signal.query] = None
    return {
        (dataset, text): number
        for dataset, texts in by_dataset.items()
        for text, number in receipts.ensure(workspace.database, connection, dataset, list(texts)).items()
    }


def _event(item: SignalInput, project: int, dataset: int, query: int, now: int) -> Event:
    signal = item.signal
    return Event(
        project_id=project,
        kind=SIGNAL,
        target_type="fact",
        target_id=signal.fact_id,
        source=item.source,
        at=now if signal.at is None else min(now, to_stored(signal.at)),
        recorded_at=now,
        dataset_id=dataset,
        author=signal.author,
        query_id=query,
        value=signal.signal_type,
        confidence=signal.confidence,
        receipt_id=item.receipt_id,
        rank=item.rank,
        idempotency_key=item.key or "",
    )


def _is_same(event: AnyRow | Event, item: SignalInput, query: int | None) -> bool:
    """Whether an event says what a signal with its key says again; a fact that is gone can't be compared further."""
    signal = item.signal
    stored = (event.target_id, event.value, event.confidence)
    return stored == (signal.fact_id, signal.signal_type, signal.confidence) and query in (None, event.query_id)


def _to_recorded(item: SignalInput, event_id: str) -> RecordedSignal:
    return RecordedSignal(event_id=event_id, fact_id=item.signal.fact_id, signal_type=item.signal.signal_type)


def _unknown(index: int, fact_id: str, project: str, dataset: str | None) -> ItemError:
    where = f"project {project!r}" if dataset is None else f"dataset {dataset!r} of project {project!r}"
    return ItemError(
        index=index,
        code="not_found",
        message=f"no fact {fact_id!r} in {where}",
        fact_id=fact_id,
    )


def _reused(item: SignalInput) -> ItemError:
    name = "idempotency_key" if item.signal.external_id is None else "external_id"
    return ItemError(
        index=item.index,
        code=f"{name}_reused",
        message=f"{name} {getattr(item.signal, name)!r} was used for another signal",
        fact_id=item.signal.fact_id,
    )


SOURCE = "signal_recall"


@dataclass(frozen=True, slots=True)
class _FactSignal:
    """One thing that is said of one fact."""

    kind: SignalType
    fact_id: str
    confidence: float


def signal_recall(
    workspace: Workspace,
    recall_id: str,
    named: Mapping[SignalType, Facts],
    answer: str | None,
    confidence: float,
    author: str | None,
    idempotency_key: str | None,
) -> SignalResult:
    """Signals about what a recall showed: what is named, and for the rest what the answer shows, or `ignored`."""
    checks.identifier("recall_id", recall_id)
    checks.fraction("confidence", confidence)
    author = checks.author(author)
    checks.idempotency_key(idempotency_key)
    if answer is not None:
        checks.any_text("answer", answer)
    ids = {kind: _fact_ids(kind, facts) for kind, facts in named.items()}
    both = set(ids["helpful"]) & set(ids["not_helpful"])
    if both:
        raise Invalid(f"fact {min(both)} is named as helpful and as not_helpful", field="not_helpful", value=min(both))
    if has_no_receipt(recall_id):
        named_facts = [fact for each in ids.values() for fact in each]
        errors = [_not_shown(index, fact, recall_id) for index, fact in enumerate(named_facts)]
        return _some(SignalResult(processed=0, updated_facts=[], event_ids=[], signals=[], errors=errors))
    fingerprint = requests.fingerprint(
        "signal_recall", [recall_id, {kind: sorted(each) for kind, each in ids.items()}, answer, confidence, author]
    )
    with workspace.read() as connection:
        first = earlier_result(workspace, connection, idempotency_key, fingerprint)
    if first is not None:
        return first
    detected = None if answer is None else detect_recall(workspace, answer, recall_id)
    with workspace.direct(write=True) as direct:
        connection = direct.connection
        first = earlier_result(workspace, connection, idempotency_key, fingerprint)
        if first is not None:
            return first
        receipt = receipt_of(workspace, connection, recall_id)
        signals = [_FactSignal(kind, fact, confidence) for kind, each in ids.items() for fact in each]
        items, errors, mistaken = _resolve_signals(connection, receipt, signals, detected, confidence, author)
        result = _some(record_signals(workspace, connection, idempotency_key, fingerprint, items, errors))
        # Who names a fact later has not ignored it.
        retract_events(workspace, connection, mistaken, author)
        return result


def detect_recall(workspace: Workspace, answer: str, recall_id: str) -> list[Detection]:
    """Which of the facts that a recall showed an answer used."""
    checks.identifier("recall_id", recall_id)
    with workspace.read() as connection:
        receipt = receipt_of(workspace, connection, recall_id)
    return detect(workspace, answer, [line[0] for line in receipt.shown], query=receipt.query)


def receipt_of(workspace: Workspace, connection: Connection, recall_id: str) -> AnyRow:
    """What a recall of this project showed."""
    receipt = receipts.get(connection, workspace.project, recall_id)
    if receipt is None:
        raise NotFound(
            f"no recall {recall_id!r} in project {workspace.project!r}",
            field="recall_id",
            value=recall_id,
            remedy="Use the recall_id that recall() returned; where the settings receipt_days and receipt_share say so,"
            " old receipts are dropped, and not all are kept",
        )
    return receipt


def _fact_ids(field: str, facts: Facts) -> list[str]:
    """The facts that were named: ids or hits, one or many."""
    if not isinstance(facts, Iterable):
        raise Invalid(f"{field} must be a list of facts, got {quoted(facts)}", field=field, value=facts)
    items = [facts] if isinstance(facts, str | Hit) else list(facts)
    found = [item.fact_id if isinstance(item, Hit) else item for item in items]
    for item in found:
        checks.identifier(field, item)
    return list(dict.fromkeys(found))


def _resolve_signals(
    connection: Connection,
    receipt: AnyRow,
    named: list[_FactSignal],
    detected: list[Detection] | None,
    confidence: float,
    author: str | None,
) -> tuple[list[SignalInput], list[ItemError], list[AnyRow]]:
    """The signals that are meant, what can't be meant, and earlier `ignored` events that turn out mistaken."""
    ranks = {line[0]: rank for rank, line in enumerate(receipt.shown, start=1)}
    active = {
        (event.target_id, event.value): event
        for event in ledger.of_receipt(connection, receipt.id)
        # Signals derived from a rating are separate: they are retracted with the rating.
        if event.author == author and event.source == SOURCE
    }
    about = {fact for fact, kind in active if kind != "ignored"} | {each.fact_id for each in named}
    present = facts.present(connection, list(ranks))
    unnamed = [fact for fact in ranks if fact not in about and fact in present]
    # Whoever names a fact that was not shown may have meant one of the others: nothing is said of those.
    mistaken = any(each.fact_id not in ranks for each in named)
    signals = named if mistaken else named + _signals_for_unnamed(unnamed, detected, confidence)
    items, errors = [], []
    for index, each in enumerate(signals):
        if each.fact_id not in ranks:
            errors.append(_not_shown(index, each.fact_id, receipt.id))
            continue
        before = active.get((each.fact_id, each.kind))
        signal = Signal(
            fact_id=each.fact_id,
            signal_type=each.kind,
            query=receipt.query,
            confidence=each.confidence if before is None else before.confidence,
            author=author,
        )
        # The same said twice is one event; said again after it was retracted, it is a new one.
        key = new_id() if before is None else before.idempotency_key
        items.append(SignalInput(index, signal, SOURCE, receipt.id, ranks[each.fact_id], key))
    known = {each.fact_id for each in signals if each.kind != "ignored"}
    return items, errors, [active[fact, "ignored"] for fact in known if (fact, "ignored") in active]


def _not_shown(index: int, fact_id: str, recall_id: str) -> ItemError:
    message = f"fact {fact_id!r} was not shown by recall {recall_id}"
    return ItemError(index=index, code="not_found", message=message, fact_id=fact_id)


def _signals_for_unnamed(unnamed: list[str], detected: list[Detection] | None, confidence: float) -> list[_FactSignal]:
    """The signals for facts that nobody named: what the answer shows, otherwise `ignored`."""
    if detected is None:
        return [_FactSignal("ignored", fact, confidence) for fact in unnamed]
    return [
        _FactSignal(each.signal_type, each.fact_id, round(confidence * each.confidence, 6))
        for each in detected
        if each.signal_type is not None and each.fact_id in unnamed
    ]


MAX_ANSWER = 100_000

CITED = 0.95
"""How sure it is that an answer used a fact that it cites."""


@dataclass(frozen=True, slots=True)
class _Known:
    """Facts that are still there, with their vectors."""

    ids: list[str]
    texts: list[str]
    vectors: Vectors


def detect(workspace: Workspace, answer: str, fact_ids: Sequence[str], *, query: str = "") -> list[Detection]:
    """For each of the facts that an answer was given from: `used`, `ignored`, or None where it is unclear.

    Name all facts that were shown, in that order, because what only one of them says distinguishes them, and because an
    answer may cite them as [1], [2]; those that were deleted are left out. `query` is the question, if known: it makes
    the result a little surer.
    """
    checks.any_text("answer", answer)
    if len(answer) > MAX_ANSWER:
        raise Invalid(
            f"answer has {len(answer)} characters, the limit is {MAX_ANSWER}", field="answer", value=answer[:50]
        )
    answer = answer.removeprefix(DISLIKED)
    shown = list(dict.fromkeys(fact_ids))
    known = _known(workspace, shown)
    if not known.ids:
        return []
    citations = {shown[number - 1]: number for number in cited(answer, len(shown))}
    parts = sentences(answer)
    near = np.zeros((len(parts), len(known.ids)), np.float32)
    overall = None
    if parts:
        *per_sentence, whole = workspace.embed([*parts, f"{query} {answer}".strip()]) @ known.vectors.T
        near, overall = np.stack(per_sentence), whole
    found = attribute(parts, known.texts, near, overall, query=query, calibration=workspace.embedder.calibration)
    detections = [
        Detection(
            fact_id=fact_id, signal_type=each.signal_type, confidence=round(each.confidence, 4), reasons=each.reasons
        )
        for fact_id, each in zip(known.ids, found, strict=True)
    ]
    return [_cited(each, citations[each.fact_id]) if each.fact_id in citations else each for each in detections]


def _cited(detection: Detection, number: int) -> Detection:
    """Whoever cites a fact has used it, whatever else their words show."""
    confidence = detection.confidence if detection.signal_type == "used" else 0.0
    return Detection(
        fact_id=detection.fact_id,
        signal_type="used",
        confidence=max(confidence, CITED),
        reasons=[f"the answer cites it as [{number}]", *detection.reasons],
    )


def _known(workspace: Workspace, fact_ids: list[str]) -> _Known:
    with workspace.read() as connection:
        model = workspace.model(connection)
        places = facts.locate(connection, workspace.project, fact_ids)
        if model is None or not places:
            return _Known([], [], np.empty((0, 0), np.float32))
        rows = {
            row.id: row
            for dataset in sorted({dataset for _, dataset in places.values()})
            for row in facts.indexable(
                connection, dataset, model.id, [seq for seq, at in places.values() if at == dataset]
            )
        }
    found = [rows[fact_id] for fact_id in fact_ids if fact_id in rows]
    return _Known(
        [row.id for row in found],
        [row.text for row in found],
        unpack([row.vector for row in found], model.dimensions),
    )
