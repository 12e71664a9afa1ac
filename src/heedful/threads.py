"""Threads that may be wanted while the process ends."""

from __future__ import annotations

import threading


def start_unless_ending(thread: threading.Thread) -> bool:
    """Starts a thread; returns whether it runs. From Python 3.12 on, none can be started after the main thread has
    ended, and what is still to do must be done without."""
    try:
        thread.start()
    except RuntimeError:
        if threading.main_thread().is_alive():
            raise
        return False
    return True
