"""A cluster, a broker and an agent to strike at."""

import contextlib
import shutil
import tempfile
import pathlib

from harness.kubernetes import KubernetesCluster
from harness.slurm import USER, SlurmCluster, start_shared_broker
from harness.trio import PodTrio, Trio
from harness.world import World

CLUSTER = ("--nodes", "2", "--cpus", "8", "--min-job-age", "5", "--requeue-delay", "2")
SLURM_COMMANDS = ("sbatch", "squeue", "scancel", "sacct", "sinfo", "scontrol", "srun")


class Lab:
    """What one fault works with."""

    def __init__(self, world, cluster, agent, api, trio=Trio):
        self.world, self.cluster, self.agent, self.api = world, cluster, agent, api
        self.trio = trio(world, world.broker, agent, api)
        self.trio.counter = world.path("counter")
        self.trio.counter.touch()
        self.trio.counter.chmod(0o666)

    def submit(self, text="", count=1):
        """Jobs that count their starts and then do what the shell text says."""
        return self.api.submit_many([self.trio.counting(text) for _ in range(count)])


@contextlib.contextmanager
def open_lab(*, sshd=False, make_agent=SlurmCluster.make_agent, prepare=lambda cluster, ending: None):
    """prepare(cluster, ending) comes before the agent, what it gives to `ending` (an ExitStack) is undone at the end;
    make_agent(cluster, world) gives one that is not started yet."""
    with _open(SlurmCluster(*CLUSTER, sshd=sshd), Trio, make_agent, prepare) as lab:
        yield lab


@contextlib.contextmanager
def open_kubernetes_lab(make_agent=KubernetesCluster.make_agent):
    """make_agent(cluster, world, **settings) gives one that is not started yet."""
    def make(cluster, world):
        return make_agent(cluster, world, allow_host_path="yes")

    with _open(KubernetesCluster(nodes=1, gpus=0), PodTrio, make) as lab:
        yield lab


@contextlib.contextmanager
def _open(cluster, trio, make_agent, prepare=lambda cluster, ending: None):
    world = World()
    ending = contextlib.ExitStack()
    try:
        prepare(cluster, ending)
        start_shared_broker(world)
        agent = make_agent(cluster, world).start()
        lab = Lab(world, cluster, agent, world.api(world.broker), trio)
        try:
            yield lab
        except BaseException:
            world.tell()
            raise
    finally:
        world.close(keep=False)
        ending.close()
        cluster.close()


def command_directory(cluster, **replaced):
    """A directory of Slurm's commands, some of them replaced by a script's text, that every user can run."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="commands-", dir=cluster.root))
    directory.chmod(0o755)
    for name in SLURM_COMMANDS:
        path = directory / name
        if name in replaced:
            path.write_text(replaced[name])
            path.chmod(0o755)
        else:
            path.symlink_to(shutil.which(name))
    return directory


def user_directory(cluster, name):
    """An empty directory of the agent's user."""
    path = cluster.root / name
    path.mkdir()
    shutil.chown(path, USER, USER)
    return path
