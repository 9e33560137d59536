"""The broker alone: submits, whole lives through simulated agents, logs, idle agents."""

import statistics
import subprocess
import threading
import time

from harness.wait import eventually
from rows.report import Figure
from rows.setting import (cpu_seconds, fresh_broker, fresh_world, init_network, memory_bytes, network_address, running_tool,
                          tool)

IDLE_AGENTS = 2000
# The broker's default heartbeat interval.
HEARTBEAT_S = 5
# Submits in flight, so that one commit follows the other, and calls of GetJob in a second meanwhile.
COMMITTING = 8
ASKED = 200
# muster-bench ingest-logs writes lines of these sizes.
LINES = 200
LINE_INTERVAL_S = 0.02


def _submit_unary(in_flight, short):
    seconds = 1 if short else 5
    with fresh_broker() as world:
        echo = f"unix:{world.path('echo.sock')}"
        with running_tool("echo", address=echo):
            baseline = tool("submit", address=echo, in_flight=in_flight, seconds=seconds)
        found = tool("submit", address=world.broker.address, in_flight=in_flight, seconds=seconds)
    goal = 0.6 if in_flight == 64 else None
    return [Figure(f"submit_unary_{in_flight}", found["per_s"], "jobs/s", baseline["per_s"],
                   "gRPC server that answers the same message at once", ratio_goal=goal)]


def submit_unary_1(short):
    return _submit_unary(1, short)


def submit_unary_8(short):
    return _submit_unary(8, short)


def submit_unary_64(short):
    return _submit_unary(64, short)


def submit_tls(short):
    """A call by TLS and token beside one by the Unix socket of the same broker; in turns, for both the faster one."""
    seconds = 1 if short else 4
    with fresh_world() as world:
        ca = init_network(world)
        world.make_broker("--tls-listen", "127.0.0.1:0", config="{}\n").start()
        world.cli("token", "create", "bench", "--file", world.path("token"))
        network = {"address": network_address(world), "ca_file": ca, "token_file": world.path("token")}
        found, baseline = [], []
        for _ in range(1 if short else 3):
            baseline.append(tool("submit", address=world.broker.address, in_flight=1, seconds=seconds)["p50_us"])
            found.append(tool("submit", **network, in_flight=1, seconds=seconds)["p50_us"])
    return [Figure("submit_tls", min(found), "us", min(baseline), "the same by the Unix socket, p50", ratio_goal=1.15,
                   at_most=True)]


def submit_http_8(short):
    """SubmitJob over HTTP with a token, on a connection for each call in flight, beside the same over gRPC; in turns."""
    seconds = 1 if short else 4
    with fresh_world() as world:
        world.make_broker(config="http:\n  listen: 127.0.0.1:0\n").start()
        world.cli("token", "create", "bench", "--file", world.path("token"))
        port = world.broker.state_dir / "broker.http.port"
        eventually(lambda: port.exists() and port.read_text(encoding="ascii").strip(), "the port is told")
        http = {"address": f"127.0.0.1:{port.read_text(encoding='ascii').strip()}", "token_file": world.path("token")}
        found, baseline = [], []
        for _ in range(1 if short else 3):
            baseline.append(tool("submit", address=world.broker.address, in_flight=8, seconds=seconds)["per_s"])
            found.append(tool("submit-http", **http, in_flight=8, seconds=seconds)["per_s"])
    return [Figure("submit_http_8", max(found), "jobs/s", max(baseline), "the same by gRPC and the Unix socket",
                   ratio_goal=0.5)]


def submit_stored_64(short):
    """The same for a server that commits the rows of each job, and does nothing else."""
    seconds = 1 if short else 5
    with fresh_world() as world:
        echo, stored = f"unix:{world.path('echo.sock')}", f"unix:{world.path('stored.sock')}"
        with running_tool("echo", address=echo):
            baseline = tool("submit", address=echo, in_flight=64, seconds=seconds)
        world.path("rows").mkdir()
        with running_tool("stored-echo", address=stored, dir=world.path("rows")):
            found = tool("submit", address=stored, in_flight=64, seconds=seconds)
    return [Figure("submit_stored_64", found["per_s"], "jobs/s", baseline["per_s"],
                   "gRPC server that answers the same message at once")]


def submit_batch_100(short):
    """SubmitJobs of 100 against the same rows written by SQLite alone."""
    seconds = 1 if short else 5
    with fresh_broker() as world:
        world.path("bare").mkdir()
        baseline = tool("insert-rows", dir=world.path("bare"), batch=100, seconds=seconds)
        # There is one call at a time, because the broker would make one transaction of several.
        found = tool("submit", address=world.broker.address, in_flight=1, batch=100, seconds=seconds)
    return [Figure("submit_batch_100", found["per_s"], "jobs/s", baseline["per_s"],
                   "the same rows by bare SQLite, one by one, 100 jobs a transaction", ratio_goal=0.5)]


def full_life(short):
    """Submit to end of many jobs, all of it stored, through agents without a cluster."""
    jobs = 2000 if short else 100_000
    with fresh_broker() as world:
        world.path("bare").mkdir()
        baseline = tool("insert-rows", dir=world.path("bare"), batch=100, seconds=1 if short else 5)
        found = tool("full-life", address=world.broker.address, agents=2, jobs=jobs, batch=100, in_flight=4)
    return [Figure("full_life", found["per_s"], "jobs/s", baseline["per_s"],
                   "only the rows of the submits by bare SQLite, one by one, 100 jobs a transaction", 5000)]


