"""muster cp from a Slurm cluster on whose login node the agent runs."""

from harness.fixtures import cluster_fixture

slurm = cluster_fixture("--nodes", "1", "--cpus", "2", "--no-dbd")


def test_what_a_job_has_made_on_a_node_comes_back(world, agent):
    world.cli("run", "--wait", "--", "sh", "-c", "mkdir out; echo model > out/model.bin; ln -s /etc/passwd out/leads-out")
    job = world.cli("list", "-q").stdout.split()[0]
    done = world.cli("cp", f"{job}:out", ".", check=False)
    assert "left out: leads-out" in done.stderr
    assert (world.path("out") / "model.bin").read_text() == "model\n"
