"""The client for programs that may wait; muster.aio has its twin for asyncio."""

from __future__ import annotations

import itertools
import time
from typing import Any, Callable, Dict, Generator, Iterable, Iterator, List, Optional, Sequence, Set, TypeVar, Union

import grpc

from muster import _calls, _config, _verbs, errors
from muster import _rpc as rpc
from muster._files import Fetched, TreeWriter
from muster._job import Job, PathLike
from muster._steps import Blocking, Patience, Resume, Sleep, Steps, Unary, Upload
from muster._streams import LogPiece, LogPlace, WatchPlace, log_request
from muster.handle import JobHandle
from muster.v1 import cluster_pb2, files_service_pb2, identity_service_pb2, job_pb2, job_spec_pb2
from muster.v1 import jobs_service_pb2 as jobs

T = TypeVar("T")
JobLike = Union[int, JobHandle]


class Client:
    """A broker, as its user sees it. Any number of threads may use one; it connects at its first call.

    Without arguments it finds the broker as the command `muster` does: by MUSTER_BROKER, a context, the configuration file, or
    the socket of the user's own broker. `call_timeout` is the time for one call, in seconds, all its attempts together; a
    stream that breaks off is resumed for up to `stream_patience` seconds. `on_interruption(error, seconds)` is called at the
    first failure of something that will be tried again. Raises ConfigurationError.
    """

    def __init__(self, broker: Optional[str] = None, *, context: Optional[str] = None, token: Optional[str] = None,
                 token_file: Optional[str] = None, ca_file: Optional[str] = None, call_timeout: float = 30.0,
                 stream_patience: float = 600.0,
                 on_interruption: Optional[Callable[[errors.MusterError, float], None]] = None) -> None:
        self._config = _config.load(broker=broker, context=context, token=token, token_file=token_file, ca_file=ca_file)
        self._patience = Patience(call_s=call_timeout, stream_s=stream_patience, on_interruption=on_interruption,
                                  address=f"{self._config.address.text} ({self._config.origin})")
        self._channel = rpc.open_channel(self._config, grpc)

    @property
    def broker(self) -> str:
        """Its address."""
        return self._config.address.text

    def close(self) -> None:
        """Ends the connection, and the streams on it."""
        self._channel.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"muster.Client({self.broker!r})"

    # ---- submit

    def submit(self, what: Any, *args: Any, job: Optional[Job] = None, held: bool = False,
               request_id: Optional[str] = None, **fields: Any) -> JobHandle:
        """Submits a job, exactly once, and returns it.

        `what` is a command (a text for a shell, or a list of a program and its arguments), a Job, a JobSpec, the path of a job
        file with one job ("train.yaml"), or a function, which gets `args` and `fields` and runs as `job` says. Otherwise
        `fields` are those of a Job: submit("make", cpus=4). A repeat with the same request_id gets the same job; default: a new
        one for each call. Raises CannotBePlaced, BadRequest and other MusterErrors.
        """
        if callable(what):
            planned = self._plan_calls(_calls.Calls(what, job), [[(args, fields)]])
            return self._submit(planned, held=held, request_ids=[request_id] if request_id else None)[0]
        if args or job is not None:
            raise TypeError("only a function takes further arguments; fields of a job are named: submit(command, gpus=1)")
        if _verbs.is_job_file(what):
            handles = self.submit_file(what, held=held, request_id=request_id, **fields)
            if len(handles) != 1:
                raise errors.JobFileError(f"{what} has {len(handles)} jobs, which are submitted now; use submit_file for such")
            return handles[0]
        return self.submit_many([what], held=held, request_ids=[request_id] if request_id else None, **fields)[0]

    def submit_many(self, several: Iterable[Any], *, held: bool = False, request_ids: Optional[Sequence[str]] = None,
                    **fields: Any) -> List[JobHandle]:
        """Submits jobs: all or none, as long as they fit into one message of 4 MiB and 10000 jobs; more go in several.

        If one of these fails, the error has the jobs of those before it as `submitted`.
        """
        planned = self._run(_verbs.prepare(list(several), fields, self._patience))
        return self._submit(planned, held=held, request_ids=request_ids)

    def _submit(self, planned: Sequence[_verbs.Planned], *, held: bool, request_ids: Optional[Sequence[str]]) -> List[JobHandle]:
        try:
            answers = self._run(_verbs.submit_specs(planned, self._patience, held=held, request_ids=request_ids, validate_only=False))
        except errors.MusterError as error:
            error.submitted = [self.job(answer.job_id, warnings=answer.warnings) for answer in error.submitted]
            raise
        return [self.job(answer.job_id, warnings=answer.warnings) for answer in answers]

    def submit_file(self, path: PathLike, *, held: bool = False, request_id: Optional[str] = None) -> List[JobHandle]:
        """Submits the jobs of a job file, all or none. The command `muster` has to be in PATH: it reads the file."""
        ids = self._run(_verbs.submit_file(str(path), self._config, held=held, request_id=request_id, validate_only=False))
        return [self.job(job_id) for job_id in ids]

    def validate(self, what: Any, **fields: Any) -> List[job_spec_pb2.JobSpec]:
        """Checks a job as submit would, and submits nothing. Returns its spec, with the digests of the files that go along."""
        planned = self._run(_verbs.prepare([what], fields, self._patience))
        self._run(_verbs.submit_specs(planned, self._patience, held=False, request_ids=None, validate_only=True))
        return [job.spec for job in planned]

    def plan(self, what: Any, **fields: Any) -> List[cluster_pb2.JobPlan]:
        """Plans the job: what it would become on each cluster that could take it, and when it would start. The best one comes first."""
        return self._run(_verbs.plan(what, fields, self._patience))

    # ---- functions

    def map(self, function: Callable[..., T], *iterables: Iterable[Any], batch: int = 1, job: Optional[Job] = None,
            timeout: Optional[float] = None) -> Iterator[T]:
        """function(*arguments) for each tuple of the iterables, in jobs of `batch` calls each; the results in their order.

        The jobs are submitted at once, before the first result is asked for. An exception of the function is raised when its
        result would come. Raises WaitTimeout: a result is not there `timeout` seconds after the call of map.
        """
        if batch < 1:
            raise ValueError(f"batch is {batch}; it is 1 or more calls for each job")
        deadline = None if timeout is None else time.monotonic() + timeout
        tuples = list(zip(*iterables))
        batches: List[List[_calls.Call]] = [[(call, {}) for call in tuples[at:at + batch]] for at in range(0, len(tuples), batch)]
        planned = self._plan_calls(_calls.Calls(function, job), batches)
        return self._results(self._submit(planned, held=False, request_ids=None), deadline)

    def _plan_calls(self, calls: _calls.Calls, batches: Sequence[Sequence[_calls.Call]]) -> List[_verbs.Planned]:
        (prepared,) = self._run(_verbs.prepare([calls.job()], {}, self._patience))
        return calls.plan(prepared, batches)

    def _results(self, handles: List[JobHandle], deadline: Optional[float]) -> Iterator[Any]:
        for handle in handles:
            handle.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
            yield from _calls.values(handle._outcomes())

    # ---- look

    def job(self, job_id: int, *, warnings: Iterable[Any] = ()) -> JobHandle:
        """Returns a job by its number. It asks the broker only when you read something of the job."""
        return JobHandle(self, job_id, warnings=warnings)

    def list(self, filter: str = "", *, order_by: str = "id desc", limit: Optional[int] = None,
             spec: bool = False) -> Iterator[JobHandle]:
        """Jobs by a filter of docs/cli.md, e.g. 'state = RUNNING AND label.team = vision', page by page, the newest first."""
        token, left = "", limit
        while left is None or left > 0:
            size = _verbs.PAGE if left is None else min(left, _verbs.PAGE)
            page = self._run(_verbs.list_page(filter, order_by, token, size, spec, self._patience))
            for message in page.jobs:
                yield JobHandle(self, message.id, message)
            left = None if left is None else left - len(page.jobs)
            token = page.next_page_token
            if not token:
                return

    def count(self, filter: str = "") -> int:
        """Counts the jobs that a filter takes."""
        return self._run(_verbs.count(filter, self._patience))

    def count_by(self, *by: str, filter: str = "") -> List[jobs.JobCount]:
        """The same in groups, the largest first: "state", "cluster", "user", "project", "label=KEY"."""
        return self._run(_verbs.count_by(filter, by, self._patience))

    def clusters(self) -> List[cluster_pb2.Cluster]:
        """The clusters that the broker knows, by name."""
        return self._run(_verbs.list_clusters(self._patience))

    def who_am_i(self) -> identity_service_pb2.WhoAmIResponse:
        """Says who this client's user is to the broker."""
        return self._run(_verbs.who_am_i(self._patience))

    # ---- change

    def cancel(self, *which: JobLike, filter: str = "", reason: str = "") -> List[job_pb2.Job]:
        """Asks that jobs end: by number, in calls of 1000 that are all or none, or all of a filter. Returns them as they are now."""
        return self._run(_verbs.change("cancel", _ids(which), filter, reason, False, self._patience))

    def hold(self, *which: JobLike, filter: str = "", reason: str = "") -> List[job_pb2.Job]:
        """Keeps jobs from starting before they are released."""
        return self._run(_verbs.change("hold", _ids(which), filter, reason, False, self._patience))

    def release(self, *which: JobLike, filter: str = "", reason: str = "") -> List[job_pb2.Job]:
        """Releases held jobs."""
        return self._run(_verbs.change("release", _ids(which), filter, reason, False, self._patience))

    def rerun(self, *which: JobLike, filter: str = "", held: bool = False, request_id: Optional[str] = None) -> List[JobHandle]:
        """Submits ended jobs again, at most 1000, all or none, and returns the new jobs."""
        ids = self._run(_verbs.rerun(_ids(which), filter, held, request_id, self._patience))
        return [self.job(job_id) for job_id in ids]

    # ---- follow

    def watch(self, *which: JobLike, filter: str = "", after: Optional[int] = None, from_beginning: bool = False,
              until_ended: bool = False, timeout: Optional[float] = None) -> Iterator[jobs.JobChange]:
        """Every change of the jobs, once and in order, across restarts of the broker; from now on by default.

        `after` goes on behind a change's `sequence`. With `until_ended`, and up to 1000 jobs by number, it stops when all have
        ended. Raises WaitTimeout after `timeout` seconds.
        """
        request = _verbs.watch_request(_ids(which), filter, after, from_beginning, until_ended)
        return self._stream(WatchPlace(request), timeout)

    def wait(self, which: Iterable[JobLike], timeout: Optional[float] = None) -> List[JobHandle]:
        """Waits until all have ended, in whichever way, and returns them. Raises WaitTimeout."""
        handles = [self._handle(one) for one in which]
        for _ in self.as_completed(handles, timeout):
            pass
        return handles

    def as_completed(self, which: Iterable[JobLike], timeout: Optional[float] = None) -> Iterator[JobHandle]:
        """The jobs as they end. Raises WaitTimeout."""
        deadline = None if timeout is None else time.monotonic() + timeout
        open_ones: Dict[int, JobHandle] = {}
        for one in which:
            handle = self._handle(one)
            open_ones.setdefault(handle.id, handle)
        if len(open_ones) <= _verbs.MAX_JOBS_PER_CHANGE:
            if open_ones:
                place = WatchPlace(_verbs.watch_request(sorted(open_ones), "", None, True, True))
                yield from self._ends(place, open_ones, deadline)
            return
        # A watch takes fewer jobs by number, so all jobs of the range are watched, and ours are picked out.
        text = f"id >= {min(open_ones)} AND id <= {max(open_ones)}"
        place = WatchPlace(_verbs.watch_request([], text, None, False, False))
        stream = self._stream(place, None if deadline is None else max(0.0, deadline - time.monotonic()), heartbeats=True)
        first = next(stream)  # from here on each change is seen, so that those who have ended before can be looked up
        for handle in self.list(f"({text}) AND (state = SUCCEEDED OR state = FAILED OR state = CANCELED)", order_by="id"):
            if handle.id in open_ones:
                yield _ended(open_ones, handle.message)
        if open_ones:
            yield from self._ends(place, open_ones, deadline, itertools.chain([first], stream))

    def _ends(self, place: WatchPlace, open_ones: Dict[int, JobHandle], deadline: Optional[float],
              stream: Optional[Iterator[Any]] = None) -> Iterator[JobHandle]:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        for change in stream if stream is not None else self._stream(place, left):
            if change is not None and change.job.id in open_ones and change.job.state in _verbs.ENDED:
                yield _ended(open_ones, change.job)
                if not open_ones:
                    return

    # ---- what handles use

    def log_pieces(self, which: JobLike, *, run: int = 0, rank: int = 0, stream: str = "both", follow: bool = False,
                   tail: Optional[int] = None, timeout: Optional[float] = None) -> Iterator[LogPiece]:
        """The bytes of a rank's output, each once and in order; see JobHandle.logs."""
        (job_id,) = _ids([which])
        request = log_request(job_id, run=run, rank=rank, stream=stream, follow=follow, tail=tail)
        return self._stream(LogPlace(request), timeout)

    def fetch(self, which: JobLike, path: str = "results", to: PathLike = ".", *, run: int = 0, rank: int = 0) -> Fetched:
        """Copies a file or a directory of a run to this machine; see JobHandle.fetch."""
        writer = TreeWriter(str(to), path)
        try:
            for piece in self._fetch(_ids([which])[0], path, run, rank):
                writer.take(piece)
            return writer.finish()
        finally:
            writer.abandon()

    def _fetch(self, job_id: int, path: str, run: int, rank: int) -> Iterator[files_service_pb2.FetchFilesResponse]:
        request = files_service_pb2.FetchFilesRequest(
            job_id=job_id, run=run, rank=rank, path=b"" if path in ("", ".") else path.encode("utf-8", "surrogateescape"))
        try:
            yield from self._open(rpc.FETCH_FILES, request, None)
        except grpc.RpcError as error:
            raise errors.from_grpc(error) from None

    def _handle(self, one: JobLike) -> JobHandle:
        return self.job(one) if isinstance(one, int) else one

    # ---- how steps are taken

    def _run(self, steps: Steps[T]) -> T:
        result: Any = None
        failure: Optional[BaseException] = None
        try:
            while True:
                effect = steps.send(result) if failure is None else steps.throw(failure)
                result, failure = None, None
                try:
                    result = self._take(effect)
                except grpc.RpcError as error:
                    failure = error
        except StopIteration as end:
            value: T = end.value
            return value

    def _take(self, effect: Any) -> Any:
        if isinstance(effect, Unary):
            method = effect.method
            stub = self._channel.unary_unary(method.path, request_serializer=method.encode, response_deserializer=method.decode)
            return stub(effect.request, timeout=effect.timeout_s, metadata=rpc.metadata_of(self._config))
        if isinstance(effect, Upload):
            method = rpc.UPLOAD_FILES
            stub = self._channel.stream_unary(method.path, request_serializer=method.encode, response_deserializer=method.decode)
            broken: List[BaseException] = []
            try:
                return stub(_guarded(effect.requests(), broken), metadata=rpc.metadata_of(self._config))
            except grpc.RpcError:
                if broken:
                    raise broken[0] from None
                raise
        if isinstance(effect, Sleep):
            time.sleep(effect.seconds)
            return None
        assert isinstance(effect, Blocking)
        return effect.work()

    def _open(self, method: rpc.Method[Any, Any], request: Any, timeout_s: Optional[float]) -> Any:
        stub = self._channel.unary_stream(method.path, request_serializer=method.encode, response_deserializer=method.decode)
        return stub(request, timeout=timeout_s, metadata=rpc.metadata_of(self._config))

    def _stream(self, place: Any, timeout: Optional[float], heartbeats: bool = False) -> Generator[Any, None, None]:
        """Gives what comes of a stream that is opened again where it broke off; with `heartbeats` None for each message without."""
        resume = Resume(self._patience, None if timeout is None else time.monotonic() + timeout)
        while not place.is_over():
            stream = self._open(place.method, place.request, resume.timeout_s())
            try:
                for message in stream:
                    resume.got_message()
                    told = False
                    for item in place.take(message):
                        told = True
                        yield item
                    if heartbeats and not told:
                        yield None
                return
            except grpc.RpcError as error:
                pause_s = resume.pause_s(error)
            finally:
                stream.cancel()
            time.sleep(pause_s)


def _guarded(requests: Iterable[Any], broken: List[BaseException]) -> Iterator[Any]:
    """gRPC swallows what an iterator of requests raises; it is kept here."""
    try:
        yield from requests
    except Exception as error:
        broken.append(error)
        raise


def _ended(open_ones: Dict[int, JobHandle], message: job_pb2.Job) -> JobHandle:
    handle = open_ones.pop(message.id)
    handle._message = message
    return handle


def _ids(which: Iterable[JobLike]) -> List[int]:
    found: List[int] = []
    seen: Set[int] = set()
    for one in which:
        job_id = one if isinstance(one, int) else one.id
        if job_id not in seen:
            seen.add(job_id)
            found.append(job_id)
    return found
