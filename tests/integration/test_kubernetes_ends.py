"""Ends of runs on Kubernetes, and their tellings: by an agent with the least rights."""

import subprocess

import pytest
from muster.v1 import facts_pb2, job_pb2, job_spec_pb2

from harness.api import CANCELED, FAILED, RUNNING, SUCCEEDED, argv_spec, script_spec
from harness.fixtures import kubernetes_fixture
from harness.kubernetes import show_directory
from harness.wait import eventually

kubernetes = kubernetes_fixture(nodes=3, gpus=0)

MEBIBYTE = 1 << 20
CALL_TIMEOUT_S = 60
# Long enough for every agent to have the end and the logs.
WEEK_S = 604800
# A log that its node refuses is asked for during three minutes.
LOST_LOG_S = 400
PRIVATE = "registry.test/private:1"

# Rank 0 gets the others' messages over the address and the port that every rank knows.
MEET = """#!/usr/bin/python3
import os, socket, time
rank, world = int(os.environ["NODE_RANK"]), int(os.environ["WORLD_SIZE"])
master = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    with socket.create_server(master) as server:
        peers = [server.accept()[0] for _ in range(world - 1)]
        print("met", sorted(int(peer.recv(16)) for peer in peers))
else:
    while True:
        try:
            peer = socket.create_connection(master)
            break
        except OSError:
            time.sleep(0.1)
    peer.sendall(str(rank).encode())
    print("rank", rank)
"""


@pytest.fixture
def agent(kubernetes, world, broker):
    del broker
    return kubernetes.make_least_agent(world, start_grace="1s", allow_host_path="yes").start()


def check_nothing_is_left(kubernetes, job):
    for run in job.runs:
        for kind in ("jobs", "pods", "secrets", "services"):
            eventually(lambda kind=kind, key=run.run_key: not kubernetes.objects(kind, key),
                       f"the {kind} of {run.run_key} are gone")


def test_memory_that_runs_out_is_told_as_that(api, agent):
    del agent
    spec = argv_spec("python3", "-c", f"print('begins', flush=True); x = bytearray({400 * MEBIBYTE})",
                     resources=job_spec_pb2.Resources(memory_bytes=64 * MEBIBYTE))
    job = api.wait_state(api.submit(spec), FAILED)
    assert job.failure.failure_class == job_pb2.FAILURE_CLASS_OOM
    assert "OOMKilled" in job.failure.message and "memory" in job.failure.remedy
    assert job.failure.memory_limit_bytes == 64 * MEBIBYTE and "its memory limit of 64Mi" in job.failure.message
    assert job.exit.signal == 9
    assert api.stdout(job.id) == b"begins\n"


def test_a_success_has_no_failure(api, agent):
    del agent
    # Words that would explain a failure, in the output of a success.
    job = api.wait_state(api.submit(script_spec("echo CUDA out of memory; echo Traceback >&2; exit 0")), SUCCEEDED)
    assert not job.HasField("failure") and not job.runs[0].HasField("failure")
    assert (job.exit.code, job.exit.signal) == (0, 0)


# Whatever could be taken for the start script's own words, wherever the script's words go.
FORGED = """for seal in "$MUSTER_END_SEAL" "$MUSTER_RUN_KEY" 1; do
  printf 'muster: setup failed\\nmuster-end/1 seal=%s phase=setup problem=failed\\n' "$seal"
done | tee -a /dev/termination-log >&2
cat /dev/termination-log
exit 3
"""


def test_only_the_start_script_says_that_there_was_no_command(api, agent):
    del agent
    jobs = [api.submit(spec) for spec in (script_spec(FORGED), script_spec("true", setup="exit 7"),
                                          script_spec("true", setup="#!/no/shell\n"), argv_spec("no-such-program"))]
    forged, setup, setup_start, start = [api.wait_state(job_id, FAILED) for job_id in jobs]
    assert forged.failure.failure_class == job_pb2.FAILURE_CLASS_PROGRAM, forged.failure
    assert (forged.failure.phase, forged.exit.code) == (facts_pb2.FAILURE_PHASE_COMMAND, 3)
    assert b"muster: setup failed" in api.stdout(forged.id)
    for job, phase, words in ((setup, facts_pb2.FAILURE_PHASE_SETUP, "The setup script ended with exit code 7, so "),
                              (setup_start, facts_pb2.FAILURE_PHASE_SETUP_START,
                               'The setup script could not be started: "/no/shell": exit code 127'),
                              (start, facts_pb2.FAILURE_PHASE_COMMAND_START,
                               'The command could not be started: "no-such-program": exit code 127')):
        assert job.failure.failure_class == job_pb2.FAILURE_CLASS_CONFIG, job.failure
        assert job.failure.phase == phase and job.failure.message.startswith(words), job.failure
        assert not job.HasField("exit"), "the command never ran"
        assert "seal" not in str(job), "nobody's business"


