"""A real Kubernetes: many short jobs through Muster against a bare client that makes the same objects."""

import copy
import dataclasses
import json
import time

from muster.v1 import job_spec_pb2

from harness.api import TERMINAL, argv_spec
from harness.kubernetes import KubernetesCluster
from harness.wait import eventually

from rows.kubernetes_client import BareClient, has_ended
from rows.report import Figure
from rows.setting import fresh_world, memory_bytes, tool
from rows.waiting import run_all

WRITES = ("POST", "PATCH", "PUT", "DELETE")
# A Job's life once the broker has all of the run; lowered by Muster, so a sign that Muster needs the Job no
# more.
KEPT_S = 604800
MANAGED = "app.kubernetes.io/managed-by=muster"
MEGABYTE = 1e6
BATCH = 1000  # the most jobs of one call
# The time for all launches at some 50 a second.
LAUNCH_PATIENCE_S = 600


def kubernetes_500(short):
    """Jobs of `true` on two nodes, and what that costs the API server."""
    run = _measure(10 if short else 500)
    return [Figure("kubernetes_500", run.seconds, "s", run.bare_seconds,
                   "a bare client that POSTs the same Jobs and Secrets, mean of one before and one after",
                   ratio_goal=1.1, at_most=True),
            Figure("kubernetes_writes_per_job", run.writes / run.jobs, "calls/job", 2,
                   "POST of Job and Secret by the bare client", 4, at_most=True),
            Figure("kubernetes_reads_per_job", run.reads / run.jobs, "calls/job", goal=0.2, at_most=True)]


@dataclasses.dataclass(frozen=True)
class _Run:
    jobs: int  # that the calls are for
    seconds: float
    bare_seconds: float
    writes: int
    reads: int  # besides watches and logs, which are streams


def _measure(jobs):
    cluster = KubernetesCluster(gpus=0)
    try:
        template = _template(cluster)
        # Measured before and after, because a cluster is not the same once it has run many jobs.
        before = _bare(cluster, template, jobs)
        with fresh_world() as world:
            api, agent = _start(cluster, world)
            seconds = run_all(api, jobs)
            _until_let_go(cluster)
            # The agent tells of its calls with what it sees of runs: one more brings those of all before it.
            _run_one(api)
            calls = dict(api.cluster(agent.cluster).scheduler_calls)
        after = _bare(cluster, template, jobs)
    finally:
        cluster.close()
    return _Run(jobs + 1, seconds, (before + after) / 2, sum(calls.get(name, 0) for name in WRITES), calls.get("GET", 0))


def _start(cluster, world):
    world.make_broker().start()
    agent = cluster.make_least_agent(world).start()
    return world.api(world.broker), agent


def _template(cluster):
    """Job and Secret of one run as Muster has made them, for the bare client to copy."""
    with fresh_world() as world:
        api, _ = _start(cluster, world)
        api.wait_end(api.submit(argv_spec("true")))
        job, = cluster.objects("jobs")
        secret, = cluster.objects("secrets")
        # A later agent would wait for an hour until it lets go the Job of one that has ended.
        _until_let_go(cluster)
    return job, secret


def _until_let_go(cluster):
    eventually(lambda: all(job["spec"].get("ttlSecondsAfterFinished") != KEPT_S for job in cluster.objects("jobs")),
               "the agent has let all Jobs go")


def _bare(cluster, template, jobs):
    """Seconds until all Jobs have ended."""
    name_space = cluster.make_namespace()
    client = BareClient(cluster)
    with client.watch(f"/apis/batch/v1/namespaces/{name_space}/jobs") as watch:
        start = time.monotonic()
        for number in range(jobs):
            job, secret = _copies(template, f"bare-{number}")
            client.post(f"/apis/batch/v1/namespaces/{name_space}/jobs", job)
            client.post(f"/api/v1/namespaces/{name_space}/secrets", secret)
        watch.until(lambda seen: sum(map(has_ended, seen)) >= jobs)
        return time.monotonic() - start


def _copies(template, name, **labels):
    """The same objects by another name, which nobody takes for Muster's unless the labels say so."""
    job, secret = copy.deepcopy(template)
    for thing in (job, secret):
        thing["metadata"] = {"name": name, "labels": labels}
    del job["status"]
    for field in ("selector", "manualSelector"):
        job["spec"].pop(field, None)
    pod = job["spec"]["template"]
    pod["metadata"] = {"labels": labels}
    for volume in pod["spec"]["volumes"]:
        if "secret" in volume:
            volume["secret"]["secretName"] = name
    return job, secret


def kubernetes_launches(short):
    """Launches one after another, without their calls to the server."""
    jobs = 20 if short else 1000
    found = tool("launch-runs", jobs=jobs)
    return [Figure("kubernetes_launches", found["all_ms"], "ms", goal=1000, at_most=True)]


