"""Jobs on a real Slurm that keeps accounting and forgets ended jobs after five seconds.

The agent is an ordinary user's, as on a login node. Each job that must not run twice appends a line to a file.
"""

import json
import pathlib

from muster.v1 import cluster_pb2, facts_pb2, job_pb2, job_spec_pb2
import pytest

from harness.api import CANCELED, FAILED, SUCCEEDED, argv_spec, script_spec
from harness.fixtures import cluster_fixture
from harness.slurm import USER
from harness.trio import VICTIMS, Trio
from harness.wait import eventually, holds_for
from test_machines import test_a_cancel_right_after_the_submit_is_a_cancel_wherever_it_meets_the_job
from test_skypilot import test_a_task_is_for_bash, test_a_task_is_for_sh_where_there_is_no_bash

MANY_JOBS = 500


slurm = cluster_fixture("--nodes", "2", "--cpus", "8", "--gpus", "4", "--min-job-age", "5", restd=True)


@pytest.fixture
def trio(world, broker, agent, api):
    made = Trio(world, broker, agent, api)
    made.counter = world.path("agent-lab") / "counter"
    return made


def run_key(api, job_id):
    return api.get(job_id).runs[-1].run_key


def test_success_through_the_command_line(world, api, agent):
    done = world.cli("run", "--name", "hello", "--wait", "--", "sh", "-c", "echo out; echo err >&2")
    assert "out\n" in done.stdout
    job = api.list_all()[0]
    assert job.state == SUCCEEDED
    assert (job.exit.code, job.exit.signal) == (0, 0)
    assert job.cluster == agent.cluster
    assert api.stderr(job.id) == b"err\n"
    shown = world.cli_json("show", job.id)
    assert shown["runs"][0]["external_id"].isdigit()
    assert shown["runs"][0]["nodes"] == ["n1"]


def test_cancel_before_it_runs(world, api, agent):
    gate = world.gate()
    blocker = script_spec(gate.script(), nodes=2)
    blocker.slurm.exclusive = True
    first = api.submit(blocker)
    api.wait_state(first, job_pb2.JOB_STATE_RUNNING)
    waiting = api.submit(argv_spec("true"))
    eventually(lambda: "free nodes" in api.get(waiting).state_reason.message or "ahead" in api.get(waiting).state_reason.message,
               "the reason for waiting in plain words")
    api.cancel(waiting)
    api.wait_state(waiting, CANCELED)
    gate.open()
    api.wait_state(first, SUCCEEDED)


def test_a_cancel_while_logs_are_shipped_loses_no_byte(world, api, agent):
    """All output until the end arrives, and no less: the link keeps the file when the run is forgotten."""
    link = world.path("agent-lab") / "written"
    job_id = api.submit(script_spec(f"""ln ../slurm-logs/rank-0.out {link}
trap 'echo end; exit 0' TERM
seq 3000000
while :; do sleep 0.1; done"""))
    eventually(lambda: api.get(job_id).state == job_pb2.JOB_STATE_RUNNING and api.read_log(job_id)[0],
               "the first bytes have arrived")
    api.cancel(job_id)
    api.wait_state(job_id, CANCELED)
    log = api.stdout(job_id)
    assert log == link.read_bytes()
    assert log.endswith(b"end\n")


def test_cancel_by_another_names_who(api, slurm, agent):
    job_id = api.submit(argv_spec("sleep", "1000"))
    api.wait_state(job_id, job_pb2.JOB_STATE_RUNNING)
    slurm.slurm("scancel", api.get(job_id).runs[0].external_id)
    api.wait_state(job_id, CANCELED)
    assert "canceled by user id 0" in api.transitions(job_id)[-1].evidence.detail


def test_refused_for_a_partition_that_went_away(world, broker, api, slurm):
    """One that the broker does not know at all, it refuses itself."""
    del broker
    slurm.slurm("scontrol", "create", "PartitionName=brief", "Nodes=n1")
    slurm.make_agent(world).start()
    slurm.slurm("scontrol", "delete", "PartitionName=brief")
    spec = argv_spec("true")
    spec.slurm.partition = "brief"
    job = api.wait_state(api.submit(spec), FAILED)
    assert job.failure.failure_class == job_pb2.FAILURE_CLASS_CONFIG
    assert "Invalid partition name specified" in job.failure.message
    assert "there is no such partition" in job.failure.message
    shown = world.cli("show", job.id).stdout
    assert "Invalid partition name specified" in shown
    assert "muster clusters" in shown


def test_refused_for_a_limit_of_its_qos(api, agent):
    spec = argv_spec("true", resources=job_spec_pb2.Resources(cpu_millis=3000))
    spec.slurm.qos = "two"
    job = api.wait_state(api.submit(spec), FAILED)
    assert "QOSMaxCpuPerUserLimit" in job.failure.message
    assert "Job violates accounting/QOS policy" in job.failure.message
    assert job.failure.remedy


