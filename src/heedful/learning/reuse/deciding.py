"""May a proven SQL query answer another question?"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from datetime import datetime

from heedful.learning.reuse.binding import Doubt, ambiguous, bindings, changed, differences
from heedful.learning.reuse.evidence import Evidence, Words
from heedful.learning.reuse.gates import dated, decides, exchanges, near, never_exchanged, refusal, unquoted
from heedful.learning.reuse.reading import LONGEST, Frame, Span, is_name, is_slot, name, read, readings, spans, verbatim
from heedful.learning.reuse.studies import Proven, Study, study
from heedful.learning.reuse.values import Values
from heedful.learning.reuse.verdict import Difference, Verdict

ALWAYS_MEANT = 3
"""Different values that a frame must be proven with before it settles what an ambiguous one means."""

MOST_SWAPS = 2
"""Places where learned words may differ."""

WITNESSES = 2
"""Pairs of proven questions, in other places or with other SQL, that show that words are interchangeable."""

Meeting = tuple[list[Frame], tuple[Difference, ...]]


class Asked:
    """A question as it can be read; made once and held against all candidates."""

    def __init__(self, text: str, values: Values, now: datetime) -> None:
        self.text = text
        self.now = now
        self.words = read(text)
        self.joined = " ".join(self.words)
        self.spans: list[Span] = spans(self.words, values)
        self.frames: list[Frame] = list(readings(self.words, self.spans))
        self.by_key: dict[Words, list[Frame]] = {}
        for frame in self.frames:
            self.by_key.setdefault(frame.key, []).append(frame)
        self.learned: dict[tuple[Words, str], Meeting] = {}
        self.rebound: dict[Hashable, str] = {}
        self.certain = all(len(span.kinds) == 1 for span in self.spans)


def decide(
    asked: str,
    proven: str,
    sql: str,
    *,
    dialect: str,
    values: Values,
    now: datetime,
    proven_at: datetime,
    evidence: Evidence | None = None,
) -> Verdict:
    """Whether the SQL that is proven for one question answers another: as it is, with other values, or not.

    `values` tells which names the database's columns hold. With `evidence`, words that its proven questions show to
    mean the same may differ.
    """
    known = study(proven, sql, dialect, values)
    return _decide(Asked(asked, values, now), Proven(None, proven, sql, proven_at), known, dialect, values, evidence)


def choose(
    asked: str, candidates: Sequence[Proven], *, now: datetime, evidence: Evidence, explained: int = 50
) -> list[Verdict]:
    """A verdict for each candidate, where candidates that would answer differently refuse each other.

    `evidence` holds all proven questions of the connector, among them the candidates. Differences in words are named
    for the first `explained` candidates; that is what takes time.
    """
    reading = Asked(asked, evidence.values, now)
    verdicts = []
    for place, each in enumerate(candidates):
        known = evidence.study(each)
        verdicts.append(
            _decide(reading, each, known, evidence.dialect, evidence.values, evidence, explain=place < explained)
        )
    answers = {verdict.canonical for verdict in verdicts if verdict.decision != "refuse"}
    if len(answers) < 2:
        return verdicts
    reason = "proven questions that mean the same have different SQL"
    return [
        verdict if verdict.decision == "refuse" else Verdict("refuse", "conflict", reason, verdict.differences)
        for verdict in verdicts
    ]


def alike(asked: str, evidence: Evidence) -> list[Hashable]:
    """The ids of proven questions that ask alike whatever their values: candidates that similarity may miss."""
    words = read(asked)
    return evidence.like(list(readings(words, spans(words, evidence.values))))


def _decide(
    asked: Asked,
    proven: Proven,
    known: Study | None,
    dialect: str,
    values: Values,
    evidence: Evidence | None,
    *,
    explain: bool = True,
) -> Verdict:
    if known is None:
        return Verdict("refuse", "sql", "the proven SQL can't be read as one statement with all its values")
    if not asked.words:
        return Verdict("refuse", "words", "nothing is asked")
    if reason := dated(asked.text, proven.question, proven.sql, dialect, asked.now, proven.at):
        return Verdict("refuse", "relative_dates", reason)
    if max(len(asked.words), len(known.words)) > LONGEST and asked.words != known.words:
        return Verdict("refuse", "words", f"questions of more than {LONGEST} words are only served as they are")
    same, learned = _meeting(asked, known, evidence)
    if not same:
        if not explain:
            return Verdict("refuse", "words", "the words differ")
        return Verdict("refuse", *refusal(asked.frames, known.frame))
    if missing := unquoted(asked.text, proven.question, asked.frames, known.frame):
        return Verdict("refuse", "literals", f"quoted texts differ: “{missing}” is not in both")
    verdicts = [_with_values(asked, frame, proven, known, values, evidence, learned) for frame in same]
    passed = {verdict.canonical: verdict for verdict in verdicts if verdict.decision != "refuse"}
    if len(passed) > 1:
        return Verdict("refuse", "kind", "the values of the question can be read in several ways")
    return next(iter(passed.values()), verdicts[0])


def _meeting(asked: Asked, known: Study, evidence: Evidence | None) -> Meeting:
    """The readings of a question that meet a proven frame, and the words that had to be exchanged for that."""
    if same := asked.by_key.get(known.frame.key):
        return same, ()
    if known.open and all(each.text in asked.joined for each in known.open):
        # A value that no column is known to hold can still be the same in both.
        frame = verbatim(asked.words, asked.spans, known.values)
        if frame is not None and frame.key == known.frame.key:
            return [frame], ()
    if evidence is None or not asked.certain:  # What an ambiguous value means hangs on the words beside it.
        return [], ()
    place = known.frame.words, known.template
    if place not in asked.learned:
        asked.learned[place] = _learned(asked, known, evidence)
    return asked.learned[place]


def _learned(asked: Asked, known: Study, evidence: Evidence) -> Meeting:
    """The reading that meets a proven frame when words are exchanged that are known to mean the same."""
    for frame in asked.frames:
        if not near(frame.words, known.frame.words):
            continue
        swaps = exchanges(frame.words, known.frame.words)
        if len(swaps) <= MOST_SWAPS and all(_exchangeable(*swap, known.template, evidence) for swap in swaps):
            return [frame], tuple(Difference("learned", " ".join(new), " ".join(old)) for new, old in swaps)
    return [], ()


def _with_values(
    asked: Asked,
    frame: Frame,
    proven: Proven,
    known: Study,
    values: Values,
    evidence: Evidence | None,
    learned: tuple[Difference, ...],
) -> Verdict:
    """The verdict when the frames are the same: on the values in them."""
    found = changed(frame, known)
    shown = (*differences(found), *learned)
    if missing := _unnamed(asked, frame, known, learned):
        return Verdict("refuse", "literals", f"values differ: “{missing}” is not in both", shown)
    if evidence is not None and (reason := _disputed(asked, known, evidence)):
        return Verdict("refuse", "conflict", reason, shown)
    if not found:
        reason = "the question is the same" if not learned else _because(learned)
        return Verdict("serve", "same", reason, shown, proven.sql, {}, proven.sql, known.query.canonical)
    try:
        made = bindings(asked.words, found, values)
    except Doubt as doubt:
        return Verdict("refuse", doubt.gate, doubt.reason, shown)
    for change in found:
        others = ambiguous(change, frame, values)
        if others and not _always_meant(frame, known, evidence):
            reason = f"“{change.new.text}” may also be a value of {others}"
            return Verdict("refuse", "kind", reason, shown)
    kept = tuple(literal.text for each in known.open for literal in each.literals if literal.place not in made)
    place = known.template, tuple(sorted(made.items())), kept
    if place not in asked.rebound:
        asked.rebound[place] = known.query.canonical_with(made)
    rebound = known.query.rebound(made)
    reason = "only values differ: " + ", ".join(f"“{each.new.text}” for “{each.old.text}”" for each in found)
    return replace(
        Verdict("rebind", "rebind", f"{reason}; {_because(learned)}" if learned else reason, shown),
        sql=rebound.sql,
        parameters=rebound.parameters,
        display=rebound.display,
        canonical=asked.rebound[place],
    )


def _exchangeable(new: Words, old: Words, template: str, evidence: Evidence) -> bool:
    """Whether proven questions show that words mean the same; those that compare, within this SQL template."""
    if any(map(is_slot, (*new, *old))) or never_exchanged(new, old):
        return False
    swap = evidence.swap(old, new, template)
    return (swap.places if decides((*new, *old)) else max(swap)) >= WITNESSES


def _unnamed(asked: Asked, frame: Frame, known: Study, learned: Sequence[Difference]) -> str | None:
    """A value that stays as it is and is written in one question only: "Alien" is not "Aliens"."""
    slots = {slot.text for slot in frame.slots}
    names = {name(asked.words, span) for span in asked.spans if is_name(span)} - slots
    mine, theirs = f" {asked.joined} ", f" {' '.join(known.words)} "
    for text, other in [*[(text, mine) for text in known.fixed], *[(text, theirs) for text in sorted(names)]]:
        exchanged = any(f" {text} " in f" {each.asked} {each.proven} " for each in learned)
        if f" {text} " not in other and not exchanged:
            return text
    return None


def _disputed(asked: Asked, known: Study, evidence: Evidence) -> str | None:
    """Why proven questions with the same words speak against this SQL."""
    for frame in asked.frames:
        if any(template != known.template for template in evidence.templates(frame.key)):
            return "the same words are proven with different SQL, too"
    return None


def _always_meant(frame: Frame, known: Study, evidence: Evidence | None) -> bool:
    return evidence is not None and evidence.templates(frame.key).get(known.template, 0) >= ALWAYS_MEANT


def _because(learned: Sequence[Difference]) -> str:
    said = ", ".join(f"“{each.asked}” for “{each.proven}”" for each in learned)
    return f"other proven questions show that these words mean the same: {said}"
