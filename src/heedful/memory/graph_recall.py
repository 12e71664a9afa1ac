"""The graph: which entities facts mention, how they are linked, and what a recall reaches from its hits over them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sqlalchemy import Connection

from heedful.memory.workspace import Workspace
from heedful.model import SignalType
from heedful.protocols.engine import Progress
from heedful.providers.llm.contract import NOTICE, ChatMessage, LanguageModel, quote
from heedful.ranking.graph_expansion import FROM_QUERY, MAX_MENTIONS, SEEDS, Links, Paths, best_paths, blend, factor
from heedful.ranking.policies import Tally
from heedful.ranking.signals import Observation
from heedful.search.fusion import Found
from heedful.search.graph import GraphIndex, Pairs
from heedful.storage import facts, graph, ledger, link_scores, scopes
from heedful.storage.ledger import LINK_SIGNAL, Event
from heedful.storage.rows import batches
from heedful.text.entities import mentions

MAX_ADDED = 100
"""Facts that graph expansion may add to the candidates: those that borrow the most relevance."""


@dataclass(frozen=True, slots=True)
class Path:
    """The way by which a fact was reached."""

    entity: int
    seed: int | None
    """The fact it came from; None if the query itself names the entity."""
    added: float
    """What it added to relevance."""


@dataclass(frozen=True, slots=True)
class Expanded:
    """Candidates, and the paths that made some of them more relevant."""

    found: Found
    paths: dict[int, Path] = field(default_factory=dict)


class GraphExpansion:
    """The graph expansion of one recall: `expand` from what a search finds, then `take` adds the paths."""

    def __init__(
        self, connection: Connection, index: GraphIndex, dataset: int, query: str, weight: float, now: int
    ) -> None:
        self._connection = connection
        self._index = index
        self._named = graph.entity_numbers(connection, dataset, mentions(query))
        self._weight = weight
        self._now = now
        self._paths: Paths | None = None

    def expand(self, found: Found) -> list[int]:
        """The facts that paths from the most relevant of those found lead to, as far as they are not among them."""
        order = np.lexsort((found.facts, -found.relevance))[:SEEDS]
        seeds = found.facts[order]
        starts = self._index.links_of(seeds)
        entities = np.union1d(starts[1], np.fromiter(self._named.values(), np.int64))
        ends, counts = self._index.links_to(entities, MAX_MENTIONS)
        entities = entities[counts <= MAX_MENTIONS]
        mask = np.isin(starts[1], entities)
        # The facts that the walk starts from are among those it can end at.
        rated = link_scores.rated(self._connection, np.unique(ends[0]).tolist()) if self._weight else {}
        paths = best_paths(
            self._with_factors((starts[0][mask], starts[1][mask]), rated),
            dict(zip(seeds.tolist(), found.relevance[order].tolist(), strict=True)),
            entities,
            set(self._named.values()),
            self._with_factors(ends, rated),
        )
        self._paths = paths
        new = np.flatnonzero(~np.isin(paths.facts, found.facts))
        most = new[np.lexsort((paths.facts[new], -paths.borrowed[new]))][:MAX_ADDED]
        reached: list[int] = paths.facts[most].tolist()
        return reached

    def take(self, found: Found) -> Expanded:
        """The candidates with what the best path to each of them lends."""
        paths = self._paths
        if paths is None or not len(paths.facts):
            return Expanded(found)
        places = np.minimum(np.searchsorted(paths.facts, found.facts), len(paths.facts) - 1)
        hit = paths.facts[places] == found.facts
        borrowed = np.where(hit, paths.borrowed[places], 0).astype(np.float32)
        relevance = blend(found.relevance, borrowed)
        added = (relevance - found.relevance).tolist()
        ways = {
            int(found.facts[row]): Path(
                int(paths.entities[place]),
                None if paths.seeds[place] == FROM_QUERY else int(paths.seeds[place]),
                added[row],
            )
            for row, place in zip(np.flatnonzero(hit).tolist(), places[hit].tolist(), strict=True)
        }
        return Expanded(replace(found, relevance=relevance), ways)

    def _with_factors(self, pairs: Pairs, rated: dict[link_scores.Key, Tally]) -> Links:
        factors = np.ones(len(pairs[0]))
        for (fact, entity), tally in rated.items():
            factors[(pairs[0] == fact) & (pairs[1] == entity)] = factor(tally.at(self._now), self._weight)
        return Links(*pairs, factors)


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
    signals: Sequence[LinkSignal],
    *,
    source: str,
) -> list[str | None]:
    """Takes opinions about links into the ledger and the scores of the links, in an open transaction.

    Returns the event of each, for `retract`: that of the first time if it was given before, None if the link is gone.
    """
    now = workspace.now()
    named = [link_scores.parse_target(each.link) for each in signals]
    places = facts.locate(connection, workspace.project, sorted({pair[0] for pair in named if pair is not None}))
    there = link_scores.present(connection, [seq for seq, _ in places.values()])
    project = scopes.project_id(connection, workspace.project)
    keys = [each.idempotency_key for each in signals if each.idempotency_key is not None]
    seen = {} if project is None else {key: row.id for key, row in ledger.with_keys(connection, project, keys).items()}
    events: list[Event] = []
    observed: list[tuple[link_scores.Key, Observation]] = []
    result: list[str | None] = []
    for each, pair in zip(signals, named, strict=True):
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


MAX_NAME = 200
"""Characters of a name at most."""

TEXT = 10_000
"""Characters of a text at most."""

MAX_FAILURES = 1_000
"""Brackets of an answer that may turn out to open nothing, before the rest is left unread."""

RULES = """\
You find the names in texts: people, places, organisations, products, works, events, and technical terms.

