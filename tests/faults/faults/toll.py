"""What a fault cost."""

import dataclasses

from muster.v1 import job_pb2

from harness.api import SUCCEEDED

from faults.history import find_wrong_steps


@dataclasses.dataclass
class Toll:
    """Counts over all repetitions of one fault."""

    wanted: int = 0
    strikes: int = 0
    jobs: int = 0
    retries: int = 0
    # Jobs of which the cluster itself has started a run twice: nobody is told so, and no client can keep it from that.
    twice_by_cluster: int = 0
    # Each with what was seen.
    lost: list = dataclasses.field(default_factory=list)
    doubled: list = dataclasses.field(default_factory=list)
    wrong: list = dataclasses.field(default_factory=list)
    orphans: list = dataclasses.field(default_factory=list)

    def is_clean(self):
        """Also: whether it was really struck so often."""
        return self.strikes >= self.wanted and not self._complaints()

    def __str__(self):
        retries = f" ({self.retries} retries)" if self.retries else ""
        if self.twice_by_cluster:
            retries += f" ({self.twice_by_cluster} started twice by the cluster itself)"
        counts = (f"{self.strikes} of {self.wanted} strikes, {self.jobs} jobs{retries}: {len(self.lost)} lost, "
                  f"{len(self.doubled)} doubled, {len(self.wrong)} told wrongly, {len(self.orphans)} orphans")
        return "\n    ".join([counts, *self._complaints()])

    def _complaints(self):
        return self.lost + self.doubled + self.wrong + self.orphans

    def audit(self, lab, job_ids, code_of=lambda job_id: 0, may_retry=False):
        """Waits for the ends of the jobs and counts; then nothing of theirs may be in the cluster that has no reason to.
        code_of(job_id): the exit code of the job's command; None: any end will do. may_retry: a run may fail by the
        cluster's fault, and another one follows."""
        for job_id in job_ids:
            self.jobs += 1
            try:
                job = lab.api.wait_end(job_id)
            except AssertionError as error:
                self.lost.append(f"job {job_id} does not end: {error}")
                continue
            self._count_starts(lab, job, len(job.runs) if may_retry else 1)
            self.wrong += [f"job {job_id}: {words}" for words in find_wrong_steps(lab.api.transitions(job_id))]
            if code_of is not None:
                self._check_end(lab, job, code_of(job_id), may_retry)
        self.orphans += lab.find_orphans()

    def _count_starts(self, lab, job, most):
        ran = lab.trio.runs_of(job.id)
        if ran == 0:
            self.lost.append(f"job {job.id} never ran: {job}")
        if ran > most and lab.was_doubled_by_cluster(job, ran):
            self.twice_by_cluster += 1
        elif ran > most:
            self.doubled.append(f"job {job.id} ran {ran} times: {job}")

    def _check_log(self, lab, job):
        try:
            log = lab.api.stdout(job.id)
        except AssertionError as error:
            self.wrong.append(f"job {job.id}: its log is {error}")
            return
        # Of a run that the cluster has started twice, both starts may have written.
        whole = lab.log_of(job.id)
        if log != whole and not (log.startswith(whole) and lab.was_doubled_by_cluster(job, lab.trio.runs_of(job.id))):
            self.wrong.append(f"job {job.id}: its log is {log}")

    def _check_end(self, lab, job, code, may_retry):
        told_right = job.state == SUCCEEDED if code == 0 else job.exit.code == code
        if not told_right:
            self.wrong.append(f"job {job.id} ended with {code}: {job}")
        before = job.runs[:-1]
        self.retries += len(before)
        if before and not (may_retry and all(run.failure.failure_class == job_pb2.FAILURE_CLASS_INFRA for run in before)):
            self.wrong.append(f"job {job.id} was tried again: {job}")
        self._check_log(lab, job)
