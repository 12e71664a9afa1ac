"""`.connectors`, `.executions`, `.feedback`, `.chat`, `.chat_sessions` and `.golden_examples`: SQL and its reuse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from heedful.model import (
    BulkDeletion,
    CacheCoverage,
    CacheLookup,
    ChatAnswer,
    ChatQuestion,
    ChatSession,
    ChatSql,
    Connector,
    Execution,
    ExecutionFeedback,
    FeedbackList,
    GoldenExample,
    Metadata,
    Page,
    Reuse,
)

PAGE_LIMIT = 100

# Inside the classes, `list` is a method.
ConnectorList = list[Connector]
Questions = list[ChatQuestion]
Examples = list[GoldenExample]


class _Unchanged:
    """The default of a parameter that leaves a value as it is, where None would remove it."""

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Any = _Unchanged()


class ConnectorsProtocol(Protocol):
    """The connectors of one project, by id or by name."""

    def create(
        self,
        name: str,
        url: str,
        *,
        role: str | None = None,
        privileged: bool = False,
        sensitive_columns: Sequence[str] = (),
    ) -> Connector:
        """Adds a database by its SQLAlchemy URL and reads its schema; nothing is kept if that fails.

        Secrets in the URL are references such as `${DB_PASSWORD}`, or are encrypted with HEEDFUL_SECRET_KEY. `role` is
        the role that PostgreSQL runs queries as. Its login is refused if it may do more than read; `privileged` accepts
        it. On a server, where it may lead, which variables it may refer to and what is privileged is for the operator
        to say. Values of `sensitive_columns`, each as `table.column`, are not read to recognise them in questions.
        """

    def get(self, connector_id: str) -> Connector:
        """One connector."""

    def list(self) -> ConnectorList:
        """All of them, in the order they were added."""

    def refresh(self, connector_id: str, *, sensitive_columns: Sequence[str] | None = None) -> Connector:
        """Reads the schema again; what was proven for another schema is no longer used. `sensitive_columns` replaces
        the list of columns whose values are not read to recognise them in questions; empty, it allows all."""

    def confirm(self, connector_id: str, *, privileged: bool = False) -> Connector:
        """Switches on a connector that was imported, after a look at its URL; the same rules hold as for `create`."""

    def schema(self, connector_id: str) -> Metadata:
        """Tables and columns, as they were read last."""

    def delete(self, connector_id: str) -> bool:
        """Removes a connector with its executions and golden examples."""


class ExecutionsProtocol(Protocol):
    """The executions of one project."""

    def execute_query(
        self,
        sql_query: str,
        *,
        connector_id: str | None = None,
        question: str | None = None,
        parameters: dict[str, Any] | None = None,
        chat_message_id: str | None = None,
        external_id: str | None = None,
        audience: str | None = None,
    ) -> Execution:
        """Runs one statement that only reads, and keeps it with its result.

        With the `question` that it answers, it can be found by the cache. `parameters` fill `:name` places.

        `external_id` is an id of your own, such as that of a run or a span, which no other execution of the project
        has. Feedback may name it in place of the `execution_id`. The same query with it again runs once.

        `audience` is whom it may be reused for, such as a user or a tenant; without one, that of the chat session, or
        everybody.
        """

    def execute_from_chat(self, chat_message_id: str, *, connector_id: str | None = None) -> Execution:
        """Runs the SQL that a message of a chat has, for the audience of its chat session."""

    def get(self, execution_id: str) -> Execution:
        """One execution with its result."""

    def list(
        self, *, connector_id: str | None = None, cursor: str | None = None, limit: int = PAGE_LIMIT
    ) -> Page[Execution]:
        """Executions, the newest first."""

    def delete(self, execution_id: str) -> bool:
        """Removes an execution with its result; SQL that was wrong stays blocked. An unknown one is `NotFound`."""


class FeedbackServiceProtocol(Protocol):
    """Opinions about executions and messages. Each is an event of the ledger; `retract` undoes it too."""

    def create(
        self,
        *,
        is_positive: bool,
        feedback: str | None = None,
        execution_id: str | None = None,
        chat_message_id: str | None = None,
        author: str | None = None,
        idempotency_key: str | None = None,
    ) -> ExecutionFeedback:
        """Says whether an execution, or the message of a chat, was right.

        Positive feedback lets an execution be used again; negative feedback keeps it, and all SQL like it, from that
        until it is retracted. An author has one opinion of a thing, the latest.
        """

    def create_positive(
        self,
        *,
        feedback_text: str | None = None,
        execution_id: str | None = None,
        chat_message_id: str | None = None,
        author: str | None = None,
    ) -> ExecutionFeedback:
        """Says that an execution was right."""

    def create_negative(
        self,
        *,
        feedback: str | None = None,
        execution_id: str | None = None,
        chat_message_id: str | None = None,
        author: str | None = None,
    ) -> ExecutionFeedback:
        """Says that an execution was wrong, and why."""

    def get(self, feedback_id: str) -> ExecutionFeedback:
        """One feedback."""

    def list(self, *, skip: int = 0, limit: int = PAGE_LIMIT, search: str | None = None) -> FeedbackList:
        """Feedbacks, the newest first; `search` finds those whose text has it, in any case."""

    def list_positive(self, *, skip: int = 0, limit: int = PAGE_LIMIT) -> FeedbackList:
        """Those that say something was right."""

    def list_negative(self, *, skip: int = 0, limit: int = PAGE_LIMIT) -> FeedbackList:
        """Those that say something was wrong."""

    def get_feedback_for_message(self, chat_message_id: str, *, skip: int = 0, limit: int = PAGE_LIMIT) -> FeedbackList:
        """What is said of one message."""

    def update(
        self,
        feedback_id: str,
        *,
        feedback: str | None = UNCHANGED,
        is_positive: bool = UNCHANGED,
        if_match: str | None = None,
    ) -> ExecutionFeedback:
        """Changes what is given and leaves the rest; `feedback=None` clears the text.

        With `if_match`, the `etag` of what you have seen, only if nobody changed it since.
        """

    def delete(self, feedback_id: str) -> bool:
        """Deletes a feedback with its text; an unknown one is `NotFound`."""

    def bulk_delete(self, feedback_ids: Sequence[str]) -> BulkDeletion:
        """Deletes many feedbacks; those that are not there are in `failed_ids`."""


class ChatProtocol(Protocol):
    """Questions to SQL and to answers, and the cache of what ran before."""

    def chat_to_sql(
        self,
        chat_session_id: str,
        query: str,
        *,
        connector_id: str | None = None,
        feedback_cutoff: float = 0.5,
        remarks: Sequence[str] = (),
        author: str | None = None,
    ) -> ChatSql:
        """The SQL for a question: proven if it can be, else written by the language model.

        What is proven for the audience of the chat session comes first, then what is proven for everybody. SQL without
        an audience that is about one person ("my orders", or a value that the question doesn't name) is used in the
        chat session where it ran, or else for the `author` who proved it.

        The model reads the facts of the datasets `contexts` and `schema_metadata` that are nearest to the question, and
        `remarks` before them.

        `feedback_cutoff` in [0, 1] says how reliable a rated execution must be to be an example for the model: the
        share of positive opinions, with one of each kind added. Higher is stricter.
        """

    def chat_to_answer(
        self,
        chat_session_id: str,
        query: str,
        *,
        connector_id: str | None = None,
        feedback_cutoff: float = 0.5,
        remarks: Sequence[str] = (),
        author: str | None = None,
    ) -> ChatAnswer:
        """The SQL for a question, run now, and what it gave in words.

        If nothing proven answers it and it has exactly one likely reading, that is its `suggestion`; without a language
        model, it is all there is, and nothing runs before `confirm_suggestion`.
        """

    def execution_cache_lookup(
        self,
        user_query: str,
        *,
        connector_id: str | None = None,
        max_age_days: float = 30,
        similarity_threshold: float = 0.65,
        limit: int = 50,
        top_n: int = 5,
        only_positive_feedback: bool = False,
        reuse: Reuse = "sql",
        audience: str | None = None,
        author: str | None = None,
    ) -> CacheLookup:
        """Looks for executions that answer a question, and says of each whether it may be used, and why.

        Similarity finds candidates; it never decides. The first match that may be used is run now; with
        `reuse="result"`, its stored result is taken instead, as old as it is.

        With an `audience`, what is proven for it comes first, then what is proven for everybody; what is proven for
        another audience does not exist. SQL without an audience that is about one person ("my orders", or a value that
        the question doesn't name) is used for the `author` who proved it.
        """

    def confirm_suggestion(
        self,
        user_query: str,
        execution_id: str,
        *,
        connector_id: str | None = None,
        author: str | None = None,
        audience: str | None = None,
    ) -> Execution:
        """Says that what was suggested for a question is what it means, and runs it.

        `execution_id` is that of the suggestion. The run is rated as right by the author, so it is proven for the
        question from then on; retract the feedback to undo it. Where that isn't suggested any more, it is a `Conflict`.
        """

    def execution_cache_coverage(
        self, *, connector_id: str | None = None, max_age_days: float = 30, limit: int = 10
    ) -> CacheCoverage:
        """Which kinds of question are proven on a connector, which were asked and are refused, by gate, and which
        question to prove next: the one whose proof would answer most of what is refused.

        `limit` is how many of each are listed.
        """


class ChatSessionsProtocol(Protocol):
    """The chat sessions of one project."""

    def create(self, *, name: str | None = None, audience: str | None = None) -> ChatSession:
        """Begins a conversation; what runs in it is for its `audience`, and uses nothing that is for another."""

    def get(self, chat_session_id: str) -> ChatSession:
        """One chat session."""

    def list(self, *, cursor: str | None = None, limit: int = PAGE_LIMIT) -> Page[ChatSession]:
        """Chat sessions, the newest first."""

    def delete(self, chat_session_id: str) -> bool:
        """Removes a conversation with its messages; executions stay, as they belong to their connector."""

    def get_questions(self, chat_session_id: str) -> Questions:
        """What was asked, oldest first, with the SQL it got."""


class GoldenExamplesProtocol(Protocol):
    """Question and SQL pairs of one project. A question has one example on a connector for each audience."""

    def create(
        self, question: str, sql_query: str, *, connector_id: str | None = None, audience: str | None = None
    ) -> GoldenExample:
        """Adds an example, for everybody or for one `audience`; one for the same question, connector and audience is a
        `Conflict`."""

    def promote(self, execution_id: str, *, question: str | None = None, audience: str | None = None) -> GoldenExample:
        """Makes an example of an execution that people say was right, and nobody that it was wrong. It is for the
        audience of the execution, or for the one that is given. A question in the first person whose SQL has a value
        that it doesn't name needs one."""

    def get(self, example_id: str) -> GoldenExample:
        """One example."""

    def list(self, *, connector_id: str | None = None, skip: int = 0, limit: int = PAGE_LIMIT) -> Examples:
        """Examples, the newest first."""

    def update(
        self,
        example_id: str,
        *,
        question: str = UNCHANGED,
        sql_query: str = UNCHANGED,
        audience: str | None = UNCHANGED,
        if_match: str | None = None,
    ) -> GoldenExample:
        """Changes what is given and leaves the rest; `audience=None` makes it an example for everybody.

        With `if_match`, the `etag` of what you have seen, only if nobody changed it since.
        """

    def delete(self, example_id: str) -> bool:
        """Removes an example; an unknown one is `NotFound`."""

    def import_file(self, path: str | Path, *, connector_id: str | None = None) -> Examples:
        """Adds examples from a .csv or .jsonl file with `question`, `sql_query` and perhaps `audience`, all or none.

        A question that has an example already gets the new SQL.
        """

    def import_examples(self, examples: Iterable[Mapping[str, Any]], *, connector_id: str | None = None) -> Examples:
        """Adds examples, mappings with `question`, `sql_query` and perhaps `audience`, all or none.

        A question that has an example already gets the new SQL.
        """
