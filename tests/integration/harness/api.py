"""A plain gRPC client: Debian's python3-grpcio and the generated stubs, nothing of Muster's own."""

import grpc
from google.rpc import error_details_pb2, status_pb2
from grpc.health.v1 import health_pb2, health_pb2_grpc
from muster.agent.v1 import agent_link_pb2_grpc, log_link_pb2_grpc
from muster.v1 import (cluster_pb2, clusters_service_pb2, clusters_service_pb2_grpc, files_service_pb2_grpc, job_pb2,
                       job_spec_pb2, jobs_service_pb2, jobs_service_pb2_grpc)

from harness.wait import DEADLINE_S, eventually

CALL_TIMEOUT_S = 60.0

SUCCEEDED = job_pb2.JOB_STATE_SUCCEEDED
FAILED = job_pb2.JOB_STATE_FAILED
RUNNING = job_pb2.JOB_STATE_RUNNING
CANCELED = job_pb2.JOB_STATE_CANCELED
TERMINAL = (SUCCEEDED, FAILED, CANCELED)


def argv_spec(*args, **fields):
    """A spec of a program and its arguments; other fields by name."""
    spec = job_spec_pb2.JobSpec(**fields)
    spec.command.argv.args.extend(args)
    return spec


def script_spec(text, **fields):
    """A spec of a shell script."""
    spec = job_spec_pb2.JobSpec(**fields)
    spec.command.script = text
    return spec


