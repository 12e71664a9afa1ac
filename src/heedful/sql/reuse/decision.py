"""May a proven query answer another question? Gates that each find one difference, and the decision."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from copy import copy
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import NamedTuple

from heedful.sql.reuse import question_reading, question_words, reasons
from heedful.sql.reuse.binding import (
    Change,
    Dates,
    Doubt,
    ambiguous,
    bindings,
    changed_values,
    dates,
    differences,
    says_otherwise,
)
from heedful.sql.reuse.evidence import Evidence, ProvenQuery, Study, Words, study
from heedful.sql.reuse.exchanges import Exchange, learned_readings, nearby, opcodes
from heedful.sql.reuse.moments import moments, outdated, resolution
from heedful.sql.reuse.periods import impossible, periods
from heedful.sql.reuse.query_parts import canonical, follows_clock
from heedful.sql.reuse.question_reading import (
    MAX_WORDS,
    PLURAL,
    POLAR,
    Frame,
    Span,
    in_order,
    is_name,
    name,
    quoted,
    read,
    readings,
    spans,
    verbatim,
    vocabulary,
)
from heedful.sql.reuse.question_words import DATE, NUMBER, is_slot, number
from heedful.sql.reuse.typos import corrected
from heedful.sql.reuse.values import Values, plain
from heedful.sql.reuse.verbs import opposition
from heedful.sql.reuse.verdict import Difference, Gate, Verdict

_ORDER: tuple[tuple[Gate, frozenset[str]], ...] = (
    ("form", frozenset((question_reading.POLAR,))),
    ("negation", question_words.NEGATIONS),
    ("aggregate", question_words.AGGREGATES),
    ("operators", question_words.OPERATORS),
    ("scope", question_words.SCOPES),
)
_PRESENT = frozenset(("now", "nowadays", "currently"))  # What is so when the SQL runs, unless it names a date.
_RANKED: tuple[Gate, ...] = ("form", "literals", *(gate for gate, _ in _ORDER[1:]))
"""The gates whose differences tell most, the first before the others."""


class Run(NamedTuple):
    """Words of a frame in a row, and what was typed for them."""

    words: Words
    typed: str


def changes(asked: Frame, proven: Frame) -> list[tuple[Run, Run]]:
    """The runs of words that differ, as (asked, proven)."""
    found = []
    for tag, a, b, c, d in opcodes(asked.words, proven.words):
        if tag != "equal":
            # A plural is told by its noun, and "the" before a name with the name.
            back = int(PLURAL in (*asked.words[a : a + 1], *proven.words[c : c + 1]) and min(a, c) > 0)
            ahead = int("the_" in (*asked.words[a:b][-1:], *proven.words[c:d][-1:]))
            found.append((_run(asked, slice(a - back, b + ahead)), _run(proven, slice(c - back, d + ahead))))
    return found


def _run(frame: Frame, part: slice) -> Run:
    return Run(frame.words[part], " ".join(word.rstrip("_") for word in frame.typed[part] if word))


def _typed(frame: Frame, words: Words) -> str:
    """What a question has for some words of its frame."""
    starts = range(len(frame.words) - len(words) + 1)
    start = next(at for at in starts if frame.words[at : at + len(words)] == words)
    return _run(frame, slice(start, start + len(words))).typed


def unquoted(asked: str, proven: str, frames: Sequence[Frame], frame: Frame) -> str | None:
    """Why a text that one question quotes, that is no value of its frame and that the other one doesn't say, keeps them
    apart."""
    for own, other, known in ((asked, proven, frames), (proven, asked, [frame])):
        slots = {slot.text for each in known for slot in each.slots}
        for text in sorted(quoted(own) - slots):
            if f" {text} " not in f" {plain(other)} ":
                return reasons.differing("literals", *([text], []) if own is asked else ([], [text]))
    return None


def refusal(readings: Sequence[Frame], proven: Frame) -> tuple[Gate, str, tuple[Difference, ...]]:
    """Why no reading of a question meets a proven frame: gate, sentence and differences."""
    asked = min(readings, key=lambda frame: len(set(frame.words).symmetric_difference(proven.words)))
    every = [_difference(new, old) for new, old in changes(asked, proven)]
    found = tuple(each for each in every if each.asked or each.proven)
    if sorted(asked.words) == sorted(proven.words):
        return "argument_order", reasons.another_order(*_apart(asked, proven)), found
    kinds = [each.kind for each in every]
    gate: Gate = next((name for name in _RANKED if name in kinds), "words")
    deciding = [each for each in found if each.kind == gate]
    sides = [each.asked for each in deciding if each.asked], [each.proven for each in deciding if each.proven]
    if not any(sides):
        # Only who does something to whom differs, which no word of its own says.
        whole = slice(None)
        return "argument_order", reasons.another_order(_run(asked, whole).typed, _run(proven, whole).typed), found
    return gate, reasons.differing(gate, *sides), found


def _difference(new: Run, old: Run) -> Difference:
    gate = _gate((*new.words, *old.words))
    if gate == "form":
        return Difference(gate, *("yes or no" if POLAR in run.words else "" for run in (new, old)))
    return Difference(gate, new.typed, old.typed)


def _apart(asked: Frame, proven: Frame) -> tuple[str, str]:
    """What two frames of the same words have between what they begin and end with alike."""
    alike = [new == old for new, old in zip(asked.words, proven.words, strict=True)]
    part = slice(alike.index(False), len(alike) - alike[::-1].index(False))
    return _run(asked, part).typed, _run(proven, part).typed


def date_conflict(asked: Question, frame: Frame | None, proven: ProvenQuery, known: Study) -> str | None:
    """Why what two questions say about the clock doesn't mean the same days, or None when it does. Without a frame,
    the periods that are values of the SQL count, too."""
    new = _clocked(asked.words, frame, asked.now)
    old = _clocked(known.words, known.frame if frame is not None else None, proven.at)
    if not new and not old:
        return None
    sql, dialect = proven.sql, known.query.dialect
    if all(words in _PRESENT for words, _ in (*new, *old)) and not moments(sql, dialect):
        return None
    if [words for words, _ in new] == [words for words, _ in old] and follows_clock(sql, dialect):
        return None
    if [days for _, days in new] == [days for _, days in old] and not follows_clock(sql, dialect):
        return None
    return reasons.other_dates([(words, *days) for words, days in new], [(words, *days) for words, days in old])


def _clocked(words: Words, frame: Frame | None, at: datetime) -> list[tuple[str, tuple[date, date]]]:
    """The periods that follow the clock and are no values of a frame, with their first and last days."""
    values = {slot.start for slot in frame.slots if slot.kind == DATE} if frame is not None else set()
    found = []
    for each in periods(words):
        if each.follows_clock and each.start not in values:
            days = next(iter(each.ranges(at).values()), None)
            last = at if days is None else days.end - timedelta(microseconds=1)
            found.append((each.words, ((at if days is None else days.first).date(), last.date())))
    return found


def _gate(words: Sequence[str]) -> Gate:
    for gate, deciding in _ORDER:
        if any(word in deciding for word in words):
            return gate
    return "literals" if any(is_slot(word) or number(word) is not None for word in words) else "words"


MIN_PROVEN_VALUES = 3
"""Different values that a frame must be proven with before it settles what an ambiguous one means."""

FrameMatch = tuple[list[Frame], tuple[Difference, ...]]


class Question:
    """A question as it can be read with the values of a database; made once and held against all candidates."""

    def __init__(self, text: str, values: Values, now: datetime) -> None:
        self.text = text
        self.now = now
        self.words = read(text)
        self.joined = " ".join(self.words)
        self.vocabulary = vocabulary(values)
        # Longer ones are only compared word for word.
        is_read = len(self.words) <= MAX_WORDS
        self.spans: list[Span] = spans(self.words, values) if is_read else []
        self.periods = {each.start: each for each in periods(self.words) if each.ranges(now)}
        named = [Span(each.start, each.stop, (DATE,)) for each in self.periods.values()]
        self.frames: list[Frame] = [
            in_order(frame, self.periods, now) for frame in readings(self.words, self.spans, self.vocabulary, named)
        ]
        self.impossible = impossible(self.words)
        self.by_key: dict[Words, list[Frame]] = {}
        for frame in self.frames:
            self.by_key.setdefault(frame.key, []).append(frame)
        self.learned: dict[Words, list[tuple[Frame, list[Exchange]]]] = {}
        """The readings that may meet a frame, with the words that would be exchanged for that."""
        self.certain = all(len(span.kinds) == 1 for span in self.spans if not span.held)

    def asked_at(self, now: datetime) -> Question:
        """The same question on the same day, at another time."""
        other = copy(self)
        other.now = now
        return other


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
    known = study(proven, sql, dialect, values, proven_at)
    query = ProvenQuery(None, proven, sql, proven_at)
    return reasons.written(
        _decide(Question(asked, values, now), query, known, dialect, values, evidence), asked, proven
    )


def choose(
    asked: Question, candidates: Sequence[ProvenQuery], *, evidence: Evidence, explained: int = 50
) -> list[Verdict]:
    """A verdict for each candidate, where candidates that would answer differently refuse each other.

    `evidence` holds all proven questions of the connector, among them the candidates. Differences in words are named
    for the first `explained` candidates; that is what takes time.
    """
    verdicts = []
    # The same question is often stored many times, with the same SQL.
    known: dict[tuple[str, str, date, bool], Verdict] = {}
    for place, each in enumerate(candidates):
        key = each.question, each.sql, resolution(each.sql, evidence.dialect, each.at), place < explained
        if key not in known:
            study = evidence.study(each)
            made = _decide(asked, each, study, evidence.dialect, evidence.values, evidence, explain=place < explained)
            known[key] = reasons.written(made, asked.text, each.question) if place < explained else made
        verdicts.append(known[key])
    if all(verdict.decision == "refuse" for verdict in verdicts):
        verdicts = _by_consensus(asked, candidates, verdicts, evidence)
    if all(verdict.decision == "refuse" for verdict in verdicts):
        verdicts = _with_suggestion(asked, candidates, verdicts, evidence)
        is_open = all(verdict.suggested is None for verdict in verdicts)
        return _with_correction(asked, candidates, verdicts, evidence) if is_open else verdicts
    answers = [verdict for verdict in verdicts if verdict.decision != "refuse"]
    if _are_same(answers, evidence.dialect) and not _is_contested(asked, candidates, verdicts, evidence):
        return verdicts
    identical = [_is_identical(asked, each, evidence) for each in candidates]
    exact = [
        verdict for verdict, same in zip(verdicts, identical, strict=True) if same and verdict.decision != "refuse"
    ]
    kept = identical if exact and _are_same(exact, evidence.dialect) else [False] * len(verdicts)
    return [
        verdict
        if keep or verdict.decision == "refuse"
        else Verdict("refuse", "conflict", reasons.CONTRADICTION, verdict.differences)
        for verdict, keep in zip(verdicts, kept, strict=True)
    ]


def _is_identical(asked: Question, proven: ProvenQuery, evidence: Evidence) -> bool:
    known = evidence.study(proven)
    return known is not None and known.words == asked.words


def _is_contested(
    asked: Question, candidates: Sequence[ProvenQuery], verdicts: Sequence[Verdict], evidence: Evidence
) -> bool:
    """Whether words had to be exchanged to meet a proven question, and others with other SQL are nearer as it is."""
    for each, verdict in zip(candidates, verdicts, strict=True):
        if verdict.decision != "refuse" and any(one.kind == "learned" for one in verdict.differences):
            known = evidence.study(each)
            assert known is not None
            kinds = sorted(slot.kind for slot in known.frame.slots)
            for frame in asked.frames:
                if sorted(slot.kind for slot in frame.slots) == kinds and evidence.is_contested(frame, known.template):
                    return True
    return False


def same_frame_ids(asked: Question, evidence: Evidence) -> list[Hashable]:
    """The ids of proven questions that ask alike whatever their values: candidates that similarity may miss."""
    if len(asked.words) > MAX_WORDS:
        return []
    frames = asked.frames
    found = dict.fromkeys(evidence.like(frames))
    agreements = [agreement for frame in frames if (agreement := evidence.agreed(frame))]
    agreements = agreements or [agreement for frame in frames if (agreement := evidence.likely(frame))]
    for agreement in agreements:
        found.update(dict.fromkeys(agreement.ids))
    if right := _corrected(asked, evidence):
        found.update(dict.fromkeys(same_frame_ids(right, evidence)))
    return list(found)


def _corrected(asked: Question, evidence: Evidence) -> Question | None:
    """The question with one word put right."""
    if len(asked.words) > MAX_WORDS:
        return None
    text = evidence.recalled(
        ("corrected", asked.text), lambda: corrected(asked.text, asked.words, asked.spans, evidence)
    )
    return None if text is None else Question(text, evidence.values, asked.now)


def _with_correction(
    asked: Question, candidates: Sequence[ProvenQuery], verdicts: Sequence[Verdict], evidence: Evidence
) -> list[Verdict]:
    """The refusals, the first of them that a question without a typing error would pass with what that gives."""
    right = _corrected(asked, evidence)
    made = list(verdicts)
    for place, verdict in enumerate(choose(right, candidates, evidence=evidence, explained=0) if right else ()):
        if right and verdict.decision != "refuse":
            likely = reasons.written(verdict, right.text, candidates[place].question)
            made[place] = replace(made[place], suggested=likely)
            break
    return made


def _with_suggestion(
    asked: Question, candidates: Sequence[ProvenQuery], verdicts: Sequence[Verdict], evidence: Evidence
) -> list[Verdict]:
    """The refusals, one of them with what is probably meant, if there is exactly one likely reading."""
    proven = {each.id: each for each in candidates}
    found: list[tuple[Hashable, Verdict]] = []
    names = sum(is_name(span) for span in asked.spans)
    for frame in asked.frames:
        if sum(slot.kind not in (NUMBER, DATE) for slot in frame.slots) < names:
            continue  # A value of the question has no place in what is proven.
        agreement = evidence.likely(frame)
        if agreement is None or agreement.ids[0] not in proven:
            continue
        likely = proven[agreement.ids[0]]
        known = evidence.study(likely)
        assert known is not None
        made = _agreed(asked, frame, likely, known, evidence)
        if made.decision != "refuse":
            found.append((likely.id, made))
    if not found or not _are_same([made for _, made in found], evidence.dialect):
        return list(verdicts)
    place, suggested = found[0]
    return [
        replace(verdict, suggested=suggested) if each.id == place else verdict
        for each, verdict in zip(candidates, verdicts, strict=True)
    ]


def _by_consensus(
    asked: Question, candidates: Sequence[ProvenQuery], verdicts: Sequence[Verdict], evidence: Evidence
) -> list[Verdict]:
    """The verdicts, with those on candidates that agree about the question: their SQL with its values."""
    made = {each.id: verdict for each, verdict in zip(candidates, verdicts, strict=True)}
    proven = {each.id: each for each in candidates}
    for frame in asked.frames:
        agreement = evidence.agreed(frame)
        if agreement is None:
            continue
        for each in agreement.ids:
            if each in proven:
                known = evidence.study(proven[each])
                assert known is not None
                made[each] = _agreed(asked, frame, proven[each], known, evidence)
    return [made[each.id] for each in candidates]


def _agreed(asked: Question, frame: Frame, proven: ProvenQuery, known: Study, evidence: Evidence) -> Verdict:
    if reason := date_conflict(asked, frame, proven, known):
        return Verdict("refuse", "relative_dates", reason)
    if reason := unquoted(asked.text, proven.question, asked.frames, known.frame):
        return Verdict("refuse", "literals", reason)
    if not _same_places(frame, known.frame):
        return Verdict("refuse", "argument_order", reasons.UNCLEAR_PLACES)
    learned = tuple(Difference("learned", new.typed, old.typed) for new, old in changes(frame, known.frame))
    made = _with_values(asked, frame, proven, known, evidence.values, evidence, learned)
    return reasons.written(made, asked.text, proven.question)


def _decide(
    asked: Question,
    proven: ProvenQuery,
    known: Study | None,
    dialect: str,
    values: Values,
    evidence: Evidence | None,
    *,
    explain: bool = True,
) -> Verdict:
    if known is None:
        return Verdict("refuse", "sql", reasons.UNREADABLE)
    if not asked.words:
        return Verdict("refuse", "words", reasons.NOTHING_ASKED)
    if asked.impossible and asked.words != known.words:
        return Verdict("refuse", "literals", reasons.no_date(asked.impossible))
    if not known.dated and (reason := date_conflict(asked, None, proven, known)):
        return Verdict("refuse", "relative_dates", reason)
    if max(len(asked.words), len(known.words)) > MAX_WORDS and asked.words != known.words:
        return Verdict("refuse", "words", reasons.too_long(MAX_WORDS))
    same, learned = ([known.frame], ()) if asked.words == known.words else _match_frames(asked, known, evidence)
    if not same:
        if not explain:
            return Verdict("refuse", "words", reasons.OTHER_WORDS)
        return Verdict("refuse", *refusal(asked.frames, known.frame))
    if reason := unquoted(asked.text, proven.question, asked.frames, known.frame):
        return Verdict("refuse", "literals", reason)
    verdicts = [_with_values(asked, frame, proven, known, values, evidence, learned) for frame in same]
    passed = [verdict for verdict in verdicts if verdict.decision != "refuse"]
    if not _are_same(passed, dialect):
        return Verdict("refuse", "kind", reasons.SEVERAL_READINGS)
    return passed[0] if passed else verdicts[0]


def _are_same(verdicts: Sequence[Verdict], dialect: str) -> bool:
    """Whether all of them would answer with the same SQL, however it is spelled."""
    texts = {str(verdict.display) for verdict in verdicts}
    return len(texts) < 2 or len({canonical(text, dialect) for text in texts}) == 1


def _match_frames(asked: Question, known: Study, evidence: Evidence | None) -> FrameMatch:
    """The readings of a question that meet a proven frame, and the words that had to be exchanged for that."""
    if same := asked.by_key.get(known.frame.key):
        return same, ()
    if known.open and all(each.text in asked.joined for each in known.open):
        # A value that no column is known to hold can still be the same in both.
        frame = verbatim(asked.words, asked.spans, known.values, asked.vocabulary)
        if frame is not None and frame.key == known.frame.key:
            return [frame], ()
    if evidence is None or not asked.certain:  # What an ambiguous value means depends on the words beside it.
        return [], ()
    worth = [
        frame
        for frame in asked.frames
        if (differing := nearby(frame.words, known.frame.words)) is not None and all(map(evidence.knows, differing))
    ]
    if not worth:
        return [], ()
    if known.frame.words not in asked.learned:
        asked.learned[known.frame.words] = list(learned_readings(worth, known.frame, evidence))
    for frame, swaps in asked.learned[known.frame.words]:
        if all(each.is_shown_for(known) for each in swaps):
            return [frame], tuple(
                Difference("learned", _typed(frame, each.new), _typed(known.frame, each.old)) for each in swaps
            )
    return [], ()


def _same_places(asked: Frame, proven: Frame) -> bool:
    """Whether values of one kind stand beside the same words, so that their order says which is which."""
    new, old = asked.beside(), proven.beside()
    return all(
        len(places) == 1
        or all(
            any(word and word == other for word, other in zip(mine, theirs, strict=True))
            for mine, theirs in zip(places, old[kind], strict=True)
        )
        for kind, places in new.items()
    )


def _with_values(
    asked: Question,
    frame: Frame,
    proven: ProvenQuery,
    known: Study,
    values: Values,
    evidence: Evidence | None,
    learned: tuple[Difference, ...],
) -> Verdict:
    """The verdict when the frames are the same: on the values in them."""
    try:
        found = changed_values(frame, known)
        dated = _dates(asked, frame, proven, known)
    except Doubt as doubt:
        return Verdict("refuse", doubt.gate, doubt.reason, learned)
    shown = (*differences(found), *learned)
    if reason := _unnamed(asked, frame, known, learned):
        return Verdict("refuse", "literals", reason, shown)
    if refused := _contradicted(asked, frame, known, evidence):
        return replace(refused, differences=(*shown, *refused.differences))
    dialect = known.query.dialect
    if not found and not dated.moved:
        if reason := outdated(asked.text, proven.sql, dialect, asked.now, proven.at, bound=dated.named):
            return Verdict("refuse", "relative_dates", reason, shown)
        reason = reasons.shown_the_same(learned) or reasons.SAME
        return Verdict("serve", "same", reason, shown, proven.sql, {}, proven.sql)
    for change in found:
        if not change.old.certain and (evidence is None or evidence.distinct_values(known.template, change.old) < 2):
            return Verdict("refuse", "literals", reasons.unplaced(change.old.text), shown)
    try:
        made = bindings(asked.text, asked.words, found, values) | dated.bound
    except Doubt as doubt:
        return Verdict("refuse", doubt.gate, doubt.reason, shown)
    for change in found:
        others = ambiguous(change, frame, values)
        if others and (says_otherwise(change, frame, values) or not _always_meant(frame, change, known, evidence)):
            return Verdict("refuse", "kind", reasons.other_kinds(change.new.text, others), shown)
    rebound = known.query.rebound(made)
    if reason := outdated(
        asked.text,
        rebound.display,
        dialect,
        asked.now,
        proven.at,
        bound=dated.named,
        rebound=bool(dated.moved),
    ):
        return Verdict("refuse", "relative_dates", reason, shown)
    moved = [Difference("value", new, old) for new, old in dated.moved]
    reason = reasons.other_values(differences(found) or moved, learned)
    return Verdict("rebind", "rebind", reason, shown, rebound.sql, rebound.parameters, rebound.display)


def _dates(asked: Question, frame: Frame, proven: ProvenQuery, known: Study) -> Dates:
    if known.dated and (reason := date_conflict(asked, frame, proven, known)):
        raise Doubt("relative_dates", reason)
    return dates(frame, known, asked.periods, asked.now)


def _unnamed(asked: Question, frame: Frame, known: Study, learned: Sequence[Difference]) -> str | None:
    """Why a value that stays as it is and is in one question only keeps them apart: "Alien" is not "Aliens"."""
    slots = {slot.text for slot in frame.slots}
    dated = [slot.span for slot in frame.slots if slot.kind == DATE]
    spans = (span for span in asked.spans if is_name(span) and not any(span.overlaps(each) for each in dated))
    names = {name(asked.words, span) for span in spans} - slots
    mine, theirs = f" {asked.joined} ", f" {' '.join(known.words)} "
    for text, other in [*[(text, mine) for text in known.fixed], *[(text, theirs) for text in sorted(names)]]:
        exchanged = any(f" {text} " in f" {each.asked} {each.proven} " for each in learned)
        if f" {text} " not in other and not exchanged:
            return reasons.differing("literals", *([], [text]) if other is mine else ([text], []))
    return None


def _contradicted(asked: Question, frame: Frame, known: Study, evidence: Evidence | None) -> Verdict | None:
    """The refusal where proven questions speak against this SQL: by their small words, or the same words with other
    SQL."""
    if opposed := _opposed(frame, known, evidence):
        return Verdict("refuse", "words", reasons.difference(opposed), (opposed,))
    # What the same words mean doesn't depend on what others mean.
    frames = [frame] if asked.words == known.words else asked.frames
    if evidence is not None and any(evidence.is_disputed(each, known.template) for each in frames):
        return Verdict("refuse", "conflict", reasons.DISPUTED)
    return None


def _opposed(frame: Frame, known: Study, evidence: Evidence | None) -> Difference | None:
    """What small words say of a word, where all questions proven with this SQL say otherwise."""
    for said in frame.marks:
        theirs = [each for each in known.frame.marks if each.word == said.word]
        others = () if evidence is None else evidence.marks(known.template, said.word)
        if opposition(said.mark, [*(each.mark for each in theirs), *others]):
            return Difference("words", said.typed, theirs[0].typed if theirs else said.word)
    return None


def _always_meant(frame: Frame, change: Change, known: Study, evidence: Evidence | None) -> bool:
    """Whether so many values were meant as that kind, in these words and not by one author alone, that another kind is
    unlikely."""
    if evidence is None or not evidence.is_shared(known.template):
        return False
    if frame.key == known.frame.key:
        return evidence.templates(frame.key).get(known.template, 0) >= MIN_PROVEN_VALUES
    return evidence.distinct_values(known.template, change.old) >= MIN_PROVEN_VALUES
