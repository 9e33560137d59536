"""task.py VERSION TASKS - runs the tasks of one node, each in a process of its own. It goes along with each job.

The outcome of a task is a file of the results directory. On the signal USR2 a task with a method checkpoint() writes the call of
the next run, and ends with a code after which Muster starts that run.
"""

import os
import pathlib
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
from typing import Any, BinaryIO, Dict, List, Optional, Sequence, Tuple

HERE = os.path.dirname(os.path.abspath(__file__))
# The code of a run that another one is to follow.
CHECKPOINTED = 75
# The other tasks of the node have this long to end by SIGTERM, and their output to be read; Slurm itself gives 30 s for all that.
STOP_S = 10.0
# Each file of a submission ends with the submission's id after the pickle, where pickle.load does not read, since the number of a
# job may be another job's at another broker.
SUBMISSION, ID_BYTES = "SUBMITIT_SUBMISSION", 32
OWN_ID = os.environ.get(SUBMISSION, "")
BEGIN = time.monotonic()
REMOVED = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


def write(path: pathlib.Path, thing: Any) -> None:
    """The file has its name once it is whole, with the id of this job's submission."""
    import cloudpickle
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    with open(part, "wb") as file:
        cloudpickle.dump(thing, file, 4)
        file.write(OWN_ID.encode())
    os.replace(part, path)


def of_submission(data: bytes, submission_id: str) -> bool:
    """Tells whether the file is of that submission; nothing of it may be unpickled before."""
    return len(submission_id) == ID_BYTES and data.endswith(submission_id.encode())


def own(path: pathlib.Path) -> Optional[bytes]:
    """The file, if it is of this job's submission and of the user of this process; another one could have written any other."""
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return None
            data = file.read()
    except OSError:
        return None
    return data if of_submission(data, OWN_ID) else None


def results() -> pathlib.Path:
    return pathlib.Path(os.environ.get("MUSTER_RESULTS_DIR") or "results", "submitit")


def checkpoint_paths() -> List[pathlib.Path]:
    """Files that the next run sees: in the folder of the executor, and in results that are all runs' own; the first is written.

    The folder is a path of the machine that submitted the job. It is the same directory here if it has the submission.
    """
    from muster.submitit import JobEnvironment
    paths = JobEnvironment().paths
    found = []
    if own(paths.submitted_pickle) is not None and os.access(paths.folder, os.W_OK):
        found.append(paths.checkpoint_pickle)
    run = os.environ.get("MUSTER_RUN_DIR", "")
    shared = os.environ.get("MUSTER_RESULTS_DIR", "")
    if shared and not (run and shared.startswith(run + os.sep)):
        found.append(pathlib.Path(shared, "submitit", paths.checkpoint_pickle.name))
    return found


def load_submission() -> Any:
    """The call that was submitted, or that of the checkpoint."""
    kept = (own(path) for path in checkpoint_paths())
    data = next((data for data in kept if data is not None), None)
    return pickle.loads(data if data is not None else pathlib.Path(HERE, "submission.pickle").read_bytes())


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
    paths = checkpoint_paths()
    if not paths:
        print("submitit: no checkpoint, because neither the executor's folder nor a results directory of all runs is here; going on",
              file=sys.stderr, flush=True)
        return
    later = submission._checkpoint_function()
    if later is not None:
        write(paths[0], later)
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


def wait_all(children: Sequence["subprocess.Popen[bytes]"]) -> List[int]:
    """The codes of all. Once one has made a checkpoint, the others are of no use: they are ended."""
    ended: "queue.Queue[Tuple[int, int]]" = queue.Queue()

    def wait(rank: int) -> None:
        ended.put((rank, children[rank].wait()))

    for rank in range(len(children)):
        threading.Thread(target=wait, args=(rank,), daemon=True).start()
    codes: Dict[int, int] = {}
    kill_at: Optional[float] = None
    while len(codes) < len(children):
        try:
            rank, code = ended.get(timeout=None if kill_at is None else max(0.0, kill_at - time.monotonic()))
        except queue.Empty:
            kill_at = None
            for child in children:
                child.kill()
            continue
        if code == CHECKPOINTED and CHECKPOINTED not in codes.values():
            kill_at = time.monotonic() + STOP_S
            for child in children:
                child.terminate()
        codes[rank] = code
    return [codes[rank] for rank in range(len(children))]


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
            readers.append(threading.Thread(target=copy, args=(pipe, path, shown.buffer), daemon=True))
            readers[-1].start()
    codes = wait_all(children)
    if CHECKPOINTED in codes:
        # A program that a task left behind may keep its output open.
        end = time.monotonic() + STOP_S
        for reader in readers:
            reader.join(max(0.0, end - time.monotonic()))
        os._exit(CHECKPOINTED)
    for reader in readers:
        reader.join()
    failed = [code if code > 0 else 128 - code for code in codes if code]
    return failed[0] if failed else 0


def installed_is_same() -> bool:
    """Tells whether the muster that this Python finds has the same files as the one that came along; it has all others, too."""
    lib = pathlib.Path(HERE, "lib")
    ours = [*lib.glob("muster/submitit/*.py"), pathlib.Path(HERE, "task.py")]
    for place in sys.path:
        found = pathlib.Path(place, "muster")
        if os.path.isdir(found) or os.path.exists(f"{found}.py"):
            theirs = [found / "submitit" / ("_task.py" if path.name == "task.py" else path.name) for path in ours]
            try:
                return all(path.read_bytes() == our.read_bytes() for path, our in zip(theirs, ours))
            except OSError:
                return False
    return False


def import_submitit() -> None:
    """An installed muster of another version, or a directory of that name, has no part in this job."""
    lib = os.path.join(HERE, "lib")
    if not installed_is_same():
        sys.path.insert(0, lib)
    else:
        sys.path.append(lib)
    import muster.submitit
    del muster
    sys.path.remove(lib)
    sys.path.append(lib)


def main(version: str, tasks: int) -> int:
    here = "%d.%d" % sys.version_info[:2]
    if here != version:
        sys.exit("this function was pickled by Python %s, and the cluster's %s is Python %s: name another one by muster_python"
                 % (version, sys.executable, here))
    # The cloudpickle and the part of muster that came along; a program's directory is the first of its path.
    import cloudpickle
    del cloudpickle
    sys.path[0] = os.getcwd()
    import_submitit()
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
