"""Users' text arrives byte for byte, whatever it looks like, and no shell on the way reads it.

Arguments, values of variables, scripts, setups, names, comments and directories go from a client through broker, agent,
sbatch and batch script to the program, with one agent on the login node, with the other over SSH; and what is said of
them comes back.
"""

import random
import shlex

import pytest

from harness.api import SUCCEEDED, argv_spec, script_spec
from harness.fixtures import cluster_fixture
from harness.slurm import USER

# The strings with each of the two agents, not counting the jobs' names.
STRINGS = 10_000
# Words that one job carries. Words of a setup are written into its text, each quoted as a shell wants it; the lines of
# a script stand behind its end.
WORDS_PER_JOB = 500
VARIABLES_PER_JOB = 100
SETUP_STRINGS_PER_JOB = 20
LINES_PER_SCRIPT = 100
LONG_BYTES = 65_536
CANARY = "canary"
PIECES = ["'", '"', "\\", "`", "$", "$(touch {canary})", "`touch {canary}`", "; touch {canary} #", "&& touch {canary}",
          "| touch {canary}", "\n", "\r\n", "\t", " ", "#SBATCH --wrap=touch {canary}\n", "\n#SBATCH -n 99\n", "%j", "%%",
          "!!", "*", "?", "[a-z]", "{{a,b}}", "~", "~root", "-", "--", "-c", "=", ",", ":", "\x01", "\x07", "\x1b[2J", "\x7f",
          "é", "日本", "\U0001f600", "\u202e", "\u00a0", "EOF\n", "<<EOF\n", "${{IFS}}", "$'\\x41'", "\\n", "%s%n", "()", "^", ""]
# Prints its arguments and the variables HOSTILE_0 ..., and where it is, each ended by a NUL byte.
PROGRAM = """
import os, sys
out = sys.stdout.buffer
for word in sys.argv[1:]:
    out.write(os.fsencode(word) + b"\\0")
for number in range(int(os.environ["HOSTILE_COUNT"])):
    out.write(os.environb[b"HOSTILE_%d" % number] + b"\\0")
out.write(os.getcwdb() + b"\\0")
"""
# The same, and its own text. No shell reads further than the second line.
SCRIPT = f"""/usr/bin/python3 -c '{PROGRAM}' "$@" && cat "$0"
exit $?
"""
BATCH_SCRIPT = """#!/bin/bash
printf '%s\\0' "$@" "$SLURM_JOB_NAME" "$PWD"
exit
"""


slurm = cluster_fixture("--nodes", "2", "--cpus", "8", "--min-job-age", "600", sshd=True)


@pytest.fixture(params=["local", "ssh"])
def agent(request, world, broker, slurm):
    del broker
    return (slurm.make_agent(world) if request.param == "local" else slurm.make_ssh_agent(world)).start()


class Hostile:
    """Makes strings that look like everything that a shell, a script or a format would take for its own."""

    def __init__(self, canary):
        self._random = random.Random(7)
        self._pieces = [piece.format(canary=canary) for piece in PIECES]

    def string(self):
        return "".join(self._random.choices(self._pieces, k=self._random.randint(0, 8)))

    def long_string(self):
        text = ""
        while len(text.encode()) < LONG_BYTES:
            text += self.string() + "x"
        return text.encode()[:LONG_BYTES].decode(errors="ignore")

    def name(self):
        """Names have no control characters."""
        return "".join(c for c in self.string() if c.isprintable())[:40] or "-"


