"""The likeness of two queries in what they ask for, from their cosine and their words.

`similarity` puts a model's cosine on a common scale, where `SAME_NEED` means "one question", and keeps a pair below
that mark when `difference` finds that its words ask for different things.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from heedful.caching import cache_short
from heedful.text import word_set
from heedful.text.regex import regex

SAME_NEED = 0.85
"""The similarity from which two queries are taken to ask for the same thing."""

DIFFERENT_NEED = 0.80
"""The most that two queries with a `difference` can score."""


class Calibration(NamedTuple):
    """Where a model's cosines lie: `floor` and less maps to 0, `same` to `SAME_NEED`, 1 to 1."""

    floor: float
    same: float


MINILM = Calibration(floor=0.40, same=0.80)  # all-MiniLM-L6-v2
WORDLLAMA = Calibration(floor=0.40, same=0.81)  # WordLlama, 256 dimensions

PLAIN = Calibration(floor=0.0, same=SAME_NEED)  # A model that was not measured: its cosine as it is.


def similarity(query_a: str, query_b: str, cosine: float, *, calibration: Calibration = MINILM) -> float:
    """The certainty that two queries ask for the same thing, from 0 to 1.

    `cosine` is that of their embeddings, by the model that `calibration` is for. Queries equal but
    for case, spacing and closing punctuation score 1. From `SAME_NEED` on, take them for one question.
    """
    if normal(query_a) == normal(query_b):
        return 1.0
    floor, same = calibration
    if not cosine > floor:  # Also when there is no cosine (NaN), as for an empty text.
        return 0.0
    if cosine < same:
        value = SAME_NEED * (cosine - floor) / (same - floor)
    else:
        value = min(1.0, SAME_NEED + (1 - SAME_NEED) * (cosine - same) / (1 - same))
    return DIFFERENT_NEED if value > DIFFERENT_NEED and difference(query_a, query_b) else value


# Alternatives, separated by "|": queries differ when each has one that the other lacks.
_ALTERNATIVES = """
january jan|february feb|march|april apr|may|june jun|july jul|august aug|september sept|october oct
 |november nov|december dec; monday|tuesday|wednesday|thursday|friday|saturday|sunday
; yesterday|today tonight|tomorrow; hourly|daily|weekly|monthly|quarterly|yearly annual
; spring|summer|autumn|winter; north northern|south southern|east eastern|west western
; average mean|total sum|median; before prior|after
; first earliest oldest|second|third|fourth|last latest newest; older|younger newer; most|least fewest; best|worst
; largest biggest highest maximum max greatest longest tallest|smallest lowest minimum min shortest
; more greater above over|less fewer below under; increase rise grow|decrease reduce fall drop shrink
; ascending asc|descending desc; inbound incoming|outbound outgoing; internal|external; positive|negative
; advantage pro benefit|disadvantage con drawback; add create insert|remove delete; start begin|stop end finish
; open|close; allow approve accept|deny block reject decline; enable|disable; include cover|exclude; import|export
; upload|download; encode|decode; encrypt|decrypt; read|write; send|receive; buy purchase|sell; input|output
; credit|debit; lend|borrow; left|right; on|off; since|until; cheap cheapest|expensive; male man men|female woman women
; morning|afternoon|evening; arrival arrive|departure depart; single|double; adult|child children kid; full|empty
; public|private; domestic|international; check-in checkin|check-out checkout; weekday|weekend
; minute|hour|day|night|week|month|year
"""
_QUESTIONS = word_set("who when where why")  # Alternatives, too, as the first word.
_OPPOSING_PREFIXES = ("un", "dis", "non", "de", "in")
_PAIRED_PREFIXES = {"in": "out", "out": "in", "up": "down", "down": "up", "over": "under", "under": "over"}
_SMALL_NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NEGATIONS = word_set("not no never without cannot except")
# Negative in meaning without a negation: "can't log in" and "unable to log in" agree.
_NEGATIVE_STEMS = word_set("unabl fail failur impossibl refus stop mis lack avoid wrong broken out")
_DIRECTIONS = word_set("to into from than before after over by")
_SYMMETRIC = word_set("and or vs versus with between compare")
# The form of a question rather than its subject. The first line is German, too, which capitalises nouns.
_AMBIGUOUS_FORM = word_set("a an am in was will do")
_ENGLISH_FORM = word_set(
    "the this that i me my we our you your it is are were be been does did has have had can could would should "
    "what which how on at of for to there with"
)
_FORM = _AMBIGUOUS_FORM | _ENGLISH_FORM
_ALIKE = 0.7  # The share of subject words in common from which names, negation and order decide.
_LONG = 64  # Words beyond which these three are not looked at.

