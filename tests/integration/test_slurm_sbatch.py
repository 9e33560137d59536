"""A Slurm user's work, through muster and beside it, on a real Slurm: the same scripts, the same files."""

import json
import os
import resource
import shutil
import subprocess

from muster.v1 import job_pb2
import pytest

from harness.api import CANCELED, FAILED, SUCCEEDED
from harness.fixtures import cluster_fixture
from harness.slurm import AS_USER, USER, before
from harness.wait import eventually

# This script is like those of Slurm's manual: one node, 8 cores, 10 GB, a GPU by its type, the number in the output's
# name.
MANUAL = """#!/bin/bash
#SBATCH --job-name=manual
#SBATCH --nodes=1
#SBATCH --cpus-per-task=8
#SBATCH --mem=10G
#SBATCH --gres=gpu:h100:1
#SBATCH --time=00:05:00
#SBATCH --output=%x-%j.out
##SBATCH --partition=off

echo "$0" | grep -c .
echo "name=$SLURM_JOB_NAME cpus=$SLURM_CPUS_PER_TASK gpus=${CUDA_VISIBLE_DEVICES:-none} in $PWD"
srun --ntasks=1 echo "a step of $SLURM_JOB_NUM_NODES node"
#SBATCH --nodes=2
printf '<%s>' "$@"; echo
"""
TASKS = """#!/bin/sh
#SBATCH -n3 -N1 -o tasks.out -e tasks.err
srun sh -c 'echo task $SLURM_PROCID' | sort
echo "$SLURM_NTASKS tasks" >&2
"""
# This script is easily misread: quotes, comments, values on the next line, beginnings of names, options that are
# switched off.
TRICKY = """#!/bin/bash
# a comment
#SBATCH -J "two words" --comment='it''s' # trailing
#SBATCH -t
#SBATCH 7
#SBATCH --mem=100 -c2 --part=debug -otricky.out
##SBATCH -t 99
 #SBATCH -t 98
#SBATCH--nice=5

   # indented
squeue -h -j "$SLURM_JOB_ID" -o '%l %m %C %y %P %D %k'
echo "$SLURM_JOB_NAME, $SLURM_CPUS_PER_TASK cores"
#SBATCH -t 55
"""
ARRAY = """#!/bin/sh
env | grep ^SLURM_ARRAY_TASK | sort
echo "array $((SLURM_ARRAY_JOB_ID > 0))"
"""


slurm = cluster_fixture("--nodes", "2", "--cpus", "8", "--gpus", "2", "--no-dbd", "--min-job-age", "30")


class Desk:
    """A directory of the user's, from which scripts are submitted."""

    def __init__(self, world, slurm):
        self.world, self.slurm = world, slurm
        self.made = 0

    def directory(self):
        self.made += 1
        path = self.world.path(f"desk-{self.made}")
        path.mkdir()
        shutil.chown(path, USER, USER)
        return path

    def with_sbatch(self, script, *words, **how):
        """The directory after sbatch itself has run the script to its end."""
        directory = self.directory()
        (directory / "script.sh").write_text(script)
        subprocess.run([*AS_USER, "sbatch", "--wait", *words], cwd=directory, check=True, capture_output=True,
                       env={"SLURM_CONF": str(self.slurm.conf), "PATH": before("/usr/bin:/bin")}, timeout=120, **how)
        return directory

    def with_muster(self, script, *words, **how):
        """The same with muster."""
        directory = self.directory()
        (directory / "script.sh").write_text(script)
        self.world.cli("sbatch", "--wait", *words, cwd=directory, **how)
        return directory


@pytest.fixture
def desk(world, slurm, agent):
    del agent
    return Desk(world, slurm)


def outputs(directory):
    """Returns the content of the files that a script has made, by their names without Slurm's numbers and without
    directories."""
    found = {}
    for path in directory.iterdir():
        if path.name == "script.sh":
            continue
        name = "".join("#" if c.isdigit() else c for c in path.name).replace("##", "#").replace("##", "#")
        found[name] = path.read_text().replace(str(directory), "HERE")
    return found


@pytest.mark.parametrize("script, words", [
    (MANUAL, ("script.sh", "an argument", "--lr=0.1", "")),
    (MANUAL, ("--job-name=given", "--cpus-per-task", "2", "-o", "given.out", "script.sh")),
    (TASKS, ("script.sh",)),
    (TRICKY, ("script.sh",)),
    (TASKS, ("-n2", "--open-mode=append", "script.sh")),
    ("", ("--wrap", "echo wrapped in $PWD")),
    ("", ("-N2", "--ntasks=2", "--wrap", "srun hostname | wc -l; echo $SLURM_NNODES")),
], ids=["manual", "options-win", "tasks", "tricky", "appended", "wrap", "two-nodes"])
def test_a_script_gives_the_same_files_as_with_sbatch(desk, script, words):
    expected = outputs(desk.with_sbatch(script, *words))
    assert expected
    assert outputs(desk.with_muster(script, *words)) == expected


