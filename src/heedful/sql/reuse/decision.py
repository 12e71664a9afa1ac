"""May a proven query answer another question? Gates that each find one difference, and the decision."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from copy import copy
from dataclasses import replace
from datetime import date, datetime, timedelta

from heedful.sql.reuse import question_reading as reading
from heedful.sql.reuse import question_words as lists
from heedful.sql.reuse import reasons, study
from heedful.sql.reuse.evidence import Evidence, Exchange, corrected, learned_readings, nearby, opcodes
from heedful.sql.reuse.grammar import opposition
from heedful.sql.reuse.query_parts import canonical, follows_clock
from heedful.sql.reuse.question_periods import impossible, periods
from heedful.sql.reuse.question_reading import MAX_WORDS, PLURAL, POLAR, Frame, Span, is_name
from heedful.sql.reuse.question_words import DATE, NUMBER, Words, is_slot, number, occurrences, plain
from heedful.sql.reuse.reasons import Difference, Gate, Verdict
from heedful.sql.reuse.sql_dates import moments, outdated
from heedful.sql.reuse.study import ChangedValue, Doubt, ProvenQuery, Study
from heedful.sql.reuse.values import Values

_WORDS: dict[Gate, frozenset[str]] = {
    "form": frozenset((POLAR,)),
    "negation": lists.NEGATIONS,
    "aggregate": lists.AGGREGATES,
    "operators": lists.OPERATORS,
    "scope": lists.SCOPES,
}
"""The words that each gate decides about, in the order in which the gates do."""
_PRESENT = frozenset(("now", "nowadays", "currently"))  # What is so when the SQL runs, unless it names a date.
_RANKED: tuple[Gate, ...] = ("form", "literals", *list(_WORDS)[1:])
"""The gates whose differences tell most, the first before the others."""


def _refuse(gate: Gate, reason: str, differences: tuple[Difference, ...] = ()) -> Verdict:
    return Verdict("refuse", gate, reason, differences)


def _changes(asked: Frame, proven: Frame) -> list[tuple[slice, slice]]:
    """The words that differ, as their places in (asked, proven)."""
    found = []
    for tag, a, b, c, d in opcodes(asked.words, proven.words):
        if tag != "equal":
            # A plural is told by its noun, and "the" before a name with the name.
            back = int(PLURAL in (*asked.words[a : a + 1], *proven.words[c : c + 1]) and min(a, c) > 0)
            ahead = int("the_" in (*asked.words[a:b][-1:], *proven.words[c:d][-1:]))
            found.append((slice(a - back, b + ahead), slice(c - back, d + ahead)))
    return found


def _typed(frame: Frame, part: slice) -> str:
    return " ".join(word.rstrip("_") for word in frame.typed[part] if word)


def _typed_for(frame: Frame, words: Words) -> str:
    start = occurrences(frame.words, words)[0]
    return _typed(frame, slice(start, start + len(words)))


def _unquoted(asked: Question, proven: str, frame: Frame) -> str | None:
    """Why a text that one question quotes, that is no value of its frame and that the other one doesn't say, keeps them
    apart."""
    for own, other, frames in ((asked.text, proven, asked.frames), (proven, asked.text, [frame])):
        slots = {slot.text for known in frames for slot in known.slots}
        for text in sorted(reading.quoted(own) - slots):
            if f" {text} " not in f" {plain(other)} ":
                return reasons.differing("literals", *([text], []) if own is asked.text else ([], [text]))
    return None


def _refusal(readings: Sequence[Frame], proven: Frame) -> tuple[Gate, str, tuple[Difference, ...]]:
    """Why no reading of a question meets a proven frame: gate, sentence and differences."""
    asked = min(readings, key=lambda frame: len(set(frame.words).symmetric_difference(proven.words)))
    every = [_difference(asked, new, proven, old) for new, old in _changes(asked, proven)]
    found = tuple(part for part in every if part.asked or part.proven)
    if sorted(asked.words) == sorted(proven.words):
        # Without the words that both begin and end with.
        alike = [new == old for new, old in zip(asked.words, proven.words, strict=True)]
        apart = slice(alike.index(False), len(alike) - alike[::-1].index(False))
        return "argument_order", reasons.ANOTHER_ORDER.format(_typed(asked, apart), _typed(proven, apart)), found
    kinds = [part.kind for part in every]
    gate: Gate = next((name for name in _RANKED if name in kinds), "words")
    if all(part.kind != gate for part in found):
        # Only who does something to whom differs, which no word of its own says.
        whole = slice(None)
        return "argument_order", reasons.ANOTHER_ORDER.format(_typed(asked, whole), _typed(proven, whole)), found
    # An unknown name is a word like others: where values differ, those that only the asked question has are named.
    more = gate in ("literals", "scope")
    named = [part for part in found if part.kind == gate or (more and part.asked and not part.proven)]
    sides = [part.asked for part in named if part.asked], [part.proven for part in named if part.proven]
    return gate, reasons.differing(gate, *sides), found


def _difference(asked: Frame, new: slice, proven: Frame, old: slice) -> Difference:
    words = (*asked.words[new], *proven.words[old])
    gate = next((gate for gate, deciding in _WORDS.items() if not deciding.isdisjoint(words)), None)
    if gate == "form":
        sides = asked.words[new], proven.words[old]
        return Difference(gate, *("yes or no" if POLAR in words else "" for words in sides))
    has_value = any(is_slot(word) or number(word) is not None for word in words)
    return Difference(gate or ("literals" if has_value else "words"), _typed(asked, new), _typed(proven, old))


def _date_conflict(asked: Question, frame: Frame | None, proven: ProvenQuery, known: Study) -> str | None:
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
    return reasons.other_dates(new, old)


def _clocked(words: Words, frame: Frame | None, at: datetime) -> list[tuple[str, tuple[date, date]]]:
    """The periods that follow the clock and are no values of a frame, with their first and last days."""
    values = {slot.start for slot in frame.slots if slot.kind == DATE} if frame is not None else set()
    found = []
    for period in periods(words):
        if period.follows_clock and period.start not in values:
            days = next(iter(period.ranges(at).values()), None)
            last = at if days is None else days.end - timedelta(microseconds=1)
            found.append((period.words, ((at if days is None else days.first).date(), last.date())))
    return found


MIN_PROVEN_VALUES = 3
"""Different values that a frame must be proven with before it settles what an ambiguous one means."""


class Question:
    """A question as it can be read with the values of a database; made once and held against all candidates."""

    def __init__(self, text: str, values: Values, now: datetime) -> None:
        self.text = text
        self.now = now
        self.words = reading.read(text)
        self.joined = " ".join(self.words)
        self.vocabulary = reading.vocabulary(values)
        # Longer ones are only compared word for word.
        self.spans: list[Span] = reading.spans(self.words, values) if len(self.words) <= MAX_WORDS else []
        self.periods = {period.start: period for period in periods(self.words) if period.ranges(now)}
        named = [Span(period.start, period.stop, (DATE,)) for period in self.periods.values()]
        frames = reading.readings(self.words, self.spans, self.vocabulary, named)
        self.frames = [reading.in_order(frame, self.periods, now) for frame in frames]
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
    asked: str, proven: str, sql: str, *, dialect: str, values: Values, now: datetime, proven_at: datetime
) -> Verdict:
    """Whether the SQL that is proven for one question answers another, if nothing else is proven: as it is, with other
    values, or not. `values` tells which names the database's columns hold."""
    query = ProvenQuery(None, proven, sql, proven_at)
    return choose(Question(asked, values, now), [query], evidence=Evidence(dialect, values))[0]


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
    for place, query in enumerate(candidates):
        key = query.question, query.sql, evidence.resolution(query.sql, query.at), place < explained
        if key not in known:
            made = _decide(asked, query, evidence, explain=place < explained)
            known[key] = reasons.written(made, asked.text, query.question) if place < explained else made
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
    studies = map(evidence.study, candidates)
    identical = [known is not None and known.words == asked.words for known in studies]
    exact = [
        verdict for verdict, same in zip(verdicts, identical, strict=True) if same and verdict.decision != "refuse"
    ]
    kept = identical if exact and _are_same(exact, evidence.dialect) else [False] * len(verdicts)
    return [
        verdict
        if keep or verdict.decision == "refuse"
        else _refuse("conflict", reasons.CONTRADICTION, verdict.differences)
        for verdict, keep in zip(verdicts, kept, strict=True)
    ]


