"""Plain machines: many short jobs against doing the same without any scheduler."""

import subprocess
import time

from rows.report import Figure
from rows.setting import fresh_broker
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
