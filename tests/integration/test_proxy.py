"""deploy/proxy/muster.conf: the real nginx in front of a broker, for people with tokens."""

import pathlib
import socket
import subprocess

import pytest

from harness.http2 import CANCEL, END_HEADERS, END_STREAM, HEADERS, RST_STREAM, Http2, frame, headers
from harness.wait import eventually
from test_network_people import NOT_ALLOWED, TLS, address, ca_of, init, openssl, token_of

CONF = pathlib.Path(__file__).parents[2] / "deploy" / "proxy" / "muster.conf"
LIST_JOBS = "/muster.v1.JobsService/ListJobs"
# The attacker's address, as the proxy sees it; people come from 127.0.0.1.
ATTACKER = "127.0.0.2"
# This nginx around the file needs nothing of this machine's own.
FRAME = """
daemon off;
user root;
worker_processes 1;
pid {dir}/pid;
error_log {dir}/error.log info;
events {{ worker_connections 4096; }}
http {{
	access_log {dir}/access.log;
	client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/fastcgi;
	uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
	include {dir}/muster.conf;
}}
"""


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Proxy:
    def __init__(self, directory, broker_address, broker_ca, port):
        self.dir = directory
        self.address = f"tls:127.0.0.1:{port}"
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "site-key.pem", "-out", "site.pem",
                "-subj", "/CN=site", "-days", "1", cwd=directory)
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "request.pem", "-subj", "/CN=proxy",
                cwd=directory)
        (directory / "names").write_text("subjectAltName=IP:127.0.0.1\n")
        openssl("x509", "-req", "-in", "request.pem", "-CA", "site.pem", "-CAkey", "site-key.pem", "-CAcreateserial",
                "-extfile", "names", "-days", "1", "-out", "chain.pem", cwd=directory)
        self.ca = directory / "site.pem"
        text = CONF.read_text()
        # What the file tells its reader to put in, and nothing else.
        for told, own in {"listen 443 ": f"listen 127.0.0.1:{port} ",
                          "muster.example.org": "127.0.0.1",
                          "/etc/muster/proxy.pem": f"{directory}/chain.pem",
                          "/etc/muster/proxy-key.pem": f"{directory}/key.pem",
                          "grpcs://127.0.0.1:7443": f"grpcs://{broker_address}",
                          "/etc/muster/ca.pem": str(broker_ca)}.items():
            assert told in text
            text = text.replace(told, own)
        (directory / "muster.conf").write_text(text)
        (directory / "nginx.conf").write_text(FRAME.format(dir=directory))
        self.process = None

    def start(self):
        command = ["nginx", "-p", str(self.dir), "-e", str(self.dir / "error.log"), "-c", str(self.dir / "nginx.conf")]
        subprocess.run([*command, "-t"], check=True, capture_output=True, timeout=60)
        self.process = subprocess.Popen(command)
        eventually((self.dir / "pid").exists, "nginx runs")
        return self

    def log(self, name):
        return (self.dir / f"{name}.log").read_text()

    def statuses(self, source):
        """The answers to this address."""
        return [line.split('"')[2].split()[0] for line in self.log("access").splitlines() if line.startswith(source + " ")]

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait(timeout=60)


@pytest.fixture
def broker(world):
    init(world, world.path("broker"))
    return world.make_broker(config=TLS).start()


@pytest.fixture
def proxy(world, broker):
    directory = world.path("nginx")
    directory.mkdir()
    made = Proxy(directory, address(broker).removeprefix("tls:"), ca_of(broker), free_port())
    yield made.start()
    made.stop()


@pytest.fixture
def person(world, proxy):
    """The command on a machine that knows the proxy alone."""
    def run(*args, env=None, **kwargs):
        return world.cli(*args, broker=False, env={"XDG_CONFIG_HOME": str(world.path("laptop")), **(env or {})}, **kwargs)

    secret = world.write("token", token_of(world, "laptop"))
    secret.chmod(0o600)
    run("context", "set", "lab", "--broker", proxy.address, "--ca-file", proxy.ca, "--token-file", secret)
    run("context", "use", "lab")
    return run


def runs_a_job(person):
    assert person("run", "--wait", "--", "echo", "through the proxy").stdout == "through the proxy\n"


def test_a_person_submits_watches_and_follows_a_log(world, proxy, person, agent):
    assert person("whoami", "-q").stdout == "ada\n"
    runs_a_job(person)
    files = world.path("files")
    files.mkdir()
    (files / "text").write_text("brought along\n")
    job = person("run", "-q", "--workdir", files, "--", "cat", "text").stdout.strip()
    person("wait", job)
    assert person("logs", job).stdout == "brought along\n"
    missing = person("show", "12345", check=False)
    assert missing.returncode != 0 and "12345" in missing.stderr
    # The broker trusts the token, and not the proxy.
    world.cli("token", "revoke", "laptop")
    assert person("whoami", check=False).returncode == NOT_ALLOWED
    assert set(proxy.statuses("127.0.0.1")) == {"200"}


def test_large_headers_end_at_the_proxy(broker, proxy, person, agent):
    for size in (10_000, 1_000_000):
        attacker = Http2(proxy.address, proxy.ca, ATTACKER)
        attacker.call(1, LIST_JOBS, [("authorization", "Bearer " + "x" * size)])
        assert "200" not in proxy.statuses(ATTACKER)
        list(attacker.frames())
        attacker.close()
    eventually(lambda: "too large header" in proxy.log("error"), "the proxy tells")
    assert "200" not in proxy.statuses(ATTACKER)
    runs_a_job(person)
    broker.check_alive()


def flood(proxy):
    """Sends as many calls as a connection may have, and reads no answer."""
    attacker = Http2(proxy.address, proxy.ca, ATTACKER)
    for stream in range(1, 2000, 2):
        if not attacker.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, headers(LIST_JOBS))):
            break
    return attacker


def test_too_many_calls_end_at_the_proxy_and_others_are_served(broker, proxy, person, agent):
    # They stay open: a busy proxy throws away what it has not yet read of a connection that is closed.
    attackers = [flood(proxy) for _ in range(20)]
    eventually(lambda: "429" in proxy.statuses(ATTACKER), "the proxy refuses calls")
    for attacker in attackers:
        attacker.close()
    runs_a_job(person)
    assert "429" not in proxy.statuses("127.0.0.1")
    broker.check_alive()


def test_calls_that_are_reset_at_once_end_at_the_proxy(broker, proxy, person, agent):
    attacker = Http2(proxy.address, proxy.ca, ATTACKER)
    # This is CVE-2023-44487: none of these waits for an answer, so that no bound of open streams meets them.
    for stream in range(1, 20_001, 2):
        if not attacker.send(frame(HEADERS, END_HEADERS, stream, headers(LIST_JOBS))
                             + frame(RST_STREAM, 0, stream, CANCEL.to_bytes(4, "big"))):
            break
    # It hangs up long before all of them have come.
    list(attacker.frames())
    attacker.close()
    assert len(proxy.statuses(ATTACKER)) < 2000
    runs_a_job(person)
    broker.check_alive()


def test_agents_and_other_services_do_not_pass(world, proxy, broker, person):
    attacker = Http2(proxy.address, proxy.ca, ATTACKER)
    attacker.call(1, "/muster.agent.v1.AgentLinkService/Connect")
    eventually(lambda: proxy.statuses(ATTACKER) == ["404"], "the proxy answers itself")
    attacker.close()
