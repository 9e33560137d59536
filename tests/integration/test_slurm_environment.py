"""The environment that a batch script takes along, through muster and through sbatch itself, on a real Slurm."""

import contextlib
import os
import pathlib
import shutil
import subprocess

import pytest

from harness.api import RUNNING, SUCCEEDED
from harness.daemons import BIN
from harness.fixtures import cluster_fixture
from harness.slurm import AS_USER, USER, before
from harness.wait import eventually

SCRIPT = """#!/bin/bash
env -0 >job.env
module load site 2>/dev/null || echo "no module"
"""
DIRECTIVE = SCRIPT.replace("\n", "\n#SBATCH --export=LR,FROM=script\n", 1)
MODULE = """() {  printf 'module: %s ' "$*";
 echo "$LR"
}"""
# The shell of a login node, its credentials aside.
SHELL = {
    "PATH": before("/opt/site/bin:/usr/bin:/bin"), "HOME": f"/home/{USER}", "USER": USER, "LOGNAME": USER, "SHELL": "/bin/bash",
    "LANG": "C.UTF-8", "LD_LIBRARY_PATH": "/opt/site/lib", "LR": "0.1", "EMPTY": "", "LINES_OF": "one\n 'two' $(id) \\\n",
    "BYTES": os.fsdecode(b"\xff\xfe"), "OLDPWD": "/opt", "SPANK_X": "1", "SBATCH_X": "1", "HOSTNAME": "login",
    "ENVIRONMENT": "none", "CUDA_VISIBLE_DEVICES": "7", "SLURM_CPU_BIND": "none", "SLURM_JOB_ID": "99",
    "SLURM_JOB_USER": "root", "BASH_FUNC_module%%": MODULE,
}
# The variables whose presence or value differs, each with the reason.
DIFFERENCES = {
    "HOME": "it is the account's, as its agent has it; muster and the account may be different users",
    "USER": "likewise", "LOGNAME": "likewise",
    "PWD": "the two are submitted in directories of their own", "SLURM_SUBMIT_DIR": "likewise",
    "SHLVL": "the shell counts itself, and the two are started by different ones",
    "_": "the shell sets it to the command that it starts",
    "CUDA_VISIBLE_DEVICES": "a value of the submit host names that host's GPUs; it is taken along only if it is named",
}
# Muster's own, which docs/environment.md lists.
OURS = ("MUSTER_", "SKYPILOT_", "MASTER_", "NODE_RANK", "NNODES", "WORLD_SIZE", "NUM_GPU_PER_NODE", "NPROC_PER_NODE")
# The shape of a job is compared by the tests of options; here those of Slurm's own that say something of the environment.
SLURMS = ("SLURM_EXPORT_ENV", "SLURM_GET_USER_ENV", "SLURM_CPU_BIND", "SLURM_CONF", "SLURM_JOB_USER")

slurm = cluster_fixture("--nodes", "1", "--cpus", "8", "--no-dbd", "--min-job-age", "30")


class Desk:
    """A directory of the user's, from which scripts are submitted in a shell of exactly these variables."""

    def __init__(self, world, slurm):
        self.world, self.slurm = world, slurm
        self.made = 0

    def directory(self, script):
        self.made += 1
        path = self.world.path(f"desk-{self.made}")
        path.mkdir()
        (path / "script.sh").write_text(script)
        (path / "vars").write_bytes(b"X=1\0Y=a\nb\0")
        shutil.chown(path, USER, USER)
        return path

    def submit(self, argv, shell, directory):
        return subprocess.run([str(word) for word in argv], cwd=directory, env=shell, check=True, text=True,
                              capture_output=True, timeout=120)

    def with_sbatch(self, shell, words, script=SCRIPT):
        """Runs the script with sbatch itself; returns what it found and wrote."""
        directory = self.directory(script)
        self.submit([*AS_USER, "sbatch", "--wait", "-o", "out", *words, "script.sh"],
                    {**shell, "SLURM_CONF": str(self.slurm.conf)}, directory)
        return self.result(directory)

    def with_muster(self, shell, words, script=SCRIPT):
        """The same with muster."""
        directory = self.directory(script)
        self.submit([BIN / "muster", "sbatch", "--wait", "-o", "out", *words, "script.sh"],
                    {**shell, "SLURM_CONF": str(self.slurm.conf), "MUSTER_BROKER": self.world.broker.address}, directory)
        return self.result(directory)

    @staticmethod
    def result(directory):
        # Slurm's own --wait does not wait for the file server.
        env = eventually(lambda: (directory / "job.env").read_bytes(), "the script has run")
        pairs = (one.partition(b"=") for one in env.split(b"\0") if one)
        return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}, (directory / "out").read_text()


