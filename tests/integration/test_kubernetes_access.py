"""An agent that does not get to its cluster: wrong addresses, bad credentials, missing namespaces and rights. Each is told
with its remedy, by the preflight and by whoever meets it, and nothing is half made."""

import contextlib
import pathlib

import pytest
import yaml
from muster.v1 import job_pb2

from harness.api import FAILED, RUNNING, SUCCEEDED, bad_fields, script_spec
from harness.checks import check_locally
from harness.fixtures import kubernetes_fixture
from harness.impostors import greeting, make_certificate, proxy, serving, web_page
from harness.kubernetes import show_directory
from harness.wait import eventually

kubernetes = kubernetes_fixture(nodes=1, gpus=0)

KINDS = ("jobs", "pods", "secrets", "services")
NOBODY = "https://127.0.0.1:1"
PLUGIN_API = "client.authentication.k8s.io/v1"


@pytest.fixture
def config(kubernetes, world):
    """Makes an agent whose kubeconfig is good except for what is given: the cluster's fields, and the user."""
    def make(user=None, **cluster):
        text = yaml.safe_load(kubernetes.kubeconfig_text(kubernetes.admin_token, "default"))
        text["clusters"][0]["cluster"].update(cluster)
        if user is not None:
            text["users"][0]["user"] = user
        return kubernetes.make_agent(world, kubeconfig=world.write("kubeconfig", yaml.safe_dump(text)))
    return make


def check_told(agent, *words):
    """The preflight fails and names all of that."""
    code, said = check_locally(agent)
    assert code == 1, said
    for word in words:
        assert word in said, said
    return said


def check_stops(agent, *words):
    """The agent ends at once, and its last line says why."""
    agent.launch()
    assert agent.wait_exit() == 1
    last = agent.log().splitlines()[-1]
    assert "stopped" in last
    for word in words:
        assert word in last, last


def check_waits(agent, *words):
    """The agent says why it cannot work and goes on asking, since nothing here has to be corrected on its side."""
    agent.launch()
    for word in words:
        eventually(lambda word=word: word in agent.log(), f"the agent's log says {word}", alive=agent.check_alive)
    agent.check_alive()


# ---- the address

@pytest.mark.parametrize("server,words", [
    (NOBODY, "Failed to connect to 127.0.0.1 port 1"),
    ("https://no-such-host.invalid:6443", "Could not resolve host: no-such-host.invalid"),
])
def test_an_address_where_nobody_answers(broker, config, server, words):
    del broker
    agent = config(server=server)
    remedy = "see that the kubeconfig's server is the right address"
    check_told(agent, f"API server {server}", words, remedy)
    check_waits(agent, words, remedy)


@pytest.mark.parametrize("impostor,scheme,words", [
    (web_page, "http", "the answer names no gitVersion, so this is no Kubernetes API server"),
    (web_page, "https", "what answers there does not speak TLS"),
    (greeting, "https", "what answers there does not speak TLS"),
    (greeting, "http", "HTTP/0.9"),
], ids=["a-page", "a-page-where-tls-is-expected", "no-http-where-tls-is-expected", "no-http"])
def test_an_address_where_something_else_answers(broker, config, impostor, scheme, words):
    del broker
    with serving(impostor()) as port:
        agent = config(server=f"{scheme}://127.0.0.1:{port}")
        check_told(agent, words, "the server's address in the kubeconfig")
        check_waits(agent, words)


# ---- the way there

INSIDE = "kubernetes.default.svc"  # in the server's certificate, and resolved by nobody here


@pytest.fixture
def tunnel(kubernetes):
    """A proxy that leads to the API server, and its URL."""
    server = proxy(int(kubernetes.cluster_entry["server"].rpartition(":")[2]))
    with serving(server) as port:
        yield server, f"http://127.0.0.1:{port}"


def test_a_proxy_of_the_kubeconfig(api, config, tunnel):
    server, url = tunnel
    config(server="https://api.invalid:6443", **{"proxy-url": url, "tls-server-name": INSIDE}).start()
    job_id = api.submit(script_spec("echo through"))
    api.wait_state(job_id, SUCCEEDED)
    assert api.stdout(job_id) == b"through\n"
    assert set(server.asked_for) == {"api.invalid:6443"}


