"""Staff who work through the review queue: they correct what is outdated, and close what is dealt with."""

from __future__ import annotations

from collections import Counter

from heedful.engine import Heedful
from heedful.model import ReviewCase, ReviewItem
from heedful.simulate.people import STAFF
from heedful.simulate.shop import CORRECTIONS, REPLACED
from heedful.simulate.truth import Truth

MANY = 20
"""Items that somebody sees to in one go."""


class Reviewers:
    """Takes the items with the most opinions first."""

    def __init__(self, memory: Heedful, truth: Truth, counts: Counter[str]) -> None:
        self._memory = memory
        self._truth = truth
        self._counts = counts

    def work(self) -> None:
        """One of the staff goes through the queue."""
        author = STAFF[self._counts["reviews"] % len(STAFF)]
        self._counts["reviews"] += 1
        for item in self._memory.review.list(limit=MANY).items:
            self._see_to(item, author)

    def _see_to(self, item: ReviewItem, author: str) -> None:
        review = self._memory.review
        note = self._correct(review.get(item.item_id), author)
        if note is None and item.opinions == 1 and self._counts["dismissals"] < self._counts["resolutions"] / 3:
            review.dismiss(item.item_id, note="One voice; the answer is right.", author=author)
            self._counts["dismissals"] += 1
        else:
            review.resolve(item.item_id, note=note or "Answered by hand.", author=author)
            self._counts["resolutions"] += 1

    def _correct(self, case: ReviewCase, author: str) -> str | None:
        """Corrects the outdated fact behind an answer, if it is one; returns what to note."""
        keys = {fact_id: key for key, fact_id in self._truth.facts.items()}
        for evidence in case.evidence[:2]:
            key = keys.get(evidence.fact_id)
            if key is None or (key not in REPLACED and not self._truth.is_outdated(key)):
                continue
            if self._truth.is_corrected(key):
                return "Corrected since."
            self._counts["supersessions"] += 1
            if key in REPLACED:
                done = self._memory.supersede(evidence.fact_id, by=self._truth.current(REPLACED[key]), author=author)
                self._truth.corrected(key, done.superseded_by)
                return "The answer came from the wrong page."
            fixed = self._memory.review.fix(
                case.item.item_id, "supersede", fact_id=evidence.fact_id, text=CORRECTIONS[key], author=author
            )
            self._truth.corrected(key, fixed.details["superseded_by"])
            return "The rule has changed; the fact is corrected."
        return None
