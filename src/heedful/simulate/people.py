"""The people at the help desk: customers with names and habits, visitors without, and staff; and their comments."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from heedful.engine import Heedful
from heedful.model import Recall, SignalResult
from heedful.providers.llm import ChatMessage, Completion, OnToken, Usage
from heedful.simulate.shop import Quality

FIRST = ("ana", "ben", "carla", "dmitri", "elif", "femke", "goran", "hana", "ivo", "jun", "kofi", "lena")
LAST = ("alves", "berg", "costa", "demir", "eriksen", "faria", "gomez", "huber")

STAFF = ("Mara", "Tom", "Ines")
DETECTOR = "detector"


@dataclass(frozen=True, slots=True)
class Person:
    """One who asks; without a name, nobody knows who it was."""

    author: str | None
    user: SimulatedUser
    tier: str
    channel: str


def customers(random: Random, count: int = 60) -> list[Person]:
    """The customers with names."""
    names = [f"{first}.{last}" for first in FIRST for last in LAST]
    return [person(random, name) for name in random.sample(names, count)]


def staff(random: Random) -> Person:
    """One of the shop's own people."""
    name = random.choice(STAFF)
    user = SimulatedUser(random.randrange(2**32), author=name, examination=0.4)
    return Person(name, user, "staff", "web")


def person(random: Random, author: str | None) -> Person:
    """A customer, or a visitor without a name."""
    user = SimulatedUser(
        random.randrange(2**32),
        author=author,
        examination=random.uniform(0.3, 1.2),
        explicit=random.random() < 0.7,
    )
    return Person(
        author,
        user,
        random.choices(("free", "plus", "business"), (60, 30, 10))[0],
        random.choices(("web", "app"), (58, 42))[0],
    )


SMALL, LARGE = "clerk-mini", "clerk-large"

NOTHING_KNOWN = "I found nothing about that."

_EVIDENCE = re.compile(r'^\[(\d+)\] (\(.*\) )?(".*")$', re.MULTILINE)
"""A fact's number, what people said against it, and its text."""


