"""Runs that wait in a cluster's queue come back to the broker, and no program runs twice."""

import pytest

from muster.v1 import job_pb2, move_jobs_pb2

from harness.api import CALL_TIMEOUT_S, SUCCEEDED, script_spec
from harness.wait import eventually

PENDING = job_pb2.JOB_STATE_PENDING
RUNNING = job_pb2.JOB_STATE_RUNNING
WITHDRAWN = job_pb2.TRANSITION_KIND_WITHDRAWN


def ledger_spec(ledger, gate=None, **fields):
    """A job that takes all cores of its machine, and writes a line into the ledger when it starts."""
    wait = gate.script() if gate else ""
    spec = script_spec(f"echo $MUSTER_JOB_ID >>{ledger}\n{wait}", **fields)
    spec.resources.cpu_millis = 8000
    return spec


def move(api, *job_ids, **fields):
    return api.jobs.MoveJobs(move_jobs_pb2.MoveJobsRequest(job_ids=job_ids, **fields), timeout=CALL_TIMEOUT_S)


def kinds(api, job):
    return [step.kind for step in api.transitions(job)]


def waits_on(api, job, cluster):
    def look():
        seen = api.get(job)
        return (
            seen.cluster == cluster and seen.runs and seen.runs[-1].state == job_pb2.RUN_STATE_PENDING,
            seen,
        )

    eventually(lambda: look()[0], f"job {job} waits on {cluster}")


def count(ledger):
    lines = ledger.read_text().split()
    return {line: lines.count(line) for line in lines}


@pytest.fixture
def full(world, broker, agent, api):
    """A cluster with one run that runs and one that waits."""
    del broker
    ledger, gate = world.path("ledger"), world.gate()
    runs = api.submit(ledger_spec(ledger, gate))
    api.wait_state(runs, RUNNING)
    waits = api.submit(ledger_spec(ledger))
    waits_on(api, waits, agent.cluster)
    return ledger, gate, runs, waits


def test_a_drain_moves_what_waits_and_leaves_what_runs(world, agent, api, full):
    ledger, gate, runs, waits = full
    other = world.make_agent("other").start()
    world.cli("clusters", "drain", agent.cluster, "--reason", "new room")
    api.wait_state(waits, SUCCEEDED)
    moved = api.get(waits)
    assert moved.cluster == other.cluster and len(moved.runs) == 2
    assert moved.runs[0].state == job_pb2.RUN_STATE_CANCELED and not moved.runs[0].HasField("start_time")
    assert job_pb2.TRANSITION_KIND_WITHDRAWAL_REQUESTED in kinds(api, waits) and WITHDRAWN in kinds(api, waits)
    assert "is drained by" in world.cli("events", str(waits)).stdout
    assert api.get(runs).state == RUNNING
    gate.open()
    api.wait_state(runs, SUCCEEDED)
    assert api.get(runs).cluster == agent.cluster
    assert count(ledger) == {str(runs): 1, str(waits): 1}
    world.cli("clusters", "uncordon", agent.cluster)
    eventually(lambda: not api.cluster(agent.cluster).HasField("cordon"), "the drain is over")


def test_a_moved_job_goes_back_to_the_queue_and_runs_once(world, agent, api, full):
    ledger, gate, runs, waits = full
    told = world.cli("move", str(runs), str(waits), "--reason", "try again").stderr
    assert f"job {runs} waits in no cluster's queue" in told
    eventually(lambda: len(api.get(waits).runs) == 2, "it has come back")
    assert api.get(runs).state == RUNNING
    gate.open()
    api.wait_state(waits, SUCCEEDED)
    assert count(ledger) == {str(runs): 1, str(waits): 1}
    trial = move(api, filter="state = PENDING", validate_only=True)
    assert trial.matched_count == 0
    del agent


def test_a_broker_that_is_killed_in_the_middle_moves_on(world, broker, agent, api, full):
    ledger, gate, runs, waits = full
    # The agent stands still, so that the withdrawal cannot be over.
    agent.pause()
    move(api, waits)
    assert api.get(waits).HasField("withdrawal")
    assert "taken back" in world.cli("why", str(waits)).stdout
    broker.kill()
    broker.start()
    assert api.get(waits).withdrawal.cause != 0
    agent.resume()
    eventually(lambda: len(api.get(waits).runs) == 2, "it has come back")
    gate.open()
    for job in (runs, waits):
        api.wait_state(job, SUCCEEDED)
    assert count(ledger) == {str(runs): 1, str(waits): 1}


def test_a_run_moves_by_itself_to_a_cluster_that_has_had_room(world, agent, api, full):
    ledger, gate, runs, waits = full
    other = world.make_agent("other").start()
    api.wait_state(waits, SUCCEEDED)
    assert api.get(waits).cluster == other.cluster
    assert "has had room" in world.cli("events", str(waits)).stdout
    gate.open()
    api.wait_state(runs, SUCCEEDED)
    assert count(ledger) == {str(runs): 1, str(waits): 1}
    del agent
