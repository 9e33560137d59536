"""A real Slurm refuses a run by the limits of its QOS, and a machine takes the job."""

import pytest

from muster.v1 import facts_pb2, job_pb2

from harness.api import FAILED, SUCCEEDED, script_spec
from harness.fixtures import cluster_fixture
from harness.slurm import USER
from harness.wait import eventually

QUEUED = job_pb2.JOB_STATE_QUEUED
REFUSED = facts_pb2.FAILURE_CODE_LAUNCH_REFUSED
WORDS = "Job violates accounting/QOS policy"

slurm = cluster_fixture("--nodes", "1", "--cpus", "4")


@pytest.fixture
def limited(slurm):
    """The user's jobs have the QOS two, which refuses those of more than 2 CPUs."""
    set_qos = ("sacctmgr", "-i", "modify", "user", USER, "set")
    slurm.slurm(*set_qos, "defaultqos=two")
    yield
    slurm.slurm(*set_qos, "defaultqos=normal")


def wide_spec(text):
    spec = script_spec(text)
    spec.resources.cpu_millis = 4000
    return spec


def test_a_job_that_slurm_refuses_runs_on_the_machine_and_is_not_sent_there_again(world, broker, agent, api, limited):
    del limited
    alone = api.wait_state(api.submit(wide_spec("true")), FAILED)
    assert alone.failure.code == REFUSED and WORDS in alone.failure.message, "nobody else could take it"

    box = world.make_agent("box").start()
    world.cli("clusters", "cordon", box.cluster, "--reason", "not yet")
    ledger = world.path("ledger")
    job_id = api.submit(wide_spec(f"echo ran >>{ledger}"))
    job = eventually(lambda: (seen := api.get(job_id)).runs and seen.state == QUEUED and seen, "it is refused and waits")
    assert job.runs[0].failure.code == REFUSED and not job.runs[0].HasField("start_time")

    def check_why():
        why = {reason.cluster: reason for reason in api.get(job_id).state_reason.clusters}
        assert why[agent.cluster].code == facts_pb2.STATE_REASON_CODE_CANNOT_START
        assert "it refused run 1" in why[agent.cluster].message and WORDS in why[agent.cluster].message
        assert "slurm.qos" in why[agent.cluster].remedy and why[agent.cluster].HasField("until")
        assert why[box.cluster].code == facts_pb2.STATE_REASON_CODE_CLUSTER_CORDONED

    check_why()
    assert "is asked again from" in world.cli("why", job_id, "-o", "wide").stdout
    broker.kill()
    broker.start()
    eventually(lambda: api.connected(agent.cluster) and api.connected(box.cluster), "the agents are back")
    check_why()
    world.cli("clusters", "uncordon", box.cluster)
    job = api.wait_state(job_id, SUCCEEDED)
    assert [run.cluster for run in job.runs] == [agent.cluster, box.cluster]
    assert ledger.read_text() == "ran\n"
    steps = world.cli("events", job_id).stdout
    assert f"because cluster {agent.cluster} refused run 1" in steps
