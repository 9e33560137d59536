"""A real Kubernetes cluster of a test file, and the agents that live on it."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import tempfile
import urllib.error
import urllib.request

import yaml

from harness.stubs import REPOSITORY
from harness.wait import eventually

SCRIPT = REPOSITORY / "tests" / "support" / "kubernetes-cluster"
MANIFESTS = REPOSITORY / "deploy" / "kubernetes"
# The first start builds the program.
BUILD_TIMEOUT_S = 900
START_TIMEOUT_S = 660
CALL_TIMEOUT_S = 60
MERGE_PATCH = "application/merge-patch+json"
# The cluster ends when its standard input does; its files are removed then, also when this process was killed. "$0" is
# their directory, the rest the cluster's command.
RUN_AND_REMOVE = '"$@" >"$0/output" 2>&1 || cat "$0/output" >&2; rm -rf "$0"'

RBAC = "/apis/rbac.authorization.k8s.io/v1"
AGENT_USER = "system:serviceaccount:muster:muster-agent"
# The collections of each kind of objects, with the namespace's name in place of NS.
COLLECTIONS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/NS/serviceaccounts",
    "ConfigMap": "/api/v1/namespaces/NS/configmaps",
    "PersistentVolumeClaim": "/api/v1/namespaces/NS/persistentvolumeclaims",
    "Deployment": "/apis/apps/v1/namespaces/NS/deployments",
    "Role": RBAC + "/namespaces/NS/roles",
    "RoleBinding": RBAC + "/namespaces/NS/rolebindings",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/NS/networkpolicies",
    "ClusterRole": RBAC + "/clusterroles",
    "ClusterRoleBinding": RBAC + "/clusterrolebindings",
}


def manifest(name):
    """The objects of a file in deploy/kubernetes."""
    return list(yaml.safe_load_all((MANIFESTS / name).read_text()))


def show_directory(spec, path):
    """The spec with a directory of this machine, which its containers see where it is, and may write to; of an agent that
    has the setting allow_host_path."""
    spec.kubernetes.volumes.add(mount_path=str(path), host_path=str(path))
    return spec


class KubernetesCluster:
    """Starts when it is made; needs root. Options are those of the program (tests/support/kubernetes/main.go). Ends with
    this process, however that ends."""

    def __init__(self, *options, nodes=2, gpus=8):
        program = subprocess.run([SCRIPT, "path"], text=True, stdout=subprocess.PIPE, timeout=BUILD_TIMEOUT_S,
                                 check=True).stdout.strip()
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="muster-kube-"))
        self.directory = self.root / "cluster"
        self._output = self.root / "output"
        argv = ["/bin/sh", "-c", RUN_AND_REMOVE, self.root, program, "-dir", self.directory, "-nodes", nodes, "-gpus", gpus,
                *options]
        self._process = subprocess.Popen([str(word) for word in argv], stdin=subprocess.PIPE, start_new_session=True)
        eventually(self._has_said_ready, "the cluster is ready", START_TIMEOUT_S, self._check_alive)
        self._namespaces = 0
        self._read_kubeconfig()

    def _has_said_ready(self):
        try:
            return "ready\n" in self._output.read_text()
        except FileNotFoundError:  # not yet, or no more
            return False

    def _check_alive(self):
        assert self._process.poll() is None, "the cluster has ended; its words are above"

    def _read_kubeconfig(self):
        config = yaml.safe_load(self.kubeconfig.read_text())
        self.cluster_entry = config["clusters"][0]["cluster"]
        self.admin_token = config["users"][0]["user"]["token"]
        self._tls = ssl.create_default_context(cafile=self.cluster_entry["certificate-authority"])

    @property
    def kubeconfig(self):
        """The administrator's; its namespace is "default"."""
        return self.directory / "kubeconfig"

    def close(self):
        self._process.stdin.close()
        self._process.wait(CALL_TIMEOUT_S)
        shutil.rmtree(self.root, ignore_errors=True)

    # ---- the API

    def admin(self, method, path, body=None, token=None):
        """One call, as the administrator unless another's token is given: HTTP's status and the answer's object."""
        request = urllib.request.Request(self.cluster_entry["server"] + path, method=method)
        request.add_header("Authorization", f"Bearer {token or self.admin_token}")
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", MERGE_PATCH if method == "PATCH" else "application/json")
        try:
            with urllib.request.urlopen(request, timeout=CALL_TIMEOUT_S, context=self._tls) as answer:
                return answer.status, _parse(answer.read())
        except urllib.error.HTTPError as refusal:
            return refusal.code, _parse(refusal.read())

    def must(self, method, path, body=None, token=None):
        """The object that such a call answers with; it has to succeed."""
        status, answer = self.admin(method, path, body, token)
        assert 200 <= status < 300, f"{method} {path}: {status} {answer}"
        return answer

    def apply(self, thing, namespace, dry_run=False):
        """Makes the object if it is not there; returns it."""
        namespace = thing["metadata"].get("namespace", namespace)
        path = COLLECTIONS[thing["kind"]].replace("NS", namespace)
        status, answer = self.admin("POST", path + ("?dryRun=All" if dry_run else ""), thing)
        assert status in (200, 201, 409), f"{thing['kind']} {thing['metadata']['name']}: {status} {answer}"
        return answer

    def make_namespace(self, **labels):
        """One of a new name, with its default service account: the tests of a file share the cluster."""
        self._namespaces += 1
        name = f"t-{self._namespaces}"
        self.must("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        eventually(lambda: self.admin("GET", f"/api/v1/namespaces/{name}/serviceaccounts/default")[0] == 200,
                   "the default service account")
        return name

    def objects(self, kind, run_key=None, namespace="default"):
        """Returns Muster's objects, or those of one run: kind is "jobs", "pods", "secrets", "services" or
        "events"."""
        group = "/apis/batch/v1" if kind == "jobs" else "/api/v1"
        label = f"muster.dev/run-key={run_key}" if run_key else "app.kubernetes.io/managed-by=muster"
        selector = "" if kind == "events" else f"?labelSelector={label.replace('=', '%3D')}"
        return self.must("GET", f"{group}/namespaces/{namespace}/{kind}{selector}")["items"]

    # ---- the agent's account

    def least_rights_token(self, namespace="default", cluster_rights=True):
        """A token of the account of deploy/kubernetes, with the rights that those files give it in a namespace."""
        files = ["account.yaml", "rights.yaml", *(["cluster-rights.yaml"] if cluster_rights else [])]
        for thing in (thing for name in files for thing in manifest(name)):
            self.apply(thing, namespace)
        if not cluster_rights:  # an earlier test may have given them
            self.admin("DELETE", COLLECTIONS["ClusterRoleBinding"] + "/muster-agent")
        token = self.must("POST", "/api/v1/namespaces/muster/serviceaccounts/muster-agent/token",
                         {"spec": {"expirationSeconds": 36000}})["status"]["token"]
        # The API server learns of each object by itself.
        eventually(lambda: self.may(token, "create", "batch", "jobs", namespace)
                   and self.may(token, "list", "", "nodes", "") == cluster_rights, "the rights hold")
        return token

    def take_rights(self, namespace, group):
        """Takes the rights to objects of an API group there from the agent's account."""
        path = COLLECTIONS["Role"].replace("NS", namespace) + "/muster-agent"
        rules = self.must("GET", path)["rules"]
        taken = next(rule for rule in rules if group in rule["apiGroups"])
        self.must("PATCH", path, {"rules": [rule for rule in rules if group not in rule["apiGroups"]]})
        self.wait_until_forbidden(namespace, taken["verbs"][0], group, taken["resources"][0])

    def wait_until_forbidden(self, namespace, verb, group, resource):
        """Waits until a right is taken from the agent's account: the API server learns of it a moment after it
        has stored it."""
        attributes = {"verb": verb, "group": group, "resource": resource, "namespace": namespace}
        asked = {"spec": {"user": AGENT_USER, "groups": ["system:authenticated"], "resourceAttributes": attributes}}
        eventually(lambda: not self.must("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", asked)["status"]["allowed"],
                   f"the agent may not {verb} {resource} any more")

    def may(self, token, verb, group, resource, namespace, name=""):
        """Tells whether who has the token may do so, asked as the agent asks: by the account
        itself."""
        resource, _, part = resource.partition("/")
        attributes = {"verb": verb, "group": group, "resource": resource, "subresource": part, "namespace": namespace,
                      "name": name}
        review = self.must("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                           {"spec": {"resourceAttributes": attributes}}, token)
        return review["status"]["allowed"]

    def least_rights_kubeconfig(self, namespace="default", cluster_rights=True):
        """The path of a kubeconfig of that account, with that namespace."""
        path = self.root / f"kubeconfig-{namespace}"
        path.write_text(self.kubeconfig_text(self.least_rights_token(namespace, cluster_rights), namespace))
        return path

    def kubeconfig_text(self, token, namespace):
        return yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "agent",
            "clusters": [{"name": "test", "cluster": self.cluster_entry}],
            "users": [{"name": "agent", "user": {"token": token}}],
            "contexts": [{"name": "agent", "context": {"cluster": "test", "user": "agent", "namespace": namespace}}],
        })

    # ---- faults; a part is "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "node-1" ...

    def kill(self, part):
        """kill -9; it is started again at once."""
        pid = self._pid(part)
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not pathlib.Path(f"/proc/{pid}").exists(), f"{part} has ended")

    def stop(self, part):
        """It is there and does nothing."""
        os.kill(self._pid(part), signal.SIGSTOP)

    def resume(self, part):
        os.kill(self._pid(part), signal.SIGCONT)

    def wait_ready(self):
        """Waits until the API server serves."""
        eventually(self._is_ready, "the API server is ready", alive=self._check_alive)

    def _is_ready(self):
        try:
            return self.admin("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def _pid(self, part):
        return int((self.directory / f"{part}.pid").read_text())

    @contextlib.contextmanager
    def cordoned(self):
        """Keeps new pods from all nodes meanwhile."""
        nodes = [node["metadata"]["name"] for node in self.must("GET", "/api/v1/nodes")["items"]]
        for name in nodes:
            self.must("PATCH", f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}})
        try:
            yield
        finally:
            for name in nodes:
                self.must("PATCH", f"/api/v1/nodes/{name}", {"spec": {"unschedulable": False}})

    # ---- what tests ask

    def make_least_agent(self, world, namespace="default", cluster_rights=True, **settings):
        """An agent that is not started yet, of the account of deploy/kubernetes; its runs are in that namespace."""
        kubeconfig = self.least_rights_kubeconfig(namespace, cluster_rights)
        return self.make_agent(world, kubeconfig=kubeconfig, **settings)

    def make_agent(self, world, name="lab", kubeconfig=None, **settings):
        """A Kubernetes agent that is not started yet: of the administrator, unless a kubeconfig is given."""
        values = {"kubeconfig": kubeconfig or self.kubeconfig, "default_image": "debian:12", **settings}
        config = "kubernetes:\n" + "".join(f"  {key}: {value}\n" for key, value in values.items())
        return world.make_agent(name, kind="kubernetes", config=config)


def _parse(text):
    """The answer's object, or its text if it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text.decode(errors="replace")
