"""Admission webhooks and policies that refuse what Muster makes: their words reach the user whole, nothing is half made, and
one that is away is waited for."""

import base64
import contextlib

import pytest
from muster.v1 import job_pb2

from harness.api import FAILED, RUNNING, SUCCEEDED, script_spec
from harness.fixtures import kubernetes_fixture
from harness.impostors import make_certificate, serving, webhook
from harness.kubernetes import show_directory
from harness.wait import eventually

kubernetes = kubernetes_fixture(nodes=2, gpus=0)

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
KINDS = ("jobs", "pods", "secrets", "services")
# So many runs that waits for the webhook, one after the other, would take minutes.
MANY = 32
# A message as a person would write it, with all that a shell, JSON, HTML or an error's reader might
# stumble over.
WORDS = 'teams cannot run "big" jobs; <b>ask</b> ops@example.com, exceeded the budget & more: äöü 漢字 ' + "x" * 2000 + " the end"


@pytest.fixture
def agent(kubernetes, world, broker, namespace):
    del broker
    return kubernetes.make_least_agent(world, namespace, start_grace="1s", allow_host_path="yes").start()


def rules(kind, operation="CREATE"):
    group = {"jobs": "batch"}.get(kind, "")
    return [{"apiGroups": [group], "apiVersions": ["v1"], "operations": [operation], "resources": [kind]}]


def only_in(namespace):
    return {"matchLabels": {"kubernetes.io/metadata.name": namespace}}


@contextlib.contextmanager
def webhook_at(kubernetes, namespace, about, certificate, port):
    """The API server asks that port about all such changes, and takes none that it could not ask about."""
    path = f"{ADMISSION}/validatingwebhookconfigurations"
    hook = {"name": "budget.example.com", "rules": about, "failurePolicy": "Fail", "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "namespaceSelector": only_in(namespace), "timeoutSeconds": 5,
            "clientConfig": {"url": f"https://127.0.0.1:{port}/", "caBundle": base64.b64encode(certificate.read_bytes()).decode()}}
    kubernetes.must("POST", path, {"metadata": {"name": "budget"}, "webhooks": [hook]})
    try:
        yield
    finally:
        kubernetes.must("DELETE", path + "/budget")


POD = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "debian:12"}]}
SPECS = {"jobs": {"template": {"spec": POD}}, "pods": POD, "services": {"ports": [{"port": 80}]}}


def refuses(kubernetes, namespace, kind, words):
    """The API server has heard of it, and says so of an object that nobody keeps."""
    group = "/apis/batch/v1" if kind == "jobs" else "/api/v1"
    path = f"{group}/namespaces/{namespace}/{kind}?dryRun=All"
    thing = {"metadata": {"generateName": "try-"}}
    if kind in SPECS:
        thing["spec"] = SPECS[kind]
    eventually(lambda: words in str(kubernetes.admin("POST", path, thing)[1]), f"new {kind} are refused")


@contextlib.contextmanager
def refusing_webhook(kubernetes, world, namespace, kind, code):
    certificate, key = make_certificate(world.root, "webhook")
    with serving(webhook(certificate, key, lambda thing: {"message": WORDS, "code": code})) as port:
        with webhook_at(kubernetes, namespace, rules(kind), certificate, port):
            refuses(kubernetes, namespace, kind, "denied the request")
            yield


@contextlib.contextmanager
def refusing_policy(kubernetes, namespace, kind):
    """A ValidatingAdmissionPolicy, which the API server judges itself."""
    with policy(kubernetes, namespace, rules(kind), "false"):
        refuses(kubernetes, namespace, kind, "denied request")
        yield


def jobs_path(namespace, name=""):
    return f"/apis/batch/v1/namespaces/{namespace}/jobs{name}"


@contextlib.contextmanager
def policy_that_keeps_jobs_suspended(kubernetes, namespace):
    """Keeps everybody from letting a Job go that is there."""
    kubernetes.must("POST", jobs_path(namespace),
                    {"metadata": {"name": "try"}, "spec": {"suspend": True, **SPECS["jobs"]}})
    go = {"spec": {"suspend": False}}
    with policy(kubernetes, namespace, rules("jobs", "UPDATE"), "object.spec.suspend == true"):
        eventually(lambda: kubernetes.admin("PATCH", jobs_path(namespace, "/try?dryRun=All"), go)[0] >= 400,
                   "no Job may go")
        yield


