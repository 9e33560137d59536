"""The Python client, installed by pip into an empty environment: its own tests, its types, and real jobs."""

import shutil

import pytest

from harness.programs import checked
from harness.python_client import blocks, environment
from harness.restarts import lines_of_the_log, seen_across_restarts
from harness.stubs import REPOSITORY

# One worker installs it once.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("python_client")]


@pytest.fixture
def python(installed, world, broker):
    """python(SCRIPT): runs it with the package, for the test's broker, in a directory of its own."""
    del broker
    # Jobs of functions run with the python3 of the agent, which is that of the environment's own version.
    return lambda script, *arguments: installed.execute(world, script, *arguments)


def test_its_own_tests_pass(installed):
    output = checked(installed.bin / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", cwd=installed.package)
    assert " passed" in output and "skipped" not in output, output


def test_its_types_are_strict(installed):
    # The installed package is checked, with the classes that were made of the protos.
    site = checked(installed.bin / "python", "-c", "import muster; print(muster.__path__[0])", cwd=installed.root).strip()
    shutil.copytree(site, installed.root / "typed" / "muster")
    checked(installed.bin / "mypy", "--config-file", installed.package / "pyproject.toml", cwd=installed.root / "typed")


def test_the_example_of_its_readme_runs(python, agent):
    assert python(blocks(REPOSITORY / "clients" / "python" / "README.md")) == "hello from box\n0\n"


def test_the_examples_of_the_page_run_in_order(python, world, agent):
    home = world.path("home")
    (home / "project").mkdir(parents=True)
    (home / "project" / "train.py").write_text("import os\nos.makedirs('results', exist_ok=True)\nopen('results/model', 'w').write('m')\n")
    (home / "train.yaml").write_text("name: train\nrun: echo trained\n")
    output = python(blocks(REPOSITORY / "docs" / "python.md"))
    assert "hello from box" in output and "the page is over" in output, output


def test_a_submit_that_is_repeated_makes_one_job(python, agent, api):
    assert python("""
import muster
client = muster.Client()
first = client.submit("true", request_id="mine")
assert client.submit("true", request_id="mine") == first
try:
    client.submit("false", request_id="mine")
except muster.AlreadyExists:
    print("refused")
""") == "refused\n"
    assert len(api.list_all()) == 1


def test_files_go_along_and_results_come_back(python, world, agent):
    home = world.path("home")
    (home / "project" / "bin").mkdir(parents=True)
    (home / "project" / ".gitignore").write_text("*.log\n")
    (home / "project" / "noise.log").write_text("x")
    (home / "project" / "bin" / "go").write_text("#!/bin/sh\nls > results/listed; cat etc/config >> results/listed; mkfifo results/pipe\n")
    (home / "project" / "bin" / "go").chmod(0o755)
    (home / "config").write_text("configured\n")
    python("""
import muster, pathlib
job = muster.Client().submit(["bin/go"], workdir="project", files={"etc/config": "config"})
job.result()
fetched = job.fetch("results", "here")
assert (fetched, fetched.left_out) == ("here", (("pipe", "is a device, a pipe or a socket", "SPECIAL_FILE"),)), fetched.left_out
assert job.fetch(to=".") == "./results", job.fetch(to=".")
""")
    assert (home / "here" / "listed").read_text() == (home / "results" / "listed").read_text() == "bin\netc\nresults\nconfigured\n"


def test_what_is_wrong_comes_as_an_exception_of_its_kind(python, agent):
    assert python("""
import muster
client = muster.Client()
for call in (lambda: client.submit("true", nodes=2), lambda: client.submit("true", priority=5000), lambda: client.job(4711).refresh(),
             lambda: client.submit("exit 3").result(60), lambda: client.submit("true", clusters=["nowhere"])):
    try:
        call()
    except muster.MusterError as error:
        print(type(error).__name__, error.code, error.reason, sorted(error.fields))
""").splitlines() == ["CannotBePlaced FAILED_PRECONDITION CANNOT_BE_PLACED []", "BadRequest INVALID_ARGUMENT  ['spec.priority']",
                      "NotFound NOT_FOUND UNKNOWN_JOB []", "JobFailed   []", "NotFound NOT_FOUND UNKNOWN_CLUSTER []"]


def test_a_restart_of_the_broker_costs_no_line_and_no_change(installed, world, broker, agent, api):
    world.path("home").mkdir()
    script = world.write("script.py", """
import sys, threading, muster
client = muster.Client()
job = client.submit(sys.argv[1])
states = []
watch = threading.Thread(target=lambda: states.extend(
    change.transition.job_sequence for change in client.watch(job, from_beginning=True, until_ended=True) if change.HasField("transition")))
watch.start()
for line in job.logs(follow=True):
    print(line, flush=True)
watch.join()
assert states == [step.job_sequence for step in job.events()], states
assert states == list(range(1, len(states) + 1)), states
print(job.wait().state)
""")
    seen = seen_across_restarts(world, broker, [installed.bin / "python", script], environment(world))
    assert seen == [*lines_of_the_log(), "SUCCEEDED"]


def test_functions_bring_back_values_and_exceptions(python, agent):
    assert python("""
import muster

def divide(a, b=1):
    return a / b

client = muster.Client()
print(client.submit(divide, 6, b=3).result(120))
print(list(client.map(divide, range(5), [1] * 5, batch=2)))
try:
    client.submit(divide, 1, 0).result(120)
except ZeroDivisionError as error:
    print(error, "divide" in str(error.__cause__))
with muster.Executor(client) as executor:
    futures = [executor.submit(divide, n) for n in range(3)]
    print([future.result(120) for future in futures], list(executor.map(divide, range(4), chunksize=2)))
""") == "2.0\n[0.0, 1.0, 2.0, 3.0, 4.0]\ndivision by zero True\n[0.0, 1.0, 2.0] [0.0, 1.0, 2.0, 3.0]\n"


def test_a_function_of_a_module_of_the_user_goes_along(python, world, agent):
    home = world.path("home")
    home.mkdir()
    (home / "mine.py").write_text("HALF = 0.5\n\ndef halve(n):\n    return n * HALF\n")
    assert python("""
import sys; sys.path.insert(0, ".")
import mine, muster
print(muster.Client().submit(mine.halve, 5).result(120))
""") == "2.5\n"


def test_asyncio_has_the_same_verbs(python, world, agent):
    (world.path("home") / "project").mkdir(parents=True)
    (world.path("home") / "project" / "large").write_bytes(bytes(3 << 20))
    assert python("""
import asyncio, muster, muster.aio

async def main():
    async with muster.aio.AsyncClient() as client:
        job = await client.submit("wc -c <large; cp large results/copy", workdir="project")
        print([line.strip() async for line in job.logs(follow=True)], (await job.result()).exit.code, await job.fetch("results"))
        held = await client.submit("true", held=True)
        print((await held.why()).code, (await (await held.cancel()).wait(60)).state, len([step async for step in held.events()]))
        try:
            await (await client.submit("exit 3")).result(60)
        except muster.JobFailed as error:
            print(error.failure.exit.code)
        print(await client.count(), [one.id async for one in client.list(limit=2)], [one.name for one in await client.clusters()])
        print([value async for value in client.map(len, ["a", "bb", "ccc"], batch=2)])
        try:
            await (await client.submit("sleep 60")).wait(0.2)
        except muster.WaitTimeout:
            await client.cancel(filter="id > 0")

asyncio.run(main())
""").splitlines() == ["['3145728'] 0 ./results", "HELD CANCELED 3", "3", "3 [3, 2] ['box']", "[1, 2, 3]"]
    assert (world.path("home") / "results" / "copy").stat().st_size == 3 << 20


def test_more_jobs_than_a_watch_takes_by_number_are_waited_for(python, agent):
    assert python("""
import muster
client = muster.Client()
client.submit("true", held=True)
jobs = client.submit_many(["true"] * 1100, cpus=0.01, time="1h")
client.cancel(filter=f"id > {jobs[50].id}")
print(sorted({job.state for job in client.wait(jobs, 250)}), client.count("state = CANCELED") > 900)
""") == "['CANCELED', 'SUCCEEDED'] True\n"


def test_its_source_is_for_python_3_9():
    import ast
    for path in (REPOSITORY / "clients" / "python").rglob("*.py"):
        ast.parse(path.read_text(), str(path), feature_version=(3, 9))
