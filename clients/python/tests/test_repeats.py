"""Calls are repeated where that helps and does no harm, and streams go on where they broke off."""

import asyncio
import threading

import grpc
import pytest

import muster
import muster.aio
from muster import _files
from broken_broker import BrokenBroker, error_info, refuse, retry_info
from muster.v1 import facts_pb2, files_service_pb2, job_pb2
from muster.v1 import jobs_service_pb2 as jobs


@pytest.fixture
def broker(tmp_path):
    made = []

    def make(**answers):
        made.append(BrokenBroker(tmp_path / "b.sock", **answers))
        return made[-1]

    yield make
    for one in made:
        one.stop()


@pytest.fixture
def client_of():
    made = []

    def make(broker, **arguments):
        made.append(muster.Client(broker.address, **arguments))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_a_submit_is_repeated_under_the_same_request_id(broker, client_of):
    it = broker(SubmitJob=[refuse(grpc.StatusCode.UNAVAILABLE, "the connection broke"),
                           refuse(grpc.StatusCode.RESOURCE_EXHAUSTED, "later", error_info("TOO_MANY_WAIT"), retry_info(0.01)),
                           lambda request, context: jobs.SubmitJobResponse(job_id=7)])
    told = []
    client = client_of(it, on_interruption=lambda error, seconds: told.append((error.code, seconds)))
    assert client.submit("true").id == 7
    assert len({request.request_id for request in it.requests}) == 1 and it.requests[0].request_id
    assert len(it.requests) == 3
    assert [code for code, _ in told] == ["UNAVAILABLE"]


def test_an_empty_request_id_is_none(broker, client_of):
    it = broker(SubmitJob=[lambda request, context: jobs.SubmitJobResponse(job_id=7)],
                SubmitJobs=[lambda request, context: jobs.SubmitJobsResponse(responses=[jobs.SubmitJobResponse(job_id=8)] * 2)])
    client = client_of(it)
    client.submit("true", request_id="")
    client.submit_many(["true", "false"], request_ids=["", "mine"])
    assert it.requests[0].request_id
    first, second = it.requests[1].requests
    assert first.request_id and second.request_id == "mine"


