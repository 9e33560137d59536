"""deploy/kubernetes/Containerfile, as far as it can be looked at without building it: what it installs is what the programs
need, and it fits the pod that runs it."""

import pathlib
import re
import subprocess

import pytest

from harness.daemons import BIN
from harness.kubernetes import MANIFESTS, manifest

PROGRAMS = ("muster", "muster-agent", "muster-broker")
# All of C++ on Debian needs these libraries, and the others bring them along.
EVERYWHERE = {"libc6", "libgcc-s1", "libstdc++6"}
# Packages for what it reads, not for what it links.
NOT_LINKED = {"ca-certificates"}
COMMAND_TIMEOUT_S = 60


@pytest.fixture(scope="module", name="stages")
def read_stages():
    """The instructions of each stage, in one line each."""
    lines = [line for line in (MANIFESTS / "Containerfile").read_text().splitlines() if not line.startswith("#")]
    text = "\n".join(lines).replace("\\\n", " ")
    return [stage.splitlines() for stage in re.split(r"^FROM ", text, flags=re.MULTILINE)[1:]]


def output(*argv):
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=COMMAND_TIMEOUT_S).stdout


def libraries(program):
    """The files that it is linked with itself."""
    needed = re.findall(r"NEEDED +(\S+)", output("objdump", "-p", BIN / program))
    places = dict(re.findall(r"(\S+) => (/\S+)", output("ldd", BIN / program)))
    return {places[library] for library in needed if library in places}


def owners(files):
    """The packages that have them; dpkg may know a file by either name of a directory that is a link."""
    found = subprocess.run(["dpkg", "-S", *files, *(f"/usr{name}" for name in files)], capture_output=True, text=True,
                           check=False, timeout=COMMAND_TIMEOUT_S).stdout
    by_file = {line.split()[-1].removeprefix("/usr"): line.split(":")[0] for line in found.splitlines()}
    return {by_file[name.removeprefix("/usr")] for name in files}


def test_it_installs_what_the_programs_are_linked_with_and_no_more(stages):
    (line,) = (line for line in stages[-1] if "apt-get" in line)
    installed = set(re.search(r"--no-install-recommends (.*?)&&", line).group(1).split())
    linked = owners(set().union(*(libraries(program) for program in PROGRAMS)))
    assert installed - NOT_LINKED == linked - EVERYWHERE


def test_it_has_what_the_pod_runs_and_its_user(stages):
    (copied,) = (line.split() for line in stages[-1] if line.startswith("COPY --from=build "))
    names = {pathlib.PurePath(path).name for path in copied[2:-1]}
    assert names == set(PROGRAMS) and copied[-1] == "/usr/local/bin/"
    (built,) = (line for line in stages[0] if "--target" in line)
    assert names == set(built.split("--target")[1].split())
    (pod,) = (thing["spec"]["template"]["spec"] for thing in manifest("agent.yaml") if thing["kind"] == "Deployment")
    assert {container["command"][0] for container in pod["containers"]} < names
    user = pod["securityContext"]
    assert f"USER {user['runAsUser']}:{user['runAsGroup']}" in stages[-1]


def test_both_stages_have_the_system_that_the_packages_are_of(stages):
    assert [stage[0].split()[0] for stage in stages] == ["debian:12-slim"] * 2
    assert any(line.startswith("RUN deploy/install-deps build") for line in stages[0])
