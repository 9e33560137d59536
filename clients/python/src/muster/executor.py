"""concurrent.futures.Executor whose calls are jobs."""

from __future__ import annotations

import concurrent.futures
import threading
import time
import uuid
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, TypeVar

from muster import _calls, _verbs, errors
from muster._job import Job
from muster._streams import WatchPlace
from muster.client import Client
from muster.handle import JobHandle
from muster.v1 import job_pb2

T = TypeVar("T")

# The label by which the executor watches its jobs, however many there are.
LABEL = "muster-executor"
# This many threads fetch outcomes from clusters.
FETCHERS = 4


class Executor(concurrent.futures.Executor):
    """Runs calls as jobs that `job` describes: Executor(job=Job(gpus="H100", time="1h")).

    A future is running() once it is submitted, because the cluster has it; cancel() of a future that is not done cancels the
    job. As with other executors, leaving a `with` block waits for all calls.
    """

    def __init__(self, client: Optional[Client] = None, *, job: Optional[Job] = None) -> None:
        self._owns_client = client is None
        self._client = client if client is not None else Client()
        job = job or Job()
        self._job = job.replace(labels={**job.labels, LABEL: uuid.uuid4().hex})
        self._lock = threading.Lock()  # guards what follows
        self._open: Dict[int, List[Any]] = {}
        self._early: Dict[int, job_pb2.Job] = {}  # ended before submit had its number
        self._is_shut = False
        self._failure: Optional[BaseException] = None  # of the watch
        self._idle = threading.Condition(self._lock)
        self._fetchers = concurrent.futures.ThreadPoolExecutor(FETCHERS, "muster-fetch")
        text = f"label.{LABEL} = {self._job.labels[LABEL]}"
        place = _verbs.watch_request([], text, None, False, False)
        self._stream = self._client._stream(WatchPlace(place), None, heartbeats=True)
        next(self._stream)  # from here on no end is missed
        self._watcher = threading.Thread(target=self._watch, name="muster-watch", daemon=True)
        self._watcher.start()

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> concurrent.futures.Future[T]:
        """Raises RuntimeError after shutdown, and the errors of Client.submit."""
        future: concurrent.futures.Future[T] = self._send(fn, [[(args, kwargs)]])[0][0]
        return future

    def map(self, fn: Callable[..., T], *iterables: Iterable[Any], timeout: Optional[float] = None,
            chunksize: int = 1) -> Iterator[T]:
        """As concurrent.futures has it; `chunksize` calls are one job."""
        if chunksize < 1:
            raise ValueError(f"chunksize is {chunksize}; it is 1 or more")
        calls: List[_calls.Call] = [(arguments, {}) for arguments in zip(*iterables)]
        batches = [calls[at:at + chunksize] for at in range(0, len(calls), chunksize)]
        futures = [future for group in self._send(fn, batches) for future in group]
        return _results(futures, timeout)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Takes no further calls. With `cancel_futures` the jobs that have not ended are canceled."""
        with self._lock:
            self._is_shut = True
            open_ones = list(self._open)
        if cancel_futures and open_ones:
            self._client.cancel(*open_ones, reason="the executor was shut down")
        if not wait:
            return
        with self._idle:
            self._idle.wait_for(lambda: not self._open)
        self._fetchers.shutdown()
        if self._owns_client:
            self._client.close()

    def _send(self, fn: Callable[..., Any], batches: Sequence[Sequence[_calls.Call]]) -> List[List[Any]]:
        with self._lock:
            if self._is_shut:
                raise RuntimeError("the executor was shut down")
            if self._failure is not None:
                raise self._failure
        if not batches:
            return []
        client = self._client
        planned = client._plan_calls(_calls.Calls(fn, self._job), batches)
        answers = client._run(_verbs.submit_specs(planned, client._patience, held=False, request_ids=None, validate_only=False))
        groups: List[List[Any]] = []
        for batch, answer in zip(batches, answers):
            futures: List[Any] = [_Future(client, answer.job_id) for _ in batch]
            groups.append(futures)
            with self._lock:
                self._open[answer.job_id] = futures
                early = self._early.pop(answer.job_id, None)
            if early is not None:
                self._fetchers.submit(self._resolve, early)
        return groups

    def _watch(self) -> None:
        try:
            for change in self._stream:
                if change is not None and change.job.state in _verbs.ENDED:
                    self._note_end(change.job)
        except BaseException as error:  # the futures have to learn of it
            with self._idle:
                self._failure = error
                waiting = [future for futures in self._open.values() for future in futures]
                self._open.clear()
                self._idle.notify_all()
            for future in waiting:
                future.fail(error)

    def _note_end(self, job: job_pb2.Job) -> None:
        with self._lock:
            if job.id not in self._open:
                self._early[job.id] = job
                return
        self._fetchers.submit(self._resolve, job)

    def _resolve(self, job: job_pb2.Job) -> None:
        outcomes: List[_calls.Outcome] = []
        failure: Optional[BaseException] = None
        try:
            outcomes = JobHandle(self._client, job.id, job)._outcomes()
        except Exception as error:
            failure = error
        with self._lock:
            futures = self._open.get(job.id, [])
        for at, future in enumerate(futures):
            if failure is not None:
                future.fail(failure)
            elif outcomes[at].error is not None:
                future.fail(outcomes[at].error)
            else:
                future.set_result(outcomes[at].value)
        with self._idle:
            self._open.pop(job.id, None)
            self._idle.notify_all()


class _Future(concurrent.futures.Future):  # type: ignore[type-arg]
    """A future whose cancel() ends its job, and with it all calls of the same batch."""

    def __init__(self, client: Client, job_id: int) -> None:
        super().__init__()
        self._client, self.job_id = client, job_id
        self.set_running_or_notify_cancel()

    def cancel(self) -> bool:
        """Returns True if it asked the job to end; result() raises CancelledError once the job has ended."""
        if self.done():
            return False
        self._client.cancel(self.job_id)
        return True

    def fail(self, error: BaseException) -> None:
        if isinstance(error, errors.JobCanceled):
            error = concurrent.futures.CancelledError(str(error))
        self.set_exception(error)



def _results(futures: List[Any], timeout: Optional[float]) -> Iterator[Any]:
    end = None if timeout is None else time.monotonic() + timeout
    for future in futures:
        yield future.result(None if end is None else max(0.0, end - time.monotonic()))