def _is_contested(
    asked: Question, candidates: Sequence[ProvenQuery], verdicts: Sequence[Verdict], evidence: Evidence
) -> bool:
    """Whether words had to be exchanged to meet a proven question, and others with other SQL are nearer as it is."""
    for each, verdict in zip(candidates, verdicts, strict=True):
        if verdict.decision != "refuse" and any(part.kind == "learned" for part in verdict.differences):
            known = evidence.readable(each)
            kinds = sorted(slot.kind for slot in known.frame.slots)
            alike = (frame for frame in asked.frames if sorted(slot.kind for slot in frame.slots) == kinds)
            if any(evidence.consensus.is_contested(frame, known.template) for frame in alike):
                return True
    return False


def same_frame_ids(asked: Question, evidence: Evidence) -> list[Hashable]:
    """The ids of proven questions that ask alike whatever their values: candidates that similarity may miss."""
    if len(asked.words) > MAX_WORDS:
        return []
    found = evidence.like(asked.frames)
    for agree in (evidence.consensus.agreed, evidence.consensus.likely):
        if agreements := [agreement for frame in asked.frames if (agreement := agree(frame))]:
            found += [proven_id for agreement in agreements for proven_id in agreement.ids]
            break
    if right := _corrected(asked, evidence):
        found += same_frame_ids(right, evidence)
    return list(dict.fromkeys(found))


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
    proven = {query.id: query for query in candidates}
    found: list[tuple[Hashable, Verdict]] = []
    names = sum(is_name(span) for span in asked.spans)
    for frame in asked.frames:
        if sum(slot.kind not in (NUMBER, DATE) for slot in frame.slots) < names:
            continue  # A value of the question has no place in what is proven.
        agreement = evidence.consensus.likely(frame)
        if agreement is None or agreement.ids[0] not in proven:
            continue
        likely = proven[agreement.ids[0]]
        made = _agreed(asked, frame, likely, evidence)
        if made.decision != "refuse":
            found.append((likely.id, made))
    if not found or not _are_same([made for _, made in found], evidence.dialect):
        return list(verdicts)
    place, suggested = found[0]
    return [
        replace(verdict, suggested=suggested) if query.id == place else verdict
        for query, verdict in zip(candidates, verdicts, strict=True)
    ]