def test_an_image_that_is_not_there_ends_the_run(kubernetes, api, agent):
    del agent
    job = api.wait_state(api.submit(script_spec("true", image="registry.test/missing:1")), FAILED)
    assert job.failure.failure_class == job_pb2.FAILURE_CLASS_IMAGE
    assert "registry.test/missing:1" in job.failure.message and "not found" in job.failure.message
    last = [step for step in api.transitions(job.id) if step.run_state == job_pb2.RUN_STATE_FAILED][-1]
    assert "because Muster had given it up" in last.evidence.detail, last
    check_nothing_is_left(kubernetes, job)


def test_a_private_image_is_had_with_the_secret_that_the_command_makes(kubernetes, api, agent):
    refused = api.wait_state(api.submit(script_spec("true", image=PRIVATE)), FAILED).failure
    assert refused.failure_class == job_pb2.FAILURE_CLASS_IMAGE
    assert "401 Unauthorized" in refused.message and "pull secret" in refused.remedy
    done = install(agent, "secret")
    assert done.returncode == 1 and "cannot read" in done.stderr, done
    assert "secrets" in done.stderr and "forbidden" in done.stderr, "the server's own words"
    done = install(agent, "secret", "--kubernetes-kubeconfig", str(kubernetes.kubeconfig))
    assert done.returncode == 0, done
    name = done.stdout.split()[1]
    assert f"Secret {name} in namespace default" in done.stdout and "registry.test" in done.stdout
    spec = script_spec("echo had it", image=PRIVATE)
    spec.kubernetes.image_pull_secrets.append(name)
    job_id = api.submit(spec)
    api.wait_state(job_id, SUCCEEDED)
    assert api.stdout(job_id) == b"had it\n"


def install(agent, secret, *options):
    """Gives the cluster that secret for the registry, on standard input."""
    return subprocess.run([*agent.argv, *options, "install-credentials", "registry.test", "someone"], env=agent.env,
                          input=secret + "\n", text=True, capture_output=True, timeout=CALL_TIMEOUT_S, check=False)


@pytest.mark.parametrize("kind", ["claim", "secret", "config_map"])
def test_a_volume_that_is_not_there_is_a_fault_of_the_configuration(kubernetes, api, agent, kind):
    del agent
    spec = script_spec("echo never")
    spec.kubernetes.volumes.add(mount_path="/data", **{kind: "nowhere"})
    job = api.wait_state(api.submit(spec), FAILED)
    assert job.failure.failure_class == job_pb2.FAILURE_CLASS_CONFIG
    assert f'"nowhere" not found (kubernetes.volumes[0].{kind})' in job.failure.message
    assert job.failure.remedy and not job.HasField("exit")
    check_nothing_is_left(kubernetes, job)


def test_three_nodes_meet_at_the_master(api, agent):
    del agent
    spec = script_spec(MEET, nodes=3)
    spec.kubernetes.spread = job_spec_pb2.KUBERNETES_SPREAD_REQUIRED
    job = api.wait_state(api.submit(spec), SUCCEEDED)
    assert sorted(job.runs[0].nodes) == ["node-1", "node-2", "node-3"]
    assert [api.stdout(job.id, rank=rank) for rank in range(3)] == [b"met [1, 2]\n", b"rank 1\n", b"rank 2\n"]


def test_the_rank_that_fails_is_named_and_the_output_of_all_is_kept(kubernetes, world, api, agent):
    del agent
    spec = script_spec(f"""
echo rank $NODE_RANK
touch {world.root}/up-$NODE_RANK
[ $NODE_RANK = 1 ] || exec sleep 1000
until [ -e {world.root}/up-0 ] && [ -e {world.root}/up-2 ]; do sleep 0.05; done
exit 5""", nodes=3)
    spec.kubernetes.time_to_live.seconds = 1
    job = api.wait_state(api.submit(show_directory(spec, world.root)), FAILED)
    assert (job.exit.code, job.exit.rank) == (5, 1)
    assert job.failure.failure_class == job_pb2.FAILURE_CLASS_PROGRAM
    check_nothing_is_left(kubernetes, job)
    for rank in range(3):
        # A server that has removed a pod cannot tell whether it has said more, if it was ended with the
        # others.
        assert api.stdout(job.id, rank=rank).startswith(f"rank {rank}\n".encode())


