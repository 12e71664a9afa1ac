"""A store is copied, backed up and verified; a project is written to a file and read from one."""

from heedful.transfer.backups import backup, copy
from heedful.transfer.exporting import export, export_file
from heedful.transfer.importing import import_file
from heedful.transfer.results import BackedUp, Copied, Difference, ProjectChecksum, Transferred, Verified
from heedful.transfer.verification import verify

__all__ = [
    "BackedUp",
    "Copied",
    "Difference",
    "ProjectChecksum",
    "Transferred",
    "Verified",
    "backup",
    "copy",
    "export",
    "export_file",
    "import_file",
    "verify",
]
