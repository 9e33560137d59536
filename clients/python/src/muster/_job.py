"""A job as its user describes it."""

from __future__ import annotations

import dataclasses
import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from google.protobuf import json_format

from muster import _units
from muster.v1 import job_dependency_pb2, job_spec_pb2

Command = Union[str, Sequence[str]]
PathLike = Union[str, "os.PathLike[str]"]


@dataclasses.dataclass(frozen=True)
class Job:
    """A program, its place and its resources. Every field but the command has a default; the broker checks all of them.

    `workdir` and `files` are directories and files of this machine, which go along. `fields` takes everything else that
    muster.v1.JobSpec has, in its JSON form: Job("train", fields={"slurm": {"partition": "gpu"}}).
    """

    command: Optional[Command] = None  # a text is a shell script, a list is a program with its arguments
    name: str = ""  # default: the first word of the command
    project: str = ""  # default: "default"
    nodes: int = 1  # 1 to 10000; the command starts once on each
    cpus: Optional[_units.Count] = None  # of each node; default: the cluster's
    memory: Optional[_units.Size] = None  # of each node: bytes, or "16Gi"
    gpus: Optional[_units.Count] = None  # of each node: 8, "H100", "H100:8", "H100:0.5"
    time: Optional[_units.Time] = None  # the longest that it may run: seconds, "1h30m", a timedelta
    image: str = ""  # a container image
    env: Mapping[str, str] = dataclasses.field(default_factory=dict)
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    priority: int = 0  # -1000 to 1000, higher first
    clusters: Sequence[str] = ()  # the only ones that may take it; default: any
    pool: str = ""  # Slurm: the partition; Kubernetes: the namespace
    setup: str = ""  # a shell script that runs once on each node before the command
    workdir: Optional[PathLike] = None  # a directory of this machine whose copy the command starts in
    files: Mapping[str, PathLike] = dataclasses.field(default_factory=dict)  # place in the run's directory: path here
    working_directory: str = ""  # a directory of the cluster, absolute; not together with workdir and files
    results_directory: str = ""  # of the cluster, e.g. "lustre:///lustre/ada/run7"
    after: Sequence[Any] = ()  # jobs that have to succeed first: numbers, or what submit returned
    after_ended: Sequence[Any] = ()  # jobs that have to end first, in any way
    after_failed: Sequence[Any] = ()  # jobs that have to fail or to be canceled first
    secrets: Mapping[str, str] = dataclasses.field(default_factory=dict)  # variable: the secret's name
    retries: Optional[int] = None  # how many further runs may follow one that its cluster failed; default: 10
    fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # anything else of JobSpec

    def replace(self, **changes: Any) -> Job:
        """Returns the same job with other values. Raises TypeError if there is no such field."""
        return dataclasses.replace(self, **changes)

    def spec(self) -> job_spec_pb2.JobSpec:
        """Returns the message for the broker, without the files to upload. Raises ValueError, which names the field."""
        try:
            spec = job_spec_pb2.JobSpec()
            if self.fields:
                json_format.ParseDict(dict(self.fields), spec)
        except json_format.ParseError as error:
            raise ValueError(f"fields: {error}") from error
        for name in ("name", "project", "image", "setup", "working_directory", "results_directory"):
            if getattr(self, name):
                setattr(spec, name, getattr(self, name))
        spec.nodes = spec.nodes if spec.nodes and self.nodes == 1 else self.nodes
        spec.priority = self.priority or spec.priority
        self._set_command(spec)
        self._set_resources(spec)
        spec.env.update(self.env)
        spec.labels.update(self.labels)
        spec.placement.clusters.extend([self.clusters] if isinstance(self.clusters, str) else self.clusters)
        if self.pool:
            spec.placement.pool = self.pool
        for variable, secret in self.secrets.items():
            spec.secrets.add(variable=variable, name=secret)
        if self.retries is not None:
            if not 0 <= self.retries <= 99:
                raise ValueError(f"retries is {self.retries}; it is 0 to 99")
            spec.retry.max_runs = self.retries + 1
        for jobs, outcome in ((self.after, job_dependency_pb2.JOB_OUTCOME_SUCCEEDED),
                              (self.after_ended, job_dependency_pb2.JOB_OUTCOME_ENDED),
                              (self.after_failed, job_dependency_pb2.JOB_OUTCOME_FAILED)):
            for job in jobs if isinstance(jobs, Sequence) else [jobs]:
                spec.depends_on.add(job_id=job if isinstance(job, int) else int(job.id), outcome=outcome)
        return spec

    def uploads(self) -> List[Tuple[str, str]]:
        """Returns (path here, place in the run's directory) of each file or directory to upload."""
        found: List[Tuple[str, str]] = []
        if self.workdir is not None:
            found.append((os.path.expanduser(os.fspath(self.workdir)), ""))
        found += [(os.path.expanduser(os.fspath(path)), place) for place, path in self.files.items()]
        return found

    def _set_command(self, spec: job_spec_pb2.JobSpec) -> None:
        if isinstance(self.command, str):
            spec.command.script = self.command
        elif self.command is not None:
            if not self.command:
                raise ValueError("command is empty")
            spec.command.argv.args[:] = [os.fspath(word) for word in self.command]
        elif not spec.HasField("command") and not spec.roles:
            raise ValueError("command is required: a text for a shell, or a list of a program and its arguments")

    def _set_resources(self, spec: job_spec_pb2.JobSpec) -> None:
        if self.cpus is not None:
            spec.resources.cpu_millis = _units.millis(self.cpus, 10_000_000, "cpus")
        if self.memory is not None:
            spec.resources.memory_bytes = _units.size(self.memory)
        if self.gpus is not None:
            del spec.resources.gpus[:]
            spec.resources.gpus.append(_units.gpus(self.gpus))
        if self.time is not None:
            spec.time_limit.CopyFrom(_units.duration(self.time))


def describe(what: Any, fields: Dict[str, Any]) -> Union[Job, job_spec_pb2.JobSpec]:
    """Makes a Job or JobSpec of a command, a Job or a JobSpec, with some fields replaced. Raises TypeError."""
    if isinstance(what, job_spec_pb2.JobSpec):
        if fields:
            raise TypeError(f"a JobSpec takes no further fields: {', '.join(fields)}; set them in the message")
        return what
    if isinstance(what, Job):
        return what.replace(**fields)
    if isinstance(what, str) or (isinstance(what, Sequence) and all(isinstance(word, (str, os.PathLike)) for word in what)):
        return Job(what, **fields)
    raise TypeError(f"{what!r} is neither a command (a text or a list of texts), nor a Job, a JobSpec or a function")
