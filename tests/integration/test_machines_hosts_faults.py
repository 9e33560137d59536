"""What goes wrong between an agent and hosts that it reaches over SSH, and on them: nothing is lost, doubled or held up."""

from muster.v1 import job_pb2, job_spec_pb2

from harness.api import FAILED, SUCCEEDED, script_spec
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
    mark = world.path("mark")
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
