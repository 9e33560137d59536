"""Clusters that are lost: leases, fences, and the jobs that fail over. Two agents on this machine are two clusters."""

import pathlib

import grpc
import pytest
from muster.v1 import cluster_loss_pb2, facts_pb2, job_pb2

from harness.api import SUCCEEDED, argv_spec, script_spec
from harness.hosts import SshCluster
from harness.wait import eventually

WAIT = cluster_loss_pb2.CLUSTER_LOSS_POLICY_WAIT
WHEN_FENCED = cluster_loss_pb2.CLUSTER_LOSS_POLICY_FAIL_OVER_WHEN_FENCED
NOW = cluster_loss_pb2.CLUSTER_LOSS_POLICY_FAIL_OVER_NOW

# A busy machine does not miss such a lease, and a short grace makes the fence delay short.
BROKER_CONFIG = "heartbeat_interval: 1s\nlease_ms: 8000\n"
AGENT_CONFIG = "machines:\n  cpus: 8\n  cancel_grace: 1s\n"

# Writes down when it begins, and whether an earlier run of it lives then; ends once the gate is open. It heeds no TERM.
PROGRAM = """trap '' TERM
if [ -e {pid} ] && kill -0 "$(cat {pid})"; then echo "overlap $MUSTER_RUN" >>{ledger}; fi
echo $$ >{pid}
echo "begin $MUSTER_RUN $MUSTER_CLUSTER" >>{ledger}
{gate}
"""


class Pair:
    """A broker and two clusters, `first` of which has the job."""

    def __init__(self, world):
        self.world = world
        self.broker = world.make_broker(config=BROKER_CONFIG).start()
        self.api = world.api()
        self.first = world.make_agent("first", config=AGENT_CONFIG).start()
        self.gate = world.gate()
        self.ledger = world.path("ledger")
        self.second = None

    def start_job(self, policy):
        """A job that runs on the first cluster, before there is the second one."""
        script = PROGRAM.format(ledger=self.ledger, gate=self.gate.script(), pid=self.world.path("pid"))
        spec = script_spec(script, on_cluster_loss=policy)
        job = self.api.submit(spec)
        eventually(lambda: self.begins(1), "the program runs")
        self.second = self.world.make_agent("second", config=AGENT_CONFIG).start()
        return job

    def begins(self, count):
        """Tells whether the program has begun so often."""
        return self.ledger.exists() and self.ledger.read_text().count("begin") >= count

    def pid_of(self, job, run=0):
        return int(self.api.get(job).runs[run].external_id)


@pytest.fixture
def pair(world):
    return Pair(world)


@pytest.mark.parametrize("fate", ["killed", "stopped"])
def test_a_job_that_is_fenced_never_runs_twice_at_a_time(pair, fate):
    job = pair.start_job(WHEN_FENCED)
    pid = pair.pid_of(job)
    if fate == "killed":
        pair.first.kill()
    else:
        pair.first.pause()
    eventually(lambda: pair.api.get(job).state_reason.code == facts_pb2.STATE_REASON_CODE_CLUSTER_LOST,
               "the broker misses the cluster")
    lost = pair.api.get(job)
    assert lost.runs[0].HasField("lease_end_time")
    assert lost.state_reason.HasField("until") and lost.state_reason.until.seconds > lost.runs[0].lease_end_time.seconds
    assert "another run follows from" in pair.world.cli("why", str(job)).stdout

    eventually(lambda: pair.begins(2), "the program runs on the other cluster")
    assert "overlap" not in pair.ledger.read_text()
    assert not pair.world.process_lives(pid)
    moved = pair.api.get(job)
    assert moved.cluster == "second" and [run.number for run in moved.runs] == [1, 2]
    assert moved.runs[0].state == job_pb2.RUN_STATE_LOST
    assert moved.runs[0].failure.code == facts_pb2.FAILURE_CODE_CLUSTER_LOST

    # What comes back late is refused, and the agent lets go of it.
    if fate == "killed":
        pair.first.start()
    else:
        pair.first.resume()
    eventually(lambda: pair.api.connected("first"), "the first cluster is back")
    key = moved.runs[0].run_key
    eventually(lambda: not (pair.first.run_directory(key) / "spec").exists(), "the first cluster lets the run go")
    pair.gate.open()
    pair.api.wait_state(job, SUCCEEDED)
    end = pair.api.get(job)
    assert end.runs[0].state == job_pb2.RUN_STATE_LOST and end.runs[1].state == job_pb2.RUN_STATE_SUCCEEDED
    assert pair.ledger.read_text().count("begin") == 2 and "overlap" not in pair.ledger.read_text()
    assert "failed over" in pair.world.cli("events", str(job)).stdout


