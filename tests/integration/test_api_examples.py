"""The quickstarts of docs/api.md, each made and run as the page says, in a copy of its directory."""

import os
import pathlib
import shutil
import subprocess

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
# A first build of gRPC for Go takes minutes on a busy machine.
BUILD_TIMEOUT_S = 1200
RUN_TIMEOUT_S = 120


@pytest.fixture
def example(world):
    """example(NAME): a copy of that quickstart's directory, beside the protos as in the repository."""

    def copy(name):
        root = world.path("repository")
        target = root / "docs" / "examples" / name
        shutil.copytree(REPOSITORY / "docs" / "examples" / name, target,
                        ignore=shutil.ignore_patterns("gen", "bin", "node_modules", "dist", "target"))
        (root / "proto").symlink_to(REPOSITORY / "proto")
        return target

    return copy


def run(*argv, cwd, timeout=BUILD_TIMEOUT_S, **env):
    result = subprocess.run([str(word) for word in argv], cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True,
                            timeout=timeout, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def tells_the_job_to_its_end(output):
    """Tells whether a quickstart has printed the number, the states and the log of its job."""
    lines = output.split("\n")
    assert lines[0] == "job 1"
    assert lines[-2:] == ["hello from box", ""]
    states = [line.removeprefix("JOB_STATE_") for line in lines[1:-2]]
    assert states[0] == "QUEUED"
    assert states[-1] == "SUCCEEDED"
    return True


def test_the_python_quickstart_follows_its_job(example, broker, agent):
    directory = example("python")
    run("./generate", cwd=directory)
    output = run("/usr/bin/python3", "quickstart.py", broker.address, cwd=directory, timeout=RUN_TIMEOUT_S, PYTHONPATH="gen")
    assert tells_the_job_to_its_end(output)


def test_the_python_quickstart_says_why_it_is_refused(example, broker, agent):
    directory = example("python")
    run("./generate", cwd=directory)
    source = directory / "quickstart.py"
    source.write_text(source.read_text().replace("nodes=1", "nodes=2"))
    result = subprocess.run(["/usr/bin/python3", source, broker.address], env={**os.environ, "PYTHONPATH": str(directory / "gen")},
                            capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False)
    assert result.returncode == 1
    assert result.stderr.startswith("FAILED_PRECONDITION: no cluster can ever run this job")


@pytest.mark.slow
def test_the_go_quickstart_follows_its_job(example, broker, agent):
    directory = example("go")
    go = run(REPOSITORY / "tests" / "support" / "find-go", cwd=directory).strip()
    path = f"{pathlib.Path(go).parent}:{os.environ['PATH']}"
    run("./generate", cwd=directory, PATH=path)
    run("go", "build", "-o", "quickstart", ".", cwd=directory, PATH=path)
    assert tells_the_job_to_its_end(run("./quickstart", broker.address, cwd=directory, timeout=RUN_TIMEOUT_S))


@pytest.mark.slow
def test_the_typescript_quickstart_follows_its_job(example, broker, agent):
    directory = example("typescript")
    run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=directory)
    run("npx", "tsc", cwd=directory)
    output = run("node", "dist/quickstart.js", broker.address, "../../../proto", cwd=directory, timeout=RUN_TIMEOUT_S)
    assert tells_the_job_to_its_end(output)


@pytest.mark.slow
def test_the_rust_quickstart_follows_its_job(example, broker, agent):
    directory = example("rust")
    run("cargo", "build", "--locked", "--quiet", cwd=directory)
    assert tells_the_job_to_its_end(run("target/debug/quickstart", broker.address, cwd=directory, timeout=RUN_TIMEOUT_S))


@pytest.mark.slow
def test_the_java_quickstart_follows_its_job(example, broker, agent):
    directory = example("java")
    run("mvn", "--batch-mode", "--quiet", "-Dstyle.color=never", "compile", cwd=directory)
    output = run("mvn", "--batch-mode", "--quiet", "-Dstyle.color=never", "exec:java", f"-Dexec.args={broker.address}", cwd=directory, timeout=RUN_TIMEOUT_S)
    # Maven 3.8 resets the terminal's colours even if it uses none.
    assert tells_the_job_to_its_end(output.replace("\x1b[0m", ""))