class Sent:
    """A job's hostile strings, and what its programs must print of them."""

    def __init__(self, hostile, directory):
        self._hostile = hostile
        self.directory = directory
        self.count = 0
        self.name, self.comment = hostile.name(), hostile.name()
        self.setup = self.strings(SETUP_STRINGS_PER_JOB)
        self.values = self.strings(VARIABLES_PER_JOB)
        # The output of each rank.
        self.printed = []

    def strings(self, count):
        self.count += count
        return [self._hostile.string() for _ in range(count)]

    def prints(self, *words, values=(), end=""):
        """One more rank does."""
        strings = [*self.setup, *words, *(values or self.values), self.directory]
        self.printed.append("".join(f"{text}\0" for text in strings).encode() + end.encode())

    def complete(self, spec):
        """The spec with what all forms of jobs have."""
        spec.name, spec.slurm.comment = self.name, self.comment
        spec.working_directory = self.directory
        spec.setup = f"printf '%s\\0' {shlex.join(self.setup)}\n"
        spec.env["HOSTILE_COUNT"] = str(len(self.values))
        _set_values(spec.env, self.values)
        return spec

    def check(self, api, slurm, job_id):
        job = api.wait_state(job_id, SUCCEEDED)
        for rank, expected in enumerate(self.printed):
            assert api.stdout(job_id, rank=rank) == expected, f"job {job_id}, rank {rank}"
        assert job.spec.name == self.name
        assert slurm.slurm("squeue", "-h", "-t", "all", "-o", "%k", "-j", job.runs[0].external_id) == self.comment + "\n"


def _set_values(env, values):
    for index, value in enumerate(values):
        env[f"HOSTILE_{index}"] = value


def _as_arguments(hostile, sent):
    words = [hostile.long_string(), *sent.strings(WORDS_PER_JOB)]
    sent.prints(*words)
    return argv_spec("/usr/bin/python3", "-c", PROGRAM, *words)


def _as_script(hostile, sent):
    del hostile
    words = sent.strings(WORDS_PER_JOB)
    text = SCRIPT + "\n".join(sent.strings(LINES_PER_SCRIPT))
    sent.prints(*words, end=text)
    spec = script_spec(text)
    spec.command.script_arguments.extend(words)
    return spec


def _as_roles(hostile, sent):
    """The second one's variables are its own."""
    del hostile
    own, spec = sent.strings(VARIABLES_PER_JOB), argv_spec()
    spec.ClearField("command")
    spec.nodes = 2
    for number, values in enumerate([(), own]):
        words = sent.strings(WORDS_PER_JOB // 2)
        role = spec.roles.add(name=f"role-{number}", nodes=1, first_node=number)
        role.command.argv.args.extend(["/usr/bin/python3", "-c", PROGRAM, *words])
        _set_values(role.env, values)
        sent.prints(*words, values=values)
    return spec


FORMS = (_as_arguments, _as_script, _as_roles)


def test_ten_thousand_hostile_strings_arrive_and_run_nothing(api, slurm, agent):
    del agent
    canary = slurm.root / CANARY
    hostile = Hostile(canary)
    jobs = {}
    while sum(sent.count for sent in jobs.values()) < STRINGS:
        sent = Sent(hostile, _directory(slurm, hostile, len(jobs)))
        make = FORMS[len(jobs) % len(FORMS)]
        jobs[api.submit(sent.complete(make(hostile, sent)))] = sent
    for job_id, sent in jobs.items():
        sent.check(api, slurm, job_id)
    assert not canary.exists()


def test_words_given_to_muster_sbatch_arrive_and_run_nothing(world, api, slurm, agent):
    del agent
    canary = slurm.root / CANARY
    hostile = Hostile(canary)
    words = [hostile.string() for _ in range(WORDS_PER_JOB)]
    name, comment, directory = hostile.name(), hostile.name(), _directory(slurm, hostile, "sbatch")
    # sbatch takes no script with the line ends of another system.
    lines = [hostile.string().replace("\r\n", "") for _ in range(LINES_PER_SCRIPT)]
    script = world.write("script.sh", BATCH_SCRIPT + "\n".join(lines))
    world.cli("sbatch", "--wait", f"--job-name={name}", f"--comment={comment}", f"--chdir={directory}",
              "--output=out", script, *words)
    job = api.get(api.list_all()[0].id)
    printed = "".join(f"{text}\0" for text in [*words, name, directory]).encode()
    assert api.stdout(job.id) == printed
    assert (slurm.root / directory / "out").read_bytes() == printed
    assert (job.spec.name, job.spec.slurm.comment) == (name, comment)
    assert not canary.exists()


def _directory(slurm, hostile, number):
    """An existing directory whose path is as bad as paths can be that a job may have."""
    name = "".join(c for c in f"{number}{hostile.string()}" if c.isprintable() and c != "/")[:60]
    path = slurm.root / "hostile directories" / name
    slurm.slurm("install", "-d", "-o", USER, path)
    return str(path)
