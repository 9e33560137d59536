"""Jobs on a real Slurm without slurmdbd: queue and exit record tell the ends."""

from muster.v1 import job_pb2

from harness.api import CANCELED, FAILED, SUCCEEDED, argv_spec, script_spec
from harness.fixtures import cluster_fixture
from harness.wait import eventually


slurm = cluster_fixture("--nodes", "1", "--no-dbd", "--min-job-age", "5")


def test_ends_are_told(world, api, slurm, agent):
    good = api.submit(argv_spec("true"))
    bad = api.submit(script_spec("exit 3"))
    killed = api.submit(script_spec("kill -KILL $$"))
    assert api.wait_state(good, SUCCEEDED).exit.code == 0
    assert api.wait_state(bad, FAILED).exit.code == 3
    assert api.wait_state(killed, FAILED).exit.signal == 9
    # They go once nobody hopes for their usage.
    key = api.get(bad).runs[0].run_key
    eventually(lambda: not agent.run_directory(key).exists(), "that the runs are forgotten")
    assert not any(api.get(job_id).runs[0].HasField("usage") for job_id in (good, bad, killed))
    assert "sacct" not in api.cluster("lab").scheduler_calls


def test_a_queue_that_forgot_loses_nothing(world, api, slurm, agent):
    gate = world.gate()
    good = api.submit(script_spec(gate.script()))
    bad = api.submit(script_spec(gate.script() + "\nexit 4"))
    canceled = api.submit(argv_spec("sleep", "1000"))
    for job_id in (good, bad, canceled):
        api.wait_state(job_id, job_pb2.JOB_STATE_RUNNING)
    agent.kill()
    gate.open()
    slurm.slurm("scancel", api.get(canceled).runs[0].external_id)
    slurm.wait_forgotten()
    agent.start()
    api.wait_state(good, SUCCEEDED)
    assert api.wait_state(bad, FAILED).exit.code == 4
    api.wait_state(canceled, CANCELED)
