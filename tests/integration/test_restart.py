"""Broker and agent die at any moment of a job's life: the job runs once, and nothing that was said is lost.

Each job appends one line to a file for each time that it really runs, so that a second launch cannot hide.
"""

import hashlib
import random

import grpc
from muster.v1 import job_pb2, jobs_service_pb2
import pytest

from harness.api import CANCELED, SUCCEEDED, argv_spec, error_info, retry_delay_s
from harness.trio import VICTIMS, Trio
from harness.wait import DEADLINE_S, eventually


@pytest.fixture
def trio(world, broker, agent, api):
    return Trio(world, broker, agent, api)


@pytest.mark.parametrize("victim", ["broker", "both"])
def test_killed_while_a_job_is_queued(trio, victim):
    trio.agent.kill()
    eventually(lambda: not trio.api.connected(trio.agent.cluster), "the broker has noticed")
    job_id = trio.api.submit(trio.counting())
    assert trio.api.get(job_id).state == job_pb2.JOB_STATE_QUEUED
    trio.broker.kill()
    trio.broker.start()
    assert trio.api.get(job_id).state == job_pb2.JOB_STATE_QUEUED
    if victim == "both":
        trio.broker.restart()
    trio.agent.start()
    trio.check_ran_once(job_id)


@pytest.mark.parametrize("victim", VICTIMS)
def test_killed_while_a_job_is_assigned(trio, victim):
    """The agent is frozen: what the broker sends is on the wire or in a buffer, and nobody has acted on it."""
    # The broker has asked for the obstacles of such a job then; a frozen agent would let it wait with the next
    # one.
    trio.api.submit(trio.counting(), validate_only=True)
    trio.agent.pause()
    job_id = trio.api.submit(trio.counting())
    trio.api.wait_run_state(job_id, job_pb2.RUN_STATE_ASSIGNED)
    trio.kill(victim)
    trio.agent.process and trio.agent.resume()
    trio.start(victim)
    trio.check_ran_once(job_id)


@pytest.mark.parametrize("victim", VICTIMS)
def test_killed_while_a_job_waits_on_the_cluster(trio, victim):
    gate = trio.world.gate()
    blocker = trio.counting(gate.script())
    blocker.resources.cpu_millis = 8000
    first = trio.api.submit(blocker)
    trio.api.wait_state(first, job_pb2.JOB_STATE_RUNNING)
    second = trio.api.submit(blocker)
    trio.api.wait_state(second, job_pb2.JOB_STATE_PENDING)
    trio.restart(victim)
    assert trio.runs_of(second) == 0
    gate.open()
    trio.check_ran_once(first)
    trio.check_ran_once(second)


@pytest.mark.parametrize("victim", VICTIMS)
def test_killed_while_a_job_runs(trio, victim):
    trio.check_a_running_job_survives(victim)


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_job_that_ends_while_nobody_looks(trio, victim):
    gate = trio.world.gate()
    ended = trio.world.path("ended")
    job_id = trio.api.submit(trio.counting(f"{gate.script()}\necho done; echo $$ > {ended}"))
    trio.api.wait_state(job_id, job_pb2.JOB_STATE_RUNNING)
    trio.kill(victim)
    gate.open()
    eventually(lambda: ended.exists() and ended.read_text(), "the job has written its last file")
    pid = int(ended.read_text())
    eventually(lambda: not trio.world.process_lives(pid), "the job has ended")
    trio.start(victim)
    trio.check_ran_once(job_id)
    assert trio.api.stdout(job_id) == b"done\n"


@pytest.mark.parametrize("victim", VICTIMS)
def test_killed_as_a_job_ends(trio, victim):
    gates = [trio.world.gate() for _ in range(8)]
    ids = [trio.api.submit(trio.counting(gate.script())) for gate in gates]
    for job_id in ids:
        trio.api.wait_state(job_id, job_pb2.JOB_STATE_RUNNING)
    for gate in gates:
        gate.open()
        trio.restart(victim)
    for job_id in ids:
        trio.check_ran_once(job_id)


