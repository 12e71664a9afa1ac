"""settings."""

from __future__ import annotations

from heedful.dashboard.registry import Action, Page

PAGES: tuple[Page, ...] = ()
ACTIONS: tuple[Action, ...] = ()