def test_two_nodes_have_distinct_ranks(world, api, agent):
    job_id = api.submit(script_spec("echo $NODE_RANK of $WORLD_SIZE by $MASTER_ADDR", nodes=2))
    job = api.wait_state(job_id, SUCCEEDED)
    assert list(job.runs[0].nodes) == ["n1", "n2"]
    assert api.stdout(job_id, rank=0) == b"0 of 2 by n1\n"
    assert api.stdout(job_id, rank=1) == b"1 of 2 by n1\n"
    assert world.cli("logs", "--rank", "1", job_id).stdout == "1 of 2 by n1\n"


def test_gpus_by_type(api, agent):
    spec = script_spec("echo $CUDA_VISIBLE_DEVICES $NUM_GPU_PER_NODE")
    spec.resources.gpus.add(type="H100", count_millis=2000)
    job_id = api.submit(spec)
    api.wait_state(job_id, SUCCEEDED)
    assert api.stdout(job_id) == b"0,1 2\n"


def test_the_cluster_shows_its_partitions(world, api, agent):
    cluster = eventually(lambda: api.cluster("lab"), "the cluster is known")
    assert cluster.kind == cluster_pb2.CLUSTER_KIND_SLURM
    assert cluster.inventory.identity == "lab"
    assert {pool.name for pool in cluster.inventory.pools} >= {"debug", "gpu", "short"}
    assert json.loads(world.cli("clusters", "-o", "json").stdout)


def test_an_unreadable_run_directory_is_told_and_nothing_is_lost(world, api, slurm, agent):
    runs = agent.run_directory("x").parent
    runs.chmod(0o000)
    slurm.slurm("chown", "root", runs)
    job_id = api.submit(argv_spec("echo", "late"))
    api.wait_run_state(job_id, job_pb2.RUN_STATE_LAUNCHING)
    eventually(lambda: api.get(job_id).runs[-1].state_reason.code == facts_pb2.STATE_REASON_CODE_LAUNCH_DEFERRED,
               "why it is not launched is told")
    assert "Permission denied" in api.get(job_id).runs[-1].state_reason.message
    slurm.slurm("chown", USER, runs)
    runs.chmod(0o700)
    api.wait_state(job_id, SUCCEEDED)
    assert api.stdout(job_id) == b"late\n"


def test_an_answer_that_was_lost_is_adopted_and_not_doubled(trio, slurm):
    slurm.control("signal", "slurmctld", "STOP")
    job_id = trio.api.submit(trio.counting("echo once"))
    try:
        trio.api.wait_run_state(job_id, job_pb2.RUN_STATE_LAUNCH_UNKNOWN)
        holds_for(lambda: trio.api.get(job_id).runs[-1].state == job_pb2.RUN_STATE_LAUNCH_UNKNOWN,
                  "nobody launches again without an answer", 10)
    finally:
        slurm.control("signal", "slurmctld", "CONT")
    trio.check_ran_once(job_id)
    assert len(slurm.job_ids(run_key(trio.api, job_id))) == 1
    details = [step.evidence.detail for step in trio.api.transitions(job_id)]
    assert any("Socket timed out" in detail for detail in details), details


def test_nothing_changes_while_slurmctld_is_away(trio, slurm):
    gate = trio.world.gate()
    job_id = trio.api.submit(trio.counting(gate.script()))
    trio.api.wait_state(job_id, job_pb2.JOB_STATE_RUNNING)
    slurm.control("stop", "slurmctld")
    try:
        eventually(lambda: trio.api.cluster("lab").scheduler_error, "the broker says that Slurm does not answer")
        job = trio.api.get(job_id)
        assert job.state == job_pb2.JOB_STATE_RUNNING
        assert job.state_reason.code == facts_pb2.STATE_REASON_CODE_SCHEDULER_SILENT
        assert job.state_reason.detail, "in the words of the agent"
    finally:
        slurm.control("start", "slurmctld")
    eventually(lambda: not trio.api.cluster("lab").scheduler_error, "the broker says that Slurm answers")
    gate.open()
    trio.check_ran_once(job_id)


def test_a_queue_that_forgot_loses_nothing(trio, slurm):
    """Jobs that end, and are forgotten, while the agent is away."""
    gate = trio.world.gate()
    good = trio.api.submit(trio.counting(gate.script()))
    bad = trio.api.submit(trio.counting(gate.script() + "\nexit 5"))
    canceled = trio.api.submit(argv_spec("sleep", "1000"))
    for job_id in (good, bad, canceled):
        trio.api.wait_state(job_id, job_pb2.JOB_STATE_RUNNING)
    trio.kill("agent")
    gate.open()
    slurm.slurm("scancel", trio.api.get(canceled).runs[0].external_id)
    slurm.wait_forgotten()
    trio.start("agent")
    trio.check_ran_once(good)
    assert trio.api.wait_state(bad, FAILED).exit.code == 5
    trio.api.wait_state(canceled, CANCELED)


