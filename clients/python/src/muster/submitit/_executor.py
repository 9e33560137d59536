"""AutoExecutor and its jobs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pathlib
import pickle
import shutil
import sys
import warnings
from typing import Any, Callable, Dict, Generic, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union

from muster import _calls, _tree, _verbs, errors
from muster import _rpc as rpc
from muster._job import Job as MusterJob
from muster._steps import call
from muster.client import Client
from muster.submitit import _parameters
from muster.submitit._environment import FOLDER, TIMEOUT_MIN
from muster.submitit._paths import JobPaths
from muster.submitit._task import CHECKPOINTED
from muster.submitit.helpers import DelayedSubmission, FailedJobError, UncompletedJobError
from muster.v1 import cluster_pb2, job_pb2, signal_jobs_pb2

R = TypeVar("R")
PathLike = Union[str, "os.PathLike[str]"]

LABEL = "muster-submitit"
# The modules that a job imports; the name of each tells that it needs no other one of muster.
_JOB_SIDE = ("__init__.py", "_environment.py", "_paths.py", "helpers.py")
_STATES = {"QUEUED": "PENDING", "SUCCEEDED": "COMPLETED", "CANCELED": "CANCELLED"}
_FAILURES = {job_pb2.FAILURE_CLASS_TIMEOUT: "TIMEOUT", job_pb2.FAILURE_CLASS_OOM: "OUT_OF_MEMORY",
             job_pb2.FAILURE_CLASS_PREEMPTED: "PREEMPTED"}
_STREAMS = {"stdout": "out", "stderr": "err"}


class Job(Generic[R]):
    """A job, or one of its tasks."""

    def __init__(self, client: Client, folder: PathLike, job_id: str, nodes: int, tasks_per_node: int, task_id: Optional[int]) -> None:
        self._client, self._folder = client, os.fspath(folder)
        self._job_id, self._nodes, self._tasks_per_node, self._task_id = job_id, nodes, tasks_per_node, task_id
        self._handle = client.job(int(job_id))
        self._cancel_at_deletion = False

    # ---- facts

    @property
    def job_id(self) -> str:
        """Its number, as a text."""
        return self._job_id

    @property
    def task_id(self) -> Optional[int]:
        """The number of the task; None: the job has several."""
        return self._task_id

    @property
    def num_tasks(self) -> int:
        """The number of its tasks; of a task 1."""
        return self._nodes * self._tasks_per_node if self._task_id is None else 1

    @property
    def paths(self) -> JobPaths:
        """The paths of its files here."""
        return JobPaths(self._folder, self._job_id, self._task_id or 0)

    @property
    def state(self) -> str:
        """Asks for the state: PENDING, RUNNING, SUSPENDED, COMPLETED, FAILED, TIMEOUT, OUT_OF_MEMORY, PREEMPTED or CANCELLED."""
        self._handle.done()
        message = self._handle.message
        name = _verbs.state_name(message)
        return _FAILURES.get(message.failure.failure_class, name) if name == "FAILED" else _STATES.get(name, name)

    def get_info(self, mode: str = "force") -> Dict[str, str]:
        """The words of sacct for some facts of it."""
        del mode
        state, runs = self.state, self._handle.message.runs
        return {"JobID": self._job_id, "State": state, "NodeList": ",".join(runs[-1].nodes) if runs else ""}

    def task(self, task_id: int) -> Job[R]:
        """One of its tasks. Raises ValueError."""
        if not 0 <= task_id < self.num_tasks:
            raise ValueError(f"task_id {task_id} must be between 0 and {self.num_tasks - 1}")
        return self if self._task_id is not None else self._task(task_id)

    def submission(self) -> DelayedSubmission:
        """The call that was submitted."""
        with open(self.paths.submitted_pickle, "rb") as file:
            made: DelayedSubmission = pickle.load(file)
        return made

    def done(self, force_check: bool = False) -> bool:
        """Asks whether it has ended."""
        del force_check
        return self._handle.done()

    # ---- its end

    def wait(self) -> None:
        """Waits until it has ended."""
        self._handle.wait()

    def result(self) -> Any:
        """Waits, and returns what the function returned; of several tasks a list. Raises FailedJobError, UncompletedJobError."""
        values = self.results()
        return values if self._task_id is None else values[0]

    def results(self) -> List[R]:
        """The same of each task."""
        failure = self.exception()
        if failure is not None:
            raise failure
        return [self._outcome(task)[1] for task in self._task_ids()]

    def exception(self) -> Optional[UncompletedJobError]:
        """Waits; the error of the first task that failed; None: none did."""
        self.wait()
        for task in self._task_ids():
            try:
                kind, value = self._outcome(task)
            except UncompletedJobError as error:
                return error
            if kind == "error":
                return FailedJobError(
                    f"Job (task={task}) failed during processing with trace:\n----------------------\n{value}\n----------------------\n"
                    f"You can check full logs with 'job.stderr({task})' and 'job.stdout({task})', or muster logs {self._job_id}")
        return None

    def _outcome(self, task: int) -> Tuple[str, Any]:
        kept = JobPaths(self._folder, self._job_id, task).result_pickle
        if not kept.exists():
            try:
                data = self._fetch(f"{task}_result.pkl", task)
            except errors.MusterError as error:
                why = self._handle.why()
                raise UncompletedJobError(f"Job {self._job_id} (task: {task}) has not produced any output (state: {self.state})\n"
                                          f"{why}\n{error}") from error
            _keep(kept, data)
        with open(kept, "rb") as file:
            outcome: Tuple[str, Any] = pickle.load(file)
        return outcome

    # ---- output

    def stdout(self) -> Optional[str]:
        """The standard output of its tasks, which is also copied to paths.stdout; None: it has not begun."""
        return self._logs("stdout")

    def stderr(self) -> Optional[str]:
        """The same of standard error."""
        return self._logs("stderr")

    def _logs(self, stream: str) -> Optional[str]:
        if not self._handle.refresh().message.runs:
            return None
        texts = [self._log(stream, task) for task in self._task_ids()]
        return "\n".join(text for text in texts if text is not None)

    def _log(self, stream: str, task: int) -> str:
        if self._tasks_per_node == 1:
            # Each run has a log of its own; a job that went on from a checkpoint has the logs of all.
            runs = [run.number for run in self._handle.message.runs]
            text = "".join(self._handle.log(stream, rank=task, run=run) for run in runs)
        else:
            text = self._fetch(f"{task}_log.{_STREAMS[stream]}", task).decode("utf-8", "replace")
        paths = JobPaths(self._folder, self._job_id, task)
        _keep(paths.stdout if stream == "stdout" else paths.stderr, text.encode())
        return text

    def _fetch(self, name: str, task: int) -> bytes:
        pieces = self._client._fetch(int(self._job_id), f"results/submitit/{name}", 0, task // self._tasks_per_node)
        return b"".join(piece.chunk for piece in pieces)

    # ---- change

    def cancel(self, check: bool = True) -> None:
        """Asks that it ends."""
        del check
        self._handle.cancel()

    def cancel_at_deletion(self, value: bool = True) -> Job[R]:
        """Cancels the job when this object goes."""
        self._cancel_at_deletion = value
        return self

    def _interrupt(self, timeout: bool = False) -> None:
        """Sends the signal after which it checkpoints, as a preemption does."""
        del timeout
        request = signal_jobs_pb2.SignalJobsRequest(job_ids=[int(self._job_id)], signal="USR2")
        answer = self._client._run(call(rpc.SIGNAL_JOBS, request, self._client._patience))
        for one in answer.signals:
            if one.HasField("error"):
                raise errors.NotPossible(one.error.message, reason=one.error.reason)

    # ---- asyncio

    def awaitable(self) -> AsyncJobProxy[R]:
        """The same for asyncio."""
        return AsyncJobProxy(self)

    # ---- its parts

    def _task_ids(self) -> Sequence[int]:
        return range(self._nodes * self._tasks_per_node) if self._task_id is None else (self._task_id,)

    def _task(self, task_id: int) -> Job[R]:
        made: Job[R] = Job(self._client, self._folder, self._job_id, self._nodes, self._tasks_per_node, task_id)
        return made

    def __getstate__(self) -> Dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_client", "_handle")}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self._client = Client()
        self._handle = self._client.job(int(self._job_id))

    def __repr__(self) -> str:
        return f'Job<job_id={self._job_id}, task_id={self._task_id}, state="{self.state}">'

    def __del__(self) -> None:
        if vars(self).get("_cancel_at_deletion"):
            with contextlib.suppress(errors.MusterError):
                self._handle.cancel()


class AsyncJobProxy(Generic[R]):
    """The waits of a job, awaited."""

    def __init__(self, job: Job[R]) -> None:
        self.job = job

    async def wait(self, poll_interval: float = 1) -> None:
        """Waits in a thread, without polling."""
        del poll_interval
        await asyncio.get_running_loop().run_in_executor(None, self.job.wait)

    async def result(self, poll_interval: float = 1) -> Any:
        """As Job.result."""
        await self.wait(poll_interval)
        return await asyncio.get_running_loop().run_in_executor(None, self.job.result)

    async def results(self, poll_interval: float = 1) -> List[R]:
        """As Job.results."""
        await self.wait(poll_interval)
        return await asyncio.get_running_loop().run_in_executor(None, self.job.results)


class _DelayedJob(Job[R]):
    """A job of a batch that is not submitted yet; it becomes one when the batch ends."""

    def __init__(self, executor: AutoExecutor) -> None:
        self._executor = executor
        self._cancel_at_deletion = False

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__") or name in ("_executor", "_cancel_at_deletion", "_become"):
            return object.__getattribute__(self, name)
        executor: AutoExecutor = object.__getattribute__(self, "_executor")
        if not executor._allow_implicit_submissions:
            raise AttributeError("Accessing job attributes is forbidden within 'with executor.batch()' context")
        executor._submit_batch()
        return getattr(self, name)

    def _become(self, job: Job[Any]) -> None:
        object.__setattr__(self, "__class__", Job)
        vars(self).clear()
        vars(self).update(vars(job))

    def __repr__(self) -> str:
        return object.__repr__(self)


class AutoExecutor:
    """Submits functions. `folder` gets copies of what jobs submit and bring back; `cluster` is the name of a cluster of the broker.

    Parameters that begin with slurm_ count if all clusters on which the jobs may run are Slurm's; `client` is Client() by default.
    """

    def __init__(self, folder: PathLike, cluster: Optional[str] = None, *, client: Optional[Client] = None, **kwargs: Any) -> None:
        self.folder = pathlib.Path(folder).expanduser().absolute()
        self._client = client if client is not None else Client()
        self._chosen = cluster
        kinds = {one.kind for one in self._client.clusters() if cluster in (None, one.name)}
        if cluster is not None and not kinds:
            raise ValueError(f"AutoExecutor doesn't know any executor named {cluster}: muster clusters lists those that there are")
        # As submitit has it, the word by which parameters of a kind begin.
        self.cluster = "slurm" if kinds == {cluster_pb2.CLUSTER_KIND_SLURM} else "muster"
        self.parameters: Dict[str, Any] = {}
        self._batch: Optional[List[Tuple[_DelayedJob[Any], DelayedSubmission]]] = None
        self._allow_implicit_submissions = False
        self.update_parameters(**kwargs)

    def update_parameters(self, **kwargs: Any) -> None:
        """Sets parameters of later jobs; None changes nothing. Raises NameError: there is no such parameter."""
        if self._batch is not None:
            raise RuntimeError('Changing parameters within batch context "with executor.batch():" is not allowed')
        self.parameters.update(_parameters.checked({name: value for name, value in kwargs.items() if value is not None}))

    def submit(self, fn: Callable[..., R], *args: Any, **kwargs: Any) -> Job[R]:
        """Submits fn(*args, **kwargs)."""
        delayed = DelayedSubmission(fn, *args, **kwargs)
        if self._batch is not None:
            later: _DelayedJob[R] = _DelayedJob(self)
            self._batch.append((later, delayed))
            return later
        return self._submit([delayed])[0]

    def map_array(self, fn: Callable[..., R], *iterable: Iterable[Any]) -> List[Job[R]]:
        """A job for each tuple of the iterables."""
        return self._submit_all([DelayedSubmission(fn, *args) for args in zip(*iterable)])

    def submit_array(self, fns: Sequence[Callable[[], R]]) -> List[Job[R]]:
        """A job for each function."""
        return self._submit_all([DelayedSubmission(fn) for fn in fns])

    @contextlib.contextmanager
    def batch(self, allow_implicit_submissions: bool = False) -> Iterator[None]:
        """Submits the jobs of the block at its end, all or none as far as they fit into one message."""
        if self._batch is not None:
            raise RuntimeError('Nesting "with executor.batch()" contexts is not allowed.')
        self._batch, self._allow_implicit_submissions = [], allow_implicit_submissions
        try:
            yield
            if not self._batch and not allow_implicit_submissions:
                warnings.warn('No submission happened during "with executor.batch()" context.', RuntimeWarning, stacklevel=3)
            self._submit_batch()
        finally:
            self._batch = None

    def _submit_batch(self) -> None:
        batch = self._batch or []
        for (later, _), job in zip(batch, self._submit([delayed for _, delayed in batch])):
            later._become(job)
        if self._batch is not None:
            self._batch = []

    def _submit_all(self, submissions: Sequence[DelayedSubmission]) -> List[Job[Any]]:
        if not submissions:
            warnings.warn("Received an empty job array", stacklevel=3)
        return self._submit(submissions)

    def _submit(self, submissions: Sequence[DelayedSubmission]) -> List[Job[Any]]:
        chosen = _parameters.chosen(self.parameters, self.cluster)
        at_once = chosen.array_parallelism or len(submissions)
        made: List[Job[Any]] = []
        for at in range(0, len(submissions), max(1, at_once)):
            group = submissions[at:at + at_once]
            # Each job of a group begins when the one in its place of the group before has ended.
            first = made[at - at_once:at] if at else []
            made += self._send(group, chosen, [[int(job.job_id)] for job in first] or [[] for _ in group])
        return made

    def _send(self, group: Sequence[DelayedSubmission], chosen: _parameters.Chosen, after: Sequence[Sequence[int]]) -> List[Job[Any]]:
        planned, pickles = [], []
        for delayed, earlier in zip(group, after):
            one, data = self._plan(delayed, chosen, earlier)
            planned.append(one)
            pickles.append(data)
        jobs: List[Job[Any]] = []
        for handle, data in zip(self._client._submit(planned, held=False, request_ids=None), pickles):
            alone = chosen.job.nodes * chosen.tasks_per_node == 1
            job: Job[Any] = Job(self._client, self.folder, str(handle.id), chosen.job.nodes, chosen.tasks_per_node, 0 if alone else None)
            _keep(job.paths.submitted_pickle, data)
            jobs.append(job)
        return jobs

    def _plan(self, delayed: DelayedSubmission, chosen: _parameters.Chosen, after: Sequence[int]) -> Tuple[_verbs.Planned, bytes]:
        calls = _calls.Calls(delayed.function, MusterJob())
        data = calls._pickle(delayed)
        here = pathlib.Path(__file__).parent
        contents = {name: content for name, content in calls._common.items() if name.startswith("cloudpickle/")}
        contents.update({f"lib/muster/submitit/{name}": (here / name).read_bytes() for name in _JOB_SIDE})
        contents.update({"lib/muster/__init__.py": b"", "submission.pickle": data, "task.py": (here / "_task.py").read_bytes()})
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        base = chosen.job
        limit = {TIMEOUT_MIN: str(base.time // 60)} if isinstance(base.time, (int, float)) else {}
        described = base.replace(
            command=[chosen.python or sys.executable, "-u", f"{_calls.DIRECTORY}/task.py", version, str(chosen.tasks_per_node)],
            name=base.name or calls._name, labels={**base.labels, LABEL: "call"}, env={**base.env, FOLDER: str(self.folder), **limit},
            clusters=[self._chosen] if self._chosen else base.clusters, after_ended=[*base.after_ended, *after],
            fields={**base.fields, "retry": {"exit_codes": [CHECKPOINTED], **base.fields.get("retry", {})}})
        (planned,) = self._client._run(_verbs.prepare([described], {}, self._client._patience))
        tree = _tree.tree_of(contents)
        planned.spec.uploads.add(tree_sha256=tree.sha256, path=_calls.DIRECTORY)
        planned.trees.append(tree)
        return planned, data


def _keep(path: pathlib.Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_bytes(data)
    shutil.move(str(part), str(path))
