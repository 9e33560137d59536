"""Data, results and status.json of jobs on a real Slurm; requeues and estimates, which its queue tells."""

import shutil

import grpc
from muster.v1 import job_pb2
import pytest

from harness.api import FAILED, SUCCEEDED, argv_spec, bad_fields, script_spec
from harness.checks import failures, line
from harness.slurm import USER, SlurmCluster
from harness.wait import eventually

CONFIG = job_pb2.FAILURE_CLASS_CONFIG
PROGRAM = job_pb2.FAILURE_CLASS_PROGRAM


@pytest.fixture(scope="module")
def slurm():
    made = SlurmCluster("--nodes", "2", "--cpus", "8")
    for name in ("data", "results"):
        (made.root / name).mkdir()
        shutil.chown(made.root / name, USER, USER)
    (made.root / "data" / "train").mkdir()
    yield made
    made.close()


@pytest.fixture
def agent(world, broker, slurm):
    del broker
    return slurm.make_agent(world, storage_roots=f"lustre={slurm.root / 'data'},all={slurm.root}",
                            results_root=slurm.root / "results").start()


def with_inputs(spec, *uris):
    for uri in uris:
        spec.inputs.add(uri=uri)
    return spec


def status_spec(*statuses, code=0):
    lines = "\n".join(f"""echo '{{"status": "{status}", "message": "it is {status}"}}' """
                      f""">> "$MUSTER_RESULTS_DIR/train/status.json" """ for status in statuses)
    spec = script_spec(f'mkdir -p "$MUSTER_RESULTS_DIR/train"\n{lines}\nexit {code}')
    spec.status_json = True
    return spec


def test_uris_become_paths_of_the_cluster(api, slurm, agent):
    del agent
    data = slurm.root / "data"
    spec = with_inputs(argv_spec("sh", "-c", 'ls -d "$1" "$DATA"; echo "$2"', "sh", "slurm://lustre/train",
                                 f"see lustre://{data}"), f"lustre://{data}/train", "slurm://lustre/train")
    spec.env["DATA"] = f"lustre://{data}/train"
    job_id = api.submit(spec)
    api.wait_state(job_id, SUCCEEDED)
    assert api.stdout(job_id).decode() == f"{data}/train\n{data}/train\nsee lustre://{data}\n"


def test_missing_data_fails_the_job_before_it_takes_nodes(api, slurm, agent):
    del agent
    (slurm.root / "data" / "dangling").symlink_to("nowhere")
    job = api.wait_state(api.submit(with_inputs(argv_spec("true"), "slurm://lustre/train", "slurm://lustre/nosuch",
                                                "slurm://lustre/dangling")), FAILED)
    assert job.failure.failure_class == CONFIG
    assert not job.failure.retriable
    for words in ("inputs[1].uri", "data/nosuch", "inputs[2].uri", "data/dangling"):
        assert words in job.failure.message
    assert "inputs[0].uri" not in job.failure.message
    assert not job.runs[0].external_id


def test_a_plan_says_of_inputs_what_the_launch_would_say(api, slurm, agent):
    there, missing = (api.plan(with_inputs(argv_spec("true"), f"slurm://lustre/{name}")) for name in ("train", "nosuch"))
    assert [plan.cluster for plan in there + missing] == [agent.cluster] * 2
    assert line(there[0].checks, "inputs").seen.startswith("all 1 are on")
    assert not failures(there[0].checks)
    assert [check.subject for check in failures(missing[0].checks)] == ["inputs"]
    assert str(slurm.root / "data" / "nosuch") in line(missing[0].checks, "inputs").seen


def test_files_of_the_users_machine_are_refused_with_the_remedy(api, agent):
    del agent
    eventually(lambda: api.connected("lab"), "the cluster is known")
    with pytest.raises(grpc.RpcError) as raised:
        api.submit(with_inputs(argv_spec("true"), "file:///home/me/train"))
    assert "inputs[0].uri" in raised.value.details() and "lustre:///path" in raised.value.details()
    with pytest.raises(grpc.RpcError) as raised:
        api.submit(with_inputs(argv_spec("true"), "data/train"))
    assert "spec.inputs[0].uri" in bad_fields(raised.value)
    job = api.wait_state(api.submit(with_inputs(argv_spec("true"), "/home/me/train")), FAILED)
    assert job.failure.failure_class == CONFIG
    assert "inputs[0].uri" in job.failure.message and "outside of where data is kept" in job.failure.message


def test_results_have_a_directory_of_the_jobs_number(api, slurm, agent):
    del agent
    job_id = api.submit(script_spec('cd "$MUSTER_RESULTS_DIR" && pwd; echo "$TAO_API_RESULTS_DIR/$TAO_JOB_ID"; '
                                    'echo "$TAO_RESULTS_ROOT"'))
    api.wait_state(job_id, SUCCEEDED)
    root = slurm.root / "results"
    assert api.stdout(job_id).decode() == f"{root}/{job_id}\n{root}/{job_id}\n{root}\n"
    spec = script_spec('cd "$MUSTER_RESULTS_DIR" && pwd')
    spec.results_directory = "slurm://all/results/mine/a"
    job_id = api.submit(spec)
    api.wait_state(job_id, SUCCEEDED)
    assert api.stdout(job_id).decode() == f"{root}/mine/a\n"


