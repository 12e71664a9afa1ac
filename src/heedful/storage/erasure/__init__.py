"""Removes a person's name and words from the tables of a store. The one place that changes rows of the ledger."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, exists, func, insert, select, tuple_, update

from heedful.model import VISITOR, Metadata
from heedful.storage import external_ids, facts
from heedful.storage.executions import connectors
from heedful.storage.executions.proofs import RETAINED_SQL, TARGETS, rated
from heedful.storage.ledger import REVIEW, SUPERSESSION
from heedful.storage.review.actions import TAUGHT
from heedful.storage.rows import batches
from heedful.storage.schema import (
    audit,
    datasets,
    event_keys,
    events,
    executions,
    feedbacks,
    golden_examples,
    keys,
    notes,
    queries,
    receipts,
    requests,
)
from heedful.storage.schema import external_ids as external_id_rows
from heedful.storage.schema_insight import decisions, review_items, review_notes


def rename_author(connection: Connection, project: int, erased: Erased) -> dict[int | None, int]:
    """Replaces the author of the person's events by the pseudonym, and nothing else; returns how many, by
    dataset."""
    by_author = (events.c.project_id == project, events.c.author == erased.name)
    rows = connection.execute(select(events.c.dataset_id, func.count()).where(*by_author).group_by(events.c.dataset_id))
    counts: dict[int | None, int] = {row[0]: row[1] for row in rows}
    if counts:
        _release_keys(connection, project, erased)
        connection.execute(update(events).where(*by_author).values(author=erased.pseudonym))
    return counts


def clear_notes(connection: Connection, project: int, erased: Erased) -> int:
    """Removes the texts that the person wrote with signals; returns how many."""
    event_ids = select(events.c.id).where(events.c.project_id == project, events.c.author == erased.pseudonym)
    return connection.execute(delete(notes).where(notes.c.event_id.in_(event_ids))).rowcount


def clear_review(connection: Connection, project: int, erased: Erased) -> int:
    """Removes the person's name and words from the review queue; returns how many rows were changed."""
    return sum(
        (
            _assignments(connection, project, erased),
            connection.execute(
                update(review_items)
                .where(review_items.c.project_id == project, review_items.c.assignee == erased.name)
                .values(assignee=erased.pseudonym)
            ).rowcount,
            _review_notes(connection, project, erased),
        )
    )


def _release_keys(connection: Connection, project: int, erased: Erased) -> None:
    """Replaces idempotency keys that contain the name; a retry with one counts as a new call."""
    keyed = connection.execute(
        select(events.c.id, events.c.recorded_at, events.c.idempotency_key).where(
            events.c.project_id == project,
            events.c.author == erased.name,
            events.c.idempotency_key != events.c.id,
        )
    )
    for row in [row for row in keyed if erased.is_in_key(row.idempotency_key)]:
        same_event = (events.c.id == row.id, events.c.recorded_at == row.recorded_at)
        connection.execute(update(events).where(*same_event).values(idempotency_key=row.id))
        connection.execute(
            delete(event_keys).where(
                event_keys.c.project_id == project, event_keys.c.idempotency_key == row.idempotency_key
            )
        )


def _assignments(connection: Connection, project: int, erased: Erased) -> int:
    rows = connection.execute(
        select(events.c.id, events.c.recorded_at, events.c.body).where(
            events.c.project_id == project, events.c.kind == REVIEW, events.c.value == "assign"
        )
    )
    assigned = [row for row in rows if row.body.get("assignee") == erased.name]
    for row in assigned:
        same_event = (events.c.id == row.id, events.c.recorded_at == row.recorded_at)
        connection.execute(update(events).where(*same_event).values(body={**row.body, "assignee": erased.pseudonym}))
    return len(assigned)


def _review_notes(connection: Connection, project: int, erased: Erased) -> int:
    """Removes what they wrote as a reviewer."""
    event_ids = select(events.c.id).where(events.c.project_id == project, events.c.author == erased.pseudonym)
    conditions = (review_notes.c.project_id == project, review_notes.c.event_id.in_(event_ids))
    return connection.execute(delete(review_notes).where(*conditions)).rowcount


def facts_of(connection: Connection, project: int, name: str, erased: Erased, opinions: Set[str]) -> set[str]:
    """The facts in the person's words, or with their name: corrections that they wrote, what a reviewer taught from
    their comments, and facts whose metadata name them. `name` is the project's."""
    by_author = events.c.author == erased.pseudonym
    corrections = connection.execute(
        select(events.c.value, events.c.body).where(
            events.c.project_id == project, by_author, events.c.kind == SUPERSESSION
        )
    )
    fact_ids = {row.value for row in corrections if row.body["created"]}
    teachings = connection.execute(
        select(events.c.body, events.c.author).where(
            events.c.project_id == project, events.c.kind == REVIEW, events.c.value == "teach"
        )
    )
    for row in teachings:
        if row.author == erased.pseudonym or row.body["opinion_id"] in opinions:
            fact_ids.add(row.body[TAUGHT])
    for key in PERSON_KEYS:
        fact_ids |= {row.id for row in facts.with_tag(connection, name, key, [erased.name])}
    return fact_ids


