"""Who is told of what, as the settings have it."""

from tailburn.alerts.incidents.telling import Ways
from tailburn.app.settings import Settings


def ways_of(settings: Settings) -> Ways:
    """The channels of each severity, by name."""
    return {}
