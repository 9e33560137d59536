"""A job over its memory on a real Slurm that enforces it with cgroups."""

import re
import shutil
import subprocess

from muster.v1 import job_pb2

from harness.api import FAILED, script_spec
from harness.fixtures import cluster_fixture
from harness.slurm import AS_USER, USER, before

# The nodes' names name the cgroups, so they are this cluster's own.
slurm = cluster_fixture("--nodes", "1", "--no-dbd", "--cgroup", "--node-prefix", "musterpy")
GREEDY = "dd if=/dev/zero of=/dev/null bs=400M count=1"


def test_out_of_memory(world, broker, api, slurm):
    del broker
    slurm.make_agent(world).start()
    spec = script_spec(GREEDY)
    spec.resources.memory_bytes = 100 << 20
    job = api.wait_state(api.submit(spec), FAILED)
    assert job.failure.failure_class == job_pb2.FAILURE_CLASS_OOM
    assert "memory" in job.failure.remedy


def test_what_slurm_writes_about_memory_is_in_the_scripts_file_as_with_sbatch(world, broker, api, slurm):
    del broker
    slurm.make_agent(world).start()
    words = ("--mem=100M", "--wrap", f"echo begins; {GREEDY}; exit 9")

    def said(who):
        """The lines of Slurm's own in a script's file."""
        return [re.sub(r"\d+", "#", line) for line in (directory / f"{who}.out").read_text().splitlines()
                if line.startswith("slurmstepd")]

    directory = world.path("desk")
    directory.mkdir()
    shutil.chown(directory, USER, USER)
    subprocess.run([*AS_USER, "sbatch", "--wait", "-o", "sbatch.out", *words], cwd=directory, check=False, timeout=120,
                   capture_output=True, env={"SLURM_CONF": str(slurm.conf), "PATH": before("/usr/bin:/bin")})
    job_id = int(world.cli("sbatch", "--parsable", "-o", "muster.out", *words, cwd=directory).stdout)
    api.wait_state(job_id, FAILED)
    assert said("sbatch") and said("muster") == said("sbatch")
    assert (directory / "muster.out").read_text() == api.stdout(job_id).decode()
