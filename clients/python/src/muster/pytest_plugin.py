"""A fixture for tests of programs that use muster.Executor.

    def test_area(muster_executor):
        assert muster_executor.submit(area, 6, 7).result() == 42

It runs the calls on this machine, and with `pytest --muster` as jobs of your broker.
"""

from __future__ import annotations

import concurrent.futures
from typing import Any, Iterator

import pytest


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("muster")
    group.addoption("--muster", action="store_true", help="run the calls of muster_executor as jobs of your broker")


@pytest.fixture
def muster_executor(request: Any) -> Iterator[concurrent.futures.Executor]:
    """A muster.LocalExecutor, or, with --muster, a muster.Executor; its calls have ended when the test has."""
    # pytest loads this module in each of its runs, also where nobody uses the fixture.
    import muster
    with muster.Executor() if request.config.getoption("--muster") else muster.LocalExecutor() as executor:
        yield executor
