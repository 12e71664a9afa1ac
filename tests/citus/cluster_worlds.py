"""Stores on a cluster that only this test uses, so that it may kill nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from cluster import Cluster
from postgresql import CITUS, make_distributed
from postgresql_process import Server
from worlds import World


@dataclass(frozen=True, slots=True)
class OnCluster:
    """A store that is distributed over the nodes of a cluster."""

    world: World
    cluster: Cluster
    database: str

    def node_of(self, project: str) -> Server:
        """The node that has the rows of a project."""
        with psycopg.connect(self._url, autocommit=True) as connection:
            ((number,),) = connection.execute("SELECT id FROM heedful.projects WHERE name = %s", (project,)).fetchall()
            ((port,),) = connection.execute(
                "SELECT nodeport FROM pg_dist_placement JOIN pg_dist_node USING (groupid) WHERE noderole = 'primary' "
                "AND shardid = get_shard_id_for_distribution_column('heedful.facts', %s::bigint)",
                (number,),
            ).fetchall()
        (node,) = [node for node in self.cluster.nodes if node.port == port]
        return node

    def settle(self, least: int) -> dict[Server, list[str]]:
        """Makes projects until each worker has so many; returns the names of all."""
        result: dict[Server, list[str]] = {worker: [] for worker in self.cluster.nodes[1:]}
        while min(map(len, result.values())) < least:
            name = f"project{sum(map(len, result.values()))}"
            self.world.prepare(name, [])
            result[self.node_of(name)].append(name)
        return result

    def shards(self, node: Server) -> int:
        """How many shards a node has."""
        with psycopg.connect(self._url, autocommit=True) as connection:
            ((count,),) = connection.execute(
                "SELECT count(*) FROM citus_shards WHERE citus_table_type = 'distributed' AND nodeport = %s",
                (node.port,),
            ).fetchall()
            return int(count)

    @property
    def _url(self) -> str:
        return self.cluster.url.replace("DATABASE", self.database)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """One that waits for the disk, and that a test may kill."""
    assert CITUS is not None, "a cluster needs a PostgreSQL with Citus: make test-citus CITUS=/folder/with/bin/and/lib"
    # Moving a shard takes seconds, because it moves all that belongs to its projects.
    cluster = Cluster(Path(CITUS), "citus.shard_count=8")
    try:
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def on_cluster(cluster: Cluster) -> OnCluster:
    name = f"store_{uuid4().hex}"
    cluster.create(name)
    url = cluster.url.replace("DATABASE", name).replace("postgres@", "keeper@")
    make_distributed(url)
    return OnCluster(World(url, cluster.nodes[0]), cluster, name)