def get_queued(short):
    """Asks for a job that waits, while others are committed all the time."""
    seconds = 1 if short else 10
    with fresh_broker() as world:
        echo = f"unix:{world.path('echo.sock')}"
        with running_tool("echo", address=echo):
            baseline = tool("submit", address=echo, in_flight=COMMITTING, seconds=1)
        with running_tool("get-jobs", address=world.broker.address, rate=ASKED) as found:
            tool("submit", address=world.broker.address, in_flight=COMMITTING, seconds=seconds)
    return [Figure("get_queued_p99", found["p99_ms"], "ms", baseline["p99_us"] / 1000,
                   f"one of {COMMITTING} submits in flight at the answering server, p99", 5, at_most=True)]


def assign_latency(short):
    """Measures the time from the submit to the agent while 1,000 jobs a second come in."""
    with fresh_broker() as world:
        echo = f"unix:{world.path('echo.sock')}"
        with running_tool("echo", address=echo):
            baseline = tool("submit", address=echo, in_flight=1, seconds=1)
        found = tool("assign-latency", address=world.broker.address, rate=1000, seconds=1 if short else 10, in_flight=16)
    what = "one call of the answering server, p50"
    return [Figure("assign_latency_p50", found["p50_ms"], "ms", baseline["p50_us"] / 1000, what),
            Figure("assign_latency_p99", found["p99_ms"], "ms", baseline["p50_us"] / 1000, what, 10, at_most=True)]


def log_ingest(short):
    """Bytes into the archive with a follower that keeps up, and the delay of single lines."""
    # The size is less than the default cap of a job, 1 GiB.
    mebibytes = 20 if short else 900
    with fresh_broker() as world:
        baseline = _bare_writes(world, mebibytes)
        lines = _tail_delay_ms(world.path("tailed"), 20 if short else LINES)
        found = tool("ingest-logs", address=world.broker.address, jobs=mebibytes)
    return [Figure("log_ingest", found["per_s"] / 1e6, "MB/s", baseline / 1e6,
                   "bare write of 64 KiB pieces to one file", 300, ratio_goal=0.5),
            Figure("log_latency_p50", found["added_p50_ms"], "ms", lines,
                   "the same lines through a file and tail -f", 50, at_most=True)]


def _tail_delay_ms(path, lines):
    """Half of the lines written to a file reach the reader of its tail -f sooner than this."""
    path.touch()
    delays = []
    with subprocess.Popen(["tail", "-f", path], stdout=subprocess.PIPE) as tail, open(path, "wb", buffering=0) as file:
        for _ in range(lines):
            written = time.monotonic()
            file.write(b"line\n")
            tail.stdout.readline()
            delays.append(time.monotonic() - written)
            time.sleep(LINE_INTERVAL_S)
        tail.terminate()
    return statistics.median(delays) * 1000


def _bare_writes(world, mebibytes):
    chunk = b"x" * 65536
    start = time.monotonic()
    with open(world.path("bare.bytes"), "wb", buffering=0) as file:
        for _ in range(mebibytes * 16):
            file.write(chunk)
    return mebibytes * 2**20 / (time.monotonic() - start)


def idle_agents(short):
    """Memory and processor time that connected agents without work cost the broker."""
    agents = 50 if short else IDLE_AGENTS
    seconds = 2 if short else 20
    with fresh_broker() as world:
        pid = world.broker.process.pid
        before = memory_bytes(pid)
        share = _share_with_agents(pid, world.broker.address, agents, seconds)
        memory = memory_bytes(pid)
        echo = f"unix:{world.path('echo.sock')}"
        with running_tool("echo", address=echo) as served:
            bare = _share_with_agents(served["pid"], echo, agents, seconds)
    return [Figure("idle_agents_memory", memory / 1e6, "MB", before / 1e6, "the broker with no agent", 100, at_most=True),
            Figure("idle_agents_cpu", share, "% of a core", bare,
                   "gRPC server that answers the same heartbeats at once", 5, at_most=True)]


def idle_agents_tls(short):
    """The same over mutual TLS, with a connection and a certificate for each agent."""
    agents = 50 if short else IDLE_AGENTS
    with fresh_world() as world:
        ca, identities = init_network(world), world.path("identities")
        identities.mkdir()
        tool("make-identities", dir=identities, agents=agents, ca_file=ca)
        world.make_broker("--tls-listen", "127.0.0.1:0", "--tls-client-ca", identities / "client-ca.pem",
                          config="{}\n").start()
        pid = world.broker.process.pid
        before = memory_bytes(pid)
        share = _share_with_agents(pid, network_address(world), agents, 2 if short else 20, dir=identities)
        memory = memory_bytes(pid)
    return [Figure("idle_agents_tls_memory", memory / 1e6, "MB", before / 1e6, "the broker with no agent", 160,
                   at_most=True),
            Figure("idle_agents_tls_cpu", share, "% of a core")]


def _share_with_agents(pid, address, agents, seconds, **options):
    """Percent of a core that a server with connected agents takes."""
    with running_tool("hold-agents", address=address, agents=agents, seconds=HEARTBEAT_S, **options):
        spent = cpu_seconds(pid)
        threading.Event().wait(seconds)
        return 100 * (cpu_seconds(pid) - spent) / seconds
