"""The back end: what the TAO SDK's ExecutionHandler asks for, by calls of Muster's client.

It keeps nothing: a job of the SDK is the job of Muster with its id as a label and as the request id of its submit, so that each
process finds it again, and a repeated submit makes no second one.
"""

from __future__ import annotations

import collections
import re
import threading
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from muster import errors
from muster._job import Job
from muster._units import Time
from muster.client import Client
from muster.handle import JobHandle
from muster.v1 import cluster_pb2, file_tree_pb2, job_pb2

# The label that the SDK's own back end for Kubernetes gives to its jobs.
LABEL, NETWORK_LABEL, ACTION_LABEL = "tao-sdk-job-id", "tao-sdk-network", "tao-sdk-action"
UNKNOWN = "Unknown"
# An id is a label's value, of 63 bytes at most, a part of a filter and a word of a shell.
_ID = re.compile(r"[A-Za-z0-9_.-]{1,63}")
# The jobs whose numbers are known without a question, which are the latest; about 1 MB.
KNOWN_JOBS = 10_000
# A cluster that ends a run gives its processes up to a minute, and the agent has to see the end.
CANCEL_WAIT_S = 120.0

_STATUSES = {"QUEUED": "Pending", "PENDING": "Pending", "RUNNING": "Running", "SUSPENDED": "Paused", "SUCCEEDED": "Complete",
             "FAILED": "Error", "CANCELED": "Canceled"}
# The SDK has two words for whose fault it was.
_OF_THE_CLUSTER = (job_pb2.FAILURE_CLASS_INFRA, job_pb2.FAILURE_CLASS_IMAGE, job_pb2.FAILURE_CLASS_PREEMPTED)
_CREDENTIALS = {"broker": "MUSTER_BROKER", "context": "MUSTER_CONTEXT", "token": "MUSTER_TOKEN", "token_file": "MUSTER_TOKEN_FILE",
                "ca_file": "MUSTER_CA_FILE"}
# Options of the SDK's back ends for Slurm and Kubernetes, and their fields in muster.v1.JobSpec.
_SLURM = {"partition": "partition", "account": "account"}
_KUBERNETES = {"namespace": "namespace", "node_selector": "node_selector", "tolerations": "tolerations",
               "image_pull_secret": "image_pull_secrets"}
# The names under which the SDK's back ends pass a number of GPUs.
_GPUS = ("num_gpus", "num_gpu")


