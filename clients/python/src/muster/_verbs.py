"""The verbs, each written once, as Steps that Client and AsyncClient take."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import time
import uuid
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Type, Union

import grpc

from muster import _tree, errors
from muster import _rpc as rpc
from muster._config import Config
from muster._job import Job, describe
from muster._steps import Backoff, Blocking, Patience, Sleep, Steps, Upload, call
from muster.v1 import cluster_pb2, files_service_pb2, identity_service_pb2, job_pb2, job_spec_pb2
from muster.v1 import clusters_service_pb2 as clusters
from muster.v1 import jobs_service_pb2 as jobs

# Limits of the API.
MAX_JOBS_PER_SUBMIT = 10_000
MAX_JOBS_PER_CHANGE = 1000
MAX_DIGESTS_PER_REQUEST = 10_000
# A file that changes while it is read is read at most this often.
TRIES_OF_CHANGING_FILES = 3
# A change by filter gives up after this many answers that changed no job, because the jobs keep changing themselves.
MAX_ANSWERS_WITHOUT_JOBS = 100
# Pages are as large as possible, so that listing everything takes fewer calls.
PAGE = 1000
JOB_FILE_TIMEOUT_S = 900.0
# The tag and the length of one request within a message of several.
REQUEST_FRAMING_BYTES = 8

What = Union[str, Sequence[str], Job, job_spec_pb2.JobSpec]
ENDED = (job_pb2.JOB_STATE_SUCCEEDED, job_pb2.JOB_STATE_FAILED, job_pb2.JOB_STATE_CANCELED)
STATE_PREFIX = "JOB_STATE_"


def state_name(job: job_pb2.Job) -> str:
    """Returns a name such as "RUNNING", or the number of a state that only a newer broker knows."""
    try:
        return job_pb2.JobState.Name(job.state)[len(STATE_PREFIX):]
    except ValueError:
        return str(job.state)


def new_request_id() -> str:
    return str(uuid.uuid4())


@dataclasses.dataclass
class Planned:
    """A job that is about to be submitted."""

    spec: job_spec_pb2.JobSpec
    trees: List[_tree.LocalTree]


def prepare(several: Sequence[Any], fields: Dict[str, Any], patience: Patience) -> Steps[List[Planned]]:
    """Makes specs, and reads the files that go along; sends nothing but a question for the broker's bound."""
    planned, uploads = [], []
    for what in several:
        described = describe(what, fields)
        if isinstance(described, Job):
            spec = described.spec()
        else:
            spec = job_spec_pb2.JobSpec()
            spec.CopyFrom(described)
        planned.append(Planned(spec, []))
        uploads.append(described.uploads() if isinstance(described, Job) else [])
    if not any(uploads):
        return planned
    bound = yield from call(rpc.FIND_MISSING_FILES, files_service_pb2.FindMissingFilesRequest(), patience)
    known: Dict[Tuple[str, str, str], _tree.LocalTree] = {}
    for job, wanted in zip(planned, uploads):
        left = bound.max_job_bytes
        for path, place in wanted:
            directory, name = _tree.layout(path, place)
            key = (path, name, place and "below")
            if key not in known:
                known[key] = yield Blocking(_reader(path, left, not place, name))
            tree = known[key]
            if tree.tree.total_bytes > left:
                raise errors.BadRequest(f"with {path} the job brings along more than {bound.max_job_bytes} bytes of files; "
                                        f"{_tree.REMEDY}", code="INVALID_ARGUMENT")
            left -= tree.tree.total_bytes
            job.trees.append(tree)
            job.spec.uploads.add(tree_sha256=tree.sha256, path=directory)
    return planned


def _reader(path: str, max_bytes: int, rules_above: bool, name: str) -> Callable[[], _tree.LocalTree]:
    def read() -> _tree.LocalTree:
        for tried in range(TRIES_OF_CHANGING_FILES):
            try:
                return _tree.read_tree(path, max_bytes, rules_above, name)
            except errors.Conflict:
                if tried + 1 == TRIES_OF_CHANGING_FILES:
                    raise
        raise AssertionError("unreachable")
    return read


