"""The client for asyncio: the verbs of muster.Client, awaited. Streams are asynchronous iterators.

    async with muster.aio.AsyncClient() as client:
        job = await client.submit("echo hello")
        async for line in job.logs(follow=True):
            print(line)
        await job.result()
"""

from __future__ import annotations

import asyncio
import importlib
import time
from typing import Any, AsyncGenerator, AsyncIterator, Callable, Dict, Iterable, List, Optional, Sequence, Set, TypeVar, Union

import grpc

from muster import _calls, _config, _verbs, _view, errors
from muster import _rpc as rpc
from muster._files import Fetched, TreeWriter
from muster._job import Job, PathLike
from muster._steps import Blocking, Patience, Resume, Sleep, Steps, Unary, Upload
from muster._streams import Lines, LogPiece, LogPlace, WatchPlace, log_request
from muster.v1 import cluster_pb2, facts_pb2, files_service_pb2, identity_service_pb2, job_pb2, job_spec_pb2
from muster.v1 import jobs_service_pb2 as jobs

T = TypeVar("T")
JobLike = Union[int, "AsyncJobHandle"]


class AsyncClient:
    """A broker; arguments and errors are those of muster.Client. It belongs to the event loop in which it is made."""

    def __init__(self, broker: Optional[str] = None, *, context: Optional[str] = None, token: Optional[str] = None,
                 token_file: Optional[str] = None, ca_file: Optional[str] = None, call_timeout: float = 30.0,
                 stream_patience: float = 600.0,
                 on_interruption: Optional[Callable[[errors.MusterError, float], None]] = None) -> None:
        self._config = _config.load(broker=broker, context=context, token=token, token_file=token_file, ca_file=ca_file)
        self._patience = Patience(call_s=call_timeout, stream_s=stream_patience, on_interruption=on_interruption,
                                  address=f"{self._config.address.text} ({self._config.origin})")
        self._channel = rpc.open_channel(self._config, importlib.import_module("grpc.aio"))

    @property
    def broker(self) -> str:
        """Its address."""
        return self._config.address.text

    async def close(self) -> None:
        """Ends the connection, and the streams on it."""
        await self._channel.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"muster.aio.AsyncClient({self.broker!r})"

    # ---- submit

    async def submit(self, what: Any, *args: Any, job: Optional[Job] = None, held: bool = False,
                     request_id: Optional[str] = None, **fields: Any) -> AsyncJobHandle:
        """Submits a job, exactly once: see muster.Client.submit."""
        ids = [request_id] if request_id else None
        if callable(what):
            planned = await self._plan_calls(_calls.Calls(what, job), [[(args, fields)]])
            return (await self._submit(planned, held=held, request_ids=ids))[0]
        if args or job is not None:
            raise TypeError("only a function takes further arguments; fields of a job are named: submit(command, gpus=1)")
        if _verbs.is_job_file(what):
            handles = await self.submit_file(what, held=held, request_id=request_id, **fields)
            if len(handles) != 1:
                raise errors.JobFileError(f"{what} has {len(handles)} jobs, which are submitted now; use submit_file for such")
            return handles[0]
        return (await self.submit_many([what], held=held, request_ids=ids, **fields))[0]

    async def submit_many(self, several: Iterable[Any], *, held: bool = False, request_ids: Optional[Sequence[str]] = None,
                          **fields: Any) -> List[AsyncJobHandle]:
        """Submits jobs: all or none, as long as they fit into one message of 4 MiB and 10000 jobs; more go in several.

        If one of these fails, the error has the jobs of those before it as `submitted`.
        """
        planned = await self._run(_verbs.prepare(list(several), fields, self._patience))
        return await self._submit(planned, held=held, request_ids=request_ids)

    async def _submit(self, planned: Sequence[_verbs.Planned], *, held: bool,
                      request_ids: Optional[Sequence[str]]) -> List[AsyncJobHandle]:
        steps = _verbs.submit_specs(planned, self._patience, held=held, request_ids=request_ids, validate_only=False)
        try:
            answers = await self._run(steps)
        except errors.MusterError as error:
            error.submitted = [AsyncJobHandle(self, answer.job_id, warnings=answer.warnings) for answer in error.submitted]
            raise
        return [AsyncJobHandle(self, answer.job_id, warnings=answer.warnings) for answer in answers]

    async def submit_file(self, path: PathLike, *, held: bool = False, request_id: Optional[str] = None) -> List[AsyncJobHandle]:
        """Submits the jobs of a job file, all or none. The command `muster` has to be in PATH: it reads the file."""
        steps = _verbs.submit_file(str(path), self._config, held=held, request_id=request_id, validate_only=False)
        return [self.job(job_id) for job_id in await self._run(steps)]

    async def validate(self, what: Any, **fields: Any) -> List[job_spec_pb2.JobSpec]:
        """Checks a job as submit would, and submits nothing. Returns its spec."""
        planned = await self._run(_verbs.prepare([what], fields, self._patience))
        await self._run(_verbs.submit_specs(planned, self._patience, held=False, request_ids=None, validate_only=True))
        return [job.spec for job in planned]

    async def plan(self, what: Any, **fields: Any) -> List[cluster_pb2.JobPlan]:
        """Plans the job: see muster.Client.plan."""
        return await self._run(_verbs.plan(what, fields, self._patience))

    async def map(self, function: Callable[..., T], *iterables: Iterable[Any], batch: int = 1, job: Optional[Job] = None,
                  timeout: Optional[float] = None) -> AsyncIterator[T]:
        """function(*arguments) for each tuple of the iterables, in order: see muster.Client.map."""
        if batch < 1:
            raise ValueError(f"batch is {batch}; it is 1 or more calls for each job")
        deadline = None if timeout is None else time.monotonic() + timeout
        tuples = list(zip(*iterables))
        batches: List[List[_calls.Call]] = [[(call, {}) for call in tuples[at:at + batch]] for at in range(0, len(tuples), batch)]
        planned = await self._plan_calls(_calls.Calls(function, job), batches)
        for handle in await self._submit(planned, held=False, request_ids=None):
            await handle.wait(_left(deadline))
            for value in _calls.values(await handle._outcomes()):
                yield value

    async def _plan_calls(self, calls: _calls.Calls, batches: Sequence[Sequence[_calls.Call]]) -> List[_verbs.Planned]:
        (prepared,) = await self._run(_verbs.prepare([calls.job()], {}, self._patience))
        return calls.plan(prepared, batches)

    # ---- look

    def job(self, job_id: int) -> AsyncJobHandle:
        """A job by its number; nothing is asked yet."""
        return AsyncJobHandle(self, job_id)

    async def list(self, filter: str = "", *, order_by: str = "id desc", limit: Optional[int] = None,
                   spec: bool = False) -> AsyncIterator[AsyncJobHandle]:
        """Jobs by a filter, page by page, the newest first."""
        token, left = "", limit
        while left is None or left > 0:
            size = _verbs.PAGE if left is None else min(left, _verbs.PAGE)
            page = await self._run(_verbs.list_page(filter, order_by, token, size, spec, self._patience))
            for message in page.jobs:
                yield AsyncJobHandle(self, message.id, message)
            left = None if left is None else left - len(page.jobs)
            token = page.next_page_token
            if not token:
                return

    async def count(self, filter: str = "") -> int:
        """Counts the jobs that a filter takes."""
        return await self._run(_verbs.count(filter, self._patience))

    async def count_by(self, *by: str, filter: str = "") -> List[jobs.JobCount]:
        """The same in groups, the largest first: "state", "cluster", "user", "project", "label=KEY"."""
        return await self._run(_verbs.count_by(filter, by, self._patience))

    async def clusters(self) -> List[cluster_pb2.Cluster]:
        """The clusters that the broker knows, by name."""
        return await self._run(_verbs.list_clusters(self._patience))

    async def who_am_i(self) -> identity_service_pb2.WhoAmIResponse:
        """Says who this client's user is to the broker."""
        return await self._run(_verbs.who_am_i(self._patience))

    # ---- change

    async def cancel(self, *which: JobLike, filter: str = "", reason: str = "") -> List[job_pb2.Job]:
        """Asks that jobs end: by number up to 1000 all or none, or all of a filter."""
        return await self._run(_verbs.change("cancel", _ids(which), filter, reason, False, self._patience))

    async def hold(self, *which: JobLike, filter: str = "", reason: str = "") -> List[job_pb2.Job]:
        """Keeps jobs from starting before they are released."""
        return await self._run(_verbs.change("hold", _ids(which), filter, reason, False, self._patience))

    async def release(self, *which: JobLike, filter: str = "", reason: str = "") -> List[job_pb2.Job]:
        """Releases held jobs."""
        return await self._run(_verbs.change("release", _ids(which), filter, reason, False, self._patience))

    async def rerun(self, *which: JobLike, filter: str = "", held: bool = False,
                    request_id: Optional[str] = None) -> List[AsyncJobHandle]:
        """Submits ended jobs again, at most 1000, all or none, and returns the new jobs."""
        ids = await self._run(_verbs.rerun(_ids(which), filter, held, request_id, self._patience))
        return [self.job(job_id) for job_id in ids]

    # ---- follow

    def watch(self, *which: JobLike, filter: str = "", after: Optional[int] = None, from_beginning: bool = False,
              until_ended: bool = False, timeout: Optional[float] = None) -> AsyncIterator[jobs.JobChange]:
        """Every change of the jobs, once and in order: see muster.Client.watch."""
        return self._stream(WatchPlace(_verbs.watch_request(_ids(which), filter, after, from_beginning, until_ended)), timeout)

    async def wait(self, which: Iterable[JobLike], timeout: Optional[float] = None) -> List[AsyncJobHandle]:
        """Waits until all have ended, in whichever way, and returns them. Raises WaitTimeout."""
        handles = [self.job(one) if isinstance(one, int) else one for one in which]
        async for _ in self.as_completed(handles, timeout):
            pass
        return handles

    async def as_completed(self, which: Iterable[JobLike], timeout: Optional[float] = None) -> AsyncIterator[AsyncJobHandle]:
        """The jobs as they end. Raises WaitTimeout. More than 1000 jobs are watched in groups, one after the other."""
        deadline = None if timeout is None else time.monotonic() + timeout
        open_ones: Dict[int, AsyncJobHandle] = {}
        for one in which:
            handle = self.job(one) if isinstance(one, int) else one
            open_ones.setdefault(handle.id, handle)
        ids = sorted(open_ones)
        for at in range(0, len(ids), _verbs.MAX_JOBS_PER_CHANGE):
            request = _verbs.watch_request(ids[at:at + _verbs.MAX_JOBS_PER_CHANGE], "", None, True, True)
            async for change in self._stream(WatchPlace(request), _left(deadline)):
                if change.job.id in open_ones and change.job.state in _verbs.ENDED:
                    ended = open_ones.pop(change.job.id)
                    ended._message = change.job
                    yield ended

    def log_pieces(self, which: JobLike, *, run: int = 0, rank: int = 0, stream: str = "both", follow: bool = False,
                   tail: Optional[int] = None, timeout: Optional[float] = None) -> AsyncIterator[LogPiece]:
        """The bytes of a rank's output, each once and in order."""
        (job_id,) = _ids([which])
        return self._stream(LogPlace(log_request(job_id, run=run, rank=rank, stream=stream, follow=follow, tail=tail)), timeout)

    async def fetch(self, which: JobLike, path: str = "results", to: PathLike = ".", *, run: int = 0, rank: int = 0) -> Fetched:
        """Copies a file or a directory of a run to this machine: see muster.JobHandle.fetch."""
        writer = TreeWriter(str(to), path)
        try:
            async for piece in self._fetch(_ids([which])[0], path, run, rank):
                await asyncio.to_thread(writer.take, piece)
            return await asyncio.to_thread(writer.finish)
        finally:
            writer.abandon()

    async def _fetch(self, job_id: int, path: str, run: int, rank: int) -> AsyncIterator[files_service_pb2.FetchFilesResponse]:
        request = files_service_pb2.FetchFilesRequest(
            job_id=job_id, run=run, rank=rank, path=b"" if path in ("", ".") else path.encode("utf-8", "surrogateescape"))
        try:
            async for piece in self._open(rpc.FETCH_FILES, request, None):
                yield piece
        except grpc.RpcError as error:
            raise errors.from_grpc(error) from None

    # ---- how steps are taken

    async def _run(self, steps: Steps[T]) -> T:
        result: Any = None
        failure: Optional[BaseException] = None
        try:
            while True:
                effect = steps.send(result) if failure is None else steps.throw(failure)
                result, failure = None, None
                try:
                    result = await self._take(effect)
                except grpc.RpcError as error:
                    failure = error
        except StopIteration as end:
            value: T = end.value
            return value

    async def _take(self, effect: Any) -> Any:
        if isinstance(effect, Unary):
            method = effect.method
            stub = self._channel.unary_unary(method.path, request_serializer=method.encode, response_deserializer=method.decode)
            return await stub(effect.request, timeout=effect.timeout_s, metadata=rpc.metadata_of(self._config))
        if isinstance(effect, Upload):
            method = rpc.UPLOAD_FILES
            stub = self._channel.stream_unary(method.path, request_serializer=method.encode, response_deserializer=method.decode)
            call = stub(metadata=rpc.metadata_of(self._config))
            requests = iter(effect.requests())
            try:
                while True:
                    request = await asyncio.to_thread(next, requests, None)
                    if request is None:
                        break
                    await call.write(request)
                await call.done_writing()
            except asyncio.InvalidStateError:
                pass  # the call has ended; its answer says why
            except BaseException:
                call.cancel()
                raise
            return await call
        if isinstance(effect, Sleep):
            await asyncio.sleep(effect.seconds)
            return None
        assert isinstance(effect, Blocking)
        return await asyncio.to_thread(effect.work)

    def _open(self, method: rpc.Method[Any, Any], request: Any, timeout_s: Optional[float]) -> Any:
        stub = self._channel.unary_stream(method.path, request_serializer=method.encode, response_deserializer=method.decode)
        return stub(request, timeout=timeout_s, metadata=rpc.metadata_of(self._config))

    async def _stream(self, place: Any, timeout: Optional[float]) -> AsyncGenerator[Any, None]:
        """Gives what comes of a stream that is opened again where it broke off."""
        resume = Resume(self._patience, None if timeout is None else time.monotonic() + timeout)
        while not place.is_over():
            stream = self._open(place.method, place.request, resume.timeout_s())
            try:
                async for message in stream:
                    resume.got_message()
                    for item in place.take(message):
                        yield item
                return
            except grpc.RpcError as error:
                pause_s = resume.pause_s(error)
            finally:
                stream.cancel()
            await asyncio.sleep(pause_s)