def test_an_array_gives_the_same_files_as_with_sbatch(desk):
    def files(directory):
        return {path.name: path.read_text() for path in directory.iterdir() if path.name != "script.sh"}

    words = ("--array=1,5-9:2", "-o", "%a.out", "script.sh")
    expected = files(desk.with_sbatch(ARRAY, *words))
    assert sorted(expected) == ["1.out", "5.out", "7.out", "9.out"]
    assert files(desk.with_muster(ARRAY, *words)) == expected


def test_an_arrays_number_stands_for_all_its_tasks(world, api, desk):
    directory = desk.directory()
    first = int(world.cli("sbatch", "--parsable", "--hold", "-a", "3,5", "--wrap", "true", cwd=directory).stdout)
    shown = world.cli("squeue", "-h", "-S", "i", "-j", first, "-o", "%i %t %r").stdout
    assert shown == f"{first}_[3,5] PD JobHeldUser\n"
    shown = world.cli("squeue", "-hr", "-S", "i", "-j", first, "-o", "%i %t %r").stdout
    assert shown == f"{first}_3 PD JobHeldUser\n{first}_5 PD JobHeldUser\n"
    world.cli("release", first, first + 1)
    after = int(world.cli("sbatch", "--parsable", "-d", f"afterok:{first}", "-o", "/dev/null", "--wrap", "true",
                          cwd=directory).stdout)
    api.wait_state(after, SUCCEEDED)
    assert [api.get(job).state for job in (first, first + 1)] == [SUCCEEDED, SUCCEEDED]
    assert sorted(path.name for path in directory.iterdir()) == [f"slurm-{first}_3.out", f"slurm-{first}_5.out"]


def test_squeue_scancel_and_sacct_know_the_job(world, api, desk):
    directory = desk.directory()
    (directory / "script.sh").write_text("#!/bin/sh\n#SBATCH -p debug\nsleep 1000\n")
    said = world.cli("sbatch", "--parsable", directory / "script.sh", cwd=directory).stdout
    job_id = int(said)
    api.wait_state(job_id, job_pb2.JOB_STATE_RUNNING)
    eventually(lambda: api.get(job_id).runs[0].nodes, "its node is known")
    line = world.cli("squeue", "-h", "-j", job_id, "-o", "%i %A %P %j %t %N %l").stdout.split()
    assert line == [str(job_id), api.get(job_id).runs[0].external_id, "debug", "script.sh", "R", "n1", "10:00"]
    assert f"{job_id} " in world.cli("squeue").stdout
    world.cli("scancel", "-n", "script.sh")
    api.wait_state(job_id, CANCELED)
    assert world.cli("squeue", "-h").stdout == ""
    assert world.cli("sacct", "-nP", "-j", job_id, "-o", "JobID,State,Partition").stdout == f"{job_id}|CANCELLED|debug\n"


def test_a_file_or_directory_that_is_not_there_is_named_with_its_option(world, api, desk):
    directory = desk.directory()
    for words, says in ((("-o", "no/%j.out"), f"--output (slurm.batch_script.output): {directory}/no/"),
                        (("--chdir", "/nonexistent"), "--chdir")):
        job_id = int(world.cli("sbatch", "--parsable", *words, "--wrap", "true", cwd=directory).stdout)
        api.wait_state(job_id, FAILED)
        assert says in world.cli("why", job_id).stdout


def test_a_script_whose_directory_is_not_there_starts_in_tmp_as_with_sbatch(world, api, slurm, desk):
    directory = desk.directory()
    words = ("--chdir", "/nonexistent", "-p", "debug", "--wrap", "pwd; exit 3")
    job_id = int(world.cli("sbatch", "--parsable", "-o", directory / "ours", *words, cwd=directory).stdout)
    slurm.slurm_as_user("sbatch", "-o", directory / "theirs", *words)
    api.wait_state(job_id, FAILED)
    assert api.get(job_id).runs[0].exit.code == 3

    def last_lines():
        return [path.read_text().splitlines()[-1:] for path in (directory / "ours", directory / "theirs")]

    eventually(lambda: last_lines() == [["/tmp"], ["/tmp"]], "both started in /tmp")
    for path in (directory / "ours", directory / "theirs"):
        assert "/nonexistent" in path.read_text()
        assert "going to /tmp instead" in path.read_text()


