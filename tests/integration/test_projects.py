"""Projects, with real processes: who sees and changes whose jobs, where they may run, and the verbs."""

import json
import threading

import grpc
import pytest

from muster.v1 import (files_service_pb2, identity_service_pb2, identity_service_pb2_grpc, job_pb2, jobs_service_pb2,
                       projects_service_pb2, projects_service_pb2_grpc)

from harness.api import CALL_TIMEOUT_S, bad_fields, error_info, script_spec
from harness.files import parts, sha256, tree_of
from harness.wait import eventually

OK, USAGE, NOT_ALLOWED = 0, 2, 4
NOT_FOUND = grpc.StatusCode.NOT_FOUND


def bearer(token):
    return (("authorization", f"Bearer {token}"),)


def reason_of(call):
    """The reason of the error that a call ends with; empty: it is answered."""
    try:
        call()
    except grpc.RpcError as error:
        return error_info(error).reason
    return ""


class Person:
    """A user with a token, whose role is that of a member unless told otherwise."""

    def __init__(self, world, user, role="MEMBER"):
        self.world, self.user = world, user
        self.api = world.api(world.broker)
        request = identity_service_pb2.CreateTokenRequest(
            name="t", user=user, role=identity_service_pb2.AccessRole.Value(f"ACCESS_ROLE_{role}"))
        identity = identity_service_pb2_grpc.IdentityServiceStub(self.api.channel)
        self.token = identity.CreateToken(request, timeout=CALL_TIMEOUT_S).secret
        self.projects = projects_service_pb2_grpc.ProjectsServiceStub(self.api.channel)

    def call(self, method, request):
        return method(request, metadata=bearer(self.token), timeout=CALL_TIMEOUT_S)

    def submit(self, project, text="true", **fields):
        spec = script_spec(text, project=project, nodes=1)
        return self.call(self.api.jobs.SubmitJob, jobs_service_pb2.SubmitJobRequest(spec=spec, **fields)).job_id

    def list(self, text=""):
        return sorted(job.id for job in self.call(self.api.jobs.ListJobs,
                                                  jobs_service_pb2.ListJobsRequest(filter=text)).jobs)

    def cli(self, *args, **kwargs):
        return self.world.cli(*args, env={"MUSTER_TOKEN": self.token}, **kwargs)


@pytest.fixture(name="people")
def people_fixture(world, broker):
    """ada submits into vision, bob into speech, carol looks at vision, olga operates it, amy is its admin."""
    del broker
    for project in ("vision", "speech"):
        world.cli("project", "create", project)
    for project, member, role in (("vision", "ada", "submitter"), ("vision", "carol", "viewer"),
                                  ("vision", "olga", "operator"), ("vision", "amy", "admin"),
                                  ("speech", "bob", "submitter")):
        world.cli("project", "add", project, member, "--role", role)
    return {name: Person(world, name) for name in ("ada", "bob", "carol", "olga", "amy")}


def calls_on(person, job):
    """Every call that names a job, as (name, call)."""
    jobs, files = person.api.jobs, person.api.files

    def read(stream):
        return lambda: list(stream())

    return [
        ("get", lambda: person.call(jobs.GetJob, jobs_service_pb2.GetJobRequest(job_id=job))),
        ("history", lambda: person.call(jobs.ListTransitions, jobs_service_pb2.ListTransitionsRequest(job_id=job))),
        ("watch", read(lambda: person.call(jobs.WatchJobs, jobs_service_pb2.WatchJobsRequest(job_ids=[job])))),
        ("cancel", lambda: person.call(jobs.CancelJobs, jobs_service_pb2.CancelJobsRequest(job_ids=[job]))),
        ("hold", lambda: person.call(jobs.HoldJobs, jobs_service_pb2.HoldJobsRequest(job_ids=[job]))),
        ("release", lambda: person.call(jobs.ReleaseJobs, jobs_service_pb2.ReleaseJobsRequest(job_ids=[job]))),
        ("update", lambda: person.call(jobs.UpdateJob, jobs_service_pb2.UpdateJobRequest(job_id=job, priority=7))),
        ("rerun", lambda: person.call(jobs.RerunJobs, jobs_service_pb2.RerunJobsRequest(job_ids=[job]))),
        ("logs", lambda: person.call(jobs.ListLogs, jobs_service_pb2.ListLogsRequest(job_id=job))),
        ("log", read(lambda: person.call(jobs.ReadLog, jobs_service_pb2.ReadLogRequest(job_id=job)))),
        ("files", read(lambda: person.call(files.FetchFiles, files_service_pb2.FetchFilesRequest(job_id=job)))),
    ]


