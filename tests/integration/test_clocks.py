"""Enrolment and renewal where the clocks of broker and agent are ten minutes apart, or further."""

import subprocess

import pytest

from harness.api import SUCCEEDED, argv_spec
from harness.daemons import BIN
from harness.wait import eventually
from test_network import address, config, init, invite, remote_agent


@pytest.fixture
def broker(world):
    assert init(world).returncode == 0
    return world.make_broker(config=config()).start()


def by_clock(offset, argv):
    """The same command, for which it is earlier or later by so much."""
    # Pauses are counted by the monotonic clock, which nobody sets.
    return ["env", "FAKETIME_DONT_FAKE_MONOTONIC=1", "faketime", "-f", offset, *map(str, argv)]


def enroll_by_clock(world, broker, offset, name="lab"):
    return subprocess.run(
        by_clock(offset, [BIN / "muster-agent", "enroll", "--broker", address(broker), "--state-dir",
                          world.path(f"agent-{name}")]),
        input=invite(world, name), capture_output=True, text=True, timeout=60, check=False)


def agent_by_clock(world, broker, offset):
    agent = remote_agent(world, broker)
    agent.argv = by_clock(offset, agent.argv)
    return agent


def runs_a_job(api):
    return api.wait_end(api.submit(argv_spec("/bin/true"))).state == SUCCEEDED


@pytest.mark.parametrize("offset", ["+10m", "-10m"])
def test_an_agent_whose_clock_is_off_enrolls_and_works(world, broker, api, offset):
    done = enroll_by_clock(world, broker, offset)
    assert done.returncode == 0, done.stderr
    agent_by_clock(world, broker, offset).start()
    assert runs_a_job(api)


def test_an_agent_whose_clock_is_ahead_renews_in_time(world):
    # A third of it is left ten minutes and some seconds after its beginning, by the agent's clock.
    broker = renewing_broker(world, "15m10s")
    assert enroll_by_clock(world, broker, "+10m").returncode == 0
    agent = agent_by_clock(world, broker, "+10m").start()
    eventually(lambda: "certificate_renewed" in agent.log(), "it was renewed", alive=agent.check_alive)
    assert "certificate_due_at_once" not in agent.log()
    assert runs_a_job(world.api(broker))


def test_an_agent_whose_clock_is_behind_renews_in_time(world):
    """By the agent's clock a third is left when one minute is left by the broker's."""
    argv = by_clock("-32m", [BIN / "muster-broker", "init", "--state-dir", world.path("broker")])
    subprocess.run(argv, check=True, capture_output=True, timeout=60)
    broker = world.make_broker(config=config() + "  certificate_life: 33m\n")
    now = broker.argv
    broker.argv = by_clock("-32m", now)
    broker.start()
    assert enroll_by_clock(world, broker, "-32m").returncode == 0
    broker.terminate()
    broker.argv = now
    broker.start()
    agent = agent_by_clock(world, broker, "-10m").start()
    eventually(lambda: "certificate_renewed" in agent.log(), "it was renewed", alive=agent.check_alive)
    assert runs_a_job(world.api(broker))


def test_a_clock_that_is_ahead_by_most_of_a_life_asks_the_broker_once_a_minute(world):
    broker = renewing_broker(world, "15m")
    assert enroll_by_clock(world, broker, "+10m").returncode == 0
    agent = agent_by_clock(world, broker, "+11m").start()
    eventually(lambda: "certificate_due_at_once" in agent.log(), "the clock is told", alive=agent.check_alive)
    assert runs_a_job(world.api(broker))
    assert agent.log().count("certificate_renewed") == 1


def test_a_clock_that_is_behind_too_far_is_told(world, broker):
    done = enroll_by_clock(world, broker, "-1h")
    assert done.returncode == 1
    assert "is valid only from" in done.stderr and "check the clocks" in done.stderr


def renewing_broker(world, life):
    assert init(world).returncode == 0
    return world.make_broker(config=config() + f"  certificate_life: {life}\n").start()
