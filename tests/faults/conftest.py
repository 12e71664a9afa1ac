"""What the tests of faults share; it stands in modules of their own, so that their types are checked."""

from judging import judge
from worlds import on_postgresql, on_sqlite, own_server, world

__all__ = ["judge", "on_postgresql", "on_sqlite", "own_server", "world"]