def test_a_proxy_of_the_environment(api, config, tunnel):
    server, url = tunnel
    agent = config(server=f"https://{INSIDE}:6443")
    agent.env["HTTPS_PROXY"] = url
    agent.start()
    api.wait_state(api.submit(script_spec("true")), SUCCEEDED)
    assert set(server.asked_for) == {f"{INSIDE}:6443"}


def test_no_proxy_of_the_environment_where_it_says_so_or_the_server_is_of_this_machine(broker, config, tunnel):
    del broker
    server, url = tunnel
    agent = config(server=f"https://{INSIDE}:6443")
    agent.env.update({"HTTPS_PROXY": url, "NO_PROXY": "other.example,.svc"})
    check_told(agent, f"Could not resolve host: {INSIDE}")
    near = config()
    near.env["HTTPS_PROXY"] = url
    code, said = check_locally(near)
    assert code == 0, said
    assert not server.asked_for


def test_a_certificate_that_is_not_looked_at_works_and_is_warned_of(kubernetes, world, api):
    text = yaml.safe_load(kubernetes.kubeconfig_text(kubernetes.admin_token, "default"))
    cluster = text["clusters"][0]["cluster"]
    del cluster["certificate-authority"]
    path = world.write("kubeconfig", yaml.safe_dump(text))
    agent = kubernetes.make_agent(world, kubeconfig=path)
    check_told(agent, "API server", "certificate")
    cluster["insecure-skip-tls-verify"] = True
    path.write_text(yaml.safe_dump(text))
    code, said = check_locally(agent)
    assert code == 0 and "its certificate is not looked at" in said, said
    agent.start()
    api.wait_state(api.submit(script_spec("true")), SUCCEEDED)
    assert "insecure-skip-tls-verify is set" in world.cli("clusters", "lab").stdout


def test_a_certificate_of_another_authority(broker, world, config):
    del broker
    certificate, _ = make_certificate(world.root, "another")
    agent = config(**{"certificate-authority": str(certificate)})
    words = "server, certificate-authority and tls-server-name of the kubeconfig must be of one cluster"
    check_told(agent, words, "set certificate-authority-data in the kubeconfig to the cluster's own authority")
    check_stops(agent, words)


def test_the_same_cluster_by_another_address_goes_on_with_its_runs(kubernetes, world, broker, api, config):
    del broker
    gate = world.gate()
    first = kubernetes.make_agent(world, allow_host_path="yes").start()
    job_id = api.submit(show_directory(script_spec(gate.script() + "\necho done"), world.root))
    api.wait_state(job_id, RUNNING)
    first.kill()
    authority = world.write("rotated.pem", pathlib.Path(kubernetes.cluster_entry["certificate-authority"]).read_text())
    port = kubernetes.cluster_entry["server"].rpartition(":")[2]
    config(server=f"https://localhost:{port}", **{"certificate-authority": str(authority),
                                                  "tls-server-name": "kubernetes.default.svc"}).start()
    gate.open()
    job = api.wait_state(job_id, SUCCEEDED)
    assert len(job.runs) == 1 and api.stdout(job_id) == b"done\n"
    states = [step.run_state for step in api.transitions(job_id)]
    assert job_pb2.RUN_STATE_LOST not in states and job_pb2.RUN_STATE_LAUNCH_UNKNOWN not in states


# ---- the credentials