The texts are numbered lines. {notice}

Answer with one line for each text and nothing else. A line is JSON: {"text": its number, "names": [the names in it, \
spelt as they are there]}. The list is empty where a text has none. Example: \
{"text": 7, "names": ["Marie Curie", "Paris"]}""".replace("{notice}", NOTICE)

_JSON = re.compile(r"[{\[]")


def name_entities(model: LanguageModel, texts: Sequence[str]) -> list[list[str]]:
    """The names in each text, in order, from one question to the model.

    A text for which the answer has nothing that can be read gets none. Names that are not in the text, in whatever
    case, are dropped: a model may make them up.
    """
    if not texts:
        return []
    plain = [" ".join(text.split()) for text in texts]
    lines = "\n".join(f"{number}. {quote(text, TEXT)}" for number, text in enumerate(plain, start=1))
    completion = model.complete([ChatMessage("system", RULES), ChatMessage("user", lines)])
    named: dict[int, list[str]] = {}
    for number, names in _rows(completion.text):
        named.setdefault(number, names)
    return [_present_names(named.get(number, []), text) for number, text in enumerate(plain, start=1)]


def _rows(answer: str) -> Iterator[tuple[int, list[str]]]:
    """What can be read of an answer: it may have words or a fence around it, be one list or object, or break off."""
    decoder = json.JSONDecoder()
    at = failures = 0
    while failures < MAX_FAILURES and (opening := _JSON.search(answer, at)) is not None:
        try:
            value, at = decoder.raw_decode(answer, opening.start())
        except (ValueError, RecursionError):
            at = opening.end()
            failures += 1
        else:
            yield from _read(value)


def _read(value: Any) -> Iterator[tuple[int, list[str]]]:
    if isinstance(value, list):
        for each in value:
            yield from _read(each)
    elif isinstance(value, dict):
        if "text" in value and "names" in value:
            pairs = [(value["text"], value["names"])]
        else:
            # Other models make one object of it: {"1": [names], "2": [names]}.
            pairs = list(value.items())
        for number, names in pairs:
            if str(number).isdecimal() and isinstance(names, list):
                yield int(number), [name for name in names if isinstance(name, str)]
            elif isinstance(names, list | dict):
                yield from _read(names)


def _present_names(names: Sequence[str], text: str) -> list[str]:
    """The names that the text has, each once."""
    low = text.casefold()
    found: dict[str, str] = {}
    for raw in names:
        name = " ".join(raw.split())
        if name and len(name) <= MAX_NAME and _contains_name(name.casefold(), low):
            found.setdefault(name.casefold(), name)
    return list(found.values())


def _contains_name(name: str, text: str) -> bool:
    """Whether a name is in a text as whole words, if it is made of letters and digits at its ends."""
    before = r"(?<!\w)" if name[0].isascii() and name[0].isalnum() else ""
    behind = r"(?!\w)" if name[-1].isascii() and name[-1].isalnum() else ""
    return re.search(f"{before}{re.escape(name)}{behind}", text) is not None
