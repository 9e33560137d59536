"""People whom an identity provider knows: a real OpenID provider, its tokens and forged ones, and muster login."""

import base64
import json
import re
import stat
import time

import grpc
import pytest

from muster.v1 import (audit_service_pb2, clusters_service_pb2, files_service_pb2, identity_service_pb2,
                       identity_service_pb2_grpc, jobs_service_pb2, projects_service_pb2, secrets_service_pb2)

from harness.api import CALL_TIMEOUT_S, argv_spec, error_info
from harness.oidc import Provider
from harness.wait import eventually

OK, ERROR, USAGE, NOT_ALLOWED, TIME_OUT = 0, 1, 2, 4, 8
SERVICES = [file.DESCRIPTOR for file in (audit_service_pb2, clusters_service_pb2, files_service_pb2, identity_service_pb2,
                                         jobs_service_pb2, projects_service_pb2, secrets_service_pb2)]
NOT_ACCEPTED = ("the token is not accepted: it is unknown here, has expired or was revoked; log in again (muster login), "
                "make another one, or ask the operator of the broker for one")


@pytest.fixture
def provider(world):
    made = Provider(world.path("provider"))
    yield made
    made.close()


def settings(provider, **changes):
    """The broker's file: JSON is YAML."""
    oidc = {"issuer": provider.issuer, "audience": "muster", "ca_file": str(provider.ca_file),
            "user_roles": {"root@example.org": "admin"}, "group_roles": {"ml": "submitter"}, **changes}
    return json.dumps({"oidc": oidc, "heartbeat_interval": "3s"})


def start(world, provider, *args, has_keys=True, **changes):
    broker = world.make_broker(*args, config=settings(provider, **changes)).start()
    if has_keys:
        eventually(lambda: "oidc_keys" in broker.log(), "the broker has the provider's keys")
    return broker


@pytest.fixture
def broker(world, provider):
    return start(world, provider)


def claims(provider, person="ada", seconds=300, **changes):
    now = int(time.time())
    return {"iss": provider.issuer, "aud": "muster", "sub": person, "email": f"{person}@example.org",
            "email_verified": True, "groups": ["ml"], "iat": now, "exp": now + seconds, **changes}


def bearer(token):
    return (("authorization", f"Bearer {token}"),)


def ask_who(world, token):
    """The answer of WhoAmI, or its error."""
    identity = identity_service_pb2_grpc.IdentityServiceStub(world.api().channel)
    try:
        return identity.WhoAmI(identity_service_pb2.WhoAmIRequest(), metadata=bearer(token), timeout=CALL_TIMEOUT_S)
    except grpc.RpcError as error:
        return error


def is_accepted(world, token):
    return isinstance(ask_who(world, token), identity_service_pb2.WhoAmIResponse)


def is_refused(world, token):
    answer = ask_who(world, token)
    return isinstance(answer, grpc.RpcError) and answer.code() == grpc.StatusCode.UNAUTHENTICATED


# ---- tokens at the broker


@pytest.mark.parametrize("key", ["rs", "es"])
def test_a_token_of_the_provider_says_who_asks(world, provider, broker, key):
    me = ask_who(world, provider.sign(key, **claims(provider, groups=["ml", "x"])))
    assert (me.user, me.role, me.credential) == ("oidc:ada@example.org", identity_service_pb2.ACCESS_ROLE_SUBMITTER,
                                                 identity_service_pb2.CREDENTIAL_KIND_OIDC)
    assert list(me.groups) == ["ml", "x"]
    assert me.expire_time.seconds > time.time() and not me.HasField("token")
    root = ask_who(world, provider.sign(key, **claims(provider, "root")))
    assert root.role == identity_service_pb2.ACCESS_ROLE_ADMIN


