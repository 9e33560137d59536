"""The place at which a stream continues after its connection broke, so that nothing is lost or comes twice."""

from __future__ import annotations

import codecs
import dataclasses
from typing import Dict, Iterator, List, Optional, Set

from muster._rpc import READ_LOG, WATCH_JOBS, Method
from muster.v1 import jobs_service_pb2 as jobs

STREAMS = {"both": jobs.LOG_STREAM_UNSPECIFIED, "stdout": jobs.LOG_STREAM_STDOUT, "stderr": jobs.LOG_STREAM_STDERR}


class WatchPlace:
    """The place of a watch: the request for the rest."""

    method: Method[jobs.WatchJobsRequest, jobs.WatchJobsResponse] = WATCH_JOBS

    def __init__(self, request: jobs.WatchJobsRequest) -> None:
        self.request = request
        # The first heartbeat has come: from there on every change is seen.
        self.began = False

    def take(self, message: jobs.WatchJobsResponse) -> Iterator[jobs.JobChange]:
        """Returns the new changes of a message."""
        if message.HasField("heartbeat"):
            self.began = True
            self.request.after = max(self.request.after, message.heartbeat.sequence)
            return
        for change in message.changes:
            if change.sequence <= self.request.after:
                continue
            # This is set before the change is given away, because the reader may never ask for the next one.
            self.request.after = change.sequence
            yield change

    def is_over(self) -> bool:
        return False


@dataclasses.dataclass(frozen=True)
class LogPiece:
    """Bytes of one output of a rank."""

    stream: str  # "stdout" or "stderr"
    offset: int  # of the first byte in that output
    data: bytes
    # The end of the output after the piece, e.g. "COMPLETE" or "TRUNCATED"; empty if the output goes on.
    end: str = ""


class LogPlace:
    """The place of a log: the request for the rest."""

    method: Method[jobs.ReadLogRequest, jobs.ReadLogResponse] = READ_LOG

    def __init__(self, request: jobs.ReadLogRequest) -> None:
        self.request = request
        self._tail_begins: Dict[int, int] = {}
        self._going_on: Set[int] = {jobs.LOG_STREAM_STDOUT, jobs.LOG_STREAM_STDERR}
        if request.stream:
            self._going_on = {request.stream}

    def take(self, piece: jobs.ReadLogResponse) -> Iterator[LogPiece]:
        """Returns the new part of the piece."""
        if piece.stream not in self._going_on or self._notes_tail(piece):
            return
        position = self._position(piece.stream)
        data, offset = piece.data, piece.offset
        # A piece may begin before what was asked for, if the archive's own pieces do.
        if offset < position.offset:
            data = data[position.offset - offset:]
            offset = position.offset
        position.offset = offset + len(data)
        end = ""
        if piece.end:
            self._going_on.discard(piece.stream)
            end = jobs.LogEnd.Name(piece.end)[len("LOG_END_"):]
        if data or end:
            yield LogPiece("stderr" if piece.stream == jobs.LOG_STREAM_STDERR else "stdout", offset, data, end)

    def is_over(self) -> bool:
        return not self._going_on

    def _position(self, stream: int) -> jobs.LogPosition:
        for position in self.request.positions:
            if position.stream == stream:
                return position
        added = self.request.positions.add()
        added.stream = jobs.LogStream.Name(stream)  # type: ignore[assignment,unused-ignore]
        return added

    def _notes_tail(self, piece: jobs.ReadLogResponse) -> bool:
        """Notes where the last lines begin. Until each output's first message has said so, a new stream asks for them again."""
        if not self.request.tail_lines or piece.end:
            return False
        self._tail_begins[piece.stream] = piece.offset
        if len(self._tail_begins) < len(self._going_on):
            return True
        self.request.tail_lines = 0
        for stream, offset in self._tail_begins.items():
            self._position(stream).offset = offset
        return True


class Lines:
    """Pieces as lines of text: each output's own, without their ends, undecodable bytes replaced."""

    def __init__(self) -> None:
        self._decoders: Dict[str, codecs.IncrementalDecoder] = {}
        self._rests: Dict[str, str] = {}

    def take(self, piece: LogPiece) -> List[str]:
        decoder = self._decoders.setdefault(piece.stream, codecs.getincrementaldecoder("utf-8")("replace"))
        text = self._rests.pop(piece.stream, "") + decoder.decode(piece.data, bool(piece.end))
        lines = text.split("\n")
        rest = lines.pop()
        if piece.end and rest:
            lines.append(rest)
        elif rest:
            self._rests[piece.stream] = rest
        return lines

    def rest(self) -> List[str]:
        return [rest for rest in self._rests.values() if rest]


def log_request(job_id: int, *, run: int, rank: int, stream: str, follow: bool, tail: Optional[int]) -> jobs.ReadLogRequest:
    """Raises ValueError if there is no such stream."""
    if stream not in STREAMS:
        raise ValueError(f'stream is "{stream}"; it is "both", "stdout" or "stderr"')
    if tail is not None and not 1 <= tail <= 100_000:
        raise ValueError(f"tail is {tail}; it is 1 to 100000 lines, or None for the whole log")
    return jobs.ReadLogRequest(job_id=job_id, run=run, rank=rank, stream=STREAMS[stream], follow=follow, tail_lines=tail or 0)
