"""SkyPilot users' work with muster sky, on a cluster of plain machines."""

import re
import subprocess

import pytest

from muster.v1 import job_pb2, job_spec_pb2

from harness.api import CANCELED, SUCCEEDED, argv_spec, script_spec
from harness.wait import eventually

ERROR, USAGE = 1, 2
FAILED, NOT_FINISHED, NOT_FOUND, CANCELLED = 100, 101, 102, 103
RUNNING = job_pb2.JOB_STATE_RUNNING

# This is a task without a field of SkyPilot's alone: by sky exec it is a task all the same, with memory in GiB and a
# run for bash.
TASK = """
name: digits
resources: {cpus: 1, memory: 0.125}
setup: echo prepared > prepared
run: |
  words=(trained for "$EPOCHS" epochs)
  cat prepared
  echo warned >&2
  echo "${words[*]}"
"""


def sky(world, *words, code=0, **kwargs):
    """Runs muster sky, and expects the exit code."""
    done = world.cli("sky", *words, check=False, **kwargs)
    assert done.returncode == code, f"{words} exited with {done.returncode}: {done.stdout}{done.stderr}"
    return done


def exec_detached(world, *words):
    """The new job's number."""
    return int(re.fullmatch(r"Job submitted, ID: (\d+)\n", sky(world, "exec", "box", "-d", *words).stdout).group(1))


def rows(world, *words):
    """The queue's rows by the job's number, each as a mapping from its heading."""
    lines = sky(world, "queue", *words).stdout.splitlines()
    split = [re.split(r" {2,}", line.strip()) for line in lines if "  " in line]
    return {int(row[0]): dict(zip(split[0], row)) for row in split[1:]}


def test_a_task_runs_on_the_cluster_and_its_output_and_code_come_back(world, agent, api):
    done = sky(world, "exec", "box", "--env", "EPOCHS=3", "-n", "renamed", world.write("task.yaml", TASK))
    assert done.stdout.splitlines() == ["prepared", "warned", "trained for 3 epochs"]
    assert "Job submitted, ID: 1" in done.stderr and "Job finished (status: SUCCEEDED)" in done.stderr
    job = api.get(1)
    assert (job.name, job.cluster, job.spec.resources.memory_bytes) == ("renamed", "box", 1 << 27)
    assert sky(world, "logs", "box", "1").stdout == done.stdout


def test_a_command_is_for_bash_and_exec_exits_as_skypilot_does(world, agent, api):
    assert sky(world, "exec", "box", "--", "echo", "a", "|", "tr", "a", "b").stdout == "b\n"
    assert api.get(1).name == "sky-cmd"
    done = sky(world, "exec", "box", "echo gone; exit 3", code=FAILED)
    assert done.stdout == "gone\n" and "exit code 3" in done.stderr


@pytest.mark.parametrize("setup", ["exit 7", "kill -9 $$"])
def test_a_setup_that_fails_is_failed_setup(world, agent, setup):
    task = world.write("task.yaml", f"num_nodes: 1\nsetup: {setup}\nrun: echo never\n")
    done = sky(world, "exec", "box", task, code=FAILED)
    assert "Job finished (status: FAILED_SETUP)" in done.stderr
    row = rows(world, "box")[1]
    assert (row["STATUS"], row["MUSTER"]) == ("FAILED_SETUP", "FAILED (CONFIG)")
    assert sky(world, "logs", "box", "1", "--status", code=FAILED).stdout == "Job 1: FAILED_SETUP\n"


def test_the_queue_shows_what_runs_waits_and_ended_in_the_familiar_columns(world, agent, api):
    gate = world.gate()
    ended = exec_detached(world, "true")
    api.wait_state(ended, SUCCEEDED)
    running = exec_detached(world, "--cpus", "8", "-n", "long", "--", gate.script())
    api.wait_state(running, RUNNING)
    waiting = exec_detached(world, "--cpus", "4+", "true")
    api.wait_run_state(waiting, job_pb2.RUN_STATE_PENDING)
    printed = sky(world, "queue").stdout
    assert printed.startswith("Job queue of current user on cluster box\nID  NAME ")
    found = rows(world, "box")
    assert list(found) == [waiting, running, ended], "the newest first"
    assert [found[job]["STATUS"] for job in found] == ["PENDING", "RUNNING", "SUCCEEDED"]
    assert (found[running]["NAME"], found[running]["RESOURCES"]) == ("long", "1x[CPU:8]")
    assert list(rows(world, "-s", "box")) == [waiting, running]
    gate.open()
    api.wait_state(waiting, SUCCEEDED)


def test_a_setup_that_runs_is_setting_up(world, agent, api):
    gate = world.gate()
    task = world.write("task.yaml", f"num_nodes: 1\nsetup: {gate.script()}\nrun: 'true'\n")
    job = exec_detached(world, task)
    api.wait_run_state(job, job_pb2.RUN_STATE_STARTING)
    row = rows(world, "box")[job]
    assert (row["STATUS"], row["MUSTER"]) == ("SETTING_UP", "STARTING")
    gate.open()
    api.wait_state(job, SUCCEEDED)


