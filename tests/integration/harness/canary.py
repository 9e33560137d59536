"""A secret's value that is to be found nowhere but where it belongs, and the search for it."""

import base64
import hashlib
import os
import pathlib
import uuid

from muster.v1 import secrets_service_pb2, secrets_service_pb2_grpc

from harness.api import CALL_TIMEOUT_S


class Canary:
    """A value that nobody else has, and where it is."""

    def __init__(self):
        self.value = f"canary-{uuid.uuid4().hex}"
        # A file may have it in base64, at any of three places within a group.
        self._forms = [self.value.encode()]
        self._forms += [base64.b64encode(b" " * lead + self.value.encode())[4:-4] for lead in range(3)]

    @property
    def digest(self):
        """The digest that a program prints which has the value."""
        return hashlib.sha256(self.value.encode()).hexdigest()

    def is_in(self, content):
        return any(form in content for form in self._forms)

    def files(self, *roots):
        """The files below the directories that have it; symbolic links are not followed."""
        found = []
        for root in roots:
            for directory, _, names in os.walk(root):
                for path in (pathlib.Path(directory) / name for name in names):
                    if path.is_file() and not path.is_symlink() and self.is_in(path.read_bytes()):
                        found.append(path)
        return found

    def processes(self, run_key):
        """Processes that have it in what others may see: any in its arguments, and in its environment those that are
        not the run's programs."""
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            if int(process.name) == os.getpid():
                continue
            words, environment = read(process / "cmdline"), read(process / "environ")
            is_runs = f"MUSTER_RUN_KEY={run_key}\0".encode() in environment
            if self.is_in(words) or (self.is_in(environment) and not is_runs):
                found.append((process.name, words))
        return found


def set_secret(world, value, name="hf"):
    """Sets a secret of the test's user."""
    stub = secrets_service_pb2_grpc.SecretsServiceStub(world.api().channel)
    return stub.SetSecret(secrets_service_pb2.SetSecretRequest(name=name, value=value.encode()), timeout=CALL_TIMEOUT_S)


def read(path):
    """The bytes that a process has there; nothing, once it has ended."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def program(waits="true"):
    """A script that proves that it has the value, as a variable and as a file, without a word of it, then waits."""
    return ("set -e\nprintf %s \"$TOKEN\" | sha256sum\nsha256sum <\"$TOKEN_FILE\"\n"
            "stat -L -c 'mode %a' \"$TOKEN_FILE\"\n" + waits)


def use(spec):
    """Gives the spec the secret `hf` both ways."""
    spec.secrets.add(variable="TOKEN", name="hf")
    spec.secrets.add(variable="TOKEN_FILE", name="hf", as_file=True)
    return spec


def has_told(api, job_id):
    """Tells whether the program has said all that it says before its gate."""
    return b"mode" in api.read_log(job_id)[0]


def words(canary, mode):
    """The output of the program."""
    line = f"{canary.digest}  -\n"
    return f"{line}{line}mode {mode}\n".encode()
