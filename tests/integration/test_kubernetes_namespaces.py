"""One agent with the least rights in several namespaces: each is a pool, and a fault of one does not affect the others."""

import pytest
from muster.v1 import facts_pb2, job_pb2

from harness.api import CANCELED, RUNNING, SUCCEEDED, error_info, script_spec
from harness.fixtures import kubernetes_fixture
from harness.kubernetes import show_directory
from harness.wait import eventually

kubernetes = kubernetes_fixture(nodes=1, gpus=0)


@pytest.fixture
def names(kubernetes):
    """The agent's default namespace, one more, and one without its rights."""
    home, team, shut = (kubernetes.make_namespace() for _ in range(3))
    kubernetes.least_rights_token(team)
    return home, team, shut


@pytest.fixture
def agent(kubernetes, world, broker, names):
    del broker
    home, *further = names
    return kubernetes.make_least_agent(world, home, namespaces=",".join(further), allow_host_path="yes").start()


def in_namespace(name, text, by_pool=False):
    spec = script_spec(text)
    if by_pool:
        spec.placement.pool = name
    else:
        spec.kubernetes.namespace = name
    return spec


def test_pool_and_namespace_both_choose_it(kubernetes, agent, api, names):
    del agent
    home, team, _ = names
    jobs = {api.submit(script_spec("echo at home")): home, api.submit(in_namespace(team, "echo by name")): team,
            api.submit(in_namespace(team, "echo by pool", by_pool=True)): team}
    said = []
    for job_id, namespace in jobs.items():
        run = api.wait_state(job_id, SUCCEEDED).runs[0]
        assert kubernetes.objects("jobs", run.run_key, namespace)
        said.append(api.stdout(job_id))
    assert said == [b"at home\n", b"by name\n", b"by pool\n"]


def test_jobs_in_both_survive_a_restart_and_are_canceled_where_they_are(kubernetes, world, agent, api, names):
    gate = world.gate()
    text = f"echo one\n{gate.script()}\necho two"
    home, team = (api.submit(show_directory(in_namespace(name, text), world.root)) for name in names[:2])
    stays = api.submit(in_namespace(names[1], "exec sleep 1000"))
    for job_id in (home, team, stays):
        api.wait_state(job_id, RUNNING)
    agent.kill()
    gate.open()
    agent.start()
    for job_id in (home, team):
        assert len(api.wait_state(job_id, SUCCEEDED).runs) == 1
        assert api.stdout(job_id) == b"one\ntwo\n"
    api.cancel(stays)
    run = api.wait_state(stays, CANCELED).runs[0]
    for kind in ("jobs", "pods", "secrets"):
        eventually(lambda kind=kind: not kubernetes.objects(kind, run.run_key, names[1]), f"its {kind} are gone")


def test_one_that_the_agent_does_not_work_in_is_refused_by_name(agent, api):
    del agent
    with pytest.raises(Exception) as caught:
        api.submit(in_namespace("elsewhere", "true"))
    assert error_info(caught.value).reason == "CANNOT_BE_PLACED"
    assert 'no namespace "elsewhere"' in caught.value.details()


def test_jobs_of_one_without_its_rights_wait_for_them(kubernetes, world, agent, api, names):
    _, _, shut = names
    job_id = api.submit(in_namespace(shut, "echo at last"))
    why = world.cli("why", job_id).stdout
    assert f'pool "{shut}" takes no jobs at the moment: it is forbidden' in why and "muster clusters lab tells more" in why
    reason = api.get(job_id).state_reason
    assert (reason.code, reason.pool) == (facts_pb2.STATE_REASON_CODE_POOL_UNAVAILABLE, shut)
    plan = world.cli("plan", "--pool", shut, "--", "true").stdout
    assert f'pool "{shut}" takes no jobs at the moment: it is forbidden' in plan and "until then the job waits" in plan
    assert f"kubectl apply -n {shut} -f rights.yaml" in plan, "what the agent says is to be done"
    assert f"pool {shut} is forbidden" in world.cli("clusters", "-o", "wide").stdout
    page = world.cli("clusters", "lab").stdout
    assert f"namespace {shut} is forbidden: " in page and f"kubectl apply -n {shut} -f rights.yaml" in page
    assert not kubernetes.objects("events", namespace=shut), "nothing was tried there"
    kubernetes.least_rights_token(shut)
    # The agent would see them within a minute; one that starts looks at once.
    agent.kill()
    agent.start()
    assert [run.number for run in api.wait_state(job_id, SUCCEEDED).runs] == [1]
    assert api.stdout(job_id) == b"at last\n"