@pytest.mark.parametrize("victim", VICTIMS)
def test_killed_while_a_job_waits_in_the_queue(trio, slurm, victim):
    gate = trio.world.gate()
    blocker = trio.counting(gate.script())
    blocker.nodes = 2
    blocker.slurm.exclusive = True
    first = trio.api.submit(blocker)
    trio.api.wait_state(first, job_pb2.JOB_STATE_RUNNING)
    second = trio.api.submit(trio.counting())
    trio.api.wait_state(second, job_pb2.JOB_STATE_PENDING)
    trio.restart(victim)
    assert trio.runs_of(second) == 0
    gate.open()
    # The blocker runs on two nodes.
    trio.api.wait_state(first, SUCCEEDED)
    trio.check_ran_once(second)
    assert len(slurm.job_ids(run_key(trio.api, second))) == 1


@pytest.mark.parametrize("victim", VICTIMS)
def test_killed_during_sbatch(trio, slurm, victim):
    """slurmctld hangs, so that sbatch is under way when the blow falls."""
    slurm.control("signal", "slurmctld", "STOP")
    try:
        job_id = trio.api.submit(trio.counting())
        trio.api.wait_run_state(job_id, job_pb2.RUN_STATE_LAUNCHING)
        eventually(lambda: any("sbatch" in line for line in _processes()), "sbatch runs")
        trio.kill(victim)
    finally:
        slurm.control("signal", "slurmctld", "CONT")
    trio.start(victim)
    trio.check_ran_once(job_id)
    assert len(slurm.job_ids(run_key(trio.api, job_id))) == 1


def _processes():
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            yield (process / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue


@pytest.mark.parametrize("victim", VICTIMS)
def test_killed_while_a_job_runs(trio, victim):
    trio.check_a_running_job_survives(victim)


@pytest.mark.parametrize("victim", VICTIMS)
def test_killed_at_random_moments(trio, slurm, victim):
    """Twenty short jobs, and a blow every second: each phase of a job's life is struck by some."""
    specs = [trio.counting("sleep 0.5") for _ in range(20)]
    for number, spec in enumerate(specs):
        # Each asks for something else, and so is a Slurm job of its own, which accounting knows by its run's name.
        spec.slurm.comment = str(number)
    ids = [trio.api.submit(spec) for spec in specs]
    for moment in range(4):
        trio.world.pause(0.4 + 0.3 * moment)
        trio.restart(victim)
    for job_id in ids:
        trio.check_ran_once(job_id)
    for job_id in ids:
        assert len(slurm.job_ids(run_key(trio.api, job_id))) == 1


@pytest.mark.slow
def test_many_jobs_take_few_questions(world, broker, api, slurm):
    del broker
    slurm.make_agent(world, observe_interval="5s").start()
    ids = api.submit_many([argv_spec("true") for _ in range(MANY_JOBS)])
    for job_id in ids:
        api.wait_state(job_id, SUCCEEDED)
    cluster = eventually(lambda: (lambda c: c if c.scheduler_calls.get("launched runs", 0) >= MANY_JOBS else None)(
        api.cluster("lab")), "the agent has told of its calls")
    assert cluster.scheduler_calls["launched runs"] == MANY_JOBS
    assert cluster.scheduler_calls["sbatch"] == MANY_JOBS, "each is a job of its own"
    others = sum(count for name, count in cluster.scheduler_calls.items() if name not in ("launched runs", "sbatch"))
    assert others <= 0.2 * MANY_JOBS, dict(cluster.scheduler_calls)


def test_an_agent_drives_slurm_through_slurmrestd(world, broker, api, slurm):
    del broker
    agent = slurm.make_rest_agent(world, bin_dir="/nonexistent").start()
    job_id = api.submit(script_spec("echo by rest; exit 3"))
    job = api.wait_state(job_id, FAILED)
    assert (job.exit.code, api.stdout(job_id)) == (3, b"by rest\n")
    calls = eventually(lambda: (lambda c: c if c.get("launched runs") else None)(
        api.cluster(agent.cluster).scheduler_calls), "the agent has told of its calls")
    assert calls["rest-submit"] == 1
    assert not [name for name in calls if name in ("sbatch", "squeue", "scontrol", "sacct")], dict(calls)


@pytest.mark.parametrize("setting, words", [
    ("rest_url: slurm.example.org", "http://HOST:PORT"), ("rest_token_file: token", "is not an absolute path"),
    ("max_scheduler_calls_per_minute: many", "many")])
def test_a_setting_of_the_calls_that_cannot_be_is_refused(world, setting, words):
    config = world.write("refused.yaml", f"slurm:\n  {setting}\n")
    done = world.daemon_once("muster-agent", "--config", config)
    assert done.returncode == 2
    assert setting.partition(":")[0] in done.stderr and words in done.stderr


def test_an_agent_without_slurms_commands_says_what_to_do(world, broker, slurm):
    del broker
    agent = slurm.make_agent(world, name="bare", bin_dir="/nonexistent")
    agent.launch()
    assert agent.wait_exit() != 0
    assert "bin_dir" in agent.log()
