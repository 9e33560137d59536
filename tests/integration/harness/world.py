"""Everything that one test starts, in one directory, and its end."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading

import grpc

from harness.api import Api
from harness.daemons import BIN, Agent, Broker
from harness.groups import remove_groups

CLI_TIMEOUT_S = 120
DAEMON_REFUSAL_S = 60
LOG_TAIL_BYTES = 8000

# Short, so that a broker is told soon what an agent knows; three times as long a busy machine does not stop one.
BROKER_CONFIG = "heartbeat_interval: 3s\n"


class World:
    """One broker, its agents and the files of one test."""

    def __init__(self):
        # Short, because a socket's path has at most 107 bytes.
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="muster-it-"))
        self.root.chmod(0o755)
        self.daemons = []
        self.channels = []
        self.broker = None
        self.commands = []
        self.gates = 0
        self.background = 0

    # ---- what a test starts

    def path(self, name):
        return self.root / name

    def write(self, name, text):
        path = self.path(name)
        path.write_text(text)
        return path

    def make_broker(self, *args, config=None, state_dir=None):
        """A broker that is not started yet."""
        state_dir = state_dir or self.path("broker")
        argv = [BIN / "muster-broker", "--state-dir", state_dir, *args]
        argv += ["--config", self.write(f"{pathlib.Path(state_dir).name}.yaml", config or BROKER_CONFIG)]
        broker = Broker("broker", argv, state_dir, self.path("broker.log"), self._environment())
        self.daemons.append(broker)
        self.broker = self.broker or broker
        return broker

    def make_agent(self, name="box", kind="machines", config="", state_dir=None, broker=None, args=()):
        """An agent that is not started yet."""
        state_dir = state_dir or self.path(f"agent-{name}")
        broker = broker or self.broker
        config_path = self.write(f"agent-{name}.yaml", config or self.machines_config())
        argv = [BIN / "muster-agent", "--cluster", name, "--kind", kind, "--broker", broker.address,
                "--state-dir", state_dir, "--config", config_path, *args]
        agent = Agent(name, broker, self.api(broker), f"agent-{name}", argv, state_dir,
                      self.path(f"agent-{name}.log"), self._environment())
        self.daemons.append(agent)
        return agent

    @staticmethod
    def machines_config(cpus=8, gpus=None):
        """A machine that pretends to have so much."""
        types = ", ".join(f"{kind}: {count}" for kind, count in (gpus or {}).items())
        return f"machines:\n  cpus: {cpus}\n  gpus: {{{types}}}\n"

    def daemon_once(self, binary, *args, state_dir=None):
        """A daemon that is expected to refuse its work at once, run to its end."""
        argv = [BIN / binary, "--state-dir", state_dir or self.path("refused"), *args]
        if binary == "muster-agent":
            argv += ["--cluster", "box", "--kind", "machines", "--broker", f"unix:{self.path('nobody.sock')}"]
        return subprocess.run([str(word) for word in argv], env=self._environment(), timeout=DAEMON_REFUSAL_S,
                              text=True, capture_output=True, check=False)

    def api(self, broker=None, address=None):
        address = address or (broker or self.broker).address
        # A broker that comes back is to be found at once, not after gRPC's long pauses between tries.
        channel = grpc.insecure_channel(address, options=[
            ("grpc.initial_reconnect_backoff_ms", 50),
            ("grpc.max_reconnect_backoff_ms", 200), ("grpc.use_local_subchannel_pool", 1)])
        self.channels.append(channel)
        return Api(channel)

    def _environment(self):
        environment = dict(os.environ, HOME=str(self.root), NO_COLOR="1")
        # `muster sbatch` remarks on credentials, and takes all else along.
        ours = [name for name in environment if name.startswith(("MUSTER_", "XDG_", "SBATCH_", "SSH_"))
                or any(word in name.upper() for word in ("TOKEN", "SECRET", "PASS", "KEY"))]
        for name in ours:
            del environment[name]
        return environment

    # ---- what a test's jobs are made of

    def gate(self):
        """Something that a job waits for until the test opens it."""
        self.gates += 1
        return Gate(self.path(f"gate-{self.gates}"))

    @staticmethod
    def pause(seconds):
        """Lets time pass, where the moment is what a test varies; never to wait for something."""
        threading.Event().wait(seconds)

    @staticmethod
    def process_lives(pid):
        """Tells whether the process runs; one that has ended and waits for its parent does not."""
        try:
            stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] not in "ZX"

    # ---- the command line

    def cli(self, *args, check=True, env=None, timeout_s=CLI_TIMEOUT_S, broker=True, text=True, cwd=None, **kwargs):
        """Runs muster, in the test's directory if none is named, and returns the CompletedProcess; with `check`, exit
        code 0 is expected."""
        argv = [str(BIN / "muster"), *(str(arg) for arg in args)]
        environment = self._environment()
        if broker:
            environment["MUSTER_BROKER"] = self.broker.address
        done = subprocess.run(argv, env={**environment, **(env or {})}, timeout=timeout_s, text=text,
                              capture_output=True, cwd=cwd or self.root, check=False, **kwargs)
        if check:
            assert done.returncode == 0, f"{argv} exited with {done.returncode}: {done.stdout}{done.stderr}"
        return done

    def cli_start(self, *args, env=None):
        """Runs muster beside the test."""
        environment = {**self._environment(), "MUSTER_BROKER": self.broker.address, **(env or {})}
        self.background += 1
        command = Background([BIN / "muster", *args], self.path(f"cli-{self.background}"), environment, self.root)
        self.commands.append(command)
        return command

    def cli_json(self, *args):
        return json.loads(self.cli(*args, "-o", "json").stdout)

    # ---- the end

    def tell(self):
        """Prints the ends of all logs, for a test that failed."""
        for path in sorted(self.root.glob("*.log")):
            print(f"---- {path}\n{path.read_text(errors='replace')[-LOG_TAIL_BYTES:]}")

    def close(self, keep):
        """Ends everything, jobs included; removes the files unless they are to be kept."""
        for channel in self.channels:
            channel.close()
        self.end_processes()
        if not keep:
            shutil.rmtree(self.root, ignore_errors=True)

    def end_processes(self):
        """Commands, daemons, supervisors and jobs."""
        for command in self.commands:
            command.end()
        for daemon in self.daemons:
            if daemon.process is not None:
                daemon.kill()
        self._kill_jobs()
        for daemon in self.daemons:
            remove_groups(daemon.state_dir.glob("runs/*/groups"))

    def _kill_jobs(self):
        """Supervisors and jobs outlive their agent. They are known by this test's directory in what they were given."""
        mark = str(self.root).encode()
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            if int(process.name) != os.getpid() and _mentions(process, mark):
                try:
                    os.kill(int(process.name), signal.SIGKILL)
                except ProcessLookupError:
                    pass


class Background:
    """A command that runs beside the test, its output in files."""

    def __init__(self, argv, path, environment, directory):
        self._stdout = path.with_suffix(".out")
        self._stderr = path.with_suffix(".err.log")
        with open(self._stdout, "wb") as out, open(self._stderr, "wb") as err:
            self.process = subprocess.Popen([str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=err, env=environment, cwd=directory)

    def output(self):
        return self._stdout.read_bytes()

    def errors(self):
        return self._stderr.read_text()

    def wait(self, timeout_s=CLI_TIMEOUT_S):
        """The exit code, once it has ended."""
        return self.process.wait(timeout_s)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Gate:
    """A file for which a job waits."""

    def __init__(self, path):
        self._path = path

    def script(self):
        """Shell text that returns once the gate is open."""
        return f"while [ ! -e {self._path} ]; do sleep 0.05; done"

    def open(self):
        self._path.touch()


def _mentions(process, mark):
    try:
        return (mark in (process / "cmdline").read_bytes() or mark in (process / "environ").read_bytes()
                or mark in os.readlink(process / "cwd").encode())
    except OSError:
        return False


