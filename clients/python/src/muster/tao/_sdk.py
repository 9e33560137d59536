"""The SDK that a user of TAO calls: the methods of KubernetesSDK and SlurmSDK, on the clusters of a broker."""

from __future__ import annotations

import logging
import os
import uuid
from typing import Any, Dict, List, Mapping, Optional, Sequence

from tao_sdk.checkpoints import CHECKPOINT_FILE_EXTENSIONS
from tao_sdk.job_store import JobStore, resolve_sdk_state_paths
from tao_sdk.models import Job as TaoJob
from tao_sdk.models import JobStatus
from tao_sdk.monitor import JobMonitor

from muster import errors
from muster._files import Fetched
from muster._job import Job, PathLike
from muster.client import Client
from muster.tao._handler import UNKNOWN, MusterHandler, job_of

logger = logging.getLogger(__name__)

BACKEND = "muster"
TERMINAL = ("Complete", "Error", "Canceled")
# Variables of this process that go along, and their names in the job.
_PLAIN = {"S3_BUCKET_NAME": "S3_BUCKET_NAME", "S3_ENDPOINT_URL": "AWS_ENDPOINT_URL"}
# Those whose values are credentials. The spec of a job, which others may read, is no place for them.
_SECRET = {"ACCESS_KEY": "AWS_ACCESS_KEY_ID", "SECRET_KEY": "AWS_SECRET_ACCESS_KEY", "HF_TOKEN": "HF_TOKEN", "NGC_KEY": "NGC_KEY"}


