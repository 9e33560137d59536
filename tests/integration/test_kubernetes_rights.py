"""deploy/kubernetes on a real cluster: the agent's account may do what the agent needs and no more, and what is applied
passes the strictest Pod Security."""

import copy
import re

import pytest

from harness.fixtures import kubernetes_fixture
from harness.kubernetes import manifest
from harness.wait import eventually

kubernetes = kubernetes_fixture(nodes=1, gpus=0)

NAMESPACE = "runs"

# The agent's needs in the namespace of its runs.
NEEDED = [
    *((verb, "batch", "jobs") for verb in ("create", "get", "list", "watch", "patch", "delete")),
    *(("create", group, kind) for group, kind in (("", "secrets"), ("", "services"),
                                                  ("scheduling.x-k8s.io", "podgroups"),
                                                  ("scheduling.volcano.sh", "podgroups"))),
    ("create", "", "configmaps"),
    ("list", "", "pods"), ("watch", "", "pods"), ("get", "", "pods/log"),
    ("list", "", "events"), ("watch", "", "events"),
    *((verb, "", kind) for verb in ("list", "watch") for kind in ("resourcequotas", "limitranges")),
    ("get", "", "persistentvolumeclaims"), ("list", "", "persistentvolumeclaims"), ("list", "", "serviceaccounts"),
    ("get", "", "namespaces"),
    *((verb, "kueue.x-k8s.io", kind) for verb in ("list", "watch") for kind in ("localqueues", "workloads")),
    ("get", "kueue.x-k8s.io", "localqueues"),
]
# Rights that would let it, or whoever takes its token, do more than run jobs.
FORBIDDEN = [
    ("get", "", "pods"), ("get", "kueue.x-k8s.io", "workloads"), ("get", "", "configmaps"),
    ("patch", "", "configmaps"), ("list", "", "configmaps"), ("delete", "", "configmaps"),
    ("get", "", "secrets"), ("list", "", "secrets"), ("watch", "", "secrets"), ("update", "", "secrets"),
    ("patch", "", "secrets"), ("delete", "", "secrets"), ("get", "", "services"), ("delete", "", "services"),
    ("delete", "scheduling.x-k8s.io", "podgroups"), ("create", "", "pods"), ("delete", "", "pods"), ("create", "", "pods/exec"),
    ("create", "", "pods/attach"), ("create", "", "pods/portforward"), ("update", "batch", "jobs"),
    ("deletecollection", "batch", "jobs"), ("create", "batch", "cronjobs"), ("create", "apps", "deployments"),
    ("create", "", "serviceaccounts/token"), ("impersonate", "", "serviceaccounts"), ("update", "", "resourcequotas"),
    ("delete", "", "events"), ("deletecollection", "", "secrets"), ("delete", "", "persistentvolumeclaims"),
    ("create", "rbac.authorization.k8s.io", "roles"), ("create", "rbac.authorization.k8s.io", "rolebindings"),
    ("create", "kueue.x-k8s.io", "localqueues"), ("update", "kueue.x-k8s.io", "workloads"),
    ("escalate", "rbac.authorization.k8s.io", "roles"), ("bind", "rbac.authorization.k8s.io", "clusterroles"),
]


