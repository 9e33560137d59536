"""The errors of this package. All of them are MusterErrors.

The class tells what a program can do about an error; `reason` says exactly what happened, by the words that
docs/troubleshooting.md of Muster explains. They never change their meaning, as against the sentences.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Type

import grpc
from google.rpc import error_details_pb2, status_pb2

from muster.v1 import facts_pb2, job_pb2


class MusterError(Exception):
    """An error: a sentence that says what is wrong and what to do, and facts for programs."""

    def __init__(self, message: str, *, code: str = "", reason: str = "", metadata: Optional[Mapping[str, str]] = None,
                 remedy: str = "", fields: Optional[Mapping[str, str]] = None, retry_after: Optional[float] = None,
                 why: Optional[facts_pb2.StateReason] = None) -> None:
        super().__init__(message)
        self.message = message
        # gRPC's status, e.g. "NOT_FOUND"; empty: the error is not the broker's.
        self.code = code
        # ErrorInfo's reason, e.g. "CANNOT_BE_PLACED"; empty: it has none.
        self.reason = reason
        # ErrorInfo's metadata, e.g. the index of the bad request in a batch.
        self.metadata: Dict[str, str] = dict(metadata or {})
        # The remedy, if the broker sends it apart from the message; empty if the message contains it.
        self.remedy = remedy
        # With bad input, each field, and what is wrong with it.
        self.fields: Dict[str, str] = dict(fields or {})
        # The broker asks the client to try again after these seconds; None if it does not say.
        self.retry_after = retry_after
        # With CannotBePlaced, what each cluster lacks.
        self.why = why
        # With submit_many and map: handles of the first of the jobs, which are submitted, because they went in messages before
        # the one that failed.
        self.submitted: List[Any] = []


class ConfigurationError(MusterError):
    """The address, the token, the CA or a file of the user's configuration is missing or wrong. Nothing was sent."""


class BadRequest(MusterError, ValueError):
    """A value is wrong: `fields` names each one."""


class NotHonoured(MusterError):
    """The broker does not know a field or a call, or no cluster honours it yet."""


class NotFound(MusterError, LookupError):
    """There is no such job, run, rank, path or cluster."""


class AlreadyExists(MusterError):
    """The request_id belongs to another spec."""


class NotAllowed(MusterError):
    """The user's rights do not include this (PERMISSION_DENIED)."""


class NotLoggedIn(MusterError):
    """The token or the login is missing, unknown or expired (UNAUTHENTICATED)."""


class NotPossible(MusterError):
    """The state of the job, the run or the cluster does not allow it (FAILED_PRECONDITION)."""


class CannotBePlaced(NotPossible):
    """No known cluster can ever run the job: `why` has what each of them lacks."""


class TooMuch(MusterError):
    """A limit is reached, such as waiting jobs, a quota or the broker's disk (RESOURCE_EXHAUSTED)."""


class BrokerUnavailable(MusterError, ConnectionError):
    """Nobody answered, for as long as this client tries."""


class CallTimeout(MusterError, TimeoutError):
    """The broker did not answer in time."""


class WaitTimeout(MusterError, TimeoutError):
    """The timeout of a wait has passed; the jobs go on."""


class Conflict(MusterError):
    """Something changed during the call (ABORTED): try again."""


class JobError(MusterError):
    """A job has not succeeded."""

    def __init__(self, message: str, job: job_pb2.Job) -> None:
        super().__init__(message, remedy=job.failure.remedy)
        # The job as it ended.
        self.job = job


class JobFailed(JobError):
    """The job has failed: `failure.code` says what happened, `failure.failure_class` where the cause lies."""

    @property
    def failure(self) -> job_pb2.Failure:
        return self.job.failure


class JobCanceled(JobError):
    """Someone canceled the job."""


class JobFileError(MusterError):
    """`muster` refused a job file, or is not in PATH."""


class RemoteError(MusterError):
    """A function raised an exception that could not be brought back as it was; the message has its traceback."""


CLASSES: Dict[str, Type[MusterError]] = {
    "INVALID_ARGUMENT": BadRequest,
    "OUT_OF_RANGE": BadRequest,
    "UNIMPLEMENTED": NotHonoured,
    "NOT_FOUND": NotFound,
    "ALREADY_EXISTS": AlreadyExists,
    "PERMISSION_DENIED": NotAllowed,
    "UNAUTHENTICATED": NotLoggedIn,
    "FAILED_PRECONDITION": NotPossible,
    "RESOURCE_EXHAUSTED": TooMuch,
    "UNAVAILABLE": BrokerUnavailable,
    "DEADLINE_EXCEEDED": CallTimeout,
    "ABORTED": Conflict,
}
CLASSES_OF_REASONS: Dict[str, Type[MusterError]] = {"CANNOT_BE_PLACED": CannotBePlaced}


def details_of(error: Any) -> status_pb2.Status:
    """Returns the google.rpc.Status of a grpc.RpcError; an empty one if it has none."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            return status_pb2.Status.FromString(value)
    return status_pb2.Status()


def from_grpc(error: Any) -> MusterError:
    """Turns the error into one of this package. A broker that stops cuts calls off, so that counts as unavailable."""
    code: grpc.StatusCode = error.code()
    message: str = error.details() or code.name
    info, retry, bad = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo(), error_details_pb2.BadRequest()
    state = facts_pb2.StateReason()
    retry_after: Optional[float] = None
    why: Optional[facts_pb2.StateReason] = None
    for packed in details_of(error).details:
        packed.Unpack(info)
        packed.Unpack(bad)
        if packed.Unpack(retry):
            retry_after = retry.retry_delay.ToTimedelta().total_seconds()
        if packed.Unpack(state):
            why = state
    name = code.name
    if name == "CANCELLED" and not info.reason:
        name, message = "UNAVAILABLE", "the broker cut the call off"
    kind = CLASSES_OF_REASONS.get(info.reason) or CLASSES.get(name, MusterError)
    return kind(message, code=name, reason=info.reason, metadata=info.metadata, remedy=state.remedy,
                fields={v.field: v.description for v in bad.field_violations}, retry_after=retry_after, why=why)


def is_transport(error: MusterError) -> bool:
    """Returns whether the transport failed, rather than the broker, whose answers have a reason."""
    return error.code in ("UNAVAILABLE", "DEADLINE_EXCEEDED") and not error.reason


def may_pass(error: MusterError) -> bool:
    """Returns whether the same call may succeed later."""
    return (error.code == "UNAVAILABLE" and is_transport(error)) or error.retry_after is not None
