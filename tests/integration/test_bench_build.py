"""Measurements of tests/bench/build, on a repository that builds nothing; the figures themselves take an hour."""

import json
import subprocess

import pytest

from harness.stubs import REPOSITORY

BUILD = REPOSITORY / "tests" / "bench" / "build"
COLD = """#!/bin/sh
[ -d "$CCACHE_DIR" ] && [ -z "$(ls -A "$CCACHE_DIR")" ] || [ "$1" = --stop ] || exit 7
touch "$CCACHE_DIR/object"
echo "$0 $*" >>"$SEEN"
"""
PRESETS = {"version": 5, "configurePresets": [{"name": "release", "generator": "Ninja",
                                               "binaryDir": "${sourceDir}/build/release"}]}


@pytest.fixture(name="repository")
def _repository(tmp_path):
    repository = tmp_path / "repository"
    for name in ("deploy/quickstart", "tests/run"):
        path = repository / name
        path.parent.mkdir(parents=True)
        path.write_text(COLD)
        path.chmod(0o755)
    (repository / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(nothing NONE)\n")
    (repository / "CMakePresets.json").write_text(json.dumps(PRESETS))
    git = ["git", "-C", repository, "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "Begin"]):
        subprocess.run([*git, *words], check=True)
    return repository


def _measure(repository, tmp_path, *words):
    return subprocess.run([BUILD, "--of", repository, *words], text=True, capture_output=True, check=False,
                          env={"PATH": "/usr/bin:/bin", "SEEN": str(tmp_path / "seen")})


def test_each_row_measures_a_clone_of_its_own_with_an_empty_cache(repository, tmp_path):
    out = tmp_path / "figures.json"
    done = _measure(repository, tmp_path, "--json", out)
    assert done.returncode == 0, done.stderr
    figures = {figure["row"]: figure for figure in json.loads(out.read_text())}
    assert {row: figure["goal"] for row, figure in figures.items()} == {
        "build_quickstart": "<= 7", "build_all": "<= 15", "tests_run": "<= 40"}
    assert all(figure["met"] and figure["unit"] == "min" for figure in figures.values())
    assert all(row in done.stdout for row in figures)
    started, stopped, tests = (tmp_path / "seen").read_text().splitlines()
    assert started.replace("--state-dir", "--stop --state-dir") == stopped
    assert tests.strip() == "tests/run"


def test_a_row_whose_command_fails_has_no_figure(repository, tmp_path):
    broken = "#!/bin/sh\necho the reason\nexit 3\n"
    (repository / "tests" / "run").write_text(broken)
    subprocess.run(["git", "-C", repository, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam", "Break"],
                   check=True)
    done = _measure(repository, tmp_path, "tests_run")
    assert done.returncode == 1
    assert "the reason" in done.stderr and "exit 3" in done.stderr
    assert "tests_run" not in done.stdout


def test_a_row_that_is_not_there_is_named(tmp_path):
    done = _measure(REPOSITORY, tmp_path, "build_moon")
    assert done.returncode == 2
    assert "build_moon" in done.stderr
