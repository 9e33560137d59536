"""A broker as a cluster of another one: real brokers, one behind the other, and a real machine at the end."""

import grpc
import pytest

from muster.v1 import (cluster_pb2, clusters_service_pb2, identity_service_pb2, identity_service_pb2_grpc, job_pb2,
                       jobs_service_pb2, projects_service_pb2, projects_service_pb2_grpc, signal_jobs_pb2)

from harness.api import CALL_TIMEOUT_S, CANCELED, FAILED, RUNNING, SUCCEEDED, bad_fields, script_spec
from harness.cutting_relay import CuttingRelay
from harness.wait import eventually

PENDING = job_pb2.JOB_STATE_PENDING


class Chain:
    """Brokers, each the cluster "far" of the one before; the last one has this machine as "box"."""

    def __init__(self, world, levels, address_of=None):
        self.world = world
        self.brokers = [world.make_broker(state_dir=world.path(f"b{i}")).start() for i in range(levels + 1)]
        self.apis = [world.api(broker) for broker in self.brokers]
        self.machine = world.make_agent(broker=self.brokers[-1]).start()
        self.bridges = []
        for level in reversed(range(levels)):
            address = address_of(self.brokers[level + 1]) if address_of else self.brokers[level + 1].address
            self.bridges.append(world.make_agent(
                "far", kind="muster", config=f"muster:\n  address: {address}\n", broker=self.brokers[level],
                state_dir=world.path(f"bridge-{level}")).start())

    @property
    def near(self):
        return self.apis[0]

    @property
    def last(self):
        return self.apis[-1]

    def jobs_there(self, level=1):
        return self.apis[level].list_all(include_spec=True)


@pytest.fixture(params=[1, 2], ids=["one level", "two levels"])
def chain(world, request):
    return Chain(world, request.param)


@pytest.fixture
def pair(world):
    return Chain(world, 1)


@pytest.fixture
def cut_pair(world):
    """Two brokers with a relay between them that a test may cut."""
    relays = []

    def relay(broker):
        relays.append(CuttingRelay(broker, world.path("relay.sock")))
        return relays[0].address

    made = Chain(world, 1, relay)
    made.relay = relays[0]
    yield made
    made.relay.close()


def who_am_i(api):
    stub = identity_service_pb2_grpc.IdentityServiceStub(api.channel)
    return stub.WhoAmI(identity_service_pb2.WhoAmIRequest(), timeout=CALL_TIMEOUT_S)


def cluster(api, name="far"):
    request = clusters_service_pb2.GetClusterRequest(name=name)
    return api.clusters.GetCluster(request, timeout=CALL_TIMEOUT_S).cluster


def ledger_of(world, text="", name="ledger"):
    """A script that writes a line when it starts, and the file."""
    ledger = world.path(name)
    return ledger, script_spec(f"echo started >>{ledger}\n{text}")


def starts(ledger):
    return len(ledger.read_text().split()) if ledger.exists() else 0


def test_a_job_runs_at_the_last_broker_and_its_output_comes_back(chain):
    job = chain.near.submit(script_spec("echo out $MUSTER_JOB_ID; echo err >&2; printf tail"))
    end = chain.near.wait_end(job)
    assert end.state == SUCCEEDED, end
    assert end.cluster == "far" and end.cluster_kind == cluster_pb2.CLUSTER_KIND_MUSTER
    there = chain.jobs_there()
    assert [one.state for one in there] == [SUCCEEDED]
    assert end.runs[0].external_id == str(there[0].id)
    assert there[0].labels["muster.run"] == end.runs[0].run_key
    assert there[0].labels["muster.user"] == end.user
    assert there[0].spec.retry.max_runs == 1
    last = chain.last.list_all()[0]
    assert chain.near.stdout(job) == b"out %d\ntail" % last.id
    assert chain.near.stderr(job) == b"err\n"
    assert list(end.runs[0].nodes) and end.runs[0].exit.code == 0


def test_output_is_there_while_the_job_runs(world, chain):
    gate = world.gate()
    job = chain.near.submit(script_spec(f"echo first\n{gate.script()}\necho second"))
    chain.near.wait_state(job, RUNNING)
    eventually(lambda: chain.near.read_log(job)[0] == b"first\n", "the first line is there")
    gate.open()
    assert chain.near.wait_end(job).state == SUCCEEDED
    assert chain.near.stdout(job) == b"first\nsecond\n"


