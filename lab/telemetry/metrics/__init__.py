"""What a fleet shows on `/metrics`, as its stacks show it: as text, live, in files, in columns."""

from tailburn.lab.telemetry.metrics.files import ScrapeFiles
from tailburn.lab.telemetry.metrics.listing import Target, targets
from tailburn.lab.telemetry.metrics.live import LiveTargets
from tailburn.lab.telemetry.metrics.metrics_text import MetricsText, Scrapes
from tailburn.lab.telemetry.metrics.page import PageError

__all__ = [
    "LiveTargets",
    "MetricsText",
    "PageError",
    "ScrapeFiles",
    "Scrapes",
    "Target",
    "targets",
]
