"""The audit log with real processes: what is recorded, the command, tampering, and a broker that is killed."""

import base64
import datetime
import hashlib
import json
import os
import pwd
import sqlite3
import struct
import threading

import grpc

from harness.api import script_spec
from harness.wait import eventually

OK, ERROR, USAGE, NOT_ALLOWED = 0, 1, 2, 4
FIELDS = ("user", "role", "credential", "origin", "action", "jobs", "target", "result")


def records(world, *flags):
    """The records as the export has them."""
    return [json.loads(line) for line in world.cli("audit", *flags, "-o", "jsonl").stdout.splitlines()]


def verify(world, *flags):
    return world.cli("audit", "verify", *flags, check=False)


def file_of(broker):
    return broker.state_dir / "audit.db"


def tamper(broker, sql):
    with sqlite3.connect(file_of(broker)) as database:
        database.execute(sql)


def chained(previous, record):
    """The hash of an exported record, as docs/security.md has it."""
    seconds, _, fraction = record["time"].rstrip("Z").partition(".")
    moment = datetime.datetime.fromisoformat(seconds).replace(tzinfo=datetime.timezone.utc)
    micros = int(moment.timestamp()) * 1_000_000 + int((fraction or "0").ljust(6, "0")[:6])
    values = [record["seq"], str(micros), *(record.get(field, "") for field in FIELDS), record.get("left_out", "0")]
    text = b"".join(struct.pack(">I", len(value.encode())) + value.encode() for value in map(str, values))
    return hashlib.sha256(previous + text).digest()


def test_the_command_lists_who_did_what(world, broker):
    job = world.cli("run", "-q", "--hold", "--", "true").stdout.strip()
    world.cli("cancel", job)
    me = pwd.getpwuid(os.getuid()).pw_name
    eventually(lambda: len(records(world, "--job", job)) == 2, "both records are there")
    submitted, cancelled = records(world, "--job", job)
    assert submitted["action"].startswith("JobsService.Submit")
    assert (cancelled["action"], cancelled["user"], cancelled["role"], cancelled["credential"], cancelled["result"]) == (
        "JobsService.CancelJobs", me, "admin", "socket", "OK")
    assert [r["action"] for r in records(world, "--user", me, "--action", "JobsService.CancelJobs")] == [
        "JobsService.CancelJobs"]
    assert records(world, "--user", "nobody-of-this-name") == []
    assert "JobsService.CancelJobs" in world.cli("audit").stdout


def test_a_refused_call_is_recorded_and_the_log_is_for_admins(world, broker):
    viewer = {"MUSTER_TOKEN": world.cli("token", "create", "eyes", "--role", "viewer", "--user", "eve").stdout.strip()}
    assert world.cli("audit", env=viewer, check=False).returncode == NOT_ALLOWED
    assert world.cli("audit", "verify", env=viewer, check=False).returncode == NOT_ALLOWED
    assert world.cli("run", "--", "true", env=viewer, check=False).returncode == NOT_ALLOWED
    eventually(lambda: len(records(world, "--user", "eve", "--result", "NOT_ALLOWED")) == 3, "three refused calls")
    assert {r["credential"] for r in records(world, "--user", "eve")} == {"token 1"}


def test_the_export_verifies_without_the_broker(world, broker):
    world.cli("token", "create", "a")
    world.cli("token", "revoke", "a")
    previous = bytes(32)
    exported = records(world)
    assert [int(r["seq"]) for r in exported] == list(range(1, len(exported) + 1))
    for record in exported:
        previous = chained(previous, record)
        assert base64.b64decode(record["hash"]) == previous


def test_a_changed_record_is_found_by_the_command(world, broker):
    world.cli("token", "create", "a")
    assert verify(world).returncode == OK
    tamper(broker, "UPDATE record SET user = 'somebody-else' WHERE action = 'IdentityService.CreateToken'")
    found = verify(world)
    assert found.returncode == ERROR and "was changed" in found.stdout


def test_a_cut_tail_is_found_by_a_noted_hash(world, broker):
    world.cli("token", "create", "a")
    head = verify(world).stdout.split()[-1]
    assert verify(world, "--known", head).returncode == OK
    broker.terminate()
    tamper(broker, "DELETE FROM record WHERE seq > 1")
    broker.start()
    assert verify(world).returncode == OK
    assert verify(world, "--known", head).returncode == ERROR
    assert verify(world, "--known", "x").returncode == USAGE


def test_a_killed_broker_leaves_a_whole_chain(world, broker, api):
    """The broker is killed while calls change jobs and tokens; a token whose making was answered has its record."""
    made = []
    stopped = threading.Event()

    def make_tokens():
        while not stopped.is_set():
            name = f"t{len(made)}"
            if world.cli("token", "create", name, check=False).returncode != OK:
                return
            made.append(name)

    def submit():
        while not stopped.is_set():
            try:
                api.submit(script_spec("true"))
            except grpc.RpcError:
                return

    threads = [threading.Thread(target=make_tokens), threading.Thread(target=submit)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(made) >= 3, "some tokens are made")
    broker.kill()
    stopped.set()
    for thread in threads:
        thread.join()
    broker.start()
    assert verify(world).returncode == OK
    created = [r for r in records(world, "--action", "IdentityService.CreateToken") if r["result"] == "OK"]
    assert len(created) >= len(made)
    starts = [r for r in records(world) if r["action"] == "broker.start"]
    assert len(starts) == 2


def test_starts_settings_and_new_keys_are_recorded(world):
    broker = world.make_broker("--audit-log-reads", "true")
    broker.start()
    (start,) = [r for r in records(world) if r["action"] == "broker.start"]
    assert 'audit.log_reads="true"' in start["target"]
    broker.terminate()
    broker.start()
    assert [r["action"] for r in records(world)][:3] == ["broker.start", "broker.stop", "broker.start"]
