"""What a Slurm user does, through muster and beside it, on a real Slurm: the same scripts, the same files."""

import pytest

from harness.slurm import SlurmCluster, start_shared_broker


@pytest.fixture(scope="module")
def slurm():
    made = SlurmCluster("--nodes", "2", "--cpus", "8", "--gpus", "2", "--no-dbd", "--min-job-age", "30")
    yield made
    made.close()


@pytest.fixture
def broker(world):
    return start_shared_broker(world)


@pytest.fixture
def agent(world, broker, slurm):
    del broker
    return slurm.make_agent(world).start()


@pytest.mark.parametrize("words", [
    (), ("-N",), ("-s", "-p", "gpu,short"), ("-h", "-o", "%P|%a|%l|%D|%t|%N|%c|%C|%m|%G|%F|%L"), ("-N", "-o", "%N %T %R")])
def test_sinfo_prints_what_slurms_own_prints(world, slurm, agent, words):
    expected = [line.split() for line in slurm.slurm("sinfo", *words).splitlines()]
    assert len(expected) > 1
    assert [line.split() for line in world.cli("sinfo", *words).stdout.splitlines()] == expected


def test_a_plan_and_a_check_are_answered_by_the_cluster(world, agent):
    assert "#!/bin/bash" in world.cli("plan", "--", "true").stdout
    assert "FAIL" not in world.cli("check", "lab").stdout
    assert world.cli("list", "-q").stdout == ""
