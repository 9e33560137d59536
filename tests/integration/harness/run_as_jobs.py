"""Jobs that run as their users on the agent's own machine: what their tests have in common."""

import os
import pathlib
import pwd
import signal

from harness.canary import Canary
from harness.run_as import AGENT
from harness.wait import eventually


def processes_of(user):
    uid = pwd.getpwnam(user).pw_uid
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "status").read_text().split("\nUid:\t")[1].split()
        except (OSError, IndexError):
            continue
        if int(words[0]) == uid and "\nState:\tZ" not in (process / "status").read_text():
            found.append(int(process.name))
    return found


def submit(run_as, world, user, script, *args):
    return int(run_as.cli(world, user, "run", "-q", *args, "--", "sh", "-c", script).stdout.split()[-1])


def script_file(run_as, user, text):
    """A script of the user's, which jobs of the user may read."""
    path = pathlib.Path(pwd.getpwnam(user).pw_dir, "script")
    path.write_text(text)
    path.chmod(0o755)
    return path


def kill_programs(run_as, name):
    for process in processes_of(AGENT) + processes_of("root"):
        try:
            words = pathlib.Path(f"/proc/{process}/cmdline").read_text().split("\0")
        except OSError:
            continue
        if pathlib.Path(words[0]) == run_as.bin / name:
            os.kill(process, signal.SIGKILL)


def end_of(user):
    return eventually(lambda: not processes_of(user), f"no process of {user} is left")


def use_secrets(run_as, world, user):
    """A canary that is the user's secret `hf`, and the words that give a job both forms of it."""
    canary = Canary()
    run_as.cli(world, user, "secret", "set", "hf", input=canary.value)
    return canary, ("--secret", "TOKEN=hf", "--secret-file", "TOKEN_FILE=hf")