def send_files(trees: Iterable[_tree.LocalTree], patience: Patience) -> Steps[int]:
    """Sends what the broker lacks of the trees, and returns how many files that were."""
    sizes: Dict[str, int] = {}
    sources: Dict[str, _tree.Source] = {}
    for tree in trees:
        sizes.update(tree.sizes())
        sources.update(tree.sources)
    digests, sent = sorted(sizes), 0
    backoff, since = Backoff(), time.monotonic()
    while True:
        missing: List[str] = []
        for at in range(0, len(digests), MAX_DIGESTS_PER_REQUEST):
            request = files_service_pb2.FindMissingFilesRequest(sha256=digests[at:at + MAX_DIGESTS_PER_REQUEST])
            answer = yield from call(rpc.FIND_MISSING_FILES, request, patience)
            missing += answer.missing_sha256
        if not missing:
            return sent
        if len(missing) < len(digests):
            # Something arrived since the last try.
            since = time.monotonic()
        digests = missing
        parts = [(sha256, sizes[sha256], sources[sha256]) for sha256 in missing]
        try:
            stored = yield Upload(lambda parts=parts: _tree.requests(parts))  # type: ignore[misc]
            return sent + int(stored.stored_files)
        except grpc.RpcError as refused:
            error = errors.from_grpc(refused)
        pause_s = backoff.pause_s(error.retry_after)
        if not errors.may_pass(error) or time.monotonic() + pause_s >= since + patience.of(error, patience.stream_s):
            raise patience.explain(error)
        yield Sleep(pause_s)


def submit_specs(planned: Sequence[Planned], patience: Patience, *, held: bool, request_ids: Optional[Sequence[str]],
                 validate_only: bool) -> Steps[List[jobs.SubmitJobResponse]]:
    """Sends files, then jobs: all jobs of a message or none. If they do not fit into one message, it sends several.

    Files go after the broker has said that the jobs are good, so that nothing is sent for a job that no cluster can take. An
    error has the answers that came before it as `submitted`.
    """
    # An empty request id counts as none: a repeat without an id would make a second job.
    ids = [one or new_request_id() for one in request_ids or [""] * len(planned)]
    if len(ids) != len(planned):
        raise ValueError(f"request_id has {len(ids)} names for {len(planned)} jobs")
    if any(job.trees for job in planned):
        # The broker needs the trees themselves to judge the job, and checks that it has them.
        yield from send_files([tree.alone() for job in planned for tree in job.trees], patience)
        yield from _send_jobs(planned, ids, patience, held, True)
        if not validate_only:
            yield from send_files([tree for job in planned for tree in job.trees], patience)
    return (yield from _send_jobs(planned, ids, patience, held, validate_only))


def _send_jobs(planned: Sequence[Planned], ids: Sequence[str], patience: Patience, held: bool,
               validate_only: bool) -> Steps[List[jobs.SubmitJobResponse]]:
    if len(planned) == 1:
        one = jobs.SubmitJobRequest(spec=planned[0].spec, request_id=ids[0], validate_only=validate_only, held=held)
        return [(yield from call(rpc.SUBMIT_JOB, one, patience))]
    answers: List[jobs.SubmitJobResponse] = []
    try:
        for request in _messages(planned, ids, held, validate_only):
            answers += (yield from call(rpc.SUBMIT_JOBS, request, patience)).responses
    except errors.MusterError as error:
        error.submitted = [] if validate_only else answers
        raise
    return answers


def _messages(planned: Sequence[Planned], ids: Sequence[str], held: bool, validate_only: bool) -> Iterator[jobs.SubmitJobsRequest]:
    request, size = jobs.SubmitJobsRequest(), 0
    for job, request_id in zip(planned, ids):
        one = jobs.SubmitJobRequest(spec=job.spec, request_id=request_id, validate_only=validate_only, held=held)
        bytes_of_one = one.ByteSize() + REQUEST_FRAMING_BYTES
        if request.requests and (len(request.requests) == MAX_JOBS_PER_SUBMIT or size + bytes_of_one > rpc.MAX_REQUEST_BYTES):
            yield request
            request, size = jobs.SubmitJobsRequest(), 0
        request.requests.append(one)
        size += bytes_of_one
    if request.requests:
        yield request


def is_job_file(what: Any) -> bool:
    """A path of a job file, and not a command: one word that ends with .yaml or .yml."""
    if isinstance(what, os.PathLike):
        return True
    return isinstance(what, str) and what.endswith((".yaml", ".yml")) and len(what.split()) == 1


