"""A job over its memory on a real Slurm that enforces it with cgroups."""

from muster.v1 import job_pb2

from harness.api import FAILED, script_spec
from harness.fixtures import cluster_fixture

# The nodes' names name the cgroups, so they are this cluster's own.
slurm = cluster_fixture("--nodes", "1", "--no-dbd", "--cgroup", "--node-prefix", "musterpy")


def test_out_of_memory(world, broker, api, slurm):
    del broker
    slurm.make_agent(world).start()
    spec = script_spec("dd if=/dev/zero of=/dev/null bs=400M count=1")
    spec.resources.memory_bytes = 100 << 20
    job = api.wait_state(api.submit(spec), FAILED)
    assert job.failure.failure_class == job_pb2.FAILURE_CLASS_OOM
    assert "memory" in job.failure.remedy
