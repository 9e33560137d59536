"""Faults between an agent and hosts that it reaches over SSH, and on them: nothing is lost, doubled or held up."""

from muster.v1 import job_pb2, job_spec_pb2
import pytest

from harness.api import CANCELED, FAILED, SUCCEEDED, argv_spec, script_spec
from harness.fixtures import hosts_agent_fixture, hosts_fixture
from harness.wait import eventually, holds_for

RUNNING = job_pb2.JOB_STATE_RUNNING
PENDING = job_pb2.JOB_STATE_PENDING

cluster = hosts_fixture()
agent = hosts_agent_fixture()


def two_nodes(text, **fields):
    return script_spec(text, nodes=2, **fields)


def test_a_host_that_hangs_holds_up_neither_logs_nor_ends_of_the_others(api, world, cluster, agent):
    gate = world.gate()
    wide = api.submit(two_nodes("while :; do echo line; sleep 0.05; done"))
    single = api.submit(script_spec(f"{gate.script()}\necho last words; exit 3"))
    api.wait_state(wide, RUNNING)
    job = api.wait_state(single, RUNNING)
    other = next(host for host in cluster.hosts if host.name != job.runs[-1].nodes[0])
    other.freeze()
    gate.open()
    api.wait_state(single, FAILED)
    assert api.stdout(single) == b"last words\n"
    assert "down" not in world.cli("clusters", "lab").stdout, "the host's silence has not even been noticed"


def test_what_is_left_on_a_host_that_was_out_of_the_file_is_ended_and_cleaned_when_it_is_back(api, world, cluster, agent):
    mark = world.write("mark", "")
    text = f'trap "echo $NODE_RANK >>{mark}; exit 1" TERM; while :; do sleep 0.05; done'
    job_id = api.submit(two_nodes(text, retry=job_spec_pb2.RetryPolicy(max_runs=1)))
    job = api.wait_state(job_id, RUNNING)
    gone = cluster.hosts.pop()
    agent.kill()
    cluster.write_hosts()
    agent.start()
    job = api.wait_state(job_id, FAILED)
    assert f"{gone.name} is not in the file of hosts any more" in job.failure.message
    left = [host.run_directory("lab", job.runs[-1].run_key) / "spec" for host in (*cluster.hosts, gone)]
    eventually(lambda: not left[0].exists(), "the host that is there has cleaned up")
    ours = agent.run_directory(job.runs[-1].run_key)
    assert left[1].exists() and (ours / "assignment").exists()
    ended = set(mark.read_text().split())
    cluster.hosts.append(gone)
    cluster.write_hosts()
    eventually(lambda: len(set(mark.read_text().split()) - ended) == 1, "its rank there is ended")
    eventually(lambda: not left[1].exists() and not (ours / "assignment").exists(), "all have cleaned up")


def test_a_run_that_waits_and_fits_no_more_fails_once_all_hosts_have_said_what_they_have(api, world, cluster, agent):
    gate = world.gate()
    wanted = job_spec_pb2.Resources(cpu_millis=1000)
    wanted.gpus.add(type="h100", count_millis=2000)
    first = api.submit(two_nodes(gate.script(), resources=wanted))
    api.wait_state(first, RUNNING)
    job_id = api.submit(two_nodes("true", resources=wanted, retry=job_spec_pb2.RetryPolicy(max_runs=1)))
    api.wait_run_state(job_id, job_pb2.RUN_STATE_PENDING)
    agent.kill()
    hosts = world.path("hosts.yaml")
    one, two = hosts.read_text().splitlines()
    hosts.write_text(f"{one}\n{two.replace('h100: 2', '')}\n")
    cluster.hosts[0].cut()
    agent.start()
    holds_for(lambda: api.get(job_id).state == PENDING, "the other host may have more", 1)
    cluster.hosts[0].start()
    job = api.wait_state(job_id, FAILED)
    assert job.failure.failure_class == job_pb2.FAILURE_CLASS_CONFIG
    assert "1 hosts have all that one needs" in job.failure.message
    gate.open()
    api.wait_state(first, SUCCEEDED)


def test_a_run_whose_record_cannot_be_read_at_the_agents_start_is_found_again_later(api, world, cluster, agent):
    gate = world.gate()
    counter = world.path("counter")
    job_id = api.submit(two_nodes(f"echo $NODE_RANK >>{counter}\n{gate.script()}"))
    job = api.wait_state(job_id, RUNNING)
    agent.kill()
    placement = agent.run_directory(job.runs[-1].run_key) / "placement"
    away = placement.rename(placement.with_name("away"))
    placement.mkdir()  # reading it fails, also for root
    agent.start()
    holds_for(lambda: api.get(job_id).state == RUNNING, "nobody knows what has become of it", 3)
    placement.rmdir()
    away.rename(placement)
    gate.open()
    assert len(api.wait_state(job_id, SUCCEEDED).runs) == 1
    assert sorted(counter.read_text().split()) == ["0", "1"]


