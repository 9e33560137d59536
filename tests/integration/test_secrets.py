"""Secrets of jobs on machines: where a value is, where it is not, and what becomes of one that is missing."""

import shutil
import subprocess

import grpc
import pytest
from muster.agent.v1 import secret_link_pb2, secret_link_pb2_grpc
from muster.v1 import job_pb2, secrets_service_pb2, secrets_service_pb2_grpc

from harness.api import CALL_TIMEOUT_S, FAILED, SUCCEEDED, error_info, script_spec
from harness.canary import Canary, has_told, program, set_secret, use, words
from harness.daemons import BIN
from harness.fixtures import hosts_fixture
from harness.wait import eventually
from test_network import config, enrolled_agent, init

OK, ERROR, NOT_ALLOWED = 0, 1, 4

cluster = hosts_fixture()


@pytest.fixture
def canary(world, broker):
    """A canary that is the secret `hf` of the test's user."""
    del broker
    made = Canary()
    set_secret(world, made.value)
    return made


def secrets_of(api):
    return secrets_service_pb2_grpc.SecretsServiceStub(api.channel)


def shown(world, job_id):
    """All that Muster tells of a job."""
    verbs = (("show", job_id, "-o", "json"), ("show", job_id), ("events", job_id), ("why", job_id),
             ("list", "-o", "json"), ("secret", "list", "-o", "json"), ("secret", "list"))
    return "".join(done.stdout + done.stderr for done in (world.cli(*verb, check=False) for verb in verbs))


def logs(world):
    return "".join(path.read_text(errors="replace") for path in world.root.glob("*.log"))


def test_a_job_has_the_value_and_nobody_else(world, broker, agent, api, canary):
    gate = world.gate()
    job_id = api.submit(use(script_spec(program(gate.script()), setup="test -n \"$TOKEN\"")))
    eventually(lambda: has_told(api, job_id), "the program has its secrets")
    run_key = api.get(job_id).runs[-1].run_key
    run_dir = agent.state_dir / "runs" / run_key
    assert canary.processes(run_key) == []
    assert canary.files(world.root) == [run_dir / "secret.TOKEN_FILE"]
    assert canary.value not in shown(world, job_id)
    # The supervisor takes it away, whatever becomes of the agent.
    agent.pause()
    gate.open()
    eventually((run_dir / "exit").exists, "the run has ended")
    assert canary.files(world.root) == []
    agent.resume()
    assert api.wait_end(job_id).state == SUCCEEDED
    assert api.stdout(job_id) == words(canary, "600")
    assert canary.files(world.root) == []
    assert canary.value not in logs(world)


def test_a_queued_run_keeps_it_over_a_restart_for_itself_alone(world, broker, api, canary):
    agent = world.make_agent(config=world.machines_config(cpus=1)).start()
    first, gate = world.gate(), world.gate()
    blocking = api.submit(script_spec(first.script()))
    api.wait_run_state(blocking, job_pb2.RUN_STATE_RUNNING)
    job_id = api.submit(use(script_spec(program(gate.script()))))
    api.wait_run_state(job_id, job_pb2.RUN_STATE_PENDING)
    run_dir = agent.state_dir / "runs" / api.get(job_id).runs[-1].run_key
    assert canary.files(world.root) == [run_dir / "spec"]
    assert (run_dir / "spec").stat().st_mode & 0o777 == 0o600
    world.cli("secret", "rm", "hf")
    agent.restart()
    first.open()
    gate.open()
    assert api.wait_end(job_id).state == SUCCEEDED
    assert api.stdout(job_id) == words(canary, "600")
    assert canary.files(world.root) == []


def test_a_canceled_run_leaves_nothing(world, broker, agent, api, canary):
    job_id = api.submit(use(script_spec(program(world.gate().script()))))
    eventually(lambda: has_told(api, job_id), "the program has its secrets")
    world.cli("cancel", job_id)
    api.wait_end(job_id)
    eventually(lambda: canary.files(world.root) == [], "no file has the value")


def test_an_agent_without_a_run_does_not_get_it(world, broker, agent, api, canary):
    gate = world.gate()
    job_id = api.submit(use(script_spec(program(gate.script()))))
    run = api.wait_run_state(job_id, job_pb2.RUN_STATE_RUNNING)
    link = secret_link_pb2_grpc.SecretLinkServiceStub(api.channel)

    def ask(**fields):
        with pytest.raises(grpc.RpcError) as refused:
            link.FetchRunSecrets(secret_link_pb2.FetchRunSecretsRequest(**fields), timeout=CALL_TIMEOUT_S)
        return error_info(refused.value).reason

    # The journal's name is known to the agent and the broker alone.
    assert ask(cluster="box", run_key=run.run_key) == "NOT_CONNECTED"
    assert ask(cluster="box", journal_id="0" * 32, run_key=run.run_key) == "NOT_CONNECTED"
    gate.open()
    api.wait_end(job_id)