def test_two_projects_do_not_reach_each_other(world, agent, people):
    ada, bob = people["ada"], people["bob"]
    secret = ada.submit("vision", "echo canary > out; echo canary")
    world.api(world.broker).wait_end(secret)
    waits = ada.submit("vision", held=True)
    own = bob.submit("speech", held=True)
    for job in (secret, waits):
        # A job that there is not is answered alike, so that nothing shows which numbers there are.
        for (name, call), (_, nothing) in zip(calls_on(bob, job), calls_on(bob, 999999)):
            assert (name, reason_of(call)) == (name, "UNKNOWN_JOB")
            assert reason_of(nothing) == "UNKNOWN_JOB", name
    assert bob.list() == [own]
    for text in ("project = vision", "user = ada", f"id = {secret}", "project = vision OR user = ada",
                 "NOT project = speech"):
        assert bob.list(text) == [], text
        count = bob.call(bob.api.jobs.CountJobs, jobs_service_pb2.CountJobsRequest(
            filter=text, group_by=[jobs_service_pb2.JOB_GROUPING_PROJECT]))
        assert (count.total, len(count.counts)) == (0, 0), text
        for change in (bob.api.jobs.CancelJobs(jobs_service_pb2.CancelJobsRequest(filter=text),
                                               metadata=bearer(bob.token), timeout=CALL_TIMEOUT_S),
                       bob.api.jobs.HoldJobs(jobs_service_pb2.HoldJobsRequest(filter=text),
                                             metadata=bearer(bob.token), timeout=CALL_TIMEOUT_S),
                       bob.api.jobs.RerunJobs(jobs_service_pb2.RerunJobsRequest(filter=text),
                                              metadata=bearer(bob.token), timeout=CALL_TIMEOUT_S)):
            assert change.matched_count == 0, text
    everything = bob.call(bob.api.jobs.CancelJobs, jobs_service_pb2.CancelJobsRequest(filter="state = QUEUED"))
    assert [job.id for job in everything.jobs] == [own]
    kept = world.api(world.broker).get(waits)
    assert (kept.state, kept.priority, kept.held) == (job_pb2.JOB_STATE_QUEUED, 0, True)
    for verb in ("show", "why", "logs", "events"):
        assert "UNKNOWN_JOB" in bob.cli(verb, secret, check=False).stderr, verb
    assert "canary" not in bob.cli("list", "-o", "json").stdout


def test_a_digest_gives_nobody_a_file_of_another_project(world, broker, agent, people):
    """bob knows the digest of ada's file, and gets it in no way; her project has it, also after a restart."""
    ada, bob, olga = people["ada"], people["bob"], people["olga"]
    canary = b"canary of vision\n"
    hers, his = tree_of({b"in": canary}), tree_of({b"mine": b"bob's\n", b"theirs": canary})

    def bring(person, contents):
        return person.call(person.api.files.UploadFiles, parts(contents)).stored_files

    def lacks(person, content):
        request = files_service_pb2.FindMissingFilesRequest(sha256=[sha256(content)])
        return list(person.call(person.api.files.FindMissingFiles, request).missing_sha256) == [sha256(content)]

    def submit(person, project, tree):
        spec = script_spec("cat in theirs 2>/dev/null", project=project, nodes=1)
        spec.uploads.add(tree_sha256=sha256(tree))
        return person.call(person.api.jobs.SubmitJob, jobs_service_pb2.SubmitJobRequest(spec=spec)).job_id

    assert bring(ada, [canary, hers]) == 2
    first = submit(ada, "vision", hers)
    api = world.api(broker)
    api.wait_end(first)
    assert api.stdout(first) == canary
    assert bring(bob, [b"bob's\n", his]) == 2
    for restarted in (False, True):
        if restarted:
            broker.restart()
        assert lacks(bob, canary) and lacks(bob, hers)
        download = files_service_pb2.DownloadFileRequest(sha256=sha256(canary))
        assert reason_of(lambda: list(bob.call(bob.api.files.DownloadFile, download))) == "FILE_NOT_FOUND"
        assert reason_of(lambda: submit(bob, "speech", hers)) == "FILES_MISSING"
        assert reason_of(lambda: submit(bob, "speech", his)) == "FILES_MISSING"
        assert not lacks(olga, canary) and not lacks(olga, hers)
        submit(olga, "vision", hers)
        rerun = olga.call(olga.api.jobs.RerunJobs, jobs_service_pb2.RerunJobsRequest(job_ids=[first]))
        assert len(rerun.jobs) == 1
    kept = broker.state_dir / "files" / "kept"
    before = sorted(kept.iterdir())
    assert bring(bob, [canary]) == 1, "nothing tells that others have the same bytes"
    assert sorted(kept.iterdir()) == before
    api.wait_end(submit(bob, "speech", his))


