"""Jobs on several hosts without a scheduler, which the agent reaches over SSH: each an sshd on an address of its own."""

import json
import os
import re
import signal
import time

from muster.v1 import facts_pb2, job_pb2, job_spec_pb2
import pytest

from harness.api import CANCELED, FAILED, SUCCEEDED, argv_spec, script_spec
from harness.fixtures import hosts_agent_fixture, hosts_fixture
from harness.hosts import SshCluster, is_shown_failing
from harness.wait import eventually, holds_for
from test_machines import test_a_cancel_right_after_the_submit_is_a_cancel_wherever_it_meets_the_job

RUNNING = job_pb2.JOB_STATE_RUNNING
PENDING = job_pb2.JOB_STATE_PENDING

cluster = hosts_fixture()
agent = hosts_agent_fixture()


def two_nodes(text, **fields):
    return script_spec(text, nodes=2, **fields)


def gpus(count_millis):
    wanted = job_spec_pb2.Resources(cpu_millis=1000)
    wanted.gpus.add(type="h100", count_millis=count_millis)
    return wanted


def _command_line(pid):
    """Its words, each with a NUL behind it; none if it has ended since it was listed."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def out(api, job_id, rank):
    return api.stdout(job_id, rank=rank).decode()


def test_the_usage_is_the_sum_over_the_ranks(world, api, cluster, agent):
    burn = "python3 -c 'import time\nwhile time.process_time() < 0.4: pass'"
    run = api.wait_state(api.submit(two_nodes(burn)), SUCCEEDED).runs[0]
    spent = run.usage.user_cpu_time.ToMilliseconds() + run.usage.system_cpu_time.ToMilliseconds()
    assert spent >= 800, "of each rank 400"
    assert run.usage.max_rss_bytes >= 1 << 20


def test_the_ranks_of_a_run_are_on_hosts_of_their_own(api, cluster, agent):
    text = 'echo "$NODE_RANK $MASTER_ADDR $WORLD_SIZE $HOME $CUDA_VISIBLE_DEVICES"; echo "$SKYPILOT_NODE_IPS"'
    job_id = api.submit(two_nodes(text, resources=gpus(1000)))
    job = api.wait_state(job_id, SUCCEEDED)
    master = job.runs[-1].nodes[0]
    by_name = {host.name: host for host in cluster.hosts}
    assert sorted(job.runs[-1].nodes) == ["gpu1", "gpu2"]
    addresses = [by_name[name].address for name in job.runs[-1].nodes]
    for rank, name in enumerate(job.runs[-1].nodes):
        host = by_name[name]
        first, *ips = out(api, job_id, rank).splitlines()
        assert first.split() == [str(rank), by_name[master].address, "2", str(host.home), "0"]
        assert ips == addresses
    assert job.cluster == agent.cluster


def test_one_failed_rank_ends_all_and_its_code_is_the_jobs(api, world, agent):
    gate = world.gate()
    text = f'if [ "$NODE_RANK" = 1 ]; then {gate.script()}; exit 7; fi\nexec sleep 1000'
    job_id = api.submit(two_nodes(text))
    api.wait_state(job_id, RUNNING)
    gate.open()
    job = api.wait_state(job_id, FAILED)
    assert (job.exit.code, job.exit.rank) == (7, 1)
    assert job.failure.failure_class == job_pb2.FAILURE_CLASS_PROGRAM
    assert " on rank 1 (gpu" in job.failure.message


def test_a_run_has_all_its_nodes_or_none(api, world, cluster, agent):
    gate = world.gate()
    first = api.submit(script_spec(gate.script(), resources=gpus(2000)))
    api.wait_state(first, RUNNING)
    mark = world.path("mark")
    second = api.submit(two_nodes(f"touch {mark}", resources=gpus(2000)))
    eventually(lambda: "2 hosts with 2" in api.get(second).state_reason.message, "it waits for both hosts")
    assert not mark.exists()
    gate.open()
    api.wait_state(second, SUCCEEDED)


def test_more_nodes_than_hosts_are_refused_with_the_remedy(world, agent):
    done = world.cli("run", "--nodes", "3", "--", "true", check=False)
    assert done.returncode == 13
    assert "has 2 nodes with what each needs (resources), 3 are needed; ask for at most 2 (nodes)" in done.stderr


def test_cancel_ends_the_ranks_on_all_hosts(api, cluster, agent):
    job_id = api.submit(two_nodes("exec sleep 1000"))
    job = api.wait_state(job_id, RUNNING)
    sleeping = [directory.run_directory("lab", job.runs[-1].run_key) for directory in cluster.hosts]
    assert all((path / "started").exists() for path in sleeping)
    api.cancel(job_id)
    assert api.wait_state(job_id, CANCELED).cancel_requested
    assert all((path / "exit").exists() for path in sleeping)


def test_an_agent_that_is_killed_finds_its_runs_again_and_doubles_none(api, world, cluster, agent):
    gate = world.gate()
    counter = world.path("counter")
    job_ids = [api.submit(two_nodes(f"echo {n} $NODE_RANK >>{counter}\n{gate.script()}")) for n in range(3)]
    api.wait_state(job_ids[0], RUNNING)
    for _ in range(3):
        agent.restart()
    gate.open()
    for job_id in job_ids:
        job = api.wait_state(job_id, SUCCEEDED)
        assert len(job.runs) == 1
    assert sorted(counter.read_text().splitlines()) == [f"{n} {rank}" for n in range(3) for rank in range(2)]


@pytest.mark.parametrize("moment_ms", [0, 40, 80, 120, 160, 200, 300, 400])
def test_an_agent_killed_while_it_starts_a_run_starts_it_once(api, world, agent, moment_ms):
    counter = world.path("counter")
    job_id = api.submit(two_nodes(f"echo $NODE_RANK >>{counter}"))
    world.pause(moment_ms / 1000)
    agent.restart()
    assert len(api.wait_state(job_id, SUCCEEDED).runs) == 1
    assert sorted(counter.read_text().split()) == ["0", "1"]


def test_a_run_goes_on_while_ssh_is_cut_and_is_not_doubled(api, world, cluster, agent):
    gate = world.gate()
    counter = world.path("counter")
    job_id = api.submit(two_nodes(f"echo $NODE_RANK >>{counter}\n{gate.script()}\necho done"))
    api.wait_state(job_id, RUNNING)
    for host in cluster.hosts:
        host.cut()
    eventually(lambda: "has not answered since" in api.get(job_id).runs[-1].state_reason.message, "its silence is told")
    assert re.match(r"host gpu\d has not answered since [-0-9]+T[:0-9]+Z: ", api.get(job_id).state_reason.message)
    assert "has not answered since" in api.list_page().jobs[0].state_reason.message
    gate.open()
    holds_for(lambda: api.get(job_id).state == RUNNING, "the state stays", 3)
    for host in cluster.hosts:
        host.start()
    api.wait_state(job_id, SUCCEEDED)
    assert sorted(counter.read_text().split()) == ["0", "1"]
    assert out(api, job_id, 0) == "done\n" and out(api, job_id, 1) == "done\n"


def told_reason(api, job_id):
    """Returns the reasons of a RUNNING job: by list, show, and of its run."""
    job = api.get(job_id)
    assert job.state == RUNNING
    return {api.list_page().jobs[0].state_reason.message, job.state_reason.message, job.runs[-1].state_reason.message}


def is_told_silent(api, job_id):
    return all("gpu2 has not answered since" in reason for reason in told_reason(api, job_id))


def is_told_to_answer(api, job_id):
    return told_reason(api, job_id) == {"", "its hosts answer again"}


def test_a_host_that_is_back_is_not_called_silent_any_more(api, world, cluster, agent):
    gate = world.gate()
    job_id = api.submit(two_nodes(gate.script()))
    api.wait_state(job_id, RUNNING)
    waiter = world.cli_start("wait", job_id)
    for times in (1, 2):
        cluster.hosts[1].cut()
        eventually(lambda: is_told_silent(api, job_id), "its silence is told")
        eventually(lambda: waiter.errors().count("gpu2 has not answered since") == times, "to those who wait, too")
        cluster.hosts[1].start()
        eventually(lambda: is_told_to_answer(api, job_id), "and that it is over")
        eventually(lambda: waiter.errors().count(f"the hosts of job {job_id} answer again") == times, "to them, too")
        holds_for(lambda: is_told_to_answer(api, job_id), "for good", 3)
    gate.open()
    assert waiter.wait() == 0


@pytest.mark.parametrize("comes_back", ["before the agent", "after the agent"])
def test_a_host_that_is_back_is_not_called_silent_by_an_agent_that_was_restarted(api, world, cluster, agent, comes_back):
    gate = world.gate()
    job_id = api.submit(two_nodes(gate.script()))
    api.wait_state(job_id, RUNNING)
    cluster.hosts[1].cut()
    eventually(lambda: is_told_silent(api, job_id), "its silence is told")
    agent.kill()
    if comes_back == "after the agent":
        agent.start()
        eventually(lambda: "since the agent was started" in api.get(job_id).state_reason.message, "the new agent tells it, too")
        cluster.hosts[1].start()
    else:
        cluster.hosts[1].start()
        agent.start()
    eventually(lambda: is_told_to_answer(api, job_id), "it is over")
    gate.open()
    api.wait_state(job_id, SUCCEEDED)


def planned(api, spec):
    """Returns the seconds until a run of it would start, or None, and the words about the queue."""
    [plan] = api.plan(spec)
    queue = next(check.seen for check in plan.checks if check.subject == "the cluster's queue")
    known = plan.HasField("estimated_start_time")
    return plan.estimated_start_time.seconds - time.time() if known else None, queue


def test_a_plan_says_whether_the_run_would_start_beside_those_that_wait(api, world, cluster, agent):
    def limited(spec, seconds):
        spec.time_limit.seconds = seconds
        return spec
    gate = world.gate()
    running = api.submit(limited(two_nodes(gate.script(), resources=gpus(1000)), 3600))
    api.wait_state(running, RUNNING)
    large = api.submit(two_nodes("true", resources=gpus(2000)))
    eventually(lambda: "2 hosts with 2" in api.get(large).state_reason.message, "it waits for both hosts")
    wait, queue = planned(api, limited(argv_spec("true", resources=gpus(1000)), 60))
    assert wait < 60 and queue == "1 run waits, and this one would start before it"
    assert planned(api, argv_spec("true", resources=gpus(1000))) == (None, "1 run waits before it")
    api.hold(large)
    eventually(lambda: api.get(large).runs[-1].state_reason.code == facts_pb2.STATE_REASON_CODE_HELD, "its agent has heard it")
    wait, queue = planned(api, argv_spec("true", resources=gpus(1000)))
    assert wait < 60 and queue == "0 runs wait before it"
    wait, queue = planned(api, two_nodes("true", resources=gpus(2000)))
    assert 3000 < wait and queue.startswith("0 runs wait before it, and it would wait for 2 hosts")
    gate.open()
    api.wait_state(running, SUCCEEDED)


def test_a_run_is_found_where_it_is_after_the_hosts_directory_has_changed(api, world, cluster, agent):
    gate = world.gate()
    counter = world.path("counter")
    job_id = api.submit(two_nodes(f"echo $NODE_RANK >>{counter}\n{gate.script()}\necho done"))
    api.wait_state(job_id, RUNNING)
    agent.kill()
    elsewhere = world.path("elsewhere")
    cluster.make_agent(more=f"  host_directory: {elsewhere}\n").start()
    eventually(lambda: all((elsewhere / "lab" / host.name / "runs").is_dir() for host in cluster.hosts), "it is used")
    gate.open()
    job = api.wait_state(job_id, SUCCEEDED)
    assert len(job.runs) == 1
    assert sorted(counter.read_text().split()) == ["0", "1"]
    assert out(api, job_id, 0) == "done\n" and out(api, job_id, 1) == "done\n"
    kept = [host.run_directory("lab", job.runs[-1].run_key) / "spec" for host in cluster.hosts]
    eventually(lambda: not any(path.exists() for path in kept), "what is not needed any more is removed there")


def test_an_agent_that_is_started_while_a_host_is_away_invents_no_last_word(api, world, cluster, agent):
    gate = world.gate()
    job_id = api.submit(two_nodes(gate.script()))
    api.wait_state(job_id, RUNNING)
    agent.kill()
    cluster.hosts[1].cut()
    agent.start()
    eventually(lambda: "gpu2 has not answered since the agent was started" in api.get(job_id).runs[-1].state_reason.message, "told")
    assert api.get(job_id).state == RUNNING
    cluster.hosts[1].start()
    gate.open()
    api.wait_state(job_id, SUCCEEDED)


def test_a_host_that_dies_in_the_middle_fails_its_runs_as_infra_when_it_is_back(api, cluster, agent):
    job_id = api.submit(two_nodes("exec sleep 1000", retry=job_spec_pb2.RetryPolicy(max_runs=1)))
    job = api.wait_state(job_id, RUNNING)
    dead = cluster.hosts[1]
    dead.crash()
    holds_for(lambda: api.get(job_id).state == RUNNING, "nothing is known yet", 2)
    # The claim comes from another boot.
    claim = dead.run_directory("lab", job.runs[-1].run_key) / "claim"
    boot = open("/proc/sys/kernel/random/boot_id", encoding="ascii").read().strip()
    claim.write_bytes(claim.read_bytes().replace(boot.encode(), b"0" * len(boot)))
    dead.start()
    job = api.wait_state(job_id, FAILED)
    assert job.failure.failure_class == job_pb2.FAILURE_CLASS_INFRA
    assert "started anew" in job.failure.message and "gpu2" in job.failure.message


def test_runs_of_a_host_that_stays_away_are_lost_and_ended_when_it_is_back(api, world, cluster):
    cluster.make_agent(more="  host_lost_after: 2s\n").start()
    mark = world.path("mark")
    text = f'trap "echo $NODE_RANK >>{mark}; exit 1" TERM; while :; do sleep 0.05; done'
    job_id = api.submit(two_nodes(text, retry=job_spec_pb2.RetryPolicy(max_runs=1)))
    job = api.wait_state(job_id, RUNNING)
    away = next(host for host in cluster.hosts if host.name == job.runs[-1].nodes[1])
    away.cut()
    job = api.wait_state(job_id, FAILED)
    assert job.runs[-1].state == job_pb2.RUN_STATE_LOST
    assert away.name in job.failure.message
    eventually(lambda: mark.exists() and mark.read_text() == "0\n", "the rank that can be reached has been ended")
    # The place of that rank is free although the other host stays away.
    api.wait_state(api.submit(argv_spec("true", resources=gpus(2000))), SUCCEEDED)
    away.start()
    eventually(lambda: mark.read_text() == "0\n1\n", "what is left of it is ended")


def test_a_cordoned_host_gets_no_new_runs(api, world, cluster, agent):
    cluster.cordoned = {"gpu1"}
    cluster.write_hosts()
    eventually(lambda: "cordoned" in world.cli("clusters", "lab").stdout, "the agent has seen it")
    for _ in range(4):
        job = api.wait_state(api.submit(argv_spec("true")), SUCCEEDED)
        assert list(job.runs[-1].nodes) == ["gpu2"]


def test_a_host_that_cannot_start_runs_gets_none_for_a_while_and_costs_no_run(api, world, cluster, agent):
    runs = cluster.hosts[0].home / ".muster" / "lab" / "gpu1" / "runs"
    api.wait_state(api.submit(two_nodes("true")), SUCCEEDED)
    away = runs.rename(runs.with_name("away"))
    runs.write_text("in the way")
    gate = world.gate()
    # The first fills a host, so that the others try the other one.
    job_ids = [api.submit(script_spec(gate.script(), resources=gpus(2000)))]
    job_ids += [api.submit(argv_spec("true", resources=gpus(2000))) for _ in range(2)]
    eventually(lambda: is_shown_failing(world, "Not a directory"), "it is shown")
    gate.open()
    for job_id in job_ids:
        job = api.wait_state(job_id, SUCCEEDED)
        assert [list(run.nodes) for run in job.runs] == [["gpu2"]]
    runs.unlink()
    away.rename(runs)
    assert len(api.wait_state(api.submit(two_nodes("true")), SUCCEEDED).runs) == 1


def test_a_run_that_no_host_has_heard_of_goes_to_another(api, world, cluster, agent):
    gate = world.gate()
    blocker = api.submit(script_spec(gate.script(), resources=gpus(2000)))
    first = api.wait_state(blocker, RUNNING).runs[-1].nodes[0]
    other = next(host for host in cluster.hosts if host.name != first)
    other.freeze()
    # The one is on its way to the host when that goes, and may be there; the next one waits behind it.
    unclear, unsent = (api.submit(argv_spec("true", resources=gpus(1000))) for _ in range(2))
    eventually(lambda: list(api.get(unsent).runs[-1].nodes) == [other.name], "it is to start there")
    other.cut()
    eventually(lambda: not api.get(unsent).runs[-1].nodes and api.get(unsent).state == PENDING, "it waits again")
    gate.open()
    job = api.wait_state(unsent, SUCCEEDED)
    assert [list(run.nodes) for run in job.runs] == [[first]]
    assert api.get(unclear).state == PENDING
    other.start()
    job = api.wait_state(unclear, SUCCEEDED)
    assert [list(run.nodes) for run in job.runs] == [[other.name]]


def test_a_run_after_a_failed_one_keeps_away_from_its_hosts(api, cluster, agent):
    retry = job_spec_pb2.RetryPolicy(max_runs=2, exclude_failed_nodes=True)
    job_id = api.submit(script_spec('[ "$MUSTER_RUN" = 2 ] || exec sleep 1000', retry=retry))
    first = api.wait_state(job_id, RUNNING).runs[-1]
    host = next(host for host in cluster.hosts if host.name == first.nodes[0])
    for pid in host.pids():
        if b"muster-supervisor\0" + bytes(host.run_directory("lab", first.run_key)) in _command_line(pid):
            os.kill(pid, signal.SIGKILL)
    job = api.wait_state(job_id, SUCCEEDED)
    assert [list(run.nodes) for run in job.runs] == [[host.name], [other.name for other in cluster.hosts
                                                                   if other is not host]]


def test_a_host_that_is_added_to_the_file_gets_runs(api, world, cluster, agent):
    gate = world.gate()
    job_id = api.submit(two_nodes(gate.script(), resources=gpus(2000)))
    api.wait_state(job_id, RUNNING)
    third = cluster.add_host()
    cluster.write_known_hosts()
    cluster.write_hosts()
    job = api.wait_state(api.submit(script_spec("hostname", resources=gpus(2000))), SUCCEEDED)
    assert list(job.runs[-1].nodes) == [third.name]
    gate.open()
    api.wait_state(job_id, SUCCEEDED)


def test_a_host_that_is_away_when_the_agent_starts_is_still_known_by_what_it_had(api, world, broker):
    del broker
    made = SshCluster(world, 2, gpus=None, cpus=2)
    smi = made.hosts[1].programs / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho '0, GPU-aaaa, NVIDIA H100 80GB HBM3, 81559 MiB'\n")
    smi.chmod(0o755)
    try:
        agent = made.make_agent()
        agent.start()
        api.wait_state(api.submit(argv_spec("true", resources=gpus(1000))), SUCCEEDED)
        agent.kill()
        made.hosts[1].cut()
        agent.start()
        eventually(lambda: "host gpu2 is down" in world.cli("clusters", "lab").stdout, "the broker has its new word")
        job_id = api.submit(script_spec('echo "$CUDA_VISIBLE_DEVICES"', resources=gpus(1000)))
        eventually(lambda: "gpu2" in api.get(job_id).state_reason.message, "it waits, and the reason names the host")
        made.hosts[1].start()
        api.wait_state(job_id, SUCCEEDED)
        assert api.stdout(job_id) == b"GPU-aaaa\n"
    finally:
        made.close()


def test_a_file_of_hosts_that_is_broken_meanwhile_is_told_until_it_is_mended(world, cluster, agent):
    cluster.write_hosts(more="gpu3: {shh: x}\n")
    told = "the file of hosts cannot be read"
    eventually(lambda: told in world.cli("clusters", "lab").stdout, "clusters tells")
    assert told in world.cli("check", "lab", check=False).stdout
    cluster.write_hosts()
    eventually(lambda: told not in world.cli("clusters", "lab").stdout, "it is mended")


def test_hosts_are_shown_with_their_state(world, cluster, agent):
    shown = world.cli("clusters", "lab", "-o", "wide").stdout
    assert "gpu1" in shown and "gpu2" in shown and "rack-gpu2" in shown
    cluster.hosts[1].cut()
    eventually(lambda: "down" in world.cli("clusters", "lab").stdout, "it is shown as down")


def test_gpus_are_found_by_nvidia_smi(api, world, broker):
    del broker
    made = SshCluster(world, 1, gpus=None)
    smi = made.hosts[0].programs / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho '0, GPU-aaaa, NVIDIA H100 80GB HBM3, 81559 MiB'\n"
                   "echo '1, GPU-bbbb, NVIDIA H100 80GB HBM3, 81559 MiB'\n")
    smi.chmod(0o755)
    try:
        made.make_agent().start()
        job_id = api.submit(script_spec('echo "$CUDA_VISIBLE_DEVICES"', resources=gpus(2000)))
        api.wait_state(job_id, SUCCEEDED)
        assert api.stdout(job_id) == b"GPU-aaaa,GPU-bbbb\n"
    finally:
        made.close()


def test_a_mistake_in_the_file_of_hosts_names_place_and_remedy(world, cluster):
    cluster.write_hosts(more="gpu3: {gpu: {h100: 1}}\n")
    agent = cluster.make_agent()
    agent.launch()
    assert agent.wait_exit() != 0
    assert 'hosts.yaml:3:' in agent.log() and 'did you mean "gpu3.gpus"' in agent.log()


def test_a_check_tells_of_each_host(world, cluster):
    cluster.hosts[1].cut()
    agent = cluster.make_agent()
    agent.argv.append("--check")
    agent.launch()
    assert agent.wait_exit() == 1
    assert "muster-supervisor runs there" in agent.log()
    assert "host gpu2" in agent.log() and "ssh -p" in agent.log()


def test_status_json_is_read_where_the_first_rank_is(api, agent):
    entry = json.dumps({"status": "FAILURE", "message": "no convergence"})
    spec = script_spec(f"echo '{entry}' >\"$MUSTER_RESULTS_DIR/status.json\"")
    spec.status_json = True
    job = api.wait_state(api.submit(spec), FAILED)
    assert "status.json" in job.failure.message
