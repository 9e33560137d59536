"""People's questions about a real Slurm cluster: preflights also with broken doors, its details, plans; and held
jobs."""

import shutil

from muster.v1 import job_pb2

from harness.api import SUCCEEDED, script_spec
from harness.checks import OK, WARN, check_locally, failures, line
from harness.fixtures import cluster_fixture
from harness.wait import eventually


slurm = cluster_fixture("--nodes", "1", "--cpus", "8", "--gpus", "2", "--no-dbd", sshd=True)


def test_a_preflight_through_the_broker_says_what_it_saw(api, agent):
    checks = api.check(agent.cluster)
    assert not failures(checks), checks
    assert "is UP" in line(checks, "slurmctld").seen
    assert "1 of 1 nodes take work" in line(checks, "partition gpu").seen
    assert line(checks, "slurmdbd").result == WARN
    assert line(checks, "run_dir").result == OK


def test_a_description_shows_a_gpu_that_a_job_has(world, api, agent):
    gate = world.gate()
    spec = script_spec(gate.script())
    spec.resources.gpus.add(count_millis=1000)
    job = api.submit(spec)
    api.wait_run_state(job, job_pb2.RUN_STATE_RUNNING)
    details = api.describe(agent.cluster).details
    assert details.nodes[0].used_gpus["h100"] == 1
    pool = next(pool for pool in details.pools if pool.pool == "debug")
    assert pool.free_gpus["h100"] == 1
    assert pool.own_running_jobs == 1
    gate.open()
    api.wait_end(job)


def test_a_plan_has_the_script_and_slurms_estimate_and_submits_nothing(api, agent, slurm):
    spec = script_spec("true")
    spec.slurm.partition = "gpu"
    plans = api.plan(spec)
    assert [plan.cluster for plan in plans] == [agent.cluster]
    assert "# sbatch" in plans[0].submission
    assert "--partition=gpu" in plans[0].submission
    assert plans[0].nodes == ["n1"]
    assert plans[0].HasField("estimated_start_time")
    assert api.list_all() == []
    assert slurm.slurm("squeue", "-h", "--name=plan-1-1") == ""


def reason_in_slurm(slurm, api, job):
    external_id = api.get(job).runs[-1].external_id
    return slurm.slurm("squeue", "-h", "-o", "%r", "-j", external_id).strip() if external_id else ""


def test_a_held_job_is_held_in_slurm_until_it_is_released(world, api, agent, slurm):
    gate = world.gate()
    spec = script_spec(gate.script())
    spec.resources.cpu_millis = 8000
    filler = api.submit(spec)
    api.wait_run_state(filler, job_pb2.RUN_STATE_RUNNING)
    job = api.submit(script_spec("true"))
    api.wait_run_state(job, job_pb2.RUN_STATE_PENDING)
    api.hold(job)
    eventually(lambda: reason_in_slurm(slurm, api, job) == "JobHeldUser", "Slurm holds the job")
    eventually(lambda: "held" in api.get(job).state_reason.message, "the job says so")
    gate.open()
    api.wait_state(filler, SUCCEEDED)
    assert api.get(job).state == job_pb2.JOB_STATE_PENDING
    api.release(job)
    api.wait_state(job, SUCCEEDED)


# ---- over SSH, without a broker: as before anything is connected

def test_the_first_login_host_that_is_down_is_a_warning(world, broker, slurm):
    del broker
    code, printed = check_locally(slurm.make_ssh_agent(world))
    assert code == 0, printed
    assert "warn    login node 127.0.0.1:1:" in printed
    assert "the agent uses it" in printed
    assert "ok      slurmctld: " in printed


def test_a_changed_host_key_fails_with_the_remedy_and_skips_the_rest(world, broker, slurm):
    del broker
    good = slurm.directory / "ssh" / "known_hosts"
    name = good.read_text().split()[0]
    other = world.write("known_hosts", f"{name} ssh-ed25519 "
                        "AAAAC3NzaC1lZDI1NTE5AAAAIGNoYW5nZWQga2V5IGNoYW5nZWQga2V5IGNoYW5nZWQ=\n")
    code, printed = check_locally(slurm.make_ssh_agent(world, ssh_known_hosts=other))
    assert code == 1, printed
    assert "has changed" in printed
    assert "ssh-keygen -R" in printed
    assert "skipped Slurm: no login node can be used" in printed


def test_a_key_that_others_can_read_fails_with_the_five_steps(world, broker, slurm):
    del broker
    key = world.path("open_key")
    shutil.copy(slurm.directory / "ssh" / "id", key)
    key.chmod(0o644)
    code, printed = check_locally(slurm.make_ssh_agent(world, ssh_key=key))
    assert code == 1, printed
    assert "chmod 600" in printed
    assert "ssh-copy-id" in printed


def test_a_run_directory_that_cannot_be_written_fails(world, broker, slurm):
    del broker
    code, printed = check_locally(slurm.make_ssh_agent(world, run_dir="/proc/muster"))
    assert code == 1, printed
    assert "fail    run_dir /proc/muster" in printed
    assert "set slurm.run_dir" in printed
