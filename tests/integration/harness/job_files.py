"""The job files of tests/integration/jobs on a cluster of each kind, submitted as users do, and their outcomes."""

import yaml
from muster.v1 import facts_pb2, job_pb2, jobs_service_pb2

from harness.hosts import SshCluster
from harness.kubernetes import KubernetesCluster
from harness.slurm import SlurmCluster, start_shared_broker
from harness.stubs import REPOSITORY
from harness.wait import eventually
from harness.world import World

JOBS = REPOSITORY / "tests" / "integration" / "jobs"
# The number is more than there are files.
NUMBERS_APART = 100
# A job that never ran has this for a log.
NO_LOG = ""


def outcomes(kind):
    """Returns the expected outcome of each file on clusters of that kind, by the file's name."""
    expected = yaml.safe_load((JOBS / "outcomes.yaml").read_text())
    for difference in yaml.safe_load((JOBS / "differences.yaml").read_text()):
        if kind not in difference["kinds"]:
            continue
        for name in difference.get("files", []):
            other = difference["outcome"]
            expected[name] = None if other == "none" else {**expected[name], **other}
        if "only" in difference:
            expected = {name: expected[name] for name in difference["only"]}
    return {name: outcome for name, outcome in expected.items() if outcome is not None}


def additions(kind):
    """Returns the beginnings of lines that a cluster of that kind may add to the output of what it has ended."""
    differences = yaml.safe_load((JOBS / "differences.yaml").read_text())
    return tuple(words for difference in differences if kind in difference["kinds"] for words in difference.get("adds", []))


def is_allowed(text, wanted, added):
    """Tells whether an output is as outcomes.yaml has it in `wanted`, a mapping; `added` as additions() tells
    them."""
    if "lines" in wanted:
        return sorted(text.splitlines()) == sorted(wanted["lines"]) and text.endswith("\n")
    if "begins" in wanted:
        rest = text.removeprefix(wanted["begins"])
        return text.startswith(wanted["begins"]) and all(line.startswith(added) for line in rest.splitlines())
    return "any" in wanted


