"""The graph: which entities facts mention, how they are linked, and what a recall reaches from its hits over them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sqlalchemy import Connection

from heedful.api.parameters import Progress
from heedful.ledger import scores
from heedful.ledger.usefulness import Tally
from heedful.providers.llm import NOTICE, ChatMessage, LanguageModel, quote
from heedful.search.graph_index import (
    FROM_QUERY,
    MAX_MENTIONS,
    SEEDS,
    GraphIndex,
    Links,
    Paths,
    best_paths,
    blend,
    factor,
)
from heedful.search.relevance import Found
from heedful.storage import facts, graph
from heedful.storage.graph import Pairs
from heedful.storage.rows import batches
from heedful.text.entities import mentions
from heedful.text.regex import regex
from heedful.workspace import Workspace

MAX_ADDED = 100  # Facts that graph expansion may add to the candidates: those that borrow the most relevance.


@dataclass(frozen=True, slots=True)
class Path:
    """The way by which a fact was reached."""

    entity: int
    seed: int | None
    """The fact it came from; None if the query itself names the entity."""
    added: float
    """The relevance that it added."""


@dataclass(frozen=True, slots=True)
class Expanded:
    """Candidates, and the paths that made some of them more relevant."""

    found: Found
    paths: dict[int, Path] = field(default_factory=dict)


class GraphExpansion:
    """The graph expansion of one recall: `expand` from the facts that a search finds, then `take` adds the paths."""

    def __init__(
        self, connection: Connection, index: GraphIndex, dataset: int, query: str, weight: float, now: int
    ) -> None:
        self._connection, self._index, self._weight, self._now = connection, index, weight, now
        self._named = graph.entity_numbers(connection, dataset, mentions(query))
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
        rated = scores.rated_links(self._connection, np.unique(ends[0]).tolist()) if self._weight else {}
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

    def _with_factors(self, pairs: Pairs, rated: dict[scores.Key, Tally]) -> Links:
        factors = np.ones(len(pairs[0]))
        for (fact, entity), tally in rated.items():
            factors[(pairs[0] == fact) & (pairs[1] == entity)] = factor(tally.at(self._now), self._weight)
        return Links(*pairs, factors)


MAX_FACTS = 200  # Facts that are read in one call; the next call goes on.
BATCH_SIZE = 10  # Facts that the model is shown at once.


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


MAX_NAME = 200  # Characters of a name at most.
TEXT = 10_000  # Characters of a text at most.
MAX_FAILURES = 1_000  # Brackets of an answer that may turn out to open nothing, before the rest is left unread.

RULES = """\
You find the names in texts: people, places, organisations, products, works, events, and technical terms.

The texts are numbered lines. {notice}

Answer with one line for each text and nothing else. A line is JSON: {"text": its number, "names": [the names in it, \
spelt as they are there]}. The list is empty where a text has none. Example: \
{"text": 7, "names": ["Marie Curie", "Paris"]}""".replace("{notice}", NOTICE)

_JSON = regex(r"[{\[]")


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
    """The readable lines of an answer: it may have words or a fence around it, be one list or object, or break off."""
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
        for item in value:
            yield from _read(item)
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
    present: dict[str, str] = {}
    for raw in names:
        name = " ".join(raw.split())
        if name and len(name) <= MAX_NAME and _contains_name(name.casefold(), low):
            present.setdefault(name.casefold(), name)
    return list(present.values())


def _contains_name(name: str, text: str) -> bool:
    """Whether a name is in a text as whole words, if it is made of letters and digits at its ends."""
    before = r"(?<!\w)" if name[0].isascii() and name[0].isalnum() else ""
    behind = r"(?!\w)" if name[-1].isascii() and name[-1].isalnum() else ""
    return re.search(f"{before}{re.escape(name)}{behind}", text) is not None
