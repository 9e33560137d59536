"""Connect's own clients, from npm and of Go, against a real broker: the protocol as others read it."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest

from harness.connect import make_token, port_of

HTTP = "heartbeat_interval: 3s\nhttp:\n  listen: 127.0.0.1:0\n"
REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent / "http"
BUILD_TIMEOUT_S = 1200
RUN_TIMEOUT_S = 120
GO = subprocess.run([REPOSITORY / "tests/support/find-go"], capture_output=True, text=True, check=False).stdout.strip()


@pytest.fixture
def broker(world):
    return world.make_broker(config=HTTP).start()


def run(*argv, cwd, timeout=BUILD_TIMEOUT_S, **env):
    done = subprocess.run([str(word) for word in argv], cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True,
                          timeout=timeout, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """client(NAME): the command of that client, built once from a copy of its directory."""
    built = {}

    def build(name):
        if name not in built:
            target = tmp_path_factory.mktemp(name)
            shutil.copytree(HERE / name, target, dirs_exist_ok=True,
                            ignore=shutil.ignore_patterns("gen", "bin", "node_modules"))
            path = f"{pathlib.Path(GO).parent}:{os.environ['PATH']}" if GO else os.environ["PATH"]
            run("./generate", REPOSITORY / "proto", cwd=target, PATH=path)
            built[name] = ["node", target / "check.js"] if name == "node" else [target / "bin" / "check"]
        return built[name]

    return build


@pytest.mark.slow
@pytest.mark.parametrize("form", ["json", "binary"])
@pytest.mark.parametrize("name", ["node", "go"])
def test_a_client_of_connects_own_does_it_all(world, broker, agent, client, name, form):
    port = port_of(broker)
    token = make_token(world, "client")
    seen = json.loads(run(*client(name), f"http://127.0.0.1:{port}", form, cwd=world.root, timeout=RUN_TIMEOUT_S,
                          MUSTER_TOKEN=token))
    states = [state.removeprefix("JOB_STATE_") for state in seen.pop("states")]
    assert (states[0], states[-1]) == ("QUEUED", "SUCCEEDED")
    assert seen == {
        "job": "1", "name": "connect", "log": "hello from box\n", "stored": 1,
        "unknown": {"code": spelt(name, "NotFound"), "reason": "UNKNOWN_JOB"},
        "unknownStream": {"code": spelt(name, "NotFound"), "reason": "UNKNOWN_JOB"},
        "late": {"code": spelt(name, "DeadlineExceeded"), "reason": seen["late"]["reason"]},
        "aborted": {"code": spelt(name, "Canceled"), "reason": seen["aborted"]["reason"]},
        "forged": {"code": spelt(name, "Unauthenticated"), "reason": "CREDENTIAL_MALFORMED"},
    }


def spelt(name, code):
    """The name of a code as the client's language spells it."""
    return code if name == "node" else "".join(f"_{c.lower()}" if c.isupper() else c for c in code).lstrip("_")
