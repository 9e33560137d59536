"""Runs that fail, and the runs that follow them under the same job number; jobs that are held back."""

from muster.v1 import job_pb2, jobs_service_pb2

from harness.api import CALL_TIMEOUT_S, FAILED, SUCCEEDED, script_spec

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
    assert job.reason.startswith("held by ") and job.reason.endswith(": the data is late")
    assert [held.id for held in api.list_all(filter="held = true")] == [job_id]
    assert not release(api, job_id)[0].held
    api.wait_state(job_id, SUCCEEDED)
    assert kinds(api.transitions(job_id)) == ["SUBMITTED", "HOLD_REQUESTED", "RELEASE_REQUESTED"]

