"""The ear under the lab: what the service makes of a fleet's telemetry, beside what was true."""