def test_somebody_without_a_role_may_do_what_a_group_gives_in_a_project(world, provider, broker):
    token = provider.sign(**claims(provider, groups=["speech"]))
    jobs = world.api().jobs

    def list_jobs():
        return jobs.ListJobs(jobs_service_pb2.ListJobsRequest(), metadata=bearer(token), timeout=CALL_TIMEOUT_S)

    assert ask_who(world, token).role == identity_service_pb2.ACCESS_ROLE_MEMBER
    with pytest.raises(grpc.RpcError) as refused:
        list_jobs()
    assert refused.value.code() == grpc.StatusCode.PERMISSION_DENIED
    assert "oidc:ada@example.org, as member" in refused.value.details()
    world.cli("project", "create", "speech")
    world.cli("project", "add", "speech", "speech", "--group", "--role", "viewer")
    job = world.api().submit(argv_spec("true", project="speech"), held=True)
    world.api().submit(argv_spec("true"), held=True)
    assert [seen.id for seen in list_jobs().jobs] == [job]
    me = ask_who(world, token)
    assert [(one.project, one.group) for one in me.memberships] == [("speech", "speech")]


def unsigned(token):
    header = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    return f"{header}.{token.split('.')[1]}."


def test_two_providers_judge_their_own_tokens_alone(world, provider):
    """The same person at both is two users; a key of the one signs nothing of the other."""
    other = Provider(world.path("other"))
    try:
        corp = {"name": "corp", "issuer": other.issuer, "audience": "lab", "ca_file": str(other.ca_file),
                "user_roles": {"ada@example.org": "admin"}}
        broker = start(world, provider, issuers=[corp])
        eventually(lambda: broker.log().count("oidc_keys") >= 2, "the broker has the keys of both")
        mine, theirs = claims(provider), {**claims(other), "aud": "lab"}
        me = ask_who(world, provider.sign(**mine))
        assert (me.user, me.role) == ("oidc:ada@example.org", identity_service_pb2.ACCESS_ROLE_SUBMITTER)
        they = ask_who(world, other.sign(**theirs))
        assert (they.user, they.role) == ("oidc:corp:ada@example.org", identity_service_pb2.ACCESS_ROLE_ADMIN)
        assert list(they.groups) == ["corp:ml"]
        for forged in (provider.sign(**theirs), other.sign(**mine), provider.sign(**{**mine, "aud": "lab"}),
                       other.sign(**{**theirs, "iss": "https://id.evil"}),
                       provider.sign(**{**mine, "email": "corp:ada@example.org"})):
            assert is_refused(world, forged)
        # The one does not see the jobs of the other.
        jobs = world.api().jobs
        job = jobs.SubmitJob(jobs_service_pb2.SubmitJobRequest(spec=argv_spec("true"), held=True),
                             metadata=bearer(other.sign(**theirs)), timeout=CALL_TIMEOUT_S).job_id
        assert world.api().get(job).user == "oidc:corp:ada@example.org"
        with pytest.raises(grpc.RpcError) as hidden:
            jobs.GetJob(jobs_service_pb2.GetJobRequest(job_id=job), metadata=bearer(provider.sign(**mine)),
                        timeout=CALL_TIMEOUT_S)
        assert hidden.value.code() == grpc.StatusCode.NOT_FOUND
        info = identity_service_pb2_grpc.IdentityServiceStub(world.api().channel).GetLoginInfo(
            identity_service_pb2.GetLoginInfoRequest(), timeout=CALL_TIMEOUT_S)
        assert info.issuer == provider.issuer, "clients log in at the first"
    finally:
        other.close()


FORGERIES = {
    "jwt_issuer": lambda p: p.sign(**claims(p, iss="https://evil.example")),
    "jwt_audience": lambda p: p.sign(**claims(p, aud="other")),
    "jwt_expired": lambda p: p.sign(**claims(p, seconds=-100)),
    "jwt_not_yet": lambda p: p.sign(**claims(p, iat=int(time.time()) + 200)),
    "jwt_unknown_key": lambda p: p.sign("stranger", **claims(p)),
    "jwt_signature": lambda p: p.sign("stranger", {"kid": "rs-1"}, **claims(p)),
    "jwt_algorithm": lambda p: unsigned(p.sign(**claims(p))),
    "jwt_header": lambda p: p.sign("stranger", {"jku": "https://evil.example/keys"}, **claims(p)),
    "jwt_user": lambda p: p.sign(**claims(p, email_verified=False)),
    "jwt_groups": lambda p: p.sign(**claims(p, groups=[1])),
    "jwt_form": lambda p: "a.b.c",
}


