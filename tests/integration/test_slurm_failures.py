"""Failures of runs on a real Slurm: their class, whether another run may do better, and the words that say so."""

import shutil

from muster.v1 import job_pb2

from harness.api import FAILED, argv_spec, script_spec
from harness.fixtures import cluster_fixture
from harness.slurm import USER
from harness.wait import eventually

INFRA = job_pb2.FAILURE_CLASS_INFRA
OOM = job_pb2.FAILURE_CLASS_OOM
PROGRAM = job_pb2.FAILURE_CLASS_PROGRAM


slurm = cluster_fixture("--nodes", "2", "--cpus", "8", "--gpus", "1", "--min-job-age", "5")


def failure_of(api, spec):
    """Returns the failure of the job's first run."""
    job_id = api.submit(spec)
    run = eventually(lambda: next((run for run in api.get(job_id).runs if run.HasField("failure")), None),
                     "the first run has failed")
    if api.get(job_id).state != FAILED:
        api.cancel(job_id)
    return run.failure


def quotes(failure):
    return [(quote.source, quote.text) for quote in failure.quotes]


XID = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."


def test_a_gpu_that_fell_off_the_bus_is_the_clusters_fault_and_its_line_is_quoted(api, agent):
    del agent
    spec = script_spec(f"echo '{XID}' >&2; echo more >&2; exit 1")
    spec.resources.gpus.add(count_millis=1000)
    failure = failure_of(api, spec)
    assert failure.failure_class == INFRA
    assert failure.retriable
    assert ("rank-0.err", XID) in quotes(failure)
    assert "node" in failure.remedy


def test_of_a_job_without_gpus_their_words_tell_nothing(api, agent):
    del agent
    failure = failure_of(api, script_spec(f"echo '{XID}' >&2; exit 1"))
    assert failure.failure_class == PROGRAM
    assert not failure.retriable


def test_the_rank_whose_log_tells_need_not_be_the_one_that_failed_first(api, agent):
    del agent
    failure = failure_of(api, script_spec("if [ $NODE_RANK = 1 ]; then echo 'ncclSystemError: x'; touch said; sleep 1000; fi; "
                                          "until [ -e said ]; do sleep 0.1; done; exit 1", nodes=2))
    assert failure.retriable
    assert ("rank-1.out", "ncclSystemError: x") in quotes(failure)


def test_cuda_out_of_memory_is_the_programs_and_surfaces_at_once(world, api, agent):
    del agent
    line = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"
    failure = failure_of(api, script_spec(f"echo '{line}' >&2; echo 'ncclSystemError: x' >&2; exit 1"))
    assert failure.failure_class == OOM
    assert not failure.retriable
    assert ("rank-0.err", line) in quotes(failure)
    assert f"rank-0.err: {line}" in world.cli("show", api.list_all()[0].id).stdout


def test_a_failure_that_nobody_knows_is_the_programs_with_its_last_words(api, agent):
    del agent
    failure = failure_of(api, script_spec("echo before >&2; echo 'ValueError: 3' >&2; exit 7"))
    assert failure.failure_class == PROGRAM
    assert not failure.retriable
    assert ("rank-0.err", "ValueError: 3") in quotes(failure)


def test_logs_that_the_run_removed_are_no_fault_of_the_cluster(api, agent):
    del agent
    failure = failure_of(api, script_spec("rm -f ../slurm-logs/rank-0.*; exit 7"))
    assert failure.failure_class == PROGRAM
    assert not failure.retriable


def test_a_time_limit_is_one_whatever_the_log_says(api, slurm, agent):
    del agent
    spec = script_spec("echo 'ncclSystemError: x'; sleep 1000")
    spec.time_limit.seconds = 60
    job_id = api.submit(spec)
    api.wait_state(job_id, job_pb2.JOB_STATE_RUNNING)
    slurm.slurm("scontrol", "update", f"jobid={api.get(job_id).runs[0].external_id}", "EndTime=now+1")
    failure = api.wait_state(job_id, FAILED).failure
    assert failure.failure_class == job_pb2.FAILURE_CLASS_TIMEOUT
    assert not failure.retriable
    assert any("DUE TO TIME LIMIT" in text for source, text in quotes(failure) if source == "slurm.out")


def test_suspended_by_slurm_is_shown_so_and_back(api, slurm, agent):
    del agent
    job_id = api.submit(argv_spec("sleep", "1000"))
    api.wait_state(job_id, job_pb2.JOB_STATE_RUNNING)
    known_as = api.get(job_id).runs[0].external_id
    slurm.slurm("scontrol", "suspend", known_as)
    api.wait_state(job_id, job_pb2.JOB_STATE_SUSPENDED)
    slurm.slurm("scontrol", "resume", known_as)
    api.wait_state(job_id, job_pb2.JOB_STATE_RUNNING)
    api.cancel(job_id)
    api.wait_state(job_id, job_pb2.JOB_STATE_CANCELED)


def test_a_job_held_in_slurm_says_how_to_let_it_go(api, slurm, agent):
    del agent
    blocker = argv_spec("sleep", "1000", nodes=2)
    blocker.slurm.exclusive = True
    first = api.submit(blocker)
    api.wait_state(first, job_pb2.JOB_STATE_RUNNING)
    job_id = api.submit(argv_spec("true"))
    # A job is PENDING from its assignment on; Slurm has it once its run is.
    external_id = api.wait_run_state(job_id, job_pb2.RUN_STATE_PENDING).external_id
    slurm.slurm("scontrol", "uhold", external_id)
    eventually(lambda: "muster release" in api.get(job_id).state_reason.remedy, "the reason says how to release it")
    api.cancel(job_id)
    api.cancel(first)
    api.wait_state(job_id, job_pb2.JOB_STATE_CANCELED)
    api.wait_state(first, job_pb2.JOB_STATE_CANCELED)


def test_a_script_that_must_not_be_requeued_gets_one_run_when_its_node_fails(world, api, slurm, agent):
    del agent
    directory = world.path("once")
    directory.mkdir()
    shutil.chown(directory, USER, USER)
    started = directory / "started"
    script = world.write("once.sh", "#!/bin/sh\n#SBATCH --no-requeue -o /dev/null\necho x >> started\nsleep 1000\n")
    job_id = int(world.cli("sbatch", "--parsable", script, cwd=directory).stdout)
    api.wait_state(job_id, job_pb2.JOB_STATE_RUNNING)
    eventually(started.exists, "the script has begun")
    node = api.get(job_id).runs[0].nodes[0]
    slurm.slurm("scontrol", "update", f"nodename={node}", "state=down", "reason=test")
    job = api.wait_state(job_id, FAILED)  # the node comes back by itself
    assert job.failure.failure_class == INFRA
    assert len(job.runs) == 1
    assert started.read_text() == "x\n"
    assert world.cli("sacct", "-nP", "-j", job_id, "-o", "State").stdout == "NODE_FAIL\n"
