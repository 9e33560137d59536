"""The calls of the API that this package makes, and the channel to the broker."""

from __future__ import annotations

import dataclasses
from typing import Any, Generic, List, Optional, Tuple, Type, TypeVar

import grpc

from muster._config import Config
from muster.errors import ConfigurationError
from muster.v1 import clusters_service_pb2 as clusters
from muster.v1 import files_service_pb2 as files
from muster.v1 import identity_service_pb2 as identity
from muster.v1 import jobs_service_pb2 as jobs
from muster.v1 import signal_jobs_pb2 as signals

Q = TypeVar("Q")
A = TypeVar("A")

# One request has at most this many bytes: the default limit of a gRPC server, less some room for framing.
MAX_REQUEST_BYTES = (4 << 20) - (64 << 10)


@dataclasses.dataclass(frozen=True)
class Method(Generic[Q, A]):
    """One of the API's methods."""

    service: str
    name: str
    request: Type[Q]
    answer: Type[A]
    repeatable: bool = True  # a repeat of the same request does no harm
    asks_agent: bool = False  # a cluster's agent answers, which may take longer

    @property
    def path(self) -> str:
        return f"/muster.v1.{self.service}/{self.name}"

    def encode(self, message: Any) -> bytes:
        return bytes(message.SerializeToString())

    def decode(self, data: bytes) -> Any:
        kind: Any = self.answer
        return kind.FromString(data)


# Calls that submit are repeatable because this package gives every request a request_id.
SUBMIT_JOB = Method("JobsService", "SubmitJob", jobs.SubmitJobRequest, jobs.SubmitJobResponse)
SUBMIT_JOBS = Method("JobsService", "SubmitJobs", jobs.SubmitJobsRequest, jobs.SubmitJobsResponse)
RERUN_JOBS = Method("JobsService", "RerunJobs", jobs.RerunJobsRequest, jobs.RerunJobsResponse)
GET_JOB = Method("JobsService", "GetJob", jobs.GetJobRequest, jobs.GetJobResponse)
LIST_JOBS = Method("JobsService", "ListJobs", jobs.ListJobsRequest, jobs.ListJobsResponse)
COUNT_JOBS = Method("JobsService", "CountJobs", jobs.CountJobsRequest, jobs.CountJobsResponse)
LIST_TRANSITIONS = Method("JobsService", "ListTransitions", jobs.ListTransitionsRequest, jobs.ListTransitionsResponse)
CANCEL_JOBS = Method("JobsService", "CancelJobs", jobs.CancelJobsRequest, jobs.CancelJobsResponse)
HOLD_JOBS = Method("JobsService", "HoldJobs", jobs.HoldJobsRequest, jobs.HoldJobsResponse)
RELEASE_JOBS = Method("JobsService", "ReleaseJobs", jobs.ReleaseJobsRequest, jobs.ReleaseJobsResponse)
SIGNAL_JOBS = Method("JobsService", "SignalJobs", signals.SignalJobsRequest, signals.SignalJobsResponse, repeatable=False,
                     asks_agent=True)
PLAN_JOB = Method("JobsService", "PlanJob", jobs.PlanJobRequest, jobs.PlanJobResponse, asks_agent=True)
LIST_CLUSTERS = Method("ClustersService", "ListClusters", clusters.ListClustersRequest, clusters.ListClustersResponse)
WHO_AM_I = Method("IdentityService", "WhoAmI", identity.WhoAmIRequest, identity.WhoAmIResponse)
FIND_MISSING_FILES = Method("FilesService", "FindMissingFiles", files.FindMissingFilesRequest, files.FindMissingFilesResponse)
WATCH_JOBS = Method("JobsService", "WatchJobs", jobs.WatchJobsRequest, jobs.WatchJobsResponse)
READ_LOG = Method("JobsService", "ReadLog", jobs.ReadLogRequest, jobs.ReadLogResponse)
UPLOAD_FILES = Method("FilesService", "UploadFiles", files.UploadFilesRequest, files.UploadFilesResponse)
FETCH_FILES = Method("FilesService", "FetchFiles", files.FetchFilesRequest, files.FetchFilesResponse)
METHODS: Tuple[Method[Any, Any], ...] = (
    SUBMIT_JOB, SUBMIT_JOBS, RERUN_JOBS, GET_JOB, LIST_JOBS, COUNT_JOBS, LIST_TRANSITIONS, CANCEL_JOBS, HOLD_JOBS, RELEASE_JOBS,
    PLAN_JOB, LIST_CLUSTERS, WHO_AM_I, FIND_MISSING_FILES, WATCH_JOBS, READ_LOG, UPLOAD_FILES, FETCH_FILES)

# This package makes the repeats itself, finds a restarted broker again soon, and notices a peer that vanished silently.
CHANNEL_OPTIONS: List[Tuple[str, Any]] = [
    ("grpc.enable_retries", 0),
    ("grpc.service_config_disable_resolution", 1),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 2000),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
]


def open_channel(config: Config, module: Any) -> Any:
    """Returns a channel of `grpc` or of `grpc.aio`, which connects at the first call. Raises ConfigurationError."""
    if config.address.is_tls:
        make: Any = grpc.ssl_channel_credentials
        trust = make(root_certificates=config.ca)
        return module.secure_channel(config.address.target, trust, options=CHANNEL_OPTIONS)
    return module.insecure_channel(config.address.target, options=CHANNEL_OPTIONS)


def metadata_of(config: Config) -> Optional[List[Tuple[str, str]]]:
    """Returns the metadata of a call made now. Raises ConfigurationError if the token would cross a network in the clear."""
    token = config.token()
    if not token:
        return None
    if not config.address.is_tls and not config.address.stays_here:
        raise ConfigurationError(f"the token would travel to {config.address.text} in the clear; use tls:HOST:PORT")
    return [("authorization", f"Bearer {token}")]
