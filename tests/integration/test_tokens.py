"""Tokens of people, with real processes: the file of the broker, the command, and where the secret must not be."""

import json
import pathlib
import stat
import threading

import grpc
import pytest

from muster.v1 import identity_service_pb2, identity_service_pb2_grpc, jobs_service_pb2

from harness.api import CALL_TIMEOUT_S, error_info, script_spec
from harness.wait import eventually

OK, ERROR, USAGE, NOT_ALLOWED = 0, 1, 2, 4
UNAUTHENTICATED = grpc.StatusCode.UNAUTHENTICATED


def bearer(token):
    return (("authorization", f"Bearer {token}"),)


def identity_of(world, broker):
    return identity_service_pb2_grpc.IdentityServiceStub(world.api(broker).channel)


def make_token(world, name, user="ada", role="SUBMITTER", lifetime_s=3600):
    """The secret of a new token of the broker's own user's making."""
    request = identity_service_pb2.CreateTokenRequest(
        name=name, user=user, role=identity_service_pb2.AccessRole.Value(f"ACCESS_ROLE_{role}"))
    request.lifetime.seconds = lifetime_s
    return identity_of(world, world.broker).CreateToken(request, timeout=CALL_TIMEOUT_S).secret


def revoke(world, secret):
    """Revokes a token by itself."""
    identity = identity_of(world, world.broker)
    me = identity.WhoAmI(identity_service_pb2.WhoAmIRequest(), metadata=bearer(secret), timeout=CALL_TIMEOUT_S)
    identity.RevokeToken(identity_service_pb2.RevokeTokenRequest(id=me.token.id), timeout=CALL_TIMEOUT_S)


def end_of(call):
    """The error that a call ends with; None: none."""
    try:
        call()
    except grpc.RpcError as error:
        return error
    return None


def ask_who(world, broker, secret):
    """The error of WhoAmI with this token."""
    identity = identity_of(world, broker)
    return end_of(lambda: identity.WhoAmI(identity_service_pb2.WhoAmIRequest(), metadata=bearer(secret),
                                          timeout=CALL_TIMEOUT_S))


def test_the_owner_of_the_socket_is_an_admin_with_nothing_configured(world, broker):
    assert world.cli_json("whoami")["role"] == "ACCESS_ROLE_ADMIN"


def test_a_token_is_printed_once_and_speaks_for_its_user(world, broker, agent):
    done = world.cli("token", "create", "laptop", "--user", "ada", "--expires", "30d")
    secret = done.stdout.strip()
    assert secret.startswith("mst_") and len(secret) == 40
    assert secret not in done.stderr
    me = json.loads(world.cli("whoami", "-o", "json", env={"MUSTER_TOKEN": secret}).stdout)
    assert (me["user"], me["role"], me["token"]["name"]) == ("ada", "ACCESS_ROLE_SUBMITTER", "laptop")
    job = world.cli("run", "-q", "--", "true", env={"MUSTER_TOKEN": secret}).stdout.strip()
    assert world.api(broker).get(int(job)).user == "ada"
    assert secret not in world.cli("token", "list", "--all", "-o", "json").stdout
    assert "laptop" in world.cli("token", "list").stdout


def test_roles_bound_what_a_token_may_do(world, broker, agent):
    own = world.cli("run", "-q", "--hold", "--", "true").stdout.strip()
    submitter = {"MUSTER_TOKEN": make_token(world, "s")}
    viewer = {"MUSTER_TOKEN": make_token(world, "v", user="eve", role="VIEWER")}
    assert "UNKNOWN_JOB" in world.cli("show", own, env=submitter, check=False).stderr
    assert world.cli("list", "-q", env=submitter).stdout == ""
    assert world.cli("list", "-q", env=viewer).stdout.strip() == own
    assert world.cli("cancel", own, env=viewer, check=False).returncode == NOT_ALLOWED
    assert world.cli("run", "--", "true", env=viewer, check=False).returncode == NOT_ALLOWED
    assert world.cli("clusters", "box", env=viewer).returncode == OK
    greater = world.cli("token", "create", "x", "--role", "admin", env=submitter, check=False)
    assert greater.returncode == NOT_ALLOWED and "ROLE_TOO_GREAT" in greater.stderr


def test_a_revoked_token_is_not_accepted_even_after_a_restart(world, broker):
    kept, gone = make_token(world, "kept"), make_token(world, "gone")
    revoke(world, gone)
    for _ in range(2):
        assert ask_who(world, broker, kept) is None
        assert error_info(ask_who(world, broker, gone)).reason == "CREDENTIAL_NOT_ACCEPTED"
        broker.restart()
    assert "why=revoked" in broker.log()


def test_a_token_ends_at_its_time(world, broker):
    secret = make_token(world, "short", lifetime_s=1)
    eventually(lambda: ask_who(world, broker, secret) is not None, "the token ends")
    eventually(lambda: "why=expired" in broker.log(), "the log says why")
    identity = identity_of(world, broker)
    live = identity.ListTokens(identity_service_pb2.ListTokensRequest(), timeout=CALL_TIMEOUT_S)
    every = identity.ListTokens(identity_service_pb2.ListTokensRequest(include_ended=True), timeout=CALL_TIMEOUT_S)
    assert ([token.name for token in live.tokens], [token.name for token in every.tokens]) == ([], ["short"])


