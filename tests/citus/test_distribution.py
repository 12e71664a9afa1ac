"""A store in which much has happened is spread over a cluster, looked after there, and brought back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from postgresql import Stores, copied, new_store

import heedful
from heedful import Conflict, Unavailable, transfer
from heedful.bootstrap import maintain_store, migrate_store
from heedful.testing import WordEmbedder
from heedful.transfer import verify

_MOVE_ONE = """
SELECT citus_move_shard_placement(min(shardid), '127.0.0.1', %(source)s, '127.0.0.1', %(target)s, 'block_writes')
FROM pg_dist_shard JOIN pg_dist_shard_placement USING (shardid)
WHERE logicalrelid = 'heedful.datasets'::regclass AND nodeport = %(source)s
"""


@pytest.fixture
def distributed(lived: Path, stores: Stores, bare_template: str) -> Iterator[str]:
    """The address of a store in which two projects have a past, from a file."""
    with copied(stores, bare_template) as url:
        transfer.copy(lived, url)
        migrate_store(url, distribute=True)
        yield url


def test_it_has_all_that_it_had_and_can_be_brought_back(distributed: str, lived: Path, postgresql_server: str) -> None:
    before, there = verify(lived), verify(distributed)
    assert there.ok
    assert there.projects == before.projects
    with new_store(postgresql_server) as plain:
        transfer.copy(distributed, plain)
        back = verify(plain)
    assert back.ok
    assert back.projects == before.projects


def test_it_is_used_and_maintained(distributed: str) -> None:
    with heedful.open(distributed, embedding=WordEmbedder(), worker=False) as store:
        fact = store.remember("The lift is in the east wing.").fact_ids[0]
        (hit, *_) = store.recall("Where is the lift?").hits
        assert hit.fact_id == fact
        store.signal([{"fact_id": fact, "signal_type": "helpful", "query": "Where is the lift?"}])
    maintain_store(distributed)
    assert verify(distributed).ok


def test_the_doctor_names_the_nodes_and_the_one_of_the_project(distributed: str, stores: Stores) -> None:
    with heedful.open(distributed, project="other", embedding=WordEmbedder(), worker=False) as store:
        (nodes,) = [check for check in store.doctor(repair=False) if check.name == "nodes"]
    assert nodes.ok
    workers = [f"127.0.0.1:{urlsplit(node).port}" for node in stores.nodes[1:]]
    assert any(f"project other is on {worker};" in nodes.detail for worker in workers)
    assert all(f"{worker} has 2 of 4 shards" in nodes.detail for worker in workers)


def test_the_doctor_compares_nodes_as_the_cluster_does(distributed: str, stores: Stores) -> None:
    database = stores.nodes[0].replace("/DATABASE", urlsplit(distributed).path)
    one, other = (urlsplit(node).port for node in stores.nodes[1:])
    with (
        heedful.open(distributed, embedding=WordEmbedder(), worker=False) as store,
        psycopg.connect(database, autocommit=True) as administrator,
    ):
        administrator.execute(_MOVE_ONE, {"source": one, "target": other})
        (uneven,) = [check for check in store.doctor(repair=False) if check.name == "nodes"]
        administrator.execute("UPDATE pg_dist_rebalance_strategy SET default_threshold = 1")
        (allowed,) = [check for check in store.doctor(repair=False) if check.name == "nodes"]
    assert not uneven.ok
    assert "rebalance_table_shards" in uneven.detail
    assert allowed.ok
    assert f"127.0.0.1:{one} has 1 of 4 shards" in allowed.detail


def test_it_is_distributed_once(distributed: str) -> None:
    with pytest.raises(Conflict, match="rebalance_table_shards") as caught:
        migrate_store(distributed, distribute=True)
    assert caught.value.code == "already_distributed"


def test_a_worker_refuses_to_open_it(distributed: str, stores: Stores) -> None:
    name = urlsplit(distributed).path
    worker = stores.nodes[1].replace("/DATABASE", name).replace("postgres@", "keeper@")
    with pytest.raises(Unavailable, match="coordinator"):
        heedful.open(worker, embedding=WordEmbedder())