@pytest.mark.parametrize("reason", FORGERIES)
def test_no_call_is_answered_with_a_token_that_is_not_good(world, provider, broker, reason):
    token = FORGERIES[reason](provider)
    channel = world.api(broker).channel
    calls = [f"/{service.full_name}/{call.name}" for file in SERVICES
             for service in file.services_by_name.values() for call in service.methods]
    assert len(calls) > 30
    for call in calls:
        with pytest.raises(grpc.RpcError) as refused:
            channel.unary_unary(call)(b"", metadata=bearer(token), timeout=CALL_TIMEOUT_S)
        # The words are the same for each reason, so they tell nothing.
        assert (refused.value.code(), refused.value.details()) == (grpc.StatusCode.UNAUTHENTICATED, NOT_ACCEPTED), call
    assert f"why={reason}" in broker.log()


def test_clocks_may_differ_by_the_skew(world, provider):
    start(world, provider, clock_skew="2m")
    assert is_accepted(world, provider.sign(**claims(provider, seconds=-100)))
    assert is_accepted(world, provider.sign(**claims(provider, nbf=int(time.time()) + 100)))
    assert is_refused(world, provider.sign(**claims(provider, seconds=-130)))


def test_a_stream_ends_with_its_token(world, provider):
    broker = start(world, provider, clock_skew="0s")
    # Long enough to begin the stream on a busy machine.
    token = provider.sign(**claims(provider, seconds=10))
    stream = world.api(broker).jobs.WatchJobs(jobs_service_pb2.WatchJobsRequest(), metadata=bearer(token),
                                              timeout=CALL_TIMEOUT_S)
    stream.initial_metadata()
    with pytest.raises(grpc.RpcError) as ended:
        for _ in stream:
            pass
    assert error_info(ended.value).reason == "CREDENTIAL_NOT_ACCEPTED"


def test_a_token_of_the_provider_makes_none_that_outlives_it(world, provider, broker):
    identity = identity_service_pb2_grpc.IdentityServiceStub(world.api().channel)
    request = identity_service_pb2.CreateTokenRequest(name="mine")
    with pytest.raises(grpc.RpcError) as refused:
        identity.CreateToken(request, metadata=bearer(provider.sign(**claims(provider))), timeout=CALL_TIMEOUT_S)
    assert error_info(refused.value).reason == "TOKEN_OUTLIVES_LOGIN"
    request.user = "sa:build"
    admin = bearer(provider.sign(**claims(provider, "root")))
    assert identity.CreateToken(request, metadata=admin, timeout=CALL_TIMEOUT_S).token.user == "sa:build"


# ---- the provider's keys


def test_a_rotated_key_is_fetched_when_a_token_names_it(world, provider, broker):
    old = provider.sign(**claims(provider))
    assert is_accepted(world, old)
    provider.tell("rotate")
    new = provider.sign(**claims(provider))
    eventually(lambda: is_accepted(world, new), "the new key is known")
    assert is_refused(world, old)


def test_a_broker_starts_without_its_provider_and_keeps_the_keys_when_it_is_away(world, provider):
    token = provider.sign(**claims(provider))
    provider.tell("close")
    broker = start(world, provider, has_keys=False)
    eventually(lambda: "oidc_provider_away" in broker.log(), "the log says so")
    assert world.cli("list").returncode == OK
    assert ask_who(world, token).details() == NOT_ACCEPTED
    assert "why=oidc_no_keys" in broker.log()
    provider.tell("listen")
    eventually(lambda: is_accepted(world, token), "the keys are fetched")
    provider.tell("close")
    # A key that nobody knows makes the broker ask, in vain.
    assert is_refused(world, provider.sign("stranger", **claims(provider)))
    eventually(lambda: broker.log().count("oidc_provider_away") == 2, "the log says so again")
    assert is_accepted(world, token)
    assert broker.terminate() == OK


