"""Files that jobs bring along on Kubernetes: in Secrets of the run, unpacked in the pod."""

import grpc
import pytest

from harness.api import SUCCEEDED, error_info, script_spec
from harness.files import bring
from harness.fixtures import kubernetes_fixture
from harness.wait import eventually

CODE = {b"train.sh": b"#!/bin/sh\ncat data/in; echo more >>data/in\n", b"data/in": b"1,2,3\n"}

kubernetes = kubernetes_fixture(nodes=2, gpus=4)


@pytest.fixture
def agent(kubernetes, world, broker):
    """With no more rights than its documentation asks for."""
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
