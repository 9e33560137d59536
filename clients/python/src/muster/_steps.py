"""The steps of a verb, one effect after the other, so that each verb is written once for Client and AsyncClient.

A verb is a generator of Steps: it yields an Effect and gets its result. `Unary` gives the answer, or raises grpc.RpcError at
the yield; the client that drives the verb knows how to wait.
"""

from __future__ import annotations

import dataclasses
import random
import time
from typing import Any, Callable, Generator, Iterable, Optional, TypeVar, Union, cast

import grpc

from muster import errors
from muster._rpc import MAX_REQUEST_BYTES, Method

Q = TypeVar("Q")
A = TypeVar("A")
T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Unary:
    """One attempt at a call."""

    method: Method[Any, Any]
    request: Any
    timeout_s: float


@dataclasses.dataclass(frozen=True)
class Upload:
    """One attempt at UploadFiles: `requests` is asked for a fresh iterator, in a thread that may wait."""

    requests: Callable[[], Iterable[Any]]


@dataclasses.dataclass(frozen=True)
class Sleep:
    """A pause."""

    seconds: float


@dataclasses.dataclass(frozen=True)
class Blocking:
    """Work with files or processes that takes a while."""

    work: Callable[[], Any]


Effect = Union[Unary, Upload, Sleep, Blocking]
Steps = Generator[Effect, Any, T]


@dataclasses.dataclass
class Patience:
    """The time for which this client tries. Seconds."""

    call_s: float = 30.0  # one call, all its attempts together
    question_s: float = 120.0  # likewise, of a call that a cluster's agent answers
    stream_s: float = 600.0  # a broken stream or upload, without any success
    absent_s: float = 2.0  # nobody listens on the socket, and no broker has answered this client yet
    was_answered: bool = False
    address: str = ""  # of the broker, for errors, with who named it: "unix:/run/b.sock (named by MUSTER_BROKER)"
    # Called at the first failure of a call that will be tried again, with the error and the time for which it will be.
    on_interruption: Optional[Callable[[errors.MusterError, float], None]] = None

    def of(self, error: errors.MusterError, patience_s: float) -> float:
        """Returns the part of the time for which it is worth trying again."""
        if self.was_answered or not errors.is_transport(error):
            return patience_s
        return min(patience_s, self.absent_s)

    def explain(self, error: errors.MusterError) -> errors.MusterError:
        """Adds the address and the remedy to a failure of the transport; an answer of the broker stays as it is."""
        if not errors.is_transport(error):
            return error
        if error.code == "DEADLINE_EXCEEDED":
            return errors.CallTimeout(f"the broker at {self.address} did not answer in time", code=error.code)
        cause = error.message.rpartition(": ")[2]
        return errors.BrokerUnavailable(f"cannot reach the broker at {self.address}: {cause}. Is it running there? Another one is "
                                        "named by Client(broker=...) or MUSTER_BROKER", code=error.code)

    def tell(self, error: errors.MusterError, patience_s: float) -> None:
        if self.on_interruption and patience_s > 0:
            self.on_interruption(error, patience_s)


class Backoff:
    """Gives pauses that double, with jitter, so that many clients do not come back at the same time."""

    def __init__(self, first_s: float = 0.1, most_s: float = 5.0) -> None:
        self._first_s, self._most_s = first_s, most_s
        self._next_s = first_s

    def pause_s(self, at_least_s: Optional[float]) -> float:
        step, self._next_s = self._next_s, min(self._next_s * 2, self._most_s)
        pause = step * random.uniform(0.5, 1)
        return pause if not at_least_s or at_least_s <= pause else at_least_s * random.uniform(1, 1.5)

    def reset(self) -> None:
        self._next_s = self._first_s


# A person waits for the answer of a call, but not for a stream.
MAX_CALL_BACKOFF_S = 1.0


def call(method: Method[Q, A], request: Q, patience: Patience) -> Steps[A]:
    """Makes a call, and repeats it while that helps and does no harm. Raises a MusterError."""
    size = cast(Any, request).ByteSize()
    if size > MAX_REQUEST_BYTES:
        raise errors.BadRequest(f"the request has {size} bytes and the broker takes {MAX_REQUEST_BYTES}: keep large scripts and "
                                "data in files, e.g. Job(workdir=...)", code="INVALID_ARGUMENT")
    timeout_s = patience.question_s if method.asks_agent else patience.call_s
    start = time.monotonic()
    backoff = Backoff(most_s=MAX_CALL_BACKOFF_S)
    first = True
    while True:
        try:
            answer = yield Unary(method, request, max(0.001, start + timeout_s - time.monotonic()))
            patience.was_answered = True
            return cast(A, answer)
        except grpc.RpcError as refused:
            error = errors.from_grpc(refused)
        if not errors.is_transport(error):
            patience.was_answered = True
        patience_s = patience.of(error, timeout_s)
        pause_s = backoff.pause_s(error.retry_after)
        if not method.repeatable or not errors.may_pass(error) or time.monotonic() + pause_s >= start + patience_s:
            raise patience.explain(error)
        if first:
            patience.tell(error, patience_s)
        first = False
        yield Sleep(pause_s)


class Resume:
    """When a stream that broke off is opened again."""

    def __init__(self, patience: Patience, deadline: Optional[float]) -> None:
        self._patience = patience
        self._deadline = deadline  # by time.monotonic(); None: never
        self._backoff = Backoff()
        self._since: Optional[float] = None

    def timeout_s(self) -> Optional[float]:
        """The timeout that gRPC gets for the stream that is opened now."""
        return None if self._deadline is None else max(0.001, self._deadline - time.monotonic())

    def got_message(self) -> None:
        self._patience.was_answered = True
        self._since = None
        self._backoff.reset()

    def pause_s(self, refused: Any) -> float:
        """Returns the pause before the stream is opened again. Raises the error if opening it again does not help."""
        error = errors.from_grpc(refused)
        now = time.monotonic()
        if error.code == "DEADLINE_EXCEEDED" and self._deadline is not None and now >= self._deadline - 0.05:
            raise errors.WaitTimeout("the time for waiting is over; what was waited for goes on")
        interrupted = error.code in ("UNAVAILABLE", "ABORTED") or (
            error.code == "RESOURCE_EXHAUSTED" and error.retry_after is not None)
        if not interrupted:
            raise error
        if not errors.is_transport(error):
            self._patience.was_answered = True
        patience_s = self._patience.of(error, self._patience.stream_s)
        if self._since is None:
            self._since = now
            self._patience.tell(error, patience_s)
        pause_s = self._backoff.pause_s(error.retry_after)
        if now + pause_s >= self._since + patience_s:
            raise self._patience.explain(error)
        if self._deadline is not None and now + pause_s >= self._deadline:
            raise errors.WaitTimeout("the time for waiting is over; what was waited for goes on")
        return pause_s
