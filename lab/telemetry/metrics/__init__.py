"""What a fleet shows on `/metrics`, as its stacks show it."""

from tailburn.lab.telemetry.metrics.listing import Target, targets
from tailburn.lab.telemetry.metrics.metrics_text import MetricsText, Scrapes
from tailburn.lab.telemetry.metrics.page import PageError

__all__ = ["MetricsText", "PageError", "Scrapes", "Target", "targets"]
