"""A rollout on a cluster of several raylets, one of which is killed in the middle of an episode."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import ray_surroundings
import rollout_policies
from conftest import missing

from tbmm_env.rollout.jobs import Plan
from tbmm_env.rollout.run import rollout
from tbmm_env.sandbox.scripted import ScriptedSandbox
from tbmm_env.trajectory.store import Store

try:
    from ray.cluster_utils import Cluster
except ImportError:  # an optional dependency
    Cluster = None

pytestmark = ray_surroundings.WARNINGS
TASK = "cumcm-2024-a"
STORE_BYTES = 80 * 2**20


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A head without cores and two hosts with two each, as far as Ray knows."""
    if Cluster is None:
        missing("Ray is not installed")
    with ray_surroundings.environment():
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": STORE_BYTES})
        try:
            for _ in range(2):
                made.add_node(num_cpus=2, object_store_memory=STORE_BYTES)
            yield made
        finally:
            made.shutdown()


def test_a_host_that_dies_costs_its_running_episodes_only(cluster: Any, tmp_path: Path) -> None:
    marks, out = tmp_path / "marks", tmp_path / "out"
    marks.mkdir()
    plan = Plan([TASK], 3, 2)
    policy = partial(rollout_policies.KillRaylet, str(marks))
    summary = rollout(
        plan, policy, out, policy_name="tried", workers=2, address=cluster.address, worker_cpus=0.5,
        sandbox=ScriptedSandbox(),
    )  # fmt: skip
    assert summary.complete
    assert set(summary.failures) == {"ActorDied"}
    assert 1 <= summary.failures["ActorDied"] <= 2
    assert dict(summary.outcomes) == {"missing": 6}
    jobs = [stored.episode.job for stored in Store(out).episodes()]
    assert sorted(jobs) == [job.key for job in plan]
    assert len([node for node in cluster.list_all_nodes() if node.live_processes()]) == 2  # the head and one host
