"""The limits to which hosts over SSH hold runs: memory, and containers, by podman itself."""

import os
import subprocess

from muster.v1 import job_pb2, job_spec_pb2
import pytest

from harness.api import CANCELED, FAILED, script_spec
from harness.fixtures import hosts_fixture
from harness.wait import eventually

RUNNING = job_pb2.JOB_STATE_RUNNING
IMAGE = "localhost/muster-integration-test:1"
MEMORY = job_spec_pb2.Resources(cpu_millis=1000, memory_bytes=64 << 20)

cluster = hosts_fixture()


@pytest.fixture
def agent(cluster):
    return cluster.make_agent().start()


@pytest.fixture
def podman(world, cluster):
    """All hosts have it, and an image of this machine's busybox."""
    conf = world.write("containers.conf", "[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]\n"
                       + ("[engine]\nruntime = \"runc\"\n" if os.access("/usr/sbin/runc", os.X_OK) else ""))
    for host in cluster.hosts:
        program = host.programs / "podman"
        program.write_text(f"#!/bin/sh\nCONTAINERS_CONF={conf} exec /usr/bin/podman \"$@\"\n")
        program.chmod(0o755)

    def run(*words):
        return subprocess.run([program, *words], text=True, capture_output=True, check=True).stdout

    root = world.path("root")
    for name in ("bin", "tmp", "etc", "proc", "sys", "dev"):
        (root / name).mkdir(parents=True)
    subprocess.run(["cp", "/bin/busybox", root / "bin"], check=True)
    for name in ("sh", "cat", "echo", "sleep", "touch"):
        (root / "bin" / name).symlink_to("busybox")
    subprocess.run(["tar", "-C", root, "-cf", world.path("root.tar"), "."], check=True)
    run("import", "--quiet", str(world.path("root.tar")), IMAGE)
    return run


def left_of(podman, job):
    return podman("ps", "--all", "--noheading", "--format={{.Names}}", f"--filter=name={job.runs[-1].run_key}").split()


def test_a_rank_that_takes_more_memory_than_it_asked_for_is_killed_and_says_so(api, agent):
    text = '[ "$NODE_RANK" = 0 ] || { head -c 300000000 /dev/zero | tail >/dev/null; exit; }\nexec sleep 1000'
    job = api.wait_state(api.submit(script_spec(text, nodes=2, resources=MEMORY)), FAILED)
    assert job.failure.failure_class == job_pb2.FAILURE_CLASS_OOM
    assert f"on rank 1 ({job.runs[-1].nodes[1]})" in job.failure.message
    assert "killed at its memory limit of 64Mi" in job.failure.message
    assert "Ask for more memory" in job.failure.remedy
    assert len(job.runs) == 1


def test_ranks_run_in_containers_of_their_own_with_files_that_outlive_them(api, cluster, podman, agent):
    text = "#!/bin/sh\ntest ! -e /usr && echo \"inside $NODE_RANK $(cat setup)\"; exit $((NODE_RANK * 4))"
    job_id = api.submit(script_spec(text, nodes=2, image=IMAGE, setup="#!/bin/sh\necho made >setup\n"))
    job = api.wait_state(job_id, FAILED)
    assert (job.exit.code, job.exit.rank) == (4, 1)
    for rank, name in enumerate(job.runs[-1].nodes):
        assert api.stdout(job_id, rank=rank) == b"inside %d made\n" % rank
        host = next(host for host in cluster.hosts if host.name == name)
        assert (host.run_directory(agent.cluster, job.runs[-1].run_key) / "work/setup").read_text() == "made\n"
    assert not left_of(podman, job)


def test_a_cancel_reaches_the_program_in_a_container_and_leaves_none(api, world, podman, agent):
    text = "#!/bin/sh\ntrap 'echo took leave; exit 3' TERM\necho ready\nwhile :; do sleep 0.1; done"
    job_id = api.submit(script_spec(text, nodes=2, image=IMAGE))
    eventually(lambda: all(api.read_log(job_id, rank=rank)[0] == b"ready\n" for rank in range(2)), "both run")
    assert len(left_of(podman, api.get(job_id))) == 2
    api.cancel(job_id)
    job = api.wait_state(job_id, CANCELED)
    assert api.stdout(job_id, rank=0) == api.stdout(job_id, rank=1) == b"ready\ntook leave\n"
    assert not left_of(podman, job)


def test_a_container_is_held_to_its_memory(api, podman, agent):
    text = "#!/bin/sh\nbusybox head -c 300000000 /dev/zero | busybox tail >/dev/null"
    job = api.wait_state(api.submit(script_spec(text, image=IMAGE, resources=MEMORY)), FAILED)
    assert job.failure.failure_class == job_pb2.FAILURE_CLASS_OOM, job.failure
    assert not left_of(podman, job)
