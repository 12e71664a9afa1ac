"""Signals about facts and links, on their way into the ledger and the scores. One with a key is recorded once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from heedful.api import checks
from heedful.api.parameters import Facts
from heedful.clock import has_no_receipt, new_id, to_stored
from heedful.errors import Invalid, NotFound, quoted
from heedful.ledger import events as ledger
from heedful.ledger import receipts, scores
from heedful.ledger.events import LINK_SIGNAL, SIGNAL, Event
from heedful.ledger.retract import retract_events
from heedful.ledger.used_facts import detect_recall
from heedful.ledger.usefulness import Opinion
from heedful.ledger.votes import kind_of
from heedful.model import Detection, Hit, ItemError, Recall, RecordedSignal, Signal, SignalResult, SignalType, limits
from heedful.storage import call_results, facts, scopes
from heedful.storage.rows import AnyRow
from heedful.workspace import Workspace


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
    parsed = []
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
        parsed.append(signal)
    return parsed


def signal(
    workspace: Workspace,
    signals: Signal | Iterable[Signal | Mapping[str, Any]],
    idempotency_key: str | None,
    dataset: str | None = None,
) -> SignalResult:
    """Takes signals into the ledger and the scores; unknown facts are refused one by one, unless all are unknown."""
    signals = parse_signals(signals)
    checks.idempotency_key(idempotency_key)
    for index, item in enumerate(signals):
        checks.not_ahead(f"signals[{index}].at", item.at, workspace.now())
    if dataset is not None:
        checks.name("dataset", dataset)
    fingerprint = b""
    if idempotency_key is not None:
        payload = [item.model_dump(mode="json") for item in signals]
        fingerprint = call_results.fingerprint("signal", payload if dataset is None else [dataset, *payload])
    items = [SignalInput(index, item, "signal", key=_key(item)) for index, item in enumerate(signals)]
    with workspace.direct(write=True) as direct:
        connection = direct.connection
        first = earlier_result(workspace, connection, idempotency_key, fingerprint)
        return first or _some(record_signals(workspace, connection, idempotency_key, fingerprint, items, [], dataset))


def _some(result: SignalResult) -> SignalResult:
    """The result; a call that only names unknown facts is refused as a whole."""
    if result.signals or not result.errors or any(error.code != "not_found" for error in result.errors):
        return result
    first, *others = result.errors
    message = first.message + (f", nor any of the {len(others)} other facts that were named" if others else "")
    remedy = "Use the fact_id of a hit; nothing was recorded"
    raise NotFound(message, field="fact_id", value=first.fact_id, remedy=remedy)


def _key(signal: Signal) -> str | None:
    if signal.external_id is None:
        return ledger.event_key("signal", signal.idempotency_key)
    return ledger.external_key(signal.external_id)


def earlier_result(
    workspace: Workspace, connection: Connection, key: str | None, fingerprint: bytes
) -> SignalResult | None:
    """The result of the first call with this key, if there was one."""
    project = scopes.project_id(connection, workspace.project)
    if key is None or project is None:
        return None
    first = call_results.earlier_result(connection, project, key, fingerprint)
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
    result = _record(workspace, connection, items, errors, dataset)
    if key is not None:
        now = workspace.now()
        project = scopes.ensure_project(connection, workspace.project, now)
        call_results.store_result(connection, project, key, fingerprint, result.model_dump(mode="json"), now)
    return result


def _record(
    workspace: Workspace, connection: Connection, items: list[SignalInput], errors: list[ItemError], only: str | None
) -> SignalResult:
    now = workspace.now()
    project = scopes.project_id(connection, workspace.project)
    places = facts.locate(connection, sorted({item.signal.fact_id for item in items}))
    if only is not None:
        number = scopes.dataset_id(connection, only)
        places = {fact_id: place for fact_id, place in places.items() if place[1] == number}
    keys = [item.key for item in items if item.key is not None]
    seen = ledger.with_keys(connection, project, keys) if project is not None and keys else {}
    recorded: list[RecordedSignal] = []
    events: list[Event] = []
    opinions: list[Opinion] = []
    notes: list[tuple[str, int, str]] = []
    known = _queries(workspace, connection, items, places)
    for item in items:
        signal = item.signal
        fact, dataset = places.get(signal.fact_id, (0, 0))
        query = known.get((dataset, signal.query))
        if item.key is not None and item.key in seen:
            if _is_same(seen[item.key], item, query):
                recorded.append(_to_recorded(item, seen[item.key].id))
            else:
                errors.append(_reused(item))
            continue
        if query is None or project is None:
            where = "project " + repr(workspace.project)
            where = where if only is None else f"dataset {only!r} of {where}"
            errors.append(_not_found(item.index, signal.fact_id, f"no fact {signal.fact_id!r} in {where}"))
            continue
        event = _event(item, project, dataset, query, now)
        if item.key is not None:
            seen[item.key] = event
        events.append(event)
        new = Opinion(fact, query, signal.signal_type, signal.confidence, event.at, author=event.author, id=event.id)
        opinions.append(new._replace(author_kind=kind_of(event.author)))
        if signal.context is not None:
            notes.append((event.id, fact, signal.context))
        recorded.append(_to_recorded(item, event.id))
    ledger.append(connection, events)
    ledger.annotate(connection, notes)
    changed = set(scores.observe(workspace.database, connection, dict(places.values()), opinions))
    named = dict.fromkeys(event.target_id for event in events)
    return SignalResult(
        processed=len(events),
        updated_facts=[fact_id for fact_id in named if places[fact_id][0] in changed],
        errors=sorted(errors, key=lambda error: error.index),
        event_ids=[signal.event_id for signal in recorded],
        signals=recorded,
    )


def _queries(
    workspace: Workspace, connection: Connection, items: list[SignalInput], places: dict[str, tuple[int, int]]
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
        for text, number in ledger.ensure_queries(workspace.database, connection, dataset, list(texts)).items()
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


def _not_found(index: int, fact_id: str, message: str) -> ItemError:
    return ItemError(index=index, code="not_found", message=message, fact_id=fact_id)


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
    """A signal about a fact of a recall."""

    kind: SignalType
    fact_id: str
    confidence: float


def signal_recall(
    workspace: Workspace,
    recall_id: str | Recall,
    used: Facts,
    helpful: Facts,
    not_helpful: Facts,
    answer: str | None,
    confidence: float,
    author: str | None,
    idempotency_key: str | None,
) -> SignalResult:
    """Signals about what a recall showed: what is named, and for the rest what the answer shows, or `ignored`."""
    recall_id = checks.identifier("recall_id", recall_id.recall_id if isinstance(recall_id, Recall) else recall_id)
    checks.fraction("confidence", confidence)
    author = checks.author("author", author)
    checks.idempotency_key(idempotency_key)
    if answer is not None:
        checks.any_text("answer", answer)
    named: dict[SignalType, Facts] = {"used": used, "helpful": helpful, "not_helpful": not_helpful}
    given = {kind: _named_facts(kind, facts) for kind, facts in named.items()}
    if has_no_receipt(recall_id):
        named_facts = [str(fact) for facts in given.values() for fact in facts]
        errors = [_not_shown(index, fact, recall_id) for index, fact in enumerate(named_facts)]
        return _some(SignalResult(processed=0, updated_facts=[], event_ids=[], signals=[], errors=errors))
    ids_by_kind = {kind: sorted(facts, key=str) for kind, facts in given.items()}
    fingerprint = call_results.fingerprint("signal_recall", [recall_id, ids_by_kind, answer, confidence, author])
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
        shown = receipts.receipt_of(workspace, connection, recall_id)
        ids = {kind: _fact_ids(kind, facts, [fact.fact_id for fact in shown.shown]) for kind, facts in given.items()}
        if both := set(ids["helpful"]) & set(ids["not_helpful"]):
            problem = f"fact {min(both)} is named as helpful and as not_helpful"
            raise Invalid(problem, field="not_helpful", value=min(both), remedy="Name it as one of them")
        signals = [_FactSignal(kind, fact, confidence) for kind, fact_ids in ids.items() for fact in fact_ids]
        items, errors, mistaken = _resolve_signals(connection, shown, signals, detected, confidence, author)
        result = _some(record_signals(workspace, connection, idempotency_key, fingerprint, items, errors))
        # Who names a fact later has not ignored it.
        retract_events(workspace, connection, mistaken, author)
        return result


def _named_facts(field: str, facts: Facts) -> list[str | int]:
    """The facts that were named, one or many: by id or rank, and hits by their ids."""
    items = [facts] if isinstance(facts, str | int | Hit) else list(facts) if isinstance(facts, Iterable) else [None]
    named: list[str | int] = []
    for item in items:
        if isinstance(item, bool) or not isinstance(item, str | int | Hit):
            remedy = "Name a fact by its fact_id, its rank, or its hit"
            raise Invalid.got(field, "must be a list of facts", facts, remedy)
        named.append(item if isinstance(item, int) else checks.identifier(field, getattr(item, "fact_id", item)))
    return named


def _fact_ids(field: str, facts: list[str | int], shown: list[str]) -> list[str]:
    """The ids of facts, some of which may be named by the rank that a recall showed them at."""
    for rank in facts:
        if isinstance(rank, int) and not 1 <= rank <= len(shown):
            remedy = f"Use a rank from 1 to {len(shown)}, or a fact_id" if shown else "It showed no facts"
            raise Invalid(f"the recall showed no rank {quoted(rank)}", field=field, value=rank, remedy=remedy)
    return list(dict.fromkeys(shown[fact - 1] if isinstance(fact, int) else fact for fact in facts))


def _resolve_signals(
    connection: Connection,
    receipt: receipts.ReceiptRow,
    named: list[_FactSignal],
    detected: list[Detection] | None,
    confidence: float,
    author: str | None,
) -> tuple[list[SignalInput], list[ItemError], list[AnyRow]]:
    """The signals that are meant, errors for facts that can't be, and earlier `ignored` events that are mistaken."""
    ranks = {fact.fact_id: rank for rank, fact in enumerate(receipt.shown, start=1)}
    active = {
        (event.target_id, event.value): event
        for event in ledger.of_receipt(connection, receipt.id)
        # Signals derived from a rating are separate: they are retracted with the rating.
        if event.author == author and event.source == SOURCE
    }
    about = {fact for fact, kind in active if kind != "ignored"} | {signal.fact_id for signal in named}
    present = facts.present(connection, list(ranks))
    unnamed = [fact for fact in ranks if fact not in about and fact in present]
    # Whoever names a fact that was not shown may have meant one of the others: nothing is said of those.
    mistaken = any(signal.fact_id not in ranks for signal in named)
    # A remark against some facts says nothing of the others.
    is_remark = bool(named) and detected is None and all(signal.kind == "not_helpful" for signal in named)
    signals = named if mistaken or is_remark else named + _signals_for_unnamed(unnamed, detected, confidence)
    items, errors = [], []
    for index, meant in enumerate(signals):
        if meant.fact_id not in ranks:
            errors.append(_not_shown(index, meant.fact_id, receipt.id))
            continue
        before = active.get((meant.fact_id, meant.kind))
        signal = Signal(
            fact_id=meant.fact_id,
            signal_type=meant.kind,
            query=receipt.query,
            confidence=meant.confidence if before is None else before.confidence,
            author=author,
        )
        # The same signal given twice is one event; given again after it was retracted, it is a new one.
        key = new_id() if before is None else before.idempotency_key
        items.append(SignalInput(index, signal, SOURCE, receipt.id, ranks[meant.fact_id], key))
    known = {meant.fact_id for meant in signals if meant.kind != "ignored"}
    return items, errors, [active[fact, "ignored"] for fact in known if (fact, "ignored") in active]


