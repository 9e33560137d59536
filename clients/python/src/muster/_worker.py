"""call.py VERSION - calls a function as its job asks, and writes the outcomes. It goes along with the job, as it is.

The Python that runs it is the cluster's: it may be an old one, and has no package of Muster.
"""

import os
import pickle
import sys
import traceback
from typing import Any, Callable, Dict

HERE = os.path.dirname(os.path.abspath(__file__))


def load(name: str) -> Any:
    with open(os.path.join(HERE, name), "rb") as file:
        return pickle.load(file)


def outcome_of(call: Callable[[], Any], dumps: Callable[[Any, int], bytes]) -> Dict[str, Any]:
    """Returns the value or the exception of one call, pickled by itself, so that a bad one does not spoil the others."""
    try:
        return {"value": dumps(call(), 4)}
    except Exception as error:
        text, packed = traceback.format_exc(), b""
        try:
            packed = dumps(error, 4)
            pickle.loads(packed)
        except Exception:
            packed = b""
        return {"traceback": text, "error": packed}


def main(version: str) -> None:
    here = "%d.%d" % sys.version_info[:2]
    if here != version:
        sys.exit("this function was pickled by Python %s, and the cluster's %s is Python %s: name another one, "
                 "e.g. Job(['/opt/python%s/bin/python3'])" % (version, sys.executable, here, version))
    # The cloudpickle that came along is the version that pickled; a program's directory is the first of its path.
    import cloudpickle
    sys.path[0] = os.getcwd()
    function = load("function.pickle")
    outcomes = [outcome_of(lambda: function(*arguments, **keywords), cloudpickle.dumps)
                for arguments, keywords in load("calls.pickle")]
    # Only the outcomes of rank 0 count.
    if os.environ.get("NODE_RANK", "0") != "0":
        return
    directory = os.environ.get("MUSTER_RESULTS_DIR") or "results"
    os.makedirs(directory, exist_ok=True)
    name = os.path.join(directory, "muster-outcome.pickle")
    with open(name + ".part", "wb") as file:
        pickle.dump(outcomes, file, 4)
    os.replace(name + ".part", name)


if __name__ == "__main__":
    main(sys.argv[1])
