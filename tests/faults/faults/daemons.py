"""Slurm's own daemons and the way to them come and go."""

import contextlib
import random
import shutil
import subprocess
import threading

from harness.slurm import SlurmCluster
from harness.wait import eventually
from muster.v1 import job_pb2

from faults.lab import open_lab
from faults.toll import End

JOBS_PER_STRIKE = 3
# Long enough that each phase of a job's life is struck by some.
LONGEST_PAUSE_S = 1.5
RESUME_INTERVAL_S = 1.0


def slurmctld_killed(repeat, toll):
    """slurmctld is killed at a random moment and comes back; jobs are also submitted while it is away."""
    moments = random.Random(1)
    with open_lab() as lab:
        for _ in range(repeat):
            jobs = lab.submit("sleep 0.5", JOBS_PER_STRIKE)
            lab.world.pause(moments.uniform(0, LONGEST_PAUSE_S))
            lab.cluster.control("stop", "slurmctld", "KILL")
            jobs += lab.submit()
            lab.cluster.control("start", "slurmctld")
            toll.strikes += 1
            with _resuming_nodes(lab.cluster):
                # Slurm may fail to start a job whose node it has lost sight of, and says so.
                toll.audit(lab, jobs, may_retry=True)


def slurmdbd_down(repeat, toll):
    """slurmdbd is away for the whole life of a job."""
    with open_lab() as lab:
        for number in range(repeat):
            lab.cluster.control("stop", "slurmdbd", "KILL")
            end = End(code=number % 2 * 3)
            jobs = lab.submit(f"exit {end.code}")
            toll.strikes += 1
            toll.audit(lab, jobs, lambda _, end=end: end)
            lab.cluster.control("start", "slurmdbd")


def login_host_swapped(repeat, toll):
    """The login host that is in use dies with all its connections; the other one is there."""
    with open_lab(sshd=True, prepare=_start_second_host, make_agent=_make_agent_of_two_hosts) as lab:
        hosts = [lab.cluster, lab.cluster.second_host]
        for number in range(repeat):
            gate = lab.world.gate()
            jobs = lab.submit(gate.script())
            lab.api.wait_state(jobs[0], job_pb2.JOB_STATE_RUNNING)
            # The agent stays with the host that works, so they die in turn.
            hosts[number % 2].kill_sshd()
            gate.open()
            toll.strikes += 1
            toll.audit(lab, jobs)
            hosts[number % 2].start_sshd()


@contextlib.contextmanager
def _resuming_nodes(cluster):
    """Does meanwhile what an operator would: a slurmctld that has lost its last seconds gives numbers out again that
    its nodes know as running jobs, and drains the nodes that refuse them."""
    done = threading.Event()

    def resume():
        while not done.wait(RESUME_INTERVAL_S):
            # A node may have come back by itself meanwhile.
            cluster.slurm("sh", "-c", "sinfo -h -N -t drain,drained,down -o %N | sort -u | xargs -r -I% "
                          "scontrol update NodeName=% State=RESUME || true")

    operator = threading.Thread(target=resume)
    operator.start()
    try:
        yield
    finally:
        done.set()
        operator.join()


class SecondHost:
    """Another sshd of the same cluster."""

    def __init__(self, cluster):
        first = (cluster.directory / "ssh" / "sshd_config").read_text()
        self.port = cluster.ssh_port() + 1
        self._config = cluster.directory / "ssh" / "second_config"
        self._config.write_text(first.replace(f"Port {cluster.ssh_port()}", f"Port {self.port}"))
        known = cluster.directory / "ssh" / "known_hosts"
        key = known.read_text().split(None, 1)[1]
        known.write_text(f"{known.read_text()}[127.0.0.1]:{self.port} {key}")
        self._process = None
        self.start_sshd()

    def start_sshd(self):
        self._process = subprocess.Popen([shutil.which("sshd", path="/usr/sbin"), "-D", "-e", "-f", self._config],
                                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL)
        eventually(self._listens, "the second sshd listens")

    def kill_sshd(self):
        SlurmCluster.kill_process_and_children(self._process.pid)
        self._process.wait()

    def _listens(self):
        mark = f"0100007F:{self.port:04X}"
        with open("/proc/net/tcp", encoding="ascii") as table:
            return any(line.split()[1:4:2] == [mark, "0A"] for line in table)


def _start_second_host(cluster, ending):
    cluster.second_host = SecondHost(cluster)
    ending.callback(cluster.second_host.kill_sshd)


def _make_agent_of_two_hosts(cluster, world):
    hosts = f"127.0.0.1:{cluster.ssh_port()},127.0.0.1:{cluster.second_host.port}"
    return cluster.make_ssh_agent(world, ssh_hosts=hosts)
