"""Slurm users' work with muster where there is no Slurm, and the differences that it explains everywhere."""

import json

from muster.v1 import job_pb2

from harness.api import CANCELED, SUCCEEDED
from harness.wait import eventually

CANNOT_BE_PLACED = 13
SCRIPT = """#!/bin/sh
#SBATCH --job-name=portable --cpus-per-task=2 --mem=64M
echo "$1 in $PWD, $LR"
"""
KNOWN = """#!/bin/sh
echo "$SLURM_JOB_NAME $SLURM_JOB_ID $SLURM_JOBID, $SLURM_CPUS_PER_TASK cores"
"""
ARRAY = """#!/bin/sh
#SBATCH --mem=64M
echo "task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT ($SLURM_ARRAY_TASK_MIN to $SLURM_ARRAY_TASK_MAX \
by $SLURM_ARRAY_TASK_STEP) of the array $SLURM_ARRAY_JOB_ID"
"""


def test_a_batch_script_that_needs_nothing_of_slurm_runs_on_a_machine(world, api, agent):
    path = world.write("script.sh", SCRIPT)
    done = world.cli("sbatch", "--wait", "--parsable", "--export=LR", path, "an argument", env={"LR": "0.1"})
    job = api.get(int(done.stdout))
    assert (job.state, job.name, job.cluster) == (SUCCEEDED, "portable", "box")
    assert api.stdout(job.id) == f"an argument in {world.root}, 0.1\n".encode()


def test_a_script_that_names_a_file_for_its_output_does_not_go_where_nobody_writes_it(world, agent):
    del agent
    for words in (("-o", "job-%j.out"), ("-e", "job.err")):
        done = world.cli("sbatch", *words, "--wrap", "true", check=False)
        assert done.returncode == CANNOT_BE_PLACED and done.stdout == "", done.stderr
        assert f"names a file for its output (--{'output' if words[0] == '-o' else 'error'}={words[1]})" in done.stderr
        assert "without the option it may run anywhere, and muster logs shows its output" in done.stderr
    world.cli("sbatch", "--wait", "-o", "/dev/null", "--wrap", "true")


def test_on_a_machine_a_script_finds_what_means_something_there(world, api, agent):
    del agent
    shell = {"LR": "0.1", "LD_LIBRARY_PATH": "/opt/lib", "CONDA_PREFIX": "/opt/conda", "SLURM_NTASKS": "4",
             "BASH_FUNC_ml%%": "() {  echo module\n}", "HF_TOKEN": "canary-1", "PATH": "/opt/submit/bin:/usr/bin:/bin"}
    script = ("sbatch", "--wait", "--parsable", "--chdir=/", "--wrap", "env")
    done = world.cli(*script, env=shell)
    found = api.stdout(int(done.stdout)).decode()
    assert "HF_TOKEN" in done.stderr
    assert "\nLR=0.1\n" in "\n" + found
    for name in ("LD_LIBRARY_PATH", "CONDA_PREFIX", "SLURM_", "BASH_FUNC_", "HF_TOKEN", "/opt/submit/bin"):
        assert name not in found
    done = world.cli(*script[:3], "--export=CONDA_PREFIX,HF_TOKEN,A=1,LD_LIBRARY_PATH", *script[3:], env=shell)
    job_id = int(done.stdout)
    found = api.stdout(job_id).decode()
    assert "\nCONDA_PREFIX=/opt/conda\n" in "\n" + found and "\nA=1\n" in "\n" + found and "LR=" not in found
    assert "HF_TOKEN=canary-1" in found and "LD_LIBRARY_PATH" not in found
    shown = world.cli("show", job_id).stdout
    assert "Shell " in shown and "HF_TOKEN" in shown
    assert "canary-1" not in shown + world.cli("show", job_id, "-o", "json").stdout + world.cli("list", "-o", "json").stdout


def test_one_that_needs_slurm_is_refused_where_there_is_none(world, agent):
    for words in (["--wrap", "srun true"], ["-A", "lab", "--wrap", "true"], ["-N2", "--wrap", "true"]):
        done = world.cli("sbatch", *words, check=False)
        assert done.returncode == CANNOT_BE_PLACED, done.stderr
        assert "can ever run this job: only Slurm can take it because" in done.stderr
        assert "of kind machines" not in done.stderr


