"""A job of a higher priority takes the room of a preemptible one, which runs again later, on a real machine."""

from muster.v1 import job_pb2, withdrawal_pb2

from harness.api import CANCELED, SUCCEEDED, script_spec
from harness.wait import eventually

RUNNING = job_pb2.JOB_STATE_RUNNING
QUEUED = job_pb2.JOB_STATE_QUEUED
PENDING = job_pb2.JOB_STATE_PENDING
PREEMPTED = job_pb2.TRANSITION_KIND_PREEMPTED


def whole_machine(text, **fields):
    spec = script_spec(text, **fields)
    spec.resources.cpu_millis = 8000
    return spec


def low_spec(world, gate, ledger):
    """A preemptible job: its first run lasts until somebody ends it, the next one until the gate is open."""
    mark = world.path("has-run")
    return whole_machine(
        f"""
        trap 'echo term >>{ledger}; exit 3' TERM
        echo start >>{ledger}
        if [ -e {mark} ]; then {gate.script()}; echo done >>{ledger}; exit 0; fi
        touch {mark}
        sleep 1000 & wait $!
        """,
        preemptible=True,
    )


def test_a_preemptible_job_makes_room_and_runs_again(world, broker, agent, api):
    del broker, agent
    ledger, low_gate, high_gate = world.path("ledger"), world.gate(), world.gate()
    low = api.submit(low_spec(world, low_gate, ledger))
    api.wait_state(low, RUNNING)
    eventually(lambda: world.path("has-run").exists(), "the first run is under way")
    high = api.submit(whole_machine(high_gate.script(), priority=10))
    api.wait_state(high, RUNNING)
    seen = api.get(low)
    # It may wait at the cluster already.
    assert seen.state in (QUEUED, PENDING) and seen.runs[0].state == job_pb2.RUN_STATE_CANCELED
    assert ledger.read_text().split() == ["start", "term"]
    events = world.cli("events", str(low)).stdout
    assert "preempted" in events and f"job {high} of priority 10 takes its room" in events
    high_gate.open()
    api.wait_state(high, SUCCEEDED)
    api.wait_state(low, RUNNING)
    low_gate.open()
    assert len(api.wait_state(low, SUCCEEDED).runs) == 2
    assert ledger.read_text().split() == ["start", "term", "start", "done"]
    assert PREEMPTED in [step.kind for step in api.transitions(low)]


def test_a_job_that_is_not_preemptible_keeps_its_room(world, broker, agent, api):
    del broker, agent
    low_gate, high_gate = world.gate(), world.gate()
    low = api.submit(whole_machine(low_gate.script()))
    api.wait_state(low, RUNNING)
    high = api.submit(whole_machine(high_gate.script(), priority=10))
    eventually(lambda: api.get(high).state == job_pb2.JOB_STATE_PENDING, "the urgent job waits at the cluster")
    low_gate.open()
    assert len(api.wait_state(low, SUCCEEDED).runs) == 1
    high_gate.open()
    api.wait_state(high, SUCCEEDED)


def test_a_cancel_counts_although_the_run_is_being_preempted(world, broker, agent, api):
    del broker
    gate = world.gate()
    # The program takes its time to end, so that the cancel comes in between.
    low = api.submit(whole_machine(f"trap '{gate.script()}; exit 3' TERM; touch {world.path('up')}; sleep 1000 & wait $!",
                                   preemptible=True))
    api.wait_state(low, RUNNING)
    eventually(lambda: world.path("up").exists(), "the program waits")
    high = api.submit(whole_machine("true", priority=10))
    asked = eventually(lambda: api.get(low).HasField("withdrawal") and api.get(low), "the preemption")
    assert asked.withdrawal.cause == withdrawal_pb2.WITHDRAWAL_CAUSE_PREEMPTION
    assert asked.withdrawal.for_job == high
    assert f"job {high} comes first and takes its room" in world.cli("why", str(low)).stdout
    world.cli("cancel", str(low))
    gate.open()
    assert len(api.wait_state(low, CANCELED).runs) == 1
    api.wait_state(high, SUCCEEDED)
    del agent


def test_the_flag_and_the_key_of_a_job_file_say_the_same(world, broker, api):
    del broker
    flag = world.cli("run", "--hold", "--preemptible", "-q", "--", "true").stdout.split()[-1]
    path = world.write("job.yaml", "run: 'true'\npreemptible: true\n")
    file = world.cli("submit", "--hold", "-q", path).stdout.split()[-1]
    for job in (flag, file):
        assert api.get(int(job)).spec.preemptible
