"""The benchmarks run and say what they promise; what they measure here, on a busy machine, means nothing."""

import json
import subprocess

import pytest

from harness.stubs import REPOSITORY

RUN = REPOSITORY / "tests" / "bench" / "run"
TIMEOUT_S = 600
KEYS = {"row", "value", "unit", "baseline", "baseline_what", "ratio", "goal", "met"}


def test_every_row_prints_one_figure_and_writes_it_as_json(tmp_path):
    out = tmp_path / "figures.json"
    names = subprocess.run([RUN, "--list"], text=True, capture_output=True, check=True).stdout.split()
    rows = [name for name in names if not name.startswith("slurm")]
    done = subprocess.run([RUN, "--short", "--json", out, *rows], text=True, capture_output=True, check=True,
                          timeout=TIMEOUT_S)
    figures = json.loads(out.read_text())
    assert {figure["row"] for figure in figures} == set(rows)
    assert all(set(figure) == KEYS and figure["value"] >= 0 for figure in figures)
    assert all(row in done.stdout for row in rows)


@pytest.mark.slurm
def test_the_slurm_rows_run(tmp_path):
    out = tmp_path / "figures.json"
    rows = ["slurm_1000", "slurm_calls_per_job"]
    subprocess.run([RUN, "--short", "--json", out, *rows], capture_output=True, check=True, timeout=TIMEOUT_S)
    assert {figure["row"] for figure in json.loads(out.read_text())} == set(rows)


def test_an_unknown_row_is_a_usage_error():
    done = subprocess.run([RUN, "no_such_row"], text=True, capture_output=True, check=False)
    assert done.returncode == 2
    assert "no_such_row" in done.stderr
