"""Who is told of what, as the settings have it. Without a secret read, and without HTTP."""

from tailburn.alerts.incidents.telling import Ways
from tailburn.app.settings import Settings
from tailburn.engine.slo.burn import Severity


def ways_of(settings: Settings) -> Ways:
    """The channels of each severity, by name."""
    return {Severity.PAGE: settings.page_to, Severity.TICKET: settings.ticket_to}


def tells(settings: Settings) -> bool:
    """Whether anybody is told of incidents by the service itself."""
    return bool(settings.page_to or settings.ticket_to or settings.alertmanagers)
