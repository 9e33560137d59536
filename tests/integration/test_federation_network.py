"""A remote broker across a network: real TLS, tokens that end, and a database of yesterday."""

import shutil
import socket

import pytest

from muster.v1 import cluster_pb2, facts_pb2

from harness.api import FAILED, RUNNING, SUCCEEDED, script_spec
from harness.wait import eventually

# The agent gives a job that the remote broker lacks up after a minute.
ABSENCE_DEADLINE_S = 180


class Far:
    """A broker with a network listener, and a cluster of its own."""

    def __init__(self, world, state_dir="far"):
        self.world = world
        done = world.daemon_once("muster-broker", "init", state_dir=world.path(state_dir))
        assert done.returncode == 0, done.stderr
        # A port of its own: the agent finds the broker again after a restart.
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tls:127.0.0.1:{free.getsockname()[1]}"
        config = f"heartbeat_interval: 3s\ntls:\n  listen: {self.address.removeprefix('tls:')}\n"
        self.broker = world.make_broker(config=config, state_dir=world.path(state_dir)).start()
        self.api = world.api(self.broker)
        self.cli("project", "create", "guests")
        self.cli("project", "add", "guests", "near-site", "--role", "submitter")
        self.machine = world.make_agent(f"box-{state_dir}", broker=self.broker).start()

    @property
    def ca_file(self):
        return self.broker.state_dir / "ca" / "ca.pem"

    def cli(self, *args, **kwargs):
        return self.world.cli(*args, env={"MUSTER_BROKER": self.broker.address}, **kwargs)

    def token(self, name, user="near-site", role="submitter"):
        return self.cli("token", "create", name, "--user", user, "--role", role).stdout.strip()

    def revoke(self, name):
        self.cli("token", "revoke", name)

    def jobs(self):
        return self.api.list_all(include_spec=True)


@pytest.fixture
def near(world):
    """The broker of the people here."""
    return world.make_broker().start()


@pytest.fixture
def far(world, near):
    return Far(world)


@pytest.fixture
def api(world, near):
    return world.api(near)


def bridge(world, far, token, ca_file=None):
    """The agent between the brokers, which is not started yet."""
    config = (f"muster:\n  address: {far.address}\n  ca_file: {ca_file or far.ca_file}\n"
              f"  token_file: {write_token(world, token)}\n  project: guests\n")
    return world.make_agent("far", kind="muster", config=config, state_dir=world.path("bridge"))


def write_token(world, token):
    fresh = world.write("token.new", token + "\n")
    fresh.chmod(0o600)
    return fresh.rename(world.path("token"))


def faults(api):
    """Texts of what the preflight finds wrong."""
    return " ".join(f"{check.seen} {check.remedy}" for check in api.check("far") if check.result != cluster_pb2.CHECK_RESULT_OK)


def test_a_job_crosses_a_network_by_tls_and_token(world, api, far):
    bridge(world, far, far.token("near")).start()
    job = api.submit(script_spec("echo out; echo err >&2"))
    end = api.wait_end(job)
    assert end.state == SUCCEEDED, end
    assert (api.stdout(job), api.stderr(job)) == (b"out\n", b"err\n")
    assert [(one.user, one.project) for one in far.jobs()] == [("near-site", "guests")]
    assert faults(api) == ""


def test_a_token_that_was_revoked_is_replaced_in_its_file(world, api, far):
    agent = bridge(world, far, far.token("first")).start()
    gate = world.gate()
    running = api.submit(script_spec(gate.script()))
    api.wait_state(running, RUNNING)
    far.revoke("first")
    eventually(lambda: "`muster token create`" in faults(api), "the preflight says what to do")
    waiting = api.submit(script_spec("echo later"))
    gate.open()
    world.pause(1)  # for a launch that would be wrong
    assert len(far.jobs()) == 1
    write_token(world, far.token("second"))
    assert [api.wait_end(job).state for job in (running, waiting)] == [SUCCEEDED, SUCCEEDED]
    assert len(far.jobs()) == 2 and len(api.get(running).runs) == 1
    assert agent.log().count("feed_lost") <= 2  # as the connection is cut, and as the token is refused


def test_a_broker_whose_certificate_is_of_another_ca_is_not_believed(world, api, far):
    other = Far(world, "other")
    agent = bridge(world, far, far.token("near"), ca_file=other.ca_file)
    agent.launch()
    eventually(lambda: "certificate" in agent.log(), "the agent says so", alive=agent.check_alive)
    assert far.jobs() == [] and other.jobs() == []


def test_a_right_that_lacks_there_is_waited_for(world, api, far):
    bridge(world, far, far.token("reader", user="reader", role="viewer")).start()
    job = api.submit(script_spec("true"))
    eventually(lambda: "may not" in str(api.get(job).state_reason), "the job says which right lacks")
    assert far.jobs() == []
    far.cli("project", "add", "guests", "reader", "--role", "submitter")
    end = api.wait_end(job)
    assert end.state == SUCCEEDED and len(end.runs) == 1, end


def test_a_database_of_yesterday_loses_its_jobs_and_gives_none_to_another(world, api, far):
    bridge(world, far, far.token("near")).start()
    far.broker.terminate()
    shutil.copytree(far.broker.state_dir, world.path("yesterday"), symlinks=True, ignore=shutil.ignore_patterns("*.sock"))
    far.broker.start()
    gate = world.gate()
    lost = api.submit(script_spec(gate.script()))
    api.wait_state(lost, RUNNING)
    number = far.jobs()[0].id
    far.machine.kill()
    far.broker.kill()
    shutil.rmtree(far.broker.state_dir)
    shutil.copytree(world.path("yesterday"), far.broker.state_dir, symlinks=True)
    far.broker.start()
    stranger = far.api.submit(script_spec("true"))
    assert stranger == number
    end = api.wait_end(lost, deadline_s=ABSENCE_DEADLINE_S)
    assert end.state == FAILED and end.failure.code == facts_pb2.FAILURE_CODE_LOST, end
    gate.open()
