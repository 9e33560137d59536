"""A Kubernetes cluster, with or without a Kueue, a broker and an agent to strike at."""

import contextlib

from harness.kubernetes import KubernetesCluster
from harness.kueue import KUEUE, KueueCluster
from harness.trio import PodTrio
from harness.wait import eventually

from faults.lab import Lab, open_on

KINDS = ("jobs", "pods", "secrets", "services")
# Names of pods are known a moment after them; 30 s are a busy machine's.
MEET = """
tries=0
until getent hosts "$MASTER_ADDR" >/dev/null; do
  tries=$((tries + 1))
  [ $tries -lt 300 ] || exit 9
  sleep 0.1
done
"""
PODS = "/api/v1/namespaces/default/pods"
SHUNNED = {"shunned": "yes"}
# No pod that is called so gets a node as long as this one runs.
SHUNNER = {
    "metadata": {"name": "shunner"},
    "spec": {
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "any", "command": ["sleep", "100000"]}],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": SHUNNED}, "topologyKey": "kubernetes.io/os"}]}},
    },
}
SHUNNER_PATH = PODS + "/shunner"
QUEUE = "team"
# More than any job asks for.
QUEUE_CPUS = 16
WORKLOADS = f"{KUEUE}/namespaces/default/workloads"


class KubernetesLab(Lab):
    """Its jobs may be cleaned up as soon as the broker has their ends and logs."""

    trio_of = PodTrio

    def spec(self, text=""):
        spec = super().spec(text)
        spec.kubernetes.time_to_live.SetInParent()
        return spec

    def gang_spec(self, text=""):
        """Its nodes find the first one by its name, which its Service gives it."""
        return super().gang_spec(MEET + text)

    @contextlib.contextmanager
    def no_room(self):
        with self.cluster.cordoned():
            yield

    @contextlib.contextmanager
    def shunned_by_nodes(self):
        """Meanwhile no node takes a job of shunned_spec(), which the agent cannot know before it lets it go."""
        self.cluster.must("POST", PODS, SHUNNER)
        eventually(lambda: self.cluster.must("GET", SHUNNER_PATH)["status"]["phase"] == "Running", "the shunner runs")
        try:
            yield
        finally:
            # If a node was silent for long while its API server was away, the pod has been taken
            # already.
            self.cluster.admin("DELETE", SHUNNER_PATH)
            eventually(lambda: self.cluster.admin("GET", SHUNNER_PATH)[0] == 404, "the shunner is gone")

    def shunned_spec(self):
        spec = self.spec()
        spec.kubernetes.labels.update(SHUNNED)
        return spec

    def finds_no_node(self, job_id):
        """Its pod is there, and the scheduler has found none for it."""
        runs = self.api.get(job_id).runs
        pods = self.cluster.objects("pods", runs[-1].run_key) if runs else []
        return any(condition.get("reason") == "Unschedulable" for pod in pods if "deletionTimestamp" not in pod["metadata"]
                   for condition in pod["status"].get("conditions", []))

    def tell(self, job_id):
        """Returns, in words, all that broker and cluster tell of a job and its nodes, for complaints about a wait in vain."""
        job = self.api.get(job_id)
        key = job.runs[-1].run_key if job.runs else ""
        pods = [(pod["metadata"]["name"], pod["spec"].get("nodeName"), pod["metadata"].get("deletionTimestamp"), pod["status"])
                for pod in self.cluster.must("GET", PODS)["items"]]
        nodes = [(node["metadata"]["name"], node["spec"].get("taints"), node["status"].get("conditions"))
                 for node in self.cluster.must("GET", "/api/v1/nodes")["items"]]
        jobs = [(one["metadata"]["name"], one["spec"].get("suspend"), one["status"]) for one in self.cluster.objects("jobs")]
        events = [(event["involvedObject"]["name"], event["reason"], event.get("message"))
                  for event in self.cluster.objects("events") if key and event["involvedObject"]["name"].startswith(key)]
        return f"the job: {job}\npods: {pods}\nJobs: {jobs}\nnodes: {nodes}\nevents: {events}"

    def was_doubled_by_cluster(self, job, starts):
        """A Job controller that does not hear whether its pod was made makes another one: Kubernetes says that a program
        "may sometimes be started twice" (its page on Jobs). Then there are Events about so many pods of the one Job, which
        Muster has let go once."""
        if len(job.runs) != 1 or starts < 2:
            return False
        key = job.runs[0].run_key
        about = [(event["involvedObject"]["name"], event["reason"], event["involvedObject"]["kind"])
                 for event in self.cluster.objects("events")]
        pods = {name for name, reason, kind in about if kind == "Pod" and reason == "Started" and name.startswith(key + "-")}
        resumed = [name for name, reason, _ in about if name == key and reason == "Resumed"]
        return len(pods) == starts and len(resumed) <= 1

    def list_things(self):
        return {f"{kind} {thing['metadata']['name']}" for kind in KINDS for thing in self.cluster.objects(kind)}


class KueueLab(KubernetesLab):
    """Kueue starts its jobs, from one queue."""

    def spec(self, text=""):
        spec = super().spec(text)
        spec.kubernetes.queue = QUEUE
        return spec

    @contextlib.contextmanager
    def no_room(self):
        self.cluster.stop_queue("default", QUEUE, "Hold")
        try:
            yield
        finally:
            self.cluster.stop_queue("default", QUEUE, None)

    def list_things(self):
        workloads = self.cluster.must("GET", WORKLOADS)["items"]
        return super().list_things() | {f"workloads {thing['metadata']['name']}" for thing in workloads}


@contextlib.contextmanager
def open_kubernetes_lab(*options, nodes=1, make_agent=KubernetesCluster.make_agent,
                        make_kubeconfig=KubernetesCluster.least_rights_kubeconfig, prepare=lambda cluster, ending: None):
    """`options` are the cluster's. make_agent(cluster, world, **settings) gives an agent that is not started yet;
    make_kubeconfig(cluster) the path of its kubeconfig, of an account with no more rights than agents need; prepare as of
    open_lab, before that."""
    make = _of_account(make_agent, make_kubeconfig)
    with open_on(KubernetesCluster(*options, nodes=nodes, gpus=0), KubernetesLab, make, prepare) as lab:
        yield lab


@contextlib.contextmanager
def open_kueue_lab(nodes, make_agent):
    """The same as above, with a Kueue."""
    def prepare(cluster, ending):
        del ending
        cluster.make_queue("default", QUEUE, cpus=QUEUE_CPUS)

    make = _of_account(make_agent, KubernetesCluster.least_rights_kubeconfig)
    with open_on(KueueCluster(nodes=nodes, gpus=0), KueueLab, make, prepare) as lab:
        yield lab


def _of_account(make_agent, make_kubeconfig):
    return lambda cluster, world: make_agent(cluster, world, kubeconfig=make_kubeconfig(cluster), allow_host_path="yes")
