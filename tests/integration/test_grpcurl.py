"""grpcurl (https://github.com/fullstorydev/grpcurl), which knows nothing of Muster but what reflection tells it."""

import json
import pathlib
import re
import subprocess

import pytest

from harness.api import SUCCEEDED

GRPCURL = pathlib.Path(__file__).parents[1] / "support" / "grpcurl"
# The first call on a machine builds it.
BUILD_TIMEOUT_S = 900
CALL_TIMEOUT_S = 60
SERVICES = {
    "muster.v1.JobsService", "muster.v1.ClustersService", "muster.v1.FilesService", "muster.v1.IdentityService",
    "muster.v1.ProjectsService",
    "muster.agent.v1.AgentLinkService", "muster.agent.v1.LogLinkService", "muster.agent.v1.FileLinkService",
    "grpc.health.v1.Health",
}
TYPE = re.compile(r"(?<![\w.])\.([a-z][\w.]*\.[A-Z]\w*)")


@pytest.fixture(scope="session", name="program")
def grpcurl_program():
    subprocess.run([GRPCURL, "-version"], timeout=BUILD_TIMEOUT_S, capture_output=True, check=True)
    return GRPCURL


@pytest.fixture(name="served")
def served_broker(world):
    """A broker with an agent that can be reached by socket and by TCP."""
    broker = world.make_broker("--listen", "127.0.0.1:0").start()
    world.make_agent().start()
    return broker


@pytest.fixture(params=["unix", "tcp"], name="grpcurl")
def grpcurl_of_the_broker(program, served, request):
    """Calls grpcurl with the broker's address behind its options; what it prints is returned. A word on standard error is
    a complaint."""
    def call(*words, options=()):
        door = served.address if request.param == "unix" else f"127.0.0.1:{served.tcp_port()}"
        done = subprocess.run([program, "-plaintext", *options, door, *words], timeout=CALL_TIMEOUT_S, text=True,
                              capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), (words, done.stdout, done.stderr)
        return done.stdout

    return call


def test_it_lists_the_services_and_their_methods(grpcurl):
    services = set(grpcurl("list").split())
    assert services >= SERVICES
    for service in services:
        assert all(method.startswith(f"{service}.") for method in grpcurl("list", service).split()), service
    assert "muster.v1.JobsService.SubmitJob" in grpcurl("list", "muster.v1.JobsService").split()


def test_it_describes_every_service_and_every_message(grpcurl):
    told = {}
    waiting = set(grpcurl("list").split())
    while waiting:
        symbol = waiting.pop()
        told[symbol] = grpcurl("describe", symbol)
        waiting |= set(TYPE.findall(told[symbol])) - told.keys()
    assert "muster.v1.KubernetesSecurityContext is a message" in told["muster.v1.KubernetesSecurityContext"]
    assert "JOB_STATE_RUNNING = 3;" in told["muster.v1.JobState"]
    assert len([name for name in told if name.startswith("muster.v1.")]) > 80, sorted(told)
    assert any(name.startswith("muster.agent.v1.") for name in told)


@pytest.mark.parametrize("service", ["", "muster.v1.JobsService"])
def test_it_asks_for_the_health(grpcurl, service):
    answer = json.loads(grpcurl("grpc.health.v1.Health/Check", options=["-d", json.dumps({"service": service})]))
    assert answer == {"status": "SERVING"}


def test_a_job_is_submitted_in_json_watched_read_and_submitted_as_it_is_shown(grpcurl, world):
    def call(method, message):
        return grpcurl(f"muster.v1.JobsService/{method}", options=["-d", json.dumps(message)])

    spec = {"name": "from-json", "command": {"script": "echo $WHO"}, "env": {"WHO": "grpcurl"}, "time_limit": "600s",
            "resources": {"memory_bytes": str(1 << 30)}, "labels": {"team": "vision"}}
    number = json.loads(call("SubmitJob", {"spec": spec}))["job_id"]
    assert world.api().wait_state(int(number), SUCCEEDED)
    job = json.loads(call("GetJob", {"job_id": number}))["job"]
    assert job["spec"]["time_limit"] == "600s" and job["spec"]["labels"] == {"team": "vision"}
    log = call("ReadLog", {"job_id": number, "stream": "LOG_STREAM_STDOUT", "follow": True})
    assert "Z3JwY3VybAo=" in log  # "grpcurl\n"
    changes = call("WatchJobs", {"job_ids": [number], "beginning": {}, "until_terminal": True})
    assert "JOB_STATE_SUCCEEDED" in changes
    again = json.loads(call("SubmitJob", {"spec": job["spec"]}))["job_id"]
    assert json.loads(call("GetJob", {"job_id": again}))["job"]["spec"] == job["spec"]


def test_what_is_refused_is_told_with_its_field(program, served):
    done = subprocess.run([program, "-plaintext", "-format-error", "-d", '{"spec": {"priority": 5000}}',
                           served.address, "muster.v1.JobsService/SubmitJob"],
                          timeout=CALL_TIMEOUT_S, text=True, capture_output=True, check=False)
    assert done.returncode != 0
    assert "google.rpc.BadRequest" in done.stderr and "priority" in done.stderr, done.stderr
