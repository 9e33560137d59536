"""Jobs with container images, from the job file to the log, on a real Slurm with stand-ins for Pyxis and enroot."""

import pathlib
import pwd
import shutil
import subprocess

import pytest

from harness.api import FAILED, SUCCEEDED
from harness.daemons import BIN
from harness.fixtures import cluster_fixture
from harness.slurm import AS_USER, USER, before
from harness.wait import eventually

from muster.v1 import facts_pb2, job_pb2

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


# ---- batch scripts

CONTAINED = """#!/bin/bash
#SBATCH --container-image=registry.test\\#muster/env:1 --container-mounts={data}:/in:ro
#SBATCH -n2 -N2 -J boxed -o %x-{who}.out --mem=50M
. /etc/os-release
echo "$ID in $PWD: $(cat /in/file), $IMAGE_ONLY $SHARED $HERE, $(type -t greet) $#"
env | grep ^SLURM_ | grep -vE '^SLURM_(SPANK_|(JOB_ID|JOBID|TASK_PID|JOB_START_TIME|JOB_END_TIME|SUBMIT_HOST|JOB_DEPENDENCY)=)' | sort
touch /in/x 2>/dev/null || echo read-only
echo on stderr >&2
exit 3
"""


@pytest.fixture
def desk(world):
    """A directory of the user's, with data for containers."""
    made = world.path("desk")
    (made / "data").mkdir(parents=True)
    (made / "data" / "file").write_text("content\n")
    for path in (made, made / "data"):
        shutil.chown(path, USER, USER)
    return made


def test_a_batch_script_runs_in_its_container_as_with_sbatch(world, slurm, agent, desk):
    del agent
    shell = {"HERE": "mine", "SHARED": "mine", "BASH_FUNC_greet%%": "() { echo hello; }"}
    for who, environment in (("sbatch", {"SLURM_CONF": str(slurm.conf), "PATH": before("/usr/bin:/bin")}), ("muster", {})):
        (desk / "script.sh").write_text(CONTAINED.format(data=desk / "data", who=who))
        words = ["sbatch", "--wait", "script.sh", "one", "two"]
        if who == "sbatch":
            done = subprocess.run([*AS_USER, *words], cwd=desk, env={**environment, **shell}, text=True, capture_output=True,
                                  timeout=COMMAND_TIMEOUT_S, check=False)
        else:
            done = world.cli(*words, cwd=desk, env=shell, check=False)
        assert done.returncode == 3, done.stderr
    mine, others = ((desk / f"boxed-{who}.out").read_text() for who in ("sbatch", "muster"))
    lines = [line for line in mine.splitlines() if not line.startswith("pyxis: ")]
    for line in ("muster-test in /workspace: content, ", "read-only", "on stderr", "SLURM_NTASKS=2"):
        assert any(one.startswith(line) for one in lines), mine
    assert others.splitlines() == lines


def test_pyxis_options_of_a_script_are_taken_or_refused_by_name(world, api, agent, desk):
    del agent
    saved = desk / "saved.sqsh"
    words = ("--container-image=registry.test#muster/bash:1", "--container-workdir=/tmp", "--container-writable",
             "--container-save=saved.sqsh", "--no-container-mount-home", "--container-remap-root", "--container-env=HERE",
             "--container-name=kept:auto", "--container-mounts=./data:/in")
    world.cli("sbatch", "--wait", "-o", "out", *words, "--wrap", "pwd; id -u; touch /made; ls /in", cwd=desk)
    assert (desk / "out").read_text().splitlines()[:3] == ["/tmp", "0", "file"]
    assert saved.exists()
    for refused, says in ((("--container-name=kept",), "give --container-image, too"),
                          ((words[0], "--container-mounts=tmpfs:/tmp"), "for tmpfs and umount start the container in the script"),
                          ((words[0], "--container-writable", "--container-readonly"), "Pyxis takes one of them"),
                          ((words[0], "--signal=USR1@60"), "with B: in front only"),
                          (("--container-image=dockerd://x:1",), "one machine's own daemon"),
                          (("--container=/bundle",), "use --container-image, on clusters with Pyxis")):
        told = world.cli("sbatch", *refused, "--wrap", "true", cwd=desk, check=False)
        assert told.returncode != 0 and says in told.stderr, told.stderr
        assert told.stdout == ""
    told = world.cli("sbatch", "--container-workdir=/tmp", "--wrap", "true", cwd=desk)
    assert "--container-workdir (command line) has no effect without --container-image" in told.stderr
    assert api.list_all()


def test_a_container_of_a_script_that_does_not_start_is_explained_as_others_are(world, api, agent, desk):
    del agent
    job_id = int(world.cli("sbatch", "--parsable", "--container-image=registry.test#muster/bash:1",
                           f"--container-mounts={desk}/nosuch:/in", "-o", "out", "--wrap", "true", cwd=desk).stdout)
    job = api.wait_state(job_id, FAILED)
    assert job.runs[-1].failure.code == facts_pb2.FAILURE_CODE_MOUNT_MISSING, job
    assert "source path does not exist" in (desk / "out").read_text()


def test_a_signal_reaches_a_script_in_its_container(world, api, slurm, agent, desk):
    del agent
    script = "trap 'echo warned; exit 5' USR1; echo begins; while true; do sleep 0.1; done"
    job_id = int(world.cli("sbatch", "--parsable", "--container-image=registry.test#muster/bash:1", "-o", "out",
                           "--signal=B:USR1@50", "-t30", "--wrap", script, cwd=desk).stdout)
    eventually(lambda: (desk / "out").exists() and "begins" in (desk / "out").read_text(), "the script can be warned")
    # As Slurm does itself before the limit.
    slurm.slurm("scancel", "--batch", "--signal=USR1", api.get(job_id).runs[-1].external_id)
    job = api.wait_state(job_id, FAILED)
    assert job.exit.code == 5
    assert (desk / "out").read_text().splitlines()[-2:] == ["begins", "warned"]
