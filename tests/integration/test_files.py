"""Files that jobs bring along, from a client's disk to the broker's and back."""

import queue

import grpc
from muster.v1 import files_service_pb2
import pytest

from harness.api import argv_spec, error_info
from harness.files import CHUNK_BYTES, download, head, missing, parts, sha256, tree_of, upload
from harness.wait import eventually

def spec_with(tree):
    spec = argv_spec("true")
    spec.uploads.add(tree_sha256=sha256(tree))
    return spec


def refusal(call):
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value


def kept(broker):
    return {path.name for path in (broker.state_dir / "files" / "kept").iterdir()}


def incoming(broker):
    return list((broker.state_dir / "files" / "incoming").iterdir())


class SlowUpload:
    """An upload whose messages go one by one, when the test says so."""

    def __init__(self, api, timeout_s=60):
        self._messages = queue.Queue()
        self._call = api.files.UploadFiles.future(iter(self._messages.get, None), timeout=timeout_s)

    def send(self, *messages):
        for message in messages:
            self._messages.put(message)

    def error(self):
        """Returns the error with which the broker has ended it."""
        return self._call.exception()

    def end(self):
        """The answer, or the call's error."""
        self._messages.put(None)
        return self._call.result()


CODE = {b"train.py": b"print('hello')\n", b"data/table.csv": b"1,2,3\n" * 100_000, b"empty": b""}


def test_a_second_upload_of_the_same_directory_sends_nothing(broker, api):
    contents = [*CODE.values(), tree_of(CODE)]
    assert missing(api, contents) == contents
    assert upload(api, contents) == len(contents)
    assert not missing(api, contents)
    changed = {**CODE, b"train.py": b"print('hello again')\n"}
    assert missing(api, [*changed.values(), tree_of(changed)]) == [changed[b"train.py"], tree_of(changed)]
    assert kept(broker) == {sha256(content) for content in contents}


def test_what_was_acknowledged_survives_a_kill(broker, api):
    contents = [*CODE.values(), *(b"file %d\n" % n for n in range(300))]
    assert upload(api, contents) == len(contents)
    broker.kill()
    broker.start()
    assert not missing(api, contents)
    for content in contents[:20]:
        assert download(api, content) == content
    assert download(api, CODE[b"data/table.csv"], offset=599_990) == CODE[b"data/table.csv"][599_990:]


def test_a_kill_in_the_middle_of_an_upload_leaves_nothing(broker, api):
    whole, half = b"whole", b"h" * (1 << 20)
    slow = SlowUpload(api)
    slow.send(*parts([whole]), head(half), files_service_pb2.UploadFilesRequest(chunk=half[:CHUNK_BYTES]))
    eventually(lambda: sum(path.stat().st_size for path in incoming(broker)) == len(whole) + CHUNK_BYTES,
               "the first chunk is on its way to the disk")
    broker.kill()
    assert refusal(slow.end).code() == grpc.StatusCode.UNAVAILABLE
    assert incoming(broker), "the test killed it too late"
    broker.start()
    assert not incoming(broker) and not kept(broker)
    assert missing(api, [whole, half]) == [whole, half]
    assert upload(api, [whole, half]) == 2
    assert download(api, half) == half


def test_a_client_that_goes_away_leaves_nothing(broker, api, world):
    half = b"h" * (1 << 20)
    other = world.api()
    slow = SlowUpload(other)
    slow.send(head(half), files_service_pb2.UploadFilesRequest(chunk=half[:CHUNK_BYTES]))
    eventually(lambda: incoming(broker), "the upload has begun")
    other.channel.close()
    slow.send(None)
    eventually(lambda: not incoming(broker), "what was half there is gone")
    assert missing(api, [half]) == [half]


@pytest.mark.slow
def test_a_client_that_falls_silent_holds_no_room(broker, api):
    half = b"h" * (1 << 20)
    slow = SlowUpload(api, timeout_s=150)
    slow.send(head(half), files_service_pb2.UploadFilesRequest(chunk=half[:CHUNK_BYTES]))
    eventually(lambda: incoming(broker), "the upload has begun")
    error = slow.error()
    slow.send(None)
    assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    assert error_info(error).reason == "UPLOAD_SILENT"
    eventually(lambda: not incoming(broker), "what was half there is gone")


def test_content_that_is_not_as_announced_is_refused(broker, api):
    chunk = files_service_pb2.UploadFilesRequest(chunk=b"abd")
    error = refusal(lambda: api.files.UploadFiles(iter([head(b"abc"), chunk]), timeout=60))
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert error_info(error).reason == "WRONG_DIGEST"
    assert sha256(b"abc") in error.details() and sha256(b"abd") in error.details()
    assert not kept(broker) and missing(api, [b"abc"])


def test_a_file_over_the_cap_is_refused_before_it_is_sent(world):
    world.make_broker(config="files:\n  max_job_bytes: 20Mi\n").start()
    api = world.api()
    large = files_service_pb2.FileHead(sha256=sha256(b"?"), size_bytes=(20 << 20) + 1)
    error = refusal(lambda: api.files.UploadFiles(
        iter([files_service_pb2.UploadFilesRequest(head=large)]), timeout=60))
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert error_info(error).reason == "FILE_TOO_LARGE" and "files.max_job_bytes" in error.details()


def test_a_disk_that_is_nearly_full_is_left_to_the_broker(world):
    world.make_broker(config="files:\n  keep_free_bytes: 900Ti\n").start()
    api = world.api()
    error = refusal(lambda: upload(api, [b"abc"]))
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert error_info(error).reason == "DISK_FULL"
    api.submit(argv_spec("true"))


def test_a_job_is_accepted_once_its_files_are_there(broker, api):
    tree = tree_of(CODE)
    upload(api, [CODE[b"empty"], tree])
    error = refusal(lambda: api.submit(spec_with(tree)))
    assert error.code() == grpc.StatusCode.FAILED_PRECONDITION
    assert error_info(error).reason == "FILES_MISSING"
    assert "train.py" in error.details() and "spec.uploads[0].tree_sha256" in error.details()
    assert not api.list_all()
    upload(api, CODE.values())
    job_id = api.submit(spec_with(tree))
    broker.kill()
    broker.start()
    assert api.get(job_id).spec.uploads[0].tree_sha256 == sha256(tree)
    assert not missing(api, [*CODE.values(), tree])


def test_a_job_over_the_cap_is_refused_with_the_setting(world):
    world.make_broker(config="files:\n  max_job_bytes: 100000\n").start()
    api = world.api()
    tree = tree_of(CODE)
    upload(api, [*CODE.values(), tree])
    error = refusal(lambda: api.submit(spec_with(tree)))
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "files.max_job_bytes" in error.details() and "600015 bytes" in error.details()


def test_a_hostile_tree_is_refused(broker, api):
    tree = tree_of({b"../../etc/passwd": b"root"})
    upload(api, [tree, b"root"])
    error = refusal(lambda: api.submit(spec_with(tree)))
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert ".." in error.details() and not api.list_all()
