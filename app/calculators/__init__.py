"""What the alerts of an SLO would do: explained, and simulated over a course of traffic."""