def test_it_needs_a_private_link(world, canary):
    world.broker.terminate()
    world.broker.argv += ["--listen", "127.0.0.1:0", "--listen-role", "admin"]
    world.broker.start()
    agent = world.make_agent()
    port = (world.broker.state_dir / "broker.port").read_text().strip()
    agent.argv[agent.argv.index("--broker") + 1] = f"127.0.0.1:{port}"
    agent.start()
    api = world.api()
    job_id = api.submit(use(script_spec("true")))
    job = api.wait_end(job_id)
    assert job.state == FAILED
    assert job.runs[-1].failure.failure_class == job_pb2.FAILURE_CLASS_CONFIG
    assert "TLS" in job.runs[-1].failure.message
    # Nobody knows who asks there, so that there is no secret for whoever that is.
    nobody = world.api(address=f"127.0.0.1:{port}")
    for call in (lambda: nobody.submit(use(script_spec("true"))),
                 lambda: secrets_of(nobody).ListSecrets(secrets_service_pb2.ListSecretsRequest())):
        with pytest.raises(grpc.RpcError) as refused:
            call()
        assert error_info(refused.value).reason == "NOT_ALLOWED"
    assert canary.files(world.root) == []


def test_it_comes_over_tls(world, tmp_path):
    del tmp_path
    assert init(world).returncode == 0
    broker = world.make_broker(config=config()).start()
    enrolled_agent(world, broker).start()
    canary, gate, api = Canary(), world.gate(), world.api(broker)
    set_secret(world, canary.value)
    gate.open()
    job_id = api.submit(use(script_spec(program(gate.script()))))
    assert api.wait_end(job_id).state == SUCCEEDED
    assert api.stdout(job_id) == words(canary, "600")


def test_each_host_of_a_run_has_it(world, cluster, api, canary):
    agent = cluster.make_agent().start()
    gate = world.gate()
    job_id = api.submit(use(script_spec(program(gate.script()), nodes=2)))
    eventually(lambda: has_told(api, job_id), "the program has its secrets")
    run_key = api.get(job_id).runs[-1].run_key
    assert canary.processes(run_key) == []
    record = agent.state_dir / "runs" / run_key / "assignment"
    allowed = {record, *(host.run_directory(agent.cluster, run_key) / "secret.TOKEN_FILE" for host in cluster.hosts)}
    assert set(canary.files(world.root)) <= allowed
    assert record.stat().st_mode & 0o777 == 0o600
    gate.open()
    assert api.wait_end(job_id).state == SUCCEEDED
    for rank in range(2):
        assert api.stdout(job_id, rank=rank) == words(canary, "600")
    eventually(lambda: canary.files(world.root) == [], "no file has the value")


# ---- what is missing


def test_a_missing_secret_is_refused_at_the_submit_with_the_remedy(world, broker, agent):
    done = world.cli("run", "--secret", "TOKEN=nowhere", "--", "true", check=False)
    assert done.returncode != OK
    assert "no secret nowhere" in done.stderr and "muster secret set nowhere" in done.stderr
    plan = world.cli("plan", "--secret", "TOKEN=nowhere", "--", "true", check=False)
    assert "muster secret set nowhere" in plan.stderr


def test_one_that_is_gone_by_the_launch_ends_the_job(world, broker, api, canary):
    del canary
    job_id = api.submit(use(script_spec("true")))
    world.cli("secret", "rm", "hf")
    world.make_agent().start()
    job = api.wait_end(job_id)
    assert job.state == FAILED and len(job.runs) == 1
    assert job.runs[-1].failure.failure_class == job_pb2.FAILURE_CLASS_CONFIG
    failure = job.runs[-1].failure
    assert "no secret hf" in failure.message and "muster secret" in failure.message
    assert world.cli("rerun", job_id, check=False).returncode != OK


