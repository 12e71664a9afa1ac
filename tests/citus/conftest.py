"""What the tests of a cluster share; it stands in other modules, so that its types are checked."""

from cluster_worlds import cluster, on_cluster
from judging import judge

__all__ = ["cluster", "judge", "on_cluster"]
