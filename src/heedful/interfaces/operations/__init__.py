"""What the engine does, as calls over a wire: the server, the client and the parity tests share this table."""

from heedful.interfaces.operations.shape import Shape, shape
from heedful.interfaces.operations.table import OPERATIONS, OWNERS, Operation

__all__ = ["OPERATIONS", "OWNERS", "Operation", "Shape", "shape"]
