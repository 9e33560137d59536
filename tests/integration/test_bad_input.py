"""Input that nobody should send, and faults of a disk: each brings a clear error, and nothing is lost."""

import os
import sqlite3
import subprocess
import threading

import grpc
from muster.agent.v1 import agent_link_pb2, log_link_pb2
from muster.v1 import cluster_pb2, job_pb2
import pytest

from harness.api import FAILED, SUCCEEDED, TERMINAL, argv_spec, bad_fields, error_info, script_spec
from harness.wait import eventually

PROTOCOL_VERSION = 1
# The time that a stream stays open which the broker is expected to end.
STREAM_S = 60


def refusal(call, code):
    """The error of a call that must be refused with this code."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    assert caught.value.code() == code, caught.value
    return caught.value


# ---- specs

BAD_SPECS = {
    "no command": (argv_spec(), "command"),
    "empty name of a program": (argv_spec(""), "command"),
    "NUL in an argument": (argv_spec("echo", "a\0b"), "command.argv.args[1]"),
    "argument too long": (argv_spec("echo", "x" * 131072), "command.argv.args[1]"),
    "too many arguments": (argv_spec("echo", *["x"] * 10001), "command.argv.args"),
    "name too long": (argv_spec("true", name="x" * 129), "name"),
    "control character in the name": (argv_spec("true", name="a\nb"), "name"),
    "project": (argv_spec("true", project="Not A Project"), "project"),
    "nodes": (argv_spec("true", nodes=10001), "nodes"),
    "priority": (argv_spec("true", priority=1001), "priority"),
    "variable's name": (argv_spec("true", env={"1A": "x"}), "env"),
    "variable of the loader": (argv_spec("true", env={"LD_PRELOAD": "x"}), "env"),
    "variable of Muster": (argv_spec("true", env={"MUSTER_JOB_ID": "x"}), "env"),
    "relative working directory": (argv_spec("true", working_directory="here"), "working_directory"),
    "label's key": (argv_spec("true", labels={"Key!": "x"}), "labels"),
    "label's value": (argv_spec("true", labels={"key": "x" * 64}), "labels"),
}


@pytest.mark.parametrize("case", BAD_SPECS)
def test_a_bad_field_is_named(api, case):
    spec, field = BAD_SPECS[case]
    error = refusal(lambda: api.submit(spec), grpc.StatusCode.INVALID_ARGUMENT)
    named = bad_fields(error)
    assert any(field in name for name in named), named
    assert all(named.values())
    assert not api.list_all()


def test_every_bad_field_is_named_at_once(api):
    spec = argv_spec("true", priority=5000, working_directory="here", name="x" * 129)
    error = refusal(lambda: api.submit(spec), grpc.StatusCode.INVALID_ARGUMENT)
    text = " ".join(bad_fields(error))
    assert all(field in text for field in ("priority", "working_directory", "name"))


def test_a_time_limit_out_of_range(api):
    for seconds in (-5, 36501 * 86400):
        spec = argv_spec("true")
        spec.time_limit.seconds = seconds
        error = refusal(lambda s=spec: api.submit(s), grpc.StatusCode.INVALID_ARGUMENT)
        assert any("time_limit" in field for field in bad_fields(error))


def test_a_field_of_a_later_version_is_refused_by_its_number(api):
    # Field 999 with the value 1, as a later version may have it.
    spec = type(argv_spec("true")).FromString(argv_spec("true").SerializeToString() + b"\xb8\x3e\x01")
    error = refusal(lambda: api.submit(spec), grpc.StatusCode.UNIMPLEMENTED)
    info = error_info(error)
    assert info.reason == "FIELD_NOT_HONOURED" and info.domain == "muster"
    assert "999" in info.metadata["field"]
    assert "999" in error.details()


def test_a_spec_over_the_limit_is_refused(api):
    spec = script_spec("# " + "x" * (1 << 20))
    error = refusal(lambda: api.submit(spec), grpc.StatusCode.INVALID_ARGUMENT)
    assert "1048576" in str(bad_fields(error)) or "1 MiB" in str(bad_fields(error))


def test_a_message_larger_than_grpc_takes_is_refused_and_the_broker_lives(api):
    spec = script_spec("# " + "x" * (20 << 20))
    refusal(lambda: api.submit(spec), grpc.StatusCode.RESOURCE_EXHAUSTED)
    assert api.healthy()


@pytest.mark.parametrize("count", [0, 10001])
def test_a_batch_of_a_wrong_size_is_refused(api, count):
    error = refusal(lambda: api.submit_many([argv_spec("true")] * count), grpc.StatusCode.INVALID_ARGUMENT)
    assert "requests" in bad_fields(error)


def test_bytes_that_are_no_message_are_refused(api):
    call = api.channel.unary_unary("/muster.v1.JobsService/SubmitJob")
    # gRPC answers this by itself, before any code of ours sees it; this is its choice of code.
    refusal(lambda: call(b"\xff\xff\xff\xff", timeout=60), grpc.StatusCode.UNIMPLEMENTED)
    assert api.healthy()


def test_a_used_request_id_with_another_spec_is_refused(api, agent):
    job_id = api.submit(argv_spec("true"), "the-name")
    error = refusal(lambda: api.submit(argv_spec("false"), "the-name"), grpc.StatusCode.ALREADY_EXISTS)
    assert "the-name" in error.details()
    assert error_info(error).domain == "muster"
    assert [job.id for job in api.list_all()] == [job_id]


def test_a_request_id_that_is_too_long(api):
    error = refusal(lambda: api.submit(argv_spec("true"), "x" * 129), grpc.StatusCode.INVALID_ARGUMENT)
    assert any("request_id" in field for field in bad_fields(error))


# ---- job files

BAD_FILES = {
    "unknown field": ("name: x\nrun: 'true'\ncolour: red\n", ["colour"], (3, 1)),
    "unknown field inside": ("run: 'true'\nresources:\n  cpus: 1\n  cppus: 2\n", ["cppus"], (4, 3)),
    "no YAML": ("command: [unclosed\n", [], (2, 1)),
    "wrong kind": ("run: 'true'\nresources: many\n", ["resources"], (2, 12)),
    "bad unit": ("run: 'true'\nresources:\n  memory: 16Q\n", ["16Q"], (3, 11)),
    "bad number": ("run: 'true'\nnodes: several\n", ["several"], (2, 8)),
    "twice the same": ("run: 'true'\nname: a\nname: b\n", ["name"], (3, 1)),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_job_file_is_named_with_line_and_column(world, broker, case):
    text, words, (line, column) = BAD_FILES[case]
    path = world.write("job.yaml", text)
    done = world.cli("submit", path, check=False)
    assert done.returncode in (1, 2)
    assert f"job.yaml:{line}:{column}" in done.stderr, done.stderr
    for word in words:
        assert word in done.stderr


def test_a_job_file_that_is_not_there(world, broker):
    done = world.cli("submit", "nowhere.yaml", check=False)
    assert done.returncode in (1, 2)
    assert "nowhere.yaml" in done.stderr


def test_a_job_file_that_explodes_is_refused(world, broker):
    lines = ["a: &a [x,x,x,x,x,x,x,x,x]"]
    lines += [f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]" for i in range(9)]
    path = world.write("bomb.yaml", "\n".join(lines))
    assert world.cli("submit", path, check=False).returncode in (1, 2)


def test_a_huge_job_file_is_refused(world, broker):
    path = world.write("huge.yaml", "command: |\n" + "  # filler\n" * 2_000_000)
    done = world.cli("submit", path, check=False)
    assert done.returncode in (1, 2)
    assert "huge.yaml" in done.stderr


# ---- agents

def connect(api, identity="elsewhere", **fields):
    """Says hello as an agent of the cluster `identity`; returns the stream of answers."""
    hello = agent_link_pb2.AgentHello(**{
        "protocol_version": PROTOCOL_VERSION, "cluster": "box", "kind": cluster_pb2.CLUSTER_KIND_MACHINES,
        "agent_version": "0", "journal_id": "another-journal", "max_active_runs": 10, **fields})
    if not hello.HasField("inventory"):
        hello.inventory.identity = identity
        hello.inventory.pools.add(name="default", is_default=True, available=True).node_groups.add(
            count=1, cpus=1, usable_count=1)

    def requests():
        yield agent_link_pb2.ConnectRequest(hello=hello)
        threading.Event().wait(STREAM_S)

    return api.agent_link.Connect(requests(), timeout=STREAM_S)


def test_an_agent_of_another_protocol_is_refused(api):
    error = refusal(lambda: next(connect(api, protocol_version=99)), grpc.StatusCode.FAILED_PRECONDITION)
    assert error_info(error).reason == "PROTOCOL_VERSION"
    assert "99" in error.details()


def test_a_second_agent_of_a_name_is_refused(api, agent):
    identity = api.cluster(agent.cluster).inventory.identity
    error = refusal(lambda: next(connect(api, identity)), grpc.StatusCode.ALREADY_EXISTS)
    assert error_info(error).reason == "NAME_CONNECTED"
    assert agent.cluster in error.details()
    assert api.connected(agent.cluster)


def test_an_agent_of_another_cluster_under_a_known_name_is_refused(api, agent):
    agent.kill()
    eventually(lambda: not api.connected(agent.cluster), "the broker has noticed")
    error = refusal(lambda: next(connect(api)), grpc.StatusCode.FAILED_PRECONDITION)
    assert error_info(error).reason == "WRONG_CLUSTER"


def test_an_agent_of_another_broker_is_refused(api):
    error = refusal(lambda: next(connect(api, instance="zzzz")), grpc.StatusCode.FAILED_PRECONDITION)
    assert error_info(error).reason == "WRONG_INSTANCE"


@pytest.mark.parametrize("fields", [{"cluster": "Not A Name"}, {"cluster": ""}, {"journal_id": ""}])
def test_a_malformed_hello_is_refused(api, fields):
    refusal(lambda: next(connect(api, **fields)), grpc.StatusCode.INVALID_ARGUMENT)


def test_a_stream_that_does_not_begin_with_hello_is_refused(api):
    beat = agent_link_pb2.ConnectRequest(heartbeat=agent_link_pb2.AgentHeartbeat())
    refusal(lambda: next(api.agent_link.Connect(iter([beat]), timeout=60)), grpc.StatusCode.INVALID_ARGUMENT)
    chunk = log_link_pb2.PushRequest(chunk=log_link_pb2.LogChunk(run_key="x"))
    refusal(lambda: next(api.log_link.Push(iter([chunk]), timeout=60)), grpc.StatusCode.INVALID_ARGUMENT)


def test_logs_of_an_agent_that_is_not_connected_are_refused(api):
    hello = log_link_pb2.PushRequest(hello=log_link_pb2.LogHello(
        protocol_version=PROTOCOL_VERSION, cluster="nobody", journal_id="none"))
    refusal(lambda: next(api.log_link.Push(iter([hello]), timeout=60)), grpc.StatusCode.FAILED_PRECONDITION)


def test_the_real_agent_says_so_when_its_name_is_taken(world, agent, api):
    second = world.make_agent(agent.cluster, state_dir=world.path("agent-second"))
    second.log_path = world.path("second.log")
    second.launch()
    eventually(lambda: agent.cluster in second.log() and "NAME_CONNECTED" in second.log(),
               "the second agent's log tells why it is refused")
    assert api.connected(agent.cluster)


# ---- flags and configuration files

@pytest.mark.parametrize("which", ["muster-broker", "muster-agent"])
def test_an_unknown_key_in_a_configuration_file_is_an_error(world, which):
    config = world.write("bad.yaml", "heartbeet_interval: 5s\n")
    done = world.daemon_once(which, "--config", config)
    assert done.returncode == 2
    assert "heartbeet_interval" in done.stderr and "bad.yaml:1" in done.stderr


@pytest.mark.parametrize("which", ["muster-broker", "muster-agent"])
@pytest.mark.parametrize("args", [["--no-such-flag"], ["--config", "/nonexistent.yaml"]])
def test_a_bad_flag_is_an_error(world, which, args):
    done = world.daemon_once(which, *args)
    assert done.returncode == 2
    assert args[-1] in done.stderr


@pytest.mark.parametrize("address", ["0.0.0.0:7777", "[::]:7777", "192.0.2.1:7777", "nonsense"])
def test_the_broker_listens_nowhere_else_without_tls(world, address):
    done = world.daemon_once("muster-broker", "--listen", address)
    assert done.returncode == 2
    assert address in done.stderr


def test_a_second_broker_on_one_state_directory_is_refused(world, broker, api):
    done = world.daemon_once("muster-broker", state_dir=broker.state_dir)
    assert done.returncode != 0
    assert str(broker.state_dir) in done.stderr
    assert api.healthy()


def test_a_state_directory_that_cannot_be_made(world):
    blocker = world.write("file", "not a directory")
    done = world.daemon_once("muster-broker", state_dir=blocker / "state")
    assert done.returncode != 0
    assert str(blocker) in done.stderr


# ---- broken files

def test_a_corrupt_database_is_refused_and_left_as_it_is(world, broker, api, agent):
    api.wait_end(api.submit(argv_spec("true")))
    broker.kill()
    database = broker.database
    for extra in database.parent.glob(database.name + "-*"):
        extra.unlink()
    database.write_bytes(b"this is no database" * 1000)
    before = database.read_bytes()
    done = world.daemon_once("muster-broker", state_dir=broker.state_dir)
    assert done.returncode != 0
    assert str(database) in done.stderr
    assert database.read_bytes() == before


def test_a_database_of_a_newer_version_is_refused(world, broker):
    broker.kill()
    database = broker.database
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA user_version = 9999")
    done = world.daemon_once("muster-broker", state_dir=broker.state_dir)
    assert done.returncode != 0
    assert "9999" in done.stderr


def test_a_corrupt_journal_is_refused_and_left_as_it_is(world, agent):
    agent.kill()
    journal = agent.journal
    for extra in journal.parent.glob(journal.name + "-*"):
        extra.unlink()
    journal.write_bytes(b"this is no journal" * 1000)
    agent.launch()
    assert agent.wait_exit() != 0
    assert str(journal) in agent.log()
    assert journal.read_bytes().startswith(b"this is no journal")


# ---- disks and directories

@pytest.fixture
def small_disk(world):
    """A file system of 4 MiB."""
    path = world.path("disk")
    path.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=755", "muster-test", path],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"these tests mount a tmpfs and need root: {done.stderr}"
    yield path
    world.end_processes()
    subprocess.run(["umount", "-l", path], check=True)


def fill(path):
    """Takes every byte that is left; returns the file to remove."""
    ballast = path / "ballast"
    with open(ballast, "wb", buffering=0) as out:
        for size in (65536, 4096, 1):
            try:
                while True:
                    out.write(b"x" * size)
            except OSError:
                pass
    return ballast


def test_a_full_disk_under_the_broker_loses_no_accepted_job(world, small_disk):
    broker = world.make_broker(state_dir=small_disk / "broker").start()
    api = world.api()
    agent = world.make_agent().start()
    accepted = [api.submit(argv_spec("true"), f"before-{n}") for n in range(5)]
    ballast = fill(small_disk)
    error = None
    for n in range(2000):
        try:
            accepted.append(api.submit(script_spec("# " + "x" * 4000), f"during-{n}"))
        except grpc.RpcError as refused:
            error = refused
            break
    assert error is not None and error.code() == grpc.StatusCode.UNAVAILABLE, error
    assert broker.wait_exit() != 0
    assert "disk is full" in broker.log() and str(broker.database) in broker.log()
    ballast.unlink()
    broker.start()
    eventually(lambda: api.connected(agent.cluster), "the agent is back")
    for job_id in accepted:
        api.wait_state(job_id, SUCCEEDED)
    assert {job.id for job in api.list_all()} >= set(accepted)


def test_a_full_disk_under_the_agent_fails_no_job_in_silence(world, broker, api, small_disk):
    agent = world.make_agent(state_dir=small_disk / "agent").start()
    first = api.submit(argv_spec("echo", "fits"))
    api.wait_state(first, SUCCEEDED)
    ballast = fill(small_disk)
    job_id = api.submit(argv_spec("echo", "does not fit"))
    # Either the journal has no room for the assignment, or the run's directory has none.
    eventually(lambda: "journal_full" in agent.log() or api.get(job_id).state in TERMINAL, "the disk was missed",
               alive=agent.check_alive)
    waits = api.get(job_id).state not in TERMINAL
    ballast.unlink()
    job = api.wait_end(job_id)
    if waits:
        assert job.state == SUCCEEDED, job
        assert api.stdout(job_id) == b"does not fit\n"
    else:
        assert job.state == FAILED and job.failure.failure_class == job_pb2.FAILURE_CLASS_INFRA, job
        assert "space" in job.failure.message
    later = api.submit(argv_spec("true"))
    api.wait_state(later, SUCCEEDED)


def test_output_that_fills_the_disk_ends_in_the_jobs_own_words(world, broker, api, small_disk):
    agent = world.make_agent(state_dir=small_disk / "agent").start()
    reserve = small_disk / "reserve"
    reserve.write_bytes(b"x" * (1 << 20))
    job_id = api.submit(script_spec("head -c 16000000 /dev/zero || exit 4"))
    eventually(lambda: os.statvfs(small_disk).f_bavail == 0 or api.get(job_id).state in TERMINAL, "the disk is full")
    reserve.unlink()
    if agent.process.poll() is not None:
        agent.wait_exit()
        agent.start()
    # The job may find the space that has become free, or not; either way its own end is what is told.
    job = api.wait_end(job_id)
    assert job.state == FAILED and job.exit.code == 4, job
    assert set(api.stdout(job_id)) == {0}


def test_an_unreadable_run_directory_is_told_and_other_runs_go_on(world, broker, api, agent):
    gate = world.gate()
    job_id = api.submit(script_spec(f"echo hello; {gate.script()}"))
    api.wait_state(job_id, job_pb2.JOB_STATE_RUNNING)
    directory = agent.run_directory(api.get(job_id).runs[0].run_key)
    hidden = directory.with_name("hidden")
    agent.kill()
    os.rename(directory, hidden)
    directory.write_text("a file where the run's directory was")
    agent.start()
    other = api.submit(argv_spec("true"))
    api.wait_state(other, SUCCEEDED)
    assert job_pb2.JobState.Name(api.get(job_id).state) != "JOB_STATE_SUCCEEDED"
    directory.unlink()
    os.rename(hidden, directory)
    gate.open()
    api.wait_state(job_id, SUCCEEDED)
