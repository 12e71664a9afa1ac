"""Visits to the help desk: questions, answers and ratings, spread over time; and the work of staff."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

from heedful.engine import Heedful
from heedful.errors import Conflict
from heedful.model import VISITOR, Hit, Recall, Signal, SignalType
from heedful.simulate import people, shop
from heedful.simulate.people import DETECTOR, LARGE, SMALL, STAFF, Clerk, Person
from heedful.simulate.shop import DataQuestion, Quality, Want

TOP_K = 5


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

    @property
    def author(self) -> str:
        """The name under which the person gives feedback; who has none is a visitor."""
        return self.person.author or f"{VISITOR}{self.session_id}"


@dataclass(slots=True)
class HelpDesk:
    """Lets people in, answers them, and lets them say what they think."""

    memory: Heedful
    timeline: Timeline
    clerk: Clerk
    truth: Truth
    customers: Sequence[Person]
    counts: Counter[str]
    """The counts of everything."""

    def visit(self, number: int, random: Random, wishes: Random) -> None:
        """Somebody comes now, and wants what `wishes` draws."""
        person, dataset = self._who(random)
        now = self.timeline.now
        visit = Visit(
            session_id=f"{person.channel}-{now:%m%d}-{number:04d}",
            person=person,
            variant="AB"[number % 2],
            model=random.choice((LARGE, SMALL)),
            dataset=dataset,
            wants=self._wants(dataset, wishes),
            random=random,
        )
        metadata = {name: getattr(person, name) for name in ("channel", "tier")}
        metadata = {"variant": visit.variant, **metadata}
        self.memory.sessions.create(visit.session_id, metadata=metadata)
        self.counts["sessions"] += 1
        self._ask(visit, 0)

    def _who(self, random: Random) -> tuple[Person, str]:
        drawn = random.random()
        if drawn < 0.25:
            return people.staff(random), shop.HANDBOOK
        return people.person(random, None) if drawn < 0.55 else random.choice(self.customers), shop.HELP

    def _wants(self, dataset: str, random: Random) -> list[Want]:
        wants = shop.STAFF_WANTS if dataset == shop.HANDBOOK else shop.WANTS
        return random.choices(wants, [want.weight for want in wants], k=random.choices((1, 2, 3), (50, 35, 15))[0])

    def _ask(self, visit: Visit, place: int) -> None:
        want, random = visit.wants[place], visit.random
        self.clerk.name = visit.model
        shown = self.memory.recall(
            random.choice(want.queries),
            dataset=visit.dataset,
            top_k=TOP_K,
            boost_by_usefulness=None if visit.variant == "B" else False,
            session_id=visit.session_id,
        )
        assert shown.qa_id is not None
        entry = self.memory.sessions.entry(visit.session_id, shown.qa_id)
        used = [fact.fact_id for fact in entry.used or ()]
        right = self.truth.right(want, shown.hits)
        quality: Quality = "good" if used and used[0] in right else "bad"
        self.counts.update(("entries", f"{quality} answers of {visit.variant}"))
        self._opinions(visit, want, shown, used, right, quality)
        if place + 1 < len(visit.wants):
            self.timeline.after(random.uniform(1, 6), lambda: self._ask(visit, place + 1))

    def _opinions(
        self, visit: Visit, want: Want, shown: Recall, used: list[str], right: set[str], quality: Quality
    ) -> None:
        """Gives feedback on one answer, at once or later."""
        random, after = visit.random, self.timeline.after
        # All are drawn for each answer, so that one habit can be changed without disturbing the others.
        rates, signals, detected = (random.random() for _ in range(3))
        if rates < people.RATES[quality]:
            score = people.score(quality, random)
            text = people.comment(score, quality, random, is_price=self.truth.is_outdated(want))
            after(random.uniform(0.3, 4), lambda: self._rate(visit, shown, score, text))
        if signals < 0.6:
            after(random.uniform(0.2, 3), lambda: self._signal(visit, shown, used, right))
        elif detected < 0.15:
            after(10, lambda: self._detect(shown))

    def _rate(self, visit: Visit, shown: Recall, score: int, text: str | None) -> None:
        assert shown.qa_id is not None
        self.memory.sessions.add_feedback(visit.session_id, shown.qa_id, text, score, author=visit.author)
        self.counts.update(("ratings", "comments") if text else ("ratings",))

    def _signal(self, visit: Visit, shown: Recall, used: list[str], right: set[str]) -> None:
        """Somebody names what helped them, and complains only about what the answer quotes."""
        verdict = visit.person.user.judge([hit.fact_id for hit in shown.hits], right)
        judged: dict[SignalType, list[str]] = {
            "used": verdict.used,
            "helpful": verdict.helpful,
            "not_helpful": [fact_id for fact_id in verdict.not_helpful if fact_id in used],
        }
        result = self.memory.signal(
            [
                Signal(fact_id=fact_id, signal_type=kind, query=shown.query, author=visit.author)
                for kind, fact_ids in judged.items()
                for fact_id in fact_ids
            ]
        )
        self.counts["signals"] += result.processed

    def _detect(self, shown: Recall) -> None:
        result = self.memory.signal_recall(shown.recall_id, answer=shown.answer, author=DETECTOR)
        self.counts["signals"] += result.processed


@dataclass(slots=True)
class Truth:
    """The facts that are right by now. One becomes outdated, until somebody corrects it."""

    facts: dict[str, str]
    """The fact behind each key."""
    now: Callable[[], datetime]
    changes_at: datetime
    """When the fact becomes outdated."""
    correction: str | None = None
    """The fact that replaced it."""

    def is_outdated(self, want: Want) -> bool:
        """Whether the fact that answered it is right no longer."""
        return want.answer == shop.OUTDATED and self.now() >= self.changes_at

    def right(self, want: Want, hits: Sequence[Hit]) -> set[str]:
        """The hits that are right: also those that were learnt from right facts."""
        answer = self.correction if self.is_outdated(want) else self.facts[want.answer]
        return {hit.fact_id for hit in hits if answer in (hit.fact_id, *hit.metadata.get("made_from", ()))}


Action = Callable[[], object]

BY_HOUR = (1, 0.6, 0.4, 0.3, 0.3, 0.6, 1.5, 3, 5, 7, 8.5, 9, 8, 7, 7, 7.5, 7, 6.5, 7, 8.5, 9, 7, 4, 2)
"""The traffic of the hours of a day, in UTC."""

BY_WEEKDAY = (1.2, 1.1, 1.0, 1.0, 0.95, 0.65, 0.55)
"""The traffic of the days of a week, from Monday on."""


class Timeline:
    """A clock whose time is that of the event that is done; what would be later than `until` never happens."""

    def __init__(self, start: datetime, until: datetime) -> None:
        self.now = start
        self.until = until
        self._due: list[tuple[datetime, int, Action]] = []
        self._added = 0

    def __call__(self) -> datetime:
        return self.now

    def at(self, moment: datetime, action: Action) -> None:
        """Has something done at a moment, which is not in the past."""
        if moment <= self.until:
            # The number keeps events of one moment in order.
            heapq.heappush(self._due, (max(moment, self.now), self._added, action))
            self._added += 1

    def after(self, minutes: float, action: Action) -> None:
        """Has something done some minutes from now."""
        self.at(self.now + timedelta(minutes=minutes), action)

    def run(self) -> None:
        """Does all that is due, and what that brings along, in the order of time."""
        while self._due:
            self.now, _, action = heapq.heappop(self._due)
            action()
        self.now = self.until


def arrivals(start: datetime, until: datetime, count: int, random: Random) -> list[datetime]:
    """The moments at which people come, in order, in the rhythm of the shop."""
    hours = [start + timedelta(hours=hour) for hour in range(max(1, int((until - start) / timedelta(hours=1))))]
    weights = [BY_HOUR[hour.hour] * BY_WEEKDAY[hour.weekday()] for hour in hours]
    return sorted(
        min(hour + timedelta(seconds=round(random.random() * 3600, 3)), until)
        for hour in random.choices(hours, weights, k=count)
    )


PRICE_QUESTIONS = next(want.queries for want in shop.WANTS if want.answer == shop.OUTDATED)


@dataclass(slots=True)
class Reviewer:
    """Opens the review queue, and finds out what the complaints about a price have in common."""

    memory: Heedful
    truth: Truth
    counts: Counter[str]

    def work(self) -> None:
        """Corrects the price, and resolves what is about it; the rest stays open."""
        review, author = self.memory.review, STAFF[0]
        complaints = [item for item in review.list(limit=100).items if item.question in PRICE_QUESTIONS]
        for item in sorted(complaints, key=lambda item: item.target_type != "entry"):
            note = "The price has changed since."
            if self.truth.correction is None:
                outdated = self.truth.facts[shop.OUTDATED]
                fixed = review.fix(item.item_id, "supersede", fact_id=outdated, text=shop.CORRECTION, author=author)
                self.truth.correction = fixed.details["superseded_by"]
                note = "The price of Plus has changed; the fact is corrected."
            review.resolve(item.item_id, note=note, author=author)
            self.counts["resolutions"] += 1

    def ask_again(self) -> None:
        """Resolves the first complaints about answers without feedback if feedback changes the answer."""
        note = "Asked for without feedback (variant A). With it, another answer comes."
        for item in self.memory.review.list(target_type="entry", limit=3).items:
            again = self.memory.review.ask_again(item.item_id)
            if again.changed and not again.usefulness_weight:
                self.memory.review.resolve(item.item_id, note=note, author=STAFF[0])
                self.counts["resolutions"] += 1


CONNECTOR = "shop"
EXAMPLES = (1, 4, 8)
"""The reports that are golden examples from the start."""


@dataclass(slots=True)
class Analysts:
    """Asks questions about data, now and then."""

    memory: Heedful
    clerk: Clerk
    counts: Counter[str]
    chats: dict[str, str] = field(default_factory=dict)
    """The chat sessions of authors."""
    known_better: set[int] = field(default_factory=set)
    """The reports whose wrong SQL somebody ran already."""
    liked: str | None = None
    """The execution that people liked first."""

    def give_examples(self) -> None:
        """Somebody who knows the data says how some things are counted."""
        for place in EXAMPLES:
            report = shop.REPORTS[place]
            self.memory.golden_examples.create(report.questions[0], report.sql, connector_id=CONNECTOR)
            self.counts["golden examples"] += 1

    def promote(self) -> None:
        """Makes an example of what people liked first."""
        if self.liked is None:
            return
        try:
            self.memory.golden_examples.promote(self.liked)
        except Conflict:
            # Somebody else says that it is wrong, or the question has an example.
            return
        self.counts["golden examples"] += 1

    def ask(self, random: Random) -> None:
        """Somebody asks: the cache first, then a language model or their own SQL."""
        place = random.randrange(len(shop.REPORTS))
        report = shop.REPORTS[place]
        question, author = random.choice(report.questions), random.choice(STAFF)
        cached = self.memory.chat.execution_cache_lookup(question, connector_id=CONNECTOR)
        self.counts["lookups"] += 1
        is_wrong = False
        if cached.cache_hit:
            self.counts["hits"] += 1
            execution_id = str(cached.matches[0].execution["execution_id"])
        elif random.random() < 0.5:
            execution_id = self._written(question, author)
        else:
            is_wrong = report.wrong is not None and place not in self.known_better
            self.known_better.add(place)
            sql = report.wrong if is_wrong and report.wrong is not None else report.sql
            done = self.memory.executions.execute_query(sql, connector_id=CONNECTOR, question=question)
            execution_id = done.execution_id
        self.counts["executions"] += 1
        self._rate(report, execution_id, author, random, is_wrong=is_wrong)

    def _written(self, question: str, author: str) -> str:
        if author not in self.chats:
            self.chats[author] = self.memory.chat_sessions.create(name=f"Figures for {author}").id
        self.clerk.name = LARGE
        answer = self.memory.chat.chat_to_answer(self.chats[author], question, connector_id=CONNECTOR)
        assert answer.execution_result is not None
        return answer.execution_result.execution_id

    def _rate(self, report: DataQuestion, execution_id: str, author: str, random: Random, *, is_wrong: bool) -> None:
        rates, writes = random.random() < 0.6, random.random() < 0.6
        praise = random.choice(shop.PRAISE)
        if is_wrong:
            self.memory.feedback.create_negative(execution_id=execution_id, feedback=report.why, author=author)
        elif rates:
            text = praise if writes else None
            self.memory.feedback.create_positive(execution_id=execution_id, feedback_text=text, author=author)
            self.liked = self.liked or execution_id
        self.counts["execution ratings"] += int(is_wrong or rates)
