"""Results of jobs on Kubernetes, in a storage root that the agent sees."""

import json

import grpc
import pytest
from muster.v1 import facts_pb2

from harness.api import FAILED, SUCCEEDED, error_info, script_spec
from harness.fixtures import kubernetes_fixture
from harness.kubernetes import show_directory
from harness.wait import eventually

kubernetes = kubernetes_fixture(nodes=1, gpus=0)

ERROR = 1


@pytest.fixture
def volume(world):
    directory = world.path("volume")
    directory.mkdir()
    return directory


@pytest.fixture
def agent(kubernetes, world, broker, namespace, volume):
    """It sees one of two storage roots."""
    del broker
    return kubernetes.make_least_agent(world, namespace, allow_host_path="yes", agent_roots=f"data={volume}",
                                       results_root="slurm://data/results",
                                       storage_roots=f"data=host:{volume}:/data,blind=host:{volume}:/blind").start()


def status_spec(*entries, then="true"):
    lines = "\n".join(f"""echo '{json.dumps(entry)}' >>"$MUSTER_RESULTS_DIR/train/status.json" """ for entry in entries)
    spec = script_spec(f'mkdir -p "$MUSTER_RESULTS_DIR/train"\n{lines}\n{then}\n')
    spec.status_json = True
    return spec


def refusal(api, spec):
    with pytest.raises(grpc.RpcError) as caught:
        api.submit(spec)
    assert error_info(caught.value).reason == "CANNOT_BE_PLACED"
    return caught.value.details()


def test_results_on_a_volume_that_the_agent_sees_come_back(world, agent, api):
    del agent
    job_id = api.submit(script_spec('mkdir "$MUSTER_RESULTS_DIR/deep"; echo weights >"$MUSTER_RESULTS_DIR/deep/model"\n'
                                    'ln -s /etc/passwd "$MUSTER_RESULTS_DIR/out"'))
    run = api.wait_state(job_id, SUCCEEDED).runs[0]
    assert run.results_directory == f"/data/results/{job_id}"
    assert f"/data/results/{job_id}" in world.cli("show", job_id).stdout
    copied = world.cli("cp", f"{job_id}:results", ".", check=False)
    assert copied.returncode == ERROR and "left out: out is a link" in copied.stderr
    assert (world.path("results") / "deep" / "model").read_text() == "weights\n"
    assert world.cli("cp", f"{job_id}:results/deep/model", "-").stdout == "weights\n"
    assert "only its results can be copied" in world.cli("cp", f"{job_id}:other", ".", check=False).stderr


def test_results_on_a_volume_that_it_does_not_see_are_named(world, agent, api):
    del agent
    spec = script_spec("true")
    spec.results_directory = "slurm://blind/mine"
    job_id = api.submit(spec)
    api.wait_state(job_id, SUCCEEDED)
    said = world.cli("cp", f"{job_id}:results", ".", check=False).stderr
    assert '"/blind/mine"' in said and "kubernetes.agent_roots" in said


def test_status_json_counts_beside_the_exit_code_and_tells_the_progress(world, agent, api):
    del agent
    gate = world.gate()
    running = {"status": "RUNNING", "epoch": 3, "kpi": {"val_loss": 0.25}, "message": "going on"}
    last = """echo '{"status": "SUCCESS", "epoch": 9}' >>"$MUSTER_RESULTS_DIR/train/status.json" """
    job_id = api.submit(show_directory(status_spec(running, then=f"{gate.script()}\n{last}"), world.root))
    eventually(lambda: api.get(job_id).runs and api.get(job_id).runs[0].progress.numbers.get("epoch") == 3, "its epoch is told")
    assert api.get(job_id).runs[0].progress.numbers["kpi.val_loss"] == 0.25
    assert "epoch 3, kpi.val_loss 0.25: going on" in world.cli("show", job_id).stdout
    gate.open()
    assert api.wait_state(job_id, SUCCEEDED).runs[0].progress.numbers["epoch"] == 9
    job = api.wait_state(api.submit(status_spec({"status": "FAILURE", "message": "no convergence"})), FAILED)
    assert job.failure.code == facts_pb2.FAILURE_CODE_STATUS_SAYS_FAILURE
    assert ("status.json", "no convergence") in [(quote.source, quote.text) for quote in job.failure.quotes]


def test_status_json_that_the_agent_cannot_read_is_refused_at_the_submit(agent, api):
    del agent
    spec = status_spec({"status": "SUCCESS"})
    spec.results_directory = "slurm://blind/mine"
    said = refusal(api, spec)
    assert "status_json" in said and '"/blind/mine"' in said and "kubernetes.agent_roots" in said, said
