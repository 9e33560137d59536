"""The example of Cosmos-RL on a Slurm cluster that has its nodes, with pretended GPUs, and stand-ins for Pyxis and enroot."""

import re

import pytest

from harness.api import SUCCEEDED
from harness.daemons import BIN
from harness.fixtures import cluster_fixture
from harness.stubs import REPOSITORY

EXAMPLE = REPOSITORY / "deploy" / "examples" / "cosmos-rl.yaml"
PLUGIN = BIN / "muster_test_pyxis.so"
# A cluster as deploy/examples/cosmos-rl.yaml asks for it.
slurm = cluster_fixture("--nodes", "4", "--cpus", "64", "--gpus", "8", "--no-dbd", "--pyxis", PLUGIN)


@pytest.fixture
def agent(world, broker, slurm):
    del broker
    return slurm.make_agent(world, conversion_memory="1Gi", conversion_time_limit="1m", conversion_partition="short").start()


def test_the_example_fits_a_cluster_that_has_its_nodes(world, api, agent):
    world.cli("submit", "--validate", EXAMPLE)
    plan = world.cli_json("plan", EXAMPLE)
    assert "--nodes=4" in str(plan)
    assert "--gres=gpu" in str(plan)
    assert api.list_all() == []
    assert agent.cluster in str(plan)


def test_its_three_programs_find_each_other_on_the_nodes_that_they_are_meant_for(world, api, agent):
    del agent
    text = EXAMPLE.read_text(encoding="utf-8")
    program = "echo $COSMOS_NODE_ROLE $SLURMD_NODENAME $COSMOS_CONTROLLER_HOST $POLICY_NODES $ROLLOUT_NODES"
    text, programs = re.subn(r"exec cosmos-rl .*", program, text)
    assert programs == 3
    file = world.path("cosmos.yaml")
    file.write_text(text.replace("registry.example.org/cosmos-rl:1.0", "registry.test#muster/bash:1"), encoding="utf-8")
    world.cli("submit", "--wait", file)
    (job,) = api.list_all()
    job = api.get(job.id)
    assert job.state == SUCCEEDED, job
    lines = [line for rank in range(5) for line in api.stdout(job.id, rank=rank).decode().splitlines()]
    rest = "n1:8082 n1,n2 n3,n4"
    assert sorted(lines) == [f"controller n1 {rest}", f"policy n1 {rest}", f"policy n2 {rest}",
                             f"rollout n3 {rest}", f"rollout n4 {rest}"]