@pytest.fixture
def desk(world, slurm, agent):
    del agent
    return Desk(world, slurm)


def compared(env):
    """The variables that must be the same."""
    return {name: value for name, value in env.items()
            if name not in DIFFERENCES and not name.startswith(OURS)
            and (not name.startswith("SLURM") or name in SLURMS)}


@pytest.mark.parametrize("words, extra", [
    ((), {}),
    (("--export=ALL",), {}),
    (("--export=NONE",), {}),
    (("--export=LR,B=x=y,NOSUCH",), {}),
    (("--export=ALL,LR=9,C=3",), {}),
    (("--export=LR=9,ALL",), {}),
    (("--export=A='1,2','B=3,4',D=\"5\",E=x y",), {}),
    (("--export=",), {}),
    ((), {"SBATCH_EXPORT": "LR"}),
    (("--export=EMPTY",), {"SBATCH_EXPORT": "LR"}),
    (("--get-user-env",), {}),
    (("--export-file=vars",), {}),
    (("--export-file=vars", "--export=B=2,LR"), {}),
], ids=["default", "all", "none", "names", "all-then-name", "name-then-all", "quotes", "empty", "variable",
        "line-over-variable", "get-user-env", "file", "file-and-names"])
def test_the_script_finds_what_it_finds_with_sbatch(desk, words, extra):
    shell = {**SHELL, **extra}
    expected, wrote = desk.with_sbatch(shell, words)
    found, also_wrote = desk.with_muster(shell, words)
    if "PATH" not in expected:
        del found["PATH"]  # a run that takes none along has the cluster's slurm.job_path
    assert compared(found) == compared(expected)
    assert also_wrote == wrote


def test_a_directive_is_read_after_the_variable(desk):
    for extra in ({}, {"SBATCH_EXPORT": "EMPTY"}):
        expected, _ = desk.with_sbatch({**SHELL, **extra}, (), DIRECTIVE)
        found, _ = desk.with_muster({**SHELL, **extra}, (), DIRECTIVE)
        assert compared(found) == compared(expected)
        assert ("LR" in found) != bool(extra)


def test_nil_is_read_as_newer_slurms_do(desk):
    """22.05 takes it for a variable's name, and makes a login environment; 23.02 and later make none."""
    found, _ = desk.with_muster(SHELL, ("--export=NIL",))
    assert found["SLURM_EXPORT_ENV"] == "NIL" and "SLURM_GET_USER_ENV" not in found
    assert "LR" not in found and "MAIL" not in found and found["SLURM_CPU_BIND"] == "none"


def test_a_directory_for_temporary_files_is_made_as_slurm_makes_it(desk):
    for name, expected in (("mine", None), ("no/such", "/tmp")):
        wanted = str(desk.world.path(name))
        desk.world.root.chmod(0o777)
        by_slurm, _ = desk.with_sbatch({**SHELL, "TMPDIR": wanted + "-s"}, ())
        by_muster, _ = desk.with_muster({**SHELL, "TMPDIR": wanted + "-m"}, ())
        assert by_slurm["TMPDIR"] == (expected or wanted + "-s")
        assert by_muster["TMPDIR"] == (expected or wanted + "-m")
        if expected is None:
            assert [os.stat(wanted + end).st_mode & 0o777 for end in ("-s", "-m")] == [0o700, 0o700]


def test_the_tasks_of_an_array_share_one_file_of_variables(world, api, desk):
    directory = desk.directory(SCRIPT.replace("job.env", "job-$SLURM_ARRAY_TASK_ID.env"))
    desk.submit([BIN / "muster", "sbatch", "--wait", "-a", "1-3", "script.sh"],
                {**SHELL, "MUSTER_BROKER": world.broker.address}, directory)
    for task in "123":
        assert b"\0LR=0.1\0" in (directory / f"job-{task}.env").read_bytes()
    assert len(list(world.path("broker").glob("files/kept/*"))) == 1
    again = int(world.cli("rerun", "-q", 1).stdout)
    assert api.wait_state(again, SUCCEEDED).id == again, "the broker has kept the file"


