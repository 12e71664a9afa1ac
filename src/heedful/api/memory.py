"""The calls of `Heedful` itself: facts, recalls, signals, and the store as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from heedful import model as m
from heedful.api import checks
from heedful.api import parameters as t
from heedful.api.calls import Namespace, call


class Memory(Namespace, name=""):
    """One project of one store. Threads may share it; close it when done, or use it in a `with`."""

    @call("POST", "/facts", "write", repeatable=True, slow=True)
    def remember(
        self,
        texts: t.Texts,
        *,
        dataset: t.DatasetName = m.DEFAULT_DATASET,
        metadata: t.FactMetadata | None = None,
        source: t.FactSource | None = None,
        expires_at: t.ExpiresAt | None = None,
        self_improvement: Annotated[bool, t.Means("Run `improve` afterwards, in the background.")] = False,
        progress: Annotated[t.Progress | None, t.Means("Called with (done, total) during long work.")] = None,
    ) -> m.RememberResult:
        """Stores facts: a text, many texts, or files and folders given as `Path`; a `Document` is one that was
        read elsewhere.

        Long texts are split. A text with the same source and metadata as one that is there is not stored twice. A
        file replaces what it said when it was remembered before. Files that can't be read are in `errors`.
        From `expires_at` on, a time with a zone, they are not recalled. A fact that is there already takes this end, or
        has none any more. With `self_improvement`, `improve` runs in the background afterwards.

        `conflicts` are existing facts about the same thing with another number, date or name. Nothing is done about
        them: they are in the review queue, and `supersede` replaces one of the two.
        """

    @call("POST", "/recall", repeatable=True, slow=True, writes_with="session_id")
    def recall(
        self,
        query: t.Query,
        *,
        dataset: t.DatasetName = m.DEFAULT_DATASET,
        top_k: t.TopK = 10,
        mode: t.SearchMode = "hybrid",
        where: t.Where | None = None,
        boost_by_usefulness: t.Boost | None = None,
        usefulness_weight: t.UsefulnessWeight = m.DEFAULT_WEIGHT,
        feedback_influence: t.FeedbackInfluence | None = None,
        min_usefulness: t.MinUsefulness = 0.0,
        policy: t.Policy | None = None,
        exploration: t.Exploration = 0.0,
        seed: Annotated[int | None, t.Means("The seed for `exploration`.")] = None,
        explain: Annotated[bool, t.Means("Add an `explanation` to every hit.")] = False,
        session_id: Annotated[t.SessionId | None, t.Means("Answer, and store the exchange in this session.")] = None,
        answer: Annotated[bool, t.Means("Also answer the question.")] = False,
        on_token: Annotated[t.OnToken | None, t.Means("Called with each part of the answer as it arrives.")] = None,
        external_id: t.ExternalId | None = None,
        cursor: t.RecallCursor | None = None,
    ) -> m.Recall:
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

        Its `next_cursor`, as `cursor` of the same recall, gets the next `top_k` facts: each page is a separate recall,
        with its own receipt and ranks, and shows nothing that a page before it showed.
        """

    @call("POST", "/improve", "write", repeatable=True, slow=True)
    def improve(self, dataset: t.OnlyDataset | None = None, session_ids: t.SessionIds | None = None) -> m.Improvement:
        """Turns the feedback of sessions (of all, if none are named) into better recall of a dataset, or of all.

        Feedback is processed a few seconds after it was given, unless `auto_improve` is off: call this to wait for it.

        Ratings become signals about the facts that an answer used. Well-rated answers, and comments that correct a
        fact, become facts. With a language model, it also reads facts for what they mention, some in each call.
        Running it again changes nothing; changing or deleting a rating undoes what it did.
        """

    @call("POST", "/signals", "feedback", batch=True)
    def signal(
        self,
        signals: t.Signals,
        *,
        dataset: Annotated[
            t.DatasetName | None, t.Means("Only facts of this dataset are taken; others are listed in `errors`.")
        ] = None,
        idempotency_key: t.IdempotencyKey | None = None,
    ) -> m.SignalResult:
        """Says how useful facts were for a query.

        Facts that are not there, or not in the `dataset` if one is given, are listed in `errors` with their index, and
        the others are applied; if there are no others, the call raises NotFound. A call that is sent again with its
        `idempotency_key` counts once and returns the first result. So does each signal with its `external_id`, which
        `retract` takes, too.
        """

    @call("POST", "/recalls/{recall_id}/signals", "feedback")
    def signal_recall(
        self,
        recall_id: t.JudgedRecall,
        *,
        used: Annotated[t.JudgedFacts, t.Means("Facts that the answer is based on.")] = (),
        helpful: Annotated[t.JudgedFacts, t.Means("Facts that a person rated as helpful.")] = (),
        not_helpful: Annotated[t.JudgedFacts, t.Means("Facts that a person rated as not helpful.")] = (),
        answer: Annotated[
            t.Answer | None,
            t.Means("The agent's answer, from which Heedful detects which of the other facts were used."),
        ] = None,
        confidence: t.Confidence = 1.0,
        author: t.Author | None = None,
        idempotency_key: t.IdempotencyKey | None = None,
    ) -> m.SignalResult:
        """Says how useful the facts of one recall were; those shown and never named are `ignored`.

        If only facts that were `not_helpful` are named, nothing is said of the others. With the `answer` that was made
        from them, those not named are what `detect` says of them, or nothing.
        Facts are named by id, by rank (a whole number), or by their hits. It may come days later. Saying the same of a
        fact again counts once, and a fact that is named later is no longer `ignored`.

        Named facts that the recall did not show are listed in `errors` with their index in `used`, `helpful` and
        `not_helpful`, one after another, and nothing is said of facts that were not named. If no named fact was shown,
        the call raises NotFound.
        """

    @call("POST", "/recalls/{recall_id}/detect", repeatable=True)
    def detect(self, answer: t.Answer, recall_id: t.RecallId) -> list[m.Detection]:
        """Which of the facts that a recall showed did an answer use? Works without a language model.

        Each fact is `used` or `ignored` with a confidence and reasons, or None where it is unclear.
        """

    @call("POST", "/events/{event_id}/retract", "feedback", repeatable=True, undoes="event_id")
    def retract(
        self, event_id: t.EventId, *, author: Annotated[t.Author | None, t.Means("Who retracts it.")] = None
    ) -> m.Retraction:
        """Undoes a signal, a feedback, a supersession or what a reviewer did: everything becomes as if it had never
        been."""

    @call("POST", "/facts/{fact_id}/supersede", "write")
    def supersede(
        self,
        fact_id: t.FactId,
        text: t.Text | None = None,
        *,
        by: t.OtherFactId | None = None,
        author: Annotated[t.Author | None, t.Means("Who corrects it.")] = None,
    ) -> m.Supersession:
        """Corrects a fact: from now on `text`, or the fact `by`, is recalled in its place.

        The old fact stays in history; `retract` of the event brings it back.
        """

    @call("GET", "/policy")
    def policy(
        self,
        *,
        dataset: Annotated[t.DatasetName | None, t.Means("That of this dataset; if left out, of the project.")] = None,
    ) -> m.PolicyInUse:
        """Returns the policy that recalls follow, and why: the choice for the dataset, else for the project, else the
        default.

        Without any choice, recalls use `adaptive`, and those with `boost_by_usefulness` or a weight `documented`.
        """

    @call("PUT", "/policy", "write", repeatable=True)
    def set_policy(
        self,
        policy: Annotated[m.PolicyName, t.Means("`documented` or `adaptive`; None resets it.")] | None,
        *,
        dataset: Annotated[
            t.DatasetName | None, t.Means("Only for this dataset; if left out, for the whole project.")
        ] = None,
    ) -> m.PolicyChange:
        """Chooses the rule for recalls of a dataset, or of the whole project; None takes the choice back.

        `retract` of the event brings the earlier choice back.
        """

    @call("POST", "/forget", "write", restricted=("author",))
    def forget(
        self,
        fact_ids: Annotated[str | Sequence[str] | None, t.Means("One fact or several.", t.ID_LIMITS)] = None,
        *,
        source: Annotated[str | None, t.Means("All facts of this source.", t.ID_LIMITS)] = None,
        dataset: Annotated[
            t.DatasetName | None, t.Means("The dataset of `source`; without `source`, the dataset to remove entirely.")
        ] = None,
        author: Annotated[
            str | None, t.Means("Instead of facts: the exact name of the person to erase.", t.NAME_LIMITS)
        ] = None,
    ) -> m.ForgetResult:
        """Removes facts, or all facts of a source, or a whole dataset, with everything derived from them.

        Facts that they superseded are recalled again: `restored` names them. An unknown id raises NotFound, and
        nothing is forgotten.

        Or erases the `author` of exactly this name from the project: a pseudonym takes the place of the name, their
        words go, and every score stays what it is. Doing it again changes nothing.
        """

    @call("GET", "/recalls/{recall_id}")
    def receipt(self, recall_id: t.RecallId) -> m.Receipt:
        """Returns the facts that one recall showed, with ranks and scores."""

    @call("GET", "/facts/{fact_id}/stats")
    def fact_stats(self, fact_id: t.FactId) -> m.FactStats:
        """The usefulness of one fact: over all, by context, and the signals behind it."""

    @call("GET", "/facts/{fact_id}/history")
    def fact_history(self, fact_id: t.FactId) -> m.FactHistory:
        """How the score of one fact came to be, signal by signal, and what it superseded or was superseded by.

        It lists the newest 1,000 signals; `event_count` says how many there are."""

    @call("GET", "/stats/usefulness")
    def usefulness_stats(self, dataset: t.DatasetName = m.DEFAULT_DATASET) -> m.UsefulnessStats:
        """How useful the facts of a dataset are: totals, the distribution, the most and least useful, and those that
        help in one context and hurt in another."""

    @call("POST", "/replay", repeatable=True, slow=True)
    def replay(
        self,
        *,
        dataset: t.DatasetName = m.DEFAULT_DATASET,
        policies: t.Policies | None = None,
        weights: t.Weights | None = None,
        since: Annotated[t.Moment | None, t.Means("Only recalls from this time on.")] = None,
        seed: Annotated[int, t.Means("The seed for the confidence intervals.", {"minimum": 0})] = 0,
    ) -> m.ReplayReport:
        """Tries other policies and weights on the recalls that people rated.

        The facts that each recall showed are ordered again by the opinions recorded before it, and judged by its own
        `helpful` and `not_helpful` ratings. Both policies and the weights 0.1 to 0.9 are tried if none are given.
        Nothing is changed.
        """

    @call("POST", "/regress", "write", repeatable=True, slow=True, queries=True, restricted=("embedding", "as_of"))
    def regress(
        self,
        *,
        dataset: t.OnlyDataset | None = None,
        since: Annotated[t.Moment | None, t.Means("Only what was rated from this time on.")] = None,
        policy: Annotated[m.PolicyName | None, t.Means("The policy to try: `documented` or `adaptive`.")] = None,
        usefulness_weight: Annotated[
            float | None,
            t.Means(
                "The fixed share of usefulness in the score to try, from 0 to 1.", t.FRACTION_LIMITS, checks.fraction
            ),
        ] = None,
        mode: Annotated[m.Mode | None, t.Means("The mode to try: `hybrid`, `semantic`, `lexical` or `graph`.")] = None,
        embedding: t.CandidateEmbedding | None = None,
        as_of: Annotated[
            t.Moment | None, t.Means("Compare with the store as its facts and its ledger were at this time.")
        ] = None,
        against: t.OtherStore | None = None,
        answers: Annotated[
            bool, t.Means("Also write answers again, by the language model if there is one, and compare their words.")
        ] = False,
        executions: Annotated[bool, t.Means("Also run proven SQL again, and compare its rows.")] = True,
        own_votes: Annotated[bool, t.Means("Let the ratings of a question count when it is asked.")] = False,
        sample: t.SampleSize = t.SAMPLE,
        top_k: t.Depth = 10,
        deadline: t.Seconds | None = None,
        seed: t.Draw = 0,
        progress: Annotated[t.Progress | None, t.Means("Called with (done, total) during long work.")] = None,
    ) -> m.RegressReport:
        """Asks what people rated well again, of the store with a change, and says what would get worse.

        A rated question is one with facts that were called helpful, or an answer with 4, 5 or up; with SQL that was
        rated as right, it is run again. Ratings of visitors don't count, nor those that were retracted. Every change
        that is given is tried, all at once. Without any, answers and rows are compared with those that were rated.

        A question is asked as if nobody had rated it or another phrasing of it: its own ratings would put the facts
        that helped first, whatever is changed. `own_votes` lets them count, as they do for those who ask it.

        Facts that were superseded, forgotten or have expired are listed apart. Nothing is stored, not even receipts.
        With `embedding` or `as_of`, the facts are copied to a temporary file for as long as it takes.
        """

    @call("GET", "/facts/{fact_id}")
    def fact(self, fact_id: t.FactId) -> m.Fact:
        """One fact: its text, its metadata, and its position."""

    @call("GET", "/facts")
    def facts(
        self,
        *,
        dataset: t.DatasetName = m.DEFAULT_DATASET,
        source: Annotated[str | None, t.Means("Only facts of this source.", t.ID_LIMITS)] = None,
        where: t.Where | None = None,
        cursor: t.Cursor | None = None,
        limit: t.Limit = t.PAGE,
        newest_first: t.NewestFirst = False,
    ) -> m.Page[m.Fact]:
        """The facts of a dataset, or of one source, in the order in which they were stored; `where` filters by
        metadata, as in `recall`."""

    @call("PUT", "/datasets/{dataset}", "write", repeatable=True)
    def create_dataset(
        self,
        dataset: t.DatasetName,
        *,
        metadata: Annotated[m.Metadata | None, t.Means("Metadata of the dataset, merged into what is stored.")] = None,
    ) -> m.Dataset:
        """Makes a dataset before it has facts. One that is there stays as it is, with `metadata` merged into it."""

    @call("GET", "/datasets/{dataset}")
    def get_dataset(self, dataset: t.DatasetName) -> m.Dataset:
        """One dataset: its metadata, and how many facts it has."""

    @call("GET", "/datasets")
    def datasets(self) -> list[str]:
        """The names of the project's datasets that have facts or were made with `create_dataset`, oldest first."""

    @call("GET", "/stats/facts", slow=True)
    def check_facts(
        self,
        *,
        dataset: t.DatasetName = m.DEFAULT_DATASET,
        limit: Annotated[t.Limit, t.Means("How many facts of each kind to list, up to 1,000.")] = 20,
    ) -> m.FactReport:
        """Looks for duplicates, near-duplicates, and facts that were never recalled, always ignored or have expired;
        says what to do about each. Nothing is changed."""

    @call("POST", "/doctor", "admin", repeatable=True, slow=True)
    def doctor(
        self, *, repair: Annotated[bool, t.Means("Rebuild derived data that is wrong.")] = True
    ) -> list[m.Check]:
        """Checks the store, the model, the scores, the indexes and the sessions; repairs what can be rebuilt."""

    @call("GET", "/audit", "admin")
    def audit(
        self,
        *,
        kind: t.AuditedKind | None = None,
        since: Annotated[t.Moment | None, t.Means("Only entries from this time on.")] = None,
        cursor: t.Cursor | None = None,
        limit: t.Limit = t.PAGE,
    ) -> m.Page[m.AuditEntry]:
        """Who was refused what in this project, over HTTP, and what admins did, the newest first."""
