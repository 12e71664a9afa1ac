"""Bring a store of an earlier version to this version."""

REVISIONS = ("0001",)
"""All revisions, oldest first; here, so that opening a store needs no migration library."""

HEAD = REVISIONS[-1]
