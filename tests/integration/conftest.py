"""Fixtures of the integration tests. The binaries are taken from MUSTER_BIN, default build/release/bin."""

import os
import signal

import pytest

from harness import stubs

stubs.generate()

from harness.daemons import BIN  # noqa: E402  needs the generated stubs
from harness.python_client import PYTHON_PACKAGES, Installation  # noqa: E402
from harness.run_as import ADA, BOB, RunAs  # noqa: E402
from harness.run_as_jobs import processes_of  # noqa: E402
from harness.slurm import before, start_shared_broker  # noqa: E402
from harness.world import World  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--fault-seeds", type=int, default=3, help="how many histories of random blows to try")


def pytest_generate_tests(metafunc):
    if "fault_seed" in metafunc.fixturenames:
        metafunc.parametrize("fault_seed", range(metafunc.config.getoption("fault_seeds")))


def pytest_sessionstart(session):
    del session
    for name in ("muster-broker", "muster-agent", "muster"):
        if not os.access(BIN / name, os.X_OK):
            raise pytest.UsageError(f"{BIN / name} is not there: build it, or point MUSTER_BIN at a bin directory")
    # Agents, and what users call.
    os.environ["PATH"] = before(os.environ["PATH"])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """The tests of one file of Slurm or Kubernetes share its cluster, so one worker runs them, unless the file has a group."""
    for item in items:
        for kind in ("slurm", "kubernetes"):
            if item.path.name.startswith(f"test_{kind}"):
                item.add_marker(kind)
                if item.get_closest_marker("xdist_group") is None:
                    item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Lets fixtures see whether their test failed."""
    report = (yield).get_result()
    if report.failed:
        item.failed_phase = call.when


@pytest.fixture
def world(request):
    """A directory, and whatever the test starts in it; all of it ends with the test."""
    made = World()
    yield made
    failed = hasattr(request.node, "failed_phase")
    if failed:
        made.tell()
    made.close(keep=failed)


@pytest.fixture
def broker(request, world):
    """A broker that runs. In the tests of a Slurm file the agent of the ordinary user may connect, too."""
    if request.node.get_closest_marker("slurm"):
        return start_shared_broker(world)
    return world.make_broker().start()


@pytest.fixture
def namespace(kubernetes):
    """One of the test's own in the file's Kubernetes cluster."""
    return kubernetes.make_namespace()


@pytest.fixture
def api(world, broker):
    """A plain gRPC client of it."""
    return world.api(broker)


@pytest.fixture
def agent(request, world, broker):
    """An agent that is connected to it: of the file's Slurm or Kubernetes cluster, "lab"; in other files of this machine,
    "box"."""
    for kind in ("slurm", "kubernetes"):
        if request.node.get_closest_marker(kind):
            return request.getfixturevalue(kind).make_agent(world).start()
    return world.make_agent().start()


@pytest.fixture(scope="session")
def installed():
    """The Python client with what its tests and examples use; those that ask for it are one group, so that one worker has it."""
    made = Installation("functions,tao,check,test", *PYTHON_PACKAGES)
    yield made
    made.close()


@pytest.fixture(scope="module")
def run_as_installation():
    made = RunAs()
    yield made
    made.close()


@pytest.fixture
def run_as(run_as_installation):
    """muster-run-as as an operator installs it, with the usual configuration."""
    run_as_installation.configure()
    yield run_as_installation


@pytest.fixture
def started(run_as, world):
    """Broker and agent whose jobs run as their users."""
    yield run_as.start(world)
    # The test's own wreckage goes with the agent, so that its jobs end first.
    for name in (ADA, BOB):
        for process in processes_of(name):
            os.kill(process, signal.SIGKILL)