_WORD = regex(r"[^\W_]+(?:(?:['&-]|\.(?=[^\W\d_]))[^\W_]+)*[+#]*")
_NUMBER = regex(r"\d+(?:\.\d+)*")
_QUOTED = regex(r"\"([^\"]+)\"|“([^”]+)”|`([^`]+)`|(?<!\w)'([^']+)'(?!\w)")
_INITIAL = regex(r"\b[^\W\d_]|(?<=[^\W\d_A-Z])[A-Z]")
_NOT_NEGATING = regex(r"\b(?:(?:or|why) not|not only|no(?=\.? ?\d))\b")


def normal(text: str) -> str:
    """A query without what never changes its meaning: case, spacing and closing punctuation."""
    return " ".join(text.replace("’", "'").casefold().split()).rstrip(" ?.!")


def quotations(text: str) -> list[str]:
    """The texts in quotation marks, in order.

    >>> quotations('films called "The Sting" or “Heat”')
    ['The Sting', 'Heat']
    """
    # A mark that opens behind the last that closes never closes: it must not be tried, each with all that follows.
    closed = text.rfind("”") + 1
    marked = text[:closed] + text[closed:].replace("“", "\0")
    return ["".join(parts).replace("\0", "“") for parts in _QUOTED.findall(marked)]


def root(word: str) -> str:
    """A word without its English ending, so that "removed" and "removing" meet at "remov"."""
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


_CHOICES = {
    root(word): (row, option.split()[0])
    for row, line in enumerate(_ALTERNATIVES.split(";"))
    for option in line.split("|")
    for word in option.split()
}


