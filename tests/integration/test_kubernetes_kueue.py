"""Jobs in the queues of a real Kueue, by an agent with the least rights."""

import grpc
import pytest
from muster.v1 import job_pb2, job_spec_pb2

from harness.api import CANCELED, FAILED, RUNNING, SUCCEEDED, error_info, script_spec
from harness.holds import came_too_late, hold_once_it_is, is_hold_settled
from harness.kubernetes import show_directory
from harness.kueue import KueueCluster
from harness.wait import eventually

PENDING = job_pb2.JOB_STATE_PENDING
HELD = "held by "
LAUNCHING = job_pb2.RUN_STATE_LAUNCHING
HOLDS = 8


@pytest.fixture(scope="module")
def kubernetes():
    made = KueueCluster(nodes=2, gpus=0)
    made.must("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "urgent"}, "value": 1000})
    made.make_check("budget")
    yield made
    made.close()


@pytest.fixture
def agent(kubernetes, world, broker, namespace):
    del broker
    return kubernetes.make_least_agent(world, namespace, allow_host_path="yes").start()


def queued(text, queue="team", cpus=1, **fields):
    """Returns a job of so many cpus on each of its nodes; the queues of these tests have two in
    all."""
    spec = script_spec(text, **fields)
    spec.resources.cpu_millis = cpus * 1000
    if queue:
        spec.kubernetes.queue = queue
    return spec


def blocked(world, **fields):
    """A job that takes the whole queue, and what opens its gate."""
    gate = world.gate()
    return show_directory(queued(gate.script(), cpus=2, **fields), world.root), gate


def make_queue(kubernetes, api, namespace, name="team", **made):
    """A queue that the broker has heard of: until then it refuses jobs for it."""
    kubernetes.make_queue(namespace, name, **made)
    eventually(lambda: not refusal_of(api, queued("true", queue=name)), f"the broker has heard of the queue {name}")


def fill_queue(world, api):
    """A job that runs and has the whole queue, and what opens its gate."""
    spec, gate = blocked(world)
    job_id = api.submit(spec)
    api.wait_state(job_id, RUNNING)
    return job_id, gate


def wait_for_reason(world, job_id, *words):
    eventually(lambda: all(word in world.cli("why", job_id).stdout for word in words), f"job {job_id} says {words}")


def run_key(api, job_id):
    return api.get(job_id).runs[-1].run_key


# ---- a queue

def test_what_kueue_admits_runs(kubernetes, agent, api, namespace):
    del agent
    make_queue(kubernetes, api, namespace)
    job_id = api.submit(queued("echo ran", nodes=2))
    api.wait_state(job_id, SUCCEEDED)
    assert api.stdout(job_id, rank=0) == b"ran\n" and api.stdout(job_id, rank=1) == b"ran\n"
    assert kubernetes.queue_of(run_key(api, job_id), namespace) == "team"


def test_what_is_beyond_the_quota_waits_and_says_kueues_words(kubernetes, world, agent, api, namespace):
    del agent
    make_queue(kubernetes, api, namespace)
    first, gate = fill_queue(world, api)
    second = api.submit(queued("echo second", cpus=2))
    wait_for_reason(world, second, "waits in queue team (Kueue): ", "insufficient unused quota for cpu in flavor plain")
    shown = world.cli("show", second).stdout
    assert "waits in queue team (Kueue): couldn't assign flavors" in shown, shown
    gate.open()
    api.wait_state(second, SUCCEEDED)
    api.wait_state(first, SUCCEEDED)


def test_a_queue_that_is_not_there_is_refused_with_those_that_are(kubernetes, agent, api, namespace):
    del agent
    make_queue(kubernetes, api, namespace, "night")
    make_queue(kubernetes, api, namespace)
    spec = queued("true")
    spec.kubernetes.queue = "tema"
    words = (f'kubernetes.queue is "tema", and namespace {namespace} has no such queue of Kueue\'s (LocalQueue); '
             "it has night, team")
    check_refused(kubernetes, api, namespace, spec, words)


def refusal_of(api, spec):
    """The reason that no cluster takes the job, as the broker knows by now; empty: one does."""
    try:
        api.submit(spec, validate_only=True)
    except grpc.RpcError as error:
        return error.details()
    return ""


def check_refused(kubernetes, api, namespace, spec, words):
    eventually(lambda: api.plan(spec)[0].checks[0].subject == "the job", "what is missing is so at a second look")
    (plan,) = api.plan(spec)
    assert any(words in check.seen for check in plan.checks), plan
    eventually(lambda: words in refusal_of(api, spec), "the broker has heard of it")
    with pytest.raises(Exception) as caught:
        api.submit(spec)
    assert error_info(caught.value).reason == "CANNOT_BE_PLACED" and words in caught.value.details()
    assert not kubernetes.objects("jobs", namespace=namespace), "nothing was made"


@pytest.mark.parametrize("gang,words", [
    ("KUBERNETES_GANG_POD_GROUP", "kubernetes.gang is pod_group, and this cluster has no PodGroups"),
    ("KUBERNETES_GANG_VOLCANO", "kubernetes.gang is volcano, and this cluster has no Volcano")])
def test_a_gang_scheduler_that_is_not_there_is_refused(kubernetes, agent, api, namespace, gang, words):
    del agent
    spec = script_spec("true")
    spec.kubernetes.gang = job_spec_pb2.KubernetesGang.Value(gang)
    check_refused(kubernetes, api, namespace, spec, words)


def test_a_hold_takes_a_job_that_waits_out_of_its_queue(kubernetes, world, agent, api, namespace):
    del agent
    make_queue(kubernetes, api, namespace)
    _, gate = fill_queue(world, api)
    held, third = api.submit(queued("echo held", cpus=2)), api.submit(queued("echo third", cpus=2))
    wait_for_reason(world, held, "insufficient unused quota")
    api.hold(held)
    wait_for_reason(world, held, HELD)
    # The broker says at once that it is held.
    eventually(lambda: kubernetes.is_held(run_key(api, held), namespace), "Kueue does not have it any more")
    gate.open()
    api.wait_state(third, SUCCEEDED)
    assert api.get(held).state == PENDING and not kubernetes.has_reserved(run_key(api, held), namespace)
    api.release(held)
    api.wait_state(held, SUCCEEDED)


def held_while_launching(api, count, text="echo ran"):
    """Returns the jobs, of so many, whose hold was accepted."""
    jobs = [api.submit(queued(text)) for _ in range(count)]
    return [job_id for job_id in jobs if hold_once_it_is(api, job_id, LAUNCHING)]


def test_a_job_that_is_held_while_it_is_launched_never_runs_until_it_is_released(kubernetes, agent, api, namespace):
    del agent
    make_queue(kubernetes, api, namespace, cpus=16)
    kubernetes.stop_queue(namespace, policy="Hold")
    held = held_while_launching(api, HOLDS)
    assert len(held) == HOLDS, "nothing could begin"
    for job_id in held:
        # The broker says at once that it is held.
        eventually(lambda job_id=job_id: kubernetes.is_held(run_key(api, job_id), namespace), f"Kueue does not have job {job_id}")
    last = api.submit(queued("echo last"))
    kubernetes.stop_queue(namespace, policy="None")
    api.wait_state(last, SUCCEEDED)
    for job_id in held:
        assert api.get(job_id).state == PENDING
        assert not kubernetes.objects("pods", run_key(api, job_id), namespace)
    api.release(*held)
    for job_id in held:
        api.wait_state(job_id, SUCCEEDED)
        assert len(api.get(job_id).runs) == 1 and api.stdout(job_id) == b"ran\n"


# Kueue lets go what it has admitted, whatever queue the Job names by then.
def test_a_hold_while_kueue_admits_is_kept_or_the_history_says_that_it_came_too_late(kubernetes, agent, api, namespace):
    del agent
    make_queue(kubernetes, api, namespace, cpus=16)
    asked = held_while_launching(api, HOLDS)
    for job_id in asked:
        eventually(lambda job_id=job_id: not api.get(job_id).held or kubernetes.is_held(run_key(api, job_id), namespace),
                   "Kueue has it in no queue any more, or has let it go")
    kept = [job_id for job_id in asked if api.get(job_id).held]
    for job_id in kept:
        assert api.get(job_id).state == PENDING and not kubernetes.objects("pods", run_key(api, job_id), namespace)
    if kept:
        api.release(*kept)
    for job in api.list_all():
        api.wait_state(job.id, SUCCEEDED)
        assert len(api.get(job.id).runs) == 1 and api.stdout(job.id) == b"ran\n"
        assert came_too_late(api, job.id) == (job.id in asked and job.id not in kept)


def test_a_job_of_higher_priority_preempts_one_that_runs(kubernetes, world, agent, api, namespace):
    del agent
    make_queue(kubernetes, api, namespace)
    spec, gate = blocked(world)
    low = api.submit(spec)
    api.wait_state(low, RUNNING)
    urgent = queued("echo urgent", cpus=2)
    urgent.kubernetes.priority_class = "urgent"
    api.wait_state(api.submit(urgent), SUCCEEDED)
    failure = api.wait_state(low, FAILED).failure
    assert failure.failure_class == job_pb2.FAILURE_CLASS_PREEMPTED, failure
    gate.open()


def test_what_kueue_takes_back_before_it_began_goes_on_later(kubernetes, world, agent, api, namespace):
    del agent
    make_queue(kubernetes, api, namespace)
    with kubernetes.cordoned():
        job_id = api.submit(queued("echo ran"))
        wait_for_reason(world, job_id, "Unschedulable")
        kubernetes.stop_queue(namespace)
        wait_for_reason(world, job_id, "waits in queue team (Kueue): ", "is inactive")
    kubernetes.stop_queue(namespace, policy="None")
    api.wait_state(job_id, SUCCEEDED)
    assert len(api.get(job_id).runs) == 1 and api.stdout(job_id) == b"ran\n"


def test_what_kueue_takes_back_while_its_image_is_pulled_waits_again(kubernetes, world, agent, api, namespace):
    del agent
    make_queue(kubernetes, api, namespace)
    job_id = api.submit(queued("true", image="registry.example/missing:1"))
    wait_for_reason(world, job_id, "registry.example/missing:1")
    kubernetes.stop_queue(namespace)
    wait_for_reason(world, job_id, "waits in queue team (Kueue): ", "is inactive")
    kubernetes.stop_queue(namespace, policy="None")
    wait_for_reason(world, job_id, "registry.example/missing:1")
    api.cancel(job_id)
    api.wait_state(job_id, CANCELED)


def test_a_job_in_a_queue_is_canceled(kubernetes, world, agent, api, namespace):
    del agent
    make_queue(kubernetes, api, namespace)
    kubernetes.stop_queue(namespace, policy="Hold")
    job_id = api.submit(queued("true"))
    wait_for_reason(world, job_id, "waits in queue team (Kueue): ", "is inactive")
    api.cancel(job_id)
    api.wait_state(job_id, CANCELED)
    eventually(lambda: not kubernetes.objects("jobs", namespace=namespace), "its Job is gone")


# ---- what somebody else has to agree to, and what is given up

def wait_for_check(world, job_id):
    wait_for_reason(world, job_id, "waits in queue team (Kueue): admission checks: budget is Pending")


def test_what_an_admission_check_agrees_to_runs(kubernetes, world, agent, api, namespace):
    del agent
    make_queue(kubernetes, api, namespace, checks=["budget"])
    job_id = api.submit(queued("echo ran"))
    wait_for_check(world, job_id)
    kubernetes.judge("budget", run_key(api, job_id), namespace, "Ready", "paid for")
    api.wait_state(job_id, SUCCEEDED)


def test_what_an_admission_check_rejects_has_failed_in_its_words(kubernetes, world, agent, api, namespace):
    del agent
    make_queue(kubernetes, api, namespace, checks=["budget"])
    job_id = api.submit(queued("echo ran"))
    wait_for_check(world, job_id)
    kubernetes.judge("budget", run_key(api, job_id), namespace, "Rejected", "over by 3 hours")
    failure = check_given_up(api, job_id)
    assert "Admission check(s): budget, were rejected" in failure.message, failure
    assert "over by 3 hours" in str(failure), failure
    eventually(lambda: not kubernetes.objects("jobs", namespace=namespace), "its Job is gone")


def check_given_up(api, job_id):
    """The run has failed by Kueue's decision, and no other one follows; its failure."""
    job = api.wait_state(job_id, FAILED)
    assert len(job.runs) == 1 and not job.failure.retriable
    assert job.failure.failure_class == job_pb2.FAILURE_CLASS_CONFIG
    assert job.failure.message.startswith("The queue has given the job up: it waits in queue team (Kueue): "), job.failure
    return job.failure


def test_what_people_deactivate_waits_until_they_take_that_back(kubernetes, world, agent, api, namespace):
    del agent
    make_queue(kubernetes, api, namespace)
    _, gate = fill_queue(world, api)
    second = api.submit(queued("echo second", cpus=2))
    wait_for_reason(world, second, "insufficient unused quota")
    kubernetes.set_active(run_key(api, second), namespace, False)
    wait_for_reason(world, second, "waits in queue team (Kueue): The workload is deactivated")
    third = api.submit(queued("echo third", cpus=2))
    gate.open()
    api.wait_state(third, SUCCEEDED)
    assert api.get(second).state == PENDING
    kubernetes.set_active(run_key(api, second), namespace, True)
    api.wait_state(second, SUCCEEDED)
    assert len(api.get(second).runs) == 1


# ---- a default queue, into which Kueue puts what names none

def test_a_default_queue_takes_jobs_that_name_none(kubernetes, world, agent, api, namespace):
    del agent
    make_queue(kubernetes, api, namespace, "default")
    spec, gate = blocked(world)
    spec.kubernetes.ClearField("queue")
    first = api.submit(spec)
    api.wait_state(first, RUNNING)
    second = api.submit(queued("echo second", queue="", cpus=2))
    wait_for_reason(world, second, "waits in queue default (Kueue): ", "insufficient unused quota")
    gate.open()
    api.wait_state(second, SUCCEEDED)


# An agent that sees no queues waits for room itself first: its Job is there, and Kueue must not start that either.
@pytest.mark.parametrize("sees_queues", [True, False])
def test_a_default_queue_starts_no_held_job(kubernetes, world, broker, api, namespace, sees_queues):
    del broker
    kubernetes.make_queue(namespace, "default", cpus=32)
    agent = kubernetes.make_least_agent(world, namespace, allow_host_path="yes")
    if not sees_queues:
        kubernetes.take_rights(namespace, "kueue.x-k8s.io")
    agent.start()
    gate = world.gate()
    whole = show_directory(queued(gate.script(), queue="", cpus=16, nodes=2), world.root)
    first = api.submit(whole)
    api.wait_state(first, RUNNING)
    held, gone, third = (api.submit(queued("echo ran", queue="", cpus=16, nodes=2)) for _ in range(3))
    wait_for_reason(world, held, "cpu")
    api.hold(held, gone)
    wait_for_reason(world, held, HELD)
    eventually(lambda: is_hold_settled(api.get(held)), "its agent has heard it")
    api.cancel(gone)
    gate.open()
    api.wait_state(third, SUCCEEDED)
    api.wait_state(gone, CANCELED)
    key = run_key(api, held)
    assert not kubernetes.objects("pods", key, namespace) and not kubernetes.has_reserved(key, namespace)
    api.release(held)
    api.wait_state(held, SUCCEEDED)
    assert kubernetes.queue_of(key, namespace) == "default", "where Kueue has every Job"


# ---- without the right to see Kueue's objects

def test_without_rights_to_see_kueue_jobs_run_and_the_cluster_says_what_is_not_seen(kubernetes, world, broker, api, namespace):
    del broker
    agent = kubernetes.make_least_agent(world, namespace)
    kubernetes.take_rights(namespace, "kueue.x-k8s.io")
    agent.start()
    kubernetes.make_queue(namespace)
    api.wait_state(api.submit(queued("true")), SUCCEEDED)
    api.wait_state(api.submit(queued("true", queue="")), SUCCEEDED)
    told = world.cli("clusters", "lab").stdout
    assert "the agent cannot see why runs wait in its queues" in told, told
    checked = world.cli("check", "lab", check=False).stdout
    assert "why runs wait in their queues is not told" in checked, checked


def test_a_check_lists_the_queues_and_warns_of_a_default_one(kubernetes, world, agent, namespace):
    del agent
    kubernetes.make_queue(namespace)
    assert f"queues of Kueue in namespace {namespace}" in world.cli("check", "lab", check=False).stdout
    kubernetes.make_queue(namespace, "default")
    checked = world.cli("check", "lab", check=False).stdout
    assert "default, team" in checked and "each job that names no queue" in checked, checked
