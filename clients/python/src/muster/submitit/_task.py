"""task.py VERSION TASKS - runs the tasks of one node, each in a process of its own. It goes along with each job.

The outcome of a task is a file of the results directory. On the signal USR2 a task with a method checkpoint() writes the call of
the next run, and ends with a code after which Muster starts that run.
"""

import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback
from typing import Any, BinaryIO, Optional, Tuple

HERE = os.path.dirname(os.path.abspath(__file__))
# The code of a run that another one is to follow.
CHECKPOINTED = 75
BEGIN = time.monotonic()
REMOVED = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


def write(path: pathlib.Path, thing: Any) -> None:
    """The file has its name once it is whole."""
    import cloudpickle
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    with open(part, "wb") as file:
        cloudpickle.dump(thing, file, 4)
    os.replace(part, path)


def results() -> pathlib.Path:
    return pathlib.Path(os.environ.get("MUSTER_RESULTS_DIR") or "results", "submitit")


def checkpoint_path() -> Optional[pathlib.Path]:
    """A file that the next run sees: in the folder of the executor, or in results that are all runs' own; None: there is none."""
    from muster.submitit import JobEnvironment
    path = JobEnvironment().paths.checkpoint_pickle
    if os.access(path.parent, os.W_OK):
        return path
    run = os.environ.get("MUSTER_RUN_DIR", "")
    shared = os.environ.get("MUSTER_RESULTS_DIR", "")
    return pathlib.Path(shared, "submitit", path.name) if shared and not (run and shared.startswith(run + os.sep)) else None


def load_submission() -> Any:
    """The call that was submitted, or that of the checkpoint."""
    path = checkpoint_path()
    source = path if path is not None and path.exists() else pathlib.Path(HERE, "submission.pickle")
    with open(source, "rb") as file:
        return pickle.load(file)


def is_timeout() -> bool:
    """Tells whether the time limit is why the signal comes, as submitit guesses it."""
    limit_s = float(os.environ.get("SUBMITIT_TIMEOUT_MIN", "inf")) * 60
    return time.monotonic() - BEGIN >= limit_s * 0.8


def on_checkpoint(submission: Any) -> None:
    """In rank 0 alone, which has the state of all, as submitit has it."""
    from muster.submitit import JobEnvironment
    if JobEnvironment().global_rank != 0:
        return
    if not hasattr(submission.function, "checkpoint") and is_timeout():
        print("submitit: the time limit comes, and there is no method checkpoint(); going on", file=sys.stderr, flush=True)
        return
    path = checkpoint_path()
    if path is None:
        print("submitit: no checkpoint, because neither the executor's folder nor a results directory of all runs is here; going on",
              file=sys.stderr, flush=True)
        return
    later = submission._checkpoint_function()
    if later is not None:
        write(path, later)
    elif hasattr(submission.function, "checkpoint"):
        print("submitit: checkpoint() returned None; going on", file=sys.stderr, flush=True)
        return
    print("submitit: the job goes on in its next run", file=sys.stderr, flush=True)
    sys.stdout.flush()
    os._exit(CHECKPOINTED)


def run_task() -> int:
    from muster.submitit import JobEnvironment
    submission = load_submission()
    signal.signal(signal.SIGUSR2, lambda *_: on_checkpoint(submission))
    outcome: Tuple[str, Any]
    code = 0
    try:
        outcome = ("success", submission.result())
    except Exception:
        outcome = ("error", traceback.format_exc())
        print(outcome[1], file=sys.stderr, flush=True)
        code = 1
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    path = results() / f"{JobEnvironment().global_rank}_result.pkl"
    try:
        write(path, outcome)
    except Exception:
        write(path, ("error", f"the result cannot be pickled:\n{traceback.format_exc()}"))
        code = 1
    sys.stdout.flush()
    return code


def copy(pipe: BinaryIO, path: pathlib.Path, shown: BinaryIO) -> None:
    with open(path, "wb") as file:
        for line in pipe:
            file.write(line)
            file.flush()
            shown.write(line)
            shown.flush()


def run_all(tasks: int) -> int:
    """The tasks of this node beside each other, with a copy of each one's output; the code of the first that failed."""
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    first = int(os.environ.get("MUSTER_NODE_RANK", "0")) * tasks
    results().mkdir(parents=True, exist_ok=True)
    children, readers = [], []
    for rank in range(tasks):
        child = subprocess.Popen([sys.executable, os.path.abspath(__file__), *sys.argv[1:]], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, env={**os.environ, "SUBMITIT_LOCAL_RANK": str(rank)})
        children.append(child)
        for pipe, name, shown in ((child.stdout, "out", sys.stdout), (child.stderr, "err", sys.stderr)):
            path = results() / f"{first + rank}_log.{name}"
            readers.append(threading.Thread(target=copy, args=(pipe, path, shown.buffer)))
            readers[-1].start()
    for reader in readers:
        reader.join()
    codes = [child.wait() for child in children]
    failed = [code if code > 0 else 128 - code for code in codes if code]
    return CHECKPOINTED if CHECKPOINTED in failed else failed[0] if failed else 0


def main(version: str, tasks: int) -> int:
    here = "%d.%d" % sys.version_info[:2]
    if here != version:
        sys.exit("this function was pickled by Python %s, and the cluster's %s is Python %s: name another one by muster_python"
                 % (version, sys.executable, here))
    # The cloudpickle and the part of muster that came along; a program's directory is the first of its path.
    import cloudpickle
    del cloudpickle
    sys.path[0] = os.getcwd()
    sys.path.append(os.path.join(HERE, "lib"))
    os.environ["SUBMITIT_TASKS_PER_NODE"] = str(tasks)
    for kept in ("MASTER_ADDR", "MASTER_PORT"):
        if kept in os.environ:
            os.environ["SUBMITIT_" + kept] = os.environ[kept]
    for name in REMOVED:
        os.environ.pop(name, None)
    if tasks > 1 and "SUBMITIT_LOCAL_RANK" not in os.environ:
        return run_all(tasks)
    os.environ.setdefault("SUBMITIT_LOCAL_RANK", "0")
    return run_task()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
