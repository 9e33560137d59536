"""Many watchers of all jobs, and some that never read."""

from rows.report import Figure
from rows.setting import fresh_broker, memory_bytes, peak_memory_bytes, running_tool, tool

WATCHERS = 500
JOBS = 5000
UNREAD = 100
# Jobs that start in a second, and once all of them run, that end.
PACE = 500
# Calls of GetJob in a second.
ASKED = 200


def _run_jobs(world, jobs, pace):
    """Whole lives of jobs, all of which run at the same time."""
    tool("full-life", "together", address=world.broker.address, agents=2, jobs=jobs, pace=pace, batch=100, in_flight=4)


def _watched(short, row, pace):
    """The figures of a row: GetJob while many are given changes, the broker's memory, and who has seen each change."""
    jobs, count = (200, 20) if short else (JOBS, WATCHERS)
    with fresh_broker() as world:
        with running_tool("get-jobs", address=world.broker.address, rate=ASKED) as unwatched:
            _run_jobs(world, jobs, pace)
    with fresh_broker() as world:
        pid = world.broker.process.pid
        before = memory_bytes(pid)
        with running_tool("get-jobs", address=world.broker.address, rate=ASKED) as asked:
            with running_tool("watch-changes", address=world.broker.address, watchers=count) as seen:
                _run_jobs(world, jobs, pace)
        peak = peak_memory_bytes(pid)
    return [Figure(f"{row}_get_p99", asked["p99_ms"], "ms", unwatched["p99_ms"], "the same jobs with one watcher", 20,
                   at_most=True),
            Figure(f"{row}_memory", peak / 1e6, "MB", before / 1e6, "the broker before them", 300, at_most=True),
            Figure(f"{row}_complete", seen["complete"], "watchers", count, "all that watched", ratio_goal=1)]


def watchers(short):
    """Jobs start and end at a steady pace."""
    return _watched(short, "watchers", PACE)


def watchers_burst(short):
    """All jobs start at once and end at once: the machine is full, and calls wait for the processor."""
    return _watched(short, "watchers_burst", pace=0)


def watchers_unread(short):
    """Measures the cost of a watcher that never reads."""
    jobs = 200 if short else JOBS
    memory = []
    for count in (1, 1 + UNREAD):
        with fresh_broker() as world:
            with running_tool("watch-without-reading", address=world.broker.address, watchers=count):
                _run_jobs(world, jobs, pace=0)
                memory.append(memory_bytes(world.broker.process.pid))
    few, many = memory
    return [Figure("watcher_unread_memory", max(0, many - few) / UNREAD / 1e3, "kB", few / 1e3, "the broker with one", 1000,
                   at_most=True)]
