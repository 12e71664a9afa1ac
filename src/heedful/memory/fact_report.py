"""An audit of what is stored: duplicates, and facts that nobody needs, with what to do about each.

Time and memory are bounded: of each fact, its number, a hash of its text and the signs of its vector are held; texts
and whole vectors are read only for pairs that may be the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from heedful.api import checks
from heedful.clock import DAY
from heedful.ledger import receipts, scores
from heedful.memory.remember import is_same_scope
from heedful.model import FactFinding, FactProblem, FactReport, FoundFact
from heedful.search.vector_index import encode
from heedful.storage import facts
from heedful.storage.facts import DisplayRow
from heedful.storage.rows import batches
from heedful.storage.vectors import ModelRow, Vectors, of_facts, unpack
from heedful.text.conflicts import have_same_values
from heedful.workspace import Workspace

BATCH_SIZE = 2_000

MAX_PAIRS = 5_000  # Pairs of facts that are compared in full.
MAX_RECALLS = 50_000  # The newest recalls whose receipts are read.
OLD_ENOUGH = 30 * DAY  # A fact that is younger than this may still be recalled.
MIN_IGNORED = 3  # Signals against a fact, and none for it, from which it is always ignored.
MIN_COSINE = 0.95  # From here on, two facts say the same, if they have the same numbers and names.
MAX_FLIPPED = 1 / 6  # The share of differing signs up to which two vectors are compared in full.
BAND = np.dtype(np.uint16)  # Signs that two facts must share somewhere to be compared: sixteen of them in a row.
WINDOW = 6  # Facts with the same signs that each is compared with, in each band.

REMEDIES: dict[FactProblem, str] = {
    "duplicate": "Keep one of each: heedful forget FACT_ID",
    "near_duplicate": "Keep the better wording: heedful supersede FACT_ID --by OTHER",
    "never_recalled": "Forget it, or say it in the words that people ask with: heedful supersede FACT_ID TEXT",
    "always_ignored": "Correct it, or forget it: heedful supersede FACT_ID TEXT, heedful forget FACT_ID",
    "expired": "They are not recalled any more; heedful maintain removes them",
}

Pair = tuple[int, int]  # The later fact, and the earlier one that says the same.


def fact_report(workspace: Workspace, dataset: str, limit: int) -> FactReport:
    """The findings in a dataset; up to `limit` facts of each kind are named."""
    checks.name("dataset", dataset)
    with workspace.read() as connection:
        number, model = workspace.dataset(connection, dataset), workspace.model(connection)
        if number is None or model is None:
            return FactReport(dataset=dataset, facts=0, recalls=0, findings=[])
        now = workspace.now()
        audit = _Audit(connection, number, limit, now)
        sketch = _sketch(connection, number, model)
        duplicates = _duplicates(sketch)
        equal = set(duplicates)
        near = [pair for pair in _near(sketch) if pair not in equal]
        recalled: set[str] = set()
        recalls = 0
        for shown in receipts.newest_shown(connection, number, MAX_RECALLS):
            recalled.update(shown)
            recalls += 1
        stored = facts.stored_before(connection, number, now - OLD_ENOUGH, now) if recalls else []
        detail = f"not shown by the last {recalls} recalls"
        never_recalled = [(seq, detail) for seq, fact_id in stored if fact_id not in recalled]
        ignored = [
            (fact, f"{tally.ignored} times ignored, {tally.not_helpful} times not helpful")
            for fact, tally in sorted(scores.overall(connection, number, now).items())
            if tally.ignored + tally.not_helpful >= MIN_IGNORED and not tally.used + tally.helpful
        ]
        findings = [
            audit.pairs("duplicate", duplicates),
            audit.pairs("near_duplicate", near, model),
            audit.listed("never_recalled", never_recalled),
            audit.listed("always_ignored", ignored),
            audit.listed("expired", [(seq, "expired") for seq in facts.expired(connection, number, now)]),
        ]
        return FactReport(
            dataset=dataset,
            facts=facts.count(connection, number, now),
            recalls=recalls,
            findings=[finding for finding in findings if finding.count],
        )


@dataclass(frozen=True, slots=True)
class _Audit:
    connection: Connection
    dataset: int
    limit: int
    now: int

    def listed(self, kind: FactProblem, named: Sequence[tuple[int, str]]) -> FactFinding:
        """Facts by number, each with why it is named."""
        rows = facts.by_seq(self.connection, [seq for seq, _ in named[: self.limit]])
        return FactFinding(
            kind=kind,
            count=len(named),
            facts=[
                FoundFact(fact_id=rows[seq].id, text=rows[seq].text, other=None, detail=detail)
                for seq, detail in named[: self.limit]
                if seq in rows
            ],
            remedy=REMEDIES[kind],
        )

    def pairs(self, kind: FactProblem, candidates: Sequence[Pair], model: ModelRow | None = None) -> FactFinding:
        """Pairs that prove to say the same; with a `model`, by their vectors."""
        kept: list[FoundFact] = []
        count = 0
        seen: set[int] = set()
        for run in batches(candidates[:MAX_PAIRS], BATCH_SIZE):
            seqs = sorted({seq for pair in run for seq in pair})
            rows = {seq: row for some in batches(seqs) for seq, row in facts.by_seq(self.connection, some).items()}
            vectors = {} if model is None else of_facts(self.connection, model, seqs)
            for later, earlier in run:
                if later in seen or later not in rows or earlier not in rows:
                    continue
                if not self._is_same(rows[later], rows[earlier]):
                    continue
                cosine = None if model is None else float(vectors[later] @ vectors[earlier])
                if cosine is not None and cosine < MIN_COSINE:
                    continue
                seen.add(later)
                count += 1
                if len(kept) < self.limit:
                    detail = "the same text" if cosine is None else f"similarity {cosine:.2f}"
                    text, other = rows[later].text, rows[earlier].id
                    kept.append(FoundFact(fact_id=rows[later].id, text=text, other=other, detail=detail))
        return FactFinding(kind=kind, count=count, facts=kept, remedy=REMEDIES[kind])

    def _is_same(self, one: DisplayRow, other: DisplayRow) -> bool:
        if any(row.expires_at is not None and row.expires_at <= self.now for row in (one, other)):
            return False
        return is_same_scope(one.metadata, other.metadata) and have_same_values(one.text, other.text)


@dataclass(frozen=True, slots=True)
class _Sketch:
    """Of each fact: its number, a hash of its text, and the signs of its vector as words of 64 bits."""

    seqs: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    bits: NDArray[np.uint64]


def _sketch(connection: Connection, dataset: int, model: ModelRow) -> _Sketch:
    seqs, hashes, bits = [], [], []
    mean: Vectors | None = None
    rows = facts.indexable(connection, dataset, model.id)
    while run := list(islice(rows, BATCH_SIZE)):
        vectors = unpack([row.vector for row in run], model.dimensions)
        if mean is None:
            mean = vectors.mean(axis=0)
        seqs.append(np.array([row.seq for row in run], np.int64))
        digests = (facts.digest(" ".join(row.text.casefold().split()), None, {}) for row in run)
        hashes.append(np.array([int.from_bytes(digest[:8], "little") for digest in digests], np.uint64))
        bits.append(encode(vectors, mean).T)
    if not seqs:
        return _Sketch(np.empty(0, np.int64), np.empty(0, np.uint64), np.empty((0, 1), np.uint64))
    return _Sketch(np.concatenate(seqs), np.concatenate(hashes), np.ascontiguousarray(np.concatenate(bits)))


def _duplicates(sketch: _Sketch) -> list[Pair]:
    """Facts of equal text, each with the first of them."""
    order = np.lexsort((sketch.seqs, sketch.hashes))
    hashes, seqs = sketch.hashes[order], sketch.seqs[order]
    begins = np.concatenate([[True], hashes[1:] != hashes[:-1]]) if len(hashes) else np.empty(0, bool)
    firsts = seqs[np.maximum.accumulate(np.where(begins, np.arange(len(seqs)), 0))]
    return list(zip(seqs[~begins].tolist(), firsts[~begins].tolist(), strict=True))


def _near(sketch: _Sketch) -> list[Pair]:
    """Facts whose vectors have nearly the same signs, the most similar first.

    Two that do share sixteen signs in a row in some band, so that only those are compared.
    """
    count, words = sketch.bits.shape
    most = int(64 * words * MAX_FLIPPED)
    # Rows of how many signs differ, the later fact, and the earlier one.
    nearest = np.empty((0, 3), np.int64)
    bands = sketch.bits.view(BAND)
    for band in range(bands.shape[1]):
        order = np.argsort(bands[:, band], kind="stable")
        keys = bands[order, band]
        for step in range(1, min(WINDOW, count - 1) + 1):
            together = np.flatnonzero(keys[step:] == keys[:-step])
            one, other = order[together], order[together + step]
            flipped = np.bitwise_count(sketch.bits[one] ^ sketch.bits[other]).sum(axis=1, dtype=np.int64)
            alike = np.flatnonzero(flipped <= most)
            # Where nearly all are alike, sorting all of them would take minutes.
            if len(alike) > 10 * MAX_PAIRS:
                alike = alike[np.argpartition(flipped[alike], MAX_PAIRS)[:MAX_PAIRS]]
            seqs = sketch.seqs[one[alike]], sketch.seqs[other[alike]]
            nearest = np.concatenate([nearest, np.column_stack([flipped[alike], np.maximum(*seqs), np.minimum(*seqs)])])
        nearest = np.unique(nearest, axis=0)
        if len(nearest) > 10 * MAX_PAIRS:
            nearest = nearest[:MAX_PAIRS]
    return [(later, earlier) for _, later, earlier in nearest.tolist()]