class MusterHandler:
    """Runs the SDK's jobs on the clusters of a broker. `job` is the part of them that the SDK has no words for: cpus, memory, time,
    clusters, secrets."""

    def __init__(self, client: Optional[Client] = None, *, job: Optional[Job] = None) -> None:
        self.client = client if client is not None else Client()
        self.job = job or Job()
        self._lock = threading.Lock()
        # guarded by _lock: the SDK's id, and the job of Muster; the one that was used last is the last
        self._numbers: "collections.OrderedDict[str, int]" = collections.OrderedDict()

    @classmethod
    def from_credentials(cls, creds: Mapping[str, str]) -> MusterHandler:
        """By names of environment variables: MUSTER_BROKER and the like, TAO_MUSTER_CLUSTERS, _POOL, _PROJECT, _TIME, _SECRETS.

        Client() looks for the others. Raises ConfigurationError, ValueError.
        """
        known: Dict[str, Any] = {argument: creds[name] for argument, name in _CREDENTIALS.items() if creds.get(name)}
        return cls(Client(**known), job=job_of(creds))

    # ---- a job's life

    def create_job(self, image: str, network: str, action: str, cloud_metadata: Optional[Mapping[str, Any]] = None,
                   specs: Optional[Mapping[str, Any]] = None, job_id: str = "",
                   docker_env_vars: Optional[Mapping[str, Any]] = None, resource_shape: Optional[str] = None,
                   dedicated_node_group: Optional[str] = None, num_nodes: int = 1,
                   entrypoint: Optional[Mapping[str, str]] = None, mounts: Optional[Sequence[Any]] = None,
                   **options: Any) -> Dict[str, Any]:
        """Submits the job, exactly once for each `job_id`. Raises ValueError, BadRequest, CannotBePlaced and other MusterErrors.

        `job_id` has up to 63 letters, digits, '-', '_' and '.'.
        `options` are num_gpus, partition, account, namespace, node_selector, tolerations, image_pull_secret and job. The specs
        are in the command, and cloud_metadata, which has credentials, is sent nowhere. Without an image the command runs on the
        nodes themselves.
        """
        del cloud_metadata, specs
        if not entrypoint or not entrypoint.get("command"):
            raise ValueError("entrypoint is required: {'command': text of a shell}")
        checked(job_id)
        for name, value in (("resource_shape", resource_shape), ("dedicated_node_group", dedicated_node_group)):
            if value:
                raise ValueError(f"{name} is {value!r}; Muster has none: leave it out, name num_gpus, or a pool in job=muster.Job(...)")
        gpus = next((options.pop(name) for name in _GPUS if name in options), None)
        base: Job = options.pop("job", None) or self.job
        described = base.replace(
            command=_script(entrypoint["command"], job_id), image=image, nodes=max(1, num_nodes), name=self.get_job_name(job_id),
            env={**base.env, **{name: str(value) for name, value in (docker_env_vars or {}).items()}},
            labels={**base.labels, LABEL: job_id, **_label(NETWORK_LABEL, network), **_label(ACTION_LABEL, action)},
            fields=_fields(base.fields, options, mounts))
        if gpus:
            described = described.replace(gpus=gpus)
        handle = self.client.submit(described, request_id=job_id)
        self._know(job_id, handle.id)
        return {"job_name": described.name, "muster_job": handle.id}

    def cancel_job(self, job_id: str) -> bool:
        """True: it has ended. False: there is none, or it is asked to end and has not after two minutes; the request stays."""
        handle = self.find(job_id)
        if handle is None:
            return False
        if not handle.done():
            try:
                handle.cancel(reason="canceled by the TAO SDK").wait(CANCEL_WAIT_S)
            except errors.WaitTimeout:
                return False
            except errors.NotPossible:
                return handle.refresh().done()  # it ended meanwhile
        return True

    def delete_job(self, job_id: str) -> bool:
        """The same as cancel_job: Muster keeps the record of a job."""
        return self.cancel_job(job_id)

    # ---- what is known of it

    def get_job_name(self, job_id: str) -> str:
        """Its name in Muster."""
        return f"tao-job-{job_id}"

    def find(self, job_id: str) -> Optional[JobHandle]:
        """The job of Muster, whichever process submitted it; None: there is none. Raises ValueError: no job has such an id."""
        with self._lock:
            number = self._numbers.get(checked(job_id))
        if number is None:
            for handle in self.client.list(f'label.{LABEL} = "{job_id}"', order_by="id", limit=1):
                self._know(job_id, handle.id)
                return handle
            return None
        self._know(job_id, number)
        return self.client.job(number)

    def _know(self, job_id: str, number: int) -> None:
        with self._lock:
            self._numbers[job_id] = number
            self._numbers.move_to_end(job_id)
            while len(self._numbers) > KNOWN_JOBS:
                self._numbers.popitem(last=False)

    def get_tao_job_status(self, job_id: str) -> str:
        """Pending, Running, Paused, Complete, Error, Canceled, or Unknown: the broker has no such job.

        Raises MusterErrors if the broker does not answer, so that its silence is no change of state.
        """
        handle = self.find(job_id)
        return UNKNOWN if handle is None else _STATUSES.get(handle.refresh().state, UNKNOWN)

    def normalize_status(self, raw_status: Optional[str]) -> str:
        """None is what the SDK takes for the end of a job that went well."""
        return raw_status or "Complete"

    def get_job_message(self, job_id: str) -> str:
        """The reason why it waits or failed, with its remedy; empty: there is nothing to say."""
        handle = self.find(job_id)
        why = handle.why() if handle is not None else None
        return "; ".join(part for part in (why.message, why.remedy) if part) if why else ""

    def get_job_logs(self, job_id: str, tail_lines: Optional[int] = None) -> Optional[str]:
        """The output as the broker has it, of each rank of several with "[rank 1] " before its lines; None: there is no such job."""
        handle = self.find(job_id)
        if handle is None:
            return None
        handle.refresh()
        if not handle.message.runs:
            return ""
        ranks = handle.message.spec.nodes
        return "".join(f"[rank {rank}] {line}\n" if ranks > 1 else f"{line}\n"
                       for rank in range(ranks) for line in handle.logs(tail=tail_lines or None, rank=rank))

    def get_failure_analysis(self, job_id: str) -> Optional[Dict[str, Any]]:
        """The failure in the SDK's form, with Muster's code and class, and the lines that led to them; None: it has not failed."""
        handle = self.find(job_id)
        if handle is None:
            return None
        why = handle.why()
        failure = why.facts.get("failure")
        if failure is None:
            return None
        return {
            "err_class": "ERR_INFRA" if failure.failure_class in _OF_THE_CLUSTER else "ERR_PROGRAM",
            "suggestion": why.remedy,
            "job_failure_by_node_event": [{"node_event_name": why.code, "message": why.message, "node": failure.node}],
            "log_streams": [{"source": quote.source, "text": quote.text} for quote in failure.quotes],
            "failure_class": job_pb2.FailureClass.Name(failure.failure_class)[len("FAILURE_CLASS_"):],
            "retriable": failure.retriable,
        }

    def get_job_replicas(self, job_id: str) -> List[Dict[str, Any]]:
        """The nodes of its latest run by rank, and the reason why it waits."""
        handle = self.find(job_id)
        if handle is None:
            return []
        why, status = handle.why(), _STATUSES.get(handle.state, UNKNOWN)
        issue = {"reason": why.code, "message": why.message} if why and status in ("Pending", "Running", "Paused") else None
        names: Sequence[str] = handle.message.runs[-1].nodes if handle.message.runs else ()
        return [{"status": {"node": {"name": names[rank] if rank < len(names) else "", "node_group_id": handle.cluster},
                            "phase": status, "readiness_issue": issue}} for rank in range(handle.message.spec.nodes)]

    # ---- its results

    def get_job_results_dir(self, job_id: str) -> str:
        """The results directory of its latest run, as its nodes see it; empty: it has not begun, or has none."""
        handle = self.find(job_id)
        runs = handle.refresh().message.runs if handle is not None else ()
        return str(runs[-1].results_directory) if runs else ""

    def list_results(self, job_id: str) -> List[Tuple[str, int]]:
        """(path below the results directory, bytes) of each file. The files themselves pass, since Muster has no listing."""
        handle = self.find(job_id)
        if handle is None:
            return []
        return [(piece.entry.path.decode("utf-8", "replace"), int(piece.entry.size_bytes))
                for piece in self.client._fetch(handle.id, "results", 0, 0)
                if piece.WhichOneof("piece") == "entry" and piece.entry.kind == file_tree_pb2.FILE_KIND_FILE]

    # ---- the rest of the SDK's protocol

    def get_available_instances(self, **kwargs: Any) -> Dict[str, Any]:
        """The GPUs of the nodes that each cluster tells of, and of its largest pool, since pools may share nodes."""
        del kwargs
        clusters = {cluster.name: max((_gpus(pool) for pool in cluster.inventory.pools), default=0) for cluster in self.client.clusters()}
        return {"total_nvidia_gpus": sum(clusters.values()), "clusters": clusters}

    def resolve_resource_shape(self, num_gpus: int, preferred_node_group: Optional[str] = None) -> Tuple[None, None]:
        """Muster has no shapes: a job says how many GPUs it needs."""
        del num_gpus, preferred_node_group
        return None, None

    def resolve_cpu_shape(self, preferred_node_group: Optional[str] = None,
                          preference: Optional[List[str]] = None) -> Tuple[None, None]:
        """As resolve_resource_shape."""
        del preferred_node_group, preference
        return None, None

    def get_volumes(self, node_group_id: Optional[str] = None) -> List[Dict[str, Any]]:
        """Muster has no list of volumes: mounts and kubernetes.volumes of a job name them."""
        del node_group_id
        return []

    def get_mount_objects(self, volumes: Optional[List[Dict[str, Any]]] = None, path_prefix: str = "/") -> Tuple[None, None]:
        """As get_volumes."""
        del volumes, path_prefix
        return None, None

    def get_storage_permissions(self, volume_name: str, node_group_id: str) -> List[Dict[str, Any]]:
        """As get_volumes."""
        del volume_name, node_group_id
        return []


