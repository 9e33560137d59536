"""The lines of preflights."""

import subprocess

from muster.v1 import cluster_pb2

OK = cluster_pb2.CHECK_RESULT_OK
WARN = cluster_pb2.CHECK_RESULT_WARN
FAIL = cluster_pb2.CHECK_RESULT_FAIL
SKIPPED = cluster_pb2.CHECK_RESULT_SKIPPED

CHECK_TIMEOUT_S = 180


def line(checks, subject):
    """The line about a subject."""
    found = [check for check in checks if subject in check.subject]
    assert found, f"no line about {subject} in {checks}"
    return found[0]


def failures(checks):
    return [check for check in checks if check.result == FAIL]


def check_locally(agent):
    """Runs the agent's own preflight, which needs no broker; the exit code and what it printed."""
    broker = agent.argv.index("--broker")
    argv = agent.argv[:broker] + agent.argv[broker + 2:]
    done = subprocess.run([*argv, "--check"], env=agent.env, text=True, capture_output=True,
                          timeout=CHECK_TIMEOUT_S, check=False)
    return done.returncode, done.stdout + done.stderr
