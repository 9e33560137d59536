"""Functions run on this machine as they would on a cluster."""

import pytest

import muster

pytest_plugins = "pytester"


def divide(a, b=1):
    return a / b


def test_values_and_exceptions_come_back():
    with muster.LocalExecutor() as executor:
        assert executor.submit(divide, 6, b=3).result() == 2
        assert list(executor.map(divide, range(3))) == [0, 1, 2]
        error = executor.submit(divide, 1, 0).exception()
    assert isinstance(error, ZeroDivisionError) and "in divide" in str(error.__cause__)


def test_the_job_s_environment_and_time_count():
    with muster.LocalExecutor(job=muster.Job(env={"SEED": "7"})) as executor:
        assert executor.submit(lambda: __import__("os").environ["SEED"]).result() == "7"
    with muster.LocalExecutor(job=muster.Job(time=0.5)) as executor:
        with pytest.raises(muster.RemoteError, match="time limit of 0.5 s"):
            executor.submit(lambda: __import__("time").sleep(60)).result()


def test_an_exception_that_cannot_come_back_has_its_traceback():
    def fail():
        class Local(Exception):
            def __init__(self, a, b):
                super().__init__(a)
        raise Local(1, 2)

    with muster.LocalExecutor() as executor:
        with pytest.raises(muster.RemoteError, match="in fail\n(.|\n)*Local: 1"):
            executor.submit(fail).result()


def test_a_program_that_dies_says_what_it_wrote():
    with muster.LocalExecutor() as executor:
        with pytest.raises(muster.RemoteError, match="ended with 3:\ngone"):
            executor.submit(lambda: (__import__("os").write(2, b"gone"), __import__("os")._exit(3))).result()


def test_the_files_of_its_job_are_there(tmp_path):
    (tmp_path / "own.py").write_text("ANSWER = 42\n")
    (tmp_path / "data").write_text("x")

    def answer():
        import own
        return own.ANSWER, open("etc/data").read()

    with muster.LocalExecutor(job=muster.Job(workdir=tmp_path, files={"etc/data": tmp_path / "data"})) as executor:
        assert executor.submit(answer).result() == (42, "x")


def test_what_cannot_be_pickled_is_told_at_once():
    with muster.LocalExecutor() as executor:
        with pytest.raises(TypeError, match="pickle"):
            executor.submit(divide, (one for one in ()))


def test_another_python_is_refused_with_the_remedy(tmp_path):
    fake = tmp_path / "python3"
    import sys
    fake.write_text(f"#!/bin/sh\nexec {sys.executable} \"$1\" 2.7\n")
    fake.chmod(0o755)
    with muster.LocalExecutor(job=muster.Job([str(fake)])) as executor:
        with pytest.raises(muster.RemoteError, match="pickled by Python 2.7, and the cluster's"):
            executor.submit(divide, 1).result()


def test_the_fixture_runs_calls_here(pytester):
    pytester.makepyfile("""
        def area(a, b):
            return a * b

        def test_area(muster_executor):
            assert muster_executor.submit(area, 6, 7).result() == 42
    """)
    # Installed, the package brings its plug-in along; in the tree it has to be named.
    import importlib.metadata
    known = any(one.metadata["Name"] == "muster-client" for one in importlib.metadata.distributions())
    pytester.runpytest(*([] if known else ["-p", "muster.pytest_plugin"])).assert_outcomes(passed=1)
