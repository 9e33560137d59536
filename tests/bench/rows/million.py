"""A broker with a million jobs in its queue: memory, restart, lists."""

import time

from rows.report import Figure
from rows.setting import fresh_broker, memory_bytes, tool

FIRST_STEP = 100_000
ALL = 1_000_000
PAGES = 400
FILTERS = {"": "no filter", "state = QUEUED AND project = default": "state and project",
           'name = "train-77"': "one name", "state = RUNNING": "nothing matches", "NOT name = x": "no index helps"}


def _submit(world, jobs):
    tool("submit", address=world.broker.address, in_flight=8, batch=500, jobs=jobs)


def million(short):
    """All rows that need so many jobs, over one and the same queue."""
    first, all_jobs = (1000, 5000) if short else (FIRST_STEP, ALL)
    with fresh_broker() as world:
        # One job, so that what the broker needs for any job is not counted as theirs.
        _submit(world, 1)
        empty = memory_bytes(world.broker.process.pid)
        figures = []
        done = 0
        for jobs in (first, all_jobs):
            _submit(world, jobs - done)
            done = jobs
            each = (memory_bytes(world.broker.process.pid) - empty) / jobs
            figures.append(Figure(f"memory_queued_{jobs}", each, "B/job", None, "", 700, at_most=True))
        figures += _lists(world, short)
        figures.append(_restart(world))
    if short:
        for figure, name in zip(figures, ("memory_queued_100000", "memory_queued_1000000")):
            figure.row = name
    return figures


def _lists(world, short):
    slowest = None
    for text, what in FILTERS.items():
        found = tool("list-pages", address=world.broker.address, pages=20 if short else PAGES, filter=text)
        if slowest is None or found["p99_ms"] > slowest[0]:
            slowest = (found["p99_ms"], what)
        if not text:
            unfiltered = found["p99_ms"]
    return [Figure("list_page_1m", slowest[0], "ms p99", unfiltered,
                   f"pages without a filter; the value is the slowest filter's ({slowest[1]})", 20, at_most=True)]


def _restart(world):
    """From kill -9 to the first assignment at an agent that dials without pause."""
    world.broker.kill()
    killed = time.time()
    world.broker.launch()
    first = tool("first-assignment", address=world.broker.address, seconds=120)
    value = first["unix_s"] - killed
    return Figure("restart_1m", value, "s", None, "", 10, at_most=True)


ROWS = {name: million for name in ("memory_queued_100000", "memory_queued_1000000", "list_page_1m", "restart_1m")}
