"""The cluster of a job is the one where it is expected to start first."""

from muster.v1 import job_pb2

from harness.api import SUCCEEDED, argv_spec, script_spec

RUNNING = job_pb2.JOB_STATE_RUNNING


def with_cpus(spec, cpus):
    spec.resources.cpu_millis = cpus * 1000
    return spec


def test_a_job_goes_to_the_cluster_that_is_free_and_plans_say_so(world, broker, api):
    del broker
    world.make_agent("aaa", config=world.machines_config(cpus=2)).start()
    world.make_agent("zzz", config=world.machines_config(cpus=8)).start()
    gate = world.gate()
    busy = api.submit(with_cpus(script_spec(gate.script()), 8))
    assert api.wait_state(busy, RUNNING).cluster == "zzz"  # it fits nowhere else
    plan = world.cli("plan", "--cpus", "1", "--", "true").stdout
    assert plan.index("On cluster aaa") < plan.index("On cluster zzz")
    small = api.submit(with_cpus(argv_spec("true"), 1))
    assert api.wait_state(small, SUCCEEDED).cluster == "aaa"
    gate.open()
    api.wait_state(busy, SUCCEEDED)
    plan = world.cli("plan", "--cpus", "1", "--", "true").stdout
    assert plan.index("On cluster zzz") < plan.index("On cluster aaa")
    large = api.submit(with_cpus(argv_spec("true"), 1))
    assert api.wait_state(large, SUCCEEDED).cluster == "zzz"

    assert "Estimate    at once" in world.cli("show", str(large)).stdout
    assert "Estimates   2 runs; mean wait" in world.cli("clusters", "zzz").stdout
    assert api.get(large).runs[0].HasField("start_estimate")
