"""Nodes of a cluster are killed and added in the midst of writes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cluster_worlds import OnCluster
from crews import Crew
from judging import Judge

KILLS = int(os.environ.get("HEEDFUL_TEST_KILLS", "5"))


def test_a_dead_worker_stops_its_own_projects_only(on_cluster: OnCluster, judge: Judge, tmp_path: Path) -> None:
    homes = on_cluster.settle(least=1)
    everybody = [project for projects in homes.values() for project in projects]
    with Crew(on_cluster.world, tmp_path, projects=everybody, each=1) as crew:
        crew.work(5)
        for number in range(KILLS):
            victim = list(homes)[number % len(homes)]
            others = [project for project in everybody if project not in homes[victim]]
            failed = {project: crew.failed(project) for project in everybody}
            victim.kill()
            crew.fail("store_unreachable", len(homes[victim]))
            crew.work(5, others)
            assert {project: crew.failed(project) for project in others} == {each: failed[each] for each in others}
            victim.start()
            crew.work(5)
            assert all(crew.failed(project) > failed[project] for project in homes[victim])
        crew.stop()
        judge(on_cluster.world, crew)
    assert {code for code, _ in crew.errors} == {"store_unreachable"}


def test_the_doctor_of_another_project_says_that_a_worker_is_down(on_cluster: OnCluster) -> None:
    (dead, _), (_, (project, *_)) = on_cluster.settle(least=1).items()
    dead.kill()
    with on_cluster.world.open(project, worker=False) as store:
        bad = [check for check in store.doctor(repair=False) if not check.ok]
    assert [check.name for check in bad] == ["nodes"]
    assert "can't be reached" in bad[0].detail


@pytest.mark.parametrize("transfer", ["block_writes", "force_logical"])
def test_projects_move_to_a_new_worker_while_they_are_written_to(
    on_cluster: OnCluster, judge: Judge, tmp_path: Path, transfer: str
) -> None:
    homes = on_cluster.settle(least=3)
    everybody = [project for projects in homes.values() for project in projects]
    with Crew(on_cluster.world, tmp_path, projects=everybody, each=1) as crew:
        crew.work(5)
        worker = on_cluster.cluster.add_worker(on_cluster.database)
        assert on_cluster.shards(worker) == 0
        on_cluster.cluster.rebalance(on_cluster.database, transfer)
        assert worker in map(on_cluster.node_of, everybody)
        crew.work(5)
        crew.stop()
        judge(on_cluster.world, crew)
    # While a shard is handed over, the cluster may end a transaction that others wait for.
    assert {code for code, _ in crew.errors} <= {"store_busy"}