def test_a_script_finds_what_is_known_without_slurm(world, api, agent):
    del agent
    path = world.write("script.sh", KNOWN)
    job_id = int(world.cli("sbatch", "--wait", "--parsable", "--chdir=/", "-J", "known", "-c2", path).stdout)
    assert api.stdout(job_id).decode() == f"known {job_id} {job_id}, 2 cores\n"
    plain = int(world.cli("sbatch", "--wait", "--parsable", "--chdir=/", "--wrap", "env").stdout)
    assert "SLURM_" not in api.stdout(plain).decode(), "libraries would look for Slurm"


def test_each_task_of_an_array_is_a_job_that_knows_which_it_is(world, api, agent):
    del agent
    path = world.write("array.sh", ARRAY)
    tried = world.cli("sbatch", "--test-only", "--chdir=/", "--array=1,5-9:2", path).stderr
    assert "sbatch: Job to start" in tried, "what the submission takes"
    first = int(world.cli("sbatch", "--wait", "--parsable", "--chdir=/", "--array=1,5-9:2", path).stdout)
    for place, task in enumerate((1, 5, 7, 9)):
        assert api.stdout(first + place).decode() == f"task {task} of 4 (1 to 9 by 2) of the array {first}\n"
    assert world.cli("sacct", "-nXP", "-j", f"{first}_7", "-o", "JobID,State").stdout == f"{first}_7|COMPLETED\n"


def test_a_job_that_is_submitted_held_starts_after_its_release(world, api, agent):
    del agent
    job_id = int(world.cli("run", "-q", "--hold", "--", "true").stdout)
    other = int(world.cli("run", "-q", "--", "true").stdout)
    api.wait_state(other, SUCCEEDED)
    assert api.get(job_id).state == job_pb2.JOB_STATE_QUEUED and not api.get(job_id).runs
    assert f"muster release {job_id}" in world.cli("why", job_id).stdout
    world.cli("release", job_id)
    api.wait_state(job_id, SUCCEEDED)


def test_a_job_that_waits_can_be_held_and_explained(world, api, agent):
    gate = world.gate()
    blocker = int(world.cli("run", "-q", "--cpus", "8", "--", "sh", "-c", gate.script()).stdout)
    api.wait_state(blocker, job_pb2.JOB_STATE_RUNNING)
    job_id = int(world.cli("run", "-q", "--cpus", "8", "--name", "held", "--", "true").stdout)
    world.cli("hold", job_id, "--reason", "not yet")
    eventually(lambda: "muster release" in world.cli("why", job_id).stdout, "its cluster says that it holds it")
    assert world.cli("squeue", "-h", "-j", job_id, "-o", "%i %j %t %r").stdout == f"{job_id} held PD JobHeldUser\n"
    gate.open()
    api.wait_state(blocker, SUCCEEDED)
    world.cli("release", job_id)
    api.wait_state(job_id, SUCCEEDED)


def test_squeue_scancel_and_sacct_work_on_any_cluster(world, api, agent):
    job_id = int(world.cli("run", "-q", "--name", "long", "--", "sleep", "1000").stdout)
    api.wait_state(job_id, job_pb2.JOB_STATE_RUNNING)
    assert world.cli("squeue", "-h", "--me", "-t", "R", "-o", "%i %j %P").stdout == f"{job_id} long default\n"
    world.cli("scancel", "--name=long")
    api.wait_state(job_id, CANCELED)
    line = world.cli("sacct", "-nP", "-j", job_id, "-o", "JobID,JobName,State").stdout
    assert line == f"{job_id}|long|CANCELLED\n"


def test_a_failure_is_explained_with_its_class(world, api, agent):
    job_id = int(world.cli("run", "-q", "--", "sh", "-c", "exit 3").stdout)
    eventually(lambda: api.get(job_id).state == job_pb2.JOB_STATE_FAILED, "it has failed")
    said = world.cli("why", job_id).stdout
    assert "exit code 3" in said
    assert "PROGRAM" in said
    assert json.loads(world.cli("why", job_id, "-o", "json").stdout)["failure"]["failure_class"]
