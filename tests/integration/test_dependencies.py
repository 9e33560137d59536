"""Jobs that wait for the end of other jobs, on a cluster of plain machines."""

import grpc
from muster.v1 import facts_pb2, job_pb2
import pytest

from harness.api import FAILED, SUCCEEDED, script_spec
from harness.wait import eventually

QUEUED = job_pb2.JOB_STATE_QUEUED
JOB_FAILED = 10

# Documents whose programs tell in which order they ran.
CHAIN = """
name: prepare
run: |
  {prepare}
  echo prepare >> {log}
---
name: train
depends_on: prepare
run: |
  echo train >> {log}
  exit 3
---
name: tidy
depends_on: {{job: train, outcome: failed}}
run: echo "tidy, train was $(env | sed -n 's/^MUSTER_DEPENDENCY_[0-9]*=//p')" >> {log}
---
name: report
depends_on: [train]
run: echo never >> {log}
"""


def ids_of(done):
    return [int(line) for line in done.stdout.splitlines()]


def test_the_documents_of_a_file_run_in_the_order_that_they_ask_for(world, agent, api):
    gate = world.gate()
    log = world.path("log")
    prepare = gate.script().replace("\n", "\n  ")
    file = world.write("chain.yaml", CHAIN.format(log=log, prepare=prepare))
    ids = ids_of(world.cli("submit", file))
    assert len(ids) == 4
    why = world.cli("why", ids[1]).stdout
    assert f"waits for the end of job {ids[0]}" in why
    assert api.get(ids[1]).state_reason.code == facts_pb2.STATE_REASON_CODE_JOB_DEPENDENCY
    assert [one.job_id for one in api.get(ids[3]).spec.depends_on] == [ids[1]]
    gate.open()
    api.wait_state(ids[2], SUCCEEDED)
    report = api.wait_state(ids[3], FAILED)
    assert not report.runs
    assert report.failure.code == facts_pb2.FAILURE_CODE_DEPENDENCY_FAILED
    assert report.failure.subject == str(ids[1])
    assert f"Job {ids[1]} did not end as this job needs it to" in world.cli("show", ids[3]).stdout
    assert log.read_text().splitlines() == ["prepare", "train", "tidy, train was FAILED"]


def test_a_command_waits_for_the_jobs_that_its_flags_name(world, agent, api):
    gate = world.gate()
    first = api.submit(script_spec(gate.script()))
    fails = api.submit(script_spec("exit 1"))
    api.wait_state(fails, FAILED)
    done = world.cli("run", "--after", f"{first},{fails}", "--after-ended", first, "--", "true", check=False)
    assert done.returncode != 0
    assert "--after" in done.stderr and "is there twice" in done.stderr
    second = ids_of(world.cli("run", "--after", first, "--after-failed", fails, "--", "true"))[0]
    assert api.get(second).state == QUEUED
    gate.open()
    api.wait_state(second, SUCCEEDED)
    late = world.cli("run", "--wait", "--after", fails, "--", "true", check=False)
    assert late.returncode == JOB_FAILED
    assert f"Job {fails} did not end as this job needs it to" in late.stderr


def test_a_job_that_is_not_there_is_told_with_its_field(world, agent, api):
    spec = script_spec("true")
    spec.depends_on.add(job_id=99)
    with pytest.raises(grpc.RpcError) as refused:
        api.submit(spec)
    assert refused.value.code() == grpc.StatusCode.NOT_FOUND
    assert refused.value.details() == "spec.depends_on[0].job_id: there is no job 99"
    assert world.cli("run", "--after", 99, "--", "true", check=False).returncode != 0


def test_jobs_wait_on_after_the_broker_was_killed(world, broker, agent, api):
    gate = world.gate()
    first = api.submit(script_spec(gate.script()))
    second = script_spec("true")
    second.depends_on.add(job_id=first)
    waits = api.submit(second)
    broker.kill()
    broker.start()
    eventually(lambda: api.connected("box"), "the agent is back")
    assert api.get(waits).state_reason.subject == str(first)
    gate.open()
    api.wait_state(waits, SUCCEEDED)


def test_a_chain_of_skypilot_tasks_runs_one_after_the_other(world, agent, api):
    log = world.path("log")
    tasks = f"name: pipe\n---\nname: a\nrun: echo a >> {log}\n---\nname: b\nrun: echo b >> {log}\n---\nname: c\nrun: echo c >> {log}\n"
    ids = ids_of(world.cli("submit", world.write("pipe.yaml", tasks)))
    api.wait_state(ids[2], SUCCEEDED)
    assert log.read_text() == "a\nb\nc\n"
    assert [one.job_id for one in api.get(ids[2]).spec.depends_on] == [ids[1]]
