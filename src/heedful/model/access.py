"""Keys and tokens: who may call a server, and for what; the audit trail, and jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, get_args

from pydantic import Field, model_validator

from heedful.model.base import AuthorKind, Model, Name, NotBlank

Scope = Literal["read", "write", "feedback", "admin"]
"""The permissions of a key: recall and read; remember and run; give opinions; manage keys and the rest."""

SCOPES: tuple[Scope, ...] = get_args(Scope)

AuditKind = Literal["refusal", "action"]
AUDIT_KINDS: tuple[AuditKind, ...] = get_args(AuditKind)


class Key(Model):
    """A key to a server; its secret is shown once, when it is made."""

    key_id: str
    """The ID for `revoke`; not a secret."""
    name: str
    project: str | None
    """The project it opens; None for all."""
    scopes: list[Scope]
    """The scopes of the key."""
    rate_limit: int | None
    """Calls a second; None for what the server allows."""
    created_at: datetime
    last_used_at: datetime | None
    """To about a minute; None if it was never used."""
    revoked_at: datetime | None
    """Since when it is useless; None if it is good."""


class NewKey(Key):
    """A key that was just made, with its secret."""

    api_key: str = Field(repr=False)
    """Keep it: it is not stored and can't be shown again."""


class SigningRotation(Model):
    """The result of `rotate_signing`."""

    rotated_at: datetime
    """Since when the new secret is in use."""
    former_good_until: datetime
    """Until then, what was signed before is still good."""


class AuditEntry(Model):
    """Something that was refused, or that an admin did."""

    at: datetime
    """When."""
    kind: AuditKind
    """Whether somebody was refused, or an admin did something."""
    operation: str
    """The call: "keys.create", or a method and a route."""
    project: str | None
    """None if it concerns the whole server, or if the caller is not known."""
    caller: str | None
    """The id of a key or token; "admin" for the key of the environment. None if it is not known, or if a program had
    the store open itself."""
    address: str | None
    """Where the call came from."""
    code: str | None
    """Why it was refused: the code of the error."""
    target: str | None
    """The id of what an action made or changed."""
    times: int
    """How often, within a few seconds."""


class Target(Model):
    """Something that feedback can be about: a session, one of its answers, an execution, a message or a recall; or what
    is suggested for a question, which a browser may confirm."""

    session_id: Name | None = None
    qa_id: Name | None = None
    """Of an answer in the session."""
    execution_id: Name | None = None
    question: NotBlank | None = None
    """For which the execution is suggested."""
    chat_message_id: Name | None = None
    recall_id: Name | None = None
    external_id: Name | None = None
    """Of an answer, for `rate`."""

    @model_validator(mode="after")
    def _one_thing(self) -> Target:
        named = [name for name, value in self if value is not None]
        alone = ("session_id", "execution_id", "chat_message_id", "recall_id", "external_id")
        together = (["session_id", "qa_id"], ["execution_id", "question"])
        if named not in together and (len(named) != 1 or named[0] not in alone):
            raise ValueError(
                f"must name one thing: session_id and qa_id, execution_id and question, or one of {', '.join(alone)}"
            )
        return self

    def plain(self) -> dict[str, Any]:
        """The ids that are given."""
        return self.model_dump(exclude_none=True)


class FeedbackToken(Model):
    """A short-lived token with which a browser may rate some targets."""

    token: str = Field(repr=False)
    """The token that the browser sends as its key."""
    author: str
    """Under whose name it speaks."""
    author_kind: AuthorKind
    """`named` with an author, else `visitor`."""
    targets: list[Target]
    """The targets it may rate."""
    expires_at: datetime
    """When it is no longer good."""


JobStatus = Literal["waiting", "running", "done", "failed", "cancelled"]
JobKind = Literal["improve", "reembed", "maintain", "index", "digest", "deliver"]

JOB_STATUSES: tuple[JobStatus, ...] = get_args(JobStatus)
JOB_KINDS: tuple[JobKind, ...] = get_args(JobKind)


class Job(Model):
    """Work that is done in the background: at least once, by one worker at a time."""

    job_id: str
    """The ID for `get`, `cancel` and `retry`."""
    kind: JobKind
    """The kind of work: improve, reembed, maintain, index for the search inside a database, digest of feedback, or
    deliver for an alert in the outbox."""
    project: str | None
    """Whose it is; None for work on the whole store."""
    arguments: dict[str, Any]
    """The arguments of the job."""
    status: JobStatus
    """waiting, running, done, failed or cancelled."""
    attempts: int
    """How often it was begun."""
    done: int | None
    """How much of it is done, of `total`; None before that is known."""
    total: int | None
    """How much there is to do."""
    error: str | None
    """Why the last attempt failed."""
    created_at: datetime
    started_at: datetime | None
    """When it was last begun."""
    finished_at: datetime | None
    """When it was done, cancelled or given up."""
