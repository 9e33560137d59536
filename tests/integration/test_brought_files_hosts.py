"""Files that jobs bring along on several hosts over SSH: sent to each host once, copied there for each run."""

import itertools

from muster.v1 import job_pb2, job_spec_pb2
import pytest

from harness.api import CANCELED, SUCCEEDED, script_spec
from harness.files import bring
from harness.fixtures import hosts_agent_fixture, hosts_fixture
from harness.hosts import is_shown_failing
from harness.wait import eventually

CODE = {b"train.sh": b"#!/bin/sh\ncat data/in; echo more >>data/in\n", b"data/in": b"1,2,3\n"}
WHOLE = b"x" * (40 << 20)
RUNNING = job_pb2.JOB_STATE_RUNNING
ALL_GPUS = job_spec_pb2.Resources(gpus=[job_spec_pb2.GpuRequest(count_millis=2000)])

cluster = hosts_fixture()
agent = hosts_agent_fixture()


def brought(api, text, files=None, **fields):
    return bring(api, script_spec(text, **fields), files or CODE, executable=[b"train.sh"])


def files_of(host, agent):
    return host.home / ".muster" / agent.cluster / host.name / "files"


def inodes(cluster, agent):
    """Returns the trees on all hosts, with their inodes: a tree that is sent again gets another."""
    return {str(tree): tree.stat().st_ino for host in cluster.hosts for tree in files_of(host, agent).glob("trees/*")}


def test_each_rank_has_a_copy_of_its_own(api, agent):
    job_id = api.submit(brought(api, "./train.sh; cat data/in", nodes=2))
    api.wait_state(job_id, SUCCEEDED)
    for rank in range(2):
        assert api.stdout(job_id, rank=rank) == b"1,2,3\n1,2,3\nmore\n"


def test_a_tree_is_sent_to_a_host_once(api, cluster, agent):
    first = api.submit(brought(api, "./train.sh", nodes=2))
    api.wait_state(first, SUCCEEDED)
    before = inodes(cluster, agent)
    assert len(before) == 2 and not [part for host in cluster.hosts for part in files_of(host, agent).glob("incoming/*")]
    second = api.submit(brought(api, "./train.sh", nodes=2))
    api.wait_state(second, SUCCEEDED)
    assert api.stdout(second, rank=1) == b"1,2,3\n"
    assert inodes(cluster, agent) == before


