"""submitit's own examples, as its published sources have them, with the import changed."""

import re

import pytest

from harness.fixtures import cluster_fixture
from harness.programs import checked
from harness.python_client import environment
from harness.slurm import start_shared_broker

SUBMITIT = "submitit==1.5.4"
# One worker installs it once.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("python_client")]

slurm = cluster_fixture("--nodes", "2", "--cpus", "4")

# The examples of docs/examples.md that are whole programs, by a text of each.
EXAMPLES = {"add": "log_folder = ", "concurrent": "import submitit\nimport time\n\nexecutor", "errors": "truediv",
            "commands": 'function = submitit.helpers.CommandFunction(["which", "python"])\nexecutor'}
# Stand-ins for the packages of mnist.py, which has no time to lose, and whose training takes a while.
STAND_INS = {
    "fast.pth": "import fast\n",
    "fast.py": "import time\n_sleep = time.sleep\ntime.sleep = lambda seconds: _sleep(seconds / 5)\n",
    "numpy.py": "def mean(what):\n    return 0.5\n",
    "sklearn/__init__.py": "",
    "sklearn/datasets.py": """
class Array:
    shape = (20000, 784)
    def __getitem__(self, which): return self
    def reshape(self, shape): return self
    def numpy(self): return self
    def to_numpy(self): return self
def fetch_openml(name, version, return_X_y): return Array(), Array()
""",
    "sklearn/linear_model.py": """
import time
class LogisticRegression:
    def __init__(self, **options): self.coef_ = 0
    def fit(self, X, y): time.sleep(40)
    def score(self, X, y): return 0.875
""",
    "sklearn/model_selection.py": "def train_test_split(X, y, train_size, test_size):\n    return X, X, y, y\n",
    "sklearn/preprocessing.py": "class StandardScaler:\n    def fit_transform(self, X): return X\n    transform = fit_transform\n",
    "sklearn/utils.py": "class check_random_state:\n    def __init__(self, seed): pass\n    def permutation(self, count): return range(count)\n",
}


def changed(text):
    found = re.sub(r"^import submitit$", "from muster import submitit", text, flags=re.MULTILINE)
    assert found != text or "import submitit" not in text
    return found


@pytest.fixture(scope="session")
def sources(installed, tmp_path_factory):
    """The directory docs of submitit's sources."""
    place = tmp_path_factory.mktemp("submitit")
    checked(installed.bin / "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", SUBMITIT, "-d", place)
    (archive,) = place.glob("*.tar.gz")
    checked("tar", "-xzf", archive, "-C", place)
    return place / archive.name.removesuffix(".tar.gz") / "docs"


@pytest.fixture
def examples(sources):
    """example(TEXT): the block of docs/examples.md that has the text, with the import changed."""
    blocks = re.findall(r"```python\n(.*?)```", (sources / "examples.md").read_text(), re.DOTALL)

    def find(text):
        found = [block for block in blocks if text in block]
        assert found, text
        return changed(found[0])

    return find


@pytest.mark.parametrize("text", EXAMPLES.values(), ids=EXAMPLES)
def test_its_examples_run(installed, world, agent, examples, text):
    del agent
    output = installed.execute(world, examples(text) if text != "truediv" else expecting_failure(examples(text)))
    assert output, text


def expecting_failure(example):
    """The example whose job fails, which ends with what its error says."""
    before, call, after = example.partition("job.result()")
    assert call
    return f"""{before}
try:
    job.result()
    raise SystemExit("it did not fail")
except submitit.helpers.FailedJobError as error:
    assert "ZeroDivisionError" in str(error), error
{after.strip().partition(chr(10))[2]}
assert "ZeroDivisionError" in full_stderr
print(job.state)
"""


