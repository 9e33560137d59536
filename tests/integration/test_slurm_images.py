"""Jobs with container images, from the job file to the log, on a real Slurm with stand-ins for Pyxis and enroot."""

import pathlib
import pwd
import shutil
import subprocess

import pytest

from harness.api import FAILED, SUCCEEDED
from harness.daemons import BIN
from harness.fixtures import cluster_fixture
from harness.slurm import USER

from muster.v1 import job_pb2

PLUGIN = BIN / "muster_test_pyxis.so"
SECRET = "open-sesame"
COMMAND_TIMEOUT_S = 60


slurm = cluster_fixture("--nodes", "2", "--no-dbd", "--pyxis", PLUGIN, sshd=True)


@pytest.fixture(params=["on the login node", "over ssh"])
def agent(request, world, broker, slurm):
    del broker
    make, where = slurm.make_agent, {}
    # Over SSH the runs are in a directory beside which the user may make none.
    if request.param == "over ssh":
        make, where = slurm.make_ssh_agent, {"image_dir": slurm.root / "runs" / "images"}
    return make(world, conversion_memory="1Gi", conversion_time_limit="1m", conversion_partition="short",
                container_mounts="/usr/share,/etc/ssl", **where).start()


def run(world, api, text):
    """The job of a file, at its end."""
    file = world.path("job.yaml")
    file.write_text(text, encoding="utf-8")
    world.cli("submit", "--wait", file, check=False)
    return api.get(api.list_all()[0].id)


def test_a_job_file_with_an_image_and_mounts_runs_in_it(world, api, agent):
    data = world.path("data")
    data.mkdir()
    (data / "file").write_text("content\n", encoding="utf-8")
    data.chmod(0o755)
    job = run(world, api, f"""
image: docker://registry.test#muster/bash:1
mounts: [{{source: {data}, target: /in, read_only: true}}]
nodes: 2
run: |
  . /etc/os-release
  echo $ID $NODE_RANK of $WORLD_SIZE: $(cat /in/file) $(ls -d /usr/share)
""")
    assert job.state == SUCCEEDED, job
    assert job.cluster == agent.cluster
    for rank in range(2):
        assert api.stdout(job.id, rank=rank) == f"muster-test {rank} of 2: content /usr/share\n".encode()


def test_an_image_that_does_not_exist_fails_the_job_as_image(world, api, agent):
    del agent
    job = run(world, api, "image: registry.test/muster/nosuch:1\nrun: echo never\n")
    assert job.state == FAILED
    failure = job.runs[-1].failure
    assert failure.failure_class == job_pb2.FAILURE_CLASS_IMAGE
    assert "returned error code: 404 Not Found" in failure.quotes[0].text
    assert "name and tag" in failure.remedy


@pytest.fixture
def credentials():
    """The credentials of the user whom agents and jobs have on the cluster."""
    file = pathlib.Path(pwd.getpwnam(USER).pw_dir) / ".config" / "enroot" / ".credentials"
    shutil.rmtree(file.parent, ignore_errors=True)
    yield file
    shutil.rmtree(file.parent, ignore_errors=True)


def install(agent, *words, secret=SECRET):
    """The agent's own command, with its settings."""
    return subprocess.run([*agent.argv, "install-credentials", *words], env=agent.env, input=secret + "\n", text=True,
                          capture_output=True, timeout=COMMAND_TIMEOUT_S, check=False)


def test_installed_credentials_let_a_private_image_run_and_nobody_sees_the_secret(world, api, agent, credentials):
    text = "image: private.test/team/train:1\nslurm: {container: {refresh_image: true}}\nrun: echo in\n"
    failure = run(world, api, text).runs[-1].failure
    assert failure.failure_class == job_pb2.FAILURE_CLASS_IMAGE
    assert "install-credentials REGISTRY USER" in failure.remedy

    assert install(agent, "other.test:5000", "ann").returncode == 0
    done = install(agent, "private.test", "ci")
    assert done.returncode == 0, done.stderr
    assert "has the credentials for private.test\n" in done.stdout
    assert SECRET not in done.stdout + done.stderr
    assert credentials.stat().st_mode & 0o777 == 0o600
    assert credentials.read_text() == (f"machine other.test login ann password {SECRET}\n"
                                       f"machine private.test login ci password {SECRET}\n")
    job = run(world, api, text)
    assert job.state == SUCCEEDED, job
    assert api.stdout(job.id) == b"in\n"


def test_a_secret_that_cannot_be_one_is_refused_unseen(agent, credentials):
    done = install(agent, "private.test", "ci", secret=f"{SECRET} and more")
    assert done.returncode == 1
    assert "secret: standard input must be the secret alone" in done.stderr
    assert SECRET not in done.stderr
    assert not credentials.exists()