def test_an_open_stream_ends_when_its_token_is_revoked(world, broker, api):
    secret = make_token(world, "watcher", role="VIEWER")
    stream = api.jobs.WatchJobs(jobs_service_pb2.WatchJobsRequest(), metadata=bearer(secret), timeout=CALL_TIMEOUT_S)
    stream.initial_metadata()
    ends = []

    def read():
        try:
            for _ in stream:
                pass
        except grpc.RpcError as error:
            ends.append(error)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    revoke(world, secret)
    reader.join(CALL_TIMEOUT_S)
    assert ends[0].code() == UNAUTHENTICATED
    assert error_info(ends[0]).reason == "CREDENTIAL_NOT_ACCEPTED"


@pytest.mark.parametrize("headers", [
    ["Basic YTpi"], ["Bearer x"], ["Bearer eyJhbGciOiJub25lIn0.e30."], ["Bearer mst_" + "0" * 36], ["", ""]])
def test_a_forged_credential_never_falls_back_to_the_sockets_user(api, headers):
    metadata = tuple(("authorization", header) for header in headers)
    identity = identity_service_pb2_grpc.IdentityServiceStub(api.channel)
    with pytest.raises(grpc.RpcError) as refused:
        identity.WhoAmI(identity_service_pb2.WhoAmIRequest(), metadata=metadata, timeout=CALL_TIMEOUT_S)
    assert refused.value.code() == UNAUTHENTICATED
    with pytest.raises(grpc.RpcError) as refused:
        api.jobs.ListJobs(jobs_service_pb2.ListJobsRequest(), metadata=metadata, timeout=CALL_TIMEOUT_S)
    assert refused.value.code() == UNAUTHENTICATED


def test_a_listener_without_a_role_lets_in_tokens_alone(world):
    broker = world.make_broker("--listen", "127.0.0.1:0", "--listen-role", "none").start()
    address = f"127.0.0.1:{broker.tcp_port()}"
    refused = world.cli("--broker", address, "list", check=False)
    assert refused.returncode == NOT_ALLOWED and "CREDENTIAL_MISSING" in refused.stderr
    secret = make_token(world, "laptop")
    assert world.cli("--broker", address, "list", env={"MUSTER_TOKEN": secret}).returncode == OK


def test_a_context_brings_its_broker_and_its_token(world, broker):
    path = world.root / "lab.token"
    made = world.cli("token", "create", "laptop", "--user", "ada", "--file", path)
    assert made.stdout == ""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = world.cli("token", "create", "other", "--file", path, check=False)
    assert again.returncode != OK and "token list" not in again.stderr
    assert "other" not in world.cli("token", "list").stdout
    world.cli("context", "set", "lab", "--broker", broker.address, "--token-file", path, broker=False)
    world.cli("context", "use", "lab", broker=False)
    assert world.cli("whoami", "-q", broker=False).stdout == "ada\n"
    assert world.cli("context", "list", "-q", broker=False).stdout == "lab\n"
    # Another broker does not get the context's token.
    assert world.cli("whoami", "-q").stdout != "ada\n"
    assert world.cli("--context", "lab", "whoami", "-q").stdout == "ada\n"
    path.chmod(0o644)
    assert "chmod 600" in world.cli("whoami", broker=False, check=False).stderr
    world.cli("context", "delete", "lab", broker=False)
    unknown = world.cli("--context", "lab", "whoami", broker=False, check=False)
    assert unknown.returncode == USAGE and "there is no context" in unknown.stderr


def test_the_secret_is_nowhere_but_with_its_owner(world, broker, agent):
    secret = make_token(world, "canary")
    environment = {"MUSTER_TOKEN": secret}
    job = world.cli("run", "-q", "--", "sh", "-c", "env", env=environment).stdout.strip()
    world.cli("wait", job, env=environment)
    world.cli_start("events", "-f", env=environment)
    broker.restart()
    canary = secret[4:].encode()
    for path in [*pathlib.Path("/proc").glob("[0-9]*/cmdline"), *filter(pathlib.Path.is_file, world.root.rglob("*"))]:
        try:
            assert canary not in path.read_bytes(), path
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    assert secret not in world.cli("logs", job, env=environment).stdout
    assert "token_created" in broker.log()


def test_the_log_names_refused_credentials_a_bounded_number_of_times(world, broker, api):
    identity = identity_service_pb2_grpc.IdentityServiceStub(api.channel)
    for _ in range(100):
        with pytest.raises(grpc.RpcError):
            identity.WhoAmI(identity_service_pb2.WhoAmIRequest(), metadata=bearer("x"), timeout=CALL_TIMEOUT_S)
    # A minute may end meanwhile.
    assert 30 <= broker.log().count("credential_refused") <= 60


def test_a_submit_by_token_is_the_users(api, world, broker):
    secret = make_token(world, "ci", user="build")
    request = jobs_service_pb2.SubmitJobRequest(spec=script_spec("true", nodes=1))
    job = api.jobs.SubmitJob(request, metadata=bearer(secret), timeout=CALL_TIMEOUT_S).job_id
    assert api.get(job).user == "build"
