"""Files that jobs bring along on a real Slurm: sent to the shared file system once, copied there for each run."""

import pytest

from harness.api import SUCCEEDED, script_spec
from harness.files import bring, sha256
from harness.fixtures import cluster_fixture
from harness.wait import eventually

CODE = {b"train.sh": b"#!/bin/sh\ncat data/in; echo more >>data/in\n", b"data/in": b"1,2,3\n", b"empty": b""}
WHOLE = b"x" * (24 << 20)

slurm = cluster_fixture("--nodes", "2", "--cpus", "4", "--min-job-age", "5", sshd=True)


@pytest.fixture(params=["commands", "ssh"])
def agent(request, world, broker, slurm):
    """An agent on the login host, and one that reaches it over SSH."""
    make = slurm.make_ssh_agent if request.param == "ssh" else slurm.make_agent
    return make(world).start()


def brought(api, text, files=None, **fields):
    return bring(api, script_spec(text, **fields), files or CODE, executable=[b"train.sh"])


def test_runs_of_the_same_files_have_copies_of_their_own(api, agent):
    first = api.submit(brought(api, "./train.sh; ls"))
    assert api.wait_state(first, SUCCEEDED).state == SUCCEEDED
    assert api.stdout(first) == b"1,2,3\ndata\nempty\ntrain.sh\n"
    second = api.submit(brought(api, "./train.sh"))
    api.wait_state(second, SUCCEEDED)
    assert api.stdout(second) == b"1,2,3\n"


def test_all_nodes_see_them(api, agent):
    job_id = api.submit(brought(api, 'cat data/in', nodes=2))
    api.wait_state(job_id, SUCCEEDED)
    assert api.stdout(job_id, rank=0) == api.stdout(job_id, rank=1) == b"1,2,3\n"


def test_many_runs_that_come_together_all_have_theirs(api, agent):
    spec = brought(api, "./train.sh")
    ids = api.submit_many([spec] * 10)
    for job_id in ids:
        api.wait_state(job_id, SUCCEEDED)
        assert api.stdout(job_id) == b"1,2,3\n"


def test_an_agent_that_is_killed_while_it_sends_them_runs_the_job_once(api, agent, world):
    count = world.path("count")
    world.root.chmod(0o777)
    job_id = api.submit(brought(api, f"echo run >>{count}; wc -c <whole", {b"whole": WHOLE}))
    kept = agent.state_dir / "files" / "kept" / sha256(WHOLE)
    eventually(kept.exists, "it is being sent, or about to be", poll_s=0.001)
    agent.kill()
    agent.start()
    api.wait_state(job_id, SUCCEEDED)
    assert api.stdout(job_id).split() == [str(len(WHOLE)).encode()]
    assert count.read_text() == "run\n"
