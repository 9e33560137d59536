"""Nodes of Kubernetes stand still."""

from harness.wait import eventually
from muster.v1 import job_pb2

from faults.kube_lab import open_kubernetes_lab

# NotReady comes after a lease and a bit; each frozen node's pods are given up, however many of the nodes are frozen.
IMPATIENT = [word for arg in ("--node-monitor-grace-period=12s", "--node-monitor-period=1s", "--unhealthy-zone-threshold=1",
                              "--node-eviction-rate=10") for word in ("-arg", f"kube-controller-manager={arg}")]
NODES = 3
FROZEN = 2
# More than half of a node's, so that each has one job.
JOB_CPU_MILLIS = 9000


def kube_node_frozen(repeat, toll):
    """Two nodes of three stand still until they are NotReady, while their containers go on, and come back: before their
    pods are given up, after that, or after that and after their jobs have ended."""
    with open_kubernetes_lab(*IMPATIENT, nodes=NODES) as lab:
        number = 0
        while toll.strikes < repeat:
            _freeze(lab, toll, waits_for_deletion=number % 3 > 0, ends_frozen=number % 3 == 2)
            number += 1


def _freeze(lab, toll, waits_for_deletion, ends_frozen):
    gate = lab.world.gate()
    jobs = lab.api.submit_many([_make_spec(lab, gate) for _ in range(NODES)])
    runs = [lab.api.wait_state(job, job_pb2.JOB_STATE_RUNNING).runs[-1] for job in jobs]
    frozen = runs[:FROZEN]
    for run in frozen:
        lab.cluster.stop(run.nodes[0])
    eventually(lambda: all(not _is_ready(lab.cluster, run.nodes[0]) for run in frozen), "they are not ready")
    if ends_frozen:
        gate.open()
    if waits_for_deletion:
        eventually(lambda: all(_is_given_up(lab.cluster, run.run_key) for run in frozen), "their pods are given up")
    for run in frozen:
        lab.cluster.resume(run.nodes[0])
        toll.strikes += 1
    eventually(lambda: all(_is_ready(lab.cluster, run.nodes[0]) for run in frozen), "they are back")
    gate.open()
    toll.audit(lab, jobs, may_retry=True)
    overlaps = _overlaps(lab)
    if overlaps.exists():
        toll.doubled.append(f"two runs at the same time, of the jobs {overlaps.read_text().split()}")
        overlaps.unlink()


def _make_spec(lab, gate):
    lock = f'{lab.world.path("lock")}-$MUSTER_JOB_ID'
    spec = lab.spec(f'exec 9>"{lock}"\nflock -n 9 || echo "$MUSTER_JOB_ID" >>{_overlaps(lab)}\n{gate.script()}')
    spec.resources.cpu_millis = JOB_CPU_MILLIS
    # Its next run may go at once.
    spec.retry.backoff.SetInParent()
    return spec


def _overlaps(lab):
    """The file that a job writes if it finds another run of it under way."""
    return lab.world.path("overlaps")


def _is_ready(cluster, node):
    conditions = cluster.must("GET", f"/api/v1/nodes/{node}")["status"]["conditions"]
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _is_given_up(cluster, run_key):
    return any("deletionTimestamp" in pod["metadata"] for pod in cluster.objects("pods", run_key))
