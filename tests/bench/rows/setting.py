"""Shared by the rows: a fresh broker, and the load tool beside it."""

import contextlib
import json
import os
import subprocess
import sys

from harness.daemons import BIN
from harness.world import World

TOOL = BIN / "muster-bench"
# The longest row writes a million jobs, which takes about a minute.
TOOL_TIMEOUT_S = 900
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def fresh_world():
    """An empty directory, and the end of all that was started in it."""
    world = World()
    try:
        yield world
    except BaseException:
        # Python's own print of the failure follows.
        with contextlib.redirect_stdout(sys.stderr):
            world.tell()
        raise
    finally:
        world.close(keep=False)


@contextlib.contextmanager
def fresh_broker():
    """A world with a running broker, as it is configured by default."""
    with fresh_world() as world:
        world.make_broker(config="{}\n").start()
        yield world


def init_network(world):
    """Makes a CA for a broker that is not started yet; returns the file."""
    done = world.daemon_once("muster-broker", "init", state_dir=world.path("broker"))
    assert done.returncode == 0, done.stderr
    return world.path("broker") / "ca" / "ca.pem"


def network_address(world):
    """The address of the broker's network listener."""
    port = (world.broker.state_dir / "broker.tls.port").read_text(encoding="ascii").strip()
    return f"tls:127.0.0.1:{port}"


def _arguments(verb, flags, options):
    words = [str(TOOL), verb, *(f"--{flag}" for flag in flags)]
    for name, value in options.items():
        words += [f"--{name.replace('_', '-')}", str(value)]
    return words


def tool(verb, *flags, **options):
    """Returns the findings of muster-bench."""
    done = subprocess.run(_arguments(verb, flags, options), text=True, stdout=subprocess.PIPE, timeout=TOOL_TIMEOUT_S,
                          stdin=subprocess.DEVNULL, check=True)
    return json.loads(done.stdout)


@contextlib.contextmanager
def running_tool(verb, **options):
    """muster-bench beside the row, once it has said that it is ready, until the row is done; then what it found out, too."""
    process = subprocess.Popen(_arguments(verb, (), options), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        ready = process.stdout.readline()
        assert ready, f"muster-bench {verb} ended at once"
        found = json.loads(ready)
        yield found
        process.stdin.close()
        found.update(json.loads(process.stdout.read() or "{}"))
    finally:
        process.stdin.close()
        process.wait(TOOL_TIMEOUT_S)


def memory_bytes(pid):
    """Resident memory of a process."""
    return _status_bytes(pid, "VmRSS")


def peak_memory_bytes(pid):
    """The most resident memory that a process has had."""
    return _status_bytes(pid, "VmHWM")


def _status_bytes(pid, name):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    raise AssertionError(f"no {name}")


def cpu_seconds(pid):
    """Processor time of a process so far."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS
