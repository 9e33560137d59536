"""The look of a job in a terminal and in a notebook."""

from __future__ import annotations

import html as markup
import sys
from typing import Any, List, Optional, Tuple

from muster import _verbs
from muster.v1 import job_pb2

# The assumed width if the terminal's is not known.
MAX_LINE = 110


def _facts(message: job_pb2.Job) -> List[Tuple[str, str]]:
    found = [("name", message.name), ("state", _verbs.state_name(message))]
    if message.cluster:
        found.append(("cluster", message.cluster))
    if message.HasField("exit") and message.state in _verbs.ENDED:
        exit = message.exit
        found.append(("exit", f"signal {exit.signal}" if exit.signal else str(exit.code)))
    why = _verbs.why(message)
    if why:
        found.append(("why", why.message))
    return found


def text(job_id: int, message: Optional[job_pb2.Job]) -> str:
    """Returns the job on one line."""
    if message is None:
        return f"Job {job_id}"
    facts = dict(_facts(message))
    parts = [f"Job {job_id} {facts['name']}: {facts['state']}"]
    parts += [f"on {facts['cluster']}"] if "cluster" in facts else []
    parts += [f"exit {facts['exit']}"] if "exit" in facts else []
    line = ", ".join(parts) + (f" - {facts['why']}" if "why" in facts else "")
    return " ".join(line.split())


def html(job_id: int, message: Optional[job_pb2.Job]) -> str:
    """Returns the job as an HTML table; every text of others is escaped."""
    rows = [("job", str(job_id))] + (_facts(message) if message is not None else [])
    cells = "".join(f"<tr><th>{markup.escape(key)}</th><td>{markup.escape(value)}</td></tr>" for key, value in rows)
    return f"<table>{cells}</table>"


class Progress:
    """Shows the latest state on a line of a terminal or in a notebook's output; elsewhere it shows nothing."""

    def __init__(self) -> None:
        self._display: Any = None
        self._shown = False
        self._terminal = sys.stderr.isatty()

    def __enter__(self) -> Progress:
        ipython = sys.modules.get("IPython")
        shell = ipython.get_ipython() if ipython is not None else None
        if shell is not None and type(shell).__name__ == "ZMQInteractiveShell":
            from importlib import import_module
            display = import_module("IPython.display")
            self._display = display.DisplayHandle()
            self._display.display(display.HTML(""))
        return self

    def show(self, line: str, table: str) -> None:
        if self._display is not None:
            from importlib import import_module
            self._display.update(import_module("IPython.display").HTML(table))
        elif self._terminal:
            clean = "".join(character if character.isprintable() else "?" for character in line)
            sys.stderr.write(f"\r\x1b[K{clean[:MAX_LINE]}")
            sys.stderr.flush()
            self._shown = True

    def __exit__(self, *error: object) -> None:
        if self._shown:
            sys.stderr.write("\n")