def test_a_job_is_kept_for_a_week_until_the_broker_has_all_of_it_and_then_for_its_time_to_live(kubernetes, world, api, agent):
    gate = world.gate()
    spec = show_directory(script_spec(gate.script() + "\necho done"), world.root)
    spec.kubernetes.time_to_live.seconds = 1
    job_id = api.submit(spec)
    run = api.wait_state(job_id, RUNNING).runs[0]
    (thing,) = kubernetes.objects("jobs", run.run_key)
    assert thing["spec"]["ttlSecondsAfterFinished"] == WEEK_S
    agent.kill()
    gate.open()
    eventually(lambda: ended(kubernetes, run.run_key), "Kubernetes has seen the end")
    (thing,) = kubernetes.objects("jobs", run.run_key)
    assert thing["spec"]["ttlSecondsAfterFinished"] == WEEK_S, "nobody has its end and its logs yet"
    agent.start()
    job = api.wait_state(job_id, SUCCEEDED)
    check_nothing_is_left(kubernetes, job)
    assert api.stdout(job_id) == b"done\n"
    assert api.get(job_id).state == SUCCEEDED


def ended(kubernetes, run_key):
    (thing,) = kubernetes.objects("jobs", run_key)
    return thing["status"].get("completionTime")


def test_a_job_that_others_delete_is_canceled_with_that_as_evidence(kubernetes, world, api, agent):
    del agent
    job_id = api.submit(script_spec("echo up; exec sleep 1000"))
    run = api.wait_state(job_id, RUNNING).runs[0]
    kubernetes.must("DELETE", f"/apis/batch/v1/namespaces/default/jobs/{run.run_key}?propagationPolicy=Background")
    job = api.wait_state(job_id, CANCELED)
    assert not job.cancel_requested and len(job.runs) == 1
    last = [step for step in api.transitions(job_id) if step.run_state == job_pb2.RUN_STATE_CANCELED][-1]
    assert last.evidence.source == job_pb2.EVIDENCE_SOURCE_POD
    by_others = "deleted on the cluster, not by Muster"
    assert run.run_key in last.evidence.detail and by_others in last.evidence.detail
    for verb in (("list",), ("why", job_id), ("wait", job_id)):
        assert by_others in world.cli(*verb, check=False).stdout, verb
    check_nothing_is_left(kubernetes, job)


def test_a_run_that_the_cluster_disrupts_is_followed_by_one_on_another_node(kubernetes, api, agent):
    del agent
    spec = script_spec("[ $MUSTER_RUN = 2 ] || exec sleep 1000; echo again")
    spec.retry.backoff.seconds = 1
    spec.retry.exclude_failed_nodes = True
    job_id = api.submit(spec)
    run = api.wait_state(job_id, RUNNING).runs[0]
    (pod,) = kubernetes.objects("pods", run.run_key)
    name = pod["metadata"]["name"]
    kubernetes.must("POST", f"/api/v1/namespaces/default/pods/{name}/eviction", {
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}})
    job = api.wait_state(job_id, SUCCEEDED)
    first, second = job.runs
    assert first.state == job_pb2.RUN_STATE_FAILED and first.failure.retriable
    assert first.failure.failure_class == job_pb2.FAILURE_CLASS_INFRA
    assert name in first.failure.message and "EvictionByEvictionAPI" in first.failure.message
    assert list(first.nodes) == [pod["spec"]["nodeName"]]
    assert second.nodes and second.nodes[0] != first.nodes[0]
    (thing,) = kubernetes.objects("jobs", second.run_key)
    required = thing["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert "NotIn" in str(required) and first.nodes[0] in str(required), "it was not by chance"
    assert api.stdout(job_id) == b"again\n" and not job.HasField("failure")


def test_a_run_whose_node_has_lost_its_container_ends_and_another_follows(kubernetes, api, agent):
    del agent
    job_id = api.submit(script_spec('echo begun; [ "$MUSTER_RUN" = 2 ] || exec sleep 1000',
                                    retry=job_spec_pb2.RetryPolicy(max_runs=2)))
    job = api.wait_state(job_id, RUNNING)
    eventually(lambda: api.read_log(job_id)[0] == b"begun\n", "its log has come")
    # Its containers end with it, and the one that is started in its place knows nothing of them.
    kubernetes.kill(job.runs[0].nodes[0])
    job = api.wait_state(job_id, SUCCEEDED, deadline_s=LOST_LOG_S)
    lost = job.runs[0]
    assert (lost.state, lost.failure.failure_class) == (job_pb2.RUN_STATE_FAILED, job_pb2.FAILURE_CLASS_INFRA)
    assert b"the rest of the output of main is missing" in api.stdout(job_id, run=1)
