"""People who come over the network with a token: contexts, real TLS, and certificates that are wrong in every way."""

import os
import pathlib
import re
import socket
import subprocess
import threading

import grpc
import pytest

from muster.v1 import identity_service_pb2, identity_service_pb2_grpc

from harness.api import CALL_TIMEOUT_S
from harness.wait import eventually

OK, ERROR, USAGE, NOT_ALLOWED = 0, 1, 2, 4
TLS = "tls:\n  listen: 127.0.0.1:0\n"


def init(world, state_dir, *args):
    done = world.daemon_once("muster-broker", "init", *args, state_dir=state_dir)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def broker(world):
    """A broker with a CA and a network listener."""
    init(world, world.path("broker"))
    return world.make_broker(config=TLS).start()


def address(broker, host="127.0.0.1"):
    return f"tls:{host}:{(broker.state_dir / 'broker.tls.port').read_text().strip()}"


@pytest.fixture
def laptop(world):
    """The command on another machine: nothing of this one's broker is set there."""
    def run(*args, **kwargs):
        env = {"XDG_CONFIG_HOME": str(world.path("laptop")), **kwargs.pop("env", {})}
        return world.cli(*args, broker=False, env=env, **kwargs)
    return run


def bundle_of(world, name="laptop", *args):
    return world.cli("token", "create", name, "--user", "ada", "--bundle", *args).stdout


def token_of(world, name, **kwargs):
    return world.cli("token", "create", name, "--user", "ada", **kwargs).stdout.strip()


def ca_of(broker):
    return broker.state_dir / "ca" / "ca.pem"


def openssl(*args, cwd):
    subprocess.run(["openssl", *map(str, args)], cwd=cwd, check=True, capture_output=True, timeout=60)


def test_two_commands_bring_a_laptop(world, broker, agent, laptop):
    bundle = bundle_of(world)
    laptop("context", "import", "lab", input=bundle)
    assert laptop("whoami", "-q").stdout == "ada\n"
    job = laptop("run", "-q", "--", "echo", "from afar").stdout.strip()
    laptop("wait", job)
    assert laptop("logs", job).stdout == "from afar\n"
    assert world.api(broker).get(int(job)).user == "ada"
    own = world.path("laptop") / "muster" / "contexts"
    assert {path.name: path.stat().st_mode & 0o777 for path in own.iterdir()} == {
        "lab.token": 0o600, "lab.ca.pem": 0o600}
    assert re.search(r"mst_\w+", bundle)[0] not in (own.parent / "contexts.yaml").read_text()


def test_a_bundle_in_a_file_and_a_second_one_replaces_the_context(world, broker, laptop):
    path = world.path("lab.bundle")
    assert bundle_of(world, "one", "--file", path) == ""
    assert path.stat().st_mode & 0o777 == 0o600
    laptop("context", "import", "lab", "--file", path)
    first = laptop("whoami", "-o", "json").stdout
    laptop("context", "import", "lab", input=bundle_of(world, "two"))
    assert '"one"' in first and '"two"' in laptop("whoami", "-o", "json").stdout


@pytest.mark.parametrize("spoil, words", [
    (lambda text: text[:text.index("ca:")], "no whole bundle"),
    (lambda text: text[:60], "not valid YAML"),
    (lambda text: text.replace("mst_", "mst_x"), "has no whole token"),
    (lambda text: text.replace("tls:", "unix:"), "is not one of TLS"),
    (lambda text: text.replace("MII", "M", 1), "no whole certificate"),
    (lambda text: text + "\nport: 1\n", "port"),
    (lambda text: "", "no whole bundle")])
def test_half_a_bundle_changes_nothing(world, broker, laptop, spoil, words):
    refused = laptop("context", "import", "lab", input=spoil(bundle_of(world)), check=False)
    assert refused.returncode == USAGE and words in refused.stderr
    assert laptop("context", "list", "-q").stdout == ""
    odd = laptop("context", "import", "../lab", input=bundle_of(world, "again"), check=False)
    assert odd.returncode == USAGE and "cannot be the name" in odd.stderr


def test_the_fingerprint_alone_brings_the_ca(world, broker, laptop):
    shown = world.cli_json("whoami")["network"]
    assert shown["address"] == address(broker)
    secret = world.write("token", token_of(world, "laptop"))
    secret.chmod(0o600)
    told = shown["ca_fingerprint"]
    colons = ":".join(told[i:i + 2] for i in range(0, 64, 2)).upper()
    laptop("context", "set", "lab", "--broker", shown["address"], "--fingerprint", colons, "--token-file", secret)
    assert laptop("--context", "lab", "whoami", "-q").stdout == "ada\n"
    wrong = laptop("context", "set", "other", "--broker", shown["address"], "--fingerprint", "0" * 64, check=False)
    assert wrong.returncode == USAGE and "shows no CA with the fingerprint" in wrong.stderr
    half = laptop("context", "set", "other", "--broker", shown["address"], "--fingerprint", told[:60], check=False)
    assert half.returncode == USAGE and "is no fingerprint" in half.stderr
    assert laptop("context", "list", "-q").stdout == "lab\n"


