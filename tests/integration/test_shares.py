"""Shares and quotas of projects, with real processes on one machines cluster."""

import json

import grpc
import pytest
from muster.v1 import facts_pb2, job_pb2, projects_service_pb2, projects_service_pb2_grpc

from harness.api import CALL_TIMEOUT_S, RUNNING, error_info, script_spec
from harness.wait import eventually

QUEUED = job_pb2.JOB_STATE_QUEUED
USAGE = 2


def start_agent(world, runs):
    """A cluster whose room the broker shares out: it takes so many runs at the same time."""
    return world.make_agent(config=f"max_active_runs: {runs}\n" + world.machines_config(cpus=64)).start()


def submit_gated(world, project, count):
    """Jobs that run until their gates are opened: (job, gate)."""
    api = world.api(world.broker)
    made = []
    for _ in range(count):
        gate = world.gate()
        made.append((api.submit(script_spec(gate.script(), project=project, nodes=1)), gate))
    return made


def project_of(world, name):
    stub = projects_service_pb2_grpc.ProjectsServiceStub(world.api(world.broker).channel)
    return stub.GetProject(projects_service_pb2.GetProjectRequest(name=name), timeout=CALL_TIMEOUT_S).project


def not_queued(api, jobs):
    return [job for job, _ in jobs if api.get(job).state != QUEUED]


def open_one(api, jobs):
    """Lets one run of these end."""
    job, gate = next((job, gate) for job, gate in jobs if api.get(job).state == RUNNING)
    gate.open()
    api.wait_end(job)


def wait_running(api, jobs, count):
    eventually(lambda: len([job for job, _ in jobs if api.get(job).state == RUNNING]) == count, f"{count} runs")


def test_two_projects_share_a_cluster_by_their_weights(world, broker):
    del broker
    api = world.api(world.broker)
    world.cli("project", "create", "vision", "--weight", "3")
    world.cli("project", "create", "speech")
    speech = submit_gated(world, "speech", 8)  # older, and served by its share all the same
    vision = submit_gated(world, "vision", 8)
    start_agent(world, 4)
    wait_running(api, vision, 3)
    wait_running(api, speech, 1)
    for project, others in ((vision, speech), (speech, vision), (vision, speech)):
        before = (len(not_queued(api, project)), len(not_queued(api, others)))
        open_one(api, project)
        eventually(lambda: len(not_queued(api, project)) == before[0] + 1, "the next job")
        assert len(not_queued(api, others)) == before[1], "what one project gives up is its own"
        wait_running(api, vision, 3)
        wait_running(api, speech, 1)
    shown = {row["name"]: row for row in json.loads(world.cli("projects", "-o", "json").stdout)["projects"]}
    assert shown["vision"]["use"]["fair_share"] == pytest.approx(0.75)
    assert shown["speech"]["use"]["fair_share"] == pytest.approx(0.25)
    assert int(shown["vision"]["use"]["active_runs"]) == 3
    table = world.cli("projects").stdout
    assert "75.0%" in table and "25.0%" in table, table
    for _, gate in vision + speech:
        gate.open()


def test_a_job_waits_for_its_quota_and_says_so(world, broker):
    del broker
    api = world.api(world.broker)
    world.cli("project", "create", "vision", "--quota", "active=1,queued=2")
    start_agent(world, 8)
    jobs = submit_gated(world, "vision", 1)
    wait_running(api, jobs, 1)
    jobs += submit_gated(world, "vision", 2)
    with pytest.raises(grpc.RpcError) as refused:
        submit_gated(world, "vision", 1)
    assert error_info(refused.value).reason == "QUOTA_REACHED"
    assert error_info(refused.value).metadata["present"] == "2"
    waits = jobs[1][0]
    reason = api.get(waits).state_reason
    assert reason.code == facts_pb2.STATE_REASON_CODE_QUOTA_REACHED
    assert reason.subject == "active runs of project vision"
    assert "1 of 1 in use" in world.cli("why", waits).stdout
    other = submit_gated(world, "default", 1)
    wait_running(api, other, 1)
    assert api.get(waits).state == QUEUED
    open_one(api, jobs)
    eventually(lambda: api.get(waits).state == RUNNING, "its run")
    assert len(not_queued(api, jobs)) == 2
    world.cli("project", "set", "vision", "--quota", "none")
    eventually(lambda: len(not_queued(api, jobs)) == 3, "the last run")
    for _, gate in jobs + other:
        gate.open()


def test_what_a_project_has_used_outlives_the_broker(world):
    # Less than a millionth of the use of a half-life is forgotten, and this run is short.
    broker = world.make_broker(config="shares:\n  half_life: 1m\n").start()
    api = world.api(world.broker)
    world.cli("project", "create", "vision")
    start_agent(world, 2)
    jobs = submit_gated(world, "vision", 1)
    wait_running(api, jobs, 1)
    open_one(api, jobs)
    broker.terminate()
    broker.start()
    used = eventually(lambda: project_of(world, "vision").use.dominant_share, "what was used")
    assert 0 < used < 0.01


def test_flags_that_make_no_sense_are_refused(world, broker):
    del broker
    world.cli("project", "create", "lab")
    world.cli("project", "create", "cats", "--parent", "lab", "--weight", "2")
    wrong = {
        ("--weight", "0"): "--weight",
        ("--quota", "cores=4"): "no part of a quota",
        ("--quota", "active=many"): "no whole number",
    }
    for flags, words in wrong.items():
        answer = world.cli("project", "set", "cats", *flags, check=False)
        assert (answer.returncode, words in answer.stderr) == (USAGE, True), answer.stderr
    for flags, words in ((("cats", "--parent", "cats"), "is the project itself"),
                         (("cats", "--parent", "dogs"), "is no project"),
                         (("lab", "--parent", "cats"), "has the parent")):
        answer = world.cli("project", "set", *flags, check=False)
        assert answer.returncode != 0 and words in answer.stderr, answer.stderr
    assert "PROJECT_HAS_CHILDREN" in world.cli("project", "archive", "lab", check=False).stderr
    world.cli("project", "set", "cats", "--parent", "none", "--user-quota", "gpus:h100=2,gpus=4")
    shown = world.cli("project", "show", "cats").stdout
    assert "gpus=4,gpus:h100=2" in shown and "Parent" not in shown, shown
    world.cli("project", "archive", "lab")
