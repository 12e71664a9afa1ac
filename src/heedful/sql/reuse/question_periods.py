"""Periods that a question names, and the days or hours that each of them means at the time it is asked.

Some are explicit ("March 2025"), some follow the clock ("last Monday"). Days are those of UTC. Weeks begin on Monday,
unless a proven query shows that they begin on Sunday.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from functools import partial
from itertools import accumulate
from typing import NamedTuple

from heedful.caching import cache_short
from heedful.sql.reuse.question_words import word_groups
from heedful.text import word_set
from heedful.text.regex import regex

_MONTH_NAMES = word_groups("""
january jan januar janvier enero; february feb februar fevrier febrero; march mar marz mars marzo
april apr avril abril; may mai mayo; june jun juni juin junio; july jul juli juillet julio
august aug aout agosto; september sep sept septembre septiembre; october oct oktober octobre octubre
november nov novembre noviembre; december dec dezember decembre diciembre
""")
_MONTHS = {name: place for place, names in enumerate(_MONTH_NAMES, start=1) for name in names}
_ALSO_WORDS = frozenset(("may", "march", "mar", "mars", "mai", "sep", "dec"))
"""Months without a day or a year only where a word of time is before them: "in March", not "march on"."""
_OF_TIME = word_set("in of since until till by during through from to before after early mid late between")
_LONGEST_WORD = 20

_YEAR, _GAP = r"(?P<year>(?:19|20)\d\d)", r"[\s,./-]"
_NAME = rf"(?P<name>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_WRITTEN = tuple(
    regex(pattern)
    for pattern in (
        rf"(?<!\d){_YEAR}[-/._](?P<month>0?[1-9]|1[0-2])(?:[-/._](?P<day>\d\d?)(?!\d))?(?!\d)",
        rf"(?<!\d){_YEAR}(?P<month>0[1-9]|1[0-2])(?P<day>[0-2]\d|3[01])?(?!\d)",
        r"(?<!\d)(?P<first>\d\d?)[./-](?P<second>\d\d?)[./-](?P<short>(?:19|20)?\d\d)(?!\d)",
        rf"\b{_NAME}\b{_GAP}*{_DAY}\b(?:{_GAP}*(?:of\s+|de\s+)?{_YEAR}\b)?",
        rf"(?<![\d.]){_DAY}{_GAP}*(?:of\s+|de\s+)?{_NAME}\b(?:{_GAP}*(?:of\s+|de\s+)?{_YEAR}\b|-(?P<short>\d\d)\b)?",
        rf"\b{_NAME}\b{_GAP}*(?:of\s+|de\s+)?{_YEAR}\b",
        rf"\bq(?P<quarter>[1-4])\b(?:{_GAP}*(?:of\s+|fy\s*)?{_YEAR}\b)?",
        rf"(?<!\d){_YEAR}{_GAP}*q(?P<quarter>[1-4])\b",
        rf"\b(?P<nth>first|second|third|fourth|1st|2nd|3rd|4th)\s+quarter(?:\s+(?:of\s+)?{_YEAR}\b)?",
        r"(?<!\d)(?P<year>(?:19|20)\d0)'?(?P<decade>s)\b",
        rf"(?<!\d){_YEAR}(?!\d)",
        rf"\b{_NAME}\b",
    )
)
"""The ways to write a date, the fullest first: what one of them has taken, those after it don't see."""
_NTH = {word: place % 4 + 1 for place, word in enumerate("first second third fourth 1st 2nd 3rd 4th".split())}  # noqa: SIM905
_ISO_WEEKS = (
    rf"(?<!\d){_YEAR}\s+w(?P<week>\d\d?)\b",
    rf"\b(?:calendar\s+)?(?:week|w)\s*(?P<week>\d\d?)\s+(?:(?:of|in)\s+)?{_YEAR}\b",
)
_EXPLICIT = (*map(re.compile, _ISO_WEEKS), *_WRITTEN)

Written = tuple[int | None, int | None, int | None]
_A_DAY = timedelta(days=1)