def release_external_ids(connection: Connection, project: int, erased: Erased) -> int:
    """Removes external ids that contain the name; returns how many. What has them is found by its own id."""
    key = (external_id_rows.c.kind, external_id_rows.c.external_id)
    rows = connection.execute(select(*key).where(external_id_rows.c.project_id == project))
    named = [(row.kind, row.external_id) for row in rows if erased.is_named_in(row.external_id)]
    for run in batches(named, 1_000):
        of_project = external_id_rows.c.project_id == project
        connection.execute(delete(external_id_rows).where(of_project, tuple_(*key).in_(run)))
    return len(named)


def clear_results(connection: Connection, project: int, erased: Erased, ids: Set[str]) -> int:
    """Removes stored results of calls that contain the person's name or ids."""
    names = ids | {erased.name}
    rows = connection.execute(
        select(requests.c.caller, requests.c.idempotency_key, requests.c.result).where(requests.c.project_id == project)
    )
    matching = [
        (row.caller, row.idempotency_key)
        for row in rows
        if erased.is_named_in(row.idempotency_key) or mentions(row.result, names)
    ]
    for run in batches(matching, 1_000):
        batch_keys = tuple_(requests.c.caller, requests.c.idempotency_key).in_(run)
        connection.execute(delete(requests).where(requests.c.project_id == project, batch_keys))
    return len(matching)


def rename_keys(connection: Connection, project: int, erased: Erased) -> int:
    """Renames API keys with the person's name; they stay valid."""
    connection.execute(
        update(audit)
        .where(audit.c.project_id == project, audit.c.target == erased.name)
        .values(target=erased.pseudonym)
    )
    conditions = (keys.c.project_id == project, keys.c.name == erased.name)
    return connection.execute(update(keys).where(*conditions).values(name=erased.pseudonym)).rowcount


def clear_executions(connection: Connection, project: int, erased: Erased, messages: Sequence[str]) -> int:
    """Removes the questions of executions that ran for the person, or for messages of their sessions."""
    conditions = [executions.c.message_id.in_(run) for run in batches(messages)]
    cleared = 0
    for condition in (executions.c.audience == erased.name, *conditions):
        rows = connection.execute(
            select(executions.c.id, executions.c.connector_id).where(
                executions.c.project_id == project,
                condition,
                executions.c.question.is_not(None),
            )
        ).all()
        ids = [row.id for row in rows]
        blank = {"question": None, "model_id": None, "vector": None}
        connection.execute(update(executions).where(executions.c.id.in_(ids)).values(**blank))
        connection.execute(
            update(decisions)
            .where(decisions.c.project_id == project, decisions.c.execution_id.in_(ids))
            .values(question=PLACEHOLDER)
        )
        connectors.bump_revisions(connection, {row.connector_id for row in rows})
        cleared += len(ids)
    _clear_audience(connection, project, erased)
    return cleared


def _clear_audience(connection: Connection, project: int, erased: Erased) -> None:
    """Renames the audience with the person's name; golden examples that were for them alone go."""
    own = (executions.c.project_id == project, executions.c.audience == erased.name)
    connection.execute(update(executions).where(*own).values(audience=erased.pseudonym))
    examples = (golden_examples.c.project_id == project, golden_examples.c.audience == erased.name)
    connection.execute(delete(golden_examples).where(*examples))
    for kind in TARGETS:
        statement = select(feedbacks.c.seq, feedbacks.c.extra).where(*rated(project, kind, "down"))
        for row in connection.execute(statement.where(feedbacks.c.extra.is_not(None))).all():
            retained = (row.extra or {}).get(RETAINED_SQL, ())
            renamed = [
                {**item, "audience": erased.pseudonym} if item.get("audience") == erased.name else item
                for item in retained
            ]
            if renamed != list(retained):
                changed = update(feedbacks).where(feedbacks.c.seq == row.seq)
                connection.execute(changed.values(extra={**row.extra, RETAINED_SQL: renamed}))


def clear_questions(connection: Connection, recalls: Sequence[str]) -> int:
    """Removes questions of the person's sessions that nobody gave an opinion about and nobody else asked. The others
    stay: usefulness depends on them."""
    query_ids: set[int] = set()
    for run in batches(recalls):
        without = ~exists().where(events.c.receipt_id == receipts.c.id)
        conditions = (receipts.c.id.in_(run), without)
        query_ids |= set(connection.execute(select(receipts.c.query_id).where(*conditions)).scalars())
        external_ids.remove(connection, select(receipts.c.id).where(*conditions))
        connection.execute(delete(receipts).where(*conditions))
    cleared = 0
    for batch in batches(sorted(query_ids)):
        owners = select(queries.c.dataset_id).where(queries.c.id.in_(batch))
        # Waits for recalls that are writing a receipt.
        connection.execute(select(datasets.c.id).where(datasets.c.id.in_(owners)).with_for_update())
        unused = (
            queries.c.id.in_(batch),
            queries.c.id.not_in(select(receipts.c.query_id).where(receipts.c.query_id.in_(batch))),
            ~exists().where(events.c.query_id == queries.c.id),
        )
        cleared += connection.execute(delete(queries).where(*unused)).rowcount
    return cleared


