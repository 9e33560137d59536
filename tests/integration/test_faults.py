"""The fault campaign, in short: what goes wrong between Muster and Slurm, Kubernetes or machines loses no job, doubles
none, tells nothing wrongly and leaves nothing over.

tests/faults/run strikes fifty times and more.
"""

import subprocess

import pytest

from harness.stubs import REPOSITORY

RUN = REPOSITORY / "tests" / "faults" / "run"
# Each fault strikes this often: enough to meet a run at several moments, few enough for a test.
REPEAT = "5"
TIMEOUT_S = 900
SLURM_FAULTS = ["sbatch_reply_lost", "slurmctld_killed", "slurmdbd_down", "login_host_swapped",
                "agent_killed_at_every_side_effect", "job_id_reused"]
KUBERNETES_FAULTS = ["kube_apiserver_killed", "etcd_paused", "kube_watch_cut", "kube_watch_expired", "kube_storm_of_429",
                     "kube_node_frozen", "kubernetes_agent_killed_at_every_side_effect",
                     "kubernetes_agent_killed_as_it_brings_files", "kueue_agent_killed_at_every_side_effect",
                     "kubernetes_token_expired"]
MACHINES_FAULTS = ["machines_agent_killed_at_every_side_effect", "hosts_agent_killed_at_every_side_effect",
                   "machines_agent_killed_as_it_lays_files_out", "hosts_agent_killed_as_it_lays_files_out"]


@pytest.mark.slow
@pytest.mark.slurm
@pytest.mark.parametrize("fault", SLURM_FAULTS)
def test_no_job_is_lost_or_doubled_by(fault):
    strike(fault)


@pytest.mark.slow
@pytest.mark.parametrize("fault", MACHINES_FAULTS)
def test_no_job_on_machines_is_lost_or_doubled_by(fault):
    strike(fault)


@pytest.mark.slow
@pytest.mark.kubernetes
@pytest.mark.parametrize("fault", KUBERNETES_FAULTS)
def test_no_job_on_kubernetes_is_lost_or_doubled_by(fault):
    strike(fault)


def strike(fault):
    done = subprocess.run([RUN, fault, "--repeat", REPEAT], text=True, capture_output=True, check=False,
                          timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_fault_of_the_campaign_is_tried_here():
    listed = subprocess.run([RUN, "--list"], text=True, capture_output=True, check=True).stdout.split()
    assert listed == [*SLURM_FAULTS, *KUBERNETES_FAULTS, *MACHINES_FAULTS]
