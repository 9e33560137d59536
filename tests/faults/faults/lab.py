"""A cluster, a broker and an agent to strike at."""

import contextlib
import shutil
import tempfile
import pathlib

from muster.v1 import job_pb2

from harness.kubernetes import KubernetesCluster
from harness.slurm import USER, SlurmCluster, start_shared_broker
from harness.trio import PodTrio, Trio
from harness.wait import eventually
from harness.world import World

# A clean-up that failed is tried again with the next inventory, a minute later; a busy machine makes the controllers wait.
ORPHAN_PATIENCE_S = 150.0
KINDS = ("jobs", "pods", "secrets", "services")
TERMINAL_RUNS = (job_pb2.RUN_STATE_SUCCEEDED, job_pb2.RUN_STATE_FAILED, job_pb2.RUN_STATE_CANCELED)
CLUSTER = ("--nodes", "2", "--cpus", "8", "--min-job-age", "5", "--requeue-delay", "2")
SLURM_COMMANDS = ("sbatch", "squeue", "scancel", "sacct", "sinfo", "scontrol", "srun")

PODS = "/api/v1/namespaces/default/pods"
SHUNNED = {"shunned": "yes"}
# No pod that is called so gets a node as long as this one runs.
SHUNNER = {
    "metadata": {"name": "shunner"},
    "spec": {
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "any", "command": ["sleep", "100000"]}],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": SHUNNED}, "topologyKey": "kubernetes.io/os"}]}},
    },
}
SHUNNER_PATH = PODS + "/shunner"


class Lab:
    """What one fault works with."""

    trio_of = Trio

    def __init__(self, world, cluster, agent, api):
        self.world, self.cluster, self.agent, self.api = world, cluster, agent, api
        self.trio = self.trio_of(world, world.broker, agent, api)
        self.trio.counter = world.path("counter")
        self.trio.counter.touch()
        self.trio.counter.chmod(0o666)
        self._orphans = set()

    def spec(self, text=""):
        """A job that counts its starts, says so, and then does what the shell text says."""
        return self.trio.counting(f'echo "log of $MUSTER_JOB_ID"\n{text}')

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
        """Also its logs."""
        job = self.api.get(job_id)
        return bool(job.runs) and job.runs[-1].state in TERMINAL_RUNS and job.runs[-1].logs_complete

    def has_logged(self, job_id):
        return self.api.read_log(job_id)[0] == self.log_of(job_id)

    def waits(self, job_id):
        """In the cluster."""
        runs = self.api.get(job_id).runs
        return bool(runs) and runs[-1].state == job_pb2.RUN_STATE_PENDING

    def is_held(self, job_id):
        """Not only wished so."""
        return self.api.get(job_id).runs[-1].reason.startswith("held")

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
        """What is still left of jobs that have ended, and has not been found before; in words."""
        with contextlib.suppress(AssertionError):
            eventually(lambda: not self.left(), "nothing is left over", ORPHAN_PATIENCE_S)
        found = self.left()
        self._orphans |= found
        return sorted(found)

    def left(self):
        """What the agent has not cleaned up and nobody has complained of yet, in words."""
        return self.list_things() - self._orphans

    def list_things(self):
        """All that is there because of jobs. Slurm keeps nothing but its own records, its agent files."""
        runs = self.agent.state_dir / "runs"
        return {str(path) for path in [*runs.glob("*-*-*"), *runs.glob("ended/*")]}

    def was_doubled_by_cluster(self, job, starts):
        """Whether the cluster itself tells that it has made so many starts of the job's only run. Slurm never does."""
        del job, starts
        return False


class KubernetesLab(Lab):
    """Its jobs may be cleaned up as soon as the broker has their ends and logs."""

    trio_of = PodTrio

    def spec(self, text=""):
        spec = super().spec(text)
        spec.kubernetes.time_to_live.SetInParent()
        return spec

    @contextlib.contextmanager
    def no_room(self):
        with self.cluster.cordoned():
            yield

    @contextlib.contextmanager
    def shunned_by_nodes(self):
        """Meanwhile no node takes a job of shunned_spec(), which the agent cannot know before it lets it go."""
        self.cluster.must("POST", PODS, SHUNNER)
        eventually(lambda: self.cluster.must("GET", SHUNNER_PATH)["status"]["phase"] == "Running", "the shunner runs")
        try:
            yield
        finally:
            self.cluster.must("DELETE", SHUNNER_PATH)
            eventually(lambda: self.cluster.admin("GET", SHUNNER_PATH)[0] == 404, "the shunner is gone")

    def shunned_spec(self):
        spec = self.spec()
        spec.kubernetes.labels.update(SHUNNED)
        return spec

    def finds_no_node(self, job_id):
        """Its pod is there, and the scheduler has found none for it."""
        runs = self.api.get(job_id).runs
        pods = self.cluster.objects("pods", runs[-1].run_key) if runs else []
        return any(condition.get("reason") == "Unschedulable" for pod in pods if "deletionTimestamp" not in pod["metadata"]
                   for condition in pod["status"].get("conditions", []))

    def was_doubled_by_cluster(self, job, starts):
        """A Job controller that does not hear whether its pod was made makes another one: Kubernetes says that a program
        "may sometimes be started twice" (its page on Jobs). Then there are Events about so many pods of the one Job, which
        Muster has let go once."""
        if len(job.runs) != 1 or starts < 2:
            return False
        key = job.runs[0].run_key
        about = [(event["involvedObject"]["name"], event["reason"], event["involvedObject"]["kind"])
                 for event in self.cluster.objects("events")]
        pods = {name for name, reason, kind in about if kind == "Pod" and reason == "Started" and name.startswith(key + "-")}
        resumed = [name for name, reason, _ in about if name == key and reason == "Resumed"]
        return len(pods) == starts and len(resumed) <= 1

    def list_things(self):
        return {f"{kind} {thing['metadata']['name']}" for kind in KINDS for thing in self.cluster.objects(kind)}


@contextlib.contextmanager
def open_lab(*, sshd=False, make_agent=SlurmCluster.make_agent, prepare=lambda cluster, ending: None):
    """prepare(cluster, ending) comes before the agent, what it gives to `ending` (an ExitStack) is undone at the end;
    make_agent(cluster, world) gives one that is not started yet."""
    with _open(SlurmCluster(*CLUSTER, sshd=sshd), Lab, make_agent, prepare) as lab:
        yield lab


@contextlib.contextmanager
def open_kubernetes_lab(*options, nodes=1, make_agent=KubernetesCluster.make_agent,
                        make_kubeconfig=KubernetesCluster.least_rights_kubeconfig, prepare=lambda cluster, ending: None):
    """`options` are the cluster's. make_agent(cluster, world, **settings) gives an agent that is not started yet;
    make_kubeconfig(cluster) the path of its kubeconfig, of an account with no more rights than agents need; prepare as
    above, before that."""
    def make(cluster, world):
        return make_agent(cluster, world, kubeconfig=make_kubeconfig(cluster), allow_host_path="yes")

    with _open(KubernetesCluster(*options, nodes=nodes, gpus=0), KubernetesLab, make, prepare) as lab:
        yield lab


@contextlib.contextmanager
def _open(cluster, lab_of, make_agent, prepare):
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
