"""muster cp: files that a run has made, from its cluster to the user's machine."""

import os

import grpc
from muster.v1 import files_service_pb2
import pytest

from harness.api import SUCCEEDED, error_info, script_spec
from harness.wait import eventually

ERROR = 1
LARGE_BYTES = 1 << 30
# An eighth of the file: the allocator of a busy daemon keeps more than the messages that are under way.
MEMORY_BYTES = LARGE_BYTES // 8


def finished(world, script, *args):
    """The number of a job that has run the script."""
    return world.cli("run", "--wait", "-q", *args, "--", "sh", "-c", script) and world.cli("list", "-q").stdout.split()[0]


def fetch(api, job, path="", **fields):
    request = files_service_pb2.FetchFilesRequest(job_id=int(job), path=path.encode(), **fields)
    return list(api.files.FetchFiles(request, timeout=60))


def refusal(call):
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value


def test_a_directory_comes_back_as_it_is(world, agent):
    job = finished(world, "mkdir -p out/deep/empty; echo model > out/model.bin; echo x > out/deep/run.sh;"
                          "chmod 755 out/deep/run.sh; chmod 600 out/model.bin; ln -s model.bin out/latest")
    world.cli("cp", f"{job}:out", ".")
    out = world.path("out")
    assert (out / "model.bin").read_text() == "model\n"
    assert (out / "model.bin").stat().st_mode & 0o777 == 0o600
    assert (out / "deep" / "run.sh").stat().st_mode & 0o111
    assert (out / "deep" / "empty").is_dir()
    assert os.readlink(out / "latest") == "model.bin"
    # The copy comes a second time, over the files that are there.
    world.cli("cp", f"{job}:out/", ".")
    world.cli("cp", f"{job}:out", "copy")
    assert (world.path("copy") / "model.bin").read_text() == "model\n"
    world.cli("cp", f"{job}:", ".")
    assert (world.path(job) / "out" / "model.bin").read_text() == "model\n"


def test_a_file_goes_to_a_directory_to_a_name_or_to_standard_output(world, agent):
    job = finished(world, "printf 'a\\000b' > data")
    world.path("into").mkdir()
    world.cli("cp", f"{job}:data", "into")
    world.cli("cp", f"{job}.1:data", "renamed")
    assert world.path("into/data").read_bytes() == world.path("renamed").read_bytes() == b"a\0b"
    assert world.cli("cp", f"{job}:data", "-", text=False).stdout == b"a\0b"


def test_what_leads_out_of_the_working_directory_is_not_sent(world, agent, api):
    job = finished(world, "ln -s /etc/passwd out; ln -s /etc dir; ln -s ../../../.. up; mkdir in; ln -s /etc/passwd in/l;"
                          "echo x > in/x; mkfifo in/pipe; ln -s in/x good")
    for path in ("out", "dir/passwd", "up", "up/etc/passwd"):
        error = refusal(lambda path=path: fetch(api, job, path))
        assert error.code() == grpc.StatusCode.PERMISSION_DENIED
        assert error_info(error).reason == "PATH_LEADS_OUT", path
    done = world.cli("cp", f"{job}:in", ".", check=False)
    assert done.returncode == ERROR
    assert "left out: l is a link with an absolute target" in done.stderr
    assert "left out: pipe is a device" in done.stderr
    assert sorted(path.name for path in world.path("in").iterdir()) == ["x"]
    world.cli("cp", f"{job}:good", ".")
    assert world.path("good").read_text() == "x\n"
    assert refusal(lambda: fetch(api, job, "../x")).code() == grpc.StatusCode.INVALID_ARGUMENT


def test_what_is_not_there_is_told(world, agent, api):
    job = finished(world, "echo x > x")
    for code, reason, call in (
            (grpc.StatusCode.NOT_FOUND, "PATH_NOT_FOUND", lambda: fetch(api, job, "y")),
            (grpc.StatusCode.NOT_FOUND, "NO_SUCH_RUN", lambda: fetch(api, job, "x", run=2)),
            (grpc.StatusCode.NOT_FOUND, "NO_SUCH_RANK", lambda: fetch(api, job, "x", rank=1))):
        error = refusal(call)
        assert (error.code(), error_info(error).reason) == (code, reason)
    assert refusal(lambda: fetch(api, 99, "x")).code() == grpc.StatusCode.NOT_FOUND
    remark = "cp takes no patterns; name one file, or a directory for all in it"
    assert remark in world.cli("cp", f"{job}:*.txt", ".", check=False).stderr
    assert remark not in world.cli("cp", f"{job}:y", ".", check=False).stderr
    elsewhere = finished(world, "true", "--workdir", "/")
    error = refusal(lambda: fetch(api, elsewhere, "etc/passwd"))
    assert error_info(error).reason == "RUN_HAS_NO_FILES" and '"/"' in error.details()
    assert "names no file of a job" in world.cli("cp", "x", ".", check=False).stderr
    assert "cp only copies from a job to here" in world.cli("cp", "x", "1:x", check=False).stderr


def test_results_elsewhere_come_back_by_the_name_results(world, agent, api):
    spec = script_spec('echo weights >"$MUSTER_RESULTS_DIR/model"')
    spec.results_directory = f"lustre://{world.path('elsewhere')}"
    spec.working_directory = "/"
    job = api.submit(spec)
    run = api.wait_state(job, SUCCEEDED).runs[0]
    assert run.results_directory == str(world.path("elsewhere"))
    world.cli("cp", f"{job}:results", "got")
    assert (world.path("got") / "model").read_text() == "weights\n"


def test_files_of_a_run_that_goes_on_can_be_read(world, agent, api):
    gate = world.gate()
    job = api.submit(script_spec(f"echo now > progress\n{gate.script()}"))
    eventually(lambda: world.cli("cp", f"{job}:progress", "-", check=False).stdout == "now\n", "the file is there")
    gate.open()


def test_a_large_file_needs_little_memory_and_a_client_that_goes_away_ends_it(world, broker, agent, api):
    job = finished(world, f"truncate -s {LARGE_BYTES} large; echo x > small")
    before = [daemon.peak_bytes() for daemon in (broker, agent)]
    world.cli("cp", f"{job}:large", ".")
    assert world.path("large").stat().st_size == LARGE_BYTES
    for daemon, peak in zip((broker, agent), before):
        assert daemon.peak_bytes() - peak < MEMORY_BYTES
    # More clients that stop reading than the agent sends to at the same time: when they are gone, others get theirs.
    calls = [api.files.FetchFiles(files_service_pb2.FetchFilesRequest(job_id=int(job), path=b"large")) for _ in range(4)]
    for call in calls:
        next(call)
    error = refusal(lambda: fetch(api, job, "small"))
    assert error_info(error).reason == "TOO_MANY_FETCHES"
    for call in calls:
        call.cancel()
    eventually(lambda: world.cli("cp", f"{job}:small", "-", check=False).stdout == "x\n", "the agent is free again")


def test_an_agent_that_is_killed_ends_the_copy_with_an_error(world, agent, api):
    job = finished(world, f"truncate -s {LARGE_BYTES} large")
    call = api.files.FetchFiles(files_service_pb2.FetchFilesRequest(job_id=int(job), path=b"large"))
    next(call)
    agent.kill()
    assert refusal(lambda: list(call)).code() == grpc.StatusCode.UNAVAILABLE
    assert not list(world.root.glob(".muster-cp-*"))
