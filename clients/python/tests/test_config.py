"""The broker and the token are found as the command muster finds them."""

import hashlib

import pytest

from muster import ConfigurationError, _config
from muster._address import parse_address


def token_of(body):
    """A whole token; the broker knows none of these."""
    text = "mst_" + (body * 30)[:30]
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    for _ in range(6):
        number, digit = divmod(number, 62)
        text += _config.TOKEN_ALPHABET[digit]
    return text


TOKEN, OTHER = token_of("a"), token_of("b")


@pytest.fixture
def home(tmp_path):
    (tmp_path / ".config" / "muster").mkdir(parents=True)
    return tmp_path


def write(home, name, text, mode=0o600):
    path = home / ".config" / "muster" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def load(home, environment=None, **arguments):
    return _config.load(environment={"HOME": str(home), **(environment or {})}, **arguments)


CONTEXTS = """# Written by: muster context
current: "lab"
contexts:
  "lab":
    broker: "127.0.0.1:7070"
  "far":
    broker: "127.0.0.1:7071"
    token_file: "{token}"
"""


def test_without_anything_it_is_the_users_own_broker(home):
    assert load(home).address.text == f"unix:{home}/.local/state/muster/broker.sock"
    assert load(home, {"XDG_STATE_HOME": "/run/s"}).address.text == "unix:/run/s/muster/broker.sock"


def test_each_source_wins_over_the_next(home):
    write(home, "config.yaml", "broker: 127.0.0.1:1\n")
    assert load(home).address.text == "127.0.0.1:1"
    write(home, "contexts.yaml", CONTEXTS)
    assert load(home).address.text == "127.0.0.1:7070"
    assert load(home, {"MUSTER_CONTEXT": "far"}, token=TOKEN).address.text == "127.0.0.1:7071"
    assert load(home, {"MUSTER_CONTEXT": "far", "MUSTER_BROKER": "127.0.0.1:2"}).address.text == "127.0.0.1:2"
    assert load(home, {"MUSTER_BROKER": "127.0.0.1:2"}, context="lab").address.text == "127.0.0.1:7070"
    assert load(home, {"MUSTER_BROKER": "127.0.0.1:2"}, broker="127.0.0.1:3").address.text == "127.0.0.1:3"


def test_the_token_of_a_context_goes_to_no_other_broker(home):
    path = write(home, "token", TOKEN + "\n")
    write(home, "contexts.yaml", CONTEXTS.format(token=path))
    assert load(home, context="far").token() == TOKEN
    assert load(home, context="far", token=OTHER).token() == OTHER
    assert load(home, {"MUSTER_TOKEN": OTHER}, context="far").token() == OTHER
    assert load(home, broker="127.0.0.1:3").token() == ""


def test_a_token_that_others_may_read_is_refused(home):
    path = write(home, "token", TOKEN, mode=0o644)
    with pytest.raises(ConfigurationError, match="mode 0644"):
        load(home, token_file=str(path))


def test_a_damaged_token_is_refused_and_not_shown(home):
    with pytest.raises(ConfigurationError, match="MUSTER_TOKEN has no whole token") as caught:
        load(home, {"MUSTER_TOKEN": TOKEN[:-1] + "!"})
    assert TOKEN[4:20] not in str(caught.value)


def test_an_unknown_context_says_which_there_are(home):
    write(home, "contexts.yaml", CONTEXTS)
    with pytest.raises(ConfigurationError, match='no context "near"; there are: far, lab'):
        load(home, context="near")


def test_tls_needs_a_ca(home):
    with pytest.raises(ConfigurationError, match="needs the CA"):
        load(home, broker="tls:broker:7443")
    path = write(home, "ca.pem", "-----BEGIN CERTIFICATE-----\n")
    assert load(home, broker="tls:broker:7443", ca_file=str(path)).ca


@pytest.mark.parametrize("text, target, is_tls, stays", [
    ("unix:/run/b.sock", "unix:/run/b.sock", False, True),
    ("unix:///run/a b.sock", "unix:/run/a%20b.sock", False, True),
    ("127.0.0.1:7070", "ipv4:127.0.0.1:7070", False, True),
    ("[::1]:7070", "ipv6:[::1]:7070", False, True),
    ("broker.lab:7070", "dns:///broker.lab:7070", False, False),
    ("tls:broker.lab:7070", "dns:///broker.lab:7070", True, False),
])
def test_addresses(text, target, is_tls, stays):
    address = parse_address(text)
    assert (address.target, address.is_tls, address.stays_here) == (target, is_tls, stays)


@pytest.mark.parametrize("text", ["", "unix:", "unix:/" + "x" * 107, "host", ":1", "host:0", "host:65536", "::1:7070", "[::x]:1",
                                  "/run/b.sock", "ho st:1"])
def test_bad_addresses_show_the_forms(text):
    with pytest.raises(ConfigurationError, match="write unix:PATH, HOST:PORT or tls:HOST:PORT"):
        parse_address(text)


def test_a_token_never_travels_in_the_clear(home):
    from muster import _rpc
    with pytest.raises(ConfigurationError, match="in the clear"):
        _rpc.metadata_of(load(home, broker="broker.lab:7070", token=TOKEN))
    assert _rpc.metadata_of(load(home, broker="127.0.0.1:7070", token=TOKEN)) == [("authorization", f"Bearer {TOKEN}")]


def test_the_command_that_reads_a_job_file_gets_the_ca(tmp_path, monkeypatch):
    import muster
    program, ca = tmp_path / "muster", tmp_path / "ca.pem"
    program.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" > '{tmp_path}/said'\necho 7\n")
    program.chmod(0o755)
    ca.write_text("-----BEGIN CERTIFICATE-----\n")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with muster.Client("tls:127.0.0.1:7443", ca_file=str(ca)) as client:
        for path, file in (("-x.yaml", "./-x.yaml"), ("x.yaml", "x.yaml"), ("-", "./-")):
            assert [job.id for job in client.submit_file(path, request_id="mine", held=True)] == [7]
            assert (tmp_path / "said").read_text().split() == [
                "--ca-file", str(ca), "--broker", "tls:127.0.0.1:7443", "submit", file, "-o", "name", "--request-id", "mine", "--hold"]