@pytest.mark.slow
def test_a_minute_without_any_packet_from_a_host_loses_and_doubles_nothing(api, world, cluster, agent):
    gate = world.gate()
    counter = world.path("counter")
    running = api.submit(two_nodes(f"echo running $NODE_RANK >>{counter}\n{gate.script()}\necho done"))
    api.wait_state(running, RUNNING)
    with cluster.hosts[1].black_hole():
        starting = api.submit(two_nodes(f"echo starting $NODE_RANK >>{counter}"))
        holds_for(lambda: api.get(running).state == RUNNING, "nobody knows better", 60)
        assert "gpu2 has not answered since" in api.get(running).runs[-1].state_reason.message
        elsewhere = api.wait_state(api.submit(argv_spec("true")), SUCCEEDED)
        assert list(elsewhere.runs[-1].nodes) == ["gpu1"]
    gate.open()
    for job_id in (running, starting):
        assert len(api.wait_state(job_id, SUCCEEDED).runs) == 1
    assert sorted(counter.read_text().splitlines()) == ["running 0", "running 1", "starting 0", "starting 1"]
    assert api.stdout(running, rank=0) == api.stdout(running, rank=1) == b"done\n"
    agent.check_alive()


def test_a_start_whose_answer_is_lost_is_made_once_though_its_input_is_gone(api, world, cluster, agent):
    gate = world.gate()
    counter = world.write("counter", "")
    data = world.write("data", "input")
    spec = two_nodes(f"echo $NODE_RANK >>{counter}\n{gate.script()}")
    spec.inputs.add(uri=f"lustre://{data}")
    host = cluster.hosts[1]
    done = host.hold_answer("start")
    job_id = api.submit(spec)
    eventually(done.exists, "it has been started")
    eventually(lambda: sorted(counter.read_text().split()) == ["0", "1"], "both ranks run")
    data.unlink()
    host.cut()
    host.start()
    api.wait_state(job_id, RUNNING)
    gate.open()
    assert len(api.wait_state(job_id, SUCCEEDED).runs) == 1
    assert sorted(counter.read_text().split()) == ["0", "1"]
    agent.check_alive()


def test_a_stop_whose_answer_is_lost_is_a_cancel_all_the_same(api, cluster, agent):
    job_id = api.submit(two_nodes("exec sleep 1000"))
    api.wait_state(job_id, RUNNING)
    host = cluster.hosts[1]
    done = host.hold_answer("stop")
    api.cancel(job_id)
    eventually(done.exists, "it has been stopped")
    host.cut()
    host.start()
    assert len(api.wait_state(job_id, CANCELED).runs) == 1
    agent.check_alive()


def test_a_full_disk_on_one_host_fails_no_job(api, world, cluster):
    host = cluster.hosts[1]
    host.limit_disk(32)
    agent = cluster.make_agent().start()
    gate = world.gate()
    running = api.submit(two_nodes(gate.script()))
    api.wait_state(running, RUNNING)
    filler = host.fill_disk()
    host.cut()
    host.start()
    starting = api.submit(two_nodes("true"))
    eventually(lambda: "No space left on device" in world.cli("clusters", "lab", "-o", "wide").stdout, "it is shown")
    elsewhere = api.wait_state(api.submit(argv_spec("true")), SUCCEEDED)
    assert list(elsewhere.runs[-1].nodes) == ["gpu1"]
    gate.open()
    assert len(api.wait_state(running, SUCCEEDED).runs) == 1
    filler.unlink()
    # Its other rank had begun already.
    *before, _ = api.wait_state(starting, SUCCEEDED).runs
    assert all(run.failure.failure_class == job_pb2.FAILURE_CLASS_INFRA for run in before)
    assert all("No space left on device" in run.failure.message for run in before)
    agent.check_alive()


RENDEZVOUS = """
import os, socket
rank, world = int(os.environ["NODE_RANK"]), int(os.environ["WORLD_SIZE"])
master = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
own = os.environ["SKYPILOT_NODE_IPS"].split()[rank]
if rank == 0:
    with socket.create_server(master) as server:
        peers = [server.accept() for _ in range(world - 1)]
        met = [(own, 0)] + [(address[0], int(peer.recv(10))) for peer, address in peers]
        for peer, _ in peers:
            peer.sendall(repr(sorted(met)).encode())
else:
    while True:
        try:
            peer = socket.create_connection(master, source_address=(own, 0))
            break
        except ConnectionRefusedError:
            pass
    peer.sendall(str(rank).encode())
    met = eval(peer.recv(1000))
print(sorted(met))
"""


def test_the_ranks_of_a_run_meet_at_the_masters_address_and_port(api, cluster, agent):
    spec = argv_spec("/usr/bin/python3", "-c", RENDEZVOUS, nodes=2)
    job_ids = [api.submit(spec) for _ in range(2)]
    for job_id in job_ids:
        job = api.wait_state(job_id, SUCCEEDED)
        by_name = {host.name: host.address for host in cluster.hosts}
        met = sorted((by_name[name], rank) for rank, name in enumerate(job.runs[-1].nodes))
        assert [api.stdout(job_id, rank=rank).decode() for rank in range(2)] == [f"{met}\n"] * 2
    agent.check_alive()