def test_its_example_of_arrays_runs_in_both_forms(installed, world, agent, examples, api):
    del agent
    script = """
from muster import submitit
def add(a, b):
    return a + b
log_folder = "log_test/%j"
"""
    output = installed.execute(world, script + examples("slurm_array_parallelism=2") + """
print([job.state in ("PENDING", "RUNNING", "FAILED") for job in jobs])
jobs = executor.map_array(add, [1, 2, 3, 4], b)
print([job.result() for job in jobs])
whatever, myfunc = range(3), lambda n: n * n
""" + examples("with executor.batch()") + """
print([job.result() for job in jobs])
""")
    assert output.splitlines()[1:] == ["[11, 22, 33, 44]", "[0, 1, 4]"], output
    # At most two at a time: each begins when the one two places before it has ended.
    ids = sorted(job.id for job in api.list_all())
    first = ids[:4]
    assert [[depends.job_id for depends in api.get(job_id).spec.depends_on] for job_id in first] == [[], [], first[:1], first[1:2]]


def test_its_example_of_asyncio_runs(installed, world, agent, examples):
    del agent
    example = examples("import asyncio")
    imports, _, rest = example.partition("def slow_multiplication")
    body = "\n".join(f"    {line}" for line in f"def slow_multiplication{rest}".replace("x*y)", "0)").splitlines())
    output = installed.execute(world, f"{imports}\nasync def main():\n{body}\n\nasyncio.run(main())\n")
    assert len(output.split()) == 4, output


@pytest.fixture
def slurm_agent(world, slurm):
    start_shared_broker(world)
    return slurm.make_agent(world).start()


@pytest.mark.slurm
def test_its_example_of_tasks_on_two_nodes_of_slurm_runs(installed, world, examples, slurm_agent):
    del slurm_agent
    output = installed.execute(world, examples("job.task(2).result()").replace('slurm_partition="dev"', 'slurm_partition="debug", cpus_per_task=1'))
    assert output.splitlines()[0] == "12" and "[12, 12, 12, 12, 12, 12]" in output, output
    script = """
from muster import submitit
def place():
    job = submitit.JobEnvironment()
    own = submitit.helpers.TorchDistributedEnvironment().export()
    print("task", job.global_rank, flush=True)
    return job.global_rank, job.local_rank, job.node, job.num_tasks, own.rank, own.world_size, own.master_port
executor = submitit.AutoExecutor("logs")
assert executor.cluster == "slurm"
executor.update_parameters(nodes=2, tasks_per_node=2, slurm_partition="debug", cpus_per_task=1, slurm_comment="ours")
job = executor.submit(place)
found = job.results()
assert [place[:6] for place in found] == [(rank, rank % 2, rank // 2, 4, rank, 4) for rank in range(4)], found
assert len({place[6] for place in found}) == 1, found
assert [job.task(rank).stdout() for rank in range(4)] == [f"task {rank}\\n" for rank in range(4)]
"""
    installed.execute(world, script)


def test_its_training_goes_on_from_its_checkpoint(installed, world, agent, sources):
    del agent
    # An environment of its own, since the jobs run with the Python of the script.
    home = world.path("home")
    home.mkdir()
    checked(installed.bin / "python", "-m", "venv", "--without-pip", world.path("venv"))
    (site,) = world.path("venv").glob("lib/python3*/site-packages")
    (packages,) = installed.bin.parent.glob("lib/python3*/site-packages")
    (site / "installed.pth").write_text(f"{packages}\n")
    for name, text in STAND_INS.items():
        (site / name).parent.mkdir(exist_ok=True)
        (site / name).write_text(text)
    (home / "mnist.py").write_text(changed((sources / "mnist.py").read_text()))
    output = checked(world.path("venv") / "bin" / "python", home / "mnist.py", cwd=home, env=environment(world))
    assert "Starting from stage '0'" in output and "Starting from stage 'Model Training'" in output, output
    assert "Final score: 0.875" in output and "Checkpointing at stage 'Model Training'" in output, output


def test_unknown_parameters_are_refused(installed, world, agent):
    del agent
    assert installed.execute(world, """
from muster import submitit
executor = submitit.AutoExecutor("logs")
for wrong in ({"cpu_per_task": 1}, {"slurm_nope": 1}, {"other_time": 1}, {"stderr_to_stdout": True}):
    try:
        executor.update_parameters(**wrong)
    except NameError as error:
        print(str(error).split("'")[1])
try:
    submitit.AutoExecutor("logs", cluster="nowhere")
except ValueError as error:
    print(error)
""").splitlines()[:4] == ["cpu_per_task", "slurm_nope", "other_time", "stderr_to_stdout"]


