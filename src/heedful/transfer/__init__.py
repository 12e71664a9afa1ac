"""A store is copied, backed up and verified; a project is written to a file and read from one; files of other systems
are imported."""

from heedful.transfer.backups import backup, copy
from heedful.transfer.exporting import export, export_file
from heedful.transfer.foreign import import_from
from heedful.transfer.importing import import_file
from heedful.transfer.results import (
    BackedUp,
    Copied,
    Difference,
    Imported,
    LineError,
    ProjectChecksum,
    Transferred,
    Verified,
)
from heedful.transfer.verification import verify

__all__ = [
    "BackedUp",
    "Copied",
    "Difference",
    "Imported",
    "LineError",
    "ProjectChecksum",
    "Transferred",
    "Verified",
    "backup",
    "copy",
    "export",
    "export_file",
    "import_file",
    "import_from",
    "verify",
]