def test_a_failure_keeps_its_code_and_the_words_of_its_output(chain):
    job = chain.near.submit(script_spec("echo the disk fell out >&2; exit 3"))
    end = chain.near.wait_end(job)
    assert end.state == FAILED and end.exit.code == 3
    assert end.failure.failure_class == job_pb2.FAILURE_CLASS_PROGRAM
    quotes = [quote.text for quote in end.failure.quotes]
    assert quotes == ["the disk fell out"], "each word once, however many brokers have read it"


def test_retries_are_those_of_the_first_broker(world, chain):
    ledger, spec = ledger_of(world, "exit 3")
    spec.retry.max_runs = 2
    spec.retry.on_failure = True
    spec.retry.backoff.FromMilliseconds(1)
    end = chain.near.wait_end(chain.near.submit(spec))
    assert end.state == FAILED and len(end.runs) == 2
    assert starts(ledger) == 2
    assert len(chain.last.list_all()) == 2


def test_a_running_job_is_canceled_there(world, chain):
    ledger, spec = ledger_of(world, "exec sleep 300")
    job = chain.near.submit(spec)
    chain.near.wait_state(job, RUNNING)
    chain.near.cancel(job)
    assert chain.near.wait_end(job).state == CANCELED
    assert chain.last.list_all()[0].state == CANCELED
    assert starts(ledger) == 1


def test_a_job_that_is_canceled_there_says_that_others_did_it(pair):
    job = pair.near.submit(script_spec("exec sleep 300"))
    pair.near.wait_state(job, RUNNING)
    pair.last.cancel(pair.last.list_all()[0].id)
    end = pair.near.wait_end(job)
    assert end.state == CANCELED
    assert "not by Muster" in end.state_reason.message


def fill(world, pair):
    """A job that has the whole machine until the gate opens."""
    gate = world.gate()
    full = script_spec(gate.script())
    full.resources.cpu_millis = 8000
    first = pair.near.submit(full)
    pair.near.wait_state(first, RUNNING)
    return gate, first


@pytest.mark.parametrize("edit", [{"set_labels": {"muster.run": "x-1-1"}}, {"remove_labels": ["muster.cluster"]}])
def test_the_labels_by_which_an_agent_knows_its_jobs_cannot_be_edited(world, pair, edit):
    gate = world.gate()
    job = pair.near.submit(script_spec(gate.script()))
    pair.near.wait_state(job, RUNNING)
    [there] = pair.jobs_there()
    with pytest.raises(grpc.RpcError) as refused:
        pair.last.jobs.UpdateJob(jobs_service_pb2.UpdateJobRequest(job_id=there.id, **edit), timeout=CALL_TIMEOUT_S)
    assert list(bad_fields(refused.value)) == ['set_labels["muster.run"]' if "set_labels" in edit else "remove_labels[0]"]
    gate.open()
    assert pair.near.wait_end(job).state == SUCCEEDED


def test_a_held_job_waits_there_until_it_is_released(world, pair):
    """The machine is full, so that the job waits at the other broker when the hold comes."""
    gate, first = fill(world, pair)
    ledger, spec = ledger_of(world)
    spec.resources.cpu_millis = 8000
    second = pair.near.submit(spec)
    eventually(lambda: len(pair.jobs_there()) == 2, "the second job is there")
    pair.near.hold(second)
    eventually(lambda: pair.jobs_there()[0].held, "it is held there")
    gate.open()
    pair.near.wait_end(first)
    pair.near.release(second)
    assert pair.near.wait_end(second).state == SUCCEEDED
    assert starts(ledger) == 1


def test_a_job_that_waits_there_waits_with_the_words_of_the_other_broker(world, pair):
    gate = world.gate()
    spec = script_spec(gate.script())
    spec.resources.cpu_millis = 8000
    jobs = pair.near.submit_many([spec, spec])
    # The two are launched at the same time, so that either may be there first.
    running = eventually(lambda: next((job for job in jobs if pair.near.get(job).state == RUNNING), None), "one of them runs")
    waiting = sum(jobs) - running

    def words():
        there = pair.last.list_all(filter="state = PENDING")
        return there and there[0].state_reason.message

    eventually(lambda: words() and pair.near.get(waiting).state_reason.message == words(), "the other broker's words are here")
    assert pair.near.get(waiting).state == PENDING
    gate.open()
    for job in jobs:
        assert pair.near.wait_end(job).state == SUCCEEDED