def test_a_results_directory_that_cannot_be_made_is_the_jobs_fault(api, slurm, agent):
    del agent
    (slurm.root / "closed").mkdir(mode=0o700, exist_ok=True)
    spec = argv_spec("true")
    spec.results_directory = "slurm://all/closed/x"
    job = api.wait_state(api.submit(spec), FAILED)
    assert job.failure.failure_class == CONFIG
    assert "results_directory" in job.failure.message


def test_status_json_counts_beside_the_exit_code(api, agent):
    del agent
    good = api.submit(status_spec("STARTED", "SUCCESS"))
    bad = api.submit(status_spec("STARTED", "FAILURE"))
    cut = api.submit(status_spec("STARTED", "RUNNING"))
    code = api.submit(status_spec("STARTED", "SUCCESS", code=3))
    none = argv_spec("true")
    none.status_json = True
    none = api.submit(none)
    api.wait_state(good, SUCCEEDED)
    job = api.wait_state(bad, FAILED)
    assert job.failure.failure_class == PROGRAM
    assert ("status.json", "it is FAILURE") in [(quote.source, quote.text) for quote in job.failure.quotes]
    assert "no last entry" in api.wait_state(cut, FAILED).failure.message
    assert api.wait_state(code, FAILED).exit.code == 3
    assert "has no entry" in api.wait_state(none, FAILED).failure.message


def test_results_elsewhere_are_shown_and_come_back(world, api, slurm, agent):
    del agent
    job_id = api.submit(script_spec('echo weights >"$MUSTER_RESULTS_DIR/model"'))
    run = api.wait_state(job_id, SUCCEEDED).runs[0]
    assert run.results_directory == str(slurm.root / "results" / str(job_id))
    assert run.results_directory in world.cli("show", job_id).stdout
    world.cli("cp", f"{job_id}:results", ".")
    assert (world.path("results") / "model").read_text() == "weights\n"
    own = api.submit(script_spec('mkdir results; echo mine >results/model'))
    api.wait_state(own, SUCCEEDED)
    assert world.cli("cp", f"{own}:results/model", "-").stdout == "mine\n"


def test_the_progress_of_a_training_is_told_while_it_runs(world, api, agent):
    del agent
    gate = world.gate()
    spec = status_spec("SUCCESS")
    entry = '{"status": "RUNNING", "epoch": 3, "kpi": {"val_loss": 0.25}}'
    spec.command.script = f"""echo '{entry}' >"$MUSTER_RESULTS_DIR/status.json"\n{gate.script()}\n{spec.command.script}"""
    job_id = api.submit(spec)
    eventually(lambda: api.get(job_id).runs and api.get(job_id).runs[0].progress.numbers.get("epoch") == 3, "its epoch is told")
    assert "epoch 3, kpi.val_loss 0.25" in world.cli("show", job_id).stdout
    gate.open()
    api.wait_state(job_id, SUCCEEDED)


def test_status_json_without_a_place_for_results_is_refused_at_the_submit(world, broker, api, slurm):
    del broker
    slurm.make_agent(world).start()
    with pytest.raises(grpc.RpcError) as refused:
        api.submit(status_spec("SUCCESS"))
    assert "status_json" in refused.value.details() and "has no results_root" in refused.value.details()


def test_a_requeue_by_slurm_is_the_same_run_started_again(world, api, slurm, agent):
    del agent
    gate = world.gate()
    job_id = api.submit(script_spec(gate.script()))
    api.wait_state(job_id, job_pb2.JOB_STATE_RUNNING)
    slurm.slurm("scontrol", "requeue", api.get(job_id).runs[0].external_id)
    eventually(lambda: api.get(job_id).runs[0].restarts == 1, "the restart is counted")
    gate.open()
    job = api.wait_state(job_id, SUCCEEDED)
    assert [run.restarts for run in job.runs] == [1]


def test_slurms_own_estimate_of_the_start_is_told(api, agent):
    del agent
    blocker = argv_spec("sleep", "1000", nodes=2)
    blocker.slurm.exclusive = True
    blocker.time_limit.seconds = 1800
    first = api.submit(blocker)
    api.wait_state(first, job_pb2.JOB_STATE_RUNNING)
    waiting = argv_spec("true", nodes=2)
    waiting.time_limit.seconds = 60
    second = api.submit(waiting)
    run = eventually(lambda: (lambda run: run if run.HasField("estimated_start_time") else None)(
        api.get(second).runs[0]) if api.get(second).runs else None, "Slurm has an estimate")
    assert run.estimated_start_time.seconds > run.assign_time.seconds
    for job_id in (second, first):
        api.cancel(job_id)
        api.wait_state(job_id, job_pb2.JOB_STATE_CANCELED)
