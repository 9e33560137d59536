"""Jobs that wait for room on Kubernetes, that never have any, and that are canceled wherever they are: by an agent with the
least rights."""

import json
import re

import grpc
import pytest
from muster.v1 import job_pb2, job_spec_pb2

from harness.api import CANCELED, FAILED, RUNNING, SUCCEEDED, error_info, script_spec
from harness.fixtures import kubernetes_fixture
from harness.holds import came_too_late, hold_once_it_is, is_hold_settled
from harness.kubernetes import show_directory
from harness.wait import eventually

kubernetes = kubernetes_fixture(nodes=2, gpus=4)

PENDING = job_pb2.JOB_STATE_PENDING
KINDS = ("jobs", "pods", "secrets", "services")
MANY = 200
HOLDS_AT_EACH_MOMENT = 8


@pytest.fixture
def agent(kubernetes, world, broker, namespace):
    del broker
    return kubernetes.make_least_agent(world, namespace, allow_host_path="yes").start()


def check_nothing_is_left(kubernetes, namespace):
    for kind in KINDS:
        eventually(lambda kind=kind: not kubernetes.objects(kind, namespace=namespace), f"the {kind} are gone")


def whole_node(text, **fields):
    """A job that takes all GPUs of each of its nodes."""
    spec = script_spec(text, **fields)
    spec.resources.gpus.add(count_millis=4000)
    return spec


def set_quota(kubernetes, namespace, **hard):
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    hard = {name.replace("_", "."): value for name, value in hard.items()}
    kubernetes.must("POST", path, {"metadata": {"name": "small"}, "spec": {"hard": hard}})
    eventually(lambda: "used" in kubernetes.must("GET", path + "/small")["status"], "the quota counts")
    return path + "/small"


# ---- never

def test_what_no_node_could_ever_hold_is_refused_at_once(agent, api):
    del agent
    spec = script_spec("true")
    spec.resources.gpus.add(count_millis=5000)
    with pytest.raises(Exception) as caught:
        api.submit(spec)
    assert error_info(caught.value).reason == "CANNOT_BE_PLACED"
    assert "at most 4 GPUs on a node, 5 are needed" in caught.value.details()
    assert not api.list_all()


def test_what_only_the_agent_can_judge_is_refused_at_once_as_by_the_plan(kubernetes, world, agent, api, namespace):
    del agent
    words = "none of the 2 nodes matches; node-1 comes nearest: it has no label disk=fast"
    spec = script_spec("true")
    spec.kubernetes.node_selector["disk"] = "fast"
    with pytest.raises(Exception) as caught:
        api.submit(spec)
    assert error_info(caught.value).reason == "CANNOT_BE_PLACED"
    assert words in caught.value.details()
    file = world.write("never.yaml", "run: 'true'\nkubernetes: {node_selector: {disk: fast}}\n")
    for verb in ("plan", "submit"):
        told = world.cli(verb, file, check=False)
        assert told.returncode == 13, verb
        assert words in told.stdout + told.stderr, verb
    assert not api.list_all()
    assert all(not kubernetes.objects(kind, namespace=namespace) for kind in KINDS)
    spec.kubernetes.node_selector.clear()
    spec.kubernetes.labels["team"] = "vision"
    api.wait_state(api.submit(spec), SUCCEEDED)


def test_gpus_are_asked_for_by_the_name_of_their_resource_or_by_a_type_that_there_is(world, agent, api):
    del agent
    for kind in ("nvidia.com/gpu", "gpu", "nvidia-h100-80gb-hbm3", "H100"):
        spec = script_spec("echo $NUM_GPU_PER_NODE")
        spec.resources.gpus.add(type=kind, count_millis=1000)
        job_id = api.submit(spec)
        api.wait_state(job_id, SUCCEEDED)
        assert api.stdout(job_id) == b"1\n", kind
    told = world.cli("run", "--gpus", "amd.com/gpu:1", "--", "true", check=False)
    assert told.returncode == 13 and "amd.com/gpu: 0, 1 is needed" in told.stderr
    told = world.cli("run", "--gpus", "A100:1", "--", "true", check=False)
    assert told.returncode == 13
    assert "no GPUs of type A100 (it has NVIDIA-H100-80GB-HBM3)" in told.stderr
    assert "NVIDIA-H100-80GB-HBM3:1 (resources.gpus, --gpus or a SkyPilot task's accelerators; " in told.stderr


