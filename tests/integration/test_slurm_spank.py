"""Options of a site's own SPANK plug-in, through sbatch and through muster sbatch on the same real Slurm."""

import pathlib
import shutil
import subprocess
import tempfile

import pytest

from harness.api import SUCCEEDED
from harness.slurm import AS_USER, RELEASE, USER, SlurmCluster, before, release_programs
from harness.stubs import REPOSITORY

SOURCE = REPOSITORY / "tests" / "support" / "spank" / "flavour.c"
SCRIPT = "#!/bin/sh\n#SBATCH --flavour={}\necho \"$FLAVOUR, mild: $MILD\"\n"


@pytest.fixture(scope="module")
def slurm():
    directory = pathlib.Path(tempfile.mkdtemp(prefix="muster-spank-"))
    directory.chmod(0o755)
    headers = ["-isystem", release_programs().parent / "include"] if RELEASE else []
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", *headers, "-o", directory / "flavour.so", SOURCE], check=True)
    (directory / "plugstack.conf").write_text(f"required {directory}/flavour.so\n")
    made = SlurmCluster("--nodes", "1", "--no-dbd", "--plugstack", directory / "plugstack.conf")
    yield made
    made.close()
    shutil.rmtree(directory)


@pytest.fixture
def directory(world):
    made = world.path("desk")
    made.mkdir()
    shutil.chown(made, USER, USER)
    return made


def outputs(directory):
    return [path.read_text() for path in sorted(directory.glob("*.out"))]


def test_options_of_a_plugin_reach_the_job_as_with_sbatch(world, broker, api, slurm, directory):
    del broker
    slurm.make_agent(world, spank_options="flavour,mild").start()
    (directory / "script.sh").write_text(SCRIPT.format("mint"))
    environment = {"SLURM_CONF": str(slurm.conf), "PATH": before("/usr/bin:/bin")}
    for words in ((), ("--mild",), ("--flavour=rose",)):
        subprocess.run([*AS_USER, "sbatch", "--wait", "-o", "a.out", *words, "script.sh"], cwd=directory, check=True,
                       env=environment, capture_output=True, timeout=120)
        world.cli("sbatch", "--wait", "-o", "b.out", *words, "script.sh", cwd=directory)
        mine, others = outputs(directory)
        assert mine == others and ("mild: yes" in mine) == ("--mild" in words), words
    # The value may stand behind the option in a script, but not on a command line, where it could be the script.
    (directory / "script.sh").write_text(SCRIPT.replace("=", " ").format("mint"))
    job_id = int(world.cli("sbatch", "--parsable", "script.sh", cwd=directory).stdout)
    api.wait_state(job_id, SUCCEEDED)
    assert api.stdout(job_id) == b"mint, mild: \n"
    # A job file has them in slurm.extra_options.
    file = world.path("job.yaml")
    file.write_text("slurm: {extra_options: ['--flavour=plum']}\nrun: echo $FLAVOUR\n")
    world.cli("submit", "--wait", file)
    assert api.stdout(api.list_all()[0].id) == b"plum\n"


def test_an_option_that_the_operator_does_not_allow_is_refused(world, broker, slurm, directory):
    del broker
    slurm.make_agent(world, "plain").start()
    slurm.make_agent(world, "lab", spank_options="flavour").start()
    (directory / "script.sh").write_text(SCRIPT.format("mint"))
    told = world.cli("sbatch", "--mild", "script.sh", cwd=directory, check=False)
    assert told.returncode != 0 and "--mild (command line): unrecognized option" in told.stderr
    told = world.cli("sbatch", "-M", "plain", "script.sh", cwd=directory, check=False)
    assert told.returncode != 0
    for words in ("--flavour", "the operator of cluster plain allows none of its plug-ins (slurm.spank_options)", "leave it out"):
        assert words in told.stderr, told.stderr
    # The cluster that allows it gets the job.
    world.cli("sbatch", "--wait", "script.sh", cwd=directory)
    assert "mint, mild: \n" in outputs(directory)
