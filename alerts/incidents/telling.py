"""Who is told what as an incident goes on: one message where it opens, one where it ends."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from tailburn.engine.incidents import Happened, Incident, Message, Step, What
from tailburn.engine.slo.burn import Severity

Ways = Mapping[Severity, Sequence[str]]
"""The channels by which each severity is told."""

_TRIGGERS: Final = (Happened.OPENED, Happened.ESCALATED, Happened.REOPENED)


def told(step: Step, ways: Ways) -> tuple[Incident, list[Message]]:
    """The messages that a step is worth, and the incident with who is told of it.

    What joins an open incident is no message: somebody is on it.
    """
    incident = step.incident
    if step.what in _TRIGGERS:
        channels = ways.get(incident.severity, ())
        after = replace(incident, told=incident.told | frozenset(channels))
        return after, [_message(step, What.TRIGGER, channel) for channel in channels]
    if step.what is Happened.RESOLVED:
        return incident, [_message(step, What.RESOLVE, each) for each in sorted(incident.told)]
    return incident, []


def _message(step: Step, what: What, channel: str) -> Message:
    incident = step.incident
    told_as = f"{incident.reopened}-{incident.severity}-{what}-{channel}"
    at_ns = step.event.at_ns
    message_id = f"{incident.key}-{told_as}"
    return Message(incident.key, what, incident.severity, channel, at_ns, message_id)
