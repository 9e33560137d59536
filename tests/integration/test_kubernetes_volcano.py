"""Gangs that Volcano starts, by an agent with the least rights."""

import pytest
from muster.v1 import facts_pb2, job_spec_pb2

from harness.api import RUNNING, SUCCEEDED
from harness.companion import Companion
from harness.gangs import pods_and_what_their_scheduler_says, whole_nodes
from harness.kubernetes import KubernetesCluster, show_directory
from harness.wait import eventually

VOLCANO = "/apis/scheduling.volcano.sh/v1beta1"


@pytest.fixture(scope="module")
def kubernetes():
    made = KubernetesCluster(nodes=2, gpus=4)
    volcano = Companion(made, "volcano")
    yield made
    volcano.close()
    made.close()


@pytest.fixture
def agent(kubernetes, world, broker, namespace):
    del broker
    return kubernetes.make_least_agent(world, namespace, allow_host_path="yes").start()


@pytest.fixture
def blocked(kubernetes, world, agent, api, namespace):
    """A gate, and a gang of both nodes that waits because a job has one of them until the gate opens."""
    del agent
    gate = world.gate()
    blocker = api.submit(show_directory(whole_nodes(gate.script(), nodes=1), world.root))
    api.wait_state(blocker, RUNNING)
    job_id = api.submit(gang("echo ran"))
    eventually(lambda: pods_and_what_their_scheduler_says(kubernetes, api, job_id, namespace)[1] == ["False", "False"],
               "Volcano has looked at both of its pods")
    yield gate, job_id
    gate.open()


def gang(text):
    """Submits a job for all GPUs of both nodes."""
    spec = whole_nodes(text, nodes=2)
    spec.kubernetes.gang = job_spec_pb2.KUBERNETES_GANG_VOLCANO
    return spec


def pod_groups(kubernetes, namespace):
    return kubernetes.must("GET", f"{VOLCANO}/namespaces/{namespace}/podgroups")["items"]


def says_volcano(text):
    """Tells whether the text says why a gang waits: of its pod that has no node, or of all of them."""
    return any(f"Unschedulable: {words}" in text for words in ("0/2 nodes are unavailable: ", "pod group is not ready, "))


def test_a_gang_is_started_by_volcano_in_the_queue_that_its_annotation_names(kubernetes, world, agent, api, namespace):
    del agent
    kubernetes.must("POST", f"{VOLCANO}/queues", {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
                                                  "metadata": {"name": "team"}, "spec": {"weight": 1}})
    gate = world.gate()
    spec = show_directory(gang(gate.script() + "\necho ran"), world.root)
    spec.kubernetes.annotations["scheduling.volcano.sh/queue-name"] = "team"
    job_id = api.submit(spec)
    api.wait_state(job_id, RUNNING)
    pods, placed = pods_and_what_their_scheduler_says(kubernetes, api, job_id, namespace)
    assert placed == ["True", "True"]
    assert sorted(pod["spec"]["nodeName"] for pod in pods) == ["node-1", "node-2"]
    assert all(pod["spec"]["schedulerName"] == "volcano" for pod in pods)
    # Volcano's controllers have made no other group for these pods.
    (group,) = pod_groups(kubernetes, namespace)
    assert group["metadata"]["name"] == api.get(job_id).runs[-1].run_key
    assert group["spec"]["minMember"] == 2 and group["spec"]["queue"] == "team"
    gate.open()
    api.wait_state(job_id, SUCCEEDED)
    assert api.stdout(job_id, rank=0) == b"ran\n" and api.stdout(job_id, rank=1) == b"ran\n"


def test_a_gang_that_finds_room_for_half_of_its_pods_has_none_placed_and_says_why(kubernetes, world, blocked, api, namespace):
    gate, job_id = blocked
    eventually(lambda: says_volcano(world.cli("why", job_id).stdout), "it says so in Volcano's words")
    pods, _ = pods_and_what_their_scheduler_says(kubernetes, api, job_id, namespace)
    assert not any("nodeName" in pod["spec"] for pod in pods)
    gate.open()
    api.wait_state(job_id, SUCCEEDED)
    assert len(api.get(job_id).runs) == 1


def test_a_gang_that_waits_for_volcano_can_be_held_and_released(kubernetes, blocked, api, namespace):
    gate, job_id = blocked
    run_key = api.get(job_id).runs[-1].run_key
    api.hold(job_id)
    eventually(lambda: api.get(job_id).runs[-1].state_reason.code == facts_pb2.STATE_REASON_CODE_HELD, "it is held")
    eventually(lambda: not kubernetes.objects("pods", run_key, namespace), "its pods are gone")
    gate.open()
    api.release(job_id)
    api.wait_state(job_id, SUCCEEDED)
    assert [run.run_key for run in api.get(job_id).runs] == [run_key]


def test_a_gang_leaves_no_pod_group_behind(kubernetes, blocked, api, namespace):
    _, job_id = blocked
    assert api.get(job_id).runs[-1].run_key in [group["metadata"]["name"] for group in pod_groups(kubernetes, namespace)]
    api.cancel(job_id)
    ours = api.get(job_id).runs[-1].run_key
    eventually(lambda: ours not in [group["metadata"]["name"] for group in pod_groups(kubernetes, namespace)],
               "its PodGroup is gone")
