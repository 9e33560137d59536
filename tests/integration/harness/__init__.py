"""What the integration tests are written with: daemons that can be killed, a plain gRPC client, a bounded wait."""