def test_a_watch_shows_the_jobs_of_ones_projects_alone(world, broker, people):
    del broker
    ada, bob = people["ada"], people["bob"]
    stream = bob.call(bob.api.jobs.WatchJobs, jobs_service_pb2.WatchJobsRequest())
    stream.initial_metadata()
    next(stream)  # the position where it begins
    ada.submit("vision", held=True)
    own = bob.submit("speech", held=True)
    seen = []
    while own not in seen:
        seen += [change.job.id for change in next(stream).changes]
    stream.cancel()
    assert set(seen) == {own}


def test_roles_in_a_project(world, broker, people):
    del broker
    ada, carol, olga = people["ada"], people["carol"], people["olga"]
    job = ada.submit("vision", held=True)
    assert carol.list() == [job]
    assert carol.cli("cancel", job, check=False).returncode == NOT_ALLOWED
    assert carol.cli("run", "--project", "vision", "--", "true", check=False).returncode == NOT_ALLOWED
    other = olga.submit("vision", held=True)
    assert ada.list() == [job, other]
    assert reason_of(calls_on(ada, other)[3][1]) == "UNKNOWN_JOB", "a submitter cancels own jobs alone"
    assert reason_of(calls_on(olga, job)[3][1]) == ""
    me = json.loads(ada.cli("whoami", "-o", "json").stdout)
    assert (me["role"], me["memberships"]) == (
        "ACCESS_ROLE_MEMBER", [{"project": "vision", "role": "ACCESS_ROLE_SUBMITTER"}])
    assert "project vision: submitter" in ada.cli("whoami").stdout


def test_where_one_may_not_submit_is_not_told_apart_from_where_there_is_nothing(world, broker, people):
    del broker
    bob = people["bob"]
    answers = []
    for project in ("vision", "nowhere", "default"):
        refused = bob.cli("run", "--project", project, "--", "true", check=False)
        assert refused.returncode == NOT_ALLOWED
        answers.append(refused.stderr.replace(project, "X"))
    assert answers[0] == answers[1] == answers[2] and "PROJECT_NOT_ALLOWED" in answers[0]
    assert "NO_SUCH_PROJECT" in world.cli("run", "--project", "nowhere", "--", "true", check=False).stderr
    assert bob.cli("projects", "-q").stdout == "speech\n"
    shown = [bob.cli("project", "show", name, check=False).stderr.replace(name, "X") for name in ("vision", "nowhere")]
    assert shown[0] == shown[1] and "NO_SUCH_PROJECT" in shown[0]


def test_without_projects_every_name_is_good(world, broker, agent):
    del broker, agent
    for project in ("default", "anything"):
        world.cli("run", "-q", "--project", project, "--hold", "--", "true")
    assert world.cli("projects", "-q").stdout == "default\n"
    world.cli("project", "add", "default", "ada", "--role", "viewer")
    assert Person(world, "ada").list() == [1]
    world.cli("run", "-q", "--project", "more", "--hold", "--", "true")


