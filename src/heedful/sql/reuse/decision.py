"""May a proven query answer another question? Gates that each find one difference, and the decision."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from copy import copy
from dataclasses import replace
from datetime import date, datetime
from difflib import SequenceMatcher

from heedful.sql.reuse import question_reading
from heedful.sql.reuse.binding import (
    Change,
    Doubt,
    ambiguous,
    bindings,
    changed_values,
    differences,
    relative_dates,
    says_otherwise,
)
from heedful.sql.reuse.evidence import Evidence, ProvenQuery, Study, Words, study
from heedful.sql.reuse.exchanges import Exchange, learned_readings, nearby
from heedful.sql.reuse.moments import moments, outdated, resolution
from heedful.sql.reuse.query_parts import canonical, follows_clock
from heedful.sql.reuse.question_reading import (
    DATE,
    MAX_WORDS,
    NUMBER,
    Frame,
    Span,
    is_name,
    is_slot,
    name,
    number,
    quoted,
    read,
    readings,
    spans,
    verbatim,
    vocabulary,
)
from heedful.sql.reuse.values import Values, plain
from heedful.sql.reuse.verbs import opposition
from heedful.sql.reuse.verdict import Difference, Gate, Verdict

_ORDER: tuple[tuple[Gate, frozenset[str]], ...] = (
    ("form", frozenset((question_reading.POLAR,))),
    ("negation", question_reading.NEGATIONS),
    ("aggregate", question_reading.AGGREGATES),
    ("operators", question_reading.OPERATORS),
    ("scope", question_reading.SCOPES),
)
_PRESENT = frozenset(("now", "nowadays", "currently"))  # What is so when the SQL runs, unless it names a date.
_SAYS: dict[Gate, str] = {
    "form": "only one of them asks for yes or no",
    "literals": "values differ",
    "negation": "only one of them negates",
    "aggregate": "they ask for different figures",
    "operators": "they compare differently",
    "scope": "their scope differs",
    "words": "the words differ",
}


def changes(asked: Words, proven: Words) -> list[tuple[Words, Words]]:
    """The runs of words that differ, as (asked, proven)."""
    codes = SequenceMatcher(None, asked, proven, autojunk=False).get_opcodes()
    return [(asked[a:b], proven[c:d]) for tag, a, b, c, d in codes if tag != "equal"]


def unquoted(asked: str, proven: str, frames: Sequence[Frame], frame: Frame) -> str | None:
    """A text that one question quotes, that is no value of its frame and that the other one doesn't say."""
    for own, other, known in ((asked, proven, frames), (proven, asked, [frame])):
        slots = {slot.text for each in known for slot in each.slots}
        for text in sorted(quoted(own) - slots):
            if f" {text} " not in f" {plain(other)} ":
                return text
    return None


def refusal(readings: Sequence[Frame], proven: Frame) -> tuple[Gate, str, tuple[Difference, ...]]:
    """Why no reading of a question meets a proven frame: gate, sentence and differences."""
    asked = min(readings, key=lambda frame: len(set(frame.words).symmetric_difference(proven.words)))
    values = {slot.text for slot in (*asked.slots, *proven.slots)}
    runs = changes(_shown(asked), _shown(proven))
    found = tuple(Difference(_gate((*left, *right), values), " ".join(left), " ".join(right)) for left, right in runs)
    if sorted(asked.words) == sorted(proven.words):
        return "argument_order", f"the same words appear in another order: {_sentence(found)}", found
    kinds = [each.kind for each in found]
    gate: Gate = next((name for name in _SAYS if name in kinds), "words")
    return gate, f"{_SAYS[gate]}: {_sentence([each for each in found if each.kind == gate])}", found


def date_conflict(asked: str, proven: str, sql: str, dialect: str, now: datetime, proven_at: datetime) -> str | None:
    """Why the relative dates of two questions don't mean the same days, or None when they do."""
    new, old = relative_dates(asked, now), relative_dates(proven, proven_at)
    if not new and not old:
        return None
    if all(period.words in _PRESENT for period in (*new, *old)) and not moments(sql, dialect):
        return None
    if [period.words for period in new] == [period.words for period in old] and follows_clock(sql, dialect):
        return None
    if [period[1:] for period in new] == [period[1:] for period in old] and not follows_clock(sql, dialect):
        return None

    def shown(periods: Sequence[tuple[str, object, object]]) -> str:
        return ", ".join(f"“{words}” is {first} to {last}" for words, first, last in periods) or "no such date"

    return f"dates differ: asked {shown(new)}; proven {shown(old)}"


