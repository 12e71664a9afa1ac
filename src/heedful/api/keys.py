"""`.keys` and `.jobs`: who may call a server, and work that is done later."""

from __future__ import annotations

from typing import Annotated

from heedful.api import parameters as t
from heedful.api.calls import Namespace, call
from heedful.model import FeedbackToken, Job, Key, NewKey, Page, Scope, SigningRotation

DEFAULT_SCOPES: tuple[Scope, ...] = ("read", "write", "feedback")

# Inside the class, `list` is a method.
KeyList = list[Key]


class Keys(Namespace, name="keys"):
    """The keys of one project. A key's secret is shown once; the store keeps only its hash."""

    @call("POST", "/keys", "admin", secret=True)
    def create(
        self, name: t.Name, *, scopes: t.Scopes = DEFAULT_SCOPES, rate_limit: t.RateLimit | None = None
    ) -> NewKey:
        """Makes a key. `scopes` are some of read, write, feedback and admin, which includes the others.

        `rate_limit` is how many calls a second it may make; what the server allows, if left out.
        """

    @call("GET", "/keys", "admin")
    def list(self) -> KeyList:
        """All keys of the project, oldest first, also those that were revoked."""

    @call("DELETE", "/keys/{key_id}", "admin")
    def revoke(self, key_id: t.KeyId) -> Key:
        """Makes a key useless, within a second on servers that run."""

    @call("POST", "/tokens", "feedback", repeatable=True, batch=True, secret=True)
    def create_token(
        self,
        targets: t.Targets,
        *,
        author: Annotated[
            t.Author | None, t.Means("The author of feedback given with this key; generated if left out.")
        ] = None,
        subject: t.Subject | None = None,
        expires_in: t.ExpiresIn = 600,
    ) -> FeedbackToken:
        """Signs a token with which a browser may rate the things named, for `expires_in` seconds, and nothing else.

        The feedback is by `author`, somebody you can name. Without one it is by a visitor: it
        is counted and reviewed, but teaches no fact, moves no rank and blocks no SQL. `subject` tells such visitors
        apart, by the id of their visit for example, of which a hash is kept; those without one have one vote together.
        """

    @call("POST", "/keys/rotate-signing", "admin", everywhere=True)
    def rotate_signing(self, *, grace: t.Grace = 0) -> SigningRotation:
        """Makes a new secret to sign tokens and logins with, for the whole store.

        What was signed with the old one ends at once, or after `grace` seconds.
        """


class Jobs(Namespace, name="jobs"):
    """The jobs of one project."""

    @call("POST", "/jobs/improve", "write", repeatable=True)
    def improve(self, dataset: t.OnlyDataset | None = None, session_ids: t.SessionIds | None = None) -> Job:
        """Has `improve` run in the background; if a job waits to do the same, that one is returned."""

    @call("GET", "/jobs")
    def list(
        self,
        *,
        status: t.JobsStatus | None = None,
        kind: t.JobsKind | None = None,
        cursor: t.Cursor | None = None,
        limit: t.Limit = t.PAGE,
    ) -> Page[Job]:
        """Jobs, the newest first. With the kind `deliver`, the alerts of the outbox, as jobs."""

    @call("GET", "/jobs/{job_id}")
    def get(self, job_id: t.JobId) -> Job:
        """One job."""

    @call("POST", "/jobs/{job_id}/cancel", "write", repeatable=True)
    def cancel(self, job_id: t.JobId) -> Job:
        """Has a job not done: at once if it waits, at its next step if it runs. What has ended stays as it is."""

    @call("POST", "/jobs/{job_id}/retry", "write")
    def retry(self, job_id: t.JobId) -> Job:
        """Adds a job that does the same as one that failed or was cancelled."""
