"""A client's program that follows a job while the broker starts anew: what clients of all languages must live through."""

import os
import subprocess

from harness.wait import eventually

# A busy machine may take so long for a program and two restarts.
RUN_TIMEOUT_S = 300
# The job writes so many lines before the first restart, before the second, and in all.
FIRST, SECOND, ALL = 500, 1000, 1500


def seen_across_restarts(world, broker, command, env, cwd=None):
    """Runs the command with the script of a job as its last argument; returns the words that it has printed. Its first ones
    are the lines of the job's log, one by one as they come."""
    first, second = world.gate(), world.gate()
    text = (f"seq 1 {FIRST}; {first.script()}; seq {FIRST + 1} {SECOND}; {second.script()}; seq {SECOND + 1} {ALL}")
    with open(world.path("out"), "w") as out, open(world.path("err.log"), "w") as err:
        process = subprocess.Popen([*(str(word) for word in command), text], stdout=out, stderr=err, cwd=cwd,
                                   env={**os.environ, **env})
    try:
        seen = lambda: world.path("out").read_text().split()
        for gate, count in ((first, FIRST), (second, SECOND)):
            eventually(lambda: len(seen()) >= count, f"{count} lines came")
            broker.restart()
            gate.open()
        assert process.wait(RUN_TIMEOUT_S) == 0, world.path("err.log").read_text()
    finally:
        process.kill()
        process.wait()
    return seen()


def lines_of_the_log():
    return [*map(str, range(1, ALL + 1))]
