"""A broker and an agent that are killed and started again while jobs count how often they really ran."""

from muster.v1 import job_pb2

from harness.api import SUCCEEDED, script_spec
from harness.kubernetes import show_directory
from harness.wait import eventually

VICTIMS = ["broker", "agent", "both"]


class Trio:
    """A broker, an agent, and a file that counts how often each job ran."""

    def __init__(self, world, broker, agent, api):
        self.world, self.broker, self.agent, self.api = world, broker, agent, api
        self.counter = world.path("counter")

    def counting(self, text=""):
        return script_spec(f'echo "$MUSTER_JOB_ID" >> {self.counter}\n{text}')

    def runs_of(self, job_id):
        return self.counter.read_text().split().count(str(job_id)) if self.counter.exists() else 0

    def kill(self, victim):
        for daemon in self._daemons(victim):
            daemon.kill()

    def start(self, victim):
        for daemon in self._daemons(victim):
            daemon.start()
        eventually(lambda: self.api.connected(self.agent.cluster), "the agent is back")

    def restart(self, victim):
        self.kill(victim)
        self.start(victim)

    def _daemons(self, victim):
        return {"broker": [self.broker], "agent": [self.agent], "both": [self.broker, self.agent]}[victim]

    def check_ran_once(self, job_id):
        job = self.api.wait_state(job_id, SUCCEEDED)
        assert self.runs_of(job_id) == 1
        assert len(job.runs) == 1
        steps = self.api.transitions(job_id)
        assert [step.job_sequence for step in steps] == list(range(1, len(steps) + 1))
        ends = [step for step in steps if step.run_state == job_pb2.RUN_STATE_SUCCEEDED]
        assert len(ends) == 1
        return job

    def check_a_running_job_survives(self, victim):
        gate = self.world.gate()
        job_id = self.api.submit(self.counting(gate.script() + "\necho done"))
        self.api.wait_state(job_id, job_pb2.JOB_STATE_RUNNING)
        self.restart(victim)
        assert self.api.get(job_id).state == job_pb2.JOB_STATE_RUNNING
        gate.open()
        self.check_ran_once(job_id)
        assert self.api.stdout(job_id) == b"done\n"


class PodTrio(Trio):
    """A job of a Kubernetes agent with allow_host_path: its jobs see the test's directory."""

    def counting(self, text=""):
        return show_directory(super().counting(text), self.world.root)
