"""The one way in which a test waits."""

import threading
import time

# It is generous, because the machine may be busy with a build: a test that passes never waits this long.
DEADLINE_S = 120.0
POLL_S = 0.05


def eventually(condition, what, deadline_s=DEADLINE_S, alive=None, poll_s=POLL_S):
    """Calls condition() until it returns something true, and returns that.

    Fails after deadline_s, saying `what` was waited for and what condition() returned last. `alive`, if given, is
    called as well and raises to end the wait early, for example because a daemon has died. poll_s lies between two looks.
    """
    end = time.monotonic() + deadline_s
    pause = threading.Event()
    while True:
        last = condition()
        if last:
            return last
        if alive is not None:
            alive()
        if time.monotonic() >= end:
            raise AssertionError(f"not within {deadline_s:.0f} s: {what}; the last look showed {last!r}")
        pause.wait(poll_s)


def holds_for(condition, what, duration_s):
    """Checks that condition() stays true for a while; for claims that something does not happen."""
    end = time.monotonic() + duration_s
    pause = threading.Event()
    while time.monotonic() < end:
        assert condition(), f"did not stay so for {duration_s} s: {what}"
        pause.wait(POLL_S)