def test_members_are_made_by_the_admins_of_the_project(world, broker, people):
    del broker
    amy, ada = people["amy"], people["ada"]
    amy.cli("project", "add", "vision", "dan", "--role", "submitter")
    dan = Person(world, "dan")
    job = dan.submit("vision", held=True)
    amy.cli("project", "remove", "vision", "dan")
    assert reason_of(calls_on(dan, job)[0][1]) == "NOT_ALLOWED"
    for refused in (ada.cli("project", "add", "vision", "dan", "--role", "viewer", check=False),
                    amy.cli("project", "set", "vision", "--cluster", "any", check=False),
                    amy.cli("project", "create", "mine", check=False)):
        assert refused.returncode == NOT_ALLOWED
    beyond = amy.cli("project", "add", "speech", "amy", "--role", "admin", check=False)
    assert "NO_SUCH_PROJECT" in beyond.stderr


def test_a_stream_ends_with_the_membership_that_let_it_in(world, broker, people):
    del broker
    ada, carol = people["ada"], people["carol"]
    stream = carol.call(carol.api.jobs.WatchJobs, jobs_service_pb2.WatchJobsRequest())
    stream.initial_metadata()
    next(stream)
    ends, seen = [], []

    def read():
        try:
            for answer in stream:
                seen.extend(answer.changes)
        except grpc.RpcError as error:
            ends.append(error)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    world.cli("project", "remove", "vision", "carol")
    ada.submit("vision", held=True)
    reader.join(CALL_TIMEOUT_S)
    assert error_info(ends[0]).reason == "RIGHTS_CHANGED"
    assert not seen


def test_what_a_project_may_use_is_checked_and_placement_keeps_to_it(world, broker, people):
    ada = people["ada"]
    world.make_agent("a").start()
    world.make_agent("b").start()
    eventually(lambda: len(json.loads(world.cli("clusters", "-o", "json").stdout)["clusters"]) == 2, "both are there")
    world.cli("project", "set", "vision", "--cluster", "b", "--image", "nvcr.io/nvidia", "--account", "v1")
    refused = ada.cli("run", "--project", "vision", "--cluster", "a", "--", "true", check=False)
    assert 'cluster: the project "vision" may not use "a"; choose one of b' in refused.stderr
    image = ada.cli("run", "--project", "vision", "--image", "nvcr.io/nvidia-labs/x", "--", "true", check=False)
    assert "image" in image.stderr and "choose one of nvcr.io/nvidia" in image.stderr
    spec = script_spec("true", project="vision")
    spec.slurm.account = "v2"
    with pytest.raises(grpc.RpcError) as account:
        ada.call(ada.api.jobs.SubmitJob, jobs_service_pb2.SubmitJobRequest(spec=spec))
    assert list(bad_fields(account.value)) == ["spec.slurm.account"]
    for _ in range(4):
        job = ada.submit("vision")
        done = world.api(world.broker).wait_end(job)
        assert done.runs[0].cluster == "b"
    world.cli("project", "set", "vision", "--cluster", "nowhere", "--account", "any", "--image", "any")
    plan = ada.cli("plan", "--project", "vision", "--", "true", check=False)
    assert 'the project "vision" may not use it' in plan.stdout + plan.stderr
    broker.restart()
    placed = ada.cli("run", "--project", "vision", "--", "true", check=False)
    assert "CANNOT_BE_PLACED" in placed.stderr and "may not use it" in placed.stderr


def test_a_job_that_waits_says_that_its_project_may_not_go_there(world, broker, people):
    del broker
    ada = people["ada"]
    job = ada.submit("vision")
    world.cli("project", "set", "vision", "--cluster", "b")
    world.make_agent("a").start()
    eventually(lambda: 'the project "vision" may not use it' in ada.cli("why", job).stdout, "why says so")
    assert world.api(world.broker).get(job).state == job_pb2.JOB_STATE_QUEUED
    world.cli("project", "set", "vision", "--cluster", "any")
    assert world.api(world.broker).wait_end(job).runs[0].cluster == "a"