# ---- credentials

CANARY = "canary-5d1f"
# muster remarks on variables of sbatch that it does not know.
KNOWN = {name: value for name, value in SHELL.items() if name != "SBATCH_X"}


def command_lines():
    """Returns those of all processes."""
    lines = b""
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines += path.read_bytes() + b"\n"
        except OSError:
            continue
    return lines


def shown(world, slurm, job_id):
    """All that anybody can be shown of the job."""
    texts = [world.cli(*words).stdout for words in (
        ("show", job_id), ("show", job_id, "-o", "json"), ("list", "-o", "json"), ("events", job_id),
        ("why", job_id), ("squeue", "-l"), ("sacct", "-j", job_id))]
    texts += [slurm.slurm("scontrol", "show", "job", "-dd"), slurm.slurm("squeue", "-O", "all"),
              slurm.slurm("squeue", "--json")]
    texts += [str(world.api().get(job_id))]
    return "".join(texts)


def files_with(directory, text):
    found = []
    # A run that has ended is being forgotten meanwhile, so its files go.
    for parent, _, names in os.walk(directory):
        for path in (pathlib.Path(parent, name) for name in names):
            with contextlib.suppress(FileNotFoundError):
                if path.is_file() and text.encode() in path.read_bytes():
                    found.append(path)
    return sorted(found)


def test_a_credential_stays_unless_it_is_named(world, desk):
    directory = desk.directory(SCRIPT)
    shell = {**KNOWN, "HF_TOKEN": CANARY, "SSH_AUTH_SOCK": "/tmp/" + CANARY, "http_proxy": f"http://u:{CANARY}@proxy",
             "MUSTER_BROKER": world.broker.address}
    done = desk.submit([BIN / "muster", "sbatch", "--wait", "-o", "out", "script.sh"], shell, directory)
    remark = done.stderr.splitlines()[0]  # the others tell how the job is
    assert remark.startswith("muster: these variables stay here") and CANARY not in done.stderr
    assert remark.endswith(": HF_TOKEN, SSH_AUTH_SOCK, http_proxy; to take them along, name them: "
                           "--export=ALL,HF_TOKEN,SSH_AUTH_SOCK,http_proxy")
    env, wrote = desk.result(directory)
    assert CANARY not in str(env) and wrote == "module: load site 0.1\n"
    assert not files_with(world.root, CANARY)


def test_a_credential_that_is_named_is_shown_to_nobody(world, api, slurm, desk):
    gate = world.gate()
    directory = desk.directory(f"#!/bin/sh\n{gate.script()}\nenv -0 >job.env\n")
    shell = {**KNOWN, "HF_TOKEN": CANARY, "MUSTER_BROKER": world.broker.address}
    argv = [BIN / "muster", "sbatch", "--parsable", "--export=ALL,HF_TOKEN", "script.sh"]
    done = desk.submit(argv, shell, directory)
    assert done.stderr == ""
    job_id = int(done.stdout)
    key = api.wait_state(job_id, RUNNING).runs[0].run_key
    assert CANARY not in shown(world, slurm, job_id)
    assert CANARY.encode() not in command_lines()
    # The disk has it in the broker's file of these variables, the agent's copy, and the run's own file; not in the
    # broker's database, the agent's journal or a log.
    found = [path for path in files_with(world.root, CANARY) if path.parent != directory]
    assert {path.parent.name for path in found} == {"kept", "env"}
    assert all(path.stat().st_mode & 0o077 == 0 or path.parent.stat().st_mode & 0o077 == 0 for path in found)
    (run_file,) = (path for path in found if path.parent.name == "env")
    assert run_file.stat().st_mode & 0o777 == 0o600 and key in str(run_file)
    gate.open()
    api.wait_state(job_id, SUCCEEDED)
    assert f"HF_TOKEN={CANARY}".encode() in (directory / "job.env").read_bytes()
    assert CANARY not in shown(world, slurm, job_id)

