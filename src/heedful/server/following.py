"""Keeps the indexes of a worker up to date with what others write, so that no recall has to do it first."""

from __future__ import annotations

import logging
import threading

from heedful.errors import HeedfulError
from heedful.hosting import Projects

logger = logging.getLogger("heedful")


class Follower:
    """A thread that waits for notices. A recall reads what it lacks in any case: what it finds is never old."""

    def __init__(self, projects: Projects) -> None:
        self._projects = projects
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heedful-follower", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        for changed in self._projects.host.database.notices(self._stopped):
            for project in self._projects.in_memory(changed):
                try:
                    project._workspace.follow()
                except HeedfulError as error:
                    # The next recall meets the same fault, and tells its caller.
                    logger.warning("the indexes of a project can't follow its store: %s", error)