def checked(job_id: str) -> str:
    """The same id. Raises ValueError."""
    if not _ID.fullmatch(job_id):
        raise ValueError(f"job_id is {job_id!r}; it has 1 to 63 letters, digits, '-', '_' and '.'")
    return job_id


def _gpus(pool: cluster_pb2.Pool) -> int:
    return sum(group.count * sum(group.gpus.values()) for group in pool.node_groups)


def job_of(environment: Mapping[str, str]) -> Job:
    """Each job as TAO_MUSTER_CLUSTERS, _POOL, _PROJECT, _TIME and _SECRETS describe it. Raises ValueError."""
    time: Optional[Time] = environment.get("TAO_MUSTER_TIME") or None
    secrets = {}
    for pair in _list(environment.get("TAO_MUSTER_SECRETS", "")):
        variable, equals, name = pair.partition("=")
        if not (variable and equals and name):
            raise ValueError(f"TAO_MUSTER_SECRETS has {pair!r}; write VARIABLE=NAME of a secret, with commas between several")
        secrets[variable] = name
    return Job(clusters=_list(environment.get("TAO_MUSTER_CLUSTERS", "")), pool=environment.get("TAO_MUSTER_POOL", ""),
               project=environment.get("TAO_MUSTER_PROJECT", ""), time=time, secrets=secrets)


