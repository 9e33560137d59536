"""submitit.helpers, for what its examples use. It runs in jobs, too, with nothing else of muster."""

from __future__ import annotations

import collections
import contextlib
import datetime
import os
import random
import subprocess
import sys
import threading
import time
from typing import Any, Callable, Dict, IO, Iterator, List, Mapping, Optional, Sequence, Set

from muster.submitit._environment import MASTER_ADDRESS, MASTER_PORT, JobEnvironment

# Variables by which PyTorch and the like know their place, and those of clusters.
_PLACE = ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
_CLUSTER = ("SLURM_", "SLURMD_", "SRUN_", "SBATCH_", "SUBMITIT_")
# The ports from which submitit chooses.
_PORTS = (20000, 60000)


class UncompletedJobError(RuntimeError):
    """The job has ended without an outcome."""


class FailedJobError(UncompletedJobError):
    """The function, or the command, failed."""


class DelayedSubmission:
    """A call that is made later: function(*args, **kwargs)."""

    def __init__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self._result: Any = None
        self._done = False

    def result(self) -> Any:
        """Makes the call, unless it was made."""
        if not self._done:
            self._result = self.function(*self.args, **self.kwargs)
            self._done = True
        return self._result

    def done(self) -> bool:
        """Tells whether the call was made."""
        return self._done

    def _checkpoint_function(self) -> Optional[DelayedSubmission]:
        made = getattr(self.function, "__submitit_checkpoint__", None) or getattr(self.function, "checkpoint", None)
        later: Optional[DelayedSubmission] = made(*self.args, **self.kwargs) if made is not None else None
        return later


class Checkpointable:
    """A callable that goes on in the state that it has at a checkpoint."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if not callable(getattr(cls, "__call__", None)):
            raise TypeError(f"class {cls.__name__} is a Checkpointable without a method __call__")
        return super().__new__(cls)

    def checkpoint(self, *args: Any, **kwargs: Any) -> DelayedSubmission:
        """The call of the next run."""
        function: Any = self
        return DelayedSubmission(function, *args, **kwargs)


class FunctionSequence(Checkpointable):
    """Makes several calls; those that were made before a checkpoint are not made again."""

    def __init__(self, verbose: bool = False) -> None:
        self.verbose = verbose
        self.delayed_functions: List[DelayedSubmission] = []

    def add(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """Adds a call."""
        self.delayed_functions.append(DelayedSubmission(func, *args, **kwargs))

    def __len__(self) -> int:
        return len(self.delayed_functions)

    def __iter__(self) -> Iterator[DelayedSubmission]:
        return iter(self.delayed_functions)

    def __call__(self) -> List[Any]:
        if self.verbose:
            print(f"Starting from {sum(one.done() for one in self)}/{len(self)}", flush=True)
        return [one.result() for one in self]


class CommandFunction:
    """Runs a command, and returns its standard output. Raises FailedJobError with its standard error."""

    def __init__(self, command: List[str], verbose: bool = True, cwd: Optional[str] = None,
                 env: Optional[Mapping[str, str]] = None) -> None:
        if not isinstance(command, list):
            raise TypeError("The command must be provided as a list")
        self.command, self.verbose, self.env = command, verbose, env
        self.cwd = None if cwd is None else str(cwd)

    def __call__(self, *args: Any, **kwargs: Any) -> str:
        command = self.command + [str(arg) for arg in args] + [f"--{name}={value}" for name, value in kwargs.items()]
        if self.verbose:
            print(f"The following command is sent: \"{' '.join(command)}\"", flush=True)
        parts: Dict[str, List[str]] = {"stdout": [], "stderr": []}
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.cwd, env=self.env, text=True,
                              errors="replace") as process:
            readers = [threading.Thread(target=self._copy, args=(pipe, parts[name], shown)) for name, pipe, shown in (
                ("stdout", process.stdout, sys.stdout), ("stderr", process.stderr, sys.stderr))]
            for reader in readers:
                reader.start()
            for reader in readers:
                reader.join()
        stdout, stderr = ("".join(parts[name]).strip() for name in ("stdout", "stderr"))
        if process.returncode:
            if stderr and not self.verbose:
                print(stderr, file=sys.stderr)
            raise FailedJobError(stderr) from subprocess.CalledProcessError(process.returncode, command, stdout, stderr)
        return stdout

    def _copy(self, pipe: Optional[IO[str]], to: List[str], shown: IO[str]) -> None:
        for line in pipe or ():
            to.append(line)
            if self.verbose:
                shown.write(line)
                shown.flush()


class TorchDistributedEnvironment:
    """The variables that torch.distributed reads with its default method."""

    def __init__(self) -> None:
        job = JobEnvironment()
        self.master_addr = os.environ.get(MASTER_ADDRESS) or job.hostnames[0]
        # All tasks choose the same port, because they have the same job.
        self.master_port = int(os.environ.get(MASTER_PORT) or random.Random(job.job_id).randint(*_PORTS))
        self.rank, self.world_size = job.global_rank, job.num_tasks
        self.local_rank, self.local_world_size = job.local_rank, job.num_tasks // job.num_nodes

    def export(self, set_cuda_visible_devices: bool = True, overwrite: bool = False) -> TorchDistributedEnvironment:
        """Sets them, and lets the task see one of its node's GPUs. Raises RuntimeError: one is set already."""
        values = {"MASTER_ADDR": self.master_addr, "MASTER_PORT": str(self.master_port), "RANK": str(self.rank),
                  "WORLD_SIZE": str(self.world_size), "LOCAL_RANK": str(self.local_rank),
                  "LOCAL_WORLD_SIZE": str(self.local_world_size)}
        for name in values:
            if name in os.environ and not overwrite:
                raise RuntimeError(f"Cannot export environment variables as {name} is already set")
        if set_cuda_visible_devices:
            own = [gpu for gpu in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if gpu]
            values["CUDA_VISIBLE_DEVICES"] = own[self.local_rank % len(own)] if own else str(self.local_rank)
        os.environ.update(values)
        return self