def _not_shown(index: int, fact_id: str, recall_id: str) -> ItemError:
    return _not_found(index, fact_id, f"fact {fact_id!r} was not shown by recall {recall_id}")


def _signals_for_unnamed(unnamed: list[str], detected: list[Detection] | None, confidence: float) -> list[_FactSignal]:
    """The signals for facts that nobody named: by the answer, if it is known, otherwise `ignored`."""
    if detected is None:
        return [_FactSignal("ignored", fact, confidence) for fact in unnamed]
    return [
        _FactSignal(use.signal_type, use.fact_id, round(confidence * use.confidence, 6))
        for use in detected
        if use.signal_type is not None and use.fact_id in unnamed
    ]


@dataclass(frozen=True, slots=True)
class LinkSignal:
    """One opinion about one link."""

    link: str
    """As a receipt names it: "fact_id/entity"."""
    signal_type: SignalType
    confidence: float = 1.0
    at: int | None = None
    """When it was given, as stored; now if left out."""
    author: str | None = None
    receipt_id: str | None = None
    idempotency_key: str | None = None
    """A signal whose key the project has seen is not taken again."""


def signal_links(
    workspace: Workspace, connection: Connection, signals: Sequence[LinkSignal], *, source: str
) -> list[str | None]:
    """Takes opinions about links into the ledger and the scores of the links, in an open transaction.

    Returns the event of each, for `retract`: that of the first time if it was given before, None if the link is gone.
    """
    now = workspace.now()
    project = scopes.project_id(connection, workspace.project)
    parsed = [scores.parse_link_name(signal.link) for signal in signals]
    places = facts.locate(connection, sorted({pair[0] for pair in parsed if pair is not None}))
    links = scores.links_of(connection, [seq for seq, _ in places.values()])
    keys = [signal.idempotency_key for signal in signals if signal.idempotency_key is not None]
    seen = {} if project is None else {key: row.id for key, row in ledger.with_keys(connection, project, keys).items()}
    events: list[Event] = []
    observed: dict[scores.Key, list[Opinion]] = defaultdict(list)
    event_ids: list[str | None] = []
    for signal, pair in zip(signals, parsed, strict=True):
        fact, dataset = places.get(pair[0], (0, 0)) if pair is not None else (0, 0)
        if signal.idempotency_key in seen:
            event_ids.append(seen[signal.idempotency_key])
            continue
        if project is None or pair is None or (fact, pair[1]) not in links:
            event_ids.append(None)
            continue
        event = Event(
            project_id=project,
            kind=LINK_SIGNAL,
            target_type="link",
            target_id=signal.link,
            source=source,
            at=now if signal.at is None else signal.at,
            recorded_at=now,
            dataset_id=dataset,
            author=signal.author,
            value=signal.signal_type,
            confidence=signal.confidence,
            receipt_id=signal.receipt_id,
            idempotency_key=signal.idempotency_key or "",
        )
        if signal.idempotency_key is not None:
            seen[signal.idempotency_key] = event.id
        events.append(event)
        opinion = Opinion(fact, pair[1], signal.signal_type, signal.confidence, event.at)
        observed[fact, pair[1]].append(opinion)
        event_ids.append(event.id)
    ledger.append(connection, events)
    scores.observe_links(connection, {seq: fact_id for fact_id, (seq, _) in places.items()}, observed)
    return event_ids
