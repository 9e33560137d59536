"""Slurm gives the number of an ended job to another one."""

from harness.wait import eventually

from faults.lab import open_lab
from faults.toll import End

# Few numbers, so that they come round soon.
FIRST_ID, LAST_ID = 1000, 1011
CODES = 5


def job_id_reused(repeat, toll):
    """Job ids come round: while the agent is away, its job ends and another one gets its number."""
    with open_lab(prepare=_shrink_ids) as lab:
        for number in range(repeat):
            code = number % CODES
            gate = lab.world.gate()
            jobs = lab.submit(f"{gate.script()}\nexit {code}")
            own = eventually(lambda: lab.api.get(jobs[0]).runs[-1].external_id, "Slurm has the job")
            eventually(lambda: lab.trio.runs_of(jobs[0]), "it runs")
            lab.agent.kill()
            gate.open()
            lab.cluster.wait_forgotten()
            foreign = _take_id(lab.cluster, own)
            # A question to Slurm about that number now shows a job that runs; it must be neither believed nor canceled.
            canceled = number % 2 == 1
            if canceled:
                lab.world.cli("cancel", jobs[0])
            lab.agent.start()
            toll.strikes += 1
            # A cancel that came after the end may be told as either.
            toll.audit(lab, jobs, lambda _, end=None if canceled else End(code): end)
            if lab.cluster.slurm("squeue", "-h", "-t", "R,PD", "-j", foreign, "-o", "%i").strip() != foreign:
                toll.wrong.append(f"job {jobs[0]}: the job that got its number {own} was canceled")
            lab.cluster.slurm("scancel", foreign)
            lab.cluster.wait_forgotten()


def _shrink_ids(cluster, ending):
    del ending
    with open(cluster.directory / "etc" / "extra.conf", "a", encoding="ascii") as extra:
        extra.write(f"FirstJobId={FIRST_ID}\nMaxJobId={LAST_ID}\n")
    cluster.control("stop", "slurmctld")
    cluster.control("start", "slurmctld")


def _take_id(cluster, wanted):
    """Submits jobs of the agent's user until one has the number; ends the others."""
    for _ in range(LAST_ID - FIRST_ID + 2):
        taken = cluster.slurm_as_user("sbatch", "--parsable", "-o", "/dev/null", "--wrap", "sleep 600").strip()
        if taken == wanted:
            return taken
        cluster.slurm("scancel", taken)
    raise AssertionError(f"Slurm never gave the number {wanted} again")
