"""sbatch and muster sbatch side by side, with the same options on clusters that are alike."""

import dataclasses
import datetime
import re
import shlex
import shutil
import subprocess

import yaml

from harness.api import FAILED, TERMINAL
from harness.slurm import AS_USER, RELEASE, USER, before
from harness.stubs import REPOSITORY
from harness.wait import eventually

READINGS = REPOSITORY / "tests" / "integration" / "readings"
# Slurm gives these while it has not looked yet, or while the job before is still being put away.
ABOUT_TO_START = ("None", "Resources", "Priority")
# Options give these times of a record from "now" on: both jobs have the same only when counted from their submission.
FROM_NOW = ("Deadline", "EligibleTime")
MINUTES_OF_A_DAY = 24 * 60
# The script tells what Slurm made of it, and what it was told itself. The last line says that both files are whole.
SCRIPT = """#!/bin/sh
{directives}
scontrol -o show job -d "$SLURM_JOB_ID" >{target}.record
env -0 >{target}.environment
mv {target}.environment {target}.told
"""
# Variables by which Slurm tells a job about itself. SBATCH_* of the submitter travel as all of the environment does, which is not looked at here.
TOLD = re.compile(r"SLURM|SRUN|SBATCH_(MEM|CPU)_BIND|CUDA_VISIBLE_DEVICES$|GPU_DEVICE_ORDINAL$")


def groups():
    """The rows of the table by the names of their groups."""
    return yaml.safe_load((READINGS / "options.yaml").read_text())


@dataclasses.dataclass(frozen=True)
class Row:
    """One row of options.yaml."""

    line: str = ""
    script: str = ""
    environment: dict = dataclasses.field(default_factory=dict)
    wrap: bool = False
    input: bool = False
    name: str = "script.sh"

    @staticmethod
    def of(written):
        return Row(line=written) if isinstance(written, str) else Row(**written)

    def title(self):
        """The row's name in differences.yaml and in a report."""
        settings = " ".join(f"{name}={value}" for name, value in self.environment.items())
        how = "as --wrap" if self.wrap else "on standard input" if self.input else "" if self.name == "script.sh" else self.name
        parts = [settings, self.script.replace("\n", "; "), self.line, how]
        return " | ".join(part for part in parts if part) or "(nothing)"

    def words(self, target):
        """The words behind `sbatch`, the script's text, and what goes on standard input."""
        text = SCRIPT.format(directives=self.script, target=target)
        words = shlex.split(self.line)
        if self.wrap:
            return [*words, "--wrap", text.split("\n", 2)[2]], "", None
        return [*words, *([] if self.input else [self.name])], text, text if self.input else None


@dataclasses.dataclass
class Outcome:
    """The end of a row: "refused", "waits", "runs", or "fails" before the script has told anything; with the job's record
    and, if it ran, its environment."""

    end: str
    record: dict = dataclasses.field(default_factory=dict)
    environment: dict = dataclasses.field(default_factory=dict)
    words: str = ""

    def differences(self, other):
        """The differences, each by its name: "end", a field of the record, or "$NAME" of a variable."""
        if self.end != other.end:
            return {"end": (f"{self.end} {self.words}", f"{other.end} {other.words}")}
        mine, others = ({**one.record, **{f"${name}": value for name, value in one.environment.items()}}
                        for one in (self, other))
        return {name: (mine.get(name), others.get(name)) for name in sorted({*mine, *others})
                if mine.get(name) != others.get(name)}


