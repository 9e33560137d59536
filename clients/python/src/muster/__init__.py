"""Muster for Python: submit jobs to Slurm, Kubernetes and machines through a Muster broker, follow and change them.

    import muster

    client = muster.Client()
    job = client.submit("echo hello", cpus=2)
    for line in job.logs(follow=True):
        print(line)
    job.result()

docs/python.md of Muster describes it. muster.aio has the same for asyncio, muster.v1 the messages of the API.
"""

from muster._files import Fetched, LeftOut
from muster._job import Job
from muster._streams import LogPiece
from muster._verbs import Why
from muster.client import Client
from muster.errors import (AlreadyExists, BadRequest, BrokerUnavailable, CallTimeout, CannotBePlaced, ConfigurationError, Conflict,
                           JobCanceled, JobError, JobFailed, JobFileError, MusterError, NotAllowed, NotFound, NotHonoured,
                           NotLoggedIn, NotPossible, RemoteError, TooMuch, WaitTimeout)
from muster.executor import Executor
from muster.handle import JobHandle
from muster.local import LocalExecutor

__version__ = "0.1.0"

__all__ = [
    "AlreadyExists", "BadRequest", "BrokerUnavailable", "CallTimeout", "CannotBePlaced", "Client", "ConfigurationError", "Conflict",
    "Executor", "Fetched", "Job", "JobCanceled", "JobError", "JobFailed", "JobFileError", "JobHandle", "LeftOut", "LocalExecutor", "LogPiece",
    "MusterError", "NotAllowed", "NotFound", "NotHonoured", "NotLoggedIn", "NotPossible", "RemoteError", "TooMuch", "WaitTimeout", "Why",
]