def plugin(world, text):
    path = world.write("plugin", f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def exec_user(command):
    return {"exec": {"apiVersion": PLUGIN_API, "command": command, "interactiveMode": "Never", "installHint": "see the wiki"}}


def test_a_token_that_the_server_does_not_take(broker, config):
    del broker
    agent = config(user={"token": "of-another-time"})
    words = ("401 Unauthorized", "the credentials have expired, or are another cluster's: renew those of the context")
    check_told(agent, *words, "kubectl get --raw /version with the same file and context must work")
    check_stops(agent, *words)


@pytest.mark.parametrize("text,words", [
    (None, "No such file or directory"), ("", "is empty"), ("of-another-time", "401 Unauthorized"),
], ids=["missing", "empty", "refused"])
def test_a_token_file_that_is_of_no_use_yet_is_waited_for(kubernetes, world, api, config, text, words):
    path = world.path("token")
    if text is not None:
        path.write_text(text)
    agent = config(user={"tokenFile": str(path)})
    check_told(agent, words, f"have a new token written to {path}")
    check_waits(agent, words)
    path.write_text(kubernetes.admin_token)
    api.wait_state(api.submit(script_spec("true")), SUCCEEDED)


def test_a_user_without_credentials(broker, config):
    del broker
    agent = config(user={})
    words = "no credentials were sent: name a user in the kubeconfig's context"
    check_told(agent, "system:anonymous", words)
    check_stops(agent, words)


@pytest.mark.parametrize("text,words", [
    (None, "cannot start"),
    ("echo token=very-secret", "it printed no JSON object"),
    ("echo not logged in >&2; exit 7", "it ended with code 7: not logged in"),
    pytest.param("exec sleep 1000", "did not end within", marks=pytest.mark.slow),
], ids=["missing", "prints-rubbish", "fails", "hangs"])
def test_a_credentials_plugin_that_gives_none(broker, world, config, text, words):
    del broker
    command = str(world.path("nowhere")) if text is None else plugin(world, text)
    agent = config(user=exec_user(command))
    said = check_told(agent, f'credentials plug-in "{command}" of context "agent"', words, "see the wiki")
    assert "very-secret" not in said
    check_stops(agent, words, "see the wiki")


def test_a_kubeconfig_that_is_not_there_or_lacks_the_context(kubernetes, world, broker):
    del broker
    agent = kubernetes.make_agent(world, kubeconfig=world.path("nowhere"))
    check_told(agent, str(world.path("nowhere")))
    agent = kubernetes.make_agent(world, context="other")
    check_told(agent, 'no context "other"; it has ')


# ---- the namespace

def terminating(kubernetes):
    """A namespace that something keeps from going."""
    name = kubernetes.make_namespace()
    kubernetes.must("POST", f"/api/v1/namespaces/{name}/configmaps",
                    {"metadata": {"name": "stays", "finalizers": ["example.com/test"]}})
    kubernetes.must("DELETE", f"/api/v1/namespaces/{name}")
    return name


@pytest.fixture(params=["missing", "terminating"])
def bad_namespace(request, kubernetes):
    """Its name, and what the server says of it."""
    if request.param == "missing":
        yield "nowhere", 'namespaces "nowhere" not found'
        return
    name = terminating(kubernetes)
    yield name, "because it is being terminated"
    kubernetes.must("PATCH", f"/api/v1/namespaces/{name}/configmaps/stays", {"metadata": {"finalizers": None}})


def test_a_namespace_that_is_not_there_or_is_going(kubernetes, world, api, bad_namespace):
    name, words = bad_namespace
    agent = kubernetes.make_agent(world, namespace=name)
    check_told(agent, words, f"make the namespace (kubectl create namespace {name})")
    agent.start()
    job_id = api.submit(script_spec("true"))
    assert f'pool "{name}" takes no jobs at the moment: it is ' in world.cli("why", job_id).stdout
    assert f"make it (kubectl create namespace {name})" in world.cli("clusters", "lab").stdout
    assert not any(kubernetes.objects(kind, namespace=name) for kind in KINDS)


def test_a_namespace_that_is_not_there_has_one_remedy_also_for_an_account_of_least_rights(kubernetes, world, broker):
    del broker
    agent = kubernetes.make_least_agent(world, kubernetes.make_namespace(), namespaces="nowhere")
    said = check_told(agent, 'namespace nowhere: there is none: get namespace nowhere: the API server answered 404')
    about = [line for line in said.splitlines() if "nowhere" in line and "projects: " not in line]
    assert len(about) == 2, "its line, and the remedy"
    assert "        -> make the namespace (kubectl create namespace nowhere)" in said


def test_a_namespace_without_rights_has_its_remedy_once(kubernetes, world, broker):
    del broker
    shut = kubernetes.make_namespace()
    agent = kubernetes.make_least_agent(world, kubernetes.make_namespace(), namespaces=shut)
    said = check_told(agent, f"fail    rights to jobs in namespace {shut}")
    assert said.count(f"kubectl apply -n {shut} -f deploy/kubernetes/rights.yaml") == 1, said


# ---- the rights

@contextlib.contextmanager
def without(kubernetes, namespace, verb, resource):
    """The agent's Role without one right."""
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles/muster-agent"
    rules = kubernetes.must("GET", path)["rules"]
    less = [{**rule, "resources": [one], "verbs": [v for v in rule["verbs"] if (v, one) != (verb, resource)]}
            for rule in rules for one in rule["resources"]]
    kubernetes.must("PATCH", path, {"rules": [rule for rule in less if rule["verbs"]]})
    try:
        kubernetes.wait_until_forbidden(namespace, verb, "batch" if resource == "jobs" else "", resource)
        yield
    finally:
        kubernetes.must("PATCH", path, {"rules": rules})


@pytest.mark.parametrize("resource", ["jobs", "secrets"])
def test_a_launch_that_the_account_may_not_make(kubernetes, world, broker, api, resource):
    del broker
    namespace = kubernetes.make_namespace()
    agent = kubernetes.make_least_agent(world, namespace)
    with without(kubernetes, namespace, "create", resource):
        check_told(agent, f"rights to {resource} in namespace {namespace}: not allowed: create", "rights.yaml")
        agent.start()
        job_id = api.submit(script_spec("true"))
        reason = eventually(lambda: [run.state_reason.message for run in api.get(job_id).runs if run.state_reason.message], "the run says why it waits")[0]
        assert f'cannot create resource "{resource}"' in reason and "muster-agent" in reason
        assert "it waits for this right" in reason
        assert not kubernetes.objects("pods", namespace=namespace)
    assert len(api.wait_state(job_id, SUCCEEDED).runs) == 1


# ---- what Kubernetes would refuse

BAD_NAMES = {
    "namespace": {"namespace": "Not A Name"},
    "queue": {"queue": "-q"},
    "service_account": {"service_account": "under_score"},
    "priority_class": {"priority_class": "Upper"},
    "labels": {"labels": {"no spaces": "x"}},
    "labels[\"app\"]": {"labels": {"app": "x" * 64}},
    "annotations": {"annotations": {"muster.dev/job": "7"}},
    "node_selector": {"node_selector": {"disk": "very fast"}},
    "image_pull_secrets[0]": {"image_pull_secrets": ["a b"]},
}


@pytest.mark.parametrize("field", BAD_NAMES)
def test_names_and_labels_that_kubernetes_would_refuse_are_named_at_once(api, field):
    spec = script_spec("true")
    for name, value in BAD_NAMES[field].items():
        part = getattr(spec.kubernetes, name)
        if isinstance(value, str):
            setattr(spec.kubernetes, name, value)
        elif isinstance(value, list):
            part.extend(value)
        else:
            part.update(value)
    with pytest.raises(Exception) as caught:
        api.submit(spec)
    named = bad_fields(caught.value)
    assert any(name.startswith(f"spec.kubernetes.{field}") for name in named), named
    assert all(named.values()) and not api.list_all()


@pytest.mark.parametrize("field,words", [
    ("priority_class", 'there is none; it has "high", "system-cluster-critical", "system-node-critical"'),
    ("service_account", 'there is none in namespace NS; it has "default"'),
    ("runtime_class", "there is none; it has none"),
])
def test_what_a_job_names_and_is_not_there_is_told_at_once_with_what_is(kubernetes, world, api, field, words):
    namespace = kubernetes.make_namespace()
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    if kubernetes.admin("GET", classes + "/high")[0] != 200:
        kubernetes.must("POST", classes, {"metadata": {"name": "high"}, "value": 7})
    kubernetes.make_least_agent(world, namespace).start()
    path = world.write("job.yaml", f"run: 'true'\nkubernetes: {{{field}: nosuch}}\n")
    said = f'kubernetes.{field} "nosuch": {words.replace("NS", namespace)}'
    plan = world.cli("plan", path, check=False)
    assert plan.returncode == 13 and said in plan.stdout, plan.stdout
    refused = world.cli("submit", path, check=False)
    assert refused.returncode == 13 and said in refused.stderr, refused.stderr
    assert not api.list_all() and not any(kubernetes.objects(kind, namespace=namespace) for kind in KINDS)
    there = world.write("there.yaml", "run: 'true'\nkubernetes: {priority_class: high, service_account: default}\n")
    assert world.cli("plan", there).returncode == 0


def test_a_claim_that_is_not_there_is_warned_of_and_waited_for_by_its_fields_name(kubernetes, world, api):
    namespace = kubernetes.make_namespace()
    kubernetes.make_least_agent(world, namespace, start_grace="1s").start()
    path = world.write("job.yaml", "run: 'true'\nkubernetes: {volumes: [{mount_path: /data, claim: nosuch}]}\n")
    plan = world.cli("plan", path)
    assert f'kubernetes.volumes[0].claim  "nosuch": there is none in namespace {namespace}; it has none' in plan.stdout
    assert "the run waits for it for 1s and fails then" in plan.stdout
    told = world.cli("submit", path)
    assert told.stderr.startswith("muster: warning: on cluster "), told.stderr
    assert f': kubernetes.volumes[0].claim "nosuch": there is none in namespace {namespace}' in told.stderr
    assert told.stderr.count("\n") == 1, "a line for each"
    assert "Would start at once" not in plan.stdout
    quiet = world.cli("submit", "-q", path)
    assert quiet.stderr == ""
    message = api.wait_state(int(quiet.stdout), FAILED).failure.message
    assert message.startswith("The pod cannot start: Unschedulable: "), message
    assert 'persistentvolumeclaim "nosuch" not found (kubernetes.volumes[0].claim)' in message
    assert "not found. not found" not in message and "resourceVersion" not in message


def test_a_claim_that_nothing_gives_a_volume_is_told_by_its_name_and_ends_the_run(kubernetes, world, api):
    namespace = kubernetes.make_namespace()
    kubernetes.make_least_agent(world, namespace, start_grace="1s").start()
    kubernetes.must("POST", f"/api/v1/namespaces/{namespace}/persistentvolumeclaims", {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
    path = world.write("job.yaml", "run: 'true'\nkubernetes: {volumes: [{mount_path: /data, claim: data}]}\n")
    plan = world.cli("plan", path).stdout
    assert 'kubernetes.volumes[0].claim  "data" has no volume, and no storage class that makes one' in plan, plan
    assert "Would start at once" not in plan
    failure = api.wait_state(int(world.cli("submit", "-q", path).stdout), FAILED).failure
    assert failure.message.startswith('The pod cannot start: kubernetes.volumes[0].claim "data" has no volume'), failure
    assert "kubectl get storageclass" in failure.remedy


def test_a_plan_says_of_what_it_cannot_ask_and_names_all_that_is_missing(kubernetes, world, broker):
    del broker
    namespace = kubernetes.make_namespace()
    kubernetes.make_least_agent(world, namespace).start()
    unseen = world.write("unseen.yaml", "run: 'true'\nkubernetes: {volumes: [{mount_path: /a, secret: key}]}\n")
    assert 'kubernetes.volumes[0].secret  "key" could not be asked for' in world.cli("plan", unseen).stdout
    path = world.write("job.yaml", "run: 'true'\nkubernetes: {priority_class: a, service_account: b, runtime_class: c}\n")
    told = world.cli("plan", path, check=False).stdout
    for words in ('kubernetes.priority_class "a": ', 'kubernetes.service_account "b": ', 'kubernetes.runtime_class "c": '):
        assert words in told, told


@pytest.mark.parametrize("text", ["resources: {memory: 1Qx}", "resources: {memory: lots}", "resources: {cpus: -1}",
                                  "kubernetes: {shm: '64 MiBs'}", "kubernetes: {time_to_live: soon}"])
def test_quantities_that_kubernetes_would_not_parse_are_named_with_their_line(world, broker, text):
    del broker
    path = world.write("job.yaml", f"run: 'true'\n{text}\n")
    done = world.cli("submit", path, check=False)
    assert done.returncode in (1, 2)
    assert "job.yaml:2:" in done.stderr, done.stderr


@pytest.mark.parametrize("setting", ["default_memory: lots", "default_cpus: -1", "start_grace: soon"])
def test_settings_that_are_no_quantities_are_named(kubernetes, world, broker, setting):
    del broker
    key, value = setting.split(": ")
    agent = kubernetes.make_agent(world, **{key: value})
    agent.launch()
    assert agent.wait_exit() == 2
    assert f"kubernetes.{key}" in agent.log() and value in agent.log()