class Desk:
    """A directory of the user's, from which rows are submitted to a cluster."""

    def __init__(self, world, slurm, name):
        self._slurm = slurm
        (self._port,) = re.findall(r"SlurmctldPort=(\d+)", slurm.conf.read_text())
        self._directory = world.path(name)
        self._told = self._directory / "told"
        for path in (self._directory, self._told):
            path.mkdir()
            shutil.chown(path, USER, USER)
        self._made = 0

    def _prepare(self, row):
        self._made += 1
        target = self._told / str(self._made)
        words, text, given = row.words(target)
        (self._directory / row.name).write_text(text)
        return words, given, target

    def _end(self, target, number):
        """The outcome, once there is one and the nodes are free again. number() is Slurm's, or an Outcome."""
        outcome = eventually(lambda: self._look(target, number()), f"{target} is written, or the job waits")
        if outcome.end == "waits":
            self._slurm.slurm("scancel", number())
        eventually(lambda: not self._slurm.slurm("squeue", "-h", "-o", "%i"), "the nodes are free", poll_s=0.02)
        return outcome

    def _look(self, target, number):
        if isinstance(number, Outcome):
            return number
        if target.with_suffix(".told").exists():
            return Outcome("runs", *self._read(target))
        if not number:
            return None
        state, reason = self._slurm.slurm("squeue", "-h", "-t", "all", "-j", number, "-o", "%T|%r").strip().split("|")
        if state == "PENDING" and reason not in ABOUT_TO_START:
            return Outcome("waits", self._record(self._slurm.slurm("scontrol", "-o", "show", "job", "-d", number)))
        told_nothing = state == "FAILED" and not target.with_suffix(".told").exists()
        return Outcome("fails") if told_nothing else None

    def _read(self, target):
        told = target.with_suffix(".told").read_bytes().decode(errors="replace").split("\0")
        variables = dict(self._anywhere(line).split("=", 1) for line in told if TOLD.match(line))
        return self._record(target.with_suffix(".record").read_text()), variables

    def _anywhere(self, text):
        """The text without what tells this desk and its cluster from the other ones."""
        for own, common in ((str(self._directory), "DESK"), (str(self._slurm.directory), "CLUSTER"), (f":{self._port}:", ":PORT:")):
            text = text.replace(own, common)
        return text

    @staticmethod
    def _record(text):
        """A job's record by fields. A field that is there several times has all its values; words without '=' belong to
        the field before."""
        fields, name = {}, ""
        for word in text.split():
            key, equals, value = word.partition("=")
            if equals and re.fullmatch(r"[A-Z][\w:/]*", key):
                name = key
                fields.setdefault(name, []).append(value)
            else:
                fields[name][-1] += f" {word}"
        record = {key: "; ".join(values) for key, values in fields.items()}
        return record | {key: minutes_after(record["SubmitTime"], record[key]) for key in FROM_NOW if key in record}


class SbatchDesk(Desk):
    """One whose user has sbatch itself."""

    def __init__(self, world, slurm):
        super().__init__(world, slurm, "sbatch-desk")

    def submit(self, row):
        words, given, target = self._prepare(row)
        environment = {"SLURM_CONF": str(self._slurm.conf), "PATH": before("/usr/bin:/bin"), **row.environment}
        done = subprocess.run([*AS_USER, "sbatch", *words], cwd=self._directory, env=environment, text=True, input=given,
                              capture_output=True, timeout=120, check=False)
        if done.returncode != 0:
            return Outcome("refused", words=done.stderr.strip())
        number = done.stdout.split()[-1]
        return self._end(target, lambda: number)


class MusterDesk(Desk):
    """One whose user has muster sbatch."""

    def __init__(self, world, slurm, api):
        super().__init__(world, slurm, "muster-desk")
        self._world, self._api = world, api
        self._jobs = []

    def submit(self, row):
        words, given, target = self._prepare(row)
        done = self._world.cli("sbatch", *words, cwd=self._directory, env=row.environment, input=given or "", check=False)
        if done.returncode != 0:
            return Outcome("refused", words=done.stderr.strip())
        job_id = int(done.stdout.split()[-1])
        self._jobs.append(job_id)

        def number():
            job = self._api.get(job_id)
            if job.state == FAILED and not job.runs[-1].external_id:
                return Outcome("refused", words=job.state_reason.message or str(job.runs[-1].failure))
            return job.runs[-1].external_id if job.runs else ""

        return self._end(target, number)

    def wait_for_ends(self):
        """Waits for all ends once all rows are submitted: Slurm needs no job that Muster has yet to see the end of."""
        for job_id in self._jobs:
            eventually(lambda job_id=job_id: self._api.get(job_id).state in TERMINAL, f"job {job_id} has ended")


def _moment(written):
    """A time as the script's scontrol writes it, or that of a test, in seconds."""
    return datetime.datetime.fromtimestamp(int(written)) if written.isdigit() else datetime.datetime.fromisoformat(written)


def minutes_after(submitted, time):
    """The time of a record in minutes or days after the job's submission: a launch is quick, but not the same second."""
    try:
        start, end = (_moment(written) for written in (submitted, time))
    except ValueError:
        return time  # "Unknown" or "N/A".
    minutes = (end - start).total_seconds() / 60
    # A date is as far from two submissions, which may be a minute apart.
    if minutes > MINUTES_OF_A_DAY:
        return f"{round(minutes / MINUTES_OF_A_DAY)} days after its submission"
    return f"{round(minutes)} minutes after its submission"


class Accepted:
    """The differences that differences.yaml names, each with its reason."""

    def __init__(self):
        self.rules = yaml.safe_load((READINGS / "differences.yaml").read_text())

    def unexplained(self, row, differences):
        """The differences of a row that no rule has."""
        for rule in self.rules:
            if "rows" in rule and row.title() not in rule["rows"]:
                continue
            if "slurm" in rule and rule["slurm"] != RELEASE:
                continue
            differences = {name: values for name, values in differences.items() if name not in rule["names"]}
        return differences
