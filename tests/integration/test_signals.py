"""Signals to jobs on the agent's own machine and on hosts over SSH: muster signal."""

import pytest

from harness.api import FAILED, RUNNING, SUCCEEDED, script_spec
from harness.fixtures import hosts_agent_fixture, hosts_fixture
from harness.run_as import ADA
from harness.run_as_jobs import submit
from harness.wait import eventually

cluster = hosts_fixture()
hosts_agent = hosts_agent_fixture()


def loud(gate):
    """A command with a child; both say which signal has come."""
    child = f'trap "echo child USR1" USR1; echo child ready; {gate.script()}'
    return (f"sh -c '{child}' & trap 'echo first USR1' USR1; trap 'echo first USR2' USR2; echo first ready\n"
            f"{gate.script()}; wait")


def await_words(api, job, *words, rank=0):
    def said():
        text = api.read_log(job, rank=rank)[0].decode()
        return all(word in text for word in words) and text
    return eventually(said, f"{words} in the log")


def test_all_processes_of_a_command_get_a_signal_or_the_first_alone(world, api, agent):
    gate = world.gate()
    job = api.submit(script_spec(loud(gate)))
    await_words(api, job, "first ready", "child ready")
    api.wait_state(job, RUNNING)
    world.cli("signal", job, "--signal", "USR2", "--batch")
    assert "child USR1" not in await_words(api, job, "first USR2")
    world.cli("signal", job, "--signal", "SIGUSR1")
    await_words(api, job, "first USR1", "child USR1")
    gate.open()
    api.wait_state(job, SUCCEEDED)
    ended = world.cli("signal", job, "--signal", "USR1", check=False)
    assert ended.returncode == 1 and "only the programs of a running job can get a signal" in ended.stderr


def test_a_signal_ends_a_program_that_does_not_expect_it(world, api, agent):
    job = api.submit(script_spec("echo ready; exec sleep 1000"))
    await_words(api, job, "ready")
    api.wait_state(job, RUNNING)
    world.cli("signal", job, "--signal", "34")
    assert api.wait_state(job, FAILED).runs[-1].exit.signal == 34


def test_a_signal_comes_to_every_rank_on_its_host(world, api, cluster, hosts_agent):
    gate = world.gate()
    job = api.submit(script_spec(loud(gate), nodes=2))
    for rank in (0, 1):
        await_words(api, job, "first ready", "child ready", rank=rank)
    api.wait_state(job, RUNNING)
    world.cli("signal", job, "--signal", "USR1")
    for rank in (0, 1):
        await_words(api, job, "first USR1", "child USR1", rank=rank)
    gate.open()
    api.wait_state(job, SUCCEEDED)


@pytest.mark.xdist_group("run_as")
def test_the_processes_of_another_user_get_it_by_that_users_hand(run_as, world, started):
    """Also a signal that muster-run-as itself passes on to nobody."""
    api = world.api()
    text = ("trap 'echo got USR1' USR1; trap 'echo got URG' URG; sh -c 'trap \"echo child URG\" URG; echo ready; "
            "while :; do sleep 0.1; done' & while :; do sleep 0.1; done")
    job = submit(run_as, world, ADA, text)
    await_words(api, job, "ready")
    api.wait_state(job, RUNNING)
    run_as.cli(world, ADA, "signal", job, "--signal", "USR1", "--batch")
    await_words(api, job, "got USR1")
    run_as.cli(world, ADA, "signal", job, "--signal", "URG")
    await_words(api, job, "got URG", "child URG")
    run_as.cli(world, ADA, "cancel", job)
