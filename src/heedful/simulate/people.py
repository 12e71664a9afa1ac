"""The people at the help desk: customers with names and habits, visitors without, and staff; and what they write."""

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
from heedful.simulate.shop import OUTDATED_REFUND, Language, Quality, Want

FIRST = ("ana", "ben", "carla", "dmitri", "elif", "femke", "goran", "hana", "ivo", "jun", "kofi", "lena")
LAST = ("alves", "berg", "costa", "demir", "eriksen", "faria", "gomez", "huber")

STAFF = ("mara (staff)", "tom (staff)", "ines (staff)")
ADVERSARY = "vic.tor"
JUDGE = "judge"
DETECTOR = "detector"


@dataclass(frozen=True, slots=True)
class Person:
    """One who asks; without a name, nobody knows who it was."""

    author: str | None
    user: SimulatedUser
    tier: str
    channel: str
    language: Language
    is_adversary: bool = False


def customers(random: Random, count: int = 60) -> list[Person]:
    """The customers with names. Some err often, and one says the contrary of what is true."""
    names = [f"{first}.{last}" for first in FIRST for last in LAST]
    honest = [person(random, name) for name in random.sample(names, count)]
    liar = SimulatedUser(random.randrange(2**32), author=ADVERSARY, examination=0.2, adversarial=True)
    return [*honest, Person(ADVERSARY, liar, "free", "web", "en", is_adversary=True)]


def staff(random: Random) -> Person:
    """One of the shop's own people."""
    name = random.choice(STAFF)
    user = SimulatedUser(random.randrange(2**32), author=name, noise=0.03, examination=0.4)
    return Person(name, user, "staff", "web", "en")


def person(random: Random, author: str | None) -> Person:
    """A customer, or a visitor without a name."""
    user = SimulatedUser(
        random.randrange(2**32),
        author=author,
        noise=random.choices((0.02, 0.08, 0.3), (6, 3, 1))[0],
        examination=random.uniform(0.3, 1.2),
        explicit=random.random() < 0.7,
    )
    languages: tuple[Language, ...] = ("en", "de", "es")
    return Person(
        author,
        user,
        random.choices(("free", "plus", "business"), (60, 30, 10))[0],
        random.choices(("web", "app"), (58, 42))[0],
        random.choices(languages, (86, 9, 5))[0],
    )


CONCISE = "clerk-mini"
TALKATIVE = "clerk-large"

NOTHING_KNOWN = "I found nothing about that."

_EVIDENCE = re.compile(r'^\[(\d+)\] (".*")$', re.MULTILINE)


class Clerk:
    """Answers under the `name` it has at the moment: one model quotes a fact, the other often adds a second."""

    def __init__(self, random: Random, sql: Mapping[str, str]) -> None:
        """`sql` has the SQL for each question that it can be asked about data."""
        self.name = CONCISE
        self._random = random
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

    def _quoted(self, prompt: str) -> str:
        # A fact that was learnt from an answer has the question in its first line.
        facts = [(number, json.loads(text).rpartition("\n")[2]) for number, text in _EVIDENCE.findall(prompt)]
        if not facts:
            return NOTHING_KNOWN
        wordy = self.name == TALKATIVE and self._random.random() < 0.3
        # A sentence that was quoted once is not said twice.
        quoted = {fact: number for number, fact in reversed(facts[: 2 if wordy else 1])}
        return " ".join(f"{fact} [{number}]" for fact, number in reversed(quoted.items()))


SCORES: Mapping[Quality, tuple[float, ...]] = {
    "good": (1, 3, 9, 36, 51),
    "mixed": (8, 22, 34, 26, 10),
    "bad": (40, 33, 17, 7, 3),
}
"""The weights of 1, 2, 3, 4 and 5 for an answer."""

RATES: Mapping[Quality, float] = {"good": 0.27, "mixed": 0.28, "bad": 0.36}
"""The chance that somebody rates: who is angry says so."""

PRICED = frozenset({"price-new", "price-plus", "ship-price", "ship-free"})
"""The keys of facts with a price, which people compare with the one they see."""

MILDER = 0.08
"""The chance that the people of variant B, whose page is nicer to look at, give a point more."""


def eagerness(want: Want, quality: Quality) -> float:
    """The chance that somebody rates an answer; who waits for money does so most."""
    return 0.55 if quality == "bad" and OUTDATED_REFUND in want.answers else RATES[quality]