def test_a_task_of_skypilots_that_names_its_gpus_as_there_runs_as_it_is(kubernetes, world, agent, api, namespace):
    del agent
    task = world.write("sky.yaml", "resources: {accelerators: H100:2}\nrun: echo $SKYPILOT_NUM_GPUS_PER_NODE\n")
    assert "H100 is NVIDIA-H100-80GB-HBM3 here" in world.cli("plan", task).stdout
    job_id = int(world.cli("submit", "-q", task).stdout)
    run = api.wait_state(job_id, SUCCEEDED).runs[0]
    assert api.stdout(job_id) == b"2\n"
    (pod,) = kubernetes.objects("pods", run.run_key, namespace)
    assert '"NVIDIA-H100-80GB-HBM3"' in json.dumps(pod["spec"]["affinity"])


def test_a_type_of_gpus_that_may_be_several_is_refused_with_them(kubernetes, world, agent, api):
    path = "/api/v1/nodes/node-2"
    label = lambda value: kubernetes.must("PATCH", path, {"metadata": {"labels": {"nvidia.com/gpu.product": value}}})
    label("NVIDIA-H100-PCIe")
    try:
        eventually(lambda: "NVIDIA-H100-PCIe" in world.cli("clusters", agent.cluster).stdout, "the agent has seen it")
        # A new inventory comes within a minute; an agent that starts brings one.
        agent.kill()
        agent.start()
        told = world.cli("run", "--gpus", "H100:1", "--", "true", check=False)
        assert told.returncode == 13, told.stderr
        assert 'GPUs of type "H100" may be NVIDIA-H100-80GB-HBM3 or NVIDIA-H100-PCIe; ask for' in told.stderr
        api.wait_state(int(world.cli("run", "-q", "--gpus", "pcie:1", "--", "true").stdout), SUCCEEDED)
    finally:
        label("NVIDIA-H100-80GB-HBM3")


def test_a_plan_says_whether_a_job_would_start_at_once(world, agent, api):
    del agent
    assert "Would start at once" in world.cli("plan", "--", "true").stdout
    gate = world.gate()
    blocker = api.submit(show_directory(whole_node(gate.script(), nodes=2), world.root))
    api.wait_state(blocker, RUNNING)
    told = world.cli("plan", "--gpus", "1", "--", "true").stdout
    assert "Would start at an unknown time: the cluster gives no estimate" in told and "it would wait: " in told
    gate.open()
    api.wait_state(blocker, SUCCEEDED)


def refuses(api, spec):
    try:
        api.submit(spec, validate_only=True)
    except grpc.RpcError:
        return True
    return False


def test_a_queue_where_no_kueue_is_is_refused_by_its_field(agent, api):
    del agent
    spec = script_spec("true")
    spec.kubernetes.queue = "team"
    eventually(lambda: api.plan(spec)[0].checks[0].subject == "the job", "a second look has confirmed it")
    eventually(lambda: refuses(api, spec), "the broker has heard of it")
    with pytest.raises(Exception) as caught:
        api.submit(spec)
    assert error_info(caught.value).reason == "CANNOT_BE_PLACED"
    assert 'kubernetes.queue is "team", and this cluster has no Kueue' in caught.value.details()
    assert "leave kubernetes.queue out" in caught.value.details()


# ---- not now

def test_what_a_quota_holds_back_says_so_and_goes_once_there_is_room(kubernetes, world, agent, api, namespace):
    del agent
    set_quota(kubernetes, namespace, requests_cpu="1")
    gate = world.gate()
    first = api.submit(show_directory(script_spec(gate.script()), world.root))
    api.wait_state(first, RUNNING)
    second = api.submit(script_spec("echo at last"))
    eventually(lambda: "quota small: 1 of 1 requests.cpu used" in world.cli("why", second).stdout, "it says what it waits for")
    job = api.get(second)
    assert job.state == PENDING
    assert not kubernetes.objects("pods", job.runs[0].run_key, namespace), "it waits in Muster, not in the cluster"
    gate.open()
    api.wait_state(second, SUCCEEDED)
    assert len(api.get(second).runs) == 1
    assert api.stdout(second) == b"at last\n"


