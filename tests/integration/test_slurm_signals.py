"""Signals to jobs on a real Slurm: what `muster scancel -s` reaches is what Slurm's own scancel reaches."""

import shutil

import pytest

from harness.api import FAILED, RUNNING, SUCCEEDED, script_spec
from harness.fixtures import cluster_fixture
from harness.slurm import USER
from harness.wait import eventually

slurm = cluster_fixture("--nodes", "2", "--cpus", "4")

# Each of its processes says which signal has come. It ends with the file that its argument names.
PROCESS = """trap "echo $1 USR1" USR1; trap "echo $1 USR2" USR2; echo $1 ready
while [ ! -e $2 ]; do sleep 0.1; done
"""
SCRIPT = """#!/bin/bash
trap "echo shell USR1" USR1; trap "echo shell USR2" USR2
sh process child $1 &
[ -z "$2" ] || srun -n1 sh process step $1 &
echo shell ready
while [ ! -e $1 ]; do sleep 0.1; done
wait
"""
STEPS = {(): {"step"}, ("--batch",): {"shell"}, ("-f",): {"shell", "child", "step"}}
NO_STEPS = {(): set(), ("-b",): {"shell"}, ("--full",): {"shell", "child"}}


@pytest.fixture
def directory(world):
    path = world.path("desk")
    path.mkdir()
    (path / "script").write_text(SCRIPT)
    (path / "process").write_text(PROCESS)
    for one in (path, *path.iterdir()):
        shutil.chown(one, USER, USER)
    return path


def words_of(directory, name):
    """The processes that have said something else than what a killed `sleep` makes their shell say, with it."""
    lines = (directory / f"{name}.out").read_text().splitlines() if (directory / f"{name}.out").exists() else []
    return {line for line in lines if line.split()[-1:] and line.split()[-1] in ("ready", "USR1", "USR2")}


def heard(directory, name, signal):
    return {line.split()[0] for line in words_of(directory, name) if line.endswith(signal)}


def await_word(api, job, nodes, word):
    """Waits until the log of each node has it."""
    for rank in range(nodes):
        eventually(lambda rank=rank: word in api.read_log(job, rank=rank)[0], f"rank {rank} says {word}")


@pytest.mark.parametrize("steps", [True, False], ids=["with steps", "without steps"])
def test_a_batch_script_gets_what_scancel_sends(world, api, slurm, agent, directory, steps):
    everybody = {"shell", "child", "step"} if steps else {"shell", "child"}
    more = ("yes",) if steps else ()
    sizes = ("-n2", "-D", directory)
    ours = world.cli("sbatch", "--parsable", *sizes, "-o", "ours.out", "script", "ours.end", *more, cwd=directory).stdout.strip()
    theirs = slurm.slurm_as_user("sbatch", "--parsable", *sizes, "-o", "theirs.out", directory / "script", "theirs.end", *more)
    for name in ("ours", "theirs"):
        eventually(lambda name=name: heard(directory, name, "ready") == everybody, f"{name} has begun")
    api.wait_state(int(ours), RUNNING)
    for signal, (options, reached) in zip(("USR1", "USR2"), list((STEPS if steps else NO_STEPS).items())[:2]):
        for name, scancel in (("ours", lambda *words: world.cli("scancel", *words, ours)),
                              ("theirs", lambda *words: slurm.slurm_as_user("scancel", *words, theirs.strip()))):
            scancel("-s", signal, *options)
            eventually(lambda name=name: heard(directory, name, signal) >= reached, f"{name}: {reached} have got it")
    for name in ("ours", "theirs"):
        (directory / f"{name}.end").touch()
    api.wait_state(int(ours), SUCCEEDED)
    eventually(lambda: not slurm.slurm("squeue", "-h", "-j", theirs.strip()), "Slurm's own has ended")
    assert words_of(directory, "ours") == words_of(directory, "theirs")


def test_all_processes_of_a_batch_script_get_it_once(world, api, slurm, agent, directory):
    job = world.cli("sbatch", "--parsable", "-n2", "-o", "ours.out", "script", "ours.end", "yes", cwd=directory).stdout.strip()
    everybody = {"shell", "child", "step"}
    eventually(lambda: heard(directory, "ours", "ready") == everybody, "it has begun")
    api.wait_state(int(job), RUNNING)
    world.cli("signal", job, "--signal", "USR1", "--all")
    eventually(lambda: heard(directory, "ours", "USR1") == everybody, "all have got it")
    (directory / "ours.end").touch()
    api.wait_state(int(job), SUCCEEDED)
    assert (directory / "ours.out").read_text().count("shell USR1") == 1


def test_a_command_gets_it_without_steps_and_with_them(world, api, slurm, agent):
    """The signal comes to all programs of its job, wherever Muster has started them."""
    for nodes in (1, 2):
        gate = world.gate()
        job = api.submit(script_spec(f"trap 'echo got it' USR1; echo ready; {gate.script()}", nodes=nodes))
        await_word(api, job, nodes, b"ready")
        api.wait_state(job, RUNNING)
        world.cli("signal", job, "--signal", "USR1")
        await_word(api, job, nodes, b"got it")
        gate.open()
        api.wait_state(job, SUCCEEDED)
    # Another one ends a program that does not expect it.
    job = api.submit(script_spec("echo ready; sleep 1000"))
    await_word(api, job, 1, b"ready")
    api.wait_state(job, RUNNING)
    world.cli("signal", job, "--signal", "USR2")
    assert api.wait_state(job, FAILED).runs[-1].exit.signal == 12


def test_a_job_that_does_not_run_gets_none(world, api, slurm, agent, directory):
    job = world.cli("sbatch", "--parsable", "--hold", "--wrap", "true", cwd=directory).stdout.strip()
    refused = world.cli("scancel", "-s", "USR1", job, check=False)
    assert refused.returncode == 1 and f"Kill job error on job id {job}" in refused.stderr
    assert "only the programs of a running job can get a signal" in refused.stderr