def submit_file(path: str, config: Config, *, held: bool, request_id: Optional[str], validate_only: bool) -> Steps[List[int]]:
    """Lets `muster submit` read the file, which knows all of its forms, and returns the numbers of the jobs."""
    program = shutil.which("muster")
    if program is None:
        raise errors.JobFileError(f"{path}: job files are read by the command muster, and it is not in PATH; install it, or "
                                  "describe the job by muster.Job")
    # A path is neither a flag nor standard input.
    file = f"./{path}" if path.startswith("-") else path
    argv = [program, "submit", file, "-o", "name", "--request-id", request_id or new_request_id()]
    argv += ["--hold"] if held else []
    argv += ["--validate"] if validate_only else []
    environment = dict(os.environ)
    argv[1:1] = ["--context", config.context] if config.context else ["--broker", config.address.text]
    if config.ca_file:
        argv[1:1] = ["--ca-file", config.ca_file]
    token = config.token()
    if token.startswith("mst_"):
        environment["MUSTER_TOKEN"] = token

    def run() -> "subprocess.CompletedProcess[str]":
        return subprocess.run(argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=JOB_FILE_TIMEOUT_S, check=False)

    done = yield Blocking(run)
    if done.returncode != 0:
        raise errors.JobFileError(done.stderr.strip() or f"muster submit {path} ended with {done.returncode}")
    return [int(word) for word in done.stdout.split()]


def get(job_id: int, patience: Patience) -> Steps[job_pb2.Job]:
    return (yield from call(rpc.GET_JOB, jobs.GetJobRequest(job_id=job_id), patience)).job


def list_page(filter: str, order_by: str, token: str, size: int, spec: bool, patience: Patience) -> Steps[jobs.ListJobsResponse]:
    request = jobs.ListJobsRequest(filter=filter, order_by=order_by, page_token=token, page_size=size, include_spec=spec)
    return (yield from call(rpc.LIST_JOBS, request, patience))


def count(filter: str, patience: Patience) -> Steps[int]:
    return (yield from call(rpc.COUNT_JOBS, jobs.CountJobsRequest(filter=filter), patience)).total


def count_by(filter: str, by: Sequence[str], patience: Patience) -> Steps[List[jobs.JobCount]]:
    """Returns the way to group: by state, cluster, user, project, or label=KEY."""
    request = jobs.CountJobsRequest(filter=filter)
    for group in [by] if isinstance(by, str) else by:
        name, _, label = group.partition("=")
        known = {key[len("JOB_GROUPING_"):].lower() for key in jobs.JobGrouping.keys()} - {"unspecified"}
        if name not in known or (name == "label") != bool(label):
            raise ValueError(f'by has "{group}"; groups are state, cluster, user, project and label=KEY')
        request.group_by.append(jobs.JobGrouping.Value("JOB_GROUPING_" + name.upper()))  # type: ignore[arg-type,unused-ignore]
        request.label = label or request.label
    return list((yield from call(rpc.COUNT_JOBS, request, patience)).counts)


def transitions(job_id: int, patience: Patience) -> Steps[List[job_pb2.Transition]]:
    found: List[job_pb2.Transition] = []
    token = ""
    while True:
        request = jobs.ListTransitionsRequest(job_id=job_id, page_size=PAGE, page_token=token)
        page = yield from call(rpc.LIST_TRANSITIONS, request, patience)
        found += page.transitions
        token = page.next_page_token
        if not token:
            return found


CHANGES: Dict[str, Tuple[rpc.Method[Any, Any], Type[Any]]] = {
    "cancel": (rpc.CANCEL_JOBS, jobs.CancelJobsRequest),
    "hold": (rpc.HOLD_JOBS, jobs.HoldJobsRequest),
    "release": (rpc.RELEASE_JOBS, jobs.ReleaseJobsRequest),
}


def change(verb: str, job_ids: Sequence[int], filter: str, reason: str, validate_only: bool,
           patience: Patience) -> Steps[List[job_pb2.Job]]:
    """Cancels, holds or releases jobs: by number in calls of 1000, each all or none; by filter until there are no more."""
    method, kind = CHANGES[verb]
    if bool(job_ids) == bool(filter.strip()):
        raise ValueError(f"{verb} takes jobs or a filter: name one of them; 'id > 0' takes all jobs")
    changed: List[job_pb2.Job] = []
    for at in range(0, len(job_ids), MAX_JOBS_PER_CHANGE):
        request = kind(job_ids=job_ids[at:at + MAX_JOBS_PER_CHANGE], reason=reason, validate_only=validate_only)
        changed += (yield from call(method, request, patience)).jobs
    without = 0
    while filter and without < MAX_ANSWERS_WITHOUT_JOBS:
        answer = yield from call(method, kind(filter=filter, reason=reason, validate_only=validate_only), patience)
        changed += answer.jobs
        if not answer.more or validate_only:
            break
        without = 0 if answer.jobs else without + 1
    return changed


