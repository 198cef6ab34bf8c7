"""Sloth's SLOs, `prometheus/v1` and its Kubernetes form `sloth.slok.dev/v1`, made ours.

Each of its SLOs becomes a document of ours whose budget rests on its own two queries.
"""

from collections.abc import Iterator
from typing import Final

from tailburn.engine.slo.document import Path
from tailburn.engine.slo.exchange.draft import Draft
from tailburn.engine.slo.exchange.taking import Taking
from tailburn.engine.slo.readers import WINDOW, Unfit, name_of

FILE_VERSION: Final = "prometheus/v1"
KUBERNETES_VERSION: Final = "sloth.slok.dev/v1"

SERVICE_LABEL: Final = "sloth_service"
SLO_LABEL: Final = "sloth_slo"
UNWEIGHTED: Final = "knows no traffic: an idle minute weighs as much as a busy one"
_PLUGIN: Final = "is made by a plugin of Sloth's, which is not run here; left out"


def sloth_drafts(taking: Taking, window: str) -> Iterator[Draft]:
    """One draft for each SLO of a file; `window` is the period, which Sloth's files don't say."""
    is_kubernetes = taking.take("apiVersion") == KUBERNETES_VERSION
    taking.take("kind" if is_kubernetes else "version")
    base: Path = ("spec",) if is_kubernetes else ()
    service = _named(taking, (*base, "service"))
    labels = taking.texts(*base, "labels")
    if not taking.peek(*base, "slos"):
        taking.fault((*base, "slos"), "is missing or empty; want at least one SLO")
        return
    for i in range(taking.count(*base, "slos")):
        draft = _draft(taking, (*base, "slos", i), service, window)
        if draft is not None:
            for name, value in labels.items():
                draft.label(name, value, (*base, "labels", name))
            own = (*base, "slos", i, "labels")
            for name, value in taking.texts(*own).items():
                draft.label(name, value, (*own, name))
            yield draft


def _draft(taking: Taking, base: Path, service: str, window: str) -> Draft | None:
    name = _named(taking, (*base, "name"))
    objective = taking.text(*base, "objective")
    if not objective:
        taking.fault((*base, "objective"), "is missing; want a per cent such as 99.9")
    draft = Draft(taking, base)
    draft.remark(taking.text(*base, "description"))
    # Sloth's own id of an SLO, by which its series and dashboards know it.
    draft.set(("metadata", "name"), f"{service}-{name}", (*base, "name"))
    draft.set(("metadata", "labels", SERVICE_LABEL), service, (*base, "name"))
    draft.set(("metadata", "labels", SLO_LABEL), name, (*base, "name"))
    draft.set(("spec", "window"), window, base)
    draft.set(("spec", "availability"), f"{objective or 99}%", (*base, "objective"))
    is_whole = _queries(taking, base, draft)
    _alerting(taking, (*base, "alerting"), draft)
    return draft if is_whole else None


def _named(taking: Taking, path: Path) -> str:
    """A name; where it is none a stand-in, so that one fault is one problem."""
    text = taking.text(*path)
    try:
        return name_of(text)
    except Unfit as error:
        taking.fault(path, error.message())
        return "unnamed"


def _queries(taking: Taking, base: Path, draft: Draft) -> bool:
    """Set the draft's queries; False where there are none to be had."""
    sli = (*base, "sli")
    kinds = [kind for kind in ("events", "raw", "plugin") if taking.peek(*sli, kind) is not None]
    if len(kinds) != 1:
        found = f"has {' and '.join(kinds)}" if kinds else "has none"
        taking.fault(sli, f"{found}; want one of events, raw and plugin")
        return False
    if kinds == ["plugin"]:
        taking.lose(base, _PLUGIN)
        return False
    target = ("spec", "source", "queries")
    if kinds == ["events"]:
        for ours, theirs in (("bad", "error_query"), ("total", "total_query")):
            path = spelled(taking, (*sli, "events"), theirs)
            draft.set((*target, ours), taking.text(*path), path)
        return True
    path = spelled(taking, (*sli, "raw"), "error_ratio_query")
    ratio = taking.text(*path)
    for ours, query in ratio_queries(ratio).items():
        draft.set((*target, ours), query, path)
    if ratio:
        taking.mend(path, UNWEIGHTED)
    return True


def ratio_queries(ratio: str) -> dict[str, str]:
    """Bad and total of a bad ratio alone; minutes without a value (0/0) count in neither."""
    known = f"({ratio.strip()}) >= 0"
    if WINDOW not in ratio.replace("{{ .window }}", WINDOW):
        return {"bad": ratio, "total": ratio}
    return {"bad": known, "total": f"({known}) * 0 + 1"}


def _alerting(taking: Taking, base: Path, draft: Draft) -> None:
    if taking.peek(*base) is None:
        return
    severities = [spelled(taking, base, name) for name in ("page_alert", "ticket_alert")]
    off = [taking.text(*path, "disable") == "true" for path in severities]
    for path, is_off in zip(severities, off, strict=True):
        if is_off:
            taking.mend((*path, "disable"), "is not carried over: every budget has its alerts")
    if not taking.text(*base, "name") and not all(off):
        taking.fault((*base, "name"), "is missing or empty; name the alert, or disable both")
    elif taking.peek(*base, "name"):
        taking.mend((*base, "name"), "is not carried over: alerts have one name for all SLOs")
    draft.links(taking.texts(*base, "annotations"), (*base, "annotations"))
    for path in (base, *severities):
        for name in taking.texts(*path, "labels"):
            taking.lose(
                (*path, "labels", name), "is not carried over: route by team, severity and slo"
            )
    for path in severities:
        for name in taking.texts(*path, "annotations"):
            taking.lose((*path, "annotations", name), "annotations are made by `tailburn rules`")


def spelled(taking: Taking, base: Path, name: str) -> Path:
    """Where a field is: the Kubernetes form writes errorQuery, the file's form error_query."""
    first, *others = name.split("_")
    camel = first + "".join(part.title() for part in others)
    return (*base, camel) if taking.peek(*base, camel) is not None else (*base, name)