@pytest.mark.parametrize("victim", VICTIMS)
def test_killed_while_logs_are_shipped(trio, victim):
    """16 MB: enough that shipping is under way when the blow falls, and that a wrong offset shows in the sum."""
    script = """
i=0
while [ $i -lt 160 ]; do
  seq -f "%019.0f" $((i * 5000)) $((i * 5000 + 4999))
  i=$((i + 1))
done
"""
    job_id = trio.api.submit(trio.counting(script))
    trio.api.wait_state(job_id, job_pb2.JOB_STATE_RUNNING, SUCCEEDED)

    def some_bytes():
        data, _ = trio.api.read_log(job_id)
        return data
    eventually(some_bytes, "some of the log is in the archive")
    trio.restart(victim)
    trio.check_ran_once(job_id)
    wanted = hashlib.sha256(b"".join(b"%019d\n" % n for n in range(800_000))).hexdigest()
    assert hashlib.sha256(trio.api.stdout(job_id)).hexdigest() == wanted


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_wish_to_cancel_survives(trio, victim):
    gate = trio.world.gate()
    job_id = trio.api.submit(trio.counting(gate.script()))
    trio.api.wait_state(job_id, job_pb2.JOB_STATE_RUNNING)
    trio.agent.pause()
    trio.api.cancel(job_id, reason="no longer wanted")
    trio.kill(victim)
    trio.agent.process and trio.agent.resume()
    trio.start(victim)
    job = trio.api.wait_state(job_id, CANCELED)
    assert job.cancel_requested


def test_what_is_canceled_while_the_agent_is_dead_never_begins(trio):
    """The runs wait in the agent's own queue, and the machine is free when the agent comes back."""
    gate = trio.world.gate()
    blocker = trio.counting(gate.script())
    blocker.resources.cpu_millis = 8000
    first = trio.api.submit(blocker)
    trio.api.wait_state(first, job_pb2.JOB_STATE_RUNNING)
    queued = [trio.api.submit(blocker) for _ in range(2)]  # as many as the broker sends ahead
    for job_id in queued:
        trio.api.wait_state(job_id, job_pb2.JOB_STATE_PENDING)
    trio.agent.kill()
    for job_id in queued[1:]:
        trio.api.cancel(job_id)
    gate.open()
    trio.agent.start()
    for job_id in queued[1:]:
        trio.api.wait_state(job_id, CANCELED)
        assert trio.runs_of(job_id) == 0
    trio.check_ran_once(first)
    trio.check_ran_once(queued[0])


def test_a_follower_goes_on_over_a_restart_of_the_broker(trio):
    """The command line's, because following over a restart is what it promises."""
    gate = trio.world.gate()
    job_id = trio.api.submit(trio.counting(f"echo before; {gate.script()}; echo after"))
    follower = trio.world.cli_start("logs", "-f", job_id)
    eventually(lambda: b"before\n" in follower.output(), "the follower shows the beginning")
    trio.broker.restart()
    gate.open()
    trio.check_ran_once(job_id)
    assert follower.wait() == 0
    assert follower.output() == b"before\nafter\n"


def test_those_who_wait_go_on_when_the_broker_is_told_to_stop(trio):
    """A client calls again while the broker is still stopping, and that call is cut off."""
    gate = trio.world.gate()
    job_id = trio.api.submit(trio.counting(f"echo before; {gate.script()}; echo after"))
    waiters = [trio.world.cli_start(*words) for words in
               (("logs", "-f", job_id), ("wait", job_id), ("events", "-f", job_id))]
    eventually(lambda: b"before\n" in waiters[0].output(), "the follower shows the beginning")
    eventually(lambda: f"job {job_id} is RUNNING" in waiters[1].errors(), "the waiter waits")
    eventually(lambda: b"submitted" in waiters[2].output(), "the follower of events shows the beginning")
    assert trio.broker.terminate() == 0
    trio.broker.start()
    gate.open()
    trio.check_ran_once(job_id)
    assert [waiter.wait() for waiter in waiters] == [0, 0, 0]
    assert waiters[0].output() == b"before\nafter\n"


