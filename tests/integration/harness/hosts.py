"""Several hosts on this machine: an sshd each, on a loopback address of its own, with a home of its own."""

import contextlib
import getpass
import os
import pathlib
import signal
import socket
import subprocess

from harness.groups import remove_groups
from harness.wait import eventually

SSHD = "/usr/sbin/sshd"
HOLD_ANSWER = pathlib.Path(__file__).with_name("hold_answer.py")
# Runs what follows "--" where the programs that are named before it are not there, and root's shell is /bin/sh. The
# directory is the first word; what is mounted goes with the last process.
BARE = r"""
directory=$1; shift
mount -t tmpfs tmpfs "$directory" && mkdir "$directory/upper" "$directory/work" || exit
sed 's,^\(root:.*\):[^:]*$,\1:/bin/sh,' /etc/passwd >"$directory/passwd" || exit
mount --bind "$directory/passwd" /etc/passwd || exit
mount -t overlay -o "lowerdir=/usr/bin,upperdir=$directory/upper,workdir=$directory/work" overlay /usr/bin || exit
while [ "$1" != -- ]; do rm -f /usr/bin/$1; shift; done
shift
exec "$@"
"""


def without_programs(directory, patterns, argv):
    """The command line that runs `argv` where no program of /usr/bin with such a name is; the directory is empty."""
    return ["unshare", "--mount", "/bin/sh", "-c", BARE, "sh", str(directory), *patterns, "--", *argv]


def is_shown_failing(world, why):
    """Tells whether a host is shown as one that cannot start runs, and why: in one look, for it is tried again within
    seconds."""
    shown = world.cli("clusters", "lab", "-o", "wide").stdout
    return "failing" in shown and why in shown


