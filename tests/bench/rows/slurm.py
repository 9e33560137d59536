"""A real Slurm: many short jobs through Muster against a loop of sbatch by hand."""

import subprocess
import time

from harness.slurm import AS_USER, SlurmCluster, start_shared_broker

from rows.report import Figure
from rows.setting import fresh_world
from rows.waiting import run_all

CLUSTER = ("--nodes", "2", "--cpus", "8", "--min-job-age", "5")
SUBMIT = "sbatch"
# One shell, so that the baseline pays for sbatch and squeue and for nothing else.
BARE = """
cd "$(mktemp -d)"
printf '#!/bin/sh\\ntrue\\n' >job.sh
for i in $(seq {jobs}); do sbatch --parsable -o /dev/null job.sh >/dev/null || exit 1; done
polls=1
while [ -n "$(squeue -h --me -o %i | head -n 1)" ]; do sleep 0.5; polls=$((polls + 1)); done
echo $polls
"""


def slurm_1000(short):
    """Jobs of `true` on two nodes of eight cores, and what that costs the scheduler."""
    jobs = 20 if short else 1000
    cluster = SlurmCluster(*CLUSTER)
    try:
        with fresh_world() as world:
            # Before and after, because a cluster is not the same once it has run many jobs.
            before, polls = _bare(cluster, jobs)
            start_shared_broker(world)
            agent = cluster.make_agent(world).start()
            api = world.api(world.broker)
            value = run_all(api, jobs)
            calls = _other_calls(api, agent.cluster)
            after, more_polls = _bare(cluster, jobs)
    finally:
        cluster.close()
    return [Figure("slurm_1000", value, "s", (before + after) / 2,
                   "a bare sbatch loop until all have ended, mean of one before and one after", 1.05, at_most=True,
                   goal_on_ratio=True),
            Figure("slurm_calls_per_job", calls / jobs, "calls/job", (polls + more_polls) / 2 / jobs,
                   "squeue of the bare loop, every half second for all jobs", 0.1, at_most=True)]


def _other_calls(api, name):
    """Scheduler calls besides sbatch."""
    calls = api.cluster(name).scheduler_calls
    return sum(count for command, count in calls.items() if command not in (SUBMIT, "launched runs"))


def _bare(cluster, jobs):
    """Seconds, and how often the loop asked the scheduler."""
    start = time.monotonic()
    done = subprocess.run([*AS_USER, "sh", "-c", BARE.format(jobs=jobs)], stdout=subprocess.PIPE, text=True, check=True,
                          env={"SLURM_CONF": str(cluster.conf), "PATH": "/usr/bin:/bin"})
    return time.monotonic() - start, int(done.stdout)