def test_a_provider_for_which_no_certificate_vouches_is_not_believed(world, provider):
    other = Provider(world.path("other"))
    broker = start(world, provider, has_keys=False, ca_file=str(other.ca_file))
    eventually(lambda: "oidc_provider_away" in broker.log(), "the log says so")
    assert "certificate" in broker.log()
    assert is_refused(world, provider.sign(**claims(provider)))
    other.close()


@pytest.mark.parametrize("changes, word", [
    ({"audience": ""}, "oidc.audience"), ({"issuer": "http://id.example"}, "oidc.issuer"), ({"issuer": "", "role": "none"}, "oidc.issuer"),
    ({"clock_skew": "11m"}, "10m"), ({"group_roles": {"ml": "root"}}, "root"), ({"ca_file": "/nowhere"}, "oidc.ca_file"),
    ({"scopes": "email"}, "openid"), ({"username_claim": ""}, "oidc.username_claim"),
    ({"issuers": "corp"}, "expected a list"), ({"issuers": [{"issuer": "https://id.example"}]}, "entry 1 has no name"),
    ({"issuers": [{"name": "Corp"}]}, "no name of an identity provider"),
    ({"issuers": [{"name": "corp", "colour": "x"}]}, 'unknown key "colour"'),
    ({"issuers": [{"name": "corp"}]}, "needs oidc.issuers, corp: issuer"),
    ({"issuers": [{"name": "corp", "issuer": "https://id.example"}]}, "needs oidc.issuers, corp: audience"),
    ({"issuers": [{"name": one, "issuer": "https://id.example", "audience": "m"} for one in "ab"]}, "is there twice"),
    ({"issuers": [{"name": "a", "issuer": f"https://{one}.example", "audience": "m"} for one in "ab"]}, "have the name"),
    ({"issuers": [{"name": "a", "issuer": "https://a.example", "audience": "m", "scopes": "openid"}]}, "oidc.issuers, a: scopes")])
def test_a_setting_that_does_not_fit_is_named(world, provider, changes, word):
    path = world.write("refused.yaml", settings(provider, **changes))
    refused = world.daemon_once("muster-broker", "--config", path)
    assert refused.returncode == USAGE and word in refused.stderr, refused.stderr


# ---- muster login


@pytest.fixture
def lab(world, broker):
    """The context in which the commands of a test run."""
    world.cli("context", "set", "lab", "--broker", broker.address)
    world.cli("context", "use", "lab")
    return broker


def prompt(command):
    """The address and the code that muster login shows."""
    shown = eventually(lambda: re.search(r"Open (\S+) in any browser and enter the code (\S+)", command.errors()),
                       "the code is shown")
    return shown.groups()


def log_in(world, provider, person="ada"):
    command = world.cli_start("--context", "lab", "login")
    provider.browser().approve(*prompt(command), person)
    assert command.wait() == OK, command.errors()
    return command


def login_file(world):
    files = [path for path in world.path(".config/muster/logins").iterdir() if path.suffix == ".json"]
    return files[0] if files else None


def user(world, **kwargs):
    return world.cli("whoami", "-q", broker=False, **kwargs)


def test_a_person_logs_in_with_a_browser_elsewhere(world, provider, lab):
    provider.tell("set", groups=["ml"])
    command = log_in(world, provider)
    assert "oidc:ada@example.org, submitter, known by the identity provider" in command.output().decode()
    assert user(world).stdout.strip() == "oidc:ada@example.org"
    path = login_file(world)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for secret in ("id_token", "refresh_token"):
        assert json.loads(path.read_text())[secret] not in command.output().decode() + command.errors() + lab.log()
    # The login is the context's, and goes to no broker that something else names.
    assert world.cli("whoami", "-o", "json").stdout.count("CREDENTIAL_KIND_SOCKET") == 1
    assert "of the groups ml" in world.cli("whoami", broker=False).stdout