def _by_consensus(
    asked: Question, candidates: Sequence[ProvenQuery], verdicts: Sequence[Verdict], evidence: Evidence
) -> list[Verdict]:
    """The verdicts, with those on candidates that agree about the question: their SQL with its values."""
    made = {query.id: verdict for query, verdict in zip(candidates, verdicts, strict=True)}
    proven = {query.id: query for query in candidates}
    for frame in asked.frames:
        agreement = evidence.consensus.agreed(frame)
        for proven_id in agreement.ids if agreement is not None else ():
            if proven_id in proven:
                made[proven_id] = _agreed(asked, frame, proven[proven_id], evidence)
    return [made[query.id] for query in candidates]


def _agreed(asked: Question, frame: Frame, proven: ProvenQuery, evidence: Evidence) -> Verdict:
    known = evidence.readable(proven)
    if reason := _date_conflict(asked, frame, proven, known):
        return _refuse("relative_dates", reason)
    if reason := _unquoted(asked, proven.question, known.frame):
        return _refuse("literals", reason)
    if not _same_places(frame, known.frame):
        return _refuse("argument_order", reasons.UNCLEAR_PLACES)
    parts = _changes(frame, known.frame)
    learned = tuple(Difference("learned", _typed(frame, new), _typed(known.frame, old)) for new, old in parts)
    made = _with_values(asked, frame, proven, known, evidence, learned)
    return reasons.written(made, asked.text, proven.question)


