"""The tools of the integration tests: daemons that can be killed, a plain gRPC client, a bounded wait."""

import os

# gRPC waits for its own threads before a fork, and now and then for ever. Tests fork to start programs, which use no gRPC.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