def test_logs_follow_to_the_end_and_tell_by_their_code_how_it_was(world, agent, api):
    gate = world.gate()
    job = exec_detached(world, "--", f"seq 5; {gate.script()}; echo end; exit 1")
    api.wait_state(job, RUNNING)
    following = world.cli_start("sky", "logs", "box")
    sky(world, "logs", "box", str(job), "--status", code=NOT_FINISHED)
    sky(world, "logs", "box", str(job), "--no-follow")
    gate.open()
    assert following.wait() == FAILED
    assert following.output() == b"1\n2\n3\n4\n5\nend\n"
    assert sky(world, "logs", "box", str(job), "--tail", "2", code=FAILED).stdout == "5\nend\n"
    done = sky(world, "logs", "box", str(job), "--no-follow", "--tail", "3", code=FAILED)
    assert done.stdout == "4\n5\nend\n"


def test_jobs_and_clusters_that_are_not_there_have_codes_of_their_own(world, agent, api):
    sky(world, "logs", "box", code=NOT_FOUND)
    sky(world, "logs", "box", "7", "--status", code=NOT_FOUND)
    sky(world, "logs", "nosuch", "7", code=ERROR)
    assert "nosuch" in sky(world, "exec", "nosuch", "true", code=ERROR).stderr
    sky(world, "cancel", "nosuch", "-a", "-y", code=USAGE)
    assert "nosuch" in sky(world, "queue", "nosuch").stderr
    task = world.write("task.yaml", "run: 'true'\nresources: {infra: ssh/other}\n")
    assert "do not match" in sky(world, "exec", "box", task, code=ERROR).stderr
    assert not api.list_all()


def test_cancel_ends_the_latest_running_job_named_ones_or_all(world, agent, api):
    jobs = [exec_detached(world, "sleep 1000") for _ in range(4)]
    for job in jobs:
        api.wait_state(job, RUNNING)
    assert "Aborted" in sky(world, "cancel", "box", code=ERROR, stdin=subprocess.DEVNULL).stderr
    assert sky(world, "cancel", "box", input="\n").stdout == f"Cancelling job ID(s): {jobs[3]}\n"
    api.wait_state(jobs[3], CANCELED)
    sky(world, "cancel", "box", str(jobs[0]), "-y")
    api.wait_state(jobs[0], CANCELED)
    assert sky(world, "cancel", "box", str(jobs[0]), "-y").stdout.startswith("No jobs cancelled.")
    assert sky(world, "cancel", "b*", "-ay").stdout == f"Cancelling job ID(s): {jobs[2]}, {jobs[1]}\n"
    for job in jobs[1:3]:
        api.wait_state(job, CANCELED)
    sky(world, "logs", "box", str(jobs[1]), "--status", code=CANCELLED)


def test_fractions_of_a_gpu_run_together(world, broker, api):
    world.make_agent(config=world.machines_config(gpus={"H100": 1})).start()
    gate = world.gate()
    jobs = [exec_detached(world, "--gpus", "H100:0.5", "--", gate.script()) for _ in range(2)]
    for job in jobs:
        api.wait_state(job, RUNNING)
    assert rows(world)[jobs[0]]["RESOURCES"] == "1x[H100:0.5]"
    gate.open()
    for job in jobs:
        api.wait_state(job, SUCCEEDED)


def test_status_shows_clusters_as_up_and_one_that_is_silent_as_not_known(world, agent, broker, api):
    lines = sky(world, "status").stdout.splitlines()
    assert lines[1].split() == ["NAME", "INFRA", "RESOURCES", "STATUS", "AUTOSTOP", "LAUNCHED", "MUSTER"]
    assert re.match(r"box +ssh/box +1x\(cpus=8.*\) +UP +- +- +0 active runs", lines[2])
    agent.kill()
    eventually(lambda: re.search(r" INIT .* its agent is not connected", sky(world, "status", "b*").stdout), "it is INIT")
    assert "Cluster(s) not found: nosuch" in sky(world, "status", "nosuch").stderr


def test_jobs_that_may_go_anywhere_are_in_no_queue_before_they_are_placed(world, broker, api):
    world.make_agent().start().kill()
    eventually(lambda: not api.connected("box"), "the broker has noticed")
    named = api.submit(script_spec("true", placement=job_spec_pb2.Placement(clusters=["box"])))
    free = api.submit(argv_spec("true"))
    assert list(rows(world)) == [named]
    assert sky(world, "logs", "box", str(free), "--status", code=NOT_FOUND).stdout == ""
    sky(world, "cancel", "box", "-ay")
    api.wait_state(named, CANCELED)
    assert api.get(free).state == job_pb2.JOB_STATE_QUEUED


def test_on_loopback_where_all_are_one_user_the_queue_is_that_users(world):
    broker = world.make_broker("--listen", "127.0.0.1:0").start()
    world.make_agent().start()
    words = ("--broker", f"127.0.0.1:{broker.tcp_port()}", "sky")
    assert world.cli(*words, "exec", "box", "-d", "true").stdout == "Job submitted, ID: 1\n"
    assert "muster sky logs box 1" in world.cli(*words, "queue", "box").stdout
    assert "muster sky logs" not in world.cli("sky", "queue", "box").stdout, "it is another user's"
    assert "anonymous" in world.cli("sky", "queue", "-u", "box").stdout
