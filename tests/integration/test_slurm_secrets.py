"""Secrets of jobs on a real Slurm: in files of the run that its user alone reads, and in no record of Slurm's."""

import subprocess

import pytest

from harness.api import SUCCEEDED, script_spec
from harness.canary import Canary, has_told, program, set_secret, use, words
from harness.fixtures import cluster_fixture
from harness.slurm import AS_USER
from harness.wait import eventually

slurm = cluster_fixture("--nodes", "2", "--cpus", "2")


@pytest.fixture
def canary(world, broker):
    """A canary that is the secret `hf` of the test's user."""
    del broker
    made = Canary()
    set_secret(world, made.value)
    return made


def records(slurm, run_key):
    """All that Slurm tells of a job, to root."""
    number = slurm.job_ids(run_key)[0]
    asked = (("scontrol", "show", "job", "-dd"), ("scontrol", "show", "step"), ("squeue", "-a", "-o", "%all"),
             ("sacct", "-a", "-D", "-P", "-o", "ALL", "-j", number), ("sacct", "-j", number, "--env-vars"),
             ("sacct", "-j", number, "--batch-script"), ("scontrol", "write", "batch_script", number, "-"))
    return "".join(slurm.slurm(*words) for words in asked)


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_job_has_the_value_and_no_record_has(world, agent, api, slurm, canary, nodes):
    gate = world.gate()
    job_id = api.submit(use(script_spec(program(gate.script()), nodes=nodes)))
    eventually(lambda: has_told(api, job_id), "the program has its secrets")
    run_key = api.get(job_id).runs[-1].run_key
    run_dir = next(agent.state_dir.rglob(f"{run_key}/env")).parent
    assert canary.processes(run_key) == []
    assert set(canary.files(world.root, slurm.root)) == {run_dir / "env" / "secrets", run_dir / "env" / "secret.TOKEN_FILE"}
    for path in run_dir.glob("env/secret*"):
        assert path.stat().st_mode & 0o777 == 0o600
    assert canary.value not in records(slurm, run_key)
    # The node takes them away, whatever becomes of the agent.
    agent.pause()
    gate.open()
    record = run_dir.parent / "ended" / run_key
    eventually(lambda: record.exists() and b"complete" in record.read_bytes(), "the run has ended")
    assert canary.files(world.root, slurm.root) == []
    agent.resume()
    assert api.wait_end(job_id).state == SUCCEEDED
    for rank in range(nodes):
        assert api.stdout(job_id, rank=rank) == words(canary, "600")
    assert canary.files(world.root, slurm.root) == []
    assert canary.value not in records(slurm, run_key)
    assert canary.value not in "".join(path.read_text(errors="replace") for path in world.root.glob("*.log"))


def test_a_run_that_slurm_kills_leaves_nothing(world, agent, api, slurm, canary):
    job_id = api.submit(use(script_spec("trap '' TERM\n" + program(world.gate().script()))))
    eventually(lambda: has_told(api, job_id), "the program has its secrets")
    (number,) = slurm.job_ids(api.get(job_id).runs[-1].run_key)
    slurm.slurm("scancel", "--signal=KILL", "--full", number)
    api.wait_end(job_id)
    eventually(lambda: canary.files(world.root, slurm.root) == [], "no file has the value")


def test_a_variable_that_bash_keeps_for_itself_is_refused(world, agent, api, canary):
    del canary
    spec = script_spec("true")
    spec.secrets.add(variable="UID", name="hf")
    job = api.wait_end(api.submit(spec))
    assert "secrets[\"UID\"]" in job.runs[-1].failure.message


def test_no_other_process_of_its_user_looks_into_an_agent(agent):
    """Nor does the kernel dump what may not be looked at."""
    done = subprocess.run([*AS_USER, "cat", f"/proc/{agent.process.pid}/environ"], capture_output=True, check=False)
    assert done.returncode != 0 and b"Permission denied" in done.stderr
