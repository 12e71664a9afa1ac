"""The links between facts: enriching them, and opinions about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from heedful.memory.named_entities import name_entities
from heedful.memory.workspace import Workspace
from heedful.model import SignalType
from heedful.protocols.engine import Progress
from heedful.providers.llm.contract import LanguageModel
from heedful.ranking.signals import Observation
from heedful.storage import facts, graph, ledger, link_scores, scopes
from heedful.storage.ledger import LINK_SIGNAL, Event
from heedful.storage.rows import batches


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
    workspace: Workspace,
    connection: Connection,
    given: Sequence[LinkSignal],
    *,
    source: str,
) -> list[str | None]:
    """Takes opinions about links into the ledger and the scores of the links, in an open transaction.

    Returns the event of each, for `retract`: that of the first time if it was given before, None if the link is gone.
    """
    now = workspace.now()
    named = [link_scores.parse_target(each.link) for each in given]
    places = facts.locate(connection, workspace.project, sorted({pair[0] for pair in named if pair is not None}))
    there = link_scores.present(connection, [seq for seq, _ in places.values()])
    project = scopes.project_id(connection, workspace.project)
    keys = [each.idempotency_key for each in given if each.idempotency_key is not None]
    seen = {} if project is None else {key: row.id for key, row in ledger.with_keys(connection, project, keys).items()}
    events: list[Event] = []
    observed: list[tuple[link_scores.Key, Observation]] = []
    result: list[str | None] = []
    for each, pair in zip(given, named, strict=True):
        seq, dataset = places.get(pair[0], (0, 0)) if pair is not None else (0, 0)
        if each.idempotency_key in seen:
            result.append(seen[each.idempotency_key])
            continue
        if project is None or pair is None or (seq, pair[1]) not in there:
            result.append(None)
            continue
        event = Event(
            project_id=project,
            kind=LINK_SIGNAL,
            target_type="link",
            target_id=each.link,
            source=source,
            at=now if each.at is None else each.at,
            recorded_at=now,
            dataset_id=dataset,
            author=each.author,
            value=each.signal_type,
            confidence=each.confidence,
            receipt_id=each.receipt_id,
            idempotency_key=each.idempotency_key or "",
        )
        if each.idempotency_key is not None:
            seen[each.idempotency_key] = event.id
        events.append(event)
        observed.append(((seq, pair[1]), Observation(each.signal_type, each.confidence, event.at)))
        result.append(event.id)
    ledger.append(connection, events)
    link_scores.observe(connection, {seq: fact_id for fact_id, (seq, _) in places.items()}, observed)
    return result


MAX_FACTS = 200
"""Facts that are read in one call; the next call goes on."""

BATCH_SIZE = 10
"""Facts that the model is shown at once."""


def enrich(workspace: Workspace, model: LanguageModel, dataset: str, report: Progress | None = None) -> int:
    """Has the model read facts that it has not read yet, the newest first; returns how many links that added."""
    with workspace.read() as connection:
        number = workspace.dataset(connection, dataset)
        unread = [] if number is None else graph.unenriched(connection, number, MAX_FACTS)
    added = 0
    for number_of_run, run in enumerate(batches(unread, BATCH_SIZE)):
        if report is not None:
            report(number_of_run * BATCH_SIZE, len(unread))
        named = name_entities(model, [row.text for row in run])
        with workspace.write() as connection:
            assert number is not None
            present = set(facts.by_seq(connection, [row.seq for row in run]))
            for row, names in zip(run, named, strict=True):
                if row.seq in present:
                    added += graph.enrich(connection, number, row.seq, names)
    return added
