"""The lives of jobs as people lead them, from submission to end: each agent effect of these lives is
struck."""

import dataclasses
import typing

from muster.v1 import job_pb2

from faults.toll import End

RUNNING = job_pb2.JOB_STATE_RUNNING
# Kubernetes holds them as an archive of two Secrets (kMaxPartBytes), and those of a whole campaign together are less
# than the agent keeps room for (kMaxBytesOfArchives).
LARGE_BYTES = 1000 << 10


@dataclasses.dataclass(frozen=True)
class Life:
    """`live(lab, reach)` gives the job's number as soon as nothing but its end is to be waited for. Meanwhile it waits by
    reach(condition, words), which starts the agent again if it dies."""

    name: str
    live: typing.Callable
    end: End = End()


def _submit(lab, text="", spec=None, **fields):
    return lab.api.submit(spec or lab.spec(text), **fields)


def _plain(lab, reach):
    del reach
    return _submit(lab)


def _failing(lab, reach):
    del reach
    return _submit(lab, "exit 3")


def _of_two_nodes(lab, reach):
    del reach
    return _submit(lab, spec=lab.gang_spec())


def _submitted_held(lab, reach):
    job = _submit(lab, held=True)
    reach(lambda: lab.api.get(job).held, "it is held")
    lab.api.release(job)
    return job


def _held_while_it_waits(lab, reach):
    with lab.no_room():
        job = _submit(lab)
        reach(lambda: lab.waits(job), "it waits for room")
        lab.api.hold(job)
        reach(lambda: lab.is_held(job), "it is held")
    lab.api.release(job)
    return job


def _held_after_it_was_let_go(lab, reach):
    with lab.shunned_by_nodes():
        job = _submit(lab, spec=lab.shunned_spec())
        reach(lambda: lab.finds_no_node(job), "it finds no node")
        lab.api.hold(job)
        reach(lambda: lab.is_held(job), "it is held")
        lab.api.release(job)
        reach(lambda: lab.finds_no_node(job), "it was let go again")
    return job


def _canceled_while_it_waits(lab, reach):
    return _cancel_as_it_waits(lab, reach, lab.spec())


def _cancel_as_it_waits(lab, reach, spec):
    with lab.no_room():
        job = _submit(lab, spec=spec)
        reach(lambda: lab.waits(job), "it waits for room")
        lab.api.cancel(job)
        reach(lambda: lab.has_ended(job), "it is canceled")
    return job


def _canceled_while_it_runs(lab, reach):
    return _cancel_as_it_runs(lab, reach, lab.spec("sleep 1000"))


def _of_two_nodes_and_canceled(lab, reach):
    return _cancel_as_it_runs(lab, reach, lab.gang_spec("sleep 1000"))


def _cancel_as_it_runs(lab, reach, spec):
    job = _submit(lab, spec=spec)
    reach(lambda: lab.api.get(job).state == RUNNING and lab.has_logged(job), "it runs")
    lab.api.cancel(job)
    return job


def _canceled_while_it_waits_for_a_gpu(lab, reach, first=lambda lab, reach, job: None):
    """`first` comes before the cancel."""
    job = _submit(lab, spec=lab.crowded_spec())
    reach(lambda: lab.waits(job), "it waits for a GPU")
    first(lab, reach, job)
    lab.api.cancel(job)
    reach(lambda: lab.has_ended(job), "it is canceled")
    return job


def _hold(lab, reach, job):
    lab.api.hold(job)
    reach(lambda: lab.is_held(job), "it is held")


def _held_while_it_waits_for_a_gpu(lab, reach):
    return _canceled_while_it_waits_for_a_gpu(lab, reach, first=_hold)


def _bringing_files(lab, reach):
    del reach
    return _submit(lab, spec=lab.bringing_spec())


def _bringing_large_files(lab, reach):
    del reach
    return _submit(lab, spec=lab.bringing_spec(least_bytes=LARGE_BYTES))


def _bringing_files_to_two_nodes(lab, reach):
    del reach
    spec = lab.bringing_spec()
    spec.nodes = 2
    return _submit(lab, spec=spec)


def _bringing_files_and_canceled(lab, reach):
    return _cancel_as_it_runs(lab, reach, lab.bringing_spec("sleep 1000"))


def _bringing_large_files_and_canceled_while_it_waits(lab, reach):
    return _cancel_as_it_waits(lab, reach, lab.bringing_spec(least_bytes=LARGE_BYTES))


def _given_up(lab, reach):
    del reach
    spec = lab.spec()
    spec.image = "registry.example/missing:1"
    return _submit(lab, spec=spec)


EVERYWHERE = (
    Life("a success", _plain),
    Life("a failure", _failing, End(code=3)),
    Life("two nodes", _of_two_nodes, End(starts=2)),
    Life("submitted held", _submitted_held),
    Life("held while it waits", _held_while_it_waits),
    Life("canceled while it waits", _canceled_while_it_waits, End(is_canceled=True, starts=0)),
    Life("canceled while it runs", _canceled_while_it_runs, End(is_canceled=True)),
)
GIVEN_UP = Life("given up", _given_up, End(starts=0, failure=job_pb2.FAILURE_CLASS_IMAGE))
# Slurm and a job are never that far apart, and it gives up none.
ON_KUBERNETES = (
    *EVERYWHERE,
    Life("two nodes, canceled while they run", _of_two_nodes_and_canceled, End(is_canceled=True, starts=2)),
    Life("held after it was let go", _held_after_it_was_let_go),
    GIVEN_UP,
)
# A run that Kueue has let go cannot be held before it has found a node or Kueue takes it back.
ON_KUEUE = (
    *EVERYWHERE,
    GIVEN_UP,
    Life("files to two nodes", _bringing_files_to_two_nodes, End(starts=2)),
)
ON_MACHINES = (
    Life("a success", _plain),
    Life("a failure", _failing, End(code=3)),
    Life("submitted held", _submitted_held),
    Life("held and canceled while it waits", _held_while_it_waits_for_a_gpu, End(is_canceled=True, starts=0)),
    Life("canceled while it waits", _canceled_while_it_waits_for_a_gpu, End(is_canceled=True, starts=0)),
    Life("canceled while it runs", _canceled_while_it_runs, End(is_canceled=True)),
)
ON_HOSTS = (*ON_MACHINES, Life("two nodes", _of_two_nodes, End(starts=2)))
# Each has files that nobody has had before.
BRINGING_ON_MACHINES = (
    Life("files", _bringing_files),
    Life("files, canceled while it runs", _bringing_files_and_canceled, End(is_canceled=True)),
)
BRINGING_ON_HOSTS = (*BRINGING_ON_MACHINES, Life("files to two nodes", _bringing_files_to_two_nodes, End(starts=2)))
BRINGING_ON_KUBERNETES = (
    *BRINGING_ON_HOSTS,
    Life("files of two Secrets", _bringing_large_files),
    Life("files of two Secrets, canceled while it waits", _bringing_large_files_and_canceled_while_it_waits,
         End(is_canceled=True, starts=0)),
)
