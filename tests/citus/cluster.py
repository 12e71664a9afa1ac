"""A Citus cluster on loopback: a coordinator and workers, each a PostgreSQL server that may be killed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from postgresql_process import Server

SETTINGS = (
    "shared_preload_libraries=citus",
    "wal_level=logical",
    "max_connections=300",
    "max_prepared_transactions=600",
    "max_worker_processes=64",
    "citus.node_conninfo=sslmode=disable",
)
WORKERS = 2
PATIENCE = 120
"""Seconds after which a cluster that has not done something never will."""


class Cluster:
    """Nodes that are started, with no database but `postgres` yet. The first is the coordinator."""

    def __init__(self, installation: Path, *settings: str) -> None:
        """`installation` is a PostgreSQL with Citus and pgvector, with its programs in bin."""
        self._installation = installation
        self._settings = (*SETTINGS, *settings)
        self.nodes: list[Server] = []
        try:
            # One after the other: two that look for a port at once may find the same.
            for _ in range(1 + WORKERS):
                self._start_node()
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """The coordinator's address, with DATABASE in the place of a name."""
        return self.nodes[0].url

    def create(self, database: str) -> None:
        """Creates a database on all nodes, which know each other there."""
        for node in self.nodes:
            _create(node, database)
        join([node.url for node in self.nodes], database)

    def add_worker(self, database: str) -> Server:
        """Adds a node, which has no shards until the cluster is rebalanced."""
        worker = self._start_node()
        _create(worker, database)
        join([self.url, worker.url], database)
        return worker

    def rebalance(self, database: str, transfer: str) -> None:
        """Moves shards so that all workers have as many; returns when they are moved. With `block_writes`, writers wait
        for a shard that moves. With `force_logical` they don't: it is replicated, which row-level security forbids to
        the owner of its tables, so the role bypasses it meanwhile."""
        with psycopg.connect(self.url.replace("DATABASE", database), autocommit=True) as connection:
            if transfer == "force_logical":
                connection.execute("ALTER ROLE keeper BYPASSRLS")
            # At once: one in the background tries again for ever what fails.
            connection.execute(
                "SELECT rebalance_table_shards(rebalance_strategy => 'by_shard_count', shard_transfer_mode => %s)",
                (transfer,),
            )
            connection.execute("ALTER ROLE keeper NOBYPASSRLS")

    def close(self) -> None:
        """Stops all nodes, and removes their folders."""
        for node in self.nodes:
            node.close()

    def _start_node(self) -> Server:
        node = Server(*self._settings, installation=self._installation)
        self.nodes.append(node)
        return node


def join(nodes: Sequence[str], database: str) -> None:
    """Makes a cluster of databases of one name, given by the addresses of their servers. The first is the coordinator;
    it may have been one before."""
    for node in nodes:
        with psycopg.connect(node.replace("DATABASE", database), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS citus")
    with psycopg.connect(nodes[0].replace("DATABASE", database), autocommit=True) as connection:
        connection.execute("SELECT citus_set_coordinator_host('127.0.0.1', inet_server_port())")
        for worker in nodes[1:]:
            connection.execute("SELECT citus_add_node('127.0.0.1', %s)", (urlsplit(worker).port,))


def _create(node: Server, database: str) -> None:
    with psycopg.connect(node.url.replace("DATABASE", "postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {database} OWNER keeper".encode())
    with psycopg.connect(node.url.replace("DATABASE", database), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
