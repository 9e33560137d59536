"""Every RPC of the API through a plain client."""

import os
import pwd
import threading
import uuid

import grpc
from google.protobuf import descriptor_pb2
from grpc.health.v1 import health_pb2
from grpc.reflection.v1 import reflection_pb2, reflection_pb2_grpc
from grpc.reflection.v1alpha import reflection_pb2 as reflection_alpha_pb2
from grpc.reflection.v1alpha import reflection_pb2_grpc as reflection_alpha_pb2_grpc
from muster.v1 import clusters_service_pb2, job_pb2, jobs_service_pb2
import pytest

from harness.api import CANCELED, SUCCEEDED, argv_spec, bad_fields, error_info, script_spec
from harness.wait import eventually


def refusal(call, code):
    """The error of a call that must be refused with this code."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    assert caught.value.code() == code, caught.value
    return caught.value


def test_health_of_the_server_and_of_each_service(api):
    for service in ("", *(SERVICES - {"grpc.health.v1.Health"})):
        answer = api.health.Check(health_pb2.HealthCheckRequest(service=service), timeout=60)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING, service


REFLECTIONS = {
    "v1": (reflection_pb2, reflection_pb2_grpc),
    "v1alpha": (reflection_alpha_pb2, reflection_alpha_pb2_grpc),
}
SERVICES = {
    "muster.v1.JobsService", "muster.v1.ClustersService", "muster.v1.FilesService", "muster.v1.IdentityService",
    "muster.v1.ProjectsService", "muster.v1.SecretsService", "muster.v1.AuditService", "muster.v1.UsageService",
    "muster.agent.v1.AgentLinkService", "muster.agent.v1.LogLinkService", "muster.agent.v1.FileLinkService",
    "grpc.health.v1.Health",
}


def reflect(api, version, **fields):
    messages, services = REFLECTIONS[version]
    stub = services.ServerReflectionStub(api.channel)
    request = messages.ServerReflectionRequest(**fields)
    return next(iter(stub.ServerReflectionInfo(iter([request]), timeout=60)))


@pytest.mark.parametrize("version", REFLECTIONS)
def test_reflection_names_the_services_and_describes_each(api, version):
    names = {s.name for s in reflect(api, version, list_services="").list_services_response.service}
    assert names >= SERVICES
    for name in names:
        answer = reflect(api, version, file_containing_symbol=name).file_descriptor_response
        files = [descriptor_pb2.FileDescriptorProto.FromString(f) for f in answer.file_descriptor_proto]
        described = {f"{f.package}.{s.name}": {m.name for m in s.method} for f in files for s in f.service}
        assert described[name], name
        # A client can build the messages of what it is given, without asking for more.
        assert {d for f in files for d in f.dependency} <= {f.name for f in files}


def test_reflection_of_a_symbol_that_is_not_there_says_so(api):
    answer = reflect(api, "v1", file_containing_symbol="muster.v1.Nothing")
    assert answer.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]
    assert "muster.v1.Nothing" in answer.error_response.error_message
    assert answer.original_request.file_containing_symbol == "muster.v1.Nothing"
    assert reflect(api, "v1").error_response.error_code == grpc.StatusCode.INVALID_ARGUMENT.value[0]


def test_submitted_job_is_answered_with_defaults_filled_in(api, agent):
    job = api.get(api.submit(argv_spec("/bin/echo", "x")))
    assert job.spec.name == job.name == "echo"
    assert job.project == "default"
    assert job.spec.nodes == 1
    assert job.spec.resources.cpu_millis == 0  # which the cluster fills in
    assert job.user == pwd.getpwuid(os.geteuid()).pw_name


def test_request_id_makes_a_repeat_harmless(api, agent):
    name = str(uuid.uuid4())
    request = jobs_service_pb2.SubmitJobRequest(spec=argv_spec("true"), request_id=name)
    first = api.jobs.SubmitJob(request, timeout=60)
    second = api.jobs.SubmitJob(request, timeout=60)
    assert not first.repeated_request
    assert second.repeated_request
    assert first.job_id == second.job_id
    assert len(api.list_all()) == 1


def test_request_ids_of_one_batch_are_each_checked(api, agent):
    ids = [str(uuid.uuid4()) for _ in range(3)]
    first = api.submit_many([argv_spec("true")] * 3, ids)
    assert len(set(first)) == 3
    assert api.submit_many([argv_spec("true")] * 3, ids) == first


def test_the_same_request_id_in_parallel_makes_one_job(api, agent):
    name = str(uuid.uuid4())
    got = []
    threads = [threading.Thread(target=lambda: got.append(api.submit(argv_spec("true"), name))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 8 and len(set(got)) == 1


def test_a_batch_is_accepted_whole_or_not_at_all(api, agent):
    specs = [argv_spec("true"), argv_spec("true", priority=5000), argv_spec("true")]
    error = refusal(lambda: api.submit_many(specs), grpc.StatusCode.INVALID_ARGUMENT)
    (field,) = bad_fields(error)
    assert "1" in field and "priority" in field
    assert not api.list_all()


def test_validate_only_accepts_nothing(api, agent):
    assert api.submit(argv_spec("true"), validate_only=True) == 0
    assert not api.list_all()
    refusal(lambda: api.submit(argv_spec(), validate_only=True), grpc.StatusCode.INVALID_ARGUMENT)


def test_pages_cover_every_job_once_newest_first(api, agent):
    ids = api.submit_many([argv_spec("true", labels={"n": str(i)}) for i in range(25)])
    seen, token, pages = [], "", 0
    while True:
        page = api.list_page(page_size=7, page_token=token)
        assert len(page.jobs) <= 7
        seen += [job.id for job in page.jobs]
        pages += 1
        token = page.next_page_token
        if not token:
            break
        assert pages < 30
    assert seen == sorted(ids, reverse=True)


def test_lists_leave_the_spec_out_unless_asked(api, agent):
    api.submit(argv_spec("true", labels={"team": "vision"}))
    (bare,) = api.list_all()
    assert not bare.HasField("spec") and bare.labels["team"] == "vision"
    (full,) = api.list_all(include_spec=True)
    assert list(full.spec.command.argv.args) == ["true"]


def test_a_page_token_of_another_filter_or_none_is_refused(api, agent):
    api.submit_many([argv_spec("true")] * 5)
    token = api.list_page(page_size=2).next_page_token
    for fields in ({"page_token": token, "filter": "state = FAILED"}, {"page_token": "rubbish"}):
        error = refusal(lambda f=fields: api.list_page(**f), grpc.StatusCode.INVALID_ARGUMENT)
        assert "page_token" in bad_fields(error)


def test_a_negative_page_size_is_refused_and_a_large_one_cut(api):
    error = refusal(lambda: api.list_page(page_size=-1), grpc.StatusCode.INVALID_ARGUMENT)
    assert "page_size" in bad_fields(error)
    assert not api.list_page(page_size=1_000_000).jobs


@pytest.fixture
def zoo(api, agent):
    """Jobs that differ in everything that a filter can ask for."""
    cases = {
        "good": argv_spec("true", name="good", labels={"team": "vision"}),
        "bad": argv_spec("false", name="bad", labels={"team": "speech"}),
        "other": argv_spec("true", name="other", project="robots"),
    }
    ids = {name: api.submit(spec) for name, spec in cases.items()}
    for job_id in ids.values():
        api.wait_end(job_id)
    return ids


@pytest.mark.parametrize("text, names", [
    ("", {"good", "bad", "other"}),
    ("state = SUCCEEDED", {"good", "other"}),
    ("state = FAILED", {"bad"}),
    ("name = bad", {"bad"}),
    ('name = "good"', {"good"}),
    ("project = robots", {"other"}),
    ("cluster = box", {"good", "bad", "other"}),
    ("cluster = elsewhere", set()),
    ('label.team = "vision"', {"good"}),
    ('label.team != "vision"', {"bad"}),
    ("NOT state = FAILED", {"good", "other"}),
    ("state = FAILED OR project = robots", {"bad", "other"}),
    ("(state = FAILED OR state = SUCCEEDED) AND NOT label.team = vision", {"bad", "other"}),
    ('create_time > "2020-01-01T00:00:00Z"', {"good", "bad", "other"}),
    ('create_time < "2020-01-01T00:00:00Z"', set()),
])
def test_filters(api, zoo, text, names):
    assert {job.name for job in api.list_all(filter=text)} == names


@pytest.mark.parametrize("text", ["state =", "colour = red", "state = BLUE", "state = FAILED AND", "(state = FAILED",
                                  'create_time > "yesterday"', "name < b", "x" * 5000, "NOT " * 1000 + "name = a"])
def test_a_bad_filter_says_where_and_what(api, text):
    error = refusal(lambda: api.list_page(filter=text), grpc.StatusCode.INVALID_ARGUMENT)
    assert bad_fields(error).get("filter")


def test_cancel_of_an_unknown_job_cancels_none(api, agent, world):
    gate = world.gate()
    job_id = api.submit(script_spec(gate.script()))
    error = refusal(lambda: api.cancel(job_id, 999), grpc.StatusCode.NOT_FOUND)
    assert "999" in error.details()
    assert not api.get(job_id).cancel_requested
    gate.open()
    api.wait_state(job_id, SUCCEEDED)


@pytest.mark.parametrize("call", ["get", "log", "watch"])
def test_an_unknown_job_is_not_found(api, call):
    calls = {"get": lambda: api.get(4711), "log": lambda: api.read_log(4711),
             "watch": lambda: list(api.watch(job_ids=[4711], until_terminal=True))}
    error = refusal(calls[call], grpc.StatusCode.NOT_FOUND)
    assert "4711" in error.details()


def test_unknown_cluster(api, agent):
    request = clusters_service_pb2.GetClusterRequest(name="atlantis")
    error = refusal(lambda: api.clusters.GetCluster(request, timeout=60), grpc.StatusCode.NOT_FOUND)
    assert "atlantis" in error.details()
    spec = argv_spec("true")
    spec.placement.clusters.append("atlantis")
    error = refusal(lambda: api.submit(spec), grpc.StatusCode.NOT_FOUND)
    assert "atlantis" in error.details()


def test_list_clusters_by_name_in_pages(api, world, agent):
    world.make_agent("alpha").start()
    everything = api.clusters.ListClusters(clusters_service_pb2.ListClustersRequest(), timeout=60)
    assert [c.name for c in everything.clusters] == ["alpha", "box"]
    first = api.clusters.ListClusters(clusters_service_pb2.ListClustersRequest(page_size=1), timeout=60)
    assert [c.name for c in first.clusters] == ["alpha"]
    second = api.clusters.ListClusters(
        clusters_service_pb2.ListClustersRequest(page_size=1, page_token=first.next_page_token), timeout=60)
    assert [c.name for c in second.clusters] == ["box"] and not second.next_page_token


def test_watch_tells_the_past_and_the_future_once_and_in_order(api, agent, world):
    gate = world.gate()
    job_id = api.submit(script_spec(gate.script()))
    api.wait_state(job_id, job_pb2.JOB_STATE_RUNNING)
    steps = []
    for change in api.changes(job_ids=[job_id], until_terminal=True):
        assert change.job.id == job_id
        if not change.HasField("transition"):
            continue
        steps.append(change.transition)
        if change.transition.job_state == job_pb2.JOB_STATE_RUNNING:
            gate.open()
    assert [step.job_sequence for step in steps] == list(range(1, len(steps) + 1))
    assert steps[-1].job_state == SUCCEEDED


def test_watch_resumes_after_a_sequence_number(api, agent):
    job_id = api.submit(argv_spec("true"))
    api.wait_state(job_id, SUCCEEDED)
    steps = api.transitions(job_id)
    changes = api.changes(job_ids=[job_id], until_terminal=True, after=steps[1].sequence)
    assert [change.transition for change in changes if change.HasField("transition")] == steps[2:]


def test_watch_from_now_on_by_filter(api, agent):
    api.wait_end(api.submit(argv_spec("true", labels={"team": "a"})))
    stream = api.watch(filter="label.team = a", after=None)
    # The first message says where "now" is; what is submitted from here on must be seen.
    assert next(stream).HasField("heartbeat")
    api.submit(argv_spec("true", labels={"team": "b"}))
    wanted = api.submit(argv_spec("true", labels={"team": "a"}))
    seen = []
    while not seen or seen[-1][1] != SUCCEEDED:
        seen += [(change.job.id, change.job.state) for change in next(stream).changes]
    stream.cancel()
    assert {job_id for job_id, _ in seen} == {wanted}
    assert seen[0][1] == job_pb2.JOB_STATE_QUEUED


def test_watch_of_ids_and_filter_together_is_refused(api, agent):
    job_id = api.submit(argv_spec("true"))
    refusal(lambda: list(api.watch(job_ids=[job_id], filter="state = FAILED")), grpc.StatusCode.INVALID_ARGUMENT)


def test_log_of_a_job_without_a_run(api, agent, world):
    agent.kill()
    job_id = api.submit(argv_spec("echo", "x"))
    data, end = api.read_log(job_id)
    assert (data, end) == (b"", jobs_service_pb2.LOG_END_MORE_LATER)


def test_log_of_an_unknown_run_or_rank_is_refused(api, agent):
    job_id = api.submit(argv_spec("echo", "x"))
    api.wait_state(job_id, SUCCEEDED)
    refusal(lambda: api.read_log(job_id, run=2), grpc.StatusCode.NOT_FOUND)
    error = refusal(lambda: api.read_log(job_id, rank=5), grpc.StatusCode.NOT_FOUND)
    assert error_info(error).reason == "NO_SUCH_RANK"


def test_two_clients_follow_one_log(api, agent, world):
    gate = world.gate()
    job_id = api.submit(script_spec(f"seq 1000; {gate.script()}; seq 1000"))
    results = []
    threads = [threading.Thread(target=lambda: results.append(api.stdout(job_id))) for _ in range(2)]
    for thread in threads:
        thread.start()
    gate.open()
    for thread in threads:
        thread.join()
    wanted = "".join(f"{n}\n" for n in range(1, 1001)).encode() * 2
    assert results == [wanted, wanted]


def test_a_queued_job_says_why_it_waits(api, agent):
    agent.kill()
    eventually(lambda: not api.connected("box"), "the broker has noticed that the agent is gone")
    job_id = api.submit(argv_spec("true"))
    job = api.get(job_id)
    assert job.state == job_pb2.JOB_STATE_QUEUED
    assert "box" in job.state_reason.message
    api.cancel(job_id)
    assert api.get(job_id).state == CANCELED


def test_a_job_waits_for_the_first_cluster(api, world):
    job_id = api.submit(argv_spec("true"))
    job = api.get(job_id)
    assert job.state == job_pb2.JOB_STATE_QUEUED
    assert "no cluster" in job.state_reason.message
    world.make_agent().start()
    api.wait_state(job_id, SUCCEEDED)


def test_tcp_on_loopback_serves_the_same_api(world):
    broker = world.make_broker("--listen", "127.0.0.1:0").start()
    port = broker.tcp_port()
    assert world.api(address=f"127.0.0.1:{port}").healthy()
