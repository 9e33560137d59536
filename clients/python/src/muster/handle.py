"""A job that was submitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Iterator, List, Optional

from muster import _calls, _verbs, _view, errors
from muster._files import Fetched
from muster._job import PathLike
from muster._streams import Lines
from muster.v1 import facts_pb2, job_pb2

if TYPE_CHECKING:
    from muster.client import Client


class JobHandle:
    """A job by its number, with what the broker said of it last. Reading `state` asks nothing; refresh() does."""

    def __init__(self, client: Client, job_id: int, message: Optional[job_pb2.Job] = None, warnings: Iterable[Any] = ()) -> None:
        self._client = client
        self._message = message
        self.id = job_id
        # The warnings of the submit.
        self.warnings: List[facts_pb2.SubmitWarning] = list(warnings)

    # ---- facts

    @property
    def message(self) -> job_pb2.Job:
        """The whole job, a muster.v1.Job. Asks the broker if nothing is known yet."""
        return self._message if self._message is not None else self.refresh()._message  # type: ignore[return-value]

    def refresh(self) -> JobHandle:
        """Asks the broker for the whole job again, with the spec and all runs. Raises NotFound."""
        self._message = self._client._run(_verbs.get(self.id, self._client._patience))
        return self

    @property
    def name(self) -> str:
        return self.message.name

    @property
    def state(self) -> str:
        """As last known: QUEUED, PENDING, RUNNING, SUSPENDED, SUCCEEDED, FAILED or CANCELED."""
        return _verbs.state_name(self.message)

    @property
    def cluster(self) -> str:
        """The cluster of its latest run; empty: it has none."""
        return self.message.cluster

    @property
    def exit_code(self) -> Optional[int]:
        """The command's exit code; None: it has not ended, or a signal or something else ended it."""
        exit = self.message.exit
        return exit.code if self.message.HasField("exit") and not exit.signal else None

    def done(self) -> bool:
        """Asks whether it has ended."""
        if self._message is None or self._message.state not in _verbs.ENDED:
            self.refresh()
        return self.message.state in _verbs.ENDED

    def why(self) -> _verbs.Why:
        """Asks why the job waits or did not succeed. The answer is false if there is nothing to explain."""
        return _verbs.why(self.refresh().message)

    def events(self, follow: bool = False, timeout: Optional[float] = None) -> Iterator[job_pb2.Transition]:
        """Gives its history, the oldest step first; with `follow` it goes on to the job's end, across restarts of the broker."""
        if not follow:
            yield from self._client._run(_verbs.transitions(self.id, self._client._patience))
            return
        for change in self._client.watch(self.id, from_beginning=True, until_ended=True, timeout=timeout):
            self._message = change.job
            if change.HasField("transition"):
                yield change.transition

    # ---- its end

    def wait(self, timeout: Optional[float] = None) -> JobHandle:
        """Waits until it has ended, in whichever way; `timeout` in seconds. Raises WaitTimeout."""
        if self._message is None or self._message.state not in _verbs.ENDED:
            for _ in self._client.as_completed([self], timeout):
                pass
        return self

    def result(self, timeout: Optional[float] = None) -> Any:
        """Waits, and returns what the function returned, or, for a command, the job as it ended (muster.v1.Job).

        Raises JobFailed, JobCanceled or WaitTimeout; what the function raised.
        """
        self.wait(timeout)
        if not _calls.has_outcomes(self.message):
            return _verbs.ended_or_raise(self.message)
        values = list(_calls.values(self._outcomes()))
        return values[0] if len(values) == 1 else values

    def exception(self, timeout: Optional[float] = None) -> Optional[BaseException]:
        """Returns the exception that result() would raise, or None."""
        try:
            self.result(timeout)
        except errors.WaitTimeout:
            raise
        except Exception as error:
            return error
        return None

    def _outcomes(self) -> List[_calls.Outcome]:
        """Fetches the outcomes of a function's job that has ended."""
        job = _verbs.ended_or_raise(self.message)
        data = b"".join(piece.chunk for piece in self._client._fetch(job.id, _calls.OUTCOME_PATH, 0, 0))
        return _calls.load(data, job.id)

    # ---- output and files

    def logs(self, follow: bool = False, tail: Optional[int] = None, stream: str = "both", *, rank: int = 0, run: int = 0,
             timeout: Optional[float] = None) -> Iterator[str]:
        """The lines of a rank's output, without their ends, each once, across restarts of the broker.

        `follow` goes on until the log is complete; `tail` begins with the last so many lines (1 to 100000); `stream` is "both",
        "stdout" or "stderr"; `run` 0 is the latest.
        """
        lines = Lines()
        for piece in self._client.log_pieces(self, run=run, rank=rank, stream=stream, follow=follow, tail=tail, timeout=timeout):
            yield from lines.take(piece)
        yield from lines.rest()

    def log(self, stream: str = "both", *, rank: int = 0, run: int = 0) -> str:
        """All that the broker has of the output, as one text."""
        pieces = self._client.log_pieces(self, run=run, rank=rank, stream=stream)
        return b"".join(piece.data for piece in pieces).decode("utf-8", "replace")

    def fetch(self, path: str = "results", to: PathLike = ".", *, run: int = 0, rank: int = 0) -> Fetched:
        """Copies a file or a directory of its latest run into the directory `to`, and returns where it is now: a text.

        `path` is relative to the run's working directory, "." is all of it; "results" is its results directory, if the working
        directory has nothing of that name. Files that the cluster does not send, such as sockets, are no error: the `left_out` of
        what is returned names them. Raises NotFound, NotPossible and other MusterErrors.
        """
        return self._client.fetch(self, path, to, run=run, rank=rank)

    # ---- change

    def cancel(self, reason: str = "") -> JobHandle:
        """Asks that the job end; it ends when its cluster has ended it."""
        return self._now(self._client.cancel(self.id, reason=reason))

    def hold(self, reason: str = "") -> JobHandle:
        """Keeps the job from starting before it is released. Raises NotPossible if it runs or has ended."""
        return self._now(self._client.hold(self.id, reason=reason))

    def release(self, reason: str = "") -> JobHandle:
        """Releases the job, so that it may start."""
        return self._now(self._client.release(self.id, reason=reason))

    def rerun(self, *, held: bool = False, request_id: Optional[str] = None) -> JobHandle:
        """Submits the job again, and returns the new job. Raises NotPossible if it has not ended."""
        return self._client.rerun(self.id, held=held, request_id=request_id)[0]

    def _now(self, changed: List[job_pb2.Job]) -> JobHandle:
        self._message = changed[0] if changed else self._message
        return self

    # ---- its look

    def show_progress(self, timeout: Optional[float] = None) -> JobHandle:
        """Follows it to its end, in a terminal on one line of standard error, in a notebook in place."""
        with _view.Progress() as progress:
            for change in self._client.watch(self.id, from_beginning=True, until_ended=True, timeout=timeout):
                self._message = change.job
                progress.show(_view.text(self.id, self._message), _view.html(self.id, self._message))
        return self

    def __repr__(self) -> str:
        return f"<{_view.text(self.id, self._message)}>"

    def _repr_html_(self) -> str:
        return _view.html(self.id, self._message)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobHandle) and (other.id, other._client) == (self.id, self._client)

    def __hash__(self) -> int:
        return hash(self.id)
