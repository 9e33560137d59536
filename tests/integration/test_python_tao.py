"""The back end for NVIDIA's TAO SDK, as its own published package uses it, with a stand-in for a training, on each kind of cluster."""

import shutil

import pytest

from harness.fixtures import cluster_fixture, kubernetes_fixture
from harness.python_client import blocks
from harness.slurm import USER
from harness.stubs import REPOSITORY

slurm = cluster_fixture("--nodes", "2", "--cpus", "4")
kubernetes = kubernetes_fixture(nodes=2, gpus=4)

KINDS = [pytest.param("machines"), pytest.param("slurm", marks=pytest.mark.slurm), pytest.param("kubernetes", marks=pytest.mark.kubernetes)]
# One worker installs it once.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("python_client")]

# The begin of each program: the SDK finds the back end by its entry point.
FOUND = """
import json, os, sys, threading, time
from tao_sdk.platforms import ExecutionHandler, get_handler_class
import muster
assert "muster.tao" not in sys.modules
handler = get_handler_class("muster").from_credentials({"MUSTER_BROKER": os.environ.pop("MUSTER_BROKER")})
assert isinstance(handler, ExecutionHandler)
from muster.tao import MusterSDK
IMAGE = sys.argv[1] if len(sys.argv) > 1 else ""

def until(sdk, job, *wanted):
    end = time.monotonic() + 120
    while True:
        status = sdk.get_job_status(job.id)
        if status.status in wanted:
            return status
        assert time.monotonic() < end, status
        time.sleep(0.1)
"""
# It checks what TAO's programs rely on, and writes what they write.
TRAINING = r"""
set -euo pipefail
[[ $TAO_RESULTS_ROOT/$TAO_JOB_ID == "$MUSTER_RESULTS_DIR" && $WORLD_SIZE == 1 ]]
mkdir -p "$MUSTER_RESULTS_DIR/train"
for ((epoch = 0; epoch < EPOCHS; epoch++)); do
	echo "Epoch $epoch/$EPOCHS"
	echo weights >"$MUSTER_RESULTS_DIR/train/model_epoch_00$epoch.pth"
done
echo '{"status": "SUCCESS"}' >"$MUSTER_RESULTS_DIR/train/status.json"
"""


@pytest.fixture
def python(installed, world, broker):
    del broker
    return lambda script, *arguments, **options: installed.execute(world, FOUND + script, *arguments, **options)


@pytest.fixture(params=KINDS)
def tao(request, python, world, broker):
    """tao(SCRIPT): runs it for a broker with a cluster of the kind that has a place for results."""
    del broker
    if request.param == "machines":
        world.make_agent(config=world.machines_config(gpus={"H100": 4})).start()
        return python
    results = world.path("results-of-jobs")
    results.mkdir()
    cluster = request.getfixturevalue(request.param)
    if request.param == "slurm":
        shutil.chown(results, USER, USER)
        cluster.make_agent(world, results_root=results).start()
        return python
    cluster.make_least_agent(world, request.getfixturevalue("namespace"), allow_host_path="yes", agent_roots=f"data={results}",
                             results_root="slurm://data/results", storage_roots=f"data=host:{results}:/data").start()
    return lambda script, *arguments, **options: python(script, "debian:12", *arguments, **options)