def test_a_bundle_needs_a_network_listener(world):
    world.make_broker().start()
    refused = world.cli("token", "create", "laptop", "--bundle", check=False)
    assert refused.returncode == ERROR and "has no network listener" in refused.stderr
    assert world.cli("token", "list", "-q").stdout == ""


def test_what_the_caller_lacks_is_told(world, broker, laptop):
    where = ("--broker", address(broker))
    no_ca = laptop(*where, "list", check=False)
    assert no_ca.returncode == USAGE and "needs the CA" in no_ca.stderr
    ca = ("--ca-file", ca_of(broker))
    nobody = laptop(*where, *ca, "list", check=False)
    assert nobody.returncode == NOT_ALLOWED and "people need a token" in nobody.stderr
    empty = world.write("empty.pem", "nothing\n")
    no_pem = laptop(*where, "list", check=False, env={"MUSTER_CA_FILE": str(empty)})
    assert no_pem.returncode == USAGE and "no whole certificate" in no_pem.stderr


def test_a_revoked_and_an_expired_token_are_answered_alike(world, broker, laptop):
    where = ("--broker", address(broker), "--ca-file", ca_of(broker))
    gone = token_of(world, "gone")
    world.cli("token", "revoke", "gone")
    short = world.cli("token", "create", "short", "--expires", "1s", "--user", "ada").stdout.strip()
    eventually(lambda: laptop(*where, "list", env={"MUSTER_TOKEN": short}, check=False).returncode == NOT_ALLOWED,
               "the token ends")
    answers = {laptop(*where, "list", env={"MUSTER_TOKEN": token}, check=False).stderr for token in (gone, short)}
    assert len(answers) == 1 and "is unknown here, has expired or was revoked" in answers.pop()
    eventually(lambda: "why=revoked" in broker.log() and "why=expired" in broker.log(), "the log has the case")


def test_a_watch_over_tls_ends_with_its_token(world, broker, laptop):
    laptop("context", "import", "lab", input=bundle_of(world))
    ends = []
    watch = threading.Thread(target=lambda: ends.append(laptop("events", "-f", check=False)))
    watch.start()
    eventually(lambda: world.cli_json("token", "list")["tokens"][0].get("last_use_time"), "the watch has begun")
    world.cli("token", "revoke", "laptop")
    watch.join(CALL_TIMEOUT_S)
    assert ends[0].returncode == NOT_ALLOWED and "CREDENTIAL_NOT_ACCEPTED" in ends[0].stderr


def serve(broker, certificate, key):
    """Puts another certificate into the place of the broker's, which takes it without a restart."""
    for name, text in (("server-key.pem", key), ("server.pem", certificate)):
        path = broker.state_dir / "ca" / name
        path.with_suffix(".new").write_text(text)
        os.replace(path.with_suffix(".new"), path)


class Site:
    """A site's own CA, an intermediate one below it, and what they sign."""

    def __init__(self, root):
        self.root = root
        root.mkdir()
        self._make("root", "CA:TRUE", None)
        self._make("middle", "CA:TRUE", "root")

    def _make(self, name, constraint, by, names="IP:127.0.0.1", usage="", span=("20200101000000Z", "20991231235959Z")):
        (self.root / f"{name}.cnf").write_text(
            f"[ca]\ndefault_ca=d\n[d]\nnew_certs_dir=.\ndatabase={name}.index\nserial={name}.serial\ndefault_md=sha256\n"
            "policy=p\nunique_subject=no\n[p]\ncommonName=supplied\n"
            f"[e]\nbasicConstraints=critical,{constraint}\n"
            + ("" if constraint == "CA:TRUE" else f"subjectAltName={names}\nextendedKeyUsage={usage}\n"))
        (self.root / f"{name}.index").write_text("")
        (self.root / f"{name}.serial").write_text(f"{abs(hash(name)) % 10**6:08d}\n")
        openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                "-keyout", f"{name}.key", "-out", f"{name}.csr", cwd=self.root)
        signer = ("-selfsign", "-keyfile", f"{name}.key") if by is None else (
            "-cert", f"{by}.pem", "-keyfile", f"{by}.key")
        openssl("ca", "-batch", "-notext", "-config", f"{name}.cnf", "-extensions", "e", *signer, "-startdate", span[0],
                "-enddate", span[1], "-in", f"{name}.csr", "-out", f"{name}.pem", cwd=self.root)

    def text(self, name):
        return (self.root / name).read_text()

    def server(self, name, by="middle", usage="serverAuth", **kwargs):
        """Certificate with its chain, and key."""
        self._make(name, "CA:FALSE", by, usage=usage, **kwargs)
        chain = self.text(f"{name}.pem") + (self.text("middle.pem") if by == "middle" else "") + self.text("root.pem")
        return chain, self.text(f"{name}.key")


