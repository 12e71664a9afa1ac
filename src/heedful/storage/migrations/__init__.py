"""How a store of an earlier version becomes one of this version."""

REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010")
"""All revisions, oldest first; here, so that opening a store needs no migration library."""

HEAD = REVISIONS[-1]