# These are the steps on a host: the program that does each, what that has done when it is struck, and what is there
# meanwhile.
STEPS = {
    "sending": ("cat", "head -c 1000000", "files/incoming/*.tar"),
    "unpacking": ("tar", "true", "files/trees/*.part.*"),
    "copying": ("cp", "true", "runs/*/work.part.*"),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("strike", ["agent-killed", "host-cut"])
def test_what_is_cut_short_on_a_host_is_done_again_and_runs_each_rank_once(api, world, cluster, agent, step, strike):
    program, head, names = STEPS[step]
    gate, count = world.gate(), world.path("count")
    host = cluster.hosts[0]
    place = files_of(host, agent).parent
    stalled = host.stall(program, place / names, gate, head)
    text = f"echo $NODE_RANK >>{count}; wc -c <whole; ls"
    job_id = api.submit(brought(api, text, {b"whole": WHOLE}, nodes=2))
    eventually(stalled.exists, f"{step} has begun")
    (half,) = place.glob(names)
    assert half.stat().st_size < len(WHOLE)
    assert not count.exists() or len(count.read_text().split()) < 2
    if strike == "agent-killed":
        agent.kill()
        agent.start()
    else:
        host.cut()
        host.start()
    # A step that has begun there stands still meanwhile, and goes on beside the new one then.
    api.wait_state(job_id, SUCCEEDED)
    gate.open()
    again = api.submit(brought(api, text, {b"whole": WHOLE}, nodes=2))
    api.wait_state(again, SUCCEEDED)
    assert sorted(count.read_text().split()) == ["0", "0", "1", "1"]
    for job, rank in itertools.product((job_id, again), range(2)):
        assert api.stdout(job, rank=rank).split() == [str(len(WHOLE)).encode(), b"results", b"whole"]


# The file that finds no room on a disk of so many MiB, and how many runs have had the files there
# before.
DISKS = {"archive": (16, 0), "tree": (64, 0), "copy": (110, 1)}


@pytest.mark.parametrize("step", DISKS)
def test_a_host_without_room_for_the_files_leaves_the_run_to_another_that_goes_on_meanwhile(api, world, cluster, step):
    mebibytes, runs_before = DISKS[step]
    other, full = cluster.hosts
    full.limit_disk(mebibytes)
    agent = cluster.make_agent(more="files:\n  keep_free_bytes: 1Mi\n").start()
    for _ in range(runs_before):
        api.wait_state(api.submit(brought(api, "true", {b"whole": WHOLE}, nodes=2)), SUCCEEDED)
    trees = set(files_of(full, agent).glob("*/*"))
    gate = world.gate()
    blocking = api.wait_state(api.submit(script_spec(gate.script(), resources=ALL_GPUS)), RUNNING)
    assert list(blocking.runs[-1].nodes) == [other.name], "the first of those that are alike"
    job_id = api.submit(brought(api, "wc -c <whole", {b"whole": WHOLE}, resources=ALL_GPUS))
    eventually(lambda: is_shown_failing(world, "disk or quota is full"), "it is shown")
    job = api.wait_state(api.submit(script_spec("true")), SUCCEEDED)
    assert list(job.runs[-1].nodes) == [other.name]
    gate.open()
    job = api.wait_state(job_id, SUCCEEDED)
    assert [list(run.nodes) for run in job.runs] == [[other.name]]
    states = [transition.run_state for transition in api.transitions(job_id)]
    assert states.count(job_pb2.RUN_STATE_STARTING) <= 1, "it waits until it starts, however often it was tried"
    assert set(files_of(full, agent).glob("*/*")) == trees
    assert not (full.run_directory(agent.cluster, job.runs[-1].run_key) / "work").exists()


def test_an_agent_without_room_for_the_files_blames_no_host(api, cluster):
    agent = cluster.make_agent(more="files:\n  keep_free_bytes: 1000Ti\n").start()
    job_id = api.submit(brought(api, "./train.sh"))
    eventually(lambda: "where the agent leaves 1000Ti free" in api.get(job_id).state_reason.message, "the run says why it waits")
    assert "host_starts_paused" not in agent.log()


def test_a_copy_on_a_host_holds_up_neither_starts_nor_ends_there(api, world, cluster):
    cluster.cordoned = {"gpu2"}
    cluster.write_hosts()
    agent = cluster.make_agent().start()
    host = cluster.hosts[0]
    running = api.submit(script_spec("sleep 1000"))
    api.wait_state(running, RUNNING)
    gate, copies, done, ran = world.gate(), world.path("copies"), world.path("copied"), world.path("ran")
    (host.programs / "cp").write_text(f'#!/bin/sh\ntouch {copies}\n{gate.script()}\n/bin/cp "$@"; code=$?\n'
                                      f"touch {done}; exit $code\n")
    (host.programs / "cp").chmod(0o755)
    copying = api.submit(brought(api, f"touch {ran}"))
    eventually(copies.exists, "the files are being copied")
    api.wait_state(api.submit(script_spec("true")), SUCCEEDED)
    api.cancel(running)
    api.wait_state(running, CANCELED)
    api.cancel(copying)
    job = api.wait_state(copying, CANCELED)
    gate.open()
    eventually(done.exists, "the copy ends")
    work = host.run_directory(agent.cluster, job.runs[-1].run_key) / "work"
    eventually(lambda: not work.exists() and not list(work.parent.glob("work.part.*")), "the copy is removed")
    api.wait_state(api.submit(script_spec("true")), SUCCEEDED)
    assert not ran.exists()


def test_a_run_says_to_which_hosts_its_files_are_copied_and_waits_until_one_has_them(api, world, cluster, agent):
    first, second = cluster.hosts
    gates = [world.gate(), world.gate()]
    stalled = [host.stall("cat", files_of(host, agent) / "incoming/*.tar", gate, "true")
               for host, gate in zip(cluster.hosts, gates)]
    job_id = api.submit(brought(api, "wc -c <whole", {b"whole": WHOLE}, nodes=2))
    for file in stalled:
        eventually(file.exists, "its files are being sent")
    reason = f"its files are being copied to {first.name}, {second.name} (0 of 80 MiB)"
    eventually(lambda: api.get(job_id).state_reason.message == reason, "it is told what it waits for")
    assert api.get(job_id).runs[-1].state == job_pb2.RUN_STATE_PENDING
    assert reason in world.cli("why", str(job_id)).stdout
    gates[1].open()
    rest = f"its files are being copied to {first.name} (40 of 80 MiB)"
    eventually(lambda: api.get(job_id).state_reason.message == rest, "so it is of the other host alone")
    assert api.get(job_id).runs[-1].state == job_pb2.RUN_STATE_STARTING
    gates[0].open()
    api.wait_state(job_id, SUCCEEDED)
    told = [transition.run_state for transition in api.transitions(job_id)]
    assert told.count(job_pb2.RUN_STATE_PENDING) == 1


def test_four_hosts_are_sent_files_at_a_time_and_one_that_has_them_waits_for_none(api, world, cluster):
    for _ in range(4):
        cluster.add_host()
    cluster.write_hosts()
    agent = cluster.make_agent().start()
    api.wait_state(api.submit(brought(api, "true", nodes=6)), SUCCEEDED)
    gate = world.gate()
    stalled = [host.stall("cat", files_of(host, agent) / "incoming/*.tar", gate, "true") for host in cluster.hosts]
    gpu = job_spec_pb2.Resources(gpus=[job_spec_pb2.GpuRequest(count_millis=1000)])
    sent_to = api.submit(brought(api, "cat other", {b"other": b"x"}, nodes=5, resources=gpu))
    eventually(lambda: sum(file.exists() for file in stalled) == 4, "four hosts are sent to")
    job = api.wait_state(api.submit(brought(api, "./train.sh", resources=ALL_GPUS)), SUCCEEDED)
    assert list(job.runs[-1].nodes) == [cluster.hosts[-1].name], "the one with two free GPUs"
    assert sum(file.exists() for file in stalled) == 4
    gate.open()
    api.wait_state(sent_to, SUCCEEDED)