def written_dates(text: str) -> Iterator[Written]:
    """The dates of a text in lower case, each as year, month and day, in all ways that it can be read."""
    for pattern in _WRITTEN:
        rest = []
        done = 0
        for match in pattern.finditer(text):
            found = [way for way in _read(match) if is_possible(*way)]
            if found and not _is_word(text, match):
                yield from found
                rest.append(text[done : match.start()])
                done = match.end()
        text = "\n".join((*rest, text[done:]))


def _read(match: re.Match[str]) -> list[Written]:
    said = match.groupdict()
    year = _year(said)
    if said.get("first"):
        one, other = int(said["first"]), int(said["second"])
        return [(year, one, other), (year, other, one)]
    if said.get("decade"):
        return [(int(said["year"]) + step, None, None) for step in range(10)]
    if (quarter := _quarter(said)) is not None:
        return [(year, 3 * quarter - 2, None), (year, 3 * quarter - 1, None), (year, 3 * quarter, None)]
    return [(year, _month(said), int(said["day"]) if said.get("day") else None)]


def _quarter(said: Mapping[str, str | None]) -> int | None:
    return int(str(said["quarter"])) if said.get("quarter") else _NTH.get(said.get("nth") or "")


def _month(said: Mapping[str, str | None]) -> int | None:
    if said.get("name"):
        return _MONTHS[str(said["name"])]
    return int(str(said["month"])) if said.get("month") else None


def _year(said: Mapping[str, str | None]) -> int | None:
    short = said.get("short")
    if said.get("year"):
        return int(str(said["year"]))
    return None if short is None else int(short) if len(short) == 4 else 2000 + int(short)


def is_possible(year: int | None, month: int | None, day: int | None) -> bool:
    """Whether the calendar has such a date; what is None may be anything."""
    with suppress(ValueError):
        date(year or 2000, 1 if month is None else month, 1 if day is None else day)
        return True
    return False


def _is_word(text: str, match: re.Match[str]) -> bool:
    """Whether a word that may be a month is none: "may" in "which may be late"."""
    if match.group() not in _ALSO_WORDS or text == match.group():
        return False
    before = text[max(0, match.start() - _LONGEST_WORD) : match.start()].split()
    return not before or before[-1] not in _OF_TIME


class Range(NamedTuple):
    """The meaning of a period at a time: from its first moment to the one after its last."""

    kind: str
    """ "year", "quarter", "month", "week", "weekend", "day", "hours", or "days" for any others."""
    first: datetime
    end: datetime


Resolve = Callable[[datetime], dict[str, Range]]


class Period(NamedTuple):
    """Words `start` to `stop` of a question that name a period."""

    start: int
    stop: int
    words: str
    follows_clock: bool
    """Whether it says how far it is from now: so do "yesterday" and "this year", but not "on Monday"."""
    names_year: bool
    resolve: Resolve

    def ranges(self, at: datetime) -> dict[str, Range]:
        """The ranges it may mean when it is asked at a time, by the name of that reading; none if it is vague."""
        with suppress(ValueError, OverflowError):
            return self.resolve(at.replace(tzinfo=None))
        return {}


_COUNTS = "one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()  # noqa: SIM905
_SHORT_DAYS = {"mon": 0, "tue": 1, "tues": 1, "wed": 2, "thu": 3, "thur": 3, "thurs": 3, "fri": 4, "sat": 5, "sun": 6}
_N = rf"(?P<count>\d+|{'|'.join(_COUNTS)}|an?)"
_UNIT = r"(?P<unit>day|week|month|quarter|year|hour|hr|h|minute|min)s?"
_BEFORE = "last|past|previous|preceding|prior"
_AFTER = "next|coming|upcoming"
_WHICH = rf"(?P<which>{_BEFORE}|{_AFTER}|this|current)"
_DAYNAME = rf"(?P<weekday>{'|'.join(_WEEKDAYS)})"
_RELATIVE = tuple(
    regex(pattern)
    for pattern in (
        r"\bday (?P<beyond>before yesterday|after tomorrow)\b",
        r"\b(?P<unit>week|weekend|month|quarter|year) before last\b(?P<twice>)",
        r"\b(?P<todate>year|month|week|quarter) to date\b|\b(?P<short>[ymq])td\b",
        rf"\b{_WHICH} (?P<count>\d+|{'|'.join(_COUNTS)}) ?{_UNIT}\b",
        rf"\b{_N} ?{_UNIT} (?P<way>ago|from now)\b",
        rf"\b{_WHICH} {_UNIT}\b",
        rf"\b(?:{_WHICH} )?(?P<weekend>weekend)\b",
        rf"\b{_WHICH} (?:{_DAYNAME}|(?P<shortday>{'|'.join(_SHORT_DAYS)}))\b",
        rf"\b{_DAYNAME}\b|\bon (?P<shortday>{'|'.join(_SHORT_DAYS)})\b",
        r"\b(?P<named>today|yesterday|tomorrow)\b",
        rf"\b(?P<vague>tonight|now|nowadays|currently|recently|{_WHICH} (?:night|morning|afternoon|evening)s?)\b",
    )
)
_OF_A_YEAR = regex(rf" (?:(?:of|in) )?(?:the )?(?P<which>{_BEFORE}|next|this|current) year\b")
_PART_OF = regex(r"\b(?:weeks?|weekends?|half|\w+day) (?:of|in)(?: the)?$")
"""A period of which only a part is meant: "the last Monday of March"."""
_LONGEST_PART = 40
_ONE_OF = regex(r"\b(?:first|second|third|fourth|fifth|final|1st|2nd|3rd|4th|5th|every|each|any|per|an?|other)$")
"""One of several that are meant: "the first Monday", "every weekend"."""
_OF_ANOTHER = regex(
    rf" (?:of|in) (?:the )?(?:month|quarter|year|{'|'.join(_MONTHS)}|\d{{4}}|this|last|next|each|every)\b"
)
_PAST = word_set("was were did had been went came took made got sold bought paid sent left gave ran began saw")
_FUTURE = word_set("will shall due scheduled planned expected upcoming")
_MAY_NAME_PERIOD = regex(
    rf"\d{{4}}|day|week|month|quarter|year|\b[ymq]td\b|\bq[1-4]\b|hour|\d ?hr?s?\b|\bmin|tomorrow|night|now|current"
    rf"|recent|morning|noon|evening|\b(?:{'|'.join((*_MONTHS, *_SHORT_DAYS))})\b"
)


@cache_short(entries=16_384, characters=300)
def periods(words: tuple[str, ...]) -> tuple[Period, ...]:
    """The periods that a question of these words names, in their order; no two of them overlap.

    >>> [period.words for period in periods(("loans", "in", "march", "2025", "and", "last", "week"))]
    ['march 2025', 'last week']
    """
    text = " ".join(words)
    if not _MAY_NAME_PERIOD.search(text):
        return ()
    starts = {offset: place for place, offset in enumerate(accumulate((len(word) + 1 for word in words), initial=0))}
    found = sorted(_found(text, starts, _tense(words)), key=lambda match: match.start)
    made = []
    for start, stop, follows_clock, is_open, resolve in found:
        # What "March" or "Monday" means depends on other periods, too.
        before = text[max(0, start - _LONGEST_PART) : start].rstrip()
        is_unclear = (is_open and (len(found) > 1 or _ONE_OF.search(before))) or _PART_OF.search(before)
        if is_unclear or _OF_ANOTHER.match(text, stop):
            resolve = _vague
        names_year = follows_clock or not is_open
        period = Period(starts[start], starts[stop + 1], text[start:stop], follows_clock, names_year, resolve)
        made.append(_with_lead(words, period))
    return tuple(made)


class _Found(NamedTuple):
    """Where a period is in a text, by its letters."""

    start: int
    stop: int
    follows_clock: bool
    is_open: bool
    """Whether it is one of many that have this name: "March", "Monday"."""
    resolve: Resolve


