"""Control groups of runs whose supervisors were killed: the kernel keeps them, and nobody else knows them any more."""

import contextlib
import pathlib

from harness.wait import eventually

PREFIX = "muster-run-"


def remove_groups(lists):
    """Yields the groups that these files name, one in each line, once the processes in them are
    gone."""
    for path in lists:
        with contextlib.suppress(OSError):
            for line in path.read_text().splitlines():
                group = pathlib.Path(line)
                if group.name.startswith(PREFIX):
                    eventually(lambda group=group: _is_gone(group), f"nothing is left in {group}")


def _is_gone(group):
    with contextlib.suppress(OSError):
        group.rmdir()
    return not group.exists()