def test_an_archived_project_takes_no_jobs_and_goes_when_it_has_none(world, broker, people):
    ada = people["ada"]
    job = ada.submit("vision", held=True)
    world.cli("project", "archive", "vision")
    assert "PROJECT_ARCHIVED" in ada.cli("run", "--project", "vision", "--", "true", check=False).stderr
    assert ada.list() == [job], "its members see the old ones"
    assert world.cli("projects", "-q").stdout == "default\nspeech\n"
    assert world.cli("projects", "-q", "--all").stdout == "default\nspeech\nvision\n"
    broker.restart()
    world.cli("project", "set", "vision", "--restore")
    assert ada.submit("vision", held=True) > job
    assert json.loads(world.cli("project", "archive", "speech", "-o", "json").stdout) == {"deleted": True}
    assert "NO_SUCH_PROJECT" in world.cli("project", "show", "speech", check=False).stderr
    assert world.cli("project", "archive", "default", check=False).returncode != OK


def test_the_verbs_show_what_was_made(world, broker):
    world.cli("project", "create", "vision", "--description", "sees things", "--cluster", "lab", "--pool", "gpu",
              "--pool", "big", "--account", "v1", "--image", "nvcr.io/nvidia")
    world.cli("project", "add", "vision", "staff", "--group", "--role", "viewer")
    world.cli("project", "add", "vision", "ada", "--role", "viewer")
    world.cli("project", "add", "vision", "ada", "--role", "admin")
    broker.restart()
    shown = world.cli_json("project", "show", "vision")
    assert shown["limits"] == {"clusters": ["lab"], "pools": ["gpu", "big"], "accounts": ["v1"],
                               "images": ["nvcr.io/nvidia"]}
    assert [(one["kind"], one["name"], one["role"]) for one in shown["members"]] == [
        ("MEMBER_KIND_USER", "ada", "ACCESS_ROLE_ADMIN"), ("MEMBER_KIND_GROUP", "staff", "ACCESS_ROLE_VIEWER")]
    page = world.cli("project", "show", "vision").stdout
    assert "gpu, big" in page and "staff" in page and "group" in page
    assert "sees things" in world.cli("projects").stdout
    again = world.cli("project", "create", "vision", check=False)
    assert "PROJECT_EXISTS" in again.stderr
    assert "NO_SUCH_MEMBER" in world.cli("project", "remove", "vision", "bob", check=False).stderr
    assert world.cli("project", "add", "vision", "bob", "--role", "king", check=False).returncode == USAGE
    assert world.cli("project", "create", "Not A Name", check=False).returncode != OK
    assert "project_member_set" in broker.log()


def test_what_a_service_refuses(world, broker):
    del broker
    admin = projects_service_pb2_grpc.ProjectsServiceStub(world.api(world.broker).channel)
    world.cli("project", "create", "vision")
    bad = [
        (admin.CreateProject, projects_service_pb2.CreateProjectRequest(name="a b")),
        (admin.CreateProject, projects_service_pb2.CreateProjectRequest(name="x", description="\x07")),
        (admin.UpdateProject, projects_service_pb2.UpdateProjectRequest(
            name="vision", clusters=projects_service_pb2.AllowedNames(names=["a b"]))),
        (admin.UpdateProject, projects_service_pb2.UpdateProjectRequest(
            name="vision", images=projects_service_pb2.AllowedNames(names=["x"] * 201))),
        (admin.SetMember, projects_service_pb2.SetMemberRequest(project="vision")),
        (admin.SetMember, projects_service_pb2.SetMemberRequest(
            project="vision", member=projects_service_pb2.ProjectMember(name="ada", role="ACCESS_ROLE_MEMBER"))),
        (admin.ArchiveProject, projects_service_pb2.ArchiveProjectRequest(name="default")),
    ]
    for method, request in bad:
        with pytest.raises(grpc.RpcError) as refused:
            method(request, timeout=CALL_TIMEOUT_S)
        assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT, request
    with pytest.raises(grpc.RpcError) as refused:
        admin.GetProject(projects_service_pb2.GetProjectRequest(name="nowhere"), timeout=CALL_TIMEOUT_S)
    assert refused.value.code() == NOT_FOUND
