"""Matchers as people write them, in Alertmanager's words, and the incidents that they keep back."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from tailburn.alerts.incidents.acting import MOST_NAME, MOST_TEXT
from tailburn.alerts.incidents.places import PlaceOf
from tailburn.engine.incidents import Incident, Member
from tailburn.engine.names import OBJECTIVE_LABEL, SEVERITY_LABEL, SLO_LABEL
from tailburn.engine.silences import Silence

Labels = Mapping[str, str]

INCIDENT_LABEL: Final = "incident"
"""An incident's number, which tells it from others for silences and for Alertmanager."""
MOST_MATCHERS: Final = 20
MOST_PATTERN: Final = 500
MOST_LASTS_NS: Final = 366 * 86_400_000_000_000
_WRITTEN: Final = re.compile(r"\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*(.*?)\s*", re.S)
_WANTED: Final = 'want NAME=VALUE, NAME!=VALUE, NAME=~REGEX or NAME!~REGEX, such as model="llama"'


class MatcherError(ValueError):
    """A matcher that is none; says what is wanted."""


@dataclass(frozen=True)
class Matcher:
    """One condition on a label; a label that is missing is empty."""

    name: str
    operator: str
    value: str

    def matches(self, labels: Labels) -> bool:
        """A regex has to match the whole value, as in Alertmanager."""
        value = labels.get(self.name, "")
        if self.operator in ("=", "!="):
            return (value == self.value) is (self.operator == "=")
        return (re.fullmatch(self.value, value) is not None) is (self.operator == "=~")

    def __str__(self) -> str:
        quoted = self.value.replace("\\", "\\\\").replace('"', '\\"')
        return f'{self.name}{self.operator}"{quoted}"'


def parsed(text: str) -> Matcher:
    """Raises MatcherError."""
    found = _WRITTEN.fullmatch(text)
    if found is None:
        raise MatcherError(f"{text!r}: {_WANTED}")
    name, operator, value = found.groups()
    if len(value) > MOST_PATTERN:
        raise MatcherError(f"{name}: a value of {len(value):,} characters; {MOST_PATTERN} at most")
    if value.startswith('"') or value.endswith('"'):
        value = _unquoted(text, value)
    if operator in ("=~", "!~"):
        _check_pattern(text, value)
    return Matcher(name, operator, value)


def all_parsed(texts: Iterable[str]) -> tuple[Matcher, ...]:
    """Of one silence. Raises MatcherError, also for one that would keep back all there is."""
    found = tuple(parsed(text) for text in texts)
    if not 0 < len(found) <= MOST_MATCHERS:
        raise MatcherError(f"{len(found)} matchers; want 1 to {MOST_MATCHERS}")
    if all(matcher.matches({}) for matcher in found):
        raise MatcherError("its matchers match what has no label at all; name what is silenced")
    return found


def new_silence(
    matchers: Iterable[str], starts_unix_ns: int, ends_unix_ns: int, who: str, why: str
) -> Silence:
    """Raises MatcherError for one that is not fit to be kept, and says why."""
    found = all_parsed(matchers)
    if not starts_unix_ns < ends_unix_ns <= starts_unix_ns + MOST_LASTS_NS:
        raise MatcherError("it ends before it starts, or a year later; want some time between")
    if not 0 < len(who) <= MOST_NAME:
        raise MatcherError(f"who: {len(who)} characters; want 1 to {MOST_NAME}")
    if len(why) > MOST_TEXT:
        raise MatcherError(f"why: {len(why):,} characters; {MOST_TEXT:,} at most")
    return Silence(tuple(map(str, found)), starts_unix_ns, ends_unix_ns, who, why)


def silenced_until_ns(
    incident: Incident, silences: Iterable[Silence], place_of: PlaceOf, now_unix_ns: int
) -> int | None:
    """Until when (wall clock) nobody is to be told of an incident; None: it is not silenced.

    It is where each alert that fires and is as grave as it, is kept back by some silence.
    """
    members = [m for m in incident.firing if m.key.severity == incident.severity]
    members = members or list(incident.members)
    active = [
        (tuple(map(parsed, silence.matchers)), silence.ends_unix_ns)
        for silence in silences
        if silence.is_active(now_unix_ns)
    ]
    ends = []
    for member in members:
        labels = {**labels_of(member, place_of), INCIDENT_LABEL: str(incident.id)}
        kept = [ns for matchers, ns in active if all(m.matches(labels) for m in matchers)]
        if not kept:
            return None
        ends.append(max(kept))
    return min(ends)


def labels_of(member: Member, place_of: PlaceOf) -> dict[str, str]:
    """What an alert is known by: the labels of its rule, and what its SLO selects."""
    key = member.key
    return {
        **place_of(key),
        "alertname": key.alertname,
        SEVERITY_LABEL: key.severity,
        SLO_LABEL: key.slo,
        OBJECTIVE_LABEL: key.objective,
    }


def _unquoted(text: str, value: str) -> str:
    if len(value) < 2 or not (value.startswith('"') and value.endswith('"')):
        raise MatcherError(f"{text!r}: a quote that has no other; {_WANTED}")
    return re.sub(r"\\(.)", r"\1", value[1:-1])


def _check_pattern(text: str, value: str) -> None:
    try:
        re.compile(value)
    except re.error as error:
        raise MatcherError(f"{text!r}: no regular expression: {error}") from None
