"""Fixtures that differ from file to file."""

import pytest

from harness.hosts import SshCluster
from harness.kubernetes import KubernetesCluster
from harness.slurm import SlurmCluster


def cluster_fixture(*options, **doors):
    """A fixture: the cluster of a test file, which calls it `slurm`."""
    @pytest.fixture(scope="module")
    def slurm():
        made = SlurmCluster(*options, **doors)
        yield made
        made.close()
    return slurm


def kubernetes_fixture(*options, **sizes):
    """A fixture: the cluster of a test file, which calls it `kubernetes`."""
    @pytest.fixture(scope="module")
    def kubernetes():
        made = KubernetesCluster(*options, **sizes)
        yield made
        made.close()
    return kubernetes


def hosts_fixture(count=2):
    """A fixture: hosts of each test's own, which the file calls `cluster`."""
    @pytest.fixture
    def cluster(world, broker):
        del broker
        made = SshCluster(world, count)
        yield made
        made.close()
    return cluster


def hosts_agent_fixture():
    """A fixture: the agent of those hosts, which the file calls `agent`."""
    @pytest.fixture
    def agent(cluster):
        return cluster.make_agent().start()
    return agent
