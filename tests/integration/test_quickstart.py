"""deploy/quickstart: called again, and stopped, whatever has died since. The programs are real; what it installs, builds
and starts of Slurm and Kubernetes is pretended, and their agents take this machine for them."""

import os
import re
import shutil
import signal
import subprocess

import pytest

from harness.daemons import BIN, REPOSITORY
from harness.wait import eventually
from harness.world import World

# Takes no options, like the real one for a cluster that is there.
PRETENDED_SLURM = """#!/bin/bash
echo "$*" >>{calls}
case $1 in
up)
	[[ ! -e $2/cluster.vars ]] || (($# == 2)) || { echo "$2 is running: no options now"; exit 1; }
	mkdir -p "$2" && touch "$2/cluster.vars" "$2/env.sh" ;;
down) rm -rf "$2" ;;
esac
"""

# Each start has another address.
PRETENDED_KUBERNETES = """#!/bin/bash
case $1 in
up)
	mkdir -p "$2/certs" && echo authority >"$2/certs/apiserver.crt"
	[[ -e $2/kubeconfig ]] || echo "certificate-authority: $2/certs/apiserver.crt
server: https://127.0.0.1:$RANDOM" >"$2/kubeconfig" ;;
down) [[ ${3:-} != --purge ]] || rm -rf "$2" ;;
esac
"""

# The word after --kind becomes machines, which knows nothing of Kubernetes.
PRETENDED_AGENT = """#!/bin/bash
args=("$@")
for i in "${!args[@]}"; do
	case ${args[i]} in
		--kind) args[i + 1]=machines ;;
		--kubernetes-*) unset "args[i]" "args[i + 1]" ;;
	esac
done
exec %s "${args[@]}"
"""


