"""A cluster, a broker and an agent to strike at."""

import contextlib
import shutil
import tempfile
import pathlib

from muster.v1 import facts_pb2, job_pb2

from harness.slurm import USER, SlurmCluster, start_shared_broker
from harness.trio import Trio
from harness.wait import eventually
from harness.world import World

from faults.brought import Bringer

# A clean-up that failed is tried again with the next inventory, a minute later; a busy machine makes the controllers wait.
ORPHAN_PATIENCE_S = 150.0
TERMINAL_RUNS = (job_pb2.RUN_STATE_SUCCEEDED, job_pb2.RUN_STATE_FAILED, job_pb2.RUN_STATE_CANCELED)
CLUSTER = ("--nodes", "2", "--cpus", "8", "--min-job-age", "5", "--requeue-delay", "2")
SLURM_COMMANDS = ("sbatch", "squeue", "scancel", "sacct", "sinfo", "scontrol", "srun")


class Lab:
    """The tools that one fault works with."""

    trio_of = Trio

    def __init__(self, world, cluster, agent, api):
        self.world, self.cluster, self.agent, self.api = world, cluster, agent, api
        self.trio = self.trio_of(world, world.broker, agent, api)
        self.trio.counter = world.path("counter")
        self.trio.counter.touch()
        self.trio.counter.chmod(0o666)
        self._orphans = set()
        self._bringer = Bringer(api)

    def spec(self, text=""):
        """A job that counts its starts, says so, and then does what the shell text says."""
        return self.trio.counting(f'echo "log of $MUSTER_JOB_ID"\n{text}')

    def gang_spec(self, text=""):
        """The same on two nodes."""
        spec = self.spec(text)
        spec.nodes = 2
        return spec

    def bringing_spec(self, text="", **size):
        """The same with files of its own, which it looks at before it counts."""
        return self._bringer.bring(self.spec(text), **size)

    @staticmethod
    def log_of(job_id):
        return b"log of %d\n" % job_id

    def submit(self, text="", count=1):
        return self.api.submit_many([self.spec(text) for _ in range(count)])

    def submit_running(self):
        """A job that runs until its gate is opened: the gate, and a list of its number."""
        gate = self.world.gate()
        jobs = self.submit(gate.script())
        eventually(lambda: self.trio.runs_of(jobs[0]), "it runs")
        return gate, jobs

    def has_ended(self, job_id):
        """Tells whether the job and its logs have ended."""
        job = self.api.get(job_id)
        return bool(job.runs) and job.runs[-1].state in TERMINAL_RUNS and job.runs[-1].logs_complete

    def has_logged(self, job_id):
        """Tells whether the log is there on all its nodes."""
        nodes = max(1, self.api.get(job_id).spec.nodes)
        return all(self.api.read_log(job_id, rank=rank)[0] == self.log_of(job_id) for rank in range(nodes))

    def waits(self, job_id):
        """Tells whether the job waits in the cluster."""
        runs = self.api.get(job_id).runs
        return bool(runs) and runs[-1].state == job_pb2.RUN_STATE_PENDING

    def is_held(self, job_id):
        """Tells whether the job is truly held, and not only wished so."""
        return self.api.get(job_id).runs[-1].state_reason.code == facts_pb2.STATE_REASON_CODE_HELD

    @contextlib.contextmanager
    def no_room(self):
        """Others have all nodes meanwhile."""
        others = self.cluster.slurm_as_user("sbatch", "--parsable", "--exclusive", "--nodes=2", "-o", "/dev/null",
                                            "--wrap", "sleep 1000").strip()
        eventually(lambda: self.cluster.slurm("squeue", "-h", "-j", others, "-o", "%T").strip() == "RUNNING", "they run")
        try:
            yield
        finally:
            self.cluster.slurm("scancel", others)

    def find_orphans(self):
        """Returns, in words, the remains of jobs that have ended, without those found before."""
        with contextlib.suppress(AssertionError):
            eventually(lambda: not self.left(), "nothing is left over", ORPHAN_PATIENCE_S)
        found = self.left()
        self._orphans |= found
        return sorted(found)

    def left(self):
        """Returns, in words, the things that the agent has not cleaned up and nobody has complained
        of yet."""
        return self.list_things() - self._orphans

    def list_things(self):
        """All that is there because of jobs. Slurm keeps nothing but its own records, its agent files."""
        runs = self.agent.state_dir / "runs"
        return {str(path) for path in [*runs.glob("*-*-*"), *runs.glob("ended/*")]}

    def was_doubled_by_cluster(self, job, starts):
        """Tells whether the cluster itself reports so many starts of the job's only run. Slurm never does."""
        del job, starts
        return False


@contextlib.contextmanager
def open_lab(*, sshd=False, make_agent=SlurmCluster.make_agent, prepare=lambda cluster, ending: None):
    """prepare(cluster, ending) comes before the agent, what it gives to `ending` (an ExitStack) is undone at the end;
    make_agent(cluster, world) gives one that is not started yet."""
    with open_on(SlurmCluster(*CLUSTER, sshd=sshd), Lab, make_agent, prepare) as lab:
        yield lab


@contextlib.contextmanager
def open_on(cluster, lab_of, make_agent, prepare):
    """A lab of that class on the cluster, which it closes at the end; the others as above."""
    world = World()
    ending = contextlib.ExitStack()
    try:
        prepare(cluster, ending)
        start_shared_broker(world)
        agent = make_agent(cluster, world).start()
        lab = lab_of(world, cluster, agent, world.api(world.broker))
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