def test_a_signal_reaches_the_program(pair):
    job = pair.near.submit(script_spec("trap 'echo heard; exit 0' USR1; echo ready; while :; do sleep 0.1; done"))
    pair.near.wait_state(job, RUNNING)
    eventually(lambda: pair.near.read_log(job)[0] == b"ready\n", "the trap is set")
    request = signal_jobs_pb2.SignalJobsRequest(job_ids=[job], signal="USR1")
    answer = pair.near.jobs.SignalJobs(request, timeout=CALL_TIMEOUT_S)
    assert not answer.signals[0].HasField("error"), answer
    assert pair.near.wait_end(job).state == SUCCEEDED
    assert pair.near.stdout(job) == b"ready\nheard\n"


def test_a_launch_whose_answer_is_lost_is_made_once(world, cut_pair):
    ledger, spec = ledger_of(world)
    cut_pair.relay.mute()
    job = cut_pair.near.submit(spec)
    eventually(cut_pair.jobs_there, "the submission has arrived")
    cut_pair.relay.cut()
    assert cut_pair.near.wait_end(job).state == SUCCEEDED
    assert len(cut_pair.jobs_there()) == 1
    assert starts(ledger) == 1


def test_a_broker_that_is_killed_at_the_launch_runs_the_job_once(world, cut_pair):
    ledger, spec = ledger_of(world)
    cut_pair.relay.mute()
    job = cut_pair.near.submit(spec)
    eventually(cut_pair.jobs_there, "the submission has arrived")
    cut_pair.brokers[1].kill()
    cut_pair.relay.cut()
    cut_pair.brokers[1].start()
    assert cut_pair.near.wait_end(job).state == SUCCEEDED
    assert len(cut_pair.jobs_there()) == 1
    assert starts(ledger) == 1


def test_jobs_over_a_link_that_is_cut_again_and_again_run_once_each(world, cut_pair):
    specs = [ledger_of(world, name=f"ledger-{i}") for i in range(20)]
    jobs = []
    for number, (_, spec) in enumerate(specs):
        if number % 4 == 1:
            cut_pair.relay.mute()
        jobs.append(cut_pair.near.submit(spec))
        if number % 4 == 3:
            cut_pair.relay.cut()
    cut_pair.relay.cut()
    for job in jobs:
        assert cut_pair.near.wait_end(job).state == SUCCEEDED
    assert [starts(ledger) for ledger, _ in specs] == [1] * len(specs)
    assert len(cut_pair.jobs_there()) == len(jobs)


def test_a_cancel_while_nobody_knows_of_the_launch_leaves_nothing_that_could_begin(world, cut_pair):
    """The machine is full, so that what arrives waits there."""
    gate, first = fill(world, cut_pair)
    ledger, spec = ledger_of(world)
    spec.resources.cpu_millis = 8000
    cut_pair.relay.mute()
    job = cut_pair.near.submit(spec)
    eventually(lambda: len(cut_pair.jobs_there()) == 2, "the submission has arrived")
    cut_pair.near.cancel(job)
    cut_pair.relay.cut()
    assert cut_pair.near.wait_end(job).state == CANCELED
    gate.open()
    assert cut_pair.near.wait_end(first).state == SUCCEEDED
    assert starts(ledger) == 0


def test_the_agent_between_them_may_die_while_a_job_runs(world, pair):
    gate = world.gate()
    ledger, spec = ledger_of(world, f"echo before\n{gate.script()}\necho after")
    job = pair.near.submit(spec)
    pair.near.wait_state(job, RUNNING)
    pair.bridges[0].kill()
    gate.open()
    pair.last.wait_end(pair.last.list_all()[0].id)
    pair.bridges[0].start()
    assert pair.near.wait_end(job).state == SUCCEEDED
    assert pair.near.stdout(job) == b"before\nafter\n"
    assert starts(ledger) == 1


def test_the_other_broker_may_be_away_for_a_while(world, pair):
    gate = world.gate()
    job = pair.near.submit(script_spec(f"echo before\n{gate.script()}\necho after"))
    pair.near.wait_state(job, RUNNING)
    pair.brokers[1].kill()
    eventually(lambda: cluster(pair.near).scheduler_error, "the first broker says that it does not answer")
    gate.open()
    pair.brokers[1].start()
    assert pair.near.wait_end(job).state == SUCCEEDED
    assert pair.near.stdout(job) == b"before\nafter\n"


