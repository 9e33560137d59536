"""A program that runs beside a Kubernetes cluster of a test file, as its administrator."""

import subprocess

from harness.kubernetes import BUILD_TIMEOUT_S, CALL_TIMEOUT_S, SCRIPT, START_TIMEOUT_S
from harness.wait import eventually


class Companion:
    """Starts when it is made. The name is one of tests/support/kubernetes-cluster's: "kueue", "coscheduling", "volcano"."""

    def __init__(self, cluster, name):
        self._name = name
        self._log = cluster.root / f"{name}.log"
        program = subprocess.run([SCRIPT, name], text=True, stdout=subprocess.PIPE, timeout=BUILD_TIMEOUT_S,
                                 check=True).stdout.strip()
        said = cluster.root / f"{name}.out"
        with open(said, "wb") as output, open(self._log, "wb") as log:
            # It ends when its standard input does.
            self._process = subprocess.Popen([program, cluster.kubeconfig], stdin=subprocess.PIPE, stdout=output,
                                             stderr=log, start_new_session=True)
        eventually(lambda: "ready\n" in said.read_text(), f"{name} is ready", START_TIMEOUT_S, self._check_alive)

    def _check_alive(self):
        assert self._process.poll() is None, f"{self._name} has ended: {self._log.read_text()[-2000:]}"

    def close(self):
        self._process.stdin.close()
        self._process.wait(CALL_TIMEOUT_S)
