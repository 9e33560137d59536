"""A real Slurm: many short jobs through Muster against a loop of sbatch by hand."""

import dataclasses
import subprocess
import time

from harness.daemons import BIN
from harness.slurm import AS_USER, SlurmCluster, start_shared_broker
from harness.wait import eventually

from rows.report import Figure
from rows.setting import fresh_world
from rows.waiting import DEADLINE_S, run_all

CLUSTER = ("--nodes", "2", "--cpus", "8", "--min-job-age", "5")
SUBMIT = "sbatch"
SACCT = ("-n", "-P", "-a", "-X", "-S", "now-1days", "-o",
         "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode,Elapsed,TotalCPU,MaxRSS,AllocTRES")
# One shell, so that the baseline pays for sbatch and squeue and for nothing else.
BARE = """
cd "$(mktemp -d)"
printf '#!/bin/sh\\ntrue\\n' >job.sh
{submit}
polls=1
while [ -n "$(squeue -h --me -o %i | head -n 1)" ]; do sleep 0.5; polls=$((polls + 1)); done
echo $polls
"""
ONE_BY_ONE = "for i in $(seq {jobs}); do sbatch --parsable -o /dev/null job.sh >/dev/null || exit 1; done"
UNLIKE = "for i in $(seq {jobs}); do sbatch --parsable -J job-$i -t $i -c $((i % 4 + 1)) -o /dev/null job.sh >/dev/null || exit 1; done"
CHAIN = """id=$({sbatch} --parsable -o /dev/null --wrap 'sleep 600')
for i in $(seq {jobs}); do id=$({sbatch} --parsable -d afterok:$id -o /dev/null job.sh); done"""
AS_ARRAY = "sbatch --parsable --array=1-{jobs} -o /dev/null job.sh >/dev/null || exit 1"


def slurm_1000(short):
    """Jobs of `true` on two nodes of eight cores, and what that costs the scheduler."""
    run = _measure(short, ssh=False)
    return [_wall("slurm_1000", run, 1.05), _calls("slurm_calls_per_job", run)]


def slurm_1000_over_ssh(short):
    """The same by an agent that reaches the cluster through its sshd only; the bare loop sits on the login host."""
    run = _measure(short, ssh=True)
    return [_wall("slurm_1000_over_ssh", run, 1.1), _calls("slurm_calls_per_job_over_ssh", run)]


def slurm_array_1000(short):
    """The same jobs as tasks of one array, by `muster sbatch --array` and by sbatch itself."""
    return _array("slurm_array_1000", 20 if short else 1000, 1.05)


def slurm_array_60(short):
    """A small one, for which Slurm's own pace and each wait of Muster's count for more."""
    return _array("slurm_array_60", 10 if short else 60, 1.3)


def _array(row, jobs, goal):
    cluster = SlurmCluster(*CLUSTER)
    try:
        with fresh_world() as world:
            before, _ = _bare(cluster, jobs, AS_ARRAY)
            start_shared_broker(world)
            cluster.make_agent(world).start()
            start = time.monotonic()
            world.cli("sbatch", "--wait", f"--array=1-{jobs}", "-o", "/dev/null", "--wrap", "true", timeout_s=DEADLINE_S)
            seconds = time.monotonic() - start
            after, _ = _bare(cluster, jobs, AS_ARRAY)
    finally:
        cluster.close()
    return [Figure(row, seconds, "s", (before + after) / 2,
                   "sbatch --array until all have ended, mean of one before and one after", ratio_goal=goal, at_most=True)]


def slurm_unlike_30(short):
    """Jobs no two of which are alike, by a shell's loop of `muster sbatch` and by the same loop of sbatch."""
    jobs = 5 if short else 30
    cluster = SlurmCluster(*CLUSTER)
    try:
        with fresh_world() as world:
            before, _ = _bare(cluster, jobs, UNLIKE)
            muster = _muster(world, cluster)
            loop = f"ids=$({UNLIKE.replace('sbatch', muster + ' sbatch').replace('>/dev/null ||', '||').format(jobs=jobs)}); {muster} wait $ids"
            seconds = _as_user(cluster, loop)
            after, _ = _bare(cluster, jobs, UNLIKE)
    finally:
        cluster.close()
    return [Figure("slurm_unlike_30", seconds, "s", (before + after) / 2,
                   "the same loop of sbatch until all have ended, mean of one before and one after", ratio_goal=1.2, at_most=True)]


def slurm_chain_30(short):
    """The submit of each job of a chain, every one of which waits for the one before; the first one goes on meanwhile."""
    jobs = 5 if short else 30
    cluster = SlurmCluster(*CLUSTER)
    try:
        with fresh_world() as world:
            before = _as_user(cluster, CHAIN.format(sbatch="sbatch", jobs=jobs))
            seconds = _as_user(cluster, CHAIN.format(sbatch=_muster(world, cluster) + " sbatch", jobs=jobs))
            after = _as_user(cluster, CHAIN.format(sbatch="sbatch", jobs=jobs))
    finally:
        cluster.close()
    return [Figure("slurm_chain_30", 1000 * seconds / jobs, "ms", 1000 * (before + after) / 2 / jobs,
                   "the same chain by sbatch, mean of one before and one after", 100, at_most=True)]


