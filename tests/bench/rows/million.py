"""A broker with a million jobs in its queue: memory, restart, lists."""

import contextlib
import sqlite3
import time

from rows.report import Figure
from rows.setting import fresh_broker, memory_bytes, tool

FIRST_STEP = 100_000
ALL = 1_000_000
PAGES = 400
# Filters of ListJobs, and how bare SQLite is asked for the same jobs.
FILTERS = {"": ("", ()),
           "state = QUEUED AND project = default": ("j.state = 1 AND j.project = 'default' AND", ()),
           'name = "train-77"': ("j.name = ? AND", ("train-77",)),
           "state = RUNNING": ("j.state = 3 AND", ()),
           "NOT name = x": ("j.name <> 'x' AND", ())}
PAGE_ROWS = "SELECT j.* FROM job j WHERE {} j.id < ? ORDER BY j.id DESC LIMIT ?"
# The number of jobs that ListJobs returns without page_size.
PAGE_SIZE = 100
BEFORE_ALL = 2**62

# The rows that a restarted broker reads of jobs that have not ended, without keeping them.
LIVE_ROWS = """SELECT count(*), sum(j.id + j.state + j.priority + j.job_sequence + j.runs),
               sum(length(j.project) + length(s.spec) + length(j.request_id) + (j.fingerprint & 1))
               FROM job j JOIN spec s ON s.id = j.spec WHERE j.end_time IS NULL"""


def _submit(world, jobs, **options):
    tool("submit", address=world.broker.address, in_flight=8, batch=500, jobs=jobs, **options)


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


def different(short):
    """Jobs of which no two need the same."""
    jobs = 5000 if short else ALL
    with fresh_broker() as world:
        _submit(world, 1)
        empty = memory_bytes(world.broker.process.pid)
        _submit(world, jobs, different=True)
        each = (memory_bytes(world.broker.process.pid) - empty) / jobs
        return [Figure("memory_queued_different", each, "B/job", _spec_bytes(world),
                       "its serialised spec, which stays on disk", 700, at_most=True)]


def refit(short):
    """An agent sends another inventory, and a cluster is forgotten that all jobs fit.

    The unit is processor time of the core's thread, which does a slice in each turn. The goal is on the parts that keep
    the thread from other work: the message, and each turn. The report has the sum of all.
    """
    found = tool("refit-rounds", jobs=5000 if short else ALL)
    what = "one check of each job against the cluster"
    return [Figure("refit_1m_message", found["message_ms"], "ms", found["checks_ms"], what, 20, at_most=True),
            Figure("refit_1m_longest", found["slowest_ms"], "ms", found["checks_ms"], what, 20, at_most=True),
            Figure("refit_1m_all", found["all_ms"], "ms", found["checks_ms"], what),
            Figure("forget_1m_longest", found["forget_slowest_ms"], "ms", found["checks_ms"], what, 20, at_most=True)]


def _query(world, sql):
    """The first row of a read-only query of the broker's database."""
    with contextlib.closing(sqlite3.connect(f"file:{world.broker.database}?mode=ro", uri=True)) as database:
        return database.execute(sql).fetchone()


def _spec_bytes(world):
    return _query(world, "SELECT avg(length(s.spec)) FROM job j JOIN spec s ON s.id = j.spec WHERE j.id <= 1000")[0]


def _lists(world, short):
    """The slowest filter's pages, beside bare SQLite reading pages of the same jobs."""
    pages = 20 if short else PAGES
    slowest = max((tool("list-pages", address=world.broker.address, pages=pages, filter=text)["p99_ms"], text, bare)
                  for text, bare in FILTERS.items())
    value, text, bare = slowest
    return [Figure("list_page_1m", value, "ms p99", _bare_pages_p99_ms(world, bare, pages),
                   f"the same pages by bare SQLite, p99, of the slowest filter: {text or 'none'}", 20, at_most=True)]


def _bare_pages_p99_ms(world, bare, pages):
    """The same rows, page after page, from the start again when there is no more."""
    where, values = bare
    query = PAGE_ROWS.format(where)
    times = []
    with contextlib.closing(sqlite3.connect(f"file:{world.broker.database}?mode=ro", uri=True)) as database:
        before = BEFORE_ALL
        for _ in range(pages):
            start = time.monotonic()
            rows = database.execute(query, (*values, before, PAGE_SIZE)).fetchall()
            times.append(time.monotonic() - start)
            before = rows[-1][0] if len(rows) == PAGE_SIZE else BEFORE_ALL
    return sorted(times)[int(0.99 * (pages - 1))] * 1000


def _restart(world):
    """The time from kill -9 to the first assignment at an agent that dials without pause."""
    world.broker.kill()
    killed = time.time()
    world.broker.launch()
    first = tool("first-assignment", address=world.broker.address, seconds=120)
    value = first["unix_s"] - killed
    start = time.monotonic()
    _query(world, LIVE_ROWS)
    return Figure("restart_1m", value, "s", time.monotonic() - start,
                  "one pass of bare SQLite over the rows that the restart reads", 10, at_most=True)
