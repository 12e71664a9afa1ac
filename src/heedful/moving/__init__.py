"""A store is copied, backed up and verified; a project is written to a file and read from one."""

from heedful.moving.backing_up import backup
from heedful.moving.copying import copy
from heedful.moving.exporting import export, export_file
from heedful.moving.importing import import_file
from heedful.moving.results import BackedUp, Copied, Difference, Moved, Sums, Verified
from heedful.moving.verifying import verify

__all__ = [
    "BackedUp",
    "Copied",
    "Difference",
    "Moved",
    "Sums",
    "Verified",
    "backup",
    "copy",
    "export",
    "export_file",
    "import_file",
    "verify",
]
