"""Visits to the help desk: questions, answers, and what people say of them, spread over time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random

from heedful.engine import Heedful
from heedful.model import VISITOR, Recall, Signal, SignalType
from heedful.simulate import people
from heedful.simulate.people import CONCISE, DETECTOR, JUDGE, TALKATIVE, Clerk, Person
from heedful.simulate.shop import HANDBOOK, HELP, OUTDATED_REFUND, STAFF_WANTS, WANTS, Want
from heedful.simulate.timeline import Timeline
from heedful.simulate.truth import Quality, Truth

TOP_K = 5

COMPLAINT_WAVE = 10.0
"""How many times as many people more ask for a refund when what is said about it has become outdated."""

WAVE_HALVED = timedelta(days=16)
"""After how long half as many come, as long as it is outdated."""


@dataclass(slots=True)
class Visit:
    """One session, as it goes on."""

    session_id: str
    person: Person
    variant: str
    model: str
    dataset: str
    wants: list[Want]
    random: Random
    qualities: list[Quality] = field(default_factory=list)

    @property
    def author(self) -> str:
        """The name under which the person gives feedback; who has none is a visitor."""
        return self.person.author or f"{VISITOR}{self.session_id}"


class HelpDesk:
    """Lets people in, answers them, and lets them say what they think."""

    def __init__(
        self, memory: Heedful, timeline: Timeline, clerk: Clerk, truth: Truth, random: Random, counts: Counter[str]
    ) -> None:
        """`counts` gets how many of everything there are."""
        self._memory = memory
        self._timeline = timeline
        self._clerk = clerk
        self._truth = truth
        self._counts = counts
        self._customers = people.customers(random)
        self.lies: list[str] = []
        """Signals of the one who lies."""

    def visit(self, number: int, random: Random, wishes: Random) -> None:
        """Somebody comes now, and wants what `wishes` draws."""
        person, dataset = self._who(random)
        now = self._timeline.now
        visit = Visit(
            session_id=f"{person.channel}-{now:%m%d}-{number:04d}",
            person=person,
            variant="AB"[number % 2],
            model=random.choices((TALKATIVE, CONCISE), (6, 4))[0],
            dataset=dataset,
            wants=self._wants(dataset, wishes),
            random=random,
        )
        metadata = {
            "variant": visit.variant,
            "channel": person.channel,
            "language": person.language,
            "tier": person.tier,
        }
        self._memory.sessions.create(visit.session_id, metadata=metadata)
        self._counts["sessions"] += 1
        self._ask(visit, 0)

    def _who(self, random: Random) -> tuple[Person, str]:
        drawn = random.random()
        if drawn < 0.08:
            return people.staff(random), HANDBOOK
        if drawn < 0.45:
            return people.visitor(random), HELP
        # The one who lies is the last of them, and comes often.
        return (random.choice(self._customers) if drawn < 0.96 else self._customers[-1]), HELP

    def _wants(self, dataset: str, random: Random) -> list[Want]:
        wants = STAFF_WANTS if dataset == HANDBOOK else WANTS
        outdated = self._truth.outdated_for(OUTDATED_REFUND)
        wave = 1.0 if outdated is None else 1 + COMPLAINT_WAVE * 0.5 ** (outdated / WAVE_HALVED)
        weights = [each.weight * (wave if OUTDATED_REFUND in each.answers else 1) for each in wants]
        return random.choices(wants, weights, k=random.choices((1, 2, 3), (50, 35, 15))[0])

    def _ask(self, visit: Visit, place: int) -> None:
        want, random = visit.wants[place], visit.random
        self._clerk.name = visit.model
        shown = self._memory.recall(
            random.choice(want.queries[visit.person.language] or want.queries["en"]),
            dataset=visit.dataset,
            top_k=TOP_K,
            boost_by_usefulness=None if visit.variant == "B" else False,
            session_id=visit.session_id,
        )
        assert shown.qa_id is not None
        assert shown.answer is not None
        messages = [{"role": "user", "content": shown.query}, {"role": "assistant", "content": shown.answer}]
        self._memory.sessions.add_messages(visit.session_id, messages)
        entry = self._memory.sessions.entry(visit.session_id, shown.qa_id)
        used = [each.fact_id for each in entry.used or ()]
        right = self._truth.right(want, shown.hits)
        quality = self._truth.quality(right, used)
        visit.qualities.append(quality)
        self._counts.update(("entries", "messages", "messages", f"{quality} answers of {visit.variant}"))
        self._opinions(visit, want, shown, used, right, quality)
        if place + 1 < len(visit.wants):
            self._timeline.after(random.uniform(1, 6), lambda: self._ask(visit, place + 1))
        elif random.random() < 0.21:
            self._timeline.after(random.uniform(1, 4), lambda: self._rate_session(visit))

    def _opinions(
        self, visit: Visit, want: Want, shown: Recall, used: list[str], right: set[str], quality: Quality
    ) -> None:
        """Has what is said of one answer said, at once or later."""
        random, after = visit.random, self._timeline.after
        # All are drawn for each answer, so that one habit can be changed without disturbing the others.
        rates, signals, judged, detected = (random.random() for _ in range(4))
        later = random.uniform(60, 1500) if random.random() < 0.1 else random.uniform(0.3, 4)
        if rates < people.eagerness(want, quality):
            score = people.score(visit.person, quality, visit.variant, random)
            text = people.comment(visit.person, want, score, is_long=len(used) > 1, random=random)
            after(later, lambda: self._rate(visit, shown, score, text, visit.author))
        elif judged < 0.07:
            verdict = {"good": 5, "mixed": 3, "bad": 2}[quality]
            text = "The evidence is off topic" if quality == "bad" else None
            after(5, lambda: self._rate(visit, shown, verdict, text, JUDGE))
        if signals < 0.6:
            after(random.uniform(0.2, 3), lambda: self._signal(visit, shown, used, right))
        elif detected < 0.15:
            after(10, lambda: self._detect(shown))

    def _rate(self, visit: Visit, shown: Recall, score: int, text: str | None, author: str | None) -> None:
        assert shown.qa_id is not None
        self._memory.sessions.add_feedback(visit.session_id, shown.qa_id, text, score, author=author)
        self._counts.update(("ratings", "comments") if text else ("ratings",))

    def _signal(self, visit: Visit, shown: Recall, used: list[str], right: set[str]) -> None:
        """Somebody names what helped them, and complains only about what the answer quotes."""
        verdict = visit.person.user.judge([hit.fact_id for hit in shown.hits], right)
        judged: dict[SignalType, list[str]] = {
            "used": verdict.used,
            "helpful": verdict.helpful,
            "not_helpful": [fact_id for fact_id in verdict.not_helpful if fact_id in used],
        }
        result = self._memory.signal(
            [
                Signal(fact_id=fact_id, signal_type=kind, query=shown.query, author=visit.author)
                for kind, fact_ids in judged.items()
                for fact_id in fact_ids
            ]
        )
        self._counts["signals"] += result.processed
        if visit.person.is_adversary:
            self.lies += result.event_ids

    def _detect(self, shown: Recall) -> None:
        result = self._memory.signal_recall(shown.recall_id, answer=shown.answer, author=DETECTOR)
        self._counts["signals"] += result.processed

    def _rate_session(self, visit: Visit) -> None:
        good = sum({"good": 1.0, "mixed": 0.5, "bad": 0.0}[each] for each in visit.qualities) / len(visit.qualities)
        chance = 0.1 + 0.8 * good + (0.04 if visit.variant == "B" else 0)
        is_up = (visit.random.random() < chance) != visit.person.is_adversary
        text = None
        if not is_up and visit.random.random() < 0.5:
            text = people.complaint(visit.person, visit.wants[-1], is_long=False, random=visit.random)
        feedback = {"rating": "up" if is_up else "down", "comment": text}
        self._memory.sessions.add_session_feedback(visit.session_id, feedback, author=visit.author)
        self._counts.update(("session ratings", "comments") if text else ("session ratings",))
