"""prefect_flow.py - a flow of Prefect whose tasks are jobs."""

import functools

import muster
from prefect import flow, task
from prefect.task_runners import ThreadPoolTaskRunner


def muster_task(job=None, **options):
    """As prefect.task, but the function runs as a job that `job` describes; Prefect has its result, its error and its state.

    Retries of the function are Prefect's (retries=3), those after faults of a cluster are Muster's.
    """
    def wrap(function):
        @task(**{"name": function.__name__, **options})
        @functools.wraps(function)
        def run(*args, **kwargs):
            with muster.Client() as client:
                handle = client.submit(function, *args, job=job, **kwargs)
                print(f"job {handle.id}")
                try:
                    return handle.result()
                except BaseException:
                    # Prefect cancels a task by an exception in its thread.
                    if not handle.done():
                        handle.cancel(reason="the Prefect task ended")
                    raise
        return run
    return wrap


@muster_task(job=muster.Job(cpus=1, time="10m"))
def square(n):
    return n * n


@muster_task(job=muster.Job(cpus=1, time="10m"))
def total(numbers):
    return sum(numbers)


@muster_task(retries=1)
def fail():
    raise ValueError("on purpose")


# Each task that runs waits in a thread of its own.
@flow(task_runner=ThreadPoolTaskRunner(max_workers=8), log_prints=True)
def squares(count):
    failed = fail.submit()
    result = total(square.map(range(count)).result())
    failed.wait()
    print("the failure is", repr(failed.state.result(raise_on_failure=False)))
    return result


if __name__ == "__main__":
    print("the sum is", squares(4))