def test_a_dependency_names_jobs_by_musters_numbers(world, api, desk):
    gate = world.gate()
    directory = desk.directory()
    first = int(world.cli("sbatch", "--parsable", "--wrap", gate.script(), cwd=directory).stdout)
    second = int(world.cli("sbatch", "--parsable", "-d", f"afterok:{first}", "--wrap", "true", cwd=directory).stdout)
    eventually(lambda: "(Dependency)" in world.cli("squeue", "-h", "-j", second, "-o", "%R").stdout, "it waits")
    gate.open()
    api.wait_state(second, SUCCEEDED)
    assert api.get(first).state == SUCCEEDED


@pytest.mark.parametrize("words", [
    (), ("-N",), ("-s", "-p", "gpu,short"), ("-o", "%D %N %G"), ("-h", "-o", "%P|%a|%l|%D|%t|%N|%c|%C|%m|%G|%F|%L"), ("-N", "-o", "%N %T %R"),
    ("-S", "-P", "-o", "%P %N"), ("-O", "Partition,NodeList:.12,nodes:3|,StateLong,Memory,CPUs,Features"), ("-o", "all %D")])
def test_sinfo_prints_what_slurms_own_prints(world, slurm, agent, words):
    # The resources of earlier jobs are still being freed.
    eventually(lambda: set(slurm.slurm("sinfo", "-h", "-N", "-o", "%t").split()) == {"idle"}, "all nodes are idle")
    expected = [line.split() for line in slurm.slurm("sinfo", *words).splitlines()]
    shown = [line.split() for line in world.cli("sinfo", *words).stdout.splitlines()]
    assert len(expected) > 1
    if "-N" in words:
        # sinfo sorts by node, and leaves a node's partitions in any order.
        assert shown[0] == expected[0]
        shown.sort(), expected.sort()
    assert shown == expected


@pytest.fixture
def drained(slurm):
    """A node that is drained and one that is about to fail. (One that is down comes back by itself.)"""
    slurm.slurm("scontrol", "update", "NodeName=n1", "State=DRAIN", "Reason=a bad fan in the left cabinet")
    slurm.slurm("scontrol", "update", "NodeName=n2", "State=FAIL", "Reason=no power")
    yield
    slurm.slurm("scontrol", "update", "NodeName=n1,n2", "State=RESUME")
    eventually(lambda: set(slurm.slurm("sinfo", "-h", "-N", "-o", "%t").split()) == {"idle"}, "all nodes are idle")


def test_sinfo_shows_nodes_out_of_service_as_slurms_own_does(world, slurm, agent, drained):
    del drained
    for words in ((), ("-s",), ("-R",), ("-t", "drain"), ("-t", "fail", "-o", "%P %D %t"), ("-t", "mix"), ("-hd",),
                  ("-ho", "%T|%t|%E|%u|%N"), ("-o", "%D %C %F")):
        expected = slurm.slurm("env", "SLURM_TIME_FORMAT=standard", "sinfo", *words)
        shown = world.cli("sinfo", *words).stdout
        assert [line.split() for line in shown.splitlines()] == [line.split() for line in expected.splitlines()], words


def _plain(value):
    """A value of Slurm's JSON as Slurm 22.05 writes it: since then numbers are objects, and states are lists."""
    if isinstance(value, list):
        return value[0]
    if isinstance(value, dict):
        return value["number"] if value["set"] else None
    return value


def test_squeue_and_sacct_show_a_job_as_slurms_own_do(world, api, slurm, desk):
    directory = desk.directory()
    job_id = int(world.cli("sbatch", "--parsable", "-c2", "--mem=100M", "-t5", "--gres=gpu:h100:1", "-J", "shown",
                           "--wrap", "sleep 1000", cwd=directory).stdout)
    api.wait_state(job_id, job_pb2.JOB_STATE_RUNNING)
    number = eventually(lambda: api.get(job_id).runs[0].nodes and api.get(job_id).runs[0].external_id, "its node is known")
    for words in (("-o", "%P|%t|%T|%D|%C|%N|%R|%l|%B|%q|%r"),
                  ("-o", "%h|%H|%I|%J|%O|%d|%w|%X|%Y|%z|%n|%x|%E|%f|%v|%W|%.2l|%m|%b|%k|all"),
                  ("-O", "State:.12,ReasonList,NumNodes:3|,NumCPUs,TimeLimit,BatchHost,NodeList,MinMemory"),
                  ("-O", "cpus-per-task,NumTasks,tres-per-job,tres-per-task,NTPerNode,Profile,McsLabel,Prefer,STDIN,SCT")):
        assert world.cli("squeue", "-j", job_id, *words).stdout.split() == \
            slurm.slurm("squeue", "-j", number, *words).split()
    mine = json.loads(world.cli("squeue", "--json", "-j", job_id).stdout)["jobs"][0]
    theirs = next(job for job in json.loads(slurm.slurm("squeue", "--json"))["jobs"] if job["job_id"] == int(number))
    for name in ("job_state", "nodes", "batch_host", "cpus", "node_count", "partition", "time_limit", "state_reason",
                 "array_task_id", "cluster"):
        assert mine[name] == _plain(theirs[name]), name
    assert set(mine) - set(theirs) == {"run_time", "slurm_job_id"}
    world.cli("scancel", job_id)
    api.wait_state(job_id, CANCELED)


