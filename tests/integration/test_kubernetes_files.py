"""Files that jobs bring along on Kubernetes: in Secrets of the run, unpacked in the pod."""

import json

import grpc
import pytest
import yaml

from harness.api import RUNNING, SUCCEEDED, error_info, script_spec
from harness.files import bring
from harness.fixtures import kubernetes_fixture
from harness.wait import eventually

CANNOT_BE_PLACED = 13
CODE = {b"train.sh": b"#!/bin/sh\ncat data/in; echo more >>data/in\n", b"data/in": b"1,2,3\n"}

kubernetes = kubernetes_fixture(nodes=2, gpus=4)


@pytest.fixture
def agent(kubernetes, world, broker):
    """An agent with no more rights than its documentation asks for."""
    del broker
    return kubernetes.make_least_agent(world).start()


def brought(api, text, files=None, **fields):
    return bring(api, script_spec(text, **fields), files or CODE, executable=[b"train.sh"])


def test_a_run_starts_among_its_files_and_leaves_no_secret(api, agent, kubernetes):
    large = b"".join(b"%d\n" % n for n in range(300_000))
    spec = brought(api, "./train.sh; wc -c <large", {**CODE, b"large": large})
    spec.kubernetes.time_to_live.seconds = 1
    job_id = api.submit(spec)
    job = api.wait_state(job_id, SUCCEEDED)
    assert api.stdout(job_id).split() == [b"1,2,3", str(len(large)).encode()]
    key = job.runs[-1].run_key
    eventually(lambda: not kubernetes.objects("secrets", key), "its Secrets are gone")


def test_each_pod_has_its_own(api, agent):
    job_id = api.submit(brought(api, "./train.sh; cat data/in", nodes=2))
    api.wait_state(job_id, SUCCEEDED)
    for rank in range(2):
        assert api.stdout(job_id, rank=rank) == b"1,2,3\n1,2,3\nmore\n"


def test_more_than_it_can_hold_is_refused_with_the_remedy(api, agent):
    with pytest.raises(grpc.RpcError) as refused:
        api.submit(brought(api, "true", {b"large": b"l" * (9 << 20)}))
    assert error_info(refused.value).reason == "CANNOT_BE_PLACED"
    assert "uploads" in refused.value.details() and "kubernetes.volumes" in refused.value.details()


@pytest.fixture
def large(world):
    directory = world.path("large")
    directory.mkdir()
    (directory / "data").write_bytes(b"l" * (9 << 20))
    return directory.name


def test_who_submits_by_the_cli_hears_that_it_is_too_much_before_it_is_uploaded(world, api, agent, large):
    del api
    for command in (["plan"], ["run"], ["run", "--validate"]):
        done = world.cli(*command, "--image", "any", "--workdir", large, "--", "ls", check=False)
        assert done.returncode == CANNOT_BE_PLACED, done.stderr
        assert "kubernetes.volumes" in done.stdout + done.stderr


def test_a_job_with_too_much_for_kubernetes_goes_to_machines(world, api, agent, large):
    world.make_agent(name="machines").start()
    done = world.cli("run", "--wait", "--workdir", large, "--", "wc", "-c", "data", check=False)
    assert (done.returncode, done.stdout) == (0, f"{9 << 20} data\n"), done.stderr
    assert api.list_all()[0].cluster == "machines"


def test_a_plan_shows_what_will_be_launched(world, api, agent, kubernetes):
    world.path("project").mkdir()
    world.write("project/train.py", "print(1)\n")
    done = world.cli("plan", "--manifest", "-o", "json", "--workdir", "project", "--", "sleep", "60")
    planned, *others = yaml.safe_load_all(json.loads(done.stdout)["plans"][0]["submission"])
    assert [other["metadata"]["name"] for other in others if "files" in other["metadata"]["name"]] == ["plan-1-1-files-0"]
    job = api.wait_state(int(world.cli("run", "--workdir", "project", "--", "sleep", "60").stdout), RUNNING)
    (launched,) = kubernetes.objects("jobs", job.runs[-1].run_key)
    for made in (planned, launched):
        assert made["metadata"]["annotations"]["muster.dev/archive-bytes"] == "2048"
        pod = made["spec"]["template"]["spec"]
        assert [container["name"] for container in pod["initContainers"]] == ["storage"]
        assert "muster-files" in [volume["name"] for volume in pod["volumes"]]