# The begin of the programs below: a training whose first run goes on until its checkpoint.
TRAINING = """
import os, pathlib, pickle, shutil, threading, time
import muster
from muster import submitit

class Training(submitit.helpers.Checkpointable):
    def __init__(self):
        self.place, self.runs = os.getcwd(), 0

    def __call__(self):
        self.runs += 1
        pathlib.Path(self.place, f"running-{submitit.JobEnvironment().global_rank}").touch()
        while self.runs == 1:
            time.sleep(0.1)
        return self.runs

def interrupted(job):
    while len(list(pathlib.Path().glob("running-*"))) < job.num_tasks:
        time.sleep(0.1)
    job._interrupt()
    return job.result()

again = muster.Job(fields={"retry": {"backoff": "0.1s", "exitCodes": [3]}})
executor = submitit.AutoExecutor("logs", muster_job=again)
"""


def test_files_of_an_earlier_brokers_job_of_the_same_number_are_not_used(installed, world, agent):
    del agent
    assert installed.execute(world, TRAINING + """
assert interrupted(executor.submit(Training())) == 2
folder = pathlib.Path("logs")
for name in ("0_result.pkl", "checkpoint.pkl"):
    shutil.copy(folder / f"1_{name}", folder / f"2_{name}")
stale = (folder / "2_0_result.pkl").read_bytes()
job = executor.submit(lambda: "its own")
print(job.job_id, job.result())
assert (folder / "2_0_result.pkl").read_bytes() != stale and job.submission().result() == "its own"
shutil.copy(folder / "1_submitted.pkl", folder / "2_submitted.pkl")
try:
    job.submission()
except FileNotFoundError as error:
    print(error)
""").startswith("2 its own\n")


def test_a_checkpoint_of_one_task_ends_the_run_of_the_others(installed, world, agent, api):
    del agent
    assert installed.execute(world, TRAINING + """
executor.update_parameters(tasks_per_node=2)
print(interrupted(executor.submit(Training())))
""") == "[2, 2]\n"
    assert list(api.get(1).spec.retry.exit_codes) == [3, 75]


def test_an_outcome_that_does_not_come_now_is_no_failure(installed, world, agent):
    installed.execute(world, TRAINING + """
job = executor.submit(lambda: 12)
job.wait()
pickle.dump(job, open("job.pkl", "wb"))
""")
    agent.kill()
    look = """
import pickle, muster
from muster import submitit
job = pickle.load(open("job.pkl", "rb"))
try:
    print(job.result())
except muster.MusterError:
    print("later")
"""
    assert installed.execute(world, look) == "later\n"
    agent.start()
    assert installed.execute(world, look) == "12\n"


def test_jobs_before_one_that_is_refused_are_not_lost(installed, world, agent, api):
    del agent
    installed.execute(world, TRAINING + """
executor.update_parameters(slurm_array_parallelism=1)
try:
    executor.map_array(lambda value: str(value), [1, threading.Lock(), 3])
except TypeError as error:
    assert [job.result() for job in error.submitted] == ["1"], error.submitted
try:
    with executor.batch():
        jobs = [executor.submit(str, value) for value in (2, threading.Lock())]
except TypeError as error:
    assert error.submitted[0].job_id == jobs[0].job_id and jobs[0].result() == "2"
for left in (jobs[1], None):
    try:
        if left is None:
            with executor.batch():
                left = executor.submit(str, 4)
                raise KeyError
    except KeyError:
        pass
    try:
        left.result()
        raise SystemExit("it was there")
    except RuntimeError as error:
        assert "was not submitted" in str(error), error
""")
    assert len(api.list_all()) == 2


def test_another_muster_on_the_clusters_path_has_no_part_in_a_job(installed, world, agent):
    del agent
    shadow = world.path("home") / "project" / "muster"
    shadow.mkdir(parents=True)
    (shadow / "__init__.py").write_text("raise SystemExit('this is another muster')\n")
    assert installed.execute(world, TRAINING + """
executor.update_parameters(muster_job=muster.Job(workdir="project"))
print(executor.submit(lambda: submitit.JobEnvironment().job_id).result())
""") == "1\n"
