"""sbatch does its work, or does not, and its answer never arrives."""

import shutil

from faults.lab import command_directory, open_lab, user_directory

# The first submission of each name fails as it does when slurmctld is too slow; every other one has been taken all the
# same. Slurm's own words, as 22.05 says them.
SBATCH = """#!/bin/bash
for word; do case $word in --job-name=*) name=${{word#*=}} ;; esac; done
if mkdir "{marks}/$name" 2>/dev/null; then
  marks=("{marks}"/*)
  if ((${{#marks[@]}} % 2)); then {sbatch} "$@" >/dev/null || exit; fi
  echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2
  exit 1
fi
exec {sbatch} "$@"
"""


def sbatch_reply_lost(repeat, toll):
    """The answer of sbatch is lost; the job was made every other time."""
    def make_agent(cluster, world):
        marks = user_directory(cluster, "marks")
        commands = command_directory(cluster, sbatch=SBATCH.format(marks=marks, sbatch=shutil.which("sbatch")))
        return cluster.make_agent(world, bin_dir=commands)

    with open_lab(make_agent=make_agent) as lab:
        # Each asks Slurm for something else, and so is a submission of its own and not a task of an array.
        specs = [lab.spec() for _ in range(repeat)]
        for number, spec in enumerate(specs):
            spec.slurm.comment = str(number)
        jobs = lab.api.submit_many(specs)
        toll.audit(lab, jobs)
        toll.strikes += len(list((lab.cluster.root / "marks").iterdir()))
