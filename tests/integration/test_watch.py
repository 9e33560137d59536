"""WatchJobs as a feed of changes: nothing is left out, nothing comes twice, whoever watches and however long."""

import threading

import grpc
from muster.v1 import job_pb2

from harness.api import RUNNING, SUCCEEDED, TERMINAL, argv_spec, script_spec

JOBS = 500
WATCHERS = 20


class Watcher(threading.Thread):
    """Takes all changes from a sequence on until `jobs` jobs have ended; comes back when its stream breaks."""

    def __init__(self, world, broker, jobs, after=0, **fields):
        super().__init__(daemon=True)
        self._world, self._broker, self._jobs, self._after, self._fields = world, broker, jobs, after, fields
        self.changes = []
        self.begun = threading.Event()
        self.breaks = 0

    def run(self):
        ended = set()
        while len(ended) < self._jobs:
            try:
                for answer in self._world.api(self._broker).watch(after=self._after, timeout_s=300, **self._fields):
                    if answer.HasField("heartbeat"):
                        self._after = answer.heartbeat.sequence
                        self.begun.set()
                    self._take(answer.changes, ended)
                    if len(ended) == self._jobs:
                        break
            except grpc.RpcError as error:
                assert error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED), error
                self.breaks += 1

    def _take(self, changes, ended):
        """Takes the changes up to the end of the last job."""
        for change in changes:
            if len(ended) == self._jobs:
                return
            self._after = change.sequence
            self.changes.append(change)
            if change.job.state in TERMINAL:
                ended.add(change.job.id)

    def finish(self):
        self.join(300)
        assert not self.is_alive(), f"it has seen {len(self.changes)} changes"
        sequences = [change.sequence for change in self.changes]
        assert sequences == sorted(set(sequences)), "in order, each once"
        return self.changes


def transitions_of(changes):
    return [(change.sequence, change.job.id, change.transition.job_state) for change in changes
            if change.HasField("transition")]


def test_a_filter_is_judged_at_each_step_though_jobs_end_at_once(api, agent):
    """It takes the steps into RUNNING and out of it, by the jobs' histories; a job of `true` may have no such step."""
    stream = api.watch(after=None, filter="state = RUNNING", timeout_s=300)
    assert next(stream).HasField("heartbeat")
    jobs = api.submit_many([argv_spec("true"), argv_spec("sleep", "0.1")] * 25)
    wanted = []
    for job_id in jobs:
        api.wait_end(job_id)
        steps = api.transitions(job_id)
        wanted += [step.sequence for before, step in zip(steps, steps[1:]) if RUNNING in (before.job_state, step.job_state)]
    assert wanted
    seen = {}
    while not seen or max(seen) < max(wanted):
        for change in next(stream).changes:
            if change.HasField("transition"):
                assert change.sequence not in seen, "each once"
                seen[change.sequence] = change
    stream.cancel()
    assert sorted(seen) == sorted(wanted)
    assert {change.job.state for change in seen.values()} == {RUNNING, SUCCEEDED}


def test_many_watchers_see_the_same_changes(world, broker, api, agent):
    watchers = [Watcher(world, broker, JOBS, after=None) for _ in range(WATCHERS)]
    for watcher in watchers:
        watcher.start()
        assert watcher.begun.wait(60)
    jobs = api.submit_many([argv_spec("true")] * JOBS)
    first, *others = [transitions_of(watcher.finish()) for watcher in watchers]
    assert sorted({job for _, job, _ in first}) == jobs
    for other in others:
        # One ends with the last job's end, whatever else comes then.
        assert other == first


def test_watchers_miss_nothing_over_a_restart_of_the_broker(world, broker, api, agent):
    watchers = [Watcher(world, broker, 60, after=None) for _ in range(3)]
    for watcher in watchers:
        watcher.start()
        assert watcher.begun.wait(60)
    api.submit_many([argv_spec("true")] * 30)
    broker.restart()
    jobs = world.api(broker).submit_many([argv_spec("true")] * 30)
    seen = [transitions_of(watcher.finish()) for watcher in watchers]
    assert all(watcher.breaks for watcher in watchers)
    history = {change.sequence for change in world.api(broker).changes(job_ids=jobs, until_terminal=True)
               if change.HasField("transition")}
    for transitions in seen:
        assert transitions == seen[0]
        assert {sequence for sequence, job, _ in transitions if job in jobs} == history


def test_a_change_has_its_job_and_the_run_that_changed(world, broker, api, agent):
    gate = world.gate()
    job_id = api.submit(script_spec(gate.script()))
    api.wait_state(job_id, RUNNING)
    stream = api.watch(job_ids=[job_id], until_terminal=True, after=None)
    assert next(stream).HasField("heartbeat")
    gate.open()
    changes = [change for answer in stream for change in answer.changes]
    assert changes[-1].job.state == SUCCEEDED
    for change in changes:
        assert not change.job.HasField("spec")
        if change.HasField("transition"):
            assert change.transition.sequence == change.sequence
            assert change.transition.job_state == change.job.state
            assert [run.number for run in change.job.runs] == [change.transition.run]
    assert job_pb2.TRANSITION_KIND_SUBMITTED not in [change.transition.kind for change in changes]
