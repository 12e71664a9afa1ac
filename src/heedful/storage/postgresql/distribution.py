"""A store on a cluster of Citus: projects are spread over its nodes, each with all its rows on one of them.

What concerns all projects stays on the coordinator: keys, jobs and the audit trail. Clients write through the
coordinator only, which gives out all numbers, so that the feeds of a project stay in order.
"""

from __future__ import annotations

from sqlalchemy import Connection, Table
from sqlalchemy.schema import AddConstraint, DropConstraint

from heedful.errors import Conflict, Unavailable
from heedful.storage.database import Node, Placement
from heedful.storage.postgresql.tables import all_tables, belongs_to_project

EVERYWHERE = ("projects", "models")
"""Tables that each node has a copy of, because rows of all projects refer to them."""

IS_WORKER = "SELECT groupid <> 0 FROM pg_dist_local_group"
"""Asks a server with Citus whether it is one of those that a coordinator spreads projects over."""

REBALANCE = "SELECT rebalance_table_shards(shard_transfer_mode => 'block_writes')"
"""Moves shards to nodes that have fewer. Logical replication is not possible with row-level security."""

_ROOT = "datasets"
"""The table that the others are placed by."""


def is_distributed(connection: Connection) -> bool:
    """Whether the projects of a store are spread over nodes."""
    found = f"SELECT EXISTS (SELECT 1 FROM pg_dist_partition WHERE logicalrelid = '{_ROOT}'::regclass)"
    return _has_citus(connection) and bool(connection.exec_driver_sql(found).scalar())


def distribute(connection: Connection) -> None:
    """Spreads the projects of a store over the nodes of its cluster, all or nothing. Nobody can write meanwhile."""
    if not _has_citus(connection):
        raise Unavailable(
            "the store's database has no extension citus, so there are no nodes to distribute it over",
            code="citus_missing",
            remedy="Install Citus on the server and on the other nodes, and run in this database: CREATE EXTENSION "
            "citus; docs/howto/spread-over-nodes.md has the steps",
        )
    if is_distributed(connection):
        remedy = f"To use a node that was added, run: {REBALANCE}"
        raise Conflict("the store is distributed already", code="already_distributed", remedy=remedy)
    tables = all_tables().sorted_tables
    references = [key for table in tables for key in table.foreign_key_constraints]
    # Tables are placed one after the other, and a key may only refer to one that is placed: keys come back at the end.
    for reference in references:
        connection.execute(DropConstraint(reference))
    spread = [table.name for table in tables if _is_placed(table)]
    # Rows are copied to the nodes, which row-level security would refuse to the owner of the tables.
    secured = list(connection.exec_driver_sql(_SECURED).scalars())
    for name in secured:
        connection.exec_driver_sql(f"ALTER TABLE {name} NO FORCE ROW LEVEL SECURITY")
    for name in EVERYWHERE:
        connection.exec_driver_sql(f"SELECT create_reference_table('{name}')")
    connection.exec_driver_sql(f"SELECT create_distributed_table('{_ROOT}', 'project_id')")
    for name in sorted(set(spread) - {*EVERYWHERE, _ROOT}):
        connection.exec_driver_sql(
            f"SELECT create_distributed_table('{name}', 'project_id', colocate_with => '{_ROOT}')"
        )
    for name in spread:
        # The rows that were copied are still here, too.
        connection.exec_driver_sql(f"SELECT truncate_local_data_after_distributing_table('{name}')")
    for name in secured:
        connection.exec_driver_sql(f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY")
    for reference in references:
        if _is_placed(reference.table):
            connection.execute(AddConstraint(reference))


def placement(connection: Connection, project: int | None) -> Placement | None:
    """The nodes of a distributed store, and the one that has a project; None for a store that isn't distributed."""
    if not is_distributed(connection):
        return None
    of_project = None if project is None else connection.exec_driver_sql(_NODE_OF, {"project": project}).scalar_one()
    return Placement([Node(*row) for row in connection.exec_driver_sql(_NODES)], of_project)


def is_balanced(connection: Connection) -> bool:
    """Whether `REBALANCE` would move nothing. All nodes are asked how large their shards are."""
    return not connection.exec_driver_sql("SELECT EXISTS (SELECT 1 FROM get_rebalance_table_shards_plan())").scalar()


_SECURED = "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relforcerowsecurity"

_NODES = f"""
SELECT node.nodename || ':' || node.nodeport, count(shard.shardid) FROM pg_dist_node AS node
LEFT JOIN pg_dist_placement AS placed ON placed.groupid = node.groupid
LEFT JOIN pg_dist_shard AS shard ON shard.shardid = placed.shardid AND shard.logicalrelid = '{_ROOT}'::regclass
WHERE node.shouldhaveshards GROUP BY 1 ORDER BY 1
"""

_NODE_OF = f"""
SELECT nodename || ':' || nodeport FROM pg_dist_shard_placement
WHERE shardid = get_shard_id_for_distribution_column('{_ROOT}', %(project)s::bigint)
"""


def _is_placed(table: Table) -> bool:
    return table.name in EVERYWHERE or belongs_to_project(table)


def _has_citus(connection: Connection) -> bool:
    return bool(connection.exec_driver_sql("SELECT count(*) FROM pg_extension WHERE extname = 'citus'").scalar())