class Clerk:
    """Answers with the first fact that nobody disliked, or the first one, under the `name` it has at the moment."""

    def __init__(self, sql: Mapping[str, str]) -> None:
        """`sql` has the SQL for each question that it can be asked about data."""
        self.name = SMALL
        self._sql = sql

    def complete(self, messages: Sequence[ChatMessage], *, on_token: OnToken | None = None) -> Completion:
        prompt = messages[-1].content
        if prompt.startswith("Evidence:"):
            text = self._quoted(prompt)
        elif (question := prompt.rpartition("\n\nQuestion: ")[2]) in self._sql:
            text = f"```sql\n{self._sql[question]}\n```"
        else:
            text = "[]"
        if on_token is not None:
            on_token(text)
        read = sum(len(message.content) for message in messages)
        return Completion(text, Usage(read // 4, len(text) // 4))

    @staticmethod
    def _quoted(prompt: str) -> str:
        for number, _, text in sorted(_EVIDENCE.findall(prompt), key=lambda each: bool(each[1])):
            # A fact that was learnt from an answer has the question in its first line.
            return f"{json.loads(text).rpartition(chr(10))[2]} [{number}]"
        return NOTHING_KNOWN


SCORES: Mapping[Quality, tuple[float, ...]] = {
    "good": (0, 0, 8, 39, 53),
    "bad": (42, 36, 14, 6, 2),
}
"""The weights of 1, 2, 3, 4 and 5 for an answer."""

RATES: Mapping[Quality, float] = {"good": 0.5, "bad": 0.6}
"""The chance that somebody rates."""


def score(quality: Quality, random: Random) -> int:
    """The score that somebody gives."""
    stars: int = random.choices((1, 2, 3, 4, 5), SCORES[quality])[0]
    return stars


def comment(score: int, quality: Quality, random: Random, *, is_price: bool) -> str | None:
    """The comment that comes with a score, if any."""
    if random.random() >= {1: 0.95, 2: 0.85, 3: 0.3, 4: 0.15, 5: 0.22}[score]:
        return None
    if score > 3:
        return remark("praise", random)
    if quality == "good":
        return remark("link", random)
    return remark("price" if is_price else "wrong", random)


__all__ = ["Judgement", "Need", "SimulatedUser"]


@dataclass(frozen=True, slots=True)
class Need:
    """Something people want to know: the ways they ask for it, and the facts that answer it.

    With `later`, the world changes: from the question numbered `changes_at` on, other facts are the answer.
    """

    queries: Sequence[str]
    answers: Collection[str]
    later: Collection[str] = ()
    changes_at: int | None = None

    def answers_at(self, at: int) -> Collection[str]:
        """The facts that answer the question numbered `asked`, from 0."""
        return self.later if self.changes_at is not None and at >= self.changes_at else self.answers


@dataclass(frozen=True, slots=True)
class Judgement:
    """The opinions of a user about the facts of one recall; the others go unmentioned."""

    used: list[str] = field(default_factory=list)
    helpful: list[str] = field(default_factory=list)
    not_helpful: list[str] = field(default_factory=list)


class SimulatedUser:
    """One person with habits.

    `examination` is how quickly attention fades: the chance to look at rank r is r to the power of minus this, so 0
    looks at everything, and 1 looks at rank 2 half of the time. `noise` is the chance to say the contrary of
    what is true. An `adversarial` user always does. `explicit` users mark facts as helpful or not helpful; the others
    just use them.
    """

    def __init__(
        self,
        seed: int,
        *,
        author: str | None = None,
        noise: float = 0.0,
        examination: float = 1.0,
        explicit: bool = True,
        adversarial: bool = False,
    ) -> None:
        self.author = author or f"simulated-{seed}"
        self._random = Random(seed)
        self._noise = noise
        self._examination = examination
        self._explicit = explicit
        self._adversarial = adversarial

    def judge(self, shown: Sequence[str], answers: Collection[str]) -> Judgement:
        """The opinions of this user about facts shown in this order, of which `answers` are right."""
        judgement = Judgement()
        for rank, fact_id in enumerate(shown, start=1):
            # Both are drawn for every fact, so that one habit can be changed without disturbing the other.
            looks = self._random.random() < rank**-self._examination
            errs = self._random.random() < self._noise
            if not looks:
                continue
            good = (fact_id in answers) != (errs != self._adversarial)
            if good and self._explicit:
                judgement.helpful.append(fact_id)
            elif good:
                judgement.used.append(fact_id)
            elif self._explicit:
                judgement.not_helpful.append(fact_id)
        return judgement

    def respond(self, memory: Heedful, recall: Recall, answers: Collection[str]) -> SignalResult:
        """Judges one recall and sends the signals."""
        verdict = self.judge([hit.fact_id for hit in recall.hits], answers)
        return memory.signal_recall(
            recall.recall_id,
            used=verdict.used,
            helpful=verdict.helpful,
            not_helpful=verdict.not_helpful,
            author=self.author,
        )

    def query(self, need: Need) -> str:
        """One of the ways to ask."""
        return self._random.choice(need.queries)


Subject = Literal["price", "link", "wrong", "praise"]

WORDINGS: Mapping[Subject, tuple[str, str, str]] = {
    "price": (
        "||Sorry, |No, |Again: ",
        "wrong price, look at the checkout|wrong price, I was charged 35 euros at the checkout|"
        "old price, at the checkout I paid 35 euros|that is not the price I saw at the checkout|"
        "wrong price again, see the checkout|I paid more than this price at the checkout",
        "|.|!|. Please correct it.|. Very disappointed.",
    ),
    "link": (
        "||Well, |Thanks, but ",
        "where is the link to that page|a link to the page would help|there is no link to the page|"
        "I need the link to that page|I had to look for the page, please add the link",
        "|.|...",
    ),
    "wrong": (
        "||Sorry, |No, ",
        "wrong answer, that is outdated|wrong answer, your terms say otherwise|the wrong answer, it is outdated|"
        "outdated, please check your terms|wrong answer again, see your terms",
        "|.|!",
    ),
    "praise": (
        "||Wow, |Oh, ",
        "thanks, exactly what I needed|great, solved in a minute|clear and short|good answer|better than the hotline|"
        "finally somebody who knows|perfect",
        "|.|!| :)|, thank you.",
    ),
}
"""Openings, complaints and endings, from which remarks about a subject are put together."""


def remark(subject: Subject, random: Random) -> str:
    """One remark about a subject."""
    openings, complaints, endings = (part.split("|") for part in WORDINGS[subject])
    opening, text = random.choice(openings), random.choice(complaints)
    if not opening and random.random() < 0.6:
        text = text[0].upper() + text[1:]
    return opening + text + random.choice(endings)
