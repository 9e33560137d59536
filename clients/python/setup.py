"""Makes the classes of the API, muster.v1, from the .proto files when the package is built."""

import pathlib
import shutil
import subprocess
import sys

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent


def protos() -> pathlib.Path:
    """The directory proto: of a source distribution, which has a copy, or of the repository."""
    for directory in (HERE / "proto", HERE.parent.parent / "proto"):
        if (directory / "muster" / "v1" / "job.proto").is_file():
            return directory
    raise SystemExit(f"muster-client: no directory proto is in {HERE} or two directories above; build from the repository")


def generate(target: pathlib.Path) -> None:
    """Writes muster/v1/*_pb2.py and their type stubs below the target."""
    root = protos()
    names = sorted(str(path.relative_to(root)) for path in (root / "muster" / "v1").glob("*.proto"))
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", f"-I{root}", f"--python_out={target}", f"--pyi_out={target}",
                    *names], check=True)
    (target / "muster" / "v1" / "__init__.py").write_text('"""The messages of the API, made from proto/muster/v1."""\n')


class BuildWithApi(build_py):
    def run(self) -> None:
        super().run()
        target = HERE / "src" if self.editable_mode else pathlib.Path(self.build_lib).resolve()
        (target / "muster" / "v1").mkdir(parents=True, exist_ok=True)
        generate(target)


class SdistWithProtos(sdist):
    def make_release_tree(self, base_dir: str, files: "list[str]") -> None:
        super().make_release_tree(base_dir, files)
        source = protos()
        for path in (source / "muster" / "v1").glob("*.proto"):
            copy = pathlib.Path(base_dir) / "proto" / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


setup(cmdclass={"build_py": BuildWithApi, "sdist": SdistWithProtos})
