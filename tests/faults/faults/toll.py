"""What a fault cost."""

import dataclasses

from harness.api import SUCCEEDED


@dataclasses.dataclass
class Toll:
    """Counts over all repetitions of one fault."""

    wanted: int = 0
    strikes: int = 0
    jobs: int = 0
    # Each with what was seen.
    lost: list = dataclasses.field(default_factory=list)
    doubled: list = dataclasses.field(default_factory=list)
    wrong: list = dataclasses.field(default_factory=list)

    def is_clean(self):
        """Also: whether it was really struck so often."""
        return self.strikes >= self.wanted and not (self.lost or self.doubled or self.wrong)

    def __str__(self):
        counts = (f"{self.strikes} of {self.wanted} strikes, {self.jobs} jobs: {len(self.lost)} lost, {len(self.doubled)} doubled, "
                  f"{len(self.wrong)} told wrongly")
        return "\n    ".join([counts, *self.lost, *self.doubled, *self.wrong])

    def audit(self, lab, job_ids, code_of=lambda job_id: 0):
        """Waits for the ends of the jobs and counts. code_of(job_id): the exit code of the job's command; None: any end
        will do."""
        for job_id in job_ids:
            self.jobs += 1
            job = lab.api.wait_end(job_id)
            ran = lab.trio.runs_of(job_id)
            if ran == 0:
                self.lost.append(f"job {job_id} never ran: {job}")
            if ran > 1:
                self.doubled.append(f"job {job_id} ran {ran} times: {job}")
            if code_of is None:
                continue
            code = code_of(job_id)
            told_right = job.state == SUCCEEDED if code == 0 else job.exit.code == code
            if not told_right:
                self.wrong.append(f"job {job_id} ended with {code}: {job}")
