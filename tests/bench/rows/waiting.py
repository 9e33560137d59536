"""Waiting for many jobs without disturbing what is measured."""

import time

from harness.api import argv_spec
from harness.wait import eventually

# SubmitJobs takes as many.
BATCH = 1000
DEADLINE_S = 900
NOT_ENDED = "NOT (state = SUCCEEDED OR state = FAILED OR state = CANCELED)"


def run_all(api, jobs):
    """Seconds from the first submit until all of them have succeeded."""
    start = time.monotonic()
    for first in range(0, jobs, BATCH):
        api.submit_many([argv_spec("true")] * min(BATCH, jobs - first))
    eventually(lambda: not api.list_all(filter=NOT_ENDED, page_size=1), "all jobs have ended", DEADLINE_S)
    elapsed = time.monotonic() - start
    succeeded = len(api.list_all(filter="state = SUCCEEDED", page_size=1000))
    assert succeeded == jobs, f"{succeeded} of {jobs} jobs succeeded"
    return elapsed
