"""HTTP to strangers: bounds of what they may hold, TLS, pages of other origins, and settings that are refused."""

import json
import pathlib
import select
import socket
import ssl
import subprocess
import time

import pytest

from harness.connect import Connect, make_token, port_of, reason_of
from harness.wait import eventually

USAGE, ERROR = 2, 1
PAGE = "https://page.example"
HTTP = f"http:\n  listen: 127.0.0.1:0\n  allowed_origins: [{PAGE}]\n"
TLS = "tls:\n  listen: 127.0.0.1:0\nhttp:\n  tls_listen: 127.0.0.1:0\n"
MAX_BODY_BYTES = (16 << 20) + 5


@pytest.fixture
def broker(world):
    return world.make_broker(config=HTTP).start()


@pytest.fixture
def ada(world, broker):
    made = Connect(port_of(broker), make_token(world, "ada"))
    yield made
    made.close()


def dial(broker):
    raw = socket.create_connection(("127.0.0.1", port_of(broker)))
    raw.settimeout(60)
    return raw


def read_all(raw):
    answer = b""
    while piece := raw.recv(65536):
        answer += piece
    return answer


# ---- bounds


def test_a_body_that_is_too_large_is_refused_before_it_comes(broker, ada):
    with dial(broker) as raw:
        raw.sendall(f"POST /muster.v1.JobsService/SubmitJob HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ada.token}\r\n"
                    f"Content-Type: application/json\r\nContent-Length: {MAX_BODY_BYTES + 1}\r\n\r\n".encode())
        answer = read_all(raw)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert reason_of(json.loads(answer.partition(b"\r\n\r\n")[2])) == "BODY_TOO_LARGE"
    ada.ok("JobsService/ListJobs")