def test_a_training_runs_to_its_end_and_its_checkpoints_come_back(tao, world):
    output = tao(f"TRAINING = {TRAINING!r}" + """
ended, seen = threading.Event(), []
with MusterSDK(poll_interval=1, client=handler.client, job=muster.Job(cpus=1)) as sdk:
    job = sdk.create_job(image=IMAGE, command=TRAINING, gpu_count=0, env_vars={"EPOCHS": 3},
                         hooks={"on_complete": lambda done: (seen.append(done.id), ended.set()), "on_error": lambda done: ended.set()})
    assert job.backend_job_id == str(handler.find(job.id).id) and job.backend_type == "muster", job
    assert ended.wait(120), sdk.get_job_status(job.id)
    assert seen == [job.id], (sdk.get_job_status(job.id), sdk.get_job_logs(job.id))
    assert sdk.get_job_status(job.id).status == sdk.get_job(job.id)["status"] == "Complete"
    assert [row["job_id"] for row in sdk.list_jobs("Complete")] == [job.id]
    assert handler.normalize_status(handler.get_tao_job_status(job.id)) == "Complete"
    assert sdk.get_job_logs(job.id) == "Epoch 0/3\\nEpoch 1/3\\nEpoch 2/3\\n", sdk.get_job_logs(job.id)
    assert sdk.get_job_logs(job.id, tail=1) == "Epoch 2/3\\n"
    assert sdk.get_failure_analysis(job.id) is None and sdk.cancel_job(job.id)
    print(sdk.get_job_results_dir(job.id), *sdk.get_checkpoints(job.id), sdk.fetch_results(job.id, "copy"))

# Another process, without the first one's record, finds it by its id.
from tao_sdk.checkpoints import get_checkpoint_path
with MusterSDK(state_file="other.json", client=handler.client) as other:
    assert other.get_job_status(job.id).status == "Complete" and other.get_job(job.id) is None
print(get_checkpoint_path(model_name="dino", experiment_dir="copy", epoch=3))
""")
    directory, *checkpoints, fetched, resumed = output.split()
    assert directory.startswith("/") and fetched == "copy"
    assert checkpoints == [f"train/model_epoch_00{epoch}.pth" for epoch in range(3)]
    assert resumed == "copy/train/model_epoch_002.pth"
    assert (world.path("home") / "copy" / "train" / "status.json").exists()


def test_failures_are_analysed_and_jobs_are_canceled(tao):
    tao("""
from tao_sdk.action_workflow import ActionWorkflow
sdk = MusterSDK(client=handler.client, job=muster.Job(cpus=1))
bad = sdk.create_job(image=IMAGE, command="echo 'torch.cuda.OutOfMemoryError: CUDA out of memory.' >&2; exit 3", gpu_count=0)
until(sdk, bad, "Error")
workflow = ActionWorkflow(".", "run", "first")
workflow.write_submission(bad, {}, {})
status = workflow.sync_from_sdk(sdk, bad.id)
analysis = json.loads(workflow.failure_analysis_path.read_text())
assert status.status == "Error" and analysis["job_failure_by_node_event"][0]["message"] in status.message, status
assert analysis["err_class"] == "ERR_PROGRAM" and analysis["suggestion"] and analysis["suggestion"] in status.message, analysis
assert "out of memory" in analysis["log_streams"][-1]["text"] and analysis["failure_class"] == "OOM", analysis

long = sdk.create_job(image=IMAGE, command="exec sleep 600", gpu_count=0)
until(sdk, long, "Running")
(replica,) = sdk.get_job_replicas(long.id)
assert replica["status"]["phase"] == "Running" and replica["status"]["node"]["name"], replica
assert sdk.cancel_job(long.id)
assert sdk.get_job_status(long.id).status == sdk.get_job(long.id)["status"] == "Canceled"
""")


@pytest.mark.slurm
def test_a_job_of_two_nodes_has_the_logs_of_both(python, broker, slurm, world):
    del broker
    slurm.make_agent(world).start()
    python("""
sdk = MusterSDK(client=handler.client, job=muster.Job(cpus=1))
job = sdk.create_job(image="", command="echo $NODE_RANK of $WORLD_SIZE for $TAO_JOB_ID", gpu_count=0, num_nodes=2, partition="debug")
until(sdk, job, "Complete")
assert sdk.get_job_logs(job.id) == f"[rank 0] 0 of 2 for {job.id}\\n[rank 1] 1 of 2 for {job.id}\\n", sdk.get_job_logs(job.id)
""")


def test_the_example_of_the_page_runs_with_the_own_runner_of_the_sdk(installed, world, agent):
    del agent
    # Neither an image nor GPUs are there, and the runner wants a python with PyYAML, and packages of the network that this needs not.
    env = {"PATH": f"{installed.bin}:/usr/bin:/bin", "PIP_NO_INDEX": "1"}
    example = blocks(REPOSITORY / "docs" / "coming-from-tao.md")
    for here, there in (("nvcr.io/nvidia/tao/tao-toolkit:6.26.3-pyt", ""), ("gpu_count=8, num_nodes=2", "gpu_count=0"),
                        ('cpus=16, time="4h", clusters=["lab"]', f'cpus=1, env={env}'),
                        ("dino train -e", "mkdir -p $MUSTER_RESULTS_DIR/train; touch $MUSTER_RESULTS_DIR/train/model_epoch_009.pth; cat"),
                        ("print(sdk.get_job_status(job.id))", "handler_of_job = sdk._handler.find(job.id).wait(120)")):
        assert example.count(here) == 1, here
        example = example.replace(here, there)
    output = installed.execute(world, example)
    assert "num_epochs: 10" in output and output.endswith("['train/model_epoch_009.pth'] None\n"), output


