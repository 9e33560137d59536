"""Secrets of jobs on a real Kubernetes: in the Secret of the run, and in no other object."""

import json

import pytest

from harness.api import CANCELED, SUCCEEDED, script_spec
from harness.canary import Canary, has_told, program, set_secret, use, words
from harness.fixtures import kubernetes_fixture
from harness.wait import eventually

KINDS = ("jobs", "pods", "services", "events")

kubernetes = kubernetes_fixture(nodes=2, gpus=4)


@pytest.fixture
def canary(world, broker):
    """A canary that is the secret `hf` of the test's user."""
    del broker
    made = Canary()
    set_secret(world, made.value)
    return made


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_job_has_the_value_and_no_object_but_its_secret(world, agent, api, kubernetes, canary, nodes):
    job_id = api.submit(use(script_spec(program("exec sleep 1000"), nodes=nodes)))
    eventually(lambda: has_told(api, job_id), "the program has its secrets")
    run_key = api.get(job_id).runs[-1].run_key
    for kind in KINDS:
        key = None if kind == "events" else run_key
        assert not canary.is_in(json.dumps(kubernetes.objects(kind, key)).encode()), kind
    (secret,) = kubernetes.objects("secrets", run_key)
    assert canary.is_in(json.dumps(secret).encode())
    assert canary.processes(run_key) == []
    assert canary.files(world.root) == []
    assert canary.value not in world.cli("show", job_id, "-o", "json").stdout
    world.cli("cancel", job_id)
    api.wait_state(job_id, CANCELED)
    eventually(lambda: not kubernetes.objects("secrets", run_key), "its Secret is gone")
    assert canary.files(world.root) == []


def test_a_run_that_has_ended_leaves_no_secret(world, agent, api, kubernetes, canary):
    spec = use(script_spec(program(), setup="test -n \"$TOKEN\""))
    spec.kubernetes.time_to_live.seconds = 1
    job_id = api.submit(spec)
    job = api.wait_end(job_id)
    assert job.state == SUCCEEDED
    assert api.stdout(job_id) == words(canary, "444")
    eventually(lambda: not kubernetes.objects("secrets", job.runs[-1].run_key), "its Secret is gone")
    assert canary.value not in "".join(path.read_text(errors="replace") for path in world.root.glob("*.log"))


def test_each_role_has_it(world, agent, api, canary):
    del world
    spec = use(script_spec(""))
    spec.ClearField("command")
    for name in ("first", "second"):
        role = spec.roles.add(name=name, nodes=1, first_node=len(spec.roles))
        role.command.script = program()
    spec.nodes = 2
    job_id = api.submit(spec)
    assert api.wait_end(job_id).state == SUCCEEDED
    for rank in range(2):
        assert api.stdout(job_id, rank=rank) == words(canary, "444")
