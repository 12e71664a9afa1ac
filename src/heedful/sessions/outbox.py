"""Alerts in the outbox, as callers see them."""

from __future__ import annotations

from heedful.clock import from_stored
from heedful.errors import NotFound
from heedful.memory import checks as values
from heedful.model import Alert, Page
from heedful.sessions import checks
from heedful.sessions.conversations import page
from heedful.sessions.space import SessionSpace
from heedful.storage.sessions import Transaction
from heedful.storage.sessions.base import AlertRow


def list_alerts(space: SessionSpace, pending: bool, cursor: str | None, limit: int) -> Page[Alert]:
    after = checks.cursor(cursor)
    values.flag("pending", pending)
    return page(lambda count: space.store.read(lambda tx: tx.outbox.list(after, count, pending)), limit, _alert)


def discard(space: SessionSpace, alert_id: str) -> Alert:
    """Discards an alert; one that was delivered stays as it is."""
    values.identifier("alert_id", alert_id)

    def give_up(tx: Transaction) -> AlertRow | None:
        row = tx.outbox.get(alert_id)
        if row is not None and row.delivered_at is None:
            tx.outbox.settle(alert_id, row.attempts, None, None, row.error)
        return tx.outbox.get(alert_id)

    row = space.store.write(give_up)
    if row is None:
        raise NotFound(f"no alert {alert_id!r} in project {space.project!r}", field="alert_id", value=alert_id)
    return _alert(row)


def _alert(row: AlertRow) -> Alert:
    return Alert(
        alert_id=row.id,
        channel=row.channel,
        payload=row.payload,
        created_at=from_stored(row.created_at),
        attempts=row.attempts,
        next_at=None if row.next_at is None else from_stored(row.next_at),
        delivered_at=None if row.delivered_at is None else from_stored(row.delivered_at),
        error=row.error,
    )
