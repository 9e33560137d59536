"""Job arrays: what is one `muster sbatch --array` is one array of Slurm's, however many tasks it has."""

import re
import shutil

import pytest

from harness.api import CANCELED, RUNNING, SUCCEEDED
from harness.fixtures import cluster_fixture
from harness.slurm import USER
from harness.wait import eventually

slurm = cluster_fixture("--nodes", "2", "--cpus", "8", "--min-job-age", "30")

# Each start of a task leaves a line.
COUNTED = "echo $SLURM_ARRAY_TASK_ID >>started"


@pytest.fixture
def directory(world):
    path = world.path("desk")
    path.mkdir()
    shutil.chown(path, USER, USER)
    return path


def submit(world, directory, *words):
    return int(world.cli("sbatch", "--parsable", "-o", "/dev/null", *words, cwd=directory).stdout)


def tasks_of(text, number):
    """Returns the part of squeue's lines about an array that is behind its number."""
    return sorted(re.findall(rf"^{number}_(\S+)", text, re.MULTILINE))


def number_of(api, job_id):
    """The number that Slurm has given the array."""
    return eventually(lambda: api.get(job_id).runs and api.get(job_id).runs[0].external_id, "it is in Slurm").split("_")[0]


def test_more_than_a_thousand_tasks_are_one_array_with_its_ids_and_limit(world, api, slurm, agent, directory):
    gate = world.gate()
    first = submit(world, directory, "--array=5-2403:2%4", "--wrap", gate.script())
    number = number_of(api, first)

    def shown():
        theirs = tasks_of(slurm.slurm("squeue", "-h", "-o", "%i"), number)
        ours = tasks_of(world.cli("squeue", "-h", "-o", "%i").stdout, first)
        return theirs == ["11", "5", "7", "9", "[13-2403:2%4]"] and ours == theirs

    eventually(shown, "both show four tasks that run, and the others in one line")
    assert api.get(first + 1199).runs[0].external_id == f"{number}_2403"
    world.cli("cancel", f"{first}_*")
    gate.open()
    for job_id in (first + 4, first + 1199):
        api.wait_state(job_id, CANCELED)
    eventually(lambda: not world.cli("squeue", "-h", "-j", first).stdout, "all have ended", deadline_s=600)


def test_an_index_that_slurm_conf_does_not_allow_is_refused_at_the_submit(world, api, slurm, agent, directory):
    """The test cluster has MaxArraySize=20001."""
    refused = world.cli("sbatch", "--array=1-2,20001", "--wrap", "true", cwd=directory, check=False)
    assert refused.returncode != 0 and not refused.stdout
    assert "--array: the index 20001 is too high for cluster lab" in refused.stderr
    assert "slurm.conf allows 0 to 20000 (MaxArraySize=20001)" in refused.stderr
    first = submit(world, directory, "--array=7,20000", "--wrap", "true")
    number = number_of(api, first)
    assert api.wait_state(first + 1, SUCCEEDED).runs[0].external_id == f"{number}_20000"


@pytest.mark.slow
def test_a_look_that_comes_when_squeue_has_forgotten_finds_the_rest_of_a_canceled_array(world, api, slurm, agent, directory):
    """Accounting has the tasks that never started in one line, with their step: "1_[37-205:2]"."""
    gate = world.gate()
    first = submit(world, directory, "--array=5-205:2", "--wrap", gate.script())
    number = number_of(api, first)
    eventually(lambda: slurm.slurm("squeue", "-h", "-t", "R", "-o", "%i").count(f"{number}_") == 16, "the nodes are full")
    api.wait_state(first + 15, RUNNING)
    agent.pause()
    slurm.slurm_as_user("scancel", number)
    eventually(lambda: f"{number}_" not in slurm.slurm("squeue", "-h", "-t", "all", "-o", "%i"), "squeue has forgotten it",
               deadline_s=120)
    rows = eventually(lambda: re.findall(rf"^{number}_\[.*:2\]\|CANCELLED", slurm.slurm("sacct", "-n", "-X", "-P", "-a", "-o",
                                         "JobID,State", "-j", number), re.MULTILINE), "sacct has the rest")
    assert len(rows) == 1
    agent.resume()
    for job_id in (first, first + 15, first + 16, first + 100):
        api.wait_state(job_id, CANCELED)
    eventually(lambda: not world.cli("squeue", "-h", "-j", first).stdout, "all have ended")


def test_a_limit_of_simultaneous_tasks_holds(world, slurm, agent, directory):
    del slurm, agent
    world.cli("sbatch", "--wait", "--array=1-12%2", "-o", "/dev/null", "--wrap",
              "echo + >>steps; sleep 0.2; echo - >>steps", cwd=directory)
    running, most = 0, 0
    for step in (directory / "steps").read_text().split():
        running += 1 if step == "+" else -1
        most = max(most, running)
    assert running == 0
    assert most == 2


def test_a_task_waits_for_the_task_of_the_same_id(world, api, slurm, agent, directory):
    del agent
    first = submit(world, directory, "--array=2-4", "--wrap", "until [ -e go_$SLURM_ARRAY_TASK_ID ]; do sleep 0.05; done")
    second = submit(world, directory, "--array=2-4", "-d", f"aftercorr:{first}", "--wrap", "true")
    number = number_of(api, second)
    assert f"Dependency=aftercorr:{number_of(api, first)}_*" in slurm.slurm("scontrol", "show", "job", f"{number}_3")
    (directory / "go_3").touch()
    api.wait_state(second + 1, SUCCEEDED)
    assert api.get(second + 2).state != SUCCEEDED
    for task in (2, 4):
        (directory / f"go_{task}").touch()
    for job_id in (second, second + 2):
        api.wait_state(job_id, SUCCEEDED)


def test_a_job_waits_for_an_array_at_once(world, api, slurm, agent, directory):
    del agent
    gate = world.gate()
    first = submit(world, directory, "--array=1-20", "--hold", "--wrap", gate.script())
    world.cli("release", f"{first}_*")
    after = submit(world, directory, "-d", f"afterany:{first}", "--wrap", "true")
    condition = f"afterany:{number_of(api, first)}_*"
    assert condition in slurm.slurm("scontrol", "show", "job", number_of(api, after))
    world.cli("scancel", first)
    gate.open()
    api.wait_state(after, SUCCEEDED)


@pytest.mark.parametrize("is_stopped", [True, False], ids=["without-an-answer", "with-its-answer"])
def test_an_agent_that_is_killed_while_it_submits_finds_the_array_again(world, api, slurm, agent, directory, is_stopped):
    """Each task runs once, whether or not slurmctld has got the array."""
    if is_stopped:
        slurm.control("signal", "slurmctld", "STOP")
    first = submit(world, directory, "--array=1-100%9", "--wrap", COUNTED)
    # The list is written before sbatch begins.
    lists = agent.run_directory("x").parent / "arrays"
    eventually(lambda: list(lists.glob("*.array-*")), "it submits them")
    agent.kill()
    if is_stopped:
        slurm.control("signal", "slurmctld", "CONT")
    agent.start()
    for job_id in (first, first + 50, first + 99):
        api.wait_state(job_id, SUCCEEDED)
    world.cli("wait", *range(first, first + 100))
    started = sorted(int(line) for line in (directory / "started").read_text().split())
    assert started == list(range(1, 101))
    assert {api.get(job_id).runs[0].external_id.split("_")[0] for job_id in (first, first + 50, first + 99)} == \
        {number_of(api, first)}
    assert all(len(api.get(job_id).runs) == 1 for job_id in (first, first + 50, first + 99))