def test_a_job_that_waits_says_why(python, agent):
    del agent
    python("""
sdk = MusterSDK(client=handler.client, job=muster.Job(cpus=8))
first, second = [sdk.create_job(image="", command="exec sleep 600", gpu_count=0) for _ in range(2)]
until(sdk, first, "Running")
status = sdk.get_job_status(second.id)
assert status.status == "Pending" and status.message, status
assert sdk.get_job_logs(second.id) == "" and sdk.get_job_results_dir(second.id) == ""
assert sdk.get_job_replicas(second.id)[0]["status"]["readiness_issue"]["message"] in status.message
assert sdk.cancel_job(second.id) and sdk.cancel_job(first.id)
""")


def test_what_no_cluster_can_run_is_refused_at_once(python, world, broker):
    world.make_agent(config=world.machines_config(gpus={"H100": 4})).start()
    python("""
assert handler.get_available_instances() == {"total_nvidia_gpus": 4, "clusters": {"box": 4}}, handler.get_available_instances()
sdk = MusterSDK(client=handler.client)
for options in ({"gpu_count": 9}, {"gpu_count": 0, "mounts": ["/a:/b:/c:/d"]}, {"gpu_count": 0, "tolerations": [{"no": "such"}]}):
    try:
        print(sdk.create_job(image="", command="true", **options), "was taken")
    except (muster.CannotBePlaced, ValueError) as error:
        print(type(error).__name__)
assert {row["status"] for row in sdk.list_jobs()} == {"Error"}
""") == "CannotBePlaced\nValueError\nValueError\n"


def test_credentials_go_along_as_secrets_alone(python, world, agent, api):
    del agent
    world.cli("secret", "set", "ngc", input="sealed")
    output = python("""
os.environ["TAO_MUSTER_SECRETS"] = "NGC_KEY=ngc"
os.environ.update(NGC_KEY="of-this-shell", HF_TOKEN="of-this-shell", S3_BUCKET_NAME="data")
sdk = MusterSDK(client=handler.client)
job = sdk.create_job(image="", command="echo $NGC_KEY ${HF_TOKEN-unset} $S3_BUCKET_NAME", gpu_count=0)
until(sdk, job, "Complete")
print(sdk.get_job_logs(job.id), end="")
""")
    assert output.split()[1:] == ["unset", "data"], output
    spec = api.get(1).spec
    assert dict(spec.env) == {"S3_BUCKET_NAME": "data"} and [secret.name for secret in spec.secrets] == ["ngc"]


def test_a_job_that_is_sent_twice_is_there_once(python, agent, api):
    del agent
    python("""
for _ in range(2):
    handler.create_job("", "dino", "train", job_id="one", docker_env_vars={}, entrypoint={"command": "true"})
assert handler.find("one").refresh().message.labels["tao-sdk-network"] == "dino"
assert handler.find("two") is None and handler.get_tao_job_status("two") == "Unknown" and not handler.cancel_job("two")
for wrong in ({"resource_shape": "gpu.a100.8"}, {"stray": 1}, {"entrypoint": {}}, {"job_id": ""}, {"job_id": '"; touch here; "'}, {"job_id": "a" * 64}):
    try:
        handler.create_job("", "dino", "train", **{"job_id": "two", "entrypoint": {"command": "true"}, **wrong})
        print("was taken", wrong)
    except ValueError:
        pass
try:
    print("was found", handler.find('one" OR id > "0'))
except ValueError:
    pass

# The handler remembers so many jobs; it finds the others again.
from muster.tao import _handler
_handler.KNOWN_JOBS = 1
handler.create_job("", "dino", "train", job_id="three", entrypoint={"command": "true"})
assert list(handler._numbers) == ["three"] and handler.find("one").id == 1 and list(handler._numbers) == ["one"], handler._numbers
""")
    assert len(api.list_all()) == 2
