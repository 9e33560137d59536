"""muster-run-as as an operator installs it, with users of the machine that the tests make and remove: all of it needs root,
and one test at a time has the files in /etc."""

import contextlib
import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile

from harness.daemons import BIN, Agent
from harness.stubs import REPOSITORY
from harness.world import BROKER_CONFIG

CONFIG = pathlib.Path("/etc/muster/run-as.conf")
PAM = pathlib.Path("/etc/pam.d/muster-run-as")
AGENT, ADA, BOB, CARL = "muster-it-agent", "muster-it-ada", "muster-it-bob", "muster-it-carl"
PROGRAMS = ("muster", "muster-agent", "muster-broker", "muster-supervisor")
REFUSED = 125
TIMEOUT_S = 60


class RunAs:
    """The installation, and the users: the agent's (also the broker's), Ada and Bob, who may, and Carl, who may not."""

    def __init__(self):
        assert os.geteuid() == 0, "these tests make users of the machine: run them as root"
        self.stack = contextlib.ExitStack()
        # Only root may write to any directory above, as to those of an installation.
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="muster-it-", dir="/var/lib"))
        self.stack.callback(shutil.rmtree, self.root, ignore_errors=True)
        self.root.chmod(0o711)
        self.work = self.root / "work"
        self.bin = self.root / "bin"
        for directory in (self.work, self.bin):
            directory.mkdir()
            directory.chmod(0o711)
        for name in (AGENT, ADA, BOB, CARL):
            # Tests that were killed could not remove their users.
            self._remove_user(name)
            subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", "--user-group", name], check=True)
            self.stack.callback(self._remove_user, name)
        for name in PROGRAMS:
            shutil.copy(BIN / name, self.bin)
        self.helper = self.install("muster-run-as", 0o4750)
        self._take_place(CONFIG)
        self._take_place(PAM)
        shutil.copy(REPOSITORY / "deploy" / "run-as" / "muster-run-as.pam", PAM)
        self.configure()

    def _remove_user(self, name):
        subprocess.run(["pkill", "-KILL", "-u", name], check=False)
        subprocess.run(["userdel", "--remove", name], check=False, capture_output=True)

    def _take_place(self, path):
        """The file is the tests' until the end."""
        made = not path.parent.exists()
        path.parent.mkdir(exist_ok=True)
        if made:
            self.stack.callback(path.parent.rmdir)
        if path.exists():
            kept = self.root / path.name
            shutil.copy2(path, kept)
            self.stack.callback(shutil.copy2, kept, path)
        else:
            self.stack.callback(path.unlink, missing_ok=True)

    def install(self, name, mode):
        """A copy of the program that belongs to root and the agent's group."""
        path = self.bin / name
        shutil.copy(BIN / "muster-run-as", path)
        os.chown(path, 0, pwd.getpwnam(AGENT).pw_gid)
        path.chmod(mode)
        return path

    def configure(self, *lines, work=None):
        """Writes the configuration: the usual lines if none are given."""
        usual = (f"caller {AGENT}", f"allow-user {ADA}", f"allow-user {BOB}")
        CONFIG.unlink(missing_ok=True)
        CONFIG.write_text("\n".join((*(lines or usual), f"work-root {work or self.work}", "")))
        CONFIG.chmod(0o644)

    def call(self, *words, caller=AGENT, helper=None, **kwargs):
        """Calls the program as a user, by default as the agent; returns the CompletedProcess."""
        return subprocess.run(as_user(caller, helper or self.helper, *words), text=True, capture_output=True, check=False,
                              cwd="/", timeout=TIMEOUT_S, **kwargs)

    def run(self, *program, user=ADA, directory="/", **kwargs):
        return self.call("run", user, directory, *program, **kwargs)

    # ---- broker and agent as their user

    def start(self, world, config=""):
        """Broker and agent of the test, in directories that jobs have no business in."""
        home = pathlib.Path(tempfile.mkdtemp(prefix="s-", dir=self.root))
        home.chmod(0o711)
        agent_user = pwd.getpwnam(AGENT)
        for name in ("broker", "agent"):
            (home / name).mkdir()
            os.chown(home / name, agent_user.pw_uid, agent_user.pw_gid)
        # The socket is for all users of the machine.
        (home / "broker").chmod(0o711)
        (home / "agent").chmod(0o700)
        broker = world.make_broker(state_dir=home / "broker",
                                   config=BROKER_CONFIG + "socket_mode: 666\nsocket_role: submitter\n")
        broker.argv = as_user(AGENT, self.bin / "muster-broker", *broker.argv[1:])
        broker.start()
        agent = world.make_agent(state_dir=home / "agent", config=f"run_as: user\n{config}machines:\n  cpus: 8\n")
        assert isinstance(agent, Agent)
        agent.argv = as_user(AGENT, self.bin / "muster-agent", *agent.argv[1:])
        return broker, agent.start()

    def cli(self, world, user, *args, check=True, **kwargs):
        """muster, called by the user in the user's home."""
        home = pwd.getpwnam(user).pw_dir
        environment = {"PATH": os.environ["PATH"], "HOME": home, "MUSTER_BROKER": world.broker.address, "NO_COLOR": "1"}
        done = subprocess.run(as_user(user, self.bin / "muster", *args), env=environment, cwd=home, text=True,
                              capture_output=True, check=False, timeout=TIMEOUT_S * 2, **kwargs)
        if check:
            assert done.returncode == 0, f"{args} of {user}: {done.stdout}{done.stderr}"
        return done

    def close(self):
        self.stack.close()


def as_user(name, *argv):
    """The words that run a program as the user, with the user's groups and a mask as a service has it."""
    return ["setpriv", "--reuid", name, "--regid", name, "--init-groups", "sh", "-c", 'umask 077; exec "$@"', "sh",
            *(str(word) for word in argv)]
