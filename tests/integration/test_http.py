"""HTTP beside gRPC: the Connect protocol in JSON and binary, with the same rights and the same errors."""

import base64
import json
import os
import socket
import stat
import threading

import pytest

from muster.v1 import job_pb2, jobs_service_pb2

from harness.api import argv_spec, script_spec
from harness.connect import Connect, Stream, detail_of, envelope, make_token, port_of, reason_of
from harness.wait import eventually

HTTP = "heartbeat_interval: 3s\nhttp:\n  listen: 127.0.0.1:0\n"


@pytest.fixture
def broker(world):
    return world.make_broker(config=HTTP).start()


@pytest.fixture
def connect(world, broker):
    """connect(ROLE): a caller with a token of that role; None: without one."""
    made = []

    def begin(role="SUBMITTER", user="ada", **kwargs):
        token = make_token(world, f"t{len(made)}", user=user, role=role) if role else None
        made.append(Connect(port_of(broker), token, **kwargs))
        return made[-1]

    yield begin
    for one in made:
        one.close()


@pytest.fixture
def ada(connect):
    return connect()


# ---- calls


def test_a_job_is_submitted_and_read_in_json(world, broker, agent, ada):
    spec = argv_spec("echo", "hello", name="web")
    done = ada.ok("JobsService/SubmitJob", {"spec": json.loads(as_json(spec)), "requestId": "r1"})
    job = world.api(broker).get(int(done["jobId"]))
    assert (job.user, job.spec.name) == ("ada", "web")
    again = ada.ok("JobsService/SubmitJob", {"spec": json.loads(as_json(spec)), "request_id": "r1"})
    assert again["jobId"] == done["jobId"]
    shown = eventually(lambda: ended(ada, done["jobId"]), "the job ends")
    assert shown["state"] == "JOB_STATE_SUCCEEDED"


def as_json(spec):
    from google.protobuf import json_format
    return json_format.MessageToJson(spec)


def ended(caller, job_id):
    job = caller.ok("JobsService/GetJob", {"jobId": job_id})["job"]
    return job if job["state"] in ("JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED", "JOB_STATE_CANCELED") else None


def test_a_job_is_submitted_and_read_in_binary(ada):
    request = jobs_service_pb2.SubmitJobRequest(spec=argv_spec("true", name="binary"))
    submitted = ada.call_binary("JobsService/SubmitJob", request, jobs_service_pb2.SubmitJobResponse)
    shown = ada.call_binary("JobsService/GetJob", jobs_service_pb2.GetJobRequest(job_id=submitted.job_id),
                            jobs_service_pb2.GetJobResponse)
    assert shown.job.spec.name == "binary"


def test_one_connection_takes_call_after_call(ada):
    ada.ok("JobsService/ListJobs")
    used = ada.connection.sock.getsockname()
    for _ in range(20):
        ada.ok("JobsService/ListJobs", {"pageSize": 3})
        ada.error("JobsService/GetJob", {"jobId": "7"})
    assert ada.connection.sock.getsockname() == used


def test_requests_that_come_at_once_are_answered_in_turn(broker, ada):
    head = f"Host: x\r\nContent-Type: application/json\r\nAuthorization: Bearer {ada.token}\r\nContent-Length: 2\r\n"
    asked = f"POST /muster.v1.JobsService/ListJobs HTTP/1.1\r\n{head}\r\n{{}}"
    last = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    answers = exchange(broker, (asked * 3 + last).encode())
    assert answers.count(b"HTTP/1.1 200 OK") == 4
    assert answers.endswith(b"\r\n\r\nok\n")


def test_the_timeout_of_a_call_is_kept(world, broker, agent, ada):
    job = world.api(broker).submit(script_spec("sleep 600"))
    stream = ada.stream("JobsService/WatchJobs", {}, {"Connect-Timeout-Ms": "300"})
    list(stream)
    assert stream.end["error"]["code"] == "deadline_exceeded"
    assert world.api(broker).get(job).id == job


def rebound(name):
    """The headers of a page that was loaded as `name`, whose server then let the name mean 127.0.0.1."""
    return {"Host": f"{name}:7071", "Origin": f"http://{name}:7071"}


