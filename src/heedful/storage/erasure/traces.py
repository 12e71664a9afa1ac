"""What else a person left: facts, kept results, keys, executions, questions. And an erasure that was begun."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence, Set

from sqlalchemy import ColumnElement, Connection, delete, exists, insert, select, tuple_, update

from heedful.storage import facts
from heedful.storage.erasure.words import PERSON_KEYS, PLACEHOLDER, Erased, mentions
from heedful.storage.executions import revisions
from heedful.storage.ledger import REVIEW, SUPERSESSION
from heedful.storage.review.actions import TAUGHT
from heedful.storage.rows import batches
from heedful.storage.schema import audit, datasets, events, executions, keys, queries, receipts, requests
from heedful.storage.schema_insight import decisions


def facts_of(connection: Connection, project: int, name: str, erased: Erased, opinions: Set[str]) -> set[str]:
    """The facts in the person's words, or with their name: corrections that they wrote, what a reviewer taught from
    their comments, and facts whose metadata name them. `name` is the project's."""
    by = events.c.author == erased.pseudonym
    corrections = connection.execute(
        select(events.c.value, events.c.body).where(events.c.project_id == project, by, events.c.kind == SUPERSESSION)
    )
    found = {row.value for row in corrections if row.body["created"]}
    teachings = connection.execute(
        select(events.c.body, events.c.author).where(
            events.c.project_id == project, events.c.kind == REVIEW, events.c.value == "teach"
        )
    )
    for row in teachings:
        if row.author == erased.pseudonym or row.body["opinion_id"] in opinions:
            found.add(row.body[TAUGHT])
    for key in PERSON_KEYS:
        found |= {row.id for row in facts.with_tag(connection, name, key, [erased.name])}
    return found


def clear_results(connection: Connection, project: int, erased: Erased, ids: Set[str]) -> int:
    """Removes the kept results of calls that have the person's name, or something of theirs, in them."""
    theirs = ids | {erased.name}
    rows = connection.execute(
        select(requests.c.caller, requests.c.idempotency_key, requests.c.result).where(requests.c.project_id == project)
    )
    found = [
        (row.caller, row.idempotency_key)
        for row in rows
        if erased.is_in(row.idempotency_key) or mentions(row.result, theirs)
    ]
    for run in batches(found, 1_000):
        named = tuple_(requests.c.caller, requests.c.idempotency_key).in_(run)
        connection.execute(delete(requests).where(requests.c.project_id == project, named))
    return len(found)


def rename_keys(connection: Connection, project: int, erased: Erased) -> int:
    """Gives keys that have the person's name the pseudonym; they go on opening what they open."""
    connection.execute(
        update(audit)
        .where(audit.c.project_id == project, audit.c.target == erased.name)
        .values(target=erased.pseudonym)
    )
    named = (keys.c.project_id == project, keys.c.name == erased.name)
    return connection.execute(update(keys).where(*named).values(name=erased.pseudonym)).rowcount


def clear_executions(connection: Connection, project: int, messages: Sequence[str]) -> int:
    """Removes the questions of executions that ran for messages of the person's sessions."""
    cleared = 0
    for run in batches(messages):
        rows = connection.execute(
            select(executions.c.id, executions.c.connector_id).where(
                executions.c.project_id == project,
                executions.c.message_id.in_(run),
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
        revisions.changed(connection, {row.connector_id for row in rows})
        cleared += len(ids)
    return cleared


def clear_questions(connection: Connection, recalls: Sequence[str]) -> int:
    """Removes questions of the person's sessions that nobody gave an opinion about and nobody else asked. The others
    stay: it is by them that usefulness is known."""
    asked: set[int] = set()
    for run in batches(recalls):
        without = ~exists().where(events.c.receipt_id == receipts.c.id)
        theirs = (receipts.c.id.in_(run), without)
        asked |= set(connection.execute(select(receipts.c.query_id).where(*theirs)).scalars())
        connection.execute(delete(receipts).where(*theirs))
    cleared = 0
    for some in batches(sorted(asked)):
        owners = select(queries.c.dataset_id).where(queries.c.id.in_(some))
        # Recalls that are writing a receipt are waited for.
        connection.execute(select(datasets.c.id).where(datasets.c.id.in_(owners)).with_for_update())
        unused = (
            queries.c.id.in_(some),
            queries.c.id.not_in(select(receipts.c.query_id).where(receipts.c.query_id.in_(some))),
            ~exists().where(events.c.query_id == queries.c.id),
        )
        cleared += connection.execute(delete(queries).where(*unused)).rowcount
    return cleared


def begun(connection: Connection, project: int, name: str) -> str | None:
    """The pseudonym of an erasure that was begun and not finished."""
    row = connection.execute(select(requests.c.result).where(*_begun(project, name))).first()
    return None if row is None else str(row.result["pseudonym"])


def begin(connection: Connection, project: int, erased: Erased, at: int) -> None:
    """Notes the pseudonym, so that another run finishes what this one leaves."""
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
    """Forgets that an erasure was begun."""
    connection.execute(delete(requests).where(*_begun(project, name)))


def _begun(project: int, name: str) -> tuple[ColumnElement[bool], ...]:
    return (requests.c.project_id == project, requests.c.caller == "", requests.c.idempotency_key == _key(name))


def _key(name: str) -> str:
    return f"forget-author/{_digest(name).hex()}"


def _digest(name: str) -> bytes:
    return hashlib.blake2b(name.encode(), digest_size=16).digest()
