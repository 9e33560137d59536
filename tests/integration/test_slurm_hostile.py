"""What users write arrives byte for byte, whatever it looks like, and no shell on the way reads it.

Arguments, values of variables, names and directories go from a client through broker, agent, sbatch and batch script to
the program; with one agent on the login node, with the other over SSH.
"""

import random

import pytest

from harness.api import SUCCEEDED, argv_spec
from harness.slurm import USER, SlurmCluster, start_shared_broker

# Twice this with its two agents; each job carries so many strings.
STRINGS = 5_000
STRINGS_PER_JOB = 500
VARIABLES_PER_JOB = 100
LONG_BYTES = 65_536
CANARY = "canary"
PIECES = ["'", '"', "\\", "`", "$", "$(touch {canary})", "`touch {canary}`", "; touch {canary} #", "&& touch {canary}",
          "| touch {canary}", "\n", "\r\n", "\t", " ", "#SBATCH --wrap=touch {canary}\n", "\n#SBATCH -n 99\n", "%j", "%%",
          "!!", "*", "?", "[a-z]", "{{a,b}}", "~", "~root", "-", "--", "-c", "=", ",", ":", "\x01", "\x07", "\x1b[2J", "\x7f",
          "é", "日本", "\U0001f600", "\u202e", "\u00a0", "EOF\n", "<<EOF\n", "${{IFS}}", "$'\\x41'", "\\n", "%s%n", "()", "^", ""]
# Prints its arguments and the variables HOSTILE_0 ..., each ended by a NUL byte.
PROGRAM = """
import os, sys
out = sys.stdout.buffer
for word in sys.argv[1:]:
    out.write(os.fsencode(word) + b"\\0")
for number in range(int(os.environ["HOSTILE_COUNT"])):
    out.write(os.environb[b"HOSTILE_%d" % number] + b"\\0")
out.write(os.getcwdb() + b"\\0")
"""


@pytest.fixture(scope="module")
def slurm():
    made = SlurmCluster("--nodes", "2", "--cpus", "8", "--min-job-age", "30", sshd=True)
    yield made
    made.close()


@pytest.fixture
def broker(world):
    return start_shared_broker(world)


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


def test_ten_thousand_hostile_strings_arrive_and_run_nothing(world, api, slurm, agent):
    del agent
    canary = slurm.root / CANARY
    hostile = Hostile(canary)
    jobs = {}
    for number in range(STRINGS // (STRINGS_PER_JOB + VARIABLES_PER_JOB) + 1):
        words = [hostile.string() for _ in range(STRINGS_PER_JOB)]
        values = [hostile.string() for _ in range(VARIABLES_PER_JOB)]
        if number == 0:
            words[0], values[0] = hostile.long_string(), hostile.long_string()
        directory = _directory(slurm, hostile, number)
        spec = argv_spec("/usr/bin/python3", "-c", PROGRAM, *words, name=hostile.name(), working_directory=directory)
        for index, value in enumerate(values):
            spec.env[f"HOSTILE_{index}"] = value
        spec.env["HOSTILE_COUNT"] = str(len(values))
        spec.slurm.comment = hostile.name()
        jobs[api.submit(spec)] = [*words, *values, directory]
    assert sum(map(len, jobs.values())) >= STRINGS
    for job_id, expected in jobs.items():
        api.wait_state(job_id, SUCCEEDED)
        arrived = api.stdout(job_id).split(b"\0")
        assert arrived == [*(text.encode() for text in expected), b""], f"job {job_id}"
    assert not canary.exists()


def _directory(slurm, hostile, number):
    """An existing directory whose path is as bad as paths can be that a job may have."""
    name = "".join(c for c in f"{number}{hostile.string()}" if c.isprintable() and c != "/")[:60]
    path = slurm.root / "hostile directories" / name
    slurm.slurm("install", "-d", "-o", USER, path)
    return str(path)