def test_es256_is_as_good(world, provider):
    broker = start(world, provider, audience="muster-es", role="viewer")
    world.cli("context", "set", "lab", "--broker", broker.address)
    assert "oidc:eve@example.org, viewer" in log_in(world, provider, "eve").output().decode()


def test_a_token_is_renewed_before_it_ends_and_once_for_all_commands(world, provider, lab):
    # Shorter than what is left when a token is renewed: each command wants another one.
    provider.tell("set", groups=["ml"], idTokenSeconds=20)
    log_in(world, provider)
    before = json.loads(login_file(world).read_text())
    commands = [world.cli_start("--context", "lab", "whoami", "-q") for _ in range(8)]
    # A refresh token that is used twice would end the login for all of them.
    assert [command.wait() for command in commands] == [OK] * 8, [command.errors() for command in commands]
    after = json.loads(login_file(world).read_text())
    assert after["id_token"] != before["id_token"] and after["refresh_token"] != before["refresh_token"]
    assert user(world).returncode == OK


def test_a_token_that_the_broker_refuses_is_renewed_once(world, provider, lab):
    provider.tell("set", groups=["ml"])
    log_in(world, provider)
    before = json.loads(login_file(world).read_text())["id_token"]
    provider.tell("rotate")
    other = provider.sign(**claims(provider))
    eventually(lambda: is_accepted(world, other), "the broker knows the new keys alone")
    assert is_refused(world, before)
    assert user(world).stdout.strip() == "oidc:ada@example.org"
    assert json.loads(login_file(world).read_text())["id_token"] != before


def test_a_rotation_that_the_broker_has_not_heard_of_is_waited_for(world, provider, lab):
    provider.tell("set", groups=["ml"], idTokenSeconds=20)
    log_in(world, provider)
    provider.tell("rotate")
    assert user(world).stdout.strip() == "oidc:ada@example.org"


def test_a_follower_goes_on_with_another_token(world, provider):
    provider.tell("set", groups=["ml"], idTokenSeconds=8)
    broker = start(world, provider, clock_skew="0s")
    world.cli("context", "set", "lab", "--broker", broker.address)
    log_in(world, provider)
    agent = world.make_agent().start()
    gate = world.gate()
    follower = world.cli_start("--context", "lab", "run", "--wait", "--", "sh", "-c", gate.script() + "; echo through")
    first = json.loads(login_file(world).read_text())["id_token"]
    eventually(lambda: is_refused(world, first), "the token of the beginning has ended")
    gate.open()
    assert follower.wait() == OK, follower.errors()
    assert "through" in follower.output().decode()
    assert agent.cluster == "box"


def test_a_login_that_was_revoked_ends_with_words(world, provider, lab):
    provider.tell("set", groups=["ml"], idTokenSeconds=20)
    log_in(world, provider)
    kept = json.loads(login_file(world).read_text())
    provider.browser()._open(kept["revocation_endpoint"], {"token": kept["refresh_token"], "client_id": "muster"})
    provider.tell("rotate")
    other = provider.sign(**claims(provider))
    eventually(lambda: is_accepted(world, other), "the broker takes no old token")
    refused = user(world, check=False)
    assert refused.returncode == NOT_ALLOWED
    assert "the login has ended" in refused.stderr and "muster login" in refused.stderr


def test_logout_tells_the_provider_and_forgets(world, provider, lab):
    log_in_kept = log_in(world, provider, "root")
    assert "admin" in log_in_kept.output().decode()
    kept = json.loads(login_file(world).read_text())
    assert "logged out\n" in world.cli("logout", broker=False).stderr
    assert login_file(world) is None
    assert world.cli("whoami", "-o", "json", broker=False).stdout.count("CREDENTIAL_KIND_SOCKET") == 1
    assert "you were not logged in" in world.cli("logout", broker=False).stderr
    with pytest.raises(OSError):
        provider.browser()._open(kept["token_endpoint"], {"grant_type": "refresh_token", "client_id": "muster",
                                                          "refresh_token": kept["refresh_token"]})


