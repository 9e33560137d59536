"""An executor without a broker, to debug functions before they go to a cluster."""

from __future__ import annotations

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any, Callable, Optional, TypeVar

from muster import _calls, _tree, errors
from muster._job import Job
from muster._verbs import Planned
from muster.v1 import file_tree_pb2 as trees

T = TypeVar("T")
# An error shows at most this much of the end of a program's standard error.
MAX_SHOWN = 4000


class LocalExecutor(concurrent.futures.Executor):
    """Runs each call in a Python of its own on this machine, with the files and by the program that a cluster would get.

    So a function that cannot be pickled, or that needs a module that does not come along, fails here as it would there. `job` is
    the same as of Executor: its env and time count, its resources do not. At most `workers` calls run at a time.
    """

    def __init__(self, *, job: Optional[Job] = None, workers: Optional[int] = None) -> None:
        self._job = job or Job()
        self._threads = concurrent.futures.ThreadPoolExecutor(workers or os.cpu_count() or 1, "muster-local")

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> concurrent.futures.Future[T]:
        """Raises what cannot be pickled at once, and RuntimeError after shutdown."""
        calls = _calls.Calls(fn, self._job, sys.executable)
        prepared = Planned(calls.job().spec(), [])
        for path, place in self._job.uploads():
            directory, name = _tree.layout(path, place)
            tree = _tree.read_tree(path, sys.maxsize, not place, name)
            prepared.trees.append(tree)
            prepared.spec.uploads.add(tree_sha256=tree.sha256, path=directory)
        (planned,) = calls.plan(prepared, [[(args, kwargs)]])
        return self._threads.submit(_run, planned)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Takes no further calls; those that run go on to their end."""
        self._threads.shutdown(wait, cancel_futures=cancel_futures)


def _lay_out(tree: _tree.LocalTree, root: pathlib.Path) -> None:
    for entry in tree.tree.entries:
        path = root / os.fsdecode(entry.path)
        if entry.kind == trees.FILE_KIND_DIRECTORY:
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink() or path.exists():
            path.unlink()
        if entry.kind == trees.FILE_KIND_SYMLINK:
            path.symlink_to(os.fsdecode(entry.link_target))
            continue
        source = tree.sources[entry.sha256]
        path.write_bytes(source if isinstance(source, bytes) else pathlib.Path(source).read_bytes())
        path.chmod((0o700 if entry.executable else 0o600) if entry.owner_only else (0o755 if entry.executable else 0o644))


def _run(planned: Planned) -> Any:
    """Lays the files out as an agent does, runs the command, and reads the outcome."""
    with tempfile.TemporaryDirectory(prefix="muster-local-") as directory:
        for tree, upload in zip(planned.trees, planned.spec.uploads):
            _lay_out(tree, pathlib.Path(directory, upload.path))
        environment = {name: value for name, value in os.environ.items() if name not in ("MUSTER_RESULTS_DIR", "NODE_RANK")}
        limit = planned.spec.time_limit.ToTimedelta().total_seconds() or None
        try:
            done = subprocess.run(list(planned.spec.command.argv.args), cwd=directory, env={**environment, **planned.spec.env},
                                  stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            raise errors.RemoteError(f"the function was stopped after its time limit of {limit} s") from None
        outcome = pathlib.Path(directory, _calls.OUTCOME_PATH)
        if done.returncode != 0 or not outcome.exists():
            text = done.stderr.decode("utf-8", "replace")[-MAX_SHOWN:]
            raise errors.RemoteError(f"the function's program ended with {done.returncode}:\n{text}")
        sys.stderr.write(done.stderr.decode("utf-8", "replace"))
        (value,) = list(_calls.values(_calls.load(outcome.read_bytes(), 0)))
        return value