@pytest.fixture
def site(world):
    return Site(world.path("site"))


PAST = ("20200101000000Z", "20210101000000Z")
FUTURE = ("20980101000000Z", "20991231235959Z")


@pytest.mark.parametrize("kind, words", [
    ({"span": PAST}, "has expired on 2021-01-01"),
    ({"span": FUTURE}, "is valid only from 2098-01-01"),
    ({"names": "DNS:head.lab"}, 'does not name "127.0.0.1"'),
    ({"usage": "clientAuth"}, "is for another purpose")])
def test_a_wrong_certificate_of_the_right_ca_gets_no_token(world, broker, laptop, site, kind, words):
    serve(broker, *site.server("server", **kind))
    where = ("--broker", address(broker), "--ca-file", site.root / "root.pem")
    env = {"MUSTER_TOKEN": token_of(world, "laptop")}

    def refusal():
        done = laptop(*where, "list", env=env, check=False)
        assert done.returncode == NOT_ALLOWED and "BROKER_NOT_TRUSTED" in done.stderr
        return done.stderr

    eventually(lambda: words in refusal(), "the new certificate is shown")
    assert "credential_refused" not in broker.log()


def test_a_sites_own_chain_is_good_and_another_ca_is_not(world, broker, laptop, site):
    before = ca_of(broker).read_text()
    serve(broker, *site.server("server"))
    where = ("--broker", address(broker), "whoami", "-q")
    env = {"MUSTER_TOKEN": token_of(world, "laptop")}
    root = site.root / "root.pem"
    eventually(lambda: laptop("--ca-file", root, *where, env=env, check=False).stdout == "ada\n", "the chain is served")
    wrong = laptop("--ca-file", world.write("old.pem", before), *where, env=env, check=False)
    assert wrong.returncode == NOT_ALLOWED and "is not signed by the CA" in wrong.stderr
    # The bundle takes the CA at the end of the chain.
    laptop("context", "import", "lab", input=bundle_of(world, "second"))
    assert laptop("whoami", "-q").stdout == "ada\n"


def test_an_address_of_the_other_kind_is_told_at_once(world, laptop):
    init(world, world.path("broker"))
    broker = world.make_broker("--listen", "127.0.0.1:0", config=TLS).start()
    plain = f"127.0.0.1:{broker.tcp_port()}"
    no_tls = laptop("--broker", f"tls:{plain}", "--ca-file", ca_of(broker), "list", check=False)
    assert no_tls.returncode == ERROR and "NO_TLS_THERE" in no_tls.stderr
    assert "trying again" not in no_tls.stderr
    tls = laptop("--broker", address(broker)[4:], "list", check=False)
    assert tls.returncode == ERROR and f"write {address(broker)}" in tls.stderr
    # A token does not travel in the clear.
    clear = laptop("--broker", "head.lab:7443", "list", env={"MUSTER_TOKEN": token_of(world, "x")}, check=False)
    assert clear.returncode == USAGE and "use tls:head.lab:7443" in clear.stderr


def test_another_broker_in_the_place_of_ours_gets_nothing(world, broker, laptop):
    laptop("context", "import", "lab", input=bundle_of(world))
    port = address(broker).rpartition(":")[2]
    broker.terminate()
    init(world, world.path("thief"))
    thief = world.make_broker("--tls-listen", f"127.0.0.1:{port}", state_dir=world.path("thief")).start()
    refused = laptop("list", check=False)
    assert refused.returncode == NOT_ALLOWED and "BROKER_NOT_TRUSTED" in refused.stderr
    assert "credential_refused" not in thief.log()


def test_other_clients_come_with_ca_and_token(world, broker):
    credentials = grpc.ssl_channel_credentials(ca_of(broker).read_bytes())
    with grpc.secure_channel(address(broker)[4:], credentials) as channel:
        identity = identity_service_pb2_grpc.IdentityServiceStub(channel)
        me = identity.WhoAmI(identity_service_pb2.WhoAmIRequest(), timeout=CALL_TIMEOUT_S,
                             metadata=(("authorization", f"Bearer {token_of(world, 'x')}"),))
        assert (me.user, me.network.address) == ("ada", address(broker))


def test_a_bundle_stays_with_its_owner(world, broker, laptop):
    secret = re.search(r"mst_\w+", bundle_of(world))[0]
    for path in filter(pathlib.Path.is_file, world.root.rglob("*")):
        assert secret.encode() not in path.read_bytes(), path
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        down = laptop("--broker", f"tls:127.0.0.1:{free.getsockname()[1]}", "--ca-file", ca_of(broker), "-q", "list",
                      env={"MUSTER_TOKEN": secret}, check=False)
    assert down.returncode == ERROR and secret not in down.stderr and "--tls-listen" in down.stderr