def test_a_name_that_others_have_made_mean_this_machine_gets_nothing(world):
    broker = world.make_broker(config=HTTP + "  allowed_hosts: [jobs.example.org]\n  open_metrics: true\n").start()
    caller = Connect(port_of(broker))
    asked = [("GET", path, None) for path in ("/healthz", "/readyz", "/metrics", "/")]
    asked.append(("POST", "/muster.v1.IdentityService/GetLoginInfo", b"{}"))
    for verb, path, body in asked:
        headers = {"Content-Type": "application/json"} if body else {}
        for more in ({}, {"Authorization": "Bearer anything"}):
            refused = caller.begin(verb, path, body, {**headers, **rebound("evil.example"), **more})
            text = refused.read()
            assert (refused.status, reason_of(json.loads(text))) == (421, "HOST_NOT_ALLOWED"), path
            assert b"http.allowed_hosts" in text
        for name in ("localhost", "127.0.0.1", "[::1]", "jobs.example.org", socket.gethostname()):
            answered = caller.begin(verb, path, body, {**headers, **rebound(name)})
            answered.read()
            assert answered.status in (200, 404), (path, name)  # a build without the page has none
    # A caller with a good token is no such page, and may use any name; without one the call is refused as ever.
    refused = caller.begin("POST", "/muster.v1.JobsService/ListJobs", b"{}",
                           {"Content-Type": "application/json", "Host": "evil.example"})
    assert reason_of(json.loads(refused.read())) == "NO_CREDENTIAL"
    ada = Connect(port_of(broker), make_token(world, "other", user="ada"))
    ada.ok("JobsService/ListJobs", headers={"Host": "any.example"})
    for one in (caller, ada):
        one.close()


# ---- errors


def test_an_error_has_its_code_its_words_and_its_details(ada):
    status, error = ada.call("JobsService/SubmitJob", {"spec": {"name": "x", "priority": 5000000}})
    assert (status, error["code"]) == (400, "invalid_argument")
    fields = [violation.field for violation in detail_of(error, "google.rpc.BadRequest").field_violations]
    assert "spec.command" in fields
    assert all("debug" in detail for detail in error["details"])
    status, error = ada.call("JobsService/GetJob", {"jobId": "99"})
    assert (status, error["code"], reason_of(error)) == (404, "not_found", "UNKNOWN_JOB")


def test_an_error_is_the_same_as_over_grpc(world, broker, api, ada):
    import grpc
    with pytest.raises(grpc.RpcError) as over_grpc:
        api.get(99)
    assert ada.error("JobsService/GetJob", {"jobId": "99"})["message"] == over_grpc.value.details()


def test_a_mistyped_field_is_named(ada):
    error = ada.error("JobsService/SubmitJob", {"spec": {"colour": "x"}})
    assert reason_of(error) == "BAD_JSON" and "colour" in error["message"]


@pytest.mark.parametrize("headers, status, code, reason", [
    ({"Content-Type": "text/plain"}, 415, "invalid_argument", "WRONG_CONTENT_TYPE"),
    ({"Content-Encoding": "gzip"}, 501, "unimplemented", "NO_COMPRESSION"),
    ({"Connect-Protocol-Version": "2"}, 400, "invalid_argument", "BAD_PROTOCOL_VERSION"),
    ({"Connect-Timeout-Ms": "soon"}, 400, "invalid_argument", "BAD_TIMEOUT"),
])
def test_a_header_that_does_not_fit_is_refused(ada, headers, status, code, reason):
    got, error = ada.call("JobsService/ListJobs", {}, headers)
    assert (got, error["code"], reason_of(error)) == (status, code, reason)
    ada.ok("JobsService/ListJobs")


# ---- who calls


@pytest.mark.parametrize("authorization", [None, "Bearer mst_" + "0" * 36, "Basic YTpi", "Bearer"])
def test_a_caller_without_a_good_token_is_refused(broker, connect, authorization):
    nobody = connect(role=None)
    headers = {"Authorization": authorization} if authorization else {}
    status, error = nobody.call("JobsService/ListJobs", {}, headers)
    assert (status, error["code"]) == (401, "unauthenticated")
    answer, _ = nobody.request("POST", "/muster.v1.JobsService/ListJobs", "{}",
                               {"Content-Type": "application/json", **headers})
    assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_the_way_to_log_in_is_told_to_everybody(connect):
    assert connect(role=None).ok("IdentityService/GetLoginInfo") == {}