class Quickstart:
    """A copy of the script among programs of its own."""

    def __init__(self, root):
        self.root, self.state, self.calls = root, root / "state", root / "calls"
        self.home = root / "home"
        self.config = self.home / ".config/muster/config.yaml"
        self.home.mkdir()
        self._write("deploy/quickstart", (REPOSITORY / "deploy/quickstart").read_text()
                    .replace("/var/lib/muster-quickstart", str(root / "slurm")))
        self._write("deploy/install-deps", "#!/bin/sh\n")
        self._write("deploy/examples/digits.yaml", "name: digits\nrun: echo learned\n")
        self._write("tests/support/slurm-cluster.sh", PRETENDED_SLURM.replace("{calls}", str(self.calls)))
        self._write("tests/support/kubernetes-cluster", PRETENDED_KUBERNETES)
        self._write("path/cmake", "#!/bin/sh\n")
        self._write("path/sudo", '#!/bin/sh\nshift\nexec "$@"\n')
        self._write("build/release/bin/muster-agent", PRETENDED_AGENT % (BIN / "muster-agent"))
        for name in ("muster", "muster-broker"):
            (root / "build/release/bin" / name).symlink_to(BIN / name)

    def _write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def environment(self):
        """A user's whose home is empty at first."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MUSTER_", "XDG_"))}
        return {**kept, "PATH": f"{self.root / 'path'}:{os.environ['PATH']}", "HOME": str(self.home)}

    def __call__(self, *args, state=True, **env):
        where = ("--state-dir", self.state) if state else ()
        done = subprocess.run([self.root / "deploy/quickstart", *args, *where], env={**self.environment(), **env},
                              capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return done.stderr

    def in_a_new_shell(self, *args, **env):
        """muster, where nobody has named a broker."""
        return subprocess.run([BIN / "muster", *args], env={**self.environment(), **env}, capture_output=True, text=True,
                              timeout=120, check=False)

    def muster(self, *args):
        return subprocess.run([BIN / "muster", "--broker", f"unix:{self.state}/broker.sock", *args], capture_output=True,
                              text=True, timeout=120, check=True).stdout.strip()

    def run_slow_to_end(self):
        """A job that runs, and takes its time over its end."""
        job = self.muster("run", "-q", "--", "sh", "-c", "trap 'sleep 8; exit' TERM; sleep 1000 & echo trapped; wait")
        eventually(lambda: self.muster("logs", job) == "trapped", "the job runs")
        return job

    def kill(self, name):
        pid = int((self.state / f"{name}.pid").read_text())
        os.kill(pid, signal.SIGKILL)
        # Its resources, such as its lock, are free then.
        eventually(lambda: not World.process_lives(pid), f"{name} has ended")


@pytest.fixture
def quickstart(tmp_path):
    script = Quickstart(tmp_path)
    yield script
    if (script.state / "broker.pid").exists():
        script("--stop")
    shutil.rmtree(tmp_path / "slurm", ignore_errors=True)


def test_a_dead_agent_of_slurm_is_started_again_beside_its_slurm(quickstart):
    quickstart("--slurm")
    quickstart.kill("agent-slurm")
    said = quickstart("--slurm")
    assert "starting agent-slurm" in said and "starting broker" not in said
    first, second = quickstart.calls.read_text().splitlines()
    assert "--nodes 2" in first and "--nodes" not in second


def test_a_kubernetes_at_another_address_gets_its_agent_anew(quickstart):
    assert "starting agent-kubernetes" in quickstart("--kubernetes")
    kubeconfig = quickstart.state / "kubeconfig"
    first = kubeconfig.read_text()
    assert kubeconfig.stat().st_mode & 0o777 == 0o600
    assert "certificate-authority-data: YXV0aG9yaXR5Cg==\n" in first, "the user cannot read root's file"
    assert "starting agent-kubernetes" not in quickstart("--kubernetes")
    (cluster,) = (quickstart.root / "slurm").glob("kubernetes-*")
    (cluster / "kubeconfig").unlink()
    assert "starting agent-kubernetes" in quickstart("--kubernetes")
    assert kubeconfig.read_text() != first
    quickstart("--stop")
    assert cluster.exists(), "the agent knows it again by its identity"


def test_what_is_started_is_named_with_its_log(quickstart):
    said = quickstart()
    for name in ("broker", "agent-local"):
        assert f"starting {name}; its log is {quickstart.state}/{name}.log" in said
    assert "the first time" not in said
    assert "== starting" not in quickstart()


def test_without_the_job_it_only_starts_what_does_not_run(quickstart):
    said = quickstart("--no-job")
    assert "starting broker" in said and "submitting" not in said
    assert quickstart.in_a_new_shell("list", "-q").stdout == ""


def test_a_new_shell_finds_the_broker_by_the_configuration(quickstart):
    said = quickstart()
    address = f"unix:{quickstart.state}/broker.sock"
    assert f"{quickstart.config} names this broker now" in said
    assert quickstart.config.read_text() == f"broker: '{address}'\n"
    assert "export PATH=" in said and "export MUSTER_BROKER" not in said
    assert quickstart.in_a_new_shell("list", "-q").stdout == "1\n"
    again = quickstart()
    assert "names this broker now" not in again and "export PATH=" in again
    assert f"export MUSTER_BROKER={address} PATH=" in quickstart(MUSTER_BROKER="unix:/another.sock")


def test_a_configuration_that_names_another_broker_stays(quickstart):
    quickstart.config.parent.mkdir(parents=True)
    quickstart.config.write_text("broker: unix:/another.sock\n")
    said = quickstart()
    assert f"{quickstart.config} names another broker and stays as it is: broker: unix:/another.sock" in said
    assert f"export MUSTER_BROKER=unix:{quickstart.state}/broker.sock PATH=" in said
    assert quickstart.config.read_text() == "broker: unix:/another.sock\n"


def test_a_configuration_that_names_no_broker_gets_the_line_if_it_can_be_read_then(quickstart):
    quickstart.config.parent.mkdir(parents=True)
    quickstart.config.write_text("# mine\noutput: wide")
    quickstart()
    assert quickstart.config.read_text() == f"# mine\noutput: wide\nbroker: 'unix:{quickstart.state}/broker.sock'\n"
    quickstart.config.write_text("output: [wide\n")
    said = quickstart()
    assert f"could not write to {quickstart.config}; it takes the line: broker: 'unix:" in said
    assert quickstart.config.read_text() == "output: [wide\n"


def test_the_default_is_found(quickstart):
    try:
        quickstart(state=False)
        quickstart.config.unlink()
        assert quickstart.in_a_new_shell("list", "-q").stdout == "1\n"
        elsewhere = quickstart.in_a_new_shell("list", XDG_STATE_HOME=str(quickstart.root / "nowhere"))
    finally:
        quickstart("--stop", state=False)
    assert elsewhere.returncode == 1
    assert f"unix:{quickstart.root}/nowhere/muster/broker.sock (tried because none is named by --broker" in elsewhere.stderr


def test_a_long_build_says_how_far_it_is_and_a_failed_one_why(quickstart):
    steps = 'for i in $(seq 200); do echo "[$i/200] Building"; done'
    quickstart._write("path/cmake", f'#!/bin/sh\n[ "$1" = --preset ] || {steps}\n')
    said = [line for line in quickstart().splitlines() if line.startswith("== built")]
    assert said == [f"== built {tenth * 20} of 200" for tenth in range(1, 11)]
    quickstart._write("path/cmake", '#!/bin/sh\n[ "$1" = --preset ] || { echo "[1/3] a.cc: error: no"; exit 1; }\n')
    with pytest.raises(AssertionError, match="the build failed: .*a.cc: error: no"):
        quickstart()


def test_stop_names_the_jobs_that_it_waits_for(quickstart):
    quickstart("--slurm")
    job = quickstart.run_slow_to_end()
    said = quickstart("--stop")
    assert re.search(rf"waiting up to \d+ s for the end of 1 job \({job}\)", said)
    assert "left over" not in said


def test_stop_waits_for_no_job_whose_agent_is_not_there(quickstart):
    quickstart("--slurm")
    job = quickstart.muster("run", "-q", "--", "sleep", "1000")
    eventually(lambda: quickstart.muster("list", "-q", "--state", "running") == job, "the job runs")
    quickstart.kill("agent-slurm")
    said = quickstart("--stop")
    assert "waiting" not in said
    assert f"left over: 1 job ({job})" in said
    quickstart("--slurm")
    eventually(lambda: job in quickstart.muster("list", "-q", "--state", "canceled").split(), "the job is canceled")


def test_stop_ends_a_broker_that_was_started_by_hand_and_the_jobs_before(quickstart):
    quickstart("--slurm")
    job = quickstart.run_slow_to_end()
    quickstart.kill("broker")
    by_hand = subprocess.Popen([BIN / "muster-broker", "--state-dir", quickstart.state], stderr=subprocess.DEVNULL)
    eventually(lambda: "CONNECTED" in quickstart.muster("clusters").replace("DISCONNECTED", ""), "the agent is back")
    said = quickstart("--stop")
    assert f"started by hand, process {by_hand.pid}" in said
    assert f"for the end of 1 job ({job})" in said and "left over" not in said
    assert by_hand.wait(timeout=60) is not None


def test_stop_says_so_when_no_broker_can_cancel_the_jobs(quickstart):
    quickstart("--slurm")
    quickstart.kill("broker")
    assert "the broker does not run, so that no job is canceled" in quickstart("--stop")
