"""Functions as jobs: the files that are uploaded with them, and the outcome that comes back.

A function's job brings along a directory `.muster-call` with the pickled function, its arguments, cloudpickle and a small
program. That writes the outcome into the results directory, from where it is fetched. The cluster's Python needs nothing else,
but has to be of the same minor version.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import pickle
import sys
import sysconfig
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from muster import _tree, errors
from muster._job import Job
from muster._verbs import Planned
from muster.v1 import job_pb2

DIRECTORY = ".muster-call"
OUTCOME_NAME = "muster-outcome.pickle"
OUTCOME_PATH = "results/" + OUTCOME_NAME
# The label by which the client recognises the job of a function.
LABEL, LABEL_VALUE = "muster-python", "call"
PICKLE_PROTOCOL = 4

Call = Tuple[Sequence[Any], Mapping[str, Any]]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The outcome of one call."""

    value: Any = None
    error: Optional[BaseException] = None


class _Remote(Exception):
    """The traceback of the other side, as concurrent.futures shows it."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


class Calls:
    """The jobs of one function. Raises ImportError: cloudpickle is not installed."""

    def __init__(self, function: Callable[..., Any], job: Optional[Job], python: str = "python3") -> None:
        try:
            import cloudpickle
        except ImportError:
            raise ImportError("functions need cloudpickle: pip install 'muster-client[functions]'") from None
        self._cloudpickle: Any = cloudpickle
        self._job = job or Job()
        if self._job.command is not None and not isinstance(self._job.command, (list, tuple)):
            raise ValueError("the command of a function's Job is the Python that runs it, as a list: Job(['/opt/bin/python3'])")
        self._python = [os.fspath(word) for word in self._job.command or [python]]
        name = self._job.name or getattr(function, "__name__", "") or type(function).__name__
        self._name = "".join(letter for letter in name if letter.isprintable())[:100] or "function"
        self._common = {f"cloudpickle/{path.name}": path.read_bytes()
                        for path in sorted(pathlib.Path(str(cloudpickle.__file__)).parent.glob("*.py"))}
        self._function_module = _own_module(function)
        self._common["function.pickle"] = self._pickle(function)
        self._common["call.py"] = pathlib.Path(__file__).with_name("_worker.py").read_bytes()

    def _pickle(self, thing: Any) -> bytes:
        """Sends functions of the user's own module by value, because the cluster does not have the module."""
        own = self._function_module
        by_value = own is not None and own.__name__ not in self._cloudpickle.list_registry_pickle_by_value()
        if by_value:
            self._cloudpickle.register_pickle_by_value(own)
        try:
            return bytes(self._cloudpickle.dumps(thing, protocol=PICKLE_PROTOCOL))
        finally:
            if by_value:
                self._cloudpickle.unregister_pickle_by_value(own)

    def job(self) -> Job:
        """Returns the job of a batch, without the batch."""
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        command = [*self._python, f"{DIRECTORY}/call.py", version]
        return self._job.replace(command=command, name=self._name, labels={**self._job.labels, LABEL: LABEL_VALUE})

    def plan(self, prepared: Planned, batches: Sequence[Sequence[Call]]) -> List[Planned]:
        """Makes one job for each batch of calls; `prepared` is job() with its own files."""
        spec = prepared.spec
        planned = []
        for batch in batches:
            calls = [(tuple(arguments), dict(keywords)) for arguments, keywords in batch]
            tree = _tree.tree_of({**self._common, "calls.pickle": self._pickle(calls)})
            one = type(spec)()
            one.CopyFrom(spec)
            one.uploads.add(tree_sha256=tree.sha256, path=DIRECTORY)
            planned.append(Planned(one, [*prepared.trees, tree]))
        return planned


def _own_module(function: Any) -> Any:
    """Returns the module of a function, unless it is __main__, whose functions are always sent, or an installed one."""
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    path = getattr(module, "__file__", None)
    if module is None or module.__name__ == "__main__" or path is None:
        return None
    installed = [os.path.realpath(sysconfig.get_paths()[name]) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return None if any(os.path.realpath(path).startswith(place + os.sep) for place in installed) else module


def has_outcomes(job: job_pb2.Job) -> bool:
    """Returns whether the job is that of a function."""
    return job.labels.get(LABEL) == LABEL_VALUE


def load(data: bytes, job_id: int) -> List[Outcome]:
    """Reads the outcomes that the job wrote. Unpickling runs code that the job chose, so the cluster must be trusted."""
    try:
        raw: List[Dict[str, Any]] = pickle.loads(data)
    except Exception as error:
        raise errors.MusterError(f"the outcome of job {job_id} cannot be read: {error}") from error
    return [_outcome(one, job_id) for one in raw]


def _outcome(raw: Dict[str, Any], job_id: int) -> Outcome:
    if "value" in raw:
        try:
            return Outcome(value=pickle.loads(raw["value"]))
        except Exception as error:
            return Outcome(error=errors.RemoteError(f"the result of job {job_id} cannot be unpickled here: {error!r}"))
    try:
        raised = pickle.loads(raw["error"])
        if not isinstance(raised, BaseException):
            raise TypeError("it is no exception")
    except Exception:
        return Outcome(error=errors.RemoteError(f"the function of job {job_id} raised an exception:\n{raw['traceback']}"))
    raised.__cause__ = _Remote(raw["traceback"])
    return Outcome(error=raised)


def values(outcomes: Sequence[Outcome]) -> Iterator[Any]:
    """Gives the values in order, and raises the exception of a call when its value would come."""
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error
        yield outcome.value
