"""Jobs on plain machines, from a gRPC client to a process and back."""

import re

from muster.v1 import cluster_pb2, job_pb2, job_spec_pb2, jobs_service_pb2
import pytest

from harness.api import CANCELED, SUCCEEDED, TERMINAL, argv_spec, script_spec
from harness.wait import eventually, holds_for


def resources(cpus=1, memory_bytes=0, gpus=0):
    wanted = job_spec_pb2.Resources(cpu_millis=cpus * 1000, memory_bytes=memory_bytes)
    if gpus:
        wanted.gpus.add(count_millis=gpus * 1000)
    return wanted


def test_cancel_of_a_running_job_ends_its_whole_process_tree(api, agent, world):
    pids = world.path("pids")
    job_id = api.submit(script_spec(f"sleep 1000 & echo $! $$ > {pids}; wait"))
    api.wait_state(job_id, job_pb2.JOB_STATE_RUNNING)
    eventually(lambda: pids.exists() and len(pids.read_text().split()) == 2, "the job has written its pids")
    api.cancel(job_id, reason="enough")
    job = api.wait_state(job_id, CANCELED)
    assert job.cancel_requested
    asked = [s for s in api.transitions(job_id) if s.kind == job_pb2.TRANSITION_KIND_CANCEL_REQUESTED]
    assert len(asked) == 1 and "enough" in asked[0].evidence.detail
    for pid in pids.read_text().split():
        eventually(lambda p=pid: not world.process_lives(int(p)), f"process {pid} of the job is gone")


def test_cancel_of_a_job_that_waits(api, agent, world):
    gate = world.gate()
    first = api.submit(script_spec(gate.script(), resources=resources(cpus=8)))
    api.wait_state(first, job_pb2.JOB_STATE_RUNNING)
    mark = world.path("mark")
    second = api.submit(argv_spec("touch", str(mark), resources=resources(cpus=8)))
    api.wait_state(second, job_pb2.JOB_STATE_PENDING)
    api.cancel(second)
    api.wait_state(second, CANCELED)
    gate.open()
    api.wait_state(first, SUCCEEDED)
    assert not mark.exists()


def test_a_cancel_right_after_the_submit_is_a_cancel_wherever_it_meets_the_job(api, agent):
    spec = argv_spec("sleep", "99")
    ids = []
    for _ in range(40):
        ids.append(api.submit(spec))
        api.cancel(ids[-1])
    jobs = [api.wait_end(job_id) for job_id in ids]
    assert [job.id for job in jobs if job.state != CANCELED] == [], jobs
    assert not any(job.HasField("failure") or len(job.runs) > 1 for job in jobs)


def test_cancel_of_a_job_that_has_ended_changes_nothing(api, agent):
    job_id = api.submit(argv_spec("true"))
    before = api.wait_state(job_id, SUCCEEDED)
    answer = api.cancel(job_id)
    assert answer[0].state == SUCCEEDED
    assert api.get(job_id).job_sequence == before.job_sequence


def test_cores_are_never_oversubscribed(api, agent, world):
    running = world.path("running")
    running.mkdir()
    counts = world.write("counts", "")
    gate = world.gate()
    script = f"""
touch {running}/$MUSTER_JOB_ID
ls {running} | wc -l >> {counts}
{gate.script()}
sleep 0.2
rm {running}/$MUSTER_JOB_ID
"""
    ids = api.submit_many([script_spec(script, resources=resources(cpus=4)) for _ in range(10)])
    eventually(lambda: len(counts.read_text().split()) == 2, "two jobs run")
    gate.open()
    for job_id in ids:
        api.wait_state(job_id, SUCCEEDED)
    seen = [int(line) for line in counts.read_text().split()]
    assert len(seen) == 10
    assert max(seen) == 2


def test_jobs_start_in_the_order_of_their_submission(api, agent, world):
    order = world.path("order")
    script = f"echo $MUSTER_JOB_ID >> {order}"
    ids = api.submit_many([script_spec(script, resources=resources(cpus=8)) for _ in range(8)])
    for job_id in ids:
        api.wait_state(job_id, SUCCEEDED)
    assert [int(line) for line in order.read_text().split()] == ids


def test_a_job_larger_than_every_cluster_is_refused(api, agent):
    with pytest.raises(Exception) as caught:
        api.submit(argv_spec("true", resources=resources(cpus=1000)))
    error = caught.value
    assert error.code().name == "FAILED_PRECONDITION"
    assert "CANNOT_BE_PLACED" in str(error.trailing_metadata())
    assert re.search(r"1000\b", error.details())


def test_gpus_are_handed_out_one_by_one(api, world, broker):
    world.make_agent(config=world.machines_config(gpus={"h100": 4})).start()
    started = world.path("started")
    gate = world.gate()
    script = f'echo "$CUDA_VISIBLE_DEVICES" >> {started}; {gate.script()}'
    ids = api.submit_many([script_spec(script, resources=resources(gpus=2)) for _ in range(3)])
    eventually(lambda: started.exists() and len(started.read_text().split()) == 2, "two jobs run")
    holds_for(lambda: len(started.read_text().split()) == 2, "no third job gets GPUs that are in use", 1)
    devices = ",".join(started.read_text().split()).split(",")
    assert sorted(devices) == ["0", "1", "2", "3"]
    gate.open()
    for job_id in ids:
        api.wait_state(job_id, SUCCEEDED)


