"""The tools of the integration tests: daemons that can be killed, a plain gRPC client, a bounded wait."""
