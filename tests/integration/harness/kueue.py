"""A real Kueue on a Kubernetes cluster of a test file."""

from harness.companion import Companion
from harness.kubernetes import KubernetesCluster
from harness.wait import eventually

KUEUE = "/apis/kueue.x-k8s.io/v1beta1"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
HELD_QUEUE = "muster-held"  # agents/kubernetes/objects/kueue.h
FLAVOR = "plain"
LONG_AGO = "2026-01-01T00:00:00Z"


class KueueCluster(KubernetesCluster):
    """A cluster with Kueue (tests/support/kueue), one flavor of nodes, and no queues yet."""

    def __init__(self, *options, **sizes):
        super().__init__(*options, **sizes)
        self._kueue = Companion(self, "kueue")
        self.must("POST", f"{KUEUE}/resourceflavors", {**_head("ResourceFlavor"), "metadata": {"name": FLAVOR}})

    def close(self):
        self._kueue.close()
        super().close()

    def make_queue(self, namespace, name="team", cpus=2, checks=()):
        """A LocalQueue, and a ClusterQueue of its own behind it with so many cpus and those admission checks, where a job of
        higher priority takes the room of a lower one."""
        whole = f"{namespace}-{name}"
        resources = [{"name": "cpu", "nominalQuota": str(cpus)}, {"name": "memory", "nominalQuota": "100Gi"}]
        self.must("POST", f"{KUEUE}/clusterqueues", {**_head("ClusterQueue"), "metadata": {"name": whole}, "spec": {
            "namespaceSelector": {}, "admissionChecks": list(checks), "preemption": {"withinClusterQueue": "LowerPriority"},
            "resourceGroups": [{"coveredResources": ["cpu", "memory"],
                                "flavors": [{"name": FLAVOR, "resources": resources}]}]}})
        path = f"{KUEUE}/namespaces/{namespace}/localqueues"
        self.must("POST", path, {**_head("LocalQueue"), "metadata": {"name": name, "namespace": namespace},
                                 "spec": {"clusterQueue": whole}})
        eventually(lambda: _holds(self.must("GET", f"{path}/{name}"), "Active"), f"the queue {name} is active")

    def stop_queue(self, namespace, name="team", policy="HoldAndDrain"):
        """Kueue takes back what it has let go there, and lets nothing more go; with the policy None it goes on."""
        path = f"{KUEUE}/clusterqueues/{namespace}-{name}"
        self.must("PATCH", path, {"spec": {"stopPolicy": policy}})
        goes_on = policy in (None, "None")
        eventually(lambda: _holds(self.must("GET", path), "Active") == goes_on, f"the queue {name} goes on: {goes_on}")

    def make_check(self, name):
        """An admission check, of which the caller is the controller: see judge()."""
        self.must("POST", f"{KUEUE}/admissionchecks", {**_head("AdmissionCheck"), "metadata": {"name": name},
                                                       "spec": {"controllerName": "example.com/tests"}})
        active = {"type": "Active", "status": "True", "reason": "Active", "message": "", "lastTransitionTime": LONG_AGO}
        self.must("PATCH", f"{KUEUE}/admissionchecks/{name}/status", {"status": {"conditions": [active]}})

    def judge(self, check, run_key, namespace, state, message):
        """Sets the answer of an admission check's controller about the run: the state is "Ready", "Retry" or
        "Rejected"."""
        said = {"name": check, "state": state, "message": message, "lastTransitionTime": LONG_AGO}
        self._patch_workload(run_key, namespace, {"status": {"admissionChecks": [said]}}, "/status")

    def set_active(self, run_key, namespace, active):
        """People deactivate the run's workload, or take that back."""
        self._patch_workload(run_key, namespace, {"spec": {"active": active}})

    def _patch_workload(self, run_key, namespace, patch, part=""):
        name = self.workload_of(run_key, namespace)["metadata"]["name"]
        self.must("PATCH", f"{KUEUE}/namespaces/{namespace}/workloads/{name}{part}", patch)

    def queue_of(self, run_key, namespace):
        """The queue that the run's Job names; None: it names none."""
        return self.objects("jobs", run_key, namespace)[0]["metadata"]["labels"].get(QUEUE_LABEL)

    def workload_of(self, run_key, namespace):
        """Returns the Workload that Kueue has made for the run's Job; None: nothing yet."""
        for workload in self.must("GET", f"{KUEUE}/namespaces/{namespace}/workloads")["items"]:
            if workload["metadata"]["ownerReferences"][0]["name"] == run_key:
                return workload
        return None

    def is_held(self, run_key, namespace):
        """Tells whether Kueue knows the run's Job as one that it is not to let go, and keeps no room for
        it."""
        workload = self.workload_of(run_key, namespace)
        return bool(workload) and workload["spec"]["queueName"] == HELD_QUEUE and not _holds(workload, "QuotaReserved")

    def has_reserved(self, run_key, namespace):
        """Tells whether Kueue keeps room for the run."""
        workload = self.workload_of(run_key, namespace)
        return workload is not None and _holds(workload, "QuotaReserved")


def _head(kind):
    return {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": kind}


def _holds(thing, condition):
    conditions = thing.get("status", {}).get("conditions", [])
    return any(one["type"] == condition and one["status"] == "True" for one in conditions)
