"""People's questions about a cluster of machines through the broker: a preflight, its details, a
plan."""

import grpc
from muster.v1 import clusters_service_pb2, job_pb2
import pytest

from harness.api import CALL_TIMEOUT_S, CANCELED, SUCCEEDED, argv_spec, error_info, script_spec
from harness.checks import check_locally, failures, line
from harness.wait import eventually


def test_a_preflight_of_a_good_machine_fails_nowhere_also_without_a_broker(world, api, agent):
    checks = api.check(agent.cluster)
    assert not failures(checks)
    assert "can be started" in line(checks, "muster-supervisor").seen
    code, printed = check_locally(agent)
    assert code == 0, printed
    assert "ok      muster-supervisor" in printed
    assert printed.endswith("0 fail, 0 skipped\n")


def test_the_local_preflight_exits_with_1_on_a_failure(world, broker):
    del broker
    agent = world.make_agent("box", config="machines:\n  supervisor: /nonexistent\n")
    code, printed = check_locally(agent)
    assert code == 1, printed
    assert "supervisor" in printed
    assert not agent.journal.exists()


def test_a_description_shows_what_runs_have(world, api, agent):
    gate = world.gate()
    job = api.submit(script_spec(gate.script()))
    api.wait_run_state(job, job_pb2.RUN_STATE_RUNNING)
    answer = api.describe(agent.cluster)
    assert answer.cluster.name == agent.cluster
    assert answer.details.nodes[0].used_cpus == 1
    assert answer.details.pools[0].running_jobs == 1
    gate.open()
    api.wait_end(job)


def test_a_plan_shows_the_command_and_submits_nothing(api, agent):
    plans = api.plan(argv_spec("echo", "planned"))
    assert [plan.cluster for plan in plans] == [agent.cluster]
    assert "planned" in plans[0].submission
    assert plans[0].HasField("estimated_start_time")
    assert api.list_all() == []


def test_a_cluster_without_its_agent_cannot_be_asked(api, agent):
    agent.terminate()
    with pytest.raises(grpc.RpcError) as refused:
        api.check(agent.cluster)
    assert refused.value.code() == grpc.StatusCode.UNAVAILABLE
    with pytest.raises(grpc.RpcError) as unknown:
        api.check("nosuch")
    assert unknown.value.code() == grpc.StatusCode.NOT_FOUND
    assert error_info(unknown.value).reason == "NO_SUCH_CLUSTER"
    with pytest.raises(grpc.RpcError) as nowhere:
        api.plan(argv_spec("true"))
    assert error_info(nowhere.value).reason == "NO_CLUSTER_CONNECTED"


def test_an_agent_that_dies_over_a_question_fails_it_at_once(world, api, agent):
    agent.pause()
    future = api.clusters.DescribeCluster.future(
        clusters_service_pb2.DescribeClusterRequest(name=agent.cluster), timeout=CALL_TIMEOUT_S)
    agent.kill()
    assert future.code() == grpc.StatusCode.UNAVAILABLE


def fill(world, api):
    """A job that has all cores, and its gate."""
    gate = world.gate()
    spec = script_spec(gate.script())
    spec.resources.cpu_millis = 8000
    job = api.submit(spec)
    api.wait_run_state(job, job_pb2.RUN_STATE_RUNNING)
    return job, gate


def wait_reason(api, job, words):
    eventually(lambda: words in api.get(job).state_reason.message, f"job {job} waits for \"{words}\"")


def test_a_held_job_waits_on_its_machine_also_over_restarts_until_it_is_released(world, api, agent):
    filler, gate = fill(world, api)
    job = api.submit(argv_spec("true"))
    wait_reason(api, job, "waiting for")
    assert api.hold(job)[0].held
    wait_reason(api, job, "held")
    agent.restart()
    wait_reason(api, job, "held")
    gate.open()
    api.wait_state(filler, SUCCEEDED)
    other = api.submit(argv_spec("true"))
    api.wait_state(other, SUCCEEDED)
    assert api.get(job).state == job_pb2.JOB_STATE_PENDING
    api.release(job)
    api.wait_state(job, SUCCEEDED)


def test_a_held_job_can_be_canceled(world, api, agent):
    filler, gate = fill(world, api)
    job = api.submit(argv_spec("true"))
    wait_reason(api, job, "waiting for")
    api.hold(job)
    wait_reason(api, job, "held")
    api.cancel(job)
    api.wait_state(job, CANCELED)
    gate.open()
    api.wait_state(filler, SUCCEEDED)
