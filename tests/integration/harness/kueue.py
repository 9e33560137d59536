"""A real Kueue on a Kubernetes cluster of a test file."""

import subprocess

from harness.kubernetes import BUILD_TIMEOUT_S, CALL_TIMEOUT_S, SCRIPT, START_TIMEOUT_S, KubernetesCluster
from harness.wait import eventually

KUEUE = "/apis/kueue.x-k8s.io/v1beta1"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
FLAVOR = "plain"


class KueueCluster(KubernetesCluster):
    """With Kueue (tests/support/kueue), one flavor of nodes, and no queues yet."""

    def __init__(self, *options, **sizes):
        super().__init__(*options, **sizes)
        program = subprocess.run([SCRIPT, "kueue"], text=True, stdout=subprocess.PIPE, timeout=BUILD_TIMEOUT_S,
                                 check=True).stdout.strip()
        self._said = self.root / "kueue.out"
        with open(self._said, "wb") as said, open(self.root / "kueue.log", "wb") as log:
            # It ends when its standard input does.
            self._kueue = subprocess.Popen([program, self.kubeconfig], stdin=subprocess.PIPE, stdout=said,
                                           stderr=log, start_new_session=True)
        eventually(lambda: "ready\n" in self._said.read_text(), "Kueue is ready", START_TIMEOUT_S, self._check_kueue)
        self.must("POST", f"{KUEUE}/resourceflavors", {**_head("ResourceFlavor"), "metadata": {"name": FLAVOR}})

    def _check_kueue(self):
        assert self._kueue.poll() is None, f"Kueue has ended: {(self.root / 'kueue.log').read_text()[-2000:]}"

    def close(self):
        self._kueue.stdin.close()
        self._kueue.wait(CALL_TIMEOUT_S)
        super().close()

    def make_queue(self, namespace, name="team", cpus=2):
        """A LocalQueue, and a ClusterQueue of its own behind it with so many cpus, where a job of higher priority takes the
        room of a lower one."""
        whole = f"{namespace}-{name}"
        resources = [{"name": "cpu", "nominalQuota": str(cpus)}, {"name": "memory", "nominalQuota": "100Gi"}]
        self.must("POST", f"{KUEUE}/clusterqueues", {**_head("ClusterQueue"), "metadata": {"name": whole}, "spec": {
            "namespaceSelector": {}, "preemption": {"withinClusterQueue": "LowerPriority"},
            "resourceGroups": [{"coveredResources": ["cpu", "memory"],
                                "flavors": [{"name": FLAVOR, "resources": resources}]}]}})
        path = f"{KUEUE}/namespaces/{namespace}/localqueues"
        self.must("POST", path, {**_head("LocalQueue"), "metadata": {"name": name, "namespace": namespace},
                                 "spec": {"clusterQueue": whole}})
        eventually(lambda: _holds(self.must("GET", f"{path}/{name}"), "Active"), f"the queue {name} is active")

    def stop_queue(self, namespace, name="team", policy="HoldAndDrain"):
        """Kueue takes back what it has let go there, and lets nothing more go; with the policy None it goes on."""
        self.must("PATCH", f"{KUEUE}/clusterqueues/{namespace}-{name}", {"spec": {"stopPolicy": policy}})

    def queue_of(self, run_key, namespace):
        """The queue that the run's Job names; None: it names none."""
        return self.objects("jobs", run_key, namespace)[0]["metadata"]["labels"].get(QUEUE_LABEL)

    def workload_of(self, run_key, namespace):
        """What Kueue has made of the run's Job; None: nothing yet."""
        for workload in self.must("GET", f"{KUEUE}/namespaces/{namespace}/workloads")["items"]:
            if workload["metadata"]["ownerReferences"][0]["name"] == run_key:
                return workload
        return None

    def has_reserved(self, run_key, namespace):
        """Whether Kueue keeps room for the run."""
        workload = self.workload_of(run_key, namespace)
        return workload is not None and _holds(workload, "QuotaReserved")


def _head(kind):
    return {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": kind}


def _holds(thing, condition):
    conditions = thing.get("status", {}).get("conditions", [])
    return any(one["type"] == condition and one["status"] == "True" for one in conditions)
