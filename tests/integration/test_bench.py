"""The benchmarks run and say what they promise; what they measure here, on a busy machine, means nothing."""

import contextlib
import json
import subprocess
import sys
import threading

import pytest

from harness.stubs import REPOSITORY

sys.path.append(str(REPOSITORY / "tests" / "bench"))
from rows import kubernetes  # noqa: E402  beside the program that is tested
from rows.kubernetes_client import Watch  # noqa: E402
from rows.report import Figure  # noqa: E402

RUN = REPOSITORY / "tests" / "bench" / "run"
TIMEOUT_S = 600
KEYS = {"row", "value", "unit", "baseline", "baseline_what", "ratio", "goal", "met"}


def test_every_row_prints_one_figure_and_writes_it_as_json(tmp_path):
    out = tmp_path / "figures.json"
    names = subprocess.run([RUN, "--list"], text=True, capture_output=True, check=True).stdout.split()
    rows = [name for name in names if not name.startswith(("slurm", "kubernetes"))]
    done = subprocess.run([RUN, "--short", "--json", out, *rows], text=True, capture_output=True, check=True,
                          timeout=TIMEOUT_S)
    figures = json.loads(out.read_text())
    assert {figure["row"] for figure in figures} == set(rows)
    assert all(set(figure) == KEYS and figure["value"] >= 0 for figure in figures)
    assert all(row in done.stdout for row in rows)


@pytest.mark.slurm
def test_the_slurm_rows_run(tmp_path):
    out = tmp_path / "figures.json"
    rows = ["slurm_1000", "slurm_calls_per_job", "slurm_1000_over_ssh", "slurm_calls_per_job_over_ssh",
            "slurm_sacct_2000", "slurm_array_60", "slurm_unlike_30", "slurm_chain_30", "slurm_squeue_2000", "slurm_sinfo_2000"]
    subprocess.run([RUN, "--short", "--json", out, *rows], capture_output=True, check=True, timeout=TIMEOUT_S)
    assert {figure["row"] for figure in json.loads(out.read_text())} == set(rows)


