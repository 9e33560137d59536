"""The network listener as a scanner sees it, which has no certificate and means no good."""

import subprocess
import xml.etree.ElementTree

import pytest

from test_network import address, config, init


@pytest.fixture
def scan(world):
    """A report of sslscan on the listener of a broker with its own settings."""
    assert init(world).returncode == 0
    broker = world.make_broker(config=config()).start()
    done = subprocess.run(["sslscan", "--xml=-", address(broker)], capture_output=True, text=True, timeout=120, check=True)
    broker.check_alive()
    return xml.etree.ElementTree.fromstring(done.stdout).find("ssltest")


def test_a_scan_finds_tls_of_today_and_no_weakness(scan):
    enabled = {(one.get("type"), one.get("version")) for one in scan.findall("protocol") if one.get("enabled") == "1"}
    assert enabled == {("tls", "1.2"), ("tls", "1.3")}
    ciphers = {one.get("cipher") for one in scan.findall("cipher")}
    assert ciphers
    # Each has forward secrecy and authenticates what it encrypts; those of TLS 1.3 do so by definition.
    assert all(name.startswith(("TLS_", "ECDHE-")) and ("GCM" in name or "CHACHA20" in name) for name in ciphers), ciphers
    assert {int(one.get("bits")) >= 128 for one in scan.findall("group")} == {True}
    assert scan.find("renegotiation").get("supported") == "0"
    bleeding = [one.get("vulnerable") for one in scan.findall("heartbleed")]
    assert bleeding and set(bleeding) == {"0"}


def test_a_scan_finds_a_certificate_that_is_strong_and_in_time(scan):
    certificate = scan.find("certificates/certificate")
    assert certificate.find("signature-algorithm").text == "ecdsa-with-SHA256"
    assert certificate.find("pk").get("curve_name") == "prime256v1"
    assert certificate.find("expired").text == "false"
    assert "127.0.0.1" in certificate.find("altnames").text