def pending_pseudonym(connection: Connection, project: int, name: str) -> str | None:
    """The pseudonym of an unfinished erasure."""
    row = connection.execute(select(requests.c.result).where(*_pending_row(project, name))).first()
    return None if row is None else str(row.result["pseudonym"])


def begin(connection: Connection, project: int, erased: Erased, at: int) -> None:
    """Stores the pseudonym, so that another run can finish the erasure."""
    connection.execute(
        insert(requests).values(
            project_id=project,
            caller="",
            idempotency_key=_key(erased.name),
            fingerprint=_digest(erased.name),
            result={"pseudonym": erased.pseudonym},
            at=at,
        )
    )


def finish(connection: Connection, project: int, name: str) -> None:
    """Marks the erasure as finished."""
    connection.execute(delete(requests).where(*_pending_row(project, name)))


def _pending_row(project: int, name: str) -> tuple[ColumnElement[bool], ...]:
    return (requests.c.project_id == project, requests.c.caller == "", requests.c.idempotency_key == _key(name))


def _key(name: str) -> str:
    return f"forget-author/{_digest(name).hex()}"


def _digest(name: str) -> bytes:
    return hashlib.blake2b(name.encode(), digest_size=16).digest()


PERSON_KEYS = ("author", "user", "user_id", "audience")
"""Metadata keys that name the person whom a fact or a session belongs to."""

PLACEHOLDER = "[erased]"
"""Replaces text that must not be empty, such as the question of an entry."""

_OWN_KEYS = ("retract/", "improve/", "undo/")
"""Prefixes of idempotency keys that the engine generates."""

_OF_AN_ALERT = ("id", "target_type", "target_id", "rating", "score", "author_kind", "created_at")


@dataclass(frozen=True, slots=True)
class Erased:
    """A person to erase, and the pseudonym that replaces the name."""

    name: str
    pseudonym: str

    def rename_in(self, metadata: Mapping[str, Any]) -> Metadata:
        """The metadata of one of their sessions, with the name replaced in all texts."""
        return {key: self._replaced(value) for key, value in metadata.items()}

    def is_named_in(self, text: str) -> bool:
        """Whether a text contains their name as a word."""
        return re.search(rf"(?<!\w){re.escape(self.name)}(?!\w)", text, re.IGNORECASE) is not None

    def is_in_key(self, key: str) -> bool:
        """Whether a caller's idempotency key contains their name."""
        return not key.startswith(_OWN_KEYS) and self.is_named_in(key)

    def without_opinions(self, payload: Mapping[str, Any], opinions: Set[str]) -> Metadata | None:
        """The payload of an alert without the content of their opinions; None if it has none."""
        feedback = payload.get("feedback")
        if isinstance(feedback, dict) and (feedback.get("author") == self.name or feedback.get("id") in opinions):
            retained = {key: feedback.get(key) for key in _OF_AN_ALERT}
            return {**payload, "feedback": {**retained, "author": self.pseudonym, "comment": ""}}
        if payload.get("type") != "digest" or not mentions(payload, opinions):
            return None
        themes = [item for item in payload["themes"] if opinions.isdisjoint(item["feedback_ids"])]
        notes = [item for item in payload["notes"] if item["about"] != "theme"]
        # Its sentences mix the comments of several people.
        return {**payload, "themes": themes, "notes": notes, "headline": PLACEHOLDER, "text": PLACEHOLDER}

    def _replaced(self, value: Any) -> Any:
        if isinstance(value, dict):
            return self.rename_in(value)
        if isinstance(value, list):
            return [self._replaced(item) for item in value]
        return self.pseudonym if isinstance(value, str) and self.is_named_in(value) else value


def pseudonym_for(name: str) -> str:
    """A random name of the same kind of author."""
    return f"{VISITOR if name.startswith(VISITOR) else ''}erased-{secrets.token_hex(8)}"


def retained_sql(extra: Mapping[str, Any] | None) -> Metadata:
    """The SQL that is stored with an opinion, so that the opinion still blocks it."""
    return {key: value for key, value in (extra or {}).items() if key == RETAINED_SQL}


def mentions(value: Any, names: Set[str]) -> bool:
    """Whether a JSON value contains one of these texts as a whole string."""
    if isinstance(value, str):
        return value in names
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(mentions(item, names) for item in items)
