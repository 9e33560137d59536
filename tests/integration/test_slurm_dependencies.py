"""Jobs on Slurm that wait for jobs elsewhere, and the reverse."""

import pytest

from harness.api import FAILED, SUCCEEDED, script_spec
from harness.fixtures import cluster_fixture

slurm = cluster_fixture()


@pytest.fixture
def box(world, agent):
    """A cluster of this machine beside the Slurm cluster."""
    del agent
    return world.make_agent().start()


def on(cluster, text, *after):
    spec = script_spec(text)
    spec.placement.clusters.append(cluster)
    for job in after:
        spec.depends_on.add(job_id=job)
    return spec


def test_a_chain_goes_over_clusters(world, box, api):
    gate = world.gate()
    here = api.submit(on("box", gate.script()))
    slurms = api.submit(on("lab", 'test "$MUSTER_DEPENDENCY_%d" = SUCCEEDED' % here, here))
    back = api.submit(on("box", "true", slurms))
    assert not api.get(slurms).runs
    gate.open()
    job = api.wait_state(back, SUCCEEDED)
    assert job.runs[0].cluster == "box"
    assert api.get(slurms).runs[0].cluster == "lab"


def test_a_batch_script_waits_for_a_job_of_another_cluster(world, box, api):
    gate = world.gate()
    here = api.submit(on("box", gate.script()))
    done = world.cli("sbatch", "--parsable", "-M", "lab", "-d", f"afterok:{here}", "--wrap", "true", cwd="/tmp")
    script = int(done.stdout.split(";")[0])
    job = api.get(script)
    assert [one.job_id for one in job.spec.depends_on] == [here] and not job.spec.slurm.dependency
    assert "(Dependency)" in world.cli("squeue", "-h", "-j", script, "-o", "%R").stdout
    gate.open()
    api.wait_state(script, SUCCEEDED)
    other = world.gate()
    fails = api.submit(on("box", other.script() + "\nexit 1"))
    done = world.cli("sbatch", "--parsable", "-M", "lab", "-d", f"afterok:{fails}", "--wrap", "true", cwd="/tmp")
    other.open()
    never = api.wait_state(int(done.stdout.split(";")[0]), FAILED)
    assert not never.runs and never.failure.subject == str(fails)