def test_an_error_names_sbatchs_options(world, desk):
    directory = desk.directory()
    for words, option in ((("-t", "9-0"), "--time"), (("-p", "nowhere"), "--partition"), (("--mem=900G",), "--mem"),
                          (("-N99",), "--nodes"), (("-c", "999"), "--cpus-per-task")):
        told = world.cli("sbatch", *words, "--wrap", "true", cwd=directory, check=False).stderr
        assert told.startswith(f"muster: {option}: "), told


def test_a_plan_and_a_check_are_answered_by_the_cluster(world, desk):
    directory = desk.directory()
    done = world.cli("sbatch", "--test-only", "-N2", "--wrap", "true", cwd=directory)
    assert done.stdout == ""
    assert "on nodes n1,n2 of cluster lab" in done.stderr
    assert "#!/bin/bash" in world.cli("plan", "-o", "wide", "--", "true").stdout
    short = world.cli("plan", "--", "true").stdout
    assert "# sbatch" in short and len(short.splitlines()) < 25, short
    assert "FAIL" not in world.cli("check", "lab").stdout
    assert world.cli("list", "-q").stdout == ""


@pytest.mark.parametrize("words, says", [
    (("-C", "nosuch"), "Invalid feature specification"),
    (("-w", "nosuch"), "Invalid node name specified"), (("--reservation=nosuch",), "Requested reservation is invalid"),
    (("-L", "nosuch:1"), "Invalid license specification"), (("--begin=yesterday",), "--begin"),
    (("--exclusive=foo",), "--exclusive"), (("--hint=foo",), "--hint"),
], ids=lambda value: value[0] if isinstance(value, tuple) else "")
def test_what_slurm_refuses_at_submit_is_refused_at_submit(world, slurm, desk, words, says):
    directory = desk.directory()
    done = subprocess.run([*AS_USER, "sbatch", *words, "--wrap", "true"], cwd=directory, text=True, check=False,
                          capture_output=True, env={"SLURM_CONF": str(slurm.conf), "PATH": "/usr/bin:/bin"})
    assert done.returncode != 0 and done.stdout == ""
    told = world.cli("sbatch", "--parsable", *words, "--wrap", "true", cwd=directory, check=False)
    assert told.returncode == 1 and told.stdout == ""
    assert told.stderr.startswith("muster: job ") and says in told.stderr, told.stderr


def test_the_number_of_a_job_is_printed_when_slurm_has_it(world, api, desk):
    gate = world.gate()
    job_id = int(world.cli("sbatch", "--parsable", "--wrap", gate.script(), cwd=desk.directory()).stdout)
    assert api.get(job_id).runs[0].external_id
    gate.open()
    api.wait_state(job_id, SUCCEEDED)


LIMITS = "umask; ulimit -Sn; ulimit -Ss; ulimit -Sc; touch made; stat -c %a made out\n"


@pytest.mark.parametrize("words", [(), ("--propagate",), ("--propagate=NONE",), ("--propagate=NOFILE",),
                                   ("--export=NONE",), ("--export=NIL",)], ids=lambda words: " ".join(words) or "plain")
def test_the_umask_and_the_limits_are_those_of_the_shell(desk, words):
    def shell():
        os.umask(0o027)
        for name, soft in ((resource.RLIMIT_NOFILE, 500), (resource.RLIMIT_STACK, 4 << 20), (resource.RLIMIT_CORE, 0)):
            resource.setrlimit(name, (soft, resource.getrlimit(name)[1]))

    script = f"#!/bin/bash\n{LIMITS}"
    expected = outputs(desk.with_sbatch(script, "-o", "out", *words, "script.sh", preexec_fn=shell))
    assert outputs(desk.with_muster(script, "-o", "out", *words, "script.sh", preexec_fn=shell)) == expected
    assert expected["out"].startswith("0027\n")


def test_what_slurm_writes_of_a_cancel_is_in_the_scripts_file(world, api, slurm, desk):
    directory = desk.directory()
    job_id = int(world.cli("sbatch", "--parsable", "-o", "out", "--wrap", "echo begins; sleep 1000", cwd=directory).stdout)
    eventually(lambda: (directory / "out").exists() and "begins" in (directory / "out").read_text(), "it runs")
    world.cli("scancel", job_id)
    api.wait_state(job_id, CANCELED)
    number = api.get(job_id).runs[0].external_id
    for text in ((directory / "out").read_text(), api.stdout(job_id).decode()):
        assert f"error: *** JOB {number} ON n1 CANCELLED AT " in text, text