def _decide(asked: Question, proven: ProvenQuery, evidence: Evidence, *, explain: bool) -> Verdict:
    known = evidence.study(proven)
    if known is None:
        return _refuse("sql", reasons.UNREADABLE)
    if not asked.words:
        return _refuse("words", reasons.NOTHING_ASKED)
    if asked.impossible and asked.words != known.words:
        return _refuse("literals", reasons.NO_DATE.format(asked.impossible))
    if not known.dated and (reason := _date_conflict(asked, None, proven, known)):
        return _refuse("relative_dates", reason)
    if max(len(asked.words), len(known.words)) > MAX_WORDS and asked.words != known.words:
        return _refuse("words", reasons.TOO_LONG.format(MAX_WORDS))
    same, learned = ([known.frame], ()) if asked.words == known.words else _match_frames(asked, known, evidence)
    if not same:
        return _refuse(*_refusal(asked.frames, known.frame)) if explain else _refuse("words", reasons.OTHER_WORDS)
    if reason := _unquoted(asked, proven.question, known.frame):
        return _refuse("literals", reason)
    verdicts = [_with_values(asked, frame, proven, known, evidence, learned) for frame in same]
    passed = [verdict for verdict in verdicts if verdict.decision != "refuse"]
    if not _are_same(passed, evidence.dialect):
        return _refuse("kind", reasons.SEVERAL_READINGS)
    return passed[0] if passed else verdicts[0]


def _are_same(verdicts: Sequence[Verdict], dialect: str) -> bool:
    """Whether all of them would answer with the same SQL, however it is spelled."""
    texts = {str(verdict.display) for verdict in verdicts}
    return len(texts) < 2 or len({canonical(text, dialect) for text in texts}) == 1


def _match_frames(asked: Question, known: Study, evidence: Evidence) -> tuple[list[Frame], tuple[Difference, ...]]:
    """The readings of a question that meet a proven frame, and the words that had to be exchanged for that."""
    if same := asked.by_key.get(known.frame.key):
        return same, ()
    if known.open and all(value.text in asked.joined for value in known.open):
        # A value that no column is known to hold can still be the same in both.
        frame = reading.verbatim(asked.words, asked.spans, known.frame.slots, asked.vocabulary)
        if frame is not None and frame.key == known.frame.key:
            return [frame], ()
    if not asked.certain:  # What an ambiguous value means depends on the words beside it.
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
        if all(exchange.is_shown_for(known) for exchange in swaps):
            return [frame], tuple(
                Difference("learned", _typed_for(frame, swap.new), _typed_for(known.frame, swap.old)) for swap in swaps
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
    evidence: Evidence,
    learned: tuple[Difference, ...],
) -> Verdict:
    """The verdict when the frames are the same: on the values in them."""
    try:
        found = study.changed_values(frame, known)
        dated = _dates(asked, frame, proven, known)
    except Doubt as doubt:
        return _refuse(doubt.gate, doubt.reason, learned)
    changed = tuple(Difference("value", change.new.text, change.old.text) for change in found)
    shown = (*changed, *learned)
    if reason := _unnamed(asked, frame, known, learned):
        return _refuse("literals", reason, shown)
    if refused := _contradicted(asked, frame, known, evidence):
        return replace(refused, differences=(*shown, *refused.differences))
    dialect = known.query.dialect
    if not found and not dated.moved:
        if reason := outdated(asked.text, proven.sql, dialect, asked.now, proven.at, bound=dated.named):
            return _refuse("relative_dates", reason, shown)
        reason = reasons.shown_the_same(learned) or reasons.SAME
        return Verdict("serve", "same", reason, shown, proven.sql, {}, proven.sql)
    for change in found:
        if not change.old.certain and evidence.distinct_values(known.template, change.old) < 2:
            return _refuse("literals", reasons.UNPLACED.format(change.old.text), shown)
    values = evidence.values
    try:
        made = study.bindings(asked.text, asked.words, found, values) | dated.bound
    except Doubt as doubt:
        return _refuse(doubt.gate, doubt.reason, shown)
    for change in found:
        others = study.ambiguous(change, frame, values)
        if others and (study.says_otherwise(change, frame, values) or not _is_meant(frame, change, known, evidence)):
            return _refuse("kind", reasons.OTHER_KINDS.format(change.new.text, others), shown)
    rebound = known.query.rebound(made)
    times, moved = (asked.now, proven.at), bool(dated.moved)
    if reason := outdated(asked.text, rebound.display, dialect, *times, bound=dated.named, rebound=moved):
        return _refuse("relative_dates", reason, shown)
    reason = reasons.other_values(changed or [Difference("value", new, old) for new, old in dated.moved], learned)
    return Verdict("rebind", "rebind", reason, shown, rebound.sql, rebound.parameters, rebound.display)


