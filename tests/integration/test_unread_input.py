"""Standard input that a user means for a job: muster says that no job gets it, and is silent where nobody means any."""

import os
import socket
import subprocess

import pytest

from harness.api import RUNNING
from harness.daemons import BIN
from harness.wait import eventually

UNREAD = "standard input is not passed on"


@pytest.fixture
def shell(world):
    """Returns muster's standard error when a shell runs a script that calls it."""
    environment = {**world._environment(), "MUSTER_BROKER": world.broker.address}
    environment["PATH"] = f"{BIN}:{environment['PATH']}"

    def run(script, program="sh", **kwargs):
        if not kwargs:
            kwargs["stdin"] = subprocess.DEVNULL
        done = subprocess.run([program, "-c", script], env=environment, cwd=world.root, capture_output=True, text=True,
                              timeout=120, check=False, **kwargs)
        assert done.returncode == 0, done.stderr
        return done.stderr
    return run


def test_input_that_no_job_gets_is_remarked(world, broker, shell):
    world.write("data", "a\nb\n")
    job = world.write("job.yaml", "run: 'true'\n")
    for program in ("sh", "bash"):
        assert UNREAD in shell("muster run -- cat <data", program)
        assert UNREAD in shell(f"muster submit {job} <data; true", program)
    assert UNREAD in shell("muster run -- cat <<EOF\ndata\nEOF\n", "bash")
    assert UNREAD not in shell("muster run -q -- cat <data")
    reader, writer = os.pipe()
    os.write(writer, b"data")
    done = world.cli("run", "--", "cat", stdin=reader)
    os.close(writer)
    os.close(reader)
    assert UNREAD in done.stderr and "--workdir DIR" in done.stderr
    # The input is as ssh gives it to a command.
    ours, others = socket.socketpair()
    with ours, others:
        ours.sendall(b"data")
        assert UNREAD in world.cli("run", "--", "cat", stdin=others).stderr


@pytest.mark.parametrize("program", ("sh", "bash"))
def test_a_pipeline_that_writes_later_is_remarked_without_a_wait(world, broker, program):
    gate = world.path("gate")
    os.mkfifo(gate)
    environment = {**world._environment(), "MUSTER_BROKER": world.broker.address}
    # Only muster holds the standard error that is read here.
    script = f"exec 3>&2 2>&-; (read go <{gate}; echo data) 3>&- | {BIN}/muster run -- cat 2>&3 3>&- & exec 3>&-; wait"
    with subprocess.Popen([program, "-c", script], env=environment, cwd=world.root, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as command:
        told = command.stderr.read()
        gate.write_text("go\n")
    assert told.count(UNREAD) == 1, told


def test_a_socket_that_another_process_may_write_to_is_remarked(world, broker, shell):
    ours, others = socket.socketpair()
    with ours, others:
        told = shell(f"muster run -- cat <&{others.fileno()}; true", "bash", stdin=subprocess.DEVNULL,
                     pass_fds=[others.fileno()])
        assert told.count(UNREAD) == 1, told
        ours.shutdown(socket.SHUT_RDWR)
        assert UNREAD not in shell(f"muster run -- cat <&{others.fileno()}; true", "bash", stdin=subprocess.DEVNULL,
                                   pass_fds=[others.fileno()])


def test_input_that_comes_while_the_job_runs_is_remarked_at_its_end(world, agent, api):
    gate = world.gate()
    environment = {**world._environment(), "MUSTER_BROKER": world.broker.address}
    with subprocess.Popen([BIN / "muster", "run", "--wait", "--", "sh", "-c", gate.script()], env=environment,
                          cwd=world.root, text=True, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE) as command:
        eventually(api.list_all, "the job to be submitted")
        api.wait_state(1, RUNNING)
        command.stdin.write("data")
        command.stdin.flush()
        gate.open()
        told = command.stderr.read()
    assert told.count(UNREAD) == 1, told


def test_input_that_is_not_meant_for_a_job_is_not_remarked(world, broker, shell):
    world.write("list", "a\nb\nc\n")
    job = world.write("job.yaml", "run: 'true'\n")
    for script in ("muster run -- cat", "muster run -- cat <&-", ": >empty; muster run -- cat <empty",
                   "while read x; do muster run -- echo $x; done <list",
                   "cat list | while read x; do muster run -- echo $x; done",
                   f"muster submit - <{job}", f"muster submit /dev/stdin <{job}"):
        assert UNREAD not in shell(script), script
        assert UNREAD not in shell(script, "bash"), script
    # CI gives a shell its script in this way.
    assert UNREAD not in shell("bash", input="muster run -- cat\n: more\n")
    # Programs give such an input to each command that they start: it stays open, and nobody writes there.
    reader, writer = os.pipe()
    assert UNREAD not in world.cli("run", "--", "cat", stdin=reader).stderr
    os.close(writer)
    assert UNREAD not in world.cli("run", "--", "cat", stdin=reader).stderr, "nobody can write there any more"
    os.close(reader)
    ours, others = socket.socketpair()
    with ours, others:
        assert UNREAD not in world.cli("run", "--", "cat", stdin=others).stderr
    master, terminal = os.openpty()
    assert UNREAD not in world.cli("run", "--", "cat", stdin=terminal).stderr
    os.close(master)
    os.close(terminal)
