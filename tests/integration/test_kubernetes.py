"""Runs on a Kubernetes cluster, from a client to a container and back."""

import json

import pytest

from harness.api import CANCELED, FAILED, RUNNING, SUCCEEDED, script_spec
from harness.checks import failures
from harness.fixtures import kubernetes_fixture
from harness.wait import eventually
from test_cli_slurm import test_a_job_that_is_submitted_held_starts_after_its_release
from test_machines import (
    test_a_cancel_right_after_the_submit_is_a_cancel_wherever_it_meets_the_job,
    test_cancel_of_a_job_that_has_ended_changes_nothing,
)
from test_skypilot import test_a_task_is_for_bash

kubernetes = kubernetes_fixture(nodes=2, gpus=4)

KINDS = ("jobs", "pods", "secrets", "services")
# The name is found a moment after the other's pod is there, as in every cluster.
PAIR = "until getent hosts $MASTER_ADDR >/dev/null; do sleep 0.1; done; echo rank $NODE_RANK of $WORLD_SIZE"


def is_gone(kubernetes, job, namespace):
    """Waits until nothing of its runs is left."""
    for run in job.runs:
        for kind in KINDS:
            eventually(lambda kind=kind, key=run.run_key: not kubernetes.objects(kind, key, namespace),
                       f"the {kind} of {run.run_key} are gone")


@pytest.fixture
def agent(kubernetes, world, broker):
    del broker
    return kubernetes.make_least_agent(world).start()


@pytest.mark.parametrize("cluster_rights", [False, True], ids=["rights-in-the-namespace", "and-the-cluster-role"])
def test_the_least_rights_are_enough(kubernetes, world, broker, api, cluster_rights):
    del broker
    namespace = kubernetes.make_namespace()
    kubernetes.make_least_agent(world, namespace, cluster_rights).start()
    good = api.submit(script_spec("echo out"))
    bad = api.submit(script_spec("exit 3"))
    pair = api.submit(script_spec(PAIR, nodes=2))
    long = api.submit(script_spec("sleep 1000"))
    api.wait_state(long, RUNNING)
    api.cancel(long)
    assert api.wait_state(bad, FAILED).exit.code == 3
    # The usage is absent, and not zero: nobody counts there.
    assert not api.get(bad).runs[0].HasField("usage")
    assert not api.get(bad).runs[0].HasField("slurm_allocation")
    api.wait_state(good, SUCCEEDED)
    api.wait_state(pair, SUCCEEDED)
    api.wait_state(long, CANCELED)
    assert api.stdout(good) == b"out\n"
    for rank in range(2):
        assert api.stdout(pair, rank=rank) == f"rank {rank} of 2\n".encode()
    is_gone(kubernetes, api.get(long), namespace)


def test_the_command_line_waits_for_jobs_and_exits_as_they_end(world, agent):
    del agent
    world.cli("run", "--wait", "--image", "debian:12", "--", "true")
    assert world.cli("run", "--wait", "--", "sh", "-c", "exit 3", check=False).returncode == 10
    assert world.cli("run", "--wait", "--", "echo", "out").stdout == "out\n"


def test_show_has_each_pod_as_a_replica(world, kubernetes, agent, api):
    del agent
    gate = api.submit(script_spec("sleep 1000", nodes=2))
    api.wait_state(gate, RUNNING)
    shown = world.cli("show", gate).stdout
    run_key = api.get(gate).runs[0].run_key
    pods = kubernetes.objects("pods", run_key)
    assert len(pods) == 2
    for pod in pods:
        assert pod["metadata"]["name"] in shown and pod["spec"]["nodeName"] in shown
    api.cancel(gate)
    is_gone(kubernetes, api.wait_state(gate, CANCELED), "default")


def test_a_pod_has_no_token_and_none_of_the_users_words_and_asks_for_what_it_takes(kubernetes, agent, api):
    del agent
    job_id = api.submit(script_spec("exec sleep 1000 # of-the-command", env={"KEY": "very-secret"}))
    api.wait_state(job_id, RUNNING)
    (pod,) = kubernetes.objects("pods", api.get(job_id).runs[0].run_key)
    assert "very-secret" not in str(pod) and "of-the-command" not in str(pod)
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert not any("projected" in volume for volume in pod["spec"]["volumes"]), "no token is mounted"
    assert pod["status"]["qosClass"] != "BestEffort"
    (shm,) = (volume["emptyDir"] for volume in pod["spec"]["volumes"] if volume["name"] == "muster-shm")
    assert shm == {"medium": "Memory", "sizeLimit": str(512 << 20)}, "half of the memory"
    api.cancel(job_id)
    is_gone(kubernetes, api.wait_state(job_id, CANCELED), "default")


def test_a_check_of_a_good_cluster_finds_nothing_wrong(world, agent):
    assert not failures(world.api().check(agent.cluster))
    assert "ok       API server" in world.cli("check", agent.cluster).stdout


SCRIPT = "#!/bin/sh\n#SBATCH --mem=512M\npwd\n"


def test_a_batch_script_starts_although_no_container_has_the_directory_where_the_user_stood(world, agent, api):
    del agent
    world.write("batch.sh", SCRIPT)
    (world.root / "here").mkdir()
    here = world.root / "here"
    done = world.cli("sbatch", "--parsable", "../batch.sh", cwd=here)
    assert done.stderr.startswith("muster: warning: --chdir: on cluster"), done.stderr
    assert f'workdir "{here}", where you stand: the script starts there if the image has it' in done.stderr
    job_id = int(done.stdout)
    api.wait_state(job_id, SUCCEEDED)
    # The order in which the lines of two streams are logged is not defined.
    assert sorted(api.stdout(job_id).decode().splitlines()) == [
        "/muster/work", f"muster: {here}, where the script was submitted, is not in the container; it starts in /muster/work"]
    tried = world.cli("sbatch", "--test-only", "../batch.sh", cwd=here)
    assert "sbatch: Job to start" in tried.stderr and "Nothing, if it names files by whole paths" in tried.stderr


def test_a_batch_script_finds_what_means_something_in_a_container(world, agent, api):
    del agent
    world.write("batch.sh", "#!/bin/sh\n#SBATCH --mem=512M\nenv\n")
    shell = {"LR": "0.1", "LD_LIBRARY_PATH": "/opt/lib", "PATH": "/opt/submit/bin:/usr/bin:/bin"}
    job_id = int(world.cli("sbatch", "--parsable", "--chdir=/", "batch.sh", env=shell).stdout)
    api.wait_state(job_id, SUCCEEDED)
    found = api.stdout(job_id).decode().splitlines()
    assert "LR=0.1" in found
    assert not [one for one in found if one.startswith("LD_LIBRARY_PATH") or "/opt/submit" in one]


def test_a_directory_that_was_named_is_the_one_or_the_run_fails_with_what_helps(world, agent, api):
    del agent
    world.write("batch.sh", SCRIPT)
    done = world.cli("sbatch", "--parsable", "--chdir=/no/such", "batch.sh")
    assert done.stderr.startswith("muster: warning: --chdir: on cluster"), done.stderr
    assert 'workdir "/no/such": if the image does not have it, the run fails' in done.stderr
    failed = api.wait_state(int(done.stdout), FAILED)
    assert 'The working directory "/no/such" cannot be entered' in failed.failure.message
    assert "sbatch: --chdir=/" in failed.failure.remedy
    done = world.cli("sbatch", "--parsable", "--chdir=/", "--output=job.out", "batch.sh", check=False)
    assert done.returncode != 0 and "names a file for its output (--output=job.out)" in done.stderr
    done = world.cli("sbatch", "--parsable", "--chdir=/", "batch.sh")
    assert done.stderr == ""
    api.wait_state(int(done.stdout), SUCCEEDED)
    assert api.stdout(int(done.stdout)) == b"/\n"
    on_volume = ("run: 'true'\nworkdir: /data/a\n"
                 "kubernetes: {volumes: [{empty_directory: {}, mount_path: /data}]}\n")
    assert "workdir" not in world.cli("plan", world.write("volume.yaml", on_volume)).stdout
    elsewhere = on_volume.replace("/data/a", "/datasets")
    assert "workdir" in world.cli("plan", world.write("elsewhere.yaml", elsewhere)).stdout


PLAN = ("plan", "--image", "debian:12", "--nodes", "2", "--cpus", "1.5", "--memory", "1Gi", "--gpus", "1")


def test_a_plan_shows_in_a_few_lines_what_tells_its_job_from_others(world, agent):
    del agent
    claim = world.write("claim.yaml", "run: 'true'\nkubernetes: {volumes: [{claim: data, mount_path: /data, read_only: true}]}\n")
    planned = world.cli(*PLAN, "--", "true").stdout
    lines = planned.partition("\nSubmission\n")[2].splitlines()
    assert lines[:-1] == [
        "  Job         default/plan-1-1",
        "  With its    Secret, Service",
        "  Image       docker.io/library/debian:12",
        "  Pods        2",
        "  Requests    cpu 1.5, memory 1Gi, nvidia.com/gpu 1",
        "  Limits      memory 1Gi, nvidia.com/gpu 1",
    ], planned
    assert lines[-1].endswith("lines; add --manifest to see them)"), planned
    assert "the API server would take the Job" in planned
    assert "  Volume      persistentVolumeClaim data at /data, read-only\n" in world.cli("plan", claim).stdout


@pytest.mark.parametrize("how", [("--manifest",), ("-o", "wide"), ("--manifest", "-o", "json")], ids=" ".join)
def test_a_plan_has_the_manifest_that_would_be_sent_if_it_is_asked_for(world, agent, how):
    del agent
    planned = world.cli(*PLAN, *how, "--", "true").stdout
    if "json" in how:
        (plan,) = json.loads(planned)["plans"]
        planned = plan["submission"] + str(plan["checks"])
    for words in ('kind: "Job"', 'kind: "Secret"', 'kind: "Service"', 'completionMode: "Indexed"', "the API server would take the Job"):
        assert words in planned, planned
