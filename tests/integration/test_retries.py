"""Runs that fail, and the runs that follow them under the same job number; jobs that are held back."""

from google.protobuf import duration_pb2
from muster.v1 import job_pb2, job_spec_pb2, jobs_service_pb2
import pytest

from harness.api import CALL_TIMEOUT_S, CANCELED, FAILED, SUCCEEDED, script_spec
from harness.slurm import SlurmCluster, start_shared_broker
from harness.wait import eventually, holds_for

QUEUED = job_pb2.JOB_STATE_QUEUED


def kinds(steps):
    return [job_pb2.TransitionKind.Name(step.kind)[len("TRANSITION_KIND_"):] for step in steps if step.kind]


def hold(api, job_id, reason=""):
    request = jobs_service_pb2.HoldJobsRequest(job_ids=[job_id], reason=reason)
    return api.jobs.HoldJobs(request, timeout=CALL_TIMEOUT_S).jobs


def release(api, job_id):
    request = jobs_service_pb2.ReleaseJobsRequest(job_ids=[job_id])
    return api.jobs.ReleaseJobs(request, timeout=CALL_TIMEOUT_S).jobs


def test_a_plain_failure_surfaces_at_once(api, agent):
    job = api.wait_state(api.submit(script_spec("exit 1")), FAILED)
    assert len(job.runs) == 1
    assert not job.failure.retriable
    assert "RETRY" not in kinds(api.transitions(job.id))


def test_a_held_job_outlives_the_broker_and_starts_when_it_is_released(api, broker, world):
    job_id = api.submit(script_spec("echo ran"))
    assert hold(api, job_id, "the data is late")[0].held
    broker.kill()
    broker.start()
    world.make_agent().start()
    other = api.submit(script_spec("true"))
    api.wait_state(other, SUCCEEDED)
    job = api.get(job_id)
    assert job.state == QUEUED and job.held
    assert job.state_reason.message.startswith("held by ") and job.state_reason.message.endswith(": the data is late")
    assert [held.id for held in api.list_all(filter="held = true")] == [job_id]
    assert not release(api, job_id)[0].held
    api.wait_state(job_id, SUCCEEDED)
    assert kinds(api.transitions(job_id)) == ["SUBMITTED", "HOLD_REQUESTED", "RELEASE_REQUESTED"]


class TestOnSlurm:
    """A cluster whose nodes die."""

    @pytest.fixture(scope="class")
    @staticmethod
    def slurm():
        made = SlurmCluster("--nodes", "2", "--cpus", "2", "--min-job-age", "5")
        yield made
        made.close()

    @pytest.fixture
    @staticmethod
    def broker(world):
        return start_shared_broker(world)

    @pytest.fixture
    @staticmethod
    def agent(world, broker, slurm):
        del broker
        return slurm.make_agent(world).start()

    @staticmethod
    def spec(text, backoff_s):
        spec = script_spec(text)
        spec.slurm.requeue = False  # Slurm itself would start it again, as the same run
        spec.retry.CopyFrom(job_spec_pb2.RetryPolicy(
            exclude_failed_nodes=True, backoff=duration_pb2.Duration(seconds=backoff_s)))
        return spec

    @staticmethod
    def node_of(api, job_id):
        """The node on which its command runs."""
        run = api.wait_run_state(job_id, job_pb2.RUN_STATE_RUNNING)
        return eventually(lambda: api.get(job_id).runs[-1].nodes, f"the node of {run.run_key} is known")[0]

    def test_a_node_that_dies_leads_to_a_second_run_of_the_same_job(self, api, agent, slurm):
        job_id = api.submit(self.spec("echo run $MUSTER_RUN; [ $MUSTER_RUN -gt 1 ] || sleep 1000", backoff_s=1))
        node = self.node_of(api, job_id)
        slurm.control("crash", node)
        job = api.wait_state(job_id, SUCCEEDED)
        slurm.control("start", f"slurmd.{node}")
        assert [run.number for run in job.runs] == [1, 2]
        first, second = job.runs
        assert first.state == job_pb2.RUN_STATE_FAILED
        assert first.failure.failure_class == job_pb2.FAILURE_CLASS_INFRA and first.failure.retriable
        assert second.nodes[0] != node
        line = ("sacct", "-X", "-n", "-P", "-o", "SubmitLine%1000", "-j", second.external_id)
        eventually(lambda: f"--exclude={node} " in slurm.slurm(*line), "the second run keeps away from that node")
        assert not job.HasField("failure") and not job.HasField("retry_time")
        steps = api.transitions(job_id)
        assert "RETRY" in kinds(steps)
        assert FAILED not in [step.job_state for step in steps], "nobody saw the job fail in between"
        assert api.stdout(job_id, run=1) == b"run 1\n"
        assert api.stdout(job_id) == b"run 2\n"

    def test_jobs_above_a_limit_on_submitted_jobs_run_when_others_have_made_room(self, api, agent, slurm, world):
        slurm.slurm("sacctmgr", "-i", "modify", "qos", "two", "set", "MaxSubmitJobsPerUser=2")
        gate = world.path("gate")
        spec = self.spec(f"until [ -e {gate} ]; do sleep 0.1; done", backoff_s=1)
        spec.slurm.qos = "two"
        jobs = api.submit_many([spec] * 5)

        def refused():
            return [run for job_id in jobs for run in api.get(job_id).runs if run.HasField("failure")]

        eventually(lambda: len(refused()) >= 3, "three are refused")
        for run in refused():
            assert run.failure.retriable
            assert "(QOSMaxSubmitJobPerUserLimit)" in run.failure.message
            assert [quote.source for quote in run.failure.quotes] == ["sbatch"]
        gate.touch()
        for job_id in jobs:
            assert api.wait_state(job_id, SUCCEEDED, FAILED).state == SUCCEEDED
        slurm.slurm("sacctmgr", "-i", "modify", "qos", "two", "set", "MaxSubmitJobsPerUser=-1")

    def test_a_cancel_while_the_job_waits_for_its_next_run_ends_it(self, api, agent, slurm):
        job_id = api.submit(self.spec("sleep 1000", backoff_s=3600))
        node = self.node_of(api, job_id)
        # Slurm fails its jobs now, as it does later when a node has not answered for a while.
        slurm.slurm("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=test")
        job = api.wait_state(job_id, QUEUED)
        assert "for run 2 after an infrastructure failure" in job.state_reason.message
        holds_for(lambda: len(api.get(job_id).runs) == 1, "no second run", 2)
        api.cancel(job_id)
        assert api.get(job_id).state == CANCELED
