"""The days that a page is about, from its address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

PRESETS = (7, 14, 30, 90)


@dataclass(frozen=True, slots=True)
class Range:
    """Days from `since` to `until`, both included; open where one is None."""

    since: date | None
    until: date | None
    since_text: str
    """As it was typed."""
    until_text: str
    problem: str | None = None
    """What is wrong with what was typed; then nothing is left out."""
    preset: int | None = None
    """How many days, if it is one of the usual ranges."""

    @property
    def start(self) -> datetime | None:
        return None if self.since is None else datetime.combine(self.since, time(), UTC)

    @property
    def end(self) -> datetime | None:
        """The first moment after the range."""
        return None if self.until is None else datetime.combine(self.until + timedelta(days=1), time(), UTC)

    @property
    def status(self) -> int:
        return 200 if self.problem is None else 422

    @property
    def words(self) -> str:
        if self.preset is not None:
            return f"the last {self.preset} days"
        if self.since is None and self.until is None:
            return "all time"
        if self.since is None:
            return f"until {self.until}"
        if self.until is None:
            return f"since {self.since}"
        return f"{self.since} to {self.until}"


def preset(days: int, today: date) -> tuple[str, str]:
    """The last days, today included, as an address writes them."""
    return (today - timedelta(days=days - 1)).isoformat(), today.isoformat()


def from_request(query: Mapping[str, str], today: date, usual: int | None = 14) -> Range:
    """The range of an address; the `usual` days where it names none, all where it names empty ones."""
    if "since" not in query and "until" not in query:
        if usual is None:
            return Range(None, None, "", "")
        since_text, until_text = preset(usual, today)
    else:
        since_text, until_text = query.get("since", "").strip(), query.get("until", "").strip()
    days: dict[str, date | None] = {}
    for name, typed in (("from", since_text), ("to", until_text)):
        try:
            days[name] = date.fromisoformat(typed) if typed else None
        except ValueError:
            problem = f"“{typed[:40]}” is not a date: write it as {today.isoformat()}."
            return Range(None, None, since_text, until_text, problem)
    since, until = days["from"], days["to"]
    if since is not None and until is not None and since > until:
        problem = f"The range ends before it begins: {since_text} is after {until_text}."
        return Range(None, None, since_text, until_text, problem)
    if until == date.max:
        until = None
    usual_range = next((days for days in PRESETS if preset(days, today) == (since_text, until_text)), None)
    return Range(since, until, since_text, until_text, preset=usual_range)