def rerun(job_ids: Sequence[int], filter: str, held: bool, request_id: Optional[str], patience: Patience) -> Steps[List[int]]:
    """Returns the numbers of the new jobs. One call takes at most 1000, all or none."""
    request = jobs.RerunJobsRequest(job_ids=job_ids, filter=filter, held=held, request_id=request_id or new_request_id())
    return [job.job_id for job in (yield from call(rpc.RERUN_JOBS, request, patience)).jobs]


def plan(what: Any, fields: Dict[str, Any], patience: Patience) -> Steps[List[cluster_pb2.JobPlan]]:
    planned = yield from prepare([what], fields, patience)
    if planned[0].trees:
        yield from send_files([tree.alone() for tree in planned[0].trees], patience)
    return list((yield from call(rpc.PLAN_JOB, jobs.PlanJobRequest(spec=planned[0].spec), patience)).plans)


def list_clusters(patience: Patience) -> Steps[List[cluster_pb2.Cluster]]:
    found: List[cluster_pb2.Cluster] = []
    token = ""
    while True:
        page = yield from call(rpc.LIST_CLUSTERS, clusters.ListClustersRequest(page_size=PAGE, page_token=token), patience)
        found += page.clusters
        token = page.next_page_token
        if not token:
            return found


def who_am_i(patience: Patience) -> Steps[identity_service_pb2.WhoAmIResponse]:
    return (yield from call(rpc.WHO_AM_I, identity_service_pb2.WhoAmIRequest(), patience))


def watch_request(job_ids: Sequence[int], filter: str, after: Optional[int], from_beginning: bool,
                  until_ended: bool) -> jobs.WatchJobsRequest:
    request = jobs.WatchJobsRequest(job_ids=job_ids, filter=filter, until_terminal=until_ended)
    if after is not None:
        request.after = after
    elif from_beginning:
        request.beginning.SetInParent()
    else:
        request.now.SetInParent()
    return request


@dataclasses.dataclass(frozen=True)
class Why:
    """The reason why a job waits or did not succeed; str() is the sentence with its remedy."""

    code: str  # "WAITS_FOR_RESOURCES", "OUT_OF_MEMORY": docs/concepts.md; empty: there is nothing to explain
    message: str
    remedy: str
    quotes: Tuple[str, ...]  # lines of logs and events that led to the verdict
    facts: Mapping[str, Any]  # the messages: state_reason or failure

    def __bool__(self) -> bool:
        return bool(self.code)

    def __str__(self) -> str:
        return "\n".join([line for line in (self.message, self.remedy) if line] + [f"> {quote}" for quote in self.quotes])


def why(job: job_pb2.Job) -> Why:
    """Explains a job by what the broker last said of it."""
    from muster.v1 import facts_pb2
    if job.state == job_pb2.JOB_STATE_FAILED and job.HasField("failure"):
        failure = job.failure
        return Why(_name(facts_pb2.FailureCode, failure.code, "FAILURE_CODE_"), failure.message, failure.remedy,
                   tuple(quote.text for quote in failure.quotes), {"failure": failure})
    if job.HasField("state_reason"):
        reason = job.state_reason
        return Why(_name(facts_pb2.StateReasonCode, reason.code, "STATE_REASON_CODE_"), reason.message, reason.remedy, (),
                   {"state_reason": reason})
    return Why("", f"job {job.id} is {state_name(job)}", "", (), {})


def _name(enum: Any, number: int, prefix: str) -> str:
    try:
        return str(enum.Name(number))[len(prefix):]
    except ValueError:
        return str(number)


def ended_or_raise(job: job_pb2.Job) -> job_pb2.Job:
    """Returns the job if it has succeeded. Raises JobFailed or JobCanceled."""
    if job.state == job_pb2.JOB_STATE_FAILED:
        raise errors.JobFailed(f"job {job.id} has failed: {why(job)}", job)
    if job.state == job_pb2.JOB_STATE_CANCELED:
        raise errors.JobCanceled(f"job {job.id} was canceled", job)
    return job
