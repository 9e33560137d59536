"""Broker and agent die at any moment of the life of jobs on Kubernetes: each job runs once, and nothing is left over.
test_faults.py has the faults of Kubernetes itself."""

import random

import pytest

from harness.fixtures import kubernetes_fixture
from harness.trio import VICTIMS, PodTrio
# The same blows as on plain machines have the same consequences: none.
from test_restart import (submit_until_accepted, test_a_follower_goes_on_over_a_restart_of_the_broker,
                          test_a_wish_to_cancel_survives, test_an_agent_that_lost_its_journal_finds_its_runs_again,
                          test_killed_as_a_job_ends, test_killed_while_a_job_is_assigned,
                          test_killed_while_a_job_is_queued, test_killed_while_a_job_runs,
                          test_what_is_canceled_while_the_agent_is_dead_never_begins)

# 8 cores, as the machine of those tests has.
kubernetes = kubernetes_fixture("-cpus", "8", nodes=1, gpus=0)


@pytest.fixture
def agent(kubernetes, world, broker):
    del broker
    return kubernetes.make_agent(world, allow_host_path="yes").start()


@pytest.fixture
def trio(world, broker, agent, api):
    return PodTrio(world, broker, agent, api)


def check_nothing_is_left(kubernetes, trio, ids):
    """Checks that nothing of Muster's is in the cluster but the ended Jobs of these jobs' runs, and what they own."""
    keys = {run.run_key for job_id in ids for run in trio.api.get(job_id).runs}
    for kind in ("jobs", "pods", "secrets", "services"):
        for thing in kubernetes.objects(kind):
            key = thing["metadata"]["labels"]["muster.dev/run-key"]
            if key.startswith(next(iter(keys)).split("-")[0]):
                assert key in keys, f"{kind} {thing['metadata']['name']} is nobody's"
    for job in kubernetes.objects("jobs"):
        if job["metadata"]["name"] in keys:
            assert job["status"].get("completionTime"), job


def test_blows_at_random_moments_of_launches(kubernetes, trio):
    dice = random.Random(5)
    ids = []
    for number in range(8):
        for part in range(2):
            ids.append(submit_until_accepted(trio.api, trio.counting(), f"{number}-{part}"))
        # The moment of the blow is what varies.
        trio.world.pause(dice.uniform(0, 0.3))
        trio.restart(VICTIMS[number % len(VICTIMS)])
    for job_id in ids:
        trio.check_ran_once(job_id)
    check_nothing_is_left(kubernetes, trio, ids)
