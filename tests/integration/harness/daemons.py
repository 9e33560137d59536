"""Broker and agent as processes that a test may kill, stop and start again on the same state directory."""

import os
import pathlib
import signal
import subprocess

import grpc

from harness.api import Api
from harness.stubs import REPOSITORY
from harness.wait import eventually

BIN = pathlib.Path(os.environ.get("MUSTER_BIN", REPOSITORY / "build" / "release" / "bin"))


class Daemon:
    """A process of ours with its log in a file. Its state directory outlives it."""

    def __init__(self, name, argv, state_dir, log_path, env):
        self.name = name
        self.argv = [str(word) for word in argv]
        self.state_dir = pathlib.Path(state_dir)
        self.log_path = pathlib.Path(log_path)
        self.env = env
        self.process = None

    def launch(self):
        assert self.process is None, f"{self.name} runs already"
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self.argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env,
                start_new_session=True,
            )

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def check_alive(self):
        assert self.process is not None, f"{self.name} was not started"
        code = self.process.poll()
        assert code is None, f"{self.name} ended with {code}; the end of its log:\n{self.log()[-4000:]}"

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        """kill -9, and the process is reaped."""
        self.process.kill()
        self.process.wait()
        self.process = None

    def terminate(self, deadline_s=60):
        """SIGTERM; returns the exit code."""
        self.process.terminate()
        code = self.process.wait(deadline_s)
        self.process = None
        return code

    def pause(self):
        """SIGSTOP: connected, but does nothing."""
        self.signal(signal.SIGSTOP)

    def resume(self):
        self.signal(signal.SIGCONT)

    def wait_exit(self, deadline_s=60):
        """Waits for it to end by itself; returns the exit code."""
        code = self.process.wait(deadline_s)
        self.process = None
        return code

    def peak_bytes(self):
        """The most memory that it has had."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) << 10

    def restart(self):
        self.kill()
        self.start()


class Broker(Daemon):
    @property
    def socket(self):
        return self.state_dir / "broker.sock"

    @property
    def address(self):
        return f"unix:{self.socket}"

    @property
    def database(self):
        return self.state_dir / "broker.db"

    def tcp_port(self):
        """The port that it chose, if it was told to listen."""
        return int((self.state_dir / "broker.port").read_text())

    def start(self):
        """Starts it and returns once it answers."""
        self.launch()
        eventually(self._answers, f"{self.name} answers", alive=self.check_alive)
        return self

    def _answers(self):
        with grpc.insecure_channel(self.address) as channel:
            try:
                return Api(channel).healthy()
            except grpc.RpcError:
                return False


class Agent(Daemon):
    """An agent of `cluster`, connected to `broker`."""

    def __init__(self, cluster, broker, api, *args):
        super().__init__(*args)
        self.cluster = cluster
        self.broker = broker
        self.api = api

    @property
    def journal(self):
        return self.state_dir / "journal.db"

    def run_directory(self, run_key):
        """The directory in which a machines agent keeps a run."""
        return self.state_dir / "runs" / run_key

    def start(self):
        """Starts it and returns once the broker has it."""
        before = self.epoch_seen()
        self.launch()
        eventually(lambda: self.epoch_seen() != before and self.api.connected(self.cluster),
                   f"{self.name} is connected", alive=self.check_alive)
        return self

    def epoch_seen(self):
        """Changes with each sign of life that the broker has had of this cluster."""
        return self.api.last_seen(self.cluster)
