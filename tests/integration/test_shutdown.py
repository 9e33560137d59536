"""A broker that is stopped ends each call in a way that any client's retry policy understands: a plain gRPC client, which
tries nothing again by itself, sees UNAVAILABLE and nothing else.
"""

import hashlib
import queue
import threading

import grpc
from grpc.reflection.v1 import reflection_pb2, reflection_pb2_grpc
from muster.v1 import clusters_service_pb2, files_service_pb2, job_pb2, jobs_service_pb2
import pytest

from harness.api import CALL_TIMEOUT_S, argv_spec, error_info, retry_delay_s
from harness.wait import eventually

CALLERS = 12


def first_error(call):
    """Repeats a call until it fails; the error."""
    while True:
        try:
            call()
        except grpc.RpcError as error:
            return error


def told(error):
    """True if the broker itself has ended the call, and said why and when to come back; else its connection broke."""
    assert error.code() == grpc.StatusCode.UNAVAILABLE, error
    if not error_info(error):
        return False
    assert error_info(error).reason in ("SHUTTING_DOWN", "AGENT_LEFT") and retry_delay_s(error) > 0, error
    return True


def calls_of(api):
    return [lambda: api.submit(argv_spec("true")),
            lambda: api.get(1),
            lambda: api.list_page(page_size=10),
            lambda: api.jobs.CountJobs(jobs_service_pb2.CountJobsRequest(), timeout=CALL_TIMEOUT_S),
            lambda: api.jobs.UpdateJob(jobs_service_pb2.UpdateJobRequest(job_id=1, priority=1), timeout=CALL_TIMEOUT_S),
            lambda: api.clusters.ListClusters(clusters_service_pb2.ListClustersRequest(), timeout=CALL_TIMEOUT_S)]


@pytest.mark.parametrize("way", ["socket", "tcp"])
def test_calls_without_a_pause(world, way):
    broker = world.make_broker("--listen", "127.0.0.1:0").start()
    address = broker.address if way == "socket" else f"127.0.0.1:{broker.tcp_port()}"
    world.api(broker).submit(argv_spec("true"))
    errors, have_begun = [], threading.Barrier(CALLERS + 1)

    def repeat(number):
        calls = calls_of(world.api(address=address))
        call = calls[number % len(calls)]
        call()
        have_begun.wait()
        errors.append(first_error(call))

    threads = [threading.Thread(target=repeat, args=(number,)) for number in range(CALLERS)]
    for thread in threads:
        thread.start()
    have_begun.wait()
    broker.terminate()
    for thread in threads:
        thread.join()
    assert len(errors) == CALLERS
    for error in errors:
        told(error)


def test_streams_and_calls_that_wait(world, broker, agent, api):
    gate = world.gate()
    job_id = api.submit(argv_spec("sh", "-c", f"echo one; {gate.script()}"))
    api.wait_state(job_id, job_pb2.JOB_STATE_RUNNING)
    watch = api.jobs.WatchJobs(jobs_service_pb2.WatchJobsRequest(), timeout=CALL_TIMEOUT_S)
    next(watch)
    log = api.jobs.ReadLog(jobs_service_pb2.ReadLogRequest(job_id=job_id, follow=True), timeout=CALL_TIMEOUT_S)
    assert next(log).data == b"one\n"
    parts = queue.Queue()
    head = files_service_pb2.FileHead(sha256=hashlib.sha256(b"ab").hexdigest(), size_bytes=2)
    parts.put(files_service_pb2.UploadFilesRequest(head=head))
    parts.put(files_service_pb2.UploadFilesRequest(chunk=b"a"))
    upload = api.files.UploadFiles.future(iter(parts.get, None), timeout=CALL_TIMEOUT_S)
    incoming = broker.state_dir / "files" / "incoming"
    eventually(lambda: any(incoming.iterdir()), "the upload has begun")
    asked = queue.Queue()
    asked.put(reflection_pb2.ServerReflectionRequest(list_services=""))
    reflection = reflection_pb2_grpc.ServerReflectionStub(api.channel).ServerReflectionInfo(
        iter(asked.get, None), timeout=CALL_TIMEOUT_S)
    next(reflection)
    agent.pause()
    check = api.clusters.CheckCluster.future(clusters_service_pb2.CheckClusterRequest(name=agent.cluster),
                                             timeout=CALL_TIMEOUT_S)
    eventually(lambda: api.get(job_id), "the broker has taken the call before this one")

    broker.terminate()
    agent.resume()
    errors = {name: first_error(lambda s=stream: next(s)) for name, stream in
              (("watch", watch), ("log", log), ("reflection", reflection))}
    errors.update(upload=upload.exception(), check=check.exception())
    parts.put(None)
    asked.put(None)
    gate.open()
    assert {name for name, error in errors.items() if told(error)} >= {"watch", "log", "upload", "check"}
