"""What `heedful.open()` and `heedful.connect()` return."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from heedful.model import (
    DEFAULT_DATASET,
    AuditEntry,
    AuditKind,
    Check,
    Dataset,
    Detection,
    Document,
    Fact,
    FactHistory,
    FactReport,
    FactStats,
    ForgetResult,
    Hit,
    Improvement,
    Metadata,
    Mode,
    Page,
    PolicyChange,
    PolicyName,
    Recall,
    Receipt,
    RememberResult,
    ReplayReport,
    Retraction,
    Signal,
    SignalResult,
    Supersession,
    UsefulnessStats,
)

Source = str | Path | Document | Sequence[str | Path | Document]
"""What can be remembered: texts, files and folders, and documents that were read elsewhere."""

Facts = str | Hit | Sequence[str | Hit]
"""Facts as a caller names them: by id, or by the hits of a recall."""

Progress = Callable[[int, int], None]
"""Called with how many pieces are done, and how many there are."""

OnToken = Callable[[str], None]
"""Called with each part of an answer as it is written."""


class HeedfulProtocol(Protocol):
    """One project of one store. Threads may share it; close it when done, or use it in a `with`."""

    def remember(
        self,
        texts: Source,
        *,
        dataset: str = DEFAULT_DATASET,
        metadata: Metadata | Sequence[Metadata] | None = None,
        source: str | None = None,
        expires_at: datetime | None = None,
        self_improvement: bool = False,
        progress: Progress | None = None,
    ) -> RememberResult:
        """Stores facts: a text, many texts, or files and folders given as `Path`; a `Document` is one that was
        read elsewhere.

        Long texts are split. A text with the same source and metadata as one that is there is not stored twice. A
        file replaces what it said when it was remembered before. Files that can't be read are in `errors`.
        From `expires_at` on, a time with a zone, they are not recalled. A fact that is there already takes this end, or
        has none any more. With `self_improvement`, `improve` runs in the background afterwards.

        `conflicts` are existing facts about the same thing with another number, date or name. Nothing is done about
        them: they are in the review queue, and `supersede` replaces one of the two.
        """

    def recall(
        self,
        query: str,
        *,
        dataset: str = DEFAULT_DATASET,
        top_k: int = 10,
        mode: Mode = "hybrid",
        where: Metadata | None = None,
        boost_by_usefulness: bool | float | None = None,
        usefulness_weight: float = 0.3,
        feedback_influence: float | None = None,
        min_usefulness: float = 0.0,
        policy: PolicyName | None = None,
        exploration: float = 0.0,
        seed: int | None = None,
        explain: bool = False,
        session_id: str | None = None,
        answer: bool = False,
        on_token: OnToken | None = None,
        external_id: str | None = None,
        cursor: str | None = None,
    ) -> Recall:
        """Finds the facts that answer a query, best first.

        Left out, `boost_by_usefulness` follows the policy of the dataset or project, which is `adaptive` where none was
        set: feedback on similar queries moves a fact as far as its evidence goes, and without any, facts rank by
        relevance. With `True`, or a weight in place of `usefulness_weight`, and where no policy was set, `score =
        (1 - usefulness_weight) × relevance + usefulness_weight × usefulness`. With `False`, relevance alone counts.

        Facts below `min_usefulness` are left out. `policy` chooses the rule of this call. With the chance of
        `exploration`, a fact that nobody has judged gets the last place, drawn with `seed`. `where` filters by
        metadata. `explain` adds the reasons. `feedback_influence` is another name of the weight: above 0, it is that of
        the boost, and 0 turns the boost off.

        With `answer`, the result has one: written by the language model if there is one, else made of the sentences
        that answer; `on_token` gets its parts as they come. With a `session_id` it always has, and question and answer
        are kept as an entry of that session under its `qa_id`.

        With an `external_id`, one of your own such as that of a run or a trace, feedback may name that in place of the
        `recall_id`, and of the `qa_id`. The same recall with it again returns what the first one showed.

        Its `next_cursor`, as `cursor` of the same recall, gets the next `top_k` facts: a page is a recall of its own,
        with its own receipt and ranks, and shows nothing that a page before it showed.
        """

    def improve(self, dataset: str | None = None, session_ids: Sequence[str] | None = None) -> Improvement:
        """Turns the feedback of sessions (of all, if none are named) into better recall of a dataset, or of all.

        Feedback is processed a few seconds after it was given, unless `auto_improve` is off: call this to wait for it.

        Ratings become signals about the facts that an answer used. Well-rated answers, and comments that correct a
        fact, become facts. With a language model, it also reads facts for what they mention, some in each call.
        Running it again changes nothing; changing or deleting a rating undoes what it did.
        """

    def signal(
        self,
        signals: Signal | Iterable[Signal | Mapping[str, Any]],
        *,
        dataset: str | None = None,
        idempotency_key: str | None = None,
    ) -> SignalResult:
        """Says how useful facts were for a query.

        Facts that are not there, or not in the `dataset` if one is given, are listed in `errors` with their index, and
        the others are applied; if there are no others, the call raises NotFound. A call that is sent again with its
        `idempotency_key` counts once and returns the first result. So does each signal with its `external_id`, which
        `retract` takes, too.
        """

    def signal_recall(
        self,
        recall_id: str,
        *,
        used: Facts = (),
        helpful: Facts = (),
        not_helpful: Facts = (),
        answer: str | None = None,
        confidence: float = 1.0,
        author: str | None = None,
        idempotency_key: str | None = None,
    ) -> SignalResult:
        """Says how useful the facts of one recall were; those shown and never named are `ignored`.

        With the `answer` that was made from them, those not named are what `detect` says of them, or nothing.
        Facts are named by id, or by their hits. It may come days later. Saying the same of a fact again counts once,
        and a fact that is named later is no longer `ignored`.

        Named facts that the recall did not show are listed in `errors` with their index in `used`, `helpful` and
        `not_helpful`, one after another, and nothing is said of facts that were not named. If no named fact was shown,
        the call raises NotFound.
        """

    def detect(self, answer: str, recall_id: str) -> list[Detection]:
        """Which of the facts that a recall showed did an answer use? Works without a language model.

        Each fact is `used` or `ignored` with a confidence and reasons, or None where it is unclear.
        """

    def retract(self, event_id: str, *, author: str | None = None) -> Retraction:
        """Undoes a signal, a feedback, a supersession or what a reviewer did: everything becomes as if it had never
        been."""

    def supersede(
        self, fact_id: str, text: str | None = None, *, by: str | None = None, author: str | None = None
    ) -> Supersession:
        """Corrects a fact: from now on `text`, or the fact `by`, is recalled in its place.

        The old fact stays in history; `retract` of the event brings it back.
        """

    def set_policy(self, policy: PolicyName | None, *, dataset: str | None = None) -> PolicyChange:
        """Chooses the rule for recalls of a dataset, or of the whole project; None takes the choice back.

        `retract` of the event brings the earlier choice back.
        """

    def forget(
        self,
        fact_ids: str | Sequence[str] | None = None,
        *,
        source: str | None = None,
        dataset: str | None = None,
        author: str | None = None,
    ) -> ForgetResult:
        """Removes facts, or all facts of a source, or a whole dataset, with everything derived from them.

        Facts that they superseded are recalled again: `restored` names them. An unknown id raises NotFound, and
        nothing is forgotten.

        Or erases the `author` of exactly this name from the project: a pseudonym takes the place of the name, their
        words go, and every score stays what it is. Doing it again changes nothing.
        """

    def receipt(self, recall_id: str) -> Receipt:
        """What one recall showed: facts, ranks and scores."""

    def fact_stats(self, fact_id: str) -> FactStats:
        """The usefulness of one fact: over all, by context, and the signals behind it."""

    def fact_history(self, fact_id: str) -> FactHistory:
        """How the score of one fact came to be, signal by signal, and what it superseded or was superseded by.

        It lists the newest 1,000 signals; `event_count` says how many there are."""

    def usefulness_stats(self, dataset: str = DEFAULT_DATASET) -> UsefulnessStats:
        """The usefulness of a dataset: totals, distribution, and the facts at both ends."""

    def replay(
        self,
        *,
        dataset: str = DEFAULT_DATASET,
        policies: Sequence[PolicyName] | None = None,
        weights: Sequence[float] | None = None,
        since: datetime | None = None,
        seed: int = 0,
    ) -> ReplayReport:
        """What other policies and weights would have made of the recalls that people rated.

        The facts that each recall showed are ordered again by the opinions recorded before it, and judged by its own
        `helpful` and `not_helpful` ratings. Both policies and the weights 0.1 to 0.9 are tried if none are given.
        Nothing is changed.
        """

    def fact(self, fact_id: str) -> Fact:
        """One fact: its text, its metadata, and its position."""

    def facts(
        self,
        *,
        dataset: str = DEFAULT_DATASET,
        source: str | None = None,
        where: Metadata | None = None,
        cursor: str | None = None,
        limit: int = 100,
        newest_first: bool = False,
    ) -> Page[Fact]:
        """The facts of a dataset, or of one source, in the order in which they were stored; `where` filters by
        metadata, as in `recall`."""

    def create_dataset(self, dataset: str, *, metadata: Metadata | None = None) -> Dataset:
        """Makes a dataset before it has facts. One that is there stays as it is, with `metadata` merged into it."""

    def get_dataset(self, dataset: str) -> Dataset:
        """One dataset: its metadata, and how many facts it has."""

    def datasets(self) -> list[str]:
        """The names of the project's datasets that have facts or were made with `create_dataset`, oldest first."""

    def check_facts(self, *, dataset: str = DEFAULT_DATASET, limit: int = 20) -> FactReport:
        """Looks for duplicates, near-duplicates, and facts that were never recalled, always ignored or have expired;
        says what to do about each. Nothing is changed."""

    def doctor(self, *, repair: bool = True) -> list[Check]:
        """Checks the store, the model, the scores, the indexes and the sessions; repairs what can be rebuilt."""

    def audit(
        self,
        *,
        kind: AuditKind | None = None,
        since: datetime | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page[AuditEntry]:
        """Who was refused what in this project, over HTTP, and what admins did, the newest first."""

    def close(self) -> None:
        """Finishes what runs, and closes the store or the connection to the server."""