class Place:
    """A cluster of one kind with a broker of its own. All files are submitted at once, so that what takes its time in one
    of the jobs keeps no other one."""

    def __init__(self, kind):
        self.world = World()
        self._kind = kind
        self._cluster = None
        self._submitted = {}

    def start(self):
        """Returns itself, once every file is submitted and every cancel is asked for."""
        start_shared_broker(self.world)
        self._cluster, agent = CLUSTERS[self._kind](self.world)
        agent.start()
        self._name = agent.cluster
        self._api = self.world.api()
        writable = self.world.path("writable")
        writable.mkdir()
        writable.chmod(0o777)
        self._skip_numbers()
        expected = outcomes(self._kind)
        for name, outcome in expected.items():
            options = outcome.get("submit", "").replace("<DIRECTORY>", str(writable)).split()
            self._submitted[name] = self._submit(name, options)
        for name, outcome in expected.items():
            if "cancel" in outcome:
                self._cancel(name, outcome["cancel"])
        return self

    def close(self, keep):
        self.world.close(keep)
        if self._cluster is not None:
            self._cluster.close()

    def check(self, name):
        """Asserts that of the file has come what must."""
        expected = outcomes(self._kind)[name]
        first = self._job_id(name)
        if "tasks" in expected:
            self._check_tasks(first, expected)
            return
        job = self._api.wait_end(first)
        self._check_transitions(job)
        wanted = {"state": expected["state"], "exit": _with_rank(expected.get("exit")), "failure": expected.get("failure"),
                  "runs": expected.get("runs", 1)}
        seen = self._seen(job, wanted["failure"])
        if "any" in (wanted["exit"] or {}):
            wanted["exit"] = seen["exit"]
        assert seen == wanted, job
        outputs = expected.get("stdout", [NO_LOG])
        errors = expected.get("stderr", [NO_LOG] * len(outputs))
        assert len(outputs) == (job.spec.nodes or 1) * bool(job.runs), "outcomes.yaml has a text for each rank"
        for rank, (output, error) in enumerate(zip(outputs, errors, strict=True)):
            self._check_log(job, output, rank, jobs_service_pb2.LOG_STREAM_STDOUT)
            self._check_log(job, error, rank, jobs_service_pb2.LOG_STREAM_STDERR)

    # ---- the parts

    def _skip_numbers(self):
        """The port at which ranks meet goes by the job's number: clusters of other kinds, which may share this machine at the
        same time, have jobs of other numbers."""
        for _ in range(list(CLUSTERS).index(self._kind)):
            first = self.world.cli("sbatch", "--parsable", "--hold", f"--array=1-{NUMBERS_APART}", "--chdir=/", "--wrap=true")
            self.world.cli("scancel", first.stdout.strip())

    def _submit(self, name, options):
        verb = ("sbatch", "--parsable") if name.endswith(".sh") else ("submit", "-q")
        return self.world.cli(*verb, *options, JOBS / name, check=False)

    def _job_id(self, name):
        done = self._submitted[name]
        assert done.returncode == 0, f"{name} is refused: {done.stderr}"
        return int(done.stdout)

    def _cancel(self, name, said):
        job_id = self._job_id(name)
        if said:
            eventually(lambda: self._api.read_log(job_id)[0] == said.encode(), f"{name} has said {said!r}")
        self.world.cli("cancel", job_id)

    @staticmethod
    def _seen(job, failure):
        """Returns the outcome of the job, in the form of outcomes.yaml."""
        seen = {"state": job_pb2.JobState.Name(job.state).removeprefix("JOB_STATE_"), "exit": None, "failure": None,
                "runs": len(job.runs)}
        if job.HasField("exit"):
            ended = {"signal": job.exit.signal} if job.exit.signal else {"code": job.exit.code}
            seen["exit"] = {**ended, "rank": job.exit.rank}
        if job.HasField("failure"):
            name = job_pb2.FailureClass.Name(job.failure.failure_class).removeprefix("FAILURE_CLASS_")
            says = failure["says"] if failure and failure["says"] in job.failure.message else job.failure.message
            seen["failure"] = {"class": name, "says": says}
            if failure and "code" in failure:
                code = facts_pb2.FailureCode.Name(job.failure.code)
                seen["failure"]["code"] = code.removeprefix("FAILURE_CODE_")
        return seen

    def _check_log(self, job, wanted, rank, stream):
        data, end = self._api.read_log(job.id, follow=True, rank=rank, stream=stream)
        assert end == jobs_service_pb2.LOG_END_COMPLETE, jobs_service_pb2.LogEnd.Name(end or 0)
        if isinstance(wanted, int):
            assert data == bytes(range(256)) * wanted, "every byte, so many times"
        elif isinstance(wanted, str):
            assert data.decode() == self._filled_in(wanted, job), data
        else:
            assert is_allowed(data.decode(), wanted, additions(self._kind)), data

    def _filled_in(self, text, job):
        values = {"<JOB>": str(job.id), "<CLUSTER>": self._name, "<RUN_KEY>": job.runs[-1].run_key if job.runs else ""}
        for word, value in values.items():
            text = text.replace(word, value)
        return text

    def _check_tasks(self, first, expected):
        for number, output in enumerate(expected["tasks"]):
            job = self._api.wait_end(first + number)
            wanted = {"state": expected["state"], "exit": _with_rank(expected["exit"]), "failure": None, "runs": 1}
            assert self._seen(job, None) == wanted, job
            self._check_log(job, output, 0, jobs_service_pb2.LOG_STREAM_STDOUT)

    def _check_transitions(self, job):
        """Each has its number, and says by what it is known."""
        steps = self._api.transitions(job.id)
        assert [step.job_sequence for step in steps] == list(range(1, len(steps) + 1))
        assert [step.sequence for step in steps] == sorted({step.sequence for step in steps})
        assert steps[0].kind == job_pb2.TRANSITION_KIND_SUBMITTED
        assert steps[-1].job_state == job.state
        for step in steps:
            assert step.evidence.source != job_pb2.EVIDENCE_SOURCE_UNSPECIFIED, step
            assert step.HasField("time"), step


def _with_rank(ended):
    return None if ended is None else {"rank": 0, **ended}


# ---- a cluster of each kind: what ends it, and its agent


def _machine(world):
    return None, world.make_agent("lab", config=world.machines_config(gpus={"h100": 4}))


def _machines(world):
    cluster = SshCluster(world, 2)
    return cluster, cluster.make_agent()


def _slurm(world):
    # Names by which the nodes find each other, as they do in a cluster whose names are known.
    cluster = SlurmCluster("--nodes", "2", "--cpus", "8", "--gpus", "4", "--node-prefix", "127.0.0.")
    return cluster, cluster.make_agent(world)


def _kubernetes(world):
    cluster = KubernetesCluster("-arg", "kube-apiserver=--feature-gates=PodLogsQuerySplitStreams=true", nodes=2, gpus=4)
    return cluster, cluster.make_least_agent(world)


def _kubernetes_by_default(world):
    cluster = KubernetesCluster(nodes=1, gpus=0)
    return cluster, cluster.make_least_agent(world)


CLUSTERS = {"machine": _machine, "machines": _machines, "slurm": _slurm, "kubernetes": _kubernetes,
            "kubernetes-by-default": _kubernetes_by_default}