def parts_of_which_the_second_fails():
    return [lambda request, context: jobs.SubmitJobsResponse(responses=[jobs.SubmitJobResponse(job_id=one) for one in (7, 8)]),
            refuse(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many wait", error_info("TOO_MANY_WAIT"))]


def test_the_jobs_of_the_messages_before_a_failure_come_with_the_error(broker, client_of):
    it = broker(SubmitJobs=parts_of_which_the_second_fails() * 2)
    with pytest.raises(muster.TooMuch) as caught:
        client_of(it).submit_many(["#" * 1_500_000] * 3)
    assert [job.id for job in caught.value.submitted] == [7, 8]
    assert isinstance(caught.value.submitted[0], muster.JobHandle)

    async def submit():
        async with muster.aio.AsyncClient(it.address) as client:
            with pytest.raises(muster.TooMuch) as caught:
                await client.submit_many(["#" * 1_500_000] * 3)
            assert [job.id for job in caught.value.submitted] == [7, 8]
            assert isinstance(caught.value.submitted[0], muster.aio.AsyncJobHandle)
    asyncio.run(submit())


def test_what_no_repeat_mends_comes_at_once_with_its_facts(broker, client_of):
    reason = facts_pb2.StateReason(message="no", remedy="Ask for less.")
    it = broker(SubmitJob=[refuse(grpc.StatusCode.FAILED_PRECONDITION, "no cluster", error_info("CANNOT_BE_PLACED", request="0"), reason)])
    with pytest.raises(muster.CannotBePlaced, match="no cluster") as caught:
        client_of(it).submit("true")
    error = caught.value
    assert (error.code, error.reason, error.metadata, error.remedy) == (
        "FAILED_PRECONDITION", "CANNOT_BE_PLACED", {"request": "0"}, "Ask for less.")
    assert error.why == reason and isinstance(error, muster.NotPossible)


@pytest.mark.parametrize("code, kind", [
    ("INVALID_ARGUMENT", muster.BadRequest), ("NOT_FOUND", muster.NotFound), ("ALREADY_EXISTS", muster.AlreadyExists),
    ("PERMISSION_DENIED", muster.NotAllowed), ("UNAUTHENTICATED", muster.NotLoggedIn), ("UNIMPLEMENTED", muster.NotHonoured),
    ("RESOURCE_EXHAUSTED", muster.TooMuch), ("ABORTED", muster.Conflict), ("INTERNAL", muster.MusterError),
])
def test_each_status_has_its_class(broker, client_of, code, kind):
    it = broker(CountJobs=[refuse(grpc.StatusCode[code], "so it is", error_info("SOME_REASON"))])
    with pytest.raises(kind, match="so it is") as caught:
        client_of(it).count()
    assert type(caught.value) is kind and caught.value.reason == "SOME_REASON"


def test_patience_for_retry_info_is_bounded(broker, client_of):
    it = broker(CountJobs=[refuse(grpc.StatusCode.RESOURCE_EXHAUSTED, "later", error_info("BUSY"), retry_info(0.9))] * 9)
    with pytest.raises(muster.TooMuch) as caught:
        client_of(it, call_timeout=1.5).count()
    assert caught.value.retry_after == pytest.approx(0.9)
    assert len(it.requests) == 2


def test_nobody_there_is_told_soon_with_the_address(tmp_path):
    with pytest.raises(muster.BrokerUnavailable, match=f"{tmp_path}/none.sock .given as broker.*Is it running"):
        muster.Client(f"unix:{tmp_path}/none.sock").count()


def change(sequence, state=job_pb2.JOB_STATE_RUNNING):
    return jobs.JobChange(sequence=sequence, job=job_pb2.Job(id=7, state=state))


def stream_of(*messages, then=None):
    def answer(request, context):
        yield from messages
        if then is not None:
            context.abort(then, "the connection broke")
    return answer


def test_a_watch_goes_on_behind_the_last_change(broker, client_of):
    first = stream_of(jobs.WatchJobsResponse(changes=[change(1), change(2)]),
                      jobs.WatchJobsResponse(heartbeat=jobs.WatchHeartbeat(sequence=5)), then=grpc.StatusCode.UNAVAILABLE)
    rest = stream_of(jobs.WatchJobsResponse(changes=[change(5), change(6)]))
    it = broker(WatchJobs=[first, rest])
    assert [one.sequence for one in client_of(it).watch(7, from_beginning=True)] == [1, 2, 6]
    assert it.requests[0].HasField("beginning") and it.requests[1].after == 5


def piece(offset, data, stream=jobs.LOG_STREAM_STDOUT, end=0):
    return jobs.ReadLogResponse(stream=stream, offset=offset, data=data, end=end)


def test_a_log_goes_on_behind_the_last_byte_of_each_output(broker, client_of):
    complete = jobs.LOG_END_COMPLETE
    first = stream_of(piece(0, b"one\ntw"), piece(0, b"err\n", jobs.LOG_STREAM_STDERR, complete), then=grpc.StatusCode.UNAVAILABLE)
    rest = stream_of(piece(0, b"", jobs.LOG_STREAM_STDERR, complete), piece(2, b"e\ntwo\nlast"), piece(12, b"", end=complete))
    it = broker(ReadLog=[first, rest])
    assert list(client_of(it).job(7).logs(follow=True)) == ["one", "err", "two", "last"]
    assert {one.stream: one.offset for one in it.requests[1].positions} == {jobs.LOG_STREAM_STDOUT: 6, jobs.LOG_STREAM_STDERR: 4}


def test_a_tail_is_asked_for_again_until_its_begin_is_known(broker, client_of):
    out, err, complete = jobs.LOG_STREAM_STDOUT, jobs.LOG_STREAM_STDERR, jobs.LOG_END_COMPLETE
    one = stream_of(piece(100, b"", out), then=grpc.StatusCode.UNAVAILABLE)
    two = stream_of(piece(100, b"", out), piece(50, b"", err), piece(100, b"a\n"), then=grpc.StatusCode.UNAVAILABLE)
    three = stream_of(piece(102, b"b\n", end=complete), piece(50, b"c\n", err, complete))
    it = broker(ReadLog=[one, two, three])
    assert list(client_of(it).job(7).logs(follow=True, tail=2)) == ["a", "b", "c"]
    assert [request.tail_lines for request in it.requests] == [2, 2, 0]
    assert {one.stream: one.offset for one in it.requests[2].positions} == {out: 102, err: 50}


def test_a_wait_ends_in_time(broker, client_of):
    over = threading.Event()

    def silent(request, context):
        context.add_callback(over.set)
        yield jobs.WatchJobsResponse(heartbeat=jobs.WatchHeartbeat(sequence=1))
        over.wait()
    it = broker(WatchJobs=[silent])
    with pytest.raises(muster.WaitTimeout):
        client_of(it).job(7).wait(0.3)


def entry(path, kind, **fields):
    from muster.v1 import file_tree_pb2 as trees
    return files_service_pb2.FetchFilesResponse(entry=trees.FileTreeEntry(path=path, kind=kind, **fields))


@pytest.mark.parametrize("path, target", [(b"../x", b""), (b"/tmp/x", b""), (b"a/../../x", b""), (b"link", b"/etc"), (b"l", b"../../x")])
def test_files_from_a_hostile_broker_stay_below_the_target(broker, client_of, tmp_path, path, target):
    kind = 3 if target else 1
    it = broker(FetchFiles=[stream_of(entry(b"", 2), entry(path, kind, link_target=target))])
    with pytest.raises(muster.MusterError, match="refused"):
        client_of(it).fetch(7, "results", tmp_path)
    assert sorted(found.name for found in tmp_path.iterdir()) == ["b.sock", "results"]
    assert not list((tmp_path / "results").iterdir())


# Each of these links stays below the target by its text; the last one goes through the others.
def test_links_from_a_hostile_broker_replace_nothing_outside_of_the_target(broker, client_of, tmp_path):
    (tmp_path / "target").mkdir()
    victim = tmp_path / "victim"
    victim.write_text("mine")
    links = [entry(path, 3, link_target=target) for path, target in ((b"x/y", b".."), (b"l", b"x/y/../.."), (b"l/victim", b"x"))]
    it = broker(FetchFiles=[stream_of(entry(b"", 2), entry(b"x", 2), *links)])
    with pytest.raises(muster.MusterError, match="l is a link"):
        client_of(it).fetch(7, "results", tmp_path / "target")
    assert not victim.is_symlink() and victim.read_text() == "mine"


@pytest.mark.parametrize("entries", [[(b"", 3)], [(b"x", 1)], [(b"", 1), (b"x", 1)], [(b"", 2), (b"x", 99)]])
def test_what_was_asked_for_is_a_file_or_a_directory(broker, client_of, tmp_path, entries):
    it = broker(FetchFiles=[stream_of(*[entry(path, kind, link_target=b"x" if kind == 3 else b"") for path, kind in entries])])
    with pytest.raises(muster.MusterError, match="is refused"):
        client_of(it).fetch(7, "results", tmp_path)


def left_out(path, why, code):
    return files_service_pb2.FetchFilesResponse(left_out=files_service_pb2.FileLeftOut(path=path, why=why, code=code))


def test_a_fetch_names_what_was_not_sent(broker, client_of, tmp_path):
    it = broker(FetchFiles=[stream_of(entry(b"", 2), left_out(b"d/s", "is a socket", 2), left_out(b"n", "is new", 99)),
                            stream_of(left_out(b"", "cannot be read", 4))])
    client = client_of(it)
    fetched = client.fetch(7, "results", tmp_path)
    assert fetched == str(tmp_path / "results")
    assert fetched.left_out == (("d/s", "is a socket", "SPECIAL_FILE"), ("n", "is new", "99"))
    none = client.fetch(7, "results", tmp_path)
    assert (none, none.left_out) == ("", (("", "cannot be read", "UNREADABLE"),))
    writer = _files.TreeWriter(str(tmp_path), "results")
    for _ in range(_files.MAX_LEFT_OUT):
        writer.take(left_out(b"x", "is a socket", 0))
    with pytest.raises(muster.TooMuch):
        writer.take(left_out(b"x", "is a socket", 0))


@pytest.mark.parametrize("place", ["results", "results/d"])
def test_files_do_not_follow_links_that_are_there(broker, client_of, tmp_path, place):
    (tmp_path / "out").mkdir()
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).symlink_to(tmp_path / "out")
    it = broker(FetchFiles=[stream_of(entry(b"", 2), entry(b"d/x", 1, size_bytes=1), files_service_pb2.FetchFilesResponse(chunk=b"x"))])
    with pytest.raises(muster.MusterError, match="is a link"):
        client_of(it).fetch(7, "results", tmp_path)
    assert not list((tmp_path / "out").iterdir())