def test_a_job_that_meets_rights_that_have_gone_waits_for_them_as_the_same_run(kubernetes, world, agent, api, names):
    team = names[1]
    api.wait_state(api.submit(in_namespace(team, "true", by_pool=True)), SUCCEEDED)
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{team}/rolebindings/muster-agent"
    kubernetes.admin("DELETE", path)
    kubernetes.wait_until_forbidden(team, "create", "batch", "jobs")
    met = api.submit(in_namespace(team, "echo met", by_pool=True))
    eventually(lambda: "cannot create resource" in world.cli("why", met).stdout, "the server's words reach the user")
    assert "it waits for this right" in world.cli("why", met).stdout
    eventually(lambda: f"pool {team} is forbidden" in world.cli("clusters", "-o", "wide").stdout, "its pool takes no more")
    late = api.submit(in_namespace(team, "echo late", by_pool=True))
    assert "it is forbidden" in world.cli("why", late).stdout
    assert not api.get(late).runs
    kubernetes.least_rights_token(team)
    for job_id, said in ((met, b"met\n"), (late, b"late\n")):
        assert [run.number for run in api.wait_state(job_id, SUCCEEDED).runs] == [1]
        assert api.stdout(job_id) == said
    for event in ("namespace_down", "namespace_up"):
        assert f"{event} namespace={team}" in agent.log()


def test_a_quota_holds_back_the_jobs_of_its_namespace_alone(kubernetes, world, agent, api, names):
    del agent
    home, team, _ = names
    path = f"/api/v1/namespaces/{team}/resourcequotas"
    kubernetes.must("POST", path, {"metadata": {"name": "small"}, "spec": {"hard": {"requests.cpu": "1"}}})
    eventually(lambda: "used" in kubernetes.must("GET", path + "/small")["status"], "the quota counts")
    gate = world.gate()
    first = api.submit(show_directory(in_namespace(team, gate.script()), world.root))
    api.wait_state(first, RUNNING)
    second = api.submit(in_namespace(team, "true"))
    eventually(lambda: "quota small: 1 of 1 requests.cpu used" in world.cli("why", second).stdout, "it says what it waits for")
    api.wait_state(api.submit(in_namespace(home, "true")), SUCCEEDED)
    assert api.get(second).state == job_pb2.JOB_STATE_PENDING
    gate.open()
    api.wait_state(second, SUCCEEDED)


def test_a_run_whose_namespace_goes_is_followed_by_none_before_that_is_there_again(kubernetes, world, agent, api, names):
    del agent
    team = names[1]
    spec = in_namespace(team, "exec sleep 1000")
    # The time is longer than that between two heartbeats, which bring the agent's knowledge of namespaces.
    spec.retry.backoff.FromSeconds(10)
    job_id = api.submit(spec)
    api.wait_state(job_id, RUNNING)
    kubernetes.must("DELETE", f"/api/v1/namespaces/{team}")
    # A Job that goes before its pod does is a cancel by others.
    eventually(lambda: "takes no jobs at the moment" in world.cli("why", job_id).stdout
               or api.get(job_id).state == CANCELED, "the broker knows that the namespace goes")
    eventually(lambda: kubernetes.admin("GET", f"/api/v1/namespaces/{team}")[0] == 404, "it is gone")
    assert len(api.get(job_id).runs) == 1, "none is made for a namespace that is not there"


def test_a_run_for_a_namespace_that_goes_says_so_and_starts_once_it_is_there_again(kubernetes, world, agent, api, names):
    del agent
    team = names[1]
    kubernetes.must("DELETE", f"/api/v1/namespaces/{team}")
    met = api.submit(in_namespace(team, "echo met"))
    eventually(lambda: "it waits for the namespace: make it (kubectl create namespace" in world.cli("why", met).stdout
               or "takes no jobs at the moment: it is " in world.cli("why", met).stdout, "why it waits")
    eventually(lambda: kubernetes.admin("GET", f"/api/v1/namespaces/{team}")[0] == 404, "it is gone")
    kubernetes.must("POST", "/api/v1/namespaces", {"metadata": {"name": team}})
    kubernetes.least_rights_token(team)
    assert [run.number for run in api.wait_state(met, SUCCEEDED).runs] == [1]
