"""Python classes for the protos, made afresh with Debian's protoc in a directory that lives as long as the process."""

import atexit
import pathlib
import shutil
import subprocess
import sys
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]


def generate():
    """Puts muster.v1, google.rpc, health and reflection on the import path."""
    out = tempfile.mkdtemp(prefix="muster-stubs-")
    atexit.register(shutil.rmtree, out, ignore_errors=True)
    plugin = shutil.which("grpc_python_plugin")
    if plugin is None:
        raise RuntimeError("grpc_python_plugin is missing; run deploy/install-deps build test")
    roots = [REPOSITORY / "proto", REPOSITORY / "tests" / "support" / "protos"]
    files = [
        str(path.relative_to(root)) for root in roots for path in sorted(root.glob("**/*.proto"))
    ]
    subprocess.run(
        ["protoc", *(f"--proto_path={root}" for root in roots), f"--python_out={out}",
         f"--grpc_python_out={out}", f"--plugin=protoc-gen-grpc_python={plugin}", *files],
        check=True,
    )
    sys.path.insert(0, out)
    # grpc is a package of Debian's; its health and reflection messages join it. google is a namespace and needs no help.
    import grpc
    grpc.__path__.append(f"{out}/grpc")