def kubernetes_watch_memory(short):
    """Measures how much more the agent needs when there are thousands of Jobs of Muster's: seen one by one, and listed at
    its start."""
    jobs = 50 if short else 5000
    cluster = KubernetesCluster(gpus=0)
    try:
        with fresh_world() as world:
            api, agent = _start(cluster, world)
            _run_one(api)
            template = (cluster.objects("jobs")[0], cluster.objects("secrets")[0])
            before = memory_bytes(agent.process.pid)
            _make_suspended(cluster, template, jobs)
            _run_one(api)
            watched = memory_bytes(agent.process.pid)
            agent.terminate()
            agent.start()
            _run_one(api)
            listed = memory_bytes(agent.process.pid)
    finally:
        cluster.close()
    return [Figure("kubernetes_watch_memory", (watched - before) / MEGABYTE, "MB", before / MEGABYTE,
                   "the agent with one Job", 100, at_most=True),
            Figure("kubernetes_list_memory", (listed - before) / MEGABYTE, "MB", before / MEGABYTE,
                   "the agent with one Job", 100, at_most=True)]


def kubernetes_runs_memory(short):
    """Measures how much more the agent needs for thousands of runs of its own that wait for a GPU, each with its Job
    and Secret. The broker is told to send that many ahead."""
    runs = 20 if short else 5000
    cluster = KubernetesCluster(gpus=1)
    try:
        with fresh_world() as world:
            world.make_broker(config=json.dumps({"sent_ahead_per_pool": runs})).start()
            settings = {"kubeconfig": str(cluster.least_rights_kubeconfig()), "default_image": "debian:12"}
            agent = world.make_agent("lab", kind="kubernetes", config=json.dumps(
                {"max_active_runs": runs + 1, "kubernetes": settings})).start()
            api = world.api(world.broker)
            gpu = job_spec_pb2.Resources(gpus=[job_spec_pb2.GpuRequest(count_millis=1000)])
            _run_one(api)
            before = memory_bytes(agent.process.pid)
            for first in range(0, runs, BATCH):
                api.submit_many([argv_spec("sleep", "infinity", resources=gpu)] * min(BATCH, runs - first))
            eventually(lambda: len(cluster.objects("jobs")) > runs, "all have a Job", LAUNCH_PATIENCE_S)
            waiting = memory_bytes(agent.process.pid)
    finally:
        cluster.close()
    return [Figure("kubernetes_runs_memory", (waiting - before) / MEGABYTE, "MB", before / MEGABYTE,
                   "the agent with one Job", 100, at_most=True)]


def _run_one(api):
    """The watch has told of all earlier changes when it tells of this job's."""
    job = api.wait_end(api.submit(argv_spec("true")))
    assert len(job.runs) == 1, job


def _make_suspended(cluster, template, jobs):
    client = BareClient(cluster)
    for number in range(jobs):
        key = f"bench-{number + 1}-1"
        labels = dict([MANAGED.split("=")], **{"muster.dev/run-key": key})
        job, _ = _copies(template, key, **labels)
        job["spec"]["suspend"] = True
        client.post("/apis/batch/v1/namespaces/default/jobs", job)


def kubernetes_end_latency(short):
    """Measures the time from the end of a Job, as the API server tells it, to the client's watch of the broker; a few
    jobs at a time."""
    jobs, together = (4, 2) if short else (200, 4)
    cluster = KubernetesCluster(gpus=0)
    try:
        with fresh_world() as world:
            api, _ = _start(cluster, world)
            client = BareClient(cluster)
            with client.watch("/apis/batch/v1/namespaces/default/jobs") as job_watch, \
                    client.watch("/api/v1/namespaces/default/pods") as pod_watch:
                told = {}
                for _ in range(0, jobs, together):
                    numbers = api.submit_many([argv_spec("true")] * together)
                    for change in api.changes(job_ids=numbers, until_terminal=True):
                        if change.transition.job_state in TERMINAL:
                            told.setdefault(change.job.id, time.monotonic())
                job_ends = job_watch.ends(told)
                pod_ends = pod_watch.ends(told)
    finally:
        cluster.close()
    late = sorted((told[number] - job_ends[number]) * 1000 for number in told)
    control = sorted((job_ends[number] - pod_ends[number]) * 1000 for number in told)
    what = "from the pod's end to the Job's, as the API server tells them"
    return [Figure("kubernetes_end_latency_p50", _quantile(late, 0.5), "ms", _quantile(control, 0.5), what + ", p50", 200,
                   at_most=True),
            Figure("kubernetes_end_latency_p99", _quantile(late, 0.99), "ms", _quantile(control, 0.99), what + ", p99",
                   200, at_most=True)]


def _quantile(ordered, part):
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]