def test_the_broker_without_its_key_says_so_and_runs_what_needs_none(world, broker, api, canary):
    key = broker.state_dir / "secrets.key"
    broker.terminate()
    shutil.move(key, world.path("kept"))
    broker.start()
    world.make_agent().start()
    job_id = api.submit(use(script_spec("true")))
    other = api.submit(script_spec("true"))
    assert api.wait_end(other).state == SUCCEEDED
    done = world.cli("secret", "set", "new", input="v", check=False)
    assert done.returncode != OK and "put the key back" in done.stderr
    assert "secrets_locked" in broker.log()
    broker.terminate()
    shutil.move(world.path("kept"), key)
    broker.start()
    assert api.wait_end(job_id).state == SUCCEEDED


def test_a_project_has_secrets_for_all_its_jobs_and_an_own_one_wins(world, broker, agent, api):
    world.cli("secret", "set", "hf", "--project", "vision", input="the team's")
    spec = script_spec("printf %s \"$TOKEN\"", project="vision")
    spec.secrets.add(variable="TOKEN", name="hf")
    team = api.submit(spec)
    assert api.wait_end(team).state == SUCCEEDED
    assert api.stdout(team) == b"the team's"
    world.cli("secret", "set", "hf", input="mine")
    own = api.submit(spec)
    api.wait_end(own)
    assert api.stdout(own) == b"mine"
    spec.project = "other"
    world.cli("secret", "rm", "hf")
    with pytest.raises(grpc.RpcError) as refused:
        api.submit(spec)
    assert error_info(refused.value).reason == "NO_SUCH_SECRET"


# ---- SkyPilot


def test_a_value_in_a_task_is_a_secret_for_that_job(world, broker, agent, api):
    canary, given = Canary(), Canary()
    task = world.write("task.yaml", f"num_nodes: 1\nsecrets: {{A: {canary.value}, B: }}\n"
                                    "run: |\n  printf %s $A | sha256sum; printf %s $B | sha256sum\n")
    done = world.cli("submit", "--wait", task, env={"B": given.value})
    assert [line.split()[0] for line in done.stdout.splitlines()] == [canary.digest, given.digest]
    task.unlink()
    job_id = int(world.cli("list", "-q").stdout.split()[0])
    text = shown(world, job_id)
    assert canary.value not in text and given.value not in text
    assert canary.files(world.root) == [] and given.files(world.root) == []
    names = [secret["name"] for secret in world.cli_json("secret", "list")["secrets"]]
    assert len(names) == 2 and all(name.startswith("for-one-job-") for name in names)
    # Housekeeping removes them; it comes every minute.
    eventually(lambda: not world.cli_json("secret", "list").get("secrets"), "they are gone with the job")


def test_a_refused_task_leaves_no_secret(world, broker, agent):
    task = world.write("task.yaml", "num_nodes: 1\nsecrets: {A: v, B: }\nrun: echo\n")
    done = world.cli("submit", task, check=False)
    assert done.returncode != OK and "no secret B" in done.stderr
    assert world.cli("secret", "list", "-q").stdout == ""
    assert world.cli("submit", "--dry-run", task, check=False).returncode != OK


def test_a_repeat_takes_the_first_jobs_secret_and_a_refused_one_leaves_it(world, broker, api):
    canary = Canary()
    task = world.write("task.yaml", f"num_nodes: 1\nsecrets: {{A: {canary.value}}}\nrun: printf %s $A | sha256sum\n")
    jobs = [world.cli("submit", "--request-id", "once", task, "-q").stdout for _ in range(2)]
    assert jobs[0] == jobs[1]
    task.write_text(task.read_text() + "name: another\n")
    assert world.cli("submit", "--request-id", "once", task, check=False).returncode != OK
    world.make_agent().start()
    job_id = int(jobs[0])
    assert api.wait_end(job_id).state == SUCCEEDED
    assert api.stdout(job_id).split()[0].decode() == canary.digest


# ---- the command


def test_set_list_and_rm(world, broker):
    world.cli("secret", "set", "hf", input="value\n")
    world.cli("secret", "set", "key.pem", "--from-file", world.write("key", "line\nline\n"))
    (first, second) = world.cli_json("secret", "list")["secrets"]
    assert (first["name"], first["size_bytes"], second["name"], second["size_bytes"]) == ("hf", 5, "key.pem", 10)
    assert "value" not in world.cli("secret", "list").stdout
    world.cli("secret", "rm", "hf")
    assert world.cli("secret", "list", "-q").stdout.split() == ["key.pem"]
    assert world.cli("secret", "rm", "hf", check=False).returncode == ERROR


LONG = "v" * 65537


