"""The job files in jobs/ have the same end, exit code, output and rank environment on every kind of cluster.

jobs/outcomes.yaml says which, and jobs/differences.yaml where a kind differs by its nature, and why.
"""

import pytest

from harness.job_files import CLUSTERS, JOBS, Place, is_allowed, outcomes

TABLES = {"outcomes.yaml", "differences.yaml"}
# Slurm knows no shorter limit than a minute.
SLOW = {("slurm", "time-limit.yaml")}


def pytest_generate_tests(metafunc):
    if "file" in metafunc.fixturenames:
        metafunc.parametrize("kind, file", [
            pytest.param(kind, file, id=f"{kind}-{file}", marks=marks(kind, file))
            for kind in CLUSTERS for file in outcomes(kind)
        ], indirect=["kind"], scope="module")


def marks(kind, file):
    """One worker runs those of one kind, which share its cluster."""
    scheduler = kind.split("-", maxsplit=1)[0]
    real = [getattr(pytest.mark, scheduler)] if scheduler in ("slurm", "kubernetes") else []
    slow = [pytest.mark.slow] if (kind, file) in SLOW else []
    return [*real, *slow, pytest.mark.xdist_group(f"job-files-{kind}")]


@pytest.fixture(scope="module")
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def shared_place(request, kind):
    made = Place(kind)
    try:
        yield made.start()
    finally:
        made.close(keep=request.session.testsfailed > 0)


@pytest.fixture
def place(request, shared_place):
    """The kind's; tells its daemons' words if the test fails."""
    yield shared_place
    if hasattr(request.node, "failed_phase"):
        shared_place.world.tell()


def test_of_a_job_file_comes_the_same_on_every_kind_of_cluster(place, file):
    place.check(file)


def test_every_job_file_has_its_outcome():
    files = {path.name for path in JOBS.iterdir()} - TABLES
    assert files == set().union(*(outcomes(kind) for kind in CLUSTERS))


@pytest.mark.parametrize("text, is_right", [
    ("ready\n", True), ("ready\nsrun: ended\nslurmstepd: by force\n", True), ("ready\nbye\n", False), ("ready\nready\n", False),
    ("ready\nsrun: ended\nready\n", False), ("srun: ended\nready\n", False), ("", False)])
def test_only_lines_of_who_ends_a_rank_may_follow_its_output(text, is_right):
    assert is_allowed(text, {"begins": "ready\n"}, ("slurmstepd: ", "srun: ")) == is_right
    assert is_allowed(text, {"begins": "ready\n"}, ()) == (text == "ready\n")