def test_a_plan_says_of_a_quota_of_jobs_that_is_full_that_waiting_helps(kubernetes, agent, api, namespace):
    del agent
    set_quota(kubernetes, namespace, **{"count/jobs.batch": "1"})
    api.wait_state(api.submit(script_spec("true")), SUCCEEDED)
    (plan,) = api.plan(script_spec("true"))
    refused = next(check for check in plan.checks if "exceeded quota" in check.seen)
    assert refused.remedy.startswith("Wait: the job starts once the quota has room.") and "time_to_live" in refused.remedy


def test_a_job_that_is_larger_than_its_quota_makes_nothing_and_says_so_in_the_quotas_words(kubernetes, agent, api, namespace):
    del agent
    set_quota(kubernetes, namespace, requests_cpu="1")
    job_id = api.submit(script_spec("true", nodes=2))

    def words():
        """The agent refuses the launch, or its queue keeps the run: by what it has heard of the quota by then."""
        job = api.get(job_id)
        if job.state == FAILED:
            assert job.failure.failure_class == job_pb2.FAILURE_CLASS_CONFIG
            return job.failure.message
        return job.state_reason.message

    # The broker names the namespace, too, once it has heard of the quota.
    quota = re.compile(f"quota small( of namespace {namespace})? allows 1 requests\\.cpu in all, the run needs 2")
    eventually(lambda: quota.search(words()), "the quota is named")
    assert all(not kubernetes.objects(kind, namespace=namespace) for kind in KINDS)


def test_a_held_job_lets_others_pass_and_runs_after_its_release(world, agent, api):
    del agent
    gate = world.gate()
    blocker = api.submit(show_directory(whole_node(gate.script(), nodes=2), world.root))
    api.wait_state(blocker, RUNNING)
    held, free = (api.submit(whole_node("echo ran")) for _ in range(2))
    api.wait_state(held, PENDING)
    eventually(lambda: "nvidia.com/gpu" in world.cli("why", held).stdout, "it says what it waits for")
    api.hold(held)
    eventually(lambda: is_hold_settled(api.get(held)), "its agent has heard it")
    gate.open()
    api.wait_state(free, SUCCEEDED)
    assert api.get(held).state == PENDING
    api.release(held)
    api.wait_state(held, SUCCEEDED)
    assert api.stdout(held) == b"ran\n"


def test_a_hold_during_the_launch_is_kept_or_the_history_says_that_it_came_too_late(kubernetes, agent, api, namespace):
    del agent
    moments = [job_pb2.RUN_STATE_UNSPECIFIED, job_pb2.RUN_STATE_LAUNCHING, job_pb2.RUN_STATE_PENDING]
    asked = []
    for moment in moments * HOLDS_AT_EACH_MOMENT:
        job_id = api.submit(script_spec("echo ran"))
        if hold_once_it_is(api, job_id, moment):
            asked.append(job_id)
    for job_id in asked:
        eventually(lambda job_id=job_id: is_hold_settled(api.get(job_id)), "it is held, or has begun")
    kept = [job_id for job_id in asked if api.get(job_id).held]
    late = [job_id for job_id in asked if job_id not in kept]
    assert kept, "at least those that were asked for first"
    for job_id in kept:
        run_key = api.get(job_id).runs[-1].run_key
        eventually(lambda run_key=run_key: not kubernetes.objects("pods", run_key, namespace), "nothing of it is there")
        assert api.get(job_id).state in (job_pb2.JOB_STATE_QUEUED, PENDING)
        api.release(job_id)
    for job in api.list_all():
        runs = api.wait_state(job.id, SUCCEEDED).runs
        # The server may no longer have the output of a pod that the suspension took away, and a line says so.
        said = [line for line in api.stdout(job.id).splitlines() if not line.startswith(b"muster: ")]
        assert said == [b"ran"], "once, in its last run"
        # A program that began in the moment of the suspension has ended with it, and another run has followed.
        for run in runs[:-1]:
            assert run.failure.failure_class == job_pb2.FAILURE_CLASS_INFRA, run
            assert "hold" in run.failure.message, run
        if job.id not in asked:
            assert len(runs) == 1, "nobody has asked to hold it"
            assert api.stdout(job.id) == b"ran\n"
        assert len(runs) > 1 or came_too_late(api, job.id) == (job.id in late)