def test_a_header_from_outside_makes_nobody_anybody(connect):
    nobody = connect(role=None)
    for value in ("x", "mst_" + "a" * 36, ""):
        error = nobody.error("IdentityService/WhoAmI", {}, {"muster-http-peer": value})
        assert error["code"] == "unauthenticated"


def test_a_forged_entrance_over_grpc_changes_nothing(api):
    from muster.v1 import identity_service_pb2, identity_service_pb2_grpc
    stub = identity_service_pb2_grpc.IdentityServiceStub(api.channel)
    me = stub.WhoAmI(identity_service_pb2.WhoAmIRequest(), metadata=(("muster-http-peer", "mst_" + "a" * 40),), timeout=60)
    assert identity_service_pb2.AccessRole.Name(me.role) == "ACCESS_ROLE_ADMIN"


def test_a_token_has_its_role(world, broker, connect):
    own = world.api(broker).submit(argv_spec("true"))
    eve = connect(role="VIEWER", user="eve")
    assert eve.ok("IdentityService/WhoAmI")["role"] == "ACCESS_ROLE_VIEWER"
    assert [job["id"] for job in eve.ok("JobsService/ListJobs")["jobs"]] == [str(own)]
    status, error = eve.call("JobsService/CancelJobs", {"jobIds": [str(own)]})
    assert (status, error["code"]) == (403, "permission_denied")
    assert connect().ok("JobsService/ListJobs") == {}


