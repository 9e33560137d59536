"""The cores and the memory that come with GPUs, and jobs that are over a whole quota: told at the submit."""

import grpc
import pytest

from harness.api import SUCCEEDED, error_info, script_spec
from harness.fixtures import kubernetes_fixture
from harness.wait import eventually

kubernetes = kubernetes_fixture(nodes=1, gpus=4)

GIBIBYTE = 1 << 30


@pytest.fixture
def agent(kubernetes, world, broker, namespace):
    del broker
    return kubernetes.make_least_agent(world, namespace).start()


def test_gpus_bring_their_share_of_a_node_and_the_submitter_is_told(kubernetes, world, namespace, agent, api):
    del agent
    # One fourth of 16 cores and 64 GiB, without a tenth.
    done = world.cli("run", "--gpus", "1", "--wait", "--", "true")
    assert "resources.memory and resources.cpus are left open: the job gets 14Gi of memory and 3 cores" in done.stderr
    job = api.get(api.list_all()[0].id)
    [made] = kubernetes.objects("jobs", job.runs[0].run_key, namespace)
    resources = made["spec"]["template"]["spec"]["containers"][0]["resources"]
    assert resources["limits"]["memory"] == str(14 * GIBIBYTE) and resources["requests"]["cpu"] in ("3", "3000m")
    asked = world.cli("run", "--gpus", "1", "--memory", "1Gi", "--cpus", "1", "--wait", "--", "true")
    assert "left open" not in asked.stderr
    assert "the job gets 14Gi" in world.cli("plan", "--gpus", "1", "--", "true").stdout


def test_a_job_over_its_namespaces_whole_quota_is_refused_at_the_submit(kubernetes, namespace, agent, api):
    del agent
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    kubernetes.must("POST", path, {"metadata": {"name": "small"}, "spec": {"hard": {"requests.cpu": "2"}}})
    spec = script_spec("true")
    spec.resources.cpu_millis = 3000

    def refused():
        try:
            api.cancel(api.submit(spec))
        except grpc.RpcError as error:
            return error
    # The agent publishes what it has heard of within a minute.
    error = eventually(refused, "the quota is known", poll_s=1)
    assert error_info(error).reason == "CANNOT_BE_PLACED"
    assert f"quota small of namespace {namespace} allows 2 requests.cpu in all, the run needs 3" in error.details()
    spec.resources.cpu_millis = 2000
    api.wait_state(api.submit(spec), SUCCEEDED)