def _list(text: str) -> List[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _script(command: str, job_id: str) -> str:
    # A run with a results directory has a TAO_JOB_ID already, by which TAO's programs find that directory.
    return f'#!/bin/bash\nexport TAO_JOB_ID="${{TAO_JOB_ID:-{job_id}}}"\n{command}\n'


def _label(key: str, value: str) -> Dict[str, str]:
    return {key: value} if value else {}


def _fields(base: Mapping[str, Any], options: Dict[str, Any], mounts: Optional[Sequence[Any]]) -> Dict[str, Any]:
    fields = dict(base)
    for group, names in (("slurm", _SLURM), ("kubernetes", _KUBERNETES)):
        chosen = {field: options.pop(name) for name, field in names.items() if options.get(name)}
        if isinstance(chosen.get("image_pull_secrets"), str):
            chosen["image_pull_secrets"] = [chosen["image_pull_secrets"]]
        if chosen:
            fields[group] = {**fields.get(group, {}), **chosen}
    left = sorted(name for name, value in options.items() if value is not None)
    if left:
        raise ValueError(f"{', '.join(left)}: Muster's back end for the TAO SDK has no such option; job=muster.Job(...) has all of Muster's")
    if mounts:
        fields["mounts"] = [*fields.get("mounts", []), *[_mount(mount) for mount in mounts]]
    return fields


def _mount(mount: Any) -> Dict[str, Any]:
    """Accepts "/source", "/source:/target", "/source:/target:ro", or the fields of muster.v1.Mount."""
    if not isinstance(mount, str):
        return dict(mount)
    parts = mount.split(":")
    if len(parts) > 3 or not all(parts) or (len(parts) == 3 and parts[2] not in ("ro", "rw")):
        raise ValueError(f"mounts has {mount!r}; write SOURCE:TARGET, or SOURCE:TARGET:ro")
    return {"source": parts[0], "target": parts[1] if len(parts) > 1 else parts[0], "read_only": parts[2:] == ["ro"]}
