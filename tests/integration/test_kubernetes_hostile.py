"""Users' text arrives byte for byte in containers too, and nothing on the way reads it: no shell, no manifest."""

import pytest

from harness.api import SUCCEEDED
from harness.fixtures import kubernetes_fixture
from harness.kubernetes import show_directory
from test_slurm_hostile import FORMS, STRINGS, Hostile, Sent

kubernetes = kubernetes_fixture(nodes=2, gpus=0)


@pytest.fixture
def agent(kubernetes, world, broker):
    del broker
    return kubernetes.make_least_agent(world, allow_host_path="yes").start()


def test_ten_thousand_hostile_strings_arrive_and_run_nothing(world, api, agent):
    del agent
    canary = world.path("canary")
    hostile = Hostile(canary)
    jobs = {}
    while sum(sent.count for sent in jobs.values()) < STRINGS:
        sent = Sent(hostile, _directory(world, hostile, len(jobs)))
        spec = sent.complete(FORMS[len(jobs) % len(FORMS)](hostile, sent))
        spec.ClearField("slurm")
        jobs[api.submit(show_directory(spec, world.root))] = sent
    for job_id, sent in jobs.items():
        job = api.wait_state(job_id, SUCCEEDED)
        for rank, expected in enumerate(sent.printed):
            assert api.stdout(job_id, rank=rank) == expected, f"job {job_id}, rank {rank}"
        assert job.spec.name == sent.name
    assert not canary.exists()


def _directory(world, hostile, number):
    name = "".join(c for c in f"{number}{hostile.string()}" if c.isprintable() and c != "/")[:60]
    path = world.path(name)
    path.mkdir()
    return str(path)
