"""muster-replay on a trace and a fleet in files."""

import json
import subprocess

from harness.daemons import BIN

TRACE = """arrival_s,run_time_s,gpus,project
0,100,t4:1,a
1,100,t4:1,b
2,10,t4:1,a
"""
FLEET = """
clusters:
- {name: a, nodes: [{cpus: 8, gpus: t4:1}]}
- {name: b, kind: slurm, nodes: [{cpus: 8, gpus: t4:1}]}
"""


def replay(tmp_path, *flags, trace=TRACE, fleet=FLEET):
    (tmp_path / "trace.csv").write_text(trace)
    (tmp_path / "fleet.yaml").write_text(fleet)
    return subprocess.run([BIN / "muster-replay", "trace.csv", "--fleet", "fleet.yaml", *flags], cwd=tmp_path,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)


def test_it_prints_a_row_for_each_policy(tmp_path):
    done = replay(tmp_path)
    assert done.returncode == 0, done.stderr
    rows = [line.split()[0] for line in done.stdout.splitlines()]
    assert rows == ["POLICY", "muster", "random", "least-loaded", "static-split", "first-by-name", "one-cluster"]


def test_json_has_figures_for_programs_and_the_picture_is_svg(tmp_path):
    done = replay(tmp_path, "--policy", "muster", "--json", "--picture", "waits.svg")
    assert done.returncode == 0, done.stderr
    [figures] = json.loads(done.stdout)
    assert figures["jobs"] == 3 and figures["max_wait_s"] == 98
    assert (tmp_path / "waits.svg").read_text().startswith("<svg")


def test_bad_input_is_named_with_its_file_and_line(tmp_path):
    done = replay(tmp_path, trace=TRACE + "3,soon,,\n")
    assert done.returncode == 1
    assert 'trace.csv: line 5: run_time_s is "soon"' in done.stderr
    done = replay(tmp_path, fleet="clusters: [{name: a}]")
    assert done.returncode == 1
    assert "fleet.yaml: clusters[0].nodes: each cluster needs nodes" in done.stderr