class _Query:
    """One query in the terms that `difference` compares."""

    def __init__(self, text: str) -> None:
        self.normal = normal(text)
        plain = self.normal.replace("can't", "can not").replace("won't", "will not").replace("n't", " not")
        self.words = [word.removesuffix("'s") for word in _WORD.findall(plain)]
        self.stems = {root(word) for word in self.words}
        self.subject = {root(word) for word in self.words if word not in _FORM and word not in _NEGATIONS}
        self.choices = {_CHOICES[stem] for stem in self.stems if stem in _CHOICES}
        self.choices.update((-1, word) for word in self.words[:1] if word in _QUESTIONS)
        self.negated = not _NEGATIONS.isdisjoint(_WORD.findall(_NOT_NEGATING.sub("", plain)))
        digits = re.sub(r"(?<=\d)k\b", "000", re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", plain))
        self.numbers = {str(_SMALL_NUMBERS.index(word) + 2) for word in self.words if word in _SMALL_NUMBERS}
        self.numbers.update(_NUMBER.findall(digits))
        self.quotes = {normal(quotation) for quotation in quotations(text)}
        self.initials = "".join(_INITIAL.findall(text)).casefold()
        self.names = self._names(text.replace("’", "'"))

    def _names(self, text: str) -> set[str]:
        """The acronyms and, in English, the words with a capital that no sentence start explains."""
        english = not _ENGLISH_FORM.isdisjoint(self.words)
        names, after = set(), 0
        for match in _WORD.finditer(text):
            word = match.group().removesuffix("'s")
            starts = after == 0 or re.search("[.?!:;]", text[after : match.start()]) is not None
            after = match.end()
            acronym = word.isupper() and word.isalpha() and len(word) > 1
            if acronym or (english and word[0].isupper() and not starts and word.split("'")[0] != "I"):
                names.add(word)
        return names if len(names) <= max(2, len(self.words) / 2) else set()  # Title Case says nothing.

    def lacks(self, name: str) -> bool:
        """Whether neither the name, nor a form of it, nor words with its initials are here."""
        low = name.casefold()
        for word in self.words:
            if word[0] == low[0]:
                short, long = sorted((low.replace("-", ""), word.replace("-", "")), key=len)
                if long.startswith(short) and len(short) > len(long) / 2:
                    return False
        return not name.isupper() or not (low in self.initials or (len(low) > 2 and low[:-1] in self.initials))


_query = cache_short(entries=512, characters=1_000)(_Query)


def _swapped(a: _Query, b: _Query) -> tuple[str, str] | None:
    """Two words that changed sides of a third; "X or Y" and the like may be turned round."""
    at_a, at_b = ({w: q.words.index(w) for w, n in Counter(q.words).items() if n == 1} for q in (a, b))
    shared = [word for word in at_a if word in at_b]
    pivots = _DIRECTIONS.intersection(shared)
    if a.subject == b.subject and _SYMMETRIC.isdisjoint(shared):
        pivots = pivots.union(shared)
    for pivot in sorted(pivots):
        moved = [w for w in shared if w not in _FORM and (at_a[w] < at_a[pivot]) != (at_b[w] < at_b[pivot])]
        left = [w for w in moved if at_a[w] < at_a[pivot]]
        right = [w for w in moved if at_a[w] > at_a[pivot]]
        if left and right:
            return left[-1], right[0]
    return None


def _differ(kind: str, a: set[str], b: set[str]) -> str | None:
    return f"{kind} differ: {', '.join(sorted(a))} / {', '.join(sorted(b))}" if a and b else None


def _opposed(a: _Query, b: _Query) -> str | None:
    """A word of one that is a word of the other with an opposing prefix: active, inactive; indoor, outdoor."""
    words_a, words_b = set(a.words) - set(b.words), set(b.words) - set(a.words)
    for word in sorted(words_a):
        for prefix in _OPPOSING_PREFIXES:
            for other in words_b & {prefix + word, word.removeprefix(prefix)}:
                if min(len(word), len(other)) > 3:
                    return _differ("words", {word}, {other})
        for prefix, paired in _PAIRED_PREFIXES.items():
            other = paired + word.removeprefix(prefix)
            if word.startswith(prefix) and other in words_b and len(word) - len(prefix) > 2:
                return _differ("words", {word}, {other})
    return None


def difference(query_a: str, query_b: str) -> str | None:
    """Why two queries that read alike ask for different things, or None.

    For example "numbers differ: 2023 / 2024", with what `query_a` says first.
    """
    a, b = _query(query_a), _query(query_b)
    if a.normal == b.normal:
        return None
    if reason := _differ("numbers", a.numbers - b.numbers, b.numbers - a.numbers):
        return reason
    quotes_a = {quote for quote in a.quotes if quote not in b.normal}
    quotes_b = {quote for quote in b.quotes if quote not in a.normal}
    if reason := _differ("quoted texts", quotes_a, quotes_b):
        return reason
    only_a, only_b = a.choices - b.choices, b.choices - a.choices
    for row in sorted({row for row, _ in only_a} & {row for row, _ in only_b}):
        return _differ("words", {word for at, word in only_a if at == row}, {word for at, word in only_b if at == row})
    if reason := _opposed(a, b):
        return reason
    if max(len(a.words), len(b.words)) > _LONG:
        return None
    names_a, names_b = set(filter(b.lacks, a.names)), set(filter(a.lacks, b.names))
    subject_a = a.subject - {root(name.casefold()) for name in names_a}
    subject_b = b.subject - {root(name.casefold()) for name in names_b}
    if len(subject_a & subject_b) < _ALIKE * len(subject_a | subject_b):
        return None
    if reason := _differ("names", names_a, names_b):
        return reason
    if a.negated != b.negated and _NEGATIVE_STEMS.isdisjoint((b if a.negated else a).stems):
        return "only one is negated"
    swap = _swapped(a, b)
    return f"order differs: {swap[0]}, {swap[1]}" if swap else None