class MusterSDK:
    """Runs TAO's jobs on Slurm, Kubernetes and machines through a Muster broker.

    `job` describes what TAO has no words for: MusterSDK(job=muster.Job(cpus=16, time="4h", clusters=["lab"])). Default: what the
    variables TAO_MUSTER_CLUSTERS, _POOL, _PROJECT, _TIME and _SECRETS say. The other arguments are those of the SDK's own back
    ends. Raises ConfigurationError.
    """

    def __init__(self, poll_interval: int = 30, epoch_milestone_interval: int = 10, state_file: Optional[PathLike] = None, *,
                 client: Optional[Client] = None, job: Optional[Job] = None) -> None:
        self._owns_client = client is None
        self._handler = MusterHandler(client, job=job if job is not None else job_of(os.environ))
        state_path, database = resolve_sdk_state_paths(state_file)
        self._store = JobStore(db_path=database)
        self._monitor = JobMonitor(poll_interval=poll_interval, epoch_milestone_interval=epoch_milestone_interval,
                                   state_file=state_path, store=self._store)
        self._monitor.start()

    def close(self) -> None:
        """Ends the thread that looks for hooks, and the connection."""
        self._monitor.stop()
        self._store.close()
        if self._owns_client:
            self._handler.client.close()

    def __enter__(self) -> MusterSDK:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # ---- a job's life

    def create_job(self, image: str, command: str, gpu_count: int = 1, env_vars: Optional[Mapping[str, Any]] = None,
                   hooks: Optional[Mapping[str, Any]] = None, num_nodes: int = 1, *, partition: Optional[str] = None,
                   account: Optional[str] = None, namespace: Optional[str] = None,
                   node_selector: Optional[Mapping[str, str]] = None, tolerations: Optional[Sequence[Mapping[str, Any]]] = None,
                   image_pull_secret: Optional[str] = None, mounts: Optional[Sequence[Any]] = None,
                   job: Optional[Job] = None) -> Any:
        """Submits a job; returns the SDK's Job. `gpu_count` is of each node; `command` is a text for bash.

        `partition` and `account` are Slurm's, `namespace` to `image_pull_secret` are Kubernetes'. Without them the job may run on
        a cluster of each kind. `mounts` are "SOURCE:TARGET" or "SOURCE:TARGET:ro"; `job` takes the place of the SDK's.

        Raises CannotBePlaced, BadRequest and other MusterErrors. If the broker does not answer, the error has `tao_job_id`, and
        its `tao_launch_uncertain` is true: get_job_status says later whether the job is there.
        """
        job_id = str(uuid.uuid4())
        base = job if job is not None else self._handler.job
        environment = _environment(env_vars or {}, base)
        bucket = environment.get("S3_BUCKET_NAME", "")
        results = f"s3://{bucket}/results/{job_id}" if bucket else ""
        self._store.create_job(job_id=job_id, network_arch="", action="", workspace_id=BACKEND, backend_type=BACKEND, image=image,
                               results_dir=results)
        try:
            made = self._handler.create_job(
                image, "", "", job_id=job_id, docker_env_vars=environment, num_nodes=num_nodes, num_gpus=gpu_count,
                entrypoint={"command": command, "args_template": ""}, mounts=mounts, partition=partition, account=account,
                namespace=namespace, node_selector=node_selector, tolerations=tolerations, image_pull_secret=image_pull_secret,
                job=base)
        except (errors.BrokerUnavailable, errors.CallTimeout) as error:
            vars(error).update(tao_job_id=job_id, tao_launch_uncertain=True)
            raise
        except Exception:
            self._store.update_job_status(job_id, "Error")
            raise
        self._store.update_job_backend_id(job_id, str(made["muster_job"]))
        submitted = TaoJob(id=job_id, network_arch="", action="", workspace_id=BACKEND, backend_type=BACKEND,
                           backend_job_id=str(made["muster_job"]), results_dir=results)
        if hooks:
            self._monitor.watch(submitted, hooks, self._handler)
        return submitted

    def cancel_job(self, job_id: str) -> bool:
        """True: it has ended. False: there is no such job, or it has not ended after two minutes; it is still asked to."""
        if not self._handler.cancel_job(job_id):
            return False
        self.get_job_status(job_id)
        self._monitor.unwatch(job_id)
        return True

    # ---- what is known of it

    def get_job_status(self, job_id: str) -> Any:
        """The SDK's JobStatus; its message says why the job waits or failed. Raises MusterErrors if the broker does not answer."""
        status = self._handler.get_tao_job_status(job_id)
        if status == UNKNOWN:
            entry = self._store.get_job(job_id)
            known = entry["status"] if entry and entry["status"] in TERMINAL else UNKNOWN  # the broker forgets jobs in time
            return JobStatus(job_id=job_id, status=known, message="the broker has no such job")
        self._store.update_job_status(job_id, status)
        return JobStatus(job_id=job_id, status=status, message=self._handler.get_job_message(job_id))

    def get_job_logs(self, job_id: str, tail: Optional[int] = None) -> str:
        """The output of all ranks, with "[rank 1] " before each line if there are several; `tail` is of each."""
        return self._handler.get_job_logs(job_id, tail) or ""

    def get_failure_analysis(self, job_id: str) -> Optional[Dict[str, Any]]:
        """Whose fault it was, what to do, and the lines that say so; None: the job has not failed."""
        return self._handler.get_failure_analysis(job_id)

    def get_job_replicas(self, job_id: str) -> List[Dict[str, Any]]:
        """The job's nodes by rank, and why they wait."""
        return self._handler.get_job_replicas(job_id)

    def get_job(self, job_id: str) -> Optional[Dict[str, Any]]:
        """The record in this user's store of the SDK; None: there is none."""
        found: Optional[Dict[str, Any]] = self._store.get_job(job_id)
        return found

    def list_jobs(self, status: Optional[str] = None) -> List[Dict[str, Any]]:
        """The jobs of that store, with the states of its last look at them."""
        found: List[Dict[str, Any]] = self._store.list_jobs(status=status)
        return found

    # ---- its results

    def get_job_results_dir(self, job_id: str) -> str:
        """The place of the results: a directory of the cluster, or s3://BUCKET/results/ID; empty: it is not known yet."""
        directory = self._handler.get_job_results_dir(job_id)
        entry = self._store.get_job(job_id)
        return directory or str(entry.get("results_dir", "") if entry else "")

    def get_checkpoints(self, job_id: str) -> List[str]:
        """The checkpoints below the results directory of the cluster, as paths relative to it.

        All results pass through the broker for that, as in fetch_results. Raises NotFound, NotPossible and other MusterErrors.
        """
        return sorted(path for path, _ in self._handler.list_results(job_id)
                      if path.lower().endswith(tuple(CHECKPOINT_FILE_EXTENSIONS)))

    def fetch_results(self, job_id: str, to: PathLike = ".") -> Fetched:
        """Copies the results into the directory `to`, as JobHandle.fetch does. Raises NotFound, NotPossible and other MusterErrors."""
        handle = self._handler.find(job_id)
        if handle is None:
            raise errors.NotFound(f"the broker has no job of the TAO SDK with the id {job_id}", code="NOT_FOUND")
        return handle.fetch("results", to)


def _environment(given: Mapping[str, Any], base: Job) -> Dict[str, str]:
    environment = {name: str(value) for name, value in given.items()}
    for source, target in _PLAIN.items():
        if os.environ.get(source) and target not in base.env:
            environment.setdefault(target, os.environ[source])
    left = {source: target for source, target in _SECRET.items()
            if os.environ.get(source) and not (target in environment or target in base.env or target in base.secrets)}
    if left:
        logger.warning("%s: set here, but sent along only as secrets: muster secret set NAME, then TAO_MUSTER_SECRETS=%s",
                       ", ".join(left), ",".join(f"{target}=NAME" for target in left.values()))
    return environment
