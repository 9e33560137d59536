"""Machines without a scheduler to strike at: this one, and hosts over SSH."""

import contextlib

from muster.v1 import job_pb2, job_spec_pb2

from harness.hosts import SshCluster
from harness.wait import eventually
from harness.world import World

from faults.lab import Lab

# A job of the lab's own has this device all the time, so that others wait for it.
GPU = "t4"
SETTINGS = "  keep_finished_runs: 0\n"


class OneMachine:
    """The agent's own."""

    @staticmethod
    def make_agent(world):
        return world.make_agent(config=f"machines:\n  cpus: 8\n  gpus: {{{GPU}: 1}}\n{SETTINGS}")

    @staticmethod
    def list_things():
        return []

    def close(self):
        pass


class Hosts:
    """Two, each an sshd with a home of its own."""

    def __init__(self):
        self._made = None

    def make_agent(self, world):
        self._made = SshCluster(world, 2, gpus=1, gpu_type=GPU)
        return self._made.make_agent(more=SETTINGS)

    def list_things(self):
        """Lists the files of runs on hosts, and files that are on their way."""
        patterns = ("runs/*-*-*", "files/incoming/*", "files/trees/*.part.*")
        return [path for host in self._made.hosts for pattern in patterns for path in host.home.glob(f".muster/*/*/{pattern}")]

    def close(self):
        if self._made is not None:
            self._made.close()


class MachinesLab(Lab):
    """Its agent keeps nothing of runs that have ended."""

    crowd = 0

    def take_gpus(self, nodes):
        """Takes the GPUs, so that a job that wants one waits until the lab is closed."""
        spec = self.crowded_spec("exec sleep 100000", nodes)
        self.crowd = self.api.submit(spec)
        self.api.wait_state(self.crowd, job_pb2.JOB_STATE_RUNNING)

    def crowded_spec(self, text="", nodes=1):
        """A job for which there is no room."""
        spec = self.spec(text)
        spec.nodes = nodes
        spec.resources.CopyFrom(job_spec_pb2.Resources(cpu_millis=1000))
        spec.resources.gpus.add(type=GPU, count_millis=1000)
        return spec

    def bringing_spec(self, text="", **size):
        """Its setup takes the files away: what it left would stay for ever."""
        spec = super().bringing_spec(text, **size)
        spec.setup += " && rm -r check data"
        return spec

    def list_things(self):
        here = self.agent.state_dir
        things = [*(here / "runs").glob("*-*-*"), *here.glob("layouts/*"), *here.glob("files/incoming/*"),
                  *self.cluster.list_things()]
        own = self.api.get(self.crowd).runs[-1].run_key if self.crowd else None
        return {str(path) for path in things if path.name != own}


@contextlib.contextmanager
def open_machines_lab(cluster, make_agent, nodes):
    """`nodes`: how many have a GPU. make_agent(cluster, world) gives an agent that is not started yet."""
    world = World()
    try:
        world.make_broker().start()
        agent = make_agent(cluster, world).start()
        lab = MachinesLab(world, cluster, agent, world.api(world.broker))
        eventually(lambda: lab.api.connected(agent.cluster), "the agent is there")
        lab.take_gpus(nodes)
        try:
            yield lab
        except BaseException:
            world.tell()
            raise
    finally:
        cluster.close()
        world.close(keep=False)
