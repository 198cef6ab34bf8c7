"""Service level objectives: what was promised, and when a budget burns too fast."""