def _shown(frame: Frame) -> Words:
    slots = iter(frame.slots)
    return tuple(next(slots).text if is_slot(word) else word for word in frame.words)


def _gate(words: Sequence[str], values: Collection[str]) -> Gate:
    for gate, deciding in _ORDER:
        if any(word in deciding for word in words):
            return gate
    return "literals" if any(word in values or number(word) is not None for word in words) else "words"


def _sentence(found: Sequence[Difference]) -> str:
    return "; ".join(f"asked “{each.asked}”, proven “{each.proven}”" for each in found)


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
        self.spans: list[Span] = spans(self.words, values)
        self.frames: list[Frame] = list(readings(self.words, self.spans, self.vocabulary))
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
    known = study(proven, sql, dialect, values)
    return _decide(
        Question(asked, values, now), ProvenQuery(None, proven, sql, proven_at), known, dialect, values, evidence
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
            known[key] = _decide(
                asked, each, study, evidence.dialect, evidence.values, evidence, explain=place < explained
            )
        verdicts.append(known[key])
    if all(verdict.decision == "refuse" for verdict in verdicts):
        verdicts = _by_consensus(asked, candidates, verdicts, evidence)
    if all(verdict.decision == "refuse" for verdict in verdicts):
        return _with_suggestion(asked, candidates, verdicts, evidence)
    answers = [verdict for verdict in verdicts if verdict.decision != "refuse"]
    if _are_same(answers, evidence.dialect) and not _is_contested(asked, candidates, verdicts, evidence):
        return verdicts
    reason = "proven questions that mean the same have different SQL"
    identical = [_is_identical(asked, each, evidence) for each in candidates]
    exact = [
        verdict for verdict, same in zip(verdicts, identical, strict=True) if same and verdict.decision != "refuse"
    ]
    kept = identical if exact and _are_same(exact, evidence.dialect) else [False] * len(verdicts)
    return [
        verdict if keep or verdict.decision == "refuse" else Verdict("refuse", "conflict", reason, verdict.differences)
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
    frames = asked.frames
    found = dict.fromkeys(evidence.like(frames))
    agreements = [agreement for frame in frames if (agreement := evidence.agreed(frame))]
    agreements = agreements or [agreement for frame in frames if (agreement := evidence.likely(frame))]
    for agreement in agreements:
        found.update(dict.fromkeys(agreement.ids))
    return list(found)


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
    if reason := date_conflict(asked.text, proven.question, proven.sql, evidence.dialect, asked.now, proven.at):
        return Verdict("refuse", "relative_dates", reason)
    if missing := unquoted(asked.text, proven.question, asked.frames, known.frame):
        return Verdict("refuse", "literals", f"quoted texts differ: “{missing}” is not in both")
    if not _same_places(frame, known.frame):
        return Verdict("refuse", "argument_order", "it isn't certain which value takes which place")
    learned = tuple(
        Difference("learned", " ".join(new), " ".join(old)) for new, old in changes(frame.words, known.frame.words)
    )
    return _with_values(asked, frame, proven, known, evidence.values, evidence, learned)


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
        return Verdict("refuse", "sql", "the proven SQL can't be read as one statement with all its values")
    if not asked.words:
        return Verdict("refuse", "words", "nothing is asked")
    if reason := date_conflict(asked.text, proven.question, proven.sql, dialect, asked.now, proven.at):
        return Verdict("refuse", "relative_dates", reason)
    if max(len(asked.words), len(known.words)) > MAX_WORDS and asked.words != known.words:
        return Verdict("refuse", "words", f"questions of more than {MAX_WORDS} words are only served as they are")
    same, learned = ([known.frame], ()) if asked.words == known.words else _match_frames(asked, known, evidence)
    if not same:
        if not explain:
            return Verdict("refuse", "words", "the words differ")
        return Verdict("refuse", *refusal(asked.frames, known.frame))
    if missing := unquoted(asked.text, proven.question, asked.frames, known.frame):
        return Verdict("refuse", "literals", f"quoted texts differ: “{missing}” is not in both")
    verdicts = [_with_values(asked, frame, proven, known, values, evidence, learned) for frame in same]
    passed = [verdict for verdict in verdicts if verdict.decision != "refuse"]
    if not _are_same(passed, dialect):
        return Verdict("refuse", "kind", "the values of the question can be read in several ways")
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
    if evidence is None or not asked.certain:  # What an ambiguous value means hangs on the words beside it.
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
            return [frame], tuple(Difference("learned", " ".join(each.new), " ".join(each.old)) for each in swaps)
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
    except Doubt as doubt:
        return Verdict("refuse", doubt.gate, doubt.reason, learned)
    shown = (*differences(found), *learned)
    if missing := _unnamed(asked, frame, known, learned):
        return Verdict("refuse", "literals", f"values differ: “{missing}” is not in both", shown)
    if refused := _contradicted(asked, frame, known, evidence):
        return replace(refused, differences=(*shown, *refused.differences))
    dialect = known.query.dialect
    if not found:
        if reason := outdated(asked.text, proven.sql, dialect, asked.now, proven.at):
            return Verdict("refuse", "relative_dates", reason, shown)
        reason = "the question is the same" if not learned else _explanation(learned)
        return Verdict("serve", "same", reason, shown, proven.sql, {}, proven.sql)
    for change in found:
        if not change.old.certain and (evidence is None or evidence.distinct_values(known.template, change.old) < 2):
            reason = f"one proven question doesn't show where “{change.old.text}” goes in its SQL"
            return Verdict("refuse", "literals", reason, shown)
    try:
        made = bindings(asked.text, asked.words, found, values)
    except Doubt as doubt:
        return Verdict("refuse", doubt.gate, doubt.reason, shown)
    for change in found:
        others = ambiguous(change, frame, values)
        if others and (says_otherwise(change, frame, values) or not _always_meant(frame, change, known, evidence)):
            reason = f"“{change.new.text}” may also be a value of {others}"
            return Verdict("refuse", "kind", reason, shown)
    rebound = known.query.rebound(made)
    if reason := outdated(asked.text, rebound.display, dialect, asked.now, proven.at):
        return Verdict("refuse", "relative_dates", reason, shown)
    reason = "only values differ: " + ", ".join(f"“{each.new.text}” for “{each.old.text}”" for each in found)
    return replace(
        Verdict("rebind", "rebind", f"{reason}; {_explanation(learned)}" if learned else reason, shown),
        sql=rebound.sql,
        parameters=rebound.parameters,
        display=rebound.display,
    )


def _unnamed(asked: Question, frame: Frame, known: Study, learned: Sequence[Difference]) -> str | None:
    """A value that stays as it is and is written in one question only: "Alien" is not "Aliens"."""
    slots = {slot.text for slot in frame.slots}
    names = {name(asked.words, span) for span in asked.spans if is_name(span)} - slots
    mine, theirs = f" {asked.joined} ", f" {' '.join(known.words)} "
    for text, other in [*[(text, mine) for text in known.fixed], *[(text, theirs) for text in sorted(names)]]:
        exchanged = any(f" {text} " in f" {each.asked} {each.proven} " for each in learned)
        if f" {text} " not in other and not exchanged:
            return text
    return None


def _contradicted(asked: Question, frame: Frame, known: Study, evidence: Evidence | None) -> Verdict | None:
    """The refusal where proven questions speak against this SQL: by their small words, or the same words with other
    SQL."""
    if opposed := _opposed(frame, known, evidence):
        return Verdict("refuse", "words", f"{_SAYS['words']}: {_sentence([opposed])}", (opposed,))
    # What the same words mean doesn't hang on what others mean.
    frames = [frame] if asked.words == known.words else asked.frames
    if evidence is not None and any(evidence.is_disputed(each, known.template) for each in frames):
        return Verdict("refuse", "conflict", "the same words are proven with different SQL, too")
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


def _explanation(learned: Sequence[Difference]) -> str:
    said = ", ".join(f"“{each.asked}” for “{each.proven}”" for each in learned)
    return f"other proven questions show that these words mean the same: {said}"