def test_numbers_and_request_ids_survive_the_broker(trio):
    first = trio.api.submit(argv_spec("true"), "one")
    trio.api.wait_state(first, SUCCEEDED)
    trio.broker.restart()
    assert trio.api.submit(argv_spec("true"), "one") == first
    assert trio.api.submit(argv_spec("true"), "two") > first


def test_a_broker_that_is_told_to_stop_does_so_cleanly(trio):
    gate = trio.world.gate()
    job_id = trio.api.submit(trio.counting(gate.script()))
    trio.api.wait_state(job_id, job_pb2.JOB_STATE_RUNNING)
    assert trio.broker.terminate() == 0
    trio.broker.start()
    eventually(lambda: trio.api.connected(trio.agent.cluster), "the agent is back")
    gate.open()
    trio.check_ran_once(job_id)


def test_a_broker_that_is_told_to_stop_tells_those_who_watch_and_follow(trio):
    gate = trio.world.gate()
    job_id = trio.api.submit(trio.counting(f"echo before; {gate.script()}"))
    changes = trio.api.watch(job_ids=[job_id], after=None)
    assert next(changes).HasField("heartbeat")
    log = trio.api.jobs.ReadLog(jobs_service_pb2.ReadLogRequest(job_id=job_id, follow=True), timeout=DEADLINE_S)
    assert b"before\n" in next(answer.data for answer in log if answer.data)
    assert trio.broker.terminate() == 0
    for stream in (changes, log):
        with pytest.raises(grpc.RpcError) as caught:
            for _ in stream:
                pass
        assert error_info(caught.value).reason == "SHUTTING_DOWN", caught.value
        assert retry_delay_s(caught.value) > 0
    trio.broker.start()
    gate.open()
    trio.check_ran_once(job_id)


def test_an_agent_that_is_told_to_stop_leaves_its_jobs_alone(trio):
    gate = trio.world.gate()
    job_id = trio.api.submit(trio.counting(gate.script()))
    trio.api.wait_state(job_id, job_pb2.JOB_STATE_RUNNING)
    assert trio.agent.terminate() == 0
    trio.agent.start()
    gate.open()
    trio.check_ran_once(job_id)


def test_an_agent_that_lost_its_journal_finds_its_runs_again(trio):
    gate = trio.world.gate()
    job_id = trio.api.submit(trio.counting(gate.script()))
    trio.api.wait_state(job_id, job_pb2.JOB_STATE_RUNNING)
    trio.agent.kill()
    for path in trio.agent.state_dir.glob("journal*"):
        path.unlink()
    trio.agent.start()
    gate.open()
    trio.check_ran_once(job_id)


@pytest.mark.slow
def test_blows_at_random_moments(trio, fault_seed):
    """Jobs flow while broker and agent die again and again; every job still runs exactly once."""
    dice = random.Random(fault_seed)
    ids = []
    for round_number in range(10):
        for i in range(5):
            name = f"{fault_seed}-{round_number}-{i}"
            spec = trio.counting(f"echo log of {name}; sleep {dice.choice(['0', '0.02', '0.1', '0.3'])}")
            ids.append(submit_until_accepted(trio.api, spec, name))
        # The moment of the blow is what varies; nothing is synchronised by this pause.
        trio.world.pause(dice.uniform(0, 0.3))
        trio.restart(dice.choice(VICTIMS))
    assert len(set(ids)) == 50
    for job_id in ids:
        trio.check_ran_once(job_id)


def submit_until_accepted(api, spec, request_id):
    """Submits as a careful client does: the same request_id until the broker says yes."""
    def attempt():
        try:
            return api.submit(spec, request_id)
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.UNAVAILABLE:
                return None
            raise
    return eventually(attempt, f"request {request_id} is accepted")
