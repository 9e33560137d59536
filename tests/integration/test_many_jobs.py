"""Jobs found, counted, changed and run again by filters; specs that come back as they went."""

import json

from google.protobuf import json_format
import grpc
from muster.v1 import job_pb2, job_spec_pb2, jobs_service_pb2
import pytest

from harness.api import CALL_TIMEOUT_S, CANCELED, FAILED, SUCCEEDED, error_info, script_spec
from harness.job_files import JOBS

QUEUED = job_pb2.JOB_STATE_QUEUED
SPEC_FILES = sorted(path for path in JOBS.glob("*.yaml") if path.stem not in ("outcomes", "differences"))


def labelled(team, **fields):
    return script_spec("true", labels={"team": team}, **fields)


def count(api, **fields):
    return api.jobs.CountJobs(jobs_service_pb2.CountJobsRequest(**fields), timeout=CALL_TIMEOUT_S)


def rerun(api, **fields):
    return api.jobs.RerunJobs(jobs_service_pb2.RerunJobsRequest(**fields), timeout=CALL_TIMEOUT_S).jobs


def ids(world, *args):
    return [int(line) for line in world.cli(*args, "-q").stdout.split()]


def test_filters_change_what_they_take(api, world):
    a, b, c = (api.submit(labelled(team)) for team in "aab")
    assert count(api, filter="label.team = a").total == 2
    trial = world.cli("cancel", "--filter", "state = QUEUED AND label.team = a", "--dry-run")
    assert "would concern 2 jobs" in trial.stderr
    assert api.get(a).state == QUEUED
    assert ids(world, "hold", "--filter", "label.team = a") == [a, b]
    assert ids(world, "list", "--filter", "held = true", "--order-by", "id") == [a, b]
    assert ids(world, "release", "--filter", "label.team:*") == [a, b]
    assert ids(world, "cancel", "--filter", "label.team = a", "--reason", "wrong data") == [a, b]
    assert [api.get(job).state for job in (a, b, c)] == [CANCELED, CANCELED, QUEUED]
    assert "wrong data" in api.transitions(a)[-1].evidence.detail
    by_state = {row.state: row.count for row in count(api, group_by=["JOB_GROUPING_STATE"]).counts}
    assert by_state == {CANCELED: 2, QUEUED: 1}
    assert world.cli("count", "--by", "label=team").stdout.splitlines()[1].split() == ["a", "2"]


def test_an_empty_filter_cancels_nothing(api, world):
    job = api.submit(script_spec("true"))
    assert world.cli("cancel", "--filter", "", check=False).returncode == 2
    with pytest.raises(grpc.RpcError) as refused:
        api.jobs.CancelJobs(jobs_service_pb2.CancelJobsRequest(filter=" "), timeout=CALL_TIMEOUT_S)
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert api.get(job).state == QUEUED


def test_a_raised_priority_starts_first_and_survives_a_restart(api, broker, world):
    api.submit(labelled("a"))
    late = api.submit(labelled("a", priority=-5))
    world.cli("update", late, "--priority", 5, "--label", "tier=gold", "--remove-label", "team", "--reason", "a demo")
    broker.kill()
    broker.start()
    job = api.get(late)
    assert (job.priority, dict(job.labels)) == (5, {"tier": "gold"})
    assert (job.spec.priority, dict(job.spec.labels)) == (5, {"tier": "gold"})
    assert [found.id for found in api.list_all(order_by="priority desc")][0] == late
    assert [found.id for found in api.list_all(filter="label.tier = gold")] == [late]
    events = world.cli("events", late).stdout
    assert "updated" in events and "a demo" in events


def test_a_job_that_has_ended_runs_again(api, agent, world):
    job = api.wait_state(api.submit(script_spec("exit 3", labels={"team": "a"})), FAILED)
    again = ids(world, "rerun", job.id)
    ended = api.wait_state(again[0], FAILED)
    assert ended.rerun_of == job.id and ended.exit.code == 3
    assert ended.spec == job.spec
    assert [found.id for found in api.list_all(filter="exit_code = 3 AND failure_class = PROGRAM")] == [again[0], job.id]
    first = rerun(api, filter="state = FAILED", request_id="once")
    assert {found.source_job_id for found in first} == {job.id, again[0]}
    for found in first:
        api.wait_state(found.job_id, FAILED)
    assert rerun(api, filter="state = FAILED", request_id="once") == first
    assert count(api, filter="state = FAILED end_time > -1h").total == 4


def test_a_job_that_has_not_ended_does_not_run_again(api):
    job = api.submit(script_spec("true"))
    with pytest.raises(grpc.RpcError) as refused:
        rerun(api, job_ids=[job])
    assert error_info(refused.value).reason == "NOT_ENDED"


def test_a_rerun_without_its_uploads_says_what_is_missing(api, broker, world):
    source = world.path("source")
    source.mkdir()
    (source / "a.txt").write_text("a")
    job_file = world.path("job.yaml")
    job_file.write_text("run: cat a.txt\nworkdir: ./source\n")
    job = ids(world, "submit", "--hold", job_file)[0]
    api.cancel(job)
    kept = [path for path in (broker.state_dir / "files" / "kept").rglob("*") if path.is_file()]
    assert kept
    broker.kill()
    for path in kept:
        path.unlink()
    broker.start()
    with pytest.raises(grpc.RpcError) as refused:
        rerun(api, job_ids=[job])
    assert error_info(refused.value).reason == "FILES_MISSING"
    assert f"job {job}" in refused.value.details()


def test_a_program_that_fails_is_tried_again_if_its_user_says_so(api, agent, world):
    job_file = world.path("job.yaml")
    job_file.write_text("run: exit 75\nretry: {exit_codes: [75], max_runs: 2, backoff: 0s}\n")
    job = api.wait_state(ids(world, "submit", job_file)[0], FAILED)
    assert [run.exit.code for run in job.runs] == [75, 75]
    assert job.failure.after_runs == 2
    assert job.failure.message == f"after 2 runs: {job.runs[1].failure.message}"
    other = api.wait_state(api.submit(script_spec("exit 1", retry=job_spec_pb2.RetryPolicy(exit_codes=[75]))), FAILED)
    assert len(other.runs) == 1
    assert api.wait_state(api.submit(script_spec("true")), SUCCEEDED).failure.message == ""


@pytest.mark.parametrize("path", SPEC_FILES, ids=lambda path: path.stem)
def test_the_spec_of_a_job_can_be_submitted_as_it_is(path, api, world):
    job = ids(world, "submit", "--hold", path)[0]
    told = json.loads(json_format.MessageToJson(api.get(job).spec))
    for spec in (told, world.cli_json("show", job)["spec"]):
        again = api.submit(json_format.ParseDict(spec, job_spec_pb2.JobSpec()), held=True)
        assert api.get(again).spec == api.get(job).spec
