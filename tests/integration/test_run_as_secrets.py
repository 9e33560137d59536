"""Secrets of jobs that run as their users: where they are, and that they go, also if the user or the machine hinders it."""

import pathlib
import pwd
import subprocess

import pytest
from muster.v1 import job_pb2

from harness.api import SUCCEEDED
from harness.canary import program
from harness.run_as import ADA
from harness.run_as_jobs import kill_programs, script_file, submit, use_secrets
from harness.wait import eventually

# They share the files in /etc.
pytestmark = pytest.mark.xdist_group("run_as")


def test_a_secret_is_the_users_and_gone_afterwards(run_as, world, started):
    _, agent = started
    api = world.api()
    canary, words = use_secrets(run_as, world, ADA)
    gate = pathlib.Path(pwd.getpwnam(ADA).pw_dir, "gate")
    job = submit(run_as, world, ADA, program("stat -L -c 'of %U' \"$TOKEN_FILE\"; "
                                             f"until [ -e {gate} ]; do sleep 0.05; done"), *words)
    eventually(lambda: b"of " in api.read_log(job)[0], "the program has told what it has")
    key = api.get(job).runs[-1].run_key
    own = run_as.work / ADA / key
    assert api.read_log(job)[0].decode().splitlines() == [
        f"{canary.digest}  -", f"{canary.digest}  -", "mode 600", f"of {ADA}"]
    assert canary.files(run_as.root) == [own / "secret.TOKEN_FILE"]
    assert canary.processes(key) == []
    # The supervisor takes it away, whatever becomes of the agent.
    agent.pause()
    gate.touch()
    eventually((agent.run_directory(key) / "exit").exists, "the run has ended")
    assert canary.files(run_as.root) == []
    agent.resume()
    api.wait_state(job, SUCCEEDED)


def test_a_secret_goes_with_a_supervisor_that_is_killed(run_as, world, started):
    api = world.api()
    canary, words = use_secrets(run_as, world, ADA)
    job = submit(run_as, world, ADA, program("exec sleep 1000"), *words)
    eventually(lambda: b"mode" in api.read_log(job)[0], "the program has its secrets")
    assert len(canary.files(run_as.root)) == 1
    kill_programs(run_as, "muster-supervisor")
    eventually(lambda: api.get(job).runs[0].state == job_pb2.RUN_STATE_FAILED, "the run has failed")
    run_as.cli(world, ADA, "cancel", job)
    api.wait_end(job)
    eventually(lambda: canary.files(run_as.root) == [], "the file is gone")


def test_a_secret_that_cannot_be_removed_is_told_and_goes_later(run_as, world, started):
    _, agent = started
    api = world.api()
    canary, words = use_secrets(run_as, world, ADA)
    gate = pathlib.Path(pwd.getpwnam(ADA).pw_dir, "expired")
    job = submit(run_as, world, ADA, program(f"until [ -e {gate} ]; do sleep 0.05; done"), *words)
    eventually(lambda: b"mode" in api.read_log(job)[0], "the program has its secrets")
    subprocess.run(["usermod", "--expiredate", "1970-01-02", ADA], check=True)
    try:
        gate.touch()
        api.wait_state(job, SUCCEEDED)
        eventually(lambda: "secrets_not_removed" in agent.log(), "the agent tells it")
        assert len(canary.files(run_as.root)) == 1
    finally:
        subprocess.run(["usermod", "--expiredate", "", ADA], check=True)
    agent.restart()
    eventually(lambda: canary.files(run_as.root) == [], "the file is gone")


def test_a_secret_goes_through_no_link_of_the_users(run_as, world, started):
    """Another job of the user's has made the name of the file a link, in the short time before."""
    api = world.api()
    canary, words = use_secrets(run_as, world, ADA)
    open_file = pathlib.Path(pwd.getpwnam(ADA).pw_dir, "open-to-all")
    open_file.touch()
    open_file.chmod(0o666)
    script = script_file(run_as, ADA, f"""
import os, time
while True:
    for run in os.listdir("{run_as.work / ADA}"):
        try:
            os.symlink("{open_file}", "{run_as.work / ADA}/" + run + "/secret.TOKEN_FILE")
            print("planted", flush=True)
        except OSError:
            pass
""")
    planter = submit(run_as, world, ADA, f"exec python3 {script}")
    eventually(lambda: b"planted" in api.read_log(planter)[0], "it plants links")
    ended = (job_pb2.RUN_STATE_SUCCEEDED, job_pb2.RUN_STATE_FAILED)
    for _ in range(3):
        job = submit(run_as, world, ADA, program(), *words)
        # A run that finds the name taken fails, and the broker would try it again for long.
        eventually(lambda: any(run.state in ended for run in api.get(job).runs), "a run of it has ended")
        run_as.cli(world, ADA, "cancel", job, check=False)
        api.wait_end(job)
    run_as.cli(world, ADA, "cancel", planter)
    api.wait_end(planter)
    assert open_file.read_bytes() == b"" and open_file.stat().st_mode & 0o777 == 0o666
    assert canary.files(run_as.root) == []
