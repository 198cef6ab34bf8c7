"""What a fleet's own telemetry shows of its changes: pure functions of rows and a minute."""
