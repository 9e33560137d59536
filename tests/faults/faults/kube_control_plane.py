"""Kubernetes' own control plane dies, stands still, or sends the agent away; each time a hold or a release is under way, too."""

import random
import re

from harness.wait import eventually

from faults.holds import hold_under_way
from faults.kube_lab import open_kubernetes_lab

JOBS_PER_STRIKE = 3
# A launch is three requests, so that most of these pauses end within those of three jobs; some end in the rest of their
# lives.
LONGEST_PAUSE_S = 0.3
LONGEST_LATE_PAUSE_S = 1.5
ETCD_PAUSE_S = 10.0
# A node's lease cannot be renewed while etcd stands still, and that is not the nodes' fault.
PATIENT_WITH_NODES = ("-arg", "kube-controller-manager=--node-monitor-grace-period=60s")
# Longer than the server's first Retry-After.
LONGEST_STORM_S = 2.0

FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
STORM = "storm"
# A pod that belongs to it is sent away at once.
NO_ROOM = {
    "metadata": {"name": STORM},
    "spec": {"type": "Limited", "limited": {
        "nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 0, "limitResponse": {"type": "Reject"}}},
}
# The agent's account belongs to it, before any other rule.
AGENT_HAS_NO_ROOM = {
    "metadata": {"name": STORM},
    "spec": {
        "matchingPrecedence": 2, "priorityLevelConfiguration": {"name": STORM},
        "rules": [{
            "subjects": [{"kind": "ServiceAccount", "serviceAccount": {"namespace": "muster", "name": "muster-agent"}}],
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}],
        }],
    },
}


def kube_apiserver_killed(repeat, toll):
    """The API server is killed at a random moment of launches and comes back; jobs are also submitted while it is away."""
    moments = random.Random(1)
    with open_kubernetes_lab() as lab:
        for number in range(repeat):
            with hold_under_way(lab, number) as jobs:
                jobs += lab.submit(count=JOBS_PER_STRIKE)
                lab.world.pause(_moment(moments, number))
                lab.cluster.kill("kube-apiserver")
                toll.strikes += 1
                jobs += lab.submit()
                lab.cluster.wait_ready()
            toll.audit(lab, jobs)


def etcd_paused(repeat, toll):
    """etcd stands still for ten seconds at a random moment of launches; meanwhile a job ends and another one comes."""
    moments = random.Random(2)
    with open_kubernetes_lab(*PATIENT_WITH_NODES) as lab:
        for number in range(repeat):
            gate, jobs = lab.submit_running()
            with hold_under_way(lab, number) as held:
                jobs += held + lab.submit(count=JOBS_PER_STRIKE)
                lab.world.pause(_moment(moments, number))
                lab.cluster.stop("etcd")
                toll.strikes += 1
                jobs += lab.submit()
                gate.open()
                lab.world.pause(ETCD_PAUSE_S)
                lab.cluster.resume("etcd")
            toll.audit(lab, jobs)


def kube_storm_of_429(repeat, toll):
    """The API server answers all that the agent asks with 429 for a while that begins at a random moment of launches."""
    moments = random.Random(3)
    with open_kubernetes_lab() as lab:
        lab.cluster.must("POST", FLOW + "/prioritylevelconfigurations", NO_ROOM)
        for number in range(repeat):
            before = _count_sent_away(lab)
            with hold_under_way(lab, number) as jobs:
                jobs += lab.submit(count=JOBS_PER_STRIKE)
                lab.world.pause(_moment(moments, number))
                lab.cluster.must("POST", FLOW + "/flowschemas", AGENT_HAS_NO_ROOM)
                jobs += lab.submit(count=JOBS_PER_STRIKE)
                eventually(lambda before=before: _count_sent_away(lab) > before, "the agent has been sent away")
                toll.strikes += 1
                lab.world.pause(moments.uniform(0, LONGEST_STORM_S))
                lab.cluster.must("DELETE", f"{FLOW}/flowschemas/{STORM}")
            toll.audit(lab, jobs)


def _moment(moments, number):
    return moments.uniform(0, LONGEST_LATE_PAUSE_S if number % 3 == 2 else LONGEST_PAUSE_S)


def _count_sent_away(lab):
    """Requests that the storm has refused so far."""
    metrics = lab.cluster.must("GET", "/metrics")
    counts = re.findall(rf'^apiserver_flowcontrol_rejected_requests_total{{.*priority_level="{STORM}".*}} (\S+)$', metrics, re.M)
    return sum(float(count) for count in counts)
