"""People who ask the shop's database: proven SQL if there is some, new SQL if not, and whether it was right."""

from __future__ import annotations

from collections import Counter
from random import Random

from heedful.engine import Heedful
from heedful.errors import Conflict
from heedful.simulate.people import STAFF, TALKATIVE, Clerk
from heedful.simulate.warehouse import PRAISE, REPORTS, Report

CONNECTOR = "shop"
EXAMPLES = (1, 4, 8)
"""The reports that are golden examples from the start."""


class Analysts:
    """Asks questions about data, now and then."""

    def __init__(self, memory: Heedful, clerk: Clerk, counts: Counter[str]) -> None:
        self._memory = memory
        self._clerk = clerk
        self._counts = counts
        self._chats: dict[str, str] = {}
        self._known_better: set[int] = set()
        self._liked: str | None = None

    def give_examples(self) -> None:
        """Somebody who knows the data says how some things are counted."""
        for place in EXAMPLES:
            report = REPORTS[place]
            self._memory.golden_examples.create(report.questions[0], report.sql, connector_id=CONNECTOR)
            self._counts["golden examples"] += 1

    def promote(self) -> None:
        """Makes an example of what people liked first."""
        if self._liked is None:
            return
        try:
            self._memory.golden_examples.promote(self._liked)
        except Conflict:
            # Somebody else says that it is wrong, or the question has an example.
            return
        self._counts["golden examples"] += 1

    def ask(self, random: Random) -> None:
        """Somebody asks: the cache first, then a language model or their own SQL."""
        place = random.randrange(len(REPORTS))
        report = REPORTS[place]
        question, author = random.choice(report.questions), random.choice(STAFF)
        found = self._memory.chat.execution_cache_lookup(question, connector_id=CONNECTOR)
        self._counts["lookups"] += 1
        is_wrong = False
        if found.cache_hit:
            self._counts["hits"] += 1
            execution_id = str(found.matches[0].execution["execution_id"])
        elif random.random() < 0.5:
            execution_id = self._written(question, author)
        else:
            is_wrong = report.wrong is not None and place not in self._known_better
            self._known_better.add(place)
            sql = report.wrong if is_wrong and report.wrong is not None else report.sql
            done = self._memory.executions.execute_query(sql, connector_id=CONNECTOR, question=question)
            execution_id = done.execution_id
        self._counts["executions"] += 1
        self._rate(report, execution_id, author, random, is_wrong=is_wrong)

    def _written(self, question: str, author: str) -> str:
        if author not in self._chats:
            self._chats[author] = self._memory.chat_sessions.create(name=f"Figures for {author}").id
        self._clerk.name = TALKATIVE
        answer = self._memory.chat.chat_to_answer(self._chats[author], question, connector_id=CONNECTOR)
        assert answer.execution_result is not None
        return answer.execution_result.execution_id

    def _rate(self, report: Report, execution_id: str, author: str, random: Random, *, is_wrong: bool) -> None:
        rates, writes = random.random() < 0.6, random.random() < 0.6
        praise = random.choice(PRAISE)
        if is_wrong:
            self._memory.feedback.create_negative(execution_id=execution_id, feedback=report.why, author=author)
        elif rates:
            text = praise if writes else None
            self._memory.feedback.create_positive(execution_id=execution_id, feedback_text=text, author=author)
            self._liked = self._liked or execution_id
        self._counts["execution ratings"] += int(is_wrong or rates)
