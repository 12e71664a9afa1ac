"""A store is copied, backed up and verified; a project is written to a file and read from one; files of other systems
are imported."""

from heedful.transfer.backups import BackedUp, backup
from heedful.transfer.copying import Copied, copy
from heedful.transfer.exporting import ProjectChecksum, Transferred, export, export_file
from heedful.transfer.foreign import Imported, LineError, import_from
from heedful.transfer.importing import import_file
from heedful.transfer.verification import Difference, Verified, verify

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