def test_files_go_there_and_come_back(world, chain):
    tree = world.path("tree")
    (tree / "sub").mkdir(parents=True)
    (tree / "in.txt").write_text("brought along\n")
    (tree / "sub" / "deep.txt").write_text("deep\n")
    world.cli("run", "--wait", "-q", "--workdir", ".", "--", "sh", "-c",
              "cat in.txt sub/deep.txt; mkdir made; echo result >made/out.txt; chmod 700 made", cwd=tree)
    job = chain.near.list_all()[0].id
    assert chain.near.stdout(job) == b"brought along\ndeep\n"
    world.cli("cp", f"{job}:made", world.path("back"))
    assert (world.path("back") / "out.txt").read_text() == "result\n"
    refused = world.cli("cp", f"{job}:nothing", world.path("none"), check=False)
    assert refused.returncode != 0 and "nothing" in refused.stderr


def test_the_clusters_there_are_its_pools(chain):
    inventory = cluster(chain.near).inventory
    instances = [who_am_i(api).broker_instance for api in chain.apis]
    prefix = "far/" * (len(chain.brokers) - 2)
    assert [pool.name for pool in inventory.pools] == [f"{prefix}box/default"]
    assert inventory.pools[0].available and inventory.pools[0].node_groups[0].cpus == 8
    assert inventory.identity == instances[1]
    assert list(inventory.broker_instances) == instances[1:]
    assert list(who_am_i(chain.near).reached_instances) == instances[1:]
    job = chain.near.submit(script_spec("true", placement={"pool": f"{prefix}box/default"}))
    assert chain.near.wait_end(job).state == SUCCEEDED


def test_a_pool_there_that_loses_its_agent_takes_no_jobs(pair):
    pair.machine.kill()
    pair.bridges[0].restart()
    pool = cluster(pair.near).inventory.pools[0]
    assert not pool.available and pool.state == "disconnected"


def test_a_plan_passes_what_the_other_broker_would_do(world, chain):
    spec = script_spec("echo hello")
    plan = chain.near.jobs.PlanJob(jobs_service_pb2.PlanJobRequest(spec=spec), timeout=CALL_TIMEOUT_S).plans[0]
    assert plan.cluster == "far"
    assert "would place it on" in plan.submission and "echo hello" in plan.submission
    assert not [check for check in plan.checks if check.result == cluster_pb2.CHECK_RESULT_FAIL]
    checks = world.cli("check", "far").stdout
    assert "remote broker" in checks and "cluster" in checks


def test_what_a_remote_broker_cannot_be_told_fails_with_the_reason(pair):
    spec = script_spec("true")
    spec.retry.exclude_failed_nodes = True
    end = pair.near.wait_end(pair.near.submit(spec))
    assert end.state == FAILED and end.failure.failure_class == job_pb2.FAILURE_CLASS_CONFIG
    assert "exclude_failed_nodes" in end.failure.message
    assert not pair.jobs_there()


def test_a_refusal_there_is_told_in_its_words(world):
    """The project that pays there may use other clusters alone."""
    near = world.make_broker(state_dir=world.path("b0")).start()
    far = world.make_broker(state_dir=world.path("b1")).start()
    world.make_agent(broker=far).start()
    projects = projects_service_pb2_grpc.ProjectsServiceStub(world.api(far).channel)
    guests = projects_service_pb2.CreateProjectRequest(name="guests", limits={"clusters": ["elsewhere"]})
    projects.CreateProject(guests, timeout=CALL_TIMEOUT_S)
    world.make_agent("far", kind="muster", broker=near, state_dir=world.path("bridge"),
                     config=f"muster:\n  address: {far.address}\n  project: guests\n").start()
    api = world.api(near)
    end = api.wait_end(api.submit(script_spec("true")))
    assert end.state == FAILED and end.failure.failure_class == job_pb2.FAILURE_CLASS_CONFIG
    assert "the project \"guests\" may not use it" in end.failure.message
    assert not world.api(far).list_all()


def test_a_broker_refuses_a_cluster_that_has_itself_behind_it(world, chain):
    """Through one broker, and through two: the last one gets the first as a cluster."""
    last = chain.brokers[-1]
    back = world.make_agent("back", kind="muster", broker=last, state_dir=world.path("back"),
                            config=f"muster:\n  address: {chain.brokers[0].address}\n")
    back.launch()
    eventually(lambda: "round in a circle" in back.log(), "the agent says why it is refused", alive=back.check_alive)
    with pytest.raises(grpc.RpcError) as error:
        cluster(chain.last, "back")
    assert error.value.code() == grpc.StatusCode.NOT_FOUND
    assert chain.near.wait_end(chain.near.submit(script_spec("true"))).state == SUCCEEDED
