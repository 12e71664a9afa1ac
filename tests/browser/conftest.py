"""What the tests in a browser share; it stands in modules of their own, so that their types are checked."""

from dashboard_page import bare, desk, looked_at, served
from widget_page import browser, memory, server, show, site

__all__ = ["bare", "browser", "desk", "looked_at", "memory", "served", "server", "show", "site"]
