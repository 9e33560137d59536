"""submitit's interface, for jobs of a Muster broker: a program of submitit runs with its import changed.

    from muster import submitit

    executor = submitit.AutoExecutor(folder="log_test")
    executor.update_parameters(timeout_min=1, cpus_per_task=2)
    job = executor.submit(add, 5, 7)
    print(job.result())

docs/python.md of Muster says what differs. The modules of this package whose names do not begin with _executor go along with each
job, so that they import nothing else of muster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List

from muster.submitit import helpers
from muster.submitit._environment import JobEnvironment

if TYPE_CHECKING:
    from muster.submitit._executor import AutoExecutor, Job

__all__ = ["AutoExecutor", "Job", "JobEnvironment", "helpers"]


def __getattr__(name: str) -> Any:
    # A job has no client, and imports the rest.
    if name in ("AutoExecutor", "Job"):
        from muster.submitit import _executor
        return getattr(_executor, name)
    raise AttributeError(f"muster.submitit has no {name!r}")


def __dir__() -> List[str]:
    return __all__
