"""muster cp from hosts that the agent reaches over SSH: each rank's files from the host that it was on."""

import os
import subprocess

import grpc
from muster.v1 import files_service_pb2, job_pb2, job_spec_pb2
import pytest

from harness.api import CANCELED, SUCCEEDED, error_info, script_spec
from harness.fixtures import hosts_agent_fixture, hosts_fixture
from harness.wait import eventually

ERROR = 1
LARGE_BYTES = 1 << 30
HUGE_BYTES = 64 << 30
MEMORY_BYTES = 64 << 20
RUNNING = job_pb2.JOB_STATE_RUNNING
ODD = ("-rf", "--help", "a b", "new\nline", "tail\n", "q'u\"o$(touch no)`te\\", "*")

cluster = hosts_fixture()
agent = hosts_agent_fixture()


def fetch(api, job, path="", **fields):
    request = files_service_pb2.FetchFilesRequest(job_id=int(job), path=path.encode(), **fields)
    return api.files.FetchFiles(request, timeout=120)


def refusal(call):
    with pytest.raises(grpc.RpcError) as caught:
        list(call)
    return caught.value


def finished(api, text, **fields):
    """A job that has run it, with the hosts of its ranks."""
    job_id = api.submit(script_spec(text, **fields))
    return job_id, list(api.wait_state(job_id, SUCCEEDED).runs[-1].nodes)


def host_of(cluster, name):
    return next(host for host in cluster.hosts if host.name == name)


def connections(host):
    """Returns the number of logins there."""
    return len(subprocess.run(["pgrep", "-P", str(host.process.pid)], capture_output=True, check=False).stdout.split())


def rank_of(world, job_id, rank):
    return world.cli("cp", "--rank", rank, f"{job_id}:out/rank", "-", check=False).stdout


def both_ranks(world, job_id):
    return [rank_of(world, job_id, 0), rank_of(world, job_id, 1)]


def test_each_rank_s_files_come_from_its_own_host_whatever_they_are_called(api, world, cluster, agent):
    odd = " ".join("'" + name.replace("'", "'\\''") + "'" for name in ODD)
    text = (f'mkdir -p out/deep/empty; echo "$NODE_RANK" >out/rank; cd out; for n in {odd}; do printf %s "$n" >"./$n"; done\n'
            "chmod 755 rank; ln -s rank latest; ln -s /etc/passwd leads-out; ln -s ../.. dir; mkfifo pipe")
    job_id, nodes = finished(api, text, nodes=2)
    assert len(set(nodes)) == 2
    assert both_ranks(world, job_id) == ["0\n", "1\n"]
    done = world.cli("cp", "--rank", 1, f"{job_id}:out", ".", check=False)
    assert done.returncode == ERROR and "left out: leads-out" in done.stderr and "left out: pipe" in done.stderr
    out = world.path("out")
    assert {path.name: path.read_text() for path in out.iterdir() if path.name in ODD} == {name: name for name in ODD}
    assert (out / "deep" / "empty").is_dir() and os.readlink(out / "latest") == "rank"
    assert (out / "rank").read_text() == "1\n" and (out / "rank").stat().st_mode & 0o111
    world.cli("cp", f"{job_id}:out/new\nline", "renamed")
    assert world.path("renamed").read_text() == "new\nline"
    for path in ("out/leads-out", "out/dir/spec"):
        error = refusal(fetch(api, job_id, path))
        assert (error.code(), error_info(error).reason) == (grpc.StatusCode.PERMISSION_DENIED, "PATH_LEADS_OUT")
    error = refusal(fetch(api, job_id, "out/nothing"))
    assert (error.code(), error_info(error).reason) == (grpc.StatusCode.NOT_FOUND, "PATH_NOT_FOUND")


def test_files_are_found_while_a_run_goes_on_and_after_the_agent_has_forgotten_it(api, world, cluster):
    agent = cluster.make_agent(more="  keep_finished_runs: 0\n").start()
    gate = world.gate()
    job_id = api.submit(script_spec(f'mkdir out; echo "$NODE_RANK" >out/rank\n{gate.script()}', nodes=2))
    eventually(lambda: both_ranks(world, job_id) == ["0\n", "1\n"], "both ranks' files are there")
    agent.restart()
    eventually(lambda: both_ranks(world, job_id) == ["0\n", "1\n"], "they are there for the next agent")
    gate.open()
    run = api.wait_state(job_id, SUCCEEDED).runs[-1]
    eventually(lambda: not agent.run_directory(run.run_key).exists(), "the agent has forgotten the run")
    assert both_ranks(world, job_id) == ["0\n", "1\n"]
    agent.restart()
    eventually(lambda: both_ranks(world, job_id) == ["0\n", "1\n"], "likewise after its next start")


