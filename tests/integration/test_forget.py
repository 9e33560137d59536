"""A cluster that is forgotten, and the jobs that knew it."""

from muster.v1 import job_pb2

from harness.api import SUCCEEDED, argv_spec, script_spec
from harness.wait import eventually


def test_a_cluster_is_forgotten_once_it_is_idle_and_comes_back_as_a_new_one(world, broker, agent, api):
    name = agent.cluster
    done = api.submit(argv_spec("true"))
    api.wait_state(done, SUCCEEDED)
    connected = world.cli("forget", name, check=False)
    assert connected.returncode != 0 and "is connected" in connected.stderr

    gate = world.gate()
    running = api.submit(script_spec(gate.script()))
    api.wait_state(running, job_pb2.JOB_STATE_RUNNING)
    agent.terminate()
    eventually(lambda: not api.connected(name), "the broker has noticed that the agent is away")
    busy = world.cli("forget", name, check=False)
    assert busy.returncode != 0 and "has 1 run that has not ended" in busy.stderr
    gate.open()
    agent.start()
    api.wait_state(running, SUCCEEDED)
    agent.terminate()
    eventually(lambda: not api.connected(name), "the broker has noticed that the agent is away")

    assert "is forgotten" in world.cli("forget", name).stderr
    broker.kill()
    broker.start()
    assert world.cli("clusters", "-q").stdout == ""
    assert api.get(done).cluster == name
    waits = api.submit(argv_spec("true"))
    assert "no cluster" in world.cli("why", str(waits)).stdout
    # Its journal is of the cluster that was forgotten.
    for file in agent.state_dir.glob("journal.db*"):
        file.unlink()
    agent.start()
    api.wait_state(waits, SUCCEEDED)
