"""A broker with a million jobs in its queue: memory, restart, lists."""

import contextlib
import sqlite3
import time

from rows.report import Figure
from rows.setting import fresh_broker, memory_bytes, tool

FIRST_STEP = 100_000
ALL = 1_000_000
PAGES = 400
FILTERS = {"": "no filter", "state = QUEUED AND project = default": "state and project",
           'name = "train-77"': "one name", "state = RUNNING": "nothing matches", "NOT name = x": "no index helps"}

# What a restarted broker reads of jobs that have not ended, without keeping it.
LIVE_ROWS = """SELECT count(*), sum(j.id + j.state + j.shape + j.priority + j.job_sequence + j.runs),
               sum(length(j.project) + length(r.request_id) + (r.fingerprint & 1))
               FROM job j LEFT JOIN request r ON r.job = j.id WHERE j.end_time IS NULL"""


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
            figures.append(Figure(f"memory_queued_{jobs}", each, "B/job", _spec_bytes(world),
                                  "its serialised spec, which stays on disk", 700, at_most=True))
        figures += _lists(world, short)
        figures.append(_restart(world))
    if short:
        for figure, name in zip(figures, ("memory_queued_100000", "memory_queued_1000000")):
            figure.row = name
    return figures


def _query(world, sql):
    """The first row of a read-only query of the broker's database."""
    with contextlib.closing(sqlite3.connect(f"file:{world.broker.database}?mode=ro", uri=True)) as database:
        return database.execute(sql).fetchone()


def _spec_bytes(world):
    return _query(world, "SELECT avg(length(spec)) FROM job_spec WHERE id <= 1000")[0]


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
    start = time.monotonic()
    _query(world, LIVE_ROWS)
    return Figure("restart_1m", value, "s", time.monotonic() - start,
                  "one pass of bare SQLite over the rows that the restart reads", 10, at_most=True)


ROWS = {name: million for name in ("memory_queued_100000", "memory_queued_1000000", "list_page_1m", "restart_1m")}
