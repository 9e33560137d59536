"""muster sbatch reads its options as sbatch itself does: both go through a real Slurm, row by row of a table.

A job that is submitted waits for slurmctld's scheduler, which looks once a second. So sbatch and muster have a cluster each,
made alike, and there are two such pairs, which share the rows."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.readings import Accepted, MusterDesk, Row, SbatchDesk, groups
from harness.slurm import SlurmCluster, start_shared_broker
from harness.world import World

ALIKE = ("--nodes", "4", "--cpus", "8", "--gpus", "2", "--no-dbd", "--min-job-age", "30")
PAIRS = 2


class Pair:
    """Two clusters, and what each group of rows needs on them."""

    def __init__(self):
        with ThreadPoolExecutor() as both:
            self._mine, self._others = both.map(lambda _: SlurmCluster(*ALIKE), range(2))

    def close(self):
        for cluster in (self._mine, self._others):
            cluster.close()

    def outcomes(self, world, rows):
        """The rows, each with what becomes of it with sbatch and with muster sbatch."""
        broker = start_shared_broker(world)
        self._others.make_agent(world).start()
        with_sbatch, with_muster = SbatchDesk(world, self._mine), MusterDesk(world, self._others, world.api(broker))
        with ThreadPoolExecutor(max_workers=1) as beside:
            mine = beside.submit(lambda: [with_sbatch.submit(row) for row in rows])
            others = [with_muster.submit(row) for row in rows]
            with_muster.wait_for_ends()
        return list(zip(rows, mine.result(), others))


@pytest.fixture(scope="module")
def pairs():
    made = [Pair() for _ in range(PAIRS)]
    yield made
    for pair in made:
        pair.close()


@pytest.fixture
def worlds(request):
    made = [World() for _ in range(PAIRS)]
    yield made
    failed = hasattr(request.node, "failed_phase")
    for world in made:
        if failed:
            world.tell()
        world.close(keep=failed)


@pytest.mark.slow
@pytest.mark.parametrize("group", groups())
def test_slurm_has_the_same_job_and_the_script_the_same_variables(worlds, pairs, group):
    accepted, found = Accepted(), {}
    rows = [Row.of(written) for written in groups()[group]]
    with ThreadPoolExecutor(max_workers=PAIRS) as lanes:
        parts = list(lanes.map(lambda place: pairs[place].outcomes(worlds[place], rows[place::PAIRS]), range(PAIRS)))
    for row, mine, other in (outcome for part in parts for outcome in part):
        differences = accepted.unexplained(row, mine.differences(other))
        if differences:
            found[row.title()] = differences
    assert not found, "\n" + "\n".join(
        f"{title}\n" + "\n".join(f"    {name}: sbatch {mine!r}, muster {other!r}" for name, (mine, other) in names.items())
        for title, names in found.items())


def test_the_table_has_each_row_once_and_enough_of_them():
    titles = [Row.of(written).title() for rows in groups().values() for written in rows]
    assert len(titles) == len(set(titles)) >= 200
    for rule in Accepted().rules:
        assert rule["because"] and rule["names"]
        assert set(rule.get("rows", titles)) <= set(titles), rule