def test_a_login_that_is_denied_or_late_says_so(world, provider, lab):
    command = world.cli_start("--context", "lab", "login")
    provider.browser().deny(*prompt(command))
    assert command.wait() == NOT_ALLOWED and "denied" in command.errors()
    provider.tell("set", deviceCodeSeconds=1)
    late = world.cli("login", broker=False, check=False)
    assert late.returncode == TIME_OUT and "expired" in late.stderr, late.stderr


def test_login_says_what_is_missing(world, provider):
    broker = start(world, provider, audience="no-device")
    world.cli("context", "set", "lab", "--broker", broker.address)
    refused = world.cli("--context", "lab", "login", check=False)
    assert refused.returncode == ERROR and "device flow" in refused.stderr
    nowhere = world.cli("login", check=False)
    assert nowhere.returncode == USAGE and "context" in nowhere.stderr
    provider.tell("close")
    away = world.cli("--context", "lab", "login", check=False)
    assert away.returncode == ERROR and provider.issuer in away.stderr


def test_a_broker_without_a_provider_says_so(world):
    world.make_broker().start()
    world.cli("context", "set", "lab", "--broker", world.broker.address)
    refused = world.cli("--context", "lab", "login", check=False)
    assert refused.returncode == ERROR and "no identity provider" in refused.stderr


def test_a_login_that_others_may_read_or_that_is_damaged_is_not_used(world, provider, lab):
    provider.tell("set", groups=["ml"])
    log_in(world, provider)
    path = login_file(world)
    path.chmod(0o640)
    refused = user(world, check=False)
    assert refused.returncode == USAGE and "0640" in refused.stderr
    path.chmod(0o600)
    path.write_text(path.read_text()[:100])
    refused = user(world, check=False)
    assert refused.returncode == USAGE and "damaged" in refused.stderr
    # A context that is deleted leaves no login behind.
    world.cli("context", "delete", "lab", broker=False)
    assert login_file(world) is None


def test_anybody_is_told_how_to_log_in(world, provider):
    broker = start(world, provider, "--listen", "127.0.0.1:0", "--listen-role", "none")
    identity = identity_service_pb2_grpc.IdentityServiceStub(world.api(address=f"127.0.0.1:{broker.tcp_port()}").channel)
    info = identity.GetLoginInfo(identity_service_pb2.GetLoginInfoRequest(), timeout=CALL_TIMEOUT_S)
    assert (info.issuer, info.client_id) == (provider.issuer, "muster")
    assert "openid" in info.scopes.split() and "BEGIN CERTIFICATE" in info.ca_certificates


# ---- service accounts


def test_a_service_account_is_no_person_and_has_tokens(world, provider, broker):
    made = world.cli("token", "create", "ci", "--service-account", "build", "--role", "submitter")
    world.cli("token", "create", "laptop")
    me = json.loads(world.cli("whoami", "-o", "json", env={"MUSTER_TOKEN": made.stdout.strip()}).stdout)
    assert me["user"] == "sa:build"
    assert [row.split()[1] for row in world.cli("token", "list", "--service-accounts").stdout.splitlines()[1:]] == ["ci"]
    assert "ci" in world.cli("token", "list", "--service-account", "build").stdout
    for name in ("", "a b", "sa:x", "../x", "-x"):
        refused = world.cli("token", "create", "x", "--service-account", name, check=False)
        assert refused.returncode != OK, name
    both = world.cli("token", "create", "x", "--service-account", "build", "--user", "ada", check=False)
    assert both.returncode == USAGE
    # Nobody at the provider can take its name.
    assert ask_who(world, provider.sign(**claims(provider, email="sa:build"))).user == "oidc:sa:build"
