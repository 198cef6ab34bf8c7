"""What it costs a Prometheus to evaluate the generated rules."""
