"""Fixtures that differ from file to file."""

import pytest

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
