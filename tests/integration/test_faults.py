"""The fault campaign, in short: what goes wrong between Muster and Slurm or Kubernetes loses no job and doubles none.

tests/faults/run strikes fifty times and more.
"""

import subprocess

import pytest

from harness.stubs import REPOSITORY

RUN = REPOSITORY / "tests" / "faults" / "run"
REPEAT = "10"
TIMEOUT_S = 900
SLURM_FAULTS = ["sbatch_reply_lost", "slurmctld_killed", "slurmdbd_down", "login_host_swapped",
                "agent_killed_at_every_side_effect", "job_id_reused"]
# Deaths of the API server are test_kubernetes_restart's as well, and it takes seconds to come back.
KUBERNETES_FAULTS = {"kube_apiserver_killed": "2", "kubernetes_agent_killed_at_every_side_effect": REPEAT}


@pytest.mark.slow
@pytest.mark.slurm
@pytest.mark.parametrize("fault", SLURM_FAULTS)
def test_no_job_is_lost_or_doubled_by(fault):
    strike(fault, REPEAT)


@pytest.mark.slow
@pytest.mark.kubernetes
@pytest.mark.parametrize("fault", KUBERNETES_FAULTS)
def test_no_job_on_kubernetes_is_lost_or_doubled_by(fault):
    strike(fault, KUBERNETES_FAULTS[fault])


def strike(fault, repeat):
    done = subprocess.run([RUN, fault, "--repeat", repeat], text=True, capture_output=True, check=False,
                          timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_fault_of_the_campaign_is_tried_here():
    listed = subprocess.run([RUN, "--list"], text=True, capture_output=True, check=True).stdout.split()
    assert listed == [*SLURM_FAULTS, *KUBERNETES_FAULTS]
