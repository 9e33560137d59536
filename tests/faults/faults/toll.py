"""Counts the cost of a fault."""

import dataclasses
import re
import typing

from muster.v1 import job_pb2

from harness.api import CANCELED, FAILED, SUCCEEDED

from faults.history import find_wrong_steps

# The words of the agent of a Kubernetes cluster.
REST_IS_MISSING = re.compile(rb"muster: the rest of the output of \S+ is missing: [^\n]+\n")


@dataclasses.dataclass(frozen=True)
class End:
    """The expected end of a job."""

    code: int = 0
    # The failure, if it never ran.
    failure: typing.Any = None
    is_canceled: bool = False
    # Expected starts of its command, one on each of its nodes.
    starts: int = 1


@dataclasses.dataclass
class Toll:
    """Counts over all repetitions of one fault."""

    wanted: int = 0
    # Tells whether each effect of an agent is struck, however many there are.
    is_whole: bool = False
    strikes: int = 0
    # The number of effects, by the lives that they belong to.
    effects: dict = dataclasses.field(default_factory=dict)
    # The latest strike, for complaints.
    moment: str = ""
    jobs: int = 0
    retries: int = 0
    # The cluster itself has started a run of these jobs twice: nobody is told, and no client can prevent it.
    twice_by_cluster: int = 0
    # Each with what was seen.
    lost: list = dataclasses.field(default_factory=list)
    doubled: list = dataclasses.field(default_factory=list)
    wrong: list = dataclasses.field(default_factory=list)
    orphans: list = dataclasses.field(default_factory=list)

    def is_clean(self):
        """Tells whether there is no complaint and it was really struck so often."""
        return self.strikes >= self.wanted and not self._complaints()

    def __str__(self):
        retries = f" ({self.retries} retries)" if self.retries else ""
        if self.twice_by_cluster:
            retries += f" ({self.twice_by_cluster} started twice by the cluster itself)"
        counts = (f"{self.strikes} of {self.wanted} strikes{self._count_effects()}, {self.jobs} jobs{retries}: "
                  f"{len(self.lost)} lost, {len(self.doubled)} doubled, {len(self.wrong)} told wrongly, {len(self.orphans)} orphans")
        return "\n    ".join([counts, *self._complaints()])

    def _complaints(self):
        return self.lost + self.doubled + self.wrong + self.orphans

    def _count_effects(self):
        if not self.effects:
            return ""
        each = ", ".join(f"{life} {count}" for life, count in self.effects.items())
        return f" at {sum(self.effects.values())} effects ({each})"

    def audit(self, lab, job_ids, end_of=lambda job_id: End(), may_retry=False):
        """Waits for the ends of the jobs and counts; then nothing of theirs may be in the cluster that has no reason to.
        end_of(job_id): the end that it is to have; None: any will do. may_retry: a run may fail by the cluster's fault,
        and another one follows."""
        for job_id in job_ids:
            self.jobs += 1
            end = end_of(job_id)
            try:
                job = lab.api.wait_end(job_id)
            except AssertionError as error:
                self.lost.append(f"{self.moment}job {job_id} does not end: {error}")
                continue
            self._count_starts(lab, job, end.starts if end else 1, may_retry)
            for words in find_wrong_steps(lab.api.transitions(job_id)):
                self._call_wrong(job, words)
            if end is not None:
                self._check_end(lab, job, end, may_retry)
        self.orphans += [self.moment + orphan for orphan in lab.find_orphans()]

    def _call_wrong(self, job, words):
        self.wrong.append(f"{self.moment}job {job.id}: {words}")

    def _count_starts(self, lab, job, wanted, may_retry):
        ran = lab.trio.runs_of(job.id)
        if ran < wanted:
            self.lost.append(f"{self.moment}job {job.id} ran {ran} times of {wanted}: {job}")
        if ran <= wanted * (len(job.runs) if may_retry else 1):
            return
        if lab.was_doubled_by_cluster(job, ran):
            self.twice_by_cluster += 1
        else:
            self.doubled.append(f"{self.moment}job {job.id} ran {ran} times: {job}")

    def _check_end(self, lab, job, end, may_retry):
        if end.is_canceled:
            told_right = job.state == CANCELED
        elif end.failure is not None:
            told_right = job.state == FAILED and job.failure.failure_class == end.failure
        else:
            told_right = job.state == (FAILED if end.code else SUCCEEDED) and job.exit.code == end.code
        if not told_right:
            self._call_wrong(job, f"it ended otherwise than with {end}: {job}")
        before = job.runs[:-1]
        self.retries += len(before)
        if before and not (may_retry and all(run.failure.failure_class == job_pb2.FAILURE_CLASS_INFRA for run in before)):
            self._call_wrong(job, f"it was tried again: {job}")
        for rank in range(end.starts):
            self._check_log(lab, job, end, rank)

    def _check_log(self, lab, job, end, rank):
        try:
            log = lab.api.stdout(job.id, rank=rank)
        except AssertionError as error:
            self._call_wrong(job, f"its log of rank {rank} is {error}")
            return
        # If the cluster has started a run twice, both starts may have written; a run that it took back before its program
        # began has left the words that the rest of its output is missing. If a pod was deleted while the agent was away,
        # nobody can tell whether it had written more, and the log says so.
        whole = lab.log_of(job.id)
        rest = log.removeprefix(whole)
        starts = max(end.starts + 1, lab.trio.runs_of(job.id))
        may_say_more = end.is_canceled and REST_IS_MISSING.fullmatch(rest) is not None
        if not log.startswith(whole) or rest and not (may_say_more or lab.was_doubled_by_cluster(job, starts)):
            self._call_wrong(job, f"its log of rank {rank} is {log}")
