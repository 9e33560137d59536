"""Holds that come at a chosen moment of a job's run."""

import grpc
from muster.v1 import facts_pb2, job_pb2

from harness.api import error_info
from harness.wait import eventually


def hold_once_it_is(api, job_id, state):
    """Holds the job once its run is in that state, or further; whether it could still be asked for."""
    if state:
        # A matter of milliseconds.
        eventually(lambda: any(run.state >= state for run in api.get(job_id).runs), f"job {job_id} is as far", poll_s=0.001)
    try:
        api.hold(job_id)
    except grpc.RpcError as error:
        assert error_info(error).reason == "NOT_WAITING", error
        return False
    return True


def is_hold_settled(job):
    """Tells whether it is known what a hold has come to: it came too late, or nothing of the job runs until its
    release."""
    return not job.held or job.state == job_pb2.JOB_STATE_QUEUED or job.runs[-1].state_reason.code == facts_pb2.STATE_REASON_CODE_HELD


def came_too_late(api, job_id):
    """Tells whether the job's history says that a hold of it did."""
    return any(step.kind == job_pb2.TRANSITION_KIND_RELEASE_REQUESTED and
               step.evidence.source == job_pb2.EVIDENCE_SOURCE_BROKER for step in api.transitions(job_id))
