"""Tells whether the reported history of a job is possible."""

from muster.v1 import job_pb2

# The progress of a run. Two states with the same number may follow each other in either order.
PROGRESS = {
    job_pb2.RUN_STATE_ASSIGNED: 1,
    job_pb2.RUN_STATE_LAUNCHING: 2,
    job_pb2.RUN_STATE_LAUNCH_UNKNOWN: 2,
    job_pb2.RUN_STATE_PENDING: 3,
    job_pb2.RUN_STATE_STARTING: 4,
    job_pb2.RUN_STATE_RUNNING: 5,
    job_pb2.RUN_STATE_SUSPENDED: 5,
    job_pb2.RUN_STATE_FINISHING: 6,
    job_pb2.RUN_STATE_SUCCEEDED: 7,
    job_pb2.RUN_STATE_FAILED: 7,
    job_pb2.RUN_STATE_CANCELED: 7,
}
END = 7


def find_wrong_steps(transitions):
    """Returns, in words, missing steps, steps that go backwards or come after an end, and states nobody can see."""
    numbers = [step.job_sequence for step in transitions]
    wrong = [] if numbers == list(range(1, len(numbers) + 1)) else [f"its steps are {numbers}"]
    latest = {}
    cancel_asked = False
    for step in transitions:
        cancel_asked |= step.kind == job_pb2.TRANSITION_KIND_CANCEL_REQUESTED
        if step.run == 0:
            continue
        before, now = latest.get(step.run), step.run_state
        latest[step.run] = now
        name = f"run {step.run} became {job_pb2.RunState.Name(now)} ({step.evidence.detail})"
        if now not in PROGRESS or (now == job_pb2.RUN_STATE_CANCELED and not cancel_asked):
            wrong.append(name)
        elif before in PROGRESS and (PROGRESS[before] == END or PROGRESS[now] < PROGRESS[before]):
            wrong.append(f"{name} after {job_pb2.RunState.Name(before)}")
    return wrong