@contextlib.contextmanager
def policy(kubernetes, namespace, about, expression):
    policies, bindings = (f"{ADMISSION}/validatingadmissionpolic{end}" for end in ("ies", "ybindings"))
    kubernetes.must("POST", policies, {"metadata": {"name": "never"}, "spec": {
        "matchConstraints": {"resourceRules": about}, "validations": [{"expression": expression, "message": WORDS}]}})
    kubernetes.must("POST", bindings, {"metadata": {"name": "never"}, "spec": {
        "policyName": "never", "validationActions": ["Deny"], "matchResources": {"namespaceSelector": only_in(namespace)}}})
    try:
        yield
    finally:
        kubernetes.must("DELETE", bindings + "/never")
        kubernetes.must("DELETE", policies + "/never")


def check_refused(kubernetes, api, namespace):
    failure = api.wait_state(api.submit(script_spec("true", nodes=2)), FAILED).failure
    assert failure.failure_class == job_pb2.FAILURE_CLASS_CONFIG and not failure.retriable
    assert WORDS in failure.message, failure
    assert failure.remedy
    for kind in KINDS:
        eventually(lambda kind=kind: not kubernetes.objects(kind, namespace=namespace), f"no {kind} are left")


# A webhook may answer with any status; 500 and 429 would mean trouble if the server itself said so.
@pytest.mark.parametrize("kind,code", [("jobs", 403), ("jobs", 500), ("jobs", 401), ("secrets", 429), ("services", 400),
                                       ("pods", 403)])
def test_what_a_webhook_says_reaches_the_user_whole(kubernetes, world, agent, api, namespace, kind, code):
    del agent
    with refusing_webhook(kubernetes, world, namespace, kind, code):
        check_refused(kubernetes, api, namespace)


@pytest.mark.parametrize("kind", ["jobs", "pods"])
def test_what_a_policy_says_reaches_the_user_whole(kubernetes, agent, api, namespace, kind):
    del agent
    with refusing_policy(kubernetes, namespace, kind):
        check_refused(kubernetes, api, namespace)


def test_a_job_that_may_not_be_let_go_ends_with_the_words(kubernetes, agent, api, namespace):
    del agent
    with policy_that_keeps_jobs_suspended(kubernetes, namespace):
        check_refused(kubernetes, api, namespace)


@pytest.mark.parametrize("kind", ["jobs", "secrets"])
def test_a_plan_shows_what_a_webhook_would_say(kubernetes, world, agent, namespace, kind):
    del agent
    with refusing_webhook(kubernetes, world, namespace, kind, 403):
        planned = world.cli("plan", "-o", "wide", "--", "true", check=False).stdout
        assert WORDS in planned, planned


def test_a_webhook_that_is_away_is_waited_for(kubernetes, world, agent, api, namespace):
    del agent
    certificate, key = make_certificate(world.root, "webhook")
    server = webhook(certificate, key, lambda thing: None)
    # The port is the server's already, but nobody answers yet.
    with webhook_at(kubernetes, namespace, rules("jobs"), certificate, server.server_address[1]):
        refuses(kubernetes, namespace, "jobs", "failed calling webhook")
        job_id = api.submit(script_spec("echo ran"))
        eventually(lambda: "failed calling webhook" in world.cli("show", job_id).stdout, "it says what it waits for")
        with serving(server):
            api.wait_state(job_id, SUCCEEDED)
    assert len(api.get(job_id).runs) == 1 and api.stdout(job_id) == b"ran\n"


def test_jobs_that_a_webhook_that_is_away_lets_none_go_wait_and_what_becomes_of_others_is_told(kubernetes, world, agent, api,
                                                                                              namespace):
    del agent
    gate = world.gate()
    begun = api.submit(show_directory(script_spec(gate.script()), world.root))
    api.wait_state(begun, RUNNING)
    certificate, key = make_certificate(world.root, "webhook")
    server = webhook(certificate, key, lambda thing: None)
    # Jobs are made, and may not be changed: not be let go.
    with webhook_at(kubernetes, namespace, rules("jobs", "UPDATE"), certificate, server.server_address[1]):
        path = jobs_path(namespace, f"/{api.get(begun).runs[0].run_key}?dryRun=All")
        change = {"metadata": {"labels": {"tried": "yes"}}}
        eventually(lambda: "failed calling webhook" in str(kubernetes.admin("PATCH", path, change)[1]), "no Job may be changed")
        waiting = [api.submit(script_spec("echo ran")) for _ in range(MANY)]
        eventually(lambda: "could not be let go yet" in world.cli("show", waiting[0]).stdout, "it says what it waits for")
        gate.open()
        api.wait_state(begun, SUCCEEDED)
        with serving(server):
            for job_id in waiting:
                api.wait_state(job_id, SUCCEEDED)
    assert all(len(api.get(job_id).runs) == 1 and api.stdout(job_id) == b"ran\n" for job_id in waiting)
