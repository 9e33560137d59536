"""A Job becomes the spec that it describes."""

import pytest

from muster import Job
from muster._job import describe
from muster.v1 import job_dependency_pb2, job_spec_pb2


def test_each_field_reaches_the_spec():
    spec = Job(["python", "train.py"], name="train", project="vision", nodes=2, cpus=1.5, memory="16Gi", gpus="H100:8", time="2h",
               image="pytorch", env={"A": "1"}, labels={"team": "a"}, priority=5, clusters=["lab"], pool="gpu", setup="true",
               results_directory="lustre:///r", after=[7], after_ended=[8], secrets={"KEY": "key"}, retries=2,
               fields={"slurm": {"account": "x"}}).spec()
    assert list(spec.command.argv.args) == ["python", "train.py"]
    assert (spec.name, spec.project, spec.nodes, spec.priority) == ("train", "vision", 2, 5)
    assert (spec.resources.cpu_millis, spec.resources.memory_bytes) == (1500, 16 << 30)
    assert [(gpu.type, gpu.count_millis) for gpu in spec.resources.gpus] == [("H100", 8000)]
    assert (spec.time_limit.seconds, spec.image, dict(spec.env), dict(spec.labels)) == (7200, "pytorch", {"A": "1"}, {"team": "a"})
    assert (list(spec.placement.clusters), spec.placement.pool, spec.setup) == (["lab"], "gpu", "true")
    assert (spec.slurm.account, spec.retry.max_runs, spec.results_directory) == ("x", 3, "lustre:///r")
    assert [(one.job_id, one.outcome) for one in spec.depends_on] == [
        (7, job_dependency_pb2.JOB_OUTCOME_SUCCEEDED), (8, job_dependency_pb2.JOB_OUTCOME_ENDED)]
    assert [(one.variable, one.name) for one in spec.secrets] == [("KEY", "key")]


def test_a_text_is_a_script():
    assert Job("echo $HOME").spec().command.script == "echo $HOME"


def test_what_is_no_job_is_refused():
    with pytest.raises(ValueError, match="command is required"):
        Job().spec()
    with pytest.raises(ValueError, match="slurmm"):
        Job("true", fields={"slurmm": {}}).spec()
    with pytest.raises(TypeError, match="neither a command"):
        describe(7, {})
    with pytest.raises(TypeError, match="gpu"):
        describe("true", {"gpu": 1})
    with pytest.raises(TypeError, match="takes no further fields: gpus"):
        describe(job_spec_pb2.JobSpec(), {"gpus": 1})
