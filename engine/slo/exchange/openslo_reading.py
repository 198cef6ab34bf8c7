"""OpenSLO's SLOs on Prometheus, v1 and v1alpha, made ours.

Each objective becomes a document of ours whose budget rests on the indicator's queries.
Indicators may stand in objects of their own, in any of the files.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from tailburn.engine.slo.document import Path
from tailburn.engine.slo.exchange.draft import Draft
from tailburn.engine.slo.exchange.openslo_queries import Indicator, indicator_queries
from tailburn.engine.slo.exchange.taking import Taking
from tailburn.engine.slo.quantities import read_number, write_percent

VERSION: Final = "openslo/v1"
ALPHA_VERSION: Final = "openslo/v1alpha"

_CALENDARS: Final = {"1d": "day", "1w": "week", "1M": "month", "1Q": "quarter"}
_LONG_UNITS_D: Final = {"M": 30, "Q": 90, "Y": 365}
_ALPHA_UNITS: Final = {
    "Day": "d", "Week": "w", "Month": "M", "Quarter": "Q", "Year": "Y", "Hour": "h",
}  # fmt: skip
_SLICES: Final = "is not carried over: requests are counted, not slices of time"
_OTHER_KINDS: Final = {
    "AlertPolicy": "alerts follow from the objective and the window",
    "AlertCondition": "alerts follow from the objective and the window",
    "AlertNotificationTarget": "receivers are Alertmanager's",
    "DataSource": "rules are evaluated by the Prometheus that loads them",
    "Service": "the SLO's label `service` holds its name",
}


def is_openslo(version: str) -> bool:
    """Whether this is an apiVersion that can be read."""
    return version in (VERSION, ALPHA_VERSION)


@dataclass
class OpenSlo:
    """The objects of all files: SLOs, and the indicators that they name."""

    _slos: list[Taking] = field(default_factory=list)
    _indicators: dict[str, Taking] = field(default_factory=dict)

    def add(self, taking: Taking) -> None:
        """Keep an object until all are there."""
        taking.take("apiVersion")
        kind = taking.text("kind")
        if kind == "SLO":
            self._slos.append(taking)
        elif kind == "SLI":
            self._indicators[taking.text("metadata", "name")] = taking
        elif kind in _OTHER_KINDS:
            taking.lose_all(("kind",), f"is not carried over: {_OTHER_KINDS[kind]}")
        else:
            known = ", ".join(("SLO", "SLI", *_OTHER_KINDS))
            taking.fault(("kind",), f"is no kind of OpenSLO's; want one of {known}")

    def drafts(self) -> Iterator[Draft]:
        """One draft for each objective of each SLO."""
        for taking in self._slos:
            yield from self._of_slo(taking)

    def _of_slo(self, taking: Taking) -> Iterator[Draft]:
        objectives: Path = ("spec", "objectives")
        count = taking.count(*objectives)
        if count == 0:
            taking.fault(objectives, "is missing or empty; want at least one objective")
        for i in range(count):
            base: Path = (*objectives, i)
            draft = Draft(taking, base)
            _describe(taking, draft, f"-{i + 1}" if count > 1 else "")
            _window(taking, draft)
            _target(taking, base, draft)
            indicator = self._indicator(taking, base)
            queries = indicator and indicator_queries(indicator)
            if queries:
                for name, query in queries.items():
                    draft.set(("spec", "source", "queries", name), query, base)
                yield draft

    def _indicator(self, taking: Taking, objective: Path) -> Indicator | None:
        """Where the objective's queries are; None, and told, where there are none."""
        if taking.peek(*objective, "ratioMetrics") is not None:  # v1alpha
            return Indicator(taking, objective, taking)
        for base in (objective, ("spec",)):
            if taking.peek(*base, "indicator") is not None:
                for name in ("name", "displayName"):
                    taking.take(*base, "indicator", "metadata", name)
                return Indicator(taking, (*base, "indicator", "spec"), taking)
            name = taking.text(*base, "indicatorRef")
            if name in self._indicators:
                return Indicator(self._indicators[name], ("spec",), taking)
            if name:
                taking.fault((*base, "indicatorRef"), "names no SLI of these files; add its file")
                return None
        taking.fault(objective, "has no indicator; want spec.indicator or spec.indicatorRef")
        return None


def _describe(taking: Taking, draft: Draft, suffix: str) -> None:
    name = taking.text("metadata", "name")
    draft.set(("metadata", "name"), name + suffix, ("metadata", "name"))
    for path in (("metadata", "displayName"), ("spec", "description")):
        draft.remark(taking.text(*path))
    draft.remark(taking.text(*draft.origin, "displayName"))
    service = taking.text("spec", "service")
    if service:
        draft.label("service", service, ("spec", "service"))
    draft.links(taking.texts("metadata", "annotations"), ("metadata", "annotations"))
    labels = taking.peek("metadata", "labels")
    for label, values in labels.items() if isinstance(labels, dict) else ():
        taking.take("metadata", "labels", label)
        several = values if isinstance(values, list) else [values]
        draft.label(label, ", ".join(map(str, several)), ("metadata", "labels", label))


def _target(taking: Taking, base: Path, draft: Draft) -> None:
    percent, ratio = taking.text(*base, "targetPercent"), taking.text(*base, "target")
    origin = (*base, "targetPercent") if percent else (*base, "target")
    number = read_number(ratio)
    if percent:
        draft.set(("spec", "availability"), f"{percent}%", origin)
    elif number is None or not 0 < number < 1:
        taking.fault(origin, "is no share; want target: 0.999, or targetPercent: 99.9")
        draft.set(("spec", "availability"), "99%", origin)  # so that one fault is one problem
    else:
        draft.set(("spec", "availability"), write_percent(number), origin)
    method = taking.text("spec", "budgetingMethod")
    if method not in ("", "Occurrences"):
        taking.mend(("spec", "budgetingMethod"), _SLICES)
    for name in ("timeSliceTarget", "timeSliceWindow"):
        taking.lose((*base, name), _SLICES)


def _window(taking: Taking, draft: Draft) -> None:
    is_alpha = taking.peek("spec", "timeWindows") is not None
    base: Path = ("spec", "timeWindows" if is_alpha else "timeWindow")
    if not taking.count(*base):
        return
    base = (*base, 0)
    if is_alpha:
        unit = _ALPHA_UNITS.get(taking.text(*base, "unit"), "?")
        duration, origin = taking.text(*base, "count") + unit, (*base, "unit")
    else:
        duration, origin = taking.text(*base, "duration"), (*base, "duration")
    calendar = (*base, "calendar")
    if taking.text(*base, "isRolling") == "false" or taking.peek(*calendar) is not None:
        _calendar(taking, draft, duration, origin, calendar)
        return
    if duration[-1:] in _LONG_UNITS_D and duration[:-1].isdecimal():
        days = f"{int(duration[:-1]) * _LONG_UNITS_D[duration[-1]]}d"
        taking.mend(origin, f"has no fixed length when rolling; {days} is taken for it")
        duration = days
    draft.set(("spec", "window"), duration, origin)


def _calendar(taking: Taking, draft: Draft, duration: str, origin: Path, calendar: Path) -> None:
    if duration not in _CALENDARS:
        known = ", ".join(_CALENDARS)
        taking.fault(origin, f"is no period of a calendar here; want one of {known}")
        return
    draft.set(("spec", "calendar"), _CALENDARS[duration], origin)
    zone = taking.text(*calendar, "timeZone")
    if zone:
        draft.set(("spec", "time_zone"), zone, (*calendar, "timeZone"))
    taking.lose((*calendar, "startTime"), "is not carried over: periods begin at midnight")
