"""The columns of sacct beside those of a real Slurm's own, and the jobs of several components that sbatch takes."""

import pytest

from harness.fixtures import cluster_fixture
from harness.slurm import AS_USER
from harness.wait import eventually

slurm = cluster_fixture("--nodes", "1", "--cpus", "4", "--min-job-age", "30")

# Columns that differ by their nature, each with the reason.
DIFFERENT = {
    "JobID": "Muster's number",
    "JobName": "Slurm has the run's key",
    "MaxRSS": "Slurm has it in the lines of the steps alone",
    "ReqTRES": "the billing is Slurm's own",
    "AllocTRES": "the billing is Slurm's own",
    "Elapsed": "a second may begin between the two",
    "ReqMem": "a default of the cluster's is not the job's",
}


@pytest.mark.parametrize("options", [(), ("-b",), ("-l",), ("--long", "-X"), ("-l", "-P"), ("-l", "-p", "--delimiter=;"),
                                     ("-o", "jobid%20,State%-12,elapsed"), ("-o", "ReservationId,TimelimitRaw,JobName%4,User%0,End")])
def test_sacct_has_slurms_columns_in_slurms_order_and_widths(world, broker, slurm, options):
    heading = 1 if {"-P", "-p"} & set(options) else 2
    its = slurm.slurm("sacct", *options).split("\n")[:heading]
    assert world.cli("sacct", *options).stdout.split("\n")[:heading] == its


def test_sacct_knows_every_column_by_its_name_and_width(world, broker, slurm):
    names = slurm.slurm("sacct", "-e").split()
    assert len(names) > 100
    assert set(names) <= set(world.cli("sacct", "-e").stdout.split())

    def widths(output):
        return [len(rule) for rule in output.splitlines()[1].split()]

    mine, its = widths(world.cli("sacct", "-o", ",".join(names)).stdout), widths(slurm.slurm("sacct", "-o", ",".join(names)))
    # It is a number of the accounting's that nobody but Slurm knows, and each release has another width for it.
    assert {name for name, own, other in zip(names, mine, its, strict=True) if own != other} <= {"DBIndex"}


def test_a_line_of_sacct_long_has_slurms_values_or_none(world, agent, api, slurm):
    number = world.cli("sbatch", "--parsable", "-n", "2", "-t", "5", "--mem", "100", "-o", "/dev/null", "--wrap", "sleep 1").stdout.strip()
    run = eventually(lambda: next((run for run in api.get(int(number)).runs if run.HasField("usage")), None), "its usage")
    (mine,) = world.cli("sacct", "-lnP", "-j", number).stdout.splitlines()
    (its,) = slurm.slurm("sacct", "-lnPX", "-j", run.external_id).splitlines()
    names = world.cli("sacct", "-lP").stdout.splitlines()[0].split("|")
    columns = dict(zip(names, zip(mine.split("|"), its.split("|"), strict=True), strict=True))
    different = {name for name, (own, other) in columns.items() if own != other}
    assert different <= set(DIFFERENT), {name: columns[name] for name in different}
    assert columns["JobIDRaw"][0] == run.external_id
    assert columns["NTasks"] == ("", "") and columns["AllocCPUS"] == ("2", "2")


def submit(slurm, world, directory, *words):
    """The exit codes of sbatch and of muster sbatch, and what the second one says."""
    its = slurm.slurm("sh", "-c", 'cd "$0"; "$@" >out 2>&1; echo $?', directory, *AS_USER, "sbatch", "-o", "/dev/null", *words)
    mine = world.cli("sbatch", "-o", "/dev/null", *words, cwd=directory, check=False)
    return int(its), mine.returncode, mine.stderr


def test_a_heterogeneous_job_is_refused_where_sbatch_takes_one_and_nowhere_else(world, agent, slurm):
    scripts = {"plain.sh": "", "lines.sh": "#SBATCH hetjob\n#SBATCH -n1\n", "old.sh": "#SBATCH packjob\n#SBATCH -n1\n",
               "colon.sh": "#SBATCH -n1 : -n1\n", "late.sh": "true\n#SBATCH hetjob\n"}
    directory = world.path("scripts")
    directory.mkdir()
    directory.chmod(0o777)
    for name, lines in scripts.items():
        (directory / name).write_text(f"#!/bin/sh\n#SBATCH -n1\n{lines}true\n")
    for words in (["lines.sh"], ["old.sh"], ["-n1", ":", "-n1", "plain.sh"], ["-n1", ":", "-n1", "--wrap", "true"]):
        its, mine, said = submit(slurm, world, directory, *words)
        assert its == 0 and mine == 2, (words, said)
        assert "it is a heterogeneous job (" in said and "submit it with Slurm's own sbatch, or each component" in said
    its, mine, said = submit(slurm, world, directory, "colon.sh")
    assert its == 1 and mine == 2 and "line 3: Unexpected `:` in [ : -n1]" in said
    assert "line 3: Unexpected `:` in [ : -n1]" in (directory / "out").read_text()
    for words in (["plain.sh", ":", "-n1"], ["late.sh"]):
        its, mine, said = submit(slurm, world, directory, *words)
        assert its == 0 and mine == 0, (words, said)
    assert world.cli("count", "-q").stdout == "2\n"
