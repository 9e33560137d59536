"""A real Slurm cluster of a test file, and the agents that live on it."""

import functools
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from harness.stubs import REPOSITORY
from harness.wait import eventually

SCRIPT = REPOSITORY / "tests" / "support" / "slurm-cluster.sh"
# The tests run with this release of Slurm; empty stands for the machine's own.
RELEASE = os.environ.get("MUSTER_TEST_SLURM", "")
# Agents and jobs are an ordinary user's, as on a login node.
USER = "slurmtest"
AS_USER = ("setpriv", "--reuid", USER, "--regid", USER, "--init-groups")
# The time also of a cluster's start.
COMMAND_TIMEOUT_S = 600


@functools.cache
def release_programs():
    """The directory of the programs of RELEASE."""
    done = subprocess.run([SCRIPT.with_name("slurm-release"), RELEASE], text=True, check=True, stdout=subprocess.PIPE)
    return pathlib.Path(done.stdout.strip())


def before(path):
    """A PATH with the programs of the release of Slurm that is tested before the machine's own."""
    return f"{release_programs()}:{path}" if RELEASE else path


def start_shared_broker(world):
    """A broker to which agents of the ordinary user may connect."""
    world.path("broker").mkdir(mode=0o755)
    return world.make_broker("--socket-mode", "0666", "--agent-users", USER).start()


class SlurmCluster:
    """Starts when it is made; needs root. Options are those of `slurm-cluster.sh up`."""

    def __init__(self, *options, sshd=False, restd=False):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="muster-slurm-"))
        self.root.chmod(0o755)
        self.directory = self.root / "cluster"
        doors = [*(() if restd else ("--no-restd",)), *(() if sshd else ("--no-sshd",))]
        self.control("up", *doors, *options)

    @property
    def conf(self):
        return self.directory / "etc" / "slurm.conf"

    def control(self, verb, *args):
        """slurm-cluster.sh VERB DIR ARGS"""
        return self._run(SCRIPT, verb, self.directory, *args)

    def slurm(self, *argv):
        """The output of a Slurm command, as root."""
        return self._run(*argv)

    def slurm_as_user(self, *argv):
        """The output of a Slurm command, as the agent's user."""
        return self._run(*AS_USER, *argv)

    def close(self):
        self.control("down", "--purge")
        shutil.rmtree(self.root, ignore_errors=True)

    def _run(self, *argv):
        argv = [str(word) for word in argv]
        environment = dict(os.environ, SLURM_CONF=str(self.conf), SLURM_TIME_FORMAT="%s")
        done = subprocess.run(argv, env=environment, text=True, capture_output=True, timeout=COMMAND_TIMEOUT_S,
                              check=False)
        assert done.returncode == 0, f"{argv} exited with {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    # ---- what tests ask

    @staticmethod
    def _programs():
        """The directory of Slurm's commands, if they are not the machine's own."""
        return {"bin_dir": release_programs()} if RELEASE else {}

    def make_agent(self, world, name="lab", **settings):
        """A Slurm agent of an ordinary user that is not started yet."""
        state_dir = world.path(f"agent-{name}")
        state_dir.mkdir()
        shutil.chown(state_dir, USER, USER)
        agent = world.make_agent(name, kind="slurm", config=self.config(**settings), state_dir=state_dir)
        agent.argv = [*AS_USER, *agent.argv]
        return agent

    def config(self, **settings):
        """The settings of an agent on a login node."""
        values = {"slurm_conf": self.conf, **self._programs(), "max_polls_per_minute": 0, "observe_interval": "1s", "lookup_grace": "3s", "absence_grace": "10s",
                  "record_grace": "10s", **settings}
        return "slurm:\n" + "".join(f"  {key}: {value}\n" for key, value in values.items())

    def make_rest_agent(self, world, **settings):
        """An agent that drives the cluster through its slurmrestd, with a token in a file."""
        (url,) = re.findall(r"SLURMLAB_RESTD_URL=(.*)", (self.directory / "env.sh").read_text())
        token = world.path("token")
        token.touch(mode=0o600)
        shutil.chown(token, USER, USER)
        token.write_text(self.slurm("scontrol", "token", f"username={USER}", "lifespan=3600"))
        return self.make_agent(world, rest_url=url, rest_token_file=token, **settings)

    def make_ssh_agent(self, world, **settings):
        """An agent that has neither this cluster's slurm.conf nor its user: all goes through the cluster's sshd, the
        second of two login hosts, the first of which is down."""
        ssh = self.directory / "ssh"
        runs = self.root / "runs"
        runs.mkdir(exist_ok=True)
        shutil.chown(runs, USER, USER)
        values = {"slurm_conf": self.conf, **self._programs(), "run_dir": runs, "ssh_hosts": f"127.0.0.1:1,127.0.0.1:{self.ssh_port()}",
                  "ssh_user": USER, "ssh_key": ssh / "id", "ssh_known_hosts": ssh / "known_hosts",
                  "max_polls_per_minute": 0, "observe_interval": "1s", "lookup_grace": "3s", "absence_grace": "10s", "record_grace": "10s",
                  **settings}
        config = "slurm:\n" + "".join(f"  {key}: {value}\n" for key, value in values.items())
        return world.make_agent("lab", kind="slurm", config=config)

    def kill_sshd(self):
        """The login host is down, with all its connections."""
        sessions = _children((self.directory / "run" / "sshd.proc").read_text().split()[0])
        self.control("stop", "sshd", "KILL")
        _kill_sessions(sessions)

    def start_sshd(self):
        self.control("start", "sshd")

    def ssh_port(self):
        first_host = (self.directory / "ssh" / "known_hosts").read_text().split()[0]
        return int(first_host.rpartition(":")[2])

    @staticmethod
    def kill_process_and_children(pid):
        """Another sshd than the cluster's own, likewise."""
        sessions = _children(pid)
        subprocess.run(["kill", "-KILL", str(pid)], check=True)
        _kill_sessions(sessions)

    def job_ids(self, run_key):
        """Every Slurm job that the run ever had, once accounting knows of one."""
        return eventually(lambda: self._history(run_key), f"sacct knows {run_key}")

    def _history(self, run_key):
        out = self.slurm("sacct", "-a", "-X", "-D", "-n", "-P", "-S", "now-1hour", "-o", "JobIDRaw", f"--name={run_key}")
        return sorted(set(out.split()))

    def wait_forgotten(self):
        """Waits until slurmctld has forgotten every job that has ended."""
        eventually(lambda: not self.slurm("squeue", "-h", "-t", "all", "-o", "%i").split(), "the queue is empty")


def _children(pid):
    return subprocess.run(["pgrep", "-P", str(pid)], text=True, capture_output=True, check=False).stdout.split()


def _kill_sessions(sessions):
    for session in sessions:
        subprocess.run(["pkill", "-KILL", "-P", session], check=False)
        subprocess.run(["kill", "-KILL", session], check=False, capture_output=True)