@pytest.mark.kubernetes
def test_the_kubernetes_rows_run(tmp_path):
    out = tmp_path / "figures.json"
    rows = ["kubernetes_500", "kubernetes_writes_per_job", "kubernetes_reads_per_job", "kubernetes_watch_memory",
            "kubernetes_list_memory", "kubernetes_runs_memory", "kubernetes_end_latency_p50", "kubernetes_end_latency_p99"]
    done = subprocess.run([RUN, "--short", "--json", out, *rows], capture_output=True, text=True, check=False,
                          timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {figure["row"] for figure in json.loads(out.read_text())} == set(rows)


class _Answer:
    """A watch of Kubernetes that tells of the end of job 1 at once and of that of job 2 when it is asked to."""

    status = 200

    def __init__(self):
        self.asked = threading.Event()

    def __iter__(self):
        for job in (1, 2):
            yield json.dumps({"object": {"metadata": {"name": f"run-{job}", "labels": {"muster.dev/job": str(job)}},
                                         "status": {"phase": "Succeeded"}}})
            assert self.asked.wait(TIMEOUT_S)


def test_the_ends_of_jobs_are_waited_for_where_kubernetes_tells_of_them_later_than_the_broker():
    answer = _Answer()
    watch = Watch(answer)
    assert watch.ends([1]).keys() == {1}
    threading.Timer(0.1, answer.asked.set).start()
    assert watch.ends([1, 2]).keys() == {1, 2}
    watch.join()


@pytest.mark.parametrize(("row", "figures"), [("assign_latency", {"assign_latency_p50", "assign_latency_p99"}),
                                              ("idle_agents", {"idle_agents_memory", "idle_agents_cpu"}),
                                              ("log_ingest", {"log_ingest", "log_latency_p50"}),
                                              ("get_queued", {"get_queued_p99"}),
                                              ("refit_1m",
                                               {"refit_1m_message", "refit_1m_longest", "refit_1m_all"}),
                                              ("memory_queued", {"memory_queued_100000", "memory_queued_1000000"}),
                                              ("slurm_1000", {"slurm_1000", "slurm_calls_per_job"}),
                                              ("slurm_1000_over_ssh",
                                               {"slurm_1000_over_ssh", "slurm_calls_per_job_over_ssh"}),
                                              ("kubernetes_watch_memory",
                                               {"kubernetes_watch_memory", "kubernetes_list_memory"}),
                                              ("log_latency_p50", {"log_latency_p50"})])
def test_the_name_of_a_row_selects_all_of_its_figures(row, figures):
    done = subprocess.run([RUN, "--list", row], text=True, capture_output=True, check=True)
    assert set(done.stdout.split()) == figures


def test_help_shows_what_each_row_measures_and_its_goal():
    text = subprocess.run([RUN, "--help"], text=True, capture_output=True, check=True).stdout
    line = next(line for line in text.splitlines() if line.startswith("idle_agents"))
    assert "2,000 connected idle agents" in line
    assert "<= 100 MB" in line


@pytest.mark.parametrize(("value", "baseline", "met"), [(300, 1000, True), (200, 400, True), (200, 1000, False)])
def test_of_two_goals_one_is_enough(value, baseline, met):
    figure = Figure("log_ingest", value, "MB/s", baseline, "bare write", 300, ratio_goal=0.5)
    assert (figure.met, figure.goal_text()) == (met, ">= 300 or ratio >= 0.5")


def test_a_figure_without_a_goal_is_reported():
    figure = Figure("submit_unary_1", 1, "jobs/s", 2, "echo")
    assert (figure.met, figure.goal_text()) == (None, "reported")


def test_the_table_of_the_readme_comes_straight_from_the_figures_of_a_run(tmp_path):
    figures = tmp_path / "figures.json"
    figures.write_text(json.dumps([
        {"row": "full_life", "value": 6000.4, "unit": "jobs/s", "baseline": 12000, "baseline_what": "bare rows",
         "ratio": 0.5, "goal": ">= 5000", "met": True},
        {"row": "idle_agents_memory", "value": 107, "unit": "MB", "baseline": None, "baseline_what": "", "ratio": None,
         "goal": "<= 100", "met": False}]))
    done = subprocess.run([RUN, "--from", figures, "--markdown"], text=True, capture_output=True, check=True)
    assert done.stdout.splitlines()[2:] == ["| `full_life` | 6,000 jobs/s | 12,000: bare rows | 0.5 | >= 5000 | yes |",
                                            "| `idle_agents_memory` | 107 MB | - | - | <= 100 | NO |"]


def test_an_unknown_row_is_a_usage_error():
    done = subprocess.run([RUN, "no_such_row"], text=True, capture_output=True, check=False)
    assert done.returncode == 2
    assert "no_such_row" in done.stderr


class _LateCluster:
    """A cluster whose only Job is let go after some looks at it."""

    def __init__(self):
        self.looks = 0

    def objects(self, kind):
        if kind != "jobs":
            return [{}]
        self.looks += 1
        return [{"spec": {"ttlSecondsAfterFinished": 3600 if self.is_let_go() else kubernetes.KEPT_S}}]

    def is_let_go(self):
        return self.looks > 3


class _Api:
    def submit(self, _):
        return 1

    def wait_end(self, _):
        pass


def test_the_agent_of_the_template_ends_only_after_it_has_let_its_job_go(monkeypatch):
    cluster = _LateCluster()

    @contextlib.contextmanager
    def world():
        yield
        assert cluster.is_let_go()

    monkeypatch.setattr(kubernetes, "fresh_world", world)
    monkeypatch.setattr(kubernetes, "_start", lambda cluster, world: (_Api(), None))
    kubernetes._template(cluster)
