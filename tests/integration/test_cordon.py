"""Clusters that their operators let take no new runs."""

from muster.v1 import job_pb2

from harness.api import SUCCEEDED, argv_spec, script_spec
from harness.wait import eventually


def test_a_cordon_outlives_the_broker_and_its_end_starts_what_waits(world, broker, agent, api):
    name = agent.cluster
    gate = world.gate()
    running = api.submit(script_spec(gate.script()))
    api.wait_state(running, job_pb2.JOB_STATE_RUNNING)
    told = world.cli("clusters", "cordon", name, "--reason", "new drivers").stderr
    assert "takes no new runs; 1 active run there" in told
    waits = api.submit(argv_spec("true"))
    why = world.cli("why", str(waits)).stdout
    assert "lets the cluster take no new runs: new drivers" in why and f"muster clusters uncordon {name}" in why

    broker.kill()
    broker.start()
    eventually(lambda: api.connected(name), "the agent is back")
    listed = world.cli("clusters").stdout
    assert "CORDONED" in listed and "new drivers" in listed
    gate.open()
    api.wait_state(running, SUCCEEDED)
    assert api.get(waits).state == job_pb2.JOB_STATE_QUEUED
    plan = world.cli("plan", "--", "true").stdout
    assert "cordoned by" in plan

    assert "takes runs" in world.cli("clusters", "uncordon", name).stderr
    api.wait_state(waits, SUCCEEDED)
    audit = world.cli("audit", "-o", "json").stdout
    assert "ClustersService.CordonCluster" in audit and "ClustersService.UncordonCluster" in audit


def test_the_jobs_of_a_cordoned_cluster_run_on_another_one(world, broker, agent, api):
    del broker
    other = world.make_agent("other").start()
    world.cli("clusters", "cordon", agent.cluster)
    job = api.submit(argv_spec("true"))
    api.wait_state(job, SUCCEEDED)
    assert api.get(job).cluster == other.cluster
    refused = world.cli("clusters", "cordon", "nowhere", check=False)
    assert refused.returncode != 0 and "no cluster" in refused.stderr
