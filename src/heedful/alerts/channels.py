"""Where alerts go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Channel(Protocol):
    """A place to send alerts to. `name` is kept with each alert, so that a later process can deliver it."""

    @property
    def name(self) -> str: ...

    def send(self, alert_id: str, payload: Mapping[str, Any]) -> None:
        """Delivers one alert, or raises. It may be called again with the same `alert_id`.

        Of a `HeedfulError` the message is kept with the alert and logged. Of any other error it is only the kind:
        what libraries say may hold an address or a key that nobody should read.
        """
        ...
