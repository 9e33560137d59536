"""muster sbatch reads its options as sbatch itself does: both go through the same real Slurm, row by row of a table."""

import pytest

from harness.fixtures import cluster_fixture
from harness.readings import Accepted, Desk, Row, groups

slurm = cluster_fixture("--nodes", "4", "--cpus", "8", "--gpus", "2", "--no-dbd", "--min-job-age", "30")


@pytest.mark.slow
@pytest.mark.parametrize("group", groups())
def test_slurm_has_the_same_job_and_the_script_the_same_variables(world, slurm, api, agent, group):
    del agent
    desk, accepted, found = Desk(world, slurm, api), Accepted(), {}
    for written in groups()[group]:
        row = Row.of(written)
        differences = accepted.unexplained(row, desk.with_sbatch(row).differences(desk.with_muster(row)))
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