def test_a_job_that_was_let_go_and_finds_no_node_is_held_and_goes_on_after_its_release(kubernetes, world, broker, api, namespace):
    """The agent may also be killed and started meanwhile."""
    del broker
    # An agent that may not list nodes cannot tell that there is no room, and lets the run go.
    agent = kubernetes.make_least_agent(world, namespace, cluster_rights=False, allow_host_path="yes").start()
    path = take_node(kubernetes, namespace, "node-2")
    gate = world.gate()
    blocker = api.submit(show_directory(whole_node(gate.script()), world.root))
    api.wait_state(blocker, RUNNING)
    job_id = api.submit(whole_node("echo ran"))
    run_key = run_that_finds_no_node(kubernetes, api, job_id, namespace)
    api.hold(job_id)
    eventually(lambda: "held: it starts once it is released" in api.get(job_id).runs[0].state_reason.message, "it is held")
    assert not kubernetes.objects("pods", run_key, namespace), "nothing of it is there"
    agent.kill()
    agent.start()
    api.release(job_id)
    assert run_that_finds_no_node(kubernetes, api, job_id, namespace) == run_key, "it waits as before"
    gate.open()
    api.wait_state(job_id, SUCCEEDED)
    kubernetes.must("DELETE", path + "?gracePeriodSeconds=0")
    assert len(api.get(job_id).runs) == 1
    assert api.stdout(job_id) == b"ran\n"


def test_a_job_that_a_hold_has_taken_back_leaves_its_room_and_waits_for_its_turn_after_its_release(kubernetes, world, agent, api,
                                                                                                  namespace):
    del agent
    spec = whole_node("true", nodes=2)
    spec.kubernetes.scheduler_name = "nobody"  # it is let go, and never finds its nodes
    held = api.submit(spec)
    run_key = eventually(lambda: api.get(held).runs and api.get(held).runs[0].run_key, "it has a run")
    eventually(lambda: kubernetes.objects("pods", run_key, namespace), "it was let go")
    api.hold(held)
    eventually(lambda: "held: it starts once it is released" in api.get(held).runs[0].state_reason.message, "it is held")
    gate = world.gate()
    blocker = api.submit(show_directory(whole_node(gate.script(), nodes=2), world.root))
    api.wait_state(blocker, RUNNING)
    api.release(held)
    eventually(lambda: "nvidia.com/gpu" in world.cli("why", held).stdout, "it says what it waits for")
    assert not kubernetes.objects("pods", run_key, namespace), "it waits in Muster, not in the cluster"
    gate.open()
    api.wait_state(blocker, SUCCEEDED)
    eventually(lambda: kubernetes.objects("pods", run_key, namespace), "its turn has come")
    api.cancel(held)
    api.wait_state(held, CANCELED)


def run_that_finds_no_node(kubernetes, api, job_id, namespace):
    """The run key, once its pod is there and the scheduler has found no node for it."""
    def key():
        runs = api.get(job_id).runs
        pods = kubernetes.objects("pods", runs[-1].run_key, namespace) if runs else []
        waits = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"] and any(
            condition["reason"] == "Unschedulable" for condition in pod["status"].get("conditions", []) if "reason" in condition)]
        return runs[-1].run_key if waits else None
    return eventually(key, "its pod finds no node")


# ---- half a gang

def test_a_run_that_finds_nodes_for_some_of_its_pods_only_is_taken_down_whole_and_tried_again(kubernetes, world, broker, api,
                                                                                              namespace):
    del broker
    # An agent that may not list nodes cannot tell that there is no room for all of them, and lets
    # the run go.
    kubernetes.make_least_agent(world, namespace, cluster_rights=False, gang_grace="1s", allow_host_path="yes").start()
    path = take_node(kubernetes, namespace, "node-2")
    # Each rank waits with its end, which frees its node, until the other one has begun.
    spec = show_directory(whole_node(f"""
touch {world.root}/$MUSTER_RUN-$NODE_RANK
until [ -e {world.root}/$MUSTER_RUN-$((1 - NODE_RANK)) ]; do sleep 0.05; done
echo rank $NODE_RANK""", nodes=2), world.root)
    spec.retry.backoff.seconds = 1
    job_id = api.submit(spec)
    first = eventually(lambda: next((run for run in api.get(job_id).runs if run.state == job_pb2.RUN_STATE_FAILED), None),
                       "half a run is given up")
    assert first.failure.failure_class == job_pb2.FAILURE_CLASS_INFRA and first.failure.retriable
    assert "1 of 2 pods had nodes" in first.failure.message and "Insufficient nvidia.com/gpu" in first.failure.message
    for kind in KINDS:
        eventually(lambda kind=kind: not kubernetes.objects(kind, first.run_key, namespace), f"its {kind} are gone")
    kubernetes.must("DELETE", path + "?gracePeriodSeconds=0")
    api.wait_state(job_id, SUCCEEDED)
    assert [api.stdout(job_id, rank=rank) for rank in range(2)] == [b"rank 0\n", b"rank 1\n"]


