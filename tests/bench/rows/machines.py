"""Plain machines: many short jobs against doing the same without any scheduler, rounds of a long queue, how soon a job
begins and is known to have ended, and what many jobs and much output cost the agent."""

import contextlib
import random
import statistics
import subprocess
import threading
import time

from muster.v1 import job_pb2

from harness.api import TERMINAL, argv_spec, script_spec
from harness.daemons import BIN
from harness.files import bring
from harness.hosts import SshCluster
from harness.wait import eventually

from rows.report import Figure
from rows.setting import fresh_broker, memory_bytes, tool
from rows.waiting import DEADLINE_S, run_all

SLOTS = 2
RUNNING = 50
# The program itself says when it is there: its last act, and nearly its first.
CLOCK = ("date", "+%s.%N")
LINE_BYTES = 200


def machines_1000(short):
    """Jobs of `true`, two at a time."""
    jobs = 20 if short else 1000
    with fresh_broker() as world:
        world.make_agent(config=world.machines_config(cpus=SLOTS)).start()
        value = run_all(world.api(world.broker), jobs)
        baseline = _bare(jobs)
    return [Figure("machines_1000", value, "s", baseline, f"fork, exec and wait of true, {SLOTS} at a time", 5,
                   at_most=True)]


def machines_round(short):
    """The slowest of 200 rounds, in processor time."""
    found = tool("plan-rounds", jobs=1000 if short else 100_000)
    each = "a look for a place for each of the runs"
    return [Figure("machines_round", found["usual_ms"], "ms", found["usual_each_ms"], each, 20, at_most=True),
            Figure("machines_round_distinct", found["distinct_ms"], "ms", found["distinct_each_ms"], each, 20, at_most=True),
            Figure("machines_round_fill", found["fill_ms"], "ms", found["usual_each_ms"], each, 20, at_most=True)]


def machines_latency(short):
    """Jobs one after another on an idle machine: from the submit to the program, and from its end to the client."""
    jobs = 5 if short else 100
    with fresh_broker() as world:
        world.make_agent(config=world.machines_config()).start()
        started, told = _job_latency(world.api(world.broker), jobs)
    bare_start, bare_end = _bare_latency(jobs)
    what = "fork, exec and wait of the same by the client itself, p50"
    return [Figure("machines_start_p50", _p50_ms(started), "ms", _p50_ms(bare_start), what, 20, at_most=True),
            Figure("machines_end_p50", _p50_ms(told), "ms", _p50_ms(bare_end), what, 20, at_most=True)]


def hosts_1000(short):
    """Jobs of `true` on one host over SSH, two at a time."""
    jobs = 20 if short else 1000
    with _host() as (world, host, key):
        value = run_all(world.api(world.broker), jobs)
        with _bare_ssh(host, key) as ssh:
            baseline = _bare(jobs, (*ssh, "true"))
    return [Figure("hosts_1000", value, "s", baseline, f"ssh HOST true over one kept connection, {SLOTS} at a time", 15,
                   at_most=True)]


def hosts_latency(short):
    """The same as machines_latency, on a host over SSH."""
    jobs = 5 if short else 100
    with _host() as (world, host, key):
        started, told = _job_latency(world.api(world.broker), jobs)
        with _bare_ssh(host, key) as ssh:
            bare_start, bare_end = _bare_latency(jobs, (*ssh, *CLOCK))
    what = "ssh HOST with the same over one kept connection, p50"
    return [Figure("hosts_start_p50", _p50_ms(started), "ms", _p50_ms(bare_start), what, 20, at_most=True),
            Figure("hosts_end_p50", _p50_ms(told), "ms", _p50_ms(bare_end), what, 20, at_most=True)]


def machines_memory(short):
    """The agent with many jobs that wait while some run."""
    # Together with those that run, they are as many as a broker gives to one agent.
    waiting = 20 if short else 950
    with fresh_broker() as world:
        agent = world.make_agent(config=world.machines_config(cpus=RUNNING)).start()
        before = memory_bytes(agent.process.pid)
        api = world.api(world.broker)
        api.submit_many([argv_spec("sleep", "1000")] * RUNNING)
        _await_states(api, job_pb2.JOB_STATE_RUNNING, RUNNING)
        api.submit_many([argv_spec("true")] * waiting)
        _await_states(api, job_pb2.JOB_STATE_PENDING, waiting)
        found = memory_bytes(agent.process.pid)
    return [Figure("machines_memory", found / 1e6, "MB", before / 1e6, "the agent without jobs", 50, at_most=True)]


def hosts_files_memory(short):
    """The agent while a job's files go to several hosts at once: at its most, and when all is done."""
    hosts = 3
    content = random.Random(1).randbytes((1 if short else 60) << 20)
    with _hosts(hosts) as (world, agent, _cluster):
        api = world.api(world.broker)
        api.wait_end(api.submit(script_spec("true", nodes=hosts)))
        before = memory_bytes(agent.process.pid)
        with _Peak(agent.process.pid) as peak:
            job_id = api.submit(bring(api, script_spec("wc -c <file", nodes=hosts), {b"file": content}))
            api.wait_end(job_id)
        assert api.stdout(job_id, rank=hosts - 1).split() == [str(len(content)).encode()]
        after = memory_bytes(agent.process.pid)
    what = "the agent after a job without files"
    return [Figure("hosts_files_memory", peak.bytes / 1e6, "MB", before / 1e6, what),
            Figure("hosts_files_memory_after", after / 1e6, "MB", before / 1e6, what)]


