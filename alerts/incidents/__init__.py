"""Which alerts are one incident, and how its life goes on: pure functions."""
