"""What goes wrong between an agent and hosts that it reaches over SSH, and on them: nothing is lost, doubled or held up."""

from muster.v1 import job_pb2

from harness.api import FAILED, script_spec
from harness.fixtures import hosts_agent_fixture, hosts_fixture

RUNNING = job_pb2.JOB_STATE_RUNNING

cluster = hosts_fixture()
agent = hosts_agent_fixture()


def two_nodes(text, **fields):
    return script_spec(text, nodes=2, **fields)


def test_a_host_that_hangs_holds_up_neither_logs_nor_ends_of_the_others(api, world, cluster, agent):
    gate = world.gate()
    wide = api.submit(two_nodes("while :; do echo line; sleep 0.05; done"))
    single = api.submit(script_spec(f"{gate.script()}\necho last words; exit 3"))
    api.wait_state(wide, RUNNING)
    job = api.wait_state(single, RUNNING)
    other = next(host for host in cluster.hosts if host.name != job.runs[-1].nodes[0])
    other.freeze()
    gate.open()
    api.wait_state(single, FAILED)
    assert api.stdout(single) == b"last words\n"
    assert "down" not in world.cli("clusters", "lab").stdout, "the host's silence has not even been noticed"