def machines_output(short):
    """Lines that a job writes as fast as it may, to the end of `muster logs -f`, and what they cost the agent."""
    lines = 10_000 if short else 1_000_000
    write = f"yes {'x' * (LINE_BYTES - 1)} | head -n {lines}"
    with fresh_broker() as world:
        agent = world.make_agent(config=world.machines_config()).start()
        before = memory_bytes(agent.process.pid)
        gate = world.gate()
        job_id = world.api(world.broker).submit(script_spec(f"{gate.script()}\n{write}"))
        world.api(world.broker).wait_state(job_id, job_pb2.JOB_STATE_RUNNING)
        follower = subprocess.Popen([BIN / "muster", "--broker", world.broker.address, "logs", "-f",
                                     str(job_id)], stdout=subprocess.PIPE)
        with _Peak(agent.process.pid) as peak:
            start = time.monotonic()
            gate.open()
            received = sum(map(len, iter(lambda: follower.stdout.read1(1 << 20), b"")))
            elapsed = time.monotonic() - start
        assert follower.wait(DEADLINE_S) == 0 and received == lines * LINE_BYTES, f"{received} bytes"
    bare = _bare_output(write)
    return [Figure("machines_output", received / elapsed / 1e6, "MB/s", received / bare / 1e6, "the same through a pipe", 100),
            Figure("machines_output_memory", peak.bytes / 1e6, "MB", before / 1e6, "the agent without jobs", 50,
                   at_most=True)]


class _Peak:
    """The most memory that a process has while the block runs, looked at ten times a second."""

    def __init__(self, pid):
        self.bytes = 0
        self._pid = pid
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def _look(self):
        while True:
            self.bytes = max(self.bytes, memory_bytes(self._pid))
            if self._done.wait(0.1):
                return

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exception):
        self._done.set()
        self._thread.join()


def _job_latency(api, jobs):
    """Measures the time from the submit to the program, and from its end to the client, for jobs
    one after another."""
    started, told = [], []
    api.wait_end(api.submit(argv_spec("true")))
    for _ in range(jobs):
        submitted = time.time()
        job_id = api.submit(argv_spec(*CLOCK))
        for change in api.changes(job_ids=[job_id], until_terminal=True):
            if change.transition.job_state in TERMINAL:
                ended = time.time()
        there = float(api.stdout(job_id))
        started.append(there - submitted)
        told.append(ended - there)
    return started, told


@contextlib.contextmanager
def _host():
    """A broker, an agent, and one host of it: the world, the host and the key to it."""
    with _hosts(1) as (world, _agent, cluster):
        yield world, cluster.hosts[0], cluster.key


@contextlib.contextmanager
def _hosts(count):
    """A broker, an agent, and hosts of it with so many cores each: the world, the agent and its cluster."""
    with fresh_broker() as world:
        cluster = SshCluster(world, count, cpus=SLOTS)
        try:
            yield world, cluster.make_agent().start(), cluster
        finally:
            cluster.close()


@contextlib.contextmanager
def _bare_ssh(host, key):
    """The words of a command line that runs others there, over a connection that is made once."""
    way = ("ssh", "-F", "none", "-i", str(key), "-p", str(host.port), "-o", "StrictHostKeyChecking=no", "-o",
           "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-o", f"ControlPath={host.directory}/control", host.address)
    subprocess.run((*way[:-1], "-o", "ControlMaster=yes", "-f", "-N", way[-1]), check=True)
    try:
        yield way
    finally:
        subprocess.run((*way[:-1], "-O", "exit", way[-1]), check=False, capture_output=True)


def _await_states(api, state, jobs):
    name = job_pb2.JobState.Name(state).removeprefix("JOB_STATE_")
    eventually(lambda: len(api.list_all(filter=f"state = {name}", page_size=1000)) == jobs, f"{jobs} jobs are {name}",
               deadline_s=DEADLINE_S)


def _p50_ms(seconds):
    return statistics.median(seconds) * 1000


def _bare_latency(jobs, command=CLOCK):
    started, told = [], []
    for _ in range(jobs):
        begun = time.time()
        there = float(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        started.append(there - begun)
        told.append(time.time() - there)
    return started, told


def _bare_output(write):
    start = time.monotonic()
    with subprocess.Popen(["/bin/sh", "-c", write], stdout=subprocess.PIPE) as process:
        while process.stdout.read1(1 << 20):
            pass
    return time.monotonic() - start


def _bare(jobs, command=("true",)):
    start = time.monotonic()
    running = []
    for _ in range(jobs):
        if len(running) == SLOTS:
            running.pop(0).wait()
        running.append(subprocess.Popen(command))
    for process in running:
        process.wait()
    return time.monotonic() - start
