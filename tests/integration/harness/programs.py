"""Programs of a client's users, beside which nothing of this test's environment counts."""

import os
import subprocess

RUN_TIMEOUT_S = 300


def run(*argv, timeout=RUN_TIMEOUT_S, cwd=None, env=None):
    """Runs it to its end, with `env` on top; returns the CompletedProcess."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MUSTER_", "PYTHONPATH"))}
    return subprocess.run([str(word) for word in argv], cwd=cwd, env={**environment, **(env or {})}, capture_output=True, text=True,
                          timeout=timeout, check=False)


def checked(*argv, **arguments):
    """The same with a program that has to succeed; returns its output."""
    result = run(*argv, **arguments)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout
