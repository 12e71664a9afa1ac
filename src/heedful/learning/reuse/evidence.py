"""What the proven questions of a connector teach about words: which may stand for which, and where.

Two proven questions with the same SQL but for its values, and the same words but in one place, show that the words in
that place are interchangeable. Two with different SQL show that they are not.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from heedful.learning.reuse.reading import LONGEST, Frame, is_slot
from heedful.learning.reuse.studies import Proven, Study, study
from heedful.learning.reuse.values import Values

Words = tuple[str, ...]
Item = TypeVar("Item", str, Words)
_LONGEST = 3  # Words in a row that are exchanged as a whole.
_GAP = "_"
_MOST_READ = 20_000  # Questions with SQL whose reading is kept, proven or not.
_MOST_LIKE = 50  # Proven questions that are looked at beside those that similarity finds.


class Swap(NamedTuple):
    """What is known about exchanging some words.

    `templates` of SQL were proven with both; `places` are those within one template. Both are 0 when there is a place
    where the SQL changed with the words.
    """

    templates: int
    places: int


class Evidence:
    """The proven questions of one connector; they can be added and removed one by one.

    Threads may read it at the same time, but not while one of them adds or removes.
    """

    def __init__(self, dialect: str, values: Values, proven: Iterable[Proven] = ()) -> None:
        self.dialect = dialect
        self.values = values
        self._studies: dict[Hashable, Study | None] = {}
        self._read: dict[tuple[str, str], Study | None] = {}
        self._reading = threading.Lock()
        self._members: dict[Words, dict[str, dict[Words, dict[Hashable, None]]]] = {}
        self._fills: dict[Words, dict[Words, Counter[str]]] = {}
        self._holes: dict[Words, Counter[Words]] = defaultdict(Counter)
        self._keys: dict[Words, Counter[Words]] = defaultdict(Counter)
        self._frames: Counter[tuple[Words, str]] = Counter()
        for each in proven:
            self.add(each)

    def study(self, proven: Proven) -> Study | None:
        """A proven question read together with its SQL, or None when the SQL can't be read."""
        if proven.id in self._studies:
            return self._studies[proven.id]
        key = (proven.question, proven.sql)
        with self._reading:
            if key in self._read:
                return self._read[key]
        made = study(proven.question, proven.sql, self.dialect, self.values)
        with self._reading:
            if len(self._read) >= _MOST_READ:
                self._read.pop(next(iter(self._read)))
            self._read[key] = made
        return made

    def add(self, proven: Proven) -> None:
        """Count a proven question in."""
        known = self._studies[proven.id] = self.study(proven)
        if known is None or len(known.words) > LONGEST:
            return
        key, words, template = known.frame.key, known.frame.words, known.template
        members = self._members.setdefault(key, {}).setdefault(template, {})
        members.setdefault(_values(known.frame), {})[proven.id] = None
        self._frames[words, template] += 1
        if self._frames[words, template] == 1:
            for hole, fill in _holes(words):
                self._fills.setdefault(hole, {}).setdefault(fill, Counter())[template] += 1
                self._holes[fill][hole] += 1
                self._keys[hole][key] += 1

    def remove(self, proven_id: Hashable) -> None:
        """Take a proven question out."""
        known = self._studies.pop(proven_id, None)
        if known is None or len(known.words) > LONGEST:
            return
        key, words, template = known.frame.key, known.frame.words, known.template
        members, values = self._members[key], _values(known.frame)
        del members[template][values][proven_id]
        if not members[template][values]:
            del members[template][values]
        if not members[template]:
            del members[template]
        self._frames[words, template] -= 1
        if self._frames[words, template] == 0:
            del self._frames[words, template]
            for hole, fill in _holes(words):
                _less(self._fills[hole][fill], template)
                _less(self._holes[fill], hole)
                _less(self._keys[hole], key)

    def templates(self, key: Words) -> dict[str, int]:
        """The SQL templates proven for a frame, and with how many different values."""
        return {template: len(values) for template, values in self._members.get(key, {}).items()}

    def like(self, frames: Sequence[Frame]) -> list[Hashable]:
        """Proven questions with one of these frames, or all but a few words of it: one for each template and
        frame, with the same values if there is one.
        """
        found: dict[Hashable, None] = {}
        for frame in frames:
            keys = {frame.key: None}
            for hole, _ in _holes(frame.words):
                if all(word == _GAP or is_slot(word) for word in hole):
                    continue  # Nothing is left that says what is asked.
                keys.update(dict.fromkeys(self._keys.get(hole, ())))
            for key in keys:
                for members in self._members.get(key, {}).values():
                    ids = members.get(_values(frame)) or next(iter(members.values()))
                    found[next(iter(ids))] = None
                    if len(found) == _MOST_LIKE:
                        return list(found)
        return list(found)

    def swap(self, old: Words, new: Words, template: str) -> Swap:
        """What is known about saying `new` in place of `old`, for all SQL and for that of one template."""
        few, many = sorted((self._holes.get(old, Counter()), self._holes.get(new, Counter())), key=len)
        agreeing: set[str] = set()
        places = 0
        for hole in few:
            if hole in many:
                fills = self._fills[hole]
                common = fills[old].keys() & fills[new].keys()
                if not common:
                    return Swap(0, 0)
                agreeing |= common
                places += template in common
        return Swap(len(agreeing), places)


def _values(frame: Frame) -> Words:
    return tuple(slot.text for slot in frame.slots)


def _less(counts: Counter[Item], item: Item) -> None:
    counts[item] -= 1
    if counts[item] == 0:
        del counts[item]


def _holes(words: Words) -> Iterator[tuple[Words, Words]]:
    """What is left of a frame around each run of words, with that run."""
    for start in range(len(words) + 1):
        for stop in range(start, min(len(words), start + _LONGEST) + 1):
            fill = words[start:stop]
            if any(map(is_slot, fill)):
                break
            yield (*words[:start], _GAP, *words[stop:]), fill