class AsyncJobHandle:
    """A job by its number, with what the broker said of it last: muster.JobHandle, awaited."""

    def __init__(self, client: AsyncClient, job_id: int, message: Optional[job_pb2.Job] = None, warnings: Iterable[Any] = ()) -> None:
        self._client = client
        self._message = message
        self.id = job_id
        # The warnings of the submit.
        self.warnings: List[facts_pb2.SubmitWarning] = list(warnings)

    @property
    def message(self) -> Optional[job_pb2.Job]:
        """All facts as last known; None: refresh() has not been awaited."""
        return self._message

    @property
    def state(self) -> str:
        """The state as last known; empty: none is known yet."""
        return _verbs.state_name(self._message) if self._message is not None else ""

    async def refresh(self) -> AsyncJobHandle:
        """Asks the broker for the whole job again. Raises NotFound."""
        self._message = await self._client._run(_verbs.get(self.id, self._client._patience))
        return self

    async def why(self) -> _verbs.Why:
        """Asks why it waits, or did not succeed."""
        return _verbs.why(await self._client._run(_verbs.get(self.id, self._client._patience)))

    async def events(self, follow: bool = False, timeout: Optional[float] = None) -> AsyncIterator[job_pb2.Transition]:
        """Its history, the oldest step first; with `follow` on to its end."""
        if not follow:
            for step in await self._client._run(_verbs.transitions(self.id, self._client._patience)):
                yield step
            return
        async for change in self._client.watch(self.id, from_beginning=True, until_ended=True, timeout=timeout):
            self._message = change.job
            if change.HasField("transition"):
                yield change.transition

    async def wait(self, timeout: Optional[float] = None) -> AsyncJobHandle:
        """Waits until it has ended, in whichever way. Raises WaitTimeout."""
        if self._message is None or self._message.state not in _verbs.ENDED:
            await self._client.wait([self], timeout)
        return self

    async def result(self, timeout: Optional[float] = None) -> Any:
        """Waits, and returns what the function returned, or, for a command, the job as it ended."""
        await self.wait(timeout)
        message = self._message
        assert message is not None
        if not _calls.has_outcomes(message):
            return _verbs.ended_or_raise(message)
        values = list(_calls.values(await self._outcomes()))
        return values[0] if len(values) == 1 else values

    async def _outcomes(self) -> List[_calls.Outcome]:
        assert self._message is not None
        job = _verbs.ended_or_raise(self._message)
        chunks = [piece.chunk async for piece in self._client._fetch(job.id, _calls.OUTCOME_PATH, 0, 0)]
        return _calls.load(b"".join(chunks), job.id)

    async def logs(self, follow: bool = False, tail: Optional[int] = None, stream: str = "both", *, rank: int = 0, run: int = 0,
                   timeout: Optional[float] = None) -> AsyncIterator[str]:
        """The lines of a rank's output: see muster.JobHandle.logs."""
        lines = Lines()
        pieces = self._client.log_pieces(self, run=run, rank=rank, stream=stream, follow=follow, tail=tail, timeout=timeout)
        async for piece in pieces:
            for line in lines.take(piece):
                yield line
        for line in lines.rest():
            yield line

    async def log(self, stream: str = "both", *, rank: int = 0, run: int = 0) -> str:
        """All that the broker has of the output, as one text."""
        pieces = self._client.log_pieces(self, run=run, rank=rank, stream=stream)
        return b"".join([piece.data async for piece in pieces]).decode("utf-8", "replace")

    async def fetch(self, path: str = "results", to: PathLike = ".", *, run: int = 0, rank: int = 0) -> Fetched:
        """Copies a file or a directory of its latest run into the directory `to`, and returns where it is now."""
        return await self._client.fetch(self, path, to, run=run, rank=rank)

    async def cancel(self, reason: str = "") -> AsyncJobHandle:
        """Asks that the job end; it ends when its cluster has ended it."""
        return self._now(await self._client.cancel(self.id, reason=reason))

    async def hold(self, reason: str = "") -> AsyncJobHandle:
        """Keeps the job from starting before it is released. Raises NotPossible if it runs or has ended."""
        return self._now(await self._client.hold(self.id, reason=reason))

    async def release(self, reason: str = "") -> AsyncJobHandle:
        """Releases the job, so that it may start."""
        return self._now(await self._client.release(self.id, reason=reason))

    async def rerun(self, *, held: bool = False, request_id: Optional[str] = None) -> AsyncJobHandle:
        """Submits the job again, and returns the new job. Raises NotPossible if it has not ended."""
        return (await self._client.rerun(self.id, held=held, request_id=request_id))[0]

    def _now(self, changed: List[job_pb2.Job]) -> AsyncJobHandle:
        self._message = changed[0] if changed else self._message
        return self

    def __repr__(self) -> str:
        return f"<{_view.text(self.id, self._message)}>"

    def _repr_html_(self) -> str:
        return _view.html(self.id, self._message)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AsyncJobHandle) and (other.id, other._client) == (self.id, self._client)

    def __hash__(self) -> int:
        return hash(self.id)


def _left(deadline: Optional[float]) -> Optional[float]:
    return None if deadline is None else max(0.0, deadline - time.monotonic())


def _ids(which: Iterable[JobLike]) -> List[int]:
    found: List[int] = []
    seen: Set[int] = set()
    for one in which:
        job_id = one if isinstance(one, int) else one.id
        if job_id not in seen:
            seen.add(job_id)
            found.append(job_id)
    return found