class SshHost:
    """One of them. Its processes are told by its home, which is in their environment or directory."""

    def __init__(self, root, name, address, port, key):
        self.name = name
        self.address = address
        self.port = port
        self.directory = root / "hosts" / name
        self.home = self.directory / "home"
        self.home.mkdir(parents=True)
        self.process = None
        self._has_disk = False
        self._lacks = ()
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.directory / "host_key")
        public = key.with_suffix(".pub").read_text()
        self.programs = self.directory / "programs"
        self.programs.mkdir()
        (self.directory / "authorized_keys").write_text(
            f'environment="HOME={self.home}",environment="PATH={self.programs}:/usr/local/bin:/usr/bin:/bin" {public}')
        (self.directory / "sshd_config").write_text(
            f"ListenAddress {address}\nPort {port}\nHostKey {self.directory}/host_key\nPidFile none\n"
            f"AuthorizedKeysFile {self.directory}/authorized_keys\nStrictModes no\nUsePAM no\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\nPrintMotd no\n"
            "PermitUserEnvironment yes\nLogLevel ERROR\n")

    @property
    def known_hosts_line(self):
        kind, key = (self.directory / "host_key.pub").read_text().split()[:2]
        return f"[{self.address}]:{self.port} {kind} {key}\n"

    def run_directory(self, cluster, run_key):
        return self.home / ".muster" / cluster / self.name / "runs" / run_key

    def start(self):
        argv = [SSHD, "-D", "-e", "-f", str(self.directory / "sshd_config")]
        if self._lacks:
            argv = without_programs(self.directory / "bare", self._lacks, argv)
        with open(self.directory / "sshd.log", "ab") as log:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        eventually(self._listens, f"sshd of {self.name} listens")
        return self

    def cut(self):
        """Closes every way in and all connections; what runs there goes on."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGSTOP)  # no new sessions while the old ones die
        for child in _children(self.process.pid):
            for session in (*_children(child), child):
                _kill(session)
        self.process.kill()
        self.process.wait()
        self.process = None

    def freeze(self):
        """Makes it take all bytes and answer none, from now on until it is cut."""
        for child in _children(self.process.pid):
            for session in (*_children(child), child):
                _signal(session, signal.SIGSTOP)

    @contextlib.contextmanager
    def black_hole(self):
        """Meanwhile no packet gets there or comes from there, and nobody is told."""
        ways = [("-d", self.address, "--dport", str(self.port)), ("-s", self.address, "--sport", str(self.port))]
        rules = [("INPUT", "-p", "tcp", *way, "-j", "DROP") for way in ways]
        for rule in rules:
            _run("iptables", "-w", "-I", *rule)
        try:
            yield
        finally:
            for rule in rules:
                _run("iptables", "-w", "-D", *rule)

    def hold_answer(self, command):
        """Makes the supervisor's program there do such a command and never say so, until the host is cut; then
        the agent puts its own there again. The file that is made once it has been done."""
        program = next(self.home.glob(".muster/*/*/bin/*/muster-supervisor"))
        done = self.directory / f"{command}-is-done"
        real = self.directory / "real" / program.name
        real.parent.mkdir()
        program.rename(real)
        program.write_text(f"#!/bin/sh\nexec /usr/bin/python3 {HOLD_ANSWER} {real} {command} {done} \"$@\"\n")
        program.chmod(0o700)
        # The agent takes it for its own, once.
        lie = self.programs / "sha256sum"
        lie.write_text(f"#!/bin/sh\nrm \"$0\"\necho {program.parent.name}\n")
        lie.chmod(0o755)
        for pid in self.pids():
            if pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().endswith(b"muster-supervisor\0serve\0"):
                _kill(pid)
        eventually(lambda: not lie.exists(), "the agent has come back")
        return done

    def stall(self, program, names, gate, head="true"):
        """The first time that it is started there while a path of such a name is there, it does what the shell text `head`
        says, and goes on once the gate is open. The file that is made in between."""
        stalled = self.directory / f"{program}-is-stalled"
        wrapper = self.programs / program
        wrapper.write_text(f"#!/bin/sh\nif ls -d {names} && mkdir {stalled}.first; then\n{head} >&3\ntouch {stalled}\n"
                           f"{gate.script()}\nfi 3>&1 >/dev/null 2>&1\nexec /usr/bin/{program} \"$@\"\n")
        wrapper.chmod(0o755)
        return stalled

    def take_away(self, *patterns):
        """Leaves it without such programs from its next start on."""
        (self.directory / "bare").mkdir(exist_ok=True)
        self._lacks = patterns

    def limit_disk(self, mebibytes):
        """Makes its home a disk of its own, before anything is there."""
        _run("mount", "-t", "tmpfs", "-o", f"size={mebibytes}m,mode=0755", "tmpfs", self.home)
        self._has_disk = True

    def fill_disk(self):
        """The file that takes all that was free."""
        filler = self.home / "filler"
        with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 12))
        return filler

    def pids(self):
        """Returns the processes that run there."""
        mark = str(self.directory).encode()
        return [int(entry.name) for entry in pathlib.Path("/proc").glob("[0-9]*")
                if int(entry.name) != os.getpid() and _mentions(entry, mark)]

    def crash(self):
        """Everything there ends at once."""
        self.cut()
        eventually(lambda: not [_kill(pid) for pid in self.pids()], f"nothing of {self.name} is left")
        remove_groups(self.home.glob(".muster/*/*/runs/*/groups"))

    def close(self):
        self.crash()
        if self._has_disk:
            _run("umount", "-l", self.home)

    def _listens(self):
        with socket.socket() as probe:
            return probe.connect_ex((self.address, self.port)) == 0


class SshCluster:
    """Some hosts, and an agent for them."""

    def __init__(self, world, count, gpus=2, gpu_type="h100", cpus=4):
        self.world = world
        self.key = world.path("key")
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.key)
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)  # sshd insists on it
        self.gpus, self.gpu_type, self.cpus = gpus, gpu_type, cpus
        self.hosts = []
        for _ in range(count):
            self.add_host()
        self.cordoned = set()
        self.write_hosts()

    def add_host(self):
        """One more; the files do not have it yet."""
        number = len(self.hosts)
        address = f"127.0.0.{2 + number}"
        host = SshHost(self.world.root, f"gpu{number + 1}", address, _free_port(address), self.key).start()
        self.hosts.append(host)
        return host

    def write_known_hosts(self):
        return self.world.write("known_hosts", "".join(host.known_hosts_line for host in self.hosts))

    def write_hosts(self, more=""):
        gpus = f"gpus: {{{self.gpu_type}: {self.gpus}}}, " if self.gpus is not None else ""
        lines = [f"{host.name}: {{ssh: '{host.address}:{host.port}', cpus: {self.cpus}, memory: 8Gi, {gpus}"
                 f"labels: [rack-{host.name}], cordon: {'yes' if host.name in self.cordoned else 'no'}}}\n"
                 for host in self.hosts]
        self.world.write("hosts.yaml", "".join(lines) + more)

    def make_agent(self, name="lab", more=""):
        known = self.write_known_hosts()
        config = (f"machines:\n  hosts: {self.world.path('hosts.yaml')}\n  ssh_user: {getpass.getuser()}\n"
                  f"  ssh_key: {self.key}\n  ssh_known_hosts: {known}\n{more}")
        return self.world.make_agent(name, config=config)

    def close(self):
        for host in self.hosts:
            host.close()


def _run(*argv):
    subprocess.run([str(word) for word in argv], check=True, capture_output=True)


def _children(pid):
    return [int(word) for word in
            subprocess.run(["pgrep", "-P", str(pid)], text=True, capture_output=True, check=False).stdout.split()]


def _kill(pid):
    _signal(pid, signal.SIGKILL)
    return pid


def _signal(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _free_port(address):
    with socket.socket() as probe:
        probe.bind((address, 0))
        return probe.getsockname()[1]


def _mentions(process, mark):
    try:
        stat = (process / "stat").read_text()
        if stat.rpartition(")")[2].split()[0] in "ZX":
            return False
        return (mark in (process / "cmdline").read_bytes() or mark in (process / "environ").read_bytes()
                or mark in os.readlink(process / "cwd").encode())
    except OSError:
        return False