def _found(text: str, starts: Mapping[int, int], tense: str) -> Iterator[_Found]:
    written = [match for match in _matches(text, _EXPLICIT) if match.start() in starts and match.end() + 1 in starts]
    years = {year for match in written if (year := _year(match.groupdict())) is not None}
    taken = []
    for match in written:
        start, stop, said = match.start(), match.end(), match.groupdict()
        year = _year(said) or (min(years) if len(years) == 1 else None)
        if year is not None:
            yield _Found(start, stop, False, False, partial(_written, said, year))
        elif of_a_year := _OF_A_YEAR.match(text, stop):
            stop = of_a_year.end()
            yield _Found(start, stop, True, False, partial(_in_year, said, _step(of_a_year["which"])))
        else:
            yield _Found(start, stop, False, True, partial(_yearless, said, tense))
        taken.append((start, stop))
    rest = _blanked(text, taken)
    for match in _matches(rest, _RELATIVE):
        if match.start() in starts and match.end() + 1 in starts:
            said = match.groupdict()
            is_bare = any(map(said.get, ("weekday", "shortday", "weekend"))) and not said.get("which")
            yield _Found(match.start(), match.end(), not is_bare, is_bare, partial(_relative, said, tense))


def impossible(words: Sequence[str]) -> str | None:
    """A date among the words that no calendar has: "2025-02-30", "february 30".

    >>> impossible(("loans", "on", "2025-02-29")), impossible(("loans", "on", "2024-02-29"))
    ('2025-02-29', None)
    """
    text = " ".join(words)
    for match in _matches(text, (_ISO_DATE, *_WRITTEN[3:5])):
        said = match.groupdict()
        year, day = int(said["year"]) if said["year"] else None, int(said["day"])
        is_date = not said.get("name") or day <= _LONGEST_MONTH
        if is_date and not is_possible(year, _month(said), day):
            return match.group()
    return None


_ISO_DATE = regex(r"(?<!\S)(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)(?!\S)")
_LONGEST_MONTH = 31


def _matches(text: str, patterns: Sequence[re.Pattern[str]]) -> Iterator[re.Match[str]]:
    """The matches of the patterns; what one of them has taken, those after it don't see."""
    for pattern in patterns:
        found = [match for match in pattern.finditer(text) if not _is_word(text, match)]
        yield from found
        text = _blanked(text, [match.span() for match in found])


