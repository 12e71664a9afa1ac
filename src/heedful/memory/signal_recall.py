"""Opinions about what one recall showed, by its receipt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from heedful.errors import Invalid, NotFound
from heedful.ids import has_no_receipt, new_id
from heedful.memory import checks
from heedful.memory.detect import detect
from heedful.memory.retract import retract_event
from heedful.memory.signals import Given, earlier, take
from heedful.memory.workspace import Workspace
from heedful.model import Detection, Hit, ItemError, Signal, SignalResult, SignalType
from heedful.storage import facts, ledger, receipts, requests
from heedful.storage.rows import AnyRow

SOURCE = "signal_recall"

Facts = str | Hit | Sequence[str | Hit]
"""Facts as a caller names them: by id, or by the hits of a recall."""


@dataclass(frozen=True, slots=True)
class _Said:
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
    """Signals about what a recall showed: what is named, and of the rest what the answer tells, or `ignored`."""
    checks.identifier("recall_id", recall_id)
    checks.fraction("confidence", confidence)
    checks.author(author)
    checks.idempotency_key(idempotency_key)
    ids = {kind: _ids(kind, given) for kind, given in named.items()}
    both = set(ids["helpful"]) & set(ids["not_helpful"])
    if both:
        raise Invalid(f"fact {min(both)} is named as helpful and as not_helpful", field="not_helpful", value=min(both))
    if has_no_receipt(recall_id):
        named_facts = [fact for each in ids.values() for fact in each]
        errors = [_not_shown(index, fact, recall_id) for index, fact in enumerate(named_facts)]
        return SignalResult(processed=0, updated_facts=[], event_ids=[], signals=[], errors=errors)
    fingerprint = requests.fingerprint(
        "signal_recall", [recall_id, {kind: sorted(each) for kind, each in ids.items()}, answer, confidence, author]
    )
    with workspace.read() as connection:
        first = earlier(workspace, connection, idempotency_key, fingerprint)
    if first is not None:
        return first
    told = None if answer is None else detect_recall(workspace, answer, recall_id)
    with workspace.write() as connection:
        first = earlier(workspace, connection, idempotency_key, fingerprint)
        if first is not None:
            return first
        receipt = receipt_of(workspace, connection, recall_id)
        said = [_Said(kind, fact, confidence) for kind, each in ids.items() for fact in each]
        items, errors, mistaken = _meant(connection, receipt, said, told, confidence, author)
        result = take(workspace, connection, idempotency_key, fingerprint, items, errors)
        # Who names a fact later has not ignored it.
        for event in mistaken:
            retract_event(workspace, connection, event, author)
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


def _ids(field: str, given: Facts) -> list[str]:
    """The facts that were named: ids or hits, one or many."""
    if not isinstance(given, Iterable):
        raise Invalid(f"{field} must be a list of facts, got {given!r}", field=field, value=given)
    items = [given] if isinstance(given, str | Hit) else list(given)
    found = [item.fact_id if isinstance(item, Hit) else item for item in items]
    for item in found:
        checks.identifier(field, item)
    return list(dict.fromkeys(found))


def _meant(
    connection: Connection,
    receipt: AnyRow,
    named: list[_Said],
    told: list[Detection] | None,
    confidence: float,
    author: str | None,
) -> tuple[list[Given], list[ItemError], list[AnyRow]]:
    """The signals that are meant, what can't be meant, and earlier `ignored` events that turn out mistaken."""
    ranks = {line[0]: rank for rank, line in enumerate(receipt.shown, start=1)}
    standing = {
        (event.target_id, event.value): event
        for event in ledger.of_receipt(connection, receipt.id)
        # What was made of a rating is another voice: it goes with the rating.
        if event.author == author and event.source == SOURCE
    }
    about = {fact for fact, kind in standing if kind != "ignored"} | {each.fact_id for each in named}
    present = facts.present(connection, list(ranks))
    unnamed = [fact for fact in ranks if fact not in about and fact in present]
    # Whoever names a fact that was not shown may have meant one of the others: nothing is said of those.
    mistaken = any(each.fact_id not in ranks for each in named)
    said = named if mistaken else named + _of_the_rest(unnamed, told, confidence)
    items, errors = [], []
    for index, each in enumerate(said):
        if each.fact_id not in ranks:
            errors.append(_not_shown(index, each.fact_id, receipt.id))
            continue
        before = standing.get((each.fact_id, each.kind))
        given = Signal(
            fact_id=each.fact_id,
            signal_type=each.kind,
            query=receipt.query,
            confidence=each.confidence if before is None else before.confidence,
            author=author,
        )
        # The same said twice is one event; said again after it was retracted, it is a new one.
        key = new_id() if before is None else before.idempotency_key
        items.append(Given(index, given, SOURCE, receipt.id, ranks[each.fact_id], key))
    known = {each.fact_id for each in said if each.kind != "ignored"}
    return items, errors, [standing[fact, "ignored"] for fact in known if (fact, "ignored") in standing]


def _not_shown(index: int, fact_id: str, recall_id: str) -> ItemError:
    message = f"fact {fact_id!r} was not shown by recall {recall_id}"
    return ItemError(index=index, code="not_found", message=message, fact_id=fact_id)


def _of_the_rest(unnamed: list[str], told: list[Detection] | None, confidence: float) -> list[_Said]:
    """What is said of facts that nobody named: what the answer tells, else that they were ignored."""
    if told is None:
        return [_Said("ignored", fact, confidence) for fact in unnamed]
    return [
        _Said(each.signal_type, each.fact_id, round(confidence * each.confidence, 6))
        for each in told
        if each.signal_type is not None and each.fact_id in unnamed
    ]
