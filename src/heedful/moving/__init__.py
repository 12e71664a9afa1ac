"""A store is copied, backed up and verified; a project is written to a file and read from one."""

from heedful.moving.copying import copy

__all__ = ["copy"]
