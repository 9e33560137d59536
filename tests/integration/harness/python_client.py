"""The Python client, installed by pip into an empty environment, and its programs."""

import os
import pathlib
import shutil
import tempfile

from harness.daemons import BIN
from harness.programs import checked
from harness.stubs import REPOSITORY

PACKAGE = REPOSITORY / "clients" / "python"
# The packages of others that the tests run with it.
PYTHON_PACKAGES = ("nvidia-tao-sdk==7.2.0", "dask==2026.8.0", "distributed==2026.8.0")
# pip fetches up to a hundred packages.
INSTALL_TIMEOUT_S = 600


class Installation:
    """The package with those of its extras, beside other packages."""

    def __init__(self, extras, *others):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="muster-py-"))
        # Jobs of another user may have a Python of this environment.
        self.root.chmod(0o755)
        self.package = self.root / "repository" / "clients" / "python"
        shutil.copytree(PACKAGE, self.package,
                        ignore=shutil.ignore_patterns("v1", "build", "dist", "*.egg-info", "__pycache__", ".*_cache"))
        (self.root / "repository" / "proto").symlink_to(REPOSITORY / "proto")
        checked("/usr/bin/python3", "-m", "venv", self.bin.parent, timeout=INSTALL_TIMEOUT_S)
        checked(self.bin / "pip", "install", "--quiet", f"{self.package}[{extras}]", *others, timeout=INSTALL_TIMEOUT_S)

    @property
    def bin(self):
        return self.root / "venv" / "bin"

    def close(self):
        shutil.rmtree(self.root, ignore_errors=True)

    def execute(self, world, script, *arguments, env=None):
        """Runs the script for the test's broker in a home of its own; returns its output."""
        home = world.path("home")
        home.mkdir(exist_ok=True)
        path = world.write("script.py", script)
        return checked(self.bin / "python", path, *arguments, cwd=home, env={**environment(world), **(env or {})})


def environment(world):
    return {"MUSTER_BROKER": world.broker.address, "HOME": str(world.path("home")), "PATH": f"{BIN}:{os.environ['PATH']}"}


def blocks(page):
    """The Python of a page, in order, one text."""
    text, found, inside = page.read_text(), [], False
    for line in text.splitlines():
        if line.startswith("```"):
            inside = not inside and line == "```python"
        elif inside:
            found.append(line)
    assert found, page
    return "\n".join(found) + "\n"