def slurm_questions_2000(short):
    """`muster squeue -r` and `muster sinfo` beside Slurm's own, with as many jobs that wait or run."""
    jobs = 20 if short else 2000
    repeats = 3 if short else 20
    cluster = SlurmCluster(*CLUSTER)
    figures = []
    try:
        with fresh_world() as world:
            _muster(world, cluster)
            world.cli("sbatch", f"--array=1-{jobs}", "-o", "/dev/null", "--wrap", "sleep 600")
            slurm = {"SLURM_CONF": str(cluster.conf)}
            # Slurm's own line of a job is there as soon as sbatch has answered.
            eventually(lambda: len(cluster.slurm("squeue", "-h", "-r").splitlines()) == jobs, "all are on Slurm",
                       deadline_s=DEADLINE_S)
            for verb, words, lines in (("squeue", ("-h", "-r"), jobs), ("sinfo", ("-h", "-N", "-l"), None)):
                if lines is None:
                    lines = len(cluster.slurm(verb, *words).splitlines())
                mine = _answer([str(BIN / "muster"), "--broker", world.broker.address, verb, *words], {}, lines, repeats)
                its = _answer([verb, *words], slurm, lines, repeats)
                figures.append(Figure(f"slurm_{verb}_2000", mine, "ms", its, f"{verb} of Slurm", ratio_goal=3, at_most=True))
    finally:
        cluster.close()
    return figures


def _muster(world, cluster):
    """The command, once an agent of the cluster is there."""
    start_shared_broker(world)
    agent = cluster.make_agent(world).start()
    api = world.api(world.broker)
    eventually(lambda: api.cluster(agent.cluster).name, "the cluster is known")
    return f"{BIN / 'muster'} --broker {world.broker.address}"


def _as_user(cluster, script):
    """Seconds of a shell's script."""
    start = time.monotonic()
    subprocess.run([*AS_USER, "sh", "-ec", f"cd $(mktemp -d); printf '#!/bin/sh\\ntrue\\n' >job.sh; {script}"],
                   stdout=subprocess.DEVNULL, check=True,
                   env={"SLURM_CONF": str(cluster.conf), "PATH": "/usr/bin:/bin", "HOME": "/tmp"})
    return time.monotonic() - start


def slurm_sacct_2000(short):
    """`muster sacct` and Slurm's own about as many jobs, all of which have ended on Slurm, with the same columns."""
    jobs = 20 if short else 2000
    repeats = 3 if short else 20
    cluster = SlurmCluster(*CLUSTER)
    try:
        with fresh_world() as world:
            start_shared_broker(world)
            cluster.make_agent(world).start()
            world.cli("sbatch", "--wait", f"--array=1-{jobs}", "-o", "/dev/null", "--wrap", "true", timeout_s=DEADLINE_S)
            api = world.api(world.broker)
            eventually(lambda: all(job.runs[-1].HasField("usage")
                                   for job in api.list_all(page_size=1000, include_latest_run=True)),
                       "the usage of all runs", deadline_s=DEADLINE_S)
            mine = _answer([str(BIN / "muster"), "--broker", world.broker.address, "sacct", *SACCT], {}, jobs, repeats)
            its = _answer(["sacct", *SACCT], {"SLURM_CONF": str(cluster.conf)}, jobs, repeats)
    finally:
        cluster.close()
    return [Figure("slurm_sacct_2000", mine, "ms", its, "sacct -X of Slurm", ratio_goal=3, at_most=True)]


def _answer(argv, variables, jobs, repeats):
    """Milliseconds of the fastest of several answers, each with a line for every job."""
    best = None
    for _ in range(repeats):
        start = time.monotonic()
        done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True,
                              env={**variables, "PATH": "/usr/bin:/bin", "HOME": "/"})
        seconds = time.monotonic() - start
        lines = len(done.stdout.splitlines())
        assert lines == jobs, f"{argv[0]} has {lines} lines for {jobs} jobs"
        best = seconds if best is None else min(best, seconds)
    return best * 1000


@dataclasses.dataclass(frozen=True)
class _Run:
    jobs: int
    seconds: float
    bare_seconds: float
    other_calls: int  # to the scheduler, besides sbatch
    polls: float      # squeue of the bare loop


def _measure(short, ssh):
    jobs = 20 if short else 1000
    cluster = SlurmCluster(*CLUSTER, sshd=ssh)
    try:
        with fresh_world() as world:
            # Before and after, because a cluster is not the same once it has run many jobs.
            before, polls = _bare(cluster, jobs)
            start_shared_broker(world)
            agent = (cluster.make_ssh_agent(world) if ssh else cluster.make_agent(world)).start()
            api = world.api(world.broker)
            seconds = run_all(api, jobs)
            calls = dict(api.cluster(agent.cluster).scheduler_calls)
            calls.pop("launched runs", None)  # told beside the calls
            after, more_polls = _bare(cluster, jobs)
    finally:
        cluster.close()
    calls.pop(SUBMIT, None)
    return _Run(jobs, seconds, (before + after) / 2, sum(calls.values()), (polls + more_polls) / 2)


def _wall(name, run, goal):
    return Figure(name, run.seconds, "s", run.bare_seconds,
                  "a bare sbatch loop until all have ended, mean of one before and one after", ratio_goal=goal,
                  at_most=True)


def _calls(name, run):
    return Figure(name, run.other_calls / run.jobs, "calls/job", run.polls / run.jobs,
                  "squeue of the bare loop, every half second for all jobs", 0.1, at_most=True)


def _bare(cluster, jobs, submit=ONE_BY_ONE):
    """Seconds, and how often the loop asked the scheduler."""
    start = time.monotonic()
    done = subprocess.run([*AS_USER, "sh", "-c", BARE.format(submit=submit.format(jobs=jobs))], stdout=subprocess.PIPE, text=True, check=True,
                          env={"SLURM_CONF": str(cluster.conf), "PATH": "/usr/bin:/bin"})
    return time.monotonic() - start, int(done.stdout)