def test_nothing_of_agents_is_reached(broker, connect):
    admin = connect(role="ADMIN")
    for path in ("/muster.agent.v1.AgentLinkService/Connect", "/muster.agent.v1.EnrollmentService/Enroll",
                 "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "/grpc.health.v1.Health/Check"):
        for kind in ("application/json", "application/connect+json", "application/grpc"):
            answer, body = admin.request("POST", path, "{}", {"Content-Type": kind})
            assert (answer.status, json.loads(body)["code"]) == (404, "unimplemented")


def test_the_audit_log_says_who_came_from_where(world, broker, connect, ada):
    ada.ok("JobsService/SubmitJob", {"spec": {"command": {"script": "true"}}})
    connect(role=None).error("JobsService/ListJobs")
    records = eventually(lambda: about_http(connect(role="ADMIN", user="root")), "the records are there")
    assert ("ada", "OK") in {(record.get("user"), record["result"]) for record in records}
    assert any(record["result"] == "NO_CREDENTIAL" for record in records)
    assert all(record["origin"].startswith("http:127.0.0.1:") for record in records)


def about_http(admin):
    records = admin.ok("AuditService/ListAuditRecords").get("records", [])
    mine = [record for record in records if record.get("origin", "").startswith("http:")]
    return mine if len(mine) >= 2 else None


# ---- streams


def test_a_watch_and_a_log_are_told_while_they_grow(world, broker, agent, connect):
    watcher, reader = connect(role="VIEWER"), connect(role="VIEWER", user="eve")
    gate = world.gate()
    job = world.api(broker).submit(script_spec(f"echo first; {gate.script()}; echo second"))
    watch = iter(watcher.stream("JobsService/WatchJobs", {"jobIds": [str(job)], "beginning": {}, "untilTerminal": True}))
    states = []
    while "JOB_STATE_RUNNING" not in states:
        states += states_of(next(watch))
    log = reader.stream("JobsService/ReadLog", {"jobId": str(job), "follow": True})
    pieces = iter(log)
    text = ""
    while "first\n" not in text:
        text += text_of(next(pieces))
    assert "second" not in text
    gate.open()
    text += "".join(text_of(piece) for piece in pieces)
    assert (text, log.end) == ("first\nsecond\n", {})
    states += [state for message in watch for state in states_of(message)]
    assert states[-1] == "JOB_STATE_SUCCEEDED"
    reader.ok("JobsService/ListJobs")


def states_of(message):
    return [change["transition"]["jobState"] for change in message.get("changes", []) if "transition" in change]


def text_of(piece):
    return base64.b64decode(piece.get("data", "")).decode()


def test_a_stream_in_binary_is_the_same(world, broker, connect):
    eve = connect(role="VIEWER", user="eve")
    job = world.api(broker).submit(argv_spec("true"))
    request = jobs_service_pb2.WatchJobsRequest(job_ids=[job], beginning=jobs_service_pb2.WatchFromBeginning())
    answer = eve.begin("POST", "/muster.v1.JobsService/WatchJobs", envelope(request.SerializeToString()),
                       {"Content-Type": "application/connect+proto"})
    messages = map(jobs_service_pb2.WatchJobsResponse.FromString, Stream(answer, is_json=False))
    first = next(message for message in messages if message.changes)
    assert first.changes[0].transition.job_state == job_pb2.JOB_STATE_QUEUED


def test_a_stream_ends_with_its_error(connect, ada):
    stream = ada.stream("JobsService/ReadLog", {"jobId": "99"})
    assert list(stream) == []
    assert stream.end["error"]["code"] == "not_found" and reason_of(stream.end["error"]) == "UNKNOWN_JOB"
    nobody = connect(role=None)
    stream = nobody.stream("JobsService/WatchJobs")
    assert list(stream) == []
    assert stream.end["error"]["code"] == "unauthenticated"


@pytest.mark.parametrize("body, code", [
    (b"", "invalid_argument"), (envelope(b"{}") * 2, "invalid_argument"), (envelope(b"{}", flags=1), "internal"),
    (b"\0\0\0\0\x05{}", "invalid_argument"), (envelope(b"{"), "invalid_argument")])
def test_a_stream_takes_one_whole_message(ada, body, code):
    stream = Stream(ada.begin("POST", "/muster.v1.JobsService/WatchJobs", body, {"Content-Type": "application/connect+json"}))
    assert list(stream) == []
    assert stream.end["error"]["code"] == code
    ada.ok("JobsService/ListJobs")


def test_files_are_sent_in_the_frames_of_one_body(ada):
    import hashlib
    content = b"some input\n"
    name = hashlib.sha256(content).hexdigest()
    header = {"head": {"sha256": name, "sizeBytes": str(len(content))}}
    body = b"".join(envelope(json.dumps(part).encode()) for part in (
        header, {"chunk": base64.b64encode(content).decode()}))
    stream = Stream(ada.begin("POST", "/muster.v1.FilesService/UploadFiles", body,
                              {"Content-Type": "application/connect+json"}))
    answers = list(stream)
    assert stream.end == {}, stream.end
    assert len(answers) == 1
    assert "missingSha256" not in ada.ok("FilesService/FindMissingFiles", {"sha256": [name]})


def test_a_caller_that_goes_ends_its_stream(world, broker, connect):
    admin, leaver = connect(role="ADMIN"), connect(role="VIEWER", user="eve")
    eventually(lambda: gauge(admin, 'muster_queue_fill{queue="streams"}') == 0, "no stream is open")
    leaver.stream("JobsService/WatchJobs")
    eventually(lambda: gauge(admin, 'muster_queue_fill{queue="streams"}') == 1, "the stream is open")
    leaver.close()
    eventually(lambda: gauge(admin, 'muster_queue_fill{queue="streams"}') == 0, "the stream has ended")


def test_a_slow_reader_holds_no_more_than_its_bound(world, broker, agent, connect):
    """40 MB of log beside a reader that takes nothing: the broker's memory does not grow by it, and the rest comes."""
    job = world.api(broker).submit(script_spec("head -c 40000000 /dev/zero | tr '\\0' x"))
    eventually(lambda: world.api(broker).get(job).state == job_pb2.JOB_STATE_SUCCEEDED, "the job ends")
    reader = connect(role="VIEWER", user="eve")
    before = broker.peak_bytes()
    stream = reader.stream("JobsService/ReadLog", {"jobId": str(job)})
    pieces = iter(stream)
    size = len(text_of(next(pieces)))
    connect(role="VIEWER", user="eve").ok("JobsService/ListJobs")
    assert broker.peak_bytes() - before < 30_000_000
    size += sum(len(text_of(piece)) for piece in pieces)
    assert (size, stream.end) == (40_000_000, {})


# ---- what operators ask


def gauge(caller, name):
    answer, body = caller.request("GET", "/metrics")
    assert answer.status == 200, body
    for line in body.decode().splitlines():
        if line.startswith(name + " "):
            return float(line.rpartition(" ")[2])
    raise AssertionError(f"no {name} in {body.decode()}")


def test_probes_answer_everybody(connect):
    nobody = connect(role=None)
    for path in ("/healthz", "/readyz"):
        answer, body = nobody.request("GET", path)
        assert (answer.status, body) == (200, b"ok\n")
        answer, body = nobody.request("HEAD", path)
        assert (answer.status, body) == (200, b"")


def test_metrics_are_for_those_who_may_see_all_jobs(world, connect):
    admin = connect(role="VIEWER", user="eve")
    assert gauge(admin, "muster_jobs_queued") == 0
    world.api(world.broker).submit(argv_spec("true"))
    eventually(lambda: gauge(admin, "muster_jobs_queued") == 1, "the job is counted")
    assert gauge(admin, 'muster_queue_bound{queue="streams"}') == 10_000
    for role, status in ((None, 401), ("MEMBER", 403), ("SUBMITTER", 403)):
        answer, _ = connect(role=role, user="bob").request("GET", "/metrics")
        assert answer.status == status


def test_metrics_count_the_ends_of_jobs(world, connect, agent):
    api, viewer = world.api(world.broker), connect(role="VIEWER", user="eve")
    ended = [api.wait_end(api.submit(argv_spec(*argv))) for argv in (["true"], ["true"], ["false"])]
    held = api.submit(argv_spec("true"), held=True)
    api.cancel(held)
    assert len(ended) == 3
    for state, count in (("SUCCEEDED", 2), ("FAILED", 1), ("CANCELED", 1)):
        name = f'muster_jobs_ended_total{{state="{state}"}}'
        eventually(lambda: gauge(viewer, name) == count, f"{count} jobs are {state}")
    # A repeat of the end changes nothing.
    api.cancel(held)
    assert gauge(viewer, 'muster_jobs_ended_total{state="CANCELED"}') == 1


def test_metrics_may_be_opened(world):
    broker = world.make_broker(config=HTTP + "  open_metrics: true\n").start()
    caller = Connect(port_of(broker))
    assert gauge(caller, 'muster_build_info{version="0.1.0"}') == 1
    assert caller.error("JobsService/ListJobs")["code"] == "unauthenticated"
    caller.close()


def test_a_broker_that_stops_ends_streams_with_a_reason(world, broker, ada):
    stream = ada.stream("JobsService/WatchJobs")
    messages = []
    reader = threading.Thread(target=lambda: messages.extend(stream))
    reader.start()
    eventually(lambda: gauge_of(world, broker) == 1, "the stream is open")
    assert broker.terminate() == 0
    reader.join(60)
    assert stream.end["error"]["code"] == "unavailable" and reason_of(stream.end["error"]) == "SHUTTING_DOWN"
    assert not (broker.state_dir / "broker.http.port").exists()


def gauge_of(world, broker):
    caller = Connect(port_of(broker), make_token(world, os.urandom(4).hex(), user="eve", role="VIEWER"))
    try:
        return gauge(caller, 'muster_queue_fill{queue="streams"}')
    finally:
        caller.close()


def test_a_unix_socket_serves_the_same_to_token_holders(world):
    path = world.path("http.sock")
    broker = world.make_broker("--http-listen", path).start()
    eventually(path.exists, "the socket is there", alive=broker.check_alive)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666
    caller = Connect(path=path)
    assert caller.request("GET", "/healthz")[1] == b"ok\n"
    assert caller.error("JobsService/ListJobs")["code"] == "unauthenticated"
    caller.token = make_token(world, "one")
    caller.ok("JobsService/ListJobs")
    caller.close()
    broker.restart()
    eventually(path.exists, "the socket is there again", alive=broker.check_alive)
    caller.ok("JobsService/ListJobs")
    caller.close()


def exchange(broker, data, family=socket.AF_INET):
    """Sends the bytes, and returns what comes until the broker closes."""
    with socket.socket(family, socket.SOCK_STREAM) as raw:
        raw.settimeout(60)
        raw.connect(("127.0.0.1", port_of(broker)))
        raw.sendall(data)
        answer = b""
        while piece := raw.recv(65536):
            answer += piece
        return answer