class Api:
    """The services of one broker. Statuses come as grpc.RpcError; details(), info() and fields() read them."""

    def __init__(self, channel):
        self.channel = channel
        self.jobs = jobs_service_pb2_grpc.JobsServiceStub(channel)
        self.clusters = clusters_service_pb2_grpc.ClustersServiceStub(channel)
        self.files = files_service_pb2_grpc.FilesServiceStub(channel)
        self.agent_link = agent_link_pb2_grpc.AgentLinkServiceStub(channel)
        self.log_link = log_link_pb2_grpc.LogLinkServiceStub(channel)
        self.health = health_pb2_grpc.HealthStub(channel)

    def healthy(self):
        answer = self.health.Check(health_pb2.HealthCheckRequest(), timeout=CALL_TIMEOUT_S)
        return answer.status == health_pb2.HealthCheckResponse.SERVING

    def submit(self, spec, request_id="", **fields):
        """The new job's number."""
        request = jobs_service_pb2.SubmitJobRequest(spec=spec, request_id=request_id, **fields)
        return self.jobs.SubmitJob(request, timeout=CALL_TIMEOUT_S).job_id

    def submit_many(self, specs, request_ids=None):
        """The new jobs' numbers, in order."""
        ids = request_ids or [""] * len(specs)
        request = jobs_service_pb2.SubmitJobsRequest(requests=[
            jobs_service_pb2.SubmitJobRequest(spec=spec, request_id=name)
            for spec, name in zip(specs, ids)])
        answer = self.jobs.SubmitJobs(request, timeout=CALL_TIMEOUT_S)
        return [response.job_id for response in answer.responses]

    def get(self, job_id):
        request = jobs_service_pb2.GetJobRequest(job_id=job_id)
        return self.jobs.GetJob(request, timeout=CALL_TIMEOUT_S).job

    def list_page(self, **fields):
        request = jobs_service_pb2.ListJobsRequest(**fields)
        return self.jobs.ListJobs(request, timeout=CALL_TIMEOUT_S)

    def list_all(self, **fields):
        """Every job of every page."""
        jobs, token = [], ""
        while True:
            page = self.list_page(page_token=token, **fields)
            jobs.extend(page.jobs)
            token = page.next_page_token
            if not token:
                return jobs

    def cancel(self, *job_ids, reason=""):
        request = jobs_service_pb2.CancelJobsRequest(job_ids=job_ids, reason=reason)
        return self.jobs.CancelJobs(request, timeout=CALL_TIMEOUT_S).jobs

    def hold(self, *job_ids, reason=""):
        request = jobs_service_pb2.HoldJobsRequest(job_ids=job_ids, reason=reason)
        return self.jobs.HoldJobs(request, timeout=CALL_TIMEOUT_S).jobs

    def release(self, *job_ids, reason=""):
        request = jobs_service_pb2.ReleaseJobsRequest(job_ids=job_ids, reason=reason)
        return self.jobs.ReleaseJobs(request, timeout=CALL_TIMEOUT_S).jobs

    def watch(self, timeout_s=DEADLINE_S, after=0, **fields):
        """The stream of WatchJobs from a sequence on; None: from now on. .cancel() ends it."""
        start = {"now": jobs_service_pb2.WatchFromNow()} if after is None else {"after": after}
        request = jobs_service_pb2.WatchJobsRequest(**start, **fields)
        return self.jobs.WatchJobs(request, timeout=timeout_s)

    def changes(self, **fields):
        """Yields the changes of a watch, without its heartbeats."""
        return (change for answer in self.watch(**fields) for change in answer.changes)

    def transitions(self, job_id):
        """All transitions of a job that has ended."""
        changes = self.changes(job_ids=[job_id], until_terminal=True)
        return [change.transition for change in changes if change.HasField("transition")]

    def read_log(self, job_id, timeout_s=DEADLINE_S, stream=jobs_service_pb2.LOG_STREAM_STDOUT, offset=0, **fields):
        """The bytes of one output and how it ended."""
        positions = [jobs_service_pb2.LogPosition(stream=stream, offset=offset)] if offset else []
        request = jobs_service_pb2.ReadLogRequest(job_id=job_id, stream=stream, positions=positions, **fields)
        data, end = bytearray(), None
        for answer in self.jobs.ReadLog(request, timeout=timeout_s):
            if answer.data:
                assert answer.offset == offset + len(data), "a log has a gap or an overlap"
            data += answer.data
            end = answer.end or end
        return bytes(data), end

    def read_both(self, job_id, timeout_s=DEADLINE_S, **fields):
        """The pieces of both outputs in the order in which they came, as (stream, bytes), and each stream's end."""
        request = jobs_service_pb2.ReadLogRequest(job_id=job_id, **fields)
        pieces, ends = [], {}
        for answer in self.jobs.ReadLog(request, timeout=timeout_s):
            if answer.data:
                pieces.append((answer.stream, answer.data))
            if answer.end:
                assert answer.stream not in ends, "a stream has one end"
                ends[answer.stream] = answer.end
        return pieces, ends

    def stdout(self, job_id, **fields):
        """The whole standard output of a job, when it is complete."""
        data, end = self.read_log(job_id, follow=True, **fields)
        assert end == jobs_service_pb2.LOG_END_COMPLETE, jobs_service_pb2.LogEnd.Name(end or 0)
        return data

    def stderr(self, job_id):
        return self.stdout(job_id, stream=jobs_service_pb2.LOG_STREAM_STDERR)

    def list_logs(self, job_id, **fields):
        request = jobs_service_pb2.ListLogsRequest(job_id=job_id, **fields)
        return list(self.jobs.ListLogs(request, timeout=CALL_TIMEOUT_S).logs)

    def wait_state(self, job_id, *states, deadline_s=DEADLINE_S):
        """The job, once it is in one of the states; fails at once if it ends in another."""
        wanted = [job_pb2.JobState.Name(state) for state in states]
        shown = {}

        def look():
            shown["job"] = job = self.get(job_id)
            return job if job.state in states or job.state in TERMINAL else None

        try:
            job = eventually(look, f"job {job_id} is {' or '.join(wanted)}", deadline_s)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{shown.get('job')}") from None
        assert job.state in states, f"job {job_id} is not {' or '.join(wanted)}:\n{job}"
        return job

    def wait_end(self, job_id, deadline_s=DEADLINE_S):
        return self.wait_state(job_id, *TERMINAL, deadline_s=deadline_s)

    def wait_run_state(self, job_id, *states, deadline_s=DEADLINE_S):
        """The latest run of the job, once it is in one of the states."""
        def look():
            runs = self.get(job_id).runs
            return runs[-1] if runs and runs[-1].state in states else None
        wanted = " or ".join(job_pb2.RunState.Name(state) for state in states)
        return eventually(look, f"the run of job {job_id} is {wanted}", deadline_s)

    def cluster(self, name):
        """The cluster, or None if the broker does not know it."""
        request = clusters_service_pb2.GetClusterRequest(name=name)
        try:
            return self.clusters.GetCluster(request, timeout=CALL_TIMEOUT_S).cluster
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.NOT_FOUND:
                return None
            raise

    def check(self, name):
        """The lines of the cluster's preflight."""
        request = clusters_service_pb2.CheckClusterRequest(name=name)
        return list(self.clusters.CheckCluster(request, timeout=DEADLINE_S).checks)

    def describe(self, name):
        """Returns the resources and the present work of the cluster."""
        request = clusters_service_pb2.DescribeClusterRequest(name=name)
        return self.clusters.DescribeCluster(request, timeout=DEADLINE_S)

    def plan(self, spec):
        """One plan for each cluster that could take the job."""
        request = jobs_service_pb2.PlanJobRequest(spec=spec)
        return list(self.jobs.PlanJob(request, timeout=DEADLINE_S).plans)

    def connected(self, name):
        """Tells whether the broker answers and has the cluster's agent."""
        try:
            cluster = self.cluster(name)
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.UNAVAILABLE:
                return False
            raise
        return cluster is not None and cluster.state == cluster_pb2.CLUSTER_STATE_CONNECTED

    def last_seen(self, name):
        cluster = self.cluster(name)
        return cluster.last_seen.ToNanoseconds() if cluster else 0


def rich_status(error):
    """The google.rpc.Status of a failed call."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            return status_pb2.Status.FromString(value)
    return status_pb2.Status()


def _detail(error, kind):
    for packed in rich_status(error).details:
        message = kind()
        if packed.Unpack(message):
            return message
    return None


def error_info(error):
    """Its google.rpc.ErrorInfo, or None."""
    return _detail(error, error_details_pb2.ErrorInfo)


def retry_delay_s(error):
    """The pause that its google.rpc.RetryInfo asks for; 0: it has none."""
    detail = _detail(error, error_details_pb2.RetryInfo)
    return detail.retry_delay.ToNanoseconds() / 1e9 if detail else 0


def bad_fields(error):
    """Field and description of each violation of its google.rpc.BadRequest."""
    detail = _detail(error, error_details_pb2.BadRequest)
    return {v.field: v.description for v in detail.field_violations} if detail else {}
