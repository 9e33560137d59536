"""Files that jobs bring along on several hosts over SSH: sent to each host once, copied there for each run."""

import subprocess

import pytest

from harness.api import SUCCEEDED, script_spec
from harness.files import bring, sha256
from harness.fixtures import hosts_agent_fixture, hosts_fixture
from harness.wait import eventually

CODE = {b"train.sh": b"#!/bin/sh\ncat data/in; echo more >>data/in\n", b"data/in": b"1,2,3\n"}
WHOLE = b"x" * (40 << 20)

cluster = hosts_fixture()
agent = hosts_agent_fixture()


def brought(api, text, files=None, **fields):
    return bring(api, script_spec(text, **fields), files or CODE, executable=[b"train.sh"])


def files_of(host, agent):
    return host.home / ".muster" / agent.cluster / host.name / "files"


def inodes(cluster, agent):
    """Of the trees on all hosts: one that is sent again gets another."""
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


def test_an_agent_that_is_killed_while_it_sends_runs_each_rank_once(api, world, cluster, agent):
    count = world.path("count")
    job_id = api.submit(brought(api, f"echo $NODE_RANK >>{count}; wc -c <whole", {b"whole": WHOLE}, nodes=2))
    eventually(lambda: any(files_of(host, agent).glob("incoming/*.tar") for host in cluster.hosts) or count.exists(),
               "a host gets the files", poll_s=0.005)
    agent.kill()
    agent.start()
    api.wait_state(job_id, SUCCEEDED)
    assert sorted(count.read_text().split()) == ["0", "1"]
    assert api.stdout(job_id, rank=1).split() == [str(len(WHOLE)).encode()]


def test_a_host_that_goes_away_meanwhile_costs_time_only(api, world, cluster, agent):
    count = world.path("count")
    job_id = api.submit(brought(api, f"echo $NODE_RANK >>{count}; wc -c <whole", {b"whole": WHOLE}, nodes=2))
    kept = agent.state_dir / "files" / "kept" / sha256(WHOLE)
    eventually(kept.exists, "it is about to be sent", poll_s=0.005)
    cluster.hosts[0].cut()
    cluster.hosts[0].start()
    api.wait_state(job_id, SUCCEEDED)
    assert sorted(count.read_text().split()) == ["0", "1"]


@pytest.fixture
def small_disk(cluster):
    """The first host has room for nothing large."""
    home = cluster.hosts[0].home
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(home)], check=True)
    yield
    subprocess.run(["umount", "-l", str(home)], check=True)


def test_a_host_without_room_for_the_files_leaves_the_run_to_another(api, small_disk, cluster):
    cluster.cordoned = {"gpu2"}
    cluster.write_hosts()
    agent = cluster.make_agent().start()
    job_id = api.submit(brought(api, "wc -c <whole", {b"whole": WHOLE}))
    eventually(lambda: "disk or quota is full" in agent.log(), "the first host has no room")
    cluster.cordoned = set()
    cluster.write_hosts()
    job = api.wait_state(job_id, SUCCEEDED)
    assert job.runs[-1].nodes == ["gpu2"] and len(job.runs) == 1
    assert not list(files_of(cluster.hosts[0], agent).glob("*/*"))
    assert not (cluster.hosts[0].run_directory(agent.cluster, job.runs[-1].run_key) / "work").exists()


def test_an_agent_without_room_for_the_files_blames_no_host(api, cluster):
    agent = cluster.make_agent(more="files:\n  keep_free_bytes: 1000Ti\n").start()
    job_id = api.submit(brought(api, "./train.sh"))
    eventually(lambda: any("where the agent leaves 1000Ti free" in run.failure.message
                           and "free disk space there" in run.failure.suggestion for run in api.get(job_id).runs),
               "the run is refused")
    assert "host_starts_paused" not in agent.log()