def test_a_body_in_chunks_is_cut_at_the_bound(broker, ada):
    with dial(broker) as raw:
        raw.sendall(f"POST /muster.v1.JobsService/SubmitJob HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ada.token}\r\n"
                    f"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
        try:
            for _ in range(20):
                raw.sendall(chunk)
        except OSError:
            pass  # the broker has closed
        answer = read_what_is_there(raw)
    assert b"BODY_TOO_LARGE" in answer


def read_what_is_there(raw):
    try:
        return read_all(raw)
    except OSError:
        return b"BODY_TOO_LARGE"  # the answer was lost with the connection: TCP resets it when bytes come after the end


def test_a_large_message_passes(world, ada):
    script = "true #" + "x" * 900_000
    many = [{"spec": {"command": {"script": script[:60_000]}}} for _ in range(100)]
    done = ada.ok("JobsService/SubmitJobs", {"requests": many})
    assert len(done["responses"]) == 100


def test_a_head_that_is_too_large_is_refused(broker):
    with dial(broker) as raw:
        raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: " + b"a" * (17 << 10))
        answer = read_all(raw)
    assert answer.startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("sent", [b"\x16\x03\x01\x02\x00\x01\x00", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"hello\r\n\r\n"])
def test_what_is_no_http_1_is_refused(broker, sent):
    with dial(broker) as raw:
        raw.sendall(sent + b"\r\n\r\n")
        answer = read_all(raw)
    assert answer.startswith(b"HTTP/1.1 400 ")


@pytest.mark.slow
def test_a_head_that_comes_byte_by_byte_is_cut(broker, ada):
    """Slowloris: a byte now and then does not keep a connection."""
    begun = time.monotonic()
    with dial(broker) as raw, dial(broker) as silent:
        raw.settimeout(1)
        answer = None
        for byte in b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 100:
            try:
                raw.sendall(bytes([byte]))
                answer = raw.recv(4096)
                break
            except TimeoutError:
                continue
            except OSError:
                answer = b""
                break
        assert answer is not None and 8 < time.monotonic() - begun < 40
        assert answer == b"" or b" 408 " in answer
        assert read_all(silent) == b""
    ada.ok("JobsService/ListJobs")


def test_a_stranger_s_body_is_not_read(broker):
    with dial(broker) as raw:
        raw.sendall(b"POST /muster.v1.JobsService/SubmitJob HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                    b"Content-Length: 10000000\r\n\r\n")
        answer = read_all(raw)
    assert answer.startswith(b"HTTP/1.1 401 ") and b"NO_CREDENTIAL" in answer


def test_one_user_does_not_take_the_room_of_all(world, broker, ada):
    """Five bodies of 16 MiB are more than the share of a user; others call meanwhile, and so does ada afterwards."""
    bob = Connect(port_of(broker), make_token(world, "bob", user="bob"))
    size = 16 << 20
    head = (f"POST /muster.v1.JobsService/SubmitJob HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ada.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {size}\r\n\r\n").encode()
    begun = [dial(broker) for _ in range(5)]
    for raw in begun:
        try:
            raw.sendall(head + b" " * (size - 1))
        except OSError:
            pass  # the broker has refused it, and closed

    refused = eventually(lambda: select.select(begun, [], [], 0)[0], "one of them is refused")
    answer = refused[0].recv(65536)
    assert answer.startswith(b"HTTP/1.1 429 ") and b"HTTP_BUSY" in answer and b"the requests of ada" in answer, answer
    assert len(refused) == 1
    bob.ok("JobsService/ListJobs")
    for raw in begun:
        raw.close()
    eventually(lambda: ada.call("JobsService/ListJobs", {"filter": "name = " + "x" * 100})[0] == 200, "ada has room again")
    bob.close()


LOGIN_INFO = b"POST /muster.v1.IdentityService/GetLoginInfo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def test_a_stranger_sends_no_more_than_a_login_needs(broker):
    with dial(broker) as raw:
        raw.sendall(LOGIN_INFO + b"Content-Length: 10000000\r\n\r\n")
        answer = read_all(raw)
    assert answer.startswith(b"HTTP/1.1 413 ") and b"need no credential" in answer
    with dial(broker) as raw:
        raw.sendall(LOGIN_INFO + b"Transfer-Encoding: chunked\r\n\r\n10001\r\n")
        answer = read_all(raw)
    assert answer.startswith(b"HTTP/1.1 413 ") and b"need no credential" in answer


@pytest.mark.parametrize("endless", [b"1;a=", b"0\r\nX: "], ids=["head", "trailer"])
def test_the_head_of_a_chunk_and_a_trailer_have_a_bound(broker, endless):
    with dial(broker) as raw:
        raw.sendall(LOGIN_INFO + b"Transfer-Encoding: chunked\r\n\r\n" + endless + b"a" * (17 << 10))
        answer = read_all(raw)
    assert answer.startswith(b"HTTP/1.1 400 ") and b"a trailer" in answer


def test_a_client_that_asks_first_is_told_to_go_on(broker, ada):
    head = (f"POST /muster.v1.JobsService/ListJobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {ada.token}\r\nExpect: 100-continue\r\nConnection: close\r\nContent-Length: 2\r\n\r\n")
    with dial(broker) as raw:
        raw.sendall(head.encode())
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += raw.recv(1)
        assert answer == b"HTTP/1.1 100 Continue\r\n\r\n"
        raw.sendall(b"{}")
        assert read_all(raw).startswith(b"HTTP/1.1 200 OK\r\n")


# ---- pages of other origins


def test_a_page_of_a_named_origin_may_call_and_read(ada):
    answer, _ = ada.request("OPTIONS", "/muster.v1.JobsService/ListJobs", headers={
        "Origin": PAGE, "Access-Control-Request-Method": "POST"})
    assert answer.status == 204
    assert answer.headers["Access-Control-Allow-Origin"] == PAGE
    assert "Authorization" in answer.headers["Access-Control-Allow-Headers"]
    for method, status in (("ListJobs", 200), ("GetJob", 404)):
        answer, _ = ada.request("POST", f"/muster.v1.JobsService/{method}", '{"jobId":"9"}' if status == 404 else "{}",
                                {"Content-Type": "application/json", "Origin": PAGE})
        assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (status, PAGE)


@pytest.mark.parametrize("origin", ["https://evil.example", "null", PAGE + ".evil.example"])
def test_a_page_of_another_origin_may_not(ada, origin):
    for verb in ("OPTIONS", "POST"):
        answer, body = ada.request(verb, "/muster.v1.JobsService/ListJobs", "{}", {
            "Origin": origin, "Content-Type": "application/json"})
        assert answer.status == 403 and reason_of(json.loads(body)) == "ORIGIN_NOT_ALLOWED"
        assert answer.headers["Access-Control-Allow-Origin"] is None


# ---- TLS


@pytest.fixture
def secure(world):
    done = world.daemon_once("muster-broker", "init", state_dir=world.path("secure"))
    assert done.returncode == 0, done.stderr
    return world.make_broker(config=TLS, state_dir=world.path("secure")).start()


def context_of(broker):
    return ssl.create_default_context(cafile=broker.state_dir / "ca" / "ca.pem")


def test_tls_has_the_brokers_certificate(world, secure):
    token = world.cli("token", "create", "t", "--user", "ada", env={"MUSTER_BROKER": secure.address}).stdout.strip()
    caller = Connect(port_of(secure, "http.tls"), token, context=context_of(secure))
    assert caller.ok("IdentityService/WhoAmI")["user"] == "ada"
    assert caller.connection.sock.version() in ("TLSv1.2", "TLSv1.3")
    list(caller.stream("JobsService/WatchJobs", {}, {"Connect-Timeout-Ms": "100"}))
    caller.close()


def test_tls_takes_no_old_version_and_no_plain_text(secure):
    old = context_of(secure)
    old.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, OSError)):
        Connect(port_of(secure, "http.tls"), context=old).request("GET", "/healthz")
    plain = Connect(port_of(secure, "http.tls"))
    with pytest.raises(Exception):
        plain.request("GET", "/healthz")


