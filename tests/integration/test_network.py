"""An agent that comes over the network: invited, enrolled, connected by its certificate, renewed and revoked."""

import os
import shutil
import socket
import stat
import subprocess

import pytest
from muster.v1 import facts_pb2

from harness.api import SUCCEEDED, argv_spec
from harness.daemons import BIN
from harness.wait import eventually


def config():
    """A port of its own: an agent finds a broker that was restarted."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"heartbeat_interval: 3s\ntls:\n  listen: 127.0.0.1:{free.getsockname()[1]}\n"


def init(world, *args):
    return world.daemon_once("muster-broker", "init", *args, state_dir=world.path("broker"))


@pytest.fixture
def broker(world):
    """A broker with a CA and a network listener."""
    done = init(world)
    assert done.returncode == 0, done.stderr
    return world.make_broker(config=config()).start()


def address(broker):
    return f"127.0.0.1:{(broker.state_dir / 'broker.tls.port').read_text().strip()}"


def enroll(world, broker, token, name="lab", where=None):
    return subprocess.run(
        [BIN / "muster-agent", "enroll", "--broker", where or address(broker), "--state-dir",
         world.path(f"agent-{name}")], input=token, capture_output=True, text=True, timeout=60, check=False)


def invite(world, name="lab"):
    return world.cli("clusters", "invite", name, "-q").stdout.strip()


def remote_agent(world, broker, name="lab", **kwargs):
    agent = world.make_agent(name, **kwargs)
    agent.argv[agent.argv.index("--broker") + 1] = f"tls:{address(broker)}"
    return agent


def enrolled_agent(world, broker, name="lab"):
    done = enroll(world, broker, invite(world, name), name)
    assert done.returncode == 0, done.stderr
    return remote_agent(world, broker, name)


def test_three_commands_bring_a_remote_agent(world, broker, api):
    line = world.cli("clusters", "invite", "lab").stdout.split()
    assert line[2:7] == ["|", "muster-agent", "enroll", "--broker", address(broker)]
    done = enroll(world, broker, line[1])
    assert done.returncode == 0, done.stderr
    assert "muster-agent --cluster lab" in done.stdout
    identity = world.path("agent-lab") / "tls" / "identity.pem"
    assert stat.S_IMODE(identity.stat().st_mode) == 0o600
    remote_agent(world, broker).start()
    job = api.submit(argv_spec("/bin/echo", "from afar"))
    assert api.wait_end(job).state == SUCCEEDED
    assert api.stdout(job) == b"from afar\n"


def test_a_token_is_good_once(world, broker):
    token = invite(world)
    assert enroll(world, broker, token).returncode == 0
    again = enroll(world, broker, token, "thief")
    assert again.returncode == 1
    assert "was used already" in again.stderr
    assert not (world.path("agent-thief") / "tls").exists()


@pytest.mark.parametrize("way", ["file", "variable"])
def test_a_token_comes_from_a_file_or_a_variable(world, broker, way):
    token = invite(world)
    argv = [BIN / "muster-agent", "enroll", "--broker", address(broker), "--state-dir", world.path("agent-lab")]
    if way == "file":
        argv += ["--token-file", world.write("token", token + "\n")]
    variables = {"MUSTER_JOIN_TOKEN": token} if way == "variable" else {}
    done = subprocess.run(argv, env={**os.environ, **variables}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_a_token_is_no_argument(world, broker):
    done = subprocess.run([BIN / "muster-agent", "enroll", "--token", invite(world)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2


def test_a_token_of_another_broker_is_not_sent(world, broker):
    token = invite(world)
    wrong = token[:-64] + "0" * 64
    refused = enroll(world, broker, wrong)
    assert refused.returncode == 1
    assert "is not the broker that has made the token" in refused.stderr
    half = enroll(world, broker, token[:40])
    assert half.returncode == 1 and "not a whole token" in half.stderr
    # It was used up by neither.
    assert enroll(world, broker, token).returncode == 0


def test_an_address_without_a_broker_is_told(world, broker):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        refused = enroll(world, broker, invite(world), where=f"127.0.0.1:{nobody.getsockname()[1]}")
    assert refused.returncode == 1
    assert "does not answer by TLS" in refused.stderr


def test_a_broker_does_not_listen_without_an_identity(world):
    refused = world.daemon_once("muster-broker", "--tls-listen", "127.0.0.1:0")
    assert refused.returncode == 1
    assert "run muster-broker init" in refused.stderr


def test_a_second_ca_is_not_made(world, broker):
    before = (broker.state_dir / "ca" / "ca-key.pem").read_bytes()
    again = init(world)
    assert again.returncode == 1
    assert "has a CA already" in again.stderr
    assert (broker.state_dir / "ca" / "ca-key.pem").read_bytes() == before
    assert init(world, "--name", "a b").returncode == 1


def test_an_agent_without_a_certificate_is_told_how_to_get_one(world, broker):
    agent = remote_agent(world, broker)
    agent.launch()
    assert agent.wait_exit() == 1
    assert "muster-agent enroll" in agent.log()


def test_an_agent_speaks_for_its_cluster_alone(world, broker):
    enrolled_agent(world, broker, "lab")
    shutil.copytree(world.path("agent-lab"), world.path("agent-other"))
    agent = remote_agent(world, broker, "other")
    agent.launch()
    assert agent.wait_exit() == 1
    assert 'is of the cluster \\"lab\\"' in agent.log() or 'is of the cluster "lab"' in agent.log()


def test_two_agents_with_copies_of_one_state_directory_are_told(world, broker, api):
    agent = enrolled_agent(world, broker).start()
    agent.terminate()
    shutil.copytree(world.path("agent-lab"), world.path("agent-copy"))
    copy = remote_agent(world, broker, "copy")
    copy.argv[copy.argv.index("--cluster") + 1] = "lab"
    agent.launch()
    copy.launch()

    def issues():
        agent.check_alive()
        copy.check_alive()
        return [issue for issue in api.cluster("lab").inventory.issues
                if issue.code == facts_pb2.CLUSTER_ISSUE_CODE_AGENT_CLONED]

    assert "muster clusters revoke lab" in eventually(issues, "the copy is told")[0].remedy
    # One of them alone does not fight.
    copy.terminate()
    eventually(lambda: api.connected("lab"), "the agent is back", alive=agent.check_alive)


def test_a_revoked_cluster_is_out_until_it_is_invited_again(world, broker, api):
    agent = enrolled_agent(world, broker).start()
    world.cli("clusters", "revoke", "lab")
    eventually(lambda: not api.connected("lab"), "the link has ended")
    eventually(lambda: "was revoked" in agent.log(), "the agent is told", alive=agent.check_alive)
    broker.restart()
    eventually(lambda: agent.log().count("was revoked") > 1, "a restart forgets nothing", alive=agent.check_alive)
    assert not api.connected("lab")
    agent.terminate()
    assert enroll(world, broker, invite(world)).returncode == 0
    agent.start()


def test_an_agent_renews_its_certificate_while_it_works(world):
    assert init(world).returncode == 0
    broker = world.make_broker(config=config() + "  certificate_life: 6s\n").start()
    api = world.api(broker)
    agent = enrolled_agent(world, broker).start()
    first = (agent.state_dir / "tls" / "identity.pem").read_text()
    eventually(lambda: agent.log().count("certificate_renewed") >= 3, "it was renewed", alive=agent.check_alive)
    assert (agent.state_dir / "tls" / "identity.pem").read_text() != first
    # The first certificate has expired by now: what connects has a later one.
    job = api.submit(argv_spec("/bin/true"))
    assert api.wait_end(job).state == SUCCEEDED


def shown(broker):
    host, port = address(broker).split(":")
    done = subprocess.run(["openssl", "s_client", "-connect", f"{host}:{port}", "-alpn", "h2"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=30, check=False)
    return done.stdout[done.stdout.find("-----BEGIN"):done.stdout.find("-----END")]


def test_a_replaced_certificate_is_served_without_a_restart(world, broker):
    before = shown(broker)
    assert before
    other = world.path("other")
    assert world.daemon_once("muster-broker", "init", state_dir=other).returncode == 0
    for name in ("server-key.pem", "server.pem"):
        shutil.copy(other / "ca" / name, broker.state_dir / "ca" / f"{name}.new")
        os.replace(broker.state_dir / "ca" / f"{name}.new", broker.state_dir / "ca" / name)
    eventually(lambda: shown(broker) not in ("", before), "the new certificate is shown")
    broker.check_alive()


@pytest.mark.parametrize("version, is_taken", [("-tls1_1", False), ("-tls1_2", True), ("-tls1_3", True)])
def test_old_versions_of_tls_are_refused(broker, version, is_taken):
    done = subprocess.run(["openssl", "s_client", "-connect", address(broker), "-alpn", "h2", version],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=30, check=False)
    assert ("-----BEGIN CERTIFICATE" in done.stdout) == is_taken, done.stdout + done.stderr


def test_strangers_do_not_fill_the_log(broker):
    host, port = address(broker).split(":")
    for _ in range(100):
        with socket.create_connection((host, int(port))) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
            while stranger.recv(4096):
                pass
    # A minute may end meanwhile.
    assert 1 <= broker.log().count("andshake") <= 60
    broker.check_alive()
