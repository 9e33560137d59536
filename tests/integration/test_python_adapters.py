"""The adapter for Dask of docs/examples/python/adapters. The others there, whose packages take minutes to install, have a command:
docs/examples/python/adapters/run.
"""

import pytest

from harness.programs import checked
from harness.python_client import environment
from harness.stubs import REPOSITORY

ADAPTERS = REPOSITORY / "docs" / "examples" / "python" / "adapters"
# One worker installs it once.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("python_client")]


def test_the_workers_of_a_dask_cluster_are_jobs(installed, world, agent, api):
    del agent
    python = installed.bin / "python"
    world.path("home").mkdir()
    output = checked(python, ADAPTERS / "dask_cluster.py", python, cwd=world.path("home"), env=environment(world))
    assert output.split() == ["sum", "328350", "workers", "3"], output
    # A worker that the cluster lets go ends by itself, or is canceled.
    assert sorted(job.name for job in api.list_all()) == [f"dask-worker-{n}" for n in range(3)]
    for job in api.list_all():
        api.wait_end(job.id)