def score(person: Person, quality: Quality, variant: str, random: Random) -> int:
    """The score that somebody gives."""
    stars: int = random.choices((1, 2, 3, 4, 5), SCORES[quality])[0]
    if variant == "B" and stars < 5 and random.random() < MILDER:
        stars += 1
    return 6 - stars if person.is_adversary else stars


def comment(person: Person, want: Want, score: int, *, is_long: bool, random: Random) -> str | None:
    """The comment that comes with a score, if any."""
    chance = {1: 0.95, 2: 0.85, 3: 0.45, 4: 0.15, 5: 0.22}[score]
    if random.random() >= chance:
        return None
    return remark("praise", random) if score > 3 else complaint(person, want, is_long=is_long, random=random)


def complaint(person: Person, want: Want, *, is_long: bool, random: Random) -> str:
    """The comment of somebody who is not content."""
    subject: Subject = "wrong"
    if person.language != "en" and random.random() < 0.6:
        subject = "language"
    elif person.channel == "app" and random.random() < 0.12:
        subject = "crash"
    elif OUTDATED_REFUND in want.answers or (
        want.answers[0].startswith(("refund-", "return-")) and random.random() < 0.7
    ):
        subject = "refunds"
    elif PRICED.intersection(want.answers):
        subject = "price"
    elif random.random() < (0.6 if is_long else 0.15):
        subject = "length"
    return remark(subject, random)


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


Subject = Literal["refunds", "length", "price", "language", "crash", "wrong", "praise"]

WORDINGS: Mapping[Subject, tuple[str, str, str]] = {
    "refunds": (
        "||Sorry, but |Honestly, |Third time I ask: |Again: |No, ",
        "my refund took {weeks} weeks, not 5 days|the refund is not on my account after {days} days|"
        "still no refund, it has been {days} days since you got the parcel|"
        "5 days is not true any more for refunds, I wait since {weeks} weeks|"
        "you promise the money in 5 days and I have been waiting for {days}|"
        "where is my money? The parcel reached you {days} days ago|the refund for order {order} never came|"
        "your colleague said refunds now take {days} days, the bot says 5|"
        "refund outdated info, it is {weeks} weeks at the moment|"
        "I was told 5 days for my refund, that was {weeks} weeks ago",
        "||.|!!|. Please check.|. Very disappointed.| and nobody answers.",
    ),
    "length": (
        "||Well, |To be fair, it is right, but ",
        "way too long, I had to search for the one sentence I need|the answer took ages to appear|slow, slow, slow|"
        "too much text for a simple question|why tell me two things when I asked for one|"
        "I waited {seconds} seconds for this|could be half as long|it loads so slowly that I nearly left",
        "|.|...|. Keep it short.|. On the phone it is unreadable.",
    ),
    "price": (
        "||Sorry, |No, ",
        "that price is wrong, the checkout says something else|the shop page shows {price} euros|"
        "old price, at the checkout I paid {price} euros|the price you tell is not the price I see|"
        "I was charged {price} euros and not what the bot says|two different prices in one answer, which one is it|"
        "wrong price again",
        "|.|!|. Please correct it.",
    ),
    "language": (
        "||Bitte: |Perdón, ",
        "I asked in my language and got English|Frage auf Deutsch, Antwort auf Englisch|bitte auf Deutsch antworten|"
        "warum auf Englisch?|la respuesta está en inglés|no entiendo, contesta en español por favor|wrong language|"
        "ich verstehe kein Englisch",
        "|.|!| :(",
    ),
    "crash": (
        "||Hi, |By the way, ",
        "the app crashed while I was reading this|app closes itself when I open the chat|"
        "had to start the app {times} times to see the answer|white screen in the app after the update|"
        "the app freezes when I tap on the link|crash on my Pixel, version 4.{minor}|"
        "the app crashes as soon as I open the chat",
        "|.|!|. On the website it works.|. Android.",
    ),
    "wrong": (
        "||Sorry, |No, ",
        "wrong answer, I asked something else|wrong answer, that was not my question|"
        "the answer does not fit my question|that is not an answer to my question|"
        "this answer is about another question|wrong answer, my account says the contrary|the answer is no use to me|"
        "the answer is wrong",
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
    opening, complaint = random.choice(openings), random.choice(complaints)
    text = complaint.format(
        weeks=random.randint(2, 4),
        days=random.randint(9, 24),
        order=random.randint(40_000, 49_999),
        seconds=random.randint(10, 40),
        price=random.choice((29, 41, 45, 49)),
        times=random.randint(2, 4),
        minor=random.randint(1, 9),
    )
    if not opening and random.random() < 0.6:
        text = text[0].upper() + text[1:]
    return opening + text + random.choice(endings)