def test_files_of_old_runs_go_from_their_hosts_where_the_operator_wants_that(api, world, cluster):
    cluster.make_agent(more="  keep_finished_runs: 0\n  keep_work: 1s\n").start()
    directories = world.path("directories")
    job_id, _ = finished(api, f'echo x >file; echo "$MUSTER_RUN_DIR" >>"{directories}"', nodes=2)
    assert job_id and len(left := directories.read_text().split()) == 2
    eventually(lambda: not any(os.path.exists(path) for path in left), "nothing of the run is left on its hosts")
    error = refusal(fetch(api, job_id, "file", rank=1))
    assert (error.code(), error_info(error).reason) == (grpc.StatusCode.NOT_FOUND, "PATH_NOT_FOUND")
    assert "keeps those of finished runs for 1s (machines.keep_work)" in error.details()


def test_a_large_copy_holds_up_nothing_on_its_host_and_ends_there_with_the_client(api, world, cluster, agent):
    job_id, nodes = finished(api, f"truncate -s {HUGE_BYTES} huge")
    host = host_of(cluster, nodes[0])
    call = fetch(api, job_id, "huge")
    next(call)
    before = connections(host)
    other = [each.name for each in cluster.hosts if each is not host]
    cluster.cordoned.update(other)
    cluster.write_hosts()
    eventually(lambda: "cordoned" in world.cli("clusters", "lab").stdout, "only the copy's host takes runs")
    # The client takes on and on, so that the host reads all the time.
    taken = iter(call)
    running = api.submit(script_spec("echo ready; exec sleep 1000"))
    while api.get(running).state != RUNNING:
        next(taken)
    assert list(api.get(running).runs[-1].nodes) == nodes
    api.cancel(running)
    while api.get(running).state != CANCELED:
        next(taken)
    next(taken)
    call.cancel()
    eventually(lambda: connections(host) < before, "its connection has ended with the client's call")


def test_a_large_file_needs_little_memory(api, world, broker, cluster, agent):
    job_id, _ = finished(api, f"truncate -s {LARGE_BYTES} large; echo x >>large")
    before = agent.peak_bytes()
    world.cli("cp", f"{job_id}:large", ".")
    large = world.path("large")
    assert large.stat().st_size == LARGE_BYTES + 2
    assert agent.peak_bytes() - before < MEMORY_BYTES


def test_a_host_that_is_down_is_named_and_the_others_send(api, world, cluster, agent):
    job_id, nodes = finished(api, 'mkdir out; echo "$NODE_RANK" >out/rank', nodes=2)
    host_of(cluster, nodes[1]).cut()
    error = refusal(fetch(api, job_id, "out/rank", rank=1))
    assert error.code() == grpc.StatusCode.UNAVAILABLE
    assert f"host {nodes[1]} (" in error.details() and "refused" in error.details()
    assert rank_of(world, job_id, 0) == "0\n"
    host_of(cluster, nodes[1]).start()
    assert rank_of(world, job_id, 1) == "1\n"


@pytest.mark.slow
def test_a_host_that_hangs_in_a_copy_is_named_in_time_and_holds_up_no_other(api, world, cluster, agent):
    job_id, nodes = finished(api, f'truncate -s {HUGE_BYTES} huge; mkdir out; echo "$NODE_RANK" >out/rank', nodes=2)
    calls = [fetch(api, job_id, "huge", rank=1) for _ in range(3)]
    for call in calls:
        next(call)
    host_of(cluster, nodes[1]).freeze()
    assert rank_of(world, job_id, 0) == "0\n"
    for call in calls:
        error = refusal(call)
        assert error.code() == grpc.StatusCode.UNAVAILABLE and f"host {nodes[1]} (" in error.details()


def test_a_host_that_is_out_of_the_file_is_told_with_the_remedy(api, cluster, agent):
    job_id, nodes = finished(api, "echo x >x", nodes=2)
    gone = host_of(cluster, nodes[1])
    cluster.hosts.remove(gone)
    try:
        cluster.write_hosts()
        error = refusal(fetch(api, job_id, "x", rank=1))
        assert (error.code(), error_info(error).reason) == (grpc.StatusCode.FAILED_PRECONDITION, "HOST_NOT_CONFIGURED")
        assert f"was on host {gone.name}, which is not in the file of hosts" in error.details()
        assert "put it back" in error.details()
    finally:
        cluster.hosts.append(gone)


def test_a_run_that_waits_for_a_host_has_no_files_yet(api, world, cluster, agent):
    gate = world.gate()
    wanted = job_spec_pb2.Resources(cpu_millis=cluster.cpus * 1000)
    first = api.submit(script_spec(gate.script(), nodes=2, resources=wanted))
    api.wait_state(first, RUNNING)
    second = api.submit(script_spec("true", resources=wanted))
    run = api.wait_run_state(second, job_pb2.RUN_STATE_PENDING)
    error = refusal(fetch(api, second, "x"))
    assert (error.code(), error_info(error).reason) == (grpc.StatusCode.FAILED_PRECONDITION, "RUN_HAS_NO_FILES")
    assert f"rank 0 of run {run.run_key}" in error.details() and "(gpu1, gpu2)" in error.details()
    gate.open()
    api.wait_state(second, SUCCEEDED)
