"""A Kubernetes cluster that has no node now, as one that its autoscaler has scaled to zero."""

from harness.kubernetes import KubernetesCluster
from harness.slurm import start_shared_broker


def test_a_plan_has_the_manifest_and_the_dry_run_and_says_first_that_the_pool_takes_no_jobs(world):
    start_shared_broker(world)
    cluster = KubernetesCluster(nodes=0, gpus=0)
    try:
        cluster.make_least_agent(world).start()
        plan = world.cli("plan", "--manifest", "--", "true").stdout
        assert 'kind: "Job"' in plan
        assert 0 < plan.index("takes no jobs at the moment") < plan.index("dry run") < plan.index('kind: "Job"')
    finally:
        cluster.close()
