"""AutoExecutor and its jobs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pathlib
import pickle
import shutil
import sys
import uuid
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
from muster.submitit._task import CHECKPOINTED, SUBMISSION, of_submission
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

    def __init__(self, client: Client, folder: PathLike, job_id: str, nodes: int, tasks_per_node: int, task_id: Optional[int],
                 submission_id: str) -> None:
        self._client, self._folder, self._submission_id = client, os.fspath(folder), submission_id
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
        """The call that was submitted. Raises FileNotFoundError: the folder has it no more, or that of another job of this number."""
        path = self.paths.submitted_pickle
        data = path.read_bytes()
        if not of_submission(data, self._submission_id):
            raise FileNotFoundError(f"{path} is of another job")
        made: DelayedSubmission = pickle.loads(data)
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
        """Waits, and returns what the function returned; of several tasks a list. Raises FailedJobError, UncompletedJobError.

        Other MusterErrors say that a job which succeeded has an outcome that does not come now: ask again.
        """
        values = self.results()
        return values if self._task_id is None else values[0]

    def results(self) -> List[R]:
        """The same of each task."""
        failure = self.exception()
        if failure is not None:
            raise failure
        return [self._outcome(task)[1] for task in self._task_ids()]

    def exception(self) -> Optional[UncompletedJobError]:
        """Waits; the error of the first task that failed; None: none did. Raises MusterErrors, as result() does."""
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
        data = kept.read_bytes() if kept.exists() else b""
        if not of_submission(data, self._submission_id):
            try:
                data = self._fetch(f"{task}_result.pkl", task)
            except errors.MusterError as error:
                if not isinstance(error, errors.NotFound) and self.state == "COMPLETED":
                    raise
                raise self._uncompleted(task, str(error)) from error
            if not of_submission(data, self._submission_id):
                raise self._uncompleted(task, "its results directory has the outcome of another job")
            _keep(kept, data)
        outcome: Tuple[str, Any] = pickle.loads(data)
        return outcome

    def _uncompleted(self, task: int, detail: str) -> UncompletedJobError:
        return UncompletedJobError(f"Job {self._job_id} (task: {task}) has not produced any output (state: {self.state})\n"
                                   f"{self._handle.why()}\n{detail}")

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
        made: Job[R] = Job(self._client, self._folder, self._job_id, self._nodes, self._tasks_per_node, task_id, self._submission_id)
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
        if not any(later is self for later, _ in executor._batch or ()):
            raise RuntimeError("the batch was not submitted")
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
        """A job for each tuple of the iterables.

        If some go in several messages and one of these fails, the error has the jobs of those before it as `submitted`. With
        slurm_array_parallelism each group of so many jobs is a message.
        """
        return self._submit_all([DelayedSubmission(fn, *args) for args in zip(*iterable)])

    def submit_array(self, fns: Sequence[Callable[[], R]]) -> List[Job[R]]:
        """A job for each function. Errors are those of map_array."""
        return self._submit_all([DelayedSubmission(fn) for fn in fns])

    @contextlib.contextmanager
    def batch(self, allow_implicit_submissions: bool = False) -> Iterator[None]:
        """Submits the jobs of the block at its end, all or none as far as they fit into one message.

        If that fails, or the block does, the jobs that were not submitted raise RuntimeError.
        """
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
        failure: Optional[Exception] = None
        try:
            made = self._submit([delayed for _, delayed in batch])
        except Exception as error:
            made, failure = getattr(error, "submitted", []), error
        for (later, _), job in zip(batch, made):
            later._become(job)
        if self._batch is not None:
            self._batch = batch[len(made):]
        if failure is not None:
            raise failure

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
            try:
                made += self._send(group, chosen, [[int(job.job_id)] for job in first] or [[] for _ in group])
            except Exception as error:
                setattr(error, "submitted", [*made, *getattr(error, "submitted", [])])
                raise
        return made

    def _send(self, group: Sequence[DelayedSubmission], chosen: _parameters.Chosen, after: Sequence[Sequence[int]]) -> List[Job[Any]]:
        ids = [uuid.uuid4().hex for _ in group]
        plans = [self._plan(delayed, chosen, earlier, submission_id) for delayed, earlier, submission_id in zip(group, after, ids)]
        failure: Optional[Exception] = None
        try:
            handles = self._client._submit([planned for planned, _ in plans], held=False, request_ids=None)
        except errors.MusterError as error:
            handles, failure = error.submitted, error
        task_id = 0 if chosen.job.nodes * chosen.tasks_per_node == 1 else None
        jobs: List[Job[Any]] = [
            Job(self._client, self.folder, str(handle.id), chosen.job.nodes, chosen.tasks_per_node, task_id, submission_id)
            for handle, submission_id in zip(handles, ids)]
        try:
            for job, (_, data) in zip(jobs, plans):
                _keep(job.paths.submitted_pickle, data + job._submission_id.encode())
        except OSError as error:
            failure = failure or error
        if failure is not None:
            setattr(failure, "submitted", jobs)
            raise failure
        return jobs

    def _plan(self, delayed: DelayedSubmission, chosen: _parameters.Chosen, after: Sequence[int],
              submission_id: str) -> Tuple[_verbs.Planned, bytes]:
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
            name=base.name or calls._name, labels={**base.labels, LABEL: "call"},
            env={**base.env, FOLDER: str(self.folder), SUBMISSION: submission_id, **limit},
            clusters=[self._chosen] if self._chosen else base.clusters, after_ended=[*base.after_ended, *after],
            fields={**base.fields, "retry": _retry(base.fields.get("retry", {}))})
        (planned,) = self._client._run(_verbs.prepare([described], {}, self._client._patience))
        tree = _tree.tree_of(contents)
        planned.spec.uploads.add(tree_sha256=tree.sha256, path=_calls.DIRECTORY)
        planned.trees.append(tree)
        return planned, data


def _retry(given: Mapping[str, Any]) -> Dict[str, Any]:
    """The rule of the user, by which a run that has made a checkpoint is also followed by another one."""
    names = ("exit_codes", "exitCodes")  # JSON has both
    codes = {CHECKPOINTED, *(code for name in names for code in given.get(name) or ())}
    return {**{name: value for name, value in given.items() if name not in names}, "exit_codes": sorted(codes)}


def _keep(path: pathlib.Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_bytes(data)
    shutil.move(str(part), str(path))
