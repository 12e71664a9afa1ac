"""Alerts in the outbox, as callers see them."""

from __future__ import annotations

from heedful.api import checks
from heedful.errors import NotFound
from heedful.model import Alert, Page
from heedful.notifications.outbox import AlertRow
from heedful.sessions.session_store import Transaction, page
from heedful.sessions.space import SessionSpace
from heedful.storage.rows import to_model


def list_alerts(space: SessionSpace, pending: bool, cursor: str | None, limit: int) -> Page[Alert]:
    after = checks.cursor(cursor)
    checks.flag("pending", pending)
    return page(lambda count: space.store.read(lambda tx: tx.outbox.list(after, count, pending)), limit, _alert)


def discard(space: SessionSpace, alert_id: str) -> Alert:
    """Discards an alert; one that was delivered stays as it is."""

    def give_up(tx: Transaction) -> AlertRow | None:
        row = tx.outbox.get(alert_id)
        if row is not None and row.delivered_at is None:
            tx.outbox.settle(alert_id, row.attempts, None, None, row.error)
        return tx.outbox.get(alert_id)

    row = space.store.write(give_up)
    if row is None:
        raise NotFound.in_project(space.project, "alert", alert_id, "alert_id")
    return _alert(row)


def _alert(row: AlertRow) -> Alert:
    return to_model(Alert, row, alert_id=row.id)
