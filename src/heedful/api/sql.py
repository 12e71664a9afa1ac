"""`.connectors`, `.executions`, `.feedback`, `.chat`, `.chat_sessions` and `.golden_examples`: SQL and its reuse."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from heedful import model as m
from heedful.api import checks
from heedful.api import parameters as t
from heedful.api.calls import Namespace, call

# Inside the classes, `list` is a method.
ConnectorList = list[m.Connector]
Questions = list[m.ChatQuestion]
Examples = list[m.GoldenExample]


class Connectors(Namespace, name="connectors"):
    """The connectors of one project, by id or by name."""

    @call("POST", "/connectors", "admin", slow=True, queries=True)
    def create(
        self,
        name: t.Name,
        url: t.Url,
        *,
        role: Annotated[t.Name | None, t.Means("PostgreSQL: the role to run as.")] = None,
        privileged: t.Privileged = False,
        sensitive_columns: t.SensitiveColumns = (),
    ) -> m.Connector:
        """Adds a database by its SQLAlchemy URL and reads its schema; nothing is kept if that fails.

        Secrets in the URL are references such as `${DB_PASSWORD}`, or are encrypted with HEEDFUL_SECRET_KEY. `role` is
        the role that PostgreSQL runs queries as. Its login is refused if it may do more than read; `privileged` accepts
        it. On a server, where it may lead, which variables it may refer to and what is privileged is for the operator
        to say. Values of `sensitive_columns`, each as `table.column`, are not read to recognise them in questions.
        """

    @call("GET", "/connectors/{connector_id}")
    def get(self, connector_id: t.ConnectorId) -> m.Connector:
        """One connector."""

    @call("GET", "/connectors")
    def list(self) -> ConnectorList:
        """All of them, in the order they were added."""

    @call("POST", "/connectors/{connector_id}/refresh", "admin", repeatable=True, slow=True, queries=True)
    def refresh(
        self, connector_id: t.ConnectorId, *, sensitive_columns: t.SensitiveColumns | None = None
    ) -> m.Connector:
        """Reads the schema again; what was proven for another schema is no longer used. `sensitive_columns` replaces
        the list of columns whose values are not read to recognise them in questions; empty, it allows all."""

    @call("POST", "/connectors/{connector_id}/confirm", "admin", repeatable=True, slow=True, queries=True)
    def confirm(self, connector_id: t.ConnectorId, *, privileged: t.Privileged = False) -> m.Connector:
        """Switches on a connector that was imported, after a look at its URL; the same rules hold as for `create`."""

    @call("GET", "/connectors/{connector_id}/schema")
    def schema(self, connector_id: t.ConnectorId) -> m.Metadata:
        """Tables and columns, as they were read last."""

    @call("DELETE", "/connectors/{connector_id}", "admin")
    def delete(self, connector_id: t.ConnectorId) -> bool:
        """Removes a connector with its executions and golden examples."""


class Executions(Namespace, name="executions"):
    """The executions of one project."""

    @call("POST", "/executions", "write", slow=True, queries=True)
    def execute_query(
        self,
        sql_query: t.SqlQuery,
        *,
        connector_id: t.SomeConnector | None = None,
        question: Annotated[
            t.Question | None, t.Means("The question it answers, so that the cache can find it.")
        ] = None,
        parameters: t.Parameters | None = None,
        chat_message_id: t.ChatMessageId | None = None,
        external_id: t.ExternalId | None = None,
        audience: t.Audience | None = None,
    ) -> m.Execution:
        """Runs one statement that only reads, and keeps it with its result.

        With the `question` that it answers, it can be found by the cache. `parameters` fill `:name` places.

        `external_id` is an id of your own, such as that of a run or a span, which no other execution of the project
        has. Feedback may name it in place of the `execution_id`. The same query with it again runs once.

        `audience` is whom it may be reused for, such as a user or a tenant; without one, that of the chat session, or
        everybody.
        """

    @call("POST", "/chat-messages/{chat_message_id}/execute", "write", slow=True, queries=True)
    def execute_from_chat(
        self, chat_message_id: t.ChatMessageId, *, connector_id: t.SomeConnector | None = None
    ) -> m.Execution:
        """Runs the SQL that a message of a chat has, for the audience of its chat session."""

    @call("GET", "/executions/{execution_id}")
    def get(self, execution_id: t.ExecutionId) -> m.Execution:
        """One execution with its result."""

    @call("GET", "/executions")
    def list(
        self, *, connector_id: t.OnlyConnector | None = None, cursor: t.Cursor | None = None, limit: t.Limit = t.PAGE
    ) -> m.Page[m.Execution]:
        """Executions, the newest first."""

    @call("DELETE", "/executions/{execution_id}", "write")
    def delete(self, execution_id: t.ExecutionId) -> bool:
        """Removes an execution with its result; SQL that was wrong stays blocked. An unknown one is `NotFound`."""


class FeedbackService(Namespace, name="feedback"):
    """Opinions about executions and messages. Each is an event of the ledger; `retract` undoes it too."""

    @call("POST", "/feedback", "feedback")
    def create(
        self,
        *,
        is_positive: t.IsPositive,
        feedback: t.Reason | None = None,
        execution_id: t.ExecutionId | None = None,
        chat_message_id: t.ChatMessageId | None = None,
        author: t.Author | None = None,
        idempotency_key: t.IdempotencyKey | None = None,
    ) -> m.ExecutionFeedback:
        """Says whether an execution, or the message of a chat, was right.

        Positive feedback lets an execution be used again; negative feedback keeps it, and all SQL like it, from that
        until it is retracted. An author has one opinion of a thing, the latest.
        """

    @call("POST", "/feedback/positive", "feedback")
    def create_positive(
        self,
        *,
        feedback_text: Annotated[t.Reason | None, t.Means("Why it was right.")] = None,
        execution_id: t.ExecutionId | None = None,
        chat_message_id: t.ChatMessageId | None = None,
        author: t.Author | None = None,
    ) -> m.ExecutionFeedback:
        """Says that an execution was right."""

    @call("POST", "/feedback/negative", "feedback")
    def create_negative(
        self,
        *,
        feedback: Annotated[t.Reason | None, t.Means("Why it was wrong.")] = None,
        execution_id: t.ExecutionId | None = None,
        chat_message_id: t.ChatMessageId | None = None,
        author: t.Author | None = None,
    ) -> m.ExecutionFeedback:
        """Says that an execution was wrong, and why."""

    @call("GET", "/feedback/{feedback_id}")
    def get(self, feedback_id: t.FeedbackId) -> m.ExecutionFeedback:
        """One feedback."""

    @call("GET", "/feedback")
    def list(
        self,
        *,
        skip: t.Skip = 0,
        limit: t.ListLimit = t.PAGE,
        search: Annotated[
            str | None, t.Means("Only those whose text contains this, ignoring case.", t.ID_LIMITS)
        ] = None,
    ) -> m.FeedbackList:
        """Feedbacks, the newest first; `search` finds those whose text has it, in any case."""

    @call("GET", "/feedback/positive")
    def list_positive(self, *, skip: t.Skip = 0, limit: t.ListLimit = t.PAGE) -> m.FeedbackList:
        """Those that say something was right."""

    @call("GET", "/feedback/negative")
    def list_negative(self, *, skip: t.Skip = 0, limit: t.ListLimit = t.PAGE) -> m.FeedbackList:
        """Those that say something was wrong."""

    @call("GET", "/chat-messages/{chat_message_id}/feedback")
    def get_feedback_for_message(
        self, chat_message_id: t.ChatMessageId, *, skip: t.Skip = 0, limit: t.ListLimit = t.PAGE
    ) -> m.FeedbackList:
        """Lists the feedback about one message."""

    @call("PATCH", "/feedback/{feedback_id}", "feedback")
    def update(
        self,
        feedback_id: t.FeedbackId,
        *,
        feedback: Annotated[t.Reason | None, t.Means("The new comment; None removes it.")] = t.UNCHANGED,
        is_positive: t.IsPositive = t.UNCHANGED,
        if_match: t.IfMatch | None = None,
    ) -> m.ExecutionFeedback:
        """Changes what is given and leaves the rest; `feedback=None` clears the text.

        With `if_match`, the `etag` of what you have seen, only if nobody changed it since.
        """

    @call("DELETE", "/feedback/{feedback_id}", "feedback")
    def delete(self, feedback_id: t.FeedbackId) -> bool:
        """Deletes a feedback with its text; an unknown one is `NotFound`."""

    @call("POST", "/feedback/bulk-delete", "feedback", batch=True)
    def bulk_delete(self, feedback_ids: t.FeedbackIds) -> m.BulkDeletion:
        """Deletes many feedbacks; those that are not there are in `failed_ids`."""


class Chat(Namespace, name="chat"):
    """Questions to SQL and to answers, and the cache of what ran before."""

    @call("POST", "/chat-sessions/{chat_session_id}/chat-to-sql", "write", slow=True, queries=True)
    def chat_to_sql(
        self,
        chat_session_id: t.ChatSessionId,
        query: t.Query,
        *,
        connector_id: t.SomeConnector | None = None,
        feedback_cutoff: t.FeedbackCutoff = 0.5,
        remarks: t.Remarks = (),
        author: t.SqlAuthor | None = None,
    ) -> m.ChatSql:
        """The SQL for a question: proven if it can be, else written by the language model.

        What is proven for the audience of the chat session comes first, then what is proven for everybody. SQL without
        an audience that is about one person ("my orders", or a value that the question doesn't name) is used in the
        chat session where it ran, or else for the `author` who proved it.

        The model reads the facts of the datasets `contexts` and `schema_metadata` that are nearest to the question, and
        `remarks` before them.

        `feedback_cutoff` in [0, 1] says how reliable a rated execution must be to be an example for the model: the
        share of positive opinions, with one of each kind added. Higher is stricter.
        """

    @call("POST", "/chat-sessions/{chat_session_id}/chat-to-answer", "write", slow=True, queries=True)
    def chat_to_answer(
        self,
        chat_session_id: t.ChatSessionId,
        query: t.Query,
        *,
        connector_id: t.SomeConnector | None = None,
        feedback_cutoff: t.FeedbackCutoff = 0.5,
        remarks: t.Remarks = (),
        author: t.SqlAuthor | None = None,
    ) -> m.ChatAnswer:
        """The SQL for a question, run now, and what it gave in words.

        If nothing proven answers it and it has exactly one likely reading, that is its `suggestion`; without a language
        model, it is all there is, and nothing runs before `confirm_suggestion`.
        """

    @call("POST", "/execution-cache-lookup", "write", repeatable=True, slow=True, queries=True)
    def execution_cache_lookup(
        self,
        user_query: t.UserQuery,
        *,
        connector_id: t.SomeConnector | None = None,
        max_age_days: t.MaxAgeDays = 30,
        similarity_threshold: Annotated[
            float,
            t.Means(
                "The similarity, from 0 to 1, above which a stored question is considered.",
                t.FRACTION_LIMITS,
                checks.fraction,
            ),
        ] = 0.65,
        limit: t.LookupLimit = 50,
        top_n: t.TopN = 5,
        only_positive_feedback: Annotated[
            bool, t.Means("Only executions that were rated as right, and by nobody as wrong.", check=checks.flag)
        ] = False,
        reuse: t.ReuseKind = "sql",
        audience: Annotated[
            t.Audience | None, t.Means("Who asks. What is proven for other audiences is not considered.")
        ] = None,
        author: t.SqlAuthor | None = None,
    ) -> m.CacheLookup:
        """Looks for executions that answer a question, and says of each whether it may be used, and why.

        Similarity finds candidates; it never decides. The first match that may be used is run now; with
        `reuse="result"`, its stored result is taken instead, as old as it is.

        With an `audience`, what is proven for it comes first, then what is proven for everybody; what is proven for
        another audience does not exist. SQL without an audience that is about one person ("my orders", or a value that
        the question doesn't name) is used for the `author` who proved it.
        """

    @call("POST", "/confirm-suggestion", "write", slow=True, queries=True)
    def confirm_suggestion(
        self,
        user_query: t.UserQuery,
        execution_id: Annotated[t.ExecutionId, t.Means("The suggested execution.")],
        *,
        connector_id: t.SomeConnector | None = None,
        author: Annotated[t.Author | None, t.Means("Who confirms it.")] = None,
        audience: t.Audience | None = None,
    ) -> m.Execution:
        """Says that what was suggested for a question is what it means, and runs it.

        `execution_id` is that of the suggestion. The run is rated as right by the author, so it is proven for the
        question from then on; retract the feedback to undo it. Where that isn't suggested any more, it is a `Conflict`.
        """

    @call("GET", "/execution-cache-coverage", slow=True)
    def execution_cache_coverage(
        self,
        *,
        connector_id: t.SomeConnector | None = None,
        max_age_days: t.MaxAgeDays = 30,
        limit: Annotated[t.LookupLimit, t.Means("How many of each to list.")] = 10,
    ) -> m.CacheCoverage:
        """Which kinds of question are proven on a connector, which were asked and are refused, by gate, and which
        question to prove next: the one whose proof would answer most of what is refused.

        `limit` is how many of each are listed.
        """


class ChatSessions(Namespace, name="chat_sessions"):
    """The chat sessions of one project."""

    @call("POST", "/chat-sessions", "write")
    def create(self, *, name: t.Name | None = None, audience: t.Audience | None = None) -> m.ChatSession:
        """Begins a conversation; what runs in it is for its `audience`, and uses nothing that is for another."""

    @call("GET", "/chat-sessions/{chat_session_id}")
    def get(self, chat_session_id: t.ChatSessionId) -> m.ChatSession:
        """One chat session."""

    @call("GET", "/chat-sessions")
    def list(self, *, cursor: t.Cursor | None = None, limit: t.Limit = t.PAGE) -> m.Page[m.ChatSession]:
        """Chat sessions, the newest first."""

    @call("DELETE", "/chat-sessions/{chat_session_id}", "write")
    def delete(self, chat_session_id: t.ChatSessionId) -> bool:
        """Removes a conversation with its messages; executions stay, as they belong to their connector."""

    @call("GET", "/chat-sessions/{chat_session_id}/questions")
    def get_questions(self, chat_session_id: t.ChatSessionId) -> Questions:
        """Lists the questions of a chat, oldest first, with their SQL."""


class GoldenExamples(Namespace, name="golden_examples"):
    """Question and SQL pairs of one project. A question has one example on a connector for each audience."""

    @call("POST", "/golden-examples", "write", queries=True)
    def create(
        self,
        question: Annotated[t.Question, t.Means("The question that the SQL answers.")],
        sql_query: t.SqlQuery,
        *,
        connector_id: t.SomeConnector | None = None,
        audience: t.Audience | None = None,
    ) -> m.GoldenExample:
        """Adds an example, for everybody or for one `audience`; one for the same question, connector and audience is a
        `Conflict`."""

    @call("POST", "/golden-examples/promote", "write", queries=True)
    def promote(
        self,
        execution_id: t.ExecutionId,
        *,
        question: Annotated[t.Question | None, t.Means("The question, reworded.")] = None,
        audience: Annotated[
            t.Audience | None, t.Means("Whom it is for; the audience of the execution if left out.")
        ] = None,
    ) -> m.GoldenExample:
        """Makes an example of an execution that people say was right, and nobody that it was wrong. It is for the
        audience of the execution, or for the one that is given. A question in the first person whose SQL has a value
        that it doesn't name needs one."""

    @call("GET", "/golden-examples/{example_id}")
    def get(self, example_id: t.ExampleId) -> m.GoldenExample:
        """One example."""

    @call("GET", "/golden-examples")
    def list(
        self, *, connector_id: t.OnlyConnector | None = None, skip: t.Skip = 0, limit: t.ListLimit = t.PAGE
    ) -> Examples:
        """Examples, the newest first."""

    @call("PATCH", "/golden-examples/{example_id}", "write", queries=True)
    def update(
        self,
        example_id: t.ExampleId,
        *,
        question: Annotated[t.Question, t.Means("The new question.")] = t.UNCHANGED,
        sql_query: Annotated[t.SqlQuery, t.Means("The new SQL: one statement that only reads.")] = t.UNCHANGED,
        audience: Annotated[
            t.Audience | None, t.Means("Whom it is for from now on; None for everybody.")
        ] = t.UNCHANGED,
        if_match: t.IfMatch | None = None,
    ) -> m.GoldenExample:
        """Changes what is given and leaves the rest; `audience=None` makes it an example for everybody.

        With `if_match`, the `etag` of what you have seen, only if nobody changed it since.
        """

    @call("DELETE", "/golden-examples/{example_id}", "write")
    def delete(self, example_id: t.ExampleId) -> bool:
        """Removes an example; an unknown one is `NotFound`."""

    @call("LOCAL")
    def import_file(
        self,
        path: Annotated[str | Path, t.Means("A `.csv` or `.jsonl` file with `question` and `sql_query`.")],
        *,
        connector_id: t.SomeConnector | None = None,
    ) -> Examples:
        """Adds examples from a .csv or .jsonl file with `question`, `sql_query` and perhaps `audience`, all or none.

        A question that has an example already gets the new SQL.
        """

    @call("POST", "/golden-examples/import", "write", repeatable=True, slow=True, queries=True)
    def import_examples(self, examples: t.NewExamples, *, connector_id: t.SomeConnector | None = None) -> Examples:
        """Adds examples, mappings with `question`, `sql_query` and perhaps `audience`, all or none.

        A question that has an example already gets the new SQL.
        """