def test_a_job_that_fails_over_now_does_not_wait_for_the_fence(pair):
    job = pair.start_job(NOW)
    pid = pair.pid_of(job)
    pair.first.kill()
    eventually(lambda: pair.begins(2), "the program runs on the other cluster")
    eventually(lambda: "overlap" in pair.ledger.read_text(), "the first run still lives, as its user has allowed")
    pair.first.start()
    eventually(lambda: not pair.world.process_lives(pid), "the agent stops the run that was given up")
    pair.gate.open()
    pair.api.wait_state(job, SUCCEEDED)
    assert pair.api.get(job).cluster == "second"


def test_a_job_that_waits_stays_with_its_cluster(pair):
    moves = pair.api.submit(script_spec(pair.gate.script(), on_cluster_loss=WHEN_FENCED))
    job = pair.start_job(WAIT)
    pair.first.kill()
    eventually(lambda: pair.api.get(moves).cluster == "second", "the other job moves")
    left = pair.api.get(job)
    assert left.state == job_pb2.JOB_STATE_RUNNING and len(left.runs) == 1
    assert left.state_reason.code == facts_pb2.STATE_REASON_CODE_AGENT_DISCONNECTED
    pair.first.start()
    pair.gate.open()
    pair.api.wait_state(job, SUCCEEDED)
    assert pair.ledger.read_text().count("begin") == 1


def test_a_cluster_that_is_back_in_time_keeps_its_runs(pair):
    job = pair.start_job(WHEN_FENCED)
    pair.first.restart()
    pair.broker.restart()
    eventually(lambda: pair.api.connected("first"), "the first cluster is back")
    pair.gate.open()
    pair.api.wait_state(job, SUCCEEDED)
    assert len(pair.api.get(job).runs) == 1


def test_the_command_line_shows_fences_and_refuses_what_is_no_policy(pair):
    assert "after the end of a lease" in pair.world.cli("clusters", "first").stdout
    bad = pair.world.cli("run", "--on-cluster-loss", "never", "--", "true", check=False)
    assert bad.returncode == 2 and "wait, fail_over_when_fenced or fail_over_now" in bad.stderr
    file = pair.world.write("job.yaml", "name: it\nrun: 'true'\non_cluster_loss: fail_over_when_fenced\n")
    job = pair.world.cli("submit", file).stdout.split()[-1]
    assert "fail_over_when_fenced" in pair.world.cli("show", job).stdout
    wrong = pair.world.write("wrong.yaml", "run: 'true'\non_cluster_loss: never\n")
    refused = pair.world.cli("submit", wrong, check=False)
    assert refused.returncode != 0 and "is not one of wait, fail_over_when_fenced" in refused.stderr
    with pytest.raises(grpc.RpcError) as error:
        pair.api.submit(argv_spec("true", on_cluster_loss=17))
    assert "on_cluster_loss" in error.value.details()


def test_a_lease_that_is_too_short_beside_heartbeats_is_refused(world):
    config = world.write("short.yaml", "heartbeat_interval: 5s\nlease_ms: 4000\n")
    refused = world.daemon_once("muster-broker", "--config", config)
    assert refused.returncode == 2 and "lease_ms" in refused.stderr and "15000" in refused.stderr
    assert pathlib.Path(config).exists()


def test_a_host_over_ssh_stops_a_run_whose_agent_is_gone(world):
    world.make_broker(config=BROKER_CONFIG).start()
    api = world.api()
    cluster = SshCluster(world, 1)
    try:
        agent = cluster.make_agent(more="  cancel_grace: 1s\n").start()
        mark = world.path("mark")
        job = api.submit(script_spec(f"echo $$ >{mark}\nexec sleep 1000", on_cluster_loss=WHEN_FENCED))
        eventually(lambda: mark.exists() and mark.read_text().strip(), "the program runs")
        pid = int(mark.read_text())
        agent.kill()
        eventually(lambda: not world.process_lives(pid), "its host stops it")
        eventually(lambda: api.get(job).state == job_pb2.JOB_STATE_QUEUED, "the broker gives the run up")
        assert api.get(job).runs[0].failure.code == facts_pb2.FAILURE_CODE_CLUSTER_LOST
        agent.start()
        eventually(lambda: len(api.get(job).runs) == 2, "another run follows")
    finally:
        cluster.close()