@pytest.mark.parametrize("words,stdin,problem", [
    (("set", "hf"), "", "has 0 bytes"),
    (("set", "hf"), LONG, "65536"),
    (("set", "hf"), "\n", "has 0 bytes"),
    (("set", "hf"), "a\0b", "NUL byte"),
    (("set", "a/b"), "v", "is not a secret's name"),
    (("set", "-x"), "v", ""),
    (("set", "hf", "--project", "Not OK"), "v", "not a project name"),
    (("set", "hf", "--from-file", "/nowhere"), "", "/nowhere"),
    (("set", "hf", "value"), "v", ""),
    (("set",), "v", "NAME"),
    (("rm", "hf"), "", "no secret hf"),
    (("rm", "a b"), "", "is not a secret's name"),
], ids=lambda value: "long" if value == LONG else None)
def test_bad_input_names_the_field_and_the_remedy(world, broker, words, stdin, problem):
    done = world.cli("secret", *words, input=stdin, check=False)
    assert done.returncode != OK and problem in done.stderr
    assert world.cli("secret", "list", "-q").stdout == ""


@pytest.mark.parametrize("secrets,problem", [
    ("{TOKEN: a/b}", "is not a secret's name"),
    ("{1A: hf}", "not a variable's name"),
    ("{SLURM_JOB_ID: hf}", "SLURM_*"),
    ("{A: {file: hf, mode: 1}}", "mode"),
    ("{A: [hf]}", "expected"),
    ("hf", "expected"),
    ("[{variable: A, name: hf}, {variable: A, name: hf}]", "is there twice"),
    ("{A: hf}\nenv: {A: b}", "is in env, too"),
])
def test_bad_secrets_of_a_job_file_are_shown_at_their_place(world, broker, secrets, problem):
    done = world.cli("submit", world.write("job.yaml", f"time: 1h\nrun: x\nsecrets: {secrets}\n"), check=False)
    assert done.returncode == ERROR and problem in done.stderr and "job.yaml:3:" in done.stderr


def test_a_viewer_and_a_submitter_have_what_their_roles_have(world, broker):
    for role in ("viewer", "submitter"):
        world.cli("token", "create", role, "--role", role, "--user", "bob", "--file", world.path(role))
    viewer, submitter = (("--token-file", world.path(role)) for role in ("viewer", "submitter"))
    world.cli("secret", "set", "hf", input="mine")
    assert world.cli(*viewer, "secret", "list", check=False).returncode == NOT_ALLOWED
    world.cli(*submitter, "secret", "set", "own", input="bob's")
    assert world.cli(*submitter, "secret", "set", "x", "--project", "vision", input="v",
                     check=False).returncode == NOT_ALLOWED
    assert world.cli(*submitter, "secret", "list", "-q").stdout.split() == ["own"]
    assert world.cli(*submitter, "secret", "rm", "hf", check=False).returncode == ERROR
    assert set(world.cli("secret", "list", "-q").stdout.split()) == {"hf", "own"}
    taken = secrets_service_pb2.SetSecretRequest(name="own", user="bob", value=b"for bob")
    assert secrets_of(world.api()).SetSecret(taken, timeout=CALL_TIMEOUT_S).secret.size_bytes == 7


def test_a_systemd_credential_is_the_key(world):
    broker = world.make_broker()
    directory = world.path("credentials")
    directory.mkdir()
    (directory / "muster-secrets-key").write_text("0123456789abcdef" * 4 + "\n")
    (directory / "muster-secrets-key").chmod(0o400)
    broker.env = {**broker.env, "CREDENTIALS_DIRECTORY": str(directory)}
    broker.start()
    set_secret(world, "value")
    assert not (broker.state_dir / "secrets.key").exists()
    broker.restart()
    done = set_secret(world, "another")
    assert done.secret.size_bytes == 7


def test_the_key_is_rotated_while_no_broker_runs(world, broker, agent, api, canary):
    def rotate():
        return subprocess.run([BIN / "muster-broker", "rotate-secrets-key", "--state-dir", broker.state_dir],
                              capture_output=True, text=True, timeout=60, check=False)

    assert "stop that broker first" in rotate().stderr
    broker.terminate()
    key = broker.state_dir / "secrets.key"
    old = key.read_text()
    done = rotate()
    assert done.returncode == 0 and "sealed 1 secrets" in done.stdout
    assert key.read_text() != old and key.stat().st_mode & 0o777 == 0o600
    broker.start()
    gate = world.gate()
    gate.open()
    job_id = api.submit(use(script_spec(program(gate.script()))))
    assert api.wait_end(job_id).state == SUCCEEDED
    assert api.stdout(job_id) == words(canary, "600")