def _dates(asked: Question, frame: Frame, proven: ProvenQuery, known: Study) -> study.Dates:
    if known.dated and (reason := _date_conflict(asked, frame, proven, known)):
        raise Doubt("relative_dates", reason)
    return study.dates(frame, known, asked.periods, asked.now)


def _unnamed(asked: Question, frame: Frame, known: Study, learned: Sequence[Difference]) -> str | None:
    """Why a value that stays as it is and is in one question only keeps them apart: "Alien" is not "Aliens"."""
    slots = {slot.text for slot in frame.slots}
    dated = [slot.span for slot in frame.slots if slot.kind == DATE]
    spans = (span for span in asked.spans if is_name(span) and not any(map(span.overlaps, dated)))
    names = {reading.name(asked.words, span) for span in spans} - slots
    mine, theirs = f" {asked.joined} ", f" {' '.join(known.words)} "
    for text, other in [*[(text, mine) for text in known.fixed], *[(text, theirs) for text in sorted(names)]]:
        exchanged = any(f" {text} " in f" {words.asked} {words.proven} " for words in learned)
        if f" {text} " not in other and not exchanged:
            return reasons.differing("literals", *([], [text]) if other is mine else ([text], []))
    return None


def _contradicted(asked: Question, frame: Frame, known: Study, evidence: Evidence) -> Verdict | None:
    """The refusal where proven questions speak against this SQL: by their small words, or the same words with other
    SQL."""
    for said in frame.marks:
        theirs = [mark for mark in known.frame.marks if mark.word == said.word]
        if opposition(said.mark, [*(mark.mark for mark in theirs), *evidence.marks(known.template, said.word)]):
            opposed = Difference("words", said.typed, theirs[0].typed if theirs else said.word)
            return _refuse("words", reasons.difference(opposed), (opposed,))
    # What the same words mean doesn't depend on what others mean.
    frames = [frame] if asked.words == known.words else asked.frames
    if any(evidence.is_disputed(reading, known.template) for reading in frames):
        return _refuse("conflict", reasons.DISPUTED)
    return None


def _is_meant(frame: Frame, change: ChangedValue, known: Study, evidence: Evidence) -> bool:
    """Whether so many values were meant as that kind, in these words and not by one author alone, that another kind is
    unlikely."""
    if not evidence.is_shared(known.template):
        return False
    if frame.key == known.frame.key:
        return evidence.templates(frame.key).get(known.template, 0) >= MIN_PROVEN_VALUES
    return evidence.distinct_values(known.template, change.old) >= MIN_PROVEN_VALUES
