"""A large job is not passed for ever by small ones, on a real cluster of machines."""

import pytest

from muster.v1 import facts_pb2, job_pb2

from harness.api import SUCCEEDED, script_spec
from harness.wait import eventually

RUNNING = job_pb2.JOB_STATE_RUNNING
QUEUED = job_pb2.JOB_STATE_QUEUED
RESERVED = facts_pb2.STATE_REASON_CODE_ROOM_RESERVED


def with_cpus(spec, cpus, limit_s=0):
    spec.resources.cpu_millis = cpus * 1000
    if limit_s:
        spec.time_limit.seconds = limit_s
    return spec


@pytest.fixture
def api(world):
    return world.api(world.make_broker(config="keep_room_after: 1s\n").start())


def test_small_jobs_wait_for_a_large_one_that_has_waited_long(world, api):
    world.make_agent("alone", config=world.machines_config(cpus=8)).start()
    first, second = world.gate(), world.gate()
    runs = api.submit(with_cpus(script_spec(first.script()), 4))
    api.wait_state(runs, RUNNING)
    large = api.submit(with_cpus(script_spec(second.script()), 8))
    eventually(lambda: "kept for this job" in world.cli("why", str(large)).stdout, "room is kept for the large job")
    small = api.submit(with_cpus(script_spec("true"), 1))
    seen = api.get(small)
    assert seen.state == QUEUED
    reasons = [seen.state_reason, *seen.state_reason.clusters]
    assert any(reason.code == RESERVED and reason.subject == str(large) for reason in reasons)
    why = world.cli("why", str(small)).stdout
    assert f"kept for job {large}" in why and "--time" in why
    first.open()
    api.wait_state(large, RUNNING)
    assert api.get(small).state != SUCCEEDED
    second.open()
    api.wait_state(large, SUCCEEDED)
    api.wait_state(small, SUCCEEDED)
