"""Waiting for many jobs without disturbing what is measured."""

import time

from harness.api import TERMINAL, argv_spec

# SubmitJobs and WatchJobs take as many.
BATCH = 1000
DEADLINE_S = 900


def run_all(api, jobs):
    """Seconds from the first submit until all of them have succeeded."""
    start = time.monotonic()
    batches = [api.submit_many([argv_spec("true")] * min(BATCH, jobs - first)) for first in range(0, jobs, BATCH)]
    # A watch tells each step once; to ask again and again would take the cores from what is measured.
    for batch in batches:
        ended = sum(change.transition.job_state in TERMINAL
                    for change in api.changes(timeout_s=DEADLINE_S, job_ids=batch, until_terminal=True))
        assert ended == len(batch), f"{ended} of {len(batch)} jobs have ended"
    elapsed = time.monotonic() - start
    succeeded = len(api.list_all(filter="state = SUCCEEDED", page_size=1000))
    assert succeeded == jobs, f"{succeeded} of {jobs} jobs succeeded"
    return elapsed
