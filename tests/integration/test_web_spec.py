"""The spec of a job as the web page copies it: what was copied is run, and submits the same job."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from google.protobuf import duration_pb2, json_format
from muster.v1 import job_dependency_pb2, job_spec_pb2

from harness.api import argv_spec, script_spec
from harness.daemons import BIN
from harness.web import web_fixtures

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
INSTALL_TIMEOUT_S = 600
RUN_TIMEOUT_S = 60

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("web")]

chromium, browser, broker, site = web_fixtures()

PASTED = "\x1b[201~; touch /tmp/hurt\n"


def whole(spec, **fields):
    return json_format.ParseDict(fields, spec)


# By a name: the spec, and whether flags of `muster run` say all of it.
SPECS = {
    "plain": (argv_spec("echo", "hello"), True),
    "quotes": (argv_spec("printf", "%s\n", "it's", 'a "b" $HOME `x` \\', "", "-x", "--", "é 中", "a=b", "*"), False),
    "one-line": (argv_spec("printf", "%s", "it's", 'a "b" $HOME `x` \\', "", "-x", "--", "é 中", "a=b", "*", "#!~"), True),
    "backslashes": (argv_spec("printf", "%s", "\\", "; touch /tmp/hurt #", "\\'", "'\\", "a\\\\b\\", "%self", "~", "{a,b}", "x=%self"), True),
    "flags": (whole(argv_spec("true", name="-a b", labels={"team": "vi'sion", "n": "7"}, env={"A": "x=1", "B": "", "C": "$A"}, priority=-5,
                              time_limit=duration_pb2.Duration(seconds=5430)),
                    resources={"cpuMillis": "1500", "memoryBytes": str(3 << 29), "gpus": [{"type": "h100", "countMillis": "2000"}]},
                    placement={"pool": "gpu"}, image="reg/x:1", workingDirectory="/tmp/a b", preemptible=True, nodes=2,
                    project="default"), True),
    "odd sizes": (whole(argv_spec("true", time_limit=duration_pb2.Duration(seconds=1, nanos=500_000_000)),
                        resources={"cpuMillis": "1", "memoryBytes": str((1 << 20) + 1), "gpus": [{"countMillis": "1000"}]}), False),
    "no gpus": (whole(argv_spec("true"), resources={"gpus": [{}]}), True),
    "script": (script_spec("#!/bin/sh\n\tset -e\n  echo 'EOF'\nEOF\n", name="s"), False),
    "arguments": (whole(argv_spec("x"), command={"script": "echo $1\n", "scriptArguments": ["a b", "it's"]}), False),
    "more": (whole(argv_spec("true", retry={"max_runs": 3}), setup="echo ready\n", results_directory="file:///tmp/r", slurm={"qos": "high", "extraOptions": []},
                   on_cluster_loss="CLUSTER_LOSS_POLICY_WAIT", mounts=[{"source": "/a", "target": "/b", "readOnly": True}], image="reg/x:1"), False),
    "hostile": (argv_spec("echo", PASTED, "\u202e\u2028\x7f\x85\u200b\u061c", name="x", env={"P": PASTED}), False),
}


@pytest.fixture(scope="module")
def python():
    """An environment with the Python client."""
    root = pathlib.Path(tempfile.mkdtemp(prefix="muster-copy-"))
    package = root / "repository" / "clients" / "python"
    shutil.copytree(REPOSITORY / "clients" / "python", package, ignore=shutil.ignore_patterns("v1", "build", "dist", "*.egg-info", "__pycache__", ".*_cache"))
    (root / "repository" / "proto").symlink_to(REPOSITORY / "proto")
    for argv in (["/usr/bin/python3", "-m", "venv", root / "venv"], [root / "venv" / "bin" / "pip", "install", "--quiet", package]):
        subprocess.run([str(word) for word in argv], check=True, timeout=INSTALL_TIMEOUT_S, env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"})
    yield root / "venv" / "bin" / "python"
    shutil.rmtree(root, ignore_errors=True)


def copied(page, form):
    page.get_by_role("button", name=f"Copy as {form}", exact=True).click()
    page.get_by_role("button", name="Copied").wait_for()
    text = page.evaluate("navigator.clipboard.readText()")
    page.get_by_role("button", name=f"Copy as {form}", exact=True).wait_for()
    return text


def open_copier(site, job):
    page = site.open(f"/jobs/{job}", role="ADMIN")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("pre.spec").wait_for()
    return page


def execute(broker, *argv, **options):
    """Runs it in an environment of its own, and returns the number of the job that it submitted."""
    environment = {"PATH": f"{BIN}:/usr/bin:/bin", "HOME": "/nonexistent", "MUSTER_BROKER": broker.address, "LC_ALL": "C.UTF-8"}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return int(done.stdout.split()[-1])


def spec_of(api, job):
    """The spec, in which an empty placement is the same as none: the Python client sends one."""
    spec = api.get(job).spec
    if not spec.placement.ByteSize():
        spec.ClearField("placement")
    return spec


def has_no_control_characters(text):
    return all(character.isprintable() or character == "\n" for character in text)


@pytest.mark.parametrize("name, shell", [*((name, "sh") for name in SPECS), ("quotes", "bash"),
                                         *((name, shell) for name in ("one-line", "backslashes", "flags") for shell in ("bash", "zsh", "fish"))])
def test_the_copied_command_submits_the_same_job(name, shell, broker, api, site):
    spec, has_flags = SPECS[name]
    job = api.submit(spec, held=True)
    text = copied(open_copier(site, job), "CLI")
    assert text.startswith("muster run " if has_flags else "muster submit ") and has_no_control_characters(text)
    again = execute(broker, shell, "-c", text.replace("muster run", "muster -q run").replace("muster submit", "muster -q submit", 1))
    assert again != job and spec_of(api, again) == spec_of(api, job)


@pytest.mark.parametrize("name", SPECS)
def test_the_copied_program_submits_the_same_job(name, python, broker, api, site):
    job = api.submit(SPECS[name][0], held=True)
    text = copied(open_copier(site, job), "Python")
    assert has_no_control_characters(text)
    again = execute(broker, str(python), "-c", text)
    assert again != job and spec_of(api, again) == spec_of(api, job)


@pytest.mark.parametrize("form", ["YAML", "JSON"])
def test_the_copied_file_submits_the_same_job(form, world, broker, api, site):
    job = api.submit(SPECS["flags"][0], held=True)
    path = world.write("copied", copied(open_copier(site, job), form))
    assert spec_of(api, execute(broker, BIN / "muster", "submit", "-q", path)) == spec_of(api, job)


def test_a_job_is_copied_with_its_cluster_and_with_those_that_it_waits_for(python, broker, agent, api, site):
    placed = api.submit(whole(argv_spec("true"), placement={"clusters": ["box"]}), held=True)
    page = open_copier(site, placed)
    command = copied(page, "CLI")
    assert "--cluster=box" in command and spec_of(api, execute(broker, "sh", "-c", command.replace("run", "-q run", 1))) == spec_of(api, placed)
    assert spec_of(api, execute(broker, str(python), "-c", copied(page, "Python"))) == spec_of(api, placed)
    first = api.submit(argv_spec("true"), held=True)
    spec = job_spec_pb2.JobSpec()
    spec.CopyFrom(argv_spec("true"))
    spec.depends_on.add(job_id=first, outcome=job_dependency_pb2.JOB_OUTCOME_ENDED)
    job = api.submit(spec, held=True)
    page = open_copier(site, job)
    assert spec_of(api, execute(broker, "sh", "-c", copied(page, "CLI").replace("muster submit", "muster -q submit"))) == spec_of(api, job)
    assert spec_of(api, execute(broker, str(python), "-c", copied(page, "Python"))) == spec_of(api, job)
