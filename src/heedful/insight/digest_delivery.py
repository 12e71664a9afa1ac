"""Digests on their way: once for each time, project and channel, however many workers there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID, uuid5

from heedful.clock import from_stored
from heedful.ids import new_id
from heedful.insight import digest as _digest
from heedful.insight.service import Insight
from heedful.notifications import Channel
from heedful.notifications.dispatcher import Dispatcher
from heedful.sessions.space import SessionSpace
from heedful.storage.sessions import Transaction
from heedful.storage.sessions.base import AlertRow

_NAMES = UUID("6d0f5d0a-9c5e-4a53-9a5b-7c1f0a1f3b6e")


def send(
    space: SessionSpace, insight: Insight, channels: Sequence[Channel], since: int, until: int, *, again: bool = False
) -> list[AlertRow]:
    """Puts the digest of a time into the outbox, unless it was already or `again` is said, and delivers what is due.

    Returns what became of it, for each channel; nothing, if nobody said anything in that time.
    """
    keys = {each.name: new_id() if again else _key(space.project, each, since, until) for each in channels}
    if None in _stored_alerts(space, keys.values()):
        digest = insight.digest(since=from_stored(since), until=from_stored(until))
        if not _digest.opinions(digest):
            return []
        payload = {"type": "digest", **digest.model_dump(mode="json")}
        at = space.now()
        rows = [AlertRow(key, channel, payload, at, next_at=at) for channel, key in keys.items()]

        def put(tx: Transaction) -> None:
            tx.outbox.add(None, [row for row in rows if tx.outbox.get(row.id) is None])

        space.store.write(put)
    dispatcher = Dispatcher(space.store, space.now, background=False)
    dispatcher.add(*channels)
    dispatcher.deliver_due()
    return [row for row in _stored_alerts(space, keys.values()) if row is not None]


def _stored_alerts(space: SessionSpace, keys: Iterable[str]) -> list[AlertRow | None]:
    alerts: list[AlertRow | None] = space.store.read(lambda tx: [tx.outbox.get(key) for key in keys])
    return alerts


def _key(project: str, channel: Channel, since: int, until: int) -> str:
    """The same for every worker."""
    return str(uuid5(_NAMES, f"{since}/{until}/{channel.name}/{project}"))