def as_completed(jobs: Sequence[Any], timeout: Optional[float] = None, poll_frequency: float = 1) -> Iterator[Any]:
    """The jobs as they end. Raises TimeoutError."""
    end = None if timeout is None else time.monotonic() + timeout
    left = list(jobs)
    while left:
        if end is not None and time.monotonic() > end:
            raise TimeoutError
        ended = [job for job in left if job.done()]
        left = [job for job in left if job not in ended]
        yield from ended
        if left and not ended:
            time.sleep(poll_frequency)


def _log_states(start: float, count: int, states: Mapping[str, Set[int]]) -> None:
    now = datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S")
    print(f"[{now}] Launched {int((time.time() - start) / 60)} minutes ago, {len(states['RUNNING'])}/{count} jobs running, "
          f"{len(states['FAILED'])}/{count} jobs failed, {len(states['DONE']) - len(states['FAILED'])}/{count} jobs done", flush=True)


def monitor_jobs(jobs: Sequence[Any], poll_frequency: float = 30, test_mode: bool = False,
                 custom_logging: Callable[..., None] = _log_states) -> None:
    """Tells of the jobs until all have ended. A look costs a broker little, so that any `poll_frequency` will do."""
    del test_mode
    if not jobs:
        print("There are no jobs to monitor")
        return
    print(f"Monitoring {len(jobs)} jobs from job arrays {', '.join(sorted(str(job.job_id) for job in jobs))} \n")
    start = time.time()
    while True:
        states: Dict[str, Set[int]] = collections.defaultdict(set)
        for index, job in enumerate(jobs):
            if job.done():
                states["DONE"].add(index)
            states[job.state].add(index)
        if len(states["DONE"]) == len(jobs):
            print(f"All jobs finished, jobs with indices {sorted(states['FAILED'])} failed", flush=True)
            break
        custom_logging(start, len(jobs), states)
        time.sleep(poll_frequency)
    print(f"Whole process is finished, took {int((time.time() - start) / 60)} minutes")


@contextlib.contextmanager
def environment_variables(**values: Any) -> Iterator[None]:
    """Sets variables of this process for a while."""
    before = {name: os.environ[name] for name in values if name in os.environ}
    os.environ.update({name: str(value) for name, value in values.items()})
    try:
        yield
    finally:
        for name in values:
            del os.environ[name]
        os.environ.update(before)


@contextlib.contextmanager
def clean_env(extra_names: Sequence[str] = ()) -> Iterator[None]:
    """Hides the variables of the job in which this process runs, for a while."""
    hidden = {name: os.environ.pop(name) for name in list(os.environ)
              if name.startswith(_CLUSTER) or name in _PLACE or name in extra_names}
    try:
        yield
    finally:
        os.environ.update(hidden)