@pytest.fixture(scope="module")
def token(kubernetes):
    kubernetes.must("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    return kubernetes.least_rights_token(NAMESPACE)


def may(kubernetes, token, verb, group, resource, namespace=NAMESPACE, name=""):
    return kubernetes.may(token, verb, group, resource, namespace, name)


@pytest.mark.parametrize("verb,group,resource", NEEDED)
def test_the_account_may_do_what_the_agent_needs(kubernetes, token, verb, group, resource):
    assert may(kubernetes, token, verb, group, resource)


@pytest.mark.parametrize("verb,group,resource", FORBIDDEN)
def test_the_account_may_do_no_more(kubernetes, token, verb, group, resource):
    assert not may(kubernetes, token, verb, group, resource)


def test_the_object_of_the_leases_is_the_only_one_of_its_kind_that_the_account_may_change(kubernetes, token):
    assert may(kubernetes, token, "patch", "", "configmaps", name="muster-lease")
    assert not may(kubernetes, token, "patch", "", "configmaps", name="kube-root-ca.crt")


def test_other_namespaces_are_not_the_agents(kubernetes, token):
    for verb, group, resource in NEEDED:
        allowed = may(kubernetes, token, verb, group, resource, namespace="default")
        # These are the optional cluster role's: pods everywhere, for what they take of nodes, and whether a namespace
        # is there.
        assert allowed == ((verb, resource) in (("list", "pods"), ("watch", "pods"), ("get", "namespaces"))), \
            f"{verb} {resource}"


def test_the_optional_role_shows_nodes_and_the_clusters_identity(kubernetes, token):
    assert all(may(kubernetes, token, verb, "", kind, "") for verb in ("list", "watch") for kind in ("nodes", "pods"))
    assert may(kubernetes, token, "get", "", "namespaces", "", "kube-system")
    assert may(kubernetes, token, "get", "", "namespaces", "", "default")
    assert not may(kubernetes, token, "list", "", "namespaces", "")
    assert may(kubernetes, token, "list", "node.k8s.io", "runtimeclasses", "")
    assert may(kubernetes, token, "list", "scheduling.k8s.io", "priorityclasses", "")
    assert may(kubernetes, token, "list", "storage.k8s.io", "storageclasses", "")
    assert not may(kubernetes, token, "patch", "", "nodes", "")
    identity = kubernetes.must("GET", "/api/v1/namespaces/kube-system", token=token)
    assert identity["metadata"]["uid"]


def test_the_pod_of_muster_passes_pod_security_restricted(kubernetes, token):
    del token  # its account is there
    # Admission would quote what a Deployment's pods lack as a warning only, so a pod of its template is tried as well.
    for thing in manifest("agent.yaml"):
        kubernetes.apply(thing, "muster", dry_run=True)
    (deployment,) = (thing for thing in manifest("agent.yaml") if thing["kind"] == "Deployment")
    template = deployment["spec"]["template"]
    assert try_pod(kubernetes, template) == (201, [])
    root = copy.deepcopy(template)
    del root["spec"]["containers"][0]["securityContext"]
    status, words = try_pod(kubernetes, root)
    assert status == 403 and "violates PodSecurity" in words, "restricted is enforced there"


def try_pod(kubernetes, template):
    pod = {"metadata": {**template["metadata"], "generateName": "try-"}, "spec": template["spec"]}
    status, answer = kubernetes.admin("POST", "/api/v1/namespaces/muster/pods?dryRun=All", pod)
    return status, answer["message"] if status >= 400 else []


def test_the_pod_of_muster_finds_its_account_in_the_agents_container_alone(kubernetes, token):
    del token
    (deployment,) = (thing for thing in manifest("agent.yaml") if thing["kind"] == "Deployment")
    pod = {"metadata": {"name": "muster"}, "spec": copy.deepcopy(deployment["spec"]["template"]["spec"])}
    mount = "/var/run/secrets/kubernetes.io/serviceaccount"
    # The real pod except for what it runs, and its claim, for which this cluster has no storage.
    pod["spec"]["restartPolicy"] = "Never"
    pod["spec"]["volumes"][0] = {"name": "state", "emptyDir": {}}
    # There is one stream alone, because nothing says in which order the lines of two of them are logged.
    looks = f"echo sees $(cd {mount} 2>/dev/null && ls && wc -c <token) as $(id -u):$(id -G)"
    for container in pod["spec"]["containers"]:
        container["command"] = ["/bin/sh", "-c", looks]
    for thing in manifest("agent.yaml"):
        if thing["kind"] == "ConfigMap":
            kubernetes.apply(thing, "muster")
    kubernetes.must("POST", "/api/v1/namespaces/muster/pods", pod)
    pods = "/api/v1/namespaces/muster/pods/muster"
    eventually(lambda: kubernetes.must("GET", pods)["status"].get("phase") == "Succeeded", "the pod has ended",
               alive=lambda: fail_if_failed(kubernetes, pods))
    said = {name: kubernetes.must("GET", f"{pods}/log?container={name}") for name in ("broker", "agent")}
    assert re.fullmatch(r"sees ca.crt namespace token [1-9]\d+ as 10001:10001\n", said["agent"])
    assert said["broker"] == "sees as 10001:10001\n"


def fail_if_failed(kubernetes, path):
    status = kubernetes.must("GET", path)["status"]
    assert status.get("phase") != "Failed", status
