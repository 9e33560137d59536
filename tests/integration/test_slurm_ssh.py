"""Jobs on a real Slurm that the agent reaches over SSH only: by another user, without the cluster's environment."""

import shutil

from muster.v1 import job_pb2
import pytest

from harness.api import FAILED, SUCCEEDED, script_spec
from harness.fixtures import cluster_fixture
from harness.slurm import USER
from harness.wait import eventually, holds_for

MANY_JOBS = 30


slurm = cluster_fixture("--nodes", "2", "--cpus", "8", "--min-job-age", "30", sshd=True)


@pytest.fixture
def agent(world, broker, slurm):
    del broker
    return slurm.make_ssh_agent(world).start()


def test_success_with_both_logs(world, api, agent):
    done = world.cli("run", "--wait", "--", "sh", "-c", "echo out; echo err >&2; echo $HOME; id -un")
    assert "out\n/home/slurmtest\nslurmtest\n" in done.stdout
    job = api.list_all()[0]
    assert job.state == SUCCEEDED
    assert api.stderr(job.id) == b"err\n"


def test_a_log_is_followed_while_the_job_runs(world, api, agent):
    gate = world.gate()
    job_id = api.submit(script_spec(f"echo one\n{gate.script()}\necho two"))
    eventually(lambda: api.get(job_id).state == job_pb2.JOB_STATE_RUNNING, "it runs")
    eventually(lambda: api.read_log(job_id)[0] == b"one\n", "its first line is in the archive")
    gate.open()
    api.wait_state(job_id, SUCCEEDED)
    assert api.stdout(job_id) == b"one\ntwo\n"


def test_data_and_results_are_those_of_the_login_host(api, slurm, agent):
    del agent
    for name in ("data", "results"):
        (slurm.root / name).mkdir()
        shutil.chown(slurm.root / name, USER, USER)
    (slurm.root / "data" / "train").touch()
    spec = script_spec("""echo '{"status": "SUCCESS"}' >"$MUSTER_RESULTS_DIR/status.json"; echo "$MUSTER_RESULTS_DIR" """)
    spec.status_json = True
    spec.inputs.add(uri=f"lustre://{slurm.root}/data/train")
    spec.results_directory = f"lustre://{slurm.root}/results/mine"
    job_id = api.submit(spec)
    api.wait_state(job_id, SUCCEEDED)
    assert api.stdout(job_id).decode() == f"{slurm.root}/results/mine\n"
    spec.inputs.add(uri=f"lustre://{slurm.root}/data/nosuch")
    job = api.wait_state(api.submit(spec), FAILED)
    assert job.failure.failure_class == job_pb2.FAILURE_CLASS_CONFIG
    assert "inputs[1].uri" in job.failure.message and "inputs[0].uri" not in job.failure.message


def test_what_a_job_has_made_on_a_node_comes_back_over_ssh(world, api, agent):
    job_id = api.submit(script_spec("mkdir out; echo model >out/model.bin; ln -s model.bin out/latest; printf x >'out/new\nline'\n"
                                    "ln -s /etc/passwd out/leads-out; truncate -s 20M out/large; id -un >&2"))
    api.wait_state(job_id, SUCCEEDED)
    done = world.cli("cp", f"{job_id}:out", ".", check=False)
    assert "left out: leads-out" in done.stderr
    out = world.path("out")
    assert sorted(path.name for path in out.iterdir()) == ["large", "latest", "model.bin", "new\nline"]
    assert (out / "latest").read_text() == "model\n" and (out / "large").stat().st_size == 20 << 20
    assert world.cli("cp", f"{job_id}:out/new\nline", "-").stdout == "x"


def test_many_jobs_each_with_its_whole_log(api, agent):
    jobs = [api.submit(script_spec(f"seq {n * 1000}")) for n in range(MANY_JOBS)]
    for number, job_id in enumerate(jobs):
        api.wait_state(job_id, SUCCEEDED)
        assert api.stdout(job_id).count(b"\n") == number * 1000


def test_a_login_host_that_goes_down_in_the_middle_changes_nothing(world, api, slurm, agent):
    gate = world.gate()
    counter = world.path("counter")
    counter.touch()
    counter.chmod(0o666)
    job_id = api.submit(script_spec(f"echo ran >>{counter}\n{gate.script()}\necho done"))
    api.wait_state(job_id, job_pb2.JOB_STATE_RUNNING)
    slurm.kill_sshd()
    try:
        gate.open()
        holds_for(lambda: api.get(job_id).state == job_pb2.JOB_STATE_RUNNING, "the state stays", 5)
    finally:
        slurm.control("start", "sshd")
    api.wait_state(job_id, SUCCEEDED)
    assert api.stdout(job_id) == b"done\n"
    assert counter.read_text() == "ran\n"
    assert len(slurm.job_ids(api.get(job_id).runs[-1].run_key)) == 1


def test_a_wrong_host_key_keeps_the_agent_from_starting_and_is_explained(world, broker, slurm):
    del broker
    known_hosts = world.path("known_hosts")
    line = (slurm.directory / "ssh" / "known_hosts").read_text().split()
    other = (slurm.directory / "ssh" / "id.pub").read_text().split()[1]
    known_hosts.write_text(f"{line[0]} ssh-ed25519 {other}\n")
    agent = slurm.make_ssh_agent(world, ssh_known_hosts=known_hosts)
    agent.launch()
    assert agent.wait_exit() != 0
    assert "has changed" in agent.log()
    assert "ssh-keygen -R" in agent.log()
