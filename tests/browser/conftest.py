"""What the tests in a browser share; it stands in a module of its own, so that its types are checked."""

from widget_page import browser, memory, server, show, site

__all__ = ["browser", "memory", "server", "show", "site"]
