"""The bounds of the network listener against those who mean no good. deploy/proxy has what gRPC lacks."""

import socket
import ssl

import pytest

from harness.api import SUCCEEDED, argv_spec
from harness.http2 import GOAWAY, MAX_CONCURRENT_STREAMS, MAX_HEADER_LIST_SIZE, RST_STREAM, Http2, frame
from test_network import address, config, init

LIST_JOBS = "/muster.v1.JobsService/ListJobs"


@pytest.fixture
def broker(world):
    """A broker with a CA and a network listener."""
    assert init(world).returncode == 0
    return world.make_broker(config=config()).start()


@pytest.fixture
def ca(broker):
    return broker.state_dir / "ca" / "ca.pem"


@pytest.fixture
def still_serves(world, api, agent):
    """Others are served still."""
    def check():
        assert world.cli("whoami", "-q").stdout
        assert api.wait_end(api.submit(argv_spec("/bin/true"))).state == SUCCEEDED
        world.broker.check_alive()
    return check


def test_the_listener_tells_its_bounds(broker, ca):
    stranger = Http2(address(broker), ca)
    settings = stranger.settings()
    assert settings[MAX_HEADER_LIST_SIZE] == 8192
    assert settings[MAX_CONCURRENT_STREAMS] == 5000
    stranger.close()


def test_headers_that_are_too_large_are_refused(broker, ca, still_serves):
    stranger = Http2(address(broker), ca)
    stranger.call(1, LIST_JOBS, [("authorization", "Bearer " + "x" * 100_000)])
    assert any(kind in (RST_STREAM, GOAWAY) or stream == 1 for kind, _, stream, _ in stranger.frames())
    stranger.close()
    still_serves()


def test_a_connection_that_says_nothing_is_closed(broker, ca, still_serves):
    host, port = address(broker).split(":")
    silent = [socket.create_connection((host, int(port)), timeout=60) for _ in range(50)]
    still_serves()
    for one in silent:
        assert one.recv(1) == b""
        one.close()


def test_a_connection_that_shakes_hands_and_says_nothing_is_closed(broker, ca):
    host, port = address(broker).split(":")
    context = ssl.create_default_context(cafile=ca)
    context.set_alpn_protocols(["h2"])
    with context.wrap_socket(socket.create_connection((host, int(port)), timeout=60), server_hostname=host) as silent:
        while silent.recv(4096):
            pass


def test_half_a_frame_and_noise_end_their_connection_alone(broker, ca, still_serves):
    stranger = Http2(address(broker), ca)
    stranger.send(frame(99, 255, 7, b"\xff" * 1000) + b"\x00" * 5)
    still_serves()
    stranger.send(b"\xff" * 100_000)
    assert list(stranger.frames())
    stranger.close()
    still_serves()
