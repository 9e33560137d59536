"""quickstart.py ADDRESS - submits a job, follows it to its end and prints its log."""

import sys
import uuid

import grpc
from muster.v1 import job_pb2, job_spec_pb2, jobs_service_pb2, jobs_service_pb2_grpc


def main(address):
    jobs = jobs_service_pb2_grpc.JobsServiceStub(grpc.insecure_channel(address))
    spec = job_spec_pb2.JobSpec(name="hello", nodes=1, command={"script": "echo hello from $MUSTER_CLUSTER"})
    # A repeat with the same request_id gets the same job, so a broken connection never makes a second one.
    job_id = jobs.SubmitJob(jobs_service_pb2.SubmitJobRequest(spec=spec, request_id=str(uuid.uuid4()))).job_id
    print(f"job {job_id}")

    watch = jobs_service_pb2.WatchJobsRequest(
        job_ids=[job_id], beginning=jobs_service_pb2.WatchFromBeginning(), until_terminal=True)
    for message in jobs.WatchJobs(watch):
        for change in message.changes:  # none: a heartbeat
            if change.HasField("transition"):  # else a change of no state
                print(job_pb2.JobState.Name(change.transition.job_state))

    for piece in jobs.ReadLog(jobs_service_pb2.ReadLogRequest(job_id=job_id, follow=True)):
        sys.stdout.write(piece.data.decode(errors="replace"))

    job = jobs.GetJob(jobs_service_pb2.GetJobRequest(job_id=job_id)).job
    if job.state != job_pb2.JOB_STATE_SUCCEEDED:  # exit.code is that of the command, if it ran
        sys.exit(f"{job_pb2.JobState.Name(job.state)}, exit code {job.exit.code}: {job.failure.message}")


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except grpc.RpcError as error:
        sys.exit(f"{error.code().name}: {error.details()}")
