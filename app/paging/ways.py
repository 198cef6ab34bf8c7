"""Who is told of what, as the settings have it. Without a secret read, and without HTTP."""

from tailburn.alerts.incidents.telling import Ways
from tailburn.app.settings import Settings
from tailburn.engine.slo.burn import Severity


def ways_of(settings: Settings) -> Ways:
    """The channels of each severity, by name."""
    return {Severity.PAGE: settings.page_to, Severity.TICKET: settings.ticket_to}


def tells(settings: Settings) -> bool:
    """Whether the service itself tells anybody anything."""
    ways = settings.page_to, settings.ticket_to, settings.alertmanagers, settings.heartbeat_to
    return any(ways)
