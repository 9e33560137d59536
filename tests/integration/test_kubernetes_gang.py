"""Gangs that the scheduler of the scheduler-plugins starts, by an agent with the least rights."""

import pytest
from muster.v1 import job_spec_pb2

from harness.api import RUNNING, SUCCEEDED
from harness.companion import Companion
from harness.gangs import pods_and_what_their_scheduler_says, whole_nodes
from harness.kubernetes import KubernetesCluster, show_directory
from harness.wait import eventually

SCHEDULER = "scheduler-plugins-scheduler"
POD_GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1"


@pytest.fixture(scope="module")
def kubernetes():
    made = KubernetesCluster(nodes=2, gpus=4)
    scheduler = Companion(made, "coscheduling")
    yield made
    scheduler.close()
    made.close()


@pytest.fixture
def agent(kubernetes, world, broker, namespace):
    del broker
    return kubernetes.make_least_agent(world, namespace, allow_host_path="yes").start()


def gang(text):
    """Submits a job for all GPUs of both nodes."""
    spec = whole_nodes(text, nodes=2)
    spec.kubernetes.gang = job_spec_pb2.KUBERNETES_GANG_POD_GROUP
    spec.kubernetes.scheduler_name = SCHEDULER
    return spec


def pod_groups(kubernetes, namespace):
    return kubernetes.must("GET", f"{POD_GROUPS}/namespaces/{namespace}/podgroups")["items"]


def test_a_gang_is_started_by_the_scheduler_that_it_names(kubernetes, world, agent, api, namespace):
    del agent
    gate = world.gate()
    job_id = api.submit(show_directory(gang(gate.script() + "\necho ran"), world.root))
    api.wait_state(job_id, RUNNING)
    pods, placed = pods_and_what_their_scheduler_says(kubernetes, api, job_id, namespace)
    assert placed == ["True", "True"]
    assert sorted(pod["spec"]["nodeName"] for pod in pods) == ["node-1", "node-2"]
    assert all(pod["spec"]["schedulerName"] == SCHEDULER for pod in pods)
    (group,) = pod_groups(kubernetes, namespace)
    assert group["metadata"]["name"] == api.get(job_id).runs[-1].run_key and group["spec"]["minMember"] == 2
    gate.open()
    api.wait_state(job_id, SUCCEEDED)
    assert api.stdout(job_id, rank=0) == b"ran\n" and api.stdout(job_id, rank=1) == b"ran\n"


def test_a_gang_that_finds_room_for_half_of_its_pods_has_none_placed_and_says_why(kubernetes, world, agent, api, namespace):
    del agent
    gate = world.gate()
    blocker = api.submit(show_directory(whole_nodes(gate.script(), nodes=1), world.root))
    api.wait_state(blocker, RUNNING)
    job_id = api.submit(gang("echo ran"))
    eventually(lambda: "Insufficient nvidia.com/gpu" in world.cli("why", job_id).stdout, "it says what there is too little of")
    eventually(lambda: "PodGroup" in world.cli("why", job_id).stdout, "and that all of them wait for it")
    eventually(lambda: pods_and_what_their_scheduler_says(kubernetes, api, job_id, namespace)[1] == ["False", "False"],
               "its scheduler has looked at both of its pods")
    pods, _ = pods_and_what_their_scheduler_says(kubernetes, api, job_id, namespace)
    assert not any("nodeName" in pod["spec"] for pod in pods)
    gate.open()
    api.wait_state(job_id, SUCCEEDED)
    assert len(api.get(job_id).runs) == 1


def test_a_gang_leaves_no_pod_group_behind(kubernetes, world, agent, api, namespace):
    del agent
    gate = world.gate()
    blocker = api.submit(show_directory(whole_nodes(gate.script(), nodes=1), world.root))
    api.wait_state(blocker, RUNNING)
    job_id = api.submit(gang("true"))
    eventually(lambda: pod_groups(kubernetes, namespace), "its PodGroup")
    api.cancel(job_id)
    eventually(lambda: not pod_groups(kubernetes, namespace), "its PodGroup is gone")
    gate.open()
    api.wait_state(blocker, SUCCEEDED)
