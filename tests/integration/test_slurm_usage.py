"""The usage of runs, as a real Slurm's accounting counts it some time after their ends, and what Slurm chose for them."""

from muster.v1 import jobs_service_pb2
import pytest

from harness.api import FAILED, SUCCEEDED, argv_spec, script_spec
from harness.fixtures import cluster_fixture
from harness.wait import eventually

slurm = cluster_fixture("--nodes", "2", "--cpus", "4", "--min-job-age", "5", restd=True)

# Sampled once a second: the memory must be there for two.
BURN = """python3 -c '
import time
x = bytearray(80 << 20)
for i in range(0, len(x), 4096): x[i] = 1
while time.process_time() < 1: pass
time.sleep(2)'"""
COLUMNS = "UserCPU,SystemCPU,TotalCPU"


def wait_usage(api, job_id):
    return eventually(lambda: next((run for run in api.get(job_id).runs[-1:] if run.HasField("usage")), None),
                      f"the usage of job {job_id}")


def spent(run):
    return run.usage.user_cpu_time.ToMilliseconds() + run.usage.system_cpu_time.ToMilliseconds()


def millis(text):
    """A time as sacct prints it."""
    *longer, seconds = text.split(":")
    whole = 0
    for part in longer:
        whole = whole * 60 + int(part)
    return whole * 60_000 + round(float(seconds) * 1000)


def sacct(slurm, number, columns):
    return [line.split("|") for line in slurm.slurm("sacct", "-nP", "-j", number, "-o", columns).splitlines()]


def check_against_sacct(world, api, slurm, job_id, name=None):
    """`name`: what the command line calls it, if that is not its number."""
    run = wait_usage(api, job_id)
    mine = world.cli("sacct", "-nP", "-j", name or job_id, "-o", COLUMNS + ",MaxRSS,JobIDRaw").stdout.strip().split("|")
    its = sacct(slurm, run.external_id, COLUMNS + ",MaxRSS")
    # Slurm cuts each number by itself.
    for own, slurms in zip(mine[:3], its[0][:3]):
        assert abs(millis(own) - millis(slurms)) <= 2, (mine, its)
        assert len(own) == len(slurms)
    assert mine[3] in [row[3] for row in its[1:]], (mine, its)
    assert mine[4] == run.external_id
    return run


def check_what_slurm_chose(world, slurm, job_id, run):
    chosen = sacct(slurm, run.external_id, "Partition,Account,QOS")[0]
    assert [run.slurm_allocation.partition, run.slurm_allocation.account, run.slurm_allocation.qos] == chosen
    shown = world.cli("sacct", "-nP", "-j", job_id, "-o", "Partition,Account,QOS").stdout.strip()
    assert shown.split("|") == chosen
    assert f"partition {chosen[0]}, account {chosen[1]}, QOS {chosen[2]}" in world.cli("show", job_id).stdout


def test_usage_is_that_of_sacct(world, api, slurm, agent):
    burns = api.submit(script_spec(BURN))
    fails = api.submit(script_spec("exit 3"))
    api.wait_state(burns, SUCCEEDED)
    run = check_against_sacct(world, api, slurm, burns)
    assert spent(run) >= 950
    assert run.usage.max_rss_bytes >= 80 << 20
    check_what_slurm_chose(world, slurm, burns, run)
    api.wait_state(fails, FAILED)
    wait_usage(api, fails)


def test_a_watch_hears_of_it_and_nothing_else_changes(api, slurm, agent):
    slurm.control("stop", "slurmdbd")
    job_id = api.submit(argv_spec("true"))
    before = api.wait_state(job_id, SUCCEEDED)
    eventually(lambda: api.get(job_id).runs[0].logs_complete, "its logs")
    watch = api.watch(job_ids=[job_id], now=jobs_service_pb2.WatchFromNow())
    assert next(watch).HasField("heartbeat"), "it has begun"
    slurm.control("start", "slurmdbd")
    told = next(change for answer in watch for change in answer.changes)
    assert not told.HasField("transition")
    assert told.job.runs[0].HasField("usage")
    assert told.job.state == SUCCEEDED
    after = api.get(job_id)
    assert after.runs[0].usage == told.job.runs[0].usage
    assert (after.job_sequence, after.state, after.end_time) == (before.job_sequence, before.state, before.end_time)


def test_an_agent_that_dies_between_the_end_and_the_usage_tells_it_later(world, api, slurm, agent):
    slurm.control("stop", "slurmdbd")
    job_id = api.submit(script_spec(BURN))
    api.wait_state(job_id, SUCCEEDED)
    eventually(lambda: api.get(job_id).runs[0].logs_complete, "its logs, which wait for no accounting")
    assert not api.get(job_id).runs[0].HasField("usage")
    agent.kill()
    slurm.control("start", "slurmdbd")
    agent.start()
    check_against_sacct(world, api, slurm, job_id)


def test_tasks_of_an_array_have_their_own(world, api, slurm, agent):
    script = world.path("array.sh")
    script.write_text("#!/bin/sh\n[ $SLURM_ARRAY_TASK_ID = 1 ] || exit 0\n" + BURN + "\n")
    world.cli("sbatch", "--array=1-2", "-o", "/dev/null", script)
    burns, idles = sorted(job.id for job in api.list_all())
    assert spent(wait_usage(api, burns)) >= 950
    assert spent(wait_usage(api, idles)) < 950
    check_against_sacct(world, api, slurm, burns, name=f"{burns}_1")


def test_few_questions_for_many_runs(world, api, slurm, agent):
    ids = [api.submit(argv_spec("true")) for _ in range(40)]
    for job_id in ids:
        api.wait_state(job_id, SUCCEEDED)
        wait_usage(api, job_id)
    assert api.cluster("lab").scheduler_calls["sacct"] <= 15


@pytest.fixture
def rest_agent(world, broker, slurm):
    return slurm.make_rest_agent(world).start()


def test_over_slurmrestd(world, api, slurm, rest_agent):
    job_id = api.submit(script_spec(BURN))
    api.wait_state(job_id, SUCCEEDED)
    run = check_against_sacct(world, api, slurm, job_id)
    check_what_slurm_chose(world, slurm, job_id, run)