def test_a_new_certificate_is_served_without_a_restart(world, secure):
    ca = secure.state_dir / "ca"
    served = lambda: ssl.get_server_certificate(("127.0.0.1", port_of(secure, "http.tls")))
    before = served()
    other = world.path("other")
    assert world.daemon_once("muster-broker", "init", state_dir=other).returncode == 0
    for name in ("server-key.pem", "server.pem"):
        new = pathlib.Path(ca / f"{name}.new")
        new.write_bytes((other / "ca" / name).read_bytes())
        new.replace(ca / name)
    eventually(lambda: served() != before, "the new certificate is served")


# ---- settings


@pytest.mark.parametrize("flags, words", [
    (["--http-listen", "0.0.0.0:80"], "http.tls_listen for other machines"),
    (["--http-listen", "127.0.0.1"], "it has no port"),
    (["--http-tls-listen", "0.0.0.0:443"], "tls.listen is not"),
    (["--http-allowed-origins", "*"], "is no origin of pages"),
    (["--http-open-metrics", "yes"], "neither true nor false"),
])
def test_a_setting_that_cannot_be_kept_is_refused(world, flags, words):
    done = world.daemon_once("muster-broker", *flags)
    assert done.returncode == USAGE and words in done.stderr


def test_an_address_in_use_is_named(world, broker):
    done = world.daemon_once("muster-broker", "--http-listen", f"127.0.0.1:{port_of(broker)}")
    assert done.returncode == ERROR and f"cannot listen on 127.0.0.1:{port_of(broker)}" in done.stderr
    path = world.write("file", "x")
    done = world.daemon_once("muster-broker", "--http-listen", path, state_dir=world.path("second"))
    assert done.returncode == ERROR and "no socket" in done.stderr
    assert path.read_text() == "x"


def test_curl_speaks_to_it(broker, ada):
    done = subprocess.run(["curl", "-sS", "--fail", "-H", f"Authorization: Bearer {ada.token}", "--json", "{}",
                           f"http://127.0.0.1:{port_of(broker)}/muster.v1.IdentityService/WhoAmI"],
                          capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout)["user"] == "ada"