def _blanked(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """A text as long, without what is in these spans."""
    made, done = [], 0
    for start, stop in sorted(spans):
        made += [text[done:start], "\0" * (stop - start)]
        done = stop
    return "".join((*made, text[done:]))


def _with_lead(words: Sequence[str], period: Period) -> Period:
    """The period with the words before it that only say that something is in it: "in the year", "over the"."""
    start = period.start
    for lead in ("year", "the"):
        start -= bool(start) and words[start - 1] == lead
    if start and words[start - 1] in _IN and (words[start - 1] != "over" or words[start] == "the"):
        start -= 1
    return period._replace(start=start)


_IN = frozenset(("in", "on", "during", "within", "over"))


def _tense(words: Sequence[str]) -> str:
    is_past = any(
        word in _PAST or (len(word) > 4 and word.endswith("ed") and word[-3] != "e" and word not in _FUTURE)
        for word in words
    )
    is_future = not _FUTURE.isdisjoint(words)
    return "past" if is_past and not is_future else "future" if is_future and not is_past else ""


def _vague(at: datetime) -> dict[str, Range]:
    return {}


def _step(which: str | None) -> int:
    return 0 if which in ("this", "current") else 1 if which in _AFTER.split("|") else -1


def _midnight(at: datetime) -> datetime:
    return at.replace(hour=0, minute=0, second=0, microsecond=0)


def _day(at: datetime, step: int = 0) -> Range:
    first = _midnight(at) + timedelta(days=step)
    return Range("day", first, first + _A_DAY)


def _written(said: Mapping[str, str | None], year: int, at: datetime) -> dict[str, Range]:
    """The range of a written date in a year, whenever it is asked."""
    if said.get("week"):
        first = datetime.fromisocalendar(year, int(str(said["week"])), 1)
        return {"": Range("week", first, first + timedelta(weeks=1))}
    if said.get("first"):
        one, other = int(str(said["first"])), int(str(said["second"]))
        ways = {"month first": (one, other), "day first": (other, one)}
        return {way: _day(datetime(year, *day)) for way, day in ways.items() if is_possible(year, *day)}
    if said.get("decade"):
        return {"": Range("days", datetime(year, 1, 1), datetime(year + 10, 1, 1))}
    if (quarter := _quarter(said)) is not None:
        return {"": _calendar(datetime(year, 3 * quarter, 1), "quarter", 0)}
    month = _month(said)
    if said.get("day"):
        return {"": _day(datetime(year, month or 0, int(str(said["day"]))))}
    return {"": _calendar(datetime(year, month or 1, 1), "month" if month else "year", 0)}


def _in_year(said: Mapping[str, str | None], step: int, at: datetime) -> dict[str, Range]:
    return _written(said, at.year + step, at)


def _yearless(said: Mapping[str, str | None], tense: str, at: datetime) -> dict[str, Range]:
    """ "March": that of this year, the last one that has begun, or the next one that has not ended."""
    found: dict[str, Range] = {}
    for year in range(at.year - 4, at.year + 5):
        with suppress(ValueError):
            (days,) = _written(said, year, at).values()
            if days.first <= at:
                found["past"] = days
            if days.end > at:
                found.setdefault("future", days)
            if year == at.year:
                found["this year"] = days
    return {name: days for name, days in found.items() if not tense or name == tense}


def _calendar(at: datetime, unit: str, step: int) -> Range:
    """The whole day, week, month, quarter or year that lies so many of them from a time."""
    if unit == "day":
        return _day(at, step)
    if unit in ("week", "weekend"):
        monday = _midnight(at) + timedelta(days=-at.weekday(), weeks=step)
        return Range(unit, monday + timedelta(days=5 if unit == "weekend" else 0), monday + timedelta(weeks=1))
    months = _MONTHS_OF[unit]
    start = (at.year * 12 + at.month - 1) // months * months + step * months
    return Range(unit, _first_of(start), _first_of(start + months))


def _first_of(month: int) -> datetime:
    return datetime(month // 12, month % 12 + 1, 1)


def _months_before(at: datetime, months: int) -> datetime:
    """The same day so many months before, or the last day of that month."""
    first = _first_of(at.year * 12 + at.month - 1 - months)
    after = _first_of(at.year * 12 + at.month - months)
    return min(first + timedelta(days=at.day - 1), after - _A_DAY)


def _relative(said: Mapping[str, str | None], tense: str, at: datetime) -> dict[str, Range]:
    today = _midnight(at)
    if said.get("vague"):
        return {}
    if said.get("named") or said.get("beyond"):
        steps = {"yesterday": -1, "tomorrow": 1, "before yesterday": -2, "after tomorrow": 2}
        return {"": _day(at, steps.get(str(said.get("named") or said["beyond"]), 0))}
    if said.get("todate") or said.get("short"):
        unit = said.get("todate") or {"y": "year", "m": "month", "q": "quarter"}[str(said["short"])]
        return {"to date": Range("days", _calendar(at, unit, 0).first, today + _A_DAY)}
    which = said.get("which")
    if said.get("weekday") or said.get("shortday"):
        wanted = _WEEKDAYS.index(str(said["weekday"])) if said.get("weekday") else _SHORT_DAYS[str(said["shortday"])]
        return _on_weekday(at, wanted, which, tense)
    if said.get("weekend"):
        return _on_weekend(at, which, tense)
    unit = str(said["unit"])
    unit = {"h": "hour", "hr": "hour", "min": "minute"}.get(unit, unit)
    if said.get("twice") is not None:
        return {"": _calendar(at, unit, -2)}
    count = _count(said.get("count"))
    step = _step(which) if which else 1
    if unit in ("hour", "minute"):
        length = timedelta(**{f"{unit}s": count or 1})
        is_past = (said.get("way") or "") == "ago" or (which is not None and step < 0)
        return {"": Range("hours", at - length, at)} if is_past else {}
    if said.get("way"):
        ago = count if said["way"] == "from now" else -count
        found = {"": _calendar(at, unit, ago)}
        if unit != "day":
            exact = today + timedelta(weeks=ago) if unit == "week" else _months_before(today, -ago * _MONTHS_OF[unit])
            found["exact"] = _day(exact)
        return found
    if not count and (which != "past" or not step) and unit != "day":
        return _whole(at, unit, step)
    return _rolling(at, unit, count or 1, step)


_MONTHS_OF = {"month": 1, "quarter": 3, "year": 12}


def _count(word: str | None) -> int:
    if not word:
        return 0
    if word.isdigit():
        return min(int(word), 1000)
    return _COUNTS.index(word) + 1 if word in _COUNTS else 1


def _whole(at: datetime, unit: str, step: int) -> dict[str, Range]:
    """ "Last month", "this week": a whole one, and this one as far as it has gone."""
    found = {"": _calendar(at, unit, step)}
    if unit == "week":
        sunday = _calendar(at + _A_DAY, "week", step)
        found["from sunday"] = Range("days", sunday.first - _A_DAY, sunday.end - _A_DAY)
    if not step:
        today = _midnight(at) + _A_DAY
        found |= {f"{way} to date".strip(): Range("days", days.first, today) for way, days in found.items()}
    return found


def _rolling(at: datetime, unit: str, count: int, step: int) -> dict[str, Range]:
    """ "The last 7 days", with and without today, and whole weeks or months before this one."""
    today = _midnight(at)
    if step >= 0:
        if unit not in ("day", "week"):
            return {"": _calendar(at, unit, step)} if count == 1 else {}
        length = timedelta(days=count * (7 if unit == "week" else 1))
        return {
            "with today": Range("days", today, today + length),
            "from tomorrow": Range("days", today + _A_DAY, today + _A_DAY + length),
            "and today": Range("days", today, today + _A_DAY + length),
        }
    if unit in _MONTHS_OF:
        first = _months_before(today, count * _MONTHS_OF[unit])
    else:
        first = today - timedelta(days=count * (7 if unit == "week" else 1))
    found = {
        "and today": Range("days", first, today + _A_DAY),
        "without today": Range("days", first, today),
        "with today": Range("days", first + _A_DAY, today + _A_DAY),
    }
    if unit != "day":
        before, this = _calendar(at, unit, -count), _calendar(at, unit, 0)
        found[""] = before if count == 1 else Range("days", before.first, this.first)
        found["whole and this"] = Range("days", before.first, today + _A_DAY)
    return found


def _on_weekday(at: datetime, wanted: int, which: str | None, tense: str) -> dict[str, Range]:
    ahead = (wanted - at.weekday()) % 7
    of_week = wanted - at.weekday()
    days = {
        "past": ahead - 7 if ahead else 0,
        "before today": ahead - 7,
        "future": ahead,
        "after today": ahead or 7,
        "last week": of_week - 7,
        "this week": of_week,
        "next week": of_week + 7,
    }
    names: tuple[str, ...]
    if which is None:
        tenses = {"past": ("past", "before today"), "future": ("future", "after today")}
        names = tenses.get(tense, ("past", "before today", "future", "after today"))
    else:
        names = {-1: ("before today", "last week"), 0: ("this week",), 1: ("after today", "next week")}[_step(which)]
    return {name: _day(at, days[name]) for name in names}


def _on_weekend(at: datetime, which: str | None, tense: str) -> dict[str, Range]:
    this = _calendar(at, "weekend", 0)
    before, after = _calendar(at, "weekend", -1), _calendar(at, "weekend", 1)
    if which is not None:
        return {"": (before, this, after)[_step(which) + 1]}
    found = {"past": this if this.first <= at else before, "": before, "future": this}
    return {name: found[name] for name in {"past": ("past", ""), "future": ("future",)}.get(tense, tuple(found))}
