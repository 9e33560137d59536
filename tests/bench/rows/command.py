"""The command line: what a script that submits jobs one by one pays."""

import subprocess
import time

from harness.daemons import BIN

from rows.report import Figure
from rows.setting import fresh_broker


def cli_submit(short):
    """Process start to exit of one submit, on average over many in a row."""
    repeats = 10 if short else 200
    with fresh_broker() as world:
        baseline = _each([["true"]] * repeats)
        submit = [str(BIN / "muster"), "--broker", world.broker.address, "run", "-q", "--", "true"]
        value = _each([submit] * repeats)
    return [Figure("cli_submit", value, "ms", baseline, "fork, exec and wait of true", 12, at_most=True)]


def _each(commands):
    start = time.monotonic()
    for command in commands:
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return (time.monotonic() - start) * 1000 / len(commands)