def test_eight_jobs_with_half_a_gpu_run_at_once_on_four(api, world, broker):
    world.make_agent(config=world.machines_config(gpus={"h100": 4})).start()
    started = world.path("started")
    gate = world.gate()
    script = f'echo "$CUDA_VISIBLE_DEVICES $NUM_GPU_PER_NODE" >> {started}; {gate.script()}'
    for _ in range(8):
        world.cli("run", "--gpus", "H100:0.5", "--", "sh", "-c", script)
    eventually(lambda: started.exists() and len(started.read_text().splitlines()) == 8, "all eight jobs run")
    assert sorted(started.read_text().splitlines()) == sorted(f"{device} 1" for device in range(4) for _ in range(2))
    whole = api.submit(argv_spec("true", resources=resources(gpus=1)))
    gate.open()
    for job in api.list_all():
        api.wait_state(job.id, SUCCEEDED)
    assert len(api.list_all()) == 9 and api.wait_state(whole, SUCCEEDED)


def test_more_than_one_gpu_must_be_whole(api, agent):
    spec = argv_spec("true")
    spec.resources.gpus.add(count_millis=1500)
    with pytest.raises(Exception) as caught:
        api.submit(spec)
    assert caught.value.code().name == "INVALID_ARGUMENT"
    assert "resources.gpus[0].count_millis" in caught.value.details()
    assert "use 1 to 999, or a multiple of 1000" in caught.value.details()


def test_a_run_with_a_time_limit_passes_one_that_waits_for_a_longer_one(api, world, broker):
    world.make_agent(config=world.machines_config(cpus=2)).start()
    gate = world.gate()
    long = script_spec(gate.script())
    long.time_limit.seconds = 3600
    running = api.submit(long)
    api.wait_state(running, job_pb2.JOB_STATE_RUNNING)
    large = api.submit(argv_spec("true", resources=resources(cpus=2)))
    short = argv_spec("true")
    short.time_limit.seconds = 60
    api.wait_state(api.submit(short), SUCCEEDED)
    longer = argv_spec("true")
    longer.time_limit.seconds = 7200
    behind = api.submit(longer)
    api.wait_state(behind, job_pb2.JOB_STATE_PENDING)
    assert api.get(large).state == api.get(behind).state == job_pb2.JOB_STATE_PENDING
    gate.open()
    for job_id in (running, large, behind):
        api.wait_state(job_id, SUCCEEDED)


def test_inventory_of_a_machine(api, agent):
    cluster = api.cluster(agent.cluster)
    assert cluster.kind == cluster_pb2.CLUSTER_KIND_MACHINES
    assert cluster.agent_version
    (pool,) = cluster.inventory.pools
    assert pool.is_default and pool.available
    (group,) = pool.node_groups
    assert (group.count, group.cpus) == (1, 8)
    assert group.memory_bytes > 0


def test_a_log_can_be_followed_while_the_job_runs(api, agent, world):
    gate = world.gate()
    job_id = api.submit(script_spec(f"echo first; {gate.script()}; echo second"))
    request = jobs_service_pb2.ReadLogRequest(job_id=job_id, stream=jobs_service_pb2.LOG_STREAM_STDOUT, follow=True)
    stream = api.jobs.ReadLog(request, timeout=120)
    seen = b""
    while not seen:
        seen += next(stream).data
    assert seen == b"first\n"
    assert api.get(job_id).state not in TERMINAL
    gate.open()
    rest = list(stream)
    assert seen + b"".join(answer.data for answer in rest) == b"first\nsecond\n"
    assert rest[-1].end == jobs_service_pb2.LOG_END_COMPLETE


def test_a_log_is_read_from_any_offset_and_keeps_every_byte(api, agent):
    script = "#!/usr/bin/python3\nimport sys\nsys.stdout.buffer.write(bytes(range(256)) * 4096)\n"
    job_id = api.submit(script_spec(script))
    api.wait_state(job_id, SUCCEEDED)
    whole = bytes(range(256)) * 4096
    assert api.stdout(job_id) == whole
    assert api.stdout(job_id, offset=1_000_001) == whole[1_000_001:]
    assert api.stdout(job_id, offset=len(whole)) == b""


def test_two_agents_share_the_work_and_can_be_named(api, world, agent):
    other = world.make_agent("other").start()
    for cluster in (agent.cluster, other.cluster):
        spec = argv_spec("true")
        spec.placement.clusters.append(cluster)
        assert api.wait_state(api.submit(spec), SUCCEEDED).cluster == cluster


@pytest.mark.slow
def test_500_jobs_each_run_once(api, agent, world):
    counter = world.path("counter")
    script = f"echo $MUSTER_JOB_ID >> {counter}; echo log of $MUSTER_JOB_ID"
    ids = api.submit_many([script_spec(script) for _ in range(500)])
    for job_id in ids:
        api.wait_state(job_id, SUCCEEDED, deadline_s=300)
    assert sorted(int(line) for line in counter.read_text().split()) == ids
    for job_id in ids:
        assert api.stdout(job_id) == f"log of {job_id}\n".encode()