def take_node(kubernetes, namespace, node):
    """Another's pod has all GPUs of the node; its path."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    gpus = {"nvidia.com/gpu": 4}
    kubernetes.must("POST", path, {"metadata": {"name": "others"}, "spec": {
        "nodeSelector": {"kubernetes.io/hostname": node}, "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "any", "command": ["sleep", "1000"],
                        "resources": {"requests": gpus, "limits": gpus}}]}})
    path += "/others"
    eventually(lambda: kubernetes.must("GET", path)["status"]["phase"] == "Running", "it runs")
    return path


# ---- cancel

def test_cancel_of_a_job_that_waits(kubernetes, world, agent, api, namespace):
    del agent
    gate = world.gate()
    blocker = api.submit(show_directory(whole_node(gate.script(), nodes=2), world.root))
    api.wait_state(blocker, RUNNING)
    waiting = api.submit(whole_node("true"))
    api.wait_state(waiting, PENDING)
    api.cancel(waiting)
    job = api.wait_state(waiting, CANCELED)
    for kind in KINDS:
        eventually(lambda kind=kind: not kubernetes.objects(kind, job.runs[0].run_key, namespace), f"its {kind} are gone")
    gate.open()
    api.wait_state(blocker, SUCCEEDED)


def test_cancel_of_a_job_whose_image_is_being_pulled(kubernetes, agent, api, namespace):
    del agent
    job_id = api.submit(script_spec("exec sleep 1000", image="registry.test/slow:1"))
    api.wait_run_state(job_id, job_pb2.RUN_STATE_STARTING)
    api.cancel(job_id)
    job = api.wait_state(job_id, CANCELED)
    assert job.cancel_requested and not job.HasField("failure")
    check_nothing_is_left(kubernetes, namespace)


STUBBORN = "trap '' TERM; while :; do sleep 0.1; done"


# A cancel is patient for as long as the pod may take, and asks again after 10 s: no state is made up meanwhile.
@pytest.mark.parametrize("script,grace_s,last", [
    ("exec sleep 1000", 1, ""),
    ("trap 'echo bye; exit 0' TERM; while :; do sleep 0.1; done", 60, "bye"),
    (STUBBORN, 1, ""),
    (STUBBORN, 12, ""),
], ids=["that-ends", "that-says-good-bye", "that-ignores-term", "that-may-ignore-term-for-longer-than-a-cancel-waits"])
def test_cancel_of_a_running_job(kubernetes, world, agent, api, namespace, script, grace_s, last):
    del agent
    ready = world.path("ready")
    spec = show_directory(script_spec(f"echo up; touch {ready}\n{script}"), world.root)
    spec.kubernetes.termination_grace.seconds = grace_s
    job_id = api.submit(spec)
    eventually(ready.exists, "the job has begun")
    api.wait_state(job_id, RUNNING)
    api.cancel(job_id, reason="enough")
    job = api.wait_state(job_id, CANCELED)
    assert job.cancel_requested and not job.HasField("failure") and len(job.runs) == 1
    kinds = [step.kind for step in api.transitions(job_id)]
    assert kinds.count(job_pb2.TRANSITION_KIND_CANCEL_REQUESTED) == 1
    check_nothing_is_left(kubernetes, namespace)
    said = api.stdout(job_id).decode()
    assert said.startswith("up\n") and last in said


# ---- many

def test_two_hundred_jobs_at_once_run_once_each_and_leave_nothing(kubernetes, agent, api, namespace):
    del agent
    spec = script_spec("echo $MUSTER_JOB_ID", resources=job_spec_pb2.Resources(cpu_millis=100))
    spec.kubernetes.time_to_live.seconds = 1
    ids = api.submit_many([spec] * MANY)
    for job_id in ids:
        assert len(api.wait_state(job_id, SUCCEEDED).runs) == 1
        assert api.stdout(job_id) == f"{job_id}\n".encode()
    check_nothing_is_left(kubernetes, namespace)
