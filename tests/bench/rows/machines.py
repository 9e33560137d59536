"""Plain machines: many short jobs against doing the same without any scheduler, and rounds of a long queue."""

import subprocess
import time

from rows.report import Figure
from rows.setting import fresh_broker, tool
from rows.waiting import run_all

SLOTS = 2


def machines_1000(short):
    """Jobs of `true`, two at a time."""
    jobs = 20 if short else 1000
    with fresh_broker() as world:
        world.make_agent(config=world.machines_config(cpus=SLOTS)).start()
        value = run_all(world.api(world.broker), jobs)
        baseline = _bare(jobs)
    return [Figure("machines_1000", value, "s", baseline, f"fork, exec and wait of true, {SLOTS} at a time")]


def machines_round(short):
    """The slowest of 200 rounds, in processor time."""
    found = tool("plan-rounds", jobs=1000 if short else 100_000)
    each = "a look for a place for each of the runs"
    return [Figure("machines_round", found["usual_ms"], "ms", found["usual_each_ms"], each, 20, at_most=True),
            Figure("machines_round_distinct", found["distinct_ms"], "ms", found["distinct_each_ms"], each, 20, at_most=True),
            Figure("machines_round_fill", found["fill_ms"], "ms", found["usual_each_ms"], each, 20, at_most=True)]


def _bare(jobs):
    start = time.monotonic()
    running = []
    for _ in range(jobs):
        if len(running) == SLOTS:
            running.pop(0).wait()
        running.append(subprocess.Popen(["true"]))
    for process in running:
        process.wait()
    return time.monotonic() - start
